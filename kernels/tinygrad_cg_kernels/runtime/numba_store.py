"""Numba's machine code on disk, for users' functions and for programs that Numba code calls.

Numba's own cache belongs to a source file, and notices changes of that file only. Here the key of
code covers what the code depends on: functions with their globals, constants, compiler flags.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.environment import Environment
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.sigutils import normalize_signature

from tinygrad_cg_frontend import Intrinsic, Untranslatable
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime.locks import at_fork
from tinygrad_cg_kernels.runtime.numba_intrinsics import NAMES, NUMBA, OBJECT

STABLE = sys.stdlib_module_names | {"numpy", "numba"}
"""Packages that a key only names: the versions are in the store's keys."""


def _number_functions() -> None:
    """Give functions other numbers than in other processes.

    The numbers are parts of symbols. LLVM takes the first definition of a symbol, so code from the
    disk must not have the symbols of other functions.
    """
    FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(7)))


_number_functions()
at_fork(after_in_child=_number_functions)


def identity(thing: Any) -> str:
    """Return a text that covers an object which compiled code depends on, else `Untranslatable`."""
    if hasattr(thing, "program_key"):
        return thing.program_key
    if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        digest = hashlib.sha256(thing.tobytes()).hexdigest()
        return f"array {thing.dtype.str} {thing.shape} {thing.strides} {digest}"
    if isinstance(thing, Dispatcher):
        return f"{sorted(thing.targetoptions.items())} {identity_of_operand(thing.py_func)}"
    if thing is None or isinstance(thing, (bool, int, float, complex, str, np.generic, np.dtype)):
        return f"{type(thing).__name__} {thing!r}"
    if isinstance(thing, tuple):
        parts = [identity(x) for x in thing]
        return f"{type(thing).__qualname__} {getattr(thing, '_fields', '')} {parts}"
    if isinstance(thing, ModuleType) and _is_stable(thing.__name__):
        return thing.__name__
    if isinstance(thing, FunctionType) and build.is_ours(thing):
        cells = [identity_of_operand(cell.cell_contents) for cell in thing.__closure__ or ()]
        line = thing.__code__.co_firstlineno
        return f"{thing.__module__}.{thing.__qualname__}:{line}{cells}"
    name = getattr(thing, "__qualname__", None)
    if isinstance(thing, Intrinsic) or (name and _is_stable(thing.__module__)):
        return f"{thing.__module__}.{name}"
    raise Untranslatable(f"the code depends on {thing!r}")


def identity_of_operand(thing: Any) -> str:
    """Return the identity of what a kernel closes over, which may be a user's function."""
    is_user = isinstance(thing, FunctionType) and not build.is_ours(thing)
    return _of_user(thing) if is_user else identity(thing)


def _is_stable(module: str | None) -> bool:
    return (module or "").partition(".")[0] in STABLE


def _of_user(function: FunctionType) -> str:
    """Return the identity of a user's function: its code, and the values that it refers to.

    Another function without `njit` is not among these: Numba calls what is registered for it.
    """
    names: set[str] = set()
    text = identity_of_code(function.__code__, names)
    values = {name: function.__globals__[name] for name in names & {*function.__globals__}}
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    others = [
        identity(x) for x in (*cells, function.__defaults__, *map(values.get, sorted(values)))
    ]
    return f"{function.__module__}.{function.__qualname__} {text} {sorted(values)} {others}"


def identity_of_code(code: CodeType, names: set[str]) -> str:
    """Return a text that covers code, and add the names to which the code refers."""
    names.update(code.co_names)
    constants = [
        identity_of_code(x, names) if isinstance(x, CodeType) else f"{type(x).__name__} {x!r}"
        for x in code.co_consts
    ]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    own = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return f"{code.co_code.hex()} {code.co_exceptiontable.hex()} {counts} {own} {constants}"


def _fields_of(kind: Any) -> Any:
    """Return a type of a result as JSON."""
    kind = types.unliteral(kind)
    if isinstance(kind, types.Array) and kind.dtype in NAMES:
        return {"element": NAMES[kind.dtype], "rank": kind.ndim}
    if isinstance(kind, types.BaseTuple):
        return [_fields_of(part) for part in kind]
    return "object" if kind == OBJECT else NAMES.get(kind)


def _type_of(fields: Any) -> Any:
    if isinstance(fields, dict):
        return types.Array(NUMBA[fields["element"]], fields["rank"], "C")
    if isinstance(fields, list):
        return types.BaseTuple.from_types(list(map(_type_of, fields)))
    return types.none if fields is None else OBJECT if fields == "object" else NUMBA[fields]


class ResultStore(NullCache):
    """The compiled code of one function on disk, in the place of Numba's own cache.

    It holds no Python objects. Code that needs other than dtypes is not kept.
    """

    def __init__(self, key: str):
        self._key = f"{key} {numba.__version__}"

    def _name(self, sig: Any, context: Any) -> str:
        return f"{self._key} {sig} {context.codegen().magic_tuple()}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        cached = build.numba_results.read(self._name(sig, target_context))
        if cached is None:
            return None
        fields, code = cached
        arguments, _ = normalize_signature(sig)
        result, split = _type_of(fields["result"]), fields["split"]
        module, name, unique, names, tags, number = fields["function"]
        first = True, module, name, unique, "", None, result, None, names, ()
        rest = arguments, fields["inline"], False, None, None, tags, number
        function = PythonFunctionDescriptor(*first, target_context.mangler, *rest)
        environment = Environment.from_fndesc(function)
        environment.consts[:] = map(np.dtype, fields["dtypes"])
        library = fields["library"], "object", (code[:split], code[split:])
        parts = library, function, environment, result(*arguments), False, (), "", (), ()
        return CompileResult._rebuild(target_context, *parts)

    def save_overload(self, sig: Any, data: Any) -> None:
        own, others = data.environment.consts, data._find_referenced_environments()
        wanted, function = data.signature.return_type, data.fndesc
        kept = not (data.library.has_dynamic_globals or data.reload_init or data.lifted)
        # Entries of other functions, which Python never calls, refer to dtypes of their own.
        constants = [x for environment in (data.environment, *others) for x in environment.consts]
        kept &= all(isinstance(x, np.dtype) and not x.hasobject for x in constants)
        result = _fields_of(wanted)
        if not kept or _type_of(result) != types.unliteral(wanted) or function.noalias:
            return
        library, _, (code, shared) = data.library.serialize_using_object_code()
        fields = {"result": result, "split": len(code), "library": library}
        fields["dtypes"], fields["inline"] = [x.str for x in own], function.inline
        fields["function"] = [
            *(function.modname, function.qualname, function.unique_name, function.args),
            *(function.abi_tags, function.uid),
        ]
        build.numba_results.write(self._name(sig, data.target_context), fields, code + shared)
