"""The operator as PyTorch's machinery sees it: opcheck, torch.func, compile, export, autocast.

Values, masks and errors are tests/op's work (C++).
"""

import math
import shutil
import subprocess
import sys

import pytest
import torch
from torch.library import opcheck

attention = torch.ops.xsa.attention


def inputs(
    dtype=torch.float32, batch=2, heads=4, key_heads=2, queries=7, keys=9, dim=8, value_dim=5
):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return (
            torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        )

    return (
        normal(batch, heads, queries, dim),
        normal(batch, key_heads, keys, dim),
        normal(batch, key_heads, keys, value_dim),
    )


def eager(q, k, v, is_causal=False, strength=1.0):
    """Attention and the paper's two lines."""
    group, offset = q.shape[1] // k.shape[1], k.shape[2] - q.shape[2]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(offset + 1)
        scores = scores.masked_fill(hidden, -math.inf)
    y = scores.softmax(-1) @ v
    unit = torch.nn.functional.normalize(v[:, :, offset:], dim=-1)
    return y - strength * (y * unit).sum(-1, keepdim=True) * unit


OPTIONS = {
    "none": {},
    "causal": dict(is_causal=True, strength=0.5),
    "learned scalar": dict(learned_strength=torch.tensor(0.5, requires_grad=True)),
    "learned [B, H, T], sinks": dict(
        learned_strength=torch.full((2, 4, 7), 0.5, requires_grad=True),
        sink_logits=torch.zeros(4, requires_grad=True),
        scale=0.3,
        own_offset=1,
    ),
    "masks": dict(
        is_causal=True,
        num_sink_keys=1,
        window=3,
        key_start=torch.tensor([0, 1]),
        key_end=torch.tensor([9, 8], dtype=torch.int32),
    ),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("heads_in_tokens", [False, True])
def test_opcheck_passes(path, options, heads_in_tokens):
    q, k, v = inputs()
    if heads_in_tokens:
        q, k, v = (
            x.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
            for x in (q, k, v)
        )
    results = opcheck(attention.default, (q, k, v), options)
    assert set(results.values()) == {"SUCCESS"}


def test_opcheck_passes_for_packed_documents():
    cu_seqlens = torch.tensor([0, 3, 7], dtype=torch.int32)
    opcheck(attention.default, inputs(batch=1), dict(is_causal=True, cu_seqlens=cu_seqlens))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_opcheck_passes_for_the_backward(path, options):
    options = {
        name: x.detach() if isinstance(x, torch.Tensor) else x for name, x in options.items()
    }
    q, k, v = (x.detach() for x in inputs())
    z, lse, c = attention(q, k, v, **options)
    for dlse in (None, torch.ones_like(lse)):
        opcheck(
            torch.ops.xsa.attention_backward.default,
            (torch.ones_like(z), dlse, q, k, v, z, lse, c),
            options,
        )


def test_gradients_are_finite_differences():
    q, k, v = inputs(torch.float64, queries=4, keys=5, dim=3, value_dim=3)
    strength = torch.tensor([0.5, 1.0, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    sinks = torch.zeros(4, dtype=torch.float64, requires_grad=True)

    def outputs(q, k, v, strength, sinks):
        return attention(q, k, v, is_causal=True, learned_strength=strength, sink_logits=sinks)[:2]

    assert torch.autograd.gradcheck(outputs, (q, k, v, strength, sinks))


def loss(attend):
    return lambda q, k, v: attend(q, k, v).square().sum()


def ours(q, k, v):
    return attention(q, k, v, is_causal=True)[0]


def plain(q, k, v):
    return eager(q, k, v, is_causal=True)


def test_func_grad_equals_eager(path):
    q, k, v = (x.detach() for x in inputs())
    actual = torch.func.grad(loss(ours), argnums=(0, 1, 2))(q, k, v)
    expected = torch.func.grad(loss(plain), argnums=(0, 1, 2))(q, k, v)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_func_vjp_equals_eager(path):
    q, k, v = (x.detach() for x in inputs())
    z, pull = torch.func.vjp(ours, q, k, v)
    expected, expected_pull = torch.func.vjp(plain, q, k, v)
    torch.testing.assert_close(pull(z), expected_pull(z), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_grad_of_each_sample_equals_one_by_one(path):
    q, k, v = (torch.stack([x.detach(), 2 * x.detach(), -x.detach()]) for x in inputs())
    grads = torch.func.vmap(torch.func.grad(loss(ours), argnums=(0, 1, 2)))(q, k, v)
    for n in range(3):
        one = torch.func.grad(loss(ours), argnums=(0, 1, 2))(q[n], k[n], v[n])
        torch.testing.assert_close([g[n] for g in grads], list(one), rtol=1e-4, atol=1e-5)


def test_forward_mode_is_refused():
    q, k, v = (x.detach() for x in inputs())
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(lambda q: ours(q, k, v), (q,), (q,))


def test_a_second_derivative_is_refused():
    q, k, v = (x.detach() for x in inputs())

    def gradient_norm(q):
        return torch.func.grad(lambda q: loss(ours)(q, k, v))(q).square().sum()

    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.func.grad(gradient_norm)(q)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_without_a_graph_break(path, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(loss(ours), backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for queries, keys in ((7, 9), (5, 11)):
        q, k, v = inputs(queries=queries, keys=keys)
        actual = torch.autograd.grad(compiled(q, k, v), (q, k, v))
        expected = torch.autograd.grad(loss(ours)(q, k, v), (q, k, v))
        torch.testing.assert_close(actual, expected)


def test_exports():
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return ours(q, k, v)

    q, k, v = (x.detach() for x in inputs())
    program = torch.export.export(Model(), (q, k, v))
    assert any(node.target is attention.default for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(q, k, v), ours(q, k, v))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_z_has_the_type_of_q_and_lse_that_of_the_sums(path, dtype):
    z, lse, c = attention(*inputs(dtype))
    sums = torch.float64 if dtype == torch.float64 else torch.float32
    assert (z.dtype, lse.dtype, c.dtype) == (dtype, sums, sums)


def test_autocast_lowers_q_k_v_and_keeps_the_sums(path):
    q, k, v = inputs()
    with torch.autocast("cpu", torch.bfloat16):
        z, lse, c = attention(q, k.to(torch.bfloat16), v)
        z.float().sum().backward()
    assert (z.dtype, lse.dtype, c.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    assert q.grad.dtype == torch.float32
    expected = attention(*(x.detach().to(torch.bfloat16) for x in (q, k, v)))[0]
    assert torch.equal(z, expected)


def test_saves_for_backward_what_flash_attention_saves_and_c(path):
    q, k, v = inputs()
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x) or x, lambda x: x):
        z, lse, c = attention(q, k, v, is_causal=True)
    assert sorted(x.data_ptr() for x in saved) == sorted(x.data_ptr() for x in (q, k, v, z, lse, c))


def test_errors_are_value_errors_with_a_remedy():
    q, k, v = inputs()
    with pytest.raises(ValueError, match=r"k: expected S >= T = 7, got S = 3; .* append them"):
        attention(q, k[:, :, :3], v[:, :, :3])


def test_the_query_says_which_path_and_why():
    q, k, v = inputs(torch.float64)
    assert torch.ops.xsa.attention_backend(q, k, v).startswith("composite: float64")
    q, k, v = inputs()
    assert torch.ops.xsa.attention_backend(q, k, v, is_causal=True) == "cpu_fused"


def in_a_new_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def test_loading_twice_is_harmless(library):
    done = in_a_new_process(f"""
import torch
torch.ops.load_library({str(library)!r})
torch.ops.load_library({str(library)!r})
print(torch.ops.xsa.backend())
""")
    assert done.returncode == 0 and done.stdout == "auto\n", done.stderr


def test_a_second_copy_leaves_the_first_in_place_and_says_so(library, tmp_path):
    copy = shutil.copy(library, tmp_path / "libxsa_op.so")
    done = in_a_new_process(f"""
import torch
torch.ops.load_library({str(library)!r})
torch.ops.load_library({str(copy)!r})
x = torch.ones(1, 1, 2, 4)
print(torch.ops.xsa.attention(x, x, x)[0].sum().item())
""")
    assert done.returncode == 0 and done.stdout == "0.0\n", done.stderr
    assert "another copy of libxsa_op.so" in done.stderr
