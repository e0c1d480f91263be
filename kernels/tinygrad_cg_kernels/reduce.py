"""Reductions over any axes: sum, prod, max, min, any, all, argmax, argmin, logsumexp.

A reduction is a total over one contiguous row, and a combine of two values. Axes are brought
to one of three forms that have direct kernels: everything, rows (the trailing axes), columns
(middle or leading axes); any other choice of axes is moved to the end first.
"""

from collections.abc import Callable
from functools import lru_cache
from math import prod as product
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numpy import empty

from tinygrad_cg_kernels import compile as build
from tinygrad_cg_kernels import math, threads
from tinygrad_cg_kernels.compile import (
    by_type,
    jitable,
    like,
    reassociating_add,
    reassociating_multiply,
    scalar,
    vector,
    vectorised,
    wide_vectors,
)
from tinygrad_cg_kernels.dtypes import BOOL, FLOAT64, INT64, computing, native
from tinygrad_cg_kernels.quiet import cast

SPLIT = threads.THRESHOLD
SPAN = 1024  # elements whose partial result is kept apart, so that rounding errors stay small
PLAIN = 0x101  # the flags of an array that is C-contiguous and aligned
SEARCH = 64  # elements that are searched at a time
STRIP = 512  # columns that are accumulated at a time

# --- combining two values ---------------------------------------------------------------


def _add(x, y):
    return np.add(x, y)


def _multiply(x, y):
    return np.multiply(x, y)


@jitable
def _plain_add(x, y):
    return like(x + y, x)


@jitable
def _plain_multiply(x, y):
    return like(x * y, x)


@jitable
def _float_add(x, y):
    return reassociating_add(x, y)


@jitable
def _float_multiply(x, y):
    return reassociating_multiply(x, y)


by_type(_add, {types.Float: _float_add, types.Number: _plain_add})
by_type(_multiply, {types.Float: _float_multiply, types.Number: _plain_multiply})


@jitable
def _either(x, y):
    return x | y


@jitable
def _both(x, y):
    return x & y


# --- kernels ----------------------------------------------------------------------------


@jitable
def _total(combine, start, row):
    """Combine a contiguous row, span by span."""
    vectorised()
    whole = start
    for first in range(0, row.size, SPAN):
        part = row[first : first + SPAN]
        value = start
        for i in range(np.uintp(part.size)):
            value = combine(value, part[i])
        whole = combine(whole, value)
    return whole


@jitable
def _zero(row):
    return like(0, row[0])


@jitable
def _one(row):
    return like(1, row[0])


@jitable
def _first(row):
    return row[0]


def _templates(combine: Callable, start: Callable) -> dict[str, Callable]:
    """Kernels of a reduction; `start` gives the value that a row's total starts from."""

    def full(x, out):
        wide_vectors()
        out[()] = _total(combine, start(x), x)

    def rows(x, out):
        wide_vectors()
        for i in range(np.uintp(x.shape[0])):
            row = x[i]
            out[i] = _total(combine, start(row), row)

    def columns(x, out):
        wide_vectors()
        partial = np.empty(STRIP, x.dtype)
        for a in range(x.shape[0]):
            for left in range(0, x.shape[2], STRIP):
                target = out[a, left : left + STRIP]
                strip = partial[: target.size]
                for k in range(np.uintp(target.size)):
                    target[k] = start(x[a, 0, left + k : left + k + 1])
                for top in range(0, x.shape[1], SPAN):
                    for k in range(np.uintp(target.size)):
                        strip[k] = start(x[a, top, left + k : left + k + 1])
                    band = x[a, top : top + SPAN]
                    for i in range(np.uintp(band.shape[0])):
                        line = band[i, left : left + target.size]
                        for k in range(np.uintp(strip.size)):
                            strip[k] = combine(strip[k], line[k])
                    for k in range(np.uintp(strip.size)):
                        target[k] = combine(target[k], strip[k])

    return {"full": full, "rows": rows, "columns": columns}


def _block_template(combine: Callable, start: Callable, dtype: np.dtype) -> Callable:
    """The total of a block, as a function of addresses, for the thread splitter."""

    def block(a, b, c, d, n):
        wide_vectors()
        x, out = vector(a, n, dtype), scalar(b, n, dtype)
        out[()] = _total(combine, start(x), x)

    return block


RANKS = {"full": (1, 0), "rows": (2, 1), "columns": (3, 2)}
"""The ranks of a kernel's input and output."""


def _plain(array: np.ndarray) -> bool:
    return array.flags.num & PLAIN == PLAIN


# --- axes -------------------------------------------------------------------------------


class Plan(NamedTuple):
    """How an array of some shape is reduced over some axes."""

    form: str
    """"full", "rows", "columns"; "none" if no axis has more than one element; "empty"."""
    order: tuple[int, ...] | None
    """What the axes are transposed to first."""
    source: tuple[int, ...]
    """What the input is then reshaped to."""
    target: tuple[int, ...]
    """What the output is seen as by the kernel."""
    shape: tuple[int, ...]
    """The result's shape."""


@lru_cache(maxsize=4096)
def _plan(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Plan:
    chosen = set(axes)
    kept = tuple(axis for axis in range(len(shape)) if axis not in chosen)
    result = tuple(
        1 if axis in chosen else size
        for axis, size in enumerate(shape)
        if keepdims or axis not in chosen
    )
    size, count = product(shape), product(shape[axis] for axis in axes)
    if not size:
        return Plan("empty", None, shape, result, result)
    runs: list[tuple[bool, int]] = []
    for axis, length in enumerate(shape):
        if length != 1:
            if runs and runs[-1][0] == (axis in chosen):
                length *= runs.pop()[1]
            runs.append((axis in chosen, length))
    pattern = "".join("r" if reduced else "k" for reduced, _ in runs)
    if pattern in ("", "k"):
        return Plan("none", None, shape, result, result)
    if pattern == "r":
        return Plan("full", None, (size,), (), result)
    rest = size // count
    if pattern in ("rk", "krk"):
        before, after = runs[0][1] if pattern == "krk" else 1, runs[-1][1]
        return Plan("columns", None, (before, count, after), (before, after), result)
    order = None if pattern == "kr" else (*kept, *axes)
    return Plan("rows", order, (rest, count), (rest,), result)


class Reduction:
    """A reduction made into array kernels.

    Called with an array, the axes (distinct, not negative) and `keepdims`; the result is a
    fresh C-contiguous array. Integers keep their dtype; bool sums to int64; float16 is
    accumulated in float32.
    """

    def __init__(
        self,
        name: str,
        combine: Callable,
        start: Callable,
        identity: int | None,
        kind: str = "number",
    ) -> None:
        self.name, self.combine, self.identity, self.kind = name, combine, identity, kind
        self.dispatchers: dict[str, Any] = {}
        self._start = start
        self._templates = _templates(combine, start)
        self._entries: dict[tuple[str, np.dtype], Callable] = {}
        self._blocks: dict[np.dtype, tuple[int, Any]] = {}
        self._unchanged: set[np.dtype] = set()

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """The dtype of the result."""
        dtype = native(self.name, dtype)
        if self.kind == "logical":
            return BOOL
        return INT64 if self.kind == "number" and dtype == BOOL else dtype

    def __call__(self, x: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
        """Reduce `x` over `axes`."""
        plan = _plan(x.shape, axes, keepdims)
        form, order, source, target, shape = plan
        enter = self._entries.get((form, x.dtype))
        if enter is None or order is not None or x.size >= SPLIT or not _plain(x):
            if form == "none" and x.dtype in self._unchanged:
                return x.reshape(shape).copy()
            return self._slow(x, axes, plan)
        out = empty(shape, x.dtype)
        enter(
            x if x.shape == source else x.reshape(source),
            out if shape == target else out.reshape(target),
        )
        return out

    def _slow(self, x: np.ndarray, axes: tuple[int, ...], plan: Plan) -> np.ndarray:
        result = self.result_dtype(x.dtype)
        loop = computing(result)
        if plan.form == "empty":
            return self._empty(x, axes, plan.shape, result)
        if plan.form == "none":
            if result is x.dtype:
                self._unchanged.add(result)
            return np.array(x, result, order="C").reshape(plan.shape)
        x = x if plan.order is None else x.transpose(plan.order)
        x = np.require(x, loop, ("C", "A")).reshape(plan.source)
        out = empty(plan.shape, loop)
        if plan.form == "full" and x.size >= SPLIT:
            self._split(x, out.reshape(()))
        else:
            self._entry(plan.form, loop)(x, out.reshape(plan.target))
        return cast(out, result)

    def _empty(self, x, axes, shape, result) -> np.ndarray:
        out = np.empty(shape, result)
        if out.size:
            if self.identity is None:
                raise ValueError(f"{self.name} of an empty axis has no identity")
            out[...] = self.identity
        return out

    def _entry(self, form: str, dtype: np.dtype) -> Callable:
        found = self._entries.get((form, dtype))
        if found is not None:
            return found
        dispatcher = self.dispatchers.get(form)
        if dispatcher is None:
            name = f"{self.name}_{form}"
            dispatcher = build.kernel(self._templates[form], name, nogil=True)
            self.dispatchers[form] = dispatcher
        source, target = RANKS[form]
        try:
            entry = build.entry(
                dispatcher, build.array_type(dtype, source), build.array_type(dtype, target)
            )
        except NumbaError as error:
            raise TypeError(f"{self.name}: no kernel for dtype {dtype}") from error
        self._entries[form, dtype] = entry
        return entry

    def _split(self, x: np.ndarray, out: np.ndarray) -> None:
        """Reduce blocks on all threads, then their results in order."""
        block = self._blocks.get(x.dtype)
        if block is None:
            template = _block_template(self.combine, self._start, x.dtype)
            try:
                block = build.block_address(template, f"{self.name}_block")
            except NumbaError as error:
                raise TypeError(f"{self.name}: no kernel for dtype {x.dtype}") from error
            self._blocks[x.dtype] = block
        partial = empty(-(-x.size // threads.BLOCK), x.dtype)
        pointers = (x.ctypes.data, partial.ctypes.data)
        threads.split(block[0], pointers, (threads.BLOCK * x.itemsize, x.itemsize), x.size)
        self._entry("full", x.dtype)(partial, out)


sum = Reduction("sum", _add, _zero, 0)
prod = Reduction("prod", _multiply, _one, 1)
max = Reduction("max", math.maximum, _first, None, "order")
min = Reduction("min", math.minimum, _first, None, "order")
any = Reduction("any", _either, _zero, 0, "logical")
all = Reduction("all", _both, _one, 1, "logical")


# --- whole rows: argmax, logsumexp, log_softmax -----------------------------------------


@jitable
def _arg(best, row):
    """The first place of the best value, which is nan if there is one."""
    value = _total(best, row[0], row)
    for first in range(0, row.size, SEARCH):
        part = row[first : first + SEARCH]
        found = 0
        for i in range(np.uintp(part.size)):
            found |= 1 if part[i] == value or part[i] != part[i] else 0
        if found:
            for i in range(np.uintp(part.size)):
                if part[i] == value or part[i] != part[i]:
                    return first + np.intp(i)
    return 0


@jitable
def _log_total(row):
    """log(sum(exp(row))), of a row that is not empty."""
    vectorised()
    largest = _total(math.maximum, row[0], row)
    if not math.isfinite(largest):
        return largest
    total = like(0, largest)
    for first in range(0, row.size, SPAN):
        part = row[first : first + SPAN]
        value = like(0, largest)
        for i in range(np.uintp(part.size)):
            value = reassociating_add(value, math.exp(part[i] - largest))
        total += value
    return largest + math.log(total)


def _argmax_rows(x, out):
    wide_vectors()
    for i in range(np.uintp(x.shape[0])):
        out[i] = _arg(math.maximum, x[i])


def _argmin_rows(x, out):
    wide_vectors()
    for i in range(np.uintp(x.shape[0])):
        out[i] = _arg(math.minimum, x[i])


def _logsumexp_rows(x, out):
    wide_vectors()
    for i in range(np.uintp(x.shape[0])):
        out[i] = _log_total(x[i])


def _log_softmax_rows(x, out):
    wide_vectors()
    for i in range(np.uintp(x.shape[0])):
        row, target = x[i], out[i]
        total = _log_total(row)
        for k in range(np.uintp(row.size)):
            target[k] = row[k] - total


class _Rows:
    """A kernel over the rows of a matrix, entered with any axis moved to the end."""

    def __init__(self, name: str, kernel: Callable) -> None:
        self.name = name
        self.dispatchers = {"rows": build.kernel(kernel, f"{name}_rows", nogil=True)}
        self._entries: dict[np.dtype, Callable] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def _enter(self, x: np.ndarray, out: np.ndarray) -> None:
        enter = self._entries.get(x.dtype)
        if enter is None:
            types = (build.array_type(array.dtype, array.ndim) for array in (x, out))
            try:
                enter = build.entry(self.dispatchers["rows"], *types)
            except NumbaError as error:
                raise TypeError(f"{self.name}: no kernel for dtype {x.dtype}") from error
            self._entries[x.dtype] = enter
        enter(x, out)


class ArgReduction(_Rows):
    """The index of the best element along one axis; the first of equals; nan is best."""

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """Always int64."""
        native(self.name, dtype)
        return INT64

    def __call__(self, x: np.ndarray, axis: int, keepdims: bool = False) -> np.ndarray:
        """Indices along `axis`, which is dropped (or kept as 1)."""
        loop = computing(native(self.name, x.dtype))
        size = x.shape[axis]
        shape = x.shape[:axis] + ((1,) if keepdims else ()) + x.shape[axis + 1 :]
        out = np.empty(shape, INT64)
        if out.size and not size:
            raise ValueError(f"{self.name} of an empty axis has no identity")
        if out.size:
            moved = np.ascontiguousarray(np.moveaxis(x, axis, -1), dtype=loop)
            self._enter(moved.reshape(-1, size), out.reshape(-1))
        return out


class _FloatRows(_Rows):
    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """The dtype itself; float64 for integers and bool."""
        dtype = native(self.name, dtype)
        return FLOAT64 if dtype.kind in "biu" else dtype


class LogSumExp(_FloatRows):
    """log(sum(exp(x))), without overflow; -inf over an empty axis."""

    def __call__(self, x: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
        """Reduce `x` over `axes`."""
        result = self.result_dtype(x.dtype)
        loop = computing(result)
        shape = _plan(x.shape, axes, keepdims).shape
        out = np.full(shape, -np.inf, loop)
        if x.size:
            kept = [axis for axis in range(x.ndim) if axis not in axes]
            rows = x.transpose(*kept, *axes).reshape(out.size, -1)
            self._enter(np.require(rows, loop, ("C", "A")), out.reshape(-1))
        return cast(out, result)


class LogSoftmax(_FloatRows):
    """x - logsumexp(x) along one axis."""

    def __call__(self, x: np.ndarray, axis: int) -> np.ndarray:
        """The logarithms of the softmax, of the shape of `x`."""
        result = self.result_dtype(x.dtype)
        moved = np.ascontiguousarray(np.moveaxis(x, axis, -1), dtype=computing(result))
        out = np.empty_like(moved)
        if x.size:
            rows = (-1, x.shape[axis])
            self._enter(moved.reshape(rows), out.reshape(rows))
        back = cast(np.moveaxis(out, -1, axis), result)
        return np.ascontiguousarray(back)


argmax = ArgReduction("argmax", _argmax_rows)
argmin = ArgReduction("argmin", _argmin_rows)
logsumexp = LogSumExp("logsumexp", _logsumexp_rows)
log_softmax = LogSoftmax("log_softmax", _log_softmax_rows)
