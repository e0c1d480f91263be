"""NumPy's functions on tensors: ``__array_ufunc__`` and ``__array_function__`` (NEP 13, NEP 18).

What NumPy computes on a tensor is recorded and gives tensors (docs/behaviour.md, decision 15). What
this library cannot record is refused by name: nothing leaves the record in the middle of an
expression. `ufuncs` and `functions` say what stands for what: the records' own ufuncs, and what
`register` adds. ``tinygrad_cg.numpy`` registers more when `namespace` loads it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from sys import _getframe
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from .._core.conversion import convert, is_tensor
from .._core.kinds import is_exact, is_unsigned
from .._core.record import find_tokens
from .._core.suggestions import suggest
from .._core.tensor import Aval, Tensor
from ..nest import flatten, map_structure
from . import cumulative, reductions, shape

ufuncs: dict[Any, Callable] = {}
functions: dict[Callable, Callable] = {}


def namespace() -> ModuleType:
    """Return ``tinygrad_cg.numpy``: the package, which is above that module, sets this function."""
    raise RuntimeError("tinygrad_cg is not imported yet")


# What ``ufunc.reduce`` reduces with; ``reduce`` takes the first axis unless it is told otherwise.
reduced_by: dict[Any, Callable] = {
    np.add: reductions.reduce_sum,
    np.multiply: reductions.reduce_prod,
    np.maximum: reductions.reduce_max,
    np.minimum: reductions.reduce_min,
    np.logical_and: reductions.reduce_all,
    np.logical_or: reductions.reduce_any,
}
# What ``ufunc.accumulate`` is: op(x, axis).
running: dict[Any, Callable] = {np.add: cumulative.cumsum, np.multiply: cumulative.cumprod}

# Functions that answer without numbers to differentiate by: NumPy's own, on the values.
ANSWERED_BY_NUMPY: set[Callable] = {
    *(np.allclose, np.array_equal, np.array_equiv, np.array2string, np.array_repr, np.array_str),
    *(np.save, np.savez, np.savez_compressed, np.savetxt, np.copyto, np.may_share_memory),
    *(np.shares_memory, np.shape, np.ndim, np.size, np.result_type, np.can_cast),
    *(np.min_scalar_type, np.common_type, np.iscomplexobj, np.isrealobj, np.count_nonzero),
    *(np.nonzero, np.argwhere, np.flatnonzero, np.isin, np.digitize, np.searchsorted),
    *(np.lexsort, np.nanargmax, np.nanargmin, np.einsum_path, np.packbits),
    *(np.unpackbits, np.ravel_multi_index, np.unravel_index, np.diag_indices_from),
    *(np.tril_indices_from, np.triu_indices_from, np.ix_, np.linalg.matrix_rank),
}


@cache
def _package_of(name: str | None) -> str | None:
    """Return the package of a module if its code needs arrays; else None.

    It writes into what NumPy's functions give it, and hands that to code in C.
    """
    package = (name or "").partition(".")[0]
    return package if package in _NEEDING else None


# Whether a package needs arrays of recorded tensors too.
_NEEDING = {"matplotlib": True, "mpl_toolkits": True, "scipy": False, "sklearn": False}
_ABSENT = np._NoValue


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Return a universal function of NumPy, or its `reduce`, `accumulate` or `outer`, on tensors.

    `dtype=` casts the operands first. Raises TypeError for what is not recorded: other
    functions and methods, and the options `out=` and `where=`. Into arrays NumPy writes the values
    of tensors that nothing records.
    """
    op = ufuncs.get(ufunc) or _complete(ufuncs).get(ufunc)
    if op is not None and method == "__call__" and not options:
        return op(*inputs)
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if options.get("out") is not None:
        return _write(name, ufunc, method, options["out"], inputs, options)
    package = _package_of(_getframe(1).f_globals.get("__name__"))
    if package is not None and _gets_arrays(package, inputs, options):
        return getattr(ufunc, method)(*_as_values(inputs), **_as_values(options))
    if method == "at" and is_tensor(inputs[0]):
        change = _CHANGES.get(ufunc.__name__, f"set(np.{ufunc.__name__}(...))")
        raise TypeError(
            f"np.{name}: the first argument cannot be a tensor, which is immutable: write "
            f"`x = x.at[index].{change}`"
        )
    if method == "at" and not any(map(_is_recorded, inputs)):
        return _write(name, ufunc, method, inputs[:1], inputs, options)
    call = _METHODS.get(method)
    if op is None or call is None:
        if getattr(np, ufunc.__name__, None) is not ufunc:
            _refuse_foreign(ufunc)
        refuse(name, _ufunc_names())
    return call(name, ufunc, op, inputs, options)


def _call(name: str, ufunc: Any, op: Callable, inputs: tuple, options: dict) -> Any:
    if ufunc.signature is not None and "axis" in options:  # vecdot and its kind
        return op(*inputs, axis=options["axis"])
    dtype = _only_dtype(name, options)
    if dtype is None:
        return op(*inputs)
    if all(types.endswith("?") for types in ufunc.types if "O" not in types):
        raise TypeError(f"np.{name}: dtype= is not supported on tensors: the result is bool")
    return op(*[shape.cast(operand, dtype) for operand in inputs])


_CHANGES = {name: f"{name}(y)" for name in ("add", "subtract", "multiply", "divide", "power")}
_CHANGES |= {"maximum": "max(y)", "minimum": "min(y)"}


def _write(name: str, ufunc: Any, method: str, targets: tuple, inputs: tuple, options: dict) -> Any:
    """Let NumPy write values into arrays, as ``w -= rate * gradient`` does."""
    if any(is_tensor(target) for target in targets):
        raise TypeError(
            f"np.{name}: out= cannot be a tensor, which is immutable: write `x = np.{name}(...)` "
            "without out="
        )
    if any(map(_is_recorded, (*inputs, *options.values()))):
        raise TypeError(
            f"np.{name}: out= cannot be a tensor, and cannot take a recorded one, since an array "
            "would lose the derivative: write `w = w - y` instead of `w -= y`, or take y.numpy()"
        )
    return getattr(ufunc, method)(*_as_values(inputs), **_as_values(options))


def _is_recorded(x: Any) -> bool:
    """Return whether a tape may still ask for a derivative by way of `x`, if that is a tensor."""
    tokens = find_tokens(x._read()._rec) if is_tensor(x) else ()
    return any(token.alive and not token.silent for token in tokens)


def _gets_arrays(package: str, args: tuple, kwargs: dict) -> bool:
    """Return whether NumPy itself answers code of a package that needs arrays.

    Nothing is lost by that: what is drawn has no derivative, what nothing records neither.
    """
    tensors = [leaf for leaf in flatten((args, list(kwargs.values()))) if is_tensor(leaf)]
    if any(isinstance(tensor._data, Aval) for tensor in tensors):
        return False
    return _NEEDING[package] or not any(map(_is_recorded, tensors))


def _complete(table: dict) -> dict:
    namespace()
    return table


def _only_dtype(name: str, options: dict) -> Any:
    """Return the option `dtype`; raise TypeError if another option is not NumPy's default."""
    rest = {
        key
        for key, value in options.items()
        if key != "dtype" and value is not None and value is not _ABSENT and value is not True
    }
    if rest:
        raise TypeError(f"np.{name}: {', '.join(sorted(rest))}= is not supported on tensors")
    dtype = options.get("dtype")
    return None if dtype is None else np.dtype(dtype)


def _reduce(name: str, ufunc: Any, op: Callable, inputs: tuple, options: dict) -> Any:
    reduction = reduced_by.get(ufunc)
    if reduction is None:
        refuse(name, [f"{ufunc.__name__}.reduce" for ufunc in reduced_by])
    x, axis, keepdims = _reduce_arguments(name, ufunc, inputs, options)
    return reduction(x, axis, keepdims)


def _accumulate(name: str, ufunc: Any, op: Callable, inputs: tuple, options: dict) -> Any:
    scan = running.get(ufunc)
    if scan is None:
        refuse(name, [f"{ufunc.__name__}.accumulate" for ufunc in running])
    x, axis, _ = _reduce_arguments(name, ufunc, inputs, options)
    return scan(x, axis)


def _reduce_arguments(
    name: str, ufunc: Any, inputs: tuple, options: dict
) -> tuple[Tensor, Any, bool]:
    """Return operand, axis and keepdims of `reduce` or `accumulate`; integers get 64 bits."""
    settings = dict(zip(("axis", "dtype"), inputs[1:], strict=False)) | options
    axis, keepdims = settings.pop("axis", 0), bool(settings.pop("keepdims", False))
    x, dtype = convert(inputs[0]), _only_dtype(name, settings)
    if dtype is None and ufunc in (np.add, np.multiply) and is_exact(x.dtype):
        dtype = np.result_type(np.uint64 if is_unsigned(x.dtype) else np.int64)
    return (x if dtype is None else shape.cast(x, dtype)), axis, keepdims


def _outer(name: str, ufunc: Any, op: Callable, inputs: tuple, options: dict) -> Any:
    if ufunc.nin != 2 or ufunc.signature is not None:
        refuse(name, _ufunc_names())
    x, y = map(convert, inputs)
    column = shape.reshape(x, (*x.shape, *[1] * y.ndim))
    return _call(name, ufunc, op, (column, y), options)


_METHODS = {"__call__": _call, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer}


def _ufunc_names() -> list[str]:
    return [ufunc.__name__ for ufunc in ufuncs]


def of_numpy(name: str) -> Callable:
    """Return the function of ``tinygrad_cg.numpy`` of this name."""
    return getattr(namespace(), name)


def array_function(self: Any, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    """Return a function of NumPy on tensors: that of ``tinygrad_cg.numpy``, which is recorded.

    Functions whose answer has no derivative run on the values, and so do those that code of a
    package calls which needs arrays. Raises TypeError for all others, and for parameters that
    ours does not have.
    """
    package = _package_of(_getframe(1).f_globals.get("__name__"))
    if package is not None and _gets_arrays(package, args, kwargs):
        return function(*_as_values(args), **_as_values(kwargs))
    function = public(function)
    if function in ANSWERED_BY_NUMPY:
        return _answer(function, args, kwargs)
    implementation = functions.get(function) or _complete(functions).get(function)
    if implementation is None:
        refuse(name_of(function), map(name_of, functions))
    rearranged = function in (np.reshape, np.ravel)  # where `order` is not how a result lies
    named = {
        key: value
        for key, value in kwargs.items()
        if (key == "order" and rearranged) or not _is_default(key, value)
    }
    try:
        return implementation(*args, **named)
    except TypeError as error:
        trace = error.__traceback__
        if trace is not None and trace.tb_next is not None:
            raise
        raise TypeError(f"np.{name_of(function)} on tensors: {error}") from None


def _is_default(key: str, value: Any) -> bool:
    """Return whether an option has no effect here: where, and in which layout, the result lies."""
    if key in ("order", "subok"):
        return True
    return value is _ABSENT or (key in ("out", "device") and value is None)


# Those that ask for shapes and dtypes alone, which tensors without values have too.
_WITHOUT_VALUES = frozenset(
    (
        *(np.shape, np.ndim, np.size, np.result_type, np.common_type, np.iscomplexobj),
        *(np.isrealobj, np.einsum_path, np.diag_indices_from, np.tril_indices_from),
        np.triu_indices_from,
    )
)


def _answer(function: Any, args: tuple, kwargs: dict) -> Any:
    """Return NumPy's own answer on the values; its arrays become tensors."""
    read = _array_alike if function in _WITHOUT_VALUES else _value
    if function is np.copyto:  # what it writes may be computed with
        read = np.asarray
    result = function(*_as_values(args, read), **_as_values(kwargs, read))
    return map_structure(lambda leaf: Tensor(leaf) if type(leaf) is np.ndarray else leaf, result)


def _as_values(arguments: Any, read: Callable = np.asarray) -> Any:
    """Return nested arguments with the tensors' values in their place."""
    return map_structure(lambda leaf: read(leaf) if is_tensor(leaf) else leaf, arguments)


def _value(x: Any) -> np.ndarray:
    """Return the value of a tensor for a question: without the warning that it loses gradients."""
    if not isinstance(x, Tensor) or type(x._data) is not np.ndarray:
        return np.asarray(x)
    view = x._data.view()
    view.flags.writeable = False
    return view


def _array_alike(x: Any) -> np.ndarray:
    """Return zeros of the shape and dtype of a tensor, which take no memory."""
    return np.broadcast_to(np.zeros((), x.dtype), tuple(x.shape))


def name_of(function: Any) -> str:
    """Return a function's name as programs write it after ``np.``."""
    module = (function.__module__ or "").removeprefix("numpy").removeprefix(".")
    return f"{module}.{function.__name__}" if module else function.__name__


def public(function: Any) -> Any:
    """Return the function as programs find it: ``like=`` hands over another of the same name."""
    if function in functions:
        return function
    attribute = np
    for name in name_of(function).split("."):
        attribute = getattr(attribute, name, None)
    return function if attribute is None else attribute


def _refuse_foreign(ufunc: Any) -> NoReturn:
    """Say what to use instead of a universal function that is not NumPy's."""
    name = ufunc.__name__
    is_scipys = getattr(sys.modules.get("scipy.special"), name, None) is ufunc
    instead = suggest(name) if is_scipys else ""
    raise TypeError(
        f"{'scipy.special.' if is_scipys else 'the universal function '}{name} is not supported on "
        f"tensors: {instead and instead + ', or '}call {name}(np.asarray(x)) in a function with "
        "custom_gradient that returns the value and a rule"
    )


def refuse(name: str, supported: Iterable[str]) -> NoReturn:
    """Say that np.`name` is not recorded, and which function of those supported is the nearest."""
    import difflib  # rarely needed, and not quick to load

    near = difflib.get_close_matches(name, sorted(set(supported)), 3, 0.0)
    listed = ", ".join(f"np.{spelling}" for spelling in near)
    raise TypeError(
        f"np.{name} is not supported on tensors with these arguments: use .numpy() for the values "
        f"only (no gradient flows); supported alternatives: {listed}"
    )


def register(namespace: Any, module: Any, names: Iterable[str]) -> None:
    """Let each function of `module` (of NumPy) stand for the one of its name in `namespace`.

    The universal functions that `ufuncs` has already are the operations themselves.
    """
    for name in names:
        theirs, ours = getattr(module, name, None), getattr(namespace, name)
        if isinstance(theirs, np.ufunc):
            ufuncs.setdefault(theirs, ours)
        elif (
            theirs not in ANSWERED_BY_NUMPY
            and callable(theirs)
            and callable(ours)
            and not isinstance(ours, type)
        ):
            functions[theirs] = ours
