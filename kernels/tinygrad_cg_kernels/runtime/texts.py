"""Python code that the library generates: it runs here, and debuggers and tracebacks show it."""

import __future__

import itertools
import linecache
import weakref
from types import CodeType
from typing import Any

_number = itertools.count(1).__next__


def define(text: str, title: str, scope: dict[str, Any], name: str) -> Any:
    """Run a text in a scope, and return the function of that name which it defines.

    The text is known for as long as this function exists.
    """
    code = compiled(text, title_of(title))
    exec(code, scope)
    function = scope[name]
    weakref.finalize(function, linecache.cache.pop, code.co_filename, None).atexit = False
    return function


def title_of(title: str) -> str:
    """Return the name of a file that no other text has."""
    return f"<tinygrad_cg {title}, {_number()}>"


def compiled(text: str, file: str) -> CodeType:
    """Return the code of a text, which stands in a file of that name, as far as Python knows.

    Its annotations are strings.
    """
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    flags = __future__.annotations.compiler_flag
    return compile(text, file, "exec", flags, dont_inherit=True)
