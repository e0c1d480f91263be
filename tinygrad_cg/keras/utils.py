"""Keras's ``keras.utils``: labels as rows, and seeds."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np

from .._core.conversion import convert, is_tensor
from .._core.suggestions import refuse_name
from .._ops.norms import vector_norm
from .._ops.sampling import set_seed
from .._ops.sorting import one_hot

__all__ = ["normalize", "set_random_seed", "to_categorical"]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = partial(refuse_name, __name__)


def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """Return one-hot rows of labels; by default their length is the largest label plus one.

    A last axis of size 1 is dropped. Labels in a tensor give a tensor (float32) and need
    `num_classes`; others give an array (float64). ValueError for an array's labels that are not
    integers from 0 to `num_classes` - 1.

    Examples
    --------
    >>> tf.keras.utils.to_categorical([0, 2])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    classes: Any = convert(x) if is_tensor(x) else np.asarray(x)
    classes = classes[..., 0] if classes.ndim > 1 and classes.shape[-1] == 1 else classes
    if is_tensor(x):
        return one_hot(classes, num_classes)
    labels = classes.astype(np.int64)
    count = int(labels.max(initial=-1)) + 1 if num_classes is None else num_classes
    if (labels != classes).any() or (labels < 0).any() or (labels >= count).any():
        raise ValueError(
            f"to_categorical: labels must be integers from 0 to {count - 1}, got {classes}"
        )
    return np.eye(count)[labels]


def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """Return an array divided by its norms along `axis`, or unchanged where the norm is 0."""
    values = np.asarray(x)
    lengths = np.asarray(vector_norm(np.atleast_1d(values), order, axis, True))
    return values / np.where(lengths == 0, 1, lengths)


def set_random_seed(seed: int) -> None:
    """Set the seeds of Python's ``random``, of NumPy, and of this library."""
    random.seed(seed)
    np.random.seed(seed)
    set_seed(seed)
