"""What tools/test.py and tools/check make of a test or a check that was skipped."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LISTED = "no 16 GiB of address space"
OTHER = "GPT-2's vocabulary is not installed"

PROGRAM = """#!{python}
import json, sys
reason, crashes = {reason!r}, {crashes}
report = next(word.partition("json:")[2] for word in sys.argv if "json:" in word)
print("[ RUN      ] Suite.Works")
print("[       OK ] Suite.Works (0 ms)")
print("[ RUN      ] Suite.NeedsMore")
print("some/test.cpp:7: Skipped")
print(reason + "\\n")
print("[  SKIPPED ] Suite.NeedsMore (0 ms)")
case = lambda name, result: dict(name=name, status="RUN", result=result)
cases = [case("Works", "COMPLETED"), case("NeedsMore", "SKIPPED")]
if crashes:
    sys.exit("crash")
with open(report, "w") as out:
    json.dump(dict(testsuites=[dict(name="Suite", testsuite=cases)]), out)
"""


def run_tests(folder, reason, ci, crashes=False):
    program = folder / "bin" / "test_made"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable, reason=reason, crashes=crashes))
    program.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    environment |= {"CI": "1"} if ci else {}
    command = [sys.executable, ROOT / "tools/test.py", folder]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("reason", "ci", "last"),
    [
        (LISTED, True, "1 passed, 0 failed, 1 skipped"),
        (LISTED, False, "1 passed, 0 failed, 1 skipped"),
        (OTHER, False, "1 passed, 0 failed, 1 skipped"),
        (OTHER, True, "1 passed, 1 failed, 1 skipped"),
    ],
)
def test_a_skipped_test_is_named_and_counted_and_fails_ci_unless_its_reason_is_listed(
    tmp_path, reason, ci, last
):
    done = run_tests(tmp_path, reason, ci)
    assert done.stdout.splitlines()[-1] == last
    assert f"skipped: Suite.NeedsMore: {reason}" in done.stdout
    assert done.returncode == (" 1 failed" in last)
    assert ("tools/skips.py does not allow it" in done.stdout) == (" 1 failed" in last)


def test_a_skip_before_a_crash_has_its_reason(tmp_path):
    done = run_tests(tmp_path, OTHER, ci=False, crashes=True)
    assert f"skipped: Suite.NeedsMore: {OTHER}" in done.stdout and done.returncode == 1


PYTHON = """#!/bin/sh
case "$*" in
  *clang_format*) echo "$PWD/stub" ;;
  *skips.py*) exec {python} "$@" ;;
esac
"""


@pytest.fixture
def tree(tmp_path):
    """A repository with the tools, on a machine with neither clang-tidy nor a cross compiler."""
    for folder in ("tools", ".setup", "stub/data/bin", "path"):
        (tmp_path / folder).mkdir(parents=True)
    for tool in ("check", "skips.py"):
        shutil.copy(ROOT / "tools" / tool, tmp_path / "tools")
    for path, text in {
        ".setup/python": PYTHON.format(python=sys.executable),
        "stub/data/bin/clang-format": "#!/bin/sh\n",
        "path/uname": "#!/bin/sh\necho ${MACHINE:-x86_64}\n",
    }.items():
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    for name in "bash git grep sed tail head dirname xargs nproc cat sh".split():
        (tmp_path / "path" / name).symlink_to(shutil.which(name))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def check(tree, **settings):
    environment = {"PATH": str(tree / "path"), **settings}
    return subprocess.run(
        [tree / "path/bash", tree / "tools/check"], env=environment, capture_output=True, text=True
    )


def test_a_check_that_cannot_run_is_not_called_ok(tree):
    done = check(tree)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NEON compiles: ok" not in done.stdout and "clang-tidy: ok" not in done.stdout
    assert "NEON compiles: SKIPPED: the cross compiler" in done.stdout
    assert "4 ok, 0 failed, 2 skipped" in done.stdout


def test_a_check_that_cannot_run_fails_ci_unless_its_reason_is_listed(tree):
    done = check(tree, CI="1")
    assert done.returncode == 1
    assert "failed: NEON compiles (skipped)" in done.stdout
    arm = check(tree, CI="1", MACHINE="aarch64")
    assert "NEON compiles: SKIPPED: this machine is an ARM" in arm.stdout
    assert "failed: NEON" not in arm.stdout
