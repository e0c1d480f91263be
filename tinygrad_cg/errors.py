"""Exceptions and warnings of the library, and how warnings find the user's line.

Classes that TensorFlow also has are subclasses of the built-in class that a Python programmer would
expect, so either ``except`` clause works. Errors of gradient rules have facts as attributes.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import numpy as np

__all__ = [
    "ArgumentTypeError",
    "AutographError",
    "AxisError",
    "BlockError",
    "CustomGradientWarning",
    "DerivativeOrderError",
    "DerivativeWarning",
    "DeviceError",
    "FailedAssertion",
    "FunctionWarning",
    "GradientCountError",
    "GradientError",
    "GradientShapeError",
    "InaccessibleTensorError",
    "InvalidArgumentError",
    "MatrixError",
    "NonFiniteError",
    "NotLinearError",
    "OperatorNotAllowedInGraphError",
    "OutOfRangeError",
    "ResourceExhaustedError",
    "TapeWarning",
    "UnsupportedCodeError",
]
__dir__ = __all__.copy  # what dir() shows


IMPORTED = time.time()
"""When the library was imported."""
_KERNELS = find_spec("tinygrad_cg_kernels")
_FILES = (__file__, _KERNELS and _KERNELS.origin)
_FOLDERS = [str(Path(file).parent) + os.sep for file in _FILES if file]
_OURS = (*_FOLDERS, "<tinygrad_cg")


class WithFields:
    """Base of exceptions and warnings that carry what their message says.

    Keyword arguments become attributes. ``function`` is the name of the function or operation,
    ``line`` the file and line that the message names.
    """

    function: str = ""
    line: tuple[str, int] | None = None

    def __init__(self, *args: Any, **fields: Any):
        super().__init__(*args)
        vars(self).update(fields)


class NamesCall:
    """Base of exceptions whose message begins with the name of the function that was called.

    That is not always the function that raises it, which begins the message with its own name.
    """

    def __init__(self, *args: Any):
        if args and isinstance(args[0], str):
            name, _, rest = args[0].partition(": ")
            if called := called_function(name):
                args = f"{called}: {rest if name.isidentifier() and rest else args[0]}", *args[1:]
        super().__init__(*args)


class InvalidArgumentError(NamesCall, ValueError):
    """Operands whose shapes, dtypes or values do not fit the operation."""


class AxisError(InvalidArgumentError, np.exceptions.AxisError):
    """An axis that a tensor does not have: NumPy's AxisError, and so an IndexError."""


class OutOfRangeError(NamesCall, IndexError, ValueError):
    """An index out of range, or an iteration that has ended."""


class MatrixError(InvalidArgumentError, np.linalg.LinAlgError):
    """A matrix without an inverse, or without a Cholesky factor."""


class ArgumentTypeError(NamesCall, TypeError, ValueError):
    """An argument of the wrong type, where TensorFlow raises ValueError."""


class NonFiniteError(WithFields, InvalidArgumentError, FloatingPointError):
    """A NaN or an infinity appeared where a context checks for them (see `debugging`)."""

    order: int | None = None
    """The number of derivatives that had been taken."""


class DerivativeOrderError(WithFields, LookupError):
    """A derivative of a higher order than the rule declares."""

    order: int = 0
    """The order that was asked for."""
    max_order: int = 0


class BlockError(WithFields, RuntimeError):
    """A block of data, or an item of `distributed.map`, could not be read or computed."""

    block: int | None = None
    """Its index; None if the engine does not say which it was."""


class GradientCountError(WithFields, ValueError):
    """A gradient rule returned another number of gradients than its function has inputs."""

    expected: int = 0
    returned: int = 0
    names: Sequence[str] = ()
    """The inputs."""


class GradientShapeError(WithFields, ValueError):
    """A gradient rule returned a gradient whose shape differs from its input's."""

    index: int | None = None
    """The index of the gradient; None for that of a Variable."""
    label: str = ""
    """The input that it is the gradient of: "input `x`"."""
    expected: tuple[int, ...] = ()
    returned: tuple[int, ...] = ()
    axes: Sequence[int] = ()
    """Axes to sum over, where broadcasting was not undone."""
    remedy: str = ""
    """A call that does this with ``gradient``, or transposes it."""


class NotLinearError(WithFields, TypeError):
    """A gradient rule has no transpose: it is not linear in its upstream gradient."""


class GradientError(WithFields, AssertionError):
    """A gradient rule does not give the derivative; the message is the report."""

    report: Any = None
    """The `GradientReport` of `check_gradients`."""


class CustomGradientWarning(WithFields, UserWarning):
    """A custom rule was not used, or the gradients that it returned had to be adapted."""

    kind: str = ""
    """"bypassed" (not used), "scalar" or "dtype" (adapted), or "detached" (it took values)."""


class TapeWarning(UserWarning):
    """A tape was used in a way that records nothing, or more than intended."""


class DerivativeWarning(UserWarning):
    """A derivative does not exist at this point, or cannot be known from the record."""


class FunctionWarning(UserWarning):
    """A compiled function is used in a way that makes it slow."""


class OperatorNotAllowedInGraphError(TypeError, NotImplementedError):
    """A value was requested while a function is traced, when tensors have no values."""

    size_of: Any = None  # the traced tensor, where the library asked for it, as for a size


class AutographError(WithFields, OperatorNotAllowedInGraphError):
    """Control flow that depends on a tensor and cannot become part of a program."""

    length_varies: bool = False  # of a list or TensorArray, which values decide


class FailedAssertion(InvalidArgumentError, AssertionError):
    """An `assert` in a compiled function that did not hold."""


class UnsupportedCodeError(TypeError):
    """Code that `differentiable` cannot differentiate; the message names the code, the line and the
    reason.

    Also raised for operations that programs for Numba code do not support.
    """

    operation: str = ""


class InaccessibleTensorError(TypeError, ValueError):
    """A tensor of a trace was used outside of it, where it has no value."""


class DeviceError(RuntimeError, ValueError):
    """A device that does not exist, or that an operation does not support."""


class ResourceExhaustedError(MemoryError):
    """The memory of a GPU did not suffice."""


def is_ours(file: str) -> bool:
    """Return whether a file is part of the library, or was generated by it."""
    return file.startswith(_OURS)


def location_of(file: str, line: int) -> str:
    """Return how messages name a line of code: of a file, or of a notebook's cell."""
    if not file.startswith("Cell In["):
        shell = _shell()
        cell = shell.compile.format_code_name(file) if shell is not None else None
        if not cell:
            return f'File "{file}", line {line}'
        file = " ".join(cell)
    return f"{file}, line {line}"


def _shell() -> Any:
    """Return the IPython shell in which this program runs, or None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell if hasattr(getattr(shell, "compile", None), "format_code_name") else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those that it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _links(trace: TracebackType | None) -> list[tuple[TracebackType, bool]]:
    """Return the links of a traceback; True where the library, or contextlib for it, runs."""
    links, ours = [], False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        ours = is_ours(file) or (ours and file == contextlib.__file__)
        links.append((trace, ours))
        trace = trace.tb_next
    return links


def _joined(links: list[TracebackType]) -> TracebackType | None:
    last = None
    for link in reversed(links):
        last = TracebackType(last, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return last


def hide_frames(error: BaseException | None) -> None:
    """Mark the library's frames in an exception's tracebacks as ``__tracebackhide__``.

    IPython and pytest leave frames out where this is a local variable.
    """
    links = [pair for each in _chain(error) for pair in _links(each.__traceback__)]
    for link in [link for link, ours in links if ours]:
        link.tb_frame.f_locals["__tracebackhide__"] = True


def _print_short(kind: type, error: BaseException, trace: Any) -> None:
    """Print an exception with the user's frames, the library's that they called, and the last."""
    for each in _chain(error):
        links = _links(each.__traceback__)
        entries = [i for i, (_, ours) in enumerate(links) if ours and not (i and links[i - 1][1])]
        kept = {*entries[-4:], len(links) - 1}
        short = [link for i, (link, ours) in enumerate(links) if not ours or i in kept]
        each.__traceback__ = _joined(short)
        if left := len(links) - len(short):
            each.add_note(
                f"(hidden frames of tinygrad_cg: {left}. To show them, run this line after the "
                "imports: import sys; sys.excepthook = sys.__excepthook__)"
            )
    sys.__excepthook__(kind, error, error.__traceback__)


def shorten_tracebacks() -> None:
    """Let Python, or IPython if this program runs in it, leave out frames of the library.

    ``%xmode --show`` shows them, as all that is hidden; ``%debug`` knows them as before. A program
    that has told IPython what shows its exceptions keeps that.
    """
    shell = _shell()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception, KeyboardInterrupt), _show_short)
    elif shell is None and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_short


def _show_short(shell: Any, kind: type, error: BaseException, trace: Any, tb_offset: Any) -> None:
    """Show an exception in IPython as `shorten_tracebacks` says."""
    short = trace
    if getattr(shell.InteractiveTB, "skip_hidden", False):
        hide_frames(error)
        links = _links(trace)  # the library's at the end would be shown
        last = max((i for i, (_, ours) in enumerate(links, 1) if not ours), default=len(links))
        short = _joined([link for link, _ in links[:last]])
    shell.showtraceback((kind, error, short), tb_offset=tb_offset, running_compiled_code=True)
    sys.last_traceback = trace


def users_line() -> tuple[str, int, int]:
    """Return file, line and depth of the innermost caller outside this package."""
    depth = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
        depth += 1
    return frame.f_code.co_filename, frame.f_lineno, depth


def users_expression() -> str:
    """Return the source of what that caller computes; "" unless it is known and on one line."""
    frame = sys._getframe(users_line()[2] - 1)
    file, positions = frame.f_code.co_filename, frame.f_code.co_positions()
    line, last, start, end = next(islice(positions, frame.f_lasti // 2, None))
    if line is None or line != last:
        return ""
    linecache.checkcache(file)
    return linecache.getline(file, line, frame.f_globals).encode()[start:end].decode().strip()


def called_function(word: str = "") -> str | None:
    """Return the name of the public function that code outside this package called, if known.

    It is not known of methods. With `word`, the first one of an error, functions do not count if
    that is an argument of theirs, or if they take a function, which the error would be about.
    """
    from inspect import unwrap

    package = __name__.rpartition(".")[0]
    modules = [
        module
        for name, module in list(sys.modules.items())
        if f"{name}.".startswith(f"{package}.") and "._" not in name
    ]

    def is_public(code: CodeType, name: str) -> bool:
        """Return whether a function is public, and not only another function of that name."""
        named = [vars(x)[name] for x in modules if name in vars(x) and name in dir(x)]
        codes = [getattr(unwrap(value), "__code__", None) for value in named if callable(value)]
        return code in codes or (bool(codes) and not any(codes))

    frame, public_name = sys._getframe(1), None
    while frame is not None and is_ours(frame.f_code.co_filename):
        code, values = frame.f_code, frame.f_locals
        name = code.co_qualname.removesuffix(".__init__")
        if is_public(code, name):
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            if word in arguments or (word and any(callable(values.get(x)) for x in arguments[:3])):
                break
            public_name = name
        elif code.co_name == "as_tensors":
            public_name = values["primitive"].label
        frame = frame.f_back
    return public_name


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line, however deep in the library the reason was found."""
    warnings.warn(message, category, stacklevel=users_line()[2])
