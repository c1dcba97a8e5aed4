"""The main job, from a text to a verdict."""

import collections
import json
import math
import re

import pytest


def unigram_entropy(text):
    counts = collections.Counter(text.encode())
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values())


def read_metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    from conftest import RECIPE, Program, made_text

    folder = tmp_path_factory.mktemp("compare")
    (folder / "text.txt").write_text(made_text(60_000))
    (folder / "tiny.toml").write_text(RECIPE)
    program = Program(folder)
    program.done = program("compare", "tiny.toml", "--text", "text.txt", "--seeds", 2)
    program.run = folder / "runs" / "tiny"
    program.result = json.loads((program.run / "compare.json").read_text())
    return program


def test_both_kinds_learn_far_more_than_letter_frequencies(comparison):
    entropy = unigram_entropy((comparison.folder / "text.txt").read_text())
    for kind in ("standard", "exclusive"):
        for loss in comparison.result["results"][kind]["validation_loss"]["values"]:
            assert loss < 0.6 * entropy


def test_z_is_orthogonal_to_the_own_value_in_every_layer_of_the_exclusive_model(comparison):
    for seed in comparison.result["seeds"]:
        diagnosis = json.loads(
            (comparison.run / f"exclusive-seed{seed}" / "diagnose.json").read_text()
        )
        assert len(diagnosis["layers"]) == 2
        for layer in diagnosis["layers"]:
            assert abs(layer["final_value_cosine"]) < 1e-5
            assert abs(layer["output_value_cosine"]) > 1e-3
        diagnosis = json.loads(
            (comparison.run / f"standard-seed{seed}" / "diagnose.json").read_text()
        )
        for layer in diagnosis["layers"]:
            assert layer["final_value_cosine"] == layer["output_value_cosine"]


def test_both_kinds_start_at_the_same_weights_on_the_same_data(comparison):
    recipes = [
        json.loads((comparison.run / f"{kind}-seed1337" / "recipe.json").read_text())
        for kind in ("standard", "exclusive")
    ]
    recipes[0]["model"].pop("attention"), recipes[1]["model"].pop("attention")
    assert recipes[0] == recipes[1]


def test_the_table_the_verdict_and_the_page_tell_the_same_figures(comparison):
    output = comparison.done.stdout
    assert comparison.result["verdict"] in output
    for kind in ("standard", "exclusive"):
        values = comparison.result["results"][kind]["validation_loss"]["values"]
        mean = sum(values) / 2
        assert comparison.result["results"][kind]["validation_loss"]["mean"] == pytest.approx(mean)
        assert f"{mean:.4f}" in output
        for seed, value in zip(comparison.result["seeds"], values):
            summary = json.loads(
                (comparison.run / f"{kind}-seed{seed}" / "summary.json").read_text()
            )
            assert summary["validation_loss"] == value
    page = (comparison.run / "report.html").read_text()
    assert comparison.result["verdict"].split(":")[0] in page
    outside_scripts = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert 'src="' not in outside_scripts and "<link" not in outside_scripts
    assert "Content-Security-Policy" in page


def test_metrics_follow_the_documented_schema(comparison):
    metrics = read_metrics(comparison.run / "standard-seed1337")
    train = [m for m in metrics if m["type"] == "train"]
    validation = [m for m in metrics if m["type"] == "validation"]
    assert [m["step"] for m in train] == list(range(10, 121, 10))
    assert [m["step"] for m in validation] == [20, 40, 60, 80, 100, 120]
    assert set(train[0]) == {
        "type",
        "step",
        "tokens",
        "loss",
        "lr",
        "grad_norm",
        "tokens_per_s",
        "data_wait_s",
        "elapsed_s",
    }
    assert set(validation[0]) == {"type", "step", "tokens", "loss", "bits_per_byte"}
    assert train[-1]["tokens"] == 120 * 8 * 64


def test_run_again_it_keeps_what_is_finished(comparison):
    before = {path: path.stat().st_mtime_ns for path in comparison.run.rglob("*.safetensors")}
    again = comparison("compare", "tiny.toml", "--text", "text.txt", "--seeds", 2, "--json")
    assert (
        json.loads(again.stdout)["results"]["standard"]["validation_loss"]
        == comparison.result["results"]["standard"]["validation_loss"]
    )
    assert before == {
        path: path.stat().st_mtime_ns for path in comparison.run.rglob("*.safetensors")
    }


def test_another_recipe_does_not_overwrite_it(comparison):
    before = (comparison.run / "compare.json").read_bytes()
    refused = comparison(
        "compare", "tiny.toml", "--text", "text.txt", "--seeds", 2, "--train.lr=1e-3", expect=2
    )
    assert "train.lr: 0.001, was 0.01" in refused.stderr
    assert (comparison.run / "compare.json").read_bytes() == before


def test_the_page_can_be_written_anew(comparison):
    (comparison.run / "report.html").unlink()
    comparison("report", "runs/tiny")
    assert (comparison.run / "report.html").exists()


def test_diagnose_of_a_checkpoint_equals_what_the_run_found(comparison):
    found = json.loads(
        comparison("diagnose", "runs/tiny/standard-seed1337", "--sequences", 8, "--json").stdout
    )
    assert (found.pop("tokenizer"), found.pop("warnings")) == ("byte", [])
    assert found.pop("threads") >= 1
    assert found == json.loads((comparison.run / "standard-seed1337" / "diagnose.json").read_text())


def test_overwriting_it_keeps_files_that_are_not_its_own(comparison):
    words = ("compare", "tiny.toml", "--text", "text.txt", "--name", "again", "--train.steps=5")
    comparison(*words)
    note = comparison.folder / "runs" / "again" / "notes.txt"
    note.write_text("precious")
    comparison(*words, "--train.lr=1e-3", "--overwrite")
    assert note.read_text() == "precious"
    found = json.loads((note.parent / "compare.json").read_text())
    assert found["recipe"]["train"]["lr"] == 1e-3
