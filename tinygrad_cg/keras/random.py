"""Keras's ``keras.random``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.annotations import DTypeLike, Shape, TensorLike
from .._core.tensor import Tensor
from .._ops import distributions as _distributions
from .._ops import normalizations as _normalizations
from .._ops import sampling as _sampling
from .._ops.namespaces.namespace import export_functions, restates, spelled
from .._ops.settings import settings


def beta(
    shape: Shape, alpha: Any, beta: Any, dtype: DTypeLike | None = None, seed: int | None = None
) -> Tensor:
    """Return draws of `shape`, float32 by default, from beta distributions; no gradient."""
    return _distributions.beta_draws(shape, alpha, beta, dtype or settings.floatx, seed)


def binomial(
    shape: Shape,
    counts: Any,
    probabilities: Any,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Return draws of `shape`: how many of `counts` trials with these probabilities succeed."""
    return _distributions.binomial_draws(
        shape, counts, probabilities, dtype or settings.floatx, seed
    )


@restates(_distributions.categorical)
def categorical(
    logits: TensorLike, num_samples: Any, dtype: DTypeLike = "int32", seed: int | None = None
) -> Tensor:
    return _distributions.categorical(logits, num_samples, dtype, seed)


def gamma(
    shape: Shape, alpha: Any, dtype: DTypeLike | None = None, seed: int | None = None
) -> Tensor:
    """Return draws of `shape` from gamma distributions of shapes `alpha`; it has no gradient."""
    return _distributions.gamma_of_shape(shape, alpha, None, dtype or settings.floatx, seed)


def randint(
    shape: Shape, minval: Any, maxval: Any, dtype: DTypeLike = "int32", seed: int | None = None
) -> Tensor:
    """Return integers of `shape` from [minval, maxval)."""
    return _sampling.uniform(shape, minval, maxval, dtype, seed)


def shuffle(x: TensorLike, axis: int = 0, seed: int | None = None) -> Tensor:
    """Return `x` with its slices along `axis` in an order drawn at random.

    Modelled on ``tf.random.shuffle``: the gradient is moved back to the old positions.
    """
    return _distributions.shuffle(x, axis, seed)


def _of_normal(draw: Callable[..., Tensor], end: str = ""):
    def drawn(
        shape: Shape,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: DTypeLike | None = None,
        seed: int | None = None,
    ) -> Tensor:
        return draw(shape, mean, stddev, dtype or settings.floatx, seed)

    drawn.__doc__ = f"""Return draws, float32 by default, from the normal distribution of the given
    mean and standard deviation{end}."""
    return spelled(drawn, draw.__name__)


normal = _of_normal(_sampling.normal)
truncated_normal = _of_normal(_distributions.truncated_normal, " that lie within two deviations")


def dropout(
    inputs: TensorLike, rate: Any, noise_shape: Any = None, seed: int | None = None
) -> Tensor:
    """Return `inputs` with a share `rate` of its elements set to 0, the others divided by 1 - rate.

    `noise_shape` broadcasts to the shape of `inputs`: where it is 1 (or None: the size of
    `inputs`), the elements are dropped together. `seed` as for `random.uniform`. After N.
    Srivastava et al., "Dropout" (2014). Raises ValueError for a rate outside [0, 1) or `inputs`
    that are not floats, InvalidArgumentError for a `noise_shape` that does not broadcast.
    """
    return _normalizations.dropout(inputs, rate, noise_shape, seed)


def uniform(
    shape: Shape,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Draws, float32 by default, from [minval, maxval)."""
    return _sampling.uniform(shape, minval, maxval, dtype or settings.floatx, seed)


__all__ = export_functions(globals())
