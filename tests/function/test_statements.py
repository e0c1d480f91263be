"""Statements of generated code, the kinds of node that they are made of, and steps of a call."""

import numpy as np

from tinygrad_cg._function.codegen.emission import EMITTERS, emitter
from tinygrad_cg._function.codegen.statements import (
    Expression,
    Name,
    Statement,
    Suite,
    modules,
    reads,
    render,
)
from tinygrad_cg._function.codegen.steps import Steps
from tinygrad_cg._function.fusion import nodes

X, Y, SIZE = map(Name, ("x", "y", "size"))


def kinds(base: type) -> list[type]:
    """All classes below one."""
    return [kind for child in base.__subclasses__() for kind in (child, *kinds(child))]


def test_an_expression_knows_its_variables_and_modules():
    inner = Expression("math.exp({})", X, modules=("kernels.math",))
    outer = Expression("{} + {} * {}", inner, Y, "2.0")
    assert str(outer) == "math.exp(x) + y * 2.0"
    assert outer.reads == [X, Y]
    assert list(outer.modules) == ["kernels.math"]


def test_stores_and_heads_of_loops_read_variables():
    store = Statement(Expression("{}[j]", Y), Expression("{} + 1", X))
    loop = Suite(Expression("for j in range({})", SIZE), [store])
    assert render([loop]) == ["    for j in range(size):", "        y[j] = x + 1"]
    assert reads([loop]) == {SIZE, X, Y}
    assert reads([Statement(X, "0")]) == set()  # a variable that is set is not read
    assert modules([loop]) == set()


def test_every_kind_of_node_that_loops_compute_has_an_emitter():
    fused = {kind for kind in kinds(nodes.FusionNode) if kind.is_fused}
    assert fused | {nodes.LiteralNode} == set(EMITTERS)
    x = nodes.ArrayNode((3,), np.dtype(np.float64), 0)
    assert type(emitter(x)) is type(emitter(nodes.view(x, (3, 1))))  # loaded from memory


def test_an_array_is_released_after_its_last_use_unless_it_is_returned():
    steps, dtype = Steps(), np.dtype(np.float64)
    for name in ("v1", "v2"):
        steps.empty(name, (2**20,), dtype, f"{name} = empty({name})")
    steps.add("run(x0, v1, v2)", uses=["x0", "v1", "v2"])
    steps.operation("v3", "v3 = sort(v1)", ["v1"], views=False, keeps=False)
    steps.add("run(v2, v3)", uses=["v2", "v3"])
    lines, scratch = steps.finish(["v2"], {"v2"}, keeps=True)
    assert scratch is None
    assert lines[3:] == ["v3 = sort(v1)", "del v1", "run(v2, v3)", "return [v2]"]
