"""Exceptions and warnings of the library.

Where the originals raise a class of their own, ours is also the built-in class that a
Python programmer would expect, so that either ``except`` clause works.
"""


class InvalidArgumentError(ValueError):
    """Operands whose shapes, dtypes or values do not fit the operation."""


class CustomGradientWarning(UserWarning):
    """A custom rule was not used, or what it returned had to be adapted."""


class TapeWarning(UserWarning):
    """A tape was used in a way that records nothing, or more than was meant."""
