"""The main job, from a text to a verdict."""

import collections
import fcntl
import json
import math
import re
import shutil
import signal
import subprocess

import pytest
from conftest import RECIPE, Program, made_text
from test_interrupt import wait_for


def unigram_entropy(text):
    counts = collections.Counter(text.encode())
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values())


def read_metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
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
    assert "train.lr (0.01 there, 0.001 asked for)" in refused.stderr
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
    assert found.pop("text")["is_trained_on"]
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


def asked(*more, command="compare", text="text.txt", steps=6, rows=2, sequences=2):
    """A comparison of some seconds."""
    return (
        *(command, "tiny.toml", "--text", text, f"--train.steps={steps}", "--train.threads=1"),
        *(f"--train.eval_rows={rows}", "--train.checkpoint_every=1"),
        *(f"--diagnose.sequences={sequences}", *more),
    )


def state_of(folder):
    """Every file but locks, by content."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def losses(program, name="tiny"):
    result = json.loads((program.folder / "runs" / name / "compare.json").read_text())
    return {
        kind: result["results"][kind]["validation_loss"]["values"]
        for kind in ("standard", "exclusive")
    }


@pytest.fixture(scope="module")
def quick_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    (folder / "text.txt").write_text(made_text(60_000))
    (folder / "tiny.toml").write_text(RECIPE)
    Program(folder)(*asked())
    return folder


@pytest.fixture
def quick(quick_once, tmp_path):
    """A finished comparison, measured on two rows, for a test to spoil."""
    shutil.copytree(quick_once, tmp_path, dirs_exist_ok=True)
    program = Program(tmp_path)
    program.run = tmp_path / "runs" / "tiny"
    return program


def test_two_rows_are_never_compared_with_sixty_four(quick):
    before = state_of(quick.run)
    refused = quick(*asked(rows=64), expect=2)
    assert "train.eval_rows (2 there, 64 asked for)" in refused.stderr
    assert "--overwrite" in refused.stderr and "--name" in refused.stderr
    assert state_of(quick.run) == before
    quick(*asked("--overwrite", rows=64))  # as it advises
    for summary in quick.run.glob("*/summary.json"):
        assert json.loads(summary.read_text())["validation_rows"] == 64


def test_an_overwrite_that_was_stopped_leaves_no_run_of_the_former_comparison(quick):
    standard, exclusive = (quick.run / f"{kind}-seed1337" for kind in ("standard", "exclusive"))
    process = quick.start(*asked("--overwrite", rows=64, steps=3000))
    wait_for(lambda: not (standard / "summary.json").exists())
    wait_for((standard / "checkpoints" / "LATEST").exists)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The same command without --overwrite continues" in errors
    assert not (exclusive / "recipe.json").exists() and not (exclusive / "summary.json").exists()
    assert not (quick.run / "compare.json").exists()


def test_runs_of_two_comparisons_in_one_folder_get_no_verdict(quick):
    """As an older program left them: a standard run of 64 rows, an exclusive one of 2."""
    quick(*asked("--name", "other", rows=64))
    other = quick.folder / "runs" / "other"
    shutil.rmtree(quick.run / "standard-seed1337")
    shutil.copytree(other / "standard-seed1337", quick.run / "standard-seed1337")
    shutil.copy(other / "recipe.json", quick.run / "recipe.json")
    for path in quick.run.glob("*/summary.json"):
        summary = json.loads(path.read_text())
        del summary["conditions"]
        path.write_text(json.dumps(summary))
    before = state_of(quick.run)
    refused = quick(*asked(rows=64), expect=2).stderr
    assert "exclusive-seed1337" in refused and "train.eval_rows (2 there, 64 asked for)" in refused
    assert state_of(quick.run) == before
    assert "cannot be compared" in quick("report", "runs/tiny", expect=1).stderr


def test_another_text_or_length_is_refused_before_anything_is_trained(quick):
    shutil.rmtree(quick.run / "standard-seed1337")
    before = state_of(quick.run)
    refused = quick(*asked(steps=7), expect=2)
    assert "train.steps (6 there, 7 asked for)" in refused.stderr
    text = quick.folder / "text.txt"
    text.write_text(text.read_text().replace("winter", "summer"))
    assert "changed in between" in quick(*asked(), expect=1).stderr
    assert state_of(quick.run) == before


def test_another_diagnosis_is_another_comparison(quick):
    refused = quick(*asked(sequences=3), expect=2)
    assert "diagnose.sequences (2 there, 3 asked for)" in refused.stderr


@pytest.mark.parametrize(
    "mistake",
    [
        {"text": "missing.txt"},
        {"more": ["--train.eval_texts=missing.txt"]},
        {"more": ["--train.eval_tasks=piqa", "--train.eval_task_data=missing"]},
        {"more": ["--model.context=100000"]},
        {"more": ["--model.kv_heads=3"]},
    ],
)
def test_a_mistake_loses_nothing_and_leaves_nothing_in_the_way(quick, mistake):
    before = state_of(quick.run)
    more = mistake.pop("more", [])
    for name in ("tiny", "fresh"):
        words = asked("--name", name, "--overwrite", *more, **mistake)
        done = subprocess.run(quick.command(*words), cwd=quick.folder, capture_output=True)
        assert done.returncode in (1, 2), done.stderr
    assert state_of(quick.run) == before
    assert not (quick.folder / "runs" / "fresh").exists()


def test_more_seeds_continue_a_comparison_and_fewer_show_fewer(quick):
    first = losses(quick)
    kept = state_of(quick.run / "standard-seed1337")
    assert "continuing it" in quick(*asked("--seeds", 2)).stderr
    found = losses(quick)
    assert [len(values) for values in found.values()] == [2, 2]
    assert all(found[kind][0] == first[kind][0] for kind in first)
    assert state_of(quick.run / "standard-seed1337") == kept
    quick(*asked("--seeds", 1))
    assert losses(quick) == first
    assert (quick.run / "exclusive-seed1338" / "summary.json").exists()


def test_settings_that_change_no_result_continue_a_comparison(quick):
    kept = state_of(quick.run / "standard-seed1337")
    (quick.folder / "copy.txt").write_text((quick.folder / "text.txt").read_text())
    unimportant = (
        *("--train.keep_checkpoints=1", "--train.log_every=3", "--train.diagnose_every=2"),
        *("--data.read_ahead=0", "--diagnose.batch_size=1"),
    )
    quick(*asked(*unimportant, text="copy.txt"))
    assert state_of(quick.run / "standard-seed1337") == kept


def test_a_folder_that_is_in_use_is_left_alone(quick):
    before = state_of(quick.run)
    for held in (quick.run, quick.run / "exclusive-seed1337"):
        with open(held / ".lock", "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            refused = quick(*asked("--overwrite", rows=64), expect=1).stderr
            assert f"{held.relative_to(quick.folder)}: another process" in refused
            assert state_of(quick.run) == before
    assert "xsa compare, process " in (quick.run / ".lock").read_text()


def test_each_kind_of_folder_is_its_own(quick):
    before = state_of(quick.run)
    for kind in ("exclusive", "standard"):  # whatever was compared before
        quick(*asked(f"--model.attention={kind}", command="train"))
        assert (quick.folder / "runs" / f"tiny-{kind}" / "summary.json").exists()
    for more in ([], ["--overwrite"], ["--resume"]):
        refused = quick(*asked("--name", "tiny", *more, command="train"), expect=2)
        assert "found a comparison" in refused.stderr
    assert state_of(quick.run) == before
    run = quick.folder / "runs" / "tiny-exclusive"
    before = state_of(run)
    for more in ([], ["--overwrite"]):
        refused = quick(*asked("--name", "tiny-exclusive", *more), expect=2)
        assert "found a run" in refused.stderr
        scored = ("eval", run, "--text", "text.txt", "--limit", 1, "--output")
        for folder, kind in ((run, "found a run"), (quick.run, "found a comparison")):
            assert kind in quick(*scored, folder, *more, expect=2).stderr
    assert state_of(run) == before
    assert not (quick.run / "scores.jsonl").exists()


def test_a_stopped_comparison_names_the_command_that_continues_it(quick):
    words = asked("--name", "stopped", steps=2000)
    process = quick.start(*words)
    latest = quick.folder / "runs" / "stopped" / "standard-seed1337" / "checkpoints" / "LATEST"
    wait_for(latest.exists)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The same command continues the comparison" in errors and "--resume" not in errors
    step = latest.read_text()
    process = quick.start(*words)
    wait_for(lambda: latest.read_text() > step)
    process.kill()
    assert "continuing it" in process.communicate(timeout=60)[1]


def test_a_run_that_was_stopped_is_held_to_what_it_measured_before_anything_is_written(quick):
    process = quick.start(*asked("--name", "half", steps=2000))
    half = quick.folder / "runs" / "half"
    wait_for((half / "standard-seed1337" / "checkpoints" / "LATEST").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    before = state_of(half)
    (quick.folder / "other.txt").write_text(made_text(50_000))
    for changes, code, named in (
        ({"rows": 3}, 2, "train.eval_rows (2 there, 3 asked for)"),
        ({"sequences": 3}, 2, "diagnose.sequences (2 there, 3 asked for)"),
        ({"text": "other.txt"}, 1, "another text"),
    ):
        refused = quick(*asked("--name", "half", steps=2000, **changes), expect=code)
        assert named in refused.stderr
        assert state_of(half) == before


def test_what_a_loss_that_is_not_finite_advises_works(quick):
    wild, tame = "--train.lr=1e30", "--train.lr=1e-3"
    for command in ("compare", "train"):
        words = asked("--name", f"wild-{command}", command=command)
        failed = quick(*words, wild, expect=1).stderr
        assert "Lower --train.lr" in failed and "--overwrite" in failed
        resume = ["--resume"] if command == "train" else []
        assert "--overwrite" in quick(*words, tame, *resume, expect=2).stderr
        quick(*words, tame, "--overwrite")
