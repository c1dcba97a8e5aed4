#!/usr/bin/env python3
"""Holds every #include to the arrows between the folders of xsa/, and draws them.

  tools/check_includes.py [--write] [ROOT]

The table of arrows is CMakeLists.txt's own: `xsa_folder(NAME [TORCH] DEPS xsa_X ...)` lets NAME
include X and whatever X reaches, and Torch only where TORCH stands. Links and #includes thus cannot
disagree. Exit 1 with file:line and remedy for each wrong #include, and if docs/architecture.md's
picture is stale (--write redraws it). Standard library only.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
FOLDER = re.compile(r"^\s*xsa_folder\((\w+)([^)]*)\)", re.M)
TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2)/")
SLOW_HEADERS = ("torch/torch.h", "torch/all.h", "torch/extension.h")
KERNELS_DOOR = re.compile(r"^xsa/kernels/\w+\.h$")
SOURCES = (".h", ".cpp", ".cu", ".cuh")
BEGIN, END = "<!-- arrows: made by tools/check_includes.py -->", "<!-- end of arrows -->"


class Table:
    """Which folder may include which, and which may include Torch."""

    def __init__(self, cmake_text):
        self.arrows, self.torch = {}, set()
        for name, rest in FOLDER.findall(cmake_text):
            words = rest.split()
            self.arrows[name] = [word[4:] for word in words if word.startswith("xsa_")]
            if "TORCH" in words:
                self.torch.add(name)
        self.reach = {}
        for name in self.arrows:
            self._visit(name, ())

    def _visit(self, name, above):
        if name in above:
            raise SystemExit(f"CMakeLists.txt: the arrows go round: {' -> '.join((*above, name))}")
        if name not in self.arrows:
            raise SystemExit(f"CMakeLists.txt: no xsa_folder({name}), which xsa_{above[-1]} links")
        if name not in self.reach:
            below = set(self.arrows[name])
            for other in self.arrows[name]:
                below |= self._visit(other, (*above, name))
            self.reach[name] = below
        return self.reach[name]

    def may_include(self, place, folder):
        """What a file may include: the names of folders. `place` is xsa, tests or bench."""
        if place == "bench":
            return set(self.arrows)
        if place == "tests" and folder not in self.arrows:  # tests/support serves all: no Torch
            return set(self.arrows) - self.torch
        return self.reach[folder] | {folder}

    def may_use_torch(self, place, folder):
        return place == "bench" or folder in self.torch

    def picture(self):
        lines = ["```mermaid", "graph TD"]
        for name, below in self.arrows.items():
            shape = f"  {name}([{name}])" if name in self.torch else f"  {name}[{name}]"
            lines.append(shape)
            lines += [f"  {name} --> {other}" for other in below]
        return "\n".join([*lines, "```"])


def fault(table, place, folder, quote, header):
    """Why this #include is wrong and what to do, or None."""
    if header in SLOW_HEADERS:
        return f"{header} takes half a minute to compile; include the ATen header that is needed"
    if TORCH_HEADER.match(header) and not table.may_use_torch(place, folder):
        return f"{place}/{folder} knows no Torch; move this to a TORCH folder of CMakeLists.txt"
    top, _, rest = header.partition("/")
    if quote == '"' and top not in ("xsa", "tests", "bench", "hwy"):
        return 'write the path in the repository ("xsa/..."), or <...> for what is not ours'
    if top in ("tests", "bench") and place != top:
        return f"{place} must not depend on {top}; move what is shared into xsa/"
    if top == "tests" and rest.partition("/")[0] not in (folder, "support"):
        return "a test sees its own folder and tests/support; move the helper into tests/support"
    if top != "xsa":
        return None
    target = rest.partition("/")[0]
    if target not in table.may_include(place, folder):
        allowed = ", ".join(sorted(table.may_include(place, folder))) or "nothing"
        return f"{place}/{folder} may include {allowed}; pass in what it needs, or move the code"
    inside = folder == "kernels" or (place, folder) == ("tests", "support")
    if target == "kernels" and not inside and not KERNELS_DOOR.match(header):
        return "only xsa/kernels/NAME.h is for others; its folders are its own"
    return None


def wrong_includes(root, table):
    for place in ("xsa", "tests", "bench"):
        for path in sorted((root / place).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            parts = path.relative_to(root).parts
            folder = parts[1] if len(parts) > 2 else ""
            if place == "xsa" and folder not in table.arrows:
                yield f"{path.relative_to(root)}:1: no xsa_folder({folder}) in CMakeLists.txt"
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                remedy = match and fault(table, place, folder, *match.groups())
                if remedy:
                    yield f"{path.relative_to(root)}:{number}: wrong {line.strip()}\n    {remedy}"


def stale_picture(root, table, write):
    """Redraws the picture, or returns a complaint that it is stale."""
    path = root / "docs/architecture.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if BEGIN not in text or END not in text:
        return [f"docs/architecture.md: expected the markers '{BEGIN}' and '{END}'"]
    head, rest = text.split(BEGIN, 1)
    fresh = f"{head}{BEGIN}\n{table.picture()}\n{END}{rest.split(END, 1)[1]}"
    if fresh == text:
        return []
    if write:
        path.write_text(fresh, encoding="utf-8")
        return []
    return [
        "docs/architecture.md: the picture of the arrows is stale; redraw it with `make format`"
    ]


def main(arguments):
    write = "--write" in arguments
    roots = [argument for argument in arguments if argument != "--write"]
    root = pathlib.Path(roots[0] if roots else pathlib.Path(__file__).parent.parent).resolve()
    table = Table((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    faults = [*wrong_includes(root, table), *stale_picture(root, table, write)]
    print(
        "\n".join(faults)
        if faults
        else f"{len(table.arrows)} folders: every #include follows the arrows"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
