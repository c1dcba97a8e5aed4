"""How the operators compute with DTensors: cut over batch or heads, each rank its part alone.

An operator is cut on a mesh dimension as the first of its inputs that is sharded there over
something that can be cut: batch, heads, and rows of `add_layer_norm`. Heads are cut only where
query heads and key/value heads both divide. Every other input is redistributed to fit; without
such an input all of them are replicated, so that a sharding over tokens costs a gather and is
never wrong. A gradient of what was replicated is a partial sum.

This is a handler and not a sharding strategy, since PyTorch (2.13) redistributes no keyword
arguments: a replicated learned_strength [H] beside sharded heads would be refused.
"""

import warnings
from math import prod

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

ops = torch.ops.xsa

# A tensor's dimensions, one letter each: B batch, H heads (query or key/value), the rest uncut.
_STRENGTH = {0: "", 1: "H", 3: "BHT"}


def _attention_layouts(tensors):
    strength = tensors.get("learned_strength")
    layouts = dict.fromkeys(("q", "k", "v", "y", "z", "dz", "x"), "BHTD")
    layouts |= dict.fromkeys(("lse", "dlse", "c"), "BHT")
    layouts |= dict.fromkeys(("key_start", "key_end"), "B")
    layouts |= {"sink_logits": "H"}
    layouts |= dict.fromkeys(("cu_seqlens", "cos", "sin"), "")
    layouts |= {"learned_strength": "" if strength is None else _STRENGTH[strength.ndim]}
    # Packed documents lie in one sequence.
    return layouts, "H" if tensors.get("cu_seqlens") is not None else "BH"


def _norm_layouts(tensors):
    some = tensors.get("x", tensors.get("sum"))
    rows = "abcdefgh"[: some.ndim - 1]
    layouts = dict.fromkeys(("x", "residual", "sum", "dy", "dsum"), rows + "C")
    layouts |= dict.fromkeys(("mean", "rstd"), rows) | dict.fromkeys(("weight", "bias"), "C")
    return layouts, rows


# An operator's layouts, and the inputs like which its outputs are.
_OPERATORS = {
    ops.attention: (_attention_layouts, ("q", "lse", "c")),
    ops.attention_backward: (
        _attention_layouts,
        ("q", "k", "v", "learned_strength", "sink_logits"),
    ),
    ops.exclude: (_attention_layouts, ("y", "c")),
    ops.exclude_backward: (_attention_layouts, ("z", "v", "learned_strength")),
    ops.rotary_embedding: (_attention_layouts, ("x",)),
    ops.add_layer_norm: (_norm_layouts, ("x", "sum", "mean", "rstd")),
    ops.add_layer_norm_backward: (_norm_layouts, ("x", "weight", "bias")),
}


def _cuts(mesh, tensors, layouts, cuttable):
    """The letter that each mesh dimension cuts; None where every rank computes everything."""
    cuts = []
    for dim in range(mesh.ndim):
        letters = (
            layouts[name][placement.dim]
            for name, tensor in tensors.items()
            if type(placement := tensor.placements[dim]) is Shard
        )
        cut = next((letter for letter in letters if letter in cuttable), None)
        if cut == "H":
            parts = prod(mesh.size(n) for n, c in enumerate([*cuts, cut]) if c == "H")
            heads = [t.shape[1] for name, t in tensors.items() if layouts[name][:2] == "BH"]
            if any(count % parts for count in heads):
                cut = None
        cuts.append(cut)
    return cuts


def _placements(layout, cuts, elsewhere):
    return [
        Replicate() if cut is None else Shard(layout.index(cut)) if cut in layout else elsewhere
        for cut in cuts
    ]


def _checked(op, tensors):
    """The mesh of all tensors."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, DTensor):
            raise ValueError(
                f"{op._schema.name}: {name}: expected a DTensor, as other arguments are, got a "
                "torch.Tensor; distribute it (torch.distributed.tensor.distribute_tensor)"
            )
    meshes = {tensor.device_mesh for tensor in tensors.values()}
    if len(meshes) > 1:
        raise ValueError(f"{op._schema.name}: expected DTensors of one mesh, got {meshes}")
    return meshes.pop()


@torch.no_grad()
def _call(op, args, kwargs):
    names = [argument.name for argument in op._schema.arguments]
    given = dict(zip(names, args)) | kwargs
    tensors = {n: value for n, value in given.items() if isinstance(value, torch.Tensor)}
    mesh = _checked(op, tensors)
    layouts_of, outputs = _OPERATORS[op.overloadpacket]
    # Shapes and strides of the whole results, after the operator's own checks of the whole call.
    whole = _run(op, given, tensors, lambda _, x: _without_data(x))
    layouts, cuttable = layouts_of(tensors)
    cuts = _cuts(mesh, tensors, layouts, cuttable)

    def part(name, x):
        return x.redistribute(mesh, _placements(layouts[name], cuts, Replicate())).to_local()

    if mesh.get_coordinate() is None:  # a rank beside the mesh has nothing of it
        parts = [x if x is None else x.new_empty(0, device=mesh.device_type) for x in whole]
    else:
        parts = _run(op, given, tensors, part)
    results = tuple(
        local
        if local is None
        else DTensor.from_local(
            local,
            mesh,
            _placements(layouts[like], cuts, Partial()),
            run_check=False,
            shape=all_of_it.shape,
            stride=all_of_it.stride(),
        )
        for local, all_of_it, like in zip(parts, whole, outputs, strict=True)
    )
    return results if len(results) > 1 else results[0]


def _without_data(x):
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def _run(op, given, tensors, convert):
    """A tuple: op with the tensors converted."""
    result = op(
        **{n: convert(n, value) if n in tensors else value for n, value in given.items()}
    )
    return result if isinstance(result, tuple) else (result,)


def _register():
    handlers = getattr(getattr(DTensor, "_op_dispatcher", None), "_custom_op_handlers", None)
    if handlers is None:
        warnings.warn(
            "xsa: this version of torch has no handlers of operators for DTensors; xsa's operators "
            "do not take DTensors",
            stacklevel=2,
        )
        return
    handlers |= {packet.default: _call for packet in _OPERATORS}


_register()
