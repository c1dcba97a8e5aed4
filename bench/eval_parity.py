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
    make eval-parity ARGS=--speed             then times both, in turn, and writes results/eval.json

The environment has what requirements-peers.txt and requirements-peers-data.txt list.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from parity import compare, model, ours, peer, records, speed

BATCHES = {"by tokens": (), "1": ("--batch-size", 1), "32": ("--batch-size", 32)}
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
    add("--speed", action="store_true", help="also time both, and write --output")
    add("--speed-only", action="store_true", help="time both, and write the speed of --output anew")
    add("--write", action="store_true", help="write --output also without --speed")
    add("--rounds", type=int, default=3, help="of the timing")
    add("--output", type=pathlib.Path, default=ROOT / "results/eval.json")
    return parser.parse_args(words)


def rolling(theirs, text_file, ours_result):
    """The comparison of a whole text's log-likelihood, as bits per byte."""
    text = text_file.read_bytes().decode()
    (log_likelihood,) = peer.rolling(theirs, [text])
    expected = -log_likelihood / len(text.encode()) / 0.6931471805599453
    return expected, ours_result["results"][text_file.name]["bits_per_byte,none"]


def compare_shape(arguments, shape, tasks):
    """Prints the tables of one model; returns them as JSON."""
    work = arguments.work / shape
    folder = model.make_model(arguments.work / f"model-{shape}", shape)
    files = records.write_records(work / "data", arguments.records, model.Completer(folder))
    files = {task: files[task] for task in tasks}
    text = records.write_text(work / "text.txt")
    manager = peer.task_manager(work / "tasks", files)
    found = {}
    for name, options in BATCHES.items():
        output = work / f"xsa-{name}"
        shutil.rmtree(output, ignore_errors=True)
        found[name] = ours.evaluate(arguments.xsa, folder, files, output, "--text", text, *options)
    return {
        summed_in: compare_sums(arguments, shape, manager, tasks, text, found, summed_in)
        for summed_in in ("float64", "float32")
    }


def compare_sums(arguments, shape, manager, tasks, text, found, summed_in):
    """As compare_shape, for the harness's sums in one type; float32 is its default."""
    folder = arguments.work / f"model-{shape}"
    harness = peer.load(folder, arguments.batch_size, summed_in)
    theirs = peer.evaluate(harness, manager, tasks)
    report = {}
    for name, one in found.items():
        comparisons = [compare.Comparison(task, theirs, one, summed_in) for task in tasks]
        cut = sum(one["xsa"]["truncated"].values())
        print(f"\n{shape} model, the harness sums in {summed_in}, our batch size: {name};", end=" ")
        print(f"{cut} requests cut from the left\n{compare.table(comparisons)}")
        expected, got = rolling(harness, text, one)
        print(f"bits per byte of {text.name}: {expected:.9f} and {got:.9f}", flush=True)
        report[name] = {
            "equal": all(c.passed for c in comparisons) and abs(expected - got) <= 1e-6 * expected,
            "requests_cut": cut,
            "bits_per_byte": [expected, got],
            "tasks": {c.task: c.as_json() for c in comparisons},
        }
    return report


def measure_parity(arguments):
    report = {
        "small": compare_shape(arguments, "small", records.TASKS),
        "short": compare_shape(arguments, "short", CUT),
    }
    equal = all(
        found["equal"]
        for shape in report.values()
        for sums in shape.values()
        for found in sums.values()
    )
    print("\nall equal" if equal else "\nNOT equal")
    return {"equal": equal, "shapes": report}


def measure_speed(arguments):
    return {
        "what": speed.__doc__,
        "small": speed.measure(arguments, "small", 60, arguments.rounds),
        "gpt2": speed.measure(arguments, "gpt2", 15, arguments.rounds),
    }


def about():
    """Machine, date, commit and versions."""
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":")[1].strip() for line in file if "model name" in line), "")
    packages = ("lm_eval", "transformers", "torch", "datasets")
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit,
        "cpu": cpu,
        "cores": os.cpu_count(),
        "versions": {name: importlib.metadata.version(name) for name in packages},
    }


def main(words):
    arguments = arguments_of(words)
    arguments.work.mkdir(parents=True, exist_ok=True)
    report = json.loads(arguments.output.read_text()) if arguments.output.is_file() else {}
    equal = True
    if not arguments.speed_only:
        report["parity"] = about() | measure_parity(arguments)
        equal = report["parity"]["equal"]
    if arguments.speed or arguments.speed_only:
        report["speed"] = about() | measure_speed(arguments)
    if arguments.speed or arguments.speed_only or arguments.write:
        arguments.output.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
