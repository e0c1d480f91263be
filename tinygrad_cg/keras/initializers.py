"""Keras's ``keras.initializers``: functions of a shape that return first values of Variables.

As in Keras, a random initializer returns the same numbers at each call, and two initializers
without a `seed` differ. For the same seed, Keras draws other numbers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from math import prod, sqrt
from typing import Any

import numpy as np

from .._core.suggestions import refuse_name
from .._core.tensor import Tensor
from .._ops.creation import constant, eye
from .._ops.distributions import stateless_seed, truncated_normal
from .._ops.elementwise import multiply
from .._ops.sampling import normal, uniform
from .._ops.shape import broadcast_to, cast, reshape
from .._ops.validation import as_sizes
from ._identifiers import refuse_identifier
from .config import floatx

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Ones",
    "Orthogonal",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "get",
]
__dir__ = __all__.copy  # what dir() shows

_TRUNCATED = 0.87962566103423978  # the deviation of a normal number within two deviations
_unseeded = np.random.default_rng()


class Initializer(ABC):
    """Base of initializers: classes that define ``__call__(shape, dtype=None)``."""

    @abstractmethod
    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return a tensor of a shape; its dtype is float32 (`floatx`), unless given."""


class Constant(Initializer):
    """Return `value` everywhere."""

    def __init__(self, value: Any = 0.0):
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        value = constant(self.value, dtype or floatx())
        return broadcast_to(value, as_sizes(type(self).__name__, shape))


class Zeros(Constant):
    """Return zeros."""

    def __init__(self) -> None:
        super().__init__(0.0)


class Ones(Constant):
    """Return ones."""

    def __init__(self) -> None:
        super().__init__(1.0)


class Identity(Initializer):
    """Return a matrix with `gain` on its diagonal."""

    def __init__(self, gain: float = 1.0):
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        name = type(self).__name__
        sizes = as_sizes(name, shape)
        if len(sizes) != 2:
            raise ValueError(f"{name}: shape must have two axes, got {sizes}")
        return multiply(eye(*sizes, dtype=dtype or floatx()), self.gain)


class _Random(Initializer):
    """An initializer that draws, from a seed of its own."""

    def __init__(self, seed: int | None = None):
        self.seed = int(_unseeded.integers(2**31)) if seed is None else seed

    @property
    def _start(self) -> int:
        return stateless_seed((self.seed, 0))


class RandomNormal(_Random):
    """Draw from a normal distribution."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None):
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        return normal(shape, self.mean, self.stddev, dtype or floatx(), self._start)


class TruncatedNormal(RandomNormal):
    """Draw from a normal distribution; draw again beyond two standard deviations."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        return truncated_normal(shape, self.mean, self.stddev, dtype or floatx(), self._start)


class RandomUniform(_Random):
    """Draw uniformly from `minval` to `maxval`."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None):
        super().__init__(seed)
        self.minval, self.maxval = minval, maxval

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        return uniform(shape, self.minval, self.maxval, dtype or floatx(), self._start)


class VarianceScaling(_Random):
    """Draw with the variance `scale` / n, where n is the number of inputs or outputs of a layer.

    Parameters
    ----------
    mode: "fan_in", "fan_out" or "fan_avg": the meaning of n. The last two axes of the shape are
    inputs
        and outputs, those before them the window of a convolution.
    distribution:
        "truncated_normal", "untruncated_normal" or "uniform".
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
    ):
        super().__init__(seed)
        distribution = "truncated_normal" if distribution == "normal" else distribution
        for name, value, allowed in (
            ("mode", mode, ("fan_in", "fan_out", "fan_avg")),
            ("distribution", distribution, ("truncated_normal", "untruncated_normal", "uniform")),
        ):
            if value not in allowed:
                raise ValueError(f"VarianceScaling: {name} must be one of {allowed}, got {value!r}")
        if scale <= 0:
            raise ValueError(f"VarianceScaling: scale must be positive, got {scale!r}")
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        sizes, dtype = as_sizes(type(self).__name__, shape), dtype or floatx()
        window = prod(sizes[:-2])
        fan_in, fan_out = (sizes * 2 or (1, 1))[-2:] if len(sizes) < 2 else sizes[-2:]
        counts = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
        deviation = sqrt(self.scale / max(1.0, window * counts[self.mode]))
        if self.distribution == "uniform":
            limit = sqrt(3.0) * deviation
            return uniform(sizes, -limit, limit, dtype, self._start)
        if self.distribution == "untruncated_normal":
            return normal(sizes, 0.0, deviation, dtype, self._start)
        return truncated_normal(sizes, 0.0, deviation / _TRUNCATED, dtype, self._start)


class _Named(VarianceScaling):
    """VarianceScaling with the options of a paper."""

    options: tuple[float, str, str]

    def __init__(self, seed: int | None = None):
        super().__init__(*self.options, seed)


class GlorotUniform(_Named):
    """After X. Glorot and Y. Bengio, "Understanding the difficulty of training" (2010)."""

    options = 1.0, "fan_avg", "uniform"


class GlorotNormal(_Named):
    """`GlorotUniform` with a truncated normal distribution."""

    options = 1.0, "fan_avg", "truncated_normal"


class HeUniform(_Named):
    """`HeNormal` with a uniform distribution."""

    options = 2.0, "fan_in", "uniform"


class HeNormal(_Named):
    """After K. He et al., "Delving deep into rectifiers" (2015)."""

    options = 2.0, "fan_in", "truncated_normal"


class LecunUniform(_Named):
    """`LecunNormal` with a uniform distribution."""

    options = 1.0, "fan_in", "uniform"


class LecunNormal(_Named):
    """After Y. LeCun et al., "Efficient backprop" (1998)."""

    options = 1.0, "fan_in", "truncated_normal"


class Orthogonal(_Random):
    """Draw a matrix with orthogonal rows or columns, whichever are fewer, times `gain`.

    A shape of more axes counts as a matrix: all axes but the last are joined.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None):
        super().__init__(seed)
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        sizes, dtype = as_sizes("Orthogonal", shape), dtype or floatx()
        if len(sizes) < 2:
            raise ValueError(f"Orthogonal: shape must have at least 2 axes, got {sizes}")
        rows, columns = prod(sizes[:-1]), sizes[-1]
        draws = normal((max(rows, columns), min(rows, columns)), dtype="float64", seed=self._start)
        q, r = np.linalg.qr(draws.numpy())
        q = self.gain * q * np.sign(np.diag(r))
        return cast(reshape(constant(q.T if rows < columns else q), sizes), dtype)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


_BY_NAME = {_snake(name): name for name in __all__ if name not in ("Initializer", "get")}


def get(identifier: Any) -> Any:
    """Return an initializer by its name, such as "glorot_uniform"; a function unchanged."""
    if identifier is None or callable(identifier):
        return identifier() if isinstance(identifier, type) else identifier
    name = _BY_NAME.get(_snake(str(identifier)))
    if name is None:
        refuse_identifier("initializers.get", "a function", _BY_NAME, identifier)
    return globals()[name]()


def __getattr__(name: str) -> Any:
    """Return a class by its name in snake case, as Keras does; TensorFlow's ends with a word."""
    own = _BY_NAME.get(name.removesuffix("_initializer"))
    return refuse_name(__name__, name) if own is None else globals()[own]
