"""Levels that watch what runs: each operation runs as it would without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.levels import Level, state
from .._core.primitive import apply
from .._core.tensor import Tensor
from .._reverse.observer import Observer
from .._rules.rebinding import rebind_outputs


class Silent(Observer):
    """An observer that swallows the warnings of rules."""

    def notice(self, *facts: Any, **named: Any) -> bool:
        return True

    detach = notice


class ObservingLevel(Level):
    """A level that shows each operation, its operands and its results to `see`."""

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        out = apply(primitive, inputs, params)
        self.see(primitive, inputs, params, out if isinstance(out, list) else [out])
        return out

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        results = rebind_outputs(state.frame, call, inputs, outputs)
        self.see_rule(inputs, outputs, results)
        return results

    def begin(self, sources: list) -> None:
        """Look at the tensors that the checked function is called with."""

    def see(self, primitive: Any, inputs: tuple, params: dict, outs: list[Tensor]) -> None:
        """Look at one operation."""

    def see_rule(self, inputs: Sequence, outputs: Sequence, results: list) -> None:
        """Look at one call of a custom gradient; `results` replace its `outputs`."""
