"""How long `make run` takes from a clone without a compiler cache: builds and runs one, and writes
results/first_run.json. System and Python packages are there already and are not counted.

  make first-run [ARGS="--keep"]    --keep: the clone stays, in build-first/

What is measured is the committed tree. Nothing else should run meanwhile: cpu_s says what the work
costs whatever else does.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLONE = ROOT / "build-first"


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def timed(*command, environment):
    """Wall and processor seconds of a command in the clone."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    if subprocess.run(command, cwd=CLONE, env=environment).returncode != 0:
        sys.exit(f"first-run: {' '.join(command)} failed in {CLONE}")
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"wall_s": round(wall, 1), "cpu_s": round(cpu, 1)}


def slowest_files(count=20):
    """Of ninja's log: seconds and name, the slowest first."""
    rows = {}
    for line in (CLONE / "build/.ninja_log").read_text().splitlines()[1:]:
        begin, end, _, name, _ = line.split("\t")
        rows[name] = (int(end) - int(begin)) / 1000
    slowest = sorted(rows.items(), key=lambda row: -row[1])[:count]
    return [{"file": name, "s": seconds} for name, seconds in slowest]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="keep the clone, build-first/")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "results/first_run.json")
    arguments = parser.parse_args()
    shutil.rmtree(CLONE, ignore_errors=True)
    output("git", "clone", "--quiet", str(ROOT), str(CLONE))
    python = ROOT / ".venv/bin/python"
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    if python.exists():  # what pip installed is not counted
        environment["PYTHON"] = str(python)
    packages = timed("tools/setup", "python", environment=environment)
    build = timed("make", "build", environment=environment)
    run = timed("make", "run", environment=environment)
    total = {key: round(build[key] + run[key], 1) for key in build}
    models = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    result = {
        "what": "make run from a clone without a compiler cache to the verdict, packages apart",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": output("git", "rev-parse", "--short=12", "HEAD").strip(),
        "machine": {
            "cpu": models[0] if models else platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "os": platform.platform(),
        },
        "compiler": output("c++", "--version").splitlines()[0],
        "total": total,
        "build": build,
        "run": run,
        "checking_packages": packages,
        "slowest": slowest_files(),
    }
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")
    parts = f"build {build['wall_s']:.0f} s, run {run['wall_s']:.0f} s"
    print(f"[first-run] {total['wall_s']:.0f} s: {parts}")
    print(f"[first-run] processor time {total['cpu_s']:.0f} s; {arguments.output}")
    if not arguments.keep:
        shutil.rmtree(CLONE)


if __name__ == "__main__":
    main()
