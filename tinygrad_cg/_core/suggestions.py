"""Replacements for names, methods and arguments that other libraries have and we do not.

The tables are in `suggestions.txt`. A suggestion goes by meaning: ``expit`` is `tf.sigmoid`, though
`exp` is spelled more like it. ``tf`` is this library, as users import it.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Container, Iterable
from importlib import import_module
from importlib.util import find_spec
from opcode import opmap
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TypeVar

from .sections import read_sections

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)


_tables = {
    section: dict(re.findall(r"^(.*?) = (.*)$", text, re.MULTILINE))
    for section, text in read_sections(__file__).items()
}
NAMES, METHODS = _tables["NAMES"], _tables["METHODS"]
TAPES, OPTIMIZERS, DATASETS = _tables["TAPES"], _tables["OPTIMIZERS"], _tables["DATASETS"]
MODULES, RULES = _tables["MODULES"], _tables["RULES"]
ARGUMENTS, NO_ARGUMENTS = _tables["ARGUMENTS"], _tables["NO_ARGUMENTS"]

_NAMESPACES = ("", "math", "nn", "linalg", "signal", "random", "keras.ops", "numpy", "nest")
_NAMESPACES += ("math.special", "autograd.scipy.special", "keras.losses", "keras.metrics")
_LIBRARY = __name__.partition(".")[0]
_PRIVATE = {"math.special": f"{_LIBRARY}._ops.namespaces.math_special"}


def suggest(name: str) -> str:
    """Return "use ..." for a name that a namespace does not have; empty if nothing is known.

    A name of another namespace of the library is found there. A similar name is only a question.
    """
    if name in NAMES:
        return f"use {NAMES[name]}"
    paths: dict[str, str] = {}
    for namespace in _NAMESPACES:
        path = f"{_LIBRARY}.{namespace}".rstrip(".")
        try:
            names = getattr(import_module(_PRIVATE.get(namespace, path)), "__all__", ())
        except ImportError:  # it is being loaded, and asks for something itself
            continue
        is_loaded = not namespace.startswith("autograd.")  # by `import tinygrad_cg as tf`
        path = path.replace(_LIBRARY, "tf", 1) if is_loaded else path
        after = "" if is_loaded else f" after `import {path}`"
        paths = {other: f"{path}.{other}{after}" for other in names} | paths
    paths.pop("experimental", None)  # each namespace of TensorFlow has another
    from difflib import get_close_matches  # for an error only

    if name in paths:
        return f"use {paths[name]}"
    digits = re.findall(r"\d", name)  # a function of another order or kind is a different one
    paths = {other: path for other, path in paths.items() if re.findall(r"\d", other) == digits}
    alike = get_close_matches(name, paths, 1, 0.85)
    return f"did you mean {paths[alike[0]]}?" if alike else ""


def refuse_name(module: str, name: str) -> NoReturn:
    """Raise AttributeError for a name that a module does not have, with what to use instead.

    For a module's ``__getattr__``. ``from module import name`` would lose the words of such an
    error: there it is an ImportError.
    """
    message = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        raise AttributeError(message)
    home = sys.modules.get(module)
    is_package = getattr(home, "__path__", None) is not None
    if is_package and find_spec(f"{module}.{name}") is not None:  # an import may load it now
        raise AttributeError(f"{message}: write `import {module}.{name}` first", obj=home)
    key = f"{module.rpartition('.')[2]}.{name}"
    suggestion = f"use {NAMES[key]}" if key in NAMES else suggest(name)
    if not suggestion:
        raise AttributeError(message)  # Python suggests what is spelled alike
    if _is_asked_by_import():
        words = f"cannot import name {name!r} from {module!r}: {suggestion}"
        raise ImportError(words, name=name)
    raise AttributeError(f"{message}: {suggestion}", obj=home)


def _is_asked_by_import() -> bool:
    """Return whether an import statement outside of the library asks for a module's attribute."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == _LIBRARY:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def reads_own_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of keywords: one that another library has is answered by ours.

    It adds a call: functions that take few microseconds call `refuse_call` instead.
    """
    code = inspect.unwrap(function).__code__
    own = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs and not own.issuperset(kwargs):
            others = [name for name in kwargs if name not in own]
            if function.__name__ == "__init__":
                refuse_arguments(type(args[0]).__name__, own, others)
            _refuse_keyword_of(args, function.__name__, others)
            refuse_arguments(function.__name__, own, others)
        return function(*args, **kwargs)

    return run


def _refuse_keyword_of(args: tuple, function: str, others: Iterable[str]) -> None:
    """Raise TypeError if the first argument is a function that takes one of these keywords."""
    try:
        parameters = inspect.signature(args[0]).parameters
    except (IndexError, TypeError, ValueError):  # it is not a function, or has no signature
        return
    for name in others:
        if name in parameters:
            called = getattr(args[0], "__name__", "<lambda>")
            called = "f" if called == "<lambda>" else called
            raise TypeError(
                f"{function}() got an unexpected keyword argument {name!r}: to pass it to "
                f"`{called}`, write {function}(functools.partial({called}, {name}=...), ...), or "
                f"use a lambda"
            )


class AbsentAttribute:
    """A missing attribute: reading it raises an error that names the replacement."""

    def __init__(self, name: str, words: str, kind: str = ""):
        self.name = name
        self.words = words
        self.kind = kind  # instead of "'Owner' object", with the instance's name

    def __repr__(self) -> str:
        return f"<absent: {self.words}>"

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        kind = f"{owner.__name__!r} object" if instance is not None else f"type {owner.__name__!r}"
        if self.kind and instance is not None:
            kind = f"{self.kind} `{getattr(instance, '__name__', '')}`"
        raise AttributeError(f"{kind} has no attribute {self.name!r}: {self.words}", obj=instance)


class FixedAttribute(AbsentAttribute):
    """One that cannot be set either."""

    def __set__(self, instance: Any, value: Any) -> NoReturn:
        kind = type(instance).__name__
        raise AttributeError(f"cannot set {self.name!r} of a {kind}: {self.words}", obj=instance)


def absent_attributes(texts: dict[str, str], kind: str = "") -> Callable[[T], T]:
    """Decorate a class: what reads one of these attributes learns what to use."""

    def add(owner: T) -> T:
        for name, words in texts.items():
            setattr(owner, name, AbsentAttribute(name, words, kind))
        return owner

    return add


class NamesOfOtherLibraries:
    """Attributes that tensors do not have. To read one is an error that says what to use."""

    __slots__ = ()


for _name, _words in METHODS.items():
    setattr(NamesOfOtherLibraries, _name, FixedAttribute(_name, _words))


def refuse_argument(function: str, name: str, own: Container[str] | None = None) -> NoReturn:
    """Raise TypeError for an argument that a function does not have, as Python does.

    It names the function's argument for that; with `own` only if that is one of them.
    """
    message = f"{function}() got an unexpected keyword argument {name!r}"
    if name in NO_ARGUMENTS:
        raise TypeError(f"{message}: {NO_ARGUMENTS[name]}")
    argument = ARGUMENTS.get(name)
    is_ours = argument is not None and (own is None or argument in own)
    raise TypeError(f"{message}: use {argument}=" if is_ours else message)


def refuse_arguments(function: str, own: Container[str], others: Iterable[str]) -> NoReturn:
    """Raise TypeError for the first of arguments that a function with others does not have."""
    refuse_argument(function, next(iter(others)), own)


class Required:
    """The default of a parameter that has none, in a function that reads all keywords first."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Any = Required()
OTHERS = ("dim", "keepdim", "others")
"""Parameters of ours that are there for the error alone."""


def own_signature(function: Any) -> inspect.Signature:
    """Return the signature of a function without the arguments of other libraries."""
    signature = inspect.signature(function)
    own = [
        parameter.replace(default=inspect.Parameter.empty)
        if parameter.default is REQUIRED
        else parameter
        for name, parameter in signature.parameters.items()
        if name not in OTHERS
    ]
    return signature.replace(parameters=own)


F = TypeVar("F", bound=Callable[..., Any])


def hides_others(function: F) -> F:
    """Decorate a function whose arguments of other libraries are there for the error alone."""
    function.__signature__ = own_signature(function)
    return function


def refuse_call(function: Callable[..., Any], others: Iterable[str]) -> NoReturn:
    """Raise TypeError for the first of `others`, or for `axis`, which is required and missing.

    The function is decorated with `hides_others`, and has all other keywords in `others`.
    """
    name = function.__name__
    if others:
        refuse_arguments(name, inspect.signature(function).parameters, others)
    raise TypeError(f"{name}() missing 1 required positional argument: 'axis'")
