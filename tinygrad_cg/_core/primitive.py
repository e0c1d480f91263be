"""Primitive, the record of one operation, and the one door that every call goes through.

Without any level the door runs the kernel and wraps the result. Otherwise it lets the levels
see the call, from the innermost outwards, and records a node on the result for the tapes that
watch an operand. The public functions of primitives are this door at the speed of one call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import cache, partial
from operator import attrgetter
from typing import Any

from numpy import ndarray

from tinygrad_cg_kernels.runtime.texts import define

from ..errors import ArgumentTypeError, DeviceError, InvalidArgumentError
from . import device_runs, devices
from .conversion import FLOAT32, FLOAT64, convert, convert_operands  # noqa: F401 (for conditions)
from .examples import with_example
from .kinds import EVERY, is_complex
from .levels import run_on, state
from .record import (
    LARGE,
    CompiledRules,
    Expired,
    Rule,
    new_mark,
    new_tensor,
    note_large,
    record,
)
from .tensor import Tensor, refuse_leaks

OPS: dict[str, Primitive] = {}  # every primitive by name, in order of definition
USER_OPS: dict[str, Primitive] = {}  # those that a program defined by `primitive`


@dataclass(eq=False, repr=False)
class Primitive:
    """One operation: everything the library knows of it."""

    name: str
    run: Callable[..., Any]  # run(*arrays, **params) computes the array, or a list for several
    inputs: Sequence[str]  # the names of its tensor operands
    # abstract(*avals, **params) gives the Aval, without any data; None where only a call tells it
    abstract: Callable[..., Any]
    # For each operand a function to its gradient, or None where there is none. The names of the
    # function's parameters say what it needs, and so what a tape keeps: `dy` (the upstream
    # gradient), `out` (the result), an operand's name, `shape` (the shape of the operand), or the
    # name of a parameter. Written in operations, hence differentiable.
    vjp: Sequence[Callable[..., Any] | None] | None = None
    _: KW_ONLY
    # Instead of `vjp`, for any number of operands: saved = save(inputs, params, out), and
    # rule(node, dy)
    save: InitVar[Callable[..., Any] | None] = None
    rule: InitVar[Callable[..., Any] | None] = None
    kind: str = "move"
    kernel: Any = None  # the object behind `run`
    on_gpu: Callable[..., Any] | None = None  # what runs it on a GPU, where that is its own
    mixes_devices: bool = False  # `on_gpu` takes operands of both devices, as they are
    linear: bool = False  # in all its operands together
    # For each operand a function to the tangent of the result, of an elementwise operation whose
    # tangents are not what its gradients make: jvp[i](tangent, *operands, out, **params).
    jvp: Sequence[Callable[..., Any] | None] | None = None
    analytic: bool = True  # conj(f'(x)) = f'(conj(x)), so rules see conjugates
    aliases: bool = False  # the result may be a view of an operand
    # add_to(total, dy, saved) adds the gradient of the only operand to an array, in place, from
    # what the rule saved; False where it cannot. Else a sweep adds arrays of the operand's size.
    add_to: Callable[[ndarray, ndarray, Any], bool] | None = None
    # batch(params, size) gives the parameters for operands with one more axis in front; the same
    # ones by default if the record has a `core`
    batch: Callable[[dict, int], dict] | None = None
    # carry_out(level, inputs, params) does it for all examples of a batch in its own way
    carry_out: Callable[..., Any] | None = None
    # The number of last axes of each operand that the operation works on, where its other axes
    # broadcast: (2, 1) for a matrix times a vector, zeros by default.
    core: tuple[int, ...] = ()
    doc: str | None = None
    ufunc: Any = None  # NumPy's universal function that it is: on tensors NumPy calls this instead
    # decomposition(ops, *operands, **params) computes the same by other operations: `ops.exp(x)`
    # is the operation of that name, on whatever the operands are. None for parameters or dtypes
    # without one. See `decompose`.
    decomposition: Callable[..., Any] | None = None
    dtypes: tuple[Callable[[Any], bool], ...] = EVERY  # that it takes: predicates of `kinds`
    ulps: tuple[float, float] | None = None  # the error allowed in float64 and float32, if counted
    spellings: tuple[str, ...] = ()  # other names of the public function: "math.acos"
    label: str = ""  # what pictures, traces and errors call it: by default the name
    samples: Any = None  # arguments to test it on
    errors: tuple = ()  # calls that it must refuse
    rules: Any = field(default=None, init=False)
    function: Any = field(default=None, init=False)  # None if no user calls it by itself

    def __post_init__(self, save: Any, rule: Any) -> None:
        self.inputs = tuple(self.inputs)
        self.label = self.label or self.name
        if self.core and self.batch is None:  # the batch is one more of the axes that broadcast
            self.batch = same_parameters
        self.core = self.core or (0,) * len(self.inputs)
        if self.vjp is not None:
            self.vjp = tuple(self.vjp)
            self.rules = CompiledRules(self, _conjugate)
        elif save is not None and rule is not None:
            same = Rule(save, rule)  # whichever operands are watched
            self.rules = defaultdict(lambda: same)

    def __call__(self, *inputs: Tensor, **params: Any) -> Any:
        return apply(self, inputs, params)

    def __repr__(self) -> str:
        return f"<Primitive {self.name}>"


def same_parameters(params: dict, size: int) -> dict:
    """Return the parameters of an operation for a batch: those for one example."""
    return params


def label_of(name: str) -> str:
    """Return what pictures, traces and errors call the operation of a name."""
    record = OPS.get(name)
    return record.label if record is not None else name


def register(primitive: Primitive) -> Primitive:
    """Enter `primitive` into the registry, and return it; KeyError if its name is taken."""
    if primitive.name in OPS:
        raise KeyError(f"an operation named {primitive.name!r} is registered already")
    OPS[primitive.name] = primitive
    return primitive


def _conjugate(x: Tensor) -> Tensor:
    return OPS["conj"](x) if is_complex(x._data.dtype) else x


# The door ------------------------------------------------------------------------------------

_array_of = attrgetter("_data")


def apply(primitive: Primitive, inputs: tuple[Tensor, ...], params: dict[str, Any]) -> Any:
    """Carry `primitive` out on tensors, for all levels of this thread."""
    frame = state.frame
    out: Any
    on_gpu = False
    if devices.array_types:
        operands: Any = device_runs.operands_on_gpu(inputs, primitive.on_gpu is None)
        if operands is not None:
            on_gpu, inputs = True, operands
    single = len(inputs) == 1
    if frame is None or frame.level is None:
        try:
            if on_gpu:
                data = device_runs.run(primitive, [*map(_array_of, inputs)], params)
            elif single:
                data = primitive.run(inputs[0]._data, **params)
            else:
                data = primitive.run(*[tensor._data for tensor in inputs], **params)
        except ValueError as error:
            raise _of_input(primitive, error) from None
        except (AttributeError, TypeError):
            refuse_leaks(*inputs)
            raise
        if type(data) is ndarray or isinstance(data, devices.array_types):
            out = new_tensor()
            out._data = data
            out._rec = None
            first: Any = None  # the record of the only recorded operand
            for tensor in inputs:
                if tensor._rec is not None:
                    if first is not None:
                        break
                    first = tensor._rec
            else:  # the commonest cases at once, as the public functions do
                if first is None:
                    if frame is None or not frame.everything:
                        return out
                elif first.next is not None:
                    pass
                elif frame is None:
                    if primitive.rules is not None:
                        out._rec = first if type(first) is Expired else new_mark((first.group,))
                    return out
                elif single:
                    group: Any = first.group
                    if group and group is not frame.alone:
                        group = frame.shortcuts.get(group) or frame.shortcut(group)
                    if group and type(primitive.rules) is CompiledRules:
                        if data.nbytes >= LARGE:
                            note_large(group)
                        primitive.rules.attach[1](group, first, inputs[0], params, out)
                        return out
        else:
            out = [Tensor(part) for part in data]
    else:
        out = run_on(frame.lower, frame.level.process, primitive, inputs, params)
    for tensor in inputs:
        if tensor._rec is not None:
            record(frame, primitive, inputs, params, out)
            return out
    if frame is not None and frame.everything:
        record(frame, primitive, inputs, params, out)
    return out


def _of_input(primitive: Primitive, error: ValueError) -> ValueError:
    """Return the error to raise: a kernel refuses the caller's input; a user's kernel speaks for
    itself.
    """
    own = (InvalidArgumentError, ArgumentTypeError, DeviceError)
    if primitive.kind == "user" or isinstance(error, own):
        return error
    words = str(error)
    return InvalidArgumentError(words if ": " in words else f"{primitive.label}: {words}")


def runner(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """Return the operation on arrays, which refuses what `apply` refuses, as it does."""
    return _refusing(primitive, partial(primitive.run, **params) if params else primitive.run)


def run_on_gpu(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """Return the operation as a function of arrays on a GPU and of single values."""
    return _refusing(primitive, lambda *arrays: device_runs.run(primitive, arrays, params))


def _refusing(primitive: Primitive, run: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arrays: Any) -> Any:
        try:
            return run(*arrays)
        except ValueError as error:
            raise _of_input(primitive, error) from None

    return call


# Public functions ----------------------------------------------------------------------------

_TEMPLATE = """
def make(primitive, kernel, attach, otherwise, parameters):
    def op({signature}):
        frame = state.frame
        if {condition}:
            out = kernel[0]({operands})
            if type(out) is Tensor:
                {body}
        return otherwise({arguments})
    return op
"""
_MARK = """{records}
                if {none}:
                    if frame is None or not frame.everything:
                        return out
                elif frame is None:
                    operand_record = {first}
                    out._rec = (
                        operand_record
                        if type(operand_record) is Expired
                        else new_mark((operand_record.group,))
                    )
                    return out"""
_RECORD = """
                else:
                    group = None
                    {find}
                    if group and group is not frame.alone:
                        group = frame.shortcuts.get(group) or frame.shortcut(group)
                    if group:
                        attach[mask](group, {nodes}, {operands}, {params}, out)
                        return out
                record(frame, primitive, as_tensors(primitive, {operands}), {params}, out)
                return out"""
_FIND = {  # the tapes that all operands' records are for, and which operands these are
    1: """mask = 1
                    if n0.next is None:
                        group = n0.group""",
    2: """if n1 is None:
                        mask = 1
                        if n0.next is None:
                            group = n0.group
                    elif n0 is None:
                        mask = 2
                        if n1.next is None:
                            group = n1.group
                    elif n0.next is None and n1.next is None:
                        mask = 3
                        group = n0.group
                        other = n1.group
                        if other is not group:  # then one of them has all tapes, or neither has
                            group = frame.shortcuts.get(group) or frame.shortcut(group)
                            other = frame.shortcuts.get(other) or frame.shortcut(other)
                            if not group or not other:
                                group = None
                            elif not other <= group:
                                group = other if group <= other else None""",
}


@cache
def _template(
    operands: tuple[str, ...],
    signature: str,
    condition: str,
    arguments: tuple[str, ...],
    body: str,
    params: str = "",
) -> Callable[..., Any]:
    """Return the maker of functions of one form: the only place of the fast path."""
    names = [f"n{i}" for i in range(len(operands))]
    records = [f"n{i} = {x}._rec if type({x}) is Tensor else None" for i, x in enumerate(operands)]
    if len(operands) == 1:
        records = [f"n0 = {operands[0]}._rec"]
    source = _TEMPLATE.replace("{body}", body).format(
        signature=signature,
        condition=condition,
        arguments=", ".join(arguments),
        records="\n                ".join(records),
        none=" and ".join(f"{name} is None" for name in names),
        first=" or ".join(names),
        find=_FIND.get(len(operands), "mask = 0"),
        nodes=", ".join(names),
        operands=", ".join(operands),
        params=params,
    )
    scope = dict(globals())  # the template uses names of this module
    return define(source, "public functions", scope, "make")


def as_tensors(primitive: Primitive, *operands: Any) -> tuple[Tensor, ...]:
    """Return the operands of one operation as tensors; what a tape may retain is copied."""
    copy = state.frame is not None or primitive.aliases
    if len(operands) == 1:
        return (convert(operands[0], copy=copy),)
    return convert_operands(operands, copy)


no_kernel = [lambda *operands: None]  # for operations without a kernel for small operands


def public_function(
    primitive: Primitive,
    signature: str | None = None,  # by default the operands, and an unused `name`
    *,
    # for reductions, whose operand is the first argument: the condition on arguments for the fast
    # path, and the operation's parameters there, by the number of axes
    over_all_axes: tuple[str, Sequence[dict]] | None = None,
    kernel: list[Callable] | None = None,  # in a list; by default the primitive's small kernel
    otherwise: Callable[..., Any] | None = None,
) -> Any:
    """Return the public function of `primitive`, which bears its name and its docstring.

    Few elements go straight to a kernel that takes operands as they are, whatever records.
    The rest goes to ``otherwise(*arguments)``: by default converted, and through the door.
    """
    names = arguments = primitive.inputs
    condition, parameters = "frame is None or frame.level is None", "None"
    if signature is None:
        signature = f"{', '.join(names)}, name=None"
    if over_all_axes is not None:
        condition = f"{over_all_axes[0]} and ({condition})"
        arguments = tuple(part.partition("=")[0] for part in signature.split(", "))
        names = arguments[:1]
        parameters = f"parameters[{names[0]}._data.ndim]"

    def by_door(*operands: Any) -> Any:
        for operand in operands:
            if type(operand) is not Tensor:
                operands = as_tensors(primitive, *operands)
                break
        return apply(primitive, operands, {})

    rules = primitive.rules
    body = "return out" if rules is None else _MARK + _RECORD
    make = _template(names, signature, condition, arguments, body, parameters)
    kernel = kernel or getattr(primitive.kernel, "small_kernel", no_kernel)
    attach = getattr(rules, "attach", None)
    function = make(
        primitive, kernel, attach, otherwise or by_door, over_all_axes and over_all_axes[1]
    )
    return bind(function, primitive)


def unrecorded_function(
    count: int, kernel: list[Callable], otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function of `count` tensors: the kernel if no level is active, else `otherwise`."""
    names = tuple([f"x{i}" for i in range(count)])
    make = _template(names, ", ".join(names), "frame is None", names, _MARK)
    return make(None, kernel, None, otherwise, None)


def bind(function: Any, primitive: Primitive) -> Any:
    """Return `function` as the public face of `primitive`: its name, docstring and attributes."""
    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = with_example(primitive.name, primitive.doc or "") or None
    function.primitive = primitive
    return function


def binary_function(primitive: Primitive) -> Any:
    """Return the public function of two operands.

    Its attribute `reflected` is the function of (y, x). `operator` is Python's: it leaves the
    answer to a second operand whose class takes no part in NumPy's functions.
    """

    def leave_or_apply(x: Any, y: Any) -> Any:
        if answers_by_itself(y):
            return NotImplemented
        return apply(primitive, as_tensors(primitive, x, y), {})

    op = public_function(primitive)
    op.reflected = public_function(primitive, signature="y, x")
    op.operator = public_function(primitive, otherwise=leave_or_apply)
    return op


def answers_by_itself(operand: Any) -> bool:
    """Return whether an operand's class has opted out of NumPy's functions, as NEP 13 has it."""
    return getattr(type(operand), "__array_ufunc__", True) is None
