"""The operators of libxsa_op.so, and what PyTorch's tools need to know of them.

    import xsa
    z, lse, c = torch.ops.xsa.attention(q, k, v, is_causal=True)

Importing loads the library, XSA_OP_LIBRARY or build/lib/libxsa_op.so of this checkout, unless the
process has it already. It also teaches FLOP counters what the attention costs, and DTensors how the
operators are cut. Without either, `torch.ops.load_library` is enough.
"""

import os
import pathlib

import torch


def _load():
    if hasattr(torch.ops.xsa, "attention"):
        return
    checkout = pathlib.Path(__file__).resolve().parents[2]
    library = pathlib.Path(os.environ.get("XSA_OP_LIBRARY", checkout / "build/lib/libxsa_op.so"))
    if not library.exists():
        raise ImportError(
            f"xsa: {library} does not exist: run `make build` in {checkout}, or set XSA_OP_LIBRARY "
            "to a built libxsa_op.so"
        )
    torch.ops.load_library(str(library.resolve()))


_load()

from . import flops  # noqa: E402, F401

if torch.distributed.is_available():
    from . import sharding  # noqa: F401
