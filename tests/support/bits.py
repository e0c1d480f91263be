"""Comparisons of arrays by their bits."""

import numpy as np


def assert_same_bits(result: np.ndarray, expected: np.ndarray) -> None:
    """Compare floats by their bits: signs of zeros count. Those of NaN say nothing."""
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), nan)
    bits = np.dtype(f"i{expected.itemsize}")
    np.testing.assert_array_equal(result[~nan].view(bits), expected[~nan].view(bits))
