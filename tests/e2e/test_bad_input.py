"""Bad input gets a clear error, the right exit code, and leaves what was there."""

import gzip
import json
import shutil
import subprocess

import pytest
from conftest import RECIPE, XSA, Program, made_text
from gpt2_folder import write_gpt2


def train(xsa, *words, expect):
    return xsa("train", "tiny.toml", "--train.steps=20", *words, expect=expect).stderr


def test_a_missing_text(xsa):
    assert "no-such.txt" in train(xsa, "--text", "no-such.txt", expect=1)
    assert not (xsa.folder / "runs").exists()


def test_an_empty_text(xsa):
    (xsa.folder / "empty.txt").touch()
    assert "empty.txt" in train(xsa, "--text", "empty.txt", expect=1)


def test_a_binary_file(xsa):
    (xsa.folder / "binary.bin").write_bytes(bytes(range(256)) * 500)
    assert "binary.bin" in train(xsa, "--text", "binary.bin", expect=1)


def test_a_packed_file_is_for_prepare(xsa):
    (xsa.folder / "rows.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n' * 99))
    error = train(xsa, "--text", "rows.jsonl.gz", expect=1)
    assert "rows.jsonl.gz" in error and "xsa prepare" in error


def test_a_source_without_a_name(xsa):
    error = train(xsa, "--data.source=", expect=2)
    assert "data.source" in error and "token shards" in error and "got ''" in error


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_run_without_a_name(xsa, command):
    error = xsa(command, "tiny.toml", "--text", "text.txt", "--name", "", expect=2).stderr
    assert "--name" in error and "got ''" in error
    assert not (xsa.folder / "runs").exists()


def test_a_program_without_its_recipes_says_where_it_looked(xsa):
    program = xsa.folder / "elsewhere" / "bin" / "xsa"
    program.parent.mkdir(parents=True)
    shutil.copy(XSA, program)
    done = subprocess.run([program, "train"], cwd=xsa.folder, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"none found in recipes or {xsa.folder / 'recipes'}" in done.stderr


def test_a_name_that_cannot_be_saved(xsa):
    name = b"text-\xff.txt".decode(errors="surrogateescape")
    (xsa.folder / name).write_text(made_text(60_000))
    for setting in ("--data.source", "--train.eval_texts"):
        error = train(xsa, f"{setting}={name}", expect=2)
        assert f"{setting[2:]}: expected UTF-8" in error and "another name" in error


def test_a_text_too_short_for_one_batch(xsa):
    (xsa.folder / "short.txt").write_text("to be or not to be")
    assert "at least 513 tokens" in train(xsa, "--text", "short.txt", expect=2)


def test_an_empty_folder(xsa):
    (xsa.folder / "nothing").mkdir()
    assert "nothing" in train(xsa, "--text", "nothing", expect=1)


def test_a_dangling_link(xsa):
    (xsa.folder / "link.txt").symlink_to("nowhere.txt")
    assert "link.txt" in train(xsa, "--text", "link.txt", expect=1)


@pytest.mark.parametrize(
    "words, names",
    [
        (["--train.stesp=5"], "did you mean"),
        (["--resum"], "did you mean '--resume'"),
        (["--train.lr=fast"], "train.lr"),
        (["--train.steps=0"], "train.steps"),
        (["--model.head_dim=15"], "head_dim"),
        (["--model.heads=3", "--model.kv_heads=2"], "kv_heads"),
        (["--model.exclusive_layers=9"], "exclusive_layers"),
        (["--model.attention=exlusive"], "did you mean 'exclusive'"),
        (["--data.tokenizer=bite"], "did you mean 'byte'"),
        (["--train.warmup_steps=100"], "warmup_steps"),
    ],
)
def test_an_impossible_recipe_is_a_usage_error(xsa, words, names):
    assert names in train(xsa, "--text", "text.txt", *words, expect=2)
    assert not (xsa.folder / "runs").exists()


def test_a_recipe_that_is_not_toml(xsa):
    (xsa.folder / "broken.toml").write_text("[train\nlr = ")
    assert "broken.toml" in xsa("compare", "broken.toml", expect=2).stderr


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory):
    """A folder with a run, for copies of it."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text.txt").write_text(made_text(60_000))
    (folder / "tiny.toml").write_text(RECIPE)
    words = ("--name", "first", "--text", "text.txt", "--train.steps=20")
    Program(folder)("train", "tiny.toml", *words)
    return folder


@pytest.fixture
def trained(trained_once, tmp_path):
    """The run, for a test to damage; its data stays where it was made."""
    shutil.copytree(trained_once, tmp_path, dirs_exist_ok=True)
    xsa = Program(tmp_path)
    run = xsa.folder / "runs" / "first"
    xsa.checkpoint = run / "checkpoints" / (run / "checkpoints" / "LATEST").read_text().strip()
    return xsa


@pytest.mark.parametrize(
    "file",
    ["model.safetensors", "optimizer.safetensors", "state.json", "recipe.json", "manifest.json"],
)
@pytest.mark.parametrize("how", ["truncated", "edited", "missing"])
def test_a_damaged_checkpoint_is_named_and_not_used(trained, file, how):
    path = trained.checkpoint / file
    content = bytearray(path.read_bytes())
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "edited":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:
        path.unlink()
    assert file in trained("diagnose", trained.checkpoint, expect=1).stderr


@pytest.mark.parametrize("file", ["LATEST", "optimizer.safetensors"])
def test_a_run_that_cannot_resume_says_how_to_go_on(trained, file):
    (trained.folder / "runs" / "first" / "summary.json").unlink()  # it was broken off
    latest = trained.checkpoint.parent / "LATEST"
    path = latest if file == "LATEST" else trained.checkpoint / file
    path.write_bytes(path.read_bytes()[: 0 if file == "LATEST" else 1000])
    words = ("--name", "first", "--text", "text.txt", "--resume")
    error = train(trained, *words, expect=1)
    assert file in error and "expected" in error and "got" in error
    if file == "LATEST":
        assert f"write {trained.checkpoint.name} into" in error
        latest.write_text(trained.checkpoint.name)
        train(trained, *words, expect=0)
    else:
        assert "--overwrite" in error


def test_a_shard_with_a_wrong_header_is_named(xsa):
    train(xsa, "--text", "text.txt", "--name", "first", expect=0)
    for shard in xsa.folder.glob("data/**/*.bin"):
        content = bytearray(shard.read_bytes())
        content[0] ^= 1
        shard.write_bytes(content)
        broken = shard
    error = xsa("diagnose", "runs/first", expect=1).stderr
    assert broken.parent.name in error and "magic" in error


def test_something_that_is_no_checkpoint(xsa):
    assert "text.txt" in xsa("diagnose", "text.txt", expect=2).stderr
    assert "nowhere" in xsa("diagnose", "nowhere", expect=2).stderr


def test_a_folder_that_holds_nothing_to_report(xsa):
    assert "holds no run, comparison" in xsa("report", ".", expect=1).stderr
    assert not (xsa.folder / "report.html").exists()


def test_other_files_in_the_way_are_never_removed(xsa):
    (xsa.folder / "runs" / "tiny").mkdir(parents=True)
    (xsa.folder / "runs" / "tiny" / "thesis.tex").write_text("precious")
    xsa("compare", "tiny.toml", "--text", "text.txt", "--overwrite", expect=2)
    words = ("--name", "tiny", "--text", "text.txt", "--overwrite")
    xsa("train", "tiny.toml", *words, expect=2)
    assert (xsa.folder / "runs" / "tiny" / "thesis.tex").read_text() == "precious"


def test_no_room_for_the_output_is_an_error(xsa):
    (xsa.folder / "runs").write_text("a file where a folder should be")
    assert "runs" in train(xsa, "--text", "text.txt", expect=1)


@pytest.mark.parametrize("words", [["--help"], ["train", "tiny.toml", "--dry-run"]])
def test_a_standard_output_without_room_is_an_error(xsa, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            xsa.command(*words), cwd=xsa.folder, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1 and "standard output" in done.stderr


def test_a_configuration_nested_too_deep(xsa):
    deep = 1_000_000
    folder = xsa.folder / "deep"
    folder.mkdir()
    (folder / "config.json").write_text('{"n_layer": ' + "[" * deep + "]" * deep + "}")
    (folder / "model.safetensors").touch()
    error = xsa("generate", folder, expect=1).stderr
    assert "config.json" in error and "100 levels of nesting" in error


def test_a_diagnosis_of_a_hugging_face_folder(xsa):
    gpt2 = write_gpt2(xsa.folder / "gpt2")
    words = ("diagnose", gpt2, "--text", "text.txt", "--sequences", "2", "--json")
    done = xsa(*words)
    result = json.loads(done.stdout)
    assert result["tokenizer"] == "gpt2" and result["warnings"] == []
    done = xsa(*words, "--tokenizer", "byte")
    assert json.loads(done.stdout)["tokenizer"] == "byte"
    assert "'byte' is not the model's own, 'gpt2'" in json.loads(done.stdout)["warnings"][0]
    assert "did you mean 'byte'?" in xsa(*words, "--tokenizer", "bite", expect=2).stderr
    (gpt2 / "merges.txt").write_text("h e\n")
    error = xsa(*words, expect=1).stderr
    assert "expected a tokenizer" in error and "vocab.json is missing" in error


def test_a_diagnosis_of_a_model_whose_tokenizer_nobody_tells(xsa):
    small = write_gpt2(xsa.folder / "small", vocabulary=300)
    words = ("diagnose", small, "--text", "text.txt", "--sequences", "2", "--json")
    assert "name one with --tokenizer" in xsa(*words, expect=2).stderr
    assert json.loads(xsa(*words, "--tokenizer", "byte").stdout)["warnings"] == []


@pytest.mark.parametrize("count", [0, -3])
def test_a_count_of_sequences_below_1(trained, count):
    error = trained("diagnose", "runs/first", "--sequences", str(count), expect=2).stderr
    assert f"--sequences: expected a whole number of at least 1, got '{count}'" in error
