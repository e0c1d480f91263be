"""Which room of the kernels may import which, and that no module's name stands twice."""

import ast
from pathlib import Path

import pytest

import tinygrad_cg_kernels

pytestmark = pytest.mark.quick

PACKAGE = Path(tinygrad_cg_kernels.__file__).parent
ROOMS = ("runtime", "elementary", "loops", "reduce", "move", "linear", "sparse", "cuda")
"""From the bottom up: a room may import those before it, and itself."""


def imported(path: Path) -> set[str]:
    """The full names of the kernels' modules, or of names in them, that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, path
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.startswith("tinygrad_cg_kernels.")}


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_the_rooms_are_those_that_there_are():
    folders = {path.name for path in PACKAGE.iterdir() if any(path.glob("*.py"))}
    assert folders == {*ROOMS}


def test_rooms_import_downwards():
    for path in files():
        parts = path.relative_to(PACKAGE).parts
        if len(parts) == 1:
            assert not imported(path)
            continue
        allowed = ROOMS[: ROOMS.index(parts[0]) + 1]
        for name in imported(path):
            assert name.split(".")[1] in allowed, f"{path} imports {name}"


def test_modules_import_one_another_in_no_circle():
    modules = {}
    for path in files():
        parts = [p for p in path.relative_to(PACKAGE).with_suffix("").parts if p != "__init__"]
        modules[".".join(["tinygrad_cg_kernels", *parts])] = path
    arrows = {}
    for module, path in modules.items():
        targets = [name if name in modules else name.rpartition(".")[0] for name in imported(path)]
        arrows[module] = {name for name in targets if name in modules} - {module}
    while arrows:
        leaves = {module for module, targets in arrows.items() if not targets & arrows.keys()}
        assert leaves, f"a circle among {sorted(arrows)}"
        arrows = {module: targets for module, targets in arrows.items() if module not in leaves}


def test_the_last_part_of_a_name_tells_a_module():
    """Generated text calls functions by it."""
    called = [path for path in files() if path.relative_to(PACKAGE).parts[0] != "cuda"]
    names = [path.stem for path in called if path.name != "__init__.py"]
    assert len(set(names)) == len(names)
