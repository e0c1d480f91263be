"""Lowering: from a graph to the few kinds of node that fusion knows.

Elementwise operations become scalar functions with explicit casts. Compound reductions (mean,
log_softmax) become the simple ones they consist of. Whatever keeps elements in row-major order
becomes a view. Every other operation becomes a call of the operation itself on arrays.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import frexp, prod
from operator import itemgetter
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.runtime.compile import is_ours
from tinygrad_cg_kernels.runtime.promotion import BOOL

from ..._core.kinds import is_floating, is_integer
from ..._core.primitive import OPS, run_on_gpu, runner
from ..._ops.reductions import is_narrow
from ..graph.simplify import span_along_axis
from ..graph.values import FuncGraph, OutputItem, Value
from . import nodes
from .domains import pattern
from .lookup import MIN_COLUMNS, Lookups
from .nodes import FusionNode, apply, base, cast, reduce, view

FUSED = frozenset(np.dtype(code) for code in "?bhilqBHILQfd")
"""The dtypes of generated loops: Numba has no float16, and complex numbers run eagerly."""

MAX_TRANSPOSED_COLUMNS = 8192
"""Matrices with more columns are not transposed in loops: TILE rows have to stay in the cache."""


class Lowering:
    """The nodes of a graph's values. `checks` are nodes that run although no output reads them."""

    def __init__(self, graph: FuncGraph):
        self.nodes: dict[Value, FusionNode] = {}
        self._shared = _shared_matrices(graph)
        for position, value in enumerate(graph.inputs):
            self.nodes[value] = nodes.ArrayNode(value.shape, value.dtype, position)
        values = [value for value in graph.values() if not isinstance(value.aval, list)]
        self._largest = max((prod(value.shape) for value in values), default=0)
        lookups = Lookups()
        self._lookups = lookups.rules
        self._read_in_order = _read_in_order(graph)
        for value in graph.values():
            if value not in self.nodes:
                self.nodes[value] = self._lower(value)
        self.outputs = [self.nodes[value] for value in graph.outputs]
        self.checks = lookups.checks

    def values(self) -> dict[FusionNode, Value]:
        """Return the value of each node; the first one if several values share a node."""
        return {node: value for value, node in reversed(self.nodes.items())}

    def _lower(self, value: Value) -> FusionNode:
        if value.array is not None:
            return _constant(value.array)
        operands = [self.nodes[operand] for operand in value.inputs]
        if value.name == "divide":
            operands[1] = self._divisor(operands[1], prod(value.shape))
        return self._fuse_by_rule(value, operands) or _opaque(value, operands)

    def _divisor(self, node: FusionNode, size: int) -> FusionNode:
        """Return a divisor. A power of 2 is written into the text: LLVM multiplies instead.

        If the quotient is smaller than other values, the divisor may be a size, which is never
        written into the text.
        """
        if not isinstance(node, nodes.LiteralNode) or size < self._largest:
            return node
        exact = is_floating(node.dtype) and abs(frexp(node.number)[0]) == 0.5
        return node.written() if exact else node

    def _fuse_by_rule(self, value: Value, operands: list[FusionNode]) -> FusionNode | None:
        """Return the node of an operation that loops can compute; None if they cannot."""
        if not value.name or isinstance(value.aval, list):
            return None
        if not all(aval.dtype in FUSED and prod(aval.shape) for aval in (value.aval, *operands)):
            return None
        product = vector_product(value)
        if product is not None and product[0] in self._shared:
            matrix, vector, transposed = product
            return _product_by_rows(value, self.nodes[matrix], self.nodes[vector], transposed)
        if value.name == "matmul" and _is_outer(value):
            return apply(kmath.multiply, *[cast(operand, value.dtype) for operand in operands])
        rule = RULES.get(value.name, _elementwise if value.kind == "elementwise" else None)
        if value.name == "transpose" and value not in self._read_in_order:
            rule = None
        node = rule(value, *operands) if rule else None
        if node is None and value.name == "getitem" and value in self._read_in_order:
            node = _columns(value, operands[0])
        if node is None and value.name in self._lookups:
            node = self._lookups[value.name](value, *operands)
        return node


def _opaque(value: Value, operands: list[FusionNode]) -> FusionNode:
    if isinstance(value, OutputItem):
        select = itemgetter(value.index)
        return nodes.OpaqueNode("item", select, value.shape, value.dtype, operands)
    op, params = value.primitive, value.params
    several = isinstance(value.aval, list)
    shape, dtype = ((), np.dtype(object)) if several else (value.shape, value.dtype)
    run, on_gpu = runner(op, params), run_on_gpu(op, params)
    return nodes.OpaqueNode(op.name, run, shape, dtype, operands, op, on_gpu, params)


def _read_in_order(graph: FuncGraph) -> set[Value]:
    """Return the values whose elements a loop or the caller reads in order.

    If only operations on arrays read a transpose or columns of a matrix, these remain views.
    """
    read = set(graph.outputs)
    for value in graph.values():
        if value.kind == "elementwise" or value.name in RULES:
            read.update(value.inputs)
    return read


def _constant(array: np.ndarray) -> FusionNode:
    if not array.ndim and array.dtype in FUSED:
        return nodes.LiteralNode(array[()], array.dtype)
    return nodes.ArrayNode(array.shape, array.dtype, array)


# Elementwise ---------------------------------------------------------------------------------


def importable(function: Callable) -> bool:
    """Return whether generated code can import a function, and the kernels' STAMP covers it."""
    if not is_ours(function):
        return False
    module = sys.modules.get(function.__module__)
    return getattr(module, function.__name__, None) is function


def _elementwise(value: Value, *operands: FusionNode) -> FusionNode | None:
    kernel = value.primitive.kernel
    if not isinstance(kernel, Elementwise) or not importable(kernel.function):
        return None
    signature = kernel._signature(tuple([node.dtype for node in operands]))
    if signature.checked or signature.target is not signature.result:
        return None
    if kernel.refusal(signature.loop) is not None:  # the operation says why when it runs
        return None
    wanted = [cast(node, dtype) for node, dtype in zip(operands, signature.loop, strict=True)]
    return apply(kernel.function, *wanted, dtype=signature.target)


def _slope(function: Callable, slope: Callable, value: Value, x: FusionNode) -> FusionNode:
    """Return the derivative of a function, computed from the function's value."""
    return apply(slope, x, apply(function, x))


def _cast(value: Value, x: FusionNode) -> FusionNode | None:
    if is_floating(x.dtype) and is_integer(value.dtype):
        return None  # the result of an overflow depends on the instruction
    return cast(x, value.dtype)


# Shapes --------------------------------------------------------------------------------------


def _view(value: Value, x: FusionNode, *_: FusionNode) -> FusionNode:
    return view(x, value.shape)


def _transpose(value: Value, x: FusionNode) -> FusionNode | None:
    """Return a view if only axes of size 1 move, or transposed matrices."""
    kept = [axis for axis in value.params["perm"] if x.shape[axis] != 1]
    if kept == sorted(kept):
        return view(x, value.shape)
    starts = [k for k, axis in enumerate(kept) if not k or axis != kept[k - 1] + 1]
    firsts = [kept[k] for k in starts]
    if sorted(firsts)[:-2] + sorted(firsts)[:-3:-1] != firsts:
        return None
    columns = prod(x.shape[axis] for axis in kept[starts[-1] :])
    rows = prod(x.shape[axis] for axis in kept[starts[-2] : starts[-1]])
    if rows < nodes.TILE or not MIN_COLUMNS <= columns <= MAX_TRANSPOSED_COLUMNS:
        return None
    return nodes.TransposeNode(value.shape, x, rows, columns)


def _broadcast(value: Value, x: FusionNode) -> FusionNode:
    if x.size == prod(value.shape):
        return view(x, value.shape)
    return nodes.ApplyNode(nodes.COPY, value.shape, x.dtype, (x,))


def flat_range(shape: tuple[int, ...], key: tuple) -> tuple[int, int] | None:
    """Return the first element and the count, if a key selects consecutive elements."""
    parts = [part for part in key if part is not None]
    if any(not isinstance(part, (int, slice)) and part is not Ellipsis for part in parts):
        return None
    if Ellipsis in parts:
        k = parts.index(Ellipsis)
        parts[k : k + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    start, count, complete = 0, 1, True  # complete: all axes from here on are
    sizes = list(shape)
    for axis in reversed(range(len(shape))):
        part = parts[axis] if axis < len(parts) else slice(None)
        after = prod(sizes[axis + 1 :])
        if isinstance(part, slice):
            low, high, step = part.indices(sizes[axis])
            length = len(range(low, high, step))
            if not length or (step != 1 and length > 1):
                return None
        else:
            low, length = part % sizes[axis], 1
        if not complete and length != 1:
            return None
        start += low * after
        count *= length
        complete = complete and length == sizes[axis]
    return start, count


def _getitem(kind: type[nodes.SliceNode], value: Value, x: FusionNode) -> FusionNode | None:
    """Return a range of elements, or its transpose, a padding; a view if it has all elements."""
    size = prod(value.shape)
    shape = x.shape if kind is nodes.SliceNode else value.shape
    part = flat_range(shape, value.params["key"])
    if part is None:
        return None
    if x.size == size:
        return view(x, value.shape)
    return view(kind(size, view(x, (x.size,)), part[0]), value.shape)


def _columns(value: Value, x: FusionNode) -> FusionNode | None:
    """Return columns of a matrix, if a key selects consecutive columns of all rows."""
    shape, span = x.shape, span_along_axis(value.params["key"], x.shape)
    if span is None:
        return None
    axis, first, _ = span
    rows, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    start, columns = first * after, value.shape[axis] * after
    if columns < MIN_COLUMNS:
        return None
    return view(nodes.ColumnsNode(rows, columns, x, start, shape[axis] * after), value.shape)


# Reductions ----------------------------------------------------------------------------------


def _reduction(value: Value, x: FusionNode) -> FusionNode | None:
    name, axes = value.name, value.params["axis"]
    shape = pattern(x.shape, axes)
    if shape not in ("", "k", "r", "kr") and (shape, name) != ("rk", "sum"):
        return None
    x = cast(x, BOOL if name in ("any", "all") else value.dtype)
    find = _sum if name == "sum" else partial(reduce, name)
    return view(find(x, axes, value.params["keepdims"]), value.shape)


def _sum(x: FusionNode, axis: tuple[int, ...], keepdims: bool) -> FusionNode:
    """Return a sum. The sum of zeros with one element per row is that element."""
    total = reduce("sum", x, axis, keepdims)
    if isinstance(x, nodes.ScatterNode) and x.axis in axis and x.rows.size == total.size:
        return view(x.rows, total.shape)
    return total


def _exp(value: Value, x: FusionNode) -> FusionNode | None:
    return _softmax_of(x) or _elementwise(value, x)


def _softmax_of(y: FusionNode) -> FusionNode | None:
    """Return exp(y) if `y` is a log_softmax, from the exponentials and the sum it computed."""
    if not _applies(y, kmath.subtract) or not _applies(y.operands[1], kmath.log):
        return None
    shifted, total = y.operands[0], y.operands[1].operands[0]
    reduction = base(total)
    if not isinstance(reduction, nodes.ReduceNode) or reduction.name != "sum":
        return None
    powers = reduction.operands[0]
    if not _applies(powers, kmath.exp) or powers.operands[0] is not shifted:
        return None
    return apply(kmath.multiply, powers, apply(kmath.divide, nodes.LiteralNode(1, y.dtype), total))


def _applies(node: FusionNode, function: Callable) -> bool:
    return isinstance(node, nodes.ApplyNode) and node.function is function


# Composite operations ------------------------------------------------------------------------


class _OnNodes:
    """The operations of decompositions, applied to nodes: see `_ops.composition`."""

    def number(self, value: float, like: FusionNode) -> FusionNode:
        return nodes.LiteralNode(value, like.dtype)

    def count(self, value: int, like: FusionNode) -> FusionNode:
        return nodes.SizeNode(value, like.dtype)

    def max(self, x: FusionNode, axis: tuple[int, ...], keepdims: bool) -> FusionNode:
        return reduce("max", x, axis, keepdims)

    def identity(self, x: FusionNode) -> FusionNode:
        return x

    reshape, sum = staticmethod(view), staticmethod(_sum)

    def exp(self, x: FusionNode) -> FusionNode:
        return _softmax_of(x) or apply(kmath.exp, x)

    def __getattr__(self, name: str) -> Callable[..., FusionNode]:
        if name not in OPS:  # `inspect` asks for names such as __wrapped__
            raise AttributeError(name)
        kernel: Any = OPS[name].kernel
        return partial(apply, kernel.function)


NODES: Any = _OnNodes()


def _composite(value: Value, *operands: FusionNode) -> FusionNode | None:
    """Return an operation's decomposition, if it is elementwise or reduces rows."""
    x = operands[-1]
    if not (is_floating(x.dtype) and is_floating(value.dtype)) or operands[0].shape != x.shape:
        return None
    axes = value.params.get("axis")
    if axes is not None:
        if is_narrow(value.name, x, axes):
            return None  # a call on arrays is faster
        runs = pattern(x.shape, axes if isinstance(axes, tuple) else (axes,))
        if runs not in (("", "k", "r", "kr", "rk") if value.name == "mean" else ("r", "kr")):
            return None
    operands = tuple([cast(operand, value.dtype) for operand in operands])
    result = value.primitive.decomposition(NODES, *operands, **value.params)
    return None if result is None else view(result, value.shape)


# Products ------------------------------------------------------------------------------------


def vector_product(value: Value) -> tuple[Value, Value, bool] | None:
    """Return the matrix and the vector of a product, and whether the matrix is transposed."""
    ranks = {"matvec": [2, 1], "matmul": [2, 2]}.get(value.name)
    if ranks is None or ranks != [len(x.shape) for x in value.inputs]:
        return None
    if not is_floating(value.dtype):
        return None
    left, right = value.inputs
    if right.shape[1:] in ((), (1,)):
        matrix, vector, transposed = left, right, False
    elif left.shape[0] == 1:
        matrix, vector, transposed = right, left, True
    else:
        return None
    if matrix.name == "transpose":
        transposed ^= matrix.params["perm"][0] == 1
        matrix = matrix.inputs[0]
    return matrix, vector, transposed


def _is_outer(value: Value) -> bool:
    """Return whether a product of matrices is a column times a row."""
    x, y = [operand.shape for operand in value.inputs]
    return is_floating(value.dtype) and len(x) == len(y) == 2 and x[1] == 1


FEW_ELEMENTS = 2048
"""Matrices of at most so many elements: calls of BLAS would take longer than the products."""
MANY_BYTES = 6 * 2**20
"""Matrices of so many bytes are read from memory in each product."""


def _shared_matrices(graph: FuncGraph) -> set[Value]:
    """Return the matrices in several products with vectors, which share one pass over them.

    BLAS takes less time for all other matrices, and for those with short rows.
    """
    values = [value for value in graph.values() if not isinstance(value.aval, list)]
    matrices = [product[0] for product in map(vector_product, values) if product is not None]
    return {
        matrix for matrix, count in Counter(matrices).items() if count > 1 and _is_faster(matrix)
    }


def _is_faster(matrix: Value) -> bool:
    size = prod(matrix.shape)
    bytes_ = size * matrix.dtype.itemsize
    return size <= FEW_ELEMENTS or (bytes_ >= MANY_BYTES and matrix.shape[1] >= 10)


def _product_by_rows(
    value: Value, matrix: FusionNode, vector: FusionNode, transposed: bool
) -> FusionNode:
    """Return a product with a vector, as sums over rows or columns of the matrix."""
    matrix, vector = cast(matrix, value.dtype), cast(vector, value.dtype)
    vector = view(vector, (vector.size, 1) if transposed else (vector.size,))
    total = reduce("sum", apply(kmath.multiply, matrix, vector), (0 if transposed else 1,), False)
    return view(total, value.shape)


MAX_FUSED_NORM = 2**16
"""Norms of more elements are not fused: fused ones take three sums, a call takes one."""


def _norm(value: Value, x: FusionNode) -> FusionNode | None:
    return _composite(value, x) if x.size <= MAX_FUSED_NORM else None


COMPOSITE = ["gelu", "log_softmax", "log_softmax_pull", "logsumexp", "mean", "scalar_power"]
COMPOSITE += ["softmax", "softmax_pull", "standardize", "variance"]

RULES: dict[str, Callable[..., FusionNode | None]] = {
    "broadcast_to": _broadcast,
    "cast": _cast,
    "euclidean_norm": _norm,
    "exp": _exp,
    "sigmoid_slope": partial(_slope, kmath.sigmoid, kmath.sigmoid_slope_of),
    "tanh_slope": partial(_slope, kmath.tanh, kmath.tanh_slope_of),
    "getitem": partial(_getitem, nodes.SliceNode),
    "getitem_adjoint": partial(_getitem, nodes.PadNode),
    "transpose": _transpose,
    **dict.fromkeys(("expand_dims", "identity", "reshape", "squeeze", "stop_gradient"), _view),
    "optimization_barrier": _view,
    **dict.fromkeys(COMPOSITE, _composite),
    **dict.fromkeys(("all", "any", "max", "min", "prod", "sum"), _reduction),
}
