"""The API reference: public modules, their names, signatures and docstrings, as Markdown."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

import tinygrad_cg
from tinygrad_cg._core.levels import Listener
from tinygrad_cg._core.suggestions import AbsentAttribute

NAMES = {
    "tf": tinygrad_cg,
    "ops": tinygrad_cg.keras.ops,
    "np": tinygrad_cg.numpy,
    "autograd": tinygrad_cg.autograd,
}
SECTION = re.compile(r"-{3,}\s*$")
IMPORTS = """The examples use these names:

```python
import tinygrad_cg as tf
import tinygrad_cg.numpy as np
from tinygrad_cg.keras import ops
```"""
IMPORTS_OF_AUTOGRAD = """The examples use these names, and the modules of autograd that they name:

```python
import numpy as np

import tinygrad_cg as tf
from tinygrad_cg import autograd
```"""
INTERNAL = {*vars(Listener)}  # what the library calls on its levels
COMMANDS = {"tinygrad_cg.warm"}


@cache
def modules() -> list[str]:
    """Return the names of the public modules, in alphabetical order."""
    names = ["tinygrad_cg"]
    for module in pkgutil.walk_packages(tinygrad_cg.__path__, "tinygrad_cg.", onerror=_fail):
        if not re.search(r"\._", module.name) and module.name not in COMMANDS:
            names.append(module.name)
    return sorted(name for name in names if getattr(importlib.import_module(name), "__all__", ()))


@cache
def examples() -> dict[int, str]:
    """Return, for functions by identity, the call in examples.txt that shows them."""
    modules()  # loads them
    lines = (Path(__file__).parent / "examples.txt").read_text(encoding="utf-8").splitlines()
    return {id(eval(line.partition("(")[0], dict(NAMES))): line for line in lines}


def _example(value: object) -> str:
    """Return a call of a function and its result, which is computed here."""
    if id(value) not in examples():
        return ""
    code = examples()[id(value)]
    result = eval(code, NAMES | {"np": numpy} if code.startswith("autograd") else dict(NAMES))
    shown = f"print({code})" if tinygrad_cg.is_tensor(result) else code
    text = str(result) if tinygrad_cg.is_tensor(result) else repr(result)
    return f"```pycon\n>>> {shown}\n{text}\n```"


def _is_own(value: object) -> bool:
    home = getattr(value, "__module__", None) or type(value).__module__
    return home.partition(".")[0] in ("tinygrad_cg", "tinygrad_cg_kernels")


def _fail(name: str) -> None:
    raise ImportError(name)


def rest(name: str) -> list[str]:
    """Return what a page of a module has besides its functions and classes."""
    text = page(name, ("Modules", "Constants"))
    return [text.partition("\n## ")[1].strip("\n") + text.partition("\n## ")[2].rstrip("\n")]


def page(
    name: str, kinds: tuple[str, ...] = ("Modules", "Classes", "Functions", "Constants")
) -> str:
    """Return the page of a public module."""
    module = importlib.import_module(name)
    names = sorted((name for name in module.__all__ if not name.startswith("__")), key=str.lower)
    groups: dict[str, list[str]] = {"Modules": [], "Classes": [], "Functions": [], "Constants": []}
    first: dict[int, str] = {}
    others: list[str] = []
    for public in names:
        value = getattr(module, public)
        kind = _kind(value)
        if kind in ("Classes", "Functions") and not _is_own(value):
            others.append(f"`{public}`")
        elif kind not in kinds:
            continue
        elif kind == "Modules":
            target = value.__name__
            entry = f"[{public}]({target}.md)" if target in modules() else f"`{public}`"
            groups[kind].append(f"- {entry}: {_plain(_summary(value))}")
        elif kind == "Constants":
            groups[kind].append(f"- `{public}` = `{value!r}`")
        elif id(value) in first:
            groups[kind].append(f"### {public} {{#{public}}}\n\nThe same as `{first[id(value)]}`.")
        else:
            first[id(value)] = public
            groups[kind].append(_entry(public, value))
    parts = [f"# {name}", rendered(inspect.getdoc(module) or "")]
    for title, entries in groups.items():
        if entries:
            between = "\n" if title in ("Modules", "Constants") else "\n\n"
            parts += [f"## {title}", between.join(entries)]
    if others:
        parts += [
            "## NumPy's and Python's own",
            f"These are passed on unchanged: {', '.join(others)}.",
        ]
    if "\n>>> " in "".join(parts):
        parts.insert(2, IMPORTS_OF_AUTOGRAD if ".autograd" in name else IMPORTS)
    return "\n\n".join(parts) + "\n"


def _kind(value: object) -> str:
    if isinstance(value, ModuleType):
        return "Modules"
    if inspect.isclass(value):
        return "Classes"
    return "Functions" if callable(value) else "Constants"


def _entry(name: str, value: object, level: str = "###", owner: str = "") -> str:
    parts = [f"{level} {name} {{#{owner}{name}}}", f"```python\n{name}{_signature(value)}\n```"]
    text = rendered(inspect.getdoc(value) or "")
    parts += [text, "" if ">>> " in text else _example(value)]
    if inspect.isclass(value):
        for method, member in sorted(_methods(value).items()):
            parts.append(_entry(method, member, "####", f"{name}."))
    return "\n\n".join(part for part in parts if part)


def _methods(value: type) -> dict[str, object]:
    """Return the public methods and properties with docstrings that the library defines."""
    members: dict[str, object] = {}
    for base in reversed(value.__mro__):
        if base.__module__.startswith("tinygrad_cg"):
            for name in list(vars(base)):
                getattr(base, name, None)  # what the first use loads is there then
                member = vars(base)[name]
                written = inspect.getdoc(member) if not name.startswith("_") else None
                is_method = inspect.isroutine(member) or isinstance(member, property)
                is_absent = isinstance(member, AbsentAttribute)  # it raises, and says what to use
                if written and is_method and not is_absent and name not in INTERNAL:
                    members[name] = member
    return members


def _signature(value: Any) -> str:
    if isinstance(value, property):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    shown = parameters(signature)
    line = f"({', '.join(shown)})"
    return line if len(line) < 70 else "(\n    " + ",\n    ".join(shown) + ",\n)"


def parameters(
    signature: inspect.Signature, type_of: Callable[[inspect.Parameter], str] = lambda _: ""
) -> list[str]:
    """Return the parameters of a signature without self, with the types that `type_of` gives."""
    shown: list[str] = []
    star = False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls") and not shown:
            continue
        text, kind = parameter.name, type_of(parameter)
        if parameter.kind is parameter.VAR_POSITIONAL:
            text, star = f"*{text}", True
        elif parameter.kind is parameter.VAR_KEYWORD:
            text = f"**{text}"
        elif parameter.kind is parameter.KEYWORD_ONLY and not star:
            shown, star = [*shown, "*"], True
        text += f": {kind}" if kind else ""
        if parameter.default is not parameter.empty:
            text += f"{' = ' if kind else '='}{_default(parameter.default)}"
        shown.append(text)
    return shown


def _default(value: object) -> str:
    text = repr(value)
    return getattr(value, "__name__", "...") if text.startswith("<") else text


def _summary(value: object) -> str:
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")


def _plain(text: str) -> str:
    """Return a line of a docstring as Markdown: code in single backticks, the rest as it is."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text)
    for index, part in enumerate(parts):
        if index % 2:
            parts[index] = f"`{part.strip('`')}`"
        else:
            parts[index] = re.sub(r"([*\[\]])", r"\\\1", part).replace("<", "&lt;")
    return "".join(parts)


def rendered(text: str) -> str:
    """Return a docstring as Markdown: its sections, parameters and examples."""
    lines, out, index = text.splitlines(), [], 0
    listed = False  # in a section of parameters
    while index < len(lines):
        line = lines[index]
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if line.strip() and SECTION.match(following):
            out += ["", f"**{line.strip()}**", ""]
            listed = line.strip() in ("Parameters", "Attributes")
            index += 2
        elif line.lstrip().startswith(">>>"):
            end = index
            while end < len(lines) and lines[end].strip():
                end += 1
            block = inspect.cleandoc("\n".join(lines[index:end]))
            out += ["", "```pycon", block, "```", ""]
            index = end
        elif listed and line and not line.startswith(" ") and line.rstrip().endswith(":"):
            out += ["", f"- `{line.rstrip()[:-1]}`:"]
            index += 1
        elif out and line.startswith("    ") and not listed and not out[-1].strip():
            end = index
            while end < len(lines) and (not lines[end] or lines[end].startswith("    ")):
                end += 1
            out += ["```text", inspect.cleandoc("\n".join(lines[index:end])), "```"]
            index = end
        else:
            listed = listed and (not line or line.startswith(" "))
            out.append(("    " if line.startswith(" ") and listed else "") + _plain(line.strip()))
            index += 1
    return "\n".join(out).strip()
