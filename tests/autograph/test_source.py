"""The syntax trees of functions: those of their files, read from their own lines."""

import ast
import importlib
import linecache
import types

import pytest
from _pytest.assertion.rewrite import rewrite_asserts

import tinygrad_cg as tf
from tinygrad_cg._rules import user_source as source
from tinygrad_cg.autograph import _convert as convert

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
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            if const.co_name != "Owner":
                yield const
            yield from functions(const)


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
    assert names == ["plain", "decorated", "method", "waiting", "inner", "last"]


def test_a_function_does_not_need_its_file(tmp_path, monkeypatch):
    path = tmp_path / "of_its_lines.py"
    path.write_text("def double(x):\n    return 2 * x\n\n\ntriple = lambda x: 3 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("of_its_lines")
    monkeypatch.setattr(source, "_parsed", lambda name, lines: pytest.fail("it was read"))
    assert source.find_definition(module.double).name == "double"
    with pytest.raises(pytest.fail.Exception, match="it was read"):
        source.find_definition(module.triple)


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "changed_since.py"
    path.write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("changed_since")
    path.write_text("def double(x, y):\n    return 2 * x * y\n")
    with pytest.raises(source.NoSource, match="has changed since it was compiled"):
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
        with pytest.raises(source.NoSource, match="has changed since it was compiled"):
            source.find_definition(function)
    path.write_text(text.replace(before, after))
    for function in (functions[0], functions[2]):
        with pytest.raises(source.NoSource, match="has changed since it was compiled"):
            source.find_definition(function)
    assert source.find_definition(functions[1])


RECENT = """
import math
try:
    import numpy as np
except ImportError:
    np = None
from os import path


def around(a):
    def body(y):
        class Kept:
            text = path.join("a", "b")
            kind = {"ja", "nein"}

            def method(self):
                return np.sin(y) if y in {1, 2, 3} else self.method()

        def inner(x, *, n=2):
            return [math.cos(x) for _ in range(n)]

        return Kept, inner(a)

    return body, lambda x: math.sin(x) * 2, lambda x: math.sin(x) * 3


def other(a):
    def body(y):
        return math.sin(a) if y else math.cos(a)

    return body


def of_tests(a):
    def body(y):
        assert math.sin(y) > a
    return body
"""


def transformed(function):
    """A function, and those within it, as they are made where their owner is transformed."""
    yield function
    _, code = convert._transform(function)
    for inner in code.co_consts:
        if getattr(inner, "co_name", "Kept") not in ("Kept", "<listcomp>") and inner.co_argcount:
            cells = tuple(types.CellType() for _ in inner.co_freevars)
            yield from transformed(types.FunctionType(inner, {}, None, None, cells))


def test_a_new_file_is_known_within_transformed_functions(tmp_path):
    path = tmp_path / "of_this_second.py"
    path.write_text(RECENT)
    tree = ast.parse(RECENT)
    rewrite_asserts(tree, RECENT.encode())
    modules = compile(RECENT, str(path), "exec"), compile(tree, str(path), "exec")
    functions = []
    for module in modules:
        names = {}
        exec(module, names)
        for name in ("around", "other", "of_tests"):
            functions += transformed(names[name])
    names = [function.__name__ for function in functions]
    assert [names.count(name) for name in ("body", "inner", "<lambda>")] == [6, 2, 4]
    assert all(source.find_definition(function).lineno for function in functions)
    changes = {
        "around": ('"ja", "nein"', '"ja", "no"'),
        "other": ("math.sin(a) if y else math.cos(a)", "math.cos(a) if y else math.sin(a)"),
        "body": ("math.sin(a) if y else math.cos(a)", "math.cos(a) if y else math.sin(a)"),
        "inner": ("math.cos(x)", "math.tan(x)"),
        "<lambda>": ("* 2, lambda x: math.sin(x) * 3", "* 3, lambda x: math.sin(x) * 2"),
    }
    for name, change in changes.items():
        path.write_text(RECENT.replace(*change))
        linecache.clearcache()  # texts of one size, written within a tick of the clock
        assert name in {function.__name__ for function in functions if is_refused(function)}


def is_refused(function):
    try:
        return not source.find_definition(function)
    except source.NoSource:
        return True


def test_a_script_that_was_just_written_branches_on_tensors(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("""
import tinygrad_cg as tf

def f(x):
    def body(y):
        if tf.sin(y) > 0.: return y
        return y * 2.
    return body(x)
""")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    f = tf.function(names["f"])
    assert [float(f(tf.constant(x))) for x in (1.0, -1.0)] == [1.0, -2.0]
