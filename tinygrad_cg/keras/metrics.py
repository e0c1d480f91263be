"""Keras's ``keras.metrics``: running means and sums of what a loop computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._core.conversion import FLOAT32, as_dtype, convert
from .._core.suggestions import refuse_name
from .._core.tensor import Tensor
from .._ops.comparison import equal
from .._ops.elementwise import divide, multiply, where
from .._ops.reductions import argmax, reduce_mean, reduce_sum
from .._ops.shape import broadcast_to, cast, squeeze
from .._reverse.variable import Variable

__all__ = ["Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "Mean", "MeanMetricWrapper"]
__all__ += ["Metric", "SparseCategoricalAccuracy", "Sum"]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = partial(refuse_name, __name__)


class Metric(ABC):
    """Base of metrics: `update_state` takes values in, `result` returns the number so far.

    A metric of one's own defines these two, and makes its state by `add_weight` in ``__init__``;
    one that does not define both cannot be made: TypeError. A metric is called with values, which
    updates it, and returns its result. `reset_state` begins anew. The state is in Variables that
    tapes do not watch, so that a `function` can update it.
    """

    def __init__(self, dtype: Any = None, name: str | None = None):
        self.name: str = type(self).__name__.lower() if name is None else name
        self.dtype = FLOAT32 if dtype is None else as_dtype(dtype)
        self._variables: list[Variable] = []

    @property
    def variables(self) -> list[Variable]:
        """Return the Variables that hold the state."""
        return list(self._variables)

    def add_weight(
        self, shape: Any = (), initializer: Any = None, dtype: Any = None, name: str | None = None
    ) -> Variable:
        """Return a new Variable of the state. It is 0 at first, and after `reset_state`."""
        if initializer not in (None, "zeros"):
            raise ValueError(
                f'add_weight: initializer must be None or "zeros", got {initializer!r}: assign '
                "another value to the Variable"
            )
        value = np.zeros(shape, self.dtype if dtype is None else as_dtype(dtype))
        variable = Variable(value, trainable=False, name=name)
        self._variables.append(variable)
        return variable

    @abstractmethod
    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Take values in. Metrics define this."""

    @abstractmethod
    def result(self) -> Any:
        """Return the number for all values since the last reset. Metrics define this."""

    def reset_state(self) -> None:
        """Forget all values."""
        for variable in self._variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.update_state(*args, **kwargs)
        return self.result()

    def __repr__(self) -> str:
        return f"<tg.metrics.{type(self).__name__} {self.name!r}>"


class Sum(Metric):
    """The sum of all values, each multiplied by its `sample_weight`.

    Weights are one for each row, or have more of the values' axes.
    """

    def __init__(self, name: str | None = "sum", dtype: Any = None):
        super().__init__(dtype, name)
        self._total = self.add_weight(name="total")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values to the sum."""
        rows, _ = _by_row(values, sample_weight, self.dtype, reduce_sum)
        self._total.assign_add(reduce_sum(rows))

    def result(self) -> Tensor:
        """Return the sum so far."""
        return self._total.value()


class Mean(Metric):
    """The mean of the means of rows, weighted by `sample_weight`; 0 as long as there are none.

    Rows are counted, not elements, as in the original: a batch of values of shape (n, ...) counts n
    times. Weights are one for each row, or have more of the values' axes.

    Examples
    --------
    >>> mean = Mean()
    >>> mean.update_state([1.0, 3.0])
    >>> mean.update_state(5.0)
    >>> float(mean.result())
    3.0
    """

    def __init__(self, name: str | None = "mean", dtype: Any = None):
        super().__init__(dtype, name)
        self._total = self.add_weight(name="total")
        self._count = self.add_weight(name="count")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Take values in."""
        rows, weights = _by_row(values, sample_weight, self.dtype, reduce_mean)
        self._total.assign_add(reduce_sum(rows))
        count = convert(rows.size) if weights is None else reduce_sum(weights)
        self._count.assign_add(cast(count, self.dtype))

    def result(self) -> Tensor:
        """Return the mean so far."""
        empty = self._count.value() == 0
        return where(empty, 0, divide(self._total, where(empty, 1, self._count)))


class MeanMetricWrapper(Mean):
    """The mean of what a function returns for labels, predictions and further arguments."""

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any
    ):
        super().__init__(name, dtype)
        self._function = partial(fn, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and predictions in."""
        super().update_state(self._function(convert(y_true), convert(y_pred)), sample_weight)


class Accuracy(MeanMetricWrapper):
    """The share of predictions that are equal to the labels."""

    def __init__(self, name: str | None = "accuracy", dtype: Any = None):
        super().__init__(_matches, name, dtype)


class BinaryAccuracy(MeanMetricWrapper):
    """The share of labels, 0 or 1, that say whether the prediction is over `threshold`."""

    def __init__(
        self, name: str | None = "binary_accuracy", dtype: Any = None, threshold: float = 0.5
    ):
        super().__init__(
            lambda labels, scores: _matches(labels, cast(scores > threshold, labels.dtype)),
            name,
            dtype,
        )


class CategoricalAccuracy(MeanMetricWrapper):
    """The share of rows whose largest prediction is at the class that `y_true` has a 1 for.

    Examples
    --------
    >>> accuracy = CategoricalAccuracy()
    >>> float(accuracy([[0.0, 1.0], [1.0, 0.0]], [[0.2, 0.8], [0.3, 0.7]]))
    0.5
    """

    def __init__(self, name: str | None = "categorical_accuracy", dtype: Any = None):
        super().__init__(lambda labels, scores: _picks(argmax(labels, -1), scores), name, dtype)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """The share of rows whose largest prediction is at the class that `y_true` is."""

    def __init__(self, name: str | None = "sparse_categorical_accuracy", dtype: Any = None):
        super().__init__(_picks, name, dtype)


def _matches(labels: Tensor, predictions: Tensor) -> Tensor:
    if labels.ndim == predictions.ndim + 1 and labels.shape[-1] == 1:
        labels = squeeze(labels, -1)
    elif predictions.ndim == labels.ndim + 1 and predictions.shape[-1] == 1:
        predictions = squeeze(predictions, -1)
    return equal(labels, cast(predictions, labels.dtype))


def _picks(labels: Tensor, scores: Tensor) -> Tensor:
    if labels.ndim == scores.ndim and labels.shape[-1] == 1:
        labels = squeeze(labels, -1)
    return equal(labels, cast(argmax(scores, -1), labels.dtype))


def _by_row(
    values: Any, weights: Any, dtype: Any, reduce: Callable[..., Tensor]
) -> tuple[Tensor, Tensor | None]:
    """Return a value for each row, multiplied by its weight, and the weights of rows."""
    values = cast(values, dtype)
    if weights is not None:
        weights = cast(weights, dtype)
        if weights.ndim == values.ndim + 1 and weights.shape[-1] == 1:
            weights = squeeze(weights, -1)
        values = _over_rest(values, weights.ndim, reduce)
        weights = broadcast_to(weights, values.shape)
        values, weights = multiply(values, weights), _over_rest(weights, 1, reduce)
    return _over_rest(values, 1, reduce), weights


def _over_rest(values: Tensor, kept: int, reduce: Callable[..., Tensor]) -> Tensor:
    """Reduce all axes after the first `kept`."""
    return reduce(values, tuple(range(kept, values.ndim))) if values.ndim > kept else values
