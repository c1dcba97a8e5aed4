#!/usr/bin/env python3
"""Runs the tests of one or more build folders; the last line is `N passed, N failed`, and behind
it `, N skipped` where a test was skipped. Each skip is named with its reason; where CI is set in
the environment, one whose reason tools/skips.py does not list counts as failed.

  tools/test.py BUILD_FOLDER... [--filter WORD]

Of each folder every bin/test_* program (GoogleTest); of a folder with the operator also the Python
tests in tests/tools, python/tests and tests/e2e. Each runs in an empty folder of its own, two at a
time. Exit 1 if any test failed, a program crashed or hung, or nothing ran. Standard library only.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import skips

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON_SUITES = ("tests/tools", "python/tests", "tests/e2e")
LIMIT_S = 1500  # a program that runs for longer hangs
OUTCOME = re.compile(r"^\[ +(RUN|OK|FAILED|SKIPPED) +\] (\S+?)(?:,.*)?(?: \(\d+ ms\))?$", re.M)
SKIPPED = re.compile(
    r"^\[ RUN +\] (\S+)\n(?:(?!\[ RUN ).*\n)*?"
    r"\S+: Skipped\n((?:.+\n)*)(?:.*\n)*?\[ +SKIPPED +\] \1",
    re.M,
)
SHOWN_LINES = 60  # of the output, where something failed
AT_ONCE = 2
RUNNING = set()  # processes that an interruption has to end


@dataclasses.dataclass
class Result:
    """What one program or Python suite came to."""

    name: str
    passed: int = 0
    skipped: dict = dataclasses.field(default_factory=dict)  # name of the test -> reason
    failures: list = dataclasses.field(default_factory=list)  # names of tests, or what went wrong
    selected: int = 0
    output: str = ""
    repeat: str = ""


def run(command, folder, environment):
    """Runs in a fresh scratch folder; returns (exit code or None if it hung, output, seconds)."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.monotonic()
    log = folder.with_suffix(".log")
    with open(log, "wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        RUNNING.add(process)
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            code = None
        finally:
            RUNNING.discard(process)
    return code, log.read_text(errors="replace"), time.monotonic() - began


def ending(code):
    if code is None:
        return f"it ran for more than {LIMIT_S} s and was stopped"
    return f"it died of signal {-code}" if code < 0 else f"it ended with exit code {code}"


def read_gtest(result, report, code):
    """Fills in `result` from GoogleTest's JSON or, after a crash, from what it printed."""
    reasons = {name: " ".join(reason.split()) for name, reason in SKIPPED.findall(result.output)}
    if report.exists():
        for suite in json.loads(report.read_text())["testsuites"]:
            for case in suite["testsuite"]:
                if case["status"] == "NOTRUN":
                    continue
                name = f"{suite['name']}.{case['name']}"
                result.selected += 1
                if case.get("failures"):
                    result.failures.append(name)
                elif case["result"] == "SKIPPED":
                    result.skipped[name] = reasons.get(name, "no reason given")
                else:
                    result.passed += 1
        if code != 0 and not result.failures:
            result.failures.append(f"({ending(code)} though no test failed)")
        return
    outcomes = OUTCOME.findall(result.output)
    ran = dict.fromkeys(name for kind, name in outcomes if kind == "RUN")
    for kind, name in outcomes:
        if name in ran:
            ran[name] = kind
    result.selected = max(1, len(ran))
    result.passed = sum(kind == "OK" for kind in ran.values())
    for name, kind in ran.items():
        if kind == "SKIPPED":
            result.skipped[name] = reasons.get(name, "no reason given")
    result.failures = [name for name, kind in ran.items() if kind in ("FAILED", "RUN")]
    result.failures.append(f"({ending(code)}; tests after that did not run)")


def run_program(program, scratch, word):
    folder = program.parent.parent
    name = program.name.removeprefix("test_")
    result = Result(f"{folder.name}: {name}")
    pattern = "*" if word in ("", name) else f"*{word}*"
    report = scratch / f"{program.name}.json"
    report.unlink(missing_ok=True)
    command = [str(program), f"--gtest_filter={pattern}", f"--gtest_output=json:{report}"]
    options = {
        "ASAN_OPTIONS": "detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    code, result.output, seconds = run(command, scratch / program.name, {**options, **os.environ})
    read_gtest(result, report, code)
    if result.failures:
        failed = ":".join(failure for failure in result.failures if not failure.startswith("("))
        result.repeat = shlex.join(
            [os.path.relpath(program, ROOT), f"--gtest_filter={failed or pattern}"]
        )
    return result, seconds


def run_python(suite, folder, scratch, word):
    result = Result(suite)
    report = scratch / (suite.replace("/", "-") + ".xml")
    report.unlink(missing_ok=True)
    paths = {"XSA_OP_LIBRARY": str(folder / "lib/libxsa_op.so"), "XSA_BIN": str(folder / "bin/xsa")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(ROOT / suite),
        f"--rootdir={ROOT}",
        "-p",
        "no:cacheprovider",
        "-q",
        "-ra",
        f"--junit-xml={report}",
    ] + (["-k", word] if word else [])
    environment = {**os.environ, **paths, "PYTHONDONTWRITEBYTECODE": "1"}
    code, result.output, seconds = run(command, scratch / suite.replace("/", "-"), environment)
    if code == 5 and word:  # pytest: nothing selected
        return result, seconds
    settings = [f"{key}=$PWD/{os.path.relpath(value, ROOT)}" for key, value in paths.items()]
    result.repeat = " ".join([*settings, ".setup/python -m pytest", suite])
    if report.exists():
        for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
            result.selected += 1
            name = f"{case.get('classname')}::{case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                result.failures.append(name)
            elif case.find("skipped") is not None:
                reason = case.find("skipped").get("message") or "no reason given"
                result.skipped[name] = reason.removeprefix("Skipped: ")
            else:
                result.passed += 1
    if code != 0 and not result.failures:
        result.selected += 1
        result.failures.append(f"({ending(code)})")
    if result.failures:
        cases = [
            failure.split("::")[1].split("[")[0] for failure in result.failures if "::" in failure
        ]
        names = " or ".join(dict.fromkeys(cases))
        result.repeat += f" -k '{names}'" if names else ""
    return result, seconds


def telling_lines(result):
    """The failed tests' part of GoogleTest's output, or else the end of the output."""
    lines = result.output.splitlines()
    failed, kept, since = set(result.failures), [], None
    for number, line in enumerate(lines):
        if line.startswith("[ RUN      ] "):
            since = number if line.split()[-1] in failed else None
        elif since is not None and re.match(r"\[ +(OK|FAILED|SKIPPED) +\]", line):
            kept += lines[since:number]
            since = None
    kept += lines[since:] if since is not None else []
    return kept[:SHOWN_LINES] or lines[-SHOWN_LINES:]


def show(result, seconds):
    counts = f"{result.passed} passed"
    counts += f", {len(result.skipped)} skipped" if result.skipped else ""
    counts += f", {len(result.failures)} FAILED" if result.failures else ""
    print(f"[test] {result.name:<28} {counts} ({seconds:.1f} s)", flush=True)
    for name, reason in result.skipped.items():
        print(f"    skipped: {name}: {reason}", flush=True)
    if result.failures:
        print("\n".join("    | " + line for line in telling_lines(result)))
        print("\n".join(f"    failed: {failure}" for failure in result.failures))
        print(f"    repeat: {result.repeat}", flush=True)


def jobs_of(folder, word):
    """What is to run, as functions without arguments."""
    scratch = folder / "test"
    for program in sorted((folder / "bin").glob("test_*")):
        yield lambda program=program: run_program(program, scratch, word)
    if (folder / "lib/libxsa_op.so").exists():
        for suite in PYTHON_SUITES:
            if any((ROOT / suite).glob("**/test_*.py")):
                yield lambda suite=suite: run_python(suite, folder, scratch, word)


def main():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup would hide it from the tests of it
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="BUILD_FOLDER")
    parser.add_argument(
        "--filter", default="", metavar="WORD", help="only tests whose name holds WORD"
    )
    arguments = parser.parse_args()
    totals = Result("total")
    folders = [folder.resolve() for folder in arguments.folders]
    jobs = [job for folder in folders for job in jobs_of(folder, arguments.filter)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            for result, seconds in pool.map(lambda job: job(), jobs):
                if result.selected or not arguments.filter:
                    show(result, seconds)
                totals.passed += result.passed
                for name, reason in result.skipped.items():
                    totals.skipped[f"{result.name}: {name}"] = reason
                totals.failures += result.failures
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                os.killpg(process.pid, 9)
            raise
    if not totals.passed and not totals.failures:
        named = f"name holds '{arguments.filter}'"
        print(
            "[test] no test's " + named if arguments.filter else "[test] found no tests: make build"
        )
    for name, reason in totals.skipped.items():
        if skips.is_failure(reason):
            print(f"[test] {name} was skipped, and tools/skips.py does not allow it: {reason}")
            totals.failures.append(name)
    skipped = f", {len(totals.skipped)} skipped" if totals.skipped else ""
    print(f"{totals.passed} passed, {len(totals.failures)} failed{skipped}")
    return 0 if totals.passed and not totals.failures else 1


if __name__ == "__main__":
    sys.exit(main())
