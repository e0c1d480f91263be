"""Transposes of gradient rules: from gradients of outputs back to tangents of outputs.

A rule is linear in the upstream gradient, so the gradient of a rule is its transpose, which is
what forward mode needs of it. Rules of the user's are checked for being linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from .._core.kinds import is_complex, is_differentiable
from .._core.levels import Token, run_on, unrecorded_frame
from .._core.record import Node, run_recorded
from .._core.tensor import Tensor
from .._ops.comparison import greater
from .._ops.complex import conj, real
from .._ops.elementwise import absolute, add, multiply
from .._ops.reductions import reduce_sum
from .._ops.shape import cast
from .._reverse.sweep import differentiate
from .._rules.definition import Definition, source_line
from ..errors import NotLinearError
from .batching import unbatched_values

Pull: TypeAlias = Callable[[list], Sequence]


def transpose_pull(
    pull: Pull, outputs: Sequence, tangents: Sequence, definition: Definition | None = None
) -> list[Tensor | None]:
    """Return the tangent of each output of an operation with the gradients `pull`.

    A rule of the user's, which `definition` names, is checked for being linear, TypeError if not.
    If it has a rule of its own, which is not its transpose, the tangent is that of its operations.
    """
    for natural in (False, True):
        transposition = Transposition(pull, outputs, natural)
        results = transposition(tangents)
        found = pull, transposition, tangents, results
        if definition is None or run_on(unrecorded_frame(), _is_transpose, *found):
            return results
    raise _not_linear(definition)


class Transposition:
    """The transpose of `pull`: from tangents of operands to those of `outputs`.

    `pull` is linear, so the gradient of its product with the operands' tangents by what it is
    given is its transpose, whatever that is. Can be called any number of times.
    """

    def __init__(self, pull: Pull, outputs: Sequence[Any], natural: bool = False):
        generator = np.random.default_rng(0)
        self.dys = [_random(generator, output) for output in outputs]
        self.token = Token()
        self.token.natural = natural
        self.gradients = run_recorded(self.token, self.dys, pull, list(self.dys))

    def __del__(self) -> None:
        self.token.alive = False

    def __call__(self, tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
        pairs = zip(self.gradients, tangents, strict=True)
        known = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
        targets, upstream = [one for one, _ in known], [way for _, way in known]
        return differentiate(self.token, targets, upstream, self.dys, transposes=True)[0]


def _random(generator: np.random.Generator, aval: Any) -> Tensor:
    """Return a random tensor of the shape and dtype of `aval`; None if it has no derivatives."""
    values = generator.standard_normal(aval.shape)
    return Tensor(np.asarray(values, aval.dtype if is_differentiable(aval.dtype) else values.dtype))


def follow_rules(visited: Sequence[Node]) -> bool:
    """Return whether the rules of the user's rules in a sweep give its transpose.

    If these are not the rules' transposes, it is to be found without them. TypeError where that
    would not be right either: a rule is not linear.
    """
    pairs = [(node, getattr(node.saved, "definition", None)) for node in visited]
    found = [(node, definition) for node, definition in pairs if definition]
    here = unrecorded_frame()
    if all(run_on(here, _transposes, node, False) for node, _ in found):
        return True
    for node, definition in found:
        if not run_on(here, _transposes, node, True):
            raise _not_linear(definition)
    return False


def _transposes(node: Any, natural: bool) -> bool:
    """Return whether the rule of `node` has the transpose that one of the two methods finds."""
    multi_output = type(node.shape) is list
    generator = np.random.default_rng(2)
    tangents = [None if one is None else _random(generator, one) for one in node.inputs]

    def pull(dys: list) -> Sequence:
        return node.rule(node, dys if multi_output else dys[0])

    transposition = Transposition(pull, node.shape if multi_output else [node], natural)
    return _is_transpose(pull, transposition, tangents, transposition(tangents))


def _is_transpose(
    pull: Pull, transposition: Transposition, tangents: Sequence, results: Sequence
) -> bool:
    """Return whether <pull(dy), tangents> is <dy, results>, for another dy, too."""
    dys, gradients = transposition.dys, transposition.gradients
    tolerance = 0.02 if any(dy._data.dtype.itemsize == 2 for dy in dys) else 1e-3
    others = list(map(_elsewhere, dys))
    for upstream, found in ((dys, gradients), (others, pull(list(others)))):
        left, size = _product(found, tangents)
        right, more = _product(upstream, results)
        if unbatched_values(greater(absolute(left - right), tolerance * (size + more))).any():
            return False
    return True


def _not_linear(definition: Any) -> NotLinearError:
    return NotLinearError(
        f"forward mode: the rule of `{definition.name}` is not linear in its upstream gradient, so "
        "it has no transpose, and there is no tangent: use reverse mode, or a linear rule "
        f"({definition.where()})",
        function=definition.name,
        line=source_line(definition.function),
    )


def _elsewhere(dy: Tensor) -> Tensor:
    """Return another upstream gradient: of opposite signs, large, and no multiple of `dy`."""
    data = dy._data
    factors = -1000.0 * np.random.default_rng(1).uniform(0.5, 1.5, data.shape)
    return Tensor(np.asarray(factors * data, data.dtype))


def _product(ones: Sequence, others: Sequence) -> tuple[Tensor, Tensor]:
    """Return the real inner product of two lists, and the sum of its terms' magnitudes."""
    total = size = Tensor(np.zeros(()))
    for one, other in zip(ones, others, strict=True):
        if one is not None and other is not None:
            terms = real(multiply(_wide(one), conj(_wide(other))))
            total = add(total, reduce_sum(terms))
            size = add(size, reduce_sum(absolute(terms)))
    return total, size


def _wide(tensor: Tensor) -> Tensor:
    return cast(tensor, np.complex128 if is_complex(tensor._data.dtype) else np.float64)
