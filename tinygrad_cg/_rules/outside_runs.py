"""Runs of outside code: Python functions of values, such as NumPy code, as operations.

A function that takes values (``x.numpy()``, ``float(x)``) of tensors that have none, in a batch
or a trace, is run for one example, or at each call of the program. What it captures becomes an
operand of it, so that every level sees it as one operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from .._core import devices
from .._core.conversion import FLOAT64, Weak, convert, convert_result, is_tensor
from .._core.kinds import is_differentiable
from .._core.levels import Level, Listener, remove_listener, run_on, stack, state, tokens_of
from .._core.primitive import Primitive, apply
from .._core.record import Node, find
from .._core.tensor import Aval, NoValueError, Tensor
from .._ops.creation import fill_zeros
from .._reverse.sweep import gradients_of_call
from ..errors import InvalidArgumentError
from .definition import Definition, closure
from .rebinding import at_positions, rebind_outputs

# Code that is called with values -------------------------------------------------------------


class Code:
    """A Python function from tensors with values to tensors, and how it is called.

    ``call(*tensors)`` gives a list of tensors, as many each time. `key` is the same for calls
    from the same position in a program. `structure` is the structure of the results, for the caller
    that packs them. Of `stateful` code a program makes all calls, in order.
    """

    structure: Any = None
    definition: Definition | None = None  # of a function that may have rules inside

    def __init__(
        self, name: str, key: Any, call: Callable[..., list[Tensor]], stateful: bool = False
    ):
        self.name, self.key, self.call, self.stateful = name, key, call, stateful

    def values(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the results for tensors with values, where nothing records."""
        return self.call(*tensors)

    def inside(self, tensors: Sequence[Tensor]) -> AbstractContextManager:
        """Return a context for the sweeps of what ``call(*tensors)`` recorded."""
        return nullcontext()

    def __repr__(self) -> str:
        return self.name

    def derivative(self, name: str, key: tuple, call: Callable, count: int) -> Code:
        """Return the code of a derivative, whose first `count` operands are those of this one."""
        code = Code(f"the {name} of {self.name}", key, call)
        code.definition = self.definition
        code.inside = lambda tensors: self.inside(tensors[:count])
        return code

    def repeat(self, inputs: Sequence[Tensor], results: Sequence[Tensor]) -> list[Tensor]:
        """Return the results of one more call; InvalidArgumentError if `results` differ."""
        outputs = self.call(*inputs)
        for output, result in zip(outputs, results, strict=True):
            new, old = (devices.to_host(tensor._example()) for tensor in (output, result))
            if not is_differentiable(old.dtype):
                continue
            tolerance = np.finfo(old.dtype).eps ** 0.5
            largest = np.abs(old[np.isfinite(old)]).max(initial=0)
            if new.shape != old.shape or not np.allclose(
                new, old, rtol=0, atol=tolerance * largest, equal_nan=True
            ):
                raise InvalidArgumentError(
                    f"{self.name}: the function runs again for its derivative, and now returns "
                    "other values: it draws random numbers or keeps state. Pass what changes as "
                    "arguments, or declare the derivative with custom_gradient"
                )
        return outputs

    def pullback(self, wanted: Sequence[int], count: int, silent: bool) -> Code:
        """Return the code of the gradients by the `wanted` ones of `count` operands.

        It takes the operands, the results, and an upstream gradient for each of these. The code
        runs once more, on a tape, where it may take values without a warning if that is `silent`.
        """

        def call(*tensors: Tensor) -> list[Tensor]:
            end = count + (len(tensors) - count) // 2
            return gradients_of_call(
                lambda inputs: self.repeat(inputs, tensors[count:end]),
                tensors[:count],
                wanted,
                tensors[end:],
                silent,
                self.inside,
            )

        return self.derivative("gradient", ("gradient", self.key, *wanted), call, count)


@contextmanager
def only_values() -> Iterator[None]:
    """Return a context without levels, in which all tensors have values."""
    here, names = state, ("frame", "listeners", "graphs", "rules", "overrides", "draws", "sweep")
    before = [getattr(here, name) for name in names]
    here.frame = here.draws = here.sweep = None
    here.listeners, here.graphs, here.rules = [], [], []
    # in a trace some Variables have placeholders for values
    overrides = here.overrides.items()
    here.overrides = {key: value for key, value in overrides if type(value) in (np.ndarray, Tensor)}
    try:
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(here, name, value)


def _run(*arrays: np.ndarray, code: Code) -> list[np.ndarray]:
    with only_values():
        results = code.values([Tensor(array) for array in arrays])
    return [np.array(tensor._data, order="C") for tensor in results]  # it may keep its own


def _run_on_gpu(*arrays: Any, code: Code) -> list[Any]:
    library = devices.library()
    with only_values():
        results = code.values([Tensor(array) for array in arrays])
    return [library.array(devices.move(tensor._data, devices.GPU), order="C") for tensor in results]


class OutsideUse(NamedTuple):
    """The residuals of a node of outside code."""

    name: str
    inputs: tuple
    code: Code
    definition: Definition | None  # whose rules are run inside
    results: list[Tensor]


def _save(inputs: tuple, params: dict, out: Any) -> OutsideUse:
    code, results = params["code"], out if isinstance(out, list) else [out]
    results = [tensor._with_record(None) for tensor in results]
    return OutsideUse(code.name, inputs, code, code.definition, results)


def _rule(node: Node, dy: Any) -> list:
    _, inputs, code, _, results = node.saved
    dys = dy if isinstance(dy, list) else [dy]
    wanted = [
        i
        for i, operand in enumerate(node.inputs)
        if operand is not None and is_differentiable(inputs[i]._data.dtype)
    ]
    asking = [token.silent for token in node.group if token.alive]
    gradient = code.pullback(wanted, len(inputs), bool(asking) and all(asking))
    gradients = apply(CODE, (*inputs, *results, *dys), {"code": gradient})
    return at_positions(wanted, gradients, len(inputs))


def unknown_avals(*avals: Any, **params: Any) -> None:
    """Stand for shapes that are known only after a call."""


CODE = Primitive(
    "py_function",
    _run,
    ("inputs",),
    unknown_avals,
    save=_save,
    rule=_rule,
    kind="user",
    on_gpu=_run_on_gpu,
)


# Functions that may take values --------------------------------------------------------------


class Run(Level, Listener):
    """The level of one run of a function that may take values, on top of those that it serves.

    At first it only takes note of what the function captures. When a value is asked for that there
    is none of (`values` is then True), the run goes on with the values of one example: of the rows
    at which the batches are, and of some arguments of a trace.

    With `operands`, tensors by their `tensor_key`, it has values from the start, and they stand for
    those that the function captures. What is captured, and not given, is in `met`, by its key;
    `reads` has the Variables that are read, by their ids, and `variables` those whose values are
    given.
    """

    has_own_values = True

    def __init__(
        self,
        levels: Sequence[Any],
        operands: dict[tuple, Tensor] | None = None,
        variables: dict[int, Tensor] | None = None,
    ):
        self.levels = levels
        self.operands = operands
        self.values = operands is not None
        self.variables = variables or {}
        self.log: list[tuple[Sequence, Any]] = []  # operands and results, until there are values
        self.own_results: set[tuple] = set()
        self.met: dict[tuple, Any] = {}
        self.reads: dict[int, Any] = {}
        self.created: set[int] = set()
        self.masked: list[Any] = []

    def __enter__(self) -> Run:
        self.overrides = state.overrides
        if self.variables:
            values = {number: tensor._data for number, tensor in self.variables.items()}
            state.overrides = state.overrides | values
        state.listeners.append(self)
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        remove_listener(self)
        state.listeners[:0] = self.masked
        if self.variables:
            state.overrides = self.overrides

    def variable_read(self, variable: Any) -> None:
        if id(variable) not in self.created and is_differentiable(variable._data.dtype):
            self.reads[id(variable)] = variable

    def variable_created(self, variable: Any) -> None:
        self.created.add(id(variable))

    def take_values(self) -> None:
        """Continue with values; from here on, traces need not know what Variables do."""
        if not self.values:
            self.values = True
            self.own_results = {tensor_key(tensor) for _, results in self.log for tensor in results}
            for operands, _ in self.log:
                for operand in operands:
                    self._take(operand)
            self.masked = [listener for listener in state.listeners if listener in self.levels]
            state.listeners[:] = [
                listener for listener in state.listeners if listener not in self.levels
            ]

    def value_of(self, tensor: Any) -> np.ndarray:
        """Return the value of a tensor of a batch or a trace around this level."""
        self.take_values()
        if isinstance(tensor, Weak):
            return tensor.strong(FLOAT64)._example()
        return self._take(tensor)._data

    def process(self, primitive: Primitive, inputs: tuple, params: dict) -> Any:
        """Carry out an operation: for an example, or else as the levels below do."""
        if self.values:
            operands = tuple(map(self._take, inputs))
            frame = None if self.operands is None else state.frame
            return run_on(frame, apply, primitive, operands, params)
        out = apply(primitive, inputs, params)
        self.log.append((inputs, out if type(out) is list else (out,)))
        return out

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        if self.values:
            taken = [None if tensor is None else self._take(tensor) for tensor in inputs]
            frame = None if self.operands is None else state.frame
            taken_outputs = list(map(self._take, outputs))
            return run_on(frame, rebind_outputs, frame, call, taken, taken_outputs)
        results = rebind_outputs(state.frame, call, inputs, outputs)
        tensors = [tensor for tensor in (*inputs, *outputs) if tensor is not None]
        self.log.append((tensors, results))
        return results

    def _take(self, tensor: Any) -> Tensor:
        """Return the tensor to compute with in place of an operand."""
        key = tensor_key(tensor)
        if self.operands is not None and key in self.operands:
            return self.operands[key]
        for value in self.variables.values():
            if value._data is tensor._data:
                return value
        captured = key not in self.own_results and is_of_levels(tensor, self.levels)
        if captured:
            self.met[key] = tensor
        if isinstance(tensor._data, Aval):
            return Tensor(tensor._example())
        return tensor._with_record(None) if captured else tensor


def tensor_key(tensor: Any) -> tuple[int, int]:
    """Return what tells a tensor, or a copy of it, from others, as long as it is kept."""
    core = tensor._data
    if getattr(tensor, "level", None) is not None:
        core = tensor.physical if hasattr(tensor, "physical") else tensor.value
    return id(core), id(tensor._rec)


def is_of_levels(tensor: Any, levels: Sequence[Any]) -> bool:
    """Return whether one of `levels` made a tensor, or has recorded it."""
    own = getattr(tensor, "level", None)
    if own is not None:
        return any(level is own for level in levels)
    if tensor._rec is None:
        return False
    return any(not t.everything and find(tensor._rec, t) is not None for t in tokens_of(levels))


def start_run() -> Run | None:
    """Return a level for a function that runs now; None where all tensors have values."""
    frame = state.frame
    if frame is None or frame.level is None:
        return None
    levels = stack(frame)
    for level in reversed(levels):
        if isinstance(level, Run):
            if level.values:
                return None
        elif level.has_own_values:
            return Run(levels)
    return None


def scratch_run() -> Run | None:
    """Return the innermost run of a function that may take values; None if there is none."""
    runs = [level for level in stack(state.frame) if isinstance(level, Run)]
    return runs[-1] if runs else None


def run_code(
    definition: Definition,
    function: Callable[..., Any],
    args: Sequence,
    source: Any,
) -> Any:
    """Return ``function(*args)``, as outside code if it asks for values that there are not.

    `args` hold tensors, nested or not, and so does the result. `source` is what the user wrote of
    the function.
    """
    first = start_run()
    if first is None:
        return function(*args)
    with first:
        result = function(*args)
    if not first.values:
        return result
    return finish_run(definition, first, function, args, result, source)


def run_rule(
    definition: Definition, rule: Callable[..., Any], args: Sequence, options: dict[str, Any]
) -> Any:
    """Return ``rule(*args, **options)``, as `run_code` does, as a rule of `definition`."""
    function = functools.partial(definition.run, rule, **options)
    return run_code(definition, function, args, rule)


def finish_run(
    definition: Definition,
    first: Run,
    call: Callable[..., Any],
    args: Sequence,
    result: Any,
    source: Any,
) -> Any:
    """Return what ``call(*args)`` gives for all examples, where `first` gave `result` for one."""
    code = _FunctionCode(definition, first, call, args, result, source)
    while True:
        try:
            results = apply(CODE, code.operands(), {"code": code})
            break
        except _CapturesMore as more:
            code.read(*more.args)
    code.results = None
    return pack_present(code.structure, results)


def pack_present(structure: Any, results: Iterable) -> Any:
    """Return the structure with results in place of its leaves that are not None."""
    remaining = iter(results)
    flat = [None if leaf is None else next(remaining) for leaf in nest.flatten(structure)]
    return nest.pack_sequence_as(structure, flat)


class _CapturesMore(Exception):
    """The run for some example captured a tensor, or gave a result, that no earlier one did.

    Its argument has the Variables that the run read for the first time, by their ids.
    """


class _FunctionCode(Code):
    """A function of nested arguments and of what it captures, after one run.

    While the operation is carried out `results` has the results of the examples that have run, by
    the rows of the batches; otherwise it is None.
    """

    def __init__(
        self,
        definition: Definition,
        first: Run,
        call: Callable[..., Any],
        args: Sequence,
        result: Any,
        function: Any,
    ):
        super().__init__(definition.name, code_key(function), self.run)
        self.definition = definition
        self.where = functools.partial(definition.where, function)
        self.levels = first.levels
        self.run_function = call
        self.args = list(args)
        self.leaves = nest.flatten(self.args)
        self.places = {
            i: x for i, x in enumerate(self.leaves) if isinstance(x, Weak) or is_tensor(x)
        }
        self.tensors = [
            leaf.strong(FLOAT64) if isinstance(leaf, Weak) else convert(leaf)
            for leaf in self.places.values()
        ]
        self.captured = {**first.met}
        self.variables: dict[int, tuple] = {}
        self.kept: list[Any] = []  # as long as their ids are in use
        self.read(first.reads)
        for tensor in captured_tensors(function):
            if is_of_levels(tensor, self.levels):
                self.captured[tensor_key(tensor)] = tensor
        for key in set(map(tensor_key, self.tensors)) - set(self.variables.values()):
            self.captured.pop(key, None)
        flat = [
            None if x is None else Tensor(np.asarray(convert_result(x, self.leaves)._example()))
            for x in nest.flatten(result)
        ]
        present = [None if leaf is None else True for leaf in flat]
        self.structure = nest.pack_sequence_as(result, present)
        self.avals: list[Any] = [_aval(tensor) for tensor in flat]
        self.first: list[Tensor | None] | None = flat
        self.results: dict[tuple, list[Tensor | None]] | None = {}

    def operands(self) -> tuple[Tensor, ...]:
        return (*self.tensors, *self.captured.values())

    def inside(self, tensors: Sequence[Tensor]) -> Run:
        keys = [*map(tensor_key, self.tensors), *self.captured]
        by_key = dict(zip(keys, tensors, strict=False))
        values = {number: by_key[key] for number, key in self.variables.items()}
        return Run(self.levels, by_key, values)

    def read(self, variables: dict[int, Any]) -> None:
        """Make Variables operands."""
        for number, variable in variables.items():
            if number not in self.variables:
                value = variable._read()
                self.variables[number] = key = tensor_key(value)
                self.captured[key] = value
                self.kept.append(variable)

    def values(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        if self.results is None:
            return self.call(*tensors)
        rows = tuple([level.row for level in self.levels])
        if rows not in self.results and self.first is not None:
            self.results[rows], self.first = self.first, None
        if rows in self.results:
            return self._present(self.results[rows])
        return self.call(*tensors)

    def run(self, *tensors: Tensor) -> list[Tensor]:
        """Run the function on tensors that stand for the operands."""
        filled = list(self.leaves)
        for (i, leaf), tensor in zip(self.places.items(), tensors, strict=False):
            filled[i] = float(tensor) if isinstance(leaf, Weak) else tensor
        inner = self.inside(tensors)
        with inner:
            result = self.run_function(*nest.pack_sequence_as(self.args, filled))
        flat = [None if x is None else convert_result(x, filled) for x in nest.flatten(result)]
        present = nest.flatten(self.structure)
        if len(flat) != len(present):
            raise InvalidArgumentError(
                f"`{self.name}` returned {len(flat)} results for one example, and {len(present)} "
                f"for another: return as many for each ({self.where()})"
            )
        more = [
            i
            for i, pair in enumerate(zip(flat, present, strict=True))
            if pair[0] is not None and not pair[1]
        ]
        if self.results is not None:
            self.results[tuple([level.row for level in self.levels])] = flat
        reads = {
            key: variable for key, variable in inner.reads.items() if key not in self.variables
        }
        if inner.met or reads or more:
            self._take_note(inner.met, reads, more, flat)
        return self._present(flat)

    def _take_note(
        self, met: dict[tuple, Any], reads: dict[int, Any], more: list[int], flat: list
    ) -> None:
        if self.results is None:
            words = f"returned result {more[0]}, which was None" if more else "used a tensor"
            raise NoValueError(
                f"`{self.name}` {words if more else words + ' that it captures'} in a later call "
                "of its program: pass all tensors that it uses as arguments, and return the same "
                f"number of results in each case ({self.where()})"
            )
        self.captured |= met
        present = nest.flatten(self.structure)
        for i in more:
            present[i], self.avals[i] = True, _aval(flat[i])
        self.structure = nest.pack_sequence_as(self.structure, present)
        raise _CapturesMore(reads)

    def _present(self, flat: Sequence[Tensor | None]) -> list[Tensor]:
        """Return the results without those that are None for all examples."""
        there = [i for i, is_there in enumerate(nest.flatten(self.structure)) if is_there]
        return fill_zeros([self.avals[i] for i in there], [flat[i] for i in there])


def code_key(function: Any) -> Any:
    """Return what stands for a function in each trace: its code, since functions are remade."""
    return getattr(function, "__code__", None) or type(function)


DEPTH = 3  # of functions that functions capture


def captured_tensors(function: Any, depth: int = DEPTH) -> Iterator[Tensor]:
    """Yield the tensors in the closure of a function, and in closures of functions in it."""
    for value in closure(function).values():
        for leaf in nest.flatten(value):
            if isinstance(leaf, Tensor):
                yield leaf
            elif depth and callable(leaf):
                yield from captured_tensors(leaf, depth - 1)


def _aval(tensor: Tensor | None) -> Aval | None:
    return None if tensor is None else Aval(tensor._data.shape, tensor._data.dtype)
