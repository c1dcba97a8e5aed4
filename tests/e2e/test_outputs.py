"""What a command writes replaces neither its inputs nor files of others."""

import json

import pytest
from gpt2_folder import write_gpt2

RECORD = {"goal": "To cut bread,", "sol1": "use a knife.", "sol2": "use a spoon.", "label": 0}


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return write_gpt2(tmp_path_factory.mktemp("models") / "gpt2")


def refused(xsa, *words):
    return xsa(*words, expect=2).stderr


def test_a_diagnosis_leaves_inputs_and_other_files_alone(xsa):
    xsa("train", "tiny.toml", "--name", "first", "--text", "text.txt", "--train.steps=5")
    words = ("diagnose", "runs/first", "--sequences", 2, "--file")
    before = {path: path.read_bytes() for path in xsa.folder.rglob("*") if path.is_file()}
    weights = next(xsa.folder.rglob("model.safetensors"))
    for path in ("text.txt", "runs/first/recipe.json", weights):
        for more in ([], ["--overwrite"]):
            assert "is what the command reads" in refused(xsa, *words, path, *more)
    assert "--overwrite" in refused(xsa, *words, "tiny.toml")
    assert "got a folder" in xsa(*words, "runs", expect=1).stderr
    assert before == {path: path.read_bytes() for path in xsa.folder.rglob("*") if path.is_file()}

    for _ in range(2):  # the second time it replaces its own
        xsa(*words, "runs/first/mine.json")
    xsa(*words, "tiny.toml", "--overwrite")
    assert json.loads((xsa.folder / "tiny.toml").read_text())["sequences"] == 2
    xsa(*words, "/dev/null")


def test_requests_leave_records_alone(xsa):
    records = xsa.folder / "piqa.jsonl"
    records.write_text(json.dumps(RECORD) + "\n")
    words = ("eval", "--tasks", "piqa", "--data", "piqa=piqa.jsonl", "--dump-requests")
    for more in ([], ["--overwrite"]):
        assert "is what the command reads" in refused(xsa, *words, "piqa.jsonl", *more)
    assert "--overwrite" in refused(xsa, *words, "text.txt")
    assert json.loads(records.read_text()) == RECORD
    for _ in range(2):
        xsa(*words, "requests.jsonl")


def test_an_evaluation_leaves_folders_of_others_alone(xsa, gpt2):
    words = ("eval", gpt2, "--text", "text.txt", "--limit", 1, "--output")
    assert "is what the command reads" in refused(xsa, *words, gpt2, "--overwrite")
    assert "holds other files" in refused(xsa, *words, ".")
    foreign = xsa.folder / "out" / "results.json"
    foreign.parent.mkdir()
    foreign.write_text('{"results": "mine"}')
    assert "results.json is there" in refused(xsa, *words, "out")
    assert foreign.read_text() == '{"results": "mine"}'
    for more in (["--overwrite"], [], ["--overwrite"]):
        xsa(*words, "out", *more)
    assert "xsa" in json.loads(foreign.read_text())


def test_an_evaluation_begun_anew_may_ask_something_else(xsa, gpt2):
    words = ("eval", gpt2, "--text", "text.txt", "--output", "out", "--limit")
    xsa(*words, 1)
    assert "--overwrite" in refused(xsa, *words, 2)
    xsa(*words, 2, "--overwrite")
    assert json.loads((xsa.folder / "out" / "results.json").read_text())["xsa"]["windows"] == 2
