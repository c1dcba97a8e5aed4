"""DTensors: results and gradients of two processes equal those of one."""

import json
import pathlib

import pytest
import torch
from sharded_cases import CASES, run

pytestmark = pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
    reason="this torch has no gloo",
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sharding")
    package = pathlib.Path(__file__).resolve().parents[1]  # python/, where xsa is
    torch.multiprocessing.spawn(run, (str(folder), str(package)), nprocs=2)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("name", CASES)
def test_two_processes_equal_one(outcomes, name):
    assert [outcome[name] for outcome in outcomes] == ["", ""]
