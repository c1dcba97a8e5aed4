#!/usr/bin/env python3
"""Makes tests/golden/bpe: a small byte-level BPE vocabulary, and what tokenizers makes of texts.

Run with the peers' Python (requirements-peers.txt), only when the texts change.
"""

import json
import pathlib
import random

from tokenizers import ByteLevelBPETokenizer

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "bpe"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
SENTENCES = [
    "The sailor follows the river to the mountain, and the king doesn't remember the orchard.",
    "In winter we'll see 1024 lanterns; they've been there since 1887, haven't they?",
    "Übergrößenträger essen Käse — naïve cafés, façade, 東京都に行く, привет мир!",
    "for (int i = 0; i < 10; ++i) {\n\tsum += x[i] * y[i];\n}\n",
    "\U0001f600\U0001f469\u200d\U0001f467 smile   and    spaces \n\n\n end",
]
TEXTS = [
    *SENTENCES,
    "",
    " ",
    "a",
    "aaaaaaaaaaaaaaaaaaaaaaaa" * 9,
    "the the the thethe ther theother",
    "'s 't 'd we'd WE'D ''''s",
    "\u3000\u2003\x85\xa0x",
    "0123456789 ٣٤ Ⅷ ½",
    "<|endoftext|> is text here",
]


def main():
    rng = random.Random(1)
    words = " ".join(SENTENCES).split(" ")
    corpus = [" ".join(rng.choices(words, k=12)) for _ in range(400)] + SENTENCES * 20
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(corpus, vocab_size=700, min_frequency=2, special_tokens=SPECIAL)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    tokenizer.save_model(str(OUTPUT))
    named = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (OUTPUT / "tokenizer_config.json").write_text(json.dumps(named, indent=2) + "\n")
    texts = TEXTS + ["".join(rng.choices("".join(TEXTS), k=60)) for _ in range(40)]
    lines = [{"text": text, "ids": tokenizer.encode(text).ids} for text in texts]
    with_special = "<s>the king</s><mask> and <unk>"
    lines.append({"text": with_special, "special_ids": tokenizer.encode(with_special).ids})
    with open(OUTPUT / "ids.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


if __name__ == "__main__":
    main()
