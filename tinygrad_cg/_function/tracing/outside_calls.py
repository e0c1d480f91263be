"""Calls of outside code in a program: operations whose result shapes are found by calling them.

The code is called while the function is traced, with the arguments of the first call if they are
known. Later calls must return the same shapes. Code with side effects is called once for each call
of the program, so the first call uses the result of the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core import devices
from ..._core.conversion import BOOL
from ..._core.levels import run_on
from ..._core.primitive import Primitive, run_on_gpu, runner
from ..._core.tensor import Aval
from ...errors import InvalidArgumentError


class OutsideCalls:
    """The known calls of outside code in a function with one signature.

    The key of a call is its number in the order of execution, and the shapes of its operands.
    `sampling` is True while a trace computes sample values.
    """

    def __init__(self) -> None:
        self.avals: dict[Any, tuple[Any, Any]] = {}  # with the structure of the results
        self.results: dict[Any, tuple[Sequence[np.ndarray], Any]] = {}
        self.sampling = False
        self.refused: Exception | None = None  # the latest trace's AutographError

    def find_avals(
        self, key: Any, code: Any, run: Callable[..., Any], samples: Callable[[], list[np.ndarray]]
    ) -> Any:
        """Return the avals of the results for `key`; if they are unknown, call the code with
        `samples`.

        `code`, if given, is told the structure of the results.
        """
        if key not in self.avals:
            arrays = samples()
            try:
                results = run_on(None, run, *arrays)
            except Exception as error:
                error.add_note(
                    "Tracing called the code once, to find the shapes of its results. If an "
                    "argument had no value yet, the code got positive numbers of its shape."
                )
                raise
            self.results[key] = ([array.copy() for array in arrays], results)
            self.avals[key] = _avals_of(results), getattr(code, "structure", None)
        avals, structure = self.avals[key]
        if code is not None:
            code.structure = structure
        return avals

    def take_result(self, key: Any, arrays: Sequence[Any]) -> Any:
        """Return the result of a call with equal arrays, at most once; None if there is none."""
        kept = self.results.get(key) if self.sampling else self.results.pop(key, None)
        if kept is None or not all(map(_equal, kept[0], map(devices.to_host, arrays))):
            return None
        return kept[1]


def outside_operation(
    calls: OutsideCalls, key: Any, primitive: Primitive, params: dict, avals: Any, ordered: bool
) -> Primitive:
    """Return the primitive of one call, which checks the results of the code.

    If it is `ordered`, its last operand is the mark of the previous call, and its last result is a
    mark.
    """

    here, there = runner(primitive, params), run_on_gpu(primitive, params)

    def checked(run: Callable[..., Any], operands: Sequence[Any]) -> Any:
        results = calls.take_result(key, operands)
        if results is None:
            results = run_on(None, run, *operands)
        _check(primitive.name, results, avals)
        return results

    def call(*arrays: np.ndarray, **_: Any) -> Any:
        if not ordered:
            return checked(here, arrays)
        return [*checked(here, arrays[:-1]), np.zeros((), BOOL)]

    def on_gpu(*arrays: Any, **_: Any) -> Any:
        results = checked(there, arrays[:-1] if ordered else arrays)
        if not isinstance(results, list):
            return devices.move(results, devices.GPU)
        mark = [np.zeros((), BOOL)] if ordered else []
        return [devices.move(result, devices.GPU) for result in (*results, *mark)]

    marked = [*avals, Aval((), BOOL)] if ordered else avals
    inputs, shapes = ("inputs",), lambda *a, **k: marked
    about = {"kind": primitive.kind, "kernel": primitive.kernel, "on_gpu": on_gpu}
    return Primitive(primitive.name, call, inputs, shapes, **about)


def _avals_of(results: Any) -> Any:
    if isinstance(results, list):
        return [Aval(result.shape, result.dtype) for result in results]
    return Aval(results.shape, results.dtype)


def _equal(array: np.ndarray, other: np.ndarray) -> bool:
    return (
        array.dtype == other.dtype
        and array.shape == other.shape
        and array.tobytes() == other.tobytes()
    )


def _check(name: str, results: Any, avals: Any) -> None:
    actual = _avals_of(results)
    if actual != avals:
        raise InvalidArgumentError(
            f"{name}: the code returned {_text(actual)}, and {_text(avals)} when the function "
            "around it was traced: results must have the same shapes and dtypes at each call of a "
            "compiled program. Keep code whose shapes depend on values outside of the function"
        )


def _text(avals: Any) -> str:
    several = avals if isinstance(avals, list) else [avals]
    return ", ".join(f"{aval.dtype}{tuple(aval.shape)}" for aval in several) or "nothing"
