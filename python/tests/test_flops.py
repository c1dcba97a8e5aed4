"""FLOP counters count the attention as PyTorch counts its own."""

import pytest
import torch
import xsa  # noqa: F401
from torch.utils.flop_counter import FlopCounterMode

attention = torch.ops.xsa.attention


def counted(call, *inputs):
    """Of the forward, and of both directions."""
    with FlopCounterMode(display=False) as forward:
        result = call(*inputs)
    with FlopCounterMode(display=False) as both:
        call(*inputs).sum().backward()
    assert result.requires_grad
    return forward.get_total_flops(), both.get_total_flops()


def inputs(queries=16, keys=16, key_heads=4, dim=8, batch=2):
    shapes = (4, queries), (key_heads, keys), (key_heads, keys)
    return [torch.randn(batch, heads, n, dim, requires_grad=True) for heads, n in shapes]


@pytest.mark.parametrize("is_causal", [False, True])
def test_equals_what_pytorch_counts_for_its_own_attention(path, is_causal):
    given = inputs()

    def ours(q, k, v):
        return attention(q, k, v, is_causal=is_causal)[0]

    forward = 2 * 2 * 2 * 4 * 16 * 16 * 8
    assert counted(ours, *given) == (forward, forward + forward // 2 * 5)
    meta = [x.to("meta").detach().requires_grad_() for x in given]
    theirs = torch.ops.aten._scaled_dot_product_flash_attention
    with FlopCounterMode(display=False) as counter:
        theirs(*meta, 0.0, is_causal)
    assert counter.get_total_flops() == forward


def test_grouped_heads_a_window_and_a_cache_count_every_query_and_key():
    def ours(q, k, v):
        return attention(q, k, v, is_causal=True, window=3, num_sink_keys=1)[0]

    forward, both = counted(ours, *inputs(queries=3, keys=16, key_heads=2))
    assert forward == 2 * 2 * 2 * 4 * 3 * 16 * 8
    assert both == forward + forward // 2 * 5


def test_packed_documents_are_counted_one_by_one():
    cu_seqlens = torch.tensor([0, 5, 6, 16], dtype=torch.int32)

    def ours(q, k, v):
        return attention(q, k, v, is_causal=True, cu_seqlens=cu_seqlens)[0]

    forward, both = counted(ours, *inputs(batch=1))
    assert forward == 2 * 2 * 4 * (25 + 1 + 100) * 8
    assert both == forward + forward // 2 * 5


def test_a_strength_given_as_a_tensor_changes_nothing():
    def ours(q, k, v):
        return attention(q, k, v, strength=torch.tensor(0.5))[0]

    assert counted(ours, *inputs()) == counted(lambda *x: attention(*x)[0], *inputs())


def test_a_meta_tensor_counts_too():
    with torch.device("meta"):
        given = inputs()
    forward, both = counted(lambda *x: attention(*x, is_causal=True)[0], *given)
    assert both == forward + forward // 2 * 5 > 0
