"""Under autocast float32 and the region's type stand side by side, in every operator."""

import itertools

import pytest
import torch

ops = torch.ops.xsa
TYPES = (torch.float32, torch.bfloat16)
pairs = pytest.mark.parametrize("types", list(itertools.product(TYPES, TYPES)), ids=str)


def leaf(dtype, *shape):
    return torch.randn(*shape, dtype=torch.float64).to(dtype).requires_grad_()


def backward_in_own_types(result, *leaves):
    result.float().square().sum().backward()
    assert [x.grad.dtype for x in leaves] == [x.dtype for x in leaves]


@pairs
def test_attention_lowers_q_k_and_v(path, types):
    q, k, v = (leaf(dtype, 2, 4, 7, 8) for dtype in (*types, torch.float32))
    strength = torch.ones(4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        z, lse, c = ops.attention(q, k, v, learned_strength=strength)
    assert (z.dtype, lse.dtype, c.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    backward_in_own_types(z, q, k, v, strength)


@pairs
def test_exclude_lowers_y_and_v(path, types):
    y, v = (leaf(dtype, 2, 4, 7, 8) for dtype in types)
    with torch.autocast("cpu", torch.bfloat16):
        z, c = ops.exclude(y, v)
    assert (z.dtype, c.dtype) == (torch.bfloat16, torch.float32)
    backward_in_own_types(z, y, v)


@pairs
@pytest.mark.parametrize("bias_type", [None, *TYPES], ids=str)
def test_add_layer_norm_has_the_types_of_pytorch(path, types, bias_type):
    x, residual = (leaf(dtype, 2, 5, 8) for dtype in types)
    weight = leaf(torch.float32, 8)
    bias = None if bias_type is None else leaf(bias_type, 8)
    with torch.autocast("cpu", torch.bfloat16):
        y, total, mean, rstd = ops.add_layer_norm(x, residual, weight, bias)
        expected_total = x + residual
        expected = torch.nn.functional.layer_norm(
            expected_total, [8], weight, None if bias is None else bias.to(weight.dtype)
        )
    assert (y.dtype, total.dtype) == (expected.dtype, expected_total.dtype)
    assert (mean.dtype, rstd.dtype) == (torch.float32, torch.float32)
    tolerance = dict(rtol=2e-2, atol=2e-2) if y.dtype == torch.bfloat16 else {}
    torch.testing.assert_close(y, expected, **tolerance)
    torch.testing.assert_close(total, expected_total)
    backward_in_own_types(y + total, x, residual, weight, *(() if bias is None else (bias,)))


@pairs
def test_rotary_embedding_keeps_the_type_of_x_and_takes_tables_of_either(path, types):
    x = leaf(types[0], 2, 4, 7, 8)
    angle = torch.randn(7, 4)
    cos, sin = angle.cos().to(types[1]), angle.sin().to(types[1])
    with torch.autocast("cpu", torch.bfloat16):
        y = ops.rotary_embedding(x, cos, sin)
    assert torch.equal(y, ops.rotary_embedding(x, cos.float(), sin.float()))
    assert y.dtype == x.dtype
    backward_in_own_types(y, x)


def test_without_autocast_mixed_types_are_refused_as_before():
    x, angle = torch.randn(2, 4, 7, 8), torch.randn(7, 4).bfloat16()
    with pytest.raises(ValueError, match="cos: expected float32"):
        ops.rotary_embedding(x, angle, angle)
    with pytest.raises(ValueError, match="residual: expected"):
        ops.add_layer_norm(x, x.bfloat16(), torch.ones(8))


def test_a_compiled_region_equals_an_eager_one(path):
    def block(x, residual, weight, cos, sin):
        y, total, _, _ = ops.add_layer_norm(x, residual, weight)
        y = ops.rotary_embedding(y.unflatten(-1, (2, 4)).transpose(1, 2), cos, sin)
        z = ops.attention(y, y, y, is_causal=True)[0]
        return ops.exclude(z, y)[0].transpose(1, 2).flatten(2) + total

    angle = torch.randn(5, 2)
    given = (leaf(torch.bfloat16, 2, 5, 8), leaf(torch.float32, 2, 5, 8), leaf(torch.float32, 8))
    tables = angle.cos().bfloat16(), angle.sin()
    torch._dynamo.reset()
    compiled = torch.compile(block, backend="aot_eager", fullgraph=True)
    with torch.autocast("cpu", torch.bfloat16):
        actual, expected = compiled(*given, *tables), block(*given, *tables)
    assert actual.dtype == expected.dtype == torch.float32
    torch.testing.assert_close(actual, expected)
    gradients = [torch.autograd.grad(out.sum(), given) for out in (actual, expected)]
    torch.testing.assert_close(*gradients)
