"""Primitive, the record of one operation, and the one door that every call goes through.

Without any level the door runs the kernel and wraps the result. Otherwise it lets the levels
see the call, from the innermost outwards, and hangs a node from the result for the tapes that
watch an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from ..errors import InvalidArgumentError
from .kinds import EVERY
from .levels import Frame, state
from .recipes import Recipe, Recipes, SameRecipe
from .recording import mark_outputs, record, record_one
from .registry import OPS
from .tensor import Tensor, refuse_leaks

new = object.__new__


class Primitive:
    """One operation: everything the library knows of it.

    Parameters
    ----------
    name, inputs:
        Its name, and the names of its tensor operands.
    run:
        ``run(*arrays, **params)`` computes the array of the result (a list for several).
    abstract:
        ``abstract(*avals, **params)`` gives the Aval of the result without any data.
    vjp:
        For each operand a function to its gradient, or None where there is none. The names of
        the function's parameters say what it needs, and so what a tape keeps: ``dy`` (the
        upstream gradient), ``out`` (the result), an operand's name, ``shape`` (that of the
        operand), or the name of a parameter. Written in operations, hence differentiable.
    save, rule:
        Instead of `vjp`, for operations with any number of operands:
        ``saved = save(inputs, params, out)`` and ``rule(node, dy)``.
    kind, kernel:
        What sort of operation it is, and the kernel object behind `run`.
    linear:
        True if it is linear in all its operands together.
    batch:
        ``batch(params, size)`` gives the parameters for operands with one more axis in front.
    core:
        How many of the last axes of each operand the operation works on, where its other axes
        broadcast: (2, 1) for a matrix times a vector, zeros by default.
    ufunc:
        The universal function of NumPy that it stands for: on tensors NumPy calls it instead.
    decomposition:
        ``decomposition(ops, *operands, **params)`` computes the same by other operations:
        ``ops.exp(x)`` is the operation of that name, on whatever the operands are. None for
        parameters or dtypes without one. See `decompose`.
    dtypes, ulps:
        The classes of dtypes it takes (predicates of `kinds`), and how far, in units of the last
        place, a result may be off in float64 and float32; None where nobody counts them.
    spellings:
        Where else the public function stands with nothing but another name: "math.acos".
    samples, errors:
        Arguments to test it on, and calls that it must refuse.
    """

    function: Any = None
    """The public function; None for an operation that no user calls by itself."""

    def __init__(
        self,
        name: str,
        run: Callable[..., Any],
        inputs: Sequence[str],
        abstract: Callable[..., Any],
        vjp: Sequence[Callable[..., Any] | None] | None = None,
        *,
        save: Callable[..., Any] | None = None,
        rule: Callable[..., Any] | None = None,
        kind: str = "move",
        kernel: Any = None,
        linear: bool = False,
        analytic: bool = True,
        aliases: bool = False,
        batch: Callable[[dict, int], dict] | None = None,
        core: tuple[int, ...] = (),
        doc: str | None = None,
        ufunc: Any = None,
        decomposition: Callable[..., Any] | None = None,
        dtypes: tuple[Callable[[Any], bool], ...] = EVERY,
        ulps: tuple[float, float] | None = None,
        spellings: tuple[str, ...] = (),
        samples: Any = None,
        errors: tuple = (),
    ):
        self.name = name
        self.run = run
        self.inputs = tuple(inputs)
        self.abstract = abstract
        self.vjp = tuple(vjp) if vjp is not None else None
        self.kind = kind
        self.kernel = kernel
        self.linear = linear
        self.analytic = analytic  # conj(f'(x)) = f'(conj(x)), so rules see conjugates
        self.aliases = aliases  # the result may be a view of an operand
        self.batch = batch
        self.core = core or (0,) * len(self.inputs)
        self.doc = doc
        self.ufunc = ufunc
        self.decomposition = decomposition
        self.dtypes = dtypes
        self.ulps = ulps
        self.spellings = spellings
        self.samples = samples
        self.errors = errors
        self.recipes: Any = None
        if vjp is not None:
            self.recipes = Recipes(self)
        elif save is not None and rule is not None:
            self.recipes = SameRecipe(Recipe(save, rule))

    def __call__(self, *inputs: Tensor, **params: Any) -> Any:
        return apply(self, inputs, params)

    def __repr__(self) -> str:
        return f"<Primitive {self.name}>"


def register(primitive: Primitive) -> Primitive:
    if primitive.name in OPS:
        raise KeyError(f"an operation named {primitive.name!r} is registered already")
    OPS[primitive.name] = primitive
    return primitive


# The door ------------------------------------------------------------------------------------


def apply(primitive: Primitive, inputs: tuple[Tensor, ...], params: dict[str, Any]) -> Any:
    """Carry `primitive` out on tensors, for all levels of this thread."""
    if len(inputs) == 1:
        return apply_one(primitive, inputs[0], params)
    frame = state.frame
    if frame is None or frame.level is None:
        try:
            data = primitive.run(*[tensor._data for tensor in inputs], **params)
        except ValueError as error:
            raise _of_input(primitive, error) from None
        except TypeError:
            refuse_leaks(*inputs)
            raise
        out = Tensor(data) if type(data) is ndarray else [Tensor(part) for part in data]
    else:
        out = _process(frame, primitive, inputs, params)
    if frame is not None:
        record(frame, primitive, inputs, params, out)
    elif primitive.recipes is not None:
        mark_outputs(inputs, out)
    return out


def apply_one(primitive: Primitive, x: Tensor, params: dict[str, Any]) -> Any:
    """`apply` for an operation on one tensor."""
    frame = state.frame
    if frame is None or frame.level is None:
        try:
            data = primitive.run(x._data, **params)
        except ValueError as error:
            raise _of_input(primitive, error) from None
        except TypeError:
            refuse_leaks(x)
            raise
        if type(data) is ndarray:
            out = new(Tensor)
            out._data = data
            out._rec = None
            if x._rec is not None or (frame is not None and frame.everything):
                record_one(frame, primitive, x, params, out)
            return out
        out = [Tensor(part) for part in data]
    else:
        out = _process(frame, primitive, (x,), params)
    if frame is not None:
        record(frame, primitive, (x,), params, out)
    elif primitive.recipes is not None:
        mark_outputs((x,), out)
    return out


def _of_input(primitive: Primitive, error: ValueError) -> ValueError:
    """What a kernel refuses is the caller's input; a user's own kernel speaks for itself."""
    if primitive.kind == "user" or isinstance(error, InvalidArgumentError):
        return error
    return InvalidArgumentError(str(error))


def runner(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """The operation on arrays, which refuses what `apply` refuses, as it does."""
    run = primitive.run

    def call(*arrays: Any) -> Any:
        try:
            return run(*arrays, **params)
        except ValueError as error:
            raise _of_input(primitive, error) from None

    return call


def _process(frame: Frame, primitive: Primitive, inputs: tuple, params: dict) -> Any:
    """Let the transformation below this run of tapes carry the call out, with itself and all
    inner levels switched off."""
    top = state.frame
    level: Any = frame.level
    state.frame = frame.lower
    try:
        return level.process(primitive, inputs, params)
    finally:
        state.frame = top
