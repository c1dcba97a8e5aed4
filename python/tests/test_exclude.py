"""xsa.exclude as PyTorch's machinery sees it: opcheck, torch.func, compile, export, autocast.

Values and errors are tests/op's work (C++).
"""

import pytest
import torch
from torch.library import opcheck

exclude = torch.ops.xsa.exclude


def inputs(dtype=torch.float32, batch=2, heads=4, value_heads=2, queries=7, keys=9, dim=5):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return (
            torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        )

    return normal(batch, heads, queries, dim), normal(batch, value_heads, keys, dim)


def eager(y, v, strength=1.0):
    """The paper's two lines."""
    w = v.repeat_interleave(y.shape[1] // v.shape[1], 1)[:, :, v.shape[2] - y.shape[2] :]
    unit = torch.nn.functional.normalize(w, dim=-1)
    return y - strength * (y * unit).sum(-1, keepdim=True) * unit


OPTIONS = {
    "none": {},
    "strength, own_offset": dict(strength=0.5, own_offset=1),
    "learned scalar": dict(learned_strength=torch.tensor(0.5, requires_grad=True)),
    "learned [B, H, T]": dict(learned_strength=torch.full((2, 4, 7), 0.5, requires_grad=True)),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("heads_in_tokens", [False, True])
def test_opcheck_passes(path, options, heads_in_tokens):
    y, v = inputs()
    if heads_in_tokens:
        y, v = (
            x.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in (y, v)
        )
    assert set(opcheck(exclude.default, (y, v), options).values()) == {"SUCCESS"}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_opcheck_passes_for_the_backward(path, options):
    options = {
        name: x.detach() if isinstance(x, torch.Tensor) else x for name, x in options.items()
    }
    y, v = (x.detach() for x in inputs())
    z, c = exclude(y, v, **options)
    opcheck(torch.ops.xsa.exclude_backward.default, (torch.ones_like(z), v, z, c), options)


def test_gradients_are_finite_differences():
    y, v = inputs(torch.float64, queries=4, keys=5, dim=3)
    strength = torch.tensor([0.5, 1.0, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda y, v, a: exclude(y, v, learned_strength=a)[0], (y, v, strength)
    )


def loss(compute):
    return lambda y, v: compute(y, v).square().sum()


def ours(y, v):
    return exclude(y, v)[0]


def test_func_grad_and_vjp_equal_eager(path):
    y, v = (x.detach() for x in inputs())
    actual = torch.func.grad(loss(ours), argnums=(0, 1))(y, v)
    expected = torch.func.grad(loss(eager), argnums=(0, 1))(y, v)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    z, pull = torch.func.vjp(ours, y, v)
    torch.testing.assert_close(
        pull(z), torch.func.vjp(eager, y, v)[1](z), rtol=1e-4, atol=1e-5
    )


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_grad_of_each_sample_equals_one_by_one(path):
    y, v = (torch.stack([x.detach(), 2 * x.detach(), -x.detach()]) for x in inputs())
    grads = torch.func.vmap(torch.func.grad(loss(ours), argnums=(0, 1)))(y, v)
    for n in range(3):
        one = torch.func.grad(loss(ours), argnums=(0, 1))(y[n], v[n])
        torch.testing.assert_close([g[n] for g in grads], list(one), rtol=1e-4, atol=1e-5)


def test_forward_mode_and_a_second_derivative_are_refused():
    y, v = (x.detach() for x in inputs())
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(lambda y: ours(y, v), (y,), (y,))

    def gradient_norm(y):
        return torch.func.grad(lambda y: loss(ours)(y, v))(y).square().sum()

    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.func.grad(gradient_norm)(y)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_without_a_graph_break(path, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(loss(ours), backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for queries, keys in ((7, 9), (5, 11)):
        y, v = inputs(queries=queries, keys=keys)
        actual = torch.autograd.grad(compiled(y, v), (y, v))
        torch.testing.assert_close(actual, torch.autograd.grad(loss(ours)(y, v), (y, v)))


def test_exports():
    class Model(torch.nn.Module):
        def forward(self, y, v):
            return ours(y, v)

    y, v = (x.detach() for x in inputs())
    program = torch.export.export(Model(), (y, v))
    assert any(node.target is exclude.default for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(y, v), ours(y, v))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_z_has_the_type_of_y_and_c_that_of_the_sums(path, dtype):
    z, c = exclude(*inputs(dtype))
    assert (z.dtype, c.dtype) == (dtype, torch.float64 if dtype == torch.float64 else torch.float32)


def test_autocast_lowers_y_and_v_and_keeps_the_sums(path):
    y, v = inputs()
    with torch.autocast("cpu", torch.bfloat16):
        z, c = exclude(y, v.to(torch.bfloat16))
        z.float().sum().backward()
    assert (z.dtype, c.dtype, y.grad.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    assert torch.equal(z, exclude(*(x.detach().to(torch.bfloat16) for x in (y, v)))[0])


def test_saves_v_z_and_c_and_not_y(path):
    y, v = inputs()
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x) or x, lambda x: x):
        z, c = exclude(y, v)
    assert sorted(x.data_ptr() for x in saved) == sorted(x.data_ptr() for x in (v, z, c))


def test_after_sdpa_it_is_exclusive_attention():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 4, 16, 32, generator=generator) for _ in range(3))
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    z, c = exclude(y, v)
    expected, _, expected_c = torch.ops.xsa.attention(q, k, v, is_causal=True)
    torch.testing.assert_close(z, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(c, expected_c, rtol=1e-4, atol=1e-5)


def test_errors_are_value_errors_with_a_remedy():
    y, v = inputs()
    with pytest.raises(ValueError, match=r"v: expected S >= T = 7, got S = 3; .* append them"):
        exclude(y, v[:, :, :3])
