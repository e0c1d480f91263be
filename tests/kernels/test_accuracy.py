"""Every elementary function against mpmath, within its bound; see `tests.support.accuracy`."""

import pytest

from tests.support.accuracy import DTYPES, NAMES, worst
from tinygrad_cg._core.primitive import OPS

SAMPLES = 6000


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_error_is_within_the_bound(name, dtype):
    result = worst(name, dtype, SAMPLES)
    assert result.error <= OPS[name].ulps[DTYPES.index(dtype)], result.operands
