"""Compiled autograd over an eager forward: the gradients of eager autograd, compiled once."""

import pytest
import torch
from torch._dynamo import compiled_autograd
from torch._dynamo.testing import CompileCounterWithBackend

ops = torch.ops.xsa


def normal(*shape):
    return torch.randn(*shape).requires_grad_()


def attention(own_offset):
    q, k, v, strength = normal(2, 4, 7, 8), normal(2, 2, 12, 8), normal(2, 2, 12, 5), normal(4)
    sinks = normal(4)
    z, lse, _ = ops.attention(
        q,
        k,
        v,
        is_causal=True,
        learned_strength=strength,
        sink_logits=sinks,
        window=5,
        key_start=torch.tensor([0, 1]),
        own_offset=own_offset,
    )
    return z.square().sum() + lse.sum(), (q, k, v, strength, sinks)


def lse_alone(own_offset):
    q, k, v = normal(2, 4, 7, 8), normal(2, 2, 12, 8), normal(2, 2, 12, 5)
    return ops.attention(q, k, v, own_offset=own_offset)[1].sum(), (q, k)


def exclude(own_offset):
    y, v = normal(2, 4, 7, 8), normal(2, 2, 12, 8)
    return ops.exclude(y, v, strength=0.5, own_offset=own_offset)[0].square().sum(), (y, v)


def rotary_embedding(offset):
    x, angle = normal(2, 4, 7, 8), torch.randn(12, 4)
    return (ops.rotary_embedding(x, angle.cos(), angle.sin(), offset=offset).cumsum(2).sum()), (x,)


def add_layer_norm(_):
    given = normal(2, 7, 8), normal(2, 7, 8), normal(8), normal(8)
    y, total, _, _ = ops.add_layer_norm(*given)
    return (y.square() * total).sum(), given


LOSSES = attention, lse_alone, exclude, rotary_embedding, add_layer_norm


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_gradients_equal_eager_ones_and_one_compilation_serves_every_offset(path, loss):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    for offset in (2, 3, 5):
        torch.manual_seed(offset)
        value, leaves = loss(offset)
        expected = torch.autograd.grad(value, leaves, retain_graph=True)
        compiler = torch.compile(backend=counter, fullgraph=True, dynamic=True)
        with compiled_autograd._enable(compiler):
            value.backward()
        torch.testing.assert_close([leaf.grad for leaf in leaves], list(expected))
    assert counter.frame_count == 1


def test_a_plain_number_is_a_part_of_the_key():
    torch._dynamo.reset()
    y, v = normal(2, 4, 7, 8), normal(2, 2, 12, 8)
    for strength in (0.5, 1.0, 0.0):
        z = ops.exclude(y, v, strength=strength)[0].square().sum()
        expected = torch.autograd.grad(z, (y, v), retain_graph=True)
        y.grad = v.grad = None
        with compiled_autograd._enable(torch.compile(backend="aot_eager", dynamic=True)):
            z.backward()
        torch.testing.assert_close([y.grad, v.grad], list(expected))
