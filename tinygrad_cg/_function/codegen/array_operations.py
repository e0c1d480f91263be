"""Operations on arrays inside compiled loops: functions of matrices, and moves of elements.

A matrix product calls the inner loop of NumPy's `matmul`, which calls BLAS. An eager product runs
the same routine, so the results have the same bits. Solutions of linear equations, inverses and
determinants call LAPACK in the same way. If only these read a transpose or a part of an array, it
is not computed: they get its strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime import promotion, threads
from tinygrad_cg_kernels.runtime.objects import ufuncs

from ..fusion.fuse import Fusion
from ..fusion.lower import FUSED
from ..fusion.nodes import ArrayNode, FusionNode, OpaqueNode, ViewNode, base
from .expressions import number_text
from .loop_segment import LoopSegment, RoundOperation
from .statements import Code, Expression, Name, Statement, Suite

MOVING = {"broadcast_to", "concatenate", "expand_dims", "flip", "getitem", "gather", "reshape"}
MOVING |= {"roll", "squeeze", "stack", "tile", "transpose"}
"""Operations that only move elements, unless one of their indices is computed."""

PRODUCTS = {"matmul", "matvec"}
DECOMPOSITIONS = {"solve": "solve", "inverse": "inv", "determinant": "det"}
DECOMPOSITIONS["log_abs_determinant"] = "slogdet"
"""Functions of matrices that LAPACK computes, and the names of their ufuncs."""

_UFUNCS = ufuncs.__name__
MAX_RUNS = 4096
"""An operation that moves elements does so in at most this many runs."""

_MOVE = '''
@jitable
def NAME(out, x, runs, first, last):
    """Move runs of elements. A run is its target, its start, its length and its step."""
    outlined()
    noalias()
    for r in range(first, last):
        target = section(out, runs[4 * r], runs[4 * r + 2])
        start, step = runs[4 * r + 1], runs[4 * r + 3]
        if step == 1:
            source = section(x, start, target.size)
            for j in range(np.uintp(target.size)):
                target[j] = source[j]
        else:
            for k in range(target.size):
                target[np.uintp(k)] = x[np.uintp(start + k * step)]
    return 0
'''.strip()


class UnfitError(Exception):
    """A compiled loop cannot run an operation on arrays."""


class Operand(NamedTuple):
    """An operand of a function of matrices: an array, and the function that makes a view of it."""

    base: FusionNode
    view: Callable[[np.ndarray], np.ndarray]

    def samples(self) -> tuple[np.ndarray, np.ndarray]:
        """Return an uninitialised array, and the operand made of it."""
        array = np.empty(self.base.shape, self.base.dtype)
        return array, self.view(array)

    @property
    def rank(self) -> int:
        return self.samples()[1].ndim

    def then(self, change: Callable[[np.ndarray], np.ndarray]) -> Operand:
        """Return the operand with a function applied to its view."""
        return Operand(self.base, lambda array: change(self.view(array)))


class ArrayOperations:
    """The operations on arrays in a loop's body that have to run, by their nodes.

    Raises UnfitError if a compiled loop cannot run one of them; with `some`, leaves these out.
    `unread` are moves whose result nothing reads as an array.
    """

    def __init__(self, fusion: Fusion, some: bool = False):
        self._some = some
        opaque = [node for node in fusion.nodes if isinstance(node, OpaqueNode)]
        called = [node for node in opaque if node.name in {*PRODUCTS, *DECOMPOSITIONS}]
        self._moves = {node for node in opaque if node not in called and self._is_move(node)}
        if not some and len(called) + len(self._moves) < len(opaque):
            raise UnfitError
        calls = self._fitting(self._call, called)
        read = {base(node) for node in fusion.outputs}
        others = set(opaque) - self._moves - {call.node for call in calls}
        for node in fusion.nodes:
            if not isinstance(node, (OpaqueNode, ViewNode)) or node in others:
                read.update(map(base, node.operands))
        read.update(operand.base for call in calls for operand in call.operands)
        moves = self._fitting(self._move, [x for x in opaque if x in self._moves & read])
        self.unread = self._moves - read
        self.by_node: dict[FusionNode, RoundOperation] = {call.node: call for call in calls}
        self.by_node.update((move.node, move) for move in moves)
        self.work = sum(operation.work for operation in (*calls, *moves))

    def _fitting(self, make: Callable[[OpaqueNode], Any], nodes: list[OpaqueNode]) -> list[Any]:
        """Return the operations of nodes; with `some`, of those that fit."""
        operations = []
        for node in nodes:
            try:
                operations.append(make(node))
            except UnfitError:
                if not self._some:
                    raise
        return operations

    def _is_move(self, node: OpaqueNode) -> bool:
        name, operands = node.name, node.operands
        if name in ("gather", "gather_adjoint"):
            index = _constant(operands[1])
            if index is None:
                return False
            operands = operands[:1]
            if name == "gather_adjoint":  # no index may occur twice: nothing is added up
                counts = node.run(np.ones(node.operands[0].shape, np.int64), index)
                if counts.max(initial=0) > 1:
                    return False
        elif name == "getitem_adjoint":
            if any(isinstance(part, np.ndarray) for part in node.params["key"]):
                return False
        elif name not in MOVING and name not in ("expand", "pad"):
            return False
        arrays = (node, *operands)
        is_one_dtype = node.dtype in FUSED and all(x.dtype == node.dtype for x in arrays)
        most = max(x.size for x in arrays) if self._some else threads.MIN_BLOCKED - 1
        return is_one_dtype and all(0 < x.size <= most for x in arrays)

    def _call(self, node: OpaqueNode) -> MatrixCall:
        kind = MatrixProduct if node.name in PRODUCTS else Decomposition
        return kind(node, list(map(self._operand, node.operands)))

    def _operand(self, node: FusionNode) -> Operand:
        """Return an operand. If it is a view or a transpose, it is a view of the original array."""
        array_node = base(node)
        own = Operand(array_node, lambda array: array.reshape(node.shape))
        if isinstance(node, ViewNode):
            change = own.view
        elif isinstance(node, OpaqueNode) and node in self._moves and len(node.operands) == 1:
            change = node.run
        else:
            return own
        inner = self._operand(node.operands[0])
        changed = inner.then(change)
        return changed if np.may_share_memory(*changed.samples()) else own

    def _move(self, node: OpaqueNode) -> Move:
        """Return a move of elements, which is found by moving their positions now."""
        sources: dict[FusionNode, int] = {}  # the positions of first elements, counted from 1

        def positions(source: FusionNode) -> np.ndarray:
            if isinstance(source, ViewNode):
                return positions(source.operands[0]).reshape(source.shape)
            if isinstance(source, OpaqueNode) and source in self._moves:
                operands = [_constant(other) for other in source.operands[1:]]
                if source.name not in ("gather", "gather_adjoint"):
                    operands = map(positions, source.operands[1:])
                return np.asarray(source.run(positions(source.operands[0]), *operands))
            start = sources.setdefault(source, 1 + sum(other.size for other in sources))
            return np.arange(start, start + source.size).reshape(source.shape)

        try:
            return Move(node, positions(node).reshape(-1), sources)
        except IndexError:  # the operation raises it when it runs
            raise UnfitError from None


class MatrixCall:
    """A function of stacks of matrices, computed by the inner loop of a NumPy ufunc.

    `ranks` has the rank of the core (matrix, vector or number) of each operand and result. If the
    ufunc has two results, the node is the second. A `checked` ufunc returns NaN for a singular
    matrix.
    """

    checked = False

    def __init__(
        self, node: FusionNode, ufunc: Any, operands: Sequence[Operand], ranks: Sequence[int]
    ):
        loop = ufuncs.inner_loop(ufunc, node.dtype) if node.dtype in FUSED else None
        if loop is None or any(operand.base.dtype != node.dtype for operand in operands):
            raise UnfitError
        self.node, self.operands = node, operands
        self._loop, self._ranks, self._ufunc = loop, ranks, ufunc
        _, sizes, _ = self._numbers()
        self._sizes, self.work = len(sizes), prod(sizes)

    def words(self) -> list[int]:
        """Return the arguments of NumPy's loop.

        These are the loop's address and data, the byte offset of each operand in its array, the
        number of matrices, their sizes, and the strides.
        """
        starts, sizes, strides = self._numbers()
        return [*self._loop, *starts, *sizes, *strides]

    def _numbers(self) -> tuple[list[int], list[int], list[int]]:
        """Return the offsets, sizes and strides among the arguments."""
        samples = [operand.samples() for operand in self.operands]
        operands = self._prepared(*[operand for _, operand in samples])
        if not all(operand.size for operand in operands):
            raise UnfitError
        ranks = self._ranks[: len(operands)]
        pairs = list(zip(operands, ranks, strict=True))
        batch = promotion.broadcast_shapes(*[x.shape[: x.ndim - rank] for x, rank in pairs])
        arrays = [np.broadcast_to(x, batch + x.shape[x.ndim - rank :]) for x, rank in pairs]
        addresses = zip(arrays, samples, strict=True)
        starts = [_address(moved) - _address(array) for moved, (array, _) in addresses]
        sizes, shapes = self._shapes(*[array.shape[len(batch) :] for array in arrays])
        arrays += [np.empty(batch + shape, self.node.dtype) for shape in shapes]
        count, strides = _batches(batch, arrays)
        cores = [step for array in arrays for step in array.strides[len(batch) :]]
        return starts, [count, *sizes], [*strides, *cores]

    def _prepared(self, *operands: np.ndarray) -> Sequence[np.ndarray]:
        """Return the operands of the ufunc."""
        return operands

    def _shapes(self, *shapes: tuple[int, ...]) -> tuple[Sequence[int], Sequence[tuple[int, ...]]]:
        """Return the core sizes, and the shapes of results, for operands of these core shapes."""
        results = [shapes[-1][:rank] for rank in self._ranks[len(shapes) :]]
        return shapes[-1], results

    def write(self, segment: LoopSegment) -> Code:
        """Return the call of NumPy's loop; a table holds the addresses of its arrays."""
        segment.work["    addresses = np.empty(4, np.int64)"] = None
        words = [segment.sizes.add(word) for word in self.words()]
        segment.ufuncs[words[0]] = self._ufunc, self.node.dtype
        arrays: list[Any] = [segment.array(operand.base) for operand in self.operands]
        if len(self._ranks) == len(arrays) + 2:
            name = Name(f"unread_{words[0]}")
            segment.work[f"    {name} = np.empty({self.work}, np.float64)"] = None
            arrays.append(name)
        out = segment.array(self.node)
        table = f"section(sizes, {words[0]}, {len(words)})"
        operands = [segment.once(self._text(len(arrays) + 1), "call"), *arrays, out, table]
        slots = ", ".join(["{}"] * len(arrays))
        call = Expression(f"{{}}({slots}, {{}}, addresses, {{}})", *operands, modules=(_UFUNCS,))
        code: Code = [Statement(None, call)]
        count = words[2 + len(self.operands)]
        return [*code, *self._check(segment, out, count)] if self.checked else code

    def _text(self, count: int) -> str:
        """Return the text of a function that fills the table and calls NumPy's loop."""
        operands = len(self.operands)
        names = [f"x{k}" for k in range(count)]
        lines = [f"def NAME({', '.join(names)}, addresses, words):", "    outlined()"]
        for k, name in enumerate(names):
            offset = f" + words[{2 + k}]" if k < operands else ""
            lines.append(f"    addresses[{k}] = address_of({name}){offset}")
        first = 2 + operands
        numbers = [f"address_of(words) + {8 * k}" for k in (first, first + self._sizes)]
        arguments = ", ".join(["words[0]", "address_of(addresses)", *numbers, "words[1]"])
        return "\n".join(["@jitable", *lines, f"    ufuncs.call_loop({arguments})", "    return 0"])

    def _check(self, segment: LoopSegment, out: Name, count: int) -> Code:
        """Return statements that end the loop if a matrix was singular."""
        size = segment.sizes.number(prod(self.node.shape[-self._ranks[-1] :]))
        first = Expression("{}[matrix * {}]", out, size)
        failed = Statement(Expression("plan[0]"), "-1")
        test = Suite(Expression("if {0} != {0}", first), [failed])
        ended = Suite(Expression("if plan[0] < 0"), [Statement(None, "break")])
        return [Suite(Expression(f"for matrix in range(sizes[{count}])"), [test]), ended]


class MatrixProduct(MatrixCall):
    """A product of matrices, or of a matrix and a vector."""

    def __init__(self, node: OpaqueNode, operands: Sequence[Operand]):
        x, y = operands
        if node.name == "matvec" and x.rank == 2 <= y.rank != 1:  # as the eager operation does
            x, y = y, x.then(np.transpose)
        elif node.name == "matvec":
            y = y.then(lambda array: array[..., None])
        super().__init__(node, np.matmul, (x, y), (2, 2, 2))

    def _prepared(self, x: np.ndarray, y: np.ndarray) -> Sequence[np.ndarray]:
        if y.ndim == 2 < x.ndim and x.flags.c_contiguous:  # one product instead of many
            x = x.reshape(-1, x.shape[-1])
        return x, y

    def _shapes(self, x: tuple[int, ...], y: tuple[int, ...]) -> Any:
        return (*x, y[1]), [(x[0], y[1])]


class Decomposition(MatrixCall):
    """A solution of linear equations, an inverse or a determinant, in float64."""

    def __init__(self, node: OpaqueNode, operands: Sequence[Operand]):
        module = getattr(np.linalg, "_umath_linalg", None)
        ufunc = getattr(module, DECOMPOSITIONS[node.name], None)
        if ufunc is None or node.dtype != np.float64 or min(x.rank for x in operands) < 2:
            raise UnfitError
        self.checked = node.name in ("solve", "inverse")
        result = (2,) if self.checked else (0,) * ufunc.nout
        super().__init__(node, ufunc, operands, (*[2] * len(operands), *result))

    def _shapes(self, *shapes: tuple[int, ...]) -> Any:
        if not self.checked:
            return shapes[0][:1], [()] * (len(self._ranks) - 1)
        return shapes[-1][: len(shapes)], [shapes[-1]]


class Move:
    """Elements of arrays in another order, and zeros."""

    def __init__(self, node: FusionNode, positions: np.ndarray, sources: dict[FusionNode, int]):
        """Take the position of each element among those of all `sources`; 0 stands for a zero."""
        self.node, self.sources, self.work = node, list(sources), node.size
        starts = np.array([0, *sources.values()])
        owners = np.searchsorted(starts, positions, "right") - 1
        runs = _runs(positions, owners)
        self._filled = bool((owners == 0).any())
        tables = []
        for k, start in enumerate(starts[1:], 1):
            own = runs[owners[runs[:, 0]] == k]
            tables.append(own - [0, start, 0, 0])
        self._counts = [len(table) for table in tables]
        table = np.concatenate(tables).reshape(-1)
        if len(table) > 4 * MAX_RUNS:
            raise UnfitError
        self._table = ArrayNode(table.shape, table.dtype, table)

    def write(self, segment: LoopSegment) -> Code:
        """Return the calls that move the runs of each source."""
        out, table = segment.array(self.node), segment.array(self._table)
        code: Code = []
        if self._filled:
            zero = Statement(Expression("{}[j]", out), number_text(0, self.node.dtype))
            size = segment.sizes.number(self.node.size)
            code.append(Suite(Expression("for j in range(np.uintp({}))", size), [zero]))
        first = 0
        for source, count in zip(self.sources, self._counts, strict=True):
            ends = [segment.sizes.number(end) for end in (first, first + count)]
            arguments = [out, segment.array(source), table, *ends]
            name = segment.once(_MOVE, "move")
            code.append(
                Statement(None, Expression(f"{name}({{}}, {{}}, {{}}, {{}}, {{}})", *arguments))
            )
            first += count
        return code


def _constant(node: FusionNode) -> np.ndarray | None:
    array_node = base(node)
    constant = array_node.constant if isinstance(array_node, ArrayNode) else None
    return None if constant is None else constant.reshape(node.shape)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _batches(batch: tuple[int, ...], arrays: Sequence[np.ndarray]) -> tuple[int, list[int]]:
    """Return the number of matrices in a stack, and each array's step from one to the next."""
    axes = [axis for axis, size in enumerate(batch) if size > 1]
    if not axes:
        return 1, [0] * len(arrays)
    for array in arrays:
        for outer, inner in pairwise(axes):
            if array.strides[outer] != array.strides[inner] * array.shape[inner]:
                raise UnfitError
    return prod(batch), [array.strides[axes[-1]] for array in arrays]


def _runs(positions: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return runs of elements with one step in one array.

    A run is its target, its start, its length and its step.
    """
    steps, last = np.diff(positions), len(positions) - 1
    breaks = (steps[1:] != steps[:-1]) | (owners[2:] != owners[1:-1])
    ends = np.flatnonzero(breaks) + 1
    runs, start = [], 0
    while start <= last:
        end = start
        if start < last and owners[start + 1] == owners[start]:
            k = np.searchsorted(ends, start, "right")
            end = int(ends[k]) if k < len(ends) else last
        step = int(steps[start]) if end > start else 1
        runs.append((start, int(positions[start]), end - start + 1, step))
        start = end + 1
    return np.array(runs, np.int64)
