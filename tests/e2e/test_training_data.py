"""Ready token shards, packed documents, and what is measured while a model trains."""

import json
import os
import signal
import struct

import pytest
from conftest import made_text
from test_interrupt import timeless, wait_for, weights

END_OF_TEXT = 256


def documents(size, seed):
    """Sentences, an end-of-text token before each."""
    ids = []
    for sentence in made_text(size, seed).splitlines():
        ids += [END_OF_TEXT, *sentence.encode()]
    return ids


@pytest.fixture
def nano(xsa):
    folder = xsa.folder / "nano"
    folder.mkdir()
    for name, size, seed in (("train.bin", 40_000, 1), ("val.bin", 4_000, 2)):
        ids = documents(size, seed)
        (folder / name).write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    tasks = xsa.folder / "tasks" / "piqa"
    tasks.mkdir(parents=True)
    rows = [
        {"goal": "the king", "sol1": "sees the fox.", "sol2": "zzz qqq", "label": n % 2}
        for n in range(12)
    ]
    (tasks / "validation.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (xsa.folder / "other.txt").write_text(made_text(5_000, 3))
    return xsa


PACKED = ("--train.steps=200", "--train.checkpoint_every=10", "--data.documents=packed")
EVALUATED = (
    "--train.eval_tasks=piqa",
    "--train.eval_task_data=tasks",
    "--train.eval_texts=other.txt",
)


def evaluations(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["type"] == "eval"]


def test_a_killed_run_on_packed_documents_resumes_to_the_same_bits_and_lines(nano):
    words = ("train", "tiny.toml", "--text", "nano", *PACKED, *EVALUATED, "--train.eval_limit=4")
    nano(*words, "--name", "whole")
    whole, broken = nano.folder / "runs" / "whole", nano.folder / "runs" / "broken"
    process = nano.start(*words, "--name", "broken")
    wait_for((broken / "checkpoints" / "step-000030").exists)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    nano(*words, "--name", "broken", "--resume", "--data.read_ahead=0")
    assert weights(broken) == weights(whole)
    assert timeless(broken) == timeless(whole)

    lines = evaluations(whole)
    assert [line["step"] for line in lines[::2]] == list(range(20, 201, 20))
    assert lines[0]["name"] == "piqa" and set(lines[0]["metrics"]) == {"acc", "acc_norm"}
    assert lines[1]["name"] == "other.txt"
    assert lines[-1]["metrics"]["bits_per_byte"] < lines[1]["metrics"]["bits_per_byte"] - 1
    summary = json.loads((whole / "summary.json").read_text())
    assert [each["name"] for each in summary["evaluations"]] == ["piqa", "other.txt"]
    assert 0 <= summary["data_wait_s"] < summary["elapsed_s"]
    assert not (nano.folder / "data").exists()  # ready shards need no cache


def test_what_is_measured_agrees_with_xsa_eval(nano):
    nano("train", "tiny.toml", "--text", "nano", "--name", "a", "--train.steps=20", *EVALUATED)
    task, text = evaluations(nano.folder / "runs" / "a")
    done = nano(
        *("eval", "runs/a", "--tasks", "piqa", "--data", "tasks", "--text", "other.txt", "--json")
    )
    results = json.loads(done.stdout)["results"]
    assert results["piqa"]["acc,none"] == task["metrics"]["acc"]
    assert results["other.txt"]["bits_per_byte,none"] == pytest.approx(
        text["metrics"]["bits_per_byte"], rel=1e-6
    )


def test_a_comparison_plots_what_is_measured(nano):
    nano("compare", "tiny.toml", "--text", "nano", "--name", "c", "--train.steps=40", *EVALUATED)
    page = (nano.folder / "runs" / "c" / "report.html").read_text()
    begin = page.index('id="data">') + len('id="data">')
    data = json.loads(page[begin : page.index("</script>", begin)])
    shown = [(each["name"], each["metric"]) for each in data["evaluations"]]
    assert shown == [("other.txt", "bits_per_byte"), ("piqa", "acc"), ("piqa", "acc_norm")]
    assert data["evaluations"][0]["curves"]["exclusive"]["mean"]["step"] == [20, 40]


@pytest.mark.parametrize(
    "words, says",
    [
        (("--train.eval_texts=none.txt",), "none.txt"),
        (("--train.eval_tasks=piqa",), "train.eval_task_data"),
        (("--train.eval_tasks=pika", "--train.eval_task_data=tasks"), "piqa"),
        (("--train.eval_tasks=boolq", "--train.eval_task_data=tasks"), "boolq"),
        (("--data.documents=packet",), "packed"),
        (("--data.source=nano/*.txt",), "no file has such a name"),
    ],
)
def test_a_mistake_costs_no_training(nano, words, says):
    process = nano.start("train", "tiny.toml", "--text", "nano", "--name", "bad", *words)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (1, 2) and says in errors
    assert not (nano.folder / "runs" / "bad" / "metrics.jsonl").exists()


def zero(path, begin=2000, size=2000):
    """In place, and back to the time that the file had."""
    stat = path.stat()
    with path.open("r+b") as file:
        file.seek(begin)
        before = file.read(size)
        file.seek(begin)
        file.write(bytes(size))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return before


def put_back(path, before, begin=2000):
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(before)


SHORT = ("--train.steps=3", "--train.warmup_steps=1")


@pytest.mark.parametrize("source", ["tokens", "text.txt", "nano"])
def test_no_result_comes_from_shards_that_changed(nano, source):
    nano("prepare", "text.txt", "-o", "tokens", "--tokenizer", "byte", "--validation-fraction", 0.1)
    words = ("train", "tiny.toml", "--text", source, *SHORT)
    nano(*words, "--name", "good")
    good = json.loads((nano.folder / "runs" / "good" / "summary.json").read_text())
    shard = {
        "tokens": nano.folder / "tokens" / "train-00000.bin",
        "nano": nano.folder / "nano" / "train.bin",
    }.get(source) or next((nano.folder / "data").glob("text*/train-00000.bin"))
    before = zero(shard)
    if source == "nano":  # there is no manifest: other data has another hash
        nano(*words, "--name", "other")
        other = json.loads((nano.folder / "runs" / "other" / "summary.json").read_text())
        assert other["data_sha256"] != good["data_sha256"]
    else:
        error = nano(*words, "--name", "bad", expect=1).stderr
        assert shard.name in error and "expected SHA-256" in error
        assert not (nano.folder / "runs" / "bad").exists()
    put_back(shard, before)
    nano(*words, "--name", "again")
    again = json.loads((nano.folder / "runs" / "again" / "summary.json").read_text())
    assert again["data_sha256"] == good["data_sha256"]


def test_a_shard_that_changes_while_training_ends_the_run(nano):
    process = nano.start(
        *("train", "tiny.toml", "--text", "nano", "--name", "run"),
        *("--train.steps=100000", "--train.checkpoint_every=10"),
    )
    run = nano.folder / "runs" / "run"
    wait_for((run / "checkpoints" / "step-000010").exists)
    zero(nano.folder / "nano" / "train.bin")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "train.bin" in errors and "expected SHA-256" in errors
    assert not (run / "summary.json").exists()


def test_a_bad_shard_in_a_folder_is_named(nano):
    folder = nano.folder / "fine"
    folder.mkdir()
    for name, size, seed in (("a_train_0", 40_000, 1), ("a_val_0", 4_000, 2)):
        ids = documents(size, seed)
        header = struct.pack("<256i", 20240520, 1, len(ids), *[0] * 253)
        (folder / f"{name}.bin").write_bytes(header + struct.pack(f"<{len(ids)}H", *ids))
    words = ("train", "tiny.toml", "--text", "fine", *SHORT)
    nano(*words, "--name", "good")
    (folder / "a_train_1.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    error = nano(*words, "--name", "bad", expect=2).stderr
    assert "a_train_1.bin" in error and "git lfs pull" in error
