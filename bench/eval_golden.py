#!/usr/bin/env python3
"""Makes tests/golden/evaluation_scores.json: what lm-evaluation-harness says of the tests' GPT-2.

The model is tests/e2e/gpt2_folder.py's; the records are the golden cases', and LAMBADA texts that
end as the model ends them. Run with the peers' Python (requirements-peers.txt), only when the
records or the model change.
"""

import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "e2e")]

import pyarrow
import pyarrow.parquet
from gpt2_folder import write_gpt2

from parity import model, peer, records

OUTPUT = ROOT / "tests" / "golden" / "evaluation_scores.json"
STARTS = ("The sailor follows the river to the mountain", "In winter the king forgets the orchard")


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        folder = write_gpt2(work / "model")
        model.write_tokenizer(folder, 64)
        complete = model.Completer(folder)
        wanted = {task: records.golden(task) for task in records.TASKS}
        wanted["lambada_openai"] += [{"text": complete(start)} for start in STARTS]
        wanted["lambada_standard"] = [
            {"text": record["text"].lower(), "domain": "none"}
            for record in wanted["lambada_openai"]
        ]
        files = {}
        for task, rows in wanted.items():
            files[task] = work / f"{task}.parquet"
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), files[task])
        found = peer.evaluate(peer.load(folder, 4), peer.task_manager(work, files), files)
    golden = {
        task: {
            "records": wanted[task],
            "scores": found["samples"][task],
            "results": {
                key: value
                for key, value in found["results"][task].items()
                if key.endswith(",none")
            },
        }
        for task in records.TASKS
    }
    lines = [f"{json.dumps(task)}: {json.dumps(case)}" for task, case in golden.items()]
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
