"""Traces of passes, assertions, and the first NaN. Modelled on ``tf.debugging``."""

from functools import partial as _partial

from .._core.suggestions import refuse_name as _refuse_name
from . import _assertions
from ._assertions import *  # noqa: F403
from ._nans import debug_nans, disable_check_numerics, enable_check_numerics
from ._numerics import assert_all_finite, check_numerics
from ._traces import trace

__all__ = [
    "assert_all_finite",
    "check_numerics",
    "debug_nans",
    "disable_check_numerics",
    "enable_check_numerics",
    "trace",
]
__all__ += _assertions.__all__

__getattr__ = _partial(_refuse_name, __name__)
