"""Times `xsa eval` against lm-evaluation-harness: the same model, records and machine, in turn.

Seconds are those of scoring: of the harness, what its `loglikelihood` takes (tokens and model, in a
process that has loaded all), at the batch size at which it is fastest here; ours, reading and
checking the records, tokens and model. Ratios are taken within a round; medians are over rounds.
CPU seconds beside them, which a busy machine changes less: of the harness the same part, of xsa the
whole process, so that starting and loading the model count against it.
"""

import resource
import shutil
import statistics

from . import compare, model, ours, peer, records

BATCH_SIZES = (1, 8, 32)


def children_cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Contest:
    def __init__(self, arguments, shape, count):
        self.program, self.work = arguments.xsa, arguments.work / f"speed-{shape}"
        self.folder = model.make_model(arguments.work / f"model-{shape}", shape)
        files = records.write_records(self.work / "data", count, lambda text: text)
        self.files = {task: files[task] for task in records.REAL}
        self.manager = peer.task_manager(self.work / "tasks", self.files)
        self.harness = peer.load(self.folder, 1)

    def theirs(self, tasks, batch_size):
        """(seconds, CPU seconds, what was found)"""
        self.harness.batch_size_per_gpu = batch_size
        self.harness.seconds = self.harness.cpu_seconds = 0
        found = peer.evaluate(self.harness, self.manager, tasks)
        return self.harness.seconds, self.harness.cpu_seconds, found

    def ours(self, tasks):
        output = self.work / "xsa"
        shutil.rmtree(output, ignore_errors=True)
        files = {task: self.files[task] for task in tasks}
        before = children_cpu_seconds()
        found = ours.evaluate(self.program, self.folder, files, output)
        cpu_seconds = children_cpu_seconds() - before
        seconds = found["xsa"]["loading_seconds"] + found["xsa"]["scoring_seconds"]
        return seconds, cpu_seconds, found

    def best_batch_size(self):
        seconds = {size: self.theirs(self.files, size)[0] for size in BATCH_SIZES}
        return min(seconds, key=seconds.get), seconds

    def round_of(self, tasks, batch_size):
        their_seconds, their_cpu, theirs = self.theirs(tasks, batch_size)
        our_seconds, our_cpu, found = self.ours(tasks)
        passed = all(compare.Comparison(task, theirs, found, "float32").passed for task in tasks)
        return {
            "lm_eval_seconds": their_seconds,
            "xsa_seconds": our_seconds,
            "ratio": their_seconds / our_seconds,
            "lm_eval_cpu_seconds": their_cpu,
            "xsa_process_cpu_seconds": our_cpu,
            "cpu_ratio": their_cpu / our_cpu,
            "requests": found["xsa"]["requests"],
            "equal": passed,
        }


def median_round(rounds):
    """The round of the median ratio (the lower one of two)."""
    return sorted(rounds, key=lambda found: found["ratio"])[(len(rounds) - 1) // 2]


def measure(arguments, shape, count, rounds):
    """The figures of one shape, as results/eval.json has them."""
    contest = Contest(arguments, shape, count)
    layers, width, heads, context = model.SHAPES[shape]
    batch_size, tried = contest.best_batch_size()
    print(f"\n{shape}: the harness's seconds by batch size: {tried}", flush=True)
    together = []
    for _ in range(rounds):
        together.append(contest.round_of(list(contest.files), batch_size))
        print(f"  all tasks: {together[-1]}", flush=True)
    apart = {
        task: median_round([contest.round_of([task], batch_size) for _ in range(rounds)])
        for task in contest.files
    }
    for task, found in apart.items():
        print(f"  {task:12} {found}", flush=True)
    return {
        "model": {"layers": layers, "width": width, "heads": heads, "context": context},
        "records_per_task": count,
        "lm_eval_batch_size": batch_size,
        "lm_eval_seconds_by_batch_size": tried,
        "ratio": statistics.median(found["ratio"] for found in together),
        "cpu_ratio": statistics.median(found["cpu_ratio"] for found in together),
        "rounds": together,
        "tasks_alone": apart,
    }
