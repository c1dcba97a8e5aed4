"""`xsa eval --dump-requests`: records in, what a model would be asked out, no model between."""

import gzip
import json
import pathlib

import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "evaluation.jsonl"


def golden_cases():
    """{task: its golden cases}"""
    cases = {}
    for line in GOLDEN.read_text().splitlines():
        case = json.loads(line)
        if "task" in case:
            cases.setdefault(case["task"], []).append(case)
    return cases


def expected_lines():
    return [
        {
            "task": task,
            "index": index,
            "choice": choice,
            "context": request["context"],
            "continuation": request["continuation"],
            "context_ids": request["ctx_ids"],
            "continuation_ids": request["cont_ids"],
        }
        for task, cases in golden_cases().items()
        for index, case in enumerate(cases)
        for choice, request in enumerate(case["requests"])
    ]


def write_jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def write_gz(path, records):
    with gzip.open(path.with_suffix(".jsonl.gz"), "wt") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def write_parquet(path, records):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path.with_suffix(".parquet"))


def write_stream(path, records):
    table = pyarrow.Table.from_pylist(records)
    with pyarrow.ipc.new_stream(str(path.with_suffix(".arrow")), table.schema) as writer:
        writer.write_table(table)


def dump(xsa, *words):
    """The requests, from standard output."""
    lines = xsa("eval", *words, "--dump-requests", "-").stdout.splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("write", [write_jsonl, write_gz, write_parquet, write_stream])
def test_the_golden_requests_from_every_kind_of_file(xsa, write):
    (xsa.folder / "records").mkdir()
    for task, cases in golden_cases().items():
        write(xsa.folder / "records" / f"{task}.jsonl", [case["record"] for case in cases])
    tasks = ",".join(golden_cases())
    found = dump(xsa, "--tasks", tasks, "--data", "records")
    assert [list(line.items()) for line in found] == [
        list(line.items()) for line in expected_lines()
    ]


def test_a_limit_and_another_tokenizer(xsa):
    write_jsonl(xsa.folder / "piqa.jsonl", [golden_cases()["piqa"][0]["record"]] * 3)
    data = ("--tasks", "piqa", "--data", "piqa=piqa.jsonl")
    assert [line["index"] for line in dump(xsa, *data, "--limit", "2")] == [0, 0, 1, 1]
    first = dump(xsa, *data, "--tokenizer", "byte")[0]
    assert bytes(first["context_ids"]).decode() == first["context"]


def test_a_file_takes_the_place_of_standard_output(xsa):
    write_jsonl(xsa.folder / "piqa.jsonl", [golden_cases()["piqa"][0]["record"]])
    done = xsa("eval", "--tasks", "piqa", "--data", ".", "--dump-requests", "out/requests.jsonl")
    assert done.stdout == ""
    assert "1838" in done.stderr  # a warning: the published split has more records
    assert len((xsa.folder / "out" / "requests.jsonl").read_text().splitlines()) == 2


def test_help_says_which_records_and_where_they_lie(xsa):
    text = xsa("eval", "--help").stdout
    for word in ("allenai/ai2_arc", "ARC-Easy", "10042", "winogrande_xl", "DIR/arc_easy.jsonl"):
        assert word in text


def test_bad_records_are_refused_with_their_place(xsa):
    record = golden_cases()["hellaswag"][0]["record"]
    bad = record | {"endings": record["endings"][:3]}
    write_jsonl(xsa.folder / "hellaswag.jsonl", [record, bad])
    words = ("eval", "--tasks", "hellaswag", "--data", ".", "--dump-requests", "out.jsonl")
    error = xsa(*words, expect=1).stderr
    assert "hellaswag.jsonl, record 1 (from 0): endings: expected a list of 4 texts" in error
    assert not (xsa.folder / "out.jsonl").exists()


def test_a_field_that_no_task_reads_must_be_text_all_the_same(xsa):
    record = golden_cases()["piqa"][0]["record"]
    broken = pyarrow.array([b"\xff"], pyarrow.binary()).view(pyarrow.string())
    table = pyarrow.table({key: [value] for key, value in record.items()} | {"id": broken})
    pyarrow.parquet.write_table(table, xsa.folder / "piqa.parquet")
    words = ("eval", "--tasks", "piqa", "--data", ".", "--dump-requests", "-")
    assert "piqa.parquet" in xsa(*words, expect=1).stderr


@pytest.mark.parametrize(
    "words, expected",
    [
        (("--tasks", "helaswag"), "did you mean 'hellaswag'?"),
        (("--tasks", "piqa"), "expected --data DIR"),
        (("--tasks", "piqa", "--data", ".", "--limit", "0"), "--limit: expected a whole number"),
        (("--tasks", "piqa", "--data", ".", "--data", "."), "expected one folder"),
        (("--tasks", "piqa", "--data", "boolq=x.jsonl"), "boolq=...: this task is not in --tasks"),
        (("--data", "boolq=x.jsonl"), "boolq=...: this task is not in --tasks"),
        (("--tasks", "piqa", "--data", ".", "--tokenizer", "word"), "word"),
    ],
)
def test_wrong_words_are_refused_as_such(xsa, words, expected):
    assert expected in xsa("eval", *words, "--dump-requests", "-", expect=2).stderr


def test_missing_records_name_every_place_tried(xsa):
    words = ("eval", "--tasks", "boolq", "--data", ".", "--dump-requests", "-")
    error = xsa(*words, expect=1).stderr
    for place in ("boolq/", "aps/super_glue/", "boolq_validation.EXT", "--data boolq=PATH"):
        assert place in error
