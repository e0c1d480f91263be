"""Cross-entropies of scores, by labels and by distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.conversion import convert
from .._core.kinds import is_integer
from .._core.primitive import apply
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .define import Case, broadcast_shapes, normalize_axis, operation
from .elementwise import multiply, negative
from .indexing import gather
from .reductions import log_softmax, reduce_sum
from .shape import cast


def _inside(labels: np.ndarray, classes: int) -> np.ndarray:
    low, high = (labels.min(), labels.max()) if labels.size else (0, -1)
    if low < 0 or high >= classes:
        raise InvalidArgumentError(
            f"sparse_cross_entropy: label {low if low < 0 else high} is outside the {classes} "
            f"classes, 0 to {classes - 1}"
        )
    return labels.copy()


_labels = operation(
    "labels",
    _inside,
    lambda labels, classes: labels,
    inputs=("labels",),
    batch=lambda params, size: params,
    samples=[Case(((),), {"classes": 3}, {0: np.array([[0, 2], [1, 1]])})],
)


def sparse_cross_entropy(labels: Any, logits: Any) -> Tensor:
    """Return ``-log_softmax(logits)[..., label]``: how unlikely the scores find the labels, by row.

    `logits` are scores, of shape (..., classes) and a float dtype, `labels` integers from 0 to
    classes - 1, of the shape before the last axis; the result has the labels' shape and the
    scores' dtype. Raises InvalidArgumentError for labels of other values or another shape.
    """
    labels, logits = convert(labels), convert(logits)
    if not is_integer(labels.dtype):
        raise InvalidArgumentError(
            f"sparse_cross_entropy: labels must be integers, got {labels.dtype}; distributions "
            "go to softmax_cross_entropy"
        )
    shape, axis = logits._data.shape, logits._data.ndim - 1
    if not shape or labels._data.shape != shape[:-1]:
        raise InvalidArgumentError(
            f"sparse_cross_entropy: labels have shape {tuple(labels.shape)}, logits have "
            f"{tuple(shape)}: the labels have all of these axes but the last"
        )
    labels = apply(_labels, (labels,), {"classes": shape[-1]})
    return negative(gather(log_softmax(logits), labels, axis=axis, batch_dims=axis))


def softmax_cross_entropy(labels: Any, logits: Any, axis: Any = -1) -> Tensor:
    """Return ``-sum(labels * log_softmax(logits))`` along `axis`: cross-entropy of distributions.

    `labels` hold the weights of the classes, one_hot vectors for instance, and broadcast with
    `logits` (else InvalidArgumentError); the result has the logits' dtype.
    """
    labels, logits = convert(labels), convert(logits)
    rank = logits._data.ndim
    dim = normalize_axis("softmax_cross_entropy", axis, rank) - rank  # labels may have more axes
    if labels._data.shape != logits._data.shape:
        broadcast_shapes("softmax_cross_entropy", labels._data.shape, logits._data.shape)
    chances = log_softmax(logits, dim)
    return negative(reduce_sum(multiply(cast(labels, chances.dtype), chances), dim))
