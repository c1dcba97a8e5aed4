"""Calls with DTensors, each run by both of two processes and held to the call with plain tensors.

test_sharding.py starts the processes and reports what came of each case.
"""

import json
import os
import traceback

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(sum(shape) + seed)
    return torch.randn(shape, generator=generator)


def expect_equal(mesh, call, tensors, placements, expected_placements=None):
    """`tensors` by name; call(**tensors) returns the outputs that are differentiated."""
    plain = {name: x.clone().requires_grad_(x.is_floating_point()) for name, x in tensors.items()}
    sharded = {
        name: distribute_tensor(x, mesh, placements.get(name, [Replicate()] * mesh.ndim))
        for name, x in tensors.items()
    }
    for x in sharded.values():
        x.requires_grad_(x.is_floating_point())
    expected, actual = call(**plain), call(**sharded)
    weights = [normal(*x.shape, seed=9) for x in expected]
    leaves = [name for name, x in plain.items() if x.requires_grad]
    gradients = torch.autograd.grad(
        sum((x * w).sum() for x, w in zip(expected, weights)),
        [plain[n] for n in leaves],
        allow_unused=True,
    )
    whole = [distribute_tensor(w, mesh, x.placements) for x, w in zip(actual, weights)]
    sharded_gradients = torch.autograd.grad(
        sum((x * w).sum() for x, w in zip(actual, whole)),
        [sharded[n] for n in leaves],
        allow_unused=True,
    )
    for a, e in zip((*actual, *sharded_gradients), (*expected, *gradients), strict=True):
        assert (a is None) == (e is None)
        if e is not None:
            assert isinstance(a, DTensor) and a.stride() == e.stride()
            torch.testing.assert_close(a.full_tensor(), e, rtol=1e-5, atol=1e-5)
    if expected_placements is not None:
        assert tuple(actual[0].placements) == tuple(expected_placements), actual[0].placements


def attention_inputs(batch=2, heads=4, key_heads=2, queries=5, keys=7):
    return dict(
        q=normal(batch, heads, queries, 8),
        k=normal(batch, key_heads, keys, 8, seed=1),
        v=normal(batch, key_heads, keys, 6, seed=2),
    )


def attention(q, k, v, **options):
    return torch.ops.xsa.attention(q, k, v, is_causal=True, **options)[:2]


def qkv(placement):
    return dict.fromkeys("qkv", [placement])


@case
def replicated(mesh):
    expect_equal(mesh, attention, attention_inputs(), {}, [Replicate()])


@case
def over_batch(mesh):
    expect_equal(mesh, attention, attention_inputs(), qkv(Shard(0)), [Shard(0)])


@case
def over_a_batch_that_does_not_divide(mesh):
    expect_equal(mesh, attention, attention_inputs(batch=3), qkv(Shard(0)), [Shard(0)])
    expect_equal(mesh, attention, attention_inputs(batch=1), qkv(Shard(0)), [Shard(0)])


@case
def over_heads(mesh):
    expect_equal(mesh, attention, attention_inputs(), qkv(Shard(1)), [Shard(1)])
    plain = attention_inputs(key_heads=4)
    expect_equal(mesh, attention, plain, qkv(Shard(1)), [Shard(1)])


@case
def over_heads_that_do_not_divide(mesh):
    for heads, key_heads in ((4, 1), (3, 3), (6, 3)):
        given = attention_inputs(heads=heads, key_heads=key_heads)
        expect_equal(mesh, attention, given, qkv(Shard(1)), [Replicate()])


@case
def over_tokens_and_channels(mesh):
    for dim in (2, 3):
        expect_equal(mesh, attention, attention_inputs(), qkv(Shard(dim)), [Replicate()])


@case
def one_input_sharded_and_the_others_not(mesh):
    for name in "qkv":
        for dim in range(4):
            wanted = [Shard(dim)] if dim < 2 else [Replicate()]
            expect_equal(mesh, attention, attention_inputs(), {name: [Shard(dim)]}, wanted)


@case
def learned_options_replicated_or_sharded(mesh):
    given = attention_inputs() | dict(sink_logits=normal(4), key_end=torch.tensor([7, 6]))
    for strength in (normal(), normal(4), normal(2, 4, 5)):
        given["learned_strength"] = strength
        for dim in (0, 1):
            expect_equal(mesh, attention, given, qkv(Shard(dim)), [Shard(dim)])
    options = dict(sink_logits=[Shard(0)], learned_strength=[Shard(0)], key_end=[Shard(0)])
    given["learned_strength"] = normal(4)
    for dim in range(3):
        expect_equal(mesh, attention, given, options | qkv(Shard(dim)))
    expect_equal(mesh, attention, given, options, [Shard(1)])


@case
def the_options_of_one_call_do_not_decide_another(mesh):
    """DTensor caches decisions by an operator's positional arguments."""
    given = attention_inputs()
    for more in ({}, dict(learned_strength=normal(4)), {}, dict(sink_logits=normal(4))):
        for dim in (1, 0, 1):
            expect_equal(mesh, attention, given | more, qkv(Shard(dim)), [Shard(dim)])


@case
def packed_documents(mesh):
    cu_seqlens = torch.tensor([0, 2, 5], dtype=torch.int32)
    given = attention_inputs(batch=1, keys=5) | dict(cu_seqlens=cu_seqlens)
    expect_equal(mesh, attention, given, qkv(Shard(1)), [Shard(1)])
    expect_equal(mesh, attention, given, qkv(Shard(0)), [Replicate()])


@case
def lse_alone(mesh):
    def call(q, k, v):
        return attention(q, k, v)[1:]

    expect_equal(mesh, call, attention_inputs(), qkv(Shard(1)), [Shard(1)])


@case
def heads_within_tokens(mesh):
    inputs = attention_inputs()
    given = {n: x.transpose(1, 2).contiguous().transpose(1, 2) for n, x in inputs.items()}
    expect_equal(mesh, attention, given, qkv(Shard(1)), [Shard(1)])


@case
def exclude(mesh):
    given = dict(
        y=normal(2, 4, 5, 6), v=normal(2, 2, 7, 6, seed=1), learned_strength=normal(4, seed=2)
    )

    def call(y, v, learned_strength):
        return torch.ops.xsa.exclude(y, v, learned_strength=learned_strength)[:1]

    for dim in range(4):
        wanted = [Shard(dim)] if dim < 2 else [Replicate()]
        expect_equal(mesh, call, given, dict.fromkeys("yv", [Shard(dim)]), wanted)


@case
def add_layer_norm(mesh):
    given = dict(
        x=normal(2, 4, 6),
        residual=normal(2, 4, 6, seed=1),
        weight=normal(6),
        bias=normal(6, seed=1),
    )

    def call(x, residual, weight, bias):
        return torch.ops.xsa.add_layer_norm(x, residual, weight, bias)[:2]

    for dim in range(3):
        wanted = [Shard(dim)] if dim < 2 else [Replicate()]
        expect_equal(mesh, call, given, dict.fromkeys(("x", "residual"), [Shard(dim)]), wanted)
    expect_equal(mesh, call, given, dict(weight=[Shard(0)], residual=[Shard(1)]), [Shard(1)])


@case
def rotary_embedding(mesh):
    given = dict(x=normal(2, 4, 5, 8))
    angle = normal(9, 4)

    def call(x):
        tables = angle.cos(), angle.sin()
        if isinstance(x, DTensor):
            tables = [distribute_tensor(t, mesh, [Replicate()] * mesh.ndim) for t in tables]
        return (torch.ops.xsa.rotary_embedding(x, *tables, offset=3),)

    for dim in range(4):
        wanted = [Shard(dim)] if dim < 2 else [Replicate()]
        expect_equal(mesh, call, given, dict(x=[Shard(dim)]), wanted)


@case
def a_mesh_of_two_dimensions(_):
    mesh = init_device_mesh("cpu", (1, 2))
    both = dict.fromkeys("qkv", [Shard(0), Shard(1)])
    expect_equal(mesh, attention, attention_inputs(), both, [Shard(0), Shard(1)])
    heads = dict.fromkeys("qkv", [Shard(1), Shard(1)])
    expect_equal(mesh, attention, attention_inputs(), heads, [Shard(1), Shard(1)])


@case
def a_plain_tensor_among_dtensors_is_refused(mesh):
    q, k, v = (
        distribute_tensor(x, mesh, [Shard(1)]) for x in attention_inputs().values()
    )
    try:
        torch.ops.xsa.attention(q, k, v, learned_strength=torch.ones(4))
    except ValueError as error:
        assert "xsa::attention: learned_strength: expected a DTensor" in str(error), error
    else:
        raise AssertionError("no error")


@case
def wrong_shapes_are_refused_by_the_operator(mesh):
    given = attention_inputs(queries=8, keys=7)
    q, k, v = (distribute_tensor(x, mesh, [Shard(0)]) for x in given.values())
    try:
        torch.ops.xsa.attention(q, k, v)
    except ValueError as error:
        assert "k: expected S >= T = 8, got S = 7" in str(error), error
    else:
        raise AssertionError("no error")


@case
def compiled(mesh):
    def call(q, k, v):
        z, lse = attention(q, k, v)
        return z * 2, lse

    fast = torch.compile(call, backend="aot_eager", fullgraph=True)
    expect_equal(mesh, fast, attention_inputs(), qkv(Shard(1)), [Shard(1)])


def run(rank, folder, python_path):
    import sys

    sys.path.insert(0, python_path)
    import xsa  # noqa: F401

    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    outcome = {}
    for name, function in CASES.items():
        try:
            function(mesh)
            outcome[name] = ""
        except Exception:  # noqa: BLE001
            outcome[name] = traceback.format_exc()
    with open(f"{folder}/{rank}.json", "w", encoding="utf-8") as file:
        json.dump(outcome, file)
    dist.destroy_process_group()
