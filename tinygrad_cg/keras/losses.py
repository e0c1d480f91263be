"""Keras's ``keras.losses``: functions of labels and predictions, a loss for each example."""

from __future__ import annotations

from typing import Any

from .._core.conversion import convert
from .._core.tensor import Tensor
from .._ops.comparison import not_equal
from .._ops.define import normalize_axis
from .._ops.elementwise import add, multiply, where
from .._ops.shape import cast, expand_dims, reshape
from .._spellings.spell import spell

__all__: list[str] = []


def _smooth(y_true: Any, share: Any, classes: Any) -> Any:
    """Return labels mixed with `share` of equal chances for all classes."""
    if not share:
        return y_true
    y_true = convert(y_true)
    y_true = y_true if y_true.dtype.kind in "fc" else cast(y_true, "float32")
    return add(multiply(y_true, 1.0 - share), share / classes)


def _classes(y_pred: Any, axis: Any) -> int:
    y_pred = convert(y_pred)
    return y_pred.shape[normalize_axis("categorical_crossentropy", axis, y_pred.ndim)]


def _ignoring(loss: Any, y_true: Any, y_pred: Any, from_logits: bool, ignored: Any) -> Tensor:
    """Return `loss`, and 0 where the label is the class that is ignored."""
    labels, y_pred = convert(y_true), convert(y_pred)
    if labels.ndim == y_pred.ndim and labels.shape[-1] == 1:
        labels = reshape(labels, labels.shape[:-1])
    if ignored is None:
        return loss(labels, y_pred, from_logits)
    kept = not_equal(labels, ignored)
    found = loss(where(kept, labels, 0), where(expand_dims(kept, -1), y_pred, 1), from_logits)
    return where(kept, found, 0)


_TABLE = """
    binary_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1)
        = reduce_mean(binary_crossentropy(_smooth(y_true, label_smoothing, 2), y_pred, from_logits),
        axis)
        # Return the mean along `axis` of ``-y_true log(y_pred) - (1 - y_true) log(1 - y_pred)``.
        `y_pred` are probabilities, or scores if `from_logits`; `label_smoothing` moves labels to
        0.5 by that share.
    categorical_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1)
        = categorical_crossentropy(_smooth(y_true, label_smoothing, _classes(y_pred, axis)), y_pred,
        from_logits, axis)
        # Return ``-sum(y_true * log(y_pred))`` along `axis`. `y_pred` are probabilities, or scores
        if `from_logits`; `label_smoothing` is the share of equal chances mixed with `y_true`.
    categorical_hinge hinge huber kl_divergence log_cosh mean_absolute_error
        mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error poisson
        squared_hinge = {}
    cosine_similarity(y_true, y_pred, axis=-1) = cosine_similarity(y_true, y_pred, axis)
    sparse_categorical_crossentropy(y_true, y_pred, from_logits=False, ignore_class=None, axis=-1)
        = _ignoring(lambda *three: sparse_categorical_crossentropy(*three, axis), y_true, y_pred,
        from_logits, ignore_class)
        # Return ``-log(y_pred[label])`` along the last axis, and 0 where the label is
        `ignore_class`. `y_pred` are probabilities, or scores if `from_logits`.
"""
spell(globals(), _TABLE)
