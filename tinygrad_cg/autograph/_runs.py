"""Runs of a site that a tensor decides: both cases of a branch, or the rounds of a loop.

The operations are the public ones, `cond` and `while_loop`. Before, each region runs as a trial
(`FunctionTrace.trial`), to find the types of its names: all branches and all rounds must give
tensors of the same types.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from .._core.conversion import INT32, Weak, convert, is_tensor, is_weak
from .._core.kinds import is_inexact
from .._core.levels import current_trace, state
from .._core.tensor import Tensor
from .._ops.elementwise import (
    add,
    ceil,
    divide,
    equal,
    floor_divide,
    less,
    logical_and,
    maximum,
    multiply,
    subtract,
)
from .._ops.indexing import gather
from .._ops.shape import cast
from .._transforms import control_flow
from .._transforms.tape import keep_tapes
from .._transforms.tensor_array import GrowingArrayError
from ..errors import AutographError, InaccessibleTensorError, OperatorNotAllowedInGraphError
from ._merging import Carried, Mismatch, Plan, plan, undefined
from ._names import CONTINUE, NORMAL, RETURN
from ._side_effects import (
    ContainerLocation,
    ElementsLocation,
    Location,
    Snapshot,
    is_same,
    locations_of,
    matters,
    reachable,
    restoring,
)
from ._traced import (
    Flow,
    Outcome,
    Range,
    as_tensor,
    choose,
    flow_number,
    is_trying,
    placeholders,
    possible_ways,
    stand_ins,
    trial,
    truth,
    without,
)
from ._units import Effects

_HOME = __name__.rpartition(".")[0]
_VARIES = "number of rounds depends on a tensor"
_MAX_TRIALS = 4  # for the types of a loop's names


class Watch:
    """Records the locations that functions may change in a run that stands for several, or for
    none.

    `locations` are the locations found so far, and `before` their values. A transformed function
    that is entered meanwhile adds what it may change, as far as that existed before.
    """

    def __init__(self, locations: Sequence[Location], roots: Iterable[Any]):
        self.locations: list[Location] = []
        self.before: list[Any] = []
        self._keys: set[tuple[int, str]] = set()
        self._roots = list(roots)
        self._there: dict[int, Any] | None = None
        for location in locations:
            self._add(location)

    def _add(self, location: Location) -> None:
        key = id(location.owner), type(location).__name__ + location.name
        if key not in self._keys:
            self._keys.add(key)
            self.locations.append(location)
            self.before.append(location.get())

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Return a context in which functions that are entered report what they may change."""
        if self._there is None:
            self._there = reachable(
                [*self._roots, *[location.owner for location in self.locations]]
            )
        state.watches.append(self)
        try:
            yield
        finally:
            state.watches.remove(self)

    def entered(self, locations: Sequence[Location], effects: Effects) -> None:
        """Record what a function may change, if it existed before."""
        assert self._there is not None
        names = {*effects.outer, *effects.globals}
        for location in locations:
            if location.text.partition(".")[0] in names or id(location.owner) in self._there:
                self._add(location)

    def put_back(self) -> None:
        for location, value in zip(self.locations, self.before, strict=True):
            location.set(value)


def cells_of(function: Any) -> dict[str, Any]:
    """Return the closure cells of a function by their names."""
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


class ChangedObjectError(AutographError, InaccessibleTensorError):
    """A side effect on a Python object, which a program cannot repeat."""


@contextlib.contextmanager
def unchanged(name: str, functions: Sequence[Any], unrolls: bool = False) -> Iterator[Any]:
    """Return a context for functions that a tensor may run conditionally or repeatedly.

    It gives a function. This returns a context in which the functions can be traced again, with the
    objects as they were.

    If the functions assign tensors or numbers to objects outside of them, the assignments are
    undone, and AutographError is raised. If the loop `unrolls`, the caller catches the error.
    """
    if any(str(getattr(function, "__module__", "")).startswith(_HOME) for function in functions):
        yield contextlib.nullcontext  # a site's run restores everything itself
        return
    watch = Watch([], functions)
    cause: Exception | None = None
    held: list[Snapshot] = []
    try:
        with watch.watching():
            yield lambda: held[0].restored() if held else contextlib.nullcontext()
    except InaccessibleTensorError as error:  # the second trace uses a tensor of the first
        cause = error
    except Exception as error:
        if not control_flow.is_users(error):  # the loop may be tried another way
            watch.put_back()
        raise
    for location, before in zip(watch.locations, watch.before, strict=True):
        if not is_same(before, location.get()) and matters(before, location.get()):
            watch.put_back()
            error = ChangedObjectError(
                f"{name}: `{location.text}` is changed by a function that is traced once, while a "
                "tensor decides whether it runs, or it runs in each round of a loop. Return the "
                "value as a result, or assign a Variable"
            )
            level = current_trace()
            if level is not None and not unrolls:
                level.calls.refused = error
            raise error from cause
    if cause is not None:
        raise cause
    held.append(Snapshot(functions, {}))


class Packing(NamedTuple):
    """The tensors that carry the end of a region: its flow, its names and its result.

    `plans` has the types by name; the result has the name "@ret". `ways` are the possible flows.
    """

    plans: dict[Any, Plan]
    ways: frozenset[int]

    def tensors(self, end: Outcome) -> list[Tensor]:
        tensors = [flow_number(end.flow)] if len(self.ways) > 1 else []
        values = {**end.names, "@ret": end.result_or_undefined}
        for key, kind in self.plans.items():
            tensors += kind.tensors(values[key])
        return tensors

    def unpack(self, tensors: Sequence[Tensor]) -> Outcome:
        supply = iter(tensors)
        flow = Flow(next(supply), self.ways) if len(self.ways) > 1 else next(iter(self.ways))
        names = {key: kind.pack(supply) for key, kind in self.plans.items()}
        return Outcome(flow, names.pop("@ret"), names)


class SiteRun(Watch):
    """One run of a site, with the names of the function around it.

    If it is `strict`, every change of an object counts as a side effect of the program.
    """

    strict = False

    def __init__(
        self,
        helper: Any,
        number: int,
        names: dict,
        cells: Any,
        flow: Any = NORMAL,
        result: Any = None,
    ):
        self.helper, self.number = helper, number
        self.flow, self.result = flow, result  # from before this site
        self.site = helper.unit.sites[number]
        self.cells = cells_of(cells)
        self.names = {name: names.get(name, undefined) for name in self.site.mentioned}
        self.value = names.get("@value", undefined)
        outer = [helper.names[name] for name in self.site.outer if name in helper.names]
        super().__init__(
            locations_of(self.site, self.names, self.cells, helper.names),
            [*self.names.values(), *self.cells.values(), *outer],
        )
        self.dense: dict[int, tuple[int, ...]] = {}  # shapes of TensorArrays that are tensors
        self.own = len(self.locations)  # further ones belong to functions that were called

    def outcome(self, which: str, names: dict) -> Outcome:
        """Run a region and undo its side effects; they are among the names of the outcome."""
        site = self.site
        arguments = [names.get(name, undefined) for name in site.mentioned]
        if site.target is not None and which != "test":
            arguments.append(names.get("@value", self.value))
        function = self.helper.function(self.number, which, self.cells)
        try:
            if which == "other" and not site.other:
                end = Outcome(self.flow, self.result, names)
            else:
                with self.watching(), keep_tapes():
                    end = function(*arguments)
            after = [location.get() for location in self.locations]
            for i, shape in self.dense.items():
                after[i] = self._rows(i, after[i], shape)
            if not self.strict:
                for i in range(self.own, len(after)):
                    if not matters(self.before[i], after[i]):  # happens while tracing
                        self.before[i] = after[i]
        finally:
            self.put_back()
        kept: dict[Any, Any] = {name: end.names.get(name, undefined) for name in site.outs}
        for i, old in enumerate(self.before):
            kept[i] = old if is_same(old, after[i]) else after[i]
        return Outcome(end.flow, end.result, kept)

    def _complete(self, names: dict) -> None:
        """Add the values of locations that were found later."""
        for i, value in enumerate(self.before):
            names.setdefault(i, value)

    def _rows(self, i: int, state: Any, shape: tuple[int, ...]) -> Tensor:
        """Return the elements of a TensorArray as one tensor."""
        if isinstance(state, Tensor):
            return state
        return self.locations[i].owner.rows_of(state, shape)

    def _find_dense(self, tables: Sequence[dict]) -> list[int]:
        """Find the arrays that differ and must become tensors; return those that are new.

        In the tables, which belong to a trial, they are replaced by tensors.
        """
        new = []
        for i, location in enumerate(self.locations):
            states = [table[i] for table in tables]
            if not isinstance(location, ElementsLocation) or all(
                is_same(state, states[0]) for state in states
            ):
                continue
            shapes = [tuple(state.shape[1:]) for state in states if isinstance(state, Tensor)]
            if i not in self.dense:
                lists = [state for state in states if isinstance(state, list)]
                written = {tuple(e is None for e in state) for state in lists}
                if not shapes and len(written) == 1:
                    continue  # lists of tensors, element by element
                shapes += [tuple(e.shape) for state in lists for e in state if e is not None]
                self.dense[i] = shapes[0]
                new.append(i)
            for table in tables:
                if not isinstance(table[i], Tensor):
                    rows = self._rows(i, table[i], self.dense[i])
                    table[i] = rows if current_trace() is None else stand_ins([rows], [rows])[0]
        return new

    def text(self, key: Any) -> str:
        return self.locations[key].text if isinstance(key, int) else key

    # Branches --------------------------------------------------------------------------------

    def branch(self, test: Any) -> Any:
        """Run both cases as a choice; return their common flow and what they assign."""
        run = [lambda: self.outcome("then", self.names), lambda: self.outcome("other", self.names)]
        with trial():
            samples = [case() for case in run]
            for sample in samples:
                self._complete(sample.names)
            self._find_dense([sample.names for sample in samples])
        possible = [possible_ways(sample.flow) for sample in samples]
        if self.site.kind == "guard":  # otherwise something has left before
            possible[1] -= {NORMAL}
        plans: dict[Any, Plan] = {}
        for key in samples[0].names:
            value, other = (sample.names[key] for sample in samples)
            for sample, ways in zip(samples, possible, strict=True):
                if sample.names[key] is undefined and value is not other:
                    self._check_defined(key, ways)
            plans[key] = self._plan(key, value, other)
        ends = [
            sample.result if RETURN in ways else undefined
            for sample, ways in zip(samples, possible, strict=True)
        ]
        plans["@ret"] = self._plan("@ret", *ends)
        packing = Packing(plans, possible[0] | possible[1])
        chosen = choose(test, run, samples, packing.tensors)
        return self.assign(packing.unpack(chosen))

    def assign(self, end: Outcome) -> Any:
        """Set the locations outside of the function's names; return the flow and the names."""
        for i, location in enumerate(self.locations):
            if i in end.names:
                location.set(end.names[i])
        outs = [end.names[name] for name in self.site.outs]
        return [end.flow, end.result, *outs] if self.site.ways else outs

    def _check_defined(self, key: Any, ways: frozenset) -> None:
        if isinstance(key, int) or not any(key in self.site.live[way] for way in ways):
            return
        is_loop = self.site.is_loop
        when = "if the loop runs" if is_loop else "in one branch of the `if`"
        raise self.helper.refusal(
            self.site.line,
            f"`{key}` gets a value only {when}, but is read later. The condition is a tensor, so "
            f"`{key}` needs a value in both cases",
            f"Assign `{key}` before the {'loop' if is_loop else '`if`'}",
        )

    def _plan(self, key: Any, value: Any, other: Any) -> Plan:
        try:
            if isinstance(value, np.ndarray) and isinstance(key, int) and value is not other:
                raise Mismatch("an array", "an array with other elements")
            return plan(value, other)
        except Mismatch as error:
            what = "the result" if key == "@ret" else f"`{self.text(key)}`"
            text = "{} is {} after one branch and {} after the other"
            remedy = (
                "The condition is a tensor, so both branches must give the same structure, shape "
                "and dtype"
            )
            if self.site.is_loop:
                text = "{} is {} before the loop body and {} after it"
                remedy = (
                    f"The {_VARIES}, so the structure, shape and dtype must stay the same. To "
                    "collect values, use a TensorArray"
                )
            raise self.helper.refusal(
                self.site.line,
                text.format(what, *error.args),
                remedy,
                isinstance(value, list) and isinstance(other, list) and len(value) != len(other),
            ) from None


class LoopRun(SiteRun):
    """One run of a loop that a tensor decides."""

    count: Any = None
    """The number of rounds of a `for`; an int where it is known."""
    rows: Tensor | None = None
    held: Snapshot | None = None

    def item(self, index: Any) -> Any:
        """Return the value that a `for` assigns in a round."""
        return undefined

    def check_round(self, first: dict, end: Outcome) -> None:
        """Raise an exception if a round cannot be that of a loop of the program."""

    def check_types(self) -> None:
        """Raise an exception if types do not stay the same from round to round."""

    def one_round(self, names: dict, item: Any) -> Outcome:
        values = dict(names)
        if item is not undefined:
            values["@value"] = item
        with self._at(names):
            end = self.outcome("then", {**self.names, **values})
        return end._replace(flow=without(end.flow, {CONTINUE}))

    @contextlib.contextmanager
    def _at(self, names: dict) -> Iterator[None]:
        """Return a context in which objects are as when a round starts, also in a later trace."""
        held = contextlib.nullcontext() if self.held is None else self.held.restored()
        with restoring(self.locations), held:
            for key, value in names.items():
                if isinstance(key, int):
                    self.locations[key].set(value)
            yield

    def test(self, names: dict) -> Any:
        with self._at(names):
            return self.outcome("test", {**self.names, **names}).result

    def run(self) -> Any:
        site = self.site
        first: dict[Any, Any] = {name: self.names[name] for name in site.outs}
        first |= dict(enumerate(self.before))
        plans, sample, ways = self._find_types(first)
        if self.flow != NORMAL or ways != {NORMAL}:
            ways = ways | {NORMAL} | possible_ways(self.flow)
        carries_flow = ways != {NORMAL}
        before = Outcome(self.flow, self.result, first)
        end = sample.result if RETURN in ways else undefined
        plans["@ret"] = self._plan("@ret", end, before.result_or_undefined)
        packing = Packing(plans, ways)

        def goes_on(index: Any, *flat: Any) -> Any:
            end = packing.unpack(flat)
            tests = [equal(end.flow.number, NORMAL)] if carries_flow else []
            if self.count is not None:
                tests.append(less(index, self.count))
            else:
                tests.append(as_tensor(truth(self.test(end.names), "while")))
            return tests[0] if len(tests) == 1 else logical_and(*tests)

        def body(index: Any, *flat: Any) -> tuple:
            end = self.one_round(packing.unpack(flat).names, self.item(index))
            return add(index, 1), *packing.tensors(end)

        def step(flat: list, item: Any) -> tuple[list, None]:
            return packing.tensors(self.one_round(packing.unpack(flat).names, item)), None

        start = packing.tensors(before)
        if is_trying():
            last = stand_ins(start, packing.tensors(sample))
        elif self.rows is not None and not carries_flow:
            slices = control_flow.Slices(0, [self.rows], self.count)
            last, _ = control_flow.loop("for", step, start, slices)
        else:
            _, *last = control_flow.while_loop(goes_on, body, (convert(0, INT32), *start))
        self.held = Snapshot(self._roots, self.helper.names, self.site.outer)
        after = packing.unpack(last)
        if self.site.is_endless and carries_flow:
            after = after._replace(flow=RETURN)
        return self.assign(after)

    def _find_types(self, first: dict) -> tuple[dict[Any, Plan], Outcome, frozenset[int]]:
        """Return the types of the carried names, the outcome of a round, and the possible flows."""
        names: dict = dict(first)
        plans: Any = None
        result, ways = undefined, frozenset((NORMAL,))
        for _ in range(_MAX_TRIALS):
            with trial():
                item = self.item(placeholders([convert(0, INT32)])[0])  # no value, as in the loop
                end = self.one_round(names, item)
                for table in (first, names, end.names):
                    self._complete(table)
                before = plans
                dense = self._find_dense([names, end.names])
                self.check_round(first, end)
                plans = {key: self._loop_plan(key, names[key], end.names[key]) for key in first}
                names = {
                    key: kind.pack(placeholders(kind.tensors(names[key])))
                    for key, kind in plans.items()
                }
            for i in dense:
                first[i] = self._rows(i, first[i], self.dense[i])
            if RETURN in possible_ways(end.flow):
                result = end.result
            ways |= possible_ways(end.flow)
            if before is not None and all(
                before[key].leaves == plans[key].leaves for key in before
            ):
                break
        else:
            self.check_types()
        return plans, end._replace(result=result), ways

    def _loop_plan(self, key: Any, value: Any, other: Any) -> Plan:
        """Return the common type of a value before and after a round."""
        if isinstance(key, int):
            is_container = isinstance(self.locations[key], (ContainerLocation, ElementsLocation))
            if is_container and len(value) != len(other):
                change = "grows" if len(other) > len(value) else "shrinks"
                is_array = isinstance(self.locations[key], ElementsLocation)
                raise self.helper.refusal(
                    self.site.line,
                    f"`{self.text(key)}` {change} in a loop whose {_VARIES}",
                    "Give the TensorArray a known `size`, or use map_fn or scan"
                    if is_array
                    else "Collect results in a TensorArray of known `size`, or use map_fn or scan",
                    length_varies=True,
                )
        elif value is undefined and other is not undefined and not self.may_begin_without(key):
            raise self.helper.refusal(
                self.site.line,
                f"`{key}` has no value before the loop, but is read after it. The {_VARIES}, and "
                "may be zero",
                f"Assign `{key}` before the loop",
            )
        if value is not other and value is not undefined and other is undefined:
            raise self.helper.refusal(
                self.site.line,
                f"`{self.text(key)}` is deleted in a loop whose {_VARIES}",
                "Assign it in each round",
            )
        return self._plan(key, value, other)

    def may_begin_without(self, key: str) -> bool:
        """Return whether a name may be undefined before the loop."""
        return key not in self.site.after


class RangeLoopRun(LoopRun):
    """One run of a `for` through a range whose length a tensor decides."""

    def __init__(self, iterable: Range, *site: Any):
        super().__init__(*site)
        dtype = np.result_type(*[_range_dtype(bound) for bound in iterable.bounds])
        start, limit, delta = (
            Carried(np.dtype(dtype), (), False).tensor(bound) for bound in iterable.bounds
        )
        self.start, self.delta = start, delta
        distance = subtract(limit, start)
        if is_inexact(start.dtype):
            count = cast(ceil(divide(distance, delta)), INT32)
        else:
            count = cast(-floor_divide(-distance, delta), INT32)
        self.count = maximum(count, 0)

    def run(self) -> Any:
        try:
            return super().run()
        except GrowingArrayError as error:
            asks = OperatorNotAllowedInGraphError(str(error))
            asks.size_of = self.count
            raise asks from None

    def item(self, index: Any) -> Any:
        return add(self.start, multiply(self.delta, cast(index, self.start.dtype)))


class _Unrolled(Exception):
    """A loop over rows cannot become a loop of the program."""


class RowsLoopRun(LoopRun):
    """One run of a `for` over the rows of a tensor, or over a range, as a loop of the program.

    It raises an exception if Python's own loop would do something else.
    """

    strict = True

    def __init__(self, iterable: Any, *site: Any):
        super().__init__(*site)
        is_range = isinstance(iterable, range)
        self.rows = rows = Tensor(np.array(iterable, INT32)) if is_range else convert(iterable)
        self.count = rows.shape[0]

    def item(self, index: Any) -> Any:
        return gather(self.rows, index)

    def may_begin_without(self, key: str) -> bool:
        return True

    def check_round(self, first: dict, end: Outcome) -> None:
        leaves = possible_ways(end.flow) != {NORMAL}
        if leaves and any(first[key] is undefined for key in self.site.outs):
            raise _Unrolled("a name may have no value afterwards")
        drawn = current_trace().drawn_in_trial
        if len(drawn) > 1 or "integers" in drawn:
            raise _Unrolled("random numbers would be drawn in another order")
        for key in first:
            value = end.names[key]
            if value is first[key]:
                continue
            leaves = [value] if value is undefined else nest.flatten(value)
            old = [first[key]] if first[key] is undefined else nest.flatten(first[key])
            if any(is_weak(leaf) and not any(leaf is two for two in old) for leaf in leaves):
                raise _Unrolled("a number that Python computes")

    def check_types(self) -> None:
        raise _Unrolled("types that change")


def _range_dtype(value: Any) -> np.dtype:
    if is_tensor(value):
        return np.dtype(value.dtype)
    if isinstance(value, (Weak, float)):
        return np.dtype(np.float32)
    return INT32
