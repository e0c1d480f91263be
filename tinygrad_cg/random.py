"""TensorFlow's ``tf.random``. For the same seed, TensorFlow draws other numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core.annotations import DTypeLike, Shape, TensorLike
from ._core.conversion import FLOAT32, INT32, INT64
from ._core.tensor import Tensor
from ._ops import candidates as _candidates
from ._ops import distributions as _distributions
from ._ops.candidates import Candidates, all_candidate_sampler
from ._ops.distributions import categorical, fold_in, gamma, poisson, split, truncated_normal
from ._ops.distributions import stateless_seed as _seed
from ._ops.namespaces.namespace import export_functions, spelled
from ._ops.sampling import normal, set_seed, uniform
from ._reverse.generator import (
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)

__all__ = ["Generator", "create_rng_state", "get_global_generator", "set_global_generator"]
__all__ += ["all_candidate_sampler", "categorical", "fold_in", "gamma", "normal", "poisson"]
__all__ += ["set_seed", "split", "truncated_normal", "uniform"]


def _sampler(kind: str):
    def sample(
        true_classes: Any,
        num_true: Any,
        num_sampled: Any,
        unique: Any,
        range_max: Any,
        seed: int | None = None,
        name: str | None = None,
    ) -> Candidates:
        """Return `num_sampled` of the classes from 0 to `range_max` - 1, and the expected counts of
        these and of `true_classes` (batch, `num_true`). The distribution is uniform, or has the
        probability ``log((k + 2) / (k + 1)) / log(range_max + 1)`` of class k. With `unique`, no
        class is drawn twice."""
        return _candidates.sample_candidates(
            kind, true_classes, num_true, num_sampled, unique, range_max, seed
        )

    return spelled(sample, f"{kind}_candidate_sampler")


log_uniform_candidate_sampler = _sampler("log_uniform")
uniform_candidate_sampler = _sampler("uniform")


def shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """Return `value` with its rows in random order; gradients follow the rows."""
    return _distributions.shuffle(value, 0, seed)


def stateless_binomial(
    shape: Shape,
    seed: TensorLike,
    counts: Any,
    probs: Any,
    output_dtype: Any = INT32,
    name: str | None = None,
) -> Tensor:
    """Return draws of `shape`: how many of `counts` trials with probability `probs` succeed. The
    same two integers `seed` give the same numbers."""
    return _distributions.binomial_draws(shape, counts, probs, output_dtype, _seed(seed))


def stateless_categorical(
    logits: TensorLike,
    num_samples: Any,
    seed: TensorLike,
    dtype: DTypeLike = INT64,
    name: str | None = None,
) -> Tensor:
    """Return `categorical` draws; the same two integers `seed` give the same."""
    return _distributions.categorical(logits, num_samples, dtype, _seed(seed))


def stateless_gamma(
    shape: Shape,
    seed: TensorLike,
    alpha: Any,
    beta: Any = None,
    dtype: DTypeLike = FLOAT32,
    name: str | None = None,
) -> Tensor:
    """Return draws as ``gamma``, of exactly this `shape`; the same two integers `seed` give the
    same."""
    return _distributions.gamma_of_shape(shape, alpha, beta, dtype, _seed(seed))


def _stateless(draw: Callable[..., Tensor]):
    def drawn(
        shape: Shape,
        seed: TensorLike,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: DTypeLike = FLOAT32,
        name: str | None = None,
        alg: str = "auto_select",
    ) -> Tensor:
        return draw(shape, mean, stddev, dtype, _seed(seed))

    name = draw.__name__
    drawn.__doc__ = f"Return draws as ``{name}``; the same two integers `seed` give the same."
    return spelled(drawn, f"stateless_{name}")


stateless_normal = _stateless(normal)
stateless_truncated_normal = _stateless(truncated_normal)


def stateless_parameterized_truncated_normal(
    shape: Shape,
    seed: TensorLike,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:
    """Return draws of `shape` from normal distributions, each between its `minvals` and `maxvals`;
    gradients flow to the parameters. The same two integers `seed` give the same."""
    return _candidates.bounded_normal(shape, _seed(seed), means, stddevs, minvals, maxvals)


def stateless_poisson(
    shape: Shape, seed: TensorLike, lam: Any, dtype: DTypeLike = INT32, name: str | None = None
) -> Tensor:
    """Return `poisson` draws of this exact `shape`; the same two integers `seed` give the same."""
    return _distributions.poisson_of_shape(shape, lam, dtype, _seed(seed))


def stateless_uniform(
    shape: Shape,
    seed: TensorLike,
    minval: Any = 0,
    maxval: Any = None,
    dtype: DTypeLike = FLOAT32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Return ``uniform`` draws; the same two integers `seed` give the same."""
    return uniform(shape, minval, maxval, dtype, _seed(seed))


__all__ += export_functions(globals())
