"""What the end-to-end tests share: the program, a made text, a tiny recipe."""

import os
import pathlib
import random
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# On a busy machine threads that spin while they wait keep the others from their work.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
XSA = pathlib.Path(os.environ.get("XSA_BIN", ROOT / "build" / "bin" / "xsa"))

RECIPE = """
[model]
layers = 2
width = 32
heads = 2
head_dim = 16
context = 64

[train]
steps = 120
batch_size = 8
lr = 1e-2
warmup_steps = 5
eval_every = 20
eval_rows = 16
checkpoint_every = 20
threads = 2

[diagnose]
sequences = 8
"""


def made_text(size, seed=1):
    """Sentences of a small grammar: far from random, so that a tiny model learns most of it."""
    rng = random.Random(seed)
    nouns = ["fox", "river", "lantern", "king", "winter", "orchard", "sailor", "mountain"]
    verbs = ["sees", "follows", "remembers", "forgets", "paints"]
    lines, length = [], 0
    while length < size:
        line = f"the {rng.choice(nouns)} {rng.choice(verbs)} the {rng.choice(nouns)}.\n"
        lines.append(line)
        length += len(line)
    return "".join(lines)


class Program:
    """Runs xsa in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder

    def command(self, *words):
        return [str(XSA), *map(str, words)]

    def __call__(self, *words, expect=0):
        done = subprocess.run(
            self.command(*words), cwd=self.folder, capture_output=True, text=True, timeout=300
        )
        assert (
            done.returncode == expect
        ), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *words):
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def xsa(tmp_path):
    (tmp_path / "text.txt").write_text(made_text(60_000))
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return Program(tmp_path)
