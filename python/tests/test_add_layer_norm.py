"""Residual sum and LayerNorm as PyTorch's machinery sees them; values are tests/op's work."""

import pytest
import torch
from torch.library import opcheck

add_layer_norm = torch.ops.xsa.add_layer_norm


def inputs(dtype=torch.float32, tokens=5):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        values = torch.randn(*shape, generator=generator, dtype=torch.float64)
        return values.to(dtype).requires_grad_()

    return normal(2, tokens, 6), normal(2, tokens, 6), normal(6), normal(6)


@pytest.mark.parametrize("with_bias", [False, True])
def test_opcheck_passes(path, with_bias):
    given = inputs()[: 4 if with_bias else 3]
    assert set(opcheck(add_layer_norm.default, given).values()) == {"SUCCESS"}


@pytest.mark.parametrize("with_dsum", [False, True])
def test_opcheck_passes_for_the_backward(path, with_dsum):
    x, residual, weight, bias = (tensor.detach() for tensor in inputs())
    y, total, mean, rstd = add_layer_norm(x, residual, weight, bias)
    dsum = torch.ones_like(x) if with_dsum else None
    backward = torch.ops.xsa.add_layer_norm_backward.default
    opcheck(backward, (torch.ones_like(y), dsum, total, mean, rstd, weight))


def test_gradients_are_finite_differences():
    given = inputs(torch.float64, tokens=2)
    assert torch.autograd.gradcheck(lambda *given: add_layer_norm(*given)[:2], given)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_without_a_graph_break(path, dynamic):
    torch._dynamo.reset()

    def loss(*given):
        y, total, _, _ = add_layer_norm(*given)
        return (y.square().cumsum(1) + total).sum()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for tokens in (5, 8):
        given = inputs(tokens=tokens)
        actual = torch.autograd.grad(compiled(*given), given)
        torch.testing.assert_close(actual, torch.autograd.grad(loss(*given), given))
