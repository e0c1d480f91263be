"""Node kinds: the few forms of value that loops compute.

A class says what its values read, over which domain a loop computes them, what that costs, and
whether they may be computed again. `codegen.emission` says how each kind is written; `lower` and
`lookup` say which operations become which nodes. A new kind of node is a class here, an emitter
there, and a rule that makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.runtime.promotion import broadcast_shapes

from ..._core.kinds import is_bool
from ..graph.partition import QUICK
from .domains import ANYWHERE, COLUMN, ELEMENT, ROW, SCALAR, Access, Domain, broadcasting, pattern

TILE = 8  # rows of a transpose that are made at a time: a cache line has that many elements
COPY, CAST = "copy", "cast"  # the functions of an `ApplyNode` that are not scalar functions

CHEAP: set[Any] = {COPY, CAST, *[getattr(kmath, name) for name in QUICK]}
"""Functions that take less time than a pass over memory. All others are polynomials."""

_TESTING_NAMES = "absolute clip isfinite isinf isnan logical_not maximum minimum relu sign"
ARITHMETIC: set[Any] = CHEAP - {getattr(kmath, name) for name in _TESTING_NAMES.split()}
"""Functions that are as fast for a parameter as for a number in the text. Others (`maximum`, say)
test an operand: if it is a number in the text, LLVM removes the test."""

Shape = tuple[int, ...]
Nodes = Sequence["FusionNode"]
Operands = list[tuple["FusionNode", "Access | None"]]
"""Operands without their views, and how a domain indexes each; None if it cannot."""


class FusionNode:
    """A value of a lowered program: its shape, its dtype, and the nodes it is computed from."""

    __slots__ = ("dtype", "operands", "shape", "size")

    is_input = False  # a constant or an argument: no kernel computes it
    is_fused = False  # a loop computes it, so it has a domain
    shares_domain = False  # with nodes that read it element by element
    by_row = False  # can be computed once per row, in the domain of an operand
    by_element = False  # can be computed again in flat domains only, element by element
    among_scalars = False  # if it has one element, it is one of a segment's scalars
    is_cheap = False  # computing it again takes less time than storing and reading it
    cost = 0  # of computing it again
    result = ""  # of a reduction: a "total", or a number per "row" or per "column"
    columns: int = 0  # of the domain of the loop that computes it; 0 if any number fits
    aligned: Nodes = ()  # operands that it reads element by element: they share its domain

    def __init__(self, shape: Shape, dtype: np.dtype, operands: Nodes = ()):
        self.shape = tuple(shape)
        self.dtype = dtype
        self.operands = tuple(operands)
        self.size = prod(self.shape)

    @property
    def label(self) -> str:
        """Return a stem for names of variables."""
        return type(self).__name__.removesuffix("Node").lower()

    @property
    def domain_size(self) -> int:
        """Return the size of the domain of the loop that computes it."""
        return self.size

    def accesses(self, access: Access, domain: Domain) -> Operands:
        """Return the operands and their accesses, in a domain in which the node has `access`."""
        raise TypeError(f"{self!r} is computed by no loop")

    def __repr__(self) -> str:
        return f"<{self.label} {self.dtype}{self.shape}>"


class ArrayNode(FusionNode):
    """An input of the program (`source` is its position), or a constant array."""

    __slots__ = ("source",)
    is_input = True

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, source: int | np.ndarray):
        super().__init__(shape, dtype)
        self.source = source

    @property
    def constant(self) -> np.ndarray | None:
        """Return the array of a constant; None for an input."""
        return None if isinstance(self.source, int) else self.source


class LiteralNode(FusionNode):
    """A number. It is a parameter of kernels, so that machine code serves other numbers, too.

    Special numbers are `in_text`: 0, 1, -1, infinities, NaN, True and False are written into the
    text of kernels.
    """

    __slots__ = ("in_text", "number")
    is_input = True

    def __init__(self, number: Any, dtype: np.dtype):
        super().__init__((), dtype)
        self.number = number
        self.in_text = is_bool(dtype) or number in (0, 1, -1) or not isfinite(number)

    def written(self) -> LiteralNode:
        """Return the same number, to be written into texts."""
        literal = LiteralNode(self.number, self.dtype)
        literal.in_text = True
        return literal


class SizeNode(LiteralNode):
    """A number that follows from shapes, and is never written into a text."""

    __slots__ = ()

    def __init__(self, number: int, dtype: np.dtype):
        super().__init__(number, dtype)
        self.in_text = False

    def written(self) -> LiteralNode:
        return self


class ApplyNode(FusionNode):
    """A scalar function of operands, which broadcast and have the function's dtypes."""

    __slots__ = ("function",)
    is_fused = shares_domain = by_row = among_scalars = True

    def __init__(self, function: Any, shape: Shape, dtype: np.dtype, operands: Nodes):
        super().__init__(shape, dtype, operands)
        self.function = function

    @property
    def label(self) -> str:
        return getattr(self.function, "__name__", self.function)

    @property
    def is_cheap(self) -> bool:
        return self.function in CHEAP

    @property
    def cost(self) -> int:
        return int(self.function != COPY)

    @property
    def columns(self) -> int:
        columns = [broadcasting(operand.shape, self.shape)[1] for operand in self.operands]
        return next(filter(None, columns), 0)

    @property
    def aligned(self) -> list[FusionNode]:
        return [x for x in self.operands if broadcasting(x.shape, self.shape)[0] == "same"]

    def accesses(self, access: Access, domain: Domain) -> Operands:
        result: Operands = []
        for operand in self.operands:
            name, columns = broadcasting(operand.shape, self.shape)
            inner = SCALAR if operand.size == 1 else access if name == "same" else None
            if inner is None and access == ELEMENT and columns == domain.columns:
                inner = ROW if name == "row" else COLUMN
            result.append((base(operand), inner))
        return result


class ScatterNode(ApplyNode):
    """Zeros, except for one element of each row along `axis`; `rows` has these elements."""

    __slots__ = ("axis", "rows")

    def __init__(self, operands: Sequence[FusionNode], shape: tuple[int, ...], axis: int):
        super().__init__(kmath.where, shape, operands[1].dtype, operands)
        self.axis, self.rows = axis, operands[1]


class ReduceNode(FusionNode):
    """A reduction of the first operand over `axes`, by its name: "sum", "max", ..."""

    __slots__ = ("axes", "name")
    is_fused = by_row = True

    def __init__(self, name: str, shape: Shape, dtype: np.dtype, operands: Nodes, axes: Shape):
        super().__init__(shape, dtype, operands)
        self.name, self.axes = name, axes

    @property
    def label(self) -> str:
        return self.name

    @property
    def result(self) -> str:
        shape = pattern(self.operands[0].shape, self.axes)
        return {"r": "total", "kr": "row", "rk": "column"}[shape]

    @property
    def domain_size(self) -> int:
        return self.operands[0].size

    @property
    def columns(self) -> int:
        result, shape = self.result, self.operands[0].shape
        if result == "total":
            return 0
        return prod(n for i, n in enumerate(shape) if (i in self.axes) == (result == "row"))

    @property
    def aligned(self) -> list[FusionNode]:
        return [self.operands[0]]

    def accesses(self, access: Access, domain: Domain) -> Operands:
        x, *indices = map(base, self.operands)
        return [(x, access), *[(index, ROW) for index in indices]]


class RowGatherNode(ReduceNode):
    """The element of each row of the first operand at the position in the second."""

    __slots__ = ()


class ViewNode(FusionNode):
    """The operand's elements, in the same order, in another shape."""

    __slots__ = ()


class SliceNode(FusionNode):
    """Consecutive elements of the operand, from position `start` on."""

    __slots__ = ("start",)
    is_fused = by_element = is_cheap = among_scalars = True
    sign = 1

    def __init__(self, size: int, operand: FusionNode, start: int):
        super().__init__((size,), operand.dtype, (operand,))
        self.start = start

    def accesses(self, access: Access, domain: Domain) -> Operands:
        operand = base(self.operands[0])
        if operand.size == 1:
            return [(operand, SCALAR)]
        return [(operand, Access(access.per, access.shift + self.sign * self.start))]


class PadNode(SliceNode):
    """Zeros, with the operand's elements from `start` on: the transpose of a slice."""

    __slots__ = ()
    among_scalars = False
    sign = -1


class LookupNode(FusionNode):
    """Rows of a table (elements, if it has one axis) at the positions in the second operand."""

    __slots__ = ()
    is_fused = shares_domain = is_cheap = among_scalars = True

    @property
    def columns(self) -> int:
        columns = prod(self.operands[0].shape[1:])
        return columns if columns > 1 else 0

    def accesses(self, access: Access, domain: Domain) -> Operands:
        table, positions = map(base, self.operands)
        rows: Access | None = access
        if columns := self.columns:
            rows = ROW if access == ELEMENT and columns == domain.columns else None
        return [(table, ANYWHERE), (positions, rows)]


class ColumnsNode(FusionNode):
    """Columns of a matrix from `start` on. Rows of the matrix have `width` elements."""

    __slots__ = ("columns", "start", "width")
    is_fused = shares_domain = is_cheap = True

    def __init__(self, rows: int, columns: int, operand: FusionNode, start: int, width: int):
        super().__init__((rows, columns), operand.dtype, (operand,))
        self.columns, self.start, self.width = columns, start, width

    def accesses(self, access: Access, domain: Domain) -> Operands:
        there = access == ELEMENT and domain.columns == self.columns
        return [(base(self.operands[0]), ANYWHERE if there else None)]


class TransposeNode(FusionNode):
    """The transpose of each matrix in a stack; `rows` and `columns` are those of the result."""

    __slots__ = ("columns", "rows")
    is_fused = shares_domain = True

    def __init__(self, shape: tuple[int, ...], operand: FusionNode, rows: int, columns: int):
        super().__init__(shape, operand.dtype, (operand,))
        self.rows, self.columns = rows, columns

    @property
    def label(self) -> str:
        return "turn"

    def accesses(self, access: Access, domain: Domain) -> Operands:
        return [(base(self.operands[0]), ANYWHERE)]


class ElementsNode(FusionNode):
    """An array whose operands are its elements: nodes of one number, in row-major order."""

    __slots__ = ()


class OpaqueNode(FusionNode):
    """A function of arrays that runs between kernels.

    `op` is the record of an operation, whose name and `params` the node has; None for others.
    `on_gpu` is the same function of arrays on a GPU. The result is a new array unless it `aliases`
    an operand. A `pure` function returns equal results for equal operands, and keeps none of them.
    """

    __slots__ = ("aliases", "name", "on_gpu", "op", "params", "pure", "run")

    def __init__(
        self,
        name: str,
        run: Any,
        shape: Shape,
        dtype: np.dtype,
        operands: Nodes,
        op: Any = None,
        on_gpu: Any = None,
        params: Any = None,
    ):
        super().__init__(shape, dtype, operands)
        self.name, self.run, self.op, self.params = name, run, op, params or {}
        self.on_gpu = on_gpu or run
        self.aliases = op is None or op.aliases
        self.pure = op is None or op.kind not in ("impure", "user")

    @property
    def label(self) -> str:
        return self.name if self.op is None else self.op.label


def base(node: FusionNode) -> FusionNode:
    """Return the node below a chain of views."""
    while isinstance(node, ViewNode):
        node = node.operands[0]
    return node


def view(node: FusionNode, shape: tuple[int, ...]) -> FusionNode:
    """Return `node` in another shape."""
    return node if node.shape == shape else ViewNode(shape, node.dtype, (node,))


def cast(node: FusionNode, dtype: np.dtype) -> FusionNode:
    """Return `node` in another dtype."""
    return node if node.dtype == dtype else ApplyNode(CAST, node.shape, dtype, (node,))


def apply(function: Any, *operands: FusionNode, dtype: np.dtype | None = None) -> ApplyNode:
    """Return a scalar function of operands. Its dtype is by default that of the last operand."""
    shape = broadcast_shapes(*[node.shape for node in operands])
    operands = in_texts(function, operands)
    return ApplyNode(function, shape, dtype or operands[-1].dtype, operands)


def in_texts(function: Any, operands: Sequence[FusionNode]) -> tuple[FusionNode, ...]:
    """Return operands; their numbers are written into the text if that is faster."""
    if function in ARITHMETIC:
        return tuple(operands)
    return tuple([x.written() if isinstance(x, LiteralNode) else x for x in operands])


def reduce(name: str, x: FusionNode, axes: tuple[int, ...], keepdims: bool) -> FusionNode:
    """Return a reduction of `x` over axes; a view if all these have size 1."""
    flat = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
    ones = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    single = prod(x.shape[axis] for axis in axes) == 1
    reduced = x if single else ReduceNode(name, flat, x.dtype, (x,), axes)
    return view(reduced, ones if keepdims else flat)
