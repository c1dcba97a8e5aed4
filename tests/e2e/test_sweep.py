"""A grid of trainings: resumable, and no point stops another."""

import fcntl
import json
import os
import pathlib
import shutil
import signal

import pytest
from conftest import made_text
from test_compare import state_of
from test_interrupt import timeless, wait_for, weights

SWEEP = """
base = "tiny.toml"

[data]
source = "text.txt"

[sweep]
title = "Rates"
figure = "fig4"

[[sweep.axes]]
name = "lr"
label = "learning rate"
field = "train.lr"
values = [1e-2, 2e-2]

[[sweep.axes]]
name = "attention"
field = "model.attention"
values = ["standard", "exclusive"]
"""

POINTS = [
    f"lr={lr},attention={kind},seed=1337"
    for lr in ("0.01", "0.02")
    for kind in ("standard", "exclusive")
]
SHORT = ("--train.steps=20", "--diagnose.sequences=4")


@pytest.fixture
def sweeping(xsa):
    (xsa.folder / "sweep.toml").write_text(SWEEP)
    return xsa


def read(xsa, name="sweep"):
    return json.loads((xsa.folder / "runs" / name / "sweep.json").read_text())


def statuses(xsa, name="sweep"):
    return [point["status"] for point in read(xsa, name)["points"]]


def results(xsa, name):
    """What a clock does not decide."""
    found = {}
    for point in read(xsa, name)["points"]:
        folder = xsa.folder / "runs" / name / point["folder"]
        summary = json.loads((folder / "summary.json").read_text())
        figures = [summary[key] for key in ("validation_loss", "train_loss", "data_sha256")]
        diagnosis = json.loads((folder / "diagnose.json").read_text())
        found[point["folder"]] = (figures, weights(folder), timeless(folder), diagnosis)
    return found


def test_each_point_is_the_run_that_train_makes(sweeping):
    done = sweeping("sweep", "sweep.toml", "--jobs", 2, *SHORT)
    sweep = read(sweeping)
    head = [sweep[key] for key in ("name", "title", "figure", "seeds")]
    assert head == ["sweep", "Rates", "fig4", [1337]]
    assert sweep["axes"] == [
        {"name": "lr", "label": "learning rate", "values": ["0.01", "0.02"]},
        {"name": "attention", "label": "attention", "values": ["standard", "exclusive"]},
    ]
    assert [point["folder"] for point in sweep["points"]] == [f"points/{name}" for name in POINTS]
    assert sweep["points"][3] == {
        "labels": {"lr": "0.02", "attention": "exclusive"},
        "settings": {"train.lr": 0.02, "model.attention": "exclusive"},
        "seed": 1337,
        "folder": f"points/{POINTS[3]}",
        "status": "done",
    }
    assert statuses(sweeping) == ["done"] * 4
    assert (sweeping.folder / "runs" / "sweep" / "report.html").exists()
    for point in sweep["points"]:
        summary = json.loads(
            (sweeping.folder / "runs" / "sweep" / point["folder"] / "summary.json").read_text()
        )
        assert f"{summary['validation_loss']:.4f}" in done.stdout
        assert summary["threads"] == 2  # the recipe's own

    settings = ("--text", "text.txt", "--train.lr=2e-2", "--model.attention=exclusive")
    sweeping("train", "tiny.toml", "--name", "alone", *settings, *SHORT)
    alone = sweeping.folder / "runs" / "alone"
    point = sweeping.folder / "runs" / "sweep" / "points" / POINTS[3]
    assert weights(point) == weights(alone)
    assert (point / "diagnose.json").read_bytes() == (alone / "diagnose.json").read_bytes()


def test_jobs_share_the_cores_where_the_recipe_leaves_threads_open(sweeping):
    sweeping("sweep", "sweep.toml", "--jobs", 64, "--train.threads=0", *SHORT)
    for name in POINTS:
        summary = sweeping.folder / "runs" / "sweep" / "points" / name / "summary.json"
        assert json.loads(summary.read_text())["threads"] == 1


LONG = ("--train.steps=150", "--train.checkpoint_every=10")


def stat_of(number):
    """State and parent of a process, as /proc tells them; nothing if it is gone."""
    try:
        text = pathlib.Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return "", 0
    state, parent = text.rsplit(")", 1)[1].split()[:2]
    return state, int(parent)


def children_of(process):
    numbers = [int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()]
    return [number for number in numbers if stat_of(number)[1] == process.pid]


def is_alive(number):
    return stat_of(number)[0] not in ("", "Z", "X")


def test_a_broken_sweep_continues_to_the_results_of_an_unbroken_one(sweeping):
    sweeping("sweep", "sweep.toml", "--name", "whole", *LONG)
    words = ("sweep", "sweep.toml", "--name", "broken", *LONG)
    points = sweeping.folder / "runs" / "broken" / "points"

    def breaks(point, how):
        process = sweeping.start(*words)
        wait_for((points / point / "checkpoints" / "LATEST").exists, 120)
        trainings = children_of(process)
        assert len(trainings) == 1
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
        wait_for(lambda: not any(map(is_alive, trainings)))  # nobody trains on
        assert not (points / point / "summary.json").exists()
        return process.returncode, errors

    assert breaks(POINTS[1], signal.SIGKILL)[0] == -9
    kept = (points / POINTS[0] / "summary.json").stat().st_mtime_ns

    code, errors = breaks(POINTS[2], signal.SIGINT)
    assert code == 130 and "The same command continues" in errors
    assert statuses(sweeping, "broken") == ["done", "done", "waiting", "waiting"]

    sweeping(*words)
    assert (points / POINTS[0] / "summary.json").stat().st_mtime_ns == kept
    assert results(sweeping, "broken") == results(sweeping, "whole")


def test_a_point_that_fails_stops_no_other_and_is_tried_again(sweeping):
    sweep = SWEEP.replace("[1e-2, 2e-2]", "[1e38, 2e-2]").replace('"standard", ', "")
    sweep += """
[[sweep.axes]]
name = "heads"
field = "model.kv_heads"
values = [1, 3]
"""
    (sweeping.folder / "sweep.toml").write_text(sweep)
    dry = sweeping("sweep", "sweep.toml", "--dry-run").stdout
    assert dry.count("would fail: ") == 2 and "kv_heads" in dry
    failed = sweeping("sweep", "sweep.toml", *SHORT, expect=1)
    assert statuses(sweeping) == ["failed", "failed", "done", "failed"]
    points = read(sweeping)["points"]
    assert "finite" in points[0]["error"]
    assert "kv_heads" in points[1]["error"]
    assert "3 of 4 points failed" in failed.stderr and points[0]["error"] in failed.stderr
    assert (sweeping.folder / "runs" / "sweep" / "report.html").exists()
    again = sweeping("sweep", "sweep.toml", *SHORT, "--json", expect=1)
    assert json.loads(again.stdout)["points"] == points


def test_the_best_rate_of_the_baseline_is_reused(sweeping):
    rule = '\n[sweep.reuse_best]\nof = "lr"\nfound_with = {attention = "standard"}\n'
    sweep = SWEEP.replace("[1e-2, 2e-2]", "[1e-6, 1e-2]")
    (sweeping.folder / "sweep.toml").write_text(sweep + rule)
    sweeping("sweep", "sweep.toml", *SHORT)
    assert [point["folder"] for point in read(sweeping)["points"]] == [
        "points/lr=1e-6,attention=standard,seed=1337",
        "points/lr=0.01,attention=standard,seed=1337",
        "points/lr=0.01,attention=exclusive,seed=1337",
    ]
    assert statuses(sweeping) == ["done"] * 3


def test_a_dry_run_lists_the_points_and_writes_nothing(sweeping):
    listed = sweeping("sweep", "sweep.toml", "--seeds", 2, "--dry-run").stdout
    for name in POINTS:
        assert name in listed and name.replace("1337", "1338") in listed
    assert f"8 trainings, {8 * 120 * 8 * 64 / 1e3:.0f}k tokens" in listed
    assert not (sweeping.folder / "runs").exists()
    plan = json.loads(sweeping("sweep", "sweep.toml", "--dry-run", "--json").stdout)
    assert [point["name"] for point in plan["points"]] == POINTS


def test_what_is_in_the_folder_is_kept(sweeping):
    sweeping("sweep", "sweep.toml", *SHORT)
    before = results(sweeping, "sweep")
    refused = sweeping("sweep", "sweep.toml", *SHORT, "--train.weight_decay=0.2", expect=2)
    assert "weight_decay (0.1 there, 0.2 asked for)" in refused.stderr
    assert results(sweeping, "sweep") == before
    sweeping("sweep", "sweep.toml", *SHORT, "--seeds", 2)  # more of the same keeps what there is
    grown = results(sweeping, "sweep")
    assert len(grown) == 8 and before.items() <= grown.items()
    sweeping("sweep", "sweep.toml", *SHORT, "--train.weight_decay=0.2", "--overwrite")
    assert results(sweeping, "sweep").keys() == before.keys()
    assert all(found != before[name] for name, found in results(sweeping, "sweep").items())

    (sweeping.folder / "runs" / "notes").mkdir()
    (sweeping.folder / "runs" / "notes" / "notes.txt").write_text("precious")
    refused = sweeping("sweep", "sweep.toml", "--name", "notes", expect=2)
    assert "found other files" in refused.stderr


def test_overwrite_clears_the_points_of_the_folder_and_nothing_elsewhere(sweeping):
    sweeping("sweep", "sweep.toml", *SHORT)
    folder = sweeping.folder / "runs" / "sweep"
    kept = sweeping.folder / "kept"
    shutil.copytree(folder / "points" / POINTS[0], kept)
    before = sorted(path.name for path in kept.iterdir())
    sweep = read(sweeping)
    sweep["points"] = [sweep["points"][0] | {"folder": "../../kept"}]  # and three are forgotten
    (folder / "sweep.json").write_text(json.dumps(sweep))
    sweeping("sweep", "sweep.toml", *SHORT, "--train.weight_decay=0.2", "--overwrite")
    assert sorted(path.name for path in kept.iterdir()) == before
    assert statuses(sweeping) == ["done"] * 4


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"recipe": 3}', '{"recipe": {}}'])
def test_a_sweep_json_of_others_is_named_and_can_be_overwritten(sweeping, content):
    folder = sweeping.folder / "runs" / "sweep"
    folder.mkdir(parents=True)
    (folder / "sweep.json").write_text(content)
    refused = sweeping("sweep", "sweep.toml", *SHORT, expect=1).stderr
    assert "sweep.json: expected what xsa sweep wrote" in refused and "--overwrite" in refused
    if content == "[]":
        sweeping("sweep", "sweep.toml", *SHORT, "--overwrite")


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"validation_loss": null, "data_sha256": "0"}']
)
def test_a_broken_summary_is_one_points_failure_with_its_remedy(sweeping, content):
    sweeping("sweep", "sweep.toml", *SHORT)
    before = results(sweeping, "sweep")
    summary = sweeping.folder / "runs" / "sweep" / "points" / POINTS[1] / "summary.json"
    summary.write_text(content)
    sweeping("sweep", "sweep.toml", *SHORT, expect=1)
    assert statuses(sweeping) == ["done", "failed", "done", "done"]
    assert "remove it" in read(sweeping)["points"][1]["error"]
    summary.unlink()
    sweeping("sweep", "sweep.toml", *SHORT)
    assert results(sweeping, "sweep") == before


def test_metrics_without_a_number_stop_no_sweep(sweeping):
    sweeping("sweep", "sweep.toml", *SHORT)
    point = sweeping.folder / "runs" / "sweep" / "points" / POINTS[1]
    (point / "summary.json").unlink()
    with open(point / "metrics.jsonl", "a") as metrics:
        metrics.write('{"type": "train", "step": 20, "loss": null}\n')
        metrics.write('{"type": 3, "step": null}\n[]\n')
    sweeping("sweep", "sweep.toml", *SHORT)
    assert statuses(sweeping) == ["done"] * 4


def test_a_folder_that_cannot_be_made_is_named(sweeping):
    refused = sweeping("sweep", "sweep.toml", "--output", "text.txt", expect=1).stderr
    assert "text.txt/sweep: cannot create folder: Not a directory" in refused


def test_a_text_that_changed_between_two_points_is_refused_before_training(sweeping):
    sweeping("sweep", "sweep.toml", *SHORT)
    folder = sweeping.folder / "runs" / "sweep"
    shutil.rmtree(folder / "points" / POINTS[2])
    before = state_of(folder)
    (sweeping.folder / "text.txt").write_text(made_text(60_000, seed=2))
    failed = sweeping("sweep", "sweep.toml", *SHORT, expect=1).stderr
    assert f"{POINTS[0]} was trained on another text" in failed and "changed in between" in failed
    assert state_of(folder) == before


@pytest.mark.parametrize(
    "setting, difference",
    [
        ("--train.eval_rows=2", "train.eval_rows (16 there, 2 asked for)"),
        ("--diagnose.seed=2", "diagnose.seed (1337 there, 2 asked for)"),
        ("--train.eval_texts=text.txt", "evaluated text.txt (nothing there, "),
    ],
)
def test_points_are_never_measured_in_two_ways(sweeping, setting, difference):
    sweeping("sweep", "sweep.toml", *SHORT)
    folder = sweeping.folder / "runs" / "sweep"
    before = state_of(folder)
    for more in ([], ["--seeds", 2]):
        refused = sweeping("sweep", "sweep.toml", *SHORT, setting, *more, expect=2).stderr
        assert difference in refused
    assert state_of(folder) == before


def test_a_mistake_loses_no_point(sweeping):
    sweeping("sweep", "sweep.toml", *SHORT)
    folder = sweeping.folder / "runs" / "sweep"
    before = state_of(folder)
    for mistake in (["--text", "missing.txt"], ["--train.eval_texts=missing.txt"]):
        failed = sweeping("sweep", "sweep.toml", *SHORT, *mistake, "--overwrite", expect=1)
        assert "missing.txt" in failed.stderr
        sweeping("sweep", "sweep.toml", *SHORT, *mistake, "--name", "fresh", expect=1)
    assert state_of(folder) == before
    assert not (sweeping.folder / "runs" / "fresh").exists()


def test_an_unreadable_recipe_is_one_points_failure_with_its_remedy(sweeping):
    sweeping("sweep", "sweep.toml", *SHORT)
    before = results(sweeping, "sweep")
    point = sweeping.folder / "runs" / "sweep" / "points" / POINTS[1]
    for content in ("", "{", "[]"):
        (point / "recipe.json").write_text(content)
        sweeping("sweep", "sweep.toml", *SHORT, expect=1)
        assert statuses(sweeping) == ["done", "failed", "done", "done"]
        error = read(sweeping)["points"][1]["error"]
        assert "recipe" in error and f"remove runs/sweep/points/{POINTS[1]}" in error
    shutil.rmtree(point)
    sweeping("sweep", "sweep.toml", *SHORT)
    assert results(sweeping, "sweep") == before


def test_a_sweep_that_was_killed_while_it_wrote_its_files_is_begun_anew(sweeping):
    sweeping("sweep", "sweep.toml", *SHORT)
    folder = sweeping.folder / "runs" / "sweep"
    whole = results(sweeping, "sweep")
    first = (folder / "sweep.json").read_bytes()
    for left, content in (("sweep.json", first), ("sweep.json.partial", first[:9])):
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / left).write_bytes(content)
        sweeping("sweep", "sweep.toml", *SHORT)
        assert results(sweeping, "sweep") == whole
        assert not list(folder.rglob("*.partial"))


def test_a_sweeps_folder_is_its_own_and_one_process_works_there(sweeping):
    sweeping("sweep", "sweep.toml", *SHORT)
    folder = sweeping.folder / "runs" / "sweep"
    before = state_of(folder)
    words = ("tiny.toml", "--text", "text.txt", "--name", "sweep")
    for command in ("train", "compare"):
        for more in ([], ["--overwrite"]):
            assert "found a sweep" in sweeping(command, *words, *more, expect=2).stderr
    for held in (folder, folder / "points" / POINTS[3]):
        with open(held / ".lock", "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            refused = sweeping("sweep", "sweep.toml", *SHORT, "--overwrite", expect=1).stderr
            assert f"{held.relative_to(sweeping.folder)}: another process" in refused
    assert state_of(folder) == before


def test_fewer_seeds_show_fewer_and_keep_the_others(sweeping):
    sweeping("sweep", "sweep.toml", *SHORT, "--seeds", 2)
    before = state_of(sweeping.folder / "runs" / "sweep" / "points")
    sweeping("sweep", "sweep.toml", *SHORT, "--train.keep_checkpoints=1", "--train.log_every=5")
    assert len(read(sweeping)["points"]) == 4
    assert state_of(sweeping.folder / "runs" / "sweep" / "points") == before


def test_points_that_failed_are_not_counted_as_progress(sweeping):
    sweep = SWEEP.replace("[1e-2, 2e-2]", "[1e38, 2e-2]")
    (sweeping.folder / "sweep.toml").write_text(sweep)
    failed = sweeping("sweep", "sweep.toml", *SHORT, expect=1).stderr
    last = [line for line in failed.splitlines() if line.startswith("sweep:")][-1]
    assert "(2 failed)" in last and " 50%" in last and "step 40/80" in last


def test_a_point_whose_process_is_killed_has_the_signal_as_its_error(sweeping):
    process = sweeping.start("sweep", "sweep.toml", *LONG)
    first = sweeping.folder / "runs" / "sweep" / "points" / POINTS[0]
    wait_for((first / "checkpoints" / "LATEST").exists, 120)
    with open(sweeping.folder / "runs" / "sweep" / "logs" / f"{POINTS[0]}.log", "a") as log:
        log.write("xsa: warning: slow\ntrain:  50%\ntrain:  60%\n")
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    os.kill(int(children.split()[0]), signal.SIGKILL)
    process.communicate(timeout=300)
    assert process.returncode == 1
    point = read(sweeping)["points"][0]
    assert point["error"] == "its process was ended by signal 9: too little memory?"
    assert statuses(sweeping)[1:] == ["done"] * 3


def test_other_threads_than_before_are_told(sweeping):
    words = ("sweep", "sweep.toml", *LONG, "--train.threads=0", "--jobs")
    process = sweeping.start(*words, 64)
    wait_for((sweeping.folder / "runs/sweep/points" / POINTS[0] / "checkpoints/LATEST").exists, 120)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    again = sweeping(*words, 1).stderr
    assert ("threads of a training: 1 before" in again) == (len(os.sched_getaffinity(0)) > 1)


def test_a_request_to_save_reaches_the_points_that_run(sweeping):
    never = ("--train.steps=4000", "--train.checkpoint_every=4000", "--train.keep_best=false")
    process = sweeping.start("sweep", "sweep.toml", *never)
    first = sweeping.folder / "runs" / "sweep" / "points" / POINTS[0]
    metrics = first / "metrics.jsonl"
    wait_for(lambda: metrics.exists() and metrics.stat().st_size > 0, 120)
    process.send_signal(signal.SIGUSR1)
    wait_for((first / "checkpoints" / "LATEST").exists, 120)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 129
    assert not (first / "summary.json").exists()
