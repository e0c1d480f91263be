"""What editors and type checkers see: stubs of functions made from records, and annotations."""

import ast
import importlib
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_cg
from tests.support import stubs, typed_program
from tests.support.spelling_cases import is_written
from tinygrad_cg._core.tensor import ArrayLike

LIBRARY = Path(tinygrad_cg.__file__).parent
PUBLIC = (
    *("", ".autodiff", ".compat", ".compat.v1", ".config", ".config.cache", ".config.threading"),
    ".config.experimental",
    *(".contrib", ".contrib.eager", ".debugging", ".dtypes", ".errors", ".experimental", ".keras"),
    *(
        ".keras.backend",
        ".keras.config",
        ".keras.metrics",
        ".keras.ops",
        ".keras.optimizers",
        ".keras.random",
        ".linalg",
        ".math",
        ".module",
        ".nest",
    ),
    *(
        ".nn",
        ".numpy",
        ".numpy.fft",
        ".numpy.linalg",
        ".numpy.random",
        ".optimizers",
        ".random",
        ".schedules",
        ".data",
    ),
    *(".signal", ".test"),
)


def test_stubs_are_those_that_the_records_give():
    """``python -m tests.support.stubs`` writes them."""
    for path, text in stubs.stubs().items():
        assert path.read_text(encoding="utf-8") == text, path


def test_each_module_whose_names_are_computed_has_a_stub():
    computed = {
        path.with_suffix(".pyi")
        for path in LIBRARY.rglob("*.py")
        if "\nglobals()" in path.read_text(encoding="utf-8")
    }
    written = {*LIBRARY.rglob("*.pyi")}
    assert computed <= stubs.stubs().keys() == written


def test_tensors_declare_the_methods_that_a_table_puts_on_them():
    assert tinygrad_cg.numpy.sum is ArrayLike.sum  # once loaded; before, what loads it
    tree = ast.parse(inspect.getsource(ArrayLike))
    block = next(node for node in tree.body[0].body if isinstance(node, ast.If))
    declared = {node.name: node for node in block.body if isinstance(node, ast.FunctionDef)}
    for node in block.body:
        if isinstance(node, ast.Assign):
            declared |= {target.id: declared[node.value.id] for target in node.targets}
    for name in list(vars(ArrayLike)):
        value = getattr(ArrayLike, name, None)  # what the first use loads is there then
        function = value.fget if isinstance(value, property) else value
        if inspect.isfunction(function) and not is_written(function, f"ArrayLike.{name}"):
            if name.startswith("__array_"):  # for NumPy alone
                continue
            taken = declared.pop(name).args
            names = [arg.arg for arg in (*taken.args, *([taken.vararg] if taken.vararg else []))]
            parameters = inspect.signature(function).parameters.values()
            if not name.startswith("__"):
                assert names[1:] == [parameter.name for parameter in parameters][1 : len(names)]
            needed = [parameter for parameter in parameters if parameter.default is parameter.empty]
            assert len(names) >= len(needed)
    assert not declared


@pytest.mark.parametrize("name", PUBLIC)
def test_dir_shows_public_names_only(name):
    module = importlib.import_module(f"tinygrad_cg{name}")
    shown = [name for name in dir(module) if not name.startswith("_")]
    assert shown == sorted(name for name in module.__all__ if not name.startswith("_"))


@pytest.mark.parametrize("program", typed_program.PROGRAMS, ids=lambda value: value.__name__)
def test_the_typed_program_runs(program):
    program()


@pytest.mark.skipif(importlib.util.find_spec("pyright") is None, reason="needs pyright")
def test_the_typed_program_is_accepted_in_strict_mode():
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, str(typed_program.__file__)],
        cwd=LIBRARY.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
