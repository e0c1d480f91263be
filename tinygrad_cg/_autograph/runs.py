"""Runs of a site that a tensor decides: both cases of a branch, or the rounds of a loop.

The operations are the public ones: `cond`, `while_loop`. A region is run first only to learn
which types its names have then (`FunctionTrace.trial`), so that both branches, and all rounds, can
give tensors of the same types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.conversion import INT32, Weak, convert, is_tensor
from .._core.kinds import is_inexact
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
from .._ops.shape import cast
from .._transforms import control_flow
from .merging import Carried, Kept, Mismatch, Plan, plan, undefined
from .names import CONTINUE, NORMAL, RETURN
from .state import ContainerPlace, ElementsPlace, is_same, places_of
from .traced import (
    Flow,
    Outcome,
    as_number,
    as_tensor,
    choose,
    current_trace,
    flow_number,
    is_trying,
    placeholders,
    possible_ways,
    trial,
    truth,
    without,
)

_MOST_TRIALS = 4  # until the types of a loop's names have to be found


class Run:
    """One run of a site, with the names of the function where it stands."""

    def __init__(self, helper: Any, number: int, names: dict, cells: Any):
        self.helper, self.number = helper, number
        self.site = helper.unit.sites[number]
        self.cells = dict(zip(cells.__code__.co_freevars, cells.__closure__, strict=True))
        self.names = {one: names.get(one, undefined) for one in self.site.mentioned}
        self.value = names.get("@value", undefined)
        self.places = places_of(self.site, self.names, self.cells, helper.names)
        self.before = [one.get() for one in self.places]

    def region(self, which: str) -> Callable:
        return self.helper.function(self.number, which, self.cells)

    def outcome(self, which: str, names: dict, flow: Any = 0, result: Any = None) -> Outcome:
        """Run a region; all but its names is as before afterwards, and among the names."""
        site = self.site
        arguments = [names.get(one, undefined) for one in site.mentioned]
        if site.target is not None and which != "test":
            arguments.append(names.get("@value", self.value))
        function = self.region(which)
        try:
            if which == "other" and not site.other:
                found = Outcome(flow, result, names)
            else:
                found = function(*arguments)
            after = [one.get() for one in self.places]
        finally:
            for place, value in zip(self.places, self.before, strict=True):
                place.set(value)
        kept: dict[Any, Any] = {one: found.names.get(one, undefined) for one in site.outs}
        for i, old in enumerate(self.before):
            kept[i] = old if is_same(old, after[i]) else after[i]
        return Outcome(found.flow, found.result, kept)

    def text(self, key: Any) -> str:
        return self.places[key].text if isinstance(key, int) else key

    # Branches --------------------------------------------------------------------------------

    def branch(self, test: Any, flow: Any, result: Any) -> Any:
        """Return how the two cases leave, and what they assign, as one."""
        run = [
            lambda: self.outcome("then", self.names),
            lambda: self.outcome("other", self.names, flow, result),
        ]
        with trial():
            samples = [one() for one in run]
        if current_trace() is None:  # in a batch: these are the values
            run = [lambda: samples[0], lambda: samples[1]]
        possible = [possible_ways(one.flow) for one in samples]
        if self.site.kind == "guard":  # what is not run has been left before
            possible[1] -= {NORMAL}
        together = possible[0] | possible[1]
        plans: dict[Any, Plan] = {}
        for key in samples[0].names:
            one, other = (sample.names[key] for sample in samples)
            for sample, ways in zip(samples, possible, strict=True):
                if sample.names[key] is undefined and one is not other:
                    self._check_defined(key, ways)
            plans[key] = self._plan(key, one, other)
        ends = [
            one.result if RETURN in ways else undefined
            for one, ways in zip(samples, possible, strict=True)
        ]
        plans["@ret"] = self._plan("@ret", *ends)
        fixed = next(iter(together)) if len(together) == 1 else None

        def tensors(one: Outcome) -> list[Tensor]:
            found = [] if fixed is not None else [flow_number(one.flow)]
            for key, kind in plans.items():
                if key == "@ret":
                    value = one.result if RETURN in possible_ways(one.flow) else undefined
                else:
                    value = one.names[key]
                found += kind.tensors(value)
            return found

        if is_trying():
            found = placeholders(tensors(samples[0]))
            return self._finish(found, plans, fixed, together)
        return choose(
            test,
            [lambda: tensors(run[0]()), lambda: tensors(run[1]())],
            lambda found: self._finish(found, plans, fixed, together),
        )

    def _finish(self, found: list, plans: dict, fixed: Any, together: frozenset) -> Any:
        flow = fixed if fixed is not None else Flow(found[0], together)
        position = 0 if fixed is not None else 1
        values = {}
        for key, kind in plans.items():
            values[key] = kind.pack(found[position : position + kind.count], as_number)
            position += kind.count
        return self.assign(values, flow)

    def assign(self, values: dict, flow: Any) -> Any:
        """Set what is outside of the function's names; return the names, and how it was left."""
        for i, place in enumerate(self.places):
            place.set(values[i])
        ways = self.site.leaves
        if self.site.kind in ("while", "for"):
            ways = ways - {CONTINUE}
        outs = [values[one] for one in self.site.outs]
        return [flow, values.get("@ret"), *outs] if ways else outs

    def _check_defined(self, key: Any, ways: frozenset) -> None:
        if isinstance(key, int) or not any(key in self.site.live[way] for way in ways):
            return
        raise self.helper.refusal(
            self.site.line,
            f"`{key}` is assigned in one case only, a tensor decides which, and it "
            "is read afterwards",
            f"Assign `{key}` before, or in both cases",
        )

    def _plan(self, key: Any, one: Any, other: Any) -> Plan:
        try:
            if isinstance(one, np.ndarray) and isinstance(key, int) and one is not other:
                raise Mismatch("an array with other elements")
            return plan(one, other)
        except Mismatch as error:
            what = "the result" if key == "@ret" else f"`{self.text(key)}`"
            raise self.helper.refusal(
                self.site.line,
                f"{what} becomes {error}, and a tensor decides which",
                "Make it a tensor of one shape and dtype in both cases: by zeros_like, cast or "
                "broadcast_to; collect results in a TensorArray rather than a list",
            ) from None


class Loop(Run):
    """One run of a loop that a tensor decides."""

    def __init__(
        self,
        helper: Any,
        number: int,
        names: dict,
        cells: Any,
        flow: Any,
        result: Any,
        iterable: Any = None,
    ):
        super().__init__(helper, number, names, cells)
        self.flow, self.result, self.iterable = flow, result, iterable
        self.is_for = iterable is not None
        if self.is_for:
            dtype = np.result_type(*[_range_dtype(one) for one in iterable.bounds])
            start, limit, delta = (
                Carried(np.dtype(dtype), (), False).tensor(one) for one in iterable.bounds
            )
            self.start, self.delta = start, delta
            distance = subtract(limit, start)
            if is_inexact(start.dtype):
                count = cast(ceil(divide(distance, delta)), INT32)
            else:
                count = cast(-floor_divide(-distance, delta), INT32)
            self.count = maximum(count, 0)

    def one_round(self, names: dict, index: Any) -> Outcome:
        values = dict(names)
        if self.is_for:
            values["@value"] = add(self.start, multiply(self.delta, cast(index, self.start.dtype)))
        for key, value in names.items():
            if isinstance(key, int):
                self.places[key].set(value)
        found = self.outcome("then", {**self.names, **values})
        return found._replace(flow=without(found.flow, {CONTINUE}))

    def test(self, names: dict) -> Any:
        if self.site.kind == "for":
            return True
        for key, value in names.items():
            if isinstance(key, int):
                self.places[key].set(value)
        return self.outcome("test", {**self.names, **names}).result

    def run(self) -> Any:
        site = self.site
        first: dict[Any, Any] = {one: self.names[one] for one in site.outs}
        first |= dict(enumerate(self.before))
        plans, sample, ways = self._find_types(first)
        carries_flow = ways != {NORMAL} or self.flow != 0
        if carries_flow:
            ways = ways | {NORMAL} | possible_ways(self.flow)
        ends = self.result if RETURN in possible_ways(self.flow) else undefined
        results = self._plan("@ret", sample if RETURN in ways else undefined, ends)

        def tensors(names: dict, flow: Any, result: Any) -> list[Tensor]:
            found = [flow_number(flow)] if carries_flow else []
            for key, kind in plans.items():
                found += kind.tensors(names[key])
            return found + results.tensors(result)

        def unpack(flat: list) -> tuple[Any, dict, Any]:
            flow = Flow(flat[0], ways) if carries_flow else NORMAL
            position, names = int(carries_flow), {}
            for key, kind in plans.items():
                names[key] = kind.pack(flat[position : position + kind.count], as_number)
                position += kind.count
            return flow, names, results.pack(flat[position:], as_number)

        def goes_on(index: Any, *flat: Any) -> Any:
            flow, names, _ = unpack(list(flat))
            tests = [] if not carries_flow else [equal(flow.number, NORMAL)]
            if self.is_for:
                tests.append(less(index, self.count))
            else:
                tests.append(as_tensor(truth(self.test(names), "while")))
            return tests[0] if len(tests) == 1 else logical_and(*tests)

        def body(index: Any, *flat: Any) -> tuple:
            _, names, _ = unpack(list(flat))
            found = self.one_round(names, index)
            end = found.result if RETURN in possible_ways(found.flow) else undefined
            return add(index, 1), *tensors(found.names, found.flow, end)

        start = tensors(first, self.flow, ends)
        if is_trying():
            flow, names, result = unpack(placeholders(start))
        else:
            last = control_flow.while_loop(goes_on, body, (convert(0, INT32), *start))
            flow, names, result = unpack(list(last[1:]))
        return self.assign({**names, "@ret": result}, flow)

    def _find_types(self, first: dict) -> tuple[dict[Any, Plan], Any, frozenset[int]]:
        """Return the types of what is carried, a result, and how rounds may be left."""
        names, plans = dict(first), {}
        result, ways = undefined, frozenset((NORMAL,))
        for _ in range(_MOST_TRIALS):
            with trial():
                found = self.one_round(names, convert(0, INT32))
                before = plans
                plans = {key: self._loop_plan(key, names[key], found.names[key]) for key in first}
                names = {
                    key: kind.pack(placeholders(kind.tensors(names[key])), as_number)
                    for key, kind in plans.items()
                }
            if RETURN in possible_ways(found.flow):
                result = found.result
            ways |= possible_ways(found.flow)
            if before and all(map(_are_same, before.values(), plans.values())):
                break
        return plans, result, ways

    def _loop_plan(self, key: Any, one: Any, other: Any) -> Plan:
        """Return the type of a value before a round, and after it."""
        if isinstance(key, int):
            is_container = isinstance(self.places[key], (ContainerPlace, ElementsPlace))
            if is_container and len(one) != len(other):
                raise self.helper.refusal(
                    self.site.line,
                    f"`{self.text(key)}` grows or shrinks in a loop that a tensor decides",
                    "Collect results in a TensorArray, or by map_fn or scan",
                )
        elif one is undefined and other is not undefined and not self._is_dead(key):
            raise self.helper.refusal(
                self.site.line,
                f"`{key}` has no value before a loop that a tensor decides, and is read after it: "
                "there may be no round",
                f"Assign `{key}` before the loop",
            )
        if one is not other and one is not undefined and other is undefined:
            raise self.helper.refusal(
                self.site.line,
                f"`{self.text(key)}` is deleted in a loop that a tensor decides",
                "Assign it in each round",
            )
        return self._plan(key, one, other)

    def _is_dead(self, key: str) -> bool:
        return key not in self.helper.unit.live.after[id(self.site.node)]


def _are_same(one: Plan, other: Plan) -> bool:
    """Return whether two plans have the same types, and keep the same values."""
    if len(one.leaves) != len(other.leaves):
        return False
    for a, b in zip(one.leaves, other.leaves, strict=True):
        if type(a) is not type(b):
            return False
        if isinstance(a, Kept) and isinstance(b, Kept):
            if a.value is not b.value:
                return False
        elif a != b:
            return False
    return True


def _range_dtype(value: Any) -> np.dtype:
    if is_tensor(value):
        return np.dtype(value.dtype)
    if isinstance(value, (Weak, float)):
        return np.dtype(np.float32)
    return INT32
