"""`xsa eval` as a user runs it: held to lm-evaluation-harness's figures, killed, refused."""

import json
import math
import re
import shutil
import signal
import time

import pytest
from conftest import ROOT
from gpt2_folder import write_gpt2

GOLDEN = json.loads((ROOT / "tests" / "golden" / "evaluation_scores.json").read_text())


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return write_gpt2(tmp_path_factory.mktemp("models") / "gpt2")


@pytest.fixture
def golden_data(tmp_path):
    """The golden records, a file a task."""
    folder = tmp_path / "records"
    folder.mkdir()
    for task, case in GOLDEN.items():
        lines = [json.dumps(record) for record in case["records"]]
        (folder / f"{task}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def write_piqa(folder, count):
    folder.mkdir(exist_ok=True)
    records = [
        {
            "goal": f"To find house number {number},",
            "sol1": "walk down the street." + " And on." * (number % 7),
            "sol2": "swim up the river.",
            "label": number % 2,
        }
        for number in range(count)
    ]
    lines = [json.dumps(record) for record in records]
    (folder / "piqa.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def wait_for_lines(process, path, count):
    """Until the file has more lines than `count`, or the process has ended."""
    while process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") > count:
            break
        time.sleep(0.001)


def scores_of(folder, task):
    """[[(log-likelihood, greedy) a choice] a record]"""
    rows = [json.loads(line) for line in (folder / f"samples_{task}.jsonl").open()]
    return [
        [(float(value), greedy == "True") for value, greedy in row["filtered_resps"]]
        for row in rows
    ]


def results_of(folder):
    return json.loads((folder / "results.json").read_text())["results"]


@pytest.mark.parametrize("batch_size", [None, 1, 32])
def test_the_harness_says_the_same_of_the_golden_records(xsa, gpt2, golden_data, batch_size):
    options = ["--batch-size", batch_size] if batch_size else []
    output = xsa.folder / "out"
    done = xsa("eval", gpt2, "--data", golden_data, "--output", output, *options)
    for task, case in GOLDEN.items():
        for ours, theirs in zip(scores_of(output, task), case["scores"], strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert one == (pytest.approx(other[0], abs=1e-4), other[1]), task
        results = results_of(output)[task]
        for name, expected in case["results"].items():
            tolerance = 1e-3 if name.startswith("perplexity") else 1e-12
            if expected == "N/A":
                assert results[name] == expected, f"{task} {name}"
            else:
                assert results[name] == pytest.approx(expected, rel=tolerance), f"{task} {name}"
    assert any(score[0][1] for score in GOLDEN["lambada_openai"]["scores"])
    for word in ("|hellaswag", "acc_norm", "perplexity", "Stderr"):
        assert word in done.stdout


def test_a_killed_evaluation_continues_to_the_same_results(xsa, gpt2):
    data = write_piqa(xsa.folder / "records", 300)
    whole, killed = xsa.folder / "whole", xsa.folder / "killed"
    command = ("eval", gpt2, "--tasks", "piqa", "--data", data, "--batch-size", 2, "--output")
    xsa(*command, whole)
    journal = killed / "scores.jsonl"
    for minimum in (2, 150):
        process = xsa.start(*command, killed)
        wait_for_lines(process, journal, minimum)
        process.kill()
        process.communicate()
        assert not (killed / "results.json").exists(), "killed too late to show anything"
        kept = journal.read_bytes().count(b"\n")
    xsa(*command, killed)
    assert results_of(killed) == results_of(whole)
    assert scores_of(killed, "piqa") == scores_of(whole, "piqa")
    lines = journal.read_text().splitlines()
    assert len(lines) == 1 + 600 and kept > 100, "each request is scored once"


def test_ctrl_c_keeps_what_is_done(xsa, gpt2):
    data = write_piqa(xsa.folder / "records", 300)
    command = ("eval", gpt2, "--data", f"piqa={data}/piqa.jsonl", "--tasks", "piqa")
    command += ("--batch-size", 1, "--output", "out")
    process = xsa.start(*command)
    wait_for_lines(process, xsa.folder / "out" / "scores.jsonl", 2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "the same command continues from here" in errors
    xsa(*command)


def test_scores_of_another_model_or_of_other_records_are_not_taken(xsa, gpt2):
    data = write_piqa(xsa.folder / "records", 3)
    command = ("--tasks", "piqa", "--data", data, "--output", "out")
    xsa("eval", gpt2, *command)
    other = write_gpt2(xsa.folder / "other", seed=2)
    done = xsa("eval", other, *command, expect=2)
    assert "holds scores of another evaluation: model (" in done.stderr
    write_piqa(data, 4)
    done = xsa("eval", gpt2, *command, expect=2)
    assert "requests (6 there, 8 now)" in done.stderr


def test_a_model_of_ours_on_a_text(xsa):
    xsa("train", "tiny.toml", "--text", "text.txt", "--name", "run", "--train.steps=20")
    text = (xsa.folder / "text.txt").read_bytes()[:5000]
    (xsa.folder / "held.txt").write_bytes(text)
    done = xsa("eval", "runs/run", "--text", "held.txt", "--json")
    found = json.loads(done.stdout)["results"]["held.txt"]
    assert 0 < found["bits_per_byte,none"] < 8
    assert found["byte_perplexity,none"] == pytest.approx(2 ** found["bits_per_byte,none"])
    words = len(re.split(rb"\s+", text))
    assert found["word_perplexity,none"] == pytest.approx(
        math.exp(found["bits_per_byte,none"] * math.log(2) * len(text) / words)
    )


def test_a_limit_takes_the_beginning_of_a_text(xsa, gpt2):
    text = (xsa.folder / "text.txt").read_text()
    (xsa.folder / "beginning.txt").write_text(text[: 2 * 64])  # windows of the model's context
    command = ("eval", gpt2, "--tokenizer", "byte", "--json", "--text")
    limited = json.loads(xsa(*command, "text.txt", "--limit", 2).stdout)
    beginning = json.loads(xsa(*command, "beginning.txt").stdout)
    figures = [found["results"] for found in (limited, beginning)]
    assert figures[0]["text.txt"]["bits_per_byte,none"] == pytest.approx(
        figures[1]["beginning.txt"]["bits_per_byte,none"]
    )
    assert limited["xsa"]["windows"] == 2 and limited["config"]["limit"] == 2
    assert "windows of each text" in xsa("eval", "--help").stdout


def test_a_tokenizer_that_is_not_the_models_own_is_told(xsa, gpt2):
    (xsa.folder / "short.txt").write_text("the king sees the river.")
    command = ("eval", gpt2, "--text", "short.txt", "--output", "out", "--json")
    done = xsa(*command)
    assert "warning" not in done.stderr and json.loads(done.stdout)["xsa"]["warnings"] == []
    done = xsa(*command[:-2], "other", "--json", "--tokenizer", "byte")
    (warning,) = json.loads(done.stdout)["xsa"]["warnings"]
    assert "'byte' is not the model's own, 'gpt2'" in warning and warning in done.stderr
    written = json.loads((xsa.folder / "other" / "results.json").read_text())
    assert written["xsa"]["warnings"] == [warning]


def test_a_folder_with_a_vocabulary_of_its_own_is_evaluated_with_it(xsa):
    golden = ROOT / "tests" / "golden" / "bpe"
    folder = write_gpt2(xsa.folder / "own", vocabulary=512)
    data = write_piqa(xsa.folder / "records", 3)
    command = ("eval", folder, "--data", data, "--tasks", "piqa")
    refused = xsa(*command, expect=2).stderr
    assert "--tokenizer: byte or a folder" in refused
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        shutil.copy(golden / name, folder / name)
    results = json.loads(xsa(*command, "--json").stdout)
    assert results["tokenizer"] == str(folder)
    rules = results["xsa"]["tokenizer"]
    assert rules["prefix"] == 0 and {"text": "</s>", "id": 2} in rules["special_tokens"]
    assert results["eot_token_id"] == 2
    said = xsa("generate", folder, "--prompt", "the king", "--max-tokens", 3, "--json").stdout
    assert json.loads(said)["continuations"][0]["prompt_tokens"] == [468, 357]
    words = ("diagnose", folder, "--text", "text.txt", "--sequences", 2, "--json")
    assert json.loads(xsa(*words).stdout)["tokenizer"] == str(folder)
    asked = xsa("eval", folder, "--data", data, "--tasks", "piqa", "--dump-requests", "-").stdout
    first = json.loads(asked.splitlines()[0])
    ids = [str(i) for i in first["context_ids"] + first["continuation_ids"]]
    (xsa.folder / "ids").write_text(" ".join(ids))
    decoded = xsa("tokenize", "--tokenizer", folder, "--decode", "ids").stdout
    assert decoded == first["context"] + first["continuation"]


def test_equal_choices_tie_whatever_the_batch_size(xsa, gpt2):
    records = [
        {
            "context": f"Kai saw {number} lanterns." + " It was winter." * (number % 5),
            "question": "What next?",
            "answerA": "goes home by the river",
            "answerB": "sleeps until the orchard, the sailor and the mountain are all forgotten",
            "answerC": "goes home by the river",
            "label": "3",
        }
        for number in range(40)
    ]
    lines = [json.dumps(record) for record in records]
    (xsa.folder / "social_iqa.jsonl").write_text("\n".join(lines) + "\n")
    accuracies = set()
    for size in (1, 2, 4, 5, 3, 60):
        output = xsa.folder / f"out{size}"
        command = ("eval", gpt2, "--tasks", "social_iqa", "--data", ".", "--batch-size", size)
        xsa(*command, "--output", output)
        for first, _, third in scores_of(output, "social_iqa"):
            assert first == third
        accuracies.add(results_of(output)["social_iqa"]["acc,none"])
    assert accuracies == {0}  # of equals the first is taken, and the third was right


def test_overwrite_takes_nothing_before_all_is_checked(xsa, gpt2):
    data = write_piqa(xsa.folder / "records", 300)
    command = ("--tasks", "piqa", "--data", data, "--output", "out", "--overwrite")
    xsa("eval", gpt2, *command[:-1], "--limit", 2)
    before = {path.name: path.read_bytes() for path in (xsa.folder / "out").iterdir()}
    xsa("eval", "mistyped", *command, expect=2)
    xsa("eval", gpt2, *command, "--tokenizer", "bite", expect=2)
    xsa("eval", gpt2, *command, "--text", "none.txt", expect=1)
    assert {path.name: path.read_bytes() for path in (xsa.folder / "out").iterdir()} == before
    running = xsa.start("eval", gpt2, *command, "--batch-size", 1)
    wait_for_lines(running, xsa.folder / "out" / "scores.jsonl", 6)
    error = xsa("eval", gpt2, *command, expect=1).stderr
    assert "another evaluation is writing here" in error
    _, errors = running.communicate()
    assert running.returncode == 0, errors
    assert len((xsa.folder / "out" / "scores.jsonl").read_text().splitlines()) == 601


def test_one_resample_is_refused_before_anything_is_scored(xsa, gpt2):
    record = json.dumps({"text": "the king sees the river"})
    (xsa.folder / "lambada_openai.jsonl").write_text((record + "\n") * 3)
    command = ("eval", gpt2, "--tasks", "lambada_openai", "--data", ".", "--output", "out")
    error = xsa(*command, "--bootstrap-iters", 1, expect=2).stderr
    assert "--bootstrap-iters: expected 0 (no standard errors) or 2 and more, got 1" in error
    assert not (xsa.folder / "out").exists()
    xsa(*command, "--bootstrap-iters", 2)


def test_records_of_a_task_that_is_not_asked_are_refused(xsa, gpt2):
    write_piqa(xsa.folder, 2)
    for more in ([], ["--text", "text.txt"]):
        error = xsa("eval", gpt2, "--data", "piqa=piqa.jsonl", *more, expect=2).stderr
        assert "--data piqa=...: this task is not in --tasks; add it there" in error


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "expected --data DIR"),
        (["--data", "records"], "expected a model"),
        (["none", "--data", "records"], "expected a run"),
        (["GPT2", "--tasks", "piqa,pica", "--data", "records"], "pica"),
        (["GPT2", "--tasks", "piqa"], "piqa"),
        (["GPT2", "--text", "nothing.txt"], "nothing.txt"),
        (["GPT2", "--text", "empty.txt"], "empty file"),
        (["GPT2", "--text", "binary.bin"], "binary.bin: expected text, got binary data"),
        (["GPT2", "--text", "text.txt", "--batch-size", "0"], "--batch-size"),
        (["GPT2", "--tasks", "piqa", "--data", "records", "--output", "text.txt"], "text.txt"),
    ],
)
def test_what_cannot_be_done_is_said(xsa, gpt2, words, text):
    write_piqa(xsa.folder / "records", 2)
    (xsa.folder / "empty.txt").write_text("")
    (xsa.folder / "binary.bin").write_bytes(bytes(range(128, 256)) * 100)
    words = [str(gpt2) if word == "GPT2" else word for word in words]
    process = xsa.start("eval", *words)
    _, errors = process.communicate()
    assert process.returncode in (1, 2)
    assert text in errors
