"""Writes tests/golden/evaluation_results.json: what lm-evaluation-harness makes of the golden
records and their made-up scores - results, sample log, table.

    cd bench && python -m parity.golden FOLDER_TO_WORK_IN
"""

import json
import pathlib
import sys

import lm_eval
import pyarrow
import pyarrow.parquet
from lm_eval.loggers import EvaluationTracker
from lm_eval.utils import make_table

from parity import asked, peer, records

RESAMPLES = 2000
KEPT = ("results", "versions", "n-shot", "higher_is_better", "n-samples", "task_hashes")


def main(work):
    files = {}
    for task in records.TASKS:
        rows = records.golden(task)
        if rows:
            files[task] = work / f"{task}.parquet"
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), files[task])
    found = lm_eval.simple_evaluate(
        model=asked.Listener(work / "tokenizer"),
        tasks=list(files),
        task_manager=peer.task_manager(work / "tasks", files),
        bootstrap_iters=RESAMPLES,
        log_samples=True,
    )
    table = make_table(found)
    samples = found.pop("samples")
    tracker = EvaluationTracker(output_path=str(work / "output"))
    tracker.general_config_tracker.log_experiment_args("xsa", "pretrained=a/b", None, None, None)
    tracker.save_results_aggregated(results=found, samples=samples)
    golden = {"resamples": RESAMPLES, **{key: found[key] for key in KEPT}, "table": table}
    golden["samples"] = {}
    for task in files:
        tracker.save_results_samples(task, samples[task])
        (file,) = (work / "output").glob(f"*/samples_{task}_*.jsonl")
        golden["samples"][task] = [json.loads(line) for line in file.read_text().splitlines()]
    path = records.GOLDEN.with_name("evaluation_results.json")
    path.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")
    print(path)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
