"""Watching what is computed: traces of passes, and the first NaN. After ``tf.debugging``."""

from ._debugging.nans import debug_nans, disable_check_numerics, enable_check_numerics
from ._debugging.numerics import assert_all_finite, check_numerics
from ._debugging.traces import trace

__all__ = [
    "assert_all_finite",
    "check_numerics",
    "debug_nans",
    "disable_check_numerics",
    "enable_check_numerics",
    "trace",
]
