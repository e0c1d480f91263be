"""Draws from further distributions, shuffles, and seeds that are tensors (stateless draws).

As in `sampling`, a seed gives the same numbers everywhere, which are not TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion

from .._core import devices
from .._core.annotations import DTypeLike, Shape, TensorLike
from .._core.conversion import FLOAT32, as_dtype, convert
from .._core.suggestions import reads_own_arguments
from .._core.tensor import ArrayLike, Tensor
from ..errors import InvalidArgumentError
from .creation import constant
from .elementwise import add, divide, multiply, where
from .incomplete import gamma_transport
from .indexing import gather
from .reductions import argmax
from .sampling import _as_tensor, _check_float, _draw, _parameters, sizes_of_draws
from .shape import cast, expand_dims, stop_gradient
from .validation import (
    as_count,
    as_int,
    as_integers,
    as_sizes,
    check_broadcast,
    check_shapes,
    normalize_axis,
)

_LARGEST = 2**64


@devices.on_device_of_operands
@reads_own_arguments
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = FLOAT32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return draws from the normal distribution that lie within two standard deviations.

    Modelled on ``tf.random.truncated_normal``: parameters, gradients and errors as for ``normal``.
    """
    wanted, sizes = as_dtype(dtype), sizes_of_draws("truncated_normal", shape, mean)
    _check_float("truncated_normal", wanted, "cast(truncated_normal(shape), dtype)")
    parameters = {"mean": mean, "stddev": stddev}
    center, scale = (
        cast(parameter, wanted) if isinstance(parameter, Tensor) else constant(parameter, wanted)
        for parameter in _parameters("truncated_normal", sizes, parameters)
    )
    draws = _as_tensor(_draw("truncated_normal", "truncated_normal", seed, sizes), wanted)
    return add(multiply(draws, scale), center)


def _fixed(name: str, sizes: tuple[int, ...], **parameters: Any) -> list[np.ndarray]:
    """Return the values of parameters that get no gradient; they broadcast to `sizes`."""
    arrays = [np.asarray(convert(value), np.float64) for value in parameters.values()]
    for argument, values in zip(parameters, arrays, strict=True):
        if not (values >= 0).all():
            raise InvalidArgumentError(f"{name}: {argument} must not be below 0, got {values}")
    for values in arrays:
        check_broadcast(name, "a parameter", values.shape, sizes)
    return arrays


@devices.on_device_of_operands
@reads_own_arguments
def gamma(
    shape: Shape,
    alpha: Any,
    beta: Any = None,
    dtype: DTypeLike = FLOAT32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return draws from the gamma distributions of shapes `alpha` and rates `beta` (1).

    The result has `shape`, then that of `alpha` and `beta` together. The gradient flows to both, to
    `alpha` by implicit reparameterization. Modelled on ``tf.random.gamma``. InvalidArgumentError
    for negative parameters.
    """
    shapes = [convert(parameter).shape for parameter in (alpha, 1 if beta is None else beta)]
    sizes = (*as_sizes("gamma", shape), *promotion.broadcast_shapes(*shapes))
    return gamma_of_shape(sizes, alpha, beta, dtype, seed)


@devices.on_device_of_operands
def gamma_of_shape(shape: Any, alpha: Any, beta: Any, dtype: Any, seed: int | None) -> Tensor:
    """Return `gamma` draws of this very `shape`, with which the parameters broadcast."""
    wanted = as_dtype(dtype)
    _check_float("gamma", wanted, "cast(gamma(shape, alpha), dtype)")
    tensor = convert(alpha)
    # reading its value loses no gradient
    constants = tensor if tensor._rec is None else stop_gradient(tensor)
    sizes = as_sizes("gamma", shape)
    (concentration,) = _fixed("gamma", sizes, alpha=constants)
    draws = _as_tensor(_draw("gamma", "standard_gamma", seed, sizes, concentration), wanted)
    draws = where(
        draws > 0, draws, np.finfo(wanted).tiny
    )  # as in TensorFlow, no draw is rounded to 0
    if isinstance(alpha, ArrayLike):  # a number has no gradient
        draws = gamma_transport(cast(tensor, wanted), concentration.astype(wanted), draws)
    return draws if beta is None else divide(draws, cast(beta, wanted))


@devices.on_device_of_operands
@reads_own_arguments
def poisson(
    shape: Shape,
    lam: Any,
    dtype: DTypeLike = FLOAT32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return draws from the Poisson distributions of means `lam`; it has no gradient.

    The result has `shape`, then that of `lam`. Modelled on ``tf.random.poisson``.
    InvalidArgumentError for negative means.
    """
    sizes = (*as_sizes("poisson", shape), *convert(lam).shape)
    return poisson_of_shape(sizes, lam, dtype, seed)


@devices.on_device_of_operands
def poisson_of_shape(shape: Any, lam: Any, dtype: Any, seed: int | None) -> Tensor:
    """Return `poisson` draws of this very `shape`, with which `lam` broadcasts."""
    sizes = as_sizes("poisson", shape)
    (means,) = _fixed("poisson", sizes, lam=lam)
    return _as_tensor(_draw("poisson", "poisson", seed, sizes, means), as_dtype(dtype))


@devices.on_device_of_operands
def binomial_draws(shape: Any, counts: Any, probs: Any, dtype: Any, seed: int | None) -> Tensor:
    """Return how many of `counts` trials, of probability `probs` each, succeed: draws of `shape`.

    Modelled on ``tf.random.stateless_binomial``. InvalidArgumentError for what is not a
    probability.
    """
    sizes = as_sizes("binomial", shape)
    trials, chances = _fixed("binomial", sizes, counts=counts, probs=probs)
    if not (chances <= 1).all():
        raise InvalidArgumentError(f"binomial: probs must be between 0 and 1, got {chances}")
    draws = _draw("binomial", "binomial", seed, sizes, trials.astype(np.int64), chances)
    return _as_tensor(draws, as_dtype(dtype))


def beta_draws(shape: Any, alpha: Any, beta: Any, dtype: Any, seed: int | None) -> Tensor:
    """Return draws of `shape` from beta distributions, after ``keras.random.beta``; no gradient."""
    sizes, wanted = as_sizes("beta", shape), as_dtype(dtype)
    parameters = _fixed("beta", sizes, alpha=alpha, beta=beta)
    return _as_tensor(_draw("beta", "beta", seed, sizes, *parameters), wanted)


@devices.on_device_of_operands
def categorical(
    logits: TensorLike,
    num_samples: Any,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return classes, (rows, num_samples), drawn by the `logits` of each row; it has no gradient.

    `logits` (rows, classes) are logarithms of probabilities, up to a constant. The classes are
    int64 by default. Modelled on ``tf.random.categorical``. InvalidArgumentError for other shapes.
    """
    scores, count = convert(logits), as_count("categorical", "num_samples", num_samples)
    check_shapes("categorical", {"logits": (scores, "rows classes")})
    rows, classes = scores.shape
    if not classes:
        raise InvalidArgumentError("categorical: logits must have at least one class")
    draws = _draw("categorical", "gumbel", seed, (rows, count, classes), 0.0, 1.0)
    noisy = add(expand_dims(cast(scores, np.float64), 1), _as_tensor(draws, np.dtype(np.float64)))
    return cast(argmax(noisy, -1), np.int64 if dtype is None else dtype)


def shuffle(value: Any, axis: int = 0, seed: int | None = None) -> Tensor:
    """Return `value` with its slices along `axis` in an order drawn at random."""
    x = convert(value)
    dim = normalize_axis("shuffle", axis, x.ndim)
    order = _as_tensor(_draw("shuffle", "permutation", seed, (x.shape[dim],)), np.dtype(np.int64))
    return gather(x, order, dim)


# Seeds that are tensors ----------------------------------------------------------------------


def _pair(name: str, seed: Any) -> np.ndarray:
    x = as_integers(name, "seed", seed)
    check_shapes(name, {"seed": (x, "2")})
    return np.asarray(x._values())


def stateless_seed(seed: Any) -> int:
    """Return a pair of integers as the one that draws start at."""
    first, second = _pair("stateless", seed).tolist()
    return first % _LARGEST + second % _LARGEST * _LARGEST


def _seeds(numbers: list[int], count: int, dtype: np.dtype) -> np.ndarray:
    state = np.random.SeedSequence([number % _LARGEST for number in numbers])
    return state.generate_state(2 * count, np.uint64).astype(dtype).reshape(count, 2)


def split(seed: TensorLike, num: int = 2, alg: str = "auto_select") -> Tensor:
    """Return `num` new seeds derived from `seed`, two integers each."""
    pair, count = _pair("split", seed), as_count("split", "num", num)
    return constant(_seeds([*pair.tolist(), 0], count, pair.dtype))


def fold_in(seed: TensorLike, data: Any, alg: str = "auto_select") -> Tensor:
    """Return a new seed, two integers, derived from `seed` and the integer `data`."""
    pair = _pair("fold_in", seed)
    return constant(_seeds([*pair.tolist(), 1, as_int("fold_in", "data", data)], 1, pair.dtype)[0])
