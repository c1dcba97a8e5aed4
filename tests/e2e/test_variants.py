"""A model with everything beyond the paper's, in every command."""

import json

VARIANTS = [
    "--model.sink_tokens=2",
    "--model.sink_logits=true",
    "--model.learned_strength=token",
    "--model.strength=0.9",
    "--model.output_gate=true",
    "--model.gated_norm=4",
    "--model.kv_heads=1",
    "--model.window=24",
]


def test_a_model_with_every_variant_goes_through_every_command(xsa):
    train = ["train", "tiny.toml", "--text", "text.txt", "--name", "all", *VARIANTS]
    xsa(*train)
    run = xsa.folder / "runs" / "all"
    summary = json.loads((run / "summary.json").read_text())
    assert summary["validation_loss"] < 1.5  # letters alone: 2.7

    generate = ["generate", "runs/all", "--prompt", "the king ", "--max-tokens", "100"]
    said = xsa(*generate, "--temperature", "0.5").stdout  # beyond the context of 64: it slides
    assert said.startswith("the king ")
    assert " the " in said[9:]

    tasks = xsa.folder / "tasks"
    tasks.mkdir()
    records = [{"goal": "the king", "sol1": "sees the fox.", "sol2": "zq xj vv.", "label": 0}] * 3
    (tasks / "piqa.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    scored = xsa("eval", "runs/all", "--tasks", "piqa", "--data", "tasks").stdout
    assert "piqa" in scored

    other = xsa(*train, "--resume", "--model.sink_tokens=3", expect=2)
    assert "model.sink_tokens" in other.stderr
