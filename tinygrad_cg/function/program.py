"""Graphs as compiled programs: generated kernels, and operations on arrays between them.

A program is cut into segments by the operations that run on whole arrays. A small segment is one
compiled function. In a large one each kernel is split over threads by its block function's address,
whatever the number of threads, so that results have the same bits on any.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy import empty

from tinygrad_cg_kernels.runtime import generated, memory, threads

from .._core.primitive import runner
from .fuse import Fusion, folding
from .generate import Block
from .graph import Graph, Part, Value
from .lookup import positions
from .lower import Lowering
from .nodes import Node, behind
from .segment import Segment, cut_rows, grouped
from .steps import Steps


def build(graph: Graph) -> Program:
    """A program that computes the graph's outputs from arrays of its inputs' shapes and dtypes."""
    return Program(Fusion(Lowering(graph)), len(graph.inputs))


LARGEST = 2**20
"""Elements of a constant that is computed beforehand."""


class Program:
    """A compiled graph: called with arrays, it returns fresh ones. `sources` are its texts: the
    call itself, then its segments."""

    def __init__(self, fusion: Fusion, inputs: int):
        self.sources: list[str] = []
        self.dispatchers: list[Any] = []
        self.kernels = 0
        self._fusion = fusion
        self._names = _names(fusion, inputs)
        self._shapes: dict[Node, tuple[int, ...]] = {}
        for node in fusion.outputs:
            if behind(node).kind not in ("array", "literal", "host"):
                self._shapes.setdefault(behind(node), node.shape)
        self._constants: set[Node] = set()  # operations that have been run already
        self._fed = {
            behind(one) for node in fusion.nodes if node.kind == "host" for one in node.operands
        }
        self._scope: dict[str, Any] = {"empty": empty, "large": memory.empty}
        self._scope |= {"plain": _plain, "array": np.array}
        self._steps = Steps()
        self._plan()
        names = ", ".join([f"x{place}" for place in range(inputs)])
        lines = ["def call(arrays):", f"    {names}{',' * bool(names)} = arrays"]
        lines = lines if names else lines[:1]
        results = [self._result(place) for place in range(len(fusion.outputs))]
        body, self.scratch = self._steps.finished(results)
        if self.scratch is not None:
            self._scope |= {"take": self.scratch.take, "give": self.scratch.give}
        text = "\n".join([*lines, *[f"    {line}" for line in body], ""])
        self.sources.insert(0, text)
        exec(compile(text, "<call of a compiled program>", "exec"), self._scope)
        self.call: Callable[[Sequence[np.ndarray]], list[np.ndarray]] = self._scope["call"]

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self.call(arrays)

    # planning

    def _plan(self) -> None:
        fusion = self._fusion
        hosts: dict[int, list[Node]] = {}
        for node in fusion.nodes:
            if node.kind == "host":
                hosts.setdefault(fusion.available[node], []).append(node)
        cuts = sorted(hosts)
        for place, segments in enumerate(self._segments(cuts)):
            if place:
                for node in hosts[cuts[place - 1]]:
                    self._host(node)
            for segment in segments:
                self.sources.append(segment.source)
                self._run(segment, len(self.sources) - 1)

    def _segments(self, cuts: list[int]) -> list[list[Segment]]:
        """The segments before each cut, and after the last one.

        Texts are made from the last to the first, which must know what totals are needed.
        """
        fusion = self._fusion
        blocks: list[list[Block]] = [[] for _ in range(len(cuts) + 1)]
        finals: list[list[Node]] = [[] for _ in range(len(cuts) + 1)]
        for kernel in sorted(fusion.kernels.values(), key=lambda one: one.stage):
            blocks[bisect_right(cuts, kernel.stage)].append(Block(fusion, kernel))
        for node in fusion.nodes:
            if (
                node in fusion.stored
                and node.size == 1
                and node.kind in ("apply", "slice", "lookup")
            ):
                finals[bisect_left(cuts, fusion.available[node])].append(node)
        wanted = {node for node in fusion.stored if _is_total(node)}
        found: list[list[Segment]] = []
        for some, last in zip(reversed(blocks), reversed(finals), strict=True):
            segments: list[Segment] = []
            for group in reversed(grouped(some)):
                segment = Segment(group, [] if segments else last)
                if group or segment.finals:
                    self._write(segment, wanted)
                    segments.insert(0, segment)
            found.insert(0, segments)
        return found

    def _write(self, segment: Segment, wanted: set[Node]) -> None:
        """Make a segment's text; `wanted` are the totals to store, and get those that it reads."""
        if not segment.large:
            roots = [root for block in segment.blocks for root in block.kernel.roots]
            segment.finals += [root for root in roots if root in wanted and _is_total(root)]
        self.kernels += len(segment.blocks)
        segment.text()
        wanted.update(segment.arrays)
        for nodes in segment.tables:
            wanted.update(nodes)

    def _bind(self, name: str, value: Any) -> str:
        self._scope[name] = value
        return name

    def _name(self, node: Node) -> str:
        """The name of a value's array in the call; constants are global to it."""
        name = self._names[node]
        if name not in self._scope:
            if node.kind == "array" and not isinstance(node.detail, int):
                self._scope[name] = _plain(node.detail)
            elif node.kind == "literal":
                self._scope[name] = np.array(node.detail, node.dtype)
        return name

    def _shape(self, node: Node) -> tuple[int, ...]:
        return self._shapes.get(node, node.shape)

    # steps, each some lines of the call

    def _host(self, node: Node) -> None:
        operands = []
        for one in node.operands:
            made = behind(one)
            name = self._name(made)
            same = made.dtype == object or self._shape(made) == one.shape
            operands.append(name if same else f"{name}.reshape({one.shape})")
        name = self._name(node)
        run = self._bind(f"run_{name}", _runner(node))
        text = f"{run}({', '.join(operands)})"
        if self._is_constant(node):
            self._constants.add(node)
            self._scope[name] = _plain(eval(text, self._scope))
            return
        if node not in self._fed and _is_strided(node):
            text = f"plain({text})"
        made = [self._name(behind(one)) for one in node.operands]
        self._steps.operation(
            name, f"{name} = {text}", made, not _is_fresh(node), _is_foreign(node)
        )

    def _is_constant(self, node: Node) -> bool:
        """Whether an operation's result is the same in all calls, and worth keeping."""
        value, operands = node.detail, [behind(one) for one in node.operands]
        if not isinstance(value, Value) or value.primitive is None or node.dtype == object:
            return False
        if _is_foreign(node) or node.size > LARGEST or not operands:
            return False
        return all(
            one in self._constants or (one.kind == "array" and not isinstance(one.detail, int))
            for one in operands
        )

    def _run(self, segment: Segment, place: int) -> None:
        if not segment.large:
            roots = [root for block in segment.blocks for root in block.kernel.roots]
            written = segment.finals + [root for root in roots if root in self._fusion.stored]
            self._small(segment, place, list(dict.fromkeys(written)))
            return
        for k in range(len(segment.blocks)):
            self._split(segment, place, k)
        if segment.finals:
            self._small(segment, place, segment.finals)

    def _fresh(self, nodes: list[Node]) -> None:
        for node in nodes:
            name, shape = self._name(node), self._shape(node)
            texts = self._bind(f"shape_{name}", shape), self._bind(f"type_{name}", node.dtype)
            maker = "large" if prod(shape) * node.dtype.itemsize >= memory.LARGE else "empty"
            self._steps.empty(name, shape, node.dtype, f"{name} = {maker}({', '.join(texts)})")

    def _small(self, segment: Segment, place: int, written: list[Node]) -> None:
        """One compiled function, given the arrays it reads and new ones that it writes."""
        nodes = list(segment.arrays)
        kinds = [(node.dtype, len(self._shape(node))) for node in nodes]
        enter, dispatcher = generated.function(segment.source, "run", kinds)
        self.dispatchers.append(dispatcher)
        run = self._bind(f"segment_{place}", enter)
        sizes = self._bind(f"sizes_{place}", np.array(segment.sizes.values, np.int64))
        names = [self._name(node) for node in nodes]
        plain = [
            name if node in written else f"plain({name})"
            for name, node in zip(names, nodes, strict=True)
        ]
        self._fresh([node for node in written if node in segment.arrays])
        self._steps.add(
            f"if {run}({', '.join([*names, sizes])}) is False:",
            f"    {run}({', '.join([*plain, sizes])})",
        )

    def _split(self, segment: Segment, place: int, k: int) -> None:
        """A kernel's blocks on all threads, then the blocks' totals in order."""
        block, nodes = segment.blocks[k], segment.tables[k]
        fresh = [node for node in block.kernel.roots if node in self._fusion.stored]
        partial = [*block.totals, *block.columns]
        run = _splitter(block, segment, place, k, nodes, self._shapes)
        name = self._bind(f"split_{place}_{k}", run)
        results = ", ".join(self._name(node) for node in partial)
        given = [self._name(node) for node in nodes if node not in partial]
        call = f"{name}({', '.join(given)})"
        fresh = [node for node in fresh if node not in partial and node in nodes]
        self._fresh(fresh)
        self._steps.add(f"{results}, = {call}" if results else call)

    # outputs

    def _result(self, place: int) -> str:
        """An output's array, of its own."""
        outputs = self._fusion.outputs
        made, shape = behind(outputs[place]), outputs[place].shape
        name = self._name(made)
        if (
            made not in self._constants
            and _is_fresh(made)
            and all(behind(one) is not made for one in outputs[:place])
        ):
            return name if self._shape(made) == shape else f"{name}.reshape({shape})"
        return f"array({name}, order='C').reshape({shape})"


def _names(fusion: Fusion, inputs: int) -> dict[Node, str]:
    names = {}
    for place, node in enumerate(fusion.nodes):
        is_input = node.kind == "array" and isinstance(node.detail, int)
        names[node] = f"x{node.detail}" if is_input else f"v{place}"
    return names


def _splitter(block: Block, segment: Segment, place: int, k: int, nodes: list[Node], shapes: dict):
    """A function of a kernel's arrays that runs it on all threads and returns its totals."""
    address, owner = generated.block(segment.source, segment.threads[k])
    rows, columns, stride = cut_rows(block)
    blocks = -(-rows // stride)
    head = segment.heads[k]
    partial: dict[Node, tuple[int, ...]] = dict.fromkeys(block.totals, (blocks,))
    partial.update((node, (blocks, columns)) for node in block.columns)
    order = [*block.totals, *block.columns]
    given = [node for node in nodes if node not in partial]

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        kept = {node: _plain(array) for node, array in zip(given, arrays, strict=True)}
        kept.update((node, empty(shape, node.dtype)) for node, shape in partial.items())
        table = [*head, *[kept[node].__array_interface__["data"][0] for node in nodes]]
        words = np.array(table, np.int64)
        start = words.__array_interface__["data"][0]
        threads.carry_out(threads.Task(address, start, 0, rows, stride, max(columns, 1)))
        return [_in_order(node, kept[node], shapes.get(node, node.shape)) for node in order]

    run.owner = owner  # pyright: ignore[reportFunctionMemberAccess]
    return run


def _plain(array: np.ndarray) -> np.ndarray:
    """An array as kernels take it: aligned, and in row-major order."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.require(array, None, ("C", "A"))


def _is_strided(node: Node) -> bool:
    """Whether an operation gives a view that kernels cannot read, as far as shapes tell."""
    value = node.detail
    if not isinstance(value, Value) or value.primitive is None or not value.primitive.aliases:
        return False
    result = _runner(node)(*[empty(one.shape, one.dtype) for one in node.operands])
    return not result.flags.c_contiguous


def _is_total(node: Node) -> bool:
    return node.kind == "reduce" and folding(node) == "total"


def _is_fresh(node: Node) -> bool:
    """Whether a value's array is made in each call, and nothing else refers to it."""
    if node.kind == "host":
        value = node.detail
        return (
            isinstance(value, Value) and value.primitive is not None and not value.primitive.aliases
        )
    return node.kind not in ("array", "literal")


def _is_foreign(node: Node) -> bool:
    """Whether an operation may do more than compute: keep its operands, say."""
    primitive = getattr(node.detail, "primitive", None)
    return primitive is not None and primitive.kind in ("impure", "user")


def _in_order(node: Node, partial: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Blocks' partial results as one, the same on any number of threads."""
    fold = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
    fold |= {"any": np.logical_or, "all": np.logical_and}
    if partial.ndim > 1:
        return fold[node.detail].reduce(partial, axis=0, dtype=node.dtype).reshape(shape)
    fold[node.detail].accumulate(partial, out=partial)
    return np.array(partial[-1]).reshape(shape)


def _runner(node: Node) -> Callable[..., Any]:
    """An operation on arrays."""
    value = node.detail
    if isinstance(value, Part):
        index = value.index
        return lambda whole: whole[index]
    if isinstance(value, Value):
        assert value.primitive is not None
        return runner(value.primitive, value.params)
    if value[0] == "positions":
        return lambda indices: positions(indices, *value[1:])
    if value[0] == "expand":
        return lambda x: np.array(np.broadcast_to(x, node.shape))
    return lambda x: _padded(x, node.size, value[1])


def _padded(x: np.ndarray, size: int, start: int) -> np.ndarray:
    out = np.zeros(size, x.dtype)
    out[start : start + x.size] = x.reshape(-1)
    return out
