"""lm-evaluation-harness on local files: its own tasks, told only where the data is."""

import os
import pathlib
import time

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import lm_eval
import yaml
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

CONFIGS = {
    "hellaswag": "hellaswag/hellaswag.yaml",
    "winogrande": "winogrande/default.yaml",
    "social_iqa": "siqa/siqa.yaml",
    "piqa": "piqa/piqa.yaml",
    "arc_easy": "arc/arc_easy.yaml",
    "openbookqa": "openbookqa/openbookqa.yaml",
    "boolq": "super_glue/boolq/default.yaml",
    "lambada_openai": "lambada/lambada_openai.yaml",
    "lambada_standard": "lambada/lambada_standard.yaml",
}
TEST_SPLIT = ("arc_easy", "openbookqa", "lambada_openai", "lambada_standard")


def task_manager(folder, files):
    """A YAML a task that includes the harness's own and replaces the data's place alone."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = pathlib.Path(lm_eval.__file__).parent / "tasks"
    for task, file in files.items():
        split = "test" if task in TEST_SPLIT else "validation"
        config = {
            "include": str(tasks / CONFIGS[task]),
            "task": task,
            "dataset_path": "parquet",
            "dataset_name": None,
            "dataset_kwargs": {
                "data_files": {split: str(file)},
                "cache_dir": str(folder / "cache"),
            },
            "training_split": None,
        }
        if split == "test":
            config["validation_split"] = None
        (folder / f"{task}.yaml").write_text(yaml.safe_dump(config))
    return TaskManager(include_path=str(folder))


class TimedModel(HFLM):
    """The harness's Hugging Face model, with the seconds that its requests took."""

    seconds = cpu_seconds = 0.0

    def loglikelihood(self, requests, **options):
        start, cpu_start = time.perf_counter(), time.process_time()
        result = super().loglikelihood(requests, **options)
        self.seconds += time.perf_counter() - start
        self.cpu_seconds += time.process_time() - cpu_start
        return result


def load(model_folder, batch_size, softmax_dtype=None):
    """softmax_dtype: what the harness sums in; None: the logits' own type, float32."""
    return TimedModel(
        pretrained=str(model_folder),
        dtype="float32",
        device="cpu",
        batch_size=batch_size,
        softmax_dtype=softmax_dtype,
    )


def evaluate(model, manager, tasks):
    """{"results": ..., "samples": {task: [[(log-likelihood, greedy) a choice] a record]}}"""
    found = lm_eval.simple_evaluate(
        model=model,
        tasks=list(tasks),
        task_manager=manager,
        log_samples=True,
        bootstrap_iters=100000,
    )
    samples = {}
    for task, rows in found["samples"].items():
        rows = sorted(rows, key=lambda row: row["doc_id"])
        samples[task] = [[choice[0] for choice in row["resps"]] for row in rows]
    return {"results": found["results"], "samples": samples}


def rolling(model, texts):
    """Log-likelihood of each whole text."""
    from lm_eval.api.instance import Instance

    requests = [
        Instance(request_type="loglikelihood_rolling", doc={}, arguments=(text,), idx=i)
        for i, text in enumerate(texts)
    ]
    return model.loglikelihood_rolling(requests)
