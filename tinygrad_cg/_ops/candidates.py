"""Losses of many classes by a sample of them, the samples, and normal draws within bounds."""

from __future__ import annotations

from collections.abc import Callable
from math import log1p
from typing import Any, NamedTuple

import numpy as np

from .._core import devices
from .._core.annotations import TensorLike
from .._core.conversion import convert, convert_operands
from .._core.kinds import is_exact, is_integer
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .comparison import equal, greater, less
from .creation import constant, ones, zeros
from .define import Case, operation
from .distribution_functions import ndtr, ndtri
from .elementwise import add, clip, divide, expm1, log, multiply, negative, subtract, where
from .elementwise import log1p as log1p_of
from .indexing import gather, getitem
from .linear_algebra import matmul
from .loss_functions import sigmoid_cross_entropy_with_logits, softmax_cross_entropy
from .reductions import reduce_any, reduce_sum
from .sampling import _as_tensor, _draw
from .shape import cast, concatenate, expand_dims, stop_gradient
from .validation import (
    as_count,
    as_int,
    as_integers,
    as_sizes,
    check_broadcast,
    check_shapes,
)

_FAR = 37  # standard deviations, beyond which the distribution function is 0


def bounded_normal(
    shape: Any, seed: int, means: Any, stddevs: Any, minvals: Any, maxvals: Any
) -> Tensor:
    """Return draws of `shape` from normal distributions, each within bounds of its own.

    Modelled on ``tf.random.stateless_parameterized_truncated_normal``: the parameters broadcast
    with `shape`, their dtypes promote (float32 of integers), and gradients flow to them with the
    draws held. Raises InvalidArgumentError for bounds that are out of order or too far from the
    mean (where they are not known: NaN), and for shapes that do not broadcast.
    """
    name = "stateless_parameterized_truncated_normal"
    mean, deviation, low, high = (
        cast(parameter, np.float32) if is_exact(parameter.dtype) else parameter
        for parameter in convert_operands((means, stddevs, minvals, maxvals))
    )
    kind, sizes = mean.dtype, as_sizes(name, shape)
    for parameter in (mean, deviation, low, high):
        check_broadcast(name, "a parameter", parameter.shape, sizes)
    ends = [stop_gradient(parameter)._data for parameter in (mean, deviation, low, high)]
    if all(isinstance(end, np.ndarray) for end in ends):
        middle, width, least, largest = (np.asarray(end, np.float64) for end in ends)
        if not (np.all(least < largest) and np.all(width > 0)):
            raise InvalidArgumentError(
                f"{name}: needs minvals below maxvals and positive stddevs, got {least}, {largest} "
                f"and {width}"
            )
        if np.any(np.maximum(least - middle, middle - largest) > _FAR * width):
            raise InvalidArgumentError(
                f"{name}: cannot draw between bounds that are both more than {_FAR} standard "
                f"deviations to one side of the mean; got {least} and {largest}"
            )
    mean, deviation, low, high = (
        cast(parameter, np.float64) for parameter in (mean, deviation, low, high)
    )
    first, last = divide(subtract(low, mean), deviation), divide(subtract(high, mean), deviation)
    # Right of the middle the mirrored interval is drawn from: there shares do not round to 1.
    mirrored = greater(add(first, last), 0.0)
    first, last = where(mirrored, negative(last), first), where(mirrored, negative(first), last)
    draws = _as_tensor(_draw(name, "random", seed, sizes), np.dtype(np.float64))
    below = ndtr(first)
    standard = ndtri(add(below, multiply(draws, subtract(ndtr(last), below))))
    standard = where(mirrored, negative(standard), standard)
    standard = where(less(last, -_FAR), np.nan, standard)
    return cast(clip(add(mean, multiply(deviation, standard)), low, high), kind)


class Candidates(NamedTuple):
    """Sampled classes (int64), and how often each true and each sampled class is expected."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def _log_uniform(draws: np.ndarray, size: int) -> np.ndarray:
    classes = np.floor(np.expm1(draws * np.log1p(size))).astype(np.int64)
    return np.clip(classes, 0, size - 1)


_SAMPLERS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "uniform": lambda draws, size: np.minimum((draws * size).astype(np.int64), size - 1),
    "log_uniform": _log_uniform,
}


def _run(seed: np.ndarray, sampler: str, count: int, size: int, unique: bool) -> np.ndarray:
    """Return sampled classes, and last how many draws it took."""
    if not is_integer(seed.dtype):
        raise TypeError(f"candidates: the seed must be an integer, got {seed.dtype}")
    flat = seed.reshape(-1)
    rows = np.empty((flat.size, count + 1), np.int64)
    for row, key in zip(rows, flat.tolist(), strict=True):
        generator = np.random.Generator(np.random.Philox(int(key)))
        draws = np.empty(0, np.int64)
        kept = np.arange(count)
        while not unique or len(draws) < count or len(kept) < count:
            more = _SAMPLERS[sampler](generator.random(max(2 * count, 16)), size)
            draws = np.concatenate([draws, more])
            if not unique:
                break
            kept = np.sort(np.unique(draws, return_index=True)[1])
        row[:count], row[count] = draws[kept[:count]], kept[count - 1] + 1 if count else 0
    return rows.reshape(*seed.shape, count + 1)


def _run_on_gpu(seed: Any, **params: Any) -> Any:
    """Return the same numbers on the GPU: NumPy's generator draws them."""
    return devices.move(_run(devices.to_host(seed), **params), devices.GPU)


_candidates = operation(
    "candidates",
    _run,
    lambda seed, sampler, count, size, unique: Aval((*seed.shape, count + 1), np.dtype(np.int64)),
    on_gpu=_run_on_gpu,
    inputs=("seed",),
    core=(0,),
    dtypes=(is_integer,),
    samples=[
        Case(((),), {"sampler": name, "count": 4, "size": 6, "unique": unique}, {0: np.int64(3)})
        for name in _SAMPLERS
        for unique in (False, True)
    ],
)


def _shares(sampler: str, classes: Tensor, size: int) -> Tensor:
    """Return the probability of each class."""
    if sampler == "uniform":
        return _filled(classes, 1 / size)
    x = cast(classes, np.float64)
    return divide(log1p_of(divide(1.0, add(x, 1.0))), log1p(size))


def _filled(x: Tensor, value: float) -> Tensor:
    """Return float64 numbers, all `value`, in the shape of `x`."""
    return constant(np.full(tuple(x.shape), value))


def _true(name: str, true_classes: Any, num_true: Any) -> Tensor:
    x, count = as_integers(name, "true_classes", true_classes), as_int(name, "num_true", num_true)
    check_shapes(name, {"true_classes": (x, "batch num_true")}, num_true=count)
    return x


def sample_candidates(
    sampler: str,
    true_classes: Any,
    num_true: Any,
    num_sampled: Any,
    unique: bool,
    range_max: Any,
    seed: Any = None,
) -> Candidates:
    """Return classes from 0 to `range_max` - 1 that are drawn at random, and expected counts.

    Modelled on ``tf.random.uniform_candidate_sampler``, where all are as probable, and
    ``tf.random.log_uniform_candidate_sampler``, where class k has the probability ``log((k + 2) /
    (k + 1)) / log(range_max + 1)``. If `unique` none is drawn twice, and what is expected follows
    from how many draws that took. Counts are float32. Raises InvalidArgumentError for wrong sizes.
    """
    name = f"{sampler}_candidate_sampler"
    true = _true(name, true_classes, num_true)
    count = as_count(name, "num_sampled", num_sampled, 1)
    size = as_count(name, "range_max", range_max, 1)
    if unique and count > size:
        raise InvalidArgumentError(
            f"{name}: the number of unique classes must not exceed range_max; got {count} and "
            f"{size}"
        )
    start = _as_tensor(_draw(name, "integers", seed, 0, 2**62, (), np.int64), np.dtype(np.int64))
    params = {"sampler": sampler, "count": count, "size": size, "unique": bool(unique)}
    result = _candidates(start, **params)
    drawn, tries = getitem(result, slice(count)), getitem(result, count)
    expected = []
    for classes in (true, drawn):
        share = _shares(sampler, classes, size)
        if unique and size > 1:
            fails = log1p_of(negative(share))
            share = negative(expm1(multiply(cast(tries, np.float64), fails)))
        elif not unique:
            share = multiply(share, float(count))
        expected.append(cast(share, np.float32))
    return Candidates(drawn, *expected)


def all_candidate_sampler(
    true_classes: Any,
    num_true: Any,
    num_sampled: Any,
    unique: Any,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Return all `num_sampled` classes, each expected once."""
    true = _true("all_candidate_sampler", true_classes, num_true)
    count = as_int("all_candidate_sampler", "num_sampled", num_sampled)
    classes = constant(np.arange(count))
    return Candidates(classes, ones(true.shape, np.float32), ones((count,), np.float32))


def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: Any,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows, the positions, and weights of sampled classes that are true in a row.

    Modelled on ``tf.nn.compute_accidental_hits``: the weights are the least float32. Inside
    ``function`` and ``vmap`` the classes must be known.
    """
    true = _true("compute_accidental_hits", true_classes, num_true)._values()
    drawn = convert(sampled_candidates)._values()
    rows, _, columns = np.nonzero(true[:, :, None] == drawn)
    least = np.full(len(rows), np.finfo(np.float32).min, np.float32)
    return constant(rows.astype(np.int32)), constant(columns.astype(np.int64)), constant(least)


def _sampled_logits(
    name: str,
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: Any,
    num_classes: Any,
    num_true: Any,
    sampled_values: Any,
    remove_accidental_hits: bool,
    seed: Any,
) -> tuple[Tensor, Tensor]:
    """Return the logits of the true and the sampled classes of each row, and their labels."""
    if isinstance(weights, (list, tuple)):
        weights = concatenate(list(weights), 0)
    table, offsets, x = convert_operands((weights, biases, inputs))
    true = convert(labels)
    true = _true(name, expand_dims(true, 1) if true.ndim == 1 else true, num_true)
    count, size = as_int(name, "num_true", num_true), as_int(name, "num_classes", num_classes)
    operands = {
        "weights": (table, "num_classes size"),
        "biases": (offsets, "num_classes"),
        "inputs": (x, "batch size"),
        "labels": (true, "batch num_true"),
    }
    check_shapes(name, operands, num_classes=size)
    if sampled_values is None:
        sampled_values = sample_candidates(
            "log_uniform", true, count, num_sampled, True, size, seed
        )
    drawn, true_expected, drawn_expected = (stop_gradient(tensor) for tensor in sampled_values)
    rows = multiply(gather(table, true, 0), expand_dims(x, 1))
    of_true = add(reduce_sum(rows, -1), gather(offsets, true, 0))
    of_drawn = add(matmul(x, gather(table, drawn, 0), False, True), gather(offsets, drawn, 0))
    if remove_accidental_hits:
        same = equal(expand_dims(cast(true, np.int64), 2), cast(drawn, np.int64))
        of_drawn = where(reduce_any(same, 1), float(np.finfo(x.dtype).min), of_drawn)
    of_true = subtract(of_true, cast(log(true_expected), x.dtype))
    of_drawn = subtract(of_drawn, cast(log(drawn_expected), x.dtype))
    shares = divide(ones(of_true.shape, x.dtype), count)
    return (
        concatenate([of_true, of_drawn], 1),
        concatenate([shares, zeros(of_drawn.shape, x.dtype)], 1),
    )


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: Any,
    num_classes: int,
    num_true: Any = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str | None = "sampled_softmax_loss",
) -> Tensor:
    """Return the cross-entropy of the true classes and of a sample of the others, (batch,).

    Modelled on ``tf.nn.sampled_softmax_loss`` (S. Jean et al., 2014): `weights` (classes, size), or
    a list of its parts, and `biases` (classes,) give the logits of `inputs` (batch, size); `labels`
    are (batch, num_true). The sample is `sampled_values`, or `num_sampled` different classes of a
    log-uniform distribution; the logarithms of expected counts are subtracted. Sampled classes that
    are true do not count if `remove_accidental_hits`. Raises InvalidArgumentError for wrong sizes.
    """
    logits, truth = _sampled_logits(
        "sampled_softmax_loss",
        *(weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values),
        *(remove_accidental_hits, seed),
    )
    return softmax_cross_entropy(truth, logits)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: Any,
    num_classes: int,
    num_true: Any = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str | None = "nce_loss",
) -> Tensor:
    """Return the loss of noise-contrastive estimation, (batch,).

    Modelled on ``tf.nn.nce_loss`` (M. Gutmann and A. Hyvarinen, 2010); arguments as for
    ``sampled_softmax_loss``. It is the sum of the logistic losses of the true and of the sampled
    classes.
    """
    logits, truth = _sampled_logits(
        "nce_loss",
        *(weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values),
        *(remove_accidental_hits, None),
    )
    return reduce_sum(sigmoid_cross_entropy_with_logits(truth, logits), 1)
