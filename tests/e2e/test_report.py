"""One page from a comparison, a diagnosis, an evaluation and a block benchmark."""

import json
import shutil

import pytest
from conftest import RECIPE, Program, made_text


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "text.txt").write_text(made_text(60_000))
    recipe = RECIPE.replace("steps = 120", "steps = 20").replace("every = 20", "every = 5")
    (folder / "tiny.toml").write_text(recipe)
    program = Program(folder)
    program("compare", "tiny.toml", "--text", "text.txt")
    program("train", "tiny.toml", "--text", "text.txt", "--name", "alone")
    program("diagnose", "runs/alone", "--sequences", 4, "--file", "alone.json")
    (folder / "runs" / "alone" / "summary.json").write_text("{")
    program.done = program(
        "report", "runs", "alone.json", "--output", "page.html", "--csv", "csv", "--json"
    )
    program.result = json.loads(program.done.stdout)
    return program


def figure(result, number):
    return next(each for each in result["figures"] if each["number"] == number)


def test_the_losses_are_those_of_the_runs(page):
    table = figure(page.result, "Fig. 3")["table"]
    found = dict(zip(table["head"], table["rows"][0]))
    compared = json.loads((page.folder / "runs" / "tiny" / "compare.json").read_text())["results"]
    losses = [compared[kind]["validation_loss"]["mean"] for kind in ("standard", "exclusive")]
    assert [found["standard"], found["XSA"]] == pytest.approx(losses, rel=1e-5)
    assert found["margin"] == pytest.approx(losses[0] - losses[1], abs=1e-6)


def test_layers_of_runs_and_diagnosis_files_are_shown(page):
    labels = [view["label"] for view in figure(page.result, "Fig. 1")["views"]]
    assert "diagnoses" in labels and len(labels) >= 2
    assert [panel["title"] for panel in figure(page.result, "Fig. 1")["views"][0]["panels"]] == [
        "cosine of values with one another",
        "diagonal of the attention map",
        "cosine of output y and own value",
    ]


def test_the_damaged_part_is_named_and_spoils_nothing(page):
    assert len(page.result["problems"]) == 1
    assert "runs/alone/summary.json" in page.result["problems"][0]
    assert "runs/alone/summary.json" in page.done.stderr
    assert "runs/alone/summary.json" in (page.folder / "page.html").read_text()


def test_each_figure_has_its_csv(page):
    for each in page.result["figures"]:
        for end, csv in each["csvs"].items():
            text = (page.folder / "csv" / f"{each['id']}{end}").read_bytes().decode()
            assert text == csv and text.count("\r\n") > 1
    assert "-table.csv" in figure(page.result, "Fig. 3")["csvs"]


def test_one_run_is_enough_and_no_path_is_a_usage_error(page):
    page("report", "runs/tiny/standard-seed1337", "--output", "one.html")
    assert "Fig. 1" in (page.folder / "one.html").read_text()
    page("report", expect=2)
    assert "absent" in page("report", "absent", expect=1).stderr


def test_only_a_page_is_replaced(page):
    page("report", "runs/tiny/standard-seed1337", "alone.json", "--output", "page.html")
    before = (page.folder / "alone.json").read_bytes()
    page("report", "runs", "alone.json", "--output", "alone.json", expect=2)
    page("report", "runs", "--output", "text.txt", expect=2)
    assert (page.folder / "alone.json").read_bytes() == before


def test_a_file_that_only_speaks_of_xsa_is_not_a_page(page):
    words = ("report", "runs", "--output")
    notes = page.folder / "notes.md"
    notes.write_text("On Exclusive Self Attention and self-attention.")
    assert "--overwrite" in page(*words, "notes.md", expect=2).stderr
    recipe = page.folder / "runs" / "tiny" / "recipe.json"
    for more in ([], ["--overwrite"]):
        assert "is what the command reads" in page(*words, recipe, *more, expect=2).stderr
    assert "Exclusive" in notes.read_text()
    page(*words, "notes.md", "--overwrite")
    assert notes.read_text().startswith("<!DOCTYPE html>")
    page(*words, "notes.md")


def test_the_csv_of_others_is_left_alone_and_no_page_is_written_then(page):
    folder = page.folder / "figures"
    folder.mkdir()
    (folder / "fig1.csv").write_text("mine")
    words = ("report", "runs", "--output", "second.html", "--csv", "figures")
    assert "fig1.csv is there" in page(*words, expect=2).stderr
    assert (folder / "fig1.csv").read_text() == "mine"
    assert not (page.folder / "second.html").exists()
    for more in (["--overwrite"], []):
        page(*words, *more)
    words = ("report", "runs", "--output", "figures/fig1.csv", "--csv", "figures", "--overwrite")
    assert "is what --output writes" in page(*words, expect=2).stderr


def test_a_comparison_that_was_changed_by_hand(page):
    folder = page.folder / "changed"
    shutil.copytree(page.folder / "runs" / "tiny", folder)
    path = folder / "compare.json"
    compared = json.loads(path.read_text())
    compared["machine"]["instruction_sets"] = ["one", "two"]
    path.write_text(json.dumps(compared))
    page("report", "changed")
    assert "<dd>one, two</dd>" in (folder / "report.html").read_text()
    compared["results"] = 3
    path.write_text(json.dumps(compared))
    error = page("report", "changed", expect=1).stderr
    assert "changed/compare.json" in error and "xsa compare writes them" in error


def test_runs_of_other_lengths_or_texts_are_never_averaged_as_seeds(xsa):
    """In the tables of losses and of tasks."""
    record = {"goal": "To cut bread,", "sol1": "use a knife.", "sol2": "use a spoon.", "label": 0}
    (xsa.folder / "piqa.jsonl").write_text(json.dumps(record) + "\n")
    (xsa.folder / "other.txt").write_text(made_text(60_000, seed=2))
    for name, steps, text in (("a", 6, "text.txt"), ("b", 9, "text.txt"), ("c", 6, "other.txt")):
        for seed in (1, 2) if name == "a" else (1,):
            settings = ("--text", text, f"--train.steps={steps}", f"--train.seed={seed}")
            xsa("train", "tiny.toml", "--name", f"{name}-seed{seed}", "--train.lr=1e-3", *settings)
            xsa(
                *("eval", f"runs/{name}-seed{seed}", "--tasks", "piqa"),
                *("--data", "piqa=piqa.jsonl", "--output", f"evaluations/{name}-seed{seed}"),
            )
    found = json.loads(xsa("report", "runs", "evaluations", "--json").stdout)
    labels = [view["label"] for view in figure(found, "Fig. 3")["views"]]
    assert len(labels) == 3 and len(set(labels)) == 3
    models = [head for head in figure(found, "Table 2")["table"]["head"] if "XSA" in head]
    assert len([head for head in models if "paper" not in head]) == 3
    assert any("train.steps 9" in head for head in models)
    assert any("data_sha256" in head for head in models)
