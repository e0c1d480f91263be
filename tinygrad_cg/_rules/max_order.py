"""Limits on the order of derivatives of a custom gradient: ``custom_gradient(f, max_order=n)``.

The function gets aliases of its inputs, and the rule aliases of the upstream gradients: each alias
has its own node. The gradients that a rule returns get a node, too, which depends on the inputs. A
sweep that passes a gradient of order k asks for order k + 1 with respect to the inputs. With
respect to an upstream gradient it asks for order k again, since a rule is linear in it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy import ndarray

from .. import nest
from .._core.conversion import convert, is_weak
from .._core.kinds import is_differentiable
from .._core.levels import Listener, remove_listener, stack, state
from .._core.record import find, with_wholes
from .._core.tensor import Tensor
from .._reverse.variable import Variable
from ..errors import DerivativeOrderError
from .definition import Definition, source_line
from .rebinding import TransformedCall, rebind_outputs


def limit(function: Callable[..., Any], definition: Definition, most: int) -> Callable[..., Any]:
    """Return `function`, which returns (y, grad_fn), with a rule for orders up to `most`."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if state.frame is None:  # no derivative can be asked for
            return function(*args, **kwargs)
        limit = Limit(definition, most)
        aliases: dict[int, Tensor] = {}

        def guarded(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or not is_differentiable(leaf._data.dtype):
                return leaf
            if id(leaf) not in aliases:
                aliases[id(leaf)] = limit.guard(leaf)
            return aliases[id(leaf)]

        inputs = nest.map_structure(guarded, (args, kwargs))
        with limit.variables():
            result = function(*inputs[0], **inputs[1])
        if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
            return result  # which the caller refuses
        return result[0], limit.rule(result[1], aliases)

    functools.update_wrapper(run, function)
    return run


@dataclass(eq=False)
class Limit(Listener):
    """The orders that were asked of one call of a limited function."""

    definition: Definition
    most: int
    inputs: list[Tensor] = field(default_factory=list)
    followers: set[Any] = field(default_factory=set)  # of the inputs: the accumulators' tokens
    reached: tuple[Any, int] = (None, 0)  # a sweep, and the highest order it came through
    read: dict[int, tuple[Variable, Any]] = field(default_factory=dict)

    def rule(self, grad_fn: Callable[..., Any], aliases: dict[int, Tensor]) -> Callable[..., Any]:
        """Return `grad_fn` with aliases of its arguments and results."""

        @functools.wraps(grad_fn)
        def ruled(*dys: Any, **keywords: Any) -> Any:
            if "upstream" in keywords:  # Keras's way: the inputs, and the upstream gradients
                keywords["upstream"] = nest.map_structure(self.upstream, keywords["upstream"])
                dys = tuple([aliases.get(id(dy), dy) for dy in dys])
            else:
                dys = tuple(map(self.upstream, dys))
            with self.variables():
                returned = grad_fn(*dys, **keywords)
            dtype = nest.flatten(keywords.get("upstream", dys))[0].dtype

            def guarded(leaf: Any) -> Any:
                if isinstance(leaf, ndarray) or is_weak(leaf):
                    leaf = convert(leaf, dtype if is_weak(leaf) else None)
                return self.gradient(leaf, 1)

            return nest.map_structure(guarded, returned)

        return ruled

    # Aliases ---------------------------------------------------------------------------------

    def guard(self, tensor: Tensor) -> Tensor:
        """Return an alias of an input: a sweep that reaches it has differentiated once more."""
        alias = self._alias(tensor, 1)
        self.inputs.append(tensor)
        for whole in with_wholes(alias):
            self.followers |= {token for token in _accumulators() if find(whole._rec, token)}
        return alias

    def upstream(self, dy: Tensor) -> Tensor:
        """Return an alias of an upstream gradient, whose gradient has the order of its use."""
        return self._alias(dy, 0)

    def _alias(self, tensor: Tensor, more: int) -> Tensor:
        def vjp(dys: Sequence, targets: Sequence) -> list:
            sweep, order = self.reached
            if order and sweep is state.sweep:
                return [self.gradient(dy, order + more) for dy in dys]
            return list(dys)

        return self._pass_through([tensor], vjp, lambda tangent, token: tangent)

    def gradient(self, value: Any, order: int) -> Any:
        """Return an alias of a gradient of some order, which checks further derivatives."""
        if not isinstance(value, Tensor):
            return value
        self._check(order)

        def vjp(dys: Sequence, targets: Sequence) -> list:
            if state.sweep is not None and any(target is not None for target in targets[1:]):
                self._check(order + 1)
            sweep, highest = self.reached
            self.reached = state.sweep, max(order, highest if sweep is state.sweep else 0)
            return [*dys, *[None] * (len(targets) - 1)]

        def jvp_of_input(tangent: Any, token: Any) -> Any:
            return self.gradient(tangent, order + (token in self.followers))

        return self._pass_through([value, *self.inputs], vjp, jvp_of_input)

    def _pass_through(self, inputs: list[Tensor], vjp: Callable, jvp_of_input: Callable) -> Tensor:
        """Return the first of `inputs` as a tensor that depends on all of them."""
        if state.frame is None:
            return inputs[0]
        call = TransformedCall(self.definition, vjp, jvp_of_input)
        return rebind_outputs(state.frame, call, inputs, inputs[:1])[0]

    def _check(self, order: int) -> None:
        """Raise if the order is too high; each active accumulator adds one."""
        order += sum(token in self.followers for token in _accumulators())
        if order > self.most:
            raise DerivativeOrderError(
                f"`{self.definition.name}`: the derivative of order {order} was requested, but "
                f"its rule is for orders up to max_order={self.most} ({self.definition.where()}). "
                "Watch only tensors that need derivatives, or write a rule that is right at this "
                "order and raise max_order",
                function=self.definition.name,
                line=source_line(self.definition.function),
                order=order,
                max_order=self.most,
            )

    # Variables -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def variables(self) -> Iterator[None]:
        """Make values of Variables that are read inside the context inputs, too."""
        state.listeners.append(self)
        before, self.read = self.read, {}
        try:
            yield
        finally:
            remove_listener(self)
            for variable, record in self.read.values():
                variable._rec = record
            self.read = before

    def variable_read(self, variable: Variable) -> None:
        """Give all reads of a Variable in the context the record of one alias."""
        record = variable._rec
        if record is None or not variable.trainable or id(variable) in self.read:
            return
        self.read[id(variable)] = (variable, record)
        data = state.overrides.get(id(variable), variable._data)
        tensor = data._with_record(record) if isinstance(data, Tensor) else Tensor(data, record)
        variable._rec = self.guard(tensor)._rec


def _accumulators() -> list[Any]:
    """Return the tokens of the active forward accumulators."""
    tokens = [getattr(level, "_token", None) for level in stack(state.frame)]
    return [token for token in tokens if token is not None]
