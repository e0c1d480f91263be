"""Which values share a kernel, and when each kernel runs.

A kernel goes once over a domain of rows and columns (flat data: one row, cut in blocks). Seen from
a domain, a value has one number per element, per row, per column, or is a scalar. Programs run in
stages: in each, scalars first, then operations on whole arrays, then kernels. What a kernel folds
to a scalar or to columns is there for the next stage; what it folds to rows, for its own next pass
over the row.

Cheap values are computed again wherever they are needed rather than stored, so that a kernel reads
and writes little: a pass over memory costs as much as ten additions.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, NamedTuple

from tinygrad_cg_kernels import elementary as kmath

from .lower import Lowering
from .nodes import Node, behind, pattern

LIMIT = 100
"""Nodes in a kernel, dear ones counting more: beyond, registers spill and compiling takes long."""
DEAR = 5
"""How many of them a function counts as that is a polynomial, or a reduction."""
ARRAY = 4
"""How many of them an array counts as: compiling takes as the square of their number."""
CONE = 16
"""Nodes that are computed again at most, for one value that need not be stored for it."""
STREAM = 4
"""How many of them the reading of one more array counts as."""
PADS = 6
"""Paddings that are fused in a program: each may cut a kernel's range in two more."""

_NAMES = """
    absolute add clip divide equal greater greater_equal isfinite isinf isnan less less_equal
    logical_and logical_not logical_or logical_xor maximum minimum multiply negative not_equal relu
    sign square subtract where
"""
CHEAP: set[Any] = {"copy", "cast", *[getattr(kmath, name) for name in _NAMES.split()]}


class Place(NamedTuple):
    """From a domain's index to that of a value: what it has a number for, and an offset."""

    per: str
    """"element", "row", "column", "scalar", or "whole": an array that is read anywhere."""
    shift: int = 0


ELEMENT, ROW, COLUMN, SCALAR, WHOLE = (
    Place(per) for per in ("element", "row", "column", "scalar", "whole")
)


class Domain(NamedTuple):
    """What a kernel goes over; without columns it is flat."""

    size: int
    columns: int = 0


class Home(NamedTuple):
    """Where a value is computed: for a reduction, `place` is that of its operand."""

    stage: int
    domain: Domain
    place: Place


class Kernel:
    """A domain's values of one stage: `roots` are reductions, and values that are stored."""

    def __init__(self, stage: int, domain: Domain):
        self.stage, self.domain = stage, domain
        self.roots: list[Node] = []
        self.read: set[Node] = set()  # values of other kernels that are not computed again


def relation(shape: tuple[int, ...], result: tuple[int, ...]) -> tuple[str, int]:
    """How an operand repeats to a result: "same", "one", "row", "column" or "mixed"; columns."""
    padded = (1,) * (len(result) - len(shape)) + shape
    pairs = [(own, size) for own, size in zip(padded, result, strict=True) if size != 1]
    kept = [own == size for own, size in pairs]
    if all(kept):
        return "same", 0
    if not any(kept):
        return "one", 0
    cut = kept.index(not kept[0])
    if kept[cut:].count(kept[0]):
        return "mixed", 0
    columns = prod(size for _, size in pairs[cut:])
    return ("row" if kept[0] else "column"), columns


def folding(node: Node) -> str:
    """What a reduction leaves: "total", "row" or "column"."""
    shape = pattern(node.operands[0].shape, node.axes)
    return {"r": "total", "kr": "row", "rk": "column"}[shape]


def ordered(outputs: Iterable[Node]) -> list[Node]:
    """The nodes that outputs depend on, operands first; without recursion."""
    order: dict[Node, None] = {}
    stack = [(node, False) for node in reversed(list(outputs))]
    while stack:
        node, ready = stack.pop()
        if node in order:
            continue
        if ready:
            order[node] = None
        else:
            stack.append((node, True))
            stack.extend((one, False) for one in reversed(node.operands))
    return list(order)


class Domains:
    """The domain of each fused node: those that are alike element by element share one."""

    def __init__(self, nodes: list[Node]):
        self._parent: dict[Node, Node] = {}
        self._columns: dict[Node, int] = {}
        for node in nodes:
            if node.kind in ("apply", "reduce", "slice", "pad", "lookup", "turn"):
                self._add(node)

    def __getitem__(self, node: Node) -> Domain:
        size = node.operands[0].size if node.kind == "reduce" else node.size
        return Domain(size, self._columns[self._root(node)])

    def _root(self, node: Node) -> Node:
        while self._parent[node] is not node:
            self._parent[node] = node = self._parent[self._parent[node]]
        return node

    def _add(self, node: Node) -> None:
        self._parent[node] = node
        self._columns[node] = 0
        if node.kind == "reduce":
            if folding(node) != "total":
                shape, axes = node.operands[0].shape, node.axes
                inner = [n for i, n in enumerate(shape) if (i in axes) == (folding(node) == "row")]
                self._columns[node] = prod(inner)
            self._join(node, behind(node.operands[0]))
        elif node.kind == "turn":
            self._columns[node] = node.detail[1]
        elif node.kind == "lookup":
            columns = prod(node.operands[0].shape[1:])
            self._columns[node] = columns if columns > 1 else 0
        elif node.kind == "apply":
            found = [relation(one.shape, node.shape) for one in node.operands]
            cuts = [columns for name, columns in found if columns]
            self._columns[node] = cuts[0] if cuts else 0
            for (name, _), one in zip(found, node.operands, strict=True):
                if name == "same":
                    self._join(node, behind(one))

    def _join(self, node: Node, other: Node) -> None:
        if other not in self._parent or other.kind not in ("apply", "lookup", "turn"):
            return
        a, b = self._root(node), self._root(other)
        columns, others = self._columns[a], self._columns[b]
        if a is not b and (not columns or not others or columns == others):
            self._parent[a] = b
            self._columns[b] = columns or others


class Fusion:
    """A lowered program cut into kernels."""

    def __init__(self, lowered: Lowering):
        self.outputs = lowered.outputs
        self._wanted = [*lowered.outputs, *lowered.checks]
        self.nodes = ordered(self._wanted)
        if sum(node.kind == "pad" for node in self.nodes) > PADS:
            self._keep_pads()
        self.domains = Domains(self.nodes)
        self._expand_mixed()
        self.homes: dict[Node, Home] = {}
        self.available: dict[Node, int] = {}
        """By node: the first stage whose kernels can read it."""
        self.kernels: dict[tuple[int, Domain], Kernel] = {}
        self._count: dict[tuple[int, Domain], int] = {}
        self._met: set[tuple[tuple[int, Domain], Node]] = set()  # what a kernel may read
        for node in self.nodes:
            self._settle(node)
        self.stored: set[Node] = set()
        self._demand()

    # preparing

    def _keep_pads(self) -> None:
        for node in self.nodes:
            if node.kind == "pad":
                node.kind, node.detail = "host", ("pad", node.detail)

    def _expand_mixed(self) -> None:
        """Have operands that repeat in any other way repeated by an operation of their own."""
        fresh = []
        for node in self.nodes:
            if node.kind == "apply" and node.size > 1:
                columns = self.domains[node].columns
                operands = []
                for one in node.operands:
                    name, cut = relation(one.shape, node.shape)
                    if name == "mixed" or (cut and cut != columns):
                        one = Node("host", node.shape, one.dtype, (one,), ("expand",))
                        fresh.append(one)
                    operands.append(one)
                node.operands = tuple(operands)
        if fresh:
            self.nodes = ordered(self._wanted)

    # stages

    def _settle(self, node: Node) -> None:
        if node.kind in ("array", "literal"):
            self.available[node] = 0
        elif node.kind == "view":
            self.available[node] = self.available[behind(node)]
        elif node.kind == "host":
            self.available[node] = max([self.available[one] for one in node.operands], default=0)
        elif node.size == 1 and node.kind != "reduce":
            ready = [self.available[one] + (behind(one).kind == "host") for one in node.operands]
            self.available[node] = max(ready)
        else:
            self._settle_fused(node)

    def _settle_fused(self, node: Node) -> None:
        home = self._row_home(node)
        if home is None:
            domain = self.domains[node]
            home = Home(self._stage(node, domain, ELEMENT), domain, ELEMENT)
        stage, domain, place = home
        while self._count.get((stage, domain), 0) >= LIMIT:
            stage += 1
        key = (stage, domain)
        weight = 1 if is_cheap(node) else DEAR
        for one in map(behind, node.operands):
            there = one in self.homes and self.homes[one][:2] == key
            if not (there or one.size == 1 or (key, one) in self._met):
                self._met.add((key, one))
                weight += ARRAY
        self._count[key] = self._count.get(key, 0) + weight
        self.homes[node] = Home(stage, domain, place)
        self.available[node] = stage + 1
        if key not in self.kernels:
            self.kernels[key] = Kernel(stage, domain)

    def _row_home(self, node: Node) -> Home | None:
        """The kernel whose rows a value per row, or a total of such values, belongs to."""
        if node.kind == "reduce" and folding(node) != "total":
            return None
        if node.kind not in ("apply", "reduce"):
            return None
        for operand in node.operands:
            made = behind(operand)
            home = self.homes.get(made)
            if home is None or operand.size * max(home.domain.columns, 1) != home.domain.size:
                continue
            if not home.domain.columns or not self._per_row(made, home):
                continue
            if node.kind == "apply":
                names = [relation(one.shape, node.shape)[0] for one in node.operands]
                if any(name not in ("same", "one") for name in names) or operand.size != node.size:
                    continue
            stage = self._stage(node, home.domain, ROW)
            if stage == home.stage:
                return Home(stage, home.domain, ROW)
        return None

    def _per_row(self, node: Node, home: Home) -> bool:
        return home.place == ROW or (node.kind == "reduce" and folding(node) == "row")

    def _stage(self, node: Node, domain: Domain, place: Place) -> int:
        """The first stage in which a node can be computed in a domain."""
        found = [
            self._reach(one, inner, domain)
            for one, inner in self.operand_places(node, place, domain)
        ]
        return max(found, default=0)

    def operand_places(
        self, node: Node, place: Place, domain: Domain
    ) -> list[tuple[Node, Place | None]]:
        """The operands of a node, views undone, and where they stand; None where that is no
        place of the domain."""
        if node.kind in ("slice", "pad"):
            made, offset = behind(node.operands[0]), node.detail
            if made.size == 1:
                return [(made, SCALAR)]
            offset = offset if node.kind == "slice" else -offset
            return [(made, Place(place.per, place.shift + offset))]
        if node.kind == "reduce":
            x, *indices = map(behind, node.operands)
            return [(x, place), *[(one, ROW) for one in indices]]
        if node.kind == "turn":
            return [(behind(node.operands[0]), WHOLE)]
        if node.kind == "lookup":
            table, positions = node.operands
            rows: Place | None = place
            if (columns := prod(table.shape[1:])) > 1:
                rows = ROW if place == ELEMENT and columns == domain.columns else None
            return [(behind(table), WHOLE), (behind(positions), rows)]
        result: list[tuple[Node, Place | None]] = []
        for one in node.operands:
            name, columns = relation(one.shape, node.shape)
            inner: Place | None = SCALAR
            if one.size == 1:
                pass
            elif name == "same":
                inner = place
            elif place == ELEMENT and columns == domain.columns:
                inner = ROW if name == "row" else COLUMN
            else:
                inner = None
            result.append((behind(one), inner))
        return result

    def is_local(self, node: Node, place: Place, stage: int, domain: Domain) -> bool:
        """Whether a kernel computes a value, and does so before it is needed."""
        home = self.homes.get(node)
        if home is None or (home.stage, home.domain) != (stage, domain):
            return False
        if node.kind == "reduce":
            return folding(node) == "row" and place == ROW
        return home.place == place

    def _reach(self, node: Node, place: Place | None, domain: Domain) -> int:
        """The first stage in which kernels of a domain have a value, read or computed again."""
        if place is not None and node in self.homes:
            home = self.homes[node]
            if self.is_local(node, place, home.stage, domain):
                return home.stage
        read = self.available[node]
        again = None if place is None else self._again(node, place, domain)
        return read if again is None else min(read, again)

    def _again(
        self, node: Node, place: Place, domain: Domain, there: int | None = None
    ) -> int | None:
        """The first stage in which a value can be computed again; None if it had better not.

        What it costs: the cheap nodes between it and others, and further arrays to read. Others
        are computed in the same kernel if they are in its stage: in `there`, if that is known.
        """
        if not self._is_open(node, place, domain):
            return None
        cost, stage, arrays = 0, 0, set()
        seen: set[tuple[Node, Place]] = set()
        stack = [(node, place)]
        while stack:
            key = stack.pop()
            if key in seen:
                continue
            seen.add(key)
            cost += key[0].kind == "apply" and key[0].detail != "copy"
            for one, inner in self.operand_places(*key, domain):
                if inner is None:
                    return None
                home = self.homes.get(one)
                at = home.stage if there is None and home is not None else there
                if at is not None and self.is_local(one, inner, at, domain):
                    stage = max(stage, at)
                elif self._is_open(one, inner, domain):
                    stack.append((one, inner))
                else:
                    stage = max(stage, self.available[one])
                    if inner.per in ("element", "whole"):
                        arrays.add(one)
            if cost + STREAM * (len(arrays) - 1) > CONE:
                return None
        return stage

    def _is_open(self, node: Node, place: Place, domain: Domain) -> bool:
        """Whether a value is cheap to compute in a domain that is not its own."""
        if place.per in ("scalar", "whole") or node not in self.homes or not is_cheap(node):
            return False
        if node.kind in ("slice", "pad"):
            return place.per == "element" and not domain.columns
        return True

    # what is stored

    def _demand(self) -> None:
        for node in self.nodes:
            if node.kind == "host":
                for one in node.operands:
                    self._store(behind(one))
            elif node.kind == "reduce" and folding(node) == "total":
                self._root(node)
            elif node.size == 1 and node.kind != "view":
                for one in node.operands:
                    if behind(one).size > 1:
                        self._store(behind(one))
        for node in self.outputs:
            self._store(behind(node))
        for kernel in sorted(self.kernels.values(), key=lambda one: -one.stage):
            self._walk(kernel)
        self.kernels = {key: kernel for key, kernel in self.kernels.items() if kernel.roots}

    def _store(self, node: Node) -> None:
        if node.kind not in ("array", "literal"):
            self.stored.add(node)
        if node in self.homes:
            self._root(node)

    def _root(self, node: Node) -> None:
        home = self.homes[node]
        roots = self.kernels[home.stage, home.domain].roots
        if node not in roots:
            roots.append(node)

    def _walk(self, kernel: Kernel) -> None:
        seen: set[tuple[Node, Place]] = set()
        stack = [(root, self.homes[root].place) for root in kernel.roots]
        while stack:
            node, place = stack.pop()
            if (node, place) in seen:
                continue
            seen.add((node, place))
            for one, inner in self.operand_places(node, place, kernel.domain):
                assert inner is not None
                if one not in self.homes or inner == SCALAR:
                    continue
                if self.is_local(one, inner, kernel.stage, kernel.domain):
                    if one.kind == "reduce":
                        self._root(one)
                    stack.append((one, self.homes[one].place))
                elif self._recomputed(one, inner, kernel):
                    stack.append((one, inner))
                else:
                    kernel.read.add(one)
                    self._store(one)

    def _recomputed(self, node: Node, place: Place, kernel: Kernel) -> bool:
        if self.available[node] > kernel.stage:
            return True
        if node in self.stored:
            return False
        again = self._again(node, place, kernel.domain, kernel.stage)
        return again is not None and again <= kernel.stage


def is_cheap(node: Node) -> bool:
    if node.kind == "apply":
        return node.detail in CHEAP
    return node.kind in ("slice", "pad", "lookup")
