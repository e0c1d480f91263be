"""Bits of integers and bools, shifts, common divisors: one record each, without a gradient."""

from __future__ import annotations

from functools import partial

from .._core.kinds import EXACT, INTEGERS
from .define import Real, binary, unary

_WHOLE = Real(-9.0, 9.0)
_SHIFTS = (_WHOLE, Real(0.0, 5.0))


def _spelled(name: str, *others: str) -> tuple[str, ...]:
    """Return the spellings of a function of bits; `others` are further names."""
    spaces = ("bitwise", "keras.ops", "numpy")
    return tuple(f"{space}.{spelling}" for spelling in (name, *others) for space in spaces)


_of_bits = partial(binary, dtypes=EXACT, samples=(_WHOLE, _WHOLE))
_of_integers = partial(binary, dtypes=INTEGERS, samples=(_WHOLE, _WHOLE))

bitwise_and = _of_bits(
    "bitwise_and",
    "Return the bits that are set in both x and y, integers or bools.",
    spellings=_spelled("bitwise_and"),
)
bitwise_or = _of_bits(
    "bitwise_or",
    "Return the bits that are set in x or y, integers or bools.",
    spellings=_spelled("bitwise_or"),
)
bitwise_xor = _of_bits(
    "bitwise_xor",
    "Return the bits that are set in exactly one of x and y, integers or bools.",
    spellings=_spelled("bitwise_xor"),
)
invert = unary(
    "invert",
    "Return the bits that are not set in x: -1 - x for signed integers, not x for bools.",
    "same",
    dtypes=EXACT,
    samples=(_WHOLE,),
    spellings=(
        *("bitwise.invert", "keras.ops.bitwise_invert", "keras.ops.bitwise_not"),
        *("numpy.invert", "numpy.bitwise_invert", "numpy.bitwise_not"),
    ),
)
left_shift = _of_integers(
    "left_shift",
    "Return x times 2**y, for integers; 0 where y is negative, or not below the bits of x.",
    samples=_SHIFTS,
    spellings=(
        *("bitwise.left_shift", "keras.ops.left_shift", "keras.ops.bitwise_left_shift"),
        *("numpy.left_shift", "numpy.bitwise_left_shift"),
    ),
)
right_shift = _of_integers(
    "right_shift",
    "Return x over 2**y, rounded down, for integers; where y is negative or not below the bits of "
    "x: 0, or -1 for a negative x.",
    samples=_SHIFTS,
    spellings=(
        *("bitwise.right_shift", "keras.ops.right_shift", "keras.ops.bitwise_right_shift"),
        *("numpy.right_shift", "numpy.bitwise_right_shift"),
    ),
)
gcd = _of_integers(
    "gcd",
    "Return the greatest common divisor of two integers, which is not negative.",
    spellings=("keras.ops.gcd", "numpy.gcd"),
)
lcm = _of_integers(
    "lcm",
    "Return the least common multiple of two integers, which is not negative; 0 if one is 0.",
    spellings=("keras.ops.lcm", "numpy.lcm"),
)
