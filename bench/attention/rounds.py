"""Timing on a machine whose speed changes: rounds, each with a matrix product beside it.

A round times the product and then each run once, in random order. Rounds in which the product was
slow, before or after, are dropped. What is compared is compared within a round.
"""

import gc
import math
import statistics
import time

import torch

SAMPLE_S = 1e-3  # a shorter call is repeated until a sample takes this long
LONG_S = 0.1  # a longer call needs no warm-up of its own before each sample
FEWEST, MOST = 5, 60  # rounds
SLOW = 1.15  # times the fastest product so far: such a round is dropped
PRODUCT = 1024


def seconds(function, repeats=1):
    begin = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - begin) / repeats


def quartiles(values):
    values = list(values)
    cuts = statistics.quantiles(values * 2 if len(values) == 1 else values, method="inclusive")
    return dict(zip(("q1", "median", "q3"), cuts))


def slower_product(one):
    return max(one["sgemm"], one["sgemm_after"])


def is_fast(one, fastest):
    return slower_product(one) <= SLOW * fastest


def kept_rounds(rounds, fastest):
    """Those whose products, before and after, were not slow; if too few, the fastest FEWEST."""
    kept = [one for one in rounds if is_fast(one, fastest)]
    return kept if len(kept) >= FEWEST else sorted(rounds, key=slower_product)[:FEWEST]


class Machine:
    """Knows how fast the machine can be, by the product."""

    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.square = torch.randn(PRODUCT, PRODUCT, generator=generator)
        self.out = torch.empty_like(self.square)
        self.fastest = math.inf
        for _ in range(20):
            self.product()

    def is_slow(self, gflops):
        return gflops * SLOW < self.gflops(self.fastest)

    def product(self):
        """Seconds; the better of two, since the first pays for what ran before."""

        def multiply():
            torch.mm(self.square, self.square, out=self.out)

        found = min(seconds(multiply), seconds(multiply))
        self.fastest = min(self.fastest, found)
        return found

    def gflops(self, product_s):
        return 2 * PRODUCT**3 / product_s / 1e9

    def larger_product_gflops(self, size=2048):
        """Of a larger product: whether the one beside the rounds does sgemm justice."""
        square = torch.randn(size, size)
        best = min(seconds(lambda: square @ square) for _ in range(5))
        return 2 * size**3 / best / 1e9


def plan_of(runs):
    """How often to repeat each run for a sample, those to warm up before each sample, and the
    seconds of a round."""
    repeats, warmed, round_s = {}, set(), 0.0
    for key, run in runs.items():
        once = seconds(run)
        if once < LONG_S:  # the first call may have paid for more than itself
            once = min(once, seconds(run))
        repeats[key] = max(1, math.ceil(SAMPLE_S / once))
        if once < LONG_S:
            warmed.add(key)
        round_s += once * (repeats[key] + (key in warmed))
    return repeats, warmed, round_s


def measure(runs, machine, order, budget_s, rounds=None):
    """`runs`: functions by key. Returns (kept rounds, number of rounds): a round is a dict of
    seconds a call by key, and of the product before ("sgemm") and after ("sgemm_after")."""
    repeats, warmed, round_s = plan_of(runs)
    wanted = rounds or min(MOST, max(FEWEST, int(budget_s / (round_s + 2 * machine.fastest))))
    found, fast = [], 0
    gc.collect()
    gc.disable()
    try:
        before = machine.product()
        while fast < wanted and len(found) < 2 * wanted:
            one, keys = {"sgemm": before}, list(runs)
            order.shuffle(keys)
            for key in keys:
                if key in warmed:
                    runs[key]()
                one[key] = seconds(runs[key], repeats[key])
            one["sgemm_after"] = before = machine.product()
            found.append(one)
            fast += is_fast(one, machine.fastest)
    finally:
        gc.enable()
    return kept_rounds(found, machine.fastest), len(found)
