"""The names that error messages recommend exist."""

import ast
import re
from pathlib import Path

import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick

PACKAGE = Path(tf.__file__).parent
PUBLIC = re.compile(r"\btf\.([A-Za-z_](?:[\w.]*\w)?)(?!\w|\.\.)")
CALLED = re.compile(r"\b(?:[Uu]se|or) `?([a-z]\w*)\(")
BARE = re.compile(r"\b[Uu]se ([a-z]\w*_[a-z]\w*)")
HOMES = (tf, tf.linalg, tf.Tensor, tf.GradientTape, tf.optimizers.Optimizer)
OTHERS = {"Variables", "files", "float", "int", "isinstance", "rechunk", "repartition"}


def texts_of(path):
    """Return the strings of a module, without docstrings; a formatted value is ``{}``."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield str(node.value)


def test_names_in_error_messages_exist():
    absent, count = [], 0
    for path in PACKAGE.rglob("*.py"):
        for text in texts_of(path):
            names = {*CALLED.findall(text), *BARE.findall(text)} - OTHERS
            count += len(names)
            absent += [
                (name, text) for name in names if not any(hasattr(home, name) for home in HOMES)
            ]
            for name in {*PUBLIC.findall(text)} - OTHERS:
                value = tf
                for part in name.split("."):
                    value = getattr(value, part, None)
                count += 1
                absent += [(name, text)] * (value is None)
    assert not absent
    assert count > 100
