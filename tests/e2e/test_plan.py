"""xsa plan, and the recipes of the paper's models, whose heads quote it."""

import json
import shlex

import pytest
from conftest import ROOT

PAPER = sorted((ROOT / "recipes").glob("paper-[0-9]*.toml"))
SWEEPS = sorted((ROOT / "recipes").glob("paper-sweep-*.toml"))


def test_a_plan_is_printed_for_people_and_as_json(xsa):
    text = xsa("plan", "tiny.toml", "--peak-tflops=0.2").stdout
    plan = json.loads(xsa("plan", "tiny.toml", "--peak-tflops=0.2", "--json").stdout)
    assert "120 steps of 8 sequences of 64" in text
    assert plan["tokens"] == 120 * 8 * 64
    assert plan["traffic_bytes_per_step"] == 0
    assert sorted(path.name for path in xsa.folder.iterdir()) == ["text.txt", "tiny.toml"]


def test_a_recipe_that_cannot_train_is_refused(xsa):
    assert "model.kv_heads" in xsa("plan", "tiny.toml", "--model.kv_heads=3", expect=2).stderr
    assert "--gpus" in xsa("plan", "tiny.toml", "--gpus=3", expect=2).stderr
    assert "--gpu:" in xsa("plan", "tiny.toml", "--gpu=h1000", expect=2).stderr


def test_what_is_predicted_for_a_training_is_what_it_takes(xsa):
    settings = ("tiny.toml", "--data.source=text.txt", "--train.steps=5")
    predicted = json.loads(xsa("plan", *settings, "--json").stdout)["memory_bytes"]["total"]
    measured = json.loads(xsa("train", *settings, "--json").stdout)["peak_tensor_bytes"]
    assert abs(predicted / measured - 1) < 0.02


@pytest.mark.parametrize("path", PAPER + SWEEPS, ids=lambda path: path.stem)
def test_the_head_of_a_paper_recipe_says_what_the_plan_says(xsa, path):
    head = [line[1:].strip() for line in path.read_text().splitlines() if line.startswith("#")]
    command = next(line.rstrip(":") for line in head if line.startswith("xsa plan "))
    begin = head.index(command + ":") + 1
    printed = xsa(*shlex.split(command)[1:]).stdout.split("\n\n")[-1].splitlines()
    assert "within the" in "".join(printed)
    assert head[begin : begin + len(printed)] == [line.strip() for line in printed]


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_a_paper_recipe_is_the_papers_training_of_the_size_it_is_named_by(xsa, path):
    name = path.stem
    plan = json.loads(xsa("plan", name, "--json").stdout)
    size = float(name.removeprefix("paper-").removesuffix("b")) * 1e9
    assert abs(plan["non_embedding_parameters"] / size - 1) < 0.03
    assert plan["steps"] == 200_000
    assert plan["tokens_per_step"] == 256 * 2048
    recipe = json.loads(xsa("train", name, "--model.attention=standard", "--dry-run").stdout)
    assert recipe["model"]["attention"] == "standard"
    assert (recipe["model"]["context"], recipe["model"]["vocab_size"]) == (2048, 50304)
    assert recipe["train"]["warmup_steps"] == 2000
    assert recipe["train"]["min_lr_ratio"] == 0.1


def test_all_four_sizes_are_there():
    assert [path.stem for path in PAPER] == [
        "paper-0.7b",
        "paper-1.3b",
        "paper-1.4b",
        "paper-2.7b",
    ]
