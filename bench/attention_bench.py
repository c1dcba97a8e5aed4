#!/usr/bin/env python3
"""Times XSA on the CPU against PyTorch, in one process; ratios, noise dropped, results verified.

Variants, forward and forward + backward: SDPA (PyTorch's scaled_dot_product_attention) alone; SDPA
and the paper's two lines, eager and under torch.compile; ours plain (strength 0); ours with XSA.
In a round each runs once, in random order, warm, with a matrix product (sgemm) before and after;
rounds in which that was slow are dropped. Ratios are taken within a round; medians and quartiles
are over rounds. Groups of cases:

  a  causal, float32, the lengths of the table     f  packed documents
  b  odd lengths, other B and H, other layouts     g  head dimensions
  c  not causal                                    h  bfloat16 and float16
  d  grouped heads                                 i  decoding
  e  window                                        j  memory

A whole run writes results/attention_cpu.json; any other writes build/attention_cpu.json. For the
page, measure twice, at least half an hour apart:

  bench/attention_bench.py
  bench/attention_bench.py --output results/attention_cpu_again.json
  bench/attention_bench.py --page           docs/performance.md, from the two
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import torch

from attention import page, tables
from attention.cases import GROUPS, cases_of
from attention.results import measure_case
from attention.rounds import Machine

QUICK_BUDGET = 0.12  # of a case's time
WHAT = "CPU attention. Ratios are of times within a round; above 1: the second is faster"


def groups(text):
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in GROUPS:
            known = ",".join(GROUPS)
            raise argparse.ArgumentTypeError(f"expected letters of {known}, got '{name}'")
    return names


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def arguments_of(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--group", type=groups, default=list(GROUPS), metavar="a,c", help="only these groups")
    add("--case", default="", metavar="WORDS", help="only cases that hold these words, e.g. T=512")
    add("--quick", action="store_true", help="fewer cases and rounds: to try, not to quote")
    add("--no-compile", dest="compile", action="store_false", help="without torch.compile")
    add("--threads", type=positive, default=len(os.sched_getaffinity(0)))
    add("--rounds", type=positive, help="rounds of each case (default: as its time allows)")
    add("--output", type=pathlib.Path, help="file to write")
    add("--page", action="store_true", help="measure nothing: remake docs/performance.md")
    found = parser.parse_args(words)
    found.compile = found.compile and not found.quick
    found.budget = QUICK_BUDGET if found.quick else 1.0
    partly = found.group != list(GROUPS) or found.case or found.rounds or not found.compile
    found.whole = not partly
    if not found.output:
        found.output = ROOT / ("results" if found.whole else "build") / "attention_cpu.json"
    return found


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "os": platform.freedesktop_os_release()["PRETTY_NAME"],
        "torch": torch.__version__,
        "instruction_set": os.environ.get("XSA_ISA") or torch.backends.cpu.get_cpu_capability(),
    }


def commit():
    def git(*words):
        done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "xsa", "bench")
    return (git("rev-parse", "HEAD") or "unknown") + (" and changes" if changed else "")


class Progress:
    """One line a case on stderr, with the time that is left."""

    def __init__(self, cases, options):
        self.options, self.total = options, len(cases)
        self.done, self.began = 0, time.monotonic()
        self.left_s = sum(self.cost_s(case) for case in cases)
        self.past_s = 0.0

    def cost_s(self, case):
        compiling = 12.0 if case.compiled and self.options.compile else 0.0
        return case.budget_s * self.options.budget * 1.5 + compiling + 0.5

    def begin(self, case):
        pace = (time.monotonic() - self.began) / self.past_s if self.past_s else 1.0
        left = int(self.left_s * pace)
        self.done += 1
        print(
            f"[bench] {self.done}/{self.total} {left // 60}:{left % 60:02} left"
            f"  {case.group}: {case.label}",
            file=sys.stderr,
            flush=True,
        )

    def end(self, case):
        self.left_s -= self.cost_s(case)
        self.past_s += self.cost_s(case)


def measure_memory(options, library):
    print("[bench] j: memory, in processes of its own", file=sys.stderr, flush=True)
    command = [sys.executable, ROOT / "bench/attention/memory.py", library, str(options.threads)]
    command += ["--quick"] if options.quick else []
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def measure(options, library):
    measurement = {
        "format": 2,
        "what": WHAT,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
        "machine": machine(),
        "setting": {"threads": options.threads, "quick": options.quick, "groups": options.group},
        "results": [],
    }
    cases = cases_of(options.group, options.quick)
    cases = [case for case in cases if options.case in case.label]
    speed, order, progress = Machine(), random.Random(0), Progress(cases, options)
    for case in cases:
        progress.begin(case)
        measurement["results"].append(measure_case(case, speed, order, options))
        progress.end(case)
    for result in measurement["results"]:  # now that the machine's best is known
        result["slow"] = speed.is_slow(result["sgemm_gflops"]["median"])
    products = [result["sgemm_gflops"]["median"] for result in measurement["results"]]
    measurement["sgemm_gflops"] = statistics.median(products) if products else 0
    measurement["sgemm_2048_gflops"] = speed.larger_product_gflops()
    if "j" in options.group and not options.case:
        measurement["memory"] = measure_memory(options, library)
    return measurement


def warn_if_busy():
    load = os.getloadavg()[0]
    if load > 0.5 * os.cpu_count():
        print(
            f"[bench] the machine is busy (load {load:.1f} on {os.cpu_count()} cores): do not "
            "quote these figures",
            file=sys.stderr,
        )


def main(words=None):
    options = arguments_of(words)
    if options.page:
        try:
            page.write(ROOT)
        except page.PageError as error:
            print(f"[bench] {error}", file=sys.stderr)
            return 1
        print("[bench] written: docs/performance.md")
        return 0
    library = os.environ.get("XSA_OP_LIBRARY", str(ROOT / "build/lib/libxsa_op.so"))
    if not pathlib.Path(library).exists():
        print(f"[bench] {library} does not exist: make build", file=sys.stderr)
        return 1
    warn_if_busy()
    torch.set_num_threads(options.threads)
    torch.ops.load_library(library)
    measurement = measure(options, library)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(measurement, indent=1, ensure_ascii=False) + "\n")
    print(tables.report(measurement))
    print(f"\nwritten to {options.output}")
    return 1 if any("wrong" in result for result in measurement["results"]) else 0


if __name__ == "__main__":
    sys.exit(main())
