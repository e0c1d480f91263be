"""vmap: a function of one example, applied to a batch of them at once.

Inside, a batched tensor has the shape of one example. Each operation runs once for all examples, by
the batching rule in its record. Tapes inside see examples; tapes outside see the operations on the
batches. Modelled on ``jax.vmap`` and ``tf.vectorized_map``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeGuard, TypeVar

import numpy as np

from tinygrad_cg_kernels.loops.engine import Pointwise

from .. import nest
from .._core.conversion import convert, is_tensor, is_weak
from .._core.devices import on_device_of
from .._core.levels import Level, run_on, state
from .._core.primitive import Primitive, apply
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Aval, ExampleAval, Tensor
from .._core.transformed import returns_transformed
from .._ops.creation import eye, ones, zeros
from .._ops.elementwise import multiply
from .._ops.indexing import getitem
from .._ops.reductions import reduce_sum
from .._ops.shape import repeat, reshape, stack, transpose
from .._ops.validation import as_int, check_function, normalize_axis
from .._rules.calls import AnyCall
from .._rules.rebinding import TransformedCall, rebind_outputs
from ..errors import InvalidArgumentError
from . import diagonal

Y = TypeVar("Y")


class BatchTensor(Tensor):
    """One tensor per example of a batch; `physical` holds all of them along a first axis.

    The tensor may be made of `diagonals` instead. Then `physical` is computed on first access.
    """

    __slots__ = ("diagonals", "level", "physical")

    def __init__(self, physical: Tensor, level: Batch, record: Any = None):
        data = physical._data
        super().__init__(ExampleAval(data.shape[1:], data.dtype), record)
        self.physical = physical
        self.level = level
        self.diagonals: diagonal.Sum | None = None

    def _with_record(self, record: Any) -> BatchTensor:
        if self.diagonals is not None:
            return _of_diagonals(self.diagonals, self.level, record)
        return BatchTensor(self.physical, self.level, record)

    def __getattr__(self, name: str) -> Any:
        """Materialise `physical` on first access."""
        if name != "physical":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.physical = self.level.below(diagonal.dense, self.diagonals, self.level.size)
        return self.physical

    def _example(self) -> np.ndarray:
        """Return the values of the example that code runs for, by default the first one."""
        values = self.physical._example()
        if not len(values):
            return np.ones(self._data.shape, self._data.dtype)
        return values[self.level.row or 0, ...]


def _of_diagonals(diagonals: diagonal.Sum, level: Batch, record: Any = None) -> BatchTensor:
    tensor = object.__new__(BatchTensor)
    data = diagonals[0].values._data
    Tensor.__init__(tensor, ExampleAval(tuple(data.shape), data.dtype), record)
    tensor.level, tensor.diagonals = level, diagonals
    return tensor


def unit_vectors(like: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """Return the unit vectors of a tensor's space, along a first axis, on the tensor's device.

    With `shape`, return the unit vectors of that shape instead.
    """
    shape = tuple(like._data.shape) if shape is None else shape
    size = prod(shape)
    with on_device_of(like):
        return reshape(eye(size, dtype=like._data.dtype), (size, *shape))


class Batch(Level):
    """The level of one batch of `size` examples."""

    has_own_values = True

    def __init__(self, size: int):
        self.size = size

    def has(self, tensor: Any) -> TypeGuard[BatchTensor]:
        return type(tensor) is BatchTensor and tensor.level is self

    def physical(self, tensor: Tensor) -> Tensor:
        """Return all examples' values, repeated if they are the same for all."""
        if self.has(tensor):
            return tensor.physical
        return repeat(tensor, (self.size, *tensor._data.shape))

    def unit_vectors(self, like: Tensor) -> BatchTensor:
        """Return the unit vectors of a tensor's space, one for each example of the batch."""
        data = like._data
        if self.size < (diagonal.MIN_EXAMPLES if type(data) is np.ndarray else 2):
            return BatchTensor(unit_vectors(like), self)
        with on_device_of(like):
            values = ones(data.shape, data.dtype)
        return _of_diagonals((diagonal.Diagonal(values),), self)

    def below(self, function: Callable[..., Y], *args: Any) -> Y:
        """Return ``function(*args)``; this level and inner ones do not see its operations."""
        frame = state.frame
        while frame is not None and frame.top is not self:
            frame = frame.outer
        return function(*args) if frame is None else run_on(frame.outer, function, *args)

    # Operations ------------------------------------------------------------------------------

    def process(self, primitive: Primitive, inputs: tuple, params: dict) -> Any:
        """Run an operation for all examples."""
        batched = diagonals = False
        for operand in inputs:
            if type(operand) is BatchTensor and operand.level is self:
                batched = True
                diagonals = diagonals or operand.diagonals is not None
        if not batched:
            return apply(primitive, inputs, params)
        if primitive.carry_out is not None:
            return primitive.carry_out(self, inputs, params)
        if diagonals:
            result = self._process_diagonals(primitive, inputs, params)
            if result is not None:
                return result
        elementwise = primitive.kind == "elementwise" or isinstance(primitive.kernel, Pointwise)
        if not elementwise:
            if primitive.batch is None:
                return self._one_by_one(primitive, inputs, params)
            params = primitive.batch(params, self.size)
        if elementwise or primitive.kind == "contraction" or primitive.name == "broadcast_to":
            operands = self._align(primitive, inputs, params)
        else:
            operands = tuple(map(self.physical, inputs))
        out = apply(primitive, operands, params)
        if isinstance(out, list):
            return [BatchTensor(result, self) for result in out]
        return BatchTensor(out, self)

    def _process_diagonals(
        self, primitive: Primitive, inputs: tuple, params: dict
    ) -> BatchTensor | None:
        """Return the result of an operation on diagonals, or None if it needs the zeros."""
        if any(self.has(operand) and not operand.diagonals for operand in inputs):
            return None
        operands = [operand.diagonals if self.has(operand) else operand for operand in inputs]
        result = diagonal.run(primitive, operands, params, self.size)
        if isinstance(result, Tensor):
            return BatchTensor(result, self)
        return None if result is None else _of_diagonals(result, self)

    def _align(self, primitive: Primitive, inputs: tuple, params: dict) -> tuple:
        """Return operands that broadcast, with the batch axis before the axes of all of them."""
        core = primitive.core if len(primitive.core) == len(inputs) else (0,) * len(inputs)
        if primitive.name == "broadcast_to":
            rank = len(params["shape"]) - 1
        else:
            rank = max(
                len(operand._data.shape) - last for operand, last in zip(inputs, core, strict=True)
            )
        return tuple(
            self._of_rank(operand, rank + last) for operand, last in zip(inputs, core, strict=True)
        )

    def _of_rank(self, tensor: Any, rank: int) -> Tensor:
        if not self.has(tensor):
            return tensor
        shape = tensor._data.shape
        if len(shape) == rank:
            return tensor.physical
        return reshape(tensor.physical, (self.size, *(1,) * (rank - len(shape)), *shape))

    def _one_by_one(self, primitive: Primitive, inputs: tuple, params: dict) -> Any:
        """Run a user's operation that has no batching rule, for one example after the other."""
        if not self.size:
            avals = primitive.abstract(*[tensor._data for tensor in inputs], **params)
            if avals is None:  # a call with ones shows the shapes and dtypes of its results
                ones = [np.ones(tensor._data.shape, tensor._data.dtype) for tensor in inputs]
                avals = primitive.run(*ones, **params)
            multi_output = isinstance(avals, list)
            avals = avals if multi_output else [avals]
            with on_device_of(inputs[0]):
                stacked = [zeros((0, *aval.shape), aval.dtype) for aval in avals]
        else:
            results, before = [], self.row
            try:
                for row in range(self.size):
                    self.row = row
                    examples = [getitem(x.physical, row) if self.has(x) else x for x in inputs]
                    results.append(apply(primitive, tuple(examples), params))
            finally:
                self.row = before
            multi_output = isinstance(results[0], list)
            columns = zip(*results, strict=True) if multi_output else [results]
            stacked = [stack(list(column)) for column in columns]
        batched = [BatchTensor(result, self) for result in stacked]
        return batched if multi_output else batched[0]

    # Custom gradients ------------------------------------------------------------------------

    def custom_call(self, call: AnyCall, inputs: Sequence, outputs: Sequence) -> list:
        """Call the custom gradient below this level, with a rule that runs on examples.

        If an input or output is batched, all outputs become batched. So each example's upstream
        gradient stays separate.
        """
        transformed: Any = call  # `jvp_of_input` and `jvp` are for a TransformedCall
        batched = [self.has(tensor) for tensor in inputs]
        for_each = any(batched) or any(map(self.has, outputs))
        avals = [
            None if tensor is None else Aval(tensor._data.shape, tensor._data.dtype)
            for tensor in inputs
        ]

        def vjp(dys: Sequence, targets: Sequence) -> list:
            with self:
                examples = [BatchTensor(dy, self) for dy in dys] if for_each else dys
                pairs = zip(targets, avals, strict=True)
                wanted = [None if target is None else aval for target, aval in pairs]
                gradients = call.vjp(examples, wanted)
            if not for_each and any(map(self.has, gradients)):
                name = call.definition.name
                raise TypeError(
                    f"vmap: the inputs and outputs of `{name}` are the same for all examples, but "
                    "the gradient that its rule returns is not, since it captured a tensor that "
                    f"differs: pass that tensor to `{name}` as an argument "
                    f"({call.definition.where()})"
                )
            return [
                None if gradient is None else self._lower(gradient, is_batched, for_each)
                for gradient, is_batched in zip(gradients, batched, strict=True)
            ]

        def jvp_of_input(tangent: Tensor, token: Any) -> Tensor:
            with self:
                example = BatchTensor(tangent, self) if for_each else tangent
                moved = transformed.jvp_of_input(example, token)
            return self.physical(moved) if for_each else moved

        def jvp(tangents: Sequence) -> list:
            with self:
                examples = [
                    BatchTensor(tangent, self) if tangent is not None and flag else tangent
                    for tangent, flag in zip(tangents, batched, strict=True)
                ]
                moved = transformed.jvp(examples)
            return [
                self.physical(tangent) if tangent is not None and for_each else tangent
                for tangent in moved
            ]

        passes = type(call) is TransformedCall and call.jvp_of_input is not None
        pushes = type(call) is TransformedCall and call.jvp is not None
        lowered = TransformedCall(
            call.definition, vjp, jvp_of_input if passes else None, jvp if pushes else None
        )
        lower = [tensor.physical if self.has(tensor) else tensor for tensor in inputs]
        outer = list(map(self.physical, outputs)) if for_each else outputs
        results = rebind_outputs(state.frame, lowered, lower, outer)
        return [BatchTensor(result, self) for result in results] if for_each else results

    def _lower(self, gradient: Tensor, batched: bool, for_each: bool) -> Tensor:
        """Return the gradient with respect to a physical input, from the examples' gradients."""
        if batched:
            return self.physical(gradient)
        if self.has(gradient):
            return reduce_sum(gradient.physical, 0)
        return multiply(gradient, self.size) if for_each else gradient


def unbatched_values(tensor: Tensor) -> np.ndarray:
    """Return the values for all examples of all batches; in a trace, of sample arguments."""
    while isinstance(tensor, BatchTensor):
        tensor = tensor.physical
    return tensor._example()


# The functions -------------------------------------------------------------------------------


@returns_transformed
@reads_own_arguments
def vmap(f: Callable[..., Y], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Y]:
    """Return a function that applies `f` to each example of a batch, all at once.

    Parameters
    ----------
    f:
        A function of nested tensors that returns nested tensors.
    in_axes:
        The axis of the examples in each positional argument; None for an argument that is
        the same for all. One number for all arguments, or a tuple with an entry for each, which may
        have the structure of the argument. Keyword arguments are batched along their first axis.
    out_axes:
        The axis of the examples in each result: one number, or the structure of the result; None
        for a result that is the same for all.

    An argument that is None stays None. The result has the structure of the result of `f`. Results
    that do not depend on the batch are repeated, random numbers included. Raises ValueError if
    batch sizes differ or nothing is batched. Modelled on ``jax.vmap``.

    Examples
    --------
    >>> rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> tf.vmap(tf.grad(lambda row: tf.reduce_prod(row)))(rows).numpy()
    array([[2., 1.],
           [4., 3.]], dtype=float32)
    """
    check_function("vmap", f)
    if is_tensor(in_axes) or isinstance(in_axes, np.ndarray):
        raise TypeError("vmap: in_axes must be axes, got a tensor: write vmap(f)(x)")

    @functools.wraps(f)
    def batched(*args: Any, **kwargs: Any) -> Any:
        axes = _broadcast_axes("in_axes", in_axes, list(args)) + [0] * len(nest.flatten(kwargs))
        leaves = nest.flatten((args, kwargs))
        tensors = {
            i: _move_to_front(i, convert(leaf), axis, args, kwargs)
            for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True))
            if leaf is not None and axis is not None
        }
        level = Batch(
            _size({i: tensor._data.shape[0] for i, tensor in tensors.items()}, args, kwargs)
        )
        examples = [
            BatchTensor(tensors[i], level) if i in tensors else leaf
            for i, leaf in enumerate(leaves)
        ]
        inner_args, inner_kwargs = nest.pack_sequence_as((args, kwargs), examples)
        with level:
            result = f(*inner_args, **inner_kwargs)
        leaf_axes = _broadcast_axes("out_axes", out_axes, result, "the function returns")
        flat = [
            None if leaf is None else _outward(level, leaf, axis)
            for leaf, axis in zip(nest.flatten(result), leaf_axes, strict=True)
        ]
        return nest.pack_sequence_as(result, flat)

    return batched


def vectorized_map(
    fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """Apply `fn` to all slices of `elems` along the first axis at once and stack the results.

    `elems` are tensors, nested or not, and `fn` gets one slice of each in that structure. A
    first axis of size 1 broadcasts. Raises ValueError if the sizes differ. Modelled on
    ``tf.vectorized_map``, whose two other arguments are accepted and have no effect, and which
    draws random numbers for each slice; here they are the same for all.

    Examples
    --------
    >>> rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> tf.vectorized_map(lambda row: tf.reduce_sum(row), rows).numpy()
    array([3., 7.], dtype=float32)
    """
    tensors = [convert(leaf) for leaf in nest.flatten(elems)]
    sizes = {tensor._data.shape[0] for tensor in tensors if tensor._data.ndim}
    common = max(sizes, default=0)
    axes = [None if tensor._data.shape[:1] == (1,) != (common,) else 0 for tensor in tensors]
    slices = [
        getitem(tensor, 0) if axis is None else tensor
        for tensor, axis in zip(tensors, axes, strict=True)
    ]
    packed = nest.pack_sequence_as(elems, slices)
    return vmap(fn, (nest.pack_sequence_as(elems, axes),))(packed)


def _broadcast_axes(argument: str, axes: Any, structure: Any, has: str = "the call passes") -> list:
    """Return one axis for each leaf of `structure`, from a prefix of that structure."""
    if axes is None or not isinstance(axes, (list, tuple, dict)):
        axis = None if axes is None else as_int("vmap", argument, axes)
        return [axis] * len(nest.flatten(structure))
    named = isinstance(axes, dict)
    fits = isinstance(structure, dict if named else (list, tuple)) and len(axes) == len(structure)
    if not fits or (named and set(axes) != set(structure)):
        raise ValueError(
            f"vmap: {argument}={axes!r} is for {_counted(axes)}, but {has} {_counted(structure)}: "
            "give an axis or None for each, or one number for all"
        )
    keys = sorted(structure) if named else range(len(structure))
    pairs = [(axes[key], structure[key]) for key in keys]
    return [axis for pair in pairs for axis in _broadcast_axes(argument, *pair, "this part has")]


def _counted(structure: Any) -> str:
    if isinstance(structure, dict):
        return f"the keys {sorted(structure)}"
    if not isinstance(structure, (list, tuple)):
        return "a single tensor"
    return f"{len(structure)} value{'s' * (len(structure) != 1)}"


def _move_to_front(index: int, tensor: Tensor, axis: int, args: tuple, kwargs: dict) -> Tensor:
    """Return `tensor`, leaf `index` of the arguments, with its examples' axis in front."""
    ndim = len(tensor._data.shape)
    if -ndim <= axis < ndim:
        return move_axis(tensor, axis % ndim, 0)
    remedy = "pass in_axes=None for it"
    if index >= len(nest.flatten(args)):
        remedy = "give it to the function with functools.partial"
    raise InvalidArgumentError(
        f"vmap: {_leaf_name(index, args, kwargs)} has shape {tuple(tensor._data.shape)}, "
        f"which lacks the batch axis {axis}: if it is the same for all examples, {remedy}"
    )


def _leaf_name(index: int, args: tuple, kwargs: dict) -> str:
    """Return the name that messages give to a leaf of the arguments."""
    roots = (*enumerate(args), *sorted(kwargs.items()))
    named_leaves = [
        nest.flatten_paths(structure, f"argument {root!r}") for root, structure in roots
    ]
    return [path for leaves in named_leaves for path, _ in leaves][index]


def move_axis(tensor: Tensor, source: int, target: int) -> Tensor:
    if source == target:
        return tensor
    order = [i for i in range(len(tensor._data.shape)) if i != source]
    order.insert(target, source)
    return transpose(tensor, order)


def _size(sizes: dict[int, int], args: tuple, kwargs: dict) -> int:
    """Return the number of examples; `sizes` has it for each batched leaf."""
    if not sizes:
        raise ValueError("vmap: no argument is batched: in_axes is None for all of them")
    distinct = set(sizes.values())
    if len(distinct) > 1:
        text = ", ".join(f"{_leaf_name(i, args, kwargs)} has {sizes[i]}" for i in sizes)
        raise InvalidArgumentError(f"vmap: the arguments have batches of different sizes: {text}")
    return distinct.pop()


def _outward(level: Batch, leaf: Any, axis: int | None) -> Tensor:
    if not is_tensor(leaf) and not is_weak(leaf):
        raise TypeError(
            f"vmap: the function must return tensors, numbers or None, got {type(leaf).__name__}"
        )
    tensor = convert(leaf)
    if axis is None:
        if level.has(tensor):
            raise ValueError("vmap: out_axes is None for a result that depends on the batch")
        return tensor
    physical = level.physical(tensor)
    return move_axis(physical, 0, normalize_axis("vmap", axis, len(physical._data.shape)))
