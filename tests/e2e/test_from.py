"""xsa train --from: another's weights, a schedule of its own."""

import hashlib
import json
import shutil

import pytest
from gpt2_folder import write_gpt2

SHORT = ("--text", "text.txt", "--train.steps=6", "--train.eval_every=3", "--train.log_every=2")


@pytest.fixture
def based(xsa):
    words = ("--name", "base", "--model.attention=standard", "--train.checkpoint_every=2")
    xsa("train", "tiny.toml", *SHORT, *words, "--train.keep_checkpoints=0")
    return xsa


def file_of(program, run, name):
    checkpoints = program.folder / "runs" / run / "checkpoints"
    return checkpoints / (checkpoints / "LATEST").read_text().strip() / name


def read(program, run, name):
    return json.loads((program.folder / "runs" / run / name).read_text())


def test_the_model_and_its_tokenizer_come_along(based):
    # The recipe is another model's: its [model] does not count.
    words = ("train", "demo", "--name", "next", "--from", "runs/base@4", *SHORT)
    done = based(*words, "--model.attention=exclusive", "--train.threads=2", "--train.lr=1e-3")
    assert "begins with the weights of runs/base@4, step 4" in done.stderr
    recipe, base = read(based, "next", "recipe.json"), read(based, "base", "recipe.json")
    assert recipe["model"] == {**base["model"], "attention": "exclusive"}
    assert recipe["train"]["lr"] == 1e-3 and recipe["train"]["from"] == "runs/base@4"
    origin = read(based, "next", "summary.json")["origin"]
    path = based.folder / "runs/base/checkpoints/step-000004"
    assert origin == {
        "path": str(path),
        "step": 4,
        "weights_sha256": hashlib.sha256((path / "model.safetensors").read_bytes()).hexdigest(),
    }


def test_it_goes_on_without_its_origin_and_without_being_told_of_it(based):
    words = ("train", "tiny.toml", "--name", "next", *SHORT, "--train.keep_checkpoints=0")
    based(*words, "--from", "runs/base", "--model.output_gate=true")
    before = file_of(based, "next", "model.safetensors").read_bytes()
    run = based.folder / "runs" / "next"
    (run / "summary.json").unlink()
    (run / "checkpoints" / "LATEST").write_text("step-000000\n")
    shutil.rmtree(based.folder / "runs" / "base")
    # Another model's recipe: what the run began with is its own.
    other = (based.folder / "tiny.toml").read_text().replace("layers = 2", "layers = 3")
    (based.folder / "other.toml").write_text(other)
    based("train", "other.toml", *words[2:], "--resume", "--model.output_gate=true")
    assert file_of(based, "next", "model.safetensors").read_bytes() == before
    assert "runs/base" in based(*words, "--resume", "--from", "elsewhere", expect=2).stderr


def test_new_weights_are_told_and_lost_ones_refused(based):
    words = ("train", "tiny.toml", "--name", "next", "--from", "runs/base", *SHORT)
    learned = ("--model.attention=exclusive", "--model.learned_strength=head")
    assert "new, with initial values: attn.strength" in based(*words, *learned).stderr
    error = based(*words, "--overwrite", "--model.layers=1", "--model.window=16", expect=2).stderr
    assert "model.layers (2 there, 1 asked for)" in error and "window" not in error
    words = ("train", "tiny.toml", "--name", "third", "--from", "runs/next", *SHORT)
    error = based(*words, "--model.learned_strength=none", expect=2).stderr
    assert "model.learned_strength" in error


def test_a_gpt2_begins_a_training_with_xsa_switched_on(xsa):
    folder = write_gpt2(xsa.folder / "gpt2", vocabulary=50257)
    words = ("train", "tiny.toml", "--from", folder, *SHORT, "--name", "tuned")
    xsa(*words, "--model.attention=exclusive", "--train.batch_size=2", "--train.lr=1e-4")
    recipe, summary = read(xsa, "tuned", "recipe.json"), read(xsa, "tuned", "summary.json")
    assert recipe["data"]["tokenizer"] == "gpt2" and recipe["model"]["position"] == "learned"
    weights = (folder / "model.safetensors").read_bytes()
    assert summary["origin"]["weights_sha256"] == hashlib.sha256(weights).hexdigest()
    assert summary["origin"]["path"] == str(folder)


def test_two_attentions_are_compared_from_one_origin(based):
    words = ("compare", "tiny.toml", "--name", "pair", "--from", "runs/base", *SHORT)
    based(*words)
    origins = [read(based, f"pair/{kind}-seed1337", "summary.json")["origin"] for kind in
               ("standard", "exclusive")]
    assert origins[0] == origins[1]
    based("train", "tiny.toml", *SHORT, "--name", "other", "--train.seed=2")
    before = (based.folder / "runs" / "pair" / "recipe.json").read_bytes()
    for seeds in ((), ("--seeds", "2")):
        other = [word.replace("runs/base", "runs/other") for word in words]
        refused = based(*other, *seeds, expect=2)
        assert "train.from ('runs/base' there, 'runs/other' asked for)" in refused.stderr
        assert (based.folder / "runs" / "pair" / "recipe.json").read_bytes() == before
        assert not (based.folder / "runs" / "pair" / "standard-seed1338").exists()


def test_nothing_to_begin_with_is_named(based):
    for place in ("nowhere", "runs", "text.txt"):
        error = based("train", "tiny.toml", *SHORT, "--from", place, expect=2).stderr
        assert place in error and "expected a run" in error
        assert not (based.folder / "runs" / "tiny").exists()


def test_few_steps_keep_the_share_of_the_warm_up(xsa):
    done = xsa("train", "tiny.toml", "--text", "text.txt", "--name", "one", "--train.steps=1")
    assert "train.warmup_steps: 0 in place of the 5" in done.stderr
    assert read(xsa, "one", "recipe.json")["train"]["warmup_steps"] == 0
    words = ("--train.steps=1", "--train.warmup_steps=3")
    error = xsa("train", "tiny.toml", "--text", "text.txt", *words, expect=2).stderr
    assert "train.warmup_steps: expected at most train.steps (1), got 3" in error
