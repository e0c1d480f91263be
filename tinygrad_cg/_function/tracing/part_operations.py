"""Operations that run graphs of their own, loops and choices: their common primitive.

Such an operation has a *part* as its parameter. ``part.run(arrays)`` returns the results, whose
shapes and dtypes are `avals`; ``vjp(call, node, dys)`` the gradients of the inputs; ``batch(level,
inputs)`` the results for a batch. The gradient needs the results from `first_saved` on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._core.primitive import Primitive
from ..._core.record import Node, attach_part
from ..._core.tensor import Tensor
from ..._transforms.batching import Batch, BatchTensor


class PartCall(NamedTuple):
    """The residuals of a part: its inputs, and the results that its gradient needs."""

    part: Any
    inputs: tuple
    results: list[Tensor]


def part_operation(name: str, parameter: str, kind: str = "control", aliases: bool = False) -> Any:
    """Return a primitive, not for users, whose parameter of the name `parameter` is a part."""

    def run(*arrays: np.ndarray, **params: Any) -> list[np.ndarray]:
        return params[parameter].run(arrays)

    def save(inputs: tuple, params: dict, out: list) -> PartCall:
        part = params[parameter]
        results = [tensor._with_record(tensor._rec) for tensor in out[part.first_saved :]]
        return PartCall(part, inputs, results)

    return Primitive(
        name,
        run,
        ("inputs",),
        lambda *avals, **params: params[parameter].avals,
        on_gpu=run,
        save=save,
        rule=_rule,
        kind=kind,
        aliases=aliases,
        carry_out=lambda level, inputs, params: params[parameter].batch(level, inputs),
    )


def _rule(node: Node, dys: Any) -> list:
    part, _, results = node.saved
    attached = [attach_part(x, node, i) for i, x in enumerate(results, part.first_saved)]
    return part.vjp(node.saved._replace(results=attached), node, dys)


def examples_of(tensors: Sequence[Any], flags: Sequence[bool], level: Batch) -> list[Any]:
    """Return tensors as one example of a batch sees them; `flags` says which are batched."""
    return [BatchTensor(x, level) if flag else x for x, flag in zip(tensors, flags, strict=False)]
