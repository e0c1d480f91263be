"""Programs as functions that Numba code calls, and as C functions.

Numba compiles the texts of a program's kernels with its own compiler, which is the reference for
them, together with a function that allocates arrays and calls them. Nothing in it is an object of
Python's. The code is kept on disk (`numba_store`).

The code of a caller contains that of the program. With ``cache=True`` Numba keeps it as well, and
does not look at the program when it reads that code. So the code carries a `_Use`. Reading this
fails if the program is another one, and then Numba compiles the caller.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.ccallback import CFunc
from numba.core.errors import TypingError
from numba.core.imputils import lower_constant
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import make_array, populate_array

from tinygrad_cg_frontend import Untranslatable
from tinygrad_cg_kernels.runtime.numba_backend import FLAGS, for_compiled_code, register_helpers
from tinygrad_cg_kernels.runtime.numba_store import ResultStore, identity, identity_of_code
from tinygrad_cg_kernels.runtime.objects.ufuncs import inner_loop
from tinygrad_cg_kernels.runtime.texts import define

Argument = tuple[np.dtype, tuple[int, ...]]
"""A dtype and a shape; an argument without axes is a number."""

MAX_CONSTANT = 10**6
"""Numba's limit in bytes for constant arrays in code. Code has the address of a larger one."""

_programs: WeakValueDictionary[str, _Program] = WeakValueDictionary()
_functions: WeakValueDictionary[str, Any] = WeakValueDictionary()
_large: dict[str, np.ndarray] = {}  # arrays whose addresses are in code


def run_of(text: str, name: str = "run") -> Any:
    """Return a function of a generated text for Numba code."""
    return compile_part(text, {}, name)


def compile_part(text: str, scope: dict[str, Any], name: str) -> Any:
    """Return a function of a text, which refers to a scope, for other Numba code."""
    key, values = _key(text, scope, name)
    return _compiled_once(key, lambda: _defined(text, values, name))


def compiled(function: Callable) -> Any:
    """Return a function in the kernel language for Numba code; a compiled one itself."""
    if hasattr(function, "program_key"):
        return function
    key, _ = _key("function", {"function": function})
    return _compiled_once(key, lambda: function)


def _compiled_once(key: str, definition: Callable[[], Callable]) -> Any:
    function: Any = _functions.get(key)
    if function is None:
        register_helpers()
        function = _functions[key] = for_compiled_code(definition())
        function.program_key = key
    return function


def loop_address(ufunc: Any, dtype: np.dtype) -> Any:
    """Return a function that gives Numba code the address of a ufunc's loop for a dtype."""
    found = inner_loop(ufunc, dtype)
    assert found is not None
    symbol = f"tinygrad_cg.loop.{ufunc.__name__}.{dtype.name}"
    llvm.add_symbol(symbol, found[0])

    def address(typingctx):
        def generate(context, builder, signature, arguments):
            if symbol not in builder.module.globals:
                ir.GlobalVariable(builder.module, ir.IntType(8), symbol)
            return builder.ptrtoint(builder.module.globals[symbol], ir.IntType(64))

        return types.int64(), generate

    function: Any = intrinsic(address)
    function.program_key = symbol
    return function


def compile_callable(
    text: str, scope: dict[str, Any], name: str, arguments: Sequence[Argument]
) -> Any:
    """Return the function ``call`` of a text as a dispatcher that checks the types of arguments."""
    key, values = _key(text, scope, name, *map(str, arguments))
    program = _programs.get(key)
    if program is None:
        register_helpers()
        call = _defined(text, values, "call")
        call.__name__ = call.__qualname__ = name
        program = _programs[key] = _Program(call, name, arguments, key)
    return program


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _key(text: str, scope: dict[str, Any], *others: str) -> tuple[str, dict[str, Any]]:
    """Return the key of a text's code, and the values in a scope that the text refers to."""
    names: set[str] = set()
    identity_of_code(compile(text, "", "exec"), names)
    values = {name: scope[name] for name in sorted(names & {*scope})}
    try:
        own = [f"{name} {identity(value)}" for name, value in values.items()]
    except Untranslatable:
        own = [os.urandom(16).hex()]
    return _hash(text, *others, *own), values


def _defined(text: str, values: dict[str, Any], name: str) -> Any:
    """Return a function of a text. Its module is this one: code from the disk imports it again."""
    large = {k: x for k, x in values.items() if getattr(x, "nbytes", 0) > MAX_CONSTANT}
    scope = values | {f"large_{k}": _by_address(x) for k, x in large.items()}
    scope = {k: x for k, x in scope.items() if k not in large} | {"__name__": __name__}
    lines = text.split("\n")
    at = 1 + next(k for k, line in enumerate(lines) if line.startswith(f"def {name}("))
    lines[at:at] = [f"    {k} = large_{k}()" for k in large]
    return define("\n".join(lines), "Numba code", scope, name)


def _by_address(array: np.ndarray) -> Any:
    """Return a function that gives Numba code an array, by a symbol with the array's hash."""
    symbol = f"tinygrad_cg.array.{_hash(identity(array))}"
    _large.setdefault(symbol, array)
    llvm.add_symbol(symbol, _large[symbol].ctypes.data)
    kind = types.Array(numba.from_dtype(array.dtype), 1, "C", readonly=True)

    @intrinsic
    def large_array(typingctx):
        def generate(context, builder, signature, arguments):
            if symbol not in builder.module.globals:
                ir.GlobalVariable(builder.module, ir.IntType(8), symbol)
            view = make_array(kind)(context, builder)
            sizes = [context.get_constant(types.intp, x) for x in (array.size, array.itemsize)]
            data = builder.bitcast(builder.module.globals[symbol], view.data.type)
            populate_array(view, data, sizes[:1], sizes[1:], sizes[1], None)
            return view._getvalue()

        return kind(), generate

    return large_array


class _Program(CPUDispatcher):
    """A program for Numba code. `program_key` covers everything that its code depends on."""

    def __init__(self, call: Callable, name: str, arguments: Sequence[Argument], key: str):
        super().__init__(call, targetoptions={"nopython": True, "nogil": True, **FLAGS})
        self.typingctx._remove_global(self)
        self._type = _ProgramType(self)
        self.typingctx.insert_global(self, self._type)
        self.program_key, self._title, self._arguments = key, name, arguments
        self._cache = ResultStore(key)

    def compile(self, sig: Any) -> Any:
        kinds, _ = normalize_signature(sig)
        for k, (kind, (dtype, shape)) in enumerate(zip(kinds, self._arguments, strict=True)):
            _check_type(self._title, k, kind, dtype, len(shape))
        return super().compile(sig)

    @property
    def _numba_type_(self) -> Any:
        return self._type

    def _reduce_states(self) -> dict[str, Any]:
        return {"key": self.program_key}

    @classmethod
    def _rebuild(cls, key: str) -> Any:
        """Return the program of this process; one that differs from all others if it has none."""
        return _programs.get(key) or _absent


class _ProgramType(types.Dispatcher):
    """Numba's type of a program."""


register_model(_ProgramType)(models.OpaqueModel)


@numba.njit
def _absent():
    raise NotImplementedError


class _Use:
    """The use of a program in a caller's code: global variables that are the program.

    If one of them is another program when the code is read, Numba has to compile the caller again.
    It takes OSError for a file that is missing.
    """

    def __init__(self, key: str, places: list[tuple[str, str]]):
        self._states = key, places

    def __reduce__(self) -> Any:
        return _read_use, self._states


def _read_use(key: str, places: list[tuple[str, str]]) -> _Use:
    programs = [getattr(sys.modules.get(module), name, None) for module, name in places]
    if not programs or any(getattr(x, "program_key", None) != key for x in programs):
        raise FileNotFoundError("a program that compiled code calls is another one now")
    return _Use(key, places)


@lower_constant(_ProgramType)
def _lower_program(context: Any, builder: Any, kind: Any, program: _Program) -> Any:
    places = [
        (module, name)
        for module, owner in list(sys.modules.items())
        for name, value in list(getattr(owner, "__dict__", {}).items())
        if value is program
    ]
    # Code refers to the environments of all functions in it, also of those that it calls. Without
    # the name of a module, as in a loop of Numba's own, an environment would not be kept.
    context.environment.globals.setdefault("__name__", __name__)
    context.environment.consts.append(_Use(program.program_key, places))
    return context.get_dummy_value()


def _check_type(name: str, position: int, kind: Any, dtype: np.dtype, rank: int) -> None:
    wanted = f"an array of {dtype} with {rank} axes" if rank else f"a number, {dtype}"
    if rank:
        array = isinstance(kind, types.Array) and kind.ndim == rank
        right = array and kind.dtype == numba.from_dtype(dtype)
    else:
        right = isinstance(kind, types.Number | types.Boolean)
        right = right and (isinstance(kind, types.Integer | types.Boolean) or dtype.kind in "fc")
    if not right:
        raise TypingError(f"{name}: argument {position} is {kind}, expected {wanted}")


def compile_c_function(
    function: _Program,
    name: str,
    arguments: Sequence[Argument],
    results: Sequence[Argument],
) -> Any:
    """Return Numba's C function that calls a program.

    Numbers are passed by value, arrays as pointers to elements in row-major order. One number as
    the result is returned; other results are written to arrays, whose pointers come last.
    """
    returns = len(results) == 1 and not results[0][1]
    kinds: list[Any] = []
    lines: list[str] = []
    names = []
    for k, (dtype, shape) in enumerate(arguments):
        kind = numba.from_dtype(dtype)
        kinds.append(types.CPointer(kind) if shape else kind)
        names.append(f"x{k}")
        if shape:
            lines.append(f"    x{k}_ = carray(x{k}, {shape!r})")
    values = ", ".join(f"x{k}_" if shape else f"x{k}" for k, (_, shape) in enumerate(arguments))
    if returns:
        lines.append(f"    return function({values})")
        result: Any = numba.from_dtype(results[0][0])
    else:
        result = types.void
        lines.append(f"    {', '.join(f'y{k}' for k in range(len(results)))} = function({values})")
        for k, (dtype, shape) in enumerate(results):
            kinds.append(types.CPointer(numba.from_dtype(dtype)))
            names.append(f"out{k}")
            lines.append(f"    carray(out{k}, {shape or (1,)!r})[...] = y{k}")
    text = "\n".join([f"def entry({', '.join(names)}):", *lines])
    # Not the program itself: the code of a caller of it is read in some processes only.
    inner = for_compiled_code(function.py_func)
    scope = {"function": inner, "carray": numba.carray, "__name__": __name__}
    entry = define(text, f"C function of {name}", scope, "entry")
    own: Any = CFunc(entry, normalize_signature(result(*kinds)), locals={}, options=dict(FLAGS))
    own._cache = ResultStore(_hash(text, function.program_key))
    own.compile()
    return own
