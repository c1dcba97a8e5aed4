"""bench/busy_bench.py: its fair share, what it keeps of earlier measurements, its table."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import busy_bench  # noqa: E402

MEASURED = {
    "tokens_per_s": {"fair": 1000.0, "before": 200.4, "now": 800.0},
    "time_to_fair_share": {"fair": 1.0, "before": 4.99, "now": 1.25},
}


@pytest.mark.parametrize(
    "neighbours, cores, quota, share",
    [
        (0, None, None, 4),
        (1, None, None, 3),
        (3, None, None, 1),
        (4, None, None, 2),  # none is left over: 4 of 8 busy threads
        (0, [0], None, 1),
        (1, [0], None, 0.5),
        (0, None, 1.5, 1.5),
        (3, None, 1.5, 1),
    ],
)
def test_the_fair_share_is_what_the_others_leave(monkeypatch, neighbours, cores, quota, share):
    monkeypatch.setattr(busy_bench, "CORES", [0, 1, 2, 3])
    assert busy_bench.fair_cores([None] * neighbours, cores, quota) == share


def test_a_later_measurement_replaces_its_own_case_alone(tmp_path):
    arguments = busy_bench.arguments_of(["--output", str(tmp_path / "found.json")])
    busy_bench.write(arguments, [{"case": "one neighbour", "n": 1}, {"case": "quiet", "n": 1}])
    busy_bench.write(arguments, [{"case": "one neighbour", "n": 2}])
    results = json.loads((tmp_path / "found.json").read_text())["results"]
    assert results == [{"case": "quiet", "n": 1}, {"case": "one neighbour", "n": 2}]


def test_the_table_shows_every_case(tmp_path):
    stamp = {"date": "2026-12-01T00:00:00Z", "commit": "12ab"}
    measured = {"case": "quiet", "fair_cores": 2, "train": MEASURED, "generate": MEASURED} | stamp
    skipped = {"case": "a quota of one core", "skipped": "no group"} | stamp
    machine = {"cpu": "a processor", "cores": 2}
    lines = busy_bench.table({"machine": machine, "results": [measured, skipped]}).splitlines()
    assert lines[2] == "| quiet | 2 | 200 (4.99) | 800 (1.25) | 200 (4.99) | 800 (1.25) |"
    assert lines[3] == "| a quota of one core | not measured: no group |  |  |  |  |"
    assert "Measured 2026-12-01, commit 12ab, a processor, 2 cores." in lines[-1]
