"""Integers that change from call to call: one compilation serves a decode loop, and one exported
program every offset."""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

ops = torch.ops.xsa
ANGLES = torch.outer(torch.arange(64.0), torch.tensor([1.0, 0.1, 0.01, 0.001]))


def attention(q, k, v, position):
    return ops.attention(q, k, v, is_causal=True, own_offset=position)[0]


def window(q, k, v, position):
    return ops.attention(q, k, v, is_causal=True, own_offset=40, window=position)[0]


def num_sink_keys(q, k, v, position):
    return ops.attention(q, k, v, own_offset=40, window=2, num_sink_keys=position)[0]


def exclude(q, k, v, position):
    return ops.exclude(q, v, own_offset=position)[0]


def rotary_embedding(q, k, v, position):
    return ops.rotary_embedding(q, ANGLES.cos(), ANGLES.sin(), offset=position)


CALLS = (attention, window, num_sink_keys, exclude, rotary_embedding)


def cache():
    return torch.randn(1, 2, 64, 8), torch.randn(1, 2, 64, 8)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_one_compilation_serves_a_loop_over_a_static_cache(path, call):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    step = torch.compile(call, backend=counter, fullgraph=True, dynamic=True)
    k, v = cache()
    for position in range(2, 24):
        q = torch.randn(1, 4, 1, 8)
        torch.testing.assert_close(step(q, k, v, position), call(q, k, v, position))
    assert counter.frame_count == 1


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_by_default_the_second_value_compiles_and_no_later_one(call):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    step = torch.compile(call, backend=counter, fullgraph=True)
    k, v = cache()
    for position in range(2, 24):
        step(torch.randn(1, 4, 1, 8), k, v, position)
    assert counter.frame_count == 2


def test_one_compilation_serves_a_growing_cache(path):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")

    def call(q, k, v):
        position = k.shape[2] - 1
        q = ops.rotary_embedding(q, ANGLES.cos(), ANGLES.sin(), offset=position)
        return ops.attention(q, k, v, is_causal=True)[0]

    step = torch.compile(call, backend=counter, fullgraph=True, dynamic=True)
    k, v = cache()
    for keys in range(5, 24):  # by no other size, which PyTorch would take for the same
        given = torch.randn(1, 4, 1, 8), k[:, :, :keys].clone(), v[:, :, :keys].clone()
        torch.testing.assert_close(step(*given), call(*given))
    assert counter.frame_count == 1


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_one_compilation_serves_every_value_in_training(call):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    step = torch.compile(call, backend=counter, fullgraph=True, dynamic=True)
    k, v = (x.requires_grad_() for x in cache())
    for position in range(2, 14):
        q = torch.randn(1, 4, 3, 8, requires_grad=True)
        actual, expected = (
            torch.autograd.grad(f(q, k, v, position).square().sum(), (q, k, v), allow_unused=True)
            for f in (step, call)
        )
        torch.testing.assert_close(actual, expected)
    assert counter.frame_count == 1


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_a_dynamic_value_is_exported(call):
    class Model(torch.nn.Module):
        def forward(self, q, k, v, position):
            return call(q, k, v, position)

    q = torch.randn(1, 4, 3, 8)
    k, v = cache()
    shapes = (None, None, None, torch.export.Dim.DYNAMIC)
    program = torch.export.export(Model(), (q, k, v, 5), dynamic_shapes=shapes)
    for position in (1, 2, 17, 61):
        torch.testing.assert_close(
            program.module()(q, k, v, position), call(q, k, v, position)
        )


def test_a_value_that_only_a_tensor_knows_is_traced():
    """An unbacked integer: nothing is known of it before the call."""

    def call(q, k, v, position):
        return attention(q, k, v, position.item())

    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        step = torch.compile(call, backend="aot_eager", fullgraph=True)
        k, v = cache()
        q = torch.randn(1, 4, 3, 8)
        for position in (0, 1, 7, 61):
            given = torch.tensor(position)
            torch.testing.assert_close(step(q, k, v, given), call(q, k, v, given))
        with pytest.raises(RuntimeError):
            step(q, k, v, torch.tensor(62))


def test_a_compiled_call_refuses_what_the_eager_one_refuses():
    torch._dynamo.reset()
    step = torch.compile(attention, backend="aot_eager", fullgraph=True, dynamic=True)
    k, v = cache()
    q = torch.randn(1, 4, 3, 8)
    step(q, k, v, 5)
    for call in (step, attention):
        with pytest.raises(Exception, match=r"own_offset: expected own_offset \+ T <= S = "):
            call(q, k, v, 62)
