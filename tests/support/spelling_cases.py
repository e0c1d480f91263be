"""Tables of calls and what the original library gave for them: ``call -> values dtype``.

Several results are separated by semicolons; `value` stands where the result is no tensor.
"""

import ast
import inspect
import sys
from types import FunctionType

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core.primitive import OPS


def spelled_by_records(namespace):
    """The names in a namespace that records give: `test_ops` tries all of these."""
    spellings = [
        spelling.rpartition(".") for record in OPS.values() for spelling in record.spellings
    ]
    return {name for index, _, name in spellings if index == namespace}


def rows(table):
    """Each row as (call, results); a row goes on in lines that are indented."""
    joined = table.strip().replace("\n    ", " ")
    return [tuple(row.rsplit(" -> ", 1)) for row in joined.splitlines()]


def assert_gives(call, results, names):
    """The call gives the values, of the dtype and shape, that the row says."""
    names = names | {"np": np}
    result = eval(call, names)
    assert_annotated(eval(call.partition("(")[0], names), result)
    parts = [part.rpartition(" ") for part in results.split("; ")]
    several = result if len(parts) > 1 or isinstance(result, list) else [result]
    for tensor, (values, _, dtype) in zip(several, parts, strict=True):
        expected = ast.literal_eval(values)
        if dtype == "value":
            assert tensor == (tuple(expected) if isinstance(expected, list) else expected)
        else:
            assert tensor.dtype == dtype
            assert tensor.shape == np.shape(expected)
            assert np.asarray(tensor).tolist() == approximately(expected)


def is_written(function: FunctionType, name: str | None = None) -> bool:
    """Whether a function is the one that a statement ``def name`` of its module defines."""
    file = getattr(sys.modules[function.__module__], "__file__", None)
    code = inspect.unwrap(function).__code__
    names = {code.co_qualname, function.__qualname__, name or function.__name__}
    return code.co_filename == file and len(names) == 1


def assert_annotated(function, result):
    """The type of a result is the one that the function, or else its stub, has for it."""
    annotated = getattr(function, "__annotations__", {}).get("return", "Tensor")
    if annotated in ("Any", "Tensor | Any"):  # of a table, where nothing is said it is a Tensor
        assert tf.is_tensor(result) or annotated != "Any" or is_written(function)
        return
    kind, _, element = annotated.removeprefix("np.").removeprefix("builtins.").partition("[")
    assert type(result).__name__ == kind, (function, annotated)
    if element.startswith("Tensor"):
        assert all(map(tf.is_tensor, result))


def approximately(expected):
    """Nested lists compare number by number; float32 has seven digits."""
    if isinstance(expected, list):
        return [approximately(part) for part in expected]
    return expected if isinstance(expected, bool) else pytest.approx(expected, rel=1e-6, abs=1e-7)


IMAGES = {  # what the rows on convolution and pooling call by name, channels last
    "line": [[[1.0], [5.0], [3.0]]],
    "square": [[[[1.0], [2.0]], [[3.0], [4.0]]]],
    "pair": [[[1.0]], [[10.0]]],  # a filter of width 2
    "wide": [[[[1.0]], [[10.0]]]],  # and one of height 1 as well
}
