"""A small random GPT-2 in Hugging Face's format, written by hand: the same bits everywhere."""

import json

import numpy

VOCABULARY = 50257


def tensors(layers, width, context, seed, vocabulary):
    """{name: array} under transformers' names; Conv1D keeps its weights [in, out]."""
    random = numpy.random.RandomState(seed)  # its stream is frozen

    def drawn(*shape, std=0.3, mean=0.0):
        return (random.standard_normal(shape) * std + mean).astype(numpy.float32)

    result = {"wte.weight": drawn(vocabulary, width), "wpe.weight": drawn(context, width, std=0.1)}
    for layer in range(layers):
        h = f"h.{layer}."
        for norm in ("ln_1", "ln_2"):
            result[h + norm + ".weight"] = drawn(width, std=0.1, mean=1.0)
            result[h + norm + ".bias"] = drawn(width, std=0.1)
        for name, inputs, outputs in (
            ("attn.c_attn", width, 3 * width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", width, 4 * width),
            ("mlp.c_proj", 4 * width, width),
        ):
            result[h + name + ".weight"] = drawn(inputs, outputs)
            result[h + name + ".bias"] = drawn(outputs, std=0.1)
    result["ln_f.weight"] = drawn(width, std=0.1, mean=2.0)
    result["ln_f.bias"] = drawn(width, std=0.1)
    return {"transformer." + name: array for name, array in result.items()}


def write_safetensors(path, arrays):
    header, offset = {}, 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": "F32",
            "shape": array.shape,
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the data is aligned
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays.values():
            file.write(array.tobytes())


def write_gpt2(folder, layers=2, width=16, heads=2, context=64, seed=1, vocabulary=VOCABULARY):
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_layer": layers,
        "n_embd": width,
        "n_head": heads,
        "n_positions": context,
        "n_ctx": context,
        "vocab_size": vocabulary,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": 50256,
        "eos_token_id": 50256,
    }
    (folder / "config.json").write_text(json.dumps(config))
    arrays = tensors(layers, width, context, seed, vocabulary)
    write_safetensors(folder / "model.safetensors", arrays)
    return folder
