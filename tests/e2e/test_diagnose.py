"""xsa diagnose and what training writes of it, as a user meets them."""

import csv
import json

import pytest
from conftest import Program, made_text
from gpt2_folder import tensors, write_gpt2, write_safetensors

QUANTITIES = [
    "value_cosine",
    "attention_diagonal",
    "output_value_cosine",
    "final_value_cosine",
    "first_key_mass",
    "sink_mass",
    "removed_share",
]


@pytest.fixture
def trained(xsa):
    words = ("train", "tiny.toml", "--text", "text.txt", "--name", "run", "--train.steps=6")
    xsa(*words, "--train.diagnose_every=4", "--model.sink_tokens=1", "--train.log_every=2")
    return xsa


def metrics(program):
    text = (program.folder / "runs" / "run" / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_diagnosis_says_the_same_in_every_form(trained):
    done = trained(
        "diagnose",
        "runs/run",
        *("--sequences", 8, "--file", "d.json", "--csv", "d.csv", "--page", "d.html"),
    )
    assert max(map(len, done.stdout.splitlines())) <= 120
    found = json.loads((trained.folder / "d.json").read_text())
    rows = list(csv.DictReader((trained.folder / "d.csv").open()))
    assert [(row["layer"], row["head"]) for row in rows] == [
        (layer, head) for layer in "01" for head in ("all", "0", "1")
    ]
    for layer, part in zip(found["layers"], (rows[:3], rows[3:])):
        for key in QUANTITIES:
            mean = sum(head[key] for head in layer["heads"]) / 2
            assert layer[key] == pytest.approx(mean, abs=1e-12)
            assert [float(row[key]) for row in part] == [
                layer[key],
                *(head[key] for head in layer["heads"]),
            ]
            assert f"{layer[key]:.3f}" in done.stdout
        assert 0 < layer["sink_mass"] < 1
    assert "d.html" not in done.stdout and "Plotly" in (trained.folder / "d.html").read_text()
    # Its own files may be written anew, others not.
    trained("diagnose", "runs/run", "--sequences", 1, "--csv", "d.csv", "--page", "d.html")
    for flag in ("--csv", "--page"):
        words = ("diagnose", "runs/run", "--sequences", 1, flag, "text.txt")
        assert "text.txt" in trained(*words, expect=2).stderr


def test_a_run_is_measured_on_its_own_text_from_any_folder(trained, tmp_path):
    words = ("--sequences", 4, "--json")
    here = json.loads(trained("diagnose", "runs/run", *words).stdout)
    assert here["text"]["is_trained_on"] is True
    assert here["text"]["source"] == str(trained.folder / "text.txt")
    (tmp_path / "away").mkdir()
    away = Program(tmp_path / "away")
    (away.folder / "text.txt").write_text(made_text(60_000, seed=9))
    there = json.loads(away("diagnose", trained.folder / "runs/run", *words).stdout)
    assert there == here
    assert not (away.folder / "data").exists()


def test_a_text_that_changed_is_not_measured_unasked(trained):
    text = trained.folder / "text.txt"
    text.write_text(text.read_text().replace("winter", "summer"))
    words = ("diagnose", "runs/run", "--sequences", 4)
    error = trained(*words, expect=1).stderr
    summary = json.loads((trained.folder / "runs/run/summary.json").read_text())
    assert summary["data_sha256"] in error
    assert "text.txt" in error and "has changed" in error and "--text" in error
    done = trained(*words, "--text", "text.txt")
    assert "not the model's own" in done.stdout
    done = trained(*words, "--text", "text.txt", "--json")
    assert json.loads(done.stdout)["text"]["is_trained_on"] is False


def test_a_checkpoint_is_taken_by_name(trained):
    words = ("--sequences", 4, "--json")
    step = (trained.folder / "runs/run/checkpoints/BEST").read_text().strip()
    named = trained("diagnose", "runs/run@best", *words).stdout
    assert named == trained("diagnose", f"runs/run/checkpoints/{step}", *words).stdout
    error = trained("diagnose", "runs/run@5", *words, expect=2).stderr
    assert "expected @best, @latest or the step" in error and "latest" in error


def test_a_folder_of_runs_names_them(trained):
    evaluate = ("eval", "runs", "--text", "text.txt")
    for words in (("diagnose", "runs"), ("generate", "runs"), evaluate):
        assert "runs/run" in trained(*words, expect=2).stderr


def test_two_results_do_not_share_a_file(trained):
    words = ("diagnose", "runs/run", "--sequences", 1, "--file", "one", "--csv", "./one")
    assert "--csv: ./one is what --file writes" in trained(*words, expect=2).stderr
    assert not (trained.folder / "one").exists()


def test_what_is_not_finite_is_told(xsa):
    folder = write_gpt2(xsa.folder / "gpt2", vocabulary=257)
    arrays = tensors(layers=2, width=16, context=64, seed=1, vocabulary=257)
    arrays["transformer.h.0.attn.c_attn.weight"] *= 1e25
    write_safetensors(folder / "model.safetensors", arrays)
    words = ("--tokenizer", "byte", "--text", "text.txt", "--sequences", 1, "--threads", 1)
    done = xsa("diagnose", folder, *words, "--json")
    assert json.loads(done.stdout)["layers"][0]["attention_diagonal"] is None
    assert "layer 0: own key is not finite" in done.stderr
    assert "1 train sequence of 64 tokens" in xsa("diagnose", folder, *words).stdout


def test_a_result_is_shown_before_its_files_are_written(trained):
    words = ("diagnose", "runs/run", "--sequences", 1, "--csv", "/dev/full")
    done = trained(*words, expect=1)
    assert "/dev/full" in done.stderr and "removed" in done.stdout


def test_a_training_diagnoses_itself_as_the_command_does(trained):
    lines = [line for line in metrics(trained) if line["type"] == "diagnose"]
    assert [line["step"] for line in lines] == [4, 6]
    assert all("heads" not in layer for line in lines for layer in line["layers"])
    final = json.loads((trained.folder / "runs" / "run" / "diagnose.json").read_text())["layers"]
    for layer in final:
        del layer["heads"]
    assert lines[-1]["layers"] == final


def test_tensorboard_reads_what_a_training_writes(trained):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = loader.EventAccumulator(str(trained.folder / "runs" / "run"))
    events.Reload()

    def expected(kind, value):
        return [(x["step"], value(x)) for x in metrics(trained) if x["type"] == kind]

    def read(tag):
        return [(event.step, event.value) for event in events.Scalars(tag)]

    for kind, key in (("train", "loss"), ("train", "lr"), ("validation", "loss")):
        wanted = expected(kind, lambda line: line[key])
        assert len(wanted) >= 1 and read(f"{kind}/{key}") == [
            (step, pytest.approx(value, rel=1e-6)) for step, value in wanted
        ]
    for key in QUANTITIES:
        assert read(f"diagnose/{key}/layer_1") == [
            (step, pytest.approx(value, rel=1e-6, abs=1e-9))
            for step, value in expected("diagnose", lambda line: line["layers"][1][key])
        ]
    assert set(tag.split("/")[0] for tag in events.Tags()["scalars"]) == {
        "train",
        "validation",
        "diagnose",
    }
