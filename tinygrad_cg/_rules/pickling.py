"""Pickling of custom gradients and operations, by `pickle`, `cloudpickle` and `copy`.

An operation is pickled by its name in its module. So is a custom gradient, a compiled function, a
primitive or a derivative that a module holds, as Python pickles functions. Others are pickled by
value, with the function they were made from; if that function is local, this needs cloudpickle.
"""

from __future__ import annotations

import copyreg
import functools
import inspect
import sys
from typing import Any

from .. import _ops as ops
from .._core.transformed import Transformed
from .custom_gradient import Bind


def _reduce(bind: Any) -> Any:
    owner = getattr(getattr(bind, "_function", None), "__self__", None)
    if owner is not None:  # a method: its class decorates it again
        return getattr, (owner, _name_in_class(type(owner), bind._function))
    caller = sys._getframe(1).f_globals.get("__name__", "")
    if caller == "copy":  # which takes a name to mean that the object is its own copy
        return "function"
    # what is in __main__ is not there in the process that cloudpickle's bytes are for
    goes_by_value = bind.__module__ == "__main__" and "cloudpickle" in caller
    transform, args, options = getattr(bind, "made_by", (None, (), {}))
    call = None if transform is None else (functools.partial(transform, **options), args)
    if call and _find_by_name(bind.__wrapped__) is bind.__wrapped__:
        return call  # a variable may have another name where this arrives, or none
    name = None if goes_by_value else _name_in_module(bind)
    if name is not None:
        return name
    return call or bind.__reduce_ex__(4)


def _name_in_class(owner: type, method: Any) -> str:
    """Return the name by which a class has a decorated method, which may differ from its own."""
    function = getattr(method, "__func__", method)
    for name, member in inspect.getmembers_static(owner):
        if getattr(member, "_function", None) is function:
            return name
    return method.__name__


def _find_by_name(function: Any) -> Any:
    """Return the object that a function's module has under the function's name."""
    value: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for name in getattr(function, "__qualname__", "<unnamed>").split("."):
        value = getattr(value, name, None)
    return value


def _name_in_module(function: Any) -> str | None:
    """Return a name of a function in its module: its own, or the name of a variable."""
    if _find_by_name(function) is function:
        return function.__qualname__
    names = vars(sys.modules.get(function.__module__, sys))
    return next((name for name, value in list(names.items()) if value is function), None)


def travels(decorated: type) -> None:
    """Let the objects of a class, which decorated functions are, be pickled so."""
    copyreg.pickle(decorated, _reduce)


# Functions that builders made of a module's records say where they are found.
for _module in ops.MODULES:
    for _name, _value in vars(_module).items():
        if getattr(_value, "primitive", None) is not None and _find_by_name(_value) is not _value:
            _value.__module__, _value.__qualname__ = _module.__name__, _name
travels(Bind)
travels(Transformed)
