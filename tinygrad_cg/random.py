"""TensorFlow's ``tf.random``. Seeds give numbers of their own, which are not TensorFlow's."""

from __future__ import annotations

from ._ops.distributions import truncated_normal
from ._ops.sampling import normal, set_seed, uniform
from ._reverse.generator import (
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from ._spellings.spell import spell

__all__ = ["Generator", "create_rng_state", "get_global_generator", "set_global_generator"]
__all__ += ["normal", "set_seed", "truncated_normal", "uniform"]

_TABLE = """
    categorical(logits, num_samples, dtype=None, seed=None, name=None)
        = categorical(logits, num_samples, dtype, seed)
    fold_in(seed, data, alg="auto_select") = fold_in(seed, data)
        # Return a new seed, two integers, made from `seed` and the integer `data`.
    gamma(shape, alpha, beta=None, dtype=float32, seed=None, name=None)
        = gamma_draws(shape, alpha, beta, dtype, seed)
    poisson(shape, lam, dtype=float32, seed=None, name=None)
        = poisson_draws(shape, lam, dtype, seed)
    all_candidate_sampler(true_classes, num_true, num_sampled, unique, seed=None, name=None)
        -> Candidates
        = all_candidates(true_classes, num_true, num_sampled)
        # Return all `num_sampled` classes, each of which is expected once.
    log_uniform_candidate_sampler uniform_candidate_sampler
        (true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None) -> Candidates
        = sample_candidates("{}".removesuffix("_candidate_sampler"), true_classes, num_true,
        num_sampled, unique, range_max, seed)
        # Return `num_sampled` of the classes from 0 to `range_max` - 1, and how often each of them,
        and of `true_classes` (batch, `num_true`), is expected: uniform, or with the probability
        ``log((k + 2) / (k + 1)) / log(range_max + 1)`` of class k. None is drawn twice if `unique`.
    shuffle(value, seed=None, name=None) = shuffle(value, 0, seed)
        # Return `value` with its rows in an order drawn at random; gradients go back with them.
    split(seed, num=2, alg="auto_select") = split_seed(seed, num)
        # Return `num` new seeds made from `seed`, two integers each.
    stateless_binomial(shape, seed, counts, probs, output_dtype=int32, name=None)
        = binomial_draws(shape, counts, probs, output_dtype, stateless_seed(seed))
        # Return draws of `shape`: how many of `counts` trials, of probability `probs` each,
        succeed. The same two integers `seed` give the same numbers.
    stateless_categorical(logits, num_samples, seed, dtype=int64, name=None)
        = categorical(logits, num_samples, dtype, stateless_seed(seed))
        # Return `categorical` draws; the same two integers `seed` give the same.
    stateless_gamma(shape, seed, alpha, beta=None, dtype=float32, name=None)
        = gamma_of_shape(shape, alpha, beta, dtype, stateless_seed(seed))
        # Return draws as ``gamma``, of this very `shape`; the same two integers `seed` give the
        same.
    stateless_normal
        (shape, seed, mean=0.0, stddev=1.0, dtype=float32, name=None, alg="auto_select")
        = normal(shape, mean, stddev, dtype, stateless_seed(seed))
        # Return draws as ``normal``; the same two integers `seed` give the same.
    stateless_truncated_normal
        (shape, seed, mean=0.0, stddev=1.0, dtype=float32, name=None, alg="auto_select")
        = truncated_normal(shape, mean, stddev, dtype, stateless_seed(seed))
        # Return draws as ``truncated_normal``; the same two integers `seed` give the same.
    stateless_parameterized_truncated_normal(shape, seed, means=0.0, stddevs=1.0, minvals=-2.0,
        maxvals=2.0, name=None)
        = bounded_normal(shape, stateless_seed(seed), means, stddevs, minvals, maxvals)
        # Return draws of `shape` from normal distributions, each between its `minvals` and
        `maxvals`; gradients flow to the parameters. The same two integers `seed` give the same.
    stateless_poisson(shape, seed, lam, dtype=int32, name=None)
        = poisson_of_shape(shape, lam, dtype, stateless_seed(seed))
        # Return `poisson` draws of this very `shape`; the same two integers `seed` give the same.
    stateless_uniform
        (shape, seed, minval=0, maxval=None, dtype=float32, name=None, alg="auto_select")
        = uniform(shape, minval, maxval, dtype, stateless_seed(seed))
        # Return ``uniform`` draws; the same two integers `seed` give the same.
"""
spell(globals(), _TABLE)
