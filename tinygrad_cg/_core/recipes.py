"""From a primitive's gradient functions to what a node holds.

In a recipe ``save(inputs, params, out)`` picks the residuals when an operation is recorded,
``rule(node, dy)`` calls the gradient functions with them. There is one for each set of watched
operands, so that a tape keeps what these need and no more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .fused_rules import fused
from .levels import Node, next_serial
from .tensor import Tensor

if TYPE_CHECKING:
    from .primitive import Primitive


class Recipe(NamedTuple):
    """What a recorded operation does for one set of watched operands."""

    save: Callable[[tuple, Any, Any], Any]
    rule: Callable[[Node, Any], tuple]
    hang: Callable[..., None] | None = None
    """``hang(group, nodes, inputs, params, out)`` saves, and hangs the node from the tensor `out`,
    which has none yet: all at once, as the commonest operations want it."""


class SameRecipe(dict):
    """The same recipe, whichever operands are watched."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe

    def __missing__(self, mask: int) -> Recipe:
        self[mask] = self.recipe
        return self.recipe


class Recipes(dict):
    """Recipes by the bit mask of watched operands, compiled at first use.

    The bit above those of the operands asks for conjugated residuals (complex numbers).
    """

    def __init__(self, primitive: Primitive):
        self.primitive = primitive

    def __missing__(self, mask: int) -> Recipe:
        self[mask] = recipe = compile_recipe(self.primitive, mask)
        return recipe


def alias(data: Any, node: Node) -> Tensor:
    """The tensor that `node` describes, again. (A node that held it would be a cycle.)"""
    return Tensor(data, node) if type(data) is np.ndarray else data._with_record(node)


new_node = partial(object.__new__, Node)


def bare(out: Tensor) -> Any:
    """What of `out` a node may save: its data, without the record that leads to the node."""
    return out._data if type(out) is Tensor else out._with_record(None)


def compile_recipe(primitive: Primitive, mask: int) -> Recipe:
    """Generate the recipe for one set of watched operands.

    For multiply with both operands watched that is ``def save(a, p, o): return a`` and
    ``def rule(n, dy): s = n.saved; return (f0(dy, s[1]), f1(dy, s[0]),)``.
    """
    names = primitive.inputs
    conjugate = primitive.analytic and mask >> len(names) & 1
    functions: dict[str, Any] = {"alias": alias, "bare": bare, "new": new_node}
    functions["serial"] = next_serial
    wanted: dict[int, list[str]] = {}
    for i, vjp in enumerate(primitive.vjp or ()):
        if vjp is not None and mask >> i & 1:
            parameters = tuple(inspect.signature(vjp).parameters)
            functions[f"f{i}"] = vjp
            if primitive.kind == "elementwise" and {*parameters} <= {"dy", "out", *names}:
                functions[f"f{i}"] = fused(primitive.name, vjp, parameters)
            wanted[i] = list(parameters)
    used = {name for arguments in wanted.values() for name in arguments} - {"dy", "shape"}
    residuals = [name for name in names if name in used]
    residuals += sorted(used - {"out", *names})
    residuals += ["out"] if "out" in used else []

    def pick(name: str) -> str:
        if name in names:
            return f"a[{names.index(name)}]"
        return "bare(o)" if name == "out" else f"p[{name!r}]"

    def load(name: str, i: int) -> str:
        if name == "dy":
            return "dy"
        if name == "shape":
            return f"n.inputs[{i}].shape"
        value = f"s[{residuals.index(name)}]" if len(residuals) > 1 else "s"
        if name == "out":
            value = f"alias({value}, n)"
        return f"conj({value})" if conjugate and (name == "out" or name in names) else value

    if conjugate:
        from .._ops.complex import conj

        functions["conj"] = conj
    if residuals == list(names) and len(names) > 1:
        saved = "a"
    elif len(residuals) == 1:
        saved = pick(residuals[0])
    else:
        saved = f"({', '.join(map(pick, residuals))},)" if residuals else "None"
    results = [
        f"f{i}({', '.join(load(name, i) for name in wanted[i])})" if i in wanted else "None"
        for i in range(len(names))
    ]
    source = (
        f"def save(a, p, o): return {saved}\n"
        f"def rule(n, dy):\n    s = n.saved\n    return ({', '.join(results)},)\n"
        "def hang(group, nodes, a, p, o):\n"
        "    d = o._data\n"
        "    o._rec = n = new()\n"
        "    n.group, n.inputs, n.rule = group, nodes, rule\n"
        f"    n.saved = {saved}\n"
        "    n.shape, n.dtype, n.next, n.serial = d.shape, d.dtype, None, serial()\n"
    )
    exec(compile(source, f"<rule of {primitive.name}>", "exec"), functions)
    return Recipe(functions["save"], functions["rule"], functions["hang"])
