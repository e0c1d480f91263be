"""Keras's settings: ``keras.config``, and ``keras.backend``, which has them under the same names.

They apply to the whole process. A `function` keeps the settings of its trace.
"""

from __future__ import annotations

import numpy as np

from .._ops.settings import settings

__all__ = [
    "backend",
    "epsilon",
    "floatx",
    "image_data_format",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
]
__dir__ = __all__.copy


def backend() -> str:
    """Return the name of this library, which is not a backend of Keras."""
    return "tinygrad_cg"


def floatx() -> str:
    """Return the default dtype of `keras.ops` and `keras.random`: "float32" unless set."""
    return settings.floatx.name


def set_floatx(value: str) -> None:
    """Set the default dtype: "float16", "float32" or "float64".

    New tensors of `keras.ops` and `keras.random` have this ``dtype`` by default (`zeros`, `eye`,
    `one_hot`, `linspace`, draws). Functions of reals (`sqrt`, `mean`, `divide`) convert integers to
    it. As in Keras, tensors and arrays keep their dtypes, and `convert_to_tensor` converts Python
    floats to float32: pass ``dtype=`` there. With integers they also count as float32 (in Keras as
    `floatx`). Loss objects compute in the dtype of the predictions. Other namespaces ignore this.

    Raises ValueError for other values; "bfloat16" is not supported.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> tf.keras.config.set_floatx("float64")
    >>> tf.keras.ops.zeros(2).dtype.name
    'float64'
    >>> tf.keras.config.set_floatx("float32")
    """
    if value not in ("float16", "float32", "float64"):
        remedy = ": use float32, which holds all its values" if value == "bfloat16" else ""
        raise ValueError(
            f"set_floatx: Unknown `floatx` value: {value!r}{remedy}. "
            "Expected one of 'float16', 'float32', 'float64'"
        )
    settings.floatx = np.dtype(value)


def epsilon() -> float:
    """Return the small number added to divisors and to probabilities near 0: 1e-7 by default."""
    return settings.epsilon


def set_epsilon(value: float) -> None:
    """Set the small number of losses and normalizations; ValueError unless it is positive.

    Optimizers have a separate ``epsilon``.
    """
    if not (isinstance(value, (int, float, np.number)) and 0 < value < 1):
        raise ValueError(f"set_epsilon: value must be a number between 0 and 1, got {value!r}")
    settings.epsilon = float(value)


def image_data_format() -> str:
    """Return the default position of the channels axis of images."""
    return settings.image_data_format


def set_image_data_format(data_format: str) -> None:
    """Set the default order of axes: "channels_last" or "channels_first". ValueError for others."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(
            "set_image_data_format: The `data_format` argument must be one of 'channels_first', "
            f"'channels_last'. Received: data_format={data_format!r}"
        )
    settings.image_data_format = data_format
