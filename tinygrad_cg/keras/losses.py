"""Keras's ``keras.losses``: functions of labels and predictions, and losses as objects."""

from __future__ import annotations

from typing import Any

from .._spellings.spell import spell
from . import _loss_objects
from ._identifiers import refuse_identifier
from ._loss_objects import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CategoricalHinge,
    CosineSimilarity,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    Loss,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
)

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
    "get",
]

_binary = _loss_objects.binary
_categorical = _loss_objects.categorical
_sparse = _loss_objects.sparse

_TABLE = """
    binary_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1)
        = _binary(y_true, y_pred, from_logits, label_smoothing, axis)
        # Return the mean along `axis` of ``-y_true log(y_pred) - (1 - y_true) log(1 - y_pred)``.
        `y_pred` are probabilities, or scores if `from_logits`; `label_smoothing` moves labels to
        0.5 by that share.
    categorical_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1)
        = _categorical(y_true, y_pred, from_logits, label_smoothing, axis)
        # Return ``-sum(y_true * log(y_pred))`` along `axis`. `y_pred` are probabilities, or scores
        if `from_logits`; `label_smoothing` is the share of equal chances mixed with `y_true`.
    categorical_hinge hinge huber kl_divergence log_cosh mean_absolute_error
        mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error poisson
        squared_hinge = {}
    MSE mse = mean_squared_error
    MAE mae = mean_absolute_error
    MAPE mape = mean_absolute_percentage_error
    MSLE msle = mean_squared_logarithmic_error
    KLD kld kullback_leibler_divergence = kl_divergence
    logcosh = log_cosh
    cosine_similarity(y_true, y_pred, axis=-1) = cosine_similarity(y_true, y_pred, axis)
    sparse_categorical_crossentropy(y_true, y_pred, from_logits=False, ignore_class=None, axis=-1)
        = _sparse(y_true, y_pred, from_logits, ignore_class, axis)
        # Return ``-log(y_pred[label])`` along the last axis, and 0 where the label is
        `ignore_class`. `y_pred` are probabilities, or scores if `from_logits`.
"""
spell(globals(), _TABLE)


def get(identifier: Any) -> Any:
    """Return the function of that name, or a new loss of the class of that name.

    A function or a loss is returned as it is, and so is None. Raises ValueError for a name that is
    none. After ``keras.losses.get``.

    Examples
    --------
    >>> tf.keras.losses.get("mse")([0.0, 0.0], [1.0, 3.0]).numpy()
    np.float32(5.0)
    """
    if identifier is None or callable(identifier):
        return identifier
    names = [name for name in __all__ if name not in ("Loss", "get")]
    if identifier not in names:
        refuse_identifier("keras.losses.get", "a function, a loss", names, identifier)
    found = globals()[identifier]
    return found() if isinstance(found, type) else found
