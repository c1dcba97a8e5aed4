"""tools/check_includes.py and tools/check_files.py: what they catch, on made-up trees."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CMAKE = """
# xsa_folder(NAME ...) in a comment is no folder
xsa_folder(base DEPS Threads::Threads)
xsa_folder(kernels DEPS xsa_base)
xsa_folder(text DEPS xsa_base)
if(XSA_TORCH)
  xsa_folder(op SHARED TORCH DEPS xsa_kernels)
  xsa_folder(model TORCH DEPS xsa_op)
endif()
"""
MARKERS = "<!-- arrows: made by tools/check_includes.py -->\n<!-- end of arrows -->\n"


def make_tree(folder, files):
    files = {"CMakeLists.txt": CMAKE, "docs/architecture.md": f"# Tree\n{MARKERS}", **files}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(tool, *arguments):
    command = [sys.executable, ROOT / "tools" / tool, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check_includes(folder, files, write=True):
    make_tree(folder, files)
    return run("check_includes.py", *(["--write"] if write else []), folder)


def test_arrows_down_pass(tmp_path):
    result = check_includes(
        tmp_path,
        {
            "xsa/model/gpt.cpp": '#include "xsa/model/gpt.h"\n#include "xsa/base/json.h"\n'
            '#include "xsa/kernels/attention.h"\n#include <ATen/ATen.h>\n#include <vector>\n',
            "xsa/kernels/cpu/forward.cpp": '#include "xsa/kernels/core/mask.h"\n',
            "tests/kernels/mask_test.cpp": '#include "xsa/kernels/core/mask.h"\n'
            '#include "tests/support/compare.h"\n',
        },
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("path", "line", "remedy"),
    [
        ("xsa/base/a.h", '#include "xsa/text/tokenizer.h"', "xsa/base may include base"),
        ("xsa/text/a.cpp", '  #  include "xsa/model/gpt.h"', "xsa/text may include base, text"),
        ("xsa/kernels/a.cpp", "#include <ATen/ATen.h>", "knows no Torch"),
        ("xsa/text/a.cpp", "#include <c10/util/Half.h>", "knows no Torch"),
        ("xsa/model/a.cpp", "#include <torch/torch.h>", "half a minute"),
        ("xsa/op/a.cpp", '#include "xsa/kernels/core/mask.h"', "only xsa/kernels/NAME.h"),
        (
            "tests/op/a_test.cpp",
            '#include "xsa/kernels/cpu/plan.h"',
            "only xsa/kernels/NAME.h",
        ),
        ("tests/text/a_test.cpp", '#include "xsa/model/gpt.h"', "tests/text may include"),
        ("tests/text/a_test.cpp", '#include "tests/model/eager.h"', "tests/support"),
        ("xsa/base/a.cpp", '#include "tests/support/compare.h"', "must not depend on tests"),
        ("xsa/base/a.cpp", '#include "bench/kernel_call.h"', "must not depend on bench"),
        ("xsa/base/a.cpp", '#include "json.h"', "write the path in the repository"),
        ("xsa/stray/a.cpp", "#include <vector>", "no xsa_folder(stray)"),
    ],
)
def test_a_wrong_include_is_named_with_line_and_remedy(tmp_path, path, line, remedy):
    result = check_includes(tmp_path, {path: f"// head\n{line}\n"})
    assert result.returncode == 1
    assert f"{path}:{1 if 'stray' in path else 2}: " in result.stdout
    assert remedy in result.stdout


def test_arrows_that_go_round_are_an_error(tmp_path):
    result = check_includes(
        tmp_path, {"CMakeLists.txt": CMAKE + "xsa_folder(base DEPS xsa_text)\n"}
    )
    assert result.returncode == 1
    assert "go round: base -> text -> base" in result.stderr


def test_a_stale_picture_fails_until_it_is_redrawn(tmp_path):
    stale = check_includes(tmp_path, {}, write=False)
    assert stale.returncode == 1 and "stale" in stale.stdout
    assert run("check_includes.py", "--write", tmp_path).returncode == 0
    assert run("check_includes.py", tmp_path).returncode == 0
    assert "model --> op" in (tmp_path / "docs/architecture.md").read_text()


def check_files(folder, files):
    make_tree(folder, files)
    return run("check_files.py", folder)


def test_a_long_file_fails_unless_the_decisions_name_it(tmp_path):
    files = {"xsa/base/long.cpp": "int x;\n" * 401, "xsa/kernels/long.cpp": "int x;\n" * 600}
    result = check_files(tmp_path, files)
    assert result.returncode == 1
    assert result.stdout.startswith("xsa/base/long.cpp:401: 401 lines")
    assert "kernels" not in result.stdout
    decision = {"docs/decisions/long-files.md": "- `xsa/base/long.cpp`: a table.\n"}
    assert check_files(tmp_path, decision).returncode == 0


@pytest.mark.parametrize("line", ["// TO" + "DO: later", 'open("/home/someone/x")'])
def test_what_is_left_for_later_and_paths_of_machines_fail(tmp_path, line):
    result = check_files(tmp_path, {"xsa/base/a.cpp": f"\n{line}\n"})
    assert result.returncode == 1
    assert "xsa/base/a.cpp:2: " in result.stdout


def test_a_placeholder_file_fails(tmp_path):
    result = check_files(tmp_path, {"xsa/base/placeholder.cpp": "\n"})
    assert result.returncode == 1 and "placeholder" in result.stdout
