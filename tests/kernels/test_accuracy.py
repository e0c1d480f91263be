"""Every elementary function against mpmath, within its bound; see `tests.support.accuracy`."""

import pytest

from tests.support.accuracy import DTYPES, NAMES, worst
from tinygrad_cg._core.primitive import OPS

SAMPLES = 6000
SLOW = ["beta", "betaln", "erfcinv", "erfinv", "fresnel_cos", "fresnel_sin"]
"""Functions for which mpmath takes .5 ms a number: they have a third of the samples."""


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_error_is_within_the_bound(name, dtype):
    result = worst(name, dtype, SAMPLES // 3 if name in SLOW else SAMPLES)
    assert result.error <= OPS[name].ulps[DTYPES.index(dtype)], result.operands
