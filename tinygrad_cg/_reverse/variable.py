"""Variable: a value that can be assigned, and the door through which it is read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from tinygrad_cg_kernels.runtime.locks import ForkLock

from .. import nest
from .._core import devices
from .._core.conversion import (
    IndexedSlices,
    Weak,
    adopt,
    any_tensor,
    as_dtype,
    cast_in_range,
    check_dtype,
    convert,
    to_array,
    unrounded,
)
from .._core.kinds import is_integer
from .._core.levels import state
from .._core.suggestions import refuse_arguments
from .._core.tensor import ArrayLike, Aval, NoValueError, Tensor
from .._ops.elementwise import add, subtract, where
from .._ops.indexing import gather, getitem
from .._ops.shape import cast, expand_dims, identity, reshape
from ..errors import ArgumentTypeError
from .name_scope import current_scope

_next_serial = itertools.count().__next__
assigning = ForkLock()  # read, change and write are one step for other threads


class Variable(ArrayLike):
    """A mutable value that programs read, assign and differentiate with respect to.

    Parameters
    ----------
    initial_value:
        A number, nested list, array or tensor (copied), or a function that returns one.
    trainable:
        Whether tapes watch it automatically (if its dtype has gradients).
    name:
        Shown in messages as ``'name:0'``.
    dtype, shape:
        The dtype and shape that the value is converted to.

    Operations use its value at that time; later assignments do not change earlier results.
    Assignments are not differentiated.

    Examples
    --------
    >>> v = tf.Variable([1.0, 2.0])
    >>> v.assign_add([10.0, 20.0]).numpy()
    array([11., 22.], dtype=float32)
    """

    __slots__ = (
        *("__weakref__", "_constraint", "_data", "_name", "_rec", "_serial", "_trainable"),
        "resource",
    )

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
        **others: Any,
    ):
        if others:
            refuse_arguments("Variable", ("dtype", "shape"), others)
        if callable(initial_value) and not isinstance(initial_value, ArrayLike):
            initial_value = initial_value()
        if initial_value is None:
            raise ValueError("Variable: `initial_value` must be given")
        wanted = None if dtype is None else as_dtype(dtype)
        data: Any
        if isinstance(initial_value, (list, tuple)) and any_tensor(initial_value):
            initial_value = convert(initial_value)
        if isinstance(initial_value, (ArrayLike, list, tuple)):
            data = convert(initial_value, wanted)._raw()
            data = np.array(data) if type(data) is ndarray else data
            with devices.memory_for("Variable"):
                data = data if wanted is None else data.astype(wanted)
        else:
            with devices.memory_for("Variable"):
                data = adopt(initial_value, wanted, True)
                data = to_array(initial_value, wanted) if data is None else data
        data = devices.to_current(data)
        if shape is not None and tuple(shape) != data.shape:
            raise ValueError(
                f"Variable: the initial value has shape {data.shape}, not {tuple(shape)}; a "
                "Variable keeps its shape: make a new Variable for another shape"
            )
        self._data = data
        self._rec: Any = None
        if state.assigned is not None and isinstance(initial_value, ArrayLike):
            self._rec = cast(convert(initial_value), data.dtype)._rec
        self._serial = _next_serial()
        self._name = current_scope() + ("Variable" if name is None else name)
        self._trainable = True if trainable is None else trainable
        if constraint is not None and not callable(constraint):
            raise TypeError(
                "Variable: constraint must be a function of the Variable's value, got "
                f"{constraint!r}"
            )
        self._constraint = constraint
        self.resource: bool = True  # see compat.v1.variable_scope(use_resource=...)
        for listener in state.listeners:
            listener.variable_created(self)

    @property
    def name(self) -> str:
        return f"{self._name}:0"

    @property
    def constraint(self) -> Any:
        """The function that optimizers apply to the value after each step; or None."""
        return self._constraint

    @property
    def trainable(self) -> bool:
        return self._trainable

    # Reading ---------------------------------------------------------------------------------

    def _read(self) -> Tensor:
        """Return the value; whoever listens is told first: tapes start watching here."""
        data = self._current()
        if type(data) is ndarray or not isinstance(data, Tensor):
            return Tensor(data, self._rec)
        return data._with_record(self._rec)

    def _current(self) -> Any:
        """Return the value in this thread, for all that reads it: an array; a tensor in a trace."""
        here = state
        for listener in here.listeners:
            listener.variable_read(self)
        return here.overrides.get(id(self), self._data) if here.overrides else self._data

    def _values(self) -> np.ndarray:
        super()._raw()
        data = self._current()
        if type(data) is ndarray:
            return data
        return data._values() if isinstance(data, Tensor) else devices.to_host(data)

    def _raw(self) -> Any:
        super()._raw()
        return self._current()

    @property
    def handle(self) -> Variable:
        """Return the Variable itself, as tapes watch it."""
        return self

    @property
    def initializer(self) -> None:
        """Return None: a Variable is initialized when it is created."""

    def value(self) -> Tensor:
        """Return the current value as a new tensor."""
        return identity(self._read())

    read_value = _read_as_source = value

    # Assigning -------------------------------------------------------------------------------

    def assign(
        self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Variable:
        """Replace the value; returns the Variable. Shape and dtype stay."""
        value = self._join_tensors(value)
        if state.assigned is not None:
            return self._assign_recorded(value)
        return self._assign(self._fit_value(value))

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Variable:
        """Add `delta` to the value; returns the Variable."""
        return self._update(add, delta)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Variable:
        """Subtract `delta` from the value; returns the Variable."""
        return self._update(subtract, delta)

    def _scatter(self, how: str, indices: Any, updates: Any) -> Variable:
        from .._ops.updates import tensor_scatter  # most programs do without

        recorded = state.assigned is not None
        with assigning:
            present = self._read() if recorded else _tensor(self._current())
            return self.assign(tensor_scatter(how, present, indices, updates))

    def _update(self, change: Any, value: Any) -> Variable:
        value = self._join_tensors(value)
        if state.assigned is not None:
            if not isinstance(value, ArrayLike):
                value = Tensor(self._fit_value(value))  # which refuses what does not fit
            return self._assign_recorded(change(self._read(), value))
        with assigning:
            present, delta = self._current(), self._fit_value(value)
            if type(present) is ndarray and type(delta) is ndarray:
                return self._assign(change.primitive.run(present, delta))
            return self._assign_result(change(_tensor(present), _tensor(delta)))

    def _assign(self, data: Any) -> Variable:
        for listener in state.listeners:
            listener.variable_assigned(self)
        if id(self) in state.overrides:  # a function that runs again: see recompute_grad
            state.overrides[id(self)] = data._raw() if isinstance(data, Tensor) else data
        else:
            self._data = data  # a new array each time: what was read before stays as it was
        return self

    def _assign_result(self, result: Any) -> Variable:
        """Replace the value by an operation's result: in a trace by the tensor, else its array."""
        return self._assign(result if isinstance(result._data, Aval) else result._data)

    def _assign_recorded(self, value: Any) -> Variable:
        """Replace the value, and how it was computed with it: gradients flow to that."""
        if isinstance(value, Variable):
            value = value._read()
        tensor = identity(value) if isinstance(value, Tensor) else None
        value = value if tensor is None else tensor
        # Without its record a tensor does not warn of derivatives that are lost.
        data = self._fit_value(Tensor(value._data) if type(value) is Tensor else value)
        before: Any = state.assigned
        if id(self) not in before:
            before[id(self)] = self, self._kept_value(), self._rec
        self._assign(data)
        self._rec = None if tensor is None else tensor._rec
        return self

    def _kept_value(self) -> Any:
        return state.overrides.get(id(self), self._data) if state.overrides else self._data

    def _join_tensors(self, value: Any) -> Any:
        """Return a list that holds tensors as one tensor, with their records; all else as it is."""
        if not isinstance(value, (list, tuple)) or not any_tensor(value):
            return value
        tensor, wanted = convert(value), self._data.dtype
        exact = is_integer(tensor.dtype) and is_integer(wanted)
        fits = np.can_cast(tensor.dtype, wanted, "safe" if exact else "same_kind")
        return cast(tensor, wanted) if fits else tensor  # `_fit_value` refuses the rest

    def _fit_value(self, value: Any, shape: tuple[int, ...] | None = None) -> Any:
        """Return `value` as an array of this dtype, and of `shape` or this shape."""
        wanted = self._data.shape if shape is None else shape
        if isinstance(value, Weak):
            value = value.strong(self._data.dtype)
        data: Any
        if isinstance(value, ArrayLike):
            try:
                data = value._raw()
            except NoValueError:
                raise NoValueError(
                    f"Cannot assign to variable {self.name!r} inside a transformation: a "
                    "tensor has no values yet there, or one for each example. Return it, and "
                    "assign the result of the call"
                ) from None
            if data.dtype != self._data.dtype:
                raise ValueError(
                    f"Cannot assign to variable {self.name!r} of dtype {self.dtype}: the tensor "
                    f"has dtype {data.dtype}; use cast(tensor, variable.dtype)"
                )
            if devices.array_types:
                data = self._fit_device(data)
        else:
            data = devices.adopt(value)
            if data is None:
                data = devices.move(self._cast(to_array(unrounded(value)), value), self.device)
            else:
                data = self._fit_device(data.astype(self._data.dtype))
        if data.shape != wanted:
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable "
                f"shape {tuple(wanted)}, and the assigned value shape {data.shape} are "
                "incompatible."
            )
        return np.array(data) if type(data) is ndarray else data

    def _fit_device(self, data: Any) -> Any:
        """Return the array of a tensor where this Variable is: single values go along."""
        if isinstance(data, (Tensor, Aval)) or isinstance(self._data, Aval):
            return data
        here, there = self.device, devices.device_of(data)
        if here == there:
            return data
        if data.ndim or here == devices.CPU:
            raise ArgumentTypeError(
                f"Cannot assign to variable {self.name!r}, which is on '{here}': the tensor is on "
                f"'{there}'. Write tensor.{'cpu' if here == devices.CPU else 'gpu'}()"
            )
        return devices.move(data, here)

    def _cast(self, data: np.ndarray, value: Any) -> np.ndarray:
        """Cast numbers and arrays where that is safe: to the same kind, or a wider one."""
        wanted = self._data.dtype
        check_dtype(data.dtype, "assign")
        integers = is_integer(data.dtype) and is_integer(wanted)
        if not integers and not np.can_cast(data.dtype, wanted, "same_kind"):
            what, dtype = f"a value of dtype {data.dtype}", data.dtype
            if all(type(leaf) in (int, float, complex) for leaf in nest.flatten(value)):
                dtype = convert(value).dtype  # that of Python's numbers
                kind = {"i": "int", "f": "float", "c": "complex number"}[dtype.kind]
                is_list = isinstance(value, (list, tuple))
                what = f"a {type(value).__name__} of {kind}s" if is_list else f"the {kind} {value}"
            raise ValueError(
                f"Cannot assign {what} to variable {self.name!r} of dtype {self.dtype}: it would "
                f"lose information; make it Variable(..., dtype={str(dtype)!r}), or cast the value"
            )
        return cast_in_range(data, wanted)

    def _refuse_update(self, other: Any) -> NoReturn:
        raise RuntimeError(
            "Variable += value not supported. Use `variable.assign_add(value)` to modify the "
            "variable value and `variable = variable + value` to get a new Tensor object. (The "
            "same holds for -=, *= and the others.)"
        )

    __iadd__: Any = _refuse_update
    __isub__ = __imul__ = __itruediv__ = __ipow__ = __iadd__

    def __getitem__(self, key: Any) -> VariableSlice:
        value = self._read()
        part: Any = getitem(value, key)
        if type(part) is not type(value):  # inside vmap, at an index for each example
            return part
        return VariableSlice(part, self, key)

    def __repr__(self) -> str:
        return (
            f"<tg.Variable {self.name!r} shape={self.shape} dtype={self.dtype}, "
            f"numpy={self._text()}>"
        )

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "'Variable' object does not support item assignment: use variable[index].assign(value)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (
            np.array(devices.to_host(self._data)),
            self._trainable,
            self._name,
            self.resource,
            self._constraint,
        )


def _add_scatter_methods(how: str) -> None:
    """Give Variables the methods ``scatter_<how>`` and ``scatter_nd_<how>``."""

    def scatter(
        self: Variable, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None
    ) -> Variable:
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(
                f"scatter_{how}: needs tf.IndexedSlices(values, indices), got "
                f"{type(sparse_delta).__name__}"
            )
        return self._scatter(how, expand_dims(sparse_delta.indices, -1), sparse_delta.values)

    def scatter_nd(self: Variable, indices: Any, updates: Any, name: Any = None) -> Variable:
        return self._scatter(how, indices, updates)

    for method in (scatter, scatter_nd):
        method.__doc__ = f"Assign the result of ``tensor_scatter_nd_{how}``; returns the Variable."
        method.__name__ = f"{method.__name__}_{how}"
        method.__qualname__ = f"Variable.{method.__name__}"
        setattr(Variable, method.__name__, method)


for _how in ("add", "sub", "mul", "div", "max", "min", "update"):
    _add_scatter_methods(_how)


def records_assignments() -> bool:
    """Return whether gradients flow through assignments here: see `recorded_assignments`."""
    return state.assigned is not None


def recorded_variables() -> list[Variable]:
    """Return the Variables that were assigned while gradients flow through assignments."""
    return [variable for variable, _, _ in (state.assigned or {}).values()]


def is_recorded(variable: Variable) -> bool:
    """Return whether gradients flow to the value assigned here instead of to the Variable."""
    return state.assigned is not None and id(variable) in state.assigned


@contextmanager
def unrecorded_assignments() -> Iterator[None]:
    """Do not record assignments inside: a trace does not carry them out."""
    outer, state.assigned = state.assigned, None
    try:
        yield
    finally:
        state.assigned = outer


@contextmanager
def recorded_assignments(restore: bool = False) -> Iterator[None]:
    """Let gradients flow through assignments to Variables, within a ``with`` block.

    By default, assignments are not differentiated, as in TensorFlow: a Variable has no history.
    Inside the block, ``v.assign(y)``, ``assign_add`` and ``assign_sub`` (and so an optimizer's
    step) also record how the new value of `v` was computed. Gradients of later reads of `v` flow to
    `y`, also for assigned slices.

    With `restore`, assigned Variables get their old values back when the block ends, and a gradient
    with respect to `v` refers to the old value. Meta-learning needs this, after C. Finn, P. Abbeel
    and S. Levine, "Model-agnostic meta-learning" (2017). Without it, `v` keeps the new value, and a
    gradient with respect to `v` refers to the new value.

    >>> w, optimizer = tf.Variable(1.0), tf.optimizers.SGD(0.1)
    >>> with tf.GradientTape() as outer:
    ...     with tf.experimental.recorded_assignments(restore=True):
    ...         with tf.GradientTape() as inner:
    ...             loss = w**2
    ...         optimizer.apply([inner.gradient(loss, w)], [w])
    ...         meta_loss = w**2
    >>> round(float(outer.gradient(meta_loss, w)), 4)  # through the step: 2 (1 - 0.2)**2
    1.28
    """
    outer = state.assigned
    state.assigned = before = {}
    try:
        yield
        if outer is None and not restore:
            restore = True  # in case of an error
            for variable, _, _ in before.values():
                for listener in state.listeners:
                    listener.record_kept(variable)
            restore = False
    finally:
        state.assigned = outer
        for key, (variable, data, record) in before.items():
            if restore:
                variable._assign(data)
                variable._rec = record
            elif outer is not None:
                outer.setdefault(key, (variable, data, record))


class VariableSlice(Tensor):
    """Part of a Variable: a tensor with its present value, which can also be assigned."""

    __slots__ = ("_key", "_variable", "part")

    def __init__(self, part: Tensor, variable: Variable, key: Any):
        super().__init__(part._data, part._rec)
        self.part = part
        self._variable = variable
        self._key = key

    def _with_record(self, record: Any) -> Tensor:
        return self.part._with_record(record)

    def _values(self) -> ndarray:
        return self.part._values()

    def _raw(self) -> Any:
        return self.part._raw()

    def assign(self, value: Any) -> Variable:
        """Replace this part of the Variable; returns the whole Variable."""
        return self._put(None, value)

    def assign_add(self, delta: Any) -> Variable:
        """Add to this part of the Variable; returns the whole Variable."""
        return self._put(add, delta)

    def assign_sub(self, delta: Any) -> Variable:
        """Subtract from this part of the Variable; returns the whole Variable."""
        return self._put(subtract, delta)

    def _put(self, change: Any, value: Any) -> Variable:
        variable = self._variable
        value = variable._join_tensors(value)
        plain = Tensor(value._data) if type(value) is Tensor else value
        new = variable._fit_value(plain, self._data.shape)
        if state.assigned is not None:
            part: Any = value if isinstance(value, ArrayLike) else Tensor(new)
            part = part._read() if isinstance(part, Variable) else part
            if change is not None:
                part = change(self.part, part)
            whole = _with_part(variable._read(), self._key, part)
            return variable._assign_recorded(whole)
        with assigning:
            present = variable._current()
            if type(present) is not ndarray or type(new) is not ndarray:
                if change is not None:
                    new = change(getitem(_tensor(present), self._key), _tensor(new))
                whole = _with_part(_tensor(present), self._key, _tensor(new))
                return variable._assign_result(whole)
            data = np.array(present)
            if change is not None:
                new = change.primitive.run(np.asarray(data[self._key]), new)
            data[self._key] = new
            return variable._assign(data)


def _tensor(data: Any) -> Tensor:
    return data if isinstance(data, Tensor) else Tensor(data)


def _with_part(full: Tensor, key: Any, part: Tensor) -> Tensor:
    """Return `full` with `part` at the elements of `key`; the last one counts at each."""
    sources = np.full(full._data.shape, -1, np.int64)
    sources[key] = np.arange(prod(part._data.shape)).reshape(part._data.shape)
    device = devices.home(full)
    indices, chosen = (
        Tensor(devices.move(array, device)) for array in (np.maximum(sources, 0), sources >= 0)
    )
    taken = gather(reshape(part, (-1,)), indices) if part.size else full
    return where(chosen, taken, full)


def _restore(
    data: np.ndarray, trainable: bool, name: str, resource: bool, constraint: Any
) -> Variable:
    variable = Variable(data, trainable, constraint=constraint)
    variable._name = name  # whatever scope is active here
    variable.resource = resource
    return variable
