"""Two evaluations of the same records, figure by figure."""

import math

TOLERANCE = 1e-4  # of a log-likelihood
LAST_PLACES = 2**-22  # two of fp32, relative: what a sum in fp32 may lose of one below -420
# A perplexity is exp(-mean): its relative error is the log-likelihoods' absolute one.
RELATIVE = {"perplexity": 1e-4, "perplexity_stderr": 1e-3, "bits_per_byte": 1e-6}


class Comparison:
    """One task's: what differs, and by how much."""

    def __init__(self, task, theirs, ours, summed_in):
        """summed_in: "float32" or "float64", the harness's; of the latter, 1e-4 holds alone."""
        self.task = task
        relative = LAST_PLACES if summed_in == "float32" else 0.0
        self.records = len(theirs["samples"][task])
        pairs = [
            (one, other)
            for their_choices, our_choices in zip(
                theirs["samples"][task], ours["samples"][task], strict=True
            )
            for one, other in zip(their_choices, our_choices, strict=True)
        ]
        self.requests = len(pairs)
        differences = [(abs(one[0] - other[0]), abs(one[0])) for one, other in pairs]
        self.largest, self.largest_at = max(differences)
        self.close = all(
            difference <= max(TOLERANCE, relative * size) for difference, size in differences
        )
        self.beyond = sum(difference > TOLERANCE for difference, _ in differences)
        self.finite = all(math.isfinite(value) for pair in pairs for value, _ in pair)
        self.greedy = sum(bool(one[1]) for one, _ in pairs)
        self.greedy_differs = sum(bool(one[1]) != bool(other[1]) for one, other in pairs)
        self.metrics = figures(theirs["results"][task])
        self.ours = figures(ours["results"][task])
        self.metrics_differ = [
            name for name in self.metrics | self.ours if not self.equal(name)
        ]

    def equal(self, name):
        one, other = self.metrics.get(name), self.ours.get(name)
        if not isinstance(one, float | int) or not isinstance(other, float | int):
            return one == other
        return math.isclose(one, other, rel_tol=RELATIVE.get(name, 1e-12), abs_tol=1e-12)

    @property
    def passed(self):
        return (
            self.finite
            and self.close
            and not self.greedy_differs
            and not self.metrics_differ
        )

    def as_json(self):
        return {
            "records": self.records,
            "requests": self.requests,
            "largest_log_likelihood_difference": self.largest,
            "of_a_log_likelihood_of": -self.largest_at,
            "differences_beyond_1e-4": self.beyond,
            "greedy": self.greedy,
            "greedy_differences": self.greedy_differs,
            "metrics": self.metrics,
            "metric_differences": self.metrics_differ,
        }


def figures(row):
    """{"acc": 0.3, "acc_stderr": 0.01, ...} of a task's results."""
    return {
        key.removesuffix(",none"): value for key, value in row.items() if key.endswith(",none")
    }


def table(comparisons):
    lines = [
        f"{'task':18}{'records':>8}{'requests':>9}{'max |d|':>10}{'of ll':>8}{'> 1e-4':>8}"
        f"{'greedy':>8}  metrics",
    ]
    for c in comparisons:
        shown = ", ".join(
            f"{name} {value:.6g}" for name, value in c.metrics.items() if "stderr" not in name
        )
        verdict = "equal" if not c.metrics_differ else "DIFFER: " + ", ".join(c.metrics_differ)
        greedy = f"{c.greedy}" + (f" ({c.greedy_differs} differ)" if c.greedy_differs else "")
        lines.append(
            f"{c.task:18}{c.records:8}{c.requests:9}{c.largest:10.1e}{-c.largest_at:8.0f}"
            f"{c.beyond:8}{greedy:>8}  {verdict}: {shown}"
        )
    return "\n".join(lines)
