"""The meaning of functions of Python, `math` and NumPy in a program.

A handler takes the reader and the arguments of a call; `FUNCTIONS` finds it by the function that is
called, `METHODS` by the name of an array's method.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary

from . import array_forms
from .blocks_of_code import BlockReader, unwrapped
from .program import DTYPES, FLOATS, FixedNumber, Number, Op, constant, fixed
from .scalar_operations import OpBuilder, join
from .views import Arraylike, Lazy, View, element_of, transposed

Handler = Callable[..., Any]
_DIVISIONS = "floor_divide", "mod"
_OF_BITS = {"bit_and": "and", "bit_or": "or", "bit_xor": "not_equal"}
"""Operations on bits, as operations on truths."""
_OF_FLOATS = "sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh "
_OF_FLOATS += "exp exp2 expm1 log log2 log10 log1p logaddexp sqrt cbrt hypot "
_OF_FLOATS += "erf erfc gamma lgamma sinc floor ceil"
"""Functions of floats by their names here and in NumPy; in `math`, asin is arcsin."""
MAX_POWER = 64  # constant exponents up to it are products, as in Numba
_RANKS = {"trace": (2,), "diag": (1, 2), "stack": (1, 2, 3), "norm": (1, 2, 3)}
_RANKS |= {"inv": (2,), "cholesky": (2,), "solve": (1, 2)}
"""Axes of arrays that functions take, where it is not one."""
_ZERO = constant(0)


def is_harmless(statement: Any) -> bool:
    """Return whether a statement can be carried out where its result is not wanted."""
    name = statement.function if isinstance(statement, Op) else None
    return isinstance(name, str) and name not in (*_DIVISIONS, "left_shift", "right_shift")


def arithmetic(reader: BlockReader, b: OpBuilder, name: str, x: Number, y: Number) -> Number:
    """Return the result of one of Python's operators for numbers."""
    if name == "power":
        return _power(reader, b, x, y)
    if name in _OF_BITS and x.type == y.type == "b1":
        return b.op(_OF_BITS[name], x, y)
    if name == "floor_divide" and (x.is_float or y.is_float):
        return b.apply(elementary.floor_divide, x, y)
    is_division = name in _DIVISIONS and not (x.is_float or y.is_float)
    if is_division and not y.number and (y.low is None or y.low <= 0):
        test = b.op("not_equal", y, 0)
        reader.check(test, ZeroDivisionError, "integer division by zero")
    return b.op(name, x, y)


def _power(reader: BlockReader, b: OpBuilder, x: Number, y: Number) -> Number:
    if y.number is not None and not y.is_float and abs(y.number) <= MAX_POWER:
        product = _product(b, b.cast(x, "i64") if x.type == "b1" else x, abs(y.number))
        return product if y.number >= 0 else b.op("divide", fixed(product.type, 1), product)
    if not (x.is_float or y.is_float):
        raise reader.refuse("an integer to an unknown power: write float(x) ** n")
    if y.number == 0.5:
        return b.apply(elementary.sqrt, x)
    if y.number == 2.0:
        return b.multiply(x, x)
    return b.apply(elementary.power, x, y)


def _product(b: OpBuilder, x: Number, exponent: int) -> Number:
    """Return a power by repeated squares."""
    if exponent < 2:
        return x if exponent else fixed(x.type, 1)
    rest = _product(b, b.multiply(x, x), exponent // 2)
    return b.multiply(x, rest) if exponent % 2 else rest


def _of_truths(name: str) -> Handler:
    return _mapped(lambda b, *xs: b.op(name, *[b.cast(x, "b1") for x in xs]))


def _either(name: str) -> Callable[..., Number]:
    """Return a function of numbers that the language has itself for integers."""

    return lambda b, *xs: (
        b.apply(getattr(elementary, name), *xs) if any(x.is_float for x in xs) else b.op(name, *xs)
    )


def _mapped(function: Callable[..., Number]) -> Handler:
    """Return the handler of a function of numbers, for numbers and arrays."""
    return lambda reader, *operands: reader.map(function, *operands)


def _numeric(function: Callable) -> Handler:
    return _mapped(lambda b, *xs: b.apply(function, *xs))


def _sign(b: OpBuilder, x: Number) -> Number:
    if x.is_float:
        return b.apply(elementary.sign, x)
    return b.op("select", b.op("less", x, 0), -1, b.op("as_i64", b.op("greater", x, 0)))


_root = _numeric(elementary.sqrt)
negative = _mapped(lambda b, x: b.op("negative", x))
_greater, _less = _either("maximum"), _either("minimum")
_maximum, _minimum = _mapped(_greater), _mapped(_less)
"""NumPy's maximum and minimum, NaN where an operand is NaN."""


def _python_extreme(name: str) -> Handler:
    """Return Python's max or min of numbers, or of an array: the first one that none exceeds."""
    test = "greater" if name == "maximum" else "less"

    def chosen(b: OpBuilder, x: Number, y: Number) -> Number:
        if x.is_float or y.is_float:
            return b.op("select", b.op(test, y, x), y, x)
        return b.op(name, x, y)

    def handler(reader: BlockReader, *operands: Any) -> Any:
        if len(operands) == 1 and isinstance(operands[0], tuple):
            operands = operands[0]
        if len(operands) == 1:
            return (_max if name == "maximum" else _min)(reader, *operands)
        return functools.reduce(lambda x, y: reader.map(chosen, x, y), operands)

    return handler


def _round(up: Callable) -> Handler:
    """Return floor, ceil and others as integers, as in `math`."""
    return _mapped(lambda b, x: b.cast(b.apply(up, x), "i64") if x.is_float else x)


def _round_digits(whole: bool) -> Handler:
    """Return round; with a number of digits as Numba computes it. Without, integers if `whole`."""

    def handler(reader: BlockReader, x: Any, digits: Any = None) -> Any:
        if not _is_none(digits):
            return reader.call(array_forms.rounded, (x, digits), {})
        return (_round(elementary.round) if whole else _numeric(elementary.round))(reader, x)

    return handler


def _to(kind: str) -> Handler:
    return lambda reader, x=_ZERO: reader.map(lambda b, x: b.cast(x, kind), x)


def _clip(reader: BlockReader, x: Any, low: Any, high: Any) -> Any:
    for limited, bound in ((_maximum, low), (_minimum, high)):
        if not _is_none(bound):
            x = limited(reader, x, bound)
    return x


def _is_none(value: Any) -> bool:
    return unwrapped(value) is None


def _shape(reader: BlockReader, value: Any) -> tuple[Number, ...]:
    items = value if isinstance(value, tuple) else (value,)
    return tuple(reader.b.cast(reader.number(item), "i64") for item in items)


def _dtype(value: Any, default: str = "f64") -> str:
    """Return the element type that a `dtype` argument names."""
    if _is_none(value):
        return default
    chosen = unwrapped(value)
    return element_of({float: np.float64, int: np.int64, bool: np.bool_}.get(chosen, chosen))


def _new(fill: float | None = None, like: bool = False, default: str = "f64") -> Handler:
    """Return the handler that allocates an array, of a shape or `like` another array."""

    def handler(reader: BlockReader, shape: Any, dtype: Any = None) -> View:
        kind = default
        if like:
            array = _array(reader, shape)
            shape, kind = array.shape, array.element
        kind = _dtype(dtype, kind)
        value = None if fill is None else fixed(kind, fill)
        return reader.allocate(kind, _shape(reader, shape), value)

    return handler


def _full(like: bool) -> Handler:
    def handler(reader: BlockReader, shape: Any, fill_value: Any, dtype: Any = None) -> View:
        number = reader.number(fill_value)
        view = _new(None, like, number.type)(reader, shape, dtype)
        reader.store(view, number, None)
        return view

    return handler


def _arange(reader: BlockReader, start: Any, stop: Any = None, step: Any = None) -> Lazy:
    b = reader.b
    first = constant(0) if stop is None else reader.number(start)
    last = reader.number(start if stop is None else stop)
    jump = constant(1) if _is_none(step) else reader.number(step)
    if any(x.is_float for x in (first, last, jump)):
        span = b.op("divide", b.op("subtract", last, first), jump)
        size, kind = b.cast(b.apply(elementary.ceil, span), "i64"), "f64"
    else:
        if jump.number is None or jump.number <= 0:
            raise reader.refuse("the step of np.arange must be a positive constant")
        size, kind = b.rounds(first, last, jump.number), "i64"
    size = b.op("maximum", size, 0, hint="n")

    def at(b: OpBuilder, index: Any) -> Number:
        return b.cast(b.op("add", first, b.op("multiply", index[0], jump)), kind)

    return Lazy(kind, (size,), at)


def _array(reader: BlockReader, value: Any) -> Arraylike:
    if isinstance(value, Arraylike):
        return value
    if isinstance(value, tuple):
        return _stacked(reader, value)
    value = unwrapped(value)
    raise reader.refuse(f"an array is expected here, got {type(value).__name__}")


def _stacked(reader: BlockReader, items: tuple) -> View:
    """Return a tuple of numbers, or of equally long tuples of them, as an array."""
    rows = items if items and isinstance(items[0], tuple) else (items,)
    numbers = [[reader.number(item) for item in row] for row in rows]
    if len({len(row) for row in numbers}) > 1:
        raise reader.refuse("the rows of an array must have equal lengths")
    kind = join([number.type for row in numbers for number in row]) if items else "f64"
    axes = 1 if rows == (items,) else 2
    shape = (len(rows), len(numbers[0]))[-axes:]
    view = reader.allocate(kind, tuple(map(constant, shape)), None)
    for place in np.ndindex(len(rows), len(numbers[0])):
        view.put(reader.b, tuple(map(constant, place[-axes:])), numbers[place[0]][place[1]])
    return view


def _copy(reader: BlockReader, value: Any, dtype: Any = None) -> View:
    array = _array(reader, value)
    if not _is_none(dtype):
        kind = _dtype(dtype)
        if kind not in (*FLOATS, "i64", "b1"):
            raise reader.refuse("arrays can only be cast to float64, float32, int64 and bool")
        array = _to(kind)(reader, array)
    return reader.materialize(array)


def _transpose(reader: BlockReader, array: Any, axes: Any = None) -> View:
    array = reader.kept(_array(reader, array))
    if _is_none(axes):
        return transposed(array, range(len(array.shape))[::-1])
    return transposed(array, [axis.number for axis in axes])


def _reshape(reader: BlockReader, array: Any, *shape: Any) -> View:
    """Return a copy in another shape; one size may be -1."""
    array = _array(reader, array)
    sizes = list(_shape(reader, shape[0] if len(shape) == 1 else shape))
    b = reader.b
    total = _count(b, array.shape)
    unknown = [k for k, x in enumerate(sizes) if x.number == -1]
    reader.forbid(len(unknown) > 1, "at most one size of a shape may be -1")
    if unknown:
        others = _count(b, [x for k, x in enumerate(sizes) if k not in unknown])
        reader.check(b.op("greater", others, 0), ValueError, "a shape with -1 has a size of 0")
        sizes[unknown[0]] = b.op("floor_divide", total, others, hint="n")
    same = b.op("equal", _count(b, sizes), total)
    reader.check(same, ValueError, "reshape must keep all elements")
    shaped = tuple(sizes)

    def at(b: OpBuilder, index: Any) -> Number:
        position: Number = constant(0)
        for size, i in zip(shaped, index, strict=True):
            position = b.op("add", b.op("multiply", position, size), i)
        place: list[Number] = []
        for size in array.shape[:0:-1]:
            place.insert(0, b.op("mod", position, size))
            position = b.op("floor_divide", position, size)
        return array.at(b, (position, *place) if array.shape else ())

    return _shares(reader, array, reader.materialize(Lazy(array.type, shaped, at, array.reads)))


def _shares(reader: BlockReader, array: Arraylike, copy: View) -> View:
    """Return a copy, which in Python shares the memory of the array."""
    if isinstance(array, View):
        reader.copied(copy.array, "the reshaped array", array.array, None, reader.env)
    return copy


def _ravel(reader: BlockReader, array: Any) -> Arraylike:
    array = _array(reader, array)
    if len(array.shape) == 1:
        return _shares(reader, array, reader.materialize(array))
    return _reshape(reader, array, constant(-1))


def _count(b: OpBuilder, shape: Sequence[Number]) -> Number:
    total: Number = constant(1)
    for size in shape:
        total = b.op("multiply", total, size, hint="n")
    return total


def _len(reader: BlockReader, value: Any) -> Number:
    if isinstance(value, tuple):
        return constant(len(value))
    array = _array(reader, value)
    reader.forbid(not array.shape, "an array without axes has no length")
    return array.shape[0]


def _axes(reader: BlockReader, array: Arraylike, axis: Any) -> tuple[int, ...]:
    if _is_none(axis):
        return tuple(range(len(array.shape)))
    items = axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(item, FixedNumber) for item in items):
        raise reader.refuse("an axis must be a constant")
    return tuple(item.number % max(len(array.shape), 1) for item in items)


def _reduction(init: int, step: Callable[..., Number], first: bool = False) -> Handler:
    """Return a reduction of an array, by all axes or some; it may begin with the first element."""

    def handler(reader: BlockReader, array: Any, axis: Any = None) -> Any:
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

        for size in over if first else ():
            test = reader.b.op("greater", size, 0)
            reader.check(test, ValueError, "a reduction of an empty array")
        kind = step(OpBuilder([]), begin, Number(array.type)).type
        result = Lazy(kind, tuple(array.shape[k] for k in kept), at, array.reads)
        return reader.evaluated(result)

    return handler


def _counted(kind: str) -> str:
    """Return the type of sums of elements."""
    return kind if kind in FLOATS else "i64"


_sum = _reduction(0, lambda b, x, y: b.op("add", x, y))
_prod = _reduction(1, lambda b, x, y: b.op("multiply", x, y))
_max, _min = _reduction(0, _greater, first=True), _reduction(0, _less, first=True)
_any = _reduction(False, lambda b, x, y: b.op("or", x, b.cast(y, "b1")))
_all = _reduction(True, lambda b, x, y: b.op("and", x, b.cast(y, "b1")))


def _mean(reader: BlockReader, array: Any, axis: Any = None) -> Any:
    array = _array(reader, array)
    count = _count(reader.b, [array.shape[k] for k in _axes(reader, array, axis)])
    total = _sum(reader, array, axis)
    kind = "f32" if total.type == "f32" else "f64"
    return reader.binary("divide", total, reader.b.cast(count, kind))


def _variance(reader: BlockReader, array: Any, axis: Any = None) -> Any:
    array = _array(reader, array)
    if not _is_none(axis) and len(array.shape) > 1:
        raise reader.refuse("axis= of np.var is not supported: write a loop")
    gaps = reader.binary("subtract", array, _mean(reader, array))
    return _mean(reader, reader.binary("multiply", gaps, gaps))


def dot(reader: BlockReader, left: Any, right: Any) -> Any:
    operands = [reader.kept(_array(reader, x)) for x in (left, right)]
    if not all(1 <= len(x.shape) <= 2 for x in operands):
        raise reader.refuse("only vectors and matrices can be multiplied")
    reader.check_equal(operands[0].shape[-1], operands[1].shape[0])
    kind = _counted(join([x.type for x in operands]))
    numbers = [x if x.element == kind else reader.kept(_to(kind)(reader, x)) for x in operands]
    return reader.call(array_forms.product, numbers, {})


def _of_numbers(form: Callable[..., Any]) -> Handler:
    """Return the handler of a function of `array_forms` that takes numbers."""
    return lambda reader, *args: reader.map(lambda _, *xs: reader.call(form, xs, {}), *args)


def _of_arrays(name: str, form: Callable[..., Any]) -> Handler:
    """Return the handler of a function of `array_forms` that takes arrays."""
    ranks = _RANKS.get(name, (1,))

    def handler(reader: BlockReader, *args: Any, **keywords: Any) -> Any:
        args = tuple(map(reader.kept, args))
        items = [item for arg in args for item in (arg if isinstance(arg, tuple) else (arg,))]
        arrays = [item for item in items if isinstance(item, View)]
        if any(len(array.shape) not in ranks for array in arrays):
            numbers = " or ".join(map(str, ranks))
            raise reader.refuse(f"np.{name} takes arrays of {numbers} axes here")
        if any(array.type != arrays[0].type for array in arrays):
            raise reader.refuse(f"np.{name} needs arrays of the same type: use .astype(np.float64)")
        return reader.call(form, args, keywords)

    return handler


def call(reader: BlockReader, function: Any, args: Sequence, keywords: dict, node: ast.AST) -> Any:
    """Return the result of a call of a known function."""
    handler = FUNCTIONS.get(function) if isinstance(function, Hashable) else None
    if handler is not None:
        return _handled(handler, reader, args, keywords, "the call", node)
    python = getattr(function, "py_func", function)
    if isinstance(function, type) and issubclass(function, Exception):
        return reader.wrap(function)
    root = (getattr(python, "__module__", None) or "").partition(".")[0]
    if not hasattr(python, "__code__") or root in ("numpy", "tinygrad_cg"):
        name = getattr(function, "__name__", repr(function))
        if getattr(function, "__wrapped__", None) in reader.calls:
            raise reader.refuse(f"{name} calls itself: write a loop", node)
        module, remedy = getattr(function, "__module__", None) or "", ""
        if root == "tinygrad_cg":
            module, remedy = root, "use a function of NumPy or math, or "
        elif root == "numpy" and not module.startswith("numpy.random"):
            remedy = "write it in loops, or "
        raise reader.refuse(
            f"{module}{'.' * bool(module)}{name} is not among the functions that `differentiable` "
            f"can differentiate: {remedy}write a rule with custom_gradient, or, if the result "
            "needs no gradient, compute it outside and pass it as an argument",
            node,
        )
    args = [reader.kept(arg) for arg in args]
    return reader.call(python, args, {k: reader.kept(v) for k, v in keywords.items()})


def method(reader: BlockReader, name: str, args: Sequence, keywords: dict, node: ast.AST) -> Any:
    """Return the result of a method of the first argument, an array."""
    reader.forbid(name not in METHODS, f"the method {name} of arrays is not supported", node)
    return _handled(METHODS[name], reader, args, keywords, name, node)


def _handled(handler: Handler, reader: Any, args: Any, words: Any, name: str, at: Any) -> Any:
    try:
        return handler(reader, *args, **words)
    except TypeError as error:
        if type(error) is not TypeError:
            raise
        raise reader.refuse(re.sub(r"[\w.<>]+\(\)", name, str(error)), at) from error


def _binary(name: str) -> Handler:
    return lambda reader, x, y: reader.binary(name, x, y)


FUNCTIONS: dict[Any, Handler] = {
    builtins.divmod: lambda reader, x, y: tuple(reader.binary(op, x, y) for op in _DIVISIONS),
    builtins.len: _len,
    builtins.max: _python_extreme("maximum"),
    builtins.min: _python_extreme("minimum"),
    builtins.pow: _binary("power"),
    builtins.round: _round_digits(True),
    builtins.sum: lambda reader, x: _sum(reader, x),
    math.ceil: _round(elementary.ceil),
    math.floor: _round(elementary.floor),
    math.pow: _numeric(elementary.power),
    **dict.fromkeys((builtins.abs, math.fabs, np.absolute, np.fabs), _mapped(_either("absolute"))),
    **dict.fromkeys((builtins.int, math.trunc, np.int32, np.int64, np.intp), _to("i64")),
    **dict.fromkeys((builtins.float, np.float64), _to("f64")),
    **dict.fromkeys((builtins.bool, np.bool_), _to("b1")),
    np.float32: _to("f32"),
}
_FILLS = {"empty": None, "ones": 1.0, "zeros": 0.0}
_NUMPY: dict[str, Handler] = {
    "all": _all,
    "any": _any,
    "arange": _arange,
    "array copy": _copy,
    "asarray ascontiguousarray": lambda reader, value, dtype=None: (
        value if isinstance(value, Arraylike) and _is_none(dtype) else _copy(reader, value, dtype)
    ),
    "clip": _clip,
    "dot matmul": dot,
    "float_power": _numeric(elementary.power),
    "full": _full(like=False),
    "full_like": _full(like=True),
    "max amax": _max,
    "maximum": _maximum,
    "mean": _mean,
    "min amin": _min,
    "minimum": _minimum,
    "negative": negative,
    "prod": _prod,
    "ravel": _ravel,
    "reshape": _reshape,
    "rint": _numeric(elementary.round),
    "round around": _round_digits(False),
    "sign": _mapped(_sign),
    "std": lambda reader, *xs, **words: _root(reader, _variance(reader, *xs, **words)),
    "sum": _sum,
    "transpose": _transpose,
    "var": _variance,
    "where": _mapped(lambda b, test, x, y: b.op("select", b.cast(test, "b1"), x, y)),
}
_NUMPY |= {name: _new(fill) for name, fill in _FILLS.items()}
_NUMPY |= {f"{name}_like": _new(fill, like=True) for name, fill in _FILLS.items()}
_NUMPY |= {f"logical_{name}": _of_truths(name) for name in ("and", "not", "or")}
_NUMPY["logical_xor"] = _of_truths("not_equal")
FUNCTIONS |= {getattr(np, x): _NUMPY[names] for names in _NUMPY for x in names.split()}
_OPERATORS = "add subtract multiply divide mod power floor_divide "
_OPERATORS += "less less_equal greater greater_equal equal not_equal"
FUNCTIONS |= {getattr(np, name): _binary(name) for name in _OPERATORS.split()}
_FORMS = {name: _numeric(getattr(elementary, name)) for name in _OF_FLOATS.split()}
_FORMS |= {name.replace("arc", "a"): form for name, form in _FORMS.items()}
_FORMS |= {name: _of_numbers(form) for name, form in array_forms.OF_NUMBERS.items()}
for _name, _form in {**vars(array_forms), **array_forms.OF_ARRAYS}.items():
    if inspect.isfunction(_form):
        FUNCTIONS[_form] = _FORMS[_name] = _of_arrays(_name, _form)
for _name, _form in _FORMS.items():
    for _module in (np, math, np.linalg):
        if hasattr(_module, _name):
            FUNCTIONS.setdefault(getattr(_module, _name), _form)
FUNCTIONS |= {np.deg2rad: FUNCTIONS[np.radians], np.rad2deg: FUNCTIONS[np.degrees]}
FUNCTIONS |= {np.fix: FUNCTIONS[np.trunc], np.identity: FUNCTIONS[np.eye]}
_METHODS = "sum prod mean max min any all var std copy ravel reshape transpose dot cumsum cumprod "
_METHODS += "argmax argmin"
ATTRIBUTES: dict[str, Handler] = {
    "shape": lambda _, array: array.shape,
    "size": lambda reader, array: _count(reader.b, array.shape),
    "ndim": lambda _, array: constant(len(array.shape)),
    "T": _transpose,
    "dtype": lambda reader, array: reader.wrap(DTYPES[array.element]),
}
METHODS: dict[str, Handler] = {
    "astype": lambda reader, array, dtype: _copy(reader, array, unwrapped(dtype) or float),
    "fill": lambda reader, array, value: reader.store(array, reader.number(value), None),
    "flatten": lambda reader, array: _ravel(reader, _copy(reader, array)),
    **{name: FUNCTIONS[getattr(np, name)] for name in _METHODS.split()},
}
