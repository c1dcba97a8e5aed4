"""One case, measured: what results/*.json holds of it."""

from attention.cases import DIRECTIONS
from attention.rounds import PRODUCT, measure, quartiles
from attention.variants import VARIANTS, Call

# Metric: seconds of the first variant over seconds of the second. Above 1: the second is faster.
RATIOS = {
    "sdpa": ("sdpa", "ours_xsa"),
    "eager": ("sdpa_xsa", "ours_xsa"),
    "compiled": ("compiled", "ours_xsa"),
    "plain": ("sdpa", "ours_plain"),
}


def is_met(metric, value, target):
    return value <= target if metric == "cost_percent" else value >= target


def runs_of(call, references):
    """Functions by (variant, direction), and "against" for the case's reference."""
    case = call.case
    runs = {}
    for direction in case.directions:
        for name in call.variants:
            runs[name, direction] = lambda name=name, d=direction: getattr(call, d)(name)
        if case.against == "read":
            runs["against", direction] = call.read
        elif references:
            runs["against", direction] = lambda d=direction: [
                getattr(reference, d)("ours_xsa") for reference in references
            ]
    return runs


def metrics_of(case, direction, kept):
    """Quartiles over rounds of everything that is derived within a round."""

    def over_rounds(function):
        return quartiles(function(one) for one in kept)

    def gflops(one):
        return case.flops(direction) / one["ours_xsa", direction] / 1e9

    def product_gflops(one):
        return 2 * PRODUCT**3 / ((one["sgemm"] + one["sgemm_after"]) / 2) / 1e9

    found = {}
    for metric, (base, other) in RATIOS.items():
        if (base, direction) in kept[0]:
            found[metric] = over_rounds(lambda one: one[base, direction] / one[other, direction])
    found["cost_percent"] = over_rounds(
        lambda one: 100 * (one["ours_xsa", direction] / one["ours_plain", direction] - 1)
    )
    if case.against == "read":  # bound by memory
        found["gbytes"] = over_rounds(
            lambda one: case.cache_bytes() / one["ours_xsa", direction] / 1e9
        )
    else:
        found["gflops"] = over_rounds(gflops)
        found["of_sgemm"] = over_rounds(lambda one: gflops(one) / product_gflops(one))
    if ("against", direction) in kept[0]:
        scale = case.work(direction) / case.reference_work(direction)
        found["against"] = over_rounds(
            lambda one: scale * one["against", direction] / one["ours_xsa", direction]
        )
    return found


def left_out(call):
    """Drops variants that cannot do the case; {variant: why}."""
    reasons = {}
    for name in list(call.variants):
        try:
            for direction in call.case.directions:
                getattr(call, direction)(name)
        except Exception as error:  # whatever PyTorch or a compiler says
            if name.startswith("ours"):
                raise
            reasons[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
            del call.variants[name]
    return reasons


def measure_case(case, machine, order, options):
    """`options`: rounds (None: by the case's budget), compile, budget (a factor)."""
    call = Call(case)
    if case.compiled and options.compile:
        call.add_compiled()
    missing = left_out(call)
    references = [] if case.against == "read" else [Call(other) for other in case.against]
    runs = runs_of(call, references)
    kept, rounds = measure(runs, machine, order, case.budget_s * options.budget, options.rounds)
    result = {
        "group": case.group,
        "case": case.label,
        "path": call.path(),
        "rounds": rounds,
        "rounds_kept": len(kept),
        "sgemm_gflops": quartiles(machine.gflops(one["sgemm"]) for one in kept),
    }
    if missing:
        result["left_out"] = missing
    try:
        result["largest_difference"] = call.verify()
    except AssertionError as error:
        result["wrong"] = str(error)
    for direction in case.directions:
        result[direction] = {
            "ms": {
                name: quartiles(1e3 * one[name, direction] for one in kept)
                for name in (*VARIANTS, "against")
                if (name, direction) in runs
            },
            "metrics": metrics_of(case, direction, kept),
            "targets": {metric: value for d, metric, value in case.targets if d == direction},
        }
    return result


def losses(results):
    """(case, direction, variant, quartiles of the ratio) wherever SDPA is faster than ours."""
    for result in results:
        if "wrong" in result:
            continue
        for direction in DIRECTIONS:
            metrics = result.get(direction, {}).get("metrics", {})
            for metric, variant in (("sdpa", "XSA"), ("plain", "plain")):
                if metric in metrics and metrics[metric]["median"] < 1:
                    yield result["case"], direction, variant, metrics[metric]
