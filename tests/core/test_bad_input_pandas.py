"""Values of pandas as operands (docs/behaviour.md 4.4)."""

import numpy as np
import pandas as pd
import pytest

import tinygrad_cg as tf


@pytest.mark.parametrize(
    ("foreign", "dtype"),
    [
        (pd.Series([1.0, 2.0]), "float64"),
        (pd.Series([1, 2], index=[7, 5]), "int64"),
        (pd.Series([1.0, 2.0], dtype="float32"), "float32"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), "float64"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}), "float64"),
    ],
    ids=["Series", "indexed Series", "float32 Series", "DataFrame", "mixed DataFrame"],
)
def test_conversion(foreign, dtype):
    """4.4: pandas Series ok, DataFrame ok as 2-D."""
    tensor = tf.constant(foreign)
    assert tensor.dtype == dtype
    assert tensor.shape == foreign.shape
    np.testing.assert_array_equal(tensor.numpy(), foreign.to_numpy())


@pytest.mark.parametrize("left", [False, True])
def test_series_as_an_operand(left):
    """A Series with a Tensor: recorded, on either side."""
    series = pd.Series([3.0, 4.0])
    x = tf.constant([1.0, 2.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = series * x if left else x * series
    assert isinstance(y, tf.Tensor)
    assert tape.gradient(y, x).numpy().tolist() == [3.0, 4.0]


def test_mutated_afterwards():
    """4.4: what is recorded is a copy."""
    series = pd.Series([3.0, 4.0])
    x = tf.constant([1.0, 2.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * series
    series[:] = 100.0
    assert tape.gradient(y, x).numpy().tolist() == [3.0, 4.0]


@pytest.mark.parametrize("use", [tf.constant, lambda series: tf.ones(2) * series])
def test_series_of_objects(use):
    """4.4: object array: TypeError with the remedy, which does not make NaN of what is missing."""
    with pytest.raises(TypeError, match=r"dtype=object; call \.astype\(float\)"):
        use(pd.Series([1.0, 2], dtype=object))
    with pytest.raises(TypeError, match=r"element \[1\] is None of type NoneType, not a number"):
        use(pd.Series([1.0, None], dtype=object))
