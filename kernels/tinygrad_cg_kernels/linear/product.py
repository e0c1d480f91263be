"""The product of two large matrices, for processors whose 512-bit vectors NumPy's BLAS leaves idle.

NumPy's wheels bring an OpenBLAS that takes 256-bit kernels for AMD's processors: half of what
these can do. Tiles of 8 rows and up to 3 vectors of columns stay in registers while the inner
dimension goes by; the right matrix is copied to panels of as many columns first. After Goto and
van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008).
"""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.runtime.entries import Blocks, compile_together
from tinygrad_cg_kernels.runtime.intrinsics import wide_vectors
from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.runtime.native.instructions import instruction
from tinygrad_cg_kernels.runtime.native.values import NOTHING, STORED, Value
from tinygrad_cg_kernels.runtime.objects import data_address
from tinygrad_cg_kernels.runtime.promotion import FLOAT32, FLOAT64
from tinygrad_cg_kernels.runtime.views import address_of, vector

ROWS = 8
"""Rows in a tile."""
VECTORS = 3
"""Vectors of 64 bytes in a row of a tile at most: 24 of them in registers."""
CHUNK = 64
"""Rows in a unit of work."""
WORTH = 10**6
"""Products of numbers from which it is quicker than a call of BLAS."""
DEPTH = 384
"""Products that a tile sums at a time: separate sums have smaller rounding errors."""


@cache
def _is_useful() -> bool:
    """Return whether the processor has 512-bit vectors and NumPy's OpenBLAS does not use them."""
    if not llvm.get_host_cpu_features().get("avx512f"):
        return False
    folder = Path(np.__file__).parent
    for path in (folder.parent / f"{folder.name}.libs").glob("*openblas*"):
        try:
            name = ctypes.CDLL(str(path)).scipy_openblas_get_corename64_
        except (OSError, AttributeError):
            continue
        name.restype = ctypes.c_char_p
        return name() in (b"Haswell", b"Zen")
    return False


def serves(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether `multiply` is to be taken for two arrays."""
    if x.ndim != 2 or y.ndim != 2 or x.dtype is not y.dtype:
        return False
    (rows, inner), columns = x.shape, y.shape[1]
    if min(rows, columns) < ROWS or rows * inner * columns < WORTH or inner != y.shape[0]:
        return False
    if y.strides[1] != y.itemsize or x.dtype not in (FLOAT32, FLOAT64):
        return False
    return x.flags.aligned and y.flags.aligned and _is_useful()


def multiply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the product of two matrices, for which `serves` has said that it can."""
    (rows, inner), columns = x.shape, y.shape[1]
    lanes = 64 // x.itemsize
    width = lanes * VECTORS
    panels, chunks = -(-columns // width), -(-rows // CHUNK)
    out = empty((rows, columns), x.dtype)
    packed = np.empty(panels * width * inner + lanes, x.dtype)
    start = (data_address(packed) + 63) & ~63  # a vector's alignment
    addresses = [*map(data_address, (x, y, out)), start]
    numbers = [rows, inner, columns, *addresses, *x.strides, y.strides[0], chunks]
    table = np.array(numbers, np.int64)
    if (x.dtype,) not in _multiply:
        compile_together((_pack, (x.dtype,)), (_multiply, (x.dtype,)))
    for kernel, units in ((_pack, panels), (_multiply, panels * chunks)):
        address = kernel[x.dtype,]
        threads.carry_out(threads.Task(address, data_address(table), 0, units, 1, inner))
    return out


def _packer(kind: type) -> Callable:
    size = np.dtype(kind).itemsize
    lanes = 64 // size
    width = VECTORS * lanes

    def pack(table, first, count):
        wide_vectors()
        numbers = vector(table, 11, np.int64)
        inner, columns, step = numbers[1], numbers[2], numbers[9]
        source, start = numbers[4], numbers[6]
        left = first * width
        used = min(width, columns - left)
        padded = (used + lanes - 1) // lanes * lanes
        for i in range(inner):
            line = vector(source + i * step + left * size, used, kind)
            panel = vector(start + (left * inner + i * padded) * size, padded, kind)
            for j in range(np.uintp(used)):
                panel[j] = line[j]
            for k in range(used, padded):
                panel[k] = 0

    return pack


def _computer(kind: type) -> Callable:
    size = np.dtype(kind).itemsize
    lanes = 64 // size
    width = VECTORS * lanes

    def compute(table, unit, count):
        wide_vectors()
        numbers = vector(table, 11, np.int64)
        rows, inner, columns = numbers[0], numbers[1], numbers[2]
        left_matrix, out, start = numbers[3], numbers[5], numbers[6]
        row_step, step, chunks = numbers[7], numbers[8], numbers[10]
        panel, chunk = unit // chunks, unit % chunks
        left = panel * width
        used = min(width, columns - left)
        vectors = (used + lanes - 1) // lanes
        right_matrix = start + left * inner * size
        tile = np.empty(ROWS * width, kind)
        for row in range(chunk * CHUNK, min(rows, (chunk + 1) * CHUNK), ROWS):
            count = min(ROWS, rows - row)
            source = left_matrix + row * row_step
            target = out + (row * columns + left) * size
            complete = count == ROWS and used == vectors * lanes
            position = target if complete else address_of(tile)
            line = columns * size if complete else vectors * 64
            for done in range(0, inner, DEPTH):
                depth = min(DEPTH, inner - done)
                x, y = source + done * step, right_matrix + done * vectors * 64
                run_tile(tile, vectors, x, row_step, step, count, y, position, line, depth, done)
            if not complete:
                for i in range(count):
                    final = vector(target + i * columns * size, used, kind)
                    for j in range(used):
                        final[j] = tile[i * vectors * lanes + j]

    return compute


_pack = Blocks("matmul", lambda dtype: (f"pack_panel_{dtype.name}", _packer(dtype.type)))
"""Kernels that pack a panel, a unit of work."""
_multiply = Blocks("matmul", lambda dtype: (f"multiply_tiles_{dtype.name}", _computer(dtype.type)))
"""Kernels that compute a chunk of tiles."""


@intrinsic
def run_tile(typingctx, like, vectors, x, row_step, step, rows, y, out, line, count, more):
    """Compute 8 rows of `x`, by address and step in bytes, times a panel of some vectors.

    Where there are fewer rows, the last of them is repeated. The sums of `count` products go to
    `out`, added to what is there if `more` is not 0. `like` tells the dtype.
    """

    def generate(context, builder, signature, arguments):
        _emit_tiles(context.get_data_type(signature.args[0].dtype), builder, *arguments[1:])
        return context.get_dummy_value()

    return types.void(like, *[types.intp] * 10), generate


@instruction(run_tile)
def _call_tile(body: Any, like: Value, *numbers: Value) -> Value:
    kind = STORED[like.type.element]
    name = f"run_tile_{kind}"
    body.module.define(name, lambda: _tile_function(kind, name))
    given = ", ".join(f"i64 {body.index(number).text}" for number in numbers)
    body.lines.append(f"  call void @{name}({given})")
    return NOTHING


def _tile_function(kind: str, name: str) -> str:
    """Return the text of a function that does what `run_tile` does."""
    module, word = ir.Module(), ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 10), name)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    _emit_tiles(ir.DoubleType() if kind == "double" else ir.FloatType(), builder, *function.args)
    builder.ret_void()
    return "\n".join(str(one) for one in module.functions)


def _emit_tiles(kind: ir.Type, builder: Any, vectors: Any, *arguments: Any) -> None:
    for number in range(1, VECTORS + 1):
        with builder.if_then(builder.icmp_signed("==", vectors, vectors.type(number))):
            _Tile(kind, number, builder).emit(*arguments)


class _Tile:
    def __init__(self, kind: ir.Type, vectors: int, builder: Any):
        self.kind, self.builder = kind, builder
        self.size = 4 if isinstance(kind, ir.FloatType) else 8
        self.lanes = 64 // self.size
        self.vector = ir.VectorType(kind, self.lanes)
        self.tiles = [(row, j) for row in range(ROWS) for j in range(vectors)]
        self.vectors = vectors
        name = f"llvm.fma.v{self.lanes}f{8 * self.size}"
        declared = ir.FunctionType(self.vector, [self.vector] * 3)
        self.fma = cgutils.get_or_insert_function(builder.module, declared, name)

    def emit(self, x, row_step, step, rows, y, out, line, count, more) -> None:
        builder, word = self.builder, x.type
        last = builder.sub(rows, word(1))
        lines = []
        for row in range(ROWS):
            there = builder.icmp_signed("<", word(row), last)
            position = builder.select(there, word(row), last)
            lines.append(builder.add(x, builder.mul(position, row_step)))
        before, loop = builder.block, builder.append_basic_block("tile")
        after = builder.append_basic_block("tile_end")
        builder.branch(loop)
        builder.position_at_end(loop)
        starts = {"i": word(0), "offset": word(0), "panel": y}
        counters = {name: builder.phi(word) for name in starts}
        sums = {position: builder.phi(self.vector) for position in self.tiles}
        totals = self._products(lines, counters["offset"], counters["panel"], sums)
        steps = {"i": word(1), "offset": step, "panel": word(64 * self.vectors)}
        for name, phi in counters.items():
            phi.add_incoming(starts[name], before)
            phi.add_incoming(builder.add(phi, steps[name]), loop)
        for position, phi in sums.items():
            phi.add_incoming(ir.Constant(self.vector, [0.0] * self.lanes), before)
            phi.add_incoming(totals[position], loop)
        going = builder.icmp_signed("<", builder.add(counters["i"], word(1)), count)
        builder.cbranch(going, loop, after)
        builder.position_at_end(after)
        is_first = builder.icmp_signed("==", more, word(0))
        for (row, j), total in totals.items():
            address = builder.add(builder.mul(word(row), line), word(64 * j))
            target = builder.inttoptr(builder.add(out, address), self.vector.as_pointer())
            before = builder.load(target)
            before.align = self.size
            total = builder.select(is_first, total, builder.fadd(before, total))
            builder.store(total, target).align = self.size

    def _products(self, lines: list, offset: Any, panel: Any, sums: dict) -> dict:
        """Return the sums with one more product each."""
        builder = self.builder
        right = []
        for j in range(self.vectors):
            address = builder.add(panel, panel.type(64 * j))
            loaded = builder.load(builder.inttoptr(address, self.vector.as_pointer()))
            loaded.align = 64
            right.append(loaded)
        nothing = ir.Constant(self.vector, ir.Undefined)
        index = ir.IntType(32)
        first = ir.Constant(ir.VectorType(index, self.lanes), [0] * self.lanes)
        found = {}
        for row, line in enumerate(lines):
            number = builder.load(
                builder.inttoptr(builder.add(line, offset), self.kind.as_pointer())
            )
            number.align = self.size
            one = builder.insert_element(nothing, number, index(0))
            repeated = builder.shuffle_vector(one, nothing, first)
            for j in range(self.vectors):
                found[row, j] = builder.call(self.fma, [repeated, right[j], sums[row, j]])
        return found
