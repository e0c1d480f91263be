"""Traces of passes, assertions, and the first NaN. Modelled on ``tf.debugging``."""

from functools import partial as _partial

from .._core.suggestions import refuse_name as _refuse_name
from ._assertions import (
    Assert,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_scalar,
    assert_shapes,
    assert_type,
)
from ._nans import debug_nans, disable_check_numerics, enable_check_numerics
from ._numerics import assert_all_finite, check_numerics
from ._traces import trace

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "debug_nans",
    "disable_check_numerics",
    "enable_check_numerics",
    "trace",
]

__getattr__ = _partial(_refuse_name, __name__)
