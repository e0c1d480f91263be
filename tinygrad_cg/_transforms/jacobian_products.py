"""Functions declared by products of their derivatives with vectors.

The derivative D^k f has two products: the tangent ``Q_k(w1..wk) = D^k f[w1..wk]``, and its adjoint
in the last direction, ``P_k(dy, w1..w(k-1))``, where ``<P_k(dy, w1..w(k-1)), wk> = <dy,
Q_k(w1..wk)>``. D^k f is symmetric, so the derivatives of both products are such products again, and
each has a known rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from .. import nest
from .._core.conversion import convert, convert_result
from .._core.kinds import is_differentiable
from .._core.levels import Token, state
from .._core.record import run_recorded
from .._core.tensor import Aval, Tensor
from .._ops.creation import fill_zeros
from .._ops.elementwise import add
from .._ops.shape import cast, identity
from .._reverse.sweep import differentiate_once
from .._rules.calls import gradients_of_function
from .._rules.outside_runs import run_code, run_rule
from .._rules.rebinding import TransformedCall, rebind_outputs
from .._rules.user_ops import NoGradientError
from ..errors import InvalidArgumentError
from .declared import CallContext, Declared, context_of, detach, refuse_captured
from .transposition import transpose_vjp


class Products(Declared):
    """A function with declared products, the k-th of `vjps` and `jvps` for order k."""

    def __init__(self, f: Callable[..., Any], vjps: list, jvps: list, beyond: str):
        super().__init__(f, beyond)
        self.function = f
        self.last = max(len(vjps), len(jvps))
        self.vjps = vjps + [None] * (self.last - len(vjps))
        self.jvps = jvps + [None] * (self.last - len(jvps))
        for k, pair in enumerate(zip(self.vjps, self.jvps, strict=True), 1):
            if pair == (None, None):
                raise TypeError(
                    f"custom_derivatives: neither a vjp nor a jvp of order {k} is declared for "
                    f"{self.definition.name}"
                )

    def __call__(self, *args: Any, **options: Any) -> Any:
        context = context_of(self.definition, args, options)
        detached = list(map(detach, context.args))
        y = run_code(self.definition, partial(self.function, **options), detached, self.function)
        outputs = [convert_result(leaf, context.args) for leaf in nest.flatten(y)]
        call = _ProductsCall(self, context, y, [_aval(output) for output in outputs])
        jvp = None if self.jvps[:1] in ([], [None]) else call.jvp
        results = call.rebind(outputs, context.inputs, call.vjp, jvp)
        return nest.pack_sequence_as(y, results)


def _aval(tensor: Tensor) -> Aval:
    return Aval(tuple(tensor._data.shape), tensor._data.dtype)


class _ProductsCall:
    """One call of such a function.

    Upstream gradients (`dys`) are lists with a tensor for each output. Directions are lists with a
    tensor for each input, or None.
    """

    def __init__(self, products: Products, context: CallContext, structure: Any, avals: list[Aval]):
        self.products = products
        self.definition = products.definition
        self.context = context
        self.structure = structure
        self.avals = avals
        self.targets = [
            None if tensor is None or not is_differentiable(tensor._data.dtype) else _aval(tensor)
            for tensor in context.inputs
        ]

    def rebind(
        self, values: Sequence, inputs: Sequence, vjp: Callable, jvp: Callable | None = None
    ) -> list:
        """Return `values` with a rule; None stays None.

        ``jvp(tangents)`` returns the tangents of `values`, if they are known without a transpose.
        """
        outputs = [value for value in values if value is not None]
        for output in outputs:
            refuse_captured(self.definition, output)
        if state.frame is None:
            return list(values)
        present = [None if value is None else True for value in values]

        def fill(dys: Sequence, targets: Sequence) -> list:
            return vjp(_spread(dys, present), targets)

        def pick(tangents: Sequence) -> list:
            assert jvp is not None
            pairs = zip(jvp(tangents), present, strict=True)
            return [tangent for tangent, there in pairs if there]

        call = TransformedCall(self.definition, fill, None, None if jvp is None else pick)
        return _spread(rebind_outputs(state.frame, call, inputs, outputs), values)

    # The two products ------------------------------------------------------------------------

    def gradient(self, dys: list, directions: list[list]) -> list:
        """Return P_k with respect to each input; its rule is made of P_k, Q_k and P_(k+1)."""
        constants = [list(map(detach, part)) for part in (dys, *directions, self.context.args)]
        values = self._gradient(constants[0], constants[1:-1], constants[-1])

        def vjp(us: list, targets: Sequence) -> list:
            first, *others = self._split(targets, [dys, *directions, self.context.inputs])
            gradients = self.tangent([*directions, us]) if _any(first) else first
            gradients = [*gradients, *self._vjp_by_directions(others, dys, directions, us)]
            return _asked(gradients, targets)

        def jvp(tangents: Sequence) -> list:
            first, *others = self._split(tangents, [dys, *directions, self.context.inputs])
            parts = []
            if _any(first):
                parts.append(self.gradient(fill_zeros(self.avals, first), directions))
            for i, direction in enumerate(others[:-1]):
                if _any(direction):
                    parts.append(
                        self.gradient(dys, [*directions[:i], direction, *directions[i + 1 :]])
                    )
            if _any(others[-1]):
                parts.append(self._next(self.targets, dys, [*directions, others[-1]]))
            return _sum(parts)

        order, vjps = len(directions), self.products.vjps
        direct = None not in vjps[order : order + 2]
        inputs = [*dys, *chain(*directions), *self.context.inputs]
        return self.rebind(values, inputs, vjp, jvp if direct else None)

    def jvp(self, directions: Sequence) -> list:
        """Return the tangents of the function itself, as declared."""
        return self.tangent([list(directions)])

    def tangent(self, directions: list[list]) -> list:
        """Return Q_k of each output; its rule is made of P_k and P_(k+1)."""
        constants = [list(map(detach, part)) for part in (*directions, self.context.args)]
        values = self._tangent(constants[:-1], constants[-1])

        def vjp(dys: list, targets: Sequence) -> list:
            parts = self._split(targets, [*directions, self.context.inputs])
            return _asked(self._vjp_by_directions(parts, dys, directions), targets)

        def jvp(tangents: Sequence) -> list:
            parts = self._split(tangents, [*directions, self.context.inputs])
            results = [
                self.tangent([*directions[:i], direction, *directions[i + 1 :]])
                for i, direction in enumerate(parts[:-1])
                if _any(direction)
            ]
            if _any(parts[-1]):
                results.append(self.tangent([*directions, parts[-1]]))
            return _sum(results)

        order, jvps = len(directions), self.products.jvps
        direct = order < len(jvps) and None not in jvps[order - 1 : order + 1]
        inputs = [*chain(*directions), *self.context.inputs]
        return self.rebind(values, inputs, vjp, jvp if direct else None)

    def vjp(self, dys: list, targets: Sequence) -> list:
        """Return the rule of the function itself."""
        return _asked(self._next(targets, dys, []), targets)

    def _next(self, targets: Sequence, dys: list, directions: list[list]) -> list:
        """Return P of the next order for the inputs; after the last order, follow `beyond`."""
        if not _any(targets):
            return list(targets)
        if len(directions) < self.products.last:
            return self.gradient(dys, directions)
        if self.products.beyond == "error":
            self.products.refuse_order()
        return self._differentiate_operations(targets, dys, directions)

    def _vjp_by_directions(
        self, parts: list, dys: list, directions: list[list], *more: list
    ) -> list:
        """Return the gradients with respect to each of `directions`, and to the inputs.

        D^k f is symmetric in its directions; the upstream gradient of P_k adds one to them.
        """
        gradients: list = []
        for i, part in enumerate(parts[:-1]):
            others = [*directions[:i], *directions[i + 1 :], *more]
            gradients += self.gradient(dys, others) if _any(part) else part
        return gradients + self._next(parts[-1], dys, [*directions, *more])

    def _split(self, targets: Sequence, like: Sequence[Sequence]) -> list:
        remaining = iter(targets)
        return [[next(remaining) for _ in part] for part in like]

    def _differentiate_operations(
        self, targets: Sequence, dys: list, directions: list[list]
    ) -> list:
        """Return the gradient of <P_k(dys, w1..w(k-1)), wk>, by P_k's operations."""
        args, fresh = list(self.context.args), []
        for position, target in zip(self.context.positions, targets, strict=True):
            if target is not None:
                args[position] = identity(args[position])
                fresh.append(args[position])
        token = Token()
        values = run_recorded(token, fresh, self._gradient, dys, directions[:-1], args)
        kept = [
            i
            for i, value in enumerate(values)
            if value is not None and directions[-1][i] is not None
        ]
        upstream = [directions[-1][i] for i in kept]
        gradients = differentiate_once(token, [values[i] for i in kept], upstream, fresh)
        return _spread(gradients, targets)

    # What was declared -----------------------------------------------------------------------

    def _gradient(self, dys: list, directions: list[list], args: list) -> list:
        """Return P_k, as declared or as the transpose of Q_k in its last direction."""
        vjp = self.products.vjps[len(directions)]
        if vjp is None:
            key = self.products, len(directions), *self.targets, *self.avals
            if key in state.transposed:  # as for a linear function
                raise NoGradientError(f"the jvp of `{self.definition.name}` calls its own function")
            state.transposed.append(key)
            try:
                gradients = transpose_vjp(
                    lambda last: self._tangent([*directions, _spread(last, self.targets)], args),
                    [target for target in self.targets if target is not None],
                    dys,
                    self.definition,
                )
            finally:
                state.transposed.pop()
            return _spread(gradients, self.targets)
        upstream = nest.pack_sequence_as(self.structure, dys)
        returned = self._run(vjp, upstream, *map(self._fill_direction, directions), *args)
        return gradients_of_function(
            vjp, self.definition, self.context.inputs, returned, self.targets
        )

    def _tangent(self, directions: list[list], args: list) -> list:
        """Return Q_k, as declared or as the transpose of P_k."""
        jvp = self.products.jvps[len(directions) - 1]
        if jvp is None:
            last = _asked(directions[-1], self.targets)
            return transpose_vjp(
                lambda dys: self._gradient(dys, directions[:-1], args),
                self.avals,
                last,
                self.definition,
            )
        returned = nest.flatten(self._run(jvp, *map(self._fill_direction, directions), *args))
        if len(returned) != len(self.avals):
            raise ValueError(
                f"`{self.definition.name}`: its jvp returned {len(returned)} tangents, it has "
                f"{len(self.avals)} outputs ({self.definition.where(jvp)})"
            )
        return [self._fit_tangent(jvp, *pair) for pair in zip(returned, self.avals, strict=True)]

    def _run(self, function: Callable[..., Any], *args: Any) -> Any:
        return run_rule(self.definition, function, args, self.context.options)

    def _fill_direction(self, direction: list) -> Any:
        """Return a direction for a declared function, with zeros for inputs that have none."""
        full = fill_zeros(self.targets, direction)
        return full[0] if len(full) == 1 else tuple(full)

    def _fit_tangent(self, jvp: Any, value: Any, aval: Aval) -> Tensor:
        tensor = convert(value)
        if tuple(tensor._data.shape) != aval.shape:
            raise InvalidArgumentError(
                f"`{self.definition.name}`: its jvp returned a tangent of shape "
                f"{tuple(tensor._data.shape)} for an output of shape {aval.shape} "
                f"({self.definition.where(jvp)})"
            )
        return cast(tensor, aval.dtype)


def _sum(parts: list[list]) -> list:
    """Return the sums of lists of tensors; None where all are None."""
    total = parts[0]
    for part in parts[1:]:
        pairs = zip(total, part, strict=True)
        total = [y if x is None else x if y is None else add(x, y) for x, y in pairs]
    return total


def _any(targets: Sequence) -> bool:
    return any(target is not None for target in targets)


def _spread(tensors: Sequence, like: Sequence) -> list:
    """Return `tensors` in the places where `like` has something, and None elsewhere."""
    remaining = iter(tensors)
    return [None if item is None else next(remaining) for item in like]


def _asked(gradients: Sequence, targets: Sequence) -> list:
    """Return gradients, with None for those that were not asked for."""
    pairs = zip(gradients, targets, strict=True)
    return [None if target is None else gradient for gradient, target in pairs]
