"""The attention part of docs/performance.md, made of the files in results/: no number by hand."""

import datetime
import json

from attention.cases import GROUPS
from attention.tables import (
    faults,
    group_table,
    groups_in,
    markdown,
    memory_table,
    missed,
    wins_of_sdpa,
)

PAGE = "docs/performance.md"
BEGIN = "<!-- attention: made by bench/attention_bench.py --page -->"
END = "<!-- end of attention -->"
APART = datetime.timedelta(minutes=30)


class PageError(Exception):
    """Says what is wrong with the files, and what to do."""


def moment(measurement):
    return datetime.datetime.strptime(measurement["date"], "%Y-%m-%dT%H:%M:%SZ")


def check_pair(first, second):
    """Two measurements of one thing, at least half an hour apart."""
    for field in ("machine", "setting"):
        if first[field] != second[field]:
            raise PageError(
                f"the two measurements differ in {field}: {first[field]} and {second[field]}; "
                "measure again with the same"
            )
    apart = moment(second) - moment(first)
    if apart < APART:
        raise PageError(
            f"the second measurement ({second['date']}) must begin at least half an hour after the "
            f"first ({first['date']}); measure it again"
        )


def read(path):
    try:
        measurement = json.loads(path.read_text())
        if measurement["format"] != 2:
            raise KeyError("format")
        return measurement
    except FileNotFoundError:
        raise PageError(
            f"{path} does not exist: run bench/attention_bench.py --output {path}"
        ) from None
    except (ValueError, KeyError):
        raise PageError(f"{path} is not a measurement of this program: measure again") from None


def listed(title, lines):
    text = "".join(f"- {line}\n" for line in lines) if lines else "None.\n"
    return f"### {title}\n\n{text}"


def instructions_table(counts):
    rows = [["case", "pass", "plain, million", "XSA, million", "more, %"]]
    for one in counts["results"]:
        mark = "✓" if one["more_percent"] <= counts["target_percent"] else "✗"
        rows.append(
            [
                f"H=1 T={one['tokens']} D={one['head_dim']}",
                one["direction"],
                f"{one['plain'] / 1e6:.2f}",
                f"{one['xsa'] / 1e6:.2f}",
                f"{one['more_percent']:+.2f} ({counts['target_percent']:g} {mark})",
            ]
        )
    return rows


def generated(first, second, counts):
    """The text between the markers."""
    pair = [first, second]
    machine = first["machine"]
    commits = " and ".join(dict.fromkeys(one["commit"][:12] for one in pair))
    large = " and ".join(f"{one['sgemm_2048_gflops']:.0f}" for one in pair)
    beside = " and ".join(f"{one['sgemm_gflops']:.0f}" for one in pair)
    parts = [
        f"Measured {first['date']} and {second['date']}, commit {commits}: {machine['cpu']}, "
        f"{machine['cores']} cores, {machine['instruction_set']}, {machine['os']}, torch "
        f"{machine['torch']}, {first['setting']['threads']} threads. MKL sgemm of 1024 x 1024 "
        f"beside the rounds: {beside} GFLOP/s (median); of 2048 x 2048: {large}.\n"
    ]
    for group in groups_in(first):
        parts.append(f"### {GROUPS[group].title}\n\n{markdown(group_table(pair, group))}")
    if first.get("memory"):
        parts.append(f"### {GROUPS['j'].title}\n\n{markdown(memory_table(pair))}")
    if counts:
        parts.append(
            f"### Instructions, one thread, {counts['instruction_set']}\n\nCounted by callgrind "
            f"{counts['date']}, commit {counts['commit'][:12]}.\n\n"
            f"{markdown(instructions_table(counts))}"
        )
    parts.append(listed("Where SDPA wins", wins_of_sdpa(pair)))
    parts.append(listed("Targets missed", missed(pair)))
    if faults(pair):
        parts.append(listed("Faults", faults(pair)))
    return "\n".join(parts)


def fresh(root):
    """docs/performance.md with the newest results between its markers."""
    first = read(root / "results/attention_cpu.json")
    second = read(root / "results/attention_cpu_again.json")
    check_pair(first, second)
    counts = root / "results/instructions.json"
    counts = json.loads(counts.read_text()) if counts.exists() else None
    before, begin, rest = (root / PAGE).read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise PageError(f"{PAGE} has lost its markers: {BEGIN} and {END}, a line each")
    return f"{before}{BEGIN}\n\n{generated(first, second, counts)}\n{END}{after}"


def write(root):
    (root / PAGE).write_text(fresh(root))
