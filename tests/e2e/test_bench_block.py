"""xsa bench block: the table, the file, and what it refuses."""

import json

TINY = ("--lengths=8,32", "--width=16", "--heads=2", "--head-dim=8", "--rounds=2", "--threads=1")


def test_a_block_is_measured_with_and_without_xsa(xsa):
    done = xsa("bench", "block", *TINY, "--output=block.json")
    assert "time x " in done.stdout and "█" in done.stdout
    result = json.loads((xsa.folder / "block.json").read_text())
    cases = [(each["length"], each["mode"]) for each in result["results"]]
    assert cases == [(n, mode) for n in (8, 32) for mode in ("forward", "forward+backward")]
    for each in result["results"]:
        assert each["memory_ratio"] <= 1.005
        for attention in ("standard", "exclusive"):
            lower, upper = each[attention]["tokens_per_s"]["quartiles"]
            assert 0 < lower <= each[attention]["tokens_per_s"]["median"] <= upper
    again = xsa("bench", "block", *TINY, "--json", "--output=block.json")
    assert json.loads(again.stdout)["type"] == "float32"


def test_what_cannot_be_measured_is_refused(xsa):
    assert "block" in xsa("bench", "blok", expect=2).stderr
    assert "--dtype" in xsa("bench", "block", "--dtype=int8", expect=2).stderr
    assert "--lengths" in xsa("bench", "block", "--lengths=1", expect=2).stderr
    (xsa.folder / "notes.json").write_text("{}")
    assert "--output" in xsa("bench", "block", "--output=notes.json", expect=2).stderr
