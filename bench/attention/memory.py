#!/usr/bin/env python3
"""Peak memory of one forward + backward, each in a process of its own; attention_bench.py runs it.

  bench/attention/memory.py LIBRARY THREADS [--quick]

Writes a JSON list. Inputs and everything loaded are there before the count begins: the peak is what
the call adds to the resident memory, z and the gradients included.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import torch

from attention.cases import Case, memory_cases
from attention.variants import Call

VARIANTS = ("sdpa", "sdpa_xsa", "ours_xsa")


def resident_kib(field):
    """VmRSS (now) or VmHWM (the peak) of this process."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise OSError(f"/proc/self/status has no {field}")


def saved_bytes(call, name):
    """What the graph keeps for backward, each storage counted once."""
    storages = {}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        call.variants[name](call.q, call.k, call.v)
    return sum(storages.values())


def measure(case, name):
    """In the child: {peak_bytes, saved_bytes}."""
    Call(Case("j", 16, dtype=case.dtype)).forward_backward(name)  # starts threads, loads code
    call = Call(case)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident_kib("VmRSS")
    gradients = call.forward_backward(name)
    peak = 1024 * (resident_kib("VmHWM") - before)
    del gradients
    return {"peak_bytes": peak, "saved_bytes": saved_bytes(call, name)}


def in_child(function):
    """Its result, from a forked process. The parent must not have started threads."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(function()).encode())
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    os.close(writer)
    with open(reader, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise SystemExit("memory: a child process failed; its error is above")
    return json.loads(text)


def expected_saved_bytes(case):
    """q, k, v, z; lse and c in float32."""
    rows = case.batch * case.heads * case.tokens
    return 4 * rows * case.head_dim * getattr(torch, case.dtype).itemsize + 2 * 4 * rows


def main(library, threads, *flags):
    torch.set_num_threads(int(threads))
    torch.ops.load_library(library)
    results = []
    for case in memory_cases():
        if "--quick" in flags and not case.quick:
            continue
        found = {name: in_child(lambda: measure(case, name)) for name in VARIANTS}
        saved = found["ours_xsa"]["saved_bytes"]
        if saved != expected_saved_bytes(case):
            raise SystemExit(
                f"memory: {case.label}: ours keeps {saved} bytes for backward, expected "
                f"{expected_saved_bytes(case)}: q, k, v, z, lse and c"
            )
        results.append({"case": case.label, "variants": found})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
