"""How many threads run, and how long they wait for one another."""

import json
import os
import pathlib
import re
import subprocess

import pytest

CORES = sorted(os.sched_getaffinity(0))
SETTINGS = "GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS", "OMP_THREAD_LIMIT"
SHORT = ("--text", "text.txt", "--train.steps=2", "--train.warmup_steps=1", "--train.threads=0")
OWN = range(20, 100_000)  # turns of 0.03 ms: of 0.3 nanoseconds to 1.5 microseconds


def run(xsa, *words, cores=None, **settings):
    """With these settings of OpenMP alone, on these cores; what it printed."""
    environment = {key: value for key, value in os.environ.items() if key not in SETTINGS}
    done = subprocess.run(
        xsa.command(*words),
        cwd=xsa.folder,
        env=environment | settings,
        preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


def trained_threads(xsa, *words, **how):
    run(xsa, "train", "tiny.toml", "--name", "counted", "--overwrite", *SHORT, *words, **how)
    return json.loads((xsa.folder / "runs/counted/summary.json").read_text())["threads"]


def test_every_command_takes_the_cores_that_it_may_use(xsa):
    (xsa.folder / "short.txt").write_text("A short text. " * 40)
    for cores in ([CORES[0]], CORES):
        assert trained_threads(xsa, cores=cores) == len(cores)
        generated = run(xsa, "generate", "runs/counted", "--max-tokens=3", "--json", cores=cores)
        assert json.loads(generated.stdout)["threads"] == len(cores)
        words = ("eval", "runs/counted", "--text", "short.txt", "--json")
        assert json.loads(run(xsa, *words, cores=cores).stdout)["config"]["threads"] == len(cores)
        words = ("diagnose", "runs/counted", "--sequences=1", "--json")
        assert json.loads(run(xsa, *words, cores=cores).stdout)["threads"] == len(cores)
        words = ("bench", "block", "--lengths=8", "--width=16", "--heads=1", "--head-dim=16")
        measured = run(xsa, *words, "--rounds=1", "--json", cores=cores)
        assert json.loads(measured.stdout)["threads"] == len(cores)


def test_openmps_own_settings_go_before(xsa):
    assert trained_threads(xsa, OMP_NUM_THREADS="3") == 3
    assert trained_threads(xsa, "--train.threads=2", OMP_NUM_THREADS="3") == 2
    assert trained_threads(xsa, "--train.threads=3", OMP_THREAD_LIMIT="2") == 2


@pytest.mark.parametrize(
    "settings, turns",
    [
        ({}, OWN),
        ({"GOMP_SPINCOUNT": "77"}, [77]),
        ({"OMP_WAIT_POLICY": "passive"}, [0]),
        ({"OMP_WAIT_POLICY": "active"}, [30_000_000_000]),
    ],
)
def test_threads_wait_briefly_unless_the_environment_says_otherwise(xsa, settings, turns):
    shown = run(xsa, "--version", OMP_DISPLAY_ENV="verbose", **settings).stderr
    (found,) = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", shown)
    assert int(found) in turns


def test_a_program_that_started_itself_anew_keeps_words_environment_and_name(xsa):
    os.mkfifo(xsa.folder / "pipe")
    environment = {key: value for key, value in os.environ.items() if key not in SETTINGS}
    process = subprocess.Popen(
        xsa.command("tokenize", "a b", "--tokenizer", "byte"),
        cwd=xsa.folder,
        env=environment | {"MARK": "kept"},
        stderr=subprocess.PIPE,
        text=True,
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "a b: " in errors

    process = subprocess.Popen(
        xsa.command("tokenize", "pipe", "--tokenizer", "byte"),
        cwd=xsa.folder,
        env=environment | {"MARK": "kept"},
        stdout=subprocess.PIPE,
        text=True,
    )
    with open(xsa.folder / "pipe", "w") as pipe:  # opens once the program reads
        folder = pathlib.Path("/proc") / str(process.pid)
        assert (folder / "comm").read_text() == "xsa\n"
        lines = (folder / "environ").read_text().rstrip("\0").split("\0")
        kept = dict(line.split("=", 1) for line in lines)
        assert int(kept.pop("GOMP_SPINCOUNT")) in OWN
        assert kept == environment | {"MARK": "kept"}
        pipe.write("AB")
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.split()) == (0, ["65", "66"])
