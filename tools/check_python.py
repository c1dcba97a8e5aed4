"""Has this Python what the program is compiled against? One line a fault, and exit code 1.

  PYTHON tools/check_python.py torch       version, headers and libraries of torch
  PYTHON tools/check_python.py pyarrow     the same of pyarrow, of requirements.txt's major version
  PYTHON tools/check_python.py versions    both versions, at once and without a look inside
"""

import importlib
import importlib.metadata
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEAST_TORCH = (2, 13)


def wanted(name):
    """The version that requirements.txt names."""
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        package, _, version = line.strip().partition("==")
        if package == name:
            return version
    sys.exit(f"requirements.txt: expected a line {name}==VERSION")


def found(name):
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever a broken package raises
        sys.exit(f"expected {name}, but it cannot be imported: {type(error).__name__}: {error}")


def check_files(name, version, folders_and_files):
    """Conda's and distributions' packages leave some of these out; PyPI's wheels have them."""
    for folder, pattern in folders_and_files:
        if not any(pathlib.Path(folder).glob(pattern)):
            sys.exit(
                f"expected {name} with {pattern} in {folder}, as its wheel on PyPI has, "
                f"found {name} {version} without it"
            )


def numbers(version, count):
    return tuple(int(part) for part in version.split("+")[0].split(".")[:count])


def check_torch():
    torch = found("torch")
    if numbers(torch.__version__, 2) < LEAST_TORCH:
        sys.exit(f"expected torch 2.13 or newer, found torch {torch.__version__}")
    folder = pathlib.Path(torch.__file__).parent
    files = [(folder / "include", "ATen/ATen.h"), (folder / "lib", "libtorch_cpu.so")]
    check_files("torch", torch.__version__, files)


def check_pyarrow():
    pyarrow, version = found("pyarrow"), wanted("pyarrow")
    if numbers(pyarrow.__version__, 1) != numbers(version, 1):
        sys.exit(f"expected pyarrow {numbers(version, 1)[0]}, found pyarrow {pyarrow.__version__}")
    headers, libraries = pyarrow.get_include(), pyarrow.get_library_dirs()[0]
    files = [(headers, "arrow/api.h"), (headers, "parquet/arrow/reader.h")]
    files += [(libraries, "libarrow.so*"), (libraries, "libparquet.so*")]
    check_files("pyarrow", pyarrow.__version__, files)


def version_of(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


CHECKS = {
    "torch": check_torch,
    "pyarrow": check_pyarrow,
    "versions": lambda: print(version_of("torch"), version_of("pyarrow")),
}
CHECKS[sys.argv[1]]()
