"""Functions over arrays and numbers, written in loops as for Numba, as differentiable functions.

The k-th derivatives of a function f along directions are a program (`tangents`), and so is the
gradient of such a derivative of ``sum(w * f(x))`` (`adjoints`, then `tangents`). The derivatives of
either are of these two forms again, since derivatives by several directions do not depend on the
order of these: so two transformations of programs give all orders.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from itertools import chain, combinations, islice
from typing import Any, NamedTuple

import numpy as np

from .._core.conversion import FLOAT64, Weak, convert, is_tensor
from .._core.kinds import is_differentiable
from .._core.levels import state
from .._core.primitive import Primitive, apply
from .._core.record import Node
from .._core.tensor import Aval, Tensor
from .._ops.creation import zeros
from .._ops.elementwise import multiply_upstream
from .._rules.pickling import travels
from .._rules.rebinding import asked_inputs
from .adjoints import adjoint
from .blocks_of_code import Known, tree
from .code_reading import check_source, read
from .program import FLOATS, Array, ArrayProgram, Number
from .pruning import prune, share
from .running import Runner, stored_dtype
from .splitting import split
from .tangents import tangent
from .views import element_of

Mask = tuple[int, ...]  # positions of inputs of a function's program
Gradients = dict[int, Any]
"""Gradients of a loss by inputs at some positions, which are computed together with its value."""
ONE = np.ones(())


class Derivative(NamedTuple):
    """A derivative of a function's program, for static integers.

    Along `directions`, each of which moves some inputs; the gradient by the inputs of `reverse`, if
    that is not None.
    """

    family: Family
    integers: tuple
    reverse: Mask | None = None
    directions: tuple[Mask, ...] = ()

    @property
    def runner(self) -> Runner:
        return self.family.runner(self.reverse, self.directions)

    def inputs(self, operands: Sequence[Any]) -> list[Any]:
        """Return the inputs of the program: operands, and static integers where they belong."""
        if not self.integers:
            return [*operands]
        integers, rest = iter(self.integers), iter(operands)
        own = [next(integers if static else rest) for static in self.family.static]
        return [*own, *rest]

    def outputs(self, operands: Sequence[Any]) -> list[Aval]:
        """Return shapes and dtypes of the outputs for operands, or for their shapes and dtypes."""
        shapes = [x if isinstance(x, int) else x.shape for x in self.inputs(operands)]
        outputs = self.runner.layout(tuple(shapes)).outputs
        return [Aval(shape, dtype) for _, shape, dtype in outputs]


class Family:
    """The program of a function for arguments of some types, and those of its derivatives."""

    def __init__(self, program: ArrayProgram, structure: Any, checkpoint: int):
        self.program, self.structure, self.checkpoint = program, structure, checkpoint
        self.static = [isinstance(x, Number) and not x.is_float for x in program.inputs]
        self.written = program.written & set(program.inputs)
        self.float_outputs = [k for k, x in enumerate(program.outputs) if x.is_float]
        self.float_inputs = {k for k, x in enumerate(program.inputs) if x.is_float}
        dtypes = {stored_dtype(x) for x in (*program.inputs, *program.outputs) if x.is_float}
        is_number = [isinstance(x, Number) and x.is_float for x in program.outputs] == [True]
        self.is_loss = is_number and len(dtypes) == 1
        self._runners: dict[Any, Runner] = {}

    def runner(self, reverse: Mask | None, directions: tuple = (), values: bool = False) -> Runner:
        """Return the compiled program of a derivative, and of the outputs if `values`."""
        key = reverse, directions, values
        if key not in self._runners:
            program = self.program
            if reverse is not None:
                program = adjoint(program, reverse, values, self.checkpoint)
            for direction in directions:
                program = tangent(program, direction)
            if reverse is not None:
                program = share(prune(program))
            self._runners[key] = Runner(split(program, self.program))
        return self._runners[key]


def _run(*arrays: np.ndarray, derivative: Derivative, gradients: Gradients | None = None) -> Any:
    inputs = derivative.inputs(arrays)
    if gradients is not None:
        wanted = tuple(gradients)
        value, *slopes = derivative.family.runner(wanted, (), True)([*inputs, ONE])
        gradients.update(zip(wanted, slopes, strict=True))
        return value
    return _unpacked(derivative.runner(inputs))


def _abstract(*avals: Aval, derivative: Derivative, **_: Any) -> Aval | list[Aval]:
    return _unpacked(derivative.outputs(avals))


def _unpacked(outputs: list[Any]) -> Any:
    return outputs[0] if len(outputs) == 1 else outputs


def _save(inputs: tuple, params: dict, out: Any) -> tuple[Derivative, tuple, Gradients | None]:
    return params["derivative"], inputs, params.get("gradients")


def _rule(node: Node, dys: Any) -> list:
    """Return the gradient of each operand: of the function's inputs, of `w`, of directions."""
    d, operands, ready = node.saved
    positions = [k for k, static in enumerate(d.family.static) if not static]
    if ready is not None and state.frame is None and type(dys._data) is np.ndarray:
        by_input = {k: Tensor(slope) for k, slope in ready.items()}
        if dys._data.item() != 1:
            by_input = {k: multiply_upstream(dys, slope) for k, slope in by_input.items()}
        return [by_input.get(k) for k in positions]
    count = 0 if d.reverse is None else len(d.family.float_outputs)
    sizes = len(positions), count, *map(len, d.directions)
    xs, ws, *parts = _split(operands, sizes)
    for_xs, for_ws, *for_parts = _split(asked_inputs(node), sizes)
    gradients: list[list[Any]] = [[None] * size for size in sizes]
    wanted = tuple(
        k
        for k, x, asked in zip(positions, xs, for_xs, strict=True)
        if asked is not None and is_differentiable(x._data.dtype)
    )
    upstream = _dense(dys, d, operands)
    if d.reverse is None:
        ws = upstream if d.directions else [upstream[k] for k in d.family.float_outputs]
        ways, along = d.directions, parts
    else:
        ways, along = (*d.directions, d.reverse), [*parts, upstream]
        if any(asked is not None for asked in for_ws):
            forward = d._replace(reverse=None, directions=ways)
            gradients[1] = _apply(forward, [*xs, *chain(*along)])
    if wanted:
        gradient = d._replace(reverse=wanted, directions=ways)
        results = iter(_apply(gradient, [*xs, *ws, *chain(*along)]))
        gradients[0] = [next(results) if k in wanted else None for k in positions]
    for k, direction in enumerate(d.directions):
        if any(asked is not None for asked in for_parts[k]):
            gradient = d._replace(reverse=direction, directions=(*ways[:k], *ways[k + 1 :]))
            others = chain(*along[:k], *along[k + 1 :])
            gradients[2 + k] = _apply(gradient, [*xs, *ws, *others])
    return [*chain(*gradients)]


def _split(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    rest = iter(items)
    return [[*islice(rest, size)] for size in sizes]


def _dense(dys: Any, d: Derivative, operands: Sequence[Any]) -> list[Any]:
    """Return upstream gradients, zeros for those that are None."""
    dys = dys if isinstance(dys, list) else [dys]
    if any(dy is None for dy in dys):
        pairs = zip(dys, d.outputs([x._data for x in operands]), strict=True)
        dys = [zeros(aval.shape, aval.dtype) if dy is None else dy for dy, aval in pairs]
    return dys


PROGRAM = Primitive(
    "differentiable", _run, ("inputs",), _abstract, save=_save, rule=_rule, kind="control"
)


def _apply(derivative: Derivative, operands: Sequence[Any], **params: Any) -> list[Any]:
    outputs = apply(PROGRAM, tuple(operands), {"derivative": derivative, **params})
    return outputs if isinstance(outputs, list) else [outputs]


class ArrayFunction:
    """A function made by `differentiable`."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], checkpoint: int):
        self._function = getattr(function, "py_func", function)
        self._checkpoint = checkpoint
        self.made_by = differentiable, (function,), {"checkpoint": checkpoint}
        functools.update_wrapper(self, self._function)
        self._signature = inspect.signature(self._function)
        parameters = self._signature.parameters.values()
        plain = all(x.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for x in parameters)
        self._names = tuple(self._signature.parameters) if plain else ()
        self._families: dict[Any, Family] = {}
        check_source(self._function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        family, leaves = self._family_of(args, keywords)
        outputs = _apply(*self._applied(family, leaves), **self._ahead(family, leaves))
        return tree(lambda k: None if k is None else outputs[k], family.structure)

    def loss_and_gradients(
        self, args: Sequence[Any], argnums: Sequence[int]
    ) -> tuple[Tensor, list[Tensor]] | None:
        """Return a loss and its gradients where no level is active; None for other arguments."""
        chosen = [args[k] for k in argnums if 0 <= k < len(args)]
        if {*map(type, chosen)} - {Tensor, np.ndarray} or len({*argnums}) != len(chosen):
            return None
        family, leaves = self._family_of(args, {})
        wanted = tuple(sorted(argnums))
        is_plain = family.structure == 0 and len(leaves) == len(args)
        if not (is_plain and family.is_loss and family.float_inputs.issuperset(wanted)):
            return None
        inputs = [x._data if type(x) is Tensor else x for x in leaves]
        value, *slopes = family.runner(wanted, (), True)([*inputs, ONE])
        return Tensor(value), [Tensor(slopes[wanted.index(k)]) for k in argnums]

    def stack_bytes(self, *args: Any, **keywords: Any) -> int:
        """Return the bytes of memory in which the gradient keeps values of the forward sweep.

        The gradient is with respect to all floats among the arguments, which are those of a call;
        it is computed twice. Copies of arguments and adjoints of arrays are not counted.

        >>> @tf.differentiable
        ... def grown(x, n):
        ...     for _ in range(n):
        ...         x = x * x
        ...     return x
        >>> grown.stack_bytes(0.5, 100)
        800
        """
        runner, inputs = self._gradient(args, keywords)
        return runner.stack_bytes(inputs)

    def _gradient(self, args: Any, keywords: Any) -> tuple[Runner, list[Any]]:
        """Return the program of the gradient with respect to all floats, and its inputs."""
        family, leaves = self._family_of(args, keywords)
        derivative, operands = self._applied(family, leaves)
        avals = derivative.outputs([x._data for x in operands])
        seeds = [np.ones(avals[k].shape, avals[k].dtype) for k in family.float_outputs]
        gradient = derivative._replace(reverse=tuple(sorted(family.float_inputs)))
        return gradient.runner, gradient.inputs([*(x.numpy() for x in operands), *seeds])

    @staticmethod
    def _applied(family: Family, leaves: list[Any]) -> tuple[Derivative, list[Any]]:
        """Return the function's program, for static integers, and its operands."""
        pairs = [*zip(leaves, family.static, strict=True)]
        integers = tuple(x for x, static in pairs if static)
        return Derivative(family, integers), [x for x, static in pairs if not static]

    def _family_of(self, args: Any, keywords: Any) -> tuple[Family, list[Any]]:
        """Return the programs for some arguments, and the numbers and arrays in these."""
        if keywords or len(args) != len(self._names):
            try:
                arguments = self._signature.bind(*args, **keywords).arguments.items()
            except TypeError as error:
                raise TypeError(f"{self.__name__}{self._signature}: {error}") from None
        else:
            arguments = zip(self._names, args, strict=True)
        leaves: list[Any] = []
        arrays: list[Any] = []
        kinds = {name: self._kind(name, value, leaves, arrays) for name, value in arguments}
        key = tuple(kinds.items())
        family = self._families.get(key)
        if family is None:
            bound = self._signature.bind_partial()
            bound.arguments |= {name: _specified(name, kind) for name, kind in kinds.items()}
            program, structure = read(self._function, bound.args, bound.kwargs)
            family = self._families[key] = Family(program, structure, self._checkpoint)
        if family.written:
            self._check_aliases(family, arrays)
        return family, leaves

    @staticmethod
    def _ahead(family: Family, leaves: Sequence[Any]) -> dict[str, Gradients]:
        """Return what a single tape makes a loss compute together with its value."""
        frame = state.frame
        if frame is None or frame.level is not None or not family.is_loss:
            return {}
        if len(frame.group) != 1 or frame.everything:
            return {}
        pairs = enumerate(zip(family.program.inputs, leaves, strict=True))
        watched = [k for k, (x, leaf) in pairs if x.is_float and leaf._rec is not None]
        return {"gradients": dict.fromkeys(watched)} if watched else {}

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<differentiable {self.__qualname__}>"

    def _kind(self, name: str, value: Any, leaves: list[Any], arrays: list[Any]) -> Any:
        """Return what a program depends on of an argument; add what it has to the two lists."""
        leaf: Any = value
        if type(value) is Tensor:  # the commonest case at once
            dtype, shape = value._data.dtype, value._data.shape
        elif isinstance(value, tuple):
            parts = ((f"{name}[{k}]", item) for k, item in enumerate(value))
            return tuple(self._kind(*part, leaves, arrays) for part in parts)
        elif isinstance(value, (bool, int, np.bool_, np.integer)):
            dtype, shape = np.dtype(type(value)), ()
        elif isinstance(value, (np.ndarray, float, np.floating, Weak)) or is_tensor(value):
            leaf = convert(value, FLOAT64 if isinstance(value, (float, Weak)) else None)
            dtype, shape = leaf._data.dtype, leaf._data.shape
        else:
            try:
                hash(value)
            except TypeError:
                remedy = "pass arrays, tensors, numbers, tuples of these, functions, or None"
                what = f"is {type(value).__name__}: {remedy}"
                if isinstance(value, list):
                    what = "is a list: pass an array, np.array(...), or a tuple"
                raise TypeError(f"{self.__name__}: {name} {what}") from None
            return "known", value
        try:
            element = element_of(dtype)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {name}: {error}") from None
        if not shape and element not in FLOATS:
            leaves.append(bool(leaf) if element == "b1" else int(leaf))
            return "b1" if element == "b1" else "i64", None
        leaves.append(leaf)
        if shape:
            arrays.append(value if isinstance(value, np.ndarray) else leaf._data)
        return element, len(shape)

    def _check_aliases(self, family: Family, arrays: Sequence[Any]) -> None:
        """Refuse arrays that share memory, if the function writes to one of them."""
        inputs = [x for x in family.program.inputs if isinstance(x, Array)]
        for (x, data), (y, other) in combinations(zip(inputs, arrays, strict=True), 2):
            both = isinstance(data, np.ndarray) and isinstance(other, np.ndarray)
            writes = x in family.written or y in family.written
            if both and writes and np.shares_memory(data, other):
                raise ValueError(
                    f"{self.__name__}: {x.hint} and {y.hint} share memory, and one is written to: "
                    "pass a copy"
                )


def _specified(name: str, kind: Any) -> Any:
    """Return an argument of a kind as the reader takes it."""
    if isinstance(kind, tuple) and len(kind) == 2 and isinstance(kind[0], str):
        element, rank = kind
        if element == "known":
            return Known(rank)
        if not rank:
            return Number(element, name)
        return Array(element, tuple(Number("i64", "n", 0) for _ in range(rank)), name)
    return tuple(_specified(name, item) for item in kind)


def differentiable(
    function: Callable[..., Any] | None = None, *, checkpoint: bool | int = False
) -> Any:
    """Return a differentiable version of a function that is written in loops, as for Numba.

    `function` is a Python function, compiled by ``numba.njit`` or not. Its source is translated,
    and its derivatives are compiled programs of any order, in forward and in reverse mode. It may
    have loops over ranges and arrays, ``while``, branches, ``break``, ``continue``, early returns,
    reads and writes of elements and slices, array expressions, calls of other such functions, of
    `math` and of NumPy. Array arguments are copied before it writes to them; if it returns nothing,
    the call returns these copies.

    Parameters
    ----------
    function:
        Takes arrays of float32, float64, integers or bools, numbers, tuples of these, functions and
        None. Its result is an array, a number, or a nested tuple of them. If left out,
        `differentiable` is a decorator.
    checkpoint:
        Keep values of only O(sqrt(n)) of the n rounds of a loop for its gradient. The outermost
        loops save their state (carried values and changed arrays) at the beginning of about sqrt(2
        n) rounds; the backward sweep runs the rounds in between again. This adds about the time of
        one call of `function`. An integer is a number of nested loops: 2 includes inner loops,
        which then run twice more. Loops that save nothing do not change. The result's method
        `stack_bytes` returns the memory.

    The returned function accepts tensors, too, and returns tensors. Integers are not tensors
    inside, and have no gradient. Raises `UnsupportedCodeError`, a TypeError, for unsupported code:
    when it decorates, or at the first call if that depends on types. An index out of range raises
    IndexError; other errors are those that the function raises.

    Examples
    --------
    >>> @tf.differentiable
    ... def path_length(x, y):
    ...     total = 0.0
    ...     for i in range(1, len(x)):
    ...         total += np.sqrt((x[i] - x[i - 1]) ** 2 + (y[i] - y[i - 1]) ** 2)
    ...     return total
    >>> x, y = np.array([0.0, 3.0, 3.0]), np.array([0.0, 4.0, 5.0])
    >>> path_length(x, y).numpy()
    np.float64(6.0)
    >>> tf.grad(path_length)(x, y)
    array([-0.6,  0.6,  0. ])
    """
    if not isinstance(checkpoint, (bool, int)) or checkpoint < 0:
        raise ValueError(
            "differentiable: checkpoint must be True, False or a number of nested loops, "
            f"got {checkpoint!r}: pass True for the outermost loops"
        )
    if function is None:
        return functools.partial(differentiable, checkpoint=checkpoint)
    if not hasattr(getattr(function, "py_func", function), "__code__"):
        name = getattr(function, "__name__", type(function).__name__)
        remedy = "has no Python source: write a function that calls it"
        if hasattr(getattr(type(function), "__call__", None), "__code__"):  # noqa: B004
            remedy = "is an object of a class: write a function of arrays and numbers"
        raise TypeError(f"differentiable: expected a Python function, got {name}, which {remedy}")
    return ArrayFunction(function, int(checkpoint))


travels(ArrayFunction)
