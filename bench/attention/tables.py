"""Tables of one measurement, or of two side by side: for a terminal, and in Markdown."""

from attention.cases import DIRECTIONS, GROUPS
from attention.results import is_met, losses

METRICS = {  # metric: (head of its column, format)
    "sdpa": ("SDPA", "{:.2f}"),
    "eager": ("SDPA + 2 lines", "{:.2f}"),
    "compiled": ("compiled", "{:.2f}"),
    "plain": ("plain: SDPA", "{:.2f}"),
    "cost_percent": ("cost of XSA, %", "{:+.1f}"),
    "gflops": ("GFLOP/s", "{:.0f}"),
    "gbytes": ("GB/s", "{:.1f}"),
    "of_sgemm": ("of sgemm", "{:.2f}"),
    "against": ("against", "{:.2f}"),
}
PASS = {"forward": "forward", "forward_backward": "forward + backward"}


def marks(metric, values, target):
    met = [is_met(metric, value, target) for value in values]
    return "✓" if all(met) else "✗" if not any(met) else "".join("✗✓"[one] for one in met)


def cell(metric, passes):
    """`passes`: the same direction of the same case, of each measurement."""
    form = METRICS[metric][1]
    values = [one["metrics"][metric]["median"] for one in passes if metric in one["metrics"]]
    if not values:
        return ""
    text = ", ".join(form.format(value) for value in values)
    target = passes[0]["targets"].get(metric)
    if target is None:
        return text
    return f"{text} ({target:g} {marks(metric, values, target)})"


def by_case(measurement, group):
    found = [result for result in measurement["results"] if result["group"] == group]
    return {result["case"]: result for result in found}


def shape_cell(results):
    path = results[0]["path"]
    return results[0]["case"] + ("" if path == "cpu_fused" else " [composite]")


def group_table(measurements, group):
    """[head, row, ...], each a list of cells; columns without any value are left out."""
    heads = [GROUPS[group].against if m == "against" else h for m, (h, _) in METRICS.items()]
    rows = [["case", "pass", "ms", *heads]]
    tables = [by_case(measurement, group) for measurement in measurements]
    for case in tables[0]:
        results = [table[case] for table in tables if case in table]
        for direction in DIRECTIONS:
            passes = [result[direction] for result in results if direction in result]
            if not passes or any("wrong" in result for result in results):
                continue
            ms = ", ".join(f"{one['ms']['ours_xsa']['median']:.3g}" for one in passes)
            cells = [cell(metric, passes) for metric in METRICS]
            rows.append([shape_cell(results), PASS[direction], ms, *cells])
    if len(rows) == 1:
        return []
    used = [n for n in range(len(rows[0])) if any(row[n] for row in rows[1:])]
    return [[row[n] for n in used] for row in rows]


def memory_table(measurements):
    rows = [["case", "SDPA, MiB", "SDPA + 2 lines, MiB", "XSA, MiB", "saved for backward, MiB"]]

    def mebibytes(cases, name, what):
        return ", ".join(f"{case['variants'][name][what] / 2**20:.1f}" for case in cases)

    for number, case in enumerate(measurements[0].get("memory", [])):
        cases = [case] + [m["memory"][number] for m in measurements[1:] if "memory" in m]
        names = ("sdpa", "sdpa_xsa", "ours_xsa")
        peaks = [mebibytes(cases, name, "peak_bytes") for name in names]
        better = all(
            one["variants"]["ours_xsa"]["peak_bytes"] <= one["variants"]["sdpa"]["peak_bytes"]
            for one in cases
        )
        peaks[-1] += f" (SDPA's {'✓' if better else '✗'})"
        saved = [mebibytes(cases[:1], name, "saved_bytes") for name in names]
        rows.append([case["case"], *peaks, " / ".join(saved)])
    return rows


def missed(measurements):
    """A line for every target that a measurement missed."""
    lines = {}
    for measurement in measurements:
        for result in measurement["results"]:
            for direction in DIRECTIONS:
                if direction not in result:
                    continue
                for metric, target in result[direction]["targets"].items():
                    found = result[direction]["metrics"].get(metric)
                    found = None if "wrong" in result else found
                    if found and is_met(metric, found["median"], target):
                        continue
                    head, form = METRICS[metric]
                    head = GROUPS[result["group"]].against if metric == "against" else head
                    what = f"{result['case']}, {PASS[direction]}: {head} ({target:g})"
                    value = form.format(found["median"]) if found else "not measured"
                    lines.setdefault(what, []).append(value)
    return [f"{what}: {', '.join(values)}" for what, values in lines.items()]


def wins_of_sdpa(measurements):
    """A line for every case in which SDPA was faster than ours, in any measurement."""
    lines = {}
    for measurement in measurements:
        for case, direction, variant, ratio in losses(measurement["results"]):
            what = f"{case}, {PASS[direction]}, ours {variant}"
            lines.setdefault(what, []).append("{median:.2f} ({q1:.2f} to {q3:.2f})".format(**ratio))
    return [f"{what}: {', '.join(values)}" for what, values in lines.items()]


def faults(measurements):
    """What went wrong: results that differ, variants left out, cases of a slow machine."""
    lines = []
    for measurement in measurements:
        for result in measurement["results"]:
            if "wrong" in result:
                lines.append(f"WRONG RESULT, not shown: {result['wrong']}")
            for name, why in result.get("left_out", {}).items():
                lines.append(f"{result['case']}: without {name}: {why}")
        slow = [result["case"] for result in measurement["results"] if result["slow"]]
        if slow:
            lines.append(
                f"{measurement['date']}: the machine was slow in {len(slow)} of "
                f"{len(measurement['results'])} cases: {'; '.join(slow)}"
            )
    return list(dict.fromkeys(lines))


def groups_in(measurement):
    found = {result["group"] for result in measurement["results"]}
    return [group for group in GROUPS if group in found]


# ---- two ways to write a table


def markdown(rows):
    if not rows:
        return ""
    align = ["---"] + ["---:" if head != "pass" else "---" for head in rows[0][1:]]
    lines = [rows[0], align, *rows[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def terminal(rows):
    if not rows:
        return ""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join(
        row[0].ljust(widths[0]) + "".join("  " + c.rjust(w) for c, w in zip(row[1:], widths[1:]))
        for row in rows
    )


def report(measurement):
    """The whole of one measurement, for a terminal."""
    parts = []
    for group in groups_in(measurement):
        parts.append(f"\n{group}. {GROUPS[group].title}")
        parts.append(terminal(group_table([measurement], group)))
    if measurement.get("memory"):
        parts.append(f"\nj. {GROUPS['j'].title}")
        parts.append(terminal(memory_table([measurement])))
    for title, lines in (
        ("SDPA is faster than ours", wins_of_sdpa([measurement])),
        ("Targets missed", missed([measurement])),
        ("Faults", faults([measurement])),
    ):
        parts.append(f"\n{title}: {'none' if not lines else len(lines)}")
        parts += [f"  {line}" for line in lines]
    return "\n".join(parts)
