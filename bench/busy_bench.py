#!/usr/bin/env python3
"""Times `xsa train` and `xsa generate` where other programs use the cores as well.

  bench/busy_bench.py [--case WORD] [--rounds N] [--spins N,N,...] [--output FILE]
  bench/busy_bench.py --page      remakes the table of docs/performance.md

The work is the demo's training and one sequence after another of its model (recipes/demo.toml). It
runs on a machine that does nothing else, beside programs that spin, on their own or pinned to a
core, on one core alone (taskset), and under a quota of CPU time (cgroup, where one may be made). In
a round every policy runs once, in random order, and so does the fair share's measure: as many
threads as its cores, on the quiet machine. Speeds are tokens by the wall time of the steps, without
loading; figures are medians over rounds.

The policies: "before" is what the program did until December 2026, libgomp's own wait (300,000
turns) and a thread for every core of the machine; "now" is the program as it is. --spins tries
other numbers of turns, in as many threads as "now".
Results of cases that were measured earlier stay in the file.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import random
import signal
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORES = sorted(os.sched_getaffinity(0))
OURS = "GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS"
SEQUENCES, NEW_TOKENS, STEPS = 8, 240, 12
COST, FAIR = 1.02, 1.5  # the most that "now" may take: of "before", quiet; of the fair share

# Name, cores of the neighbours (None: whichever), cores of ours, quota in cores.
CASES = [
    ("quiet", [], None, None),
    ("one neighbour", [None], None, None),
    ("one neighbour, pinned", [CORES[0]], None, None),
    ("a neighbour for every core", [None] * len(CORES), None, None),
    ("a neighbour pinned to every core", CORES, None, None),
    ("one core by taskset", [], CORES[:1], None),
    ("one core by taskset and a neighbour on it", CORES[:1], CORES[:1], None),
    ("a quota of one core", [], None, 1.0),
    ("a quota of one and a half cores", [], None, 1.5),
]


class Neighbours:
    """Programs that spin."""

    def __init__(self, places):
        self.programs = []
        for core in places:
            program = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            if core is not None:
                os.sched_setaffinity(program.pid, {core})
            self.programs.append(program)
        self.rest()

    def work(self):
        for program in self.programs:
            program.send_signal(signal.SIGCONT)

    def rest(self):
        for program in self.programs:
            program.send_signal(signal.SIGSTOP)

    def end(self):
        for program in self.programs:
            program.kill()
            program.wait()


class Group:
    """A control group with a quota, of whichever version may be made here."""

    def __init__(self, quota):
        self.folder = None
        if quota is None:
            return
        period = 100_000
        name = f"xsa-busy-bench-{os.getpid()}"
        for parent, files in (
            ("/sys/fs/cgroup", {"cpu.max": f"{int(quota * period)} {period}"}),
            (
                "/sys/fs/cgroup/cpu",
                {"cpu.cfs_period_us": str(period), "cpu.cfs_quota_us": str(int(quota * period))},
            ),
        ):
            folder = pathlib.Path(parent) / name
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                for file, text in files.items():
                    (folder / file).write_text(text)
                self.folder = folder
                return
            except OSError:
                with contextlib.suppress(OSError):
                    folder.rmdir()
        raise PermissionError("no control group with a quota may be made here")

    def join(self):
        if self.folder:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def end(self):
        if self.folder:
            self.folder.rmdir()


def environment(spin):
    values = {key: value for key, value in os.environ.items() if key not in OURS}
    if spin is not None:
        values["GOMP_SPINCOUNT"] = str(spin)
    return values


def run(arguments, words, spin, cores, group):
    def place():
        if cores:
            os.sched_setaffinity(0, cores)
        group.join()

    command = [str(word) for word in (arguments.binary, *words)]
    done = subprocess.run(
        command,
        cwd=arguments.folder,
        env=environment(spin),
        capture_output=True,
        text=True,
        preexec_fn=place,
    )
    if done.returncode != 0:
        sys.exit(f"[bench] failed: {' '.join(command)}\n{done.stderr}")
    return done.stdout


def train(arguments, threads, *how):
    """Tokens a second from the first step's end to the last's; and the threads that ran."""
    words = ["train", ROOT / "recipes/demo.toml", "--name", "timed", "--overwrite"]
    words += [f"--train.steps={STEPS}", "--train.log_every=1", f"--train.eval_every={STEPS}"]
    words += ["--train.eval_rows=1", f"--train.threads={threads}", "--train.warmup_steps=1"]
    run(arguments, words, *how)
    folder = arguments.folder / "runs/timed"
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["type"] == "train"]
    seconds = steps[-1]["elapsed_s"] - steps[0]["elapsed_s"]
    tokens = steps[-1]["tokens"] - steps[0]["tokens"]
    return tokens / seconds, json.loads((folder / "summary.json").read_text())["threads"]


def generate(arguments, threads, *how):
    words = ["generate", "runs/model", "--json", "--temperature", 0, "--ignore-end-of-text"]
    words += ["--batch", 1, "--samples", SEQUENCES, "--max-tokens", NEW_TOKENS]
    words += ["--threads", threads]
    result = json.loads(run(arguments, words, *how))
    return result["new_tokens"] / result["step_seconds"], result["threads"]


def make_model(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if not (arguments.folder / "runs/model/summary.json").exists():
        words = ["train", ROOT / "recipes/demo.toml", "--name", "model", "--overwrite"]
        words += ["--train.steps=1", "--train.warmup_steps=1", "--train.eval_rows=1"]
        run(arguments, words, None, None, Group(None))


def fair_cores(neighbours, cores, quota):
    """Those left over by the others; an equal part where they leave none."""
    mine = len(cores) if cores else len(CORES)
    left = mine - len(neighbours)
    share = left if left >= 1 else mine * mine / (mine + len(neighbours))
    return min(share, quota) if quota else share


def measure(arguments, case):
    name, places, cores, quota = case
    try:
        group = Group(quota)
    except PermissionError as refused:
        print(f"{name}: skipped, {refused}", flush=True)
        return {"case": name, "skipped": str(refused)}
    neighbours = Neighbours(places)
    share = fair_cores(places, cores, quota)
    # The fair share's measure: as many threads as whole cores, on the quiet machine.
    whole = max(1, int(share))
    policies = {"fair": None, "before": 300_000, "now": None}
    policies |= {f"spin {spin}": spin for spin in arguments.spins}
    works = {"train": train, "generate": generate}
    speeds = {(work, policy): [] for work in works for policy in policies}
    threads = {}
    try:
        for _ in range(arguments.rounds):
            for policy in random.sample(list(policies), len(policies)):
                for work, action in works.items():
                    if policy == "fair":
                        neighbours.rest()
                        speed, ran = action(arguments, whole, None, None, Group(None))
                        speed *= share / whole
                    else:
                        neighbours.work()
                        wanted = len(CORES) if policy == "before" else 0
                        speed, ran = action(arguments, wanted, policies[policy], cores, group)
                    speeds[work, policy].append(speed)
                    threads[policy] = ran
    finally:
        neighbours.end()
        group.end()
    result = {"case": name, "fair_cores": share, "threads": threads, "rounds": arguments.rounds}
    for work in works:
        middle = {policy: statistics.median(speeds[work, policy]) for policy in policies}
        paired = zip(speeds[work, "before"], speeds[work, "now"])
        result[work] = {
            "tokens_per_s": {policy: round(speed, 1) for policy, speed in middle.items()},
            "time_to_fair_share": {p: round(middle["fair"] / s, 3) for p, s in middle.items()},
            "now_to_before": round(statistics.median(old / new for old, new in paired), 4),
            "all": {p: [round(s, 1) for s in speeds[work, p]] for p in policies},
        }
        show(name, work, result)
    return result


def show(name, work, result):
    found = result[work]
    of_fair = found["time_to_fair_share"]
    figures = ", ".join(
        f"{policy} {speed:.0f} ({of_fair[policy]:.2f})"
        for policy, speed in found["tokens_per_s"].items()
    )
    print(f"{name:42} {work:9} tokens/s (time to fair): {figures}", flush=True)


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def write(arguments, results):
    before = {}
    if arguments.output.exists():
        earlier = json.loads(arguments.output.read_text())["results"]
        before = {each["case"]: each for each in earlier}
    order = [case[0] for case in CASES]
    merged = before | {each["case"]: each for each in results}
    report = {
        "what": "xsa train and xsa generate where others use the cores too; a time of 1 is that of "
        "the fair share",
        "targets": {"now_to_before, quiet": COST, "time_to_fair_share": FAIR},
        "machine": {"cpu": cpu(), "cores": len(CORES), "os": platform.platform()},
        "results": sorted(merged.values(), key=lambda each: order.index(each["case"])),
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=2) + "\n")


def table(report):
    lines = [
        "| | cores of the fair share | training, before | now | generation, before | now |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in report["results"]:
        cells = [each["case"]]
        if "skipped" in each:
            cells += [f"not measured: {each['skipped']}", "", "", "", ""]
        else:
            cells.append(f"{each['fair_cores']:g}")
            for work in ("train", "generate"):
                for policy in ("before", "now"):
                    speed = each[work]["tokens_per_s"][policy]
                    of_fair = each[work]["time_to_fair_share"][policy]
                    cells.append(f"{speed:.0f} ({of_fair:.2f})")
        lines.append("| " + " | ".join(cells) + " |")
    machine = report["machine"]
    dates = sorted({each["date"][:10] for each in report["results"]})
    commits = sorted({each["commit"] for each in report["results"]})
    lines += [
        "",
        f"Tokens a second, and in parentheses the time in units of the fair share's. Measured "
        f"{', '.join(dates)}, commit {', '.join(commits)}, {machine['cpu']}, "
        f"{machine['cores']} cores.",
    ]
    return "\n".join(lines)


def write_page(arguments):
    path = ROOT / "docs/performance.md"
    begin, end = "<!-- busy: made by bench/busy_bench.py --page -->", "<!-- end of busy -->"
    before, rest = path.read_text().split(begin)
    after = rest.split(end)[1]
    made = table(json.loads(arguments.output.read_text()))
    path.write_text(f"{before}{begin}\n{made}\n{end}{after}")


def arguments_of(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    numbers = lambda text: [int(word) for word in text.split(",")]  # noqa: E731
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/bin/xsa")
    parser.add_argument("--case", default="", help="only cases whose name holds this")
    parser.add_argument("--exactly", action="store_true", help="only the case of this very name")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spins", type=numbers, default=[], help="numbers of turns, tried as well")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/busy_bench")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "results/busy_cores.json")
    parser.add_argument("--page", action="store_true", help="measure nothing: remake the table")
    found = parser.parse_args(words)
    found.binary, found.folder = found.binary.resolve(), found.folder.resolve()
    return found


def main(words):
    arguments = arguments_of(words)
    if arguments.page:
        write_page(arguments)
        return
    chosen = [case for case in CASES if arguments.case in case[0]]
    if arguments.exactly:
        chosen = [case for case in CASES if arguments.case == case[0]]
    if not chosen:
        sys.exit(f"[bench] no case '{arguments.case}'; there are: {', '.join(c[0] for c in CASES)}")
    stamp = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": git("describe", "--always", "--dirty", "--abbrev=12"),
    }
    make_model(arguments)
    for case in chosen:
        write(arguments, [measure(arguments, case) | stamp])


if __name__ == "__main__":
    main(sys.argv[1:])
