"""Stubs of the modules whose functions are made from tables, so that editors and type checkers
see their names, parameters and results.

``python -m tinygrad_cg._spellings.stubs`` writes them; a test compares them with what is committed.
The text is derived from the live modules. A row of a table may annotate what it returns, for
example ``-> list[Tensor]``; a function without such an annotation returns a Tensor. Types of
parameters follow from their names and defaults.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .._core.tensor import Tensor

PACKAGE = str(__package__).partition(".")[0]
MODULES = ("", "_spellings.math_names", "bitwise", "dtypes", "keras._pointwise", "numpy")
WIDTH = 100
_SCOPE = {  # what the text of a stub may mention -> the module it is imported from
    "Any": "typing",
    "NamedTuple": "typing",
    **dict.fromkeys(("Axes", "DTypeLike", "Shape", "TensorLike"), f"{PACKAGE}._core.annotations"),
    "Tensor": Tensor.__module__,
}
_BUILTINS = {"bool", "complex", "float", "int", "list", "str", "tuple"}
_TYPES = {
    "TensorLike": (
        "x y a b x1 x2 input input_tensor tensor matrix rhs logits labels features inputs input "
        "kernel filters filter indices condition params t value variable array ary arr scalar "
        "clip_value_min clip_value_max fill_value start stop limit delta on_value off_value v "
        "x_min x_max a_min a_max min max object val"
    ),
    "Axes": "axis perm",
    "Shape": "shape dims batch_shape output_shape newshape",
    "DTypeLike": "dtype out_type output_type index_type",
    "str | None": "name data_format direction",
    "str": "equation",
    "bool": "keepdims",
    "int": "num num_classes depth num_rows batch_dims k n N decimals",
    "int | None": "num_columns M seed",
}
_BY_NAME = {name: kind for kind, names in _TYPES.items() for name in names.split()}


def module_stub(module: ModuleType) -> str:
    """Return the text of the stub of a module."""
    homes = {  # as the module itself says
        name: f"{PACKAGE}{home}".rstrip(".") for name, home in getattr(module, "_HOMES", {}).items()
    }
    imports: dict[str, list[str]] = {}
    values = ["__all__: list[str]"]
    values += ["__version__: str"] if "__version__" in vars(module) else []
    functions: list[str] = []
    for name in sorted(module.__all__):
        value = getattr(module, name)
        home = homes.get(name) or _home(name, value)
        if home is None or (home == module.__name__ and not isinstance(value, ModuleType)):
            declared = _declared(name, value)
            (functions if isinstance(value, FunctionType) else values).extend(declared)
        else:
            imports.setdefault(home, []).append(f"{name} as {name}")
    for name in sorted(getattr(module, "_FORWARDED", "").split()):
        imports.setdefault("numpy", []).append(f"{name} as {name}")
    return _text(module, imports, [*values, "", *functions])


def _home(name: str, value: Any) -> str | None:
    """Return the module that a public name is imported from; None for what is declared here."""
    if isinstance(value, ModuleType):
        return value.__name__.rpartition(".")[0] or None
    if isinstance(value, FunctionType):
        return value.__module__ if is_written(value, name) else None
    if callable(value) and value.__name__ == name:
        return value.__module__
    return None


def is_written(function: FunctionType, name: str | None = None) -> bool:
    """Return whether a function is the one that a statement ``def name`` of its module defines."""
    file = getattr(sys.modules[function.__module__], "__file__", None)
    code = inspect.unwrap(function).__code__
    names = {code.co_qualname, function.__qualname__, name or function.__name__}
    return code.co_filename == file and len(names) == 1


def _declared(name: str, value: Any) -> list[str]:
    """Return the lines that declare a public name that is made at import."""
    if isinstance(value, FunctionType):
        return _function(name, value, list(inspect.signature(value).parameters.values()))
    if isinstance(value, type):
        return [f"{name} = {value.__module__.replace('numpy', 'np')}.{value.__name__}"]
    if isinstance(value, np.dtype):
        return [f"{name}: np.dtype[np.{value.type.__name__}]"]
    return [f"{name}: {type(value).__name__ if value is not None else None}"]


def _function(name: str, function: Any, parameters: list[inspect.Parameter]) -> list[str]:
    """Return the lines that declare a function, with the first paragraph of its docstring."""
    written = is_written(function, name)
    result = function.__annotations__.get("return", "Any")
    result = f"-> {'Tensor' if result == 'Any' and not written else result}:"
    texts = list(_parameters(parameters))
    head = f"def {name}({', '.join(texts)}) {result}"
    lines = [head]
    if len(head) > WIDTH - 4:
        lines = [f"def {name}(", *(f"    {text}," for text in texts), f") {result}"]
    document = inspect.getdoc(function)
    if document is None:
        lines[-1] += " ..."
        return lines
    document = " ".join(document.partition("\n\n")[0].split())
    filled = textwrap.wrap(f'"""{document}"""', WIDTH - 8)
    return [*lines, *(f"    {line}" for line in filled), ""]


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield each parameter with its type and default, and the separators between kinds."""
    previous = None
    for parameter in parameters:
        kind = parameter.kind
        if previous is parameter.POSITIONAL_ONLY and kind is not previous:
            yield "/"
        if kind is parameter.KEYWORD_ONLY and previous not in (kind, parameter.VAR_POSITIONAL):
            yield "*"
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        default = ""
        if parameter.default is not parameter.empty:
            simple = parameter.default is None or isinstance(parameter.default, int | float | str)
            default = " = " + (repr(parameter.default).replace("'", '"') if simple else "...")
        yield f"{stars}{parameter.name}: {_type(parameter)}{default}"
        previous = parameter.kind
    if previous is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _type(parameter: inspect.Parameter) -> str:
    """Return the type of a parameter, from its default or else its name."""
    default = parameter.default
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return "Any"
    kind = "bool" if isinstance(default, bool) else _BY_NAME.get(parameter.name, "Any")
    if kind == "Any" and isinstance(default, str):
        return "str"
    if default is None and kind not in ("Any", "Axes") and not kind.endswith("None"):
        return f"{kind} | None"
    return kind


def _text(module: ModuleType, imports: dict[str, list[str]], lines: list[str]) -> str:
    """Return the text of a stub: imports of what the lines mention, then the lines."""
    body = "\n".join(lines)
    public = getattr(module, "__all__", ())
    for name in _BUILTINS & {*public}:
        body = re.sub(rf"(: |-> |\| |\[){name}\b(?!:)", rf"\1builtins.{name}", body)
    code = re.sub(r'""".*?"""', "", body, flags=re.DOTALL)
    mentioned = {*re.findall(r"\w+", code)}
    for name in sorted(mentioned - _SCOPE.keys() - {*public}):
        value = _class_named(name, module)
        if value is None:
            continue
        if value.__module__ != module.__name__:
            imports.setdefault(value.__module__, []).append(name)
        else:
            fields = "".join(
                f"\n    {one}: {kind.__forward_arg__}"
                for one, kind in value.__annotations__.items()
            )
            body = f"class {name}(NamedTuple):{fields}\n\n{body.lstrip()}"
            mentioned.add("NamedTuple")
    for name in sorted(mentioned & _SCOPE.keys()):
        imports.setdefault(_SCOPE[name], []).append(name)
    statements = [("builtins", "import builtins")] if "builtins." in code else []
    statements += [("numpy", "import numpy as np")] if "np." in code else []
    statements += [(home, _import(home, names)) for home, names in imports.items()]
    groups = [
        "\n".join(text for home, text in sorted(statements) if _section(home) == section)
        for section in range(3)
    ]
    head = f'"""Generated by ``python -m {__package__}.stubs``: edit the tables and rerun."""'
    parts = [head, *groups, body]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _class_named(name: str, module: ModuleType) -> type | None:
    """Return the class of the library that a table's row annotates a result with."""
    for function in vars(module).values():
        value = getattr(function, "__globals__", {}).get(name)
        if isinstance(value, type) and value.__module__.startswith(PACKAGE):
            return value
    return None


def _section(home: str) -> int:
    """Return the section of imports: of the standard library, of others, of this library."""
    root = home.partition(".")[0]
    return 0 if root in sys.stdlib_module_names else 2 if root == PACKAGE else 1


def _import(home: str, names: list[str]) -> str:
    """Return the statement that imports names from a module."""
    line = f"from {home} import {', '.join(names)}"
    if len(names) == 1 or (len(line) <= WIDTH and " as " not in line):
        return line
    return f"from {home} import (\n" + "".join(f"    {name},\n" for name in sorted(names)) + ")"


def stubs() -> dict[Path, str]:
    """Return the text of every stub, by its path."""
    found = {}
    for name in MODULES:
        module = import_module(f"{PACKAGE}.{name}".rstrip("."))
        found[Path(str(module.__file__)).with_suffix(".pyi")] = module_stub(module)
    return found


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
