"""Assignment of values to kernels, and the order of kernels.

A kernel iterates once over a domain of rows and columns, or over a flat domain: one range of
elements. In a domain, a value has one number per element, per row or per column, or is a scalar.
A program runs in stages. Each stage runs scalars, then operations on arrays, then kernels. If a
kernel reduces a value to a scalar or to columns, the next stage can use it. If it reduces to rows,
its own next pass over the row can.

Cheap values are computed again wherever they are needed, so that kernels read and write little: a
pass over memory costs as much as ten additions.

The steps of `Fusion`: values that are read element by element share a domain; each value gets the
first stage in which its operands are available; from the outputs backwards, `Fusion` finds the
values that have to be stored.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ..graph.values import in_order
from .domains import ELEMENT, ROW, SCALAR, Access, Domain, broadcasting
from .lower import Lowering
from .nodes import ApplyNode, FusionNode, OpaqueNode, PadNode, ReduceNode, ViewNode, base

MAX_KERNEL_COST = 100
"""Limit for the cost of a kernel's nodes. Beyond it, registers spill and compiling takes long."""
POLYNOMIAL_COST = 5
"""Cost of a function that is a polynomial, or of a reduction."""
ARRAY_COST = 4
"""Cost of an array: the time to compile grows with the square of their number."""
MAX_RECOMPUTED_COST = 16
"""Limit for the cost of computing a value again, in place of storing it."""
READ_COST = 4
"""Cost of one more array that is read to compute a value again."""
STORE_COST = 8
"""Cost of one more array that is stored only so that a value can be computed again. With it, a step
of a Gaussian process takes .88 of the time, and the rule of gelu reads one array, not three."""
FEW_ROWS, MIN_COLUMNS = 64, 32
"""A function that is a polynomial runs on a number per row in the kernel of the rows if these are
few or have many columns. Otherwise it has a kernel of its own, whose vectors are numbers of rows.
``exp(-reduce_sum(x * x, 1))`` and gradients of norms, softmax and logsumexp are .92 to 2.2 times as
fast for 3 to 20 columns, and .73 to 1.6 times for 32 to 50."""
MAX_FUSED_PADS = 6
"""A program with more paddings pads between kernels: each cuts a kernel's range into more parts."""


class Home(NamedTuple):
    """The kernel that computes a value, and the value's access (a reduction's: its operand's)."""

    stage: int
    domain: Domain
    access: Access


class Kernel:
    """The values of one stage and one domain."""

    def __init__(self, stage: int, domain: Domain):
        self.stage, self.domain = stage, domain
        self.roots: list[FusionNode] = []  # reductions, and values that are stored
        self.read: set[FusionNode] = set()  # values of other kernels that it reads


class Domains:
    """The domain of each fused node. Nodes are in disjoint sets (union-find) of one domain each.

    If a node reads another one element by element, their sets are joined, unless the two need
    different columns.
    """

    def __init__(self, nodes: list[FusionNode]):
        self._parent: dict[FusionNode, FusionNode] = {}
        self._columns: dict[FusionNode, int] = {}  # of the root of each set; 0 if any number fits
        for node in nodes:
            if node.is_fused:
                self._parent[node] = node
                self._columns[node] = node.columns
                for operand in node.aligned:
                    self._join(node, base(operand))

    def __getitem__(self, node: FusionNode) -> Domain:
        return Domain(node.domain_size, self._columns[self._root(node)])

    def _root(self, node: FusionNode) -> FusionNode:
        while self._parent[node] is not node:
            self._parent[node] = node = self._parent[self._parent[node]]
        return node

    def _join(self, node: FusionNode, other: FusionNode) -> None:
        if other not in self._parent or not other.shares_domain:
            return
        a, b = self._root(node), self._root(other)
        columns, others = self._columns[a], self._columns[b]
        if a is not b and (not columns or not others or columns == others):
            self._parent[a] = b
            self._columns[b] = columns or others


class Fusion:
    """A lowered program cut into kernels.

    `homes` maps each fused value to its kernel, and `available` each value to the first stage whose
    kernels can read it. Values in `stored` have arrays of their own.
    """

    def __init__(self, lowered: Lowering):
        self.outputs = lowered.outputs
        self._wanted = [*lowered.outputs, *lowered.checks]
        self.nodes: list[FusionNode] = in_order(self._wanted, "operands")
        if sum(isinstance(node, PadNode) for node in self.nodes) > MAX_FUSED_PADS:
            self._pad_between_kernels()
        self.domains = Domains(self.nodes)
        self._expand_mixed()
        self.homes: dict[FusionNode, Home] = {}
        self.available: dict[FusionNode, int] = {}
        self.kernels: dict[tuple[int, Domain], Kernel] = {}
        self._weights: dict[tuple[int, Domain], int] = {}  # the cost of each kernel's nodes
        self._read: set[tuple[tuple[int, Domain], FusionNode]] = set()  # what each kernel may read
        for node in self.nodes:
            self._assign_stage(node)
        self.stored: set[FusionNode] = set()
        self._find_stored()

    def _pad_between_kernels(self) -> None:
        """Pad arrays by operations between kernels."""
        substitutions: dict[FusionNode, FusionNode] = {}
        for node in self.nodes:
            node.operands = tuple([substitutions.get(x, x) for x in node.operands])
            if isinstance(node, PadNode):
                run = partial(_pad, size=node.size, start=node.start)
                substitutions[node] = OpaqueNode("pad", run, node.shape, node.dtype, node.operands)
        self.outputs = [substitutions.get(output, output) for output in self.outputs]
        self._wanted = [substitutions.get(node, node) for node in self._wanted]
        self.nodes = in_order(self._wanted, "operands")

    def _expand_mixed(self) -> None:
        """Expand operands that broadcast in a "mixed" way by operations on arrays."""
        for node in self.nodes:
            if isinstance(node, ApplyNode) and node.size > 1:
                columns = self.domains[node].columns
                operands = []
                for operand in node.operands:
                    name, cut = broadcasting(operand.shape, node.shape)
                    if name == "mixed" or (cut and cut != columns):
                        run = partial(_expand, shape=node.shape)
                        operand = OpaqueNode("expand", run, node.shape, operand.dtype, [operand])
                    operands.append(operand)
                node.operands = tuple(operands)
        self.nodes = in_order(self._wanted, "operands")

    def _assign_stage(self, node: FusionNode) -> None:
        if node.is_input:
            self.available[node] = 0
        elif isinstance(node, ViewNode):
            self.available[node] = self.available[base(node)]
        elif isinstance(node, OpaqueNode):
            self.available[node] = max([self.available[x] for x in node.operands], default=0)
        elif node.size == 1 and not isinstance(node, ReduceNode):
            # A scalar is computed before the kernels of its stage.
            ready = [self.available[x] + isinstance(base(x), OpaqueNode) for x in node.operands]
            self.available[node] = max(ready)
        else:
            self._assign_kernel(node)

    def _assign_kernel(self, node: FusionNode) -> None:
        """Choose the kernel of a fused node: the first one with room for it."""
        home = self._row_home(node)
        if home is None:
            domain = self.domains[node]
            home = Home(self._stage(node, domain, ELEMENT), domain, ELEMENT)
        stage, domain, access = home
        while self._weights.get((stage, domain), 0) >= MAX_KERNEL_COST:
            stage += 1
        key = (stage, domain)
        weight = 1 if node.is_cheap else POLYNOMIAL_COST
        for operand in map(base, node.operands):
            there = operand in self.homes and self.homes[operand][:2] == key
            if not (there or operand.size == 1 or (key, operand) in self._read):
                self._read.add((key, operand))
                weight += ARRAY_COST
        self._weights[key] = self._weights.get(key, 0) + weight
        self.homes[node] = Home(stage, domain, access)
        self.available[node] = stage + 1
        if key not in self.kernels:
            self.kernels[key] = Kernel(stage, domain)

    def _row_home(self, node: FusionNode) -> Home | None:
        """Return the home of a value per row, or of a total of such values, in a kernel of rows."""
        if not node.by_row or node.result not in ("", "total"):
            return None
        for operand in node.operands:
            computed = base(operand)
            home = self.homes.get(computed)
            if home is None or operand.size * max(home.domain.columns, 1) != home.domain.size:
                continue
            if not home.domain.columns or not (home.access == ROW or computed.result == "row"):
                continue
            if isinstance(node, ApplyNode):
                is_short = home.domain.columns < MIN_COLUMNS and node.size > FEW_ROWS
                if is_short and not node.is_cheap:
                    continue
                names = [broadcasting(operand.shape, node.shape)[0] for operand in node.operands]
                if any(name not in ("same", "one") for name in names) or operand.size != node.size:
                    continue
            stage = self._stage(node, home.domain, ROW)
            if stage == home.stage:
                return Home(stage, home.domain, ROW)
        return None

    def _stage(self, node: FusionNode, domain: Domain, access: Access) -> int:
        """Return the first stage in which a node can be computed in a domain."""
        operands = node.accesses(access, domain)
        return max([self._reach(x, inner, domain) for x, inner in operands], default=0)

    def is_local(self, node: FusionNode, access: Access, stage: int, domain: Domain) -> bool:
        """Return whether a kernel itself computes a value before it is needed."""
        home = self.homes.get(node)
        if home is None or (home.stage, home.domain) != (stage, domain):
            return False
        if isinstance(node, ReduceNode):
            return node.result == "row" and access == ROW
        return home.access == access

    def _reach(self, node: FusionNode, access: Access | None, domain: Domain) -> int:
        """Return the first stage whose kernels, of this domain, can read or recompute a value."""
        read = self.available[node]
        if access is None:
            return read
        home = self.homes.get(node)
        if home is not None and self.is_local(node, access, home.stage, domain):
            return home.stage
        again = self._find_stage(node, access, domain)
        return read if again is None else min(read, again)

    def _find_stage(
        self, node: FusionNode, access: Access, domain: Domain, stage: int | None = None
    ) -> int | None:
        """Return the first stage in which a value can be computed again; None if that costs more.

        The cost counts the cheap nodes that are computed again, and the arrays they read. Values
        that the same kernel computes are free. With `stage`, that kernel's stage is known.
        """
        if not self._is_open(node, access, domain):
            return None
        cost, first, arrays = 0, 0, set()
        seen: set[tuple[FusionNode, Access]] = set()
        stack = [(node, access)]
        while stack:
            key = stack.pop()
            if key in seen:
                continue
            seen.add(key)
            cost += key[0].cost
            for operand, inner in key[0].accesses(key[1], domain):
                if inner is None:
                    return None
                home = self.homes.get(operand)
                at = home.stage if stage is None and home is not None else stage
                if at is not None and self.is_local(operand, inner, at, domain):
                    first = max(first, at)
                elif self._is_open(operand, inner, domain):
                    stack.append((operand, inner))
                else:
                    first = max(first, self.available[operand])
                    if inner.per in ("element", "anywhere"):
                        arrays.add(operand)
            memory = READ_COST * (len(arrays) - 1)
            if stage is not None:
                unstored = [x for x in arrays if x in self.homes and x not in self.stored]
                memory += STORE_COST * max(len(unstored) - 1, 0)
            if cost + memory > MAX_RECOMPUTED_COST:
                return None
        return first

    def _is_open(self, node: FusionNode, access: Access, domain: Domain) -> bool:
        """Return whether a value can be computed again, cheaply, in another domain."""
        if access.per in ("scalar", "anywhere") or node not in self.homes or not node.is_cheap:
            return False
        return not node.by_element or (access.per == "element" and not domain.columns)

    def _find_stored(self) -> None:
        """Store what operations, scalars and the caller read, and then what kernels read."""
        for node in self.nodes:
            if isinstance(node, OpaqueNode):
                for operand in node.operands:
                    self._store(base(operand))
            elif node.result == "total":
                self._add_root(node)
            elif node.size == 1 and not isinstance(node, ViewNode):
                for operand in node.operands:
                    if base(operand).size > 1:
                        self._store(base(operand))
        for node in self.outputs:
            self._store(base(node))
        # Later kernels first: they add roots to the kernels that they read from.
        for kernel in sorted(self.kernels.values(), key=lambda kernel: -kernel.stage):
            self._find_reads(kernel)
        self.kernels = {key: kernel for key, kernel in self.kernels.items() if kernel.roots}

    def _store(self, node: FusionNode) -> None:
        if not node.is_input:
            self.stored.add(node)
        if node in self.homes:
            self._add_root(node)

    def _add_root(self, node: FusionNode) -> None:
        home = self.homes[node]
        roots = self.kernels[home.stage, home.domain].roots
        if node not in roots:
            roots.append(node)

    def _find_reads(self, kernel: Kernel) -> None:
        """Find what a kernel reads, from its roots on; earlier kernels store these values."""
        seen: set[tuple[FusionNode, Access]] = set()
        stack = [(root, self.homes[root].access) for root in kernel.roots]
        while stack:
            node, access = stack.pop()
            if (node, access) in seen:
                continue
            seen.add((node, access))
            for operand, inner in node.accesses(access, kernel.domain):
                assert inner is not None
                if operand not in self.homes or inner == SCALAR:
                    continue
                if self.is_local(operand, inner, kernel.stage, kernel.domain):
                    if isinstance(operand, ReduceNode):
                        self._add_root(operand)
                    stack.append((operand, self.homes[operand].access))
                elif self._is_recomputed(operand, inner, kernel):
                    stack.append((operand, inner))
                else:
                    kernel.read.add(operand)
                    self._store(operand)

    def _is_recomputed(self, node: FusionNode, access: Access, kernel: Kernel) -> bool:
        if self.available[node] > kernel.stage:
            return True
        if node in self.stored:
            return False
        again = self._find_stage(node, access, kernel.domain, kernel.stage)
        return again is not None and again <= kernel.stage


def _pad(x: np.ndarray, size: int, start: int) -> np.ndarray:
    """Return zeros, with an array's elements from `start` on."""
    out = np.zeros_like(x, shape=(size,))
    out[start : start + x.size] = x.reshape(-1)
    return out


def _expand(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return `x` repeated to a shape, in half the time of a copy of `np.broadcast_to`."""
    x = x.reshape((1,) * (len(shape) - x.ndim) + x.shape)
    for axis in reversed(range(x.ndim)):
        if x.shape[axis] != shape[axis]:
            x = np.repeat(x, shape[axis], axis)
    return x
