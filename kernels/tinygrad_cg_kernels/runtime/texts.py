"""Running generated Python code, so that debuggers and tracebacks can show it."""

import __future__

import hashlib
import itertools
import linecache
import weakref
from types import CodeType
from typing import Any

_number = itertools.count(1).__next__


def define(text: str, title: str, scope: dict[str, Any], name: str, is_ours: bool = True) -> Any:
    """Run a text in a scope, and return the function `name` that it defines.

    `linecache` has the text as long as the function exists. If it `is_ours`, tracebacks and
    warnings leave out its lines; otherwise the lines count as the user's.
    """
    code = compiled(text, title_of(title) if is_ours else f"<{title}, {_number()}>")
    exec(code, scope)
    function = scope[name]
    weakref.finalize(function, linecache.cache.pop, code.co_filename, None).atexit = False
    return function


def digest(text: str) -> str:
    """Return a hash of a text, by which functions of generated texts are told apart on disk."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def title_of(title: str) -> str:
    """Return a file name that no other text has."""
    return f"<tinygrad_cg {title}, {_number()}>"


def compiled(text: str, file: str) -> CodeType:
    """Return the compiled code of a text, registered with `linecache` under a file name.

    Annotations are not evaluated.
    """
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    flags = __future__.annotations.compiler_flag
    return compile(text, file, "exec", flags, dont_inherit=True)
