"""The meaning of functions of Python, `math` and NumPy in a program.

A handler takes the reader and the arguments of a call; `FUNCTIONS` finds it by the function that is
called, `METHODS` by the name of an array's method.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary

from . import array_forms
from .indices import IndexReader
from .program import FLOATS, FixedNumber, Number, Op, Store, constant, fixed
from .scalar_operations import OpBuilder, join
from .views import ELEMENTS, Arraylike, Lazy, View, element_of, same, transposed

Handler = Callable[..., Any]


def is_harmless(statement: Any) -> bool:
    """Return whether a statement can be carried out where its result is not wanted."""
    if not isinstance(statement, Op) or not isinstance(statement.function, str):
        return False
    return statement.function not in ("floor_divide", "mod", "left_shift", "right_shift")


# Arithmetic ----------------------------------------------------------------------------------


def arithmetic(reader: IndexReader, name: str) -> Callable[..., Number]:
    """Return the function of numbers of one of Python's operators."""
    if name == "power":
        return _power
    if name in ("mod", "floor_divide"):

        def divided(b: OpBuilder, x: Number, y: Number) -> Number:
            kind = join([x.type, y.type])
            if kind in FLOATS:
                if name == "floor_divide":
                    return b.apply(elementary.floor_divide, x, y)
                return b.op("mod", x, y)
            is_positive = y.low is not None and y.low > 0
            if not is_positive and not (isinstance(y, FixedNumber) and y.number):
                test = b.op("not_equal", y, 0)
                reader.check(test, ZeroDivisionError, "integer division by zero")
            return b.op(name, _integer(b, x), _integer(b, y))

        return divided
    if name in ("bit_and", "bit_or", "bit_xor"):
        logical = {"bit_and": "and", "bit_or": "or", "bit_xor": "not_equal"}

        def bits(b: OpBuilder, x: Number, y: Number) -> Number:
            if x.type == y.type == "b1":
                return b.op(logical[name], x, y)
            return b.op(name, _integer(b, x), _integer(b, y))

        return bits

    def operator(b: OpBuilder, x: Number, y: Number) -> Number:
        if x.type == "b1":
            x = b.cast(x, "i64")
        if y.type == "b1":
            y = b.cast(y, "i64")
        return b.op(name, x, y)

    return operator


def _integer(b: OpBuilder, x: Number) -> Number:
    return b.cast(x, "i64") if x.type == "b1" else x


MAX_POWER = 64
"""FixedNumber exponents up to it are products, as in Numba."""


def _power(b: OpBuilder, x: Number, y: Number) -> Number:
    if isinstance(y, FixedNumber) and not y.is_float and abs(int(y.number)) <= MAX_POWER:
        exponent = int(y.number)
        product = _product(b, _integer(b, x), abs(exponent))
        if exponent >= 0:
            return product
        return b.op("divide", fixed(product.type, 1), product)
    if not (x.is_float or y.is_float):
        raise TypeError("an integer to an unknown power: write float(x) ** n")
    if isinstance(y, FixedNumber) and y.number == 0.5:
        return b.apply(elementary.sqrt, x)
    if isinstance(y, FixedNumber) and y.number == 2.0:
        return b.multiply(x, x)
    return b.apply(elementary.power, x, y)


def _product(b: OpBuilder, x: Number, exponent: int) -> Number:
    """Return a power by repeated squares."""
    if exponent == 0:
        return fixed(x.type, 1)
    result: Number | None = None
    while True:
        if exponent & 1:
            result = x if result is None else b.multiply(result, x)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        x = b.multiply(x, x)


# Functions of numbers ------------------------------------------------------------------------

_UNARY = {
    **{name: (name,) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1")},
    **{name: (name,) for name in ("log", "log1p", "log2", "log10", "sqrt", "erf", "erfc")},
    **{name: (name,) for name in ("exp2", "cbrt", "gamma", "lgamma", "sinc", "floor", "ceil")},
    "round": ("rint",),
    "arcsin": ("arcsin", "asin"),
    "arccos": ("arccos", "acos"),
    "arctan": ("arctan", "atan"),
    "arcsinh": ("arcsinh", "asinh"),
    "arccosh": ("arccosh", "acosh"),
    "arctanh": ("arctanh", "atanh"),
}
_BINARY = {"arctan2": ("arctan2", "atan2"), "hypot": ("hypot",), "logaddexp": ("logaddexp",)}


def _numeric(function: Callable) -> Handler:
    """Return the handler of a function of floats, for numbers and arrays."""

    def handler(reader: IndexReader, *operands: Any) -> Any:
        return reader.map(lambda b, *xs: b.apply(function, *xs), *operands)

    return handler


def _absolute(reader: IndexReader, x: Any) -> Any:
    def absolute(b: OpBuilder, x: Number) -> Number:
        return b.apply(elementary.absolute, x) if x.is_float else b.op("absolute", _integer(b, x))

    return reader.map(absolute, x)


def _sign(reader: IndexReader, x: Any) -> Any:
    def sign(b: OpBuilder, x: Number) -> Number:
        if x.is_float:
            return b.apply(elementary.sign, x)
        return b.op("select", b.op("less", x, 0), -1, b.op("as_i64", b.op("greater", x, 0)))

    return reader.map(sign, x)


def _extreme(name: str) -> Handler:
    """Return NumPy's maximum or minimum, NaN where an operand is NaN."""

    def handler(reader: IndexReader, x: Any, y: Any) -> Any:
        def chosen(b: OpBuilder, x: Number, y: Number) -> Number:
            if x.is_float or y.is_float:
                return b.apply(getattr(elementary, name), x, y)
            return b.op(name, _integer(b, x), _integer(b, y))

        return reader.map(chosen, x, y)

    return handler


def _python_extreme(name: str) -> Handler:
    """Return Python's max or min of numbers, or of an array: the first one that none exceeds."""
    test = "greater" if name == "maximum" else "less"

    def handler(reader: IndexReader, *operands: Any) -> Any:
        if len(operands) == 1 and isinstance(operands[0], tuple):
            operands = operands[0]
        if len(operands) == 1:
            return _reduce_extreme(name)(reader, *operands)
        result = operands[0]
        for operand in operands[1:]:
            result = reader.map(
                lambda b, x, y: (
                    b.op(name, x, y)
                    if not (x.is_float or y.is_float)
                    else b.op("select", b.op(test, y, x), y, x)
                ),
                result,
                operand,
            )
        return result

    return handler


def _round(up: str) -> Handler:
    """Return floor, ceil and others as integers, as in `math`."""

    def handler(reader: IndexReader, x: Any) -> Any:
        def rounded(b: OpBuilder, x: Number) -> Number:
            return b.cast(b.apply(getattr(elementary, up), x), "i64") if x.is_float else x

        return reader.map(rounded, x)

    return handler


def _round_digits(whole: bool) -> Handler:
    """Return round; with a number of digits as Numba computes it. Without, integers if `whole`."""

    def handler(reader: IndexReader, x: Any, digits: Any = None) -> Any:
        if _is_none(digits):
            return (_round("round") if whole else _numeric(elementary.round))(reader, x)
        if not isinstance(digits, FixedNumber):
            raise reader.refuse("the number of digits is a constant")
        scale = 10.0 ** abs(int(digits.number))
        ways = ("multiply", "divide") if digits.number >= 0 else ("divide", "multiply")
        rounded = _numeric(elementary.round)(reader, reader.binary(ways[0], x, constant(scale)))
        return reader.binary(ways[1], rounded, constant(scale))

    return handler


def _to(kind: str) -> Handler:
    """Return a cast of numbers or arrays."""

    def handler(reader: IndexReader, x: Any = None) -> Any:
        if x is None:
            return reader.b.cast(constant(0), kind)
        return reader.map(lambda b, x: b.cast(x, kind), x)

    return handler


def _where(reader: IndexReader, test: Any, x: Any, y: Any) -> Any:
    return reader.map(lambda b, t, x, y: b.op("select", b.cast(t, "b1"), x, y), test, x, y)


def _clip(reader: IndexReader, x: Any, low: Any, high: Any) -> Any:
    for name, bound in (("maximum", low), ("minimum", high)):
        if not _is_none(bound):
            x = _extreme(name)(reader, x, bound)
    return x


def _divmod(reader: IndexReader, x: Any, y: Any) -> Any:
    return reader.binary("floor_divide", x, y), reader.binary("mod", x, y)


def _pow(reader: IndexReader, x: Any, y: Any) -> Any:
    return reader.map(lambda b, x, y: b.apply(elementary.power, x, y), x, y)


def _is_none(value: Any) -> bool:
    return value is None or getattr(value, "value", value) is None


# Arrays --------------------------------------------------------------------------------------


def _shape(reader: IndexReader, value: Any) -> tuple[Number, ...]:
    items = value if isinstance(value, tuple) else (value,)
    return tuple(reader.b.cast(reader.number(item), "i64") for item in items)


def _dtype(reader: IndexReader, value: Any, default: str = "f64") -> str:
    """Return the element type that a `dtype` argument names."""
    if _is_none(value):
        return default
    chosen = getattr(value, "value", value)
    chosen = {float: np.float64, int: np.int64, bool: np.bool_}.get(chosen, chosen)
    try:
        return element_of(chosen)
    except TypeError as error:
        raise reader.refuse(str(error)) from None


def _new(fill: float | None, default: str = "f64") -> Handler:
    def handler(reader: IndexReader, shape: Any, dtype: Any = None) -> View:
        kind = _dtype(reader, dtype, default)
        value = None if fill is None else fixed(kind, fill)
        return reader.allocate(kind, _shape(reader, shape), value)

    return handler


def _new_like(fill: float | None) -> Handler:
    def handler(reader: IndexReader, like: Any, dtype: Any = None) -> View:
        array = _array(reader, like)
        kind = array.array.element if isinstance(array, View) else array.type
        kind = _dtype(reader, dtype, kind)
        value = None if fill is None else fixed(kind, fill)
        return reader.allocate(kind, array.shape, value)

    return handler


def _full(reader: IndexReader, shape: Any, fill_value: Any, dtype: Any = None) -> View:
    number = reader.number(fill_value)
    kind = _dtype(reader, dtype, number.type)
    view = reader.allocate(kind, _shape(reader, shape), None)
    reader.store(view, number, None)
    return view


def _full_like(reader: IndexReader, like: Any, fill_value: Any, dtype: Any = None) -> View:
    view = _new_like(None)(reader, like, dtype)
    reader.store(view, reader.number(fill_value), None)
    return view


def _arange(reader: IndexReader, start: Any, stop: Any = None, step: Any = None) -> Lazy:
    b = reader.b
    first = constant(0) if stop is None else reader.number(start)
    last = reader.number(start if stop is None else stop)
    jump = constant(1) if _is_none(step) else reader.number(step)
    if any(x.is_float for x in (first, last, jump)):
        span = b.op("divide", b.op("subtract", last, first), jump)
        size = b.cast(b.apply(elementary.ceil, span), "i64")
        kind = "f64"
    else:
        if not isinstance(jump, FixedNumber) or jump.number <= 0:
            raise reader.refuse("the step of np.arange is a positive constant")
        size = b.op("subtract", last, first)
        if jump.number != 1:
            size = b.op("floor_divide", b.op("add", size, jump.number - 1), jump)
        kind = "i64"
    size = b.op("maximum", size, 0, hint="n")

    def at(b: OpBuilder, index: Any) -> Number:
        return b.cast(b.op("add", first, b.op("multiply", index[0], jump)), kind)

    return Lazy(kind, (size,), at)


def _array(reader: IndexReader, value: Any) -> Arraylike:
    if isinstance(value, (View, Lazy)):
        return value
    if isinstance(value, tuple):
        return _stacked(reader, value)
    raise reader.refuse("an array is expected here")


def _stacked(reader: IndexReader, items: tuple) -> View:
    """Return a tuple of numbers, or of equally long tuples of them, as an array."""
    rows = items if items and isinstance(items[0], tuple) else (items,)
    numbers = [[reader.number(item) for item in row] for row in rows]
    if len({len(row) for row in numbers}) > 1:
        raise reader.refuse("the rows of an array have equal lengths")
    kind = join([number.type for row in numbers for number in row]) if items else "f64"
    axes = 1 if rows == (items,) else 2
    shape = (len(rows), len(numbers[0]))[-axes:]
    view = reader.allocate(kind, tuple(map(constant, shape)), None)
    for place in np.ndindex(len(rows), len(numbers[0])):
        value = reader.b.cast(numbers[place[0]][place[1]], kind)
        reader.b.block.append(Store(view.array, tuple(map(constant, place[-axes:])), value))
    return view


def _copy(reader: IndexReader, value: Any, dtype: Any = None) -> View:
    array = _array(reader, value)
    if not _is_none(dtype):
        return _astype(reader, array, dtype)
    return reader.materialize(array)


def _as_is(reader: IndexReader, value: Any, dtype: Any = None) -> Any:
    if isinstance(value, (View, Lazy)) and _is_none(dtype):
        return value
    return _copy(reader, value, dtype)


def _astype(reader: IndexReader, array: Any, dtype: Any) -> View:
    kind = _dtype(reader, dtype)
    if kind not in (*FLOATS, "i64", "b1"):
        raise reader.refuse("arrays are cast to float64, float32, int64 and bool")
    return reader.materialize(_to(kind)(reader, _array(reader, array)))


def _transpose(reader: IndexReader, array: Any, axes: Any = None) -> Arraylike:
    array = _array(reader, array)
    order = range(len(array.shape))[::-1]
    if not _is_none(axes):
        order = [int(axis.number) for axis in axes]
    return transposed(array, list(order))


def _reshape(reader: IndexReader, array: Any, *shape: Any) -> View:
    """Return a copy in another shape; one size may be -1."""
    array = _array(reader, array)
    sizes = list(_shape(reader, shape[0] if len(shape) == 1 else shape))
    b = reader.b
    total = _count(b, array.shape)
    unknown = [k for k, x in enumerate(sizes) if isinstance(x, FixedNumber) and x.number == -1]
    if len(unknown) > 1:
        raise reader.refuse("at most one size of a shape may be -1")
    if unknown:
        others = _count(b, [x for k, x in enumerate(sizes) if k not in unknown])
        reader.check(b.op("greater", others, 0), ValueError, "a shape with sizes of 0")
        sizes[unknown[0]] = b.op("floor_divide", total, others, hint="n")
    if not unknown or not isinstance(total, FixedNumber):
        reader.check(
            b.op("equal", _count(b, sizes), total), ValueError, "the number of elements changes"
        )
    shaped = tuple(sizes)

    def at(b: OpBuilder, index: Any) -> Number:
        position: Number = constant(0)
        for size, i in zip(shaped, index, strict=True):
            position = b.op("add", b.op("multiply", position, size), i)
        return _flat_element(b, array, position)

    return _shares(reader, array, reader.materialize(Lazy(array.type, shaped, at, array.reads)))


def _shares(reader: IndexReader, array: Arraylike, copy: View) -> View:
    """Return a copy, which in Python shares the memory of the array."""
    if isinstance(array, View):
        reader.copied(copy.array, "the reshaped array", array.array, None, reader.env)
    return copy


def _flat_element(b: OpBuilder, array: Arraylike, position: Number) -> Number:
    index: list[Number] = []
    for size in array.shape[:0:-1]:
        index.insert(0, b.op("mod", position, size))
        position = b.op("floor_divide", position, size)
    if array.shape:
        index.insert(0, position)
    return array.at(b, tuple(index))


def _ravel(reader: IndexReader, array: Any) -> Arraylike:
    array = _array(reader, array)
    if len(array.shape) == 1:
        return _shares(reader, array, reader.materialize(array))
    return _reshape(reader, array, constant(-1))


def _flatten(reader: IndexReader, array: Any) -> Arraylike:
    return _ravel(reader, reader.materialize(_array(reader, array)))


def _count(b: OpBuilder, shape: Sequence[Number]) -> Number:
    total: Number = constant(1)
    for size in shape:
        total = b.op("multiply", total, size, hint="n")
    return total


def _len(reader: IndexReader, value: Any) -> Number:
    if isinstance(value, tuple):
        return constant(len(value))
    array = _array(reader, value)
    if not array.shape:
        raise reader.refuse("an array without axes has no length")
    return array.shape[0]


def attribute(reader: IndexReader, array: Arraylike, name: str, node: ast.AST) -> Any:
    """Return an attribute of an array."""
    if name == "shape":
        return array.shape
    if name == "size":
        return _count(reader.b, array.shape)
    if name == "ndim":
        return constant(len(array.shape))
    if name == "T":
        return _transpose(reader, array)
    if name == "dtype":
        kind = array.array.element if isinstance(array, View) else array.type
        dtype = next(dtype for dtype, element in ELEMENTS.items() if element == kind)
        return reader.wrap(dtype)
    raise reader.refuse(f"arrays have no attribute {name!r} here", node)


def select(reader: IndexReader, array: Arraylike, index: Number) -> Arraylike:
    """Return ``array[index]`` along the first axis."""
    if isinstance(array, View):
        return reader.part(array, [index], None)
    rest = array.shape[1:]
    return Lazy(array.type, rest, lambda b, inner: array.at(b, (index, *inner)), array.reads)


# Reductions ----------------------------------------------------------------------------------


def _axes(reader: IndexReader, array: Arraylike, axis: Any) -> tuple[int, ...]:
    if _is_none(axis):
        return tuple(range(len(array.shape)))
    items = axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(item, FixedNumber) for item in items):
        raise reader.refuse("an axis is a constant")
    return tuple(int(item.number) % max(len(array.shape), 1) for item in items)


def _reduction(
    init: int,
    step: Callable[[OpBuilder, Number, Number], Number],
    first: bool = False,
) -> Handler:
    """Return a reduction of an array, by all axes or some; it may begin with the first element."""

    def handler(reader: IndexReader, array: Any, axis: Any = None) -> Any:
        array = _array(reader, array)
        begin = constant(init) if isinstance(init, bool) else fixed(_counted(array.type), init)
        axes = _axes(reader, array, axis)
        kept = [k for k in range(len(array.shape)) if k not in axes]
        over = tuple(array.shape[k] for k in axes)

        def at(b: OpBuilder, outer: Any) -> Number:
            def element_at(b: OpBuilder, inner: Sequence[Number]) -> Number:
                places = dict(zip(axes, inner, strict=True)) | dict(zip(kept, outer, strict=True))
                return array.at(b, tuple(places[k] for k in range(len(array.shape))))

            start = element_at(b, [constant(0) for _ in over]) if first else begin

            def combine(inner: Any, totals: Sequence[Number]) -> list[Number]:
                return [step(reader.b, totals[0], element_at(reader.b, inner))]

            return reader.reduced(over, [start], combine)[0]

        if first:
            for size in over:
                reader.check(
                    reader.b.op("greater", size, 0), ValueError, "a reduction of an empty array"
                )
        kind = step(OpBuilder([]), begin, Number(array.type)).type
        result = Lazy(kind, tuple(array.shape[k] for k in kept), at, array.reads)
        return reader.evaluated(result)

    return handler


def _counted(kind: str) -> str:
    """Return the type of sums of elements."""
    return kind if kind in FLOATS else "i64"


def _add(b: OpBuilder, x: Number, y: Number) -> Number:
    return b.op("add", x, _integer(b, y))


def _times(b: OpBuilder, x: Number, y: Number) -> Number:
    return b.op("multiply", x, _integer(b, y))


_sum = _reduction(0, _add)
_prod = _reduction(1, _times)


def _reduce_extreme(name: str) -> Handler:
    def step(b: OpBuilder, x: Number, y: Number) -> Number:
        if x.is_float:
            return b.apply(getattr(elementary, name), x, y)
        return b.op(name, x, _integer(b, y))

    return _reduction(0, step, first=True)


_max, _min = _reduce_extreme("maximum"), _reduce_extreme("minimum")
_any = _reduction(False, lambda b, x, y: b.op("or", x, b.cast(y, "b1")))
_all = _reduction(True, lambda b, x, y: b.op("and", x, b.cast(y, "b1")))


def _mean(reader: IndexReader, array: Any, axis: Any = None) -> Any:
    array = _array(reader, array)
    count = _count(reader.b, [array.shape[k] for k in _axes(reader, array, axis)])
    total = _sum(reader, array, axis)
    return reader.map(lambda b, x: b.op("divide", x, b.cast(count, _float(x))), total)


def _float(x: Number) -> str:
    return x.type if x.is_float else "f64"


def _variance(reader: IndexReader, array: Any, axis: Any = None) -> Any:
    array = _array(reader, array)
    if not _is_none(axis) and len(array.shape) > 1:
        raise reader.refuse("np.var takes no axis here: write a loop")
    mean = _mean(reader, array)
    gaps = reader.map(lambda b, x, m: b.op("subtract", x, m), array, mean)
    return _mean(reader, reader.binary("multiply", gaps, gaps))


def _deviation(reader: IndexReader, array: Any, axis: Any = None) -> Any:
    return _numeric(elementary.sqrt)(reader, _variance(reader, array, axis))


def dot(reader: IndexReader, left: Any, right: Any) -> Any:
    """Return a product of vectors and matrices."""
    x, y = _array(reader, left), _array(reader, right)
    if not (1 <= len(x.shape) <= 2 and 1 <= len(y.shape) <= 2):
        raise reader.refuse("products are of vectors and matrices")
    inner, other = x.shape[-1], y.shape[0]
    if not same(inner, other):
        reader.check_equal(inner, other)
    x, y = (v if isinstance(v, View) else reader.materialize(v) for v in (x, y))
    kind = _counted(join([x.type, y.type]))
    rows, columns = x.shape[:-1], y.shape[1:]

    def at(b: OpBuilder, index: Any) -> Number:
        def step(k: Any, totals: Sequence[Number]) -> list[Number]:
            b = reader.b
            left = x.at(b, (*index[: len(rows)], *k))
            right = y.at(b, (*k, *index[len(rows) :]))
            return [b.op("add", totals[0], b.op("multiply", left, right))]

        return reader.reduced((inner,), [fixed(kind, 0)], step)[0]

    if len(rows) + len(columns) < 2:
        result = Lazy(kind, (*rows, *columns), at, x.reads | y.reads)
        return reader.evaluated(result) if not result.shape else reader.materialize(result)
    out = reader.allocate(kind, (*rows, *columns), fixed(kind, 0))

    def row(index: Any) -> None:
        i, k = index
        factor = x.at(reader.b, (i, k))

        def add(column: Any) -> None:
            product = reader.b.op("multiply", factor, y.at(reader.b, (k, *column)))
            reader.b.block.append(Store(out.array, (i, *column), product, adds=True))

        reader.each(columns, add)

    reader.each((*rows, inner), row)
    return out


_RANKS = {"trace": (2,), "diag": (1, 2), "stack": (1, 2, 3), "norm": (1, 2, 3)}
_RANKS |= {"inv": (2,), "cholesky": (2,), "solve": (1, 2)}


def _handler_of(form: Callable[..., Any]) -> Handler:
    """Return the handler of a function of `array_forms`."""
    name, ranks = form.__name__, _RANKS.get(form.__name__, (1,))

    def of_numbers(reader: IndexReader, *args: Any) -> Any:
        return reader.map(lambda b, *numbers: reader.call(form, numbers, {}), *args)

    def of_arrays(reader: IndexReader, *args: Any, **keywords: Any) -> Any:
        args = tuple(map(reader.kept, args))
        items = [item for arg in args for item in (arg if isinstance(arg, tuple) else (arg,))]
        arrays = [item for item in items if isinstance(item, View)]
        if any(len(array.shape) not in ranks for array in arrays):
            numbers = " or ".join(map(str, ranks))
            raise reader.refuse(f"np.{name} takes arrays of {numbers} axes here")
        if any(array.type != arrays[0].type for array in arrays):
            raise reader.refuse(f"np.{name} takes arrays of one type: use .astype(np.float64)")
        return reader.call(form, args, keywords)

    return of_numbers if {*inspect.signature(form).parameters} <= {"x", "y"} else of_arrays


# Loops ---------------------------------------------------------------------------------------


def is_range(function: Any) -> bool:
    """Return whether a function is range or Numba's prange."""
    return function is range or getattr(function, "__name__", "") == "prange"


class IndexRange:
    """A loop over integers: `bounds` are start, stop and step."""

    def __init__(
        self, reader: IndexReader, args: Sequence[Number], node: ast.AST, backward: bool = False
    ):
        step = args[2] if len(args) == 3 else constant(1)
        if not isinstance(step, FixedNumber):
            raise reader.refuse("the step of a range is a constant", node)
        if step.number == 0:
            raise reader.refuse("the step of a range is not 0", node)
        start, stop = (constant(0), args[0]) if len(args) == 1 else (args[0], args[1])
        if backward:
            start, stop, step = self._reversed(reader, start, stop, step, node)
        self.bounds = start, stop, step

    @staticmethod
    def _reversed(
        reader: IndexReader, start: Number, stop: Number, step: FixedNumber, node: ast.AST
    ) -> tuple[Number, Number, FixedNumber]:
        if step.number != 1:
            raise reader.refuse("reversed takes a range without a step", node)
        b = reader.b
        return b.op("subtract", stop, 1), b.op("subtract", start, 1), constant(-1)

    def index(self) -> Number:
        start, stop, step = self.bounds
        if step.number > 0:
            low = start.low
        elif isinstance(stop, FixedNumber):
            low = int(stop.number) + 1
        else:
            low = None if stop.low is None else stop.low + 1
        return Number("i64", "i", low)

    def item(self, reader: IndexReader, index: Number) -> Any:
        self.at = index
        return index


class rows(IndexRange):
    """A loop over the elements, or rows, of an array or of `zipped` ones; counted from `start`."""

    def __init__(
        self,
        reader: IndexReader,
        arrays: Sequence[Any],
        node: ast.AST,
        zipped: bool = False,
        start: Number | int | None = None,
    ):
        if not all(isinstance(array, View) and array.shape for array in arrays) or not arrays:
            raise reader.refuse(
                "loops go over range, arrays, enumerate(array), zip(arrays), or both of these",
                node,
            )
        self.arrays, self.zipped, self.start = arrays, zipped, start
        size = arrays[0].shape[0]
        for array in arrays[1:]:
            size = reader.b.op("minimum", size, array.shape[0])
        super().__init__(reader, [size], node)

    def item(self, reader: IndexReader, index: Number) -> Any:
        self.at = index
        items = tuple(reader.item(array, index) for array in self.arrays)
        item = items if self.zipped else items[0]
        if self.start is None:
            return item
        return reader.b.op("add", index, self.start) if self.start != 0 else index, item


# Calls ---------------------------------------------------------------------------------------


def call(
    reader: IndexReader, function: Any, args: Sequence[Any], keywords: dict[str, Any], node: ast.AST
) -> Any:
    """Return the result of a call of a known function."""
    handler = FUNCTIONS.get(function) if isinstance(function, Hashable) else None
    if handler is None:
        python = getattr(function, "py_func", function)
        if isinstance(function, type) and issubclass(function, Exception):
            return reader.wrap(function)
        module = getattr(python, "__module__", None) or ""
        if not hasattr(python, "__code__") or module.partition(".")[0] == "numpy":
            name = getattr(function, "__name__", repr(function))
            module = getattr(function, "__module__", None)
            raise reader.refuse(
                f"{f'{module}.' if module else ''}{name} is not among the functions that can be "
                "differentiated here",
                node,
            )
        args = [reader.kept(arg) for arg in args]
        return reader.call(python, args, {k: reader.kept(v) for k, v in keywords.items()})
    return _handled(handler, reader, args, keywords, "the call", node)


def _handled(
    handler: Handler, reader: IndexReader, args: Sequence[Any], keywords: dict, name: str, node: Any
) -> Any:
    try:
        return handler(reader, *args, **keywords)
    except TypeError as error:
        if type(error) is not TypeError:
            raise
        raise reader.refuse(re.sub(r"[\w.<>]+\(\)", name, str(error)), node) from error


def method(
    reader: IndexReader, name: str, array: Any, args: Sequence[Any], keywords: dict, node: ast.AST
) -> Any:
    """Return the result of an array's method."""
    handler = METHODS.get(name)
    if handler is None:
        raise reader.refuse(f"the method {name} of arrays is not supported", node)
    return _handled(handler, reader, [array, *args], keywords, name, node)


def _fill(reader: IndexReader, array: Any, value: Any) -> None:
    reader.store(array, reader.number(value), None)


def _operator(name: str) -> Handler:
    return lambda reader, x, y: reader.binary(name, x, y)


FUNCTIONS: dict[Any, Handler] = {
    builtins.divmod: _divmod,
    builtins.len: _len,
    builtins.max: _python_extreme("maximum"),
    builtins.min: _python_extreme("minimum"),
    builtins.pow: _operator("power"),
    builtins.round: _round_digits(True),
    builtins.sum: lambda reader, x: _sum(reader, x),
    math.ceil: _round("ceil"),
    math.floor: _round("floor"),
    math.pow: _pow,
    np.all: _all,
    np.amax: _max,
    np.amin: _min,
    np.any: _any,
    np.arange: _arange,
    np.around: _round_digits(False),
    np.array: _copy,
    np.asarray: _as_is,
    np.ascontiguousarray: _as_is,
    np.clip: _clip,
    np.copy: _copy,
    np.dot: dot,
    np.empty: _new(None),
    np.empty_like: _new_like(None),
    np.float_power: _pow,
    np.full: _full,
    np.full_like: _full_like,
    np.matmul: dot,
    np.max: _max,
    np.maximum: _extreme("maximum"),
    np.mean: _mean,
    np.min: _min,
    np.minimum: _extreme("minimum"),
    np.negative: lambda reader, x: reader.map(lambda b, x: b.op("negative", x), x),
    np.ones: _new(1.0),
    np.ones_like: _new_like(1.0),
    np.prod: _prod,
    np.ravel: _ravel,
    np.reshape: _reshape,
    np.round: _round_digits(False),
    np.sign: _sign,
    np.std: _deviation,
    np.sum: _sum,
    np.transpose: _transpose,
    np.var: _variance,
    np.where: _where,
    np.zeros: _new(0.0),
    np.zeros_like: _new_like(0.0),
}
FUNCTIONS |= dict.fromkeys((builtins.abs, math.fabs, np.absolute, np.fabs), _absolute)
FUNCTIONS |= dict.fromkeys((builtins.int, math.trunc, np.int32, np.int64, np.intp), _to("i64"))
FUNCTIONS |= {builtins.float: _to("f64"), np.float64: _to("f64"), np.float32: _to("f32")}
FUNCTIONS |= {builtins.bool: _to("b1"), np.bool_: _to("b1")}
_OPERATORS = ("add", "subtract", "multiply", "divide", "mod", "power", "floor_divide")
_OPERATORS += ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
FUNCTIONS |= {getattr(np, name): _operator(name) for name in _OPERATORS}
for _name, _names in {**_UNARY, **_BINARY}.items():
    for _alias in _names:
        for _module in (np, math):
            if hasattr(_module, _alias):
                FUNCTIONS.setdefault(getattr(_module, _alias), _numeric(getattr(elementary, _name)))
for _name, _form in vars(array_forms).items():
    for _module in (np, math, np.linalg):
        if inspect.isfunction(_form) and hasattr(_module, _name):
            FUNCTIONS.setdefault(getattr(_module, _name), _handler_of(_form))
FUNCTIONS |= {np.deg2rad: FUNCTIONS[np.radians], np.rad2deg: FUNCTIONS[np.degrees]}
FUNCTIONS |= {np.fix: FUNCTIONS[np.trunc], np.identity: FUNCTIONS[np.eye]}
_SAME = (np.sum, np.prod, np.mean, np.max, np.min, np.any, np.all, np.var, np.std, np.copy)
_SAME += (np.ravel, np.reshape, np.transpose, np.dot, np.cumsum, np.cumprod, np.argmax, np.argmin)
METHODS: dict[str, Handler] = {
    "astype": _astype,
    "fill": _fill,
    "flatten": _flatten,
    **{function.__name__: FUNCTIONS[function] for function in _SAME},
}
