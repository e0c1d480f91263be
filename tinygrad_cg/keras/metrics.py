"""Keras's ``keras.metrics``: running means and sums of values in a loop."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._core.conversion import FLOAT32, as_dtype, convert
from .._core.suggestions import refuse_name
from .._core.tensor import Tensor
from .._ops.comparison import equal
from .._ops.elementwise import divide, multiply, negative, sqrt, square, subtract, where
from .._ops.loss_functions import same_rank
from .._ops.reductions import argmax, reduce_any, reduce_mean, reduce_sum
from .._ops.settings import settings
from .._ops.shape import broadcast_to, cast, expand_dims, reshape
from .._ops.sorting import in_top_k
from .._reverse.variable import Variable
from . import losses

__all__ = ["Accuracy", "BinaryAccuracy", "BinaryCrossentropy", "CategoricalAccuracy"]
__all__ += ["CategoricalCrossentropy", "CategoricalHinge", "CosineSimilarity", "Hinge"]
__all__ += ["KLDivergence", "LogCoshError", "Mean", "MeanAbsoluteError"]
__all__ += ["MeanAbsolutePercentageError", "MeanMetricWrapper", "MeanSquaredError"]
__all__ += ["MeanSquaredLogarithmicError", "Metric", "Poisson", "RootMeanSquaredError"]
__all__ += ["SparseCategoricalAccuracy", "SparseCategoricalCrossentropy"]
__all__ += ["SparseTopKCategoricalAccuracy", "SquaredHinge", "Sum", "TopKCategoricalAccuracy"]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = partial(refuse_name, __name__)


class Metric(ABC):
    """Base of metrics: `update_state` adds values, `result` returns the metric so far.

    A subclass defines both, and creates its state with `add_weight` in ``__init__``; otherwise its
    constructor raises TypeError. Calling a metric with values updates it and returns its result.
    `reset_state` starts again. The state is in Variables that tapes do not watch, so a `function`
    can update it.
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
        """Add values to the state. Metrics define this."""

    @abstractmethod
    def result(self) -> Any:
        """Return the metric of all values since the last reset. Metrics define this."""

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

    There is one weight for each row, or weights have more of the values' axes.
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
    """The mean of the means of rows, weighted by `sample_weight`; 0 without rows.

    Rows are counted, not elements, as in Keras: a batch of values of shape (n, ...) counts n times.
    There is one weight for each row, or weights have more of the values' axes.

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
    """The mean of a function's results for labels, predictions and further arguments."""

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any
    ):
        super().__init__(name, dtype)
        self._function = partial(fn, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels and predictions to the state."""
        super().update_state(self._function(convert(y_true), convert(y_pred)), sample_weight)


def _matches(labels: Any, predictions: Any) -> Tensor:
    """Return 1 where labels and predictions are equal, else 0."""
    labels, predictions = same_rank(cast(labels, predictions.dtype), predictions)
    return cast(equal(labels, predictions), settings.floatx)


def _exceeds(labels: Tensor, scores: Tensor, threshold: float = 0.5) -> Tensor:
    return _matches(labels, cast(scores > threshold, labels.dtype))


def _picks(labels: Tensor, scores: Tensor) -> Tensor:
    return _matches(labels, cast(argmax(scores, -1), np.float64))


def _has_in_top(
    labels: Tensor, scores: Tensor, k: int = 5, from_sorted_ids: bool = False
) -> Tensor:
    """Return 1 for rows where the label has one of the `k` largest scores, else 0."""
    flat, rows = reshape(cast(labels, np.int64), (-1,)), reshape(scores, (-1, scores.shape[-1]))
    if from_sorted_ids:  # classes, the most likely ones first
        hits = reduce_any(equal(expand_dims(flat, 1), cast(rows[:, :k], np.int64)), 1)
    else:
        hits = in_top_k(flat, rows, k)
    return cast(reshape(hits, labels.shape), settings.floatx)


def _cosines(labels: Tensor, predictions: Tensor, axis: int = -1) -> Tensor:
    return negative(losses.cosine_similarity(labels, predictions, axis))


def _squares(labels: Tensor, predictions: Tensor) -> Tensor:
    return square(subtract(*same_rank(cast(labels, predictions.dtype), predictions)))


class _MeanOf(MeanMetricWrapper):
    """Base of metrics that are the mean of one function, whose options they take."""

    _of: Callable[..., Tensor]
    __signature__: inspect.Signature

    def __init__(self, *args: Any, **options: Any):
        try:
            bound = self.__signature__.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        super().__init__(self._of, **bound.arguments)


def _mean_of(title: str, function: Callable[..., Tensor], name: str = "") -> type[_MeanOf]:
    """Return a class of metrics. Its parameters are `k`, its name, its dtype, other options."""
    name = name or "_".join(re.findall("[A-Z]+(?![a-z])|[A-Z][a-z]+", title)).lower()
    _, _, *options = inspect.signature(function).parameters.values()
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = {"name": name, "dtype": None}.items()
    own = [inspect.Parameter(name, kind, default=default) for name, default in defaults]
    parameters = sorted([*own, *options], key=lambda parameter: parameter.name != "k")
    signature = inspect.Signature(parameters)
    members = {"_of": staticmethod(function), "__signature__": signature, "__module__": __name__}
    return type(title, (_MeanOf,), members | {"__doc__": f"The mean over rows of the {name}."})


Accuracy = _mean_of("Accuracy", _matches)
BinaryAccuracy = _mean_of("BinaryAccuracy", _exceeds)
BinaryCrossentropy = _mean_of("BinaryCrossentropy", losses.binary_crossentropy)
CategoricalAccuracy = _mean_of("CategoricalAccuracy", lambda y, p: _picks(argmax(y, -1), p))
CategoricalCrossentropy = _mean_of("CategoricalCrossentropy", losses.categorical_crossentropy)
CategoricalHinge = _mean_of("CategoricalHinge", losses.categorical_hinge)
CosineSimilarity = _mean_of("CosineSimilarity", _cosines)
Hinge = _mean_of("Hinge", losses.hinge)
KLDivergence = _mean_of("KLDivergence", losses.kl_divergence)
LogCoshError = _mean_of("LogCoshError", losses.log_cosh, "logcosh")
MeanAbsoluteError = _mean_of("MeanAbsoluteError", losses.mean_absolute_error)
MeanAbsolutePercentageError = _mean_of("MeanAbsolutePercentageError", losses.MAPE)
MeanSquaredError = _mean_of("MeanSquaredError", losses.mean_squared_error)
MeanSquaredLogarithmicError = _mean_of("MeanSquaredLogarithmicError", losses.MSLE)
Poisson = _mean_of("Poisson", losses.poisson)
SparseCategoricalAccuracy = _mean_of("SparseCategoricalAccuracy", _picks)
SparseCategoricalCrossentropy = _mean_of(
    "SparseCategoricalCrossentropy", losses.sparse_categorical_crossentropy
)
SparseTopKCategoricalAccuracy = _mean_of("SparseTopKCategoricalAccuracy", _has_in_top)
SquaredHinge = _mean_of("SquaredHinge", losses.squared_hinge)
TopKCategoricalAccuracy = _mean_of(
    "TopKCategoricalAccuracy", lambda y, p, k=5: _has_in_top(argmax(y, -1), p, k)
)


class RootMeanSquaredError(_mean_of("RootMeanSquaredError", _squares)):
    """The square root of the mean of squared differences."""

    def result(self) -> Tensor:
        """Return the root so far."""
        return sqrt(super().result())


def _by_row(
    values: Any, weights: Any, dtype: Any, reduce: Callable[..., Tensor]
) -> tuple[Tensor, Tensor | None]:
    """Return a value for each row, multiplied by its weight, and the weights of rows."""
    values = cast(values, dtype)
    if weights is not None:
        values, weights = same_rank(values, cast(weights, dtype))
        values = _over_rest(values, weights.ndim, reduce)
        weights = broadcast_to(weights, values.shape)
        values, weights = multiply(values, weights), _over_rest(weights, 1, reduce)
    return _over_rest(values, 1, reduce), weights


def _over_rest(values: Tensor, kept: int, reduce: Callable[..., Tensor]) -> Tensor:
    """Reduce all axes after the first `kept`."""
    return reduce(values, tuple(range(kept, values.ndim))) if values.ndim > kept else values
