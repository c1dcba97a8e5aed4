#!/usr/bin/env python3
"""Holds `xsa eval` to lm-evaluation-harness 0.4.13 on the same model and records.

A random GPT-2 is scored by both: 200 validation records (--records) each of HellaSwag, WinoGrande,
SocialIQA, PIQA, ARC-Easy and OpenBookQA, the golden cases of BoolQ and both LAMBADAs with records
made for them, and a whole text in windows; once more with a context of 64 tokens, where many
requests are cut. Log-likelihoods must agree to 1e-4, whether a continuation is greedy and every
metric with its standard error must be equal; so for our batch sizes 1 and 32. Exit code 1 where
they are not.

    make eval-parity                          sets up .setup/peer, builds, runs this
    make eval-parity ARGS="--records 1000"

The environment has what requirements-peers.txt and requirements-peers-data.txt list.
"""

import argparse
import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from parity import compare, model, ours, peer, records

CUT = ("hellaswag", "winogrande", "boolq", "lambada_openai")  # for the short context


def arguments_of(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--records", type=int, default=200, help="of each task that has real ones")
    add("--xsa", type=pathlib.Path, default=ROOT / "build/bin/xsa", help="the program")
    add("--work", type=pathlib.Path, default=ROOT / "build/eval_parity", help="folder to work in")
    add("--batch-size", type=int, default=16, help="the harness's")
    return parser.parse_args(words)


def rolling(theirs, text_file, ours_result):
    """The comparison of a whole text's log-likelihood, as bits per byte."""
    text = text_file.read_bytes().decode()
    (log_likelihood,) = peer.rolling(theirs, [text])
    expected = -log_likelihood / len(text.encode()) / 0.6931471805599453
    return expected, ours_result["results"][text_file.name]["bits_per_byte,none"]


def compare_shape(arguments, shape, tasks):
    """Prints the table of one model; returns whether all is equal."""
    work = arguments.work / shape
    folder = model.make_model(arguments.work / f"model-{shape}", shape)
    files = records.write_records(work / "data", arguments.records, model.Completer(folder))
    files = {task: files[task] for task in tasks}
    text = records.write_text(work / "text.txt")
    manager = peer.task_manager(work / "tasks", files)
    harness = peer.load(folder, arguments.batch_size)
    theirs = peer.evaluate(harness, manager, tasks)

    passed = True
    for name, options in {"": (), "-1": ("--batch-size", 1), "-32": ("--batch-size", 32)}.items():
        output = work / f"xsa{name}"
        shutil.rmtree(output, ignore_errors=True)
        found = ours.evaluate(arguments.xsa, folder, files, output, "--text", text, *options)
        comparisons = [compare.Comparison(task, theirs, found) for task in tasks]
        cut = sum(found["xsa"]["truncated"].values())
        print(f"\n{shape} model, our batch size: {name[1:] or 'by tokens'}; {cut} requests cut")
        print(compare.table(comparisons))
        expected, got = rolling(harness, text, found)
        close = abs(expected - got) <= 1e-6 * expected
        print(f"bits per byte of {text.name}: {expected:.9f} and {got:.9f}")
        passed = passed and close and all(c.passed for c in comparisons)
    return passed


def main(words):
    arguments = arguments_of(words)
    arguments.work.mkdir(parents=True, exist_ok=True)
    passed = compare_shape(arguments, "small", records.TASKS)
    passed = compare_shape(arguments, "short", CUT) and passed
    print("\nall equal" if passed else "\nNOT equal")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
