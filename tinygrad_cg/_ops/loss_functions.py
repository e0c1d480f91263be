"""Losses: cross-entropies of scores and of probabilities, hinges, and means of errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.reduce import softmax as ksoftmax

from .._core import devices
from .._core.annotations import Axes, TensorLike
from .._core.conversion import convert, convert_each, convert_operands
from .._core.kinds import INTEGERS, REAL, is_exact, is_integer
from .._core.levels import state
from .._core.primitive import apply, same_parameters
from .._core.record import mark_expired
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .comparison import equal, greater, less_equal, logical_or
from .composition import ON_GPU, TENSORS, Operations
from .define import Case, operation
from .elementwise import (
    absolute,
    add,
    clip,
    divide,
    exp,
    log,
    log1p,
    maximum,
    multiply,
    multiply_upstream,
    negative,
    relu,
    softplus,
    square,
    subtract,
    where,
)
from .indexing import scatter_rows
from .normalizations import l2_normalize
from .reductions import (
    is_narrow,
    log_softmax,
    reduce_all,
    reduce_max,
    reduce_mean,
    reduce_sum,
)
from .settings import settings
from .shape import cast, floating, reshape
from .trigonometry import sinh
from .validation import broadcast_shapes, check_kind, check_same_shape, normalize_axis


def _check_labels(labels: np.ndarray, classes: int) -> np.ndarray:
    low, high = (labels.min(), labels.max()) if labels.size else (0, -1)
    if low < 0 or high >= classes:
        raise InvalidArgumentError(
            f"sparse_cross_entropy: label {low if low < 0 else high} is outside the {classes} "
            f"classes, 0 to {classes - 1}"
        )
    return labels


operation(
    "labels",
    lambda labels, classes: _check_labels(labels, classes).copy(),
    lambda labels, classes: labels,
    inputs=("labels",),
    batch=same_parameters,
    samples=[Case(((),), {"classes": 3}, {0: np.array([[0, 2], [1, 1]])})],
)


def _loss_by_parts(ops: Operations, logits: Any, labels: Any) -> Any:
    axis = len(logits.shape) - 1
    labels = ops.labels(labels, classes=logits.shape[axis])
    logs = ops.log_softmax(logits, axis=axis)
    return ops.negative(ops.gather(logs, labels, axis=axis, batch_dims=axis))


def _loss_on_gpu(logits: Any, labels: Any) -> Any:
    ksoftmax.cross_entropy.result_dtype(logits.dtype)  # or a TypeError
    return _loss_by_parts(ON_GPU, logits, labels)


def _loss_rule(dy: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
    x, axis = logits._data, logits._data.ndim - 1
    if state.frame is None and type(x) is type(dy._data) is np.ndarray:
        out = Tensor(ksoftmax.cross_entropy_grad(dy._data, x, labels._data))
        mark_expired((dy, logits), out)
        return out
    labels = TENSORS.labels(labels, classes=x.shape[axis])
    upstream = scatter_rows(negative(dy), labels, x.shape[axis], axis)
    return TENSORS.log_softmax_pull(upstream, log_softmax(logits), axis=axis)


_loss = operation(
    "sparse_cross_entropy",
    lambda x, labels: ksoftmax.cross_entropy(x, _check_labels(labels, x.shape[-1])),
    lambda x, labels: Aval(labels.shape, ksoftmax.cross_entropy.result_dtype(x.dtype)),
    (_loss_rule, None),
    inputs=("logits", "labels"),
    kind="normalisation",
    kernel=ksoftmax.cross_entropy,
    on_gpu=_loss_on_gpu,
    batch=same_parameters,
    decomposition=_loss_by_parts,
    dtypes=REAL,
    samples=[Case(((2, 2, 3), ()), {}, {1: np.array([[0, 2], [1, 1]])})],
)


def sparse_softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, name: str | None = None
) -> Tensor:
    """Return ``-log_softmax(logits)[..., label]``, the cross-entropy for integer labels.

    `logits` are scores, of shape (..., classes) and a float dtype, `labels` integers from 0 to
    classes - 1, of the shape before the last axis; the result has the labels' shape and the scores'
    dtype. Raises InvalidArgumentError for labels of other values or another shape.

    Examples
    --------
    >>> tf.nn.sparse_softmax_cross_entropy_with_logits([1], [[0.0, 0.0]]).numpy().round(3)
    array([0.693], dtype=float32)
    """
    labels, logits = convert(labels), convert(logits)
    remedy = "for distributions use tf.nn.softmax_cross_entropy_with_logits"
    check_kind("sparse_cross_entropy", "labels", labels, INTEGERS, remedy)
    shape = logits._data.shape
    if not shape or labels._data.shape != shape[:-1]:
        raise InvalidArgumentError(
            "sparse_cross_entropy: the labels must have the shape of the predictions without the "
            f"last axis, got labels {tuple(labels.shape)} and predictions {tuple(shape)}"
        )
    data = logits._data  # where log_softmax is better kept for the gradient than computed again:
    if isinstance(data, devices.array_types) or is_narrow("log_softmax", data, len(shape) - 1):
        return _loss_by_parts(TENSORS, logits, labels)
    return apply(_loss, (logits, labels), {})


def softmax_cross_entropy(labels: Any, logits: Any, axis: Any = -1) -> Tensor:
    """Return ``-sum(labels * log_softmax(logits))`` along `axis`: cross-entropy of
    distributions."""
    logits = convert(logits)
    labels, _ = convert_each(labels, logits)
    rank = logits._data.ndim
    dim = normalize_axis("softmax_cross_entropy", axis, rank) - rank  # labels may have more axes
    if labels._data.shape != logits._data.shape:
        try:
            broadcast_shapes("softmax_cross_entropy", labels._data.shape, logits._data.shape)
        except InvalidArgumentError as error:
            if labels._data.shape != logits._data.shape[:-1]:
                raise
            raise InvalidArgumentError(
                f"{error}: for labels that are the numbers of classes, use "
                "tf.nn.sparse_softmax_cross_entropy_with_logits"
            ) from None
    chances = log_softmax(logits, dim)
    return negative(reduce_sum(multiply(cast(labels, chances.dtype), chances), dim))


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Return ``-labels log(sigmoid(logits)) - (1 - labels) log(1 - sigmoid(logits))``, elementwise.

    Modelled on ``tf.nn.sigmoid_cross_entropy_with_logits``: `labels` are probabilities, of the
    shape of `logits` (otherwise InvalidArgumentError) and cast to their dtype. It neither overflows
    nor cancels.

    Examples
    --------
    >>> tf.nn.sigmoid_cross_entropy_with_logits([1.0], [0.0]).numpy().round(3)
    array([0.693], dtype=float32)
    """
    return weighted_cross_entropy_with_logits(labels, logits, None)


def weighted_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, pos_weight: Any, name: str | None = None
) -> Tensor:
    """Return `sigmoid_cross_entropy` of `labels` and `logits`, elementwise, with the term of the
    labels multiplied by `pos_weight`. Both have the same shape."""
    logits = convert(logits)
    labels, _ = convert_each(labels, logits)
    check_same_shape("sigmoid_cross_entropy", "labels", labels, "logits", logits)
    logits = floating(logits)
    labels = cast(labels, logits.dtype)
    positive = labels if pos_weight is None else multiply(labels, pos_weight)
    return add(
        multiply_upstream(positive, softplus(negative(logits))),
        multiply_upstream(subtract(1, labels), softplus(logits)),
    )


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Return ``exp(log_input) - log_input * targets``: the loss of a Poisson distribution.

    With `compute_full_loss` Stirling's approximation of log(targets!) is added where `targets` is
    above 1. Both have the same shape (otherwise InvalidArgumentError).
    """
    targets, log_input = convert_each(targets, log_input)
    check_same_shape("log_poisson_loss", "labels", targets, "logits", log_input)
    loss = subtract(exp(log_input), multiply(log_input, targets))
    if not compute_full_loss:
        return loss
    several = greater(targets, 1)
    safe = where(several, targets, 1)
    stirling = add(
        subtract(multiply(safe, log(safe)), safe), multiply(log(multiply(safe, 2 * np.pi)), 0.5)
    )
    return add(loss, where(several, stirling, 0))


# Keras's losses: the mean over the last axis ---------------------------------------------------


def _pair(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Return both in the dtype of the predictions, integers as Keras's `floatx`.

    Where one has a last axis of size 1 more than the other they are brought to one rank.
    """
    y_pred = convert(y_pred)
    y_pred = cast(y_pred, settings.floatx) if is_exact(y_pred.dtype) else y_pred
    y_true = cast(y_true, y_pred.dtype)
    return same_rank(y_true, y_pred)


def same_rank(y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
    """Return both with equally many axes, if one has a last axis of size 1 more than the other.

    As in Keras, a vector gets that axis, since each of its numbers is an example of its own.
    """
    if y_true.ndim > y_pred.ndim:
        y_pred, y_true = same_rank(y_pred, y_true)
        return y_true, y_pred
    shape = y_pred._data.shape
    if len(shape) != y_true.ndim + 1 or shape[-1] != 1:
        return y_true, y_pred
    if y_true.ndim == 1:
        return reshape(y_true, (-1, 1)), y_pred
    return y_true, reshape(y_pred, shape[:-1])


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of squared differences along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reduce_mean(square(subtract(y_true, y_pred)), -1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of absolute differences along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reduce_mean(absolute(subtract(y_true, y_pred)), -1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return 100 times the mean of differences relative to `y_true`, along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    share = absolute(divide(subtract(y_true, y_pred), maximum(absolute(y_true), settings.epsilon)))
    return multiply(reduce_mean(share, -1), 100)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of squared differences of log(1 + y), along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    first, second = (log1p(maximum(tensor, settings.epsilon)) for tensor in (y_pred, y_true))
    return reduce_mean(square(subtract(first, second)), -1)


def huber(y_true: Any, y_pred: Any, delta: Any = 1.0) -> Tensor:
    """Return the mean along the last axis of half the squared error up to `delta`, linear beyond.

    After P. Huber, "Robust estimation of a location parameter" (1964).
    """
    y_true, y_pred = _pair(y_true, y_pred)
    error = subtract(y_pred, y_true)
    size, delta = convert_operands((absolute(error), delta))
    beyond = multiply(subtract(size, multiply(delta, 0.5)), delta)
    inside = multiply(square(error), 0.5)
    return reduce_mean(where(less_equal(size, delta), inside, beyond), -1)


def log_cosh(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of log(cosh(error)) along the last axis, without overflow."""
    y_true, y_pred = _pair(y_true, y_pred)
    error = subtract(y_pred, y_true)
    size = absolute(error)
    near = less_equal(size, 1)
    small = log1p(multiply(square(sinh(multiply(where(near, error, 0), 0.5))), 2))
    large = add(subtract(size, float(np.log(2))), log1p(exp(multiply(size, -2))))
    return reduce_mean(where(near, small, large), -1)


def _signs(y_true: Tensor) -> Tensor:
    """Return labels of 0 and 1 as -1 and 1; others as they are."""
    binary = reduce_all(logical_or(equal(y_true, 0), equal(y_true, 1)))
    return where(binary, subtract(multiply(y_true, 2), 1), y_true)


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of ``max(1 - y_true * y_pred, 0)`` along the last axis.

    `y_true` is -1 or 1; labels of 0 and 1 are accepted, too.
    """
    y_true, y_pred = _pair(y_true, y_pred)
    return reduce_mean(relu(subtract(1, multiply(_signs(y_true), y_pred))), -1)


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of ``max(1 - y_true * y_pred, 0)**2`` along the last axis; see `hinge`."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reduce_mean(square(relu(subtract(1, multiply(_signs(y_true), y_pred)))), -1)


def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return ``max(largest wrong score - right score + 1, 0)`` along the last axis.

    `y_true` are one_hot vectors.
    """
    y_true, y_pred = _pair(y_true, y_pred)
    right = reduce_sum(multiply(y_true, y_pred), -1)
    wrong = reduce_max(multiply(subtract(1, y_true), y_pred), -1)
    return relu(add(subtract(wrong, right), 1))


def kl_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """Return the sum of ``y_true * log(y_true / y_pred)`` along the last axis.

    Both are limited to [1e-7, 1]. After S. Kullback and R. Leibler, "On information and
    sufficiency" (1951).
    """
    y_true, y_pred = (clip(tensor, settings.epsilon, 1) for tensor in _pair(y_true, y_pred))
    return reduce_sum(multiply(y_true, log(divide(y_true, y_pred))), -1)


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of ``y_pred - y_true * log(y_pred + 1e-7)`` along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reduce_mean(subtract(y_pred, multiply(y_true, log(add(y_pred, settings.epsilon)))), -1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: Any = -1) -> Tensor:
    """Return the negative cosine of the angle between vectors along `axis`."""
    y_true, y_pred = _pair(y_true, y_pred)
    product = multiply(
        *(l2_normalize(tensor, axis, settings.epsilon**2) for tensor in (y_true, y_pred))
    )
    return negative(reduce_sum(product, axis))


def _probabilities(output: Tensor) -> Tensor:
    return clip(output, settings.epsilon, 1 - settings.epsilon)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """Return ``-target log(output) - (1 - target) log(1 - output)``, elementwise.

    `output` are probabilities, limited to [1e-7, 1 - 1e-7], or scores if `from_logits`, of the
    shape of `target` (otherwise InvalidArgumentError).
    """
    target, output = _pair(target, output)
    if from_logits:
        return sigmoid_cross_entropy_with_logits(target, output)
    check_same_shape("binary_crossentropy", "the labels", target, "the predictions", output)
    output = _probabilities(output)
    first = multiply(target, log(output))
    return negative(add(first, multiply(subtract(1, target), log1p(negative(output)))))


@reads_own_arguments
def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: Axes = -1
) -> Tensor:
    """Return ``-sum(target * log(output))`` along `axis`, for distributions `target`.

    `output` are probabilities, divided by their sum and limited to [1e-7, 1 - 1e-7], or scores if
    `from_logits`, of the shape of `target` (otherwise InvalidArgumentError).
    """
    target, output = _pair(target, output)
    check_same_shape("categorical_crossentropy", "the labels", target, "the predictions", output)
    if from_logits:
        return softmax_cross_entropy(target, output, axis)
    output = _probabilities(divide(output, reduce_sum(output, axis, True)))
    return negative(reduce_sum(multiply(target, log(output)), axis))


def class_numbers(labels: Any, scores: Tensor) -> Tensor:
    """Return the numbers of classes, without a last axis of size 1."""
    labels = convert(labels)
    is_column = labels.ndim == scores.ndim and labels.shape[-1:] == (1,)
    return reshape(labels, labels.shape[:-1]) if is_column else labels


@reads_own_arguments
def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: Axes = -1
) -> Tensor:
    """Return ``-log(output[label])`` along the last axis, for integer labels `target`.

    `output` are probabilities, limited to [1e-7, 1 - 1e-7], or scores if `from_logits`. See
    `sparse_cross_entropy` for shapes and errors; `target` may have a last axis of size 1 more.
    Raises InvalidArgumentError for another `axis`.
    """
    output = convert(output)
    target, rank = class_numbers(target, output), output._data.ndim
    if normalize_axis("sparse_categorical_crossentropy", axis, rank) != rank - 1:
        raise InvalidArgumentError(
            f"sparse_categorical_crossentropy: axis must be the last one, got {axis}: use moveaxis"
        )
    if not is_integer(target.dtype):
        target = cast(target, np.int64)
    output = cast(output, settings.floatx) if is_exact(output.dtype) else output
    if from_logits:
        return sparse_softmax_cross_entropy_with_logits(target, output)
    chances = _probabilities(divide(output, reduce_sum(output, -1, True)))
    return sparse_softmax_cross_entropy_with_logits(target, log(chances))
