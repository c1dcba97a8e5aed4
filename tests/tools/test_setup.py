"""tools/check_python.py, tools/missing_packages.py, tools/with_progress, with made-up packages."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WITH_HEADERS = {
    "torch": ("include/ATen/ATen.h", "lib/libtorch_cpu.so"),
    "pyarrow": (
        "include/arrow/api.h",
        "include/parquet/arrow/reader.h",
        "libarrow.so.9",
        "libparquet.so.9",
    ),
}
PYARROW = """
import os
folder = os.path.dirname(__file__)
def get_include(): return os.path.join(folder, "include")
def get_library_dirs(): return [folder]
"""


def make_package(folder, name, version, files=None):
    """A package of that name for PYTHONPATH, known to importlib.metadata as well."""
    package = folder / name
    package.mkdir()
    text = PYARROW if name == "pyarrow" else ""
    (package / "__init__.py").write_text(f"{text}\n__version__ = '{version}'\n")
    for file in WITH_HEADERS.get(name, ()) if files is None else files:
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).touch()
    facts = folder / f"{name}-{version}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def run(folder, *words):
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def check(folder, name):
    return run(folder, ROOT / "tools/check_python.py", name)


@pytest.mark.parametrize(
    ("name", "version", "files", "complaint"),
    [
        ("torch", "2.13.0+cu130", None, ""),
        ("torch", "3.0.0", None, ""),
        ("torch", "2.12.1", None, "expected torch 2.13 or newer, found torch 2.12.1"),
        ("torch", "2.9.0", None, "expected torch 2.13 or newer, found torch 2.9.0"),
        ("torch", "2.13.0", [], "expected torch with ATen/ATen.h in"),
        ("pyarrow", "26.9.9", None, ""),
        ("pyarrow", "15.0.2", None, "expected pyarrow 26, found pyarrow 15.0.2"),
        ("pyarrow", "27.0.0", None, "expected pyarrow 26, found pyarrow 27.0.0"),
        ("pyarrow", "26.0.1", ["libarrow.so.9"], "found pyarrow 26.0.1 without it"),
    ],
)
def test_a_python_is_checked_before_anything_is_compiled(tmp_path, name, version, files, complaint):
    make_package(tmp_path, name, version, files)
    done = check(tmp_path, name)
    assert done.returncode == bool(complaint), done.stderr
    assert complaint in done.stderr and len(done.stderr.splitlines()) == bool(complaint)


def test_a_package_that_cannot_be_imported_is_named_with_what_it_says(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libgomp.so.1: not found')")
    assert "OSError: libgomp.so.1: not found" in check(tmp_path, "torch").stderr


def test_another_major_version_of_pyarrow_counts_as_missing(tmp_path):
    make_package(tmp_path, "pyarrow", "15.0.2")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("pyarrow==26.0.1\n")
    tool = ROOT / "tools/missing_packages.py"
    assert run(tmp_path, tool, requirements).stdout == "pyarrow==26.0.1\n"
    requirements.write_text("pyarrow==15.9.9\n")
    assert run(tmp_path, tool, requirements).stdout == ""


SETUP = """
set -e
mkdir -p tools .setup
cp "$ROOT"/tools/{setup,check_python.py,missing_packages.py,with_progress} tools/
cp "$ROOT"/requirements*.txt .
printf '#!/bin/sh\\nexit 1\\n' >cmake; chmod +x cmake
PATH=$PWD:$PATH PYTHON=$PWD/python tools/setup build
"""


def test_setup_refuses_a_given_python_before_it_configures(tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    make_package(packages, "torch", "2.12.1")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", SETUP],
        cwd=tmp_path,
        env={**os.environ, "ROOT": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert f"PYTHON={python}: expected torch 2.13 or newer, found torch 2.12.1." in done.stderr
    assert "PYTHON=venv" in done.stderr and "configuring" not in done.stdout


# ---- progress

COUNTING = """
for done in 1 2 3 4; do
  echo "[$done/4] Building $done"
  for turn in $(seq 600); do
    grep -q "$done of 4 files" shown && break
    sleep 0.05
  done
done
exit 7
"""


def with_progress(folder, script):
    """Runs it with its lines going to the file `shown`, for which the script may wait."""
    with open(folder / "shown", "wb") as shown:
        done = subprocess.run(
            [ROOT / "tools/with_progress", "building", "log", "bash", "-c", script],
            cwd=folder,
            env={**os.environ, "XSA_PROGRESS_EVERY": "0.1"},
            stdout=shown,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.stderr == ""
    return done.returncode, (folder / "shown").read_text()


def test_a_build_shows_files_done_of_all_and_the_time_left_and_ends_as_its_command(tmp_path):
    code, shown = with_progress(tmp_path, COUNTING)
    assert code == 7
    assert (tmp_path / "log").read_text().count("Building") == 4
    lines = shown.splitlines()
    assert all(line.startswith("building: ") for line in lines)
    assert any("1 of 4 files" in line and line.endswith(" left") for line in lines)
    assert "4 of 4 files" in lines[-1] and "left" not in lines[-1]


def test_a_command_that_counts_nothing_shows_what_it_said_last(tmp_path):
    (tmp_path / "log").write_text("[9/9] of an earlier command\n")
    wait = "for n in $(seq 600); do grep -q torch shown && break; sleep 0.05; done"
    script = f'echo "Fetching torch"; {wait}'
    code, shown = with_progress(tmp_path, script)
    assert code == 0
    assert "building: 0 s, Fetching torch" in shown and "9 of 9" not in shown
