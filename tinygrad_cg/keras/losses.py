"""Keras's ``keras.losses``: functions of labels and predictions, and losses as objects."""

from __future__ import annotations

from typing import Any

from .._core.annotations import Axes
from .._core.tensor import Tensor
from .._ops import loss_functions as _losses
from .._ops.namespaces.namespace import export_functions
from . import _loss_objects
from ._identifiers import refuse_identifier
from ._loss_objects import *  # noqa: F403

_OPERATIONS = (  # and other names of theirs
    "categorical_hinge hinge huber kl_divergence log_cosh mean_absolute_error "
    "mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error poisson "
    "squared_hinge MSE mse MAE mae MAPE mape MSLE msle KLD kld kullback_leibler_divergence "
    "logcosh"
)
__all__ = _OPERATIONS.split()
__all__ += _loss_objects.__all__


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: Any = 0.0, axis: Axes = -1
) -> Tensor:
    """Return the mean along `axis` of ``-y_true log(y_pred) - (1 - y_true) log(1 - y_pred)``.
    `y_pred` are probabilities, or scores if `from_logits`; `label_smoothing` moves labels to 0.5 by
    this share."""
    return _loss_objects.binary(y_true, y_pred, from_logits, label_smoothing, axis)


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: Any = 0.0, axis: Axes = -1
) -> Tensor:
    """Return ``-sum(y_true * log(y_pred))`` along `axis`. `y_pred` are probabilities, or scores if
    `from_logits`; `label_smoothing` mixes `y_true` with this share of a uniform distribution."""
    return _loss_objects.categorical(y_true, y_pred, from_logits, label_smoothing, axis)


categorical_hinge = _losses.categorical_hinge
hinge = _losses.hinge
huber = _losses.huber
kl_divergence = KLD = kld = kullback_leibler_divergence = _losses.kl_divergence
log_cosh = logcosh = _losses.log_cosh
mean_absolute_error = MAE = mae = _losses.mean_absolute_error
mean_absolute_percentage_error = MAPE = mape = _losses.mean_absolute_percentage_error
mean_squared_error = MSE = mse = _losses.mean_squared_error
mean_squared_logarithmic_error = MSLE = msle = _losses.mean_squared_logarithmic_error
poisson = _losses.poisson
squared_hinge = _losses.squared_hinge


def cosine_similarity(y_true: Any, y_pred: Any, axis: Axes = -1) -> Tensor:
    """Return the negative cosine of the angle between vectors along `axis`."""
    return _losses.cosine_similarity(y_true, y_pred, axis)


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: Any = None, axis: Axes = -1
) -> Tensor:
    """Return ``-log(y_pred[label])`` along the last axis, and 0 where the label is `ignore_class`.
    `y_pred` are probabilities, or scores if `from_logits`."""
    return _loss_objects.sparse(y_true, y_pred, from_logits, ignore_class, axis)


def get(identifier: Any) -> Any:
    """Return the function of that name, or a new loss of the class of that name.

    A function, a loss or None is returned unchanged. Raises ValueError for an unknown name.
    Modelled on ``keras.losses.get``.

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
    entry = globals()[identifier]
    return entry() if isinstance(entry, type) else entry


__all__ += export_functions(globals())
