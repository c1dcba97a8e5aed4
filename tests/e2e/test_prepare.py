"""xsa prepare as a user runs it: pyarrow's files, pipes, signals; read as others read it."""

import fcntl
import gzip
import json
import shutil
import signal
import subprocess
import sys
import termios
import time

import numpy
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest
from conftest import made_text
from test_tokenize import gpt2  # noqa: F401, a fixture


def documents(count, seed=1):
    """Texts of all sizes; a third of the words at random, so that no two are alike."""
    text = made_text(400_000, seed)
    sizes = [0, 1, 40, 700, 3000, 9000]
    return [f"{i} " + text[i : i + sizes[i % 6]] if i % 6 else "" for i in range(count)]


def write_jsonl(path, texts):
    path.write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)))


def shard_ids(path):
    """As llm.c reads a shard."""
    header = numpy.fromfile(path, numpy.int32, 256)
    assert header[0] == 20240520 and header[1] == 1
    ids = numpy.fromfile(path, numpy.uint16, offset=1024)
    assert header[2] == len(ids)
    return ids


def texts_in(folder, split):
    """The documents that the byte tokenizer's shards hold."""
    files = sorted(folder.glob(f"{split}-*.bin"))
    ids = numpy.concatenate([shard_ids(file) for file in files])
    parts = "".join(chr(i) if i < 256 else "\ue000" for i in ids).split("\ue000")
    assert parts[0] == ""
    return [part.encode("latin-1").decode() for part in parts[1:]]


def contents(folder):
    """All of a folder's files but hidden ones; the manifest without its folder's name."""
    files = {}
    for path in folder.glob("[!.]*"):
        files[path.name] = path.read_bytes()
    manifest = json.loads(files["manifest.json"])
    del manifest["name"]
    return {**files, "manifest.json": manifest}


def test_every_kind_of_file_that_python_writes(xsa):
    texts = documents(60)
    table = pyarrow.table({"id": list(range(60)), "text": texts})
    folder = xsa.folder
    pyarrow.parquet.write_table(table, folder / "a.parquet", compression="zstd", row_group_size=7)
    pyarrow.parquet.write_table(
        table, folder / "b.parquet", version="2.6", data_page_version="2.0", use_dictionary=False
    )
    large = table.cast(pyarrow.schema([("id", "int64"), ("text", pyarrow.large_string())]))
    with pyarrow.ipc.new_stream(folder / "c.arrow", large.schema) as writer:
        writer.write_table(large, max_chunksize=11)
    with pyarrow.ipc.new_file(folder / "d.arrow", table.schema) as writer:
        writer.write_table(table)
    write_jsonl(folder / "e.jsonl", texts)
    (folder / "f.jsonl.gz").write_bytes(gzip.compress((folder / "e.jsonl").read_bytes()))
    kept = [text for text in texts if text]
    words = ("--tokenizer", "byte", "--validation-fraction", 0.2)
    sides = set()
    for name in ("a.parquet", "b.parquet", "c.arrow", "d.arrow", "e.jsonl", "f.jsonl.gz"):
        done = xsa("prepare", name, "-o", "of-" + name, *words)
        assert "10 empty" in done.stdout
        train, held = texts_in(folder / f"of-{name}", "train"), texts_in(
            folder / f"of-{name}", "validation"
        )
        assert sorted(train + held) == sorted(kept)
        assert [text for text in kept if text not in held] == train
        sides.add(tuple(held))
    assert len(sides) == 1


def test_lists_and_fields_are_read_by_path_from_every_kind_of_file(xsa):
    def turns(n):
        sizes = [0, 1, 3, 70, 200]
        said = [f"{n} says {m}" if m % 5 != 2 else None for m in range(sizes[n % 5])]
        return [{"who": "a", "says": each} for each in said]

    rows = [{"id": n, "turns": turns(n) if n % 11 else None} for n in range(1, 201)]
    table = pyarrow.Table.from_pylist(rows)
    folder = xsa.folder
    pyarrow.parquet.write_table(table, folder / "a.parquet", row_group_size=7, data_page_size=500)
    pyarrow.parquet.write_table(table, folder / "b.parquet", use_compliant_nested_type=False)
    with pyarrow.ipc.new_stream(folder / "c.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=11)
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = []
    for row in rows:
        text = "\n".join(turn["says"] for turn in row["turns"] or [] if turn["says"])
        expected += [text] if text else []
    words = ("--tokenizer", "byte", "--validation-fraction", 0, "--on-bad-row", "skip")
    for name in ("a.parquet", "b.parquet", "c.arrow", "d.jsonl"):
        error = xsa("prepare", name, "-o", "none", *words[:4], expect=2).stderr
        assert "turns.who, turns.says" in error
        xsa("prepare", name, "-o", "of-" + name, *words, "--column", "turns.says")
        assert texts_in(folder / f"of-{name}", "train") == expected


def test_gpt2_ids_are_tiktokens(xsa, gpt2):  # noqa: F811
    texts = [t for t in documents(40) if t] + ["naïve “quotes” 数字 ١٢٣  \n\n x"]
    write_jsonl(xsa.folder / "a.jsonl", texts)
    xsa("prepare", "a.jsonl", "-o", "out", "--validation-fraction", 0, "--format", "nanogpt")
    ids = numpy.fromfile(xsa.folder / "out" / "train.bin", numpy.uint16)
    expected = []
    for text in texts:
        expected += [50256, *gpt2.encode_ordinary(text)]
    assert ids.tolist() == expected


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.002)


def rows_in(journal):
    try:
        return json.loads(journal.read_text())["counts"]["rows"]
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("how, code", [("SIGINT", 130), ("SIGTERM", 143), ("SIGKILL", -9)])
def test_a_broken_run_continues_to_the_bytes_of_an_unbroken_one(xsa, how, code):
    texts = documents(6000)
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), xsa.folder / "a.parquet")
    write_jsonl(xsa.folder / "b.jsonl", texts[::-1])
    words = ("--shard-tokens", 700_000, "--save-mib", 1, "--tokenizer", "byte")
    xsa("prepare", "a.parquet", "b.jsonl", "-o", "whole", *words, "--threads", 1)
    journal = xsa.folder / "broken" / "journal.json"
    for _ in range(20):  # it may be quicker than the signal
        process = xsa.start("prepare", "a.parquet", "b.jsonl", "-o", "broken", *words)
        wait_for(lambda: process.poll() is not None or rows_in(journal) > 0)
        process.send_signal(getattr(signal, how))
        _, errors = process.communicate(timeout=60)
        if process.returncode != 0:
            break
        shutil.rmtree(xsa.folder / "broken")
    assert process.returncode == code, errors
    if how != "SIGKILL":
        assert "the same command continues" in errors
    xsa("prepare", "a.parquet", "b.jsonl", "-o", "broken", *words)
    assert contents(xsa.folder / "broken") == contents(xsa.folder / "whole")


def piped(xsa, data, *words, expect=0):
    done = subprocess.run(
        xsa.command("prepare", "-", *words), input=data, cwd=xsa.folder, capture_output=True
    )
    assert done.returncode == expect, done.stderr
    return done.stderr.decode()


def unread_bytes(pipe):
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_standard_input_continues_where_it_was_stopped(xsa):
    lines = "".join(json.dumps({"text": t}) + "\n" for t in documents(3000)).encode()
    words = ("--type", "jsonl", "--tokenizer", "byte", "--save-mib", 1)
    piped(xsa, lines, "-o", "whole", *words)
    process = subprocess.Popen(
        xsa.command("prepare", "-", "-o", "broken", *words), stdin=subprocess.PIPE, cwd=xsa.folder
    )
    process.stdin.write(lines[: len(lines) // 2])
    process.stdin.flush()
    journal = xsa.folder / "broken" / "journal.json"
    wait_for(lambda: journal.exists() and unread_bytes(process.stdin) == 0)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
    assert json.loads(journal.read_text())["counts"]["rows"] > 500
    process.stdin.close()
    error = piped(xsa, b'{"text": "other"}\n' + lines, "-o", "broken", *words, expect=1)
    assert "standard input is not what it was" in error
    piped(xsa, lines, "-o", "broken", *words)
    assert contents(xsa.folder / "broken") == contents(xsa.folder / "whole")


def test_standard_input_must_be_what_it_is_said_to_be(xsa):
    words = ("-o", "out", "--tokenizer", "byte")
    assert "--type jsonl" in piped(xsa, b'{"text": "a"}\n', *words, expect=2)
    piped(xsa, b"plain text", *words)
    sides = [texts_in(xsa.folder / "out", side) for side in ("train", "validation")]
    assert sides == [["plain tex"], ["t"]]  # a text alone is cut


def test_standard_input_is_known_by_its_bytes(xsa):
    words = ("-o", "out", "--type", "jsonl", "--tokenizer", "byte")
    one = "".join(json.dumps({"text": f"document {i}"}) + "\n" for i in range(50)).encode()
    other = one.replace(b"document 7", b"document 8")
    piped(xsa, one, *words)
    first = contents(xsa.folder / "out")
    error = piped(xsa, other, *words, expect=2)
    assert "out" in error and "another standard input" in error and "--overwrite" in error
    for shorter in (one[: len(one) // 2], b""):
        piped(xsa, shorter, *words, expect=2)
    piped(xsa, one, *words)
    assert contents(xsa.folder / "out") == first
    piped(xsa, other, *words, "--overwrite")
    train = texts_in(xsa.folder / "out", "train") + texts_in(xsa.folder / "out", "validation")
    assert train.count("document 8") == 2


def test_an_empty_standard_input_costs_nothing(xsa):
    piped(xsa, b"a text to keep", "-o", "out", "--tokenizer", "byte")
    first = contents(xsa.folder / "out")
    error = piped(xsa, b"", "-o", "out", "--tokenizer", "byte", "--overwrite", expect=1)
    assert "expected text, got nothing" in error
    assert contents(xsa.folder / "out") == first


def test_a_folder_that_cannot_be_written_is_named(xsa):
    (xsa.folder / "out").write_text("a file where a folder should be")
    assert "out" in xsa("prepare", "text.txt", "-o", "out", expect=1).stderr


def test_the_help_teaches(xsa):
    text = xsa("prepare", "--help").stdout
    for word in ("fineweb", "jsonl.zst", "xsa prepare - ", "--overwrite", "--on-bad-row"):
        assert word in text


def test_training_reads_what_was_prepared(xsa):
    xsa("prepare", "text.txt", "-o", "tokens", "--tokenizer", "byte", "--validation-fraction", 0.1)
    words = ("--data.source", "tokens", "--train.steps=3", "--train.warmup_steps=1")
    xsa("train", "tiny.toml", "--name", "first", *words)
    recipe = json.loads((xsa.folder / "runs" / "first" / "recipe.json").read_text())
    assert recipe["data"]["source"] == "tokens"
    assert not (xsa.folder / "data").exists()  # what was prepared needs no cache


def test_training_needs_a_held_out_text_and_its_advice_works(xsa):
    lines = made_text(60_000).splitlines()
    write_jsonl(xsa.folder / "some.jsonl", ["\n".join(lines[n::9]) for n in range(9)])
    for source in ("text.txt", "some.jsonl"):
        words = (source, "-o", "of-" + source, "--tokenizer", "byte")
        xsa("prepare", *words, "--validation-fraction", 0)
        train = ("train", "tiny.toml", "--name", source, "--data.source", "of-" + source)
        train += ("--train.steps=3", "--train.warmup_steps=1")
        error = xsa(*train, expect=2).stderr
        assert "got none" in error and "--overwrite and --validation-fraction 0.01" in error
        assert "held out" in xsa(
            "prepare", *words, "--overwrite", "--validation-fraction", 0.01
        ).stdout
        xsa(*train)


def test_the_default_fraction_leaves_a_text_to_validate_on(xsa):
    text = made_text(30_000, 7).encode()
    piped(xsa, text, "-o", "piped", "--tokenizer", "byte")
    write_jsonl(xsa.folder / "few.jsonl", [made_text(20_000, n) for n in range(3)])
    xsa("prepare", "few.jsonl", "-o", "few", "--tokenizer", "byte")
    for name in ("piped", "few"):
        words = ("--data.source", name, "--train.steps=3", "--train.warmup_steps=1")
        xsa("train", "tiny.toml", "--name", name, *words)
