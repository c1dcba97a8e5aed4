#!/usr/bin/env python3
"""Holds `xsa eval --dump-requests` to lm-evaluation-harness 0.4.13, without a model.

Every real record of HellaSwag, WinoGrande, SocialIQA, PIQA, ARC-Easy, OpenBookQA and BoolQ goes
through both; LAMBADA gets texts of HellaSwag, the golden cases and awkward ones. All
texts and token ids must be equal, in the same order. Exit code 1 where they are not.

    make eval-parity      sets up .setup/peer, builds, runs this and eval_parity.py

With --file the counts are written as JSON (results/eval_requests.json).
"""

import argparse
import datetime
import importlib.metadata
import json
import logging
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
os.environ.setdefault("TQDM_DISABLE", "1")

from parity import asked, peer, records

import pyarrow
import pyarrow.parquet

logging.disable(logging.WARNING)  # the harness says of each task that ours overrides its own
ALL = 1_000_000  # records: more than any task has
SPACES = "  \t\n\u00a0\u2003\u3000\x1c\x85"
AWKWARD = [*SPACES, *".,'s\u2019\u201caZ12_\u00e9\u4e2d\U0001f600\u200d\u0301"]
HOSTILE = [
    "a <|endoftext|> b c",
    "x <|endoftext|>",
    "<|endoftext|>",
    "one",
    "two words ",
    "a\u00a0b\u2003 c",
    "a  b\n\nc d\ne",
    "tail\u2028 x",
    "tab\t x y",
]


def awkward_texts(count, seed=5):
    """Random texts of spaces of all kinds, marks and letters; none with a blank context, which the
    harness fails on."""
    rng = random.Random(seed)
    texts = []
    while len(texts) < count:
        text = "".join(rng.choice(AWKWARD) for _ in range(rng.randrange(1, 30)))
        context = text.rpartition(" ")[0]
        if context.strip() or not context and " " not in text:
            texts.append(text)
    return texts


def write_records(folder):
    """As records.write_records, with all real records and awkward LAMBADA texts."""
    files = records.write_records(folder, ALL, lambda text: text)
    lambada = pyarrow.parquet.read_table(files["lambada_openai"]).column("text").to_pylist()[:2000]
    table = pyarrow.table({"text": lambada + HOSTILE + awkward_texts(3000)})
    pyarrow.parquet.write_table(table, files["lambada_openai"])
    boolq = pyarrow.Table.from_pylist(records.boolq(ALL))
    pyarrow.parquet.write_table(boolq, files["boolq"])
    standard = pyarrow.parquet.read_table(files["lambada_standard"]).slice(0, 2000)
    pyarrow.parquet.write_table(standard, files["lambada_standard"])
    return files


def dump(program, files, output):
    data = [word for task, file in files.items() for word in ("--data", f"{task}={file}")]
    command = [program, "eval", "--tasks", ",".join(files), *data, "--dump-requests", output]
    start = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True)
    print(f"xsa eval --dump-requests: {time.perf_counter() - start:.1f} s")
    lines = {task: [] for task in files}
    with open(output, encoding="utf-8") as file:
        for line in map(json.loads, file):
            lines[line["task"]].append(line)
    return lines


def count_different(theirs, ours):
    """Requests that differ in any key, or stand in one list alone; the first three are shown."""
    pairs = zip(theirs, ours, strict=False)
    different = [(one, other) for one, other in pairs if list(one.items()) != list(other.items())]
    for one, other in different[:3]:
        print(f"  theirs {one}\n  ours   {other}")
    return len(different) + abs(len(theirs) - len(ours))


def write_counts(file, counts):
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    result = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown",
        "against": {
            name: importlib.metadata.version(name)
            for name in ("lm_eval", "transformers", "tokenizers")
        },
        "tasks": counts,
    }
    file.write_text(json.dumps(result, indent=1) + "\n")


def main(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--xsa", type=pathlib.Path, default=ROOT / "build/bin/xsa", help="the program")
    add("--file", type=pathlib.Path, help="also write the counts to this JSON file")
    add("--work", type=pathlib.Path, default=ROOT / "build/eval_parity", help="folder to work in")
    arguments = parser.parse_args(words)
    files = write_records(arguments.work / "requests")
    ours = dump(arguments.xsa, files, arguments.work / "requests" / "requests.jsonl")
    loaded = peer.task_manager(arguments.work / "requests", files).load(list(files))["tasks"]
    listener = asked.Listener(arguments.work / "tokenizer")
    print(f"{'task':18}{'requests':>9}{'token ids':>11}{'different':>11}")
    counts = {}
    for task in files:
        theirs = list(asked.requests_of(listener, loaded[task], task))
        counts[task] = {
            "requests": len(theirs),
            "token_ids": sum(len(r["context_ids"]) + len(r["continuation_ids"]) for r in theirs),
            "different": count_different(theirs, ours[task]),
        }
        print(f"{task:18}{counts[task]['requests']:9}{counts[task]['token_ids']:11}", end="")
        print(f"{counts[task]['different']:11}")
    wrong = sum(count["different"] for count in counts.values())
    print("all equal" if not wrong else f"{wrong} NOT equal")
    if arguments.file:
        write_counts(arguments.file, counts)
    return 0 if not wrong else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
