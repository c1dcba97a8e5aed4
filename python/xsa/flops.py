"""What FLOP counters count: PyTorch's own convention for scaled_dot_product_attention.

The matrix products of every query with every key, 2 in the forward and 5 in the backward, at two
operations a multiplication: no less for causality, windows or padding, which kernels skip. Packed
documents are counted one by one, as PyTorch counts nested sequences. Elementwise work counts for
nothing, as everywhere in PyTorch, and so do `exclude`, `add_layer_norm` and `rotary_embedding`.
"""

import torch
from torch._subclasses import FakeTensor
from torch.utils.flop_counter import (
    register_flop_formula,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)


def _documents(q, k, v, cu_seqlens):
    """The shapes of q, k and v of each document."""
    if cu_seqlens is None or isinstance(cu_seqlens, FakeTensor) or cu_seqlens.is_meta:
        return [(q.shape, k.shape, v.shape)]
    return [
        tuple((*x.shape[:2], tokens, x.shape[3]) for x in (q, k, v))
        for tokens in cu_seqlens.diff().tolist()
    ]


@register_flop_formula(torch.ops.xsa.attention, get_raw=True)
def attention_flops(q, k, v, *, cu_seqlens=None, **_):
    return sum(sdpa_flop_count(*shapes) for shapes in _documents(q, k, v, cu_seqlens))


@register_flop_formula(torch.ops.xsa.attention_backward, get_raw=True)
def attention_backward_flops(dz, dlse, q, k, v, *_, cu_seqlens=None, **__):
    return sum(
        sdpa_backward_flop_count((*q_shape[:3], v_shape[3]), q_shape, k_shape, v_shape)
        for q_shape, k_shape, v_shape in _documents(q, k, v, cu_seqlens)
    )
