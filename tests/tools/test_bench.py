"""bench/attention: what it counts, drops, verifies and writes. No test depends on a time."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from attention import page, tables
from attention.cases import GROUPS, TARGETS, Case, cases_of, interpolated
from attention.rounds import FEWEST, kept_rounds, quartiles
from attention.variants import Call, two_lines

MASKED = [
    Case("i", 4, keys=9),
    Case("i", 3, keys=10, causal=False),
    Case("e", 12, window=5),
    Case("e", 12, window=3, causal=False),
    Case("e", 4, keys=12, window=6),
    Case("f", 9, documents=(1, 5, 3)),
    Case("f", 9, documents=(4, 5), causal=False),
]


@pytest.mark.parametrize("case", MASKED, ids=lambda case: case.label)
def test_the_pairs_that_flops_count_are_those_that_sdpas_mask_shows(case):
    mask = Call(case).mask
    seen = case.tokens * case.keys if mask is None else mask.sum().item()
    assert case.pairs() == seen


def test_a_causal_pair_costs_four_d_forward_and_fourteen_with_backward():
    case = Case("a", 3, head_dim=8, batch=2, heads=5)
    assert case.flops("forward") == 2 * 5 * 6 * 4 * 8
    assert case.flops("forward_backward") == 2 * 5 * 6 * 14 * 8


def test_a_reference_at_equal_work_is_scaled_by_the_work():
    window = Case("e", 12, window=1, against=(Case("e", 12),))
    assert window.work("forward") / window.reference_work("forward") == 12 / (12 * 13 / 2)
    decode = Case("i", 1, keys=64, key_heads=4, dtype="bfloat16", against="read")
    assert decode.work("forward") == decode.reference_work("forward") == 2 * 4 * 64 * 64 * 2


def test_every_group_has_cases_with_labels_of_their_own():
    for group in GROUPS:
        labels = [case.label for case in cases_of([group], quick=False)]
        assert len(labels) == len(set(labels))
        assert labels or group == "j"
    assert 0 < len(cases_of(list(GROUPS), quick=True)) < len(cases_of(list(GROUPS), quick=False))


def test_targets_between_the_tables_lengths_lie_between_its_targets():
    for length, targets in TARGETS.items():
        assert tuple(interpolated(length, column) for column in range(3)) == targets
    assert interpolated(100, 0) == TARGETS[128][0]
    assert TARGETS[1024][0] > interpolated(1100, 0) > interpolated(1900, 0) > TARGETS[2048][0]


def test_rounds_beside_a_slow_product_are_dropped():
    fast = [{"sgemm": 1.0, "sgemm_after": 1.1}] * FEWEST
    slow = [{"sgemm": 1.0, "sgemm_after": 1.3}, {"sgemm": 1.2, "sgemm_after": 1.0}]
    assert kept_rounds(slow + fast, 1.0) == fast
    all_slow = [{"sgemm": 2.0 + n, "sgemm_after": 1.0} for n in range(2 * FEWEST)]
    assert kept_rounds(all_slow, 1.0) == all_slow[:FEWEST]


def test_quartiles_are_of_the_values_alone():
    assert quartiles([3, 1, 2, 5, 4]) == {"q1": 2, "median": 3, "q3": 4}
    assert quartiles([7.0]) == {"q1": 7, "median": 7, "q3": 7}


def test_the_two_lines_of_grouped_heads_equal_those_of_expanded_values():
    generator = torch.Generator().manual_seed(0)
    y, w = (torch.randn(2, heads, 5, 8, generator=generator) for heads in (6, 2))
    expanded = two_lines(y, w.repeat_interleave(3, dim=1))
    torch.testing.assert_close(two_lines(y, w), expanded)


def with_ours(call, ours):
    """The call with a function of our variant's right result in its place."""
    right = call.sdpa_xsa
    call.variants = {"sdpa_xsa": right, "ours_xsa": lambda q, k, v: ours(right(q, k, v))}
    return call


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_results_that_differ_from_pytorchs_are_noticed(dtype):
    case = Case("a", 20, heads=2, dtype=dtype)
    assert with_ours(Call(case), lambda z: z.clone()).verify() < 0.02
    one = torch.zeros(1, 2, 20, 64)
    one[0, 1, 19, 3] = 1
    for wrong in (
        lambda z: z + one.to(z.dtype),
        lambda z: z * torch.where(one > 0, torch.nan, 1.0).to(z.dtype),
        lambda z: z.detach() + 1.1 * (z - z.detach()),  # in the gradients alone
    ):
        with pytest.raises(AssertionError, match="of ours_xsa is"):
            with_ours(Call(case), wrong).verify()


# ---- what is written


def spread(value):
    return {"q1": value, "median": value, "q3": value}


def measurement(date, sdpa):
    passes = {
        "ms": {"ours_xsa": spread(1.5)},
        "metrics": {"sdpa": spread(sdpa), "cost_percent": spread(1.0)},
        "targets": {"sdpa": 2.0, "cost_percent": 2.0},
    }
    result = {"group": "a", "case": "H=12 T=512 D=64", "path": "cpu_fused", "forward": passes}
    result |= {"slow": False, "sgemm_gflops": spread(300.0)}
    machine = {"cpu": "a", "cores": 2, "os": "b", "torch": "c", "instruction_set": "d"}
    return {
        "format": 2,
        "date": date,
        "commit": "e",
        "machine": machine,
        "setting": {"threads": 2},
        "sgemm_gflops": 1,
        "sgemm_2048_gflops": 1,
        "results": [result],
    }


@pytest.fixture
def tree(tmp_path):
    """A repository with a page and two measurements."""
    for folder in ("results", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "docs/performance.md").write_text(f"# Mine\n{page.BEGIN}\nold\n{page.END}\nkept\n")

    def put(first, second):
        for name, one in (("attention_cpu", first), ("attention_cpu_again", second)):
            (tmp_path / f"results/{name}.json").write_text(json.dumps(one))
        return tmp_path

    return put


def test_the_page_shows_both_measurements_and_lists_where_sdpa_wins(tree):
    root = tree(measurement("2026-01-01T10:00:00Z", 0.9), measurement("2026-01-01T10:30:00Z", 2.1))
    page.write(root)
    text = (root / "docs/performance.md").read_text()
    assert text.startswith("# Mine\n") and text.endswith("kept\n") and "old" not in text
    assert "0.90, 2.10 (2 ✗✓)" in text and "+1.0, +1.0 (2 ✓)" in text
    wins = text.partition("### Where SDPA wins")[2].partition("###")[0]
    assert "H=12 T=512 D=64, forward, ours XSA: 0.90" in wins and "2.10" not in wins
    assert "SDPA (2): 0.90" in text.partition("### Targets missed")[2]
    page.write(root)
    assert (root / "docs/performance.md").read_text() == text


def test_the_page_refuses_measurements_that_are_no_pair(tree):
    first = measurement("2026-01-01T10:00:00Z", 2.0)
    soon, other = measurement("2026-01-01T10:29:00Z", 2.0), measurement("2026-01-02T10:00:00Z", 2.0)
    other["setting"] = {"threads": 1}
    for second, complaint in ((soon, "half an hour"), (other, "differ in setting"), ({}, "again")):
        with pytest.raises(page.PageError, match=complaint):
            page.write(tree(first, second))
    root = tree(first, measurement("2026-01-02T10:00:00Z", 2.0))
    (root / "docs/performance.md").write_text("no markers")
    with pytest.raises(page.PageError, match="markers"):
        page.write(root)


def test_the_page_is_what_its_results_make_it():
    text = (ROOT / page.PAGE).read_text()
    if (ROOT / "results/attention_cpu_again.json").exists():
        assert text == page.fresh(ROOT), "remake it: bench/attention_bench.py --page"
    else:
        assert f"{page.BEGIN}\n{page.END}" in text, "figures without a measurement"


def test_a_wrong_result_is_named_and_its_figures_are_not_shown():
    one = measurement("2026-01-01T10:00:00Z", 3.21)
    one["results"][0]["wrong"] = "dq differs"
    report = tables.report(one)
    assert "WRONG RESULT, not shown: dq differs" in report and "3.21" not in report
    one["results"][0]["forward"]["metrics"]["sdpa"] = spread(0.5)
    assert tables.wins_of_sdpa([one]) == []


def test_a_composite_path_is_named_beside_the_case():
    one = measurement("2026-01-01T10:00:00Z", 3.0)
    one["results"][0] |= {"path": "composite: no kernel"}
    assert "H=12 T=512 D=64 [composite]" in tables.report(one)


def test_a_case_that_met_a_slow_machine_is_named():
    one = measurement("2026-01-01T10:00:00Z", 3.0)
    one["results"][0]["slow"] = True
    assert "the machine was slow in 1 of 1 cases: H=12 T=512 D=64" in tables.report(one)


def test_targets_that_were_not_measured_count_as_missed():
    one = measurement("2026-01-01T10:00:00Z", 3.0)
    del one["results"][0]["forward"]["metrics"]["sdpa"]
    assert tables.missed([one]) == ["H=12 T=512 D=64, forward: SDPA (2): not measured"]


# ---- the programs


def test_a_run_of_one_case_writes_every_figure(tmp_path):
    output = tmp_path / "out.json"
    command = [sys.executable, ROOT / "bench/attention_bench.py", "--group", "b", "--rounds", "1"]
    command += ["--case", "B=2 H=3 T=777", "--output", output]
    library = os.environ.get("XSA_OP_LIBRARY", str(ROOT / "build/lib/libxsa_op.so"))
    environment = {**os.environ, "XSA_OP_LIBRARY": library}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(output.read_text())["results"]
    assert "wrong" not in result and "left_out" not in result and result["path"] == "cpu_fused"
    for direction in ("forward", "forward_backward"):
        wanted = {"sdpa", "eager", "plain", "cost_percent", "gflops", "of_sgemm"}
        assert set(result[direction]["metrics"]) == wanted
    assert "B=2 H=3 T=777" in done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nothing"], "no benchmark 'nothing'"),
        (["--quick"], "name the one benchmark that '--quick' is for"),
        (["kernels", "attention", "--quick"], "name the one benchmark"),
    ],
)
def test_tools_bench_says_what_it_did_not_understand(words, complaint):
    done = subprocess.run([ROOT / "tools/bench", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert complaint in done.stderr and "attention" in done.stderr
