"""transformers' generate on one model. Reads a request a line from standard input, writes an answer
a line: {"tokens": N, "batch": B} -> {"seconds": S, "ids": [[...], ...]}, and
{"score": [[...], ...]} -> {"log_probabilities": [[...], ...]}, those of each token after the
prompt. Also makes the models.

    peer.py make FOLDER SHAPE          peer.py serve FOLDER TYPE PROMPT THREADS
"""

import json
import pathlib
import sys
import time

import torch
import transformers

SHAPES = {  # layers, width, heads, context, vocabulary
    "demo": (4, 128, 4, 256, 257),
    "gpt2": (12, 768, 12, 1024, 50257),
}


def make(folder, shape):
    layers, width, heads, context, vocabulary = SHAPES[shape]
    torch.manual_seed(20)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            n_layer=layers,
            n_embd=width,
            n_head=heads,
            n_positions=context,
            vocab_size=vocabulary,
            bos_token_id=vocabulary - 1,
            eos_token_id=vocabulary - 1,
        )
    )
    with torch.no_grad():  # so that no bias is left out unseen, and likely tokens stand out
        for weight in model.parameters():
            if weight.dim() == 1:
                weight.add_(torch.randn_like(weight) * 0.1)
        model.transformer.ln_f.weight.mul_(4.0)
    model.save_pretrained(folder)


def load(folder, kind):
    """float32, bfloat16, or rounded: matrices rounded to bfloat16, all else in float32, as ours."""
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    if kind == "rounded":
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() == 2:
                    weight.copy_(weight.bfloat16())
    return model.bfloat16() if kind == "bfloat16" else model


def generate(model, prompt, tokens, batch):
    inputs = torch.tensor([prompt] * batch)
    begin = time.perf_counter()
    result = model.generate(
        inputs,
        attention_mask=torch.ones_like(inputs),
        max_new_tokens=tokens,
        min_new_tokens=tokens,
        do_sample=False,
        pad_token_id=model.config.eos_token_id,
    )
    seconds = time.perf_counter() - begin
    ids = result[:, len(prompt) :].tolist()
    return {"seconds": seconds, "ids": ids}


def score(model, prompt, rows):
    answers = []
    for row in rows:
        logits = model(torch.tensor([prompt + row])).logits[0, len(prompt) - 1 : -1].double()
        shares = logits.log_softmax(-1)
        answers.append(shares.gather(-1, torch.tensor(row)[:, None])[:, 0].tolist())
    return {"log_probabilities": answers}


def serve(folder, kind, prompt, threads):
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    model = load(folder, kind)
    generate(model, prompt, 4, 1)
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "score" in request:
            answer = score(model, prompt, request["score"])
        else:
            answer = generate(model, prompt, request["tokens"], request["batch"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        serve(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]), int(sys.argv[5]))
