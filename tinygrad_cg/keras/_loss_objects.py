"""Losses as objects: a function of labels and predictions with its options and its reduction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .. import nest
from .._core.conversion import convert, unrounded
from .._core.kinds import is_inexact
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from .._ops.comparison import not_equal
from .._ops.elementwise import add, divide, multiply, where
from .._ops.loss_functions import binary_crossentropy as _binary_crossentropy
from .._ops.loss_functions import categorical_crossentropy as _categorical_crossentropy
from .._ops.loss_functions import (
    categorical_hinge,
    class_numbers,
    cosine_similarity,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    same_rank,
    squared_hinge,
)
from .._ops.loss_functions import sparse_categorical_crossentropy as _sparse_crossentropy
from .._ops.reductions import reduce_mean, reduce_sum
from .._ops.shape import broadcast_to, cast, expand_dims, reshape, squeeze
from .._ops.validation import normalize_axis
from ._operands import as_real

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "CosineSimilarity",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
]

_REDUCTIONS = {
    "sum_over_batch_size": "sum_over_batch_size",
    "auto": "sum_over_batch_size",
    "mean": "sum_over_batch_size",
    "mean_with_sample_weight": "mean_with_sample_weight",
    "sum": "sum",
    "none": None,
    None: None,
}


def binary(y_true: Any, y_pred: Any, from_logits: bool, smoothing: Any, axis: Any) -> Tensor:
    labels = _smooth(y_true, smoothing, 2)
    return reduce_mean(_binary_crossentropy(labels, y_pred, from_logits), axis)


def categorical(y_true: Any, y_pred: Any, from_logits: bool, smoothing: Any, axis: Any) -> Tensor:
    y_pred = convert(y_pred)
    classes = y_pred.shape[normalize_axis("categorical_crossentropy", axis, y_pred.ndim)]
    labels = _smooth(y_true, smoothing, classes)
    return _categorical_crossentropy(labels, y_pred, from_logits, axis)


def sparse(y_true: Any, y_pred: Any, from_logits: bool, ignored: Any, axis: Any) -> Tensor:
    """Return a loss for each label, and 0 where the label is the class that is ignored."""
    if ignored is None:
        return _sparse_crossentropy(y_true, y_pred, from_logits, axis)
    y_pred = convert(y_pred)
    labels = class_numbers(y_true, y_pred)
    kept = not_equal(labels, ignored)
    labels = where(kept, labels, 0)
    y_pred = where(expand_dims(kept, -1), y_pred, 1)
    return where(kept, _sparse_crossentropy(labels, y_pred, from_logits, axis), 0)


def _smooth(y_true: Any, share: Any, classes: Any) -> Any:
    """Return labels mixed with `share` of a uniform distribution over the classes."""
    if not share:
        return y_true
    return add(multiply(as_real(y_true), 1.0 - share), share / classes)


class Loss(ABC):
    """Base of losses: objects that are called with labels and predictions.

    Parameters
    ----------
    reduction:
        "sum_over_batch_size" (the mean over all losses), "sum", "mean_with_sample_weight" (the sum
        over the sum of weights), or None: a loss for each example.
    dtype:
        The dtype in which the loss is computed; by default that of the predictions (Keras casts to
        float32, or to the dtype of `set_floatx`).

    A subclass defines ``call(y_true, y_pred)``, which returns a loss for each example; otherwise
    its constructor raises TypeError. ``loss(y_true, y_pred, sample_weight=None)`` multiplies them
    by weights, which broadcast from the left, and reduces them. ValueError for another reduction.
    Modelled on ``keras.losses.Loss``.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> loss = tf.keras.losses.MeanSquaredError()
    >>> float(loss([[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 0.0]]))
    0.5
    """

    def __init__(
        self,
        name: str | None = None,
        reduction: str | None = "sum_over_batch_size",
        dtype: Any = None,
    ):
        if reduction not in _REDUCTIONS:
            raise ValueError(
                f"{type(self).__name__}: reduction must be one of 'sum_over_batch_size', 'sum', "
                f"'mean', 'mean_with_sample_weight', 'none' and None, got {reduction!r}"
            )
        self.name = type(self).__name__ if name is None else name
        self.reduction = _REDUCTIONS[reduction]
        self.dtype = None if dtype is None else np.dtype(dtype)

    @abstractmethod
    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return a loss for each example."""

    def _kept(self, y_true: Any) -> Tensor | None:
        """Return which labels count; None for all."""
        return None

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        y_pred = nest.map_structure(convert, y_pred if self.dtype is None else unrounded(y_pred))
        if isinstance(y_pred, list):
            y_pred = convert(y_pred)
        if self.dtype is not None:
            y_pred = nest.map_structure(lambda leaf: cast(leaf, self.dtype), y_pred)
        labels = unrounded(y_true)
        plain, y_true = labels is not y_true, nest.map_structure(convert, labels)
        if isinstance(y_true, list):
            y_true = convert(y_true)
        if isinstance(y_true, Tensor) and isinstance(y_pred, Tensor):
            if plain and is_inexact(y_true.dtype) and is_inexact(y_pred.dtype):
                y_true = cast(y_true, y_pred.dtype)
            y_true, y_pred = same_rank(y_true, y_pred)
        losses = convert(self.call(y_true, y_pred))
        weights = None
        if sample_weight is not None:
            weights = cast(sample_weight, losses.dtype)
            if weights.ndim == losses.ndim + 1 and weights.shape[-1] == 1:
                weights = squeeze(weights, -1)
            while weights.ndim < losses.ndim:
                weights = expand_dims(weights, -1)
            losses = multiply(losses, weights)
        if self.reduction is None or losses.ndim == 0:
            return losses
        total = reduce_sum(losses)
        if self.reduction == "sum":
            return total
        kept = self._kept(y_true)
        if kept is not None:
            kept = reshape(cast(kept, losses.dtype), losses.shape)
            weights = kept if weights is None else multiply(weights, kept)
            if self.reduction == "sum_over_batch_size":
                count = reduce_sum(kept)
                return divide(total, where(count == 0, 1, count))
        if self.reduction == "mean_with_sample_weight" and weights is not None:
            count = reduce_sum(broadcast_to(weights, losses.shape))
            return where(count == 0, 0, divide(total, where(count == 0, 1, count)))
        return divide(total, losses.size) if losses.size else total


class _FunctionLoss(Loss):
    """A loss that is a function without options."""

    def __init_subclass__(cls, of: Any = None, **options: Any):
        super().__init_subclass__(**options)
        if of is not None:
            cls._function = staticmethod(of)

    @reads_own_arguments
    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(name, reduction, dtype)

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return self._function(y_true, y_pred)


class MeanSquaredError(_FunctionLoss, of=mean_squared_error):
    """The mean of ``(y_true - y_pred)**2`` along the last axis."""


class MeanAbsoluteError(_FunctionLoss, of=mean_absolute_error):
    """The mean of ``abs(y_true - y_pred)`` along the last axis."""


class MeanAbsolutePercentageError(_FunctionLoss, of=mean_absolute_percentage_error):
    """The mean of ``100 abs(y_true - y_pred) / abs(y_true)`` along the last axis."""


class MeanSquaredLogarithmicError(_FunctionLoss, of=mean_squared_logarithmic_error):
    """The mean of ``(log(1 + y_true) - log(1 + y_pred))**2`` along the last axis."""


class LogCosh(_FunctionLoss, of=log_cosh):
    """The mean of ``log(cosh(y_pred - y_true))`` along the last axis."""


class KLDivergence(_FunctionLoss, of=kl_divergence):
    """The sum of ``y_true log(y_true / y_pred)`` along the last axis."""


class Poisson(_FunctionLoss, of=poisson):
    """The mean of ``y_pred - y_true log(y_pred)`` along the last axis."""


class Hinge(_FunctionLoss, of=hinge):
    """The mean of ``max(1 - y_true y_pred, 0)`` along the last axis."""


class SquaredHinge(_FunctionLoss, of=squared_hinge):
    """The mean of ``max(1 - y_true y_pred, 0)**2`` along the last axis."""


class CategoricalHinge(_FunctionLoss, of=categorical_hinge):
    """``max(1 - score of the label + largest other score, 0)`` along the last axis."""


class Huber(Loss):
    """Half the squared error where it is less than `delta`, and linear beyond."""

    @reads_own_arguments
    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(name, reduction, dtype)
        self.delta = delta

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return huber(y_true, y_pred, self.delta)


class CosineSimilarity(Loss):
    """Minus the cosine of the angle between labels and predictions along `axis`."""

    @reads_own_arguments
    def __init__(
        self,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(name, reduction, dtype)
        self.axis = axis

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return cosine_similarity(y_true, y_pred, self.axis)


class BinaryCrossentropy(Loss):
    """Cross-entropy of labels 0 and 1 with probabilities, or with scores if `from_logits`."""

    @reads_own_arguments
    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(name, reduction, dtype)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return binary(y_true, y_pred, self.from_logits, self.label_smoothing, self.axis)


class CategoricalCrossentropy(BinaryCrossentropy):
    """Cross-entropy of one_hot labels with probabilities, or with scores if `from_logits`."""

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return categorical(y_true, y_pred, self.from_logits, self.label_smoothing, self.axis)


class SparseCategoricalCrossentropy(Loss):
    """Cross-entropy of integer labels with probabilities, or with scores if `from_logits`."""

    @reads_own_arguments
    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: int = -1,
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(name, reduction, dtype)
        self.from_logits = from_logits
        self.ignore_class = ignore_class
        self.axis = axis

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return sparse(y_true, y_pred, self.from_logits, self.ignore_class, self.axis)

    def _kept(self, y_true: Any) -> Tensor | None:
        return None if self.ignore_class is None else not_equal(y_true, self.ignore_class)
