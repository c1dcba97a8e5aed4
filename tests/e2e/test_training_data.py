"""Ready token shards, packed documents, and what is measured while a model trains."""

import json
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
