#!/usr/bin/env python3
"""Breaks the code in small ways, one at a time, and sees that a test turns red each time.

  tools/mutate.py [NAME...] [--list] [--keep]

Works on a copy of the tree in build-mutate/ (`make mutate`). A sabotage that no test notices
survives: exit 1. A text that its file no longer holds exactly once is an error, so that the table
cannot rot. Slow: each sabotage rebuilds what depends on its file. Standard library only.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from sabotages import SABOTAGES

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "build-mutate"
COPIED = ("xsa", "tests", "cmake", "recipes", "CMakeLists.txt", "CMakePresets.json")


def copy_tree():
    """Brings the copy up to date; unchanged files keep their times, so that ninja skips them."""
    for name in COPIED:
        source = ROOT / name
        names = source.rglob("*") if source.is_dir() else [source]
        for path in names:
            target = SCRATCH / path.relative_to(ROOT)
            if path.is_file() and not (
                target.exists() and target.read_bytes() == path.read_bytes()
            ):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
    for target in [path for name in COPIED for path in (SCRATCH / name).rglob("*")]:
        if target.is_file() and not (ROOT / target.relative_to(SCRATCH)).exists():
            target.unlink()


def is_end_to_end(program):
    return program.endswith(".py")


def build(programs):
    targets = {"xsa" if is_end_to_end(program) else program for program in programs}
    command = ["ninja", "-C", str(SCRATCH / "build"), *sorted(targets)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def prepare(programs):
    SCRATCH.mkdir(exist_ok=True)
    copy_tree()
    options = [f"-DXSA_PYTHON={ROOT / '.setup/python'}", "-DXSA_BENCH=OFF"]
    command = ["cmake", "-S", SCRATCH, "-B", SCRATCH / "build", "-G", "Ninja", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    result = build(programs)
    if result.returncode:
        sys.exit(f"the tree does not build unharmed:\n{result.stdout[-3000:]}")


def run(program):
    folder = SCRATCH / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = [SCRATCH / "build/bin" / program, "--gtest_brief=1"]
    if is_end_to_end(program):
        command = [ROOT / ".setup/python", "-m", "pytest", "-x", "-p", "no:cacheprovider"]
        command.append(SCRATCH / program)
    environment = os.environ | {"XSA_BIN": str(SCRATCH / "build/bin/xsa")}
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, "it hung"
    return result.returncode, result.stdout + result.stderr


def verdict(sabotage):
    """Applies the sabotage; "red", "compiler" or "SURVIVED", and what noticed. Undoes it."""
    target = SCRATCH / sabotage.file
    intact = target.read_text(encoding="utf-8")
    target.write_text(intact.replace(sabotage.text, sabotage.replacement), encoding="utf-8")
    try:
        result = build([sabotage.program])
        if result.returncode:
            return "compiler", "it does not build: mend the sabotage"
        code, output = run(sabotage.program)
        failed = re.search(r"^(?:\[  FAILED  \] |FAILED \S*::)([\w./]+)", output, re.M)
        return ("red", failed[1] if failed else "crash") if code else ("SURVIVED", "")
    finally:
        target.write_text(intact, encoding="utf-8")


def complaints(sabotages):
    for sabotage in sabotages:
        path = ROOT / sabotage.file
        count = path.read_text(encoding="utf-8").count(sabotage.text) if path.exists() else 0
        if count != 1:
            yield f"{sabotage.name}: {sabotage.file} holds its text {count} times; expected once"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these sabotages")
    parser.add_argument("--list", action="store_true", help="list them, check the texts and leave")
    parser.add_argument("--keep", action="store_true", help="keep build-mutate/ for the next time")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {sabotage.name for sabotage in SABOTAGES}
    if unknown:
        parser.error(f"unknown sabotage: {', '.join(sorted(unknown))}; see --list")
    chosen = [s for s in SABOTAGES if not arguments.names or s.name in arguments.names]
    rotten = list(complaints(chosen))
    if arguments.list:
        print("\n".join(f"{s.name:<30} {s.file} ({s.program})" for s in chosen))
    if rotten or arguments.list:
        print("\n".join(rotten))
        return 1 if rotten else 0

    programs = sorted({sabotage.program for sabotage in chosen})
    print(f"[mutate] building {', '.join(programs)} unharmed", flush=True)
    prepare(programs)
    for program in programs:
        code, output = run(program)
        if code:
            sys.exit(f"{program} fails unharmed; mend that first:\n{output[-2000:]}")
    outcomes = []
    for sabotage in chosen:
        began = time.monotonic()
        outcome, by = verdict(sabotage)
        outcomes.append(outcome)
        seconds = time.monotonic() - began
        print(f"[mutate] {sabotage.name:<30} {outcome:<9} {by} ({seconds:.0f} s)", flush=True)
    if not arguments.keep:
        shutil.rmtree(SCRATCH)
    print(f"{outcomes.count('red')} noticed, {len(outcomes) - outcomes.count('red')} not")
    return 0 if all(outcome == "red" for outcome in outcomes) else 1


if __name__ == "__main__":
    os.environ["PATH"] += f":{ROOT / '.setup/tools/bin'}"
    sys.exit(main())
