#!/usr/bin/env python3
"""Counts instructions of XSA against standard attention (strength 0) in one thread, by callgrind.

  bench/instructions_bench.py [--tokens 128 512] [--output results/instructions.json]

Free of the machine's noise. valgrind knows no AVX-512: the kernels run as XSA_ISA=AVX2. Needs
valgrind and build/bin/instructions_bench (`make bench`), which makes one call of one head.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/bin/instructions_bench"
INSTRUCTION_SET = "AVX2"
TARGET_PERCENT = 1.0


def count(program, direction, tokens, head_dim, strength):
    """Instructions inside kernels::forward or kernels::backward, its workspace included."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind"
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={out}",
            f"--toggle-collect=xsa::kernels::{direction}(xsa::kernels::AttentionParams const&)",
            program,
            direction,
            *(str(number) for number in (tokens, head_dim, strength)),
        ]
        environment = {**os.environ, "XSA_ISA": INSTRUCTION_SET}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        found = re.search(r"^totals: (\d+)", out.read_text(), re.M) if out.exists() else None
    if done.returncode != 0 or not found or int(found[1]) == 0:
        sys.exit(f"[bench] callgrind counted nothing in {direction}:\n{done.stdout}")
    return int(found[1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "results/instructions.json")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("[bench] instructions: skipped, valgrind is not installed", file=sys.stderr)
        return 0
    if not options.program.exists():
        print(f"[bench] {options.program} does not exist: make bench", file=sys.stderr)
        return 1
    results = []
    for tokens in options.tokens:
        for direction in ("forward", "backward"):
            plain, xsa = (
                count(options.program, direction, tokens, options.head_dim, strength)
                for strength in (0, 1)
            )
            one = {"tokens": tokens, "head_dim": options.head_dim, "direction": direction}
            one |= {"plain": plain, "xsa": xsa, "more_percent": 100 * (xsa / plain - 1)}
            results.append(one)
            met = "met" if one["more_percent"] <= TARGET_PERCENT else "MISSED"
            print(
                f"T={tokens:<5} D={options.head_dim} {direction:<9} plain {plain:>12,}  "
                f"XSA {xsa:>12,}  {one['more_percent']:+.2f} % (at most {TARGET_PERCENT:g}: {met})",
                flush=True,
            )
    git = ["git", "-C", ROOT, "rev-parse", "HEAD"]
    measurement = {
        "what": "Instructions of one causal float32 call of one head in one thread, by callgrind",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown",
        "instruction_set": INSTRUCTION_SET,
        "target_percent": TARGET_PERCENT,
        "results": results,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(measurement, indent=1) + "\n")
    print(f"written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
