#!/usr/bin/env python3
"""Breaks the code in small ways, one at a time, and sees that a test turns red each time.

  tools/mutate.py [NAME...] [--list] [--keep]

Works on a copy of the tree in build-mutate/ (`make mutate`). A sabotage that no test notices
survives: exit 1. A text that its file no longer holds exactly once is an error, so that the table
cannot rot. Slow: each sabotage rebuilds what depends on its file. Standard library only.
"""

import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "build-mutate"
COPIED = ("xsa", "tests", "cmake", "recipes", "CMakeLists.txt", "CMakePresets.json")


@dataclasses.dataclass(frozen=True)
class Sabotage:
    name: str
    file: str
    text: str
    replacement: str
    program: str  # the test program that must turn red


SABOTAGES = [
    Sabotage(
        "exclusion-sign",
        "xsa/kernels/core/exclusion.h",
        "return y - ac * w;",
        "return y + ac * w;",
        "test_kernels",
    ),
    Sabotage(
        "eps-rule",
        "xsa/kernels/core/exclusion.h",
        "return ww < eps * eps ? eps * eps : ww;",
        "return ww + eps * eps;",
        "test_kernels",
    ),
    Sabotage(
        "eps-gradient",
        "xsa/kernels/core/exclusion.h",
        "(eps_decides ? -a : 2 - a)",
        "(2 - a)",
        "test_kernels",
    ),
    Sabotage(
        "causal-off-by-one",
        "xsa/kernels/core/mask.h",
        "intersect(all, {0, own + 1})",
        "intersect(all, {0, own})",
        "test_kernels",
    ),
    Sabotage(
        "window-off-by-one",
        "xsa/kernels/core/mask.h",
        "{own - params.window + 1, own + params.window}",
        "{own - params.window, own + params.window}",
        "test_kernels",
    ),
    Sabotage(
        "delta-without-dlse",
        "xsa/kernels/cpu/backward.h",
        "z_dz[r] - (call.dlse ? call.dlse[at + r] : 0)",
        "z_dz[r]",
        "test_kernels",
    ),
    Sabotage(
        "strange-queries-leak",
        "xsa/kernels/cpu/backward.h",
        "block.is_finite ? sum_piece<N, A, true> : sum_piece<N, A, false>",
        "sum_piece<N, A, true>",
        "test_kernels",
    ),
    Sabotage(
        "sink-keys-counted-twice",
        "xsa/kernels/cpu/forward.h",
        "max_of(keys.near.begin, call.mask.num_sink_keys > 0 ? keys.sinks.end : 0)",
        "keys.near.begin",
        "test_kernels",
    ),
    Sabotage(
        "bf16-truncates",
        "xsa/kernels/core/convert.h",
        "bits + 0x7fffu + ((bits >> 16) & 1u)",
        "bits",
        "test_kernels",
    ),
    Sabotage(
        "composite-delta-without-dlse",
        "xsa/op/composite.cpp",
        "if (has(in.dlse)) delta = delta - call.rows(*in.dlse);",
        "",
        "test_op",
    ),
    Sabotage(
        "loader-targets-are-inputs",
        "xsa/data/loader.cpp",
        "std::copy(tokens.begin() + 1, tokens.end(), targets.begin());",
        "std::copy(tokens.begin(), tokens.end() - 1, targets.begin());",
        "test_data",
    ),
    Sabotage(
        "every-epoch-the-same-order",
        "xsa/data/loader.cpp",
        "order_.emplace(seed_, epoch_, rows_)",
        "order_.emplace(seed_, 0, rows_)",
        "test_data",
    ),
    Sabotage(
        "every-rank-takes-the-first-rows",
        "xsa/data/loader.cpp",
        "  skip(rank_.rank * batch_size_);\n",
        "",
        "test_data",
    ),
    Sabotage(
        "packed-documents-see-one-another",
        "xsa/train/batch.h",
        "if (!opener) return {};",
        "if (!opener || rows > 0) return {};",
        "test_train",
    ),
    Sabotage(
        "shard-version-unchecked",
        "xsa/data/shard.cpp",
        "if (header[1] != kVersion)",
        "if (false)",
        "test_data",
    ),
    Sabotage(
        "equal-pairs-merged-from-the-right",
        "xsa/text/pair_merger.cpp",
        "  std::reverse(places_.begin(), places_.end());\n",
        "",
        "test_text",
    ),
    Sabotage(
        "text-cut-after-an-apostrophe",
        "xsa/text/gpt2_pieces.cpp",
        " && before.value != '\\''",
        "",
        "test_text",
    ),
    Sabotage(
        "any-merges-are-gpt2s",
        "xsa/text/gpt2_vocabulary.cpp",
        "check(hash == kMergesHash,",
        "check(true || hash == kMergesHash,",
        "test_text",
    ),
    Sabotage(
        "another-word-in-the-memory",
        "xsa/text/gpt2_tokenizer.cpp",
        "if (!known.key.is_of(key))",
        "if (known.key.high == 0)",
        "test_text",
    ),
    Sabotage(
        "checkpoint-hash-not-compared",
        "xsa/checkpoint/checkpoint.cpp",
        "check(hash == expected.sha256,",
        "check(true || hash == expected.sha256,",
        "test_checkpoint",
    ),
    Sabotage(
        "unknown-setting-accepted",
        "xsa/base/fields.h",
        "check_usage(known, where,",
        "check_usage(true || known, where,",
        "test_base",
    ),
    Sabotage(
        "rope-turns-the-wrong-way",
        "xsa/kernels/cpu/rope.h",
        "hn::NegMulAdd(second, s, hn::Mul(first, c))",
        "hn::MulAdd(second, s, hn::Mul(first, c))",
        "test_kernels",
    ),
    Sabotage(
        "loss-chunks-overwrite",
        "xsa/model/linear_cross_entropy.cpp",
        "loss += softmax_loss(",
        "loss = softmax_loss(",
        "test_model",
    ),
    Sabotage(
        "warmup-off-by-one",
        "xsa/train/config.cpp",
        "static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps)",
        "static_cast<double>(step) / static_cast<double>(config.warmup_steps)",
        "test_train",
    ),
    Sabotage(
        "moments-not-restored",
        "xsa/train/trainer.cpp",
        "  optimizer_.restore(reader.optimizer());\n",
        "",
        "test_train",
    ),
    Sabotage(
        "accumulation-not-divided",
        "xsa/train/trainer.cpp",
        "1.0 / static_cast<double>(step_tokens());",
        "1.0 / static_cast<double>(step_tokens() / config_.train.accumulation);",
        "test_train",
    ),
    Sabotage(
        "context-keeps-its-last-space",
        "xsa/tasks/encode.cpp",
        "text::rstrip(request.context)",
        "std::string_view(request.context)",
        "test_tasks",
    ),
    Sabotage(
        "choices-measured-in-bytes",
        "xsa/tasks/load.cpp",
        "text::code_points(text)",
        "static_cast<std::int64_t>(text.size())",
        "test_tasks",
    ),
    Sabotage(
        "last-of-equal-choices",
        "xsa/tasks/metrics.cpp",
        "value(i) > value(best)",
        "value(i) >= value(best)",
        "test_tasks",
    ),
    Sabotage(
        "resampled-from-another-seed",
        "xsa/tasks/statistics.cpp",
        "static_cast<std::uint32_t>(index)",
        "static_cast<std::uint32_t>(index + 1)",
        "test_tasks",
    ),
    Sabotage(
        "few-rows-bias",
        "xsa/kernels/cpu/linear.h",
        "call.bias[output + r]",
        "call.bias[output]",
        "test_kernels",
    ),
    Sabotage(
        "cached-position",
        "xsa/model/decoder.cpp",
        "*next++ = segment.cache->length() + i;",
        "*next++ = i;",
        "test_model",
    ),
    Sabotage(
        "gpt2-layer-scale",
        "xsa/load/gpt2.cpp",
        "factor /= static_cast<double>(layer + 1);",
        "factor /= static_cast<double>(layer + 2);",
        "test_load",
    ),
    Sabotage(
        "slide-to-a-third",
        "xsa/generate/generate.cpp",
        "std::max<std::size_t>(1, limit / 2)",
        "std::max<std::size_t>(1, limit / 3)",
        "test_generate",
    ),
    Sabotage(
        "one-stream-for-all",
        "xsa/generate/generate.cpp",
        "static_cast<std::uint64_t>(sequence) *",
        "static_cast<std::uint64_t>(0 * sequence) *",
        "test_generate",
    ),
]


def copy_tree():
    """Brings the copy up to date; unchanged files keep their times, so that ninja skips them."""
    for name in COPIED:
        source = ROOT / name
        names = source.rglob("*") if source.is_dir() else [source]
        for path in names:
            target = SCRATCH / path.relative_to(ROOT)
            if path.is_file() and not (
                target.exists() and target.read_bytes() == path.read_bytes()
            ):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
    for target in [path for name in COPIED for path in (SCRATCH / name).rglob("*")]:
        if target.is_file() and not (ROOT / target.relative_to(SCRATCH)).exists():
            target.unlink()


def build(programs):
    command = ["ninja", "-C", str(SCRATCH / "build"), *programs]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def prepare(programs):
    SCRATCH.mkdir(exist_ok=True)
    copy_tree()
    options = [f"-DXSA_PYTHON={ROOT / '.setup/python'}", "-DXSA_BENCH=OFF"]
    command = ["cmake", "-S", SCRATCH, "-B", SCRATCH / "build", "-G", "Ninja", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    result = build(programs)
    if result.returncode:
        sys.exit(f"the tree does not build unharmed:\n{result.stdout[-3000:]}")


def run(program):
    folder = SCRATCH / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = [SCRATCH / "build/bin" / program, "--gtest_brief=1"]
    try:
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=900, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, "it hung"
    return result.returncode, result.stdout + result.stderr


def verdict(sabotage):
    """Applies the sabotage; "red", "compiler" or "SURVIVED", and what noticed. Undoes it."""
    target = SCRATCH / sabotage.file
    intact = target.read_text(encoding="utf-8")
    target.write_text(intact.replace(sabotage.text, sabotage.replacement), encoding="utf-8")
    try:
        result = build([sabotage.program])
        if result.returncode:
            return "compiler", "it does not build: mend the sabotage"
        code, output = run(sabotage.program)
        failed = [line.split()[3] for line in output.splitlines() if "[  FAILED  ] " in line]
        return ("red", failed[0].rstrip(",") if failed else "crash") if code else ("SURVIVED", "")
    finally:
        target.write_text(intact, encoding="utf-8")


def complaints(sabotages):
    for sabotage in sabotages:
        path = ROOT / sabotage.file
        count = path.read_text(encoding="utf-8").count(sabotage.text) if path.exists() else 0
        if count != 1:
            yield f"{sabotage.name}: {sabotage.file} holds its text {count} times; expected once"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these sabotages")
    parser.add_argument("--list", action="store_true", help="list them, check the texts and leave")
    parser.add_argument("--keep", action="store_true", help="keep build-mutate/ for the next time")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {sabotage.name for sabotage in SABOTAGES}
    if unknown:
        parser.error(f"unknown sabotage: {', '.join(sorted(unknown))}; see --list")
    chosen = [s for s in SABOTAGES if not arguments.names or s.name in arguments.names]
    rotten = list(complaints(chosen))
    if arguments.list:
        print("\n".join(f"{s.name:<30} {s.file} ({s.program})" for s in chosen))
    if rotten or arguments.list:
        print("\n".join(rotten))
        return 1 if rotten else 0

    programs = sorted({sabotage.program for sabotage in chosen})
    print(f"[mutate] building {', '.join(programs)} unharmed", flush=True)
    prepare(programs)
    for program in programs:
        code, output = run(program)
        if code:
            sys.exit(f"{program} fails unharmed; mend that first:\n{output[-2000:]}")
    outcomes = []
    for sabotage in chosen:
        began = time.monotonic()
        outcome, by = verdict(sabotage)
        outcomes.append(outcome)
        seconds = time.monotonic() - began
        print(f"[mutate] {sabotage.name:<30} {outcome:<9} {by} ({seconds:.0f} s)", flush=True)
    if not arguments.keep:
        shutil.rmtree(SCRATCH)
    print(f"{outcomes.count('red')} noticed, {len(outcomes) - outcomes.count('red')} not")
    return 0 if all(outcome == "red" for outcome in outcomes) else 1


if __name__ == "__main__":
    os.environ["PATH"] += f":{ROOT / '.setup/tools/bin'}"
    sys.exit(main())
