"""Primitives of the user's own: a kernel by name, and a gradient registered for that name.

Follows ``tf.RegisterGradient`` and ``tf.NotDifferentiable``: a gradient function takes
``(op, *grads)`` and returns the gradient of each of ``op.inputs``.
"""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.loops.engine import Pointwise

from .. import _ops as ops
from .. import nest
from .._core.conversion import as_dtype, check_dtype, convert_operands, is_tensor, promote
from .._core.kinds import is_inexact
from .._core.primitive import OPS, Primitive, apply, bind
from .._core.record import Node, attach_part
from .._core.tensor import Aval, Tensor
from .._ops.reductions import sum_to_shape
from .._ops.validation import broadcast_shapes
from ..errors import UnsupportedCodeError, location_of
from .calls import gradients_of_function
from .definition import Definition, source_line
from .gpu_kernels import CudaKernel, check_shapes, run_on_gpu
from .outside_runs import run_rule
from .pickling import travels
from .rebinding import asked_inputs

_gradients: dict[str, Callable[..., Any] | None] = {}


class NoGradientError(LookupError):
    """No gradient is registered for an operation."""


class RegisterGradient:
    """Decorator: ``@RegisterGradient("Name")`` registers a gradient for the primitive Name.

    The function takes ``(op, *grads)``, with one upstream gradient for each output, and returns
    the gradient of each of ``op.inputs`` (None: no gradient). ``op.inputs``, ``op.outputs``,
    ``op.get_attr(name)``, ``op.name``, ``op.type`` and ``op.needs_input_grad`` (a tuple of bools:
    False if None is enough) are available. Raises KeyError if the
    name has a gradient already, unless `replace` is set, as in a notebook's cell that runs
    again. It may come before the primitive is defined. Modelled on ``tf.RegisterGradient``.
    """

    def __init__(self, op_type: str, replace: bool = False):
        if not isinstance(op_type, str):
            raise TypeError(f"op_type must be a string, got {type(op_type).__name__}")
        self._op_type = op_type
        self._replace = replace

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(f"RegisterGradient decorates a function, got {function!r}")
        _register(self._op_type, function, self._replace)
        return function


def NotDifferentiable(op_type: str) -> None:
    """Declare that the primitive `name` has no gradient: its inputs get None.

    Raises KeyError if the name has a gradient already. Modelled on ``tf.NotDifferentiable``.
    """
    if not isinstance(op_type, str):
        raise TypeError(f"op_type must be a string, got {type(op_type).__name__}")
    _register(op_type, None, False)


no_gradient = NotDifferentiable


def _register(name: str, function: Callable[..., Any] | None, replace: bool) -> None:
    ops.load_all()
    if name in OPS:
        raise KeyError(f"Registering two gradient with name '{name}'! The library defines it.")
    if name in _gradients and not replace:
        previous = _gradients[name]
        earlier = "NotDifferentiable" if previous is None else location_of(*source_line(previous))
        raise KeyError(
            f"Registering two gradient with name '{name}'! (Previous registration: {earlier}) "
            "Pass replace=True to RegisterGradient where a notebook's cell runs again."
        )
    _gradients[name] = function


def _no_gradient(name: str) -> NoGradientError:
    return NoGradientError(
        f"No gradient defined for operation '{name}' (op type: {name}). In general "
        "every operation must have an associated `@tf.RegisterGradient` for correct "
        f'autodiff: write one, or declare NotDifferentiable("{name}").'
    )


class Operation:
    """One use of a primitive, as its gradient function sees it."""

    def __init__(self, name: str, inputs: tuple, outputs: tuple, attrs: dict[str, Any], node: Node):
        self.type = self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self._attrs = attrs
        self._node = node

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each input whether its gradient is asked for; where False, None will do."""
        return tuple([node is not None for node in asked_inputs(self._node)])

    def get_attr(self, name: str) -> Any:
        """Return the attribute of that name; ValueError if the call had none."""
        if name not in self._attrs:
            raise ValueError(
                f"Operation '{self.name}' has no attr named '{name}'; it has "
                f"{', '.join(sorted(self._attrs)) or 'none'}"
            )
        return self._attrs[name]

    def __repr__(self) -> str:
        return f"<Operation {self.name!r} with {len(self.inputs)} inputs>"


class UserOperation:
    """A primitive of the user's, as the function that applies it.

    It travels to other processes with its kernel, and with the gradient of its name.
    """

    def __init__(
        self,
        name: str,
        kernel: Callable[..., Any],
        shape: Callable[..., Any] | None,
        elementwise: bool,
        cuda: Any = None,
        derive: Callable[[UserOperation], Callable[..., Any]] | None = None,
        for_device: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
        floats: int | None = None,
    ):
        self._given = name, kernel, shape, elementwise, cuda, derive, for_device, floats
        self._derive = derive  # a gradient from the kernel's source, where none is registered
        self._derived: Callable[..., Any] | None = None
        on_cuda: Any = None if cuda is None else CudaKernel(name, cuda)
        if cuda is not None and shape is None and not elementwise:
            raise TypeError(
                f"primitive {name!r}: a CUDA kernel fills existing arrays: pass "
                "shape=, a function of the inputs that gives the shape of the result"
            )
        self._pointwise: Pointwise | None = (
            _elementwise(name, kernel, floats) if elementwise else None
        )
        if self._pointwise is not None and for_device is not None:
            self._pointwise.for_device = functools.partial(for_device, kernel)
        self._home: int | None = os.getpid()  # the process that has its gradient by name
        self._travelled: tuple | None = None  # its gradient, or none, where that came with it
        self._id: str | None = None  # the same in all processes, once it has travelled
        self.definition = Definition(kernel, name)
        compiled: Any = kernel if self._pointwise is None else self._pointwise
        abstract = functools.partial(_abstract, shape)
        shapes = None if shape is None else abstract
        run: Any = functools.partial(_run, name, compiled, shapes)
        if self._pointwise is not None and shape is None:
            abstract, run = functools.partial(_pointwise_aval, compiled), compiled
        on_gpu = functools.partial(run_on_gpu, name, compiled, shapes)
        if cuda is not None:
            on_gpu = functools.partial(on_cuda.run, abstract)
        self.primitive = Primitive(
            name,
            run,
            ("inputs",),
            abstract,
            save=functools.partial(_save, self),
            rule=_rule,
            kind="user",
            doc=kernel.__doc__,
            kernel=compiled,
            on_gpu=on_gpu,
        )
        bind(self, self.primitive)
        self.__module__ = getattr(kernel, "__module__", None) or __name__
        self.__qualname__ = getattr(kernel, "__qualname__", name)

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        name, pointwise = self.primitive.name, self._pointwise
        if not inputs:
            raise TypeError(f"{name}: needs at least one input")
        if pointwise is not None and (attrs or len(inputs) != pointwise.inputs):
            raise TypeError(
                f"{name}: the elementwise kernel takes {pointwise.inputs} inputs by position and "
                f"no attributes, got {len(inputs)} inputs and {', '.join(attrs) or 'no'} attributes"
            )
        for key, value in attrs.items():
            if is_tensor(value):
                raise TypeError(
                    f"{name}: attribute {key!r} is a tensor, and would have no gradient: pass it "
                    "by position, as an input"
                )
        result = apply(self.primitive, convert_operands(inputs), attrs)
        return tuple(result) if isinstance(result, list) else result

    def gradient(self) -> Callable[..., Any] | None:
        """Return the gradient function (None: not differentiable); LookupError without one."""
        if self._travelled:
            return self._travelled[0]
        name = self.primitive.name
        if self._travelled is None and name in _gradients:
            return _gradients[name]
        if not (self.is_elementwise() and self._derive):
            raise _no_gradient(name)
        if self._derived is None:
            try:
                self._derived = self._derive(self)
            except UnsupportedCodeError as error:
                raise NoGradientError(
                    f"{_no_gradient(name)} It cannot be derived from the kernel: {error}"
                ) from None
        return self._derived

    @property
    def kernel(self) -> Callable[..., Any]:
        """Return the kernel, as it was passed."""
        return self._given[1]

    def is_elementwise(self) -> bool:
        return self._pointwise is not None

    def __reduce__(self) -> Any:
        if self._id is None:
            self._id = os.urandom(16).hex()
            _by_id[self._id] = self
        gradient, name = self._travelled, self.primitive.name
        if gradient is None:
            gradient = (_gradients[name],) if name in _gradients else ()
        # a state, since the gradient may refer to the operation
        return _arrive, (self._id, self._given), {"gradient": gradient}

    def __setstate__(self, state: dict) -> None:
        """Keep the gradient that came with the operation, but in the process that it is of.

        What another process has by its name may be something else, or older.
        """
        if self._home != os.getpid():
            self._travelled = state["gradient"]

    def __repr__(self) -> str:
        return f"<primitive {self.primitive.name!r}>"


_by_id: weakref.WeakValueDictionary[str, UserOperation] = weakref.WeakValueDictionary()


def _arrive(id: str, arguments: tuple) -> UserOperation:
    """Return the operation that was pickled; in its own process that is itself."""
    op = _by_id.get(id)
    if op is None:
        op = _by_id[id] = UserOperation(*arguments)
        op._id, op._home = id, None
    return op


travels(UserOperation)


def _elementwise(name: str, kernel: Callable[..., Any], floats: int | None) -> Any:
    if isinstance(kernel, np.ufunc):
        raise TypeError(
            f"primitive {name!r}: np.{kernel.__name__} works on arrays already: leave "
            "elementwise=True out"
        )
    count = len(inspect.signature(getattr(kernel, "py_func", kernel)).parameters)
    if not 1 <= count <= 3:
        raise TypeError(
            f"primitive {name!r}: an elementwise kernel takes 1 to 3 numbers, this one {count}"
        )
    return Pointwise(name, kernel, count, floats)


def _pointwise_aval(kernel: Pointwise, *avals: Aval) -> Any:
    shape = broadcast_shapes(kernel.name, *[aval.shape for aval in avals])
    dtypes = [aval.dtype for aval in avals]
    results = kernel.result_dtypes(*dtypes)
    if results is None:
        return Aval(shape, kernel.single.result_dtype(*dtypes))
    return [Aval(shape, dtype) for dtype in results]


def _abstract(shape: Callable[..., Any] | None, /, *avals: Aval, **attrs: Any) -> Any:
    """Return what the user's shape rule gives: an Aval, or a list of them for several outputs.

    None without a rule.
    """
    if shape is None:
        return None
    result = shape(*avals, **attrs)
    if isinstance(result, list):
        return [_aval(aval, avals) for aval in result]
    return _aval(result, avals)


def _aval(result: Any, avals: tuple[Aval, ...]) -> Aval:
    """Return (shape, dtype), or a shape in the dtype that the inputs meet in, as an Aval."""
    sizes = tuple(result)
    if len(sizes) == 2 and isinstance(sizes[0], (tuple, list)):
        return Aval(tuple(sizes[0]), as_dtype(sizes[1]))
    return Aval(sizes, promote(*[aval.dtype for aval in avals]))


def _run(name: str, kernel: Any, shapes: Any, /, *arrays: np.ndarray, **attrs: Any) -> Any:
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    result = kernel(*views, **attrs)
    multi_output = isinstance(result, (tuple, list))
    if multi_output and not result:
        raise ValueError(f"{name}: the kernel returned no arrays")
    outs = [_own_result(name, array, arrays) for array in (result if multi_output else [result])]
    check_shapes(name, shapes, arrays, attrs, outs)
    return outs if multi_output else outs[0]


def _own_result(name: str, result: Any, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return a kernel's result as an array that nothing else can write to."""
    if isinstance(result, Tensor):
        raise TypeError(f"{name}: the kernel works on arrays, but returned a Tensor")
    if result is None:
        raise TypeError(f"{name}: the kernel returned None, expected an array")
    if isinstance(result, float):  # Python's floats have no precision of their own
        dtype = functools.reduce(promote, [array.dtype for array in arrays])
        return np.array(result, dtype if is_inexact(dtype) else np.float64)
    data = np.asarray(result)
    return np.array(data, check_dtype(data.dtype, f"{name}: what the kernel returned"))


# Gradients -----------------------------------------------------------------------------------


class _PrimitiveCall(NamedTuple):
    """The residuals of a node of a user's primitive."""

    operation: UserOperation
    definition: Definition
    inputs: tuple
    attrs: dict
    outs: list


def _save(operation: UserOperation, inputs: tuple, attrs: dict | None, out: Any) -> _PrimitiveCall:
    outputs = out if isinstance(out, list) else [out]
    outs = [tensor._with_record(tensor._rec) for tensor in outputs]  # what others know of them
    return _PrimitiveCall(operation, operation.definition, inputs, attrs or {}, outs)


def _rule(node: Node, dy: Any) -> list:
    operation, definition, inputs, attrs, outs = node.saved
    name, function = operation.primitive.name, operation.gradient()
    if function is None:
        return [None] * len(inputs)
    dys, tensors = [dy], [outs[0]._with_record(node)]
    if isinstance(dy, list):
        dys, tensors = dy, [attach_part(tensor, node, i) for i, tensor in enumerate(outs)]

    @functools.wraps(function)
    def of_operation(inputs: Any, outputs: Any, *dys: Any) -> Any:
        try:
            return function(Operation(name, tuple(inputs), tuple(outputs), attrs, node), *dys)
        except Exception as error:
            definition.add_note(error, function)
            raise

    returned = run_rule(definition, of_operation, [inputs, tuple(tensors), *dys], {})
    if operation.is_elementwise():
        returned = _unbroadcast(returned, inputs, outs[0].shape)
    return gradients_of_function(function, definition, inputs, returned, node.inputs)


def _unbroadcast(returned: Any, inputs: tuple, shape: tuple[int, ...]) -> Any:
    """Undo the broadcasting of the operands of an elementwise kernel."""
    flat = nest.flatten(returned)
    if len(flat) != len(inputs):
        return returned
    return [
        sum_to_shape(gradient, tensor._data.shape)
        if isinstance(gradient, Tensor) and gradient._data.shape == shape
        else gradient
        for gradient, tensor in zip(flat, inputs, strict=True)
    ]
