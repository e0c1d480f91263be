"""Tiles of results in registers: sums of products of columns and rows.

A tile has some rows of as many numbers as one or two vectors hold. It is an array on the stack,
whose rows are read and written as vectors, at constant positions: so LLVM keeps it in registers.
"""

from typing import Any

import numpy as np

from tinygrad_cg_frontend import (
    FLOATS,
    PARTS,
    STORED,
    Array,
    IRValue,
    Untranslatable,
    intrinsic,
)


def _stack_array(body: Any, size: IRValue, dtype: IRValue) -> IRValue:
    if size.integer is None:
        raise Untranslatable("a size that is not known")
    kind = body.dtype(dtype)
    return IRValue(Array(kind), body.slot(f"[{size.integer} x {STORED[kind]}]"), size.text)


@intrinsic(None, _stack_array)
def stack_array(size, dtype):
    """Return an array on the stack of the calling function, which must not return it."""
    return np.empty(size, dtype)


class _Rows:
    """The vectors that are the rows of a tile, in a function body."""

    def __init__(self, body: Any, tile: IRValue, rows: IRValue, lanes: IRValue):
        if rows.integer is None or lanes.integer is None or tile.type.element in PARTS:
            raise Untranslatable("a tile of another kind, or of unknown size")
        self.body, self.tile, self.kind = body, tile, tile.type.element
        self.count, self.lanes = rows.integer, lanes.integer
        self.vector = f"<{self.lanes} x {STORED[self.kind]}>"

    def address(self, row: int) -> str:
        return self.body.address(self.tile, str(row * self.lanes))

    def load(self, address: str) -> str:
        return self.body.emit(f"load {self.vector}, {self._at(address)}")

    def store(self, vector: str, address: str) -> None:
        self.body.lines.append(f"  store {self.vector} {vector}, {self._at(address)}")

    def _at(self, address: str) -> str:
        return f"ptr {address}, align {int(self.kind[1:]) // 8}"

    def repeated(self, address: str) -> str:
        source = f"{STORED[self.kind]} {self.body.load(self.kind, address).text}"
        first = self.body.emit(f"insertelement {self.vector} poison, {source}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.body.emit(f"shufflevector {self.vector} {first}, {self.vector} poison, {mask}")

    def product_added(self, x: str, y: str, z: str) -> str:
        is_float = self.kind in FLOATS
        if is_float and self.body.fuses:
            name = f"llvm.fma.v{self.lanes}{self.kind}"
            return self.body.call(name, self.vector, *[(self.vector, v) for v in (x, y, z)])
        product = self.body.emit(f"{'fmul' if is_float else 'mul'} {self.vector} {x}, {y}")
        return self.body.emit(f"{'fadd' if is_float else 'add'} {self.vector} {product}, {z}")


def _clear(body: Any, tile: IRValue, rows: IRValue, lanes: IRValue) -> None:
    parts = _Rows(body, tile, rows, lanes)
    for row in range(parts.count):
        parts.store("zeroinitializer", parts.address(row))


@intrinsic(", ".join(["any"] * 3), _clear)
def clear_tile(tile, rows, lanes):
    """Set a tile to zero."""
    tile[:] = 0


def _add_products(body: Any, tile: IRValue, rows: IRValue, lanes: IRValue, *rest: IRValue) -> None:
    x, starts, k, step, y, at = rest
    if step.integer not in (0, 1):
        raise Untranslatable("a step that is not known")
    parts = _Rows(body, tile, rows, lanes)
    vector = parts.load(body.address(y, body.index(at).text))
    for row in range(parts.count):
        start = body.load(starts.type.element, body.address(starts, str(row)))
        place = body.emit(f"add i64 {start.text}, {body.index(k).text}")
        source, address = body.address(x, place), parts.address(row)
        factor = parts.load(source) if step.integer else parts.repeated(source)
        parts.store(parts.product_added(factor, vector, parts.load(address)), address)


@intrinsic(", ".join(["any"] * 9), _add_products)
def add_products(tile, rows, lanes, x, starts, k, step, y, at):
    """Add x[starts[row] + k + step * lane] * y[at + lane] to each element of a tile.

    `step` is 0 or 1.
    """
    places = np.add.outer(starts[:rows] + k, step * np.arange(lanes))
    tile += (x[places] * y[at : at + lanes]).reshape(-1)


def _store_tile(body: Any, tile: IRValue, rows: IRValue, lanes: IRValue, *rest: IRValue) -> None:
    out, places = rest
    parts = _Rows(body, tile, rows, lanes)
    for row in range(parts.count):
        place = body.load(places.type.element, body.address(places, str(row)))
        parts.store(parts.load(parts.address(row)), body.address(out, place.text))


@intrinsic(", ".join(["any"] * 5), _store_tile)
def store_tile(tile, rows, lanes, out, places):
    """Write each row of a tile to `out`, from its place on."""
    for row, place in zip(tile.reshape(rows, lanes), places[:rows], strict=True):
        out[place : place + row.size] = row
