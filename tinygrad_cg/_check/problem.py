"""The checked function at a point, as data: its sources, outputs, weights and directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._core.kinds import is_complex
from .._reverse.variable import Variable
from .._rules.definition import Definition
from .branches import Branches
from .observing import ObservingLevel

Point = list[np.ndarray]  # the value of each source


class Primal(NamedTuple):
    """An input to differentiate by: a leaf of the arguments, or a Variable that f `captured`."""

    name: str
    value: np.ndarray
    variable: Variable | None
    captured: bool = False


class InnerProduct(NamedTuple):
    """A product of a gradient with a direction, and the sum and the norm of its terms' magnitudes.

    `value` is None where the gradient is None: not connected. `rounding` bounds the effect of the
    gradient's dtype.
    """

    value: float | None
    size: float
    rounding: float = 0.0
    norm: float = 0.0

    @property
    def number(self) -> float:
        return self.value or 0.0


@dataclass
class Problem:
    """A function at a point.

    `against` is the function whose derivative the rules return, if that is not f; `offsets` is how
    much f's outputs exceed those of `against`. `values` are the outputs at `point`, `base_values`
    those where derivatives are compared: at `wide_point` if the function computes in float64 there
    (`wide`). Outputs are multiplied by `weights`, gradients of order k by the direction
    ``ways[k]``, and references go along `last`; `second_weights` and `third_weights` are further
    upstream gradients. `level` runs whenever f does. `look` has the branches that f takes at the
    point of the comparison, `here` is the point where f runs just now. `is_batched` says whether f
    can run at several points at once, as far as is known. `warned` has the library's warnings of
    derivatives that are not defined.
    """

    f: Callable[..., Any]
    against: Callable[..., Any] | None
    definition: Definition
    structure: tuple[list, dict]
    leaves: list
    leaf_indices: list[int]
    sources: list[Primal]
    point: Point = field(default_factory=list)
    wide_point: Point = field(default_factory=list)
    has_two_dtypes: bool = False
    wide: bool = True
    values: list[np.ndarray] = field(default_factory=list)
    base_values: list[np.ndarray] = field(default_factory=list)
    offsets: list[np.ndarray] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)
    second_weights: list[np.ndarray] = field(default_factory=list)
    third_weights: list[np.ndarray] = field(default_factory=list)
    ways: list[list[np.ndarray]] = field(default_factory=list)
    last: list[np.ndarray] = field(default_factory=list)
    level: ObservingLevel | None = None
    look: Branches = field(default_factory=Branches)
    here: Point = field(default_factory=list)
    is_batched: bool = True
    warned: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_one_rule(self) -> bool:
        """Return whether f is a custom gradient itself, not code that calls some."""
        return hasattr(self.f, "_function")

    @property
    def call_text(self) -> tuple[str, str]:
        """Return the function's name, and the arguments of its check, as they are written."""
        name = "f" if self.name == "<lambda>" else self.name
        positions = [(i, "") for i in range(len(self.structure[0]))]
        return name, ", ".join([name, *self.definition.input_names(positions)])


def move_point(point: Point, ways: list, step: complex) -> Point:
    """Return the point `step` along `ways`, of the same dtypes unless the step is complex."""
    return [
        value
        if way is None
        else np.asarray(value + step * way, None if type(step) is complex else value.dtype)
        for value, way in zip(point, ways, strict=True)
    ]


def widened(dtype: np.dtype) -> np.dtype:
    """Return float64, or complex128 for complex numbers."""
    return np.dtype(np.complex128 if is_complex(dtype) else np.float64)


def can_broadcast(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether an array of a shape can be broadcast to another shape."""
    pairs = zip(shape[::-1], other[::-1], strict=False)
    return len(shape) <= len(other) and all(size in (1, whole) for size, whole in pairs)


def precision_of_dtype(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps)


def largest(array: np.ndarray) -> float:
    """Return the largest finite magnitude."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))
