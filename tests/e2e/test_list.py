"""xsa list: what lies in a folder of runs."""

import json

import pytest

SHORT = ("--text", "text.txt", "--train.steps=6", "--train.eval_every=3", "--train.log_every=2")


@pytest.fixture
def filled(xsa):
    xsa("train", "tiny.toml", "--name", "first", *SHORT)
    xsa("compare", "tiny.toml", "--name", "pair", *SHORT)
    run = xsa.folder / "runs" / "first"
    broken = xsa.folder / "runs" / "broken"
    broken.mkdir()
    for name in ("recipe.json", "metrics.jsonl"):
        (broken / name).write_bytes((run / name).read_bytes())
    lines = (broken / "metrics.jsonl").read_text().splitlines(keepends=True)
    (broken / "metrics.jsonl").write_text("".join(lines[:2]) + lines[2][:10])
    return xsa


def test_every_run_is_a_row_with_what_its_files_say(filled):
    rows = json.loads(filled("list", "runs", "--json").stdout)
    by_path = {row["path"]: row for row in rows}
    assert set(by_path) == {
        "runs/broken",
        "runs/first",
        "runs/pair/exclusive-seed1337",
        "runs/pair/standard-seed1337",
    }
    first = by_path["runs/first"]
    summary = json.loads((filled.folder / "runs/first/summary.json").read_text())
    for key in ("train_loss", "validation_loss", "best_validation_loss", "best_step", "attention"):
        assert first[key] == summary[key]
    assert (first["step"], first["steps"], first["is_done"], first["kind"]) == (6, 6, True, "run")
    assert first["age_s"] >= 0
    pair = by_path["runs/pair/standard-seed1337"]
    assert pair["kind"] == "run of a comparison" and pair["part_of"] == "runs/pair"
    broken = by_path["runs/broken"]
    assert not broken["is_done"] and 0 < broken["step"] < 6


def test_the_table_is_for_people(filled):
    lines = filled("list").stdout.splitlines()
    assert lines[0].split() == ["run", "attention", "steps", "training", "validation", "best"] + [
        "age",
        "of",
        "a",
    ]
    assert len(lines) == 5 and all(len(line) <= 120 for line in lines)
    assert any("6, done" in line and line.startswith("first") for line in lines)
    assert filled("list", "runs/pair").stdout.count("comparison") == 2


def test_a_folder_without_runs_says_so(xsa):
    assert "holds no run" in xsa("list", ".").stdout
    assert json.loads(xsa("list", ".", "--json").stdout) == []
    assert "nowhere" in xsa("list", "nowhere", expect=2).stderr
