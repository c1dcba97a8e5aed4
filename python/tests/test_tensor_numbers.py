"""A tensor where a number is expected: its gradient is never lost in silence."""

import pytest
import torch

ops = torch.ops.xsa
q, k, v = (torch.randn(2, heads, 7, 8) for heads in (4, 2, 2))
WANTED = "strength: expected a number, got a tensor that requires a gradient, .* learned_strength"
CALLS = {
    "attention": lambda strength: ops.attention(q, k, v, is_causal=True, strength=strength)[0],
    "exclude": lambda strength: ops.exclude(q, v, strength=strength)[0],
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
LEARNED = {
    "scalar": torch.tensor(0.5, requires_grad=True),
    "parameter": torch.nn.Parameter(torch.tensor([0.5])),
    "computed": torch.tensor(0.5, requires_grad=True).sigmoid(),
    "[H]": torch.ones(4, requires_grad=True),
}
learned = pytest.mark.parametrize("strength", LEARNED.values(), ids=LEARNED.keys())


@calls
@learned
def test_a_strength_whose_gradient_would_be_lost_is_refused(call, strength):
    with pytest.raises(ValueError, match=WANTED):
        call(strength)
    with torch.no_grad(), pytest.raises(ValueError, match=WANTED):
        call(strength)


@calls
def test_it_is_refused_while_a_graph_is_traced(call):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.strength = torch.nn.Parameter(torch.tensor(0.5))

        def forward(self):
            return call(self.strength)

    torch._dynamo.reset()
    with pytest.raises(Exception, match=WANTED):
        torch.compile(Model(), backend="aot_eager", fullgraph=True)()
    with pytest.raises(Exception, match=WANTED):
        torch.export.export(Model(), ())


@calls
def test_it_is_refused_by_func_grad(call):
    with pytest.raises(ValueError, match=WANTED):
        torch.func.grad(lambda strength: call(strength).sum())(torch.tensor(0.5))


def test_a_scale_whose_gradient_would_be_lost_is_refused():
    scale = torch.nn.Parameter(torch.tensor(0.3))
    with pytest.raises(ValueError, match="scale: .* requires a gradient, .* multiply q by it"):
        ops.attention(q, k, v, scale=scale)


@calls
def test_a_strength_without_a_gradient_is_a_number(path, call):
    torch.testing.assert_close(call(torch.tensor(0.5)), call(0.5))
    torch.testing.assert_close(call(torch.tensor(0.5).bfloat16()), call(0.5))
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    for strength in (0.5, 0.25, 0.0):
        torch.testing.assert_close(compiled(torch.tensor(strength)), call(strength))


def test_a_scale_without_a_gradient_is_a_number(path):
    expected = ops.attention(q, k, v, scale=0.25)[0]
    assert torch.equal(ops.attention(q, k, v, scale=torch.tensor(0.25))[0], expected)


@pytest.mark.parametrize("number", [1, True, 0.5, -2.5])
def test_numbers_of_every_kind_pass(number):
    assert torch.equal(CALLS["attention"](number), CALLS["attention"](float(number)))
