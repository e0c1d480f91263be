"""Signatures: the part of a call that decides which program serves it, and the program's inputs."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ... import nest
from ..._core import devices
from ..._core.conversion import as_dtype, convert, is_tensor
from ..._core.devices import CPU, GPU
from ..._core.levels import state
from ..._core.tensor import Aval, Tensor, TensorShape
from ..._reverse.variable import Variable
from ...errors import ArgumentTypeError
from ..graph.values import frozen


class TensorSpec:
    """The shape and dtype of an argument, for ``function(input_signature=[...])``.

    `shape` may contain None for unknown sizes, or be None for any rank. Modelled on
    ``tf.TensorSpec``.

    Examples
    --------
    >>> tf.TensorSpec((None, 2), tf.float32).shape
    (None, 2)
    """

    def __init__(self, shape: Any, dtype: Any = np.float32, name: str | None = None):
        sizes = None if shape is None else tuple(shape)
        if sizes and any(size is not None and not hasattr(size, "__index__") for size in sizes):
            raise TypeError(f"TensorSpec: shape must be a list of sizes or None, got {shape!r}")
        self.shape: tuple[Any, ...] | None = sizes
        self.dtype: np.dtype = as_dtype(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Return the specification of one tensor."""
        return cls(tensor.shape, tensor.dtype, name)

    @property
    def is_known(self) -> bool:
        """Return whether all sizes are known."""
        return self.shape is not None and None not in self.shape

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether a tensor or specification has this dtype and a shape that fits."""
        if other.dtype != self.dtype:
            return False
        if self.shape is None or other.shape is None:
            return True
        pairs = list(zip(self.shape, other.shape, strict=False))
        fits = all(mine is None or size is None or mine == size for mine, size in pairs)
        return fits and len(other.shape) == len(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple:
        return self.shape, self.dtype, self.name

    def __repr__(self) -> str:
        shape = None if self.shape is None else str(self.shape)
        return f"TensorSpec(shape={shape}, dtype=tf.{self.dtype}, name={self.name!r})"


def type_spec_from_value(value: Any) -> TensorSpec:
    """Return the specification of a value: of the tensor that it converts to.

    Modelled on ``tf.type_spec_from_value``.
    """
    return TensorSpec.from_tensor(convert(value))


def has_unknown_sizes(structure: Any) -> bool:
    """Return whether a specification in it leaves sizes open."""
    flat = nest.flatten(structure)
    return any(isinstance(leaf, TensorSpec) and not leaf.is_known for leaf in flat)


MAX_SIZES = 64  # integers of a tensor whose values are known while tracing


class Statics:
    """The arguments that are part of the signature with their values."""

    def __init__(self, function: Callable[..., Any], argnums: Any, argnames: Any):
        numbers = _as_list(argnums)
        self.values: frozenset[int] = frozenset()  # positions of leaves whose values are sizes
        self.names = set(_as_list(argnames))
        parameters: list[str] = []
        if numbers or self.names:
            parameters = list(inspect.signature(function).parameters)
        for number in numbers:
            if not isinstance(number, int):
                raise TypeError(f"function: static_argnums must be integers, got {number!r}")
        self.numbers = {number % len(parameters) if number < 0 else number for number in numbers}
        self.names |= {parameters[i] for i in self.numbers if i < len(parameters)}
        self.numbers |= {parameters.index(name) for name in self.names if name in parameters}

    def with_values(self, positions: Iterable[int]) -> Statics:
        """Return a signature that includes the values of the leaves at these positions."""
        statics = copy.copy(self)
        statics.values = self.values.union(positions)
        return statics

    def without_first(self) -> Statics:
        """Return the signature of the method: without the first argument, the instance."""
        statics = copy.copy(self)
        statics.numbers = {number - 1 for number in self.numbers if number}
        return statics


def _as_list(values: Any) -> list:
    if values is None:
        return []
    return list(values) if isinstance(values, (list, tuple, set)) else [values]


class FunctionCall:
    """One call: `key` is its signature, `leaves` the tensors and floats that the program takes.

    `device` is "gpu:0" if a tensor is there; without tensors it is that of `tf.device`.
    """

    __slots__ = ("args", "device", "has_tensors", "key", "kwargs", "leaves", "statics")

    def __init__(self, args: tuple, kwargs: dict, statics: Statics):
        self.args, self.kwargs, self.statics = args, kwargs, statics
        self.leaves: list[Any] = []
        self.device, self.has_tensors = CPU, False
        key: list[Any] = []
        for i, arg in enumerate(args):
            key.append(("static", frozen(arg)) if i in statics.numbers else self._key(arg))
        for name in sorted(kwargs):
            arg = kwargs[name]
            key += name, ("static", frozen(arg)) if name in statics.names else self._key(arg)
        if not self.has_tensors and state.device == GPU:
            self.device = GPU
            key.append(GPU)
        self.key = tuple(key)

    def _key(self, value: Any) -> Any:
        kind = type(value)
        if kind is Tensor:
            return self._add(value)
        if kind is float:
            self.leaves.append(value)
            return float
        if value is None or kind is int or kind is bool or kind is str:
            return kind, value
        if nest.is_nested(value):
            if isinstance(value, Mapping):
                names = sorted(value)
                return kind, tuple(names), *[self._key(value[name]) for name in names]
            return kind, *[self._key(item) for item in value]
        leaf = as_leaf(value)
        if leaf is None:
            return frozen(value) if not isinstance(value, Variable) else (Variable, id(value))
        if isinstance(leaf, Tensor):
            return self._add(leaf)
        self.leaves.append(leaf)
        return type(leaf)

    def _add(self, tensor: Tensor) -> tuple:
        self.leaves.append(tensor)
        self.has_tensors, data = True, tensor._data
        if type(data) is np.ndarray or not isinstance(data, devices.array_types):
            if len(self.leaves) - 1 in self.statics.values and _may_be_size(data):
                return data.shape, data.dtype, data.tobytes()
            return data.shape, data.dtype
        self.device = GPU
        return data.shape, data.dtype, GPU

    def sizes(self) -> dict[int, np.ndarray]:
        """Return the values that belong to the signature, by the positions of their leaves."""
        pairs = [(k, self.leaves[k]) for k in self.statics.values if k < len(self.leaves)]
        arrays = [(k, leaf._data) for k, leaf in pairs if isinstance(leaf, Tensor)]
        return {k: array.copy() for k, array in arrays if _may_be_size(array)}

    def without_leaves(self) -> FunctionCall:
        """Return the call without its tensors, so that they are not kept alive."""
        call, call.leaves = copy.copy(self), []
        call.args, call.kwargs = self.fill_leaves([_Leaf()] * len(self.leaves))
        return call

    def fill_leaves(self, leaves: Sequence) -> tuple[tuple, dict]:
        """Return the arguments with these leaves in place of the call's own."""
        supply = iter(leaves)
        numbers, names = self.statics.numbers, self.statics.names
        args = [arg if i in numbers else _fill(arg, supply) for i, arg in enumerate(self.args)]
        kwargs = dict(self.kwargs)
        for name in sorted(kwargs.keys() - names):
            kwargs[name] = _fill(kwargs[name], supply)
        return tuple(args), kwargs


def _may_be_size(array: Any) -> bool:
    return type(array) is np.ndarray and array.dtype.kind in "iu" and array.size <= MAX_SIZES


class _Leaf:
    """Marks the position of a leaf in a structure."""


def _fill(structure: Any, supply: Iterator) -> Any:
    flat = [leaf if as_leaf(leaf) is None else next(supply) for leaf in nest.flatten(structure)]
    return nest.pack_sequence_as(structure, flat)


def as_leaf(value: Any) -> Any:
    """Return an argument as the program takes it, a tensor or a float; None if it is static."""
    if isinstance(value, Tensor):
        if isinstance(value._data, Aval):
            value._values()  # raises: it has none
        return value if type(value) is Tensor else value._with_record(value._rec)
    if isinstance(value, (float, np.floating, _Leaf)):
        return value
    if isinstance(value, (Variable, int, complex, str, bytes, type, np.generic)):
        return None
    is_array = hasattr(value, "__array__") or hasattr(value, "__cuda_array_interface__")
    return convert(value) if is_array else None


def check_signature(signature: Sequence, args: tuple, kwargs: dict, statics: bool = False) -> tuple:
    """Return `args` as tensors that fit the signature, else raise; with `statics` others must be
    equal.
    """
    if kwargs or len(args) != len(signature):
        count = len(args) + len(kwargs)
        raise ArgumentTypeError(
            f"Binding inputs to tf.function failed: input_signature has {len(signature)} "
            f"arguments, which are passed by position, but the call has {count}"
        )

    def check(spec: Any, leaf: Any) -> Any:
        if isinstance(spec, TensorSpec):
            tensor = leaf if is_tensor(leaf) else convert(leaf, spec.dtype)
            if spec.is_compatible_with(tensor):
                return tensor if isinstance(tensor, Tensor) else convert(tensor)
            raise ArgumentTypeError(
                f"Binding inputs to tf.function failed: an argument has dtype {tensor.dtype} and "
                f"shape {tuple(tensor.shape)}, input_signature requires {spec.dtype.name} and "
                f"{spec.shape} (Can not cast "
                f"{TensorSpec(TensorShape(tensor.shape), tensor.dtype)!r} to {spec!r})"
            )
        if not statics:
            raise TypeError(f"function: input_signature holds TensorSpecs, got {spec!r}")
        if spec is leaf or (type(spec) is type(leaf) and spec == leaf):
            return leaf
        raise ArgumentTypeError(
            "Binding inputs to tf.function failed: "
            f"this function was made for {spec!r}, got {leaf!r}"
        )

    checked = []
    for specs, arg in zip(signature, args, strict=True):
        if nest.is_nested(specs):
            nest.assert_same_structure(specs, arg, check_types=False)
            leaves = map(check, nest.flatten(specs), nest.flatten(arg))
            checked.append(nest.pack_sequence_as(specs, list(leaves)))
        else:
            checked.append(check(specs, arg))
    return tuple(checked)
