#!/usr/bin/env python3
"""Times `xsa generate` against transformers' generate on random models of GPT-2's kind.

  bench/generate_bench.py [--peer PYTHON] [--case WORD] [--rounds N] [--output FILE]

Greedy, from one prompt: at the demo's size (4 layers, width 128, the byte vocabulary) and at
GPT-2's, 124M parameters, with weights in float32 and in bfloat16; one sequence and several at once.
In a round the programs run in turn on the same cores; speeds are new tokens by the seconds of the
whole call, prompt included, without loading. Ratios are taken within a round; medians and quartiles
are over rounds. Before timing, every token must be the one that transformers chooses, unless two
choices are nearer than the rounding, and log-probabilities must agree.

The peers' Python has transformers and torch: --peer, else $XSA_PEER_PYTHON, else .setup/peer.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEER = ROOT / "bench/generation/peer.py"
PROMPT = "It was a bright cold day"
TOKENIZER = {"demo": "byte", "gpt2": "gpt2"}
NEAR = {"float32": 1e-5, "bfloat16": 1e-4}  # of log-probabilities, against the same weights
# Name, shape, our weights, transformers' type, sequences, new tokens, target.
CASES = [
    ("demo float32 1", "demo", "float32", "float32", 1, 200, 2.0),
    ("demo float32 8", "demo", "float32", "float32", 8, 200, None),
    ("demo bfloat16 1", "demo", "bfloat16", "float32", 1, 200, None),
    ("gpt2 float32 1", "gpt2", "float32", "float32", 1, 48, 1.2),
    ("gpt2 float32 8", "gpt2", "float32", "float32", 8, 24, None),
    ("gpt2 bfloat16 1", "gpt2", "bfloat16", "float32", 1, 48, 1.8),
    ("gpt2 bfloat16 8", "gpt2", "bfloat16", "float32", 8, 24, None),
    ("gpt2 bfloat16 1, transformers in bfloat16", "gpt2", "bfloat16", "bfloat16", 1, 24, None),
]


class Peer:
    """A transformers process that answers request by request."""

    def __init__(self, arguments, folder, kind, prompt):
        words = [arguments.peer, PEER, "serve", folder, kind, json.dumps(prompt), arguments.threads]
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        if self.process.stdout.readline().strip() != "ready":
            sys.exit(f"[bench] transformers did not start: {' '.join(str(w) for w in words)}")

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ours(arguments, folder, weights, batch, tokens, words=()):
    command = [arguments.binary, "generate", folder, "--tokenizer", TOKENIZER[folder.name]]
    command += ["--json", "--temperature", "0", "--ignore-end-of-text", "--max-tokens", tokens]
    command += ["--prompt", PROMPT] * batch
    command += ["--dtype", weights, "--threads", arguments.threads, *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"[bench] xsa generate failed: {done.stderr}")
    return json.loads(done.stdout)


def verify(arguments, folder, case, peer):
    """Exits where a token or its log-probability is not transformers'."""
    name, _, weights, _, batch, tokens, _ = case
    result = ours(arguments, folder, weights, batch, tokens, ["--log-probabilities"])
    rows = [each["tokens"] for each in result["continuations"]]
    theirs = peer.ask(tokens=tokens, batch=batch)["ids"]
    scores = peer.ask(score=rows)["log_probabilities"]
    furthest = max(
        abs(a - b)
        for each, row in zip(result["continuations"], scores)
        for a, b in zip(each["log_probabilities"], row)
    )
    if furthest > NEAR[weights]:
        sys.exit(f"[bench] {name}: log-probabilities differ by {furthest:g}")
    same = 0
    for mine, other in zip(rows, theirs):
        first = next((i for i, (a, b) in enumerate(zip(mine, other)) if a != b), len(mine))
        same += first
        if first < len(mine):  # both choices after the same text must be equally likely
            pair = [mine[: first + 1], mine[:first] + [other[first]]]
            a, b = (row[-1] for row in peer.ask(score=pair)["log_probabilities"])
            if abs(a - b) > NEAR[weights]:
                sys.exit(f"[bench] {name}: token {first} is {mine[first]}, not {other[first]}")
    return {"equal_tokens": same, "of": batch * tokens, "log_probability_difference": furthest}


def quartiles(values):
    ordered = sorted(values)
    low, median, high = statistics.quantiles(ordered, n=4) if len(ordered) > 1 else ordered * 3
    return {"median": median, "quartiles": [low, high]}


def measure(arguments, folder, case):
    name, _, weights, kind, batch, tokens, target = case
    prompt = ours(arguments, folder, weights, 1, 1)["continuations"][0]["prompt_tokens"]
    checker = Peer(arguments, folder, "float32" if weights == "float32" else "rounded", prompt)
    verified = verify(arguments, folder, case, checker)
    shared = weights == kind == "float32"  # the checker is what is timed
    peer = checker if shared else Peer(arguments, folder, kind, prompt)
    if not shared:
        checker.close()
    mine, other = [], []
    for _ in range(arguments.rounds):
        theirs = peer.ask(tokens=tokens, batch=batch)
        other.append(batch * tokens / theirs["seconds"])
        result = ours(arguments, folder, weights, batch, tokens)
        mine.append(result["new_tokens"] / (result["prompt_seconds"] + result["step_seconds"]))
    peer.close()
    ratio = quartiles([a / b for a, b in zip(mine, other)])
    aim = f" (target {target})" if target else ""
    print(
        f"{name:44} {statistics.median(mine):8.1f} tokens/s   transformers "
        f"{statistics.median(other):8.1f}   {ratio['median']:.2f} times{aim}",
        flush=True,
    )
    return {
        "case": name,
        "sequences": batch,
        "new_tokens": tokens,
        "weights": weights,
        "transformers_type": kind,
        "tokens_per_s": quartiles(mine),
        "transformers_tokens_per_s": quartiles(other),
        "ratio": ratio,
        "target": target,
        "rounds": arguments.rounds,
        "verified": verified,
    }


def default_peer():
    inside = ROOT / ".setup/peer/bin/python"
    return os.environ.get("XSA_PEER_PYTHON") or (str(inside) if inside.exists() else None)


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def arguments_of(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", default=default_peer(), help="a Python with transformers")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/bin/xsa")
    parser.add_argument("--case", default="", help="only cases whose name holds this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/generate_bench")
    parser.add_argument("--output", type=pathlib.Path, help="by default build/generate.json")
    return parser.parse_args(words)


def versions(python):
    code = "import torch, transformers; print(torch.__version__, transformers.__version__)"
    torch, transformers = subprocess.check_output([python, "-c", code], text=True).split()
    return {"torch": torch, "transformers": transformers}


def main(words):
    arguments = arguments_of(words)
    if not arguments.peer:
        print("[bench] generate: skipped, no Python with transformers; name one with --peer")
        return
    commit = git("describe", "--always", "--dirty", "--abbrev=12")  # before the results change
    results = []
    for case in CASES:
        if arguments.case not in case[0]:
            continue
        folder = arguments.models / case[1]
        if not (folder / "config.json").exists():
            subprocess.run([arguments.peer, PEER, "make", folder, case[1]], check=True)
        results.append(measure(arguments, folder, case))
        write(arguments, commit, results)


def write(arguments, commit, results):
    """After every case: a long run that is stopped keeps what it has."""
    output = arguments.output or ROOT / "build/generate.json"
    report = {
        "what": "xsa generate against transformers' generate; above 1: ours is faster",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit,
        "machine": {"cpu": cpu(), "cores": os.cpu_count(), "os": platform.platform()},
        "threads": arguments.threads,
        "versions": versions(arguments.peer),
        "results": results,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=2) + "\n")


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    main(sys.argv[1:])
