"""Rotary positions as PyTorch's machinery sees them; values and errors are tests/op's work."""

import pytest
import torch
from torch.library import opcheck

rotary = torch.ops.xsa.rotary_embedding


def inputs(dtype=torch.float32, tokens=7):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, tokens, 10, generator=generator, dtype=torch.float64)
    angle = torch.randn(12, 5, generator=generator)
    return x.to(dtype).requires_grad_(), angle.cos(), angle.sin()


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("heads_in_tokens", [False, True])
def test_opcheck_passes(path, inverse, heads_in_tokens):
    x, cos, sin = inputs()
    if heads_in_tokens:
        x = x.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
    results = opcheck(rotary.default, (x, cos, sin), dict(offset=2, inverse=inverse))
    assert set(results.values()) == {"SUCCESS"}


def test_first_and_second_derivatives_are_finite_differences():
    x, cos, sin = inputs(torch.float64, tokens=2)
    turn = lambda x: rotary(x, cos, sin, offset=1)  # noqa: E731
    assert torch.autograd.gradcheck(turn, x)
    assert torch.autograd.gradgradcheck(turn, x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_without_a_graph_break(path, dynamic):
    torch._dynamo.reset()
    loss = lambda *given: rotary(*given).square().cumsum(2).sum()  # noqa: E731
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for tokens in (7, 9):
        x, cos, sin = inputs(tokens=tokens)
        actual = torch.autograd.grad(compiled(x, cos, sin), x)
        torch.testing.assert_close(actual, torch.autograd.grad(loss(x, cos, sin), x))


def test_func_grad_works_and_forward_mode_is_refused():
    x, cos, sin = inputs()
    x = x.detach()
    gradient = torch.func.grad(lambda x: rotary(x, cos, sin).sum())(x)
    torch.testing.assert_close(gradient, rotary(torch.ones_like(x), cos, sin, inverse=True))
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(lambda x: rotary(x, cos, sin), (x,), (x,))
