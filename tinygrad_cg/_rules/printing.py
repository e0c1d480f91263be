"""The function `print`: values of tensors, in a compiled function as well.

Modelled on ``tf.print``.
"""

from __future__ import annotations

import builtins
import logging
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import nest
from .._core.conversion import convert
from .._core.tensor import ArrayLike
from .._ops.shape import stop_gradient
from .outside_code import numpy_function


def print(*inputs: Any, **kwargs: Any) -> None:
    """Print tensors and other values, at each call of a compiled function.

    Parameters
    ----------
    inputs:
        Tensors, Variables, structures of them, and anything else, which is printed by `str`.
    output_stream:
        ``sys.stderr`` (the default), ``sys.stdout``, a function of the `logging` module, or a
        "file://" path, which is appended to.
    summarize:
        How many elements are shown at both ends of each axis: 3 by default, -1 for all.
    sep, end:
        Texts between the values (" ") and after them (a new line).

    Inside a `function`, it prints at each call; Python's `print` runs only during tracing. In a
    batch it prints one line for each example. Floats have the digits that identify them. TypeError
    for other keywords, ValueError for another stream.

    Examples
    --------
    >>> import sys
    >>> import tinygrad_cg as tf
    >>> tf.print("x is", tf.constant([0.5, 2.0]), output_stream=sys.stdout)
    x is [0.5 2]
    """
    stream = kwargs.pop("output_stream", None)
    summarize = kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"print: unexpected keyword arguments {sorted(kwargs)}")
    write = _writer(stream)
    operands: list[Any] = []

    def template(leaf: Any) -> Any:
        if isinstance(leaf, (ArrayLike, np.ndarray)):
            operands.append(stop_gradient(convert(leaf)))
            return _Placeholder(len(operands) - 1)
        return leaf

    parts = [nest.map_structure(template, value) for value in inputs]

    def show(*arrays: np.ndarray) -> tuple[()]:
        write(sep.join([_text(part, arrays, summarize) for part in parts]), end)
        return ()

    numpy_function(show, operands, [], name="print")


class _Placeholder(int):
    """The index, among the arrays, of a tensor's value in a printed text."""


def _text(part: Any, arrays: tuple[np.ndarray, ...], summarize: int) -> str:
    if isinstance(part, _Placeholder):
        return format_array(arrays[part], summarize)
    if isinstance(part, dict):
        items = (f"{key!r}: {_text(part[key], arrays, summarize)}" for key in part)
        return "{" + ", ".join(items) + "}"
    if isinstance(part, (list, tuple)):
        texts = [
            repr(element) if isinstance(element, str) else _text(element, arrays, summarize)
            for element in part
        ]
        if isinstance(part, list):
            return f"[{', '.join(texts)}]"
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    return str(part)


def format_array(array: np.ndarray, summarize: int, depth: int = 1) -> str:
    """Return the text of an array, with `summarize` elements at both ends of each axis."""
    if array.ndim == 0:
        return _number(array[()])
    size = len(array)
    cut = summarize >= 0 and size > 2 * summarize
    shown = [*range(summarize), *range(size - summarize, size)] if cut else range(size)
    texts = [format_array(array[i], summarize, depth + 1) for i in shown]
    if cut:
        texts.insert(summarize, "...")
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    return f"[{between.join(texts)}]"


def _number(value: Any) -> str:
    """Return a number with 6 or 15 digits if these restore it, else with 9 or 17."""
    if isinstance(value, (np.bool_, bool)):
        return str(int(value))
    if isinstance(value, np.complexfloating):
        return f"({_number(value.real)},{_number(value.imag)})"
    if not isinstance(value, np.floating):
        return str(value)
    if not np.isfinite(value):
        return str(float(value))
    if value.dtype.itemsize < 4:
        value = np.float32(value)
    digits = (15, 17) if value.dtype.itemsize == 8 else (6, 9)
    text = f"{float(value):.{digits[0]}g}"
    return text if type(value)(text) == value else f"{float(value):.{digits[1]}g}"


def _writer(stream: Any) -> Callable[[str, str], Any]:
    """Return a function that writes a text with its end."""
    if isinstance(stream, str) and stream.startswith("file://"):
        path = stream.removeprefix("file://")

        def append(text: str, end: str) -> None:
            with open(path, "a", encoding="utf-8") as file:
                file.write(text + end)

        return append
    file: Any = sys.stderr if stream is None else stream
    if hasattr(file, "write"):
        return lambda text, end: builtins.print(text, end=end, file=file, flush=True)
    levels = (logging.debug, logging.info, logging.warning, logging.error, logging.critical)
    if stream in levels:
        return lambda text, end: file(text)
    raise ValueError(
        f"print: output_stream must be sys.stderr, sys.stdout, a function of logging or a file:// "
        f"path, got {stream!r}"
    )
