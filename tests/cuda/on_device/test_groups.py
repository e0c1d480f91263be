"""Values of groups of threads as one, in every dtype and for every size of a group."""

import numpy as np
import pytest

from tests.cuda.group_cases import DTYPES, combined
from tinygrad_cg_kernels.cuda import adapter


def numbers(dtype, count):
    """Values of a dtype, its extremes among them."""
    rng = np.random.default_rng(7)
    if dtype.kind == "b":
        return rng.random(count) < 0.3
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, count, dtype, endpoint=True)
        values[:2] = info.max, info.min
        return values
    values = rng.normal(size=count) + (1j * rng.normal(size=count) if dtype.kind == "c" else 0)
    return values.astype(dtype)


@pytest.mark.parametrize("code", DTYPES)
def test_every_thread_has_the_value_of_its_group(code):
    dtype, threads = np.dtype(code), adapter.THREADS
    values = numbers(dtype, threads)
    group = 1
    while group <= threads:
        result = combined(values, group)
        rows = values.reshape(-1, group)
        want = rows.sum(1) if dtype.kind == "c" else rows.max(1)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, np.repeat(want, group), 1e-5, err_msg=str(group))
        assert result.tobytes() == np.repeat(result[::group], group).tobytes()
        group *= 2


def test_a_group_has_nan_if_a_thread_has():
    values = np.ones(adapter.THREADS)
    values[1] = np.nan
    result = combined(values, 2)
    assert np.isnan(result[:2]).all()
    assert (result[2:] == 1).all()
