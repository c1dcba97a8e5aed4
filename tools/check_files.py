#!/usr/bin/env python3
"""Checks what no formatter does: files fit a sitting, nothing left for later, no machine's paths.

  tools/check_files.py [ROOT]

A file that must be longer is named in docs/decisions/long-files.md, as `path` with the reason.
Standard library only.
"""

import pathlib
import re
import subprocess
import sys

LINE_LIMITS = {
    "xsa/kernels/": 600,
    "tests/": 600,
    "xsa/": 400,
    "tools/": 400,
    "bench/": 400,
    "python/": 400,
}
COLUMNS = 100
CODE = (".h", ".cpp", ".cu", ".cuh", ".py")
LATER = re.compile(r"\b(TODO|FIXME|XXX)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(tmp|home|root|work)/\w")
EXCEPTIONS = "docs/decisions/long-files.md"


def line_limit(path):
    return next((limit for start, limit in LINE_LIMITS.items() if path.startswith(start)), None)


def faults_of(path, text, exceptions):
    """Yields (line number, complaint) of one file."""
    lines = text.splitlines()
    limit = line_limit(path)
    if limit and path.endswith(CODE) and len(lines) > limit and path not in exceptions:
        remedy = f"split it by role, or say why not in {EXCEPTIONS}"
        yield len(lines), f"{len(lines)} lines, more than {limit}: {remedy}"
    if pathlib.PurePath(path).stem == "placeholder":
        yield 1, "a placeholder: write the real file and delete this one"
    for number, line in enumerate(lines, 1):
        if path.endswith(".py") and len(line) > COLUMNS:
            yield number, f"{len(line)} columns, more than {COLUMNS}"
        if LATER.search(line) and not path.endswith("check_files.py"):
            yield number, f"'{LATER.search(line).group()}': do it now, or take it out"
        if path.endswith(CODE) and MACHINE_PATH.search(line) and "tests/" not in path:
            yield number, "a path of some machine; make it relative, or a setting"


def files(root):
    """Tracked and new files; every file outside a git checkout."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        return sorted(name for name in listed.stdout.splitlines() if (root / name).is_file())
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def main(arguments):
    root = pathlib.Path(
        arguments[0] if arguments else pathlib.Path(__file__).parent.parent
    ).resolve()
    exceptions_file = root / EXCEPTIONS
    exceptions = set()
    if exceptions_file.exists():
        exceptions = set(re.findall(r"`([^`]+)`", exceptions_file.read_text()))
    count = faults = 0
    for path in files(root):
        if not path.startswith((*LINE_LIMITS, "cmake/")):
            continue
        count += 1
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # data
        for number, complaint in faults_of(path, text, exceptions):
            faults += 1
            print(f"{path}:{number}: {complaint}")
    print(f"{count} files: {faults or 'no'} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
