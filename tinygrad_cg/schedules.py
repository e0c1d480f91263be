"""Learning rates that change with the number of steps.

Modelled on ``tf.keras.optimizers.schedules``.

The numbers agree with Keras 3.15. A schedule is a function of the number of steps done; pass it
to an optimizer as `learning_rate`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from math import pi
from typing import Any

from ._core.conversion import FLOAT32, convert
from ._core.kinds import is_floating
from ._core.suggestions import refuse_name
from ._core.tensor import Tensor
from ._ops.comparison import equal, less, less_equal
from ._ops.elementwise import (
    add,
    ceil,
    cos,
    divide,
    floor,
    log,
    maximum,
    minimum,
    multiply,
    power,
    subtract,
    where,
)
from ._ops.shape import cast

__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = partial(refuse_name, __name__)


class LearningRateSchedule(ABC):
    """Base of schedules: classes that define ``__call__(step)``, which returns a learning rate.

    Otherwise the constructor raises TypeError.
    """

    @abstractmethod
    def __call__(self, step: Any) -> Any:
        """Return the learning rate after `step` steps."""


class _Decay(LearningRateSchedule):
    """A schedule that starts at `initial_learning_rate` and changes over `decay_steps`."""

    def __init__(self, initial_learning_rate: Any, decay_steps: Any, name: str | None):
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.name = name
        if not convert(decay_steps).numpy() > 0:
            raise ValueError(f"decay_steps must be positive, got {decay_steps}")

    def _at(self, step: Any) -> tuple[Tensor, Tensor]:
        """Return the initial rate, and the step in the rate's dtype."""
        rate = convert(self.initial_learning_rate)
        rate = rate if is_floating(rate.dtype) else cast(rate, FLOAT32)
        return rate, cast(step, rate.dtype)


class ExponentialDecay(_Decay):
    """``initial_learning_rate * decay_rate ** (step / decay_steps)``.

    With `staircase` the exponent is rounded down.

    Examples
    --------
    >>> schedules = tf.keras.optimizers.schedules
    >>> rate = schedules.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5)
    >>> rate(20).numpy().round(4)
    np.float32(0.025)
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str | None = "ExponentialDecay",
    ):
        super().__init__(initial_learning_rate, decay_steps, name)
        self.decay_rate = decay_rate
        self.staircase = staircase

    def __call__(self, step: Any) -> Tensor:
        rate, at = self._at(step)
        exponent = divide(at, self.decay_steps)
        exponent = floor(exponent) if self.staircase else exponent
        return multiply(rate, power(self.decay_rate, exponent))


class InverseTimeDecay(_Decay):
    """``initial_learning_rate / (1 + decay_rate * step / decay_steps)``.

    With `staircase` the quotient ``step / decay_steps`` is rounded down.
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str | None = "InverseTimeDecay",
    ):
        super().__init__(initial_learning_rate, decay_steps, name)
        self.decay_rate = decay_rate
        self.staircase = staircase

    def __call__(self, step: Any) -> Tensor:
        rate, at = self._at(step)
        share = divide(at, self.decay_steps)
        share = floor(share) if self.staircase else share
        return divide(rate, add(1, multiply(self.decay_rate, share)))


class PolynomialDecay(_Decay):
    """From `initial_learning_rate` to `end_learning_rate`, by a power of the remaining share.

    ``(initial - end) * (1 - step / decay_steps) ** power + end``; then the rate is constant, or,
    with `cycle`, the decay starts again over the next multiple of `decay_steps`.
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        end_learning_rate: Any = 0.0001,
        power: Any = 1.0,
        cycle: bool = False,
        name: str | None = "PolynomialDecay",
    ):
        super().__init__(initial_learning_rate, decay_steps, name)
        self.end_learning_rate = end_learning_rate
        self.power = power
        self.cycle = cycle

    def __call__(self, step: Any) -> Tensor:
        rate, at = self._at(step)
        steps = cast(self.decay_steps, at.dtype)
        if self.cycle:
            steps = multiply(steps, where(equal(at, 0), 1, ceil(divide(at, steps))))
        else:
            at = minimum(at, steps)
        left = subtract(1, divide(at, steps))
        span = subtract(rate, self.end_learning_rate)
        return add(multiply(span, power(left, self.power)), self.end_learning_rate)


class CosineDecay(_Decay):
    """Half a period of the cosine, from the first rate to `alpha` times it, in `decay_steps`.

    With `warmup_target` the rate grows linearly to it first, in `warmup_steps`, and decays from
    there. After I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts"
    (2017).
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        alpha: Any = 0.0,
        name: str | None = "CosineDecay",
        warmup_target: Any = None,
        warmup_steps: Any = 0,
    ):
        super().__init__(initial_learning_rate, decay_steps, name)
        self.alpha = alpha
        self.warmup_target = warmup_target
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> Tensor:
        rate, at = self._at(step)
        if self.warmup_target is None:
            return self._decay(rate, at)
        top = cast(self.warmup_target, rate.dtype)
        warm = self.warmup_steps
        share = divide(at, maximum(cast(warm, rate.dtype), 1))
        grown = add(multiply(subtract(top, rate), share), rate)
        return where(less(at, warm), grown, self._decay(top, maximum(subtract(at, warm), 0)))

    def _decay(self, rate: Tensor, at: Tensor) -> Tensor:
        share = divide(minimum(at, self.decay_steps), self.decay_steps)
        falling = multiply(0.5, add(1, cos(multiply(pi, share))))
        return multiply(rate, add(multiply(1 - self.alpha, falling), self.alpha))


class CosineDecayRestarts(_Decay):
    """Repeated `CosineDecay`: each period is `t_mul` times as long as the previous one.

    Each starts at `m_mul` times the previous rate, and ends at `alpha` times the first.
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        first_decay_steps: Any,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str | None = "SGDRDecay",
    ):
        super().__init__(initial_learning_rate, first_decay_steps, name)
        self.t_mul = t_mul
        self.m_mul = m_mul
        self.alpha = alpha

    def __call__(self, step: Any) -> Tensor:
        rate, at = self._at(step)
        share = divide(at, self.decay_steps)
        if self.t_mul == 1.0:
            period = floor(share)
            share = subtract(share, period)
        else:
            grown = subtract(1, multiply(share, 1.0 - self.t_mul))
            period = floor(divide(log(grown), log(cast(self.t_mul, rate.dtype))))
            length = power(cast(self.t_mul, rate.dtype), period)
            before = divide(subtract(1, length), 1.0 - self.t_mul)
            share = divide(subtract(share, before), length)
        height = multiply(power(cast(self.m_mul, rate.dtype), period), 0.5)
        falling = multiply(height, add(1, cos(multiply(pi, share))))
        return multiply(rate, add(multiply(1 - self.alpha, falling), self.alpha))


class PiecewiseConstantDecay(LearningRateSchedule):
    """``values[i]`` up to and including step ``boundaries[i]``, and then the last of the values.

    `boundaries` increase strictly, and `values` has one more element (otherwise ValueError).
    """

    def __init__(
        self,
        boundaries: Sequence[Any],
        values: Sequence[Any],
        name: str | None = "PiecewiseConstant",
    ):
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                "PiecewiseConstantDecay: the number of values must be the number of boundaries "
                f"plus one, got {len(values)} values for {len(boundaries)} boundaries"
            )
        self.boundaries = list(boundaries)
        self.values = list(values)
        self.name = name

    def __call__(self, step: Any) -> Tensor:
        step = convert(step)
        rate = convert(self.values[-1])
        for boundary, value in reversed(list(zip(self.boundaries, self.values[:-1], strict=True))):
            rate = where(less_equal(step, boundary), convert(value), rate)
        return rate
