"""custom_vmap: functions with a batching rule of their own.

Inside `vmap` the rule computes the results of all examples at once. Tapes, accumulators and traces
see the call as one operation. Its gradient differentiates the rule's operations, example by
example, and is such a call again; so it can be differentiated to any order. Modelled on
``jax.custom_batching.custom_vmap``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

from .. import nest
from .._core.conversion import convert, is_tensor
from .._core.kinds import is_differentiable
from .._core.levels import run_on, state
from .._core.record import with_wholes
from .._core.tensor import Tensor
from .._ops.shape import identity
from .._reverse.sweep import gradients_of_call
from .._rules.definition import Definition
from .._rules.rebinding import TransformedCall, at_positions, rebind_outputs
from ..errors import InvalidArgumentError
from .batching import Batch, BatchTensor, vmap
from .declared import detach, is_recorded_here
from .forward import ForwardAccumulator
from .transposition import no_unit_vectors

P = ParamSpec("P")
Y = TypeVar("Y")


class custom_vmap(Generic[P, Y]):
    """Decorate a function with its own rule for batches, declared by ``def_vmap``.

    Parameters
    ----------
    f:
        A function of nested tensors that returns nested tensors.

    ``f.def_vmap(rule)``, also a decorator, declares the rule that `vmap` uses instead of the
    operations of `f`: ``rule(axis_size, in_batched, *args)`` returns ``(out, out_batched)``. `args`
    are the arguments of `f`; a tensor that differs between examples has one more axis in front, of
    size `axis_size`, and True in `in_batched`, which has the structure of `args`. `out` has the
    structure of the result of `f`, and `out_batched` is True for a result with that axis: one bool
    for all, or the structure of `out`. Nested `vmap`s call the rule once each.

    Gradients inside and outside of a `vmap`, forward mode included, differentiate the rule, which
    runs again for them; with `custom_gradient` it has its own gradient. The rule must return the
    same as `f` for each example. It must not capture watched tensors: pass them as arguments.

    Raises TypeError if `f` is not a function, for a call inside `vmap` without a rule, and for a
    rule that does not return a pair or captures watched tensors; ValueError for results without the
    axis.

    >>> @tf.custom_vmap
    ... def solve(a, b):
    ...     return one_solution(a, b)
    >>> @solve.def_vmap
    ... def solve_all(axis_size, in_batched, a, b):
    ...     return many_solutions(a, b), True

    Modelled on ``jax.custom_batching.custom_vmap``.
    """

    def __init__(self, f: Callable[P, Y]):
        if not callable(f):
            raise TypeError(f"custom_vmap decorates a function, got {type(f).__name__} {f!r}")
        functools.update_wrapper(self, f, updated=())
        self._function = f
        self._rule: Callable[..., Any] | None = None
        self._definition = Definition(f)

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the rule for batches, and return it. TypeError unless `rule` is a function."""
        if not callable(rule):
            raise TypeError(
                f"custom_vmap: the rule of `{self._definition.name}` for batches must be a "
                f"function, got {type(rule).__name__}"
            )
        self._rule = rule
        return rule

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self._definition.name} with {'a' if self._rule else 'no'} rule for batches>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Y:
        frame = state.frame
        if frame is None or frame.level is None:
            return self._function(*args, **kwargs)
        level = _batch_of(frame, nest.flatten((args, kwargs)))
        if level is None:
            return self._function(*args, **kwargs)
        if self._rule is None:
            self._refuse("has no rule for batches: declare it by `@{name}.def_vmap`", TypeError)
        return self._call_batched(level, self._positional(args, kwargs))

    def _refuse(self, words: str, kind: type[Exception]) -> NoReturn:
        name = self._definition.name
        rule = self._definition.where(self._rule) if self._rule else self._definition.where()
        raise kind(f"custom_vmap: `{name}` {words.replace('{name}', name)} ({rule})")

    def _positional(self, args: tuple, kwargs: dict) -> list:
        """Return the arguments by position, as the rule gets them."""
        if not kwargs:
            return list(args)
        bound = inspect.signature(self._function).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            names = ", ".join(bound.kwargs)
            self._refuse(f"takes {names} by keyword only, which rules do not support", TypeError)
        return list(bound.args)

    def _call_batched(self, level: Batch, args: list) -> Any:
        leaves = nest.flatten(args)
        positions = [i for i, leaf in enumerate(leaves) if is_tensor(leaf)]
        structure: list[Any] = []

        def run(values: Sequence[Tensor], batched: Sequence[bool]) -> list[Tensor]:
            """Run the rule on physical tensors; all results get the batch's axis."""
            filled, flags = list(leaves), [False] * len(leaves)
            for position, value, flag in zip(positions, values, batched, strict=True):
                filled[position], flags[position] = value, flag
            inner = nest.pack_sequence_as(args, filled)
            in_batched = nest.pack_sequence_as(args, flags)
            out, outputs = self._run_rule(level.size, in_batched, inner)
            structure[:] = [out]
            return outputs

        call = _BatchedOperation(self._definition, level, run)
        results = call.apply([convert(leaves[i]) for i in positions])
        return nest.pack_sequence_as(structure[0], results)

    def _run_rule(self, size: int, in_batched: Any, args: Any) -> tuple[Any, list[Tensor]]:
        rule: Any = self._rule
        returned = rule(size, list(in_batched), *args)
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            got = type(returned).__name__
            self._refuse(
                f"has a rule for batches that must return (out, out_batched), got {got}", TypeError
            )
        out, out_batched = returned
        leaves = nest.flatten(out)
        flags = nest.flatten(out_batched)
        if not nest.is_nested(out_batched):
            flags *= len(leaves)
        if len(flags) != len(leaves):
            self._refuse(
                f"has a rule for batches that returns {len(leaves)} results, and out_batched for "
                f"{len(flags)}: give one bool, or one for each",
                ValueError,
            )
        outputs = []
        for i, (leaf, flag) in enumerate(zip(leaves, flags, strict=True)):
            output = convert(leaf)
            shape = tuple(output._data.shape)
            if flag and shape[:1] != (size,):
                self._refuse(
                    f"has a rule for batches whose result {i} has shape {shape}, without a first "
                    f"axis of size {size}: add the axis, or return False in out_batched",
                    InvalidArgumentError,
                )
            outputs.append(output if flag else Batch(size).physical(output))
        return out, outputs


def _batch_of(frame: Any, leaves: Sequence) -> Batch | None:
    """Return the innermost batch that one of the arguments belongs to."""
    while frame is not None and frame.level is not None:
        level = frame.level
        if level.is_abstract:  # the traced program is batched as a whole
            return None
        if isinstance(level, Batch) and any(level.has(leaf) for leaf in leaves):
            return level
        frame = frame.lower
    return None


class _BatchedOperation:
    """A function of the tensors of all examples, as one operation on each example.

    ``run(values, batched)`` takes the physical tensors; those that are `batched` have the batch's
    axis. It returns a list of tensors that all have this axis.
    """

    def __init__(self, definition: Definition, level: Batch, run: Callable[..., list[Tensor]]):
        self.definition = definition
        self.level = level
        self.run = run

    def apply(self, inputs: Sequence[Tensor]) -> list:
        """Return the results for one example, with a rule for all levels that record."""
        frame = state.frame
        values = list(map(detach, inputs))
        outputs = self._compute(frame, values, self.run)

        def vjp(dys: Sequence, targets: Sequence) -> list:
            asked = [
                i
                for i, target in enumerate(targets)
                if target is not None and is_differentiable(inputs[i]._data.dtype)
            ]
            if not asked:
                return [None] * len(inputs)
            gradient = functools.partial(self._gradient, len(dys), asked)
            call = _BatchedOperation(self.definition, self.level, gradient)
            return at_positions(asked, call.apply([*dys, *inputs]), len(inputs))

        moved = [i for i, output in enumerate(outputs) if is_differentiable(output._data.dtype)]

        def jvp(tangents: Sequence) -> list:
            moving = [i for i, tangent in enumerate(tangents) if tangent is not None]
            run = functools.partial(self._tangent, len(inputs), moving, moved)
            call = _BatchedOperation(self.definition, self.level, run)
            with no_unit_vectors():  # as many as the batch has elements: one example has fewer
                results = call.apply([*inputs, *[tangents[i] for i in moving]])
            return at_positions(moved, results, len(outputs))

        call = TransformedCall(self.definition, vjp, None, jvp)
        return rebind_outputs(frame, call, inputs, outputs)

    def _gradient(
        self, count: int, asked: Sequence[int], values: Sequence[Tensor], batched: Sequence[bool]
    ) -> list[Tensor]:
        """Return each example's gradients of `run` with respect to the inputs `asked`."""
        repeated = [*range(count), *[count + i for i in asked]]
        full, flags = self._repeated(repeated, values, batched)
        dys, inputs = full[:count], full[count:]
        return gradients_of_call(lambda inputs: self.run(inputs, flags[count:]), inputs, asked, dys)

    def _repeated(
        self, repeated: Sequence[int], values: Sequence[Tensor], batched: Sequence[bool]
    ) -> tuple[list[Tensor], list[bool]]:
        """Return the values and flags, where those of the numbers `repeated` have the axis."""
        flags = [flag or i in repeated for i, flag in enumerate(batched)]
        triples = zip(values, batched, flags, strict=True)
        full = [self.level.physical(x) if flag and not has else x for x, has, flag in triples]
        return full, flags

    def _tangent(
        self,
        count: int,
        moving: Sequence[int],
        moved: Sequence[int],
        values: Sequence[Tensor],
        batched: Sequence[bool],
    ) -> list[Tensor]:
        """Return the tangents of the outputs `moved`, from those of the inputs `moving`."""
        repeated = [*moving, *range(count, len(values))]
        full, flags = self._repeated(repeated, values, batched)
        inputs, directions = full[:count], full[count:]
        for i in moving:
            inputs[i] = identity(inputs[i])
        with ForwardAccumulator([inputs[i] for i in moving], directions) as accumulator:
            outputs = self.run(inputs, flags[:count])
        return accumulator.jvp([outputs[i] for i in moved], "zero")

    def _compute(self, frame: Any, values: Sequence[Any], run: Callable[..., list]) -> list:
        """Return the results as tensors of the batches from `frame` down to the call's batch."""
        if frame is None or frame.level is None:
            raise TypeError(
                f"custom_vmap: a gradient of `{self.definition.name}`, inside vmap, was requested "
                "outside of it: return it from the function"
            )
        level = frame.level
        if level is self.level:
            batched = [level.has(value) for value in values]
            physical = [value.physical if level.has(value) else value for value in values]
            results = run_on(frame.lower, run, physical, batched)
            # a result must not depend on a watched tensor that is not an input
            if any(is_recorded_here(x) for result in results for x in with_wholes(result)):
                raise TypeError(
                    f"custom_vmap: the rule for batches of `{self.definition.name}` captures a "
                    "tensor or Variable that is watched: pass it as an argument "
                    f"({self.definition.where()})"
                )
            return [BatchTensor(result, level) for result in results]
        if not isinstance(level, Batch) or not any(map(level.has, values)):
            return self._compute(frame.lower, values, run)
        around = [level.has(value) for value in values]
        below = [value.physical if level.has(value) else value for value in values]
        results = self._compute(
            frame.lower, below, functools.partial(self._run_for_each, run, around)
        )
        return [BatchTensor(result, level) for result in results]

    def _run_for_each(
        self,
        run: Callable[..., list],
        around: Sequence[bool],
        values: Sequence[Tensor],
        batched: Sequence[bool],
    ) -> list:
        """Run once for each example of a batch inside the call's batch."""
        pairs = zip(values, around, batched, strict=True)
        values = [self.level.physical(v) if inner and not b else v for v, inner, b in pairs]
        flags = [inner or b for inner, b in zip(around, batched, strict=True)]
        axes = [1 if inner else None for inner in around]
        return vmap(lambda *examples: run(examples, flags), tuple(axes), 1)(*values)
