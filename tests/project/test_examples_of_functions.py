"""The table of examples: each is the end of a docstring; `test_reference.py` runs them."""

import importlib

import pytest

import tinygrad_cg as tf
from tinygrad_cg._core.examples import EXAMPLES, without_example
from tinygrad_cg._core.primitive import OPS

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("key", EXAMPLES)
def test_each_example_of_the_table_is_in_a_docstring(key):
    module, _, name = key.rpartition(".")
    home = importlib.import_module(f"tinygrad_cg.{module}") if module else None
    function = OPS[name].function if home is None else getattr(home, name)
    assert EXAMPLES[key].startswith(">>> ")
    assert function.__doc__.endswith(f"Examples\n--------\n{EXAMPLES[key]}")


def test_functions_of_other_namespaces_do_not_inherit_the_example():
    """It would call another function, perhaps with other names of parameters."""
    assert without_example(tf.math.log1p.__doc__).startswith("Return log(1 + x)")
    assert "Examples" in tf.math.log1p.__doc__
    assert "Examples" not in tf.keras.ops.expm1.__doc__
