"""The syntax trees of functions: those of their files, read from their own lines."""

import ast
import importlib
import types

import pytest

from tinygrad_cg._autograph import source

MODULE = '''
import functools


def plain(x):
    y = x + 1
    return y


@functools.lru_cache(
    maxsize=None,
)
def decorated(
    a,
    b=2,
):
    """Text
that begins at the margin."""

    # a comment

    return (
        a + b
    )
# a comment at the margin
    if False:
        later = 1


class Owner:
    def method(self, x): return x

    async def waiting(self):
        text = """
first
"""
        def inner():
            return text
        return inner


def last(x):
    return x
'''


def functions(code):
    """The codes of a module's functions, those in classes and in functions too."""
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            if one.co_name != "Owner":
                yield one
            yield from functions(one)


def test_trees_are_those_of_the_whole_file(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    lines = MODULE.splitlines(keepends=True)
    definitions = ast.FunctionDef, ast.AsyncFunctionDef
    nodes = (node for node in ast.walk(ast.parse(MODULE)) if isinstance(node, definitions))
    whole = {node.name: node for node in nodes}
    names = []
    for code in functions(compile(MODULE, str(path), "exec")):
        alone = source._alone(code, lines)
        if alone is not None:
            names.append(alone.name)
            expected = ast.dump(whole[code.co_name], include_attributes=True)
            assert ast.dump(alone, include_attributes=True) == expected
    assert names == ["plain", "method", "inner", "last"]  # others have text at the margin


def test_a_function_does_not_need_its_file(tmp_path, monkeypatch):
    path = tmp_path / "of_its_lines.py"
    path.write_text("def double(x):\n    return 2 * x\n\n\ntriple = lambda x: 3 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("of_its_lines")
    monkeypatch.setattr(source, "_definitions", lambda code, lines: pytest.fail("it was read"))
    assert source.find_definition(module.double).name == "double"
    with pytest.raises(pytest.fail.Exception, match="it was read"):
        source.find_definition(module.triple)


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "changed_since.py"
    path.write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("changed_since")
    path.write_text("def double(x, y):\n    return 2 * x * y\n")
    with pytest.raises(source.NoSource, match="not what it was compiled from"):
        source.find_definition(module.double)


@pytest.mark.parametrize(
    ("before", "after"),
    [("2 * x", "3 * x"), ("2 * x", "2 + x"), ("abs(x)", "int(x)"), ("a.y", "a.z")],
)
def test_a_changed_line_is_refused(before, after, tmp_path, monkeypatch):
    name = f"of_{before}_and_{after}".translate({ord(c): "_" for c in " *+()."})
    text = f"""
from __future__ import annotations


def around(a):
    class Owner:
        def __private(self, x: float = 3, *, y=4):
            "What it does."
            return [{before} for x in range(x)]

        def method(self, x):
            return super().method(self.__private(x), a)

    return (lambda x: {before}), Owner.method, Owner._Owner__private


functions = around(5)
"""
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    functions = importlib.import_module(name).functions
    for function in functions:
        assert source.find_definition(function)
    path.write_text("# a comment that moves what follows\n" + text)
    for function in functions:
        with pytest.raises(source.NoSource, match="not what it was compiled from"):
            source.find_definition(function)
    path.write_text(text.replace(before, after))
    for function in (functions[0], functions[2]):
        with pytest.raises(source.NoSource, match="not what it was compiled from"):
            source.find_definition(function)
    assert source.find_definition(functions[1])
