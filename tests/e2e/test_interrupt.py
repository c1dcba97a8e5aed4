"""Ctrl-C, SIGTERM and SIGKILL: nothing is lost, and a resumed run has the unbroken run's bits."""

import hashlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import time

import pytest


def weights(run):
    checkpoint = run / "checkpoints" / (run / "checkpoints" / "LATEST").read_text().strip()
    return hashlib.sha256((checkpoint / "model.safetensors").read_bytes()).hexdigest()


def timeless(run):
    """The metrics without what a clock decides."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    timed = ("tokens_per_s", "data_wait_s", "elapsed_s")
    return [{key: value for key, value in line.items() if key not in timed} for line in lines]


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.005)


def trained_steps(run):
    """The last step in its metrics; 0 before there is one."""
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    steps = [json.loads(line)["step"] for line in lines if line.endswith("\n")]
    return max(steps, default=0)


LONG = ("--train.steps=400", "--train.checkpoint_every=10", "--train.log_every=1")
LONG += ("--text", "text.txt")


@pytest.mark.parametrize(
    "how, code",
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGKILL, -9),
    ],
)
def test_a_broken_run_resumes_to_the_bits_of_an_unbroken_one(xsa, how, code):
    xsa("train", "tiny.toml", "--name", "whole", *LONG)
    broken = xsa.folder / "runs" / "broken"
    process = xsa.start("train", "tiny.toml", "--name", "broken", *LONG)
    wait_for(lambda: trained_steps(broken) > 12)  # beyond a checkpoint, before the next
    process.send_signal(how)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    if how != signal.SIGKILL:
        assert "--resume" in errors
    assert not (broken / "summary.json").exists()

    xsa("train", "tiny.toml", "--name", "broken", "--resume", *LONG)
    assert weights(broken) == weights(xsa.folder / "runs" / "whole")
    assert timeless(broken) == timeless(xsa.folder / "runs" / "whole")


def test_a_request_to_save_saves_and_training_goes_on(xsa):
    words = (*LONG, "--train.checkpoint_every=400", "--train.keep_best=false")
    xsa("train", "tiny.toml", "--name", "whole", *words)
    run = xsa.folder / "runs" / "asked"
    process = xsa.start("train", "tiny.toml", "--name", "asked", *words)
    wait_for(lambda: (run / "metrics.jsonl").exists() and (run / "metrics.jsonl").stat().st_size)
    process.send_signal(signal.SIGUSR1)
    wait_for((run / "checkpoints" / "LATEST").exists)
    assert not (run / "summary.json").exists()  # saved while it went on
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "as SIGUSR1 asked" in errors
    assert weights(run) == weights(xsa.folder / "runs" / "whole")


def test_a_closed_terminal_loses_nothing(xsa):
    """Its output goes nowhere: to a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        xsa.command("train", "tiny.toml", "--name", "first", *LONG),
        cwd=xsa.folder,
        stdout=writer,
        stderr=writer,
    )
    os.close(writer)
    run = xsa.folder / "runs" / "first"
    wait_for((run / "checkpoints" / "LATEST").exists)
    os.close(reader)
    process.send_signal(signal.SIGUSR1)  # makes it say something
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=60) == 129
    lines = (run / "metrics.jsonl").read_text().splitlines()
    state = json.loads(
        (
            run / "checkpoints" / (run / "checkpoints/LATEST").read_text().strip() / "state.json"
        ).read_text()
    )
    assert state["run"]["step"] >= json.loads(lines[-1])["step"]


def test_without_latest_the_newest_whole_checkpoint_is_resumed(xsa):
    run = xsa.folder / "runs" / "first"
    process = xsa.start("train", "tiny.toml", "--name", "first", *LONG)
    wait_for((run / "checkpoints" / "LATEST").exists)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    newest = (run / "checkpoints" / "LATEST").read_text().strip()
    (run / "checkpoints" / "LATEST").unlink()
    done = xsa("train", "tiny.toml", "--name", "first", "--resume", *LONG)
    assert "has no LATEST" in done.stderr and newest in done.stderr
    xsa("train", "tiny.toml", "--name", "whole", *LONG)
    assert weights(run) == weights(xsa.folder / "runs" / "whole")


def test_a_diagnosis_can_be_stopped(xsa):
    xsa("train", "tiny.toml", "--name", "first", "--text", "text.txt", "--train.steps=5")
    ours, theirs = pty.openpty()  # progress is shown at once
    words = xsa.command("diagnose", "runs/first", "--sequences", 10**12)
    with subprocess.Popen(words, cwd=xsa.folder, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while b"sequence" not in shown:
            shown += os.read(ours, 1000)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    os.close(ours)


def has_open(process, path):
    files = pathlib.Path(f"/proc/{process.pid}/fd")
    return any(file.exists() and file.resolve() == path for file in files.iterdir())


@pytest.mark.parametrize("how, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "words",
    [
        ["tokenize", "pipe"],
        ["generate", "none", "--prompt-file", "pipe"],
        ["generate", "none", "--prompts", "pipe"],
        ["train", "pipe"],
    ],
)
def test_a_wait_for_a_pipe_can_be_stopped(xsa, words, how, code):
    os.mkfifo(xsa.folder / "pipe")
    process = xsa.start(*words)
    wait_for(lambda: has_open(process, (xsa.folder / "pipe").resolve()))
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode == code


def test_fresh_processes_train_to_the_same_bits(xsa):
    """A library that chooses its code at its first call may choose anew in each process."""
    found = set()
    for name in range(12):
        xsa("train", "tiny.toml", "--name", name, "--text", "text.txt", "--train.steps=5")
        found.add(weights(xsa.folder / "runs" / str(name)))
    assert len(found) == 1


def test_a_killed_comparison_continues_where_it_was(xsa):
    words = ("compare", "tiny.toml", *LONG)
    process = xsa.start(*words)
    second = xsa.folder / "runs" / "tiny" / "exclusive-seed1337" / "checkpoints" / "LATEST"
    wait_for(second.exists, 120)
    process.kill()
    process.wait()
    first = weights(xsa.folder / "runs" / "tiny" / "standard-seed1337")
    xsa(*words)
    assert weights(xsa.folder / "runs" / "tiny" / "standard-seed1337") == first
    result = json.loads((xsa.folder / "runs" / "tiny" / "compare.json").read_text())

    xsa(*words, "--name", "unbroken")
    unbroken = json.loads((xsa.folder / "runs" / "unbroken" / "compare.json").read_text())
    for kind in ("standard", "exclusive"):
        assert (
            result["results"][kind]["validation_loss"]
            == unbroken["results"][kind]["validation_loss"]
        )


def test_a_run_in_the_way_is_kept(xsa):
    words = ("train", "tiny.toml", "--name", "first", "--text", "text.txt", "--train.steps=20")
    xsa(*words)
    before = weights(xsa.folder / "runs" / "first")
    refused = xsa(*words, expect=2)
    assert "--resume" in refused.stderr and "--overwrite" in refused.stderr
    assert weights(xsa.folder / "runs" / "first") == before


def test_a_text_that_changed_in_between_is_noticed(xsa):
    words = ("train", "tiny.toml", "--name", "first", *LONG)
    process = xsa.start(*words)
    wait_for((xsa.folder / "runs" / "first" / "checkpoints" / "LATEST").exists)
    process.kill()
    process.communicate()
    text = xsa.folder / "text.txt"
    text.write_text(text.read_text().replace("winter", "summer"))
    assert "has changed" in xsa(*words, "--resume", expect=1).stderr


def test_a_comparison_never_mixes_two_texts(xsa):
    words = (
        "compare",
        "tiny.toml",
        "--text",
        "text.txt",
        "--train.steps=10",
        "--train.warmup_steps=1",
    )
    xsa(*words)
    for left in ("compare.json", "exclusive-seed1337"):
        path = xsa.folder / "runs" / "tiny" / left
        path.unlink() if path.is_file() else shutil.rmtree(path)
    text = xsa.folder / "text.txt"
    text.write_text(text.read_text().replace("winter", "summer"))
    assert "changed in between" in xsa(*words, expect=1).stderr
