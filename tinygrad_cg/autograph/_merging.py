"""Common types for values that the branches of a choice, or the rounds of a loop, compute.

Tensors keep their dtype. Python's numbers stay weak: a float is carried as float64 and becomes a
number again afterwards, so it takes the dtype of the tensor it meets, as in Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from .._core.conversion import (
    BOOL,
    COMPLEX128,
    FLOAT64,
    INT32,
    Weak,
    convert,
    is_tensor,
    is_weak,
    scalar_dtype,
    weak_dtype,
)
from .._core.kinds import is_exact, is_inexact
from .._core.tensor import Aval, Tensor
from .._ops.creation import zeros
from .._ops.shape import cast
from ..errors import AutographError


class Undefined:
    """The value of a name that has none."""

    def __repr__(self) -> str:
        return "<undefined>"


undefined = Undefined()


class Mismatch(Exception):
    """Two values have no common type; the arguments describe both."""


def as_number(tensor: Tensor) -> Any:
    """Return the Python number that a tensor carries."""
    level = getattr(tensor, "level", None)
    if level is not None and level.is_abstract:
        return level.number(tensor) if is_inexact(tensor.dtype) else tensor
    if not isinstance(tensor._data, Aval):
        return tensor.numpy().item()
    if is_inexact(tensor.dtype):
        raise AutographError(
            "a Python float becomes one that differs between examples of a batch: make it a tensor"
        )
    return tensor


class Carried(NamedTuple):
    """The type of a value that a tensor carries; `weak` for a Python number."""

    dtype: np.dtype
    shape: tuple[int, ...]
    weak: bool

    def tensor(self, value: Any) -> Tensor:
        """Return a value as a tensor of this type; zeros if it is undefined."""
        if value is undefined:
            return zeros(self.shape, self.dtype)
        if isinstance(value, Weak):
            return value.strong(self.dtype)
        tensor = convert(value, self.dtype if is_weak(value) else None)
        return tensor if tensor.dtype == self.dtype else cast(tensor, self.dtype)


class Kept:
    """A value that is the same in all cases."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and other.value is self.value


class Plan(NamedTuple):
    """The types of a structure's leaves."""

    structure: Any
    leaves: list[Carried | Kept]

    def tensors(self, value: Any) -> list[Tensor]:
        """Return the tensors that carry a value."""
        if value is undefined:
            flat = [undefined] * len(self.leaves)
        else:
            flat = [value] if self.structure is undefined else nest.flatten(value)
        tensors = []
        for kind, leaf in zip(self.leaves, flat, strict=True):
            if isinstance(kind, Carried):
                tensors.append(kind.tensor(leaf))
            elif is_tensor(leaf) and leaf is not kind.value:
                raise AutographError(
                    f"{describe(leaf)} is assigned, but {describe(kind.value)} was not assigned "
                    "when types were learned: a branch or loop whose condition is a tensor must "
                    "do the same each time that it is traced"
                )
        return tensors

    def pack(self, tensors: Iterable[Tensor]) -> Any:
        """Return the value that the next tensors carry."""
        supply, flat = iter(tensors), []
        for kind in self.leaves:
            value = next(supply) if isinstance(kind, Carried) else kind.value
            flat.append(as_number(value) if isinstance(kind, Carried) and kind.weak else value)
        return nest.pack_sequence_as(self.structure, flat)


def plan(value: Any, other: Any) -> Plan:
    """Return the common type of two values. Raise Mismatch if there is none."""
    if value is undefined or other is undefined:
        value = other = value if other is undefined else other
        if value is undefined:
            return Plan(undefined, [Kept(undefined)])
        return Plan(value, [_leaf(leaf, leaf, fill=True) for leaf in nest.flatten(value)])
    if value is other:
        return Plan(undefined, [Kept(value)])
    if nest.is_nested(value) or nest.is_nested(other):
        try:
            nest.assert_same_structure(value, other)
        except (TypeError, ValueError):
            raise Mismatch(describe(value), describe(other)) from None
    pairs = zip(nest.flatten(value), nest.flatten(other), strict=True)
    return Plan(value, [_leaf(a, b) for a, b in pairs])


def _leaf(value: Any, other: Any, fill: bool = False) -> Carried | Kept:
    if value is other and not (fill and _is_number(value)):
        return Kept(value)
    if not _is_number(value) or not _is_number(other):
        if isinstance(value, (str, bytes)) and type(value) is type(other) and value == other:
            return Kept(value)
        raise Mismatch(describe(value), describe(other))
    is_plain = is_weak(value) and not isinstance(value, Weak) and not fill
    if is_plain and type(value) is type(other) and repr(value) == repr(other):
        return Kept(value)
    (a, weak), (b, other_weak) = _dtype(value), _dtype(other)
    shape, other_shape = _shape(value), _shape(other)
    if shape != other_shape:
        raise Mismatch(describe(value), describe(other))
    if weak and other_weak:
        dtype = np.result_type(a, b)
        return Carried(dtype, shape, not is_exact(dtype))
    strong, fits = (b if weak else a), a == b
    if weak or other_weak:
        fits = weak_dtype(value if weak else other, strong) == strong
        fits = fits and (strong != BOOL or (a if weak else b) == BOOL)
    if not fits:
        raise Mismatch(describe(value), describe(other))
    return Carried(strong, shape, False)


def _is_number(value: Any) -> bool:
    return is_tensor(value) or is_weak(value) or isinstance(value, np.ndarray)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", ()))


def _dtype(value: Any) -> tuple[np.dtype, bool]:
    """Return the dtype that can carry a value, and whether the value is weak."""
    if is_tensor(value) or isinstance(value, np.ndarray):
        return np.dtype(value.dtype), False
    if isinstance(value, (float, Weak, np.floating)):
        return FLOAT64, True
    if isinstance(value, (complex, np.complexfloating)):
        return COMPLEX128, True
    if isinstance(value, (bool, np.bool_)):
        return BOOL, True
    return (INT32 if isinstance(value, np.generic) else scalar_dtype(value)), True


def describe(value: Any) -> str:
    """Return a description of a value, for a message."""
    if value is undefined:
        return "nothing"
    if value is None:
        return "None"
    if is_tensor(value) or isinstance(value, np.ndarray):
        name = np.dtype(value.dtype).name
        return f"a{'n' * (name[0] == 'i')} {name} tensor of shape {tuple(value.shape)}"
    if isinstance(value, Weak):
        return "a float"
    if isinstance(value, (bool, int, float, complex, str)):
        return f"the {type(value).__name__} {value!r:.40}"
    if nest.is_nested(value):
        return f"a {type(value).__name__} of {len(nest.flatten(value))}"
    return f"a {type(value).__name__}"
