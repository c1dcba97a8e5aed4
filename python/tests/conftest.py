"""Loads the operator's library: XSA_OP_LIBRARY, or build/lib/libxsa_op.so of this repository."""

import os
import pathlib
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("XSA_OP_LIBRARY", ROOT / "build/lib/libxsa_op.so")).resolve()


def pytest_configure():
    if not LIBRARY.exists():
        pytest.exit(f"{LIBRARY} does not exist: run `make build`, or set XSA_OP_LIBRARY", 2)
    torch.ops.load_library(str(LIBRARY))
    sys.path.insert(0, str(ROOT / "python"))


@pytest.fixture
def library():
    return LIBRARY


@pytest.fixture(params=["composite", "auto"])
def path(request):
    """Every path that computes the operator; auto is the fused kernel where it takes the call."""
    torch.ops.xsa.set_backend(request.param)
    yield request.param
    torch.ops.xsa.set_backend("auto")
