"""Why a check or a test may be left out. With CI set in the environment (.ci/run sets it) any other
reason is a failure: what was meant to run did not.

  tools/skips.py REASON    exit code 0 if REASON may be given, else 1
"""

import fnmatch
import os
import sys

ALLOWED = (
    "this machine has no AVX-512",
    "this machine is no x86-64 processor",
    "this machine is an ARM processor itself: its kernels are tested by make test",
    "this system offers no huge pages",
    "the system allows * files",
    "no * GiB of address space",
)


def is_allowed(reason):
    return any(fnmatch.fnmatchcase(reason, pattern) for pattern in ALLOWED)


def is_failure(reason):
    """Is a skip with this reason a failure where this runs?"""
    return bool(os.environ.get("CI")) and not is_allowed(reason)


if __name__ == "__main__":
    sys.exit(not is_allowed(sys.argv[1]))
