#!/usr/bin/env python3
"""Times XSA on the CPU against PyTorch: ratios in one process, noise dropped, results checked.

Four variants, forward and forward + backward:
  sdpa        PyTorch's scaled_dot_product_attention: standard attention
  sdpa_xsa    the same and the paper's two lines in eager PyTorch: what our operator replaces
  ours_plain  xsa::attention with strength 0: standard attention
  ours_xsa    xsa::attention with strength 1

A round runs a matrix product (the machine's speed at that moment) and then each variant, in random
order. Rounds in which the product was slow are dropped. A ratio is taken within a round; medians
and quartiles are over rounds. A ratio above 1 says that the second variant is that much faster.

  bench/attention_bench.py [--tokens 512 1024 2048] [--heads 12] [--head-dim 64] [--output FILE]
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAIRS = [
    ("sdpa_xsa", "ours_xsa"),
    ("sdpa", "ours_xsa"),
    ("sdpa", "ours_plain"),
    ("ours_plain", "ours_xsa"),
]


def two_lines(y, v):
    unit = torch.nn.functional.normalize(v, dim=-1)
    return y - (y * unit).sum(-1, keepdim=True) * unit


def variants(causal):
    sdpa = torch.nn.functional.scaled_dot_product_attention
    ours = torch.ops.xsa.attention
    return {
        "sdpa": lambda q, k, v: sdpa(q, k, v, is_causal=causal),
        "sdpa_xsa": lambda q, k, v: two_lines(sdpa(q, k, v, is_causal=causal), v),
        "ours_plain": lambda q, k, v: ours(q, k, v, is_causal=causal, strength=0.0)[0],
        "ours_xsa": lambda q, k, v: ours(q, k, v, is_causal=causal)[0],
    }


def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def quartiles(values):
    return dict(zip(("q1", "median", "q3"), statistics.quantiles(values, n=4, method="inclusive")))


def saved_bytes(attend, q, k, v):
    """Bytes that the graph keeps for backward, each storage counted once."""
    storages = {}

    def pack(x):
        storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        attend(q, k, v)
    return sum(storages.values())


class Shape:
    def __init__(self, tokens, arguments):
        self.tokens, self.dtype = tokens, getattr(torch, arguments.dtype)
        size = (arguments.batch, arguments.heads, tokens, arguments.head_dim)
        generator = torch.Generator().manual_seed(tokens)
        self.q, self.k, self.v, self.dz = (
            torch.randn(size, generator=generator).to(self.dtype).requires_grad_(n < 3)
            for n in range(4)
        )
        self.variants = variants(not arguments.non_causal)

    def forward(self, attend):
        with torch.no_grad():
            return attend(self.q, self.k, self.v)

    def both(self, attend):
        return torch.autograd.grad(
            attend(self.q, self.k, self.v), (self.q, self.k, self.v), self.dz
        )

    def verify(self):
        """The variants agree, z and gradients; after timing, so that what was timed is checked."""
        tolerance = 1e-4 if self.dtype == torch.float32 else 5e-2
        for ours, theirs in (("ours_xsa", "sdpa_xsa"), ("ours_plain", "sdpa")):
            mine, other = self.variants[ours], self.variants[theirs]
            for actual, expected in zip(
                [self.forward(mine), *self.both(mine)], [self.forward(other), *self.both(other)]
            ):
                torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)

    def saved(self):
        counts = {
            name: saved_bytes(attend, self.q, self.k, self.v)
            for name, attend in self.variants.items()
        }
        rows = self.q.numel() // self.q.shape[-1]
        expected = 4 * self.q.numel() * self.q.element_size() + 2 * 4 * rows  # q, k, v, z; lse, c
        assert counts["ours_xsa"] == expected, (counts, expected)
        return counts

    def measure(self, rounds, order):
        runs = [(name, direction) for name in self.variants for direction in ("forward", "both")]
        square = torch.randn(1024, 1024)
        for name, direction in runs * 2:  # warm up
            getattr(self, direction)(self.variants[name])
        found = []
        for _ in range(rounds):
            order.shuffle(runs)
            one = {"sgemm": min(seconds(lambda: square @ square) for _ in range(2))}
            for name, direction in runs:
                one[name, direction] = seconds(
                    lambda: getattr(self, direction)(self.variants[name])
                )
            one["sgemm_after"] = min(seconds(lambda: square @ square) for _ in range(2))
            found.append(one)
        slowest = [max(one["sgemm"], one["sgemm_after"]) for one in found]
        limit = 1.25 * min(slowest)
        kept = [one for one, slow in zip(found, slowest) if slow <= limit]
        return (
            kept
            if len(kept) >= 5
            else sorted(found, key=lambda one: max(one["sgemm"], one["sgemm_after"]))[:5]
        )


def result_of(shape, rounds, order):
    kept = shape.measure(rounds, order)
    shape.verify()
    result = {
        "tokens": shape.tokens,
        "rounds": rounds,
        "rounds_kept": len(kept),
        "sgemm_gflops": 2 * 1024**3 / statistics.median(one["sgemm"] for one in kept) / 1e9,
        "saved_bytes": shape.saved(),
    }
    for direction, key in (("forward", "forward"), ("both", "forward_backward")):
        result[key] = {
            "ms": {
                name: quartiles([1e3 * one[name, direction] for one in kept])
                for name in shape.variants
            },
            "ratio": {
                f"{base}/{other}": quartiles(
                    [one[base, direction] / one[other, direction] for one in kept]
                )
                for base, other in PAIRS
            },
        }
    return result


def show(results):
    print(
        f"\n{'T':>6}  {'':<18}"
        + "".join(f"{name:>12}" for name in ("sdpa", "sdpa_xsa", "ours_plain", "ours_xsa"))
        + "".join(f"{base + '/' + other:>24}" for base, other in PAIRS)
    )
    for result in results:
        for key in ("forward", "forward_backward"):
            times = "".join(
                f"{result[key]['ms'][name]['median']:>9.2f} ms"
                for name in ("sdpa", "sdpa_xsa", "ours_plain", "ours_xsa")
            )
            ratios = "".join(
                "{:>24}".format(
                    "{median:.2f} ({q1:.2f}-{q3:.2f})".format(**result[key]["ratio"][f"{b}/{o}"])
                )
                for b, o in PAIRS
            )
            print(f"{result['tokens']:>6}  {key:<18}{times}{ratios}")
        saved = result["saved_bytes"]
        print(
            f"{'':>6}  saved for backward"
            + "".join(f"{saved[name] / 2**20:>8.1f} MiB" for name in saved)
            + f"   {result['rounds_kept']} of {result['rounds']} rounds"
            + f", sgemm {result['sgemm_gflops']:.0f} GFLOP/s"
        )


def machine():
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in open("/proc/cpuinfo")
            if line.startswith("model name")
        ),
        "unknown",
    )
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "os": platform.freedesktop_os_release()["PRETTY_NAME"],
        "torch": torch.__version__,
        "instruction_set": torch.backends.cpu.get_cpu_capability(),
    }


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[512, 1024, 2048])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--non-causal", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "results/attention_cpu.json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.ops.load_library(os.environ.get("XSA_OP_LIBRARY", str(ROOT / "build/lib/libxsa_op.so")))
    order = random.Random(0)
    load = os.getloadavg()[0]
    if load > 0.5 * os.cpu_count():
        print(
            f"the machine is busy (load {load:.1f} on {os.cpu_count()} cores): do not quote these "
            "ratios, since waiting for threads costs the eager variants most"
        )
    results = [
        result_of(Shape(tokens, arguments), arguments.rounds, order) for tokens in arguments.tokens
    ]
    show(results)
    setting = {
        name: value for name, value in vars(arguments).items() if name not in ("output", "tokens")
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(
        json.dumps(
            {
                "what": "CPU attention, ratios of times in a round; above 1: the second is faster",
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "commit": commit(),
                "machine": machine(),
                "setting": setting,
                "results": results,
            },
            indent=2,
        )
        + "\n"
    )
    print(f"\nwritten to {arguments.output}")


if __name__ == "__main__":
    main()
