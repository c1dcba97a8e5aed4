"""xsa generate: texts from a trained run, in pipes, with errors that say what to do."""

import json
import signal
import subprocess

import pytest
from gpt2_folder import write_gpt2


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a run that has learned a little."""
    from conftest import RECIPE, Program, made_text

    folder = tmp_path_factory.mktemp("generate")
    (folder / "text.txt").write_text(made_text(60_000))
    (folder / "tiny.toml").write_text(RECIPE)
    program = Program(folder)
    program("train", "tiny.toml", "--text", "text.txt", "--name", "first")
    return program


def generate(program, *words, expect=0):
    return program("generate", "runs/first", *words, expect=expect)


def as_json(program, *words):
    return json.loads(generate(program, *words, "--json").stdout)


def test_a_trained_run_speaks_its_grammar(trained):
    done = generate(trained, "--prompt", "the king ", "--max-tokens", "40", "--temperature", "0.5")
    assert done.stdout.startswith("the king ")
    assert " the " in done.stdout[9:]
    assert "40 generated" in done.stderr


def test_the_same_seed_says_the_same(trained):
    first = generate(trained, "--prompt", "the ").stdout
    assert generate(trained, "--prompt", "the ").stdout == first
    assert generate(trained, "--prompt", "the ", "--seed", "2").stdout != first


def test_prompts_come_by_line_by_file_and_by_pipe(trained):
    (trained.folder / "lines.txt").write_text("the fox\nthe river\n")
    result = as_json(trained, "--prompts", "lines.txt", "--samples", "2", "--max-tokens", "5")
    said = [(each["prompt"], each["sample"]) for each in result["continuations"]]
    assert said == [("the fox", 0), ("the fox", 1), ("the river", 0), ("the river", 1)]
    assert all(len(each["tokens"]) <= 5 for each in result["continuations"])
    piped = subprocess.run(
        trained.command("generate", "runs/first", "--prompt-file", "-", "--max-tokens", "3"),
        cwd=trained.folder,
        input="the sailor\nsees".encode(),
        capture_output=True,
        check=True,
    )
    assert piped.stdout.startswith(b"the sailor\nsees")


def test_a_line_may_end_as_on_windows(trained):
    (trained.folder / "windows.txt").write_bytes(b"the fox\r\nthe\rriver\r\n\r\nthe king")
    result = as_json(trained, "--prompts", "windows.txt", "--max-tokens", "2")
    said = [each["prompt"] for each in result["continuations"]]
    assert said == ["the fox", "the\rriver", "", "the king"]


def test_a_tokenizer_that_is_not_the_models_own_is_told(trained):
    gpt2 = write_gpt2(trained.folder / "gpt2")
    words = ("generate", gpt2, "--prompt", "the ", "--max-tokens", "2", "--json")
    done = trained(*words)
    assert "warning" not in done.stderr and json.loads(done.stdout)["warnings"] == []
    done = trained(*words, "--tokenizer", "byte")
    (warning,) = json.loads(done.stdout)["warnings"]
    assert "'byte' is not the model's own, 'gpt2'" in warning and warning in done.stderr


def test_several_texts_come_one_after_the_other(trained):
    words = ["--prompt", "the fox", "--prompt", "the king", "--max-tokens", "8"]
    one = generate(trained, *words, "--batch", "1").stdout
    assert one == generate(trained, *words).stdout
    assert one.startswith("--- prompt 1, sample 1\nthe fox")
    assert "\n\n--- prompt 2, sample 1\nthe king" in one


def test_bytes_that_are_no_text_are_shown_as_replaced(trained):
    done = subprocess.run(
        trained.command("generate", "runs/first", "--prompt-file", "-", "--max-tokens", "2"),
        cwd=trained.folder,
        input=b"\xff\xfe\xe2\x82",
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().startswith("\ufffd\ufffd\ufffd")


def test_a_cut_character_is_one_replacement_in_text_and_json(trained):
    command = trained.command("generate", "runs/first", "--max-tokens", "2", "--prompt-file", "-")
    for given, shown in ((b"a \xe2\x82 b", "a \ufffd b"), (b"\xf0\x9f\xa6 b", "\ufffd b")):
        run = {"cwd": trained.folder, "input": given, "capture_output": True, "check": True}
        assert subprocess.run(command, **run).stdout.decode().startswith(shown)
        said = json.loads(subprocess.run([*command, "--json"], **run).stdout)
        assert said["continuations"][0]["prompt"] == shown


def test_the_end_of_the_context_follows_its_rule(trained):
    prompt = ["--prompt", "the fox sees the king.", "--max-tokens", "100", "--ignore-end-of-text"]
    (stopped,) = as_json(trained, *prompt)["continuations"]
    assert stopped["ending"] == "context" and len(stopped["tokens"]) == 64 - 22 + 1
    (slid,) = as_json(trained, *prompt, "--at-context-end", "slide")["continuations"]
    assert slid["ending"] == "max_tokens" and len(slid["tokens"]) == 100
    assert slid["tokens"][: 64 - 22 + 1] == stopped["tokens"]
    refused = generate(trained, "--prompt", "the ", "--prompt", "x" * 65, expect=2)
    assert refused.stdout == "" and "prompt 2: expected at most 64 tokens" in refused.stderr
    assert "--at-context-end slide" in refused.stderr


def test_half_the_weights_say_nearly_the_same(trained):
    words = ["--prompt", "the king ", "--max-tokens", "8", "--temperature", "0"]
    assert generate(trained, *words).stdout == generate(trained, *words, "--dtype=bfloat16").stdout


@pytest.mark.parametrize(
    "words, names",
    [
        (["--temprature=1"], "did you mean '--temperature'"),
        (["--top-p=7"], "xsa: --top-p: expected a value in [0, 1], got 7\n"),
        (["--top-k=-1"], "--top-k: expected a value at least 0, got -1"),
        (["--max-tokens=0"], "--max-tokens: expected"),
        (["--max-tokens=many"], "--max-tokens: expected"),
        (["--batch=100"], "--batch: expected"),
        (["--at-context-end=wrap"], "--at-context-end: expected"),
        (["--prompts=-", "--prompt-file=-"], "one reader of standard input"),
        (["--prompt-file=-", "--prompt-file=-"], "one reader of standard input"),
        (["--dtype=int8"], "float32"),
        (["--tokenizer=bite"], "did you mean 'byte'"),
        (["--tokenizer=gpt2"], "50257"),
        (["--prompts=empty.txt"], "got no line"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(trained, words, names):
    (trained.folder / "empty.txt").touch()
    assert names in generate(trained, *words, expect=2).stderr


def test_a_missing_model_or_file_is_named(trained):
    assert "no-such" in trained("generate", "no-such", expect=2).stderr
    assert "no-such" in generate(trained, "--prompt-file", "no-such", expect=1).stderr
    (trained.folder / "nothing").mkdir(exist_ok=True)
    assert "nothing" in trained("generate", "nothing", expect=2).stderr


def test_an_interrupted_text_ends_with_its_line(trained):
    words = ["--prompt", "the ", "--max-tokens", "1000000", "--at-context-end", "slide"]
    words.append("--ignore-end-of-text")
    process = trained.start("generate", "runs/first", *words)
    assert process.stdout.read(20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.endswith("\n")


def test_a_full_disk_is_an_error(trained):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            trained.command("generate", "runs/first", "--max-tokens", "3"),
            cwd=trained.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1 and "is its disk full?" in done.stderr
