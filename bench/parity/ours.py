"""`xsa eval` on local files, and what it wrote."""

import json
import subprocess


def evaluate(program, model, files, output, *options):
    """{"results": ..., "samples": as peer.evaluate has them, "xsa": what was computed}"""
    data = [word for task, file in files.items() for word in ("--data", f"{task}={file}")]
    tasks = ["--tasks", ",".join(files)] if files else []
    command = [program, "eval", model, *tasks, *data, "--output", output, *options]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    samples = {}
    for task in files:
        lines = (output / f"samples_{task}.jsonl").read_text().splitlines()
        rows = sorted(map(json.loads, lines), key=lambda row: row["doc_id"])
        samples[task] = [
            [(float(value), greedy == "True") for value, greedy in row["filtered_resps"]]
            for row in rows
        ]
    return json.loads((output / "results.json").read_text()) | {"samples": samples}
