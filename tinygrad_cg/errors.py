"""Exceptions and warnings of the library, and how warnings find the user's line.

Where the originals raise a class of their own, ours is also the built-in class that a
Python programmer would expect, so that either ``except`` clause works.
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np

_OURS = (str(Path(__file__).parent) + os.sep, "<tinygrad_cg", "<rule of ")


class InvalidArgumentError(ValueError):
    """Operands whose shapes, dtypes or values do not fit the operation."""


class MatrixError(InvalidArgumentError, np.linalg.LinAlgError):
    """A matrix without an inverse, or without a Cholesky factor."""


class ArgumentTypeError(TypeError, ValueError):
    """An argument of the wrong type, for which the original raises ValueError."""


class GradientError(AssertionError):
    """A gradient rule does not give the derivative; the message is the report."""


class CustomGradientWarning(UserWarning):
    """A custom rule was not used, or what it returned had to be adapted."""


class TapeWarning(UserWarning):
    """A tape was used in a way that records nothing, or more than was meant."""


class FunctionWarning(UserWarning):
    """A compiled function is used in a way that makes it slow."""


class OperatorNotAllowedInGraphError(TypeError, NotImplementedError):
    """A value was asked for while a function is traced, when there are none yet."""


class InaccessibleTensorError(TypeError, ValueError):
    """A tensor of a trace was used outside of it, where it has no value."""


def is_ours(file: str) -> bool:
    """Whether a line of code in `file` is this package's own."""
    return file.startswith(_OURS)


def users_line() -> tuple[str, int, int]:
    """File and line of the innermost caller outside this package, and how far up it is."""
    depth = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
        depth += 1
    return frame.f_code.co_filename, frame.f_lineno, depth


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line, however deep in the library the reason was found."""
    warnings.warn(message, category, stacklevel=users_line()[2])
