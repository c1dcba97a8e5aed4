"""XSA_ISA: a process of its own for each value, since it is read once."""

import os
import subprocess
import sys

PROGRAM = """
import sys, torch
torch.ops.load_library(sys.argv[1])
q = torch.ones(1, 2, 20, 8, requires_grad=True)
z, _, _ = torch.ops.xsa.attention(q, q, q, is_causal=True, window=5)
z.sum().backward()
print("finite" if q.grad.isfinite().all() else "not finite")
"""


def run(library, name):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, library],
        env={**os.environ, "XSA_ISA": name},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_an_unknown_name_is_an_error_that_lists_the_known_ones(library):
    result = run(library, "MMX")
    assert result.returncode == 1  # Python's own, for an exception: no abort
    last = result.stderr.strip().splitlines()[-1]
    assert "XSA_ISA: expected one of this machine's instruction sets (" in last
    assert "got 'MMX'" in last


def known_names(library):
    listed = run(library, "MMX").stderr.rpartition("instruction sets (")[2]
    return listed.partition(")")[0].split(", ")


def test_every_known_name_runs(library):
    names = known_names(library)
    assert names[-1] in ("SCALAR", "BASELINE")
    for name in ["", *names]:
        result = run(library, name)
        assert (result.returncode, result.stdout) == (0, "finite\n"), (name, result.stderr)
