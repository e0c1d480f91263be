"""Tracing: a level that records operations in a graph and computes nothing.

Python runs once, with tensors that have a shape and a dtype but no value. Tapes, transformations
and gradient rules inside the program are above this level and work as always, so the trace sees the
operations that they leave.
"""

from __future__ import annotations

import contextlib
import linecache
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from importlib import import_module
from math import prod
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from ..._core.conversion import BOOL, convert
from ..._core.devices import GPU, move, to_host
from ..._core.kinds import is_exact, is_inexact
from ..._core.levels import Level, Listener, add_level, ask_for_value, state
from ..._core.primitive import Primitive, apply, runner
from ..._core.tensor import Aval, Tensor, leaked_from_trace
from ..._ops.sampling import draw as draw_numbers
from ..._ops.shape import identity
from ..._reverse.graph_mode import Graph as DefaultGraph
from ..._reverse.variable import Variable, VariableSlice, is_recorded
from ..._rules.outside_runs import scratch_run
from ..._transforms.tape import keep_tapes
from ...errors import (
    OperatorNotAllowedInGraphError,
    called_function,
    is_ours,
    location_of,
    users_line,
)
from ..graph.interpret import device_of, interpreter
from ..graph.values import FuncGraph, OutputItem, Value, constant, in_order, operation
from .outside_calls import OutsideCalls, outside_operation
from .signature import MAX_SIZES

sites: ContextVar[dict[str, str] | None] = ContextVar("sites", default=None)
"""Where each operation is called first, by its label, if somebody asks for that."""

Build = Callable[[FuncGraph], Callable[[Sequence[np.ndarray]], list[np.ndarray]]]
"""A function that makes a program of a graph: `interpreter`, or `executable.build`, which fuses."""


class TraceTensor(Tensor):
    """A tensor of a traced program; `value` is its value in the graph."""

    __slots__ = ("level", "value")

    def __init__(self, value: Value, level: FunctionTrace, record: Any = None):
        super().__init__(Aval(value.aval.shape, value.aval.dtype), record)
        self.value = value
        self.level = level

    def _with_record(self, record: Any) -> TraceTensor:
        return TraceTensor(self.value, self.level, record)

    def _raw(self) -> TraceTensor:
        return identity(self)._with_record(None)  # in the running trace

    def _example(self) -> np.ndarray:
        return self.level.example(self.value)

    def _values(self) -> np.ndarray:
        return value_or_refuse(self)

    @property
    def device(self) -> str:
        return self.level.device

    def __repr__(self) -> str:
        return f"<tg.Tensor: shape={self.shape}, dtype={self.dtype}, traced>"

    def __format__(self, spec: str) -> str:
        return str(self) if not spec else format(self._values(), spec)


def aval_of(tensor: Any) -> Aval:
    """Return the shape and dtype of a tensor."""
    return Aval(tuple(tensor._data.shape), tensor._data.dtype)


def value_or_refuse(tensor: Any) -> np.ndarray:
    """Return the sample value of a tensor or number for code that runs on samples, else raise."""
    value = ask_for_value(tensor)
    if value is None:
        if tensor.level.is_over:
            raise leaked_from_trace(tensor)
        refuse_value(repr(tensor), tensor.level, tensor if _is_size() else None)
    return value


def _is_size() -> bool:
    """Return whether the library asks for a value, and not the user's code."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        home = frame.f_globals.get("__name__", "")
        if home not in (__name__, Tensor.__module__) and not home.startswith("numpy."):
            return is_ours(frame.f_code.co_filename) and ".autograph." not in home
        frame = frame.f_back
    return False


def leaves_behind(tensor: TraceTensor) -> set[int] | None:
    """Return the positions of the integer arguments that a tensor is computed from.

    None if it also depends on something else than constants and small integer arguments.
    """
    positions: set[int] = set()
    waiting = [(tensor.level, tensor.value)]
    while waiting:
        level, value = waiting.pop()
        if value.array is not None:
            continue
        if value.inputs or value.name:
            waiting += [(level, operand) for operand in value.inputs]
        elif value in level.arguments:
            if value.dtype.kind not in "iu" or prod(value.shape) > MAX_SIZES:
                return None
            positions.add(level.arguments.index(value))
        else:
            outer = next((source for source, inner in level.met.values() if inner is value), None)
            if isinstance(outer, TraceTensor):
                waiting.append((outer.level, outer.value))
            elif outer is None or not _is_known_size(outer):
                return None
    return positions


def refuse_value(what: str, level: FunctionTrace, size_of: Any = None) -> NoReturn:
    """Raise the error for using a value that does not exist while tracing. `size_of` is a size."""
    file, line, _ = users_line()
    text = linecache.getline(file, line).strip()
    of_math = re.search(r"(?<![.\w])math\.(\w+)\(", text)
    hint = (
        "Compute with the tensor itself, without float() or numpy(): `if` and `while` take tensors"
    )
    if of_math:
        hint = f"Use tf.math.{of_math[1]} instead of math.{of_math[1]}"
    elif size_of is not None:
        name = called_function()
        hint = f"`{name}` needs the value, for example to know the size of its result"
        if name == "Variable":
            hint = "Create the Variable once, outside the function, and assign to it inside"
    error = OperatorNotAllowedInGraphError(
        f"Using a traced tensor as a Python value is not allowed: {what} has no value while "
        f"`{level.name}` is traced ({location_of(file, line)}: `{text}`). {_reason()}"
        f"{hint}. To choose element by element, use where(x > 0, x, 0). If an argument must be a "
        "Python value, make it static with function(static_argnums=...). To call other code "
        "that needs values, use numpy_function or py_function, or move the call out of the function"
    )
    error.size_of = size_of
    raise error


def _reason() -> str:
    """Return why Python asks for a value here, as a part of the error message."""
    from ...autograph._convert import reason  # for an error only

    why = reason(sys._getframe(users_line()[2] - 1).f_code)
    return f"This code runs as plain Python, in which tensors need values: {why}. " if why else ""


@contextlib.contextmanager
def thread_state(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return a context in which the thread's state has these values; it gives the previous ones."""
    before = {name: getattr(state, name) for name in values}
    try:
        for name, value in values.items():
            setattr(state, name, value)
        yield before
    finally:
        for name, value in before.items():
            setattr(state, name, value)


class FunctionTrace(Level, Listener):
    """The level of one run of Python. What it meets becomes an input or a constant of the graph."""

    has_own_values = True
    is_abstract = True
    is_over = False
    graph: DefaultGraph | None = None  # by default a new one each time
    trials = 0  # number of nested trials that are running
    has_samples_only = False  # its arguments have only sample values

    def __init__(
        self, name: str, may_create: bool, calls: OutsideCalls, build: Build = interpreter
    ):
        self.name, self.may_create, self.calls = name, may_create, calls
        self.build = build  # compiles graphs of loops and branches
        self.around: dict[str, Any] = {}  # the thread's state around this trace
        self.argument_values: Sequence[np.ndarray] = ()  # of the first arguments, where known
        self.outside = 0  # calls of outside code
        self.effects: list[Value] = []  # marks of side effects
        self.arguments: list[Value] = []
        self.met: dict[int, tuple[Tensor, Value]] = {}  # tensors from outside
        self.reads: dict[int, tuple[Variable, Value]] = {}
        self.assigned: dict[int, Variable] = {}
        self.created: list[Variable] = []
        self.draws: list[Value] = []
        self.drawn_in_trial: list[str] = []  # the methods

    @property
    def device(self) -> str:
        """Return the device that the program will run on."""
        return device_of(self.build)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Return a context in which this thread traces, with only this level and those inside of
        it.

        What else records or listens sees the calls of the finished program. As in a default graph,
        all operations are recorded, for `gradients`.
        """
        graph = self.graph or DefaultGraph()
        graph._token.silent = True  # tensors with values are constants
        values = {"frame": add_level(None, self), "listeners": [self], "graphs": [], "rules": []}
        values |= {"overrides": {}, "draws": self.draw}
        values["device"] = GPU if self.device == GPU else None  # of what the function creates
        around = self.around
        with thread_state(values) as self.around:
            try:
                graph._enter()
                self.is_over = False
                with keep_tapes():
                    yield
            finally:
                self.is_over, self.around = True, around

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        """Return a context whose operations are not part of the program.

        It serves to find the types of results. Afterwards the trace is as before.
        """
        lists = self.effects, self.arguments, self.created, self.draws, self.drawn_in_trial
        containers: list[Any] = [*lists, *self.tables]
        before = [container.copy() for container in containers]
        outside, draws = self.outside, state.draws
        state.draws = self._drawn_in_trial
        self.trials += 1
        try:
            yield
        finally:
            self.trials -= 1
            self.outside, state.draws = outside, draws
            for container, old in zip(containers, before, strict=True):
                container.clear()
                (container.update if isinstance(old, dict) else container.extend)(old)

    @property
    def tables(self) -> list[dict]:
        """Return the tables of tensors and Variables by identity."""
        return [self.met, self.reads, self.assigned, state.overrides]

    def _drawn_in_trial(self, method: str, arguments: tuple) -> TraceTensor:
        self.drawn_in_trial.append(method)
        return self.argument(_draw_aval(method=method, arguments=arguments))

    def argument(self, aval: Aval) -> TraceTensor:
        """Return a new input of the program."""
        value = Value(Aval(tuple(aval.shape), aval.dtype))
        self.arguments.append(value)
        return TraceTensor(value, self)

    def value(self, tensor: Any) -> Value:
        """Return the graph value of a tensor; a tensor from outside becomes an input."""
        if isinstance(tensor, VariableSlice):
            tensor = tensor.part
        if isinstance(tensor, TraceTensor):
            if tensor.level is not self:
                raise leaked_from_trace(tensor)
            return tensor.value
        entry = self.met.get(id(tensor))
        if entry is None:
            data = convert(tensor)._data
            if isinstance(data, Aval):
                tensor._values()
            entry = self.met[id(tensor)] = (tensor, Value(Aval(data.shape, data.dtype)))
        return entry[1]

    def process(self, primitive: Primitive, inputs: tuple, params: dict) -> Any:
        if (found := sites.get()) is not None:
            found.setdefault(primitive.label, location_of(*users_line()[:2]))
        if inputs and all(map(_is_known_size, inputs)) and primitive.kind != "user":
            return apply(primitive, inputs, params)
        operands = [self.value(tensor) for tensor in inputs]
        primitive = getattr(self.build, "instead", {}).get(primitive.name, primitive)
        ordered = getattr(params.get("choice"), "stateful", False)
        if ordered:
            operands += self.effects[-1:]
        avals = primitive.abstract(*[operand.aval for operand in operands], **params)
        if avals is None:
            return self._call_outside(primitive, operands, params)
        return self._results(Value(avals, primitive, operands, params), ordered)

    def _results(self, value: Value, ordered: bool) -> Any:
        """Return the results of an operation; the last one of an `ordered` one becomes the mark."""
        if not isinstance(value.aval, list):
            return TraceTensor(value, self)
        items = [OutputItem(value, i) for i in range(len(value.aval))]
        if ordered:
            self.effects.append(items.pop())
        return [TraceTensor(item, self) for item in items]

    def _call_outside(self, primitive: Primitive, operands: list[Value], params: dict) -> Any:
        """Return the results of code that needs values; each call of the program calls it."""
        code = params.get("code") if primitive.kernel is None else None  # no primitive of the user
        key = getattr(code, "key", None)
        call = (self.outside, primitive.name, key, *[operand.aval for operand in operands])
        self.outside += 1
        run = runner(primitive, params)
        if (self.has_samples_only or self.trials) and getattr(code, "dtypes", None) == []:
            avals = []  # a call would only have its side effects
        else:
            avals = self.calls.find_avals(call, code, run, lambda: self._examples(operands))
        ordered = getattr(code, "stateful", False)
        called = outside_operation(self.calls, call, primitive, params, avals, ordered)
        if ordered:
            before = self.effects[-1:] or [constant(np.zeros((), BOOL))]
            operands = [*operands, *before]
        return self._results(operation(called, operands, params), ordered)

    def custom_call(self, call: Any, inputs: Any, outputs: Sequence) -> list:
        """Return new output tensors. Tapes inside the program are above this level and have the
        rule. A `build` with a function `keep_rule` wants it in the graph, too.
        """
        values = [self.value(output) for output in outputs]
        keep_rule = getattr(self.build, "keep_rule", None)
        if keep_rule is not None:
            values = keep_rule(self, call, inputs, values)
        return [TraceTensor(value, self) for value in values]

    def draw(self, method: str, arguments: tuple) -> TraceTensor:
        """Return random numbers that each call draws. A draw depends on the previous one."""
        drawn = operation(DRAW, self.draws[-1:], {"method": method, "arguments": arguments})
        self.draws.append(drawn)
        return TraceTensor(drawn, self)

    def loop(self, carries: Sequence, stacks: Sequence, *spec: Any) -> tuple[list, list]:
        loops = _later("loops")
        return loops.complete(loops.LoopSpec(*spec), carries, stacks)

    def shapes_of(self, *args: Any) -> list[Aval]:
        return _later("loops").shapes_of(*args)

    def choose(self, name: str, index: Any, branches: Sequence[tuple[str, Callable]]) -> Any:
        return _later("choices").choose(name, index, branches)

    def unchanged(
        self, name: str, functions: Sequence[Any], unrolls: bool | None = None
    ) -> AbstractContextManager[Any]:
        runs = sys.modules.get("tinygrad_cg.autograph._runs")  # loaded by AutoGraph
        if runs is None and unrolls is not None:  # a loop's gradient traces its functions again
            runs = import_module("tinygrad_cg.autograph._runs")
        unchanged = super().unchanged if runs is None else runs.unchanged
        return unchanged(name, functions, bool(unrolls))

    def number(self, tensor: TraceTensor) -> Any:
        """Return the Python float of a float64 tensor."""
        return _later("number").TraceNumber(tensor.value, self)

    def outer(self) -> list[tuple[Tensor, Value]]:
        """Return the tensors from outside, with their values."""
        return list(self.met.values())

    def example(self, value: Value) -> np.ndarray:
        """Return a value for sample arguments."""
        return self._examples([value])[0]

    def _examples(self, values: list[Value]) -> list[np.ndarray]:
        generator = np.random.default_rng(0)
        leaves = [x for x in in_order(values) if not (x.name or x.inputs or x.array is not None)]
        arrays = {
            value: _sample(generator, value) for value in (*self.arguments, *self.draws, *leaves)
        }
        arrays |= dict(zip(self.arguments, map(to_host, self.argument_values), strict=False))
        arrays |= {value: to_host(tensor._example()) for tensor, value in self.outer()}
        arrays |= {value: to_host(variable._data) for variable, value in self.reads.values()}
        before, self.calls.sampling = self.calls.sampling, True
        try:
            return interpreter(FuncGraph(list(arrays), values))(list(arrays.values()))
        finally:
            self.calls.sampling = before

    def variable_read(self, variable: Variable) -> None:
        """Make the Variable an input, with its value when the program is called.

        This includes Variables that were assigned before they are read: a gradient with respect to
        a Variable is that of all reads.
        """
        present = state.overrides.get(id(variable))
        if present is None or not is_recorded(variable):
            value = self._input_of(variable)
            present = TraceTensor(value, self) if present is None else present
        state.overrides[id(variable)] = self._own(present)

    def _input_of(self, variable: Variable) -> Value:
        """Return the input of a Variable."""
        if id(variable) not in self.reads:
            data = variable._data
            self.reads[id(variable)] = (variable, Value(Aval(data.shape, data.dtype)))
        return self.reads[id(variable)][1]

    def _own(self, data: Any) -> Any:
        """Return the value of a Variable as a tensor of this trace.

        An array with the Variable's record would be a second operand beside the Variable.
        """
        is_own = isinstance(data, Tensor) or is_exact(data.dtype)
        return data if is_own else TraceTensor(constant(to_host(data)), self)

    def variable_assigned(self, variable: Variable) -> None:
        """Keep the assigned value in this thread until a call of the program ends."""
        self.assigned[id(variable)] = variable
        state.overrides.setdefault(id(variable), variable._data)

    def variable_created(self, variable: Variable) -> None:
        """Refuse Variables that are created after the first call: each call would create some."""
        run = None if self.may_create else scratch_run()
        if run is not None:  # a rule may create some in each run
            run.take_values()
            return
        if not self.may_create:
            file, line, _ = users_line()
            raise ValueError(
                f"`{self.name}` creates a new Variable each time it is traced: {variable.name!r} "
                f"({location_of(file, line)}). Create the Variable outside the function, or only "
                'on the first call (TensorFlow raises this as "tf.function only supports singleton '
                'tf.Variables created on the first call.")'
            )
        self.created.append(variable)

    def assignments(self) -> list[tuple[Variable, Value]]:
        """Return the assigned Variables in order, each with its last value."""
        assignments = []
        for key, variable in self.assigned.items():
            data = state.overrides[key]
            if not isinstance(data, Tensor):
                data = state.overrides[key] = TraceTensor(self.value(Tensor(data)), self)
            assignments.append((variable, self.value(data)))
        return assignments

    def captured(self) -> tuple[list[tuple[Tensor, Value]], dict[Value, Value]]:
        """Return the tensors from outside, and constants that replace those of this run alone.

        A tensor that nothing else refers to cannot be watched or read, so it becomes a constant. So
        do an integer, and integers at equal distances: they tell where a loop begins, and its
        order.
        """
        outside: list[tuple[Tensor, Value]] = []
        literals: dict[Value, Value] = {}
        while self.met:
            tensor, value = self.met.popitem()[1]
            data = to_host(tensor._data)
            others = weakref.ref(tensor)
            del tensor
            tensor = others()
            if tensor is None or _counts(data):
                literals[value] = literal(data)
            else:
                outside.append((tensor, value))
        return outside[::-1], literals


def _later(module: str) -> Any:
    """Return a module of this package that imports this one, imported at first use."""
    return import_module(f"{__package__}.{module}")


def record_lost(where: str, variable: Variable) -> str:
    """Return the message for a recorded assignment whose block ends inside a part of a program."""
    return (
        f"recorded_assignments: the block ends in {where}, and {variable.name!r} must keep its "
        "gradient: begin the block before that, or pass restore=True"
    )


def _is_known_size(tensor: Any) -> bool:
    """Return whether a tensor has few integers and they are known, as those of ``shape(x)``.

    Results of such tensors are computed while tracing, so they can be sizes.
    """
    data = tensor._data
    return type(data) is np.ndarray and is_exact(data.dtype) and data.size <= MAX_SIZES


def _counts(array: Any) -> bool:
    """Return whether an array is an integer, or integers at equal distances."""
    if not is_exact(array.dtype) or array.dtype == BOOL or array.ndim > 1 or not array.size:
        return False
    if array.size == 1:
        return True
    steps = np.diff(array)
    return bool((steps == steps[0]).all())


def _sample(generator: np.random.Generator, value: Value) -> np.ndarray:
    """Return positive sample numbers; 0 for integers, which may be indices."""
    if not is_inexact(value.dtype):
        return np.zeros(value.shape, value.dtype)
    return np.asarray(generator.uniform(0.5, 1.5, value.shape), value.dtype)


def literal(array: np.ndarray) -> Value:
    """Return a constant; if all elements are equal, one number and a broadcast."""
    if array.size > 1:
        flat = np.ascontiguousarray(array).reshape(-1)
        if flat.tobytes() == flat[:1].tobytes() * flat.size:
            number = constant(flat[:1].reshape(()))
            return operation("broadcast_to", [number], {"shape": array.shape})
    return constant(array)


def _draw_aval(*before: Aval, method: str, arguments: tuple) -> Aval:
    if method == "integers":
        return Aval(arguments[2], np.dtype(arguments[3]))
    return Aval(arguments[0], np.dtype(np.float64))


# Not an operation that users call by name: `tinygrad_cg.random` draws through the trace.
DRAW = Primitive(
    "draw",
    lambda *before, method, arguments: draw_numbers(method, arguments),
    ("before",),
    _draw_aval,
    kind="impure",
    on_gpu=lambda *before, method, arguments: move(draw_numbers(method, arguments), GPU),
)
