"""Programs as functions that Numba code calls, and as C functions.

Numba compiles the texts of a program's kernels with its own compiler, which is the reference for
them, together with a function that allocates arrays and calls them. Nothing in it is an object of
Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import overload

from tinygrad_cg_kernels.runtime import generated
from tinygrad_cg_kernels.runtime.numba_backend import FLAGS, register_helpers
from tinygrad_cg_kernels.runtime.texts import define

Argument = tuple[np.dtype, tuple[int, ...]]
"""A dtype and a shape; an argument without axes is a number."""


def run_of(text: str) -> Any:
    """Return the function ``run`` of a generated text for Numba code."""
    register_helpers()
    return numba.njit(**FLAGS)(generated.load(text).run)


def compile_callable(
    text: str, scope: dict[str, Any], name: str, arguments: Sequence[Argument]
) -> Any:
    """Return the function ``call`` of a text as a dispatcher that checks the types of arguments."""
    register_helpers()
    call = numba.njit(**FLAGS)(define(text, f"Numba call of {name}", scope, "call"))
    names = ", ".join(f"x{k}" for k in range(len(arguments)))

    def check(*kinds: Any) -> None:
        for k, (kind, (dtype, shape)) in enumerate(zip(kinds, arguments, strict=True)):
            _check_type(name, k, kind, dtype, len(shape))

    lines = [
        f"def stub({names}):",
        "    raise NotImplementedError",
        f"def choose({names}):",
        f"    check({names})",
        f"    return lambda {names}: call({names})",
        f"def program({names}):",
        f"    return stub({names})",
    ]
    own: dict[str, Any] = {"check": check, "call": call}
    program = define("\n".join(lines), f"Numba function of {name}", own, "program")
    options: Any = dict(FLAGS)
    overload(own["stub"], options)(own["choose"])
    program.__name__ = program.__qualname__ = name
    return numba.njit(**FLAGS, nogil=True)(program)


def _check_type(name: str, position: int, kind: Any, dtype: np.dtype, rank: int) -> None:
    wanted = f"an array of {dtype} with {rank} axes" if rank else f"a number, {dtype}"
    if rank:
        array = isinstance(kind, types.Array) and kind.ndim == rank
        right = array and kind.dtype == numba.from_dtype(dtype)
    else:
        right = isinstance(kind, types.Number | types.Boolean)
        right = right and (isinstance(kind, types.Integer | types.Boolean) or dtype.kind in "fc")
    if not right:
        raise TypingError(f"{name}: argument {position} is {kind}, expected {wanted}")


def compile_c_function(
    function: Callable,
    name: str,
    arguments: Sequence[Argument],
    results: Sequence[Argument],
) -> Any:
    """Return Numba's C function that calls a program.

    Numbers are passed by value, arrays as pointers to elements in row-major order. One number as
    the result is returned; other results are written to arrays, whose pointers come last.
    """
    returns = len(results) == 1 and not results[0][1]
    kinds: list[Any] = []
    lines: list[str] = []
    names = []
    for k, (dtype, shape) in enumerate(arguments):
        kind = numba.from_dtype(dtype)
        kinds.append(types.CPointer(kind) if shape else kind)
        names.append(f"x{k}")
        if shape:
            lines.append(f"    x{k}_ = carray(x{k}, {shape!r})")
    values = ", ".join(f"x{k}_" if shape else f"x{k}" for k, (_, shape) in enumerate(arguments))
    if returns:
        lines.append(f"    return function({values})")
        result: Any = numba.from_dtype(results[0][0])
    else:
        result = types.void
        lines.append(f"    {', '.join(f'y{k}' for k in range(len(results)))} = function({values})")
        for k, (dtype, shape) in enumerate(results):
            kinds.append(types.CPointer(numba.from_dtype(dtype)))
            names.append(f"out{k}")
            lines.append(f"    carray(out{k}, {shape or (1,)!r})[...] = y{k}")
    text = "\n".join([f"def entry({', '.join(names)}):", *lines])
    scope = {"function": function, "carray": numba.carray}
    entry = define(text, f"C function of {name}", scope, "entry")
    return numba.cfunc(result(*kinds), **FLAGS)(entry)
