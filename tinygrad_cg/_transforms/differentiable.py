"""A function to differentiate: its arguments and outputs, and the checks of both."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from .. import nest
from .._core.conversion import FLOAT64, Weak, convert, is_tensor, is_weak
from .._core.kinds import is_complex, is_differentiable
from .._core.levels import Token, state
from .._core.record import run_recorded
from .._core.tensor import ArrayLike, Tensor
from .._core.transformed import Transformed
from .._ops.creation import fill_zeros
from .._ops.shape import cast, identity, repeat
from .._ops.validation import as_int, check_function
from .._reverse.arguments import NO_TENSOR, class_name
from .._reverse.sweep import differentiate_once
from .._rules.definition import Definition
from ..errors import InvalidArgumentError

_OURS = __name__.partition(".")[0] + ".numpy."


def _is_of_numpy(f: Any) -> bool:
    """Return whether a function belongs to NumPy, or to our namespace of that name."""
    while isinstance(f, (FunctionType, Transformed)) and hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    home = f"{getattr(f, '__module__', None)}."
    return isinstance(f, np.ufunc) or home.startswith(("numpy.", _OURS))


class Differentiable:
    """A function, the arguments to differentiate with respect to, and a name for errors."""

    def __init__(self, name: str, f: Any, argnums: Any = 0, has_aux: bool = False):
        check_function(name, f)
        self.name = name
        self.f = f
        self.single = not isinstance(argnums, (tuple, list))
        if is_tensor(argnums) or isinstance(argnums, np.ndarray):
            raise TypeError(
                f"{name}: argnums must be an integer, got {type(argnums).__name__}: {name} returns "
                f"a function, so write {name}(f)(x)"
            )
        numbers = [argnums] if self.single else list(argnums)
        self.argnums = [as_int(name, "argnums", number) for number in numbers]
        self.positions: dict[int, list[int]] = {}  # by the number of arguments
        self.has_aux = has_aux
        self.direct = getattr(f, "loss_and_gradients", None)  # which needs no tape
        self.floats = FLOAT64 if _is_of_numpy(f) else None  # the dtype of Python's floats
        self.definition = Definition(f)
        self.definition.role = "the differentiated function"

    def sources(self, args: Sequence) -> tuple[list, list]:
        """Return the arguments with fresh tensors to differentiate, and these tensors."""
        chosen = self._chosen(len(args))
        inner = list(args)
        for number in chosen:
            if nest.is_nested(args[number]):
                source = functools.partial(self._source, number)
                inner[number] = nest.map_structure(source, args[number])
            else:
                inner[number] = self._source(number, args[number])
        return inner, [inner[number] for number in chosen]

    def _chosen(self, count: int) -> list[int]:
        """Return the positions among `count` arguments to differentiate with respect to."""
        if count in self.positions:
            return self.positions[count]
        for number in self.argnums:
            if not -count <= number < count:
                raise ValueError(
                    f"{self.name}: argnums contains {number}, but {self.definition.name} was "
                    f"called with {count} positional argument{'s' * (count != 1)}: argnums "
                    "counts from 0, and arguments passed by keyword have no number"
                )
        chosen = [number % count for number in self.argnums]
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"{self.name}: argnums names an argument twice: {self.argnums}")
        self.positions[count] = chosen
        return chosen

    def _source(self, number: int, leaf: Any) -> Tensor:
        try:
            tensor = convert(
                leaf, self.floats if type(leaf) is float or isinstance(leaf, Weak) else None
            )
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{self.name}: argument {number} of {self.definition.name}: {error}"
            ) from None
        if not is_differentiable(tensor.dtype):
            raise TypeError(
                f"{self.name}: argument {number} of {self.definition.name} is of "
                f"dtype {tensor.dtype}, but only floats have derivatives: pass floats, or choose "
                "other arguments with argnums="
            )
        if tensor is leaf and tensor._rec is None and state.frame is None:
            return Tensor(tensor._data)
        return identity(tensor)

    def takes_arrays(self, args: Sequence) -> bool:
        """Return whether results are arrays: the arguments are, and no level is active.

        An active level may have to see operations on the results.
        """
        return state.frame is None and self.are_arrays(args)

    def are_arrays(self, args: Sequence) -> bool:
        """Return whether the differentiated arguments are arrays, perhaps beside numbers."""
        has_arrays = False
        for number in self.argnums:
            argument = args[number]
            if isinstance(argument, ArrayLike):
                return False
            leaves = [argument] if type(argument) is np.ndarray else nest.flatten(argument)
            for leaf in leaves:
                if isinstance(leaf, (np.ndarray, np.generic)):
                    has_arrays = True
                elif not isinstance(leaf, (int, float, complex)):
                    return False
        return has_arrays

    def without_function(self) -> Differentiable:
        """Return a copy without the function, which need not be kept once it has run."""
        transform = copy.copy(self)
        del transform.f, transform.definition
        return transform

    def run(self, args: Sequence, kwargs: dict) -> tuple[Any, Any]:
        """Return the function's result, and the auxiliary one if there is one."""
        result = self.definition.run(self.f, *args, **kwargs)
        if not self.has_aux:
            return result, None
        if not isinstance(result, tuple) or len(result) != 2:
            got = (
                type(result).__name__ if not isinstance(result, tuple) else f"{len(result)} values"
            )
            raise TypeError(
                f"{self.name}: with has_aux=True {self.definition.name} must return a pair "
                f"(output, aux), got {got}"
            )
        return result

    def record(self, args: Sequence, kwargs: dict) -> tuple[Token, list, Any, Any]:
        """Run the function on a tape; return its token, the sources, output and aux."""
        inner, sources = self.sources(args)
        token = Token()
        output, aux = run_recorded(token, nest.flatten(sources), self.run, inner, kwargs)
        return token, sources, output, aux

    def tensors(self, output: Any, real: bool = False) -> list[Tensor]:
        """Return the flat output as differentiable tensors; with `real`, TypeError for complex
        ones."""
        tensors = [self._output(leaf) for leaf in nest.flatten(output)]
        for tensor in tensors if real else ():
            self._refuse_complex(tensor)
        return tensors

    def _output(self, leaf: Any) -> Tensor:
        name = f"{self.name}: {self.definition.name}"
        if leaf is None:
            raise TypeError(f"{name}: function returned None: return a Tensor")
        if not is_tensor(leaf):
            raise TypeError(f"{name} returned {class_name(leaf)}, not a Tensor; {NO_TENSOR}")
        tensor = convert(leaf)
        if not is_differentiable(tensor.dtype):
            raise TypeError(
                f"{name} returned a tensor of dtype {tensor.dtype}, which has no derivative: "
                "return floats"
            )
        return tensor

    def _refuse_complex(self, tensor: Tensor) -> None:
        if is_complex(tensor.dtype):
            raise TypeError(
                f"{self.name}: {self.definition.name} needs a real output, got {tensor.dtype}: "
                "return the real part, the imaginary part or abs(), or use vjp"
            )

    def scalar(self, output: Any) -> Tensor:
        """Return the output as one real number."""
        if nest.is_nested(output):
            raise TypeError(
                f"{self.name}: {self.definition.name} must return one scalar, got "
                f"{type(output).__name__} (for a pair (output, aux) pass has_aux=True)"
            )
        tensor = self._output(output)
        self._refuse_complex(tensor)
        if tensor.shape != ():
            remedy = "use jacobian or vjp, or reduce it to a scalar with reduce_sum or reduce_mean"
            if tensor.shape.num_elements() == 1:
                index = ", ".join("0" * len(tensor.shape))
                remedy = f"it has one element: return it as y[{index}], or reduce_sum(y)"
            raise InvalidArgumentError(
                f"{self.name}: {self.definition.name} needs a scalar output, got shape "
                f"{tuple(tensor.shape)}; {remedy}"
            )
        return tensor

    def pack(self, sources: list, flat: Sequence) -> Any:
        """Return results for the sources, in the structure that argnums asks for."""
        is_flat = not any(map(nest.is_nested, sources))
        packed = flat if is_flat else nest.pack_sequence_as(sources, flat)
        return packed[0] if self.single else tuple(packed)


def sweep_once(
    transform: Differentiable, token: Token, targets: list, upstream: Any, sources: list
) -> Any:
    """Return the packed gradients of a tape's last sweep; None becomes zeros."""
    flat = nest.flatten(sources)
    gradients = differentiate_once(token, targets, upstream, flat)
    return transform.pack(sources, fill_zeros(flat, gradients))


def wrap(transform: Differentiable, run: Callable[[tuple, dict], tuple[Any, Any]]) -> Callable:
    """Return a function that calls `run` and returns derivatives.

    With `has_aux` it returns a pair: derivatives and auxiliary output.
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        result, aux = run(args, kwargs)
        if transform.takes_arrays(args):
            result = as_arrays(result)
        return (result, aux) if transform.has_aux else result

    functools.update_wrapper(transformed, transform.f, updated=())
    return transformed


def as_arrays(results: Any) -> Any:
    """Return nested tensors as writable arrays, and scalars as NumPy's scalars."""
    if type(results) is tuple:
        return tuple(map(as_arrays, results))
    return nest.map_structure(_as_array, results)


def _as_array(leaf: Any) -> Any:
    return np.array(leaf._values())[()] if isinstance(leaf, ArrayLike) else leaf


def fit_tensors(
    transform: Differentiable, role: str, values: Any, structure: Any, tensors: Sequence[Tensor]
) -> list[Tensor]:
    """Return `values`, nested as `structure`, as tensors with the shapes and dtypes of `tensors`.

    Dtypes are cast, and numbers repeated, except for a direction: a tangent or vector must have the
    shape of its tensor. Raises ValueError for another shape or structure, TypeError for complex
    values where real ones are needed.
    """
    if nest.is_nested(structure) or (nest.is_nested(values) and not isinstance(values, list)):
        try:
            nest.assert_same_structure(structure, values, check_types=False)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{transform.name}: the {role} must have the structure {skeleton(structure)}, "
                f"where * is a tensor or a number, got {skeleton(values)}"
            ) from None
        flat = nest.flatten(values)
    else:
        flat = [values]
    return [
        _fit_tensor(transform, f"{role} {i}" if len(flat) > 1 else f"the {role}", *pair)
        for i, pair in enumerate(zip(flat, tensors, strict=True))
    ]


class _Star:
    def __repr__(self) -> str:
        return "*"


def skeleton(values: Any) -> Any:
    """Return nested values with a star for each; it prints the nesting alone."""
    return nest.map_structure(lambda _: _Star(), values)


def _fit_tensor(transform: Differentiable, what: str, value: Any, tensor: Tensor) -> Tensor:
    if value is None:
        _refuse(transform, what, "None", tensor)
    fitted = convert(value, tensor.dtype if is_weak(value) or isinstance(value, list) else None)
    is_direction = what.removeprefix("the ").startswith(("tangent", "vector"))
    if fitted.shape != tensor.shape and (is_direction or fitted.shape != ()):
        _refuse(transform, what, f"shape {tuple(fitted.shape)}", tensor)
    if is_complex(fitted.dtype) and not is_complex(tensor.dtype):
        raise TypeError(
            f"{transform.name}: {what} is {fitted.dtype}, but belongs to a tensor of dtype "
            f"{tensor.dtype}: pass its real part"
        )
    return repeat(cast(fitted, tensor.dtype), tuple(tensor.shape))


def _refuse(transform: Differentiable, what: str, got: str, tensor: Tensor) -> NoReturn:
    raise InvalidArgumentError(
        f"{transform.name}: {what} has {got}, but needs shape {tuple(tensor.shape)} and dtype "
        f"{tensor.dtype}"
    )
