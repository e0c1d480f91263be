"""State that the parts of a block function share: parameters, names, reads and results."""

from __future__ import annotations

from typing import Any

from ..fusion.domains import Access
from ..fusion.fuse import Fusion, Kernel
from ..fusion.nodes import FusionNode, LiteralNode, OpaqueNode, ReduceNode, TransposeNode
from ..graph.values import in_turn
from .expressions import number_text
from .statements import Name


class NodeNames(dict[FusionNode, Name]):
    """Names of values, numbered by first use, so that equal kernels have equal texts."""

    def __missing__(self, node: FusionNode) -> Name:
        name = self[node] = Name(f"v{len(self)}")
        return name


class Parameters:
    """Arrays and numbers that are parameters of a function, in the order of first use."""

    def __init__(self) -> None:
        self.names = NodeNames()
        self.arrays: dict[FusionNode, Name] = {}  # read or written
        self.numbers: dict[int, Name] = {}  # offsets that follow from shapes

    def array(self, node: FusionNode) -> Name:
        return self.arrays.setdefault(node, self.names[node])

    def offset(self, value: int) -> Name:
        """Return the parameter of a number that follows from shapes."""
        return self.numbers.setdefault(value, Name(f"n{len(self.numbers)}"))


class BlockScope(Parameters):
    """Names, parameters and passes of a kernel's block function while it is written.

    Each registry maps an argument of the function to the name of its parameter, in the order of
    first use.
    """

    name = "NAME"  # a placeholder, which the segment replaces

    def __init__(self, fusion: Fusion, kernel: Kernel):
        super().__init__()
        self.fusion, self.kernel = fusion, kernel
        self.flat = not kernel.domain.columns
        self.scalars: dict[FusionNode, Name] = {}
        self.scratch: dict[tuple[FusionNode, Access], Name] = {}  # rows for a later pass
        self.transposes: dict[TransposeNode, Name] = {}  # `TILE` rows at a time
        self.columns = self._reductions("column")
        self.totals = self._reductions("total")
        self.saved: dict[tuple[FusionNode, Access], tuple[Name, bool]] = {}
        """Values that an earlier pass stored: the array, and whether it holds all rows."""
        self.helpers: list[str] = []  # functions that the block function calls
        self.imported: set[str] = set()
        self._passes: dict[tuple[FusionNode, Access], int] = {}
        self._count = 0

    def _reductions(self, result: str) -> list[ReduceNode]:
        roots = self.kernel.roots
        return [root for root in roots if isinstance(root, ReduceNode) and root.result == result]

    @property
    def parameters(self) -> list[Name]:
        leading = [*map(Name, ("first", "last", "columns")), *self.numbers.values()]
        leading += [*self.arrays.values(), *map(self.column_total, self.columns)]
        return [*leading, *self.scratch.values(), *self.transposes.values(), *self.scalars.values()]

    def fresh(self, stem: str) -> Name:
        """Return a name for a new variable."""
        self._count += 1
        return Name(f"{stem.lstrip('_')}_{self._count}")

    def scalar(self, node: FusionNode) -> Any:
        """Return the parameter of a value of one element, or the number itself."""
        if isinstance(node, LiteralNode) and node.in_text:
            return number_text(node.number, node.dtype)
        return self.scalars.setdefault(node, Name(f"s{len(self.scalars)}"))

    def transpose(self, node: TransposeNode) -> Name:
        """Return the array of the current rows of a transpose; this row begins at `TILE_ROW`."""
        return self.transposes.setdefault(node, Name(f"turned{len(self.transposes)}"))

    def column_total(self, node: FusionNode) -> Name:
        """Return the array of a block's column totals."""
        return Name(f"columns_of_{self.names[node]}")

    def storage_of(self, node: FusionNode, access: Access) -> tuple[Name, bool]:
        """Return the array that saves a value for later passes, and whether it holds all rows."""
        if node in self.fusion.stored and self.is_local(node, access):
            return self.array(node), True
        name = self.scratch.setdefault((node, access), Name(f"scratch{len(self.scratch)}"))
        return name, False

    def operands(self, node: FusionNode, access: Access) -> list[tuple[FusionNode, Access]]:
        """Return a node's operands, each with its access in the kernel's domain."""
        accesses = node.accesses(access, self.kernel.domain)
        return [(operand, inner) for operand, inner in accesses if inner is not None]

    def is_local(self, node: FusionNode, access: Access) -> bool:
        """Return whether the kernel itself computes a value before it is needed."""
        return self.fusion.is_local(node, access, self.kernel.stage, self.kernel.domain)

    def is_read(self, node: FusionNode, access: Access) -> bool:
        """Return whether the kernel reads a value from an array."""
        scalar = isinstance(node, LiteralNode) or access.per == "scalar"
        if scalar or self.is_local(node, access):
            return False
        return node.is_input or isinstance(node, OpaqueNode) or node in self.kernel.read

    def pass_of(self, node: FusionNode, access: Access) -> int:
        """Return the pass that computes a value; a value per row is computed before that pass."""
        passes = self._passes
        for key in in_turn((node, access), lambda key: self.below(*key), passes.__contains__):
            before = max([passes[below] for below in self.below(*key)], default=0)
            passes[key] = before + (isinstance(key[0], ReduceNode) and self.is_local(*key))
        return passes[node, access]

    def below(self, node: FusionNode, access: Access) -> list[tuple[FusionNode, Access]]:
        """Return the operands that the kernel computes for a value; none if it reads the value."""
        if access.per == "scalar" or isinstance(node, LiteralNode) or self.is_read(node, access):
            return []
        if isinstance(node, ReduceNode):
            access = self.fusion.homes[node].access
        return self.operands(node, access)
