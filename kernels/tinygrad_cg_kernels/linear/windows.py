"""Sums of products over windows on images: a convolution, and its transpose by the filters.

Images are (n, height, width, channels), padded and contiguous. A tile of results, some windows by
one or two vectors of outputs, stays in registers while the products are added, so no patches are
copied. Each result is a sum in the same order on any number of threads, and for any size of tiles.
(On an EPYC with vectors of 256 bits, copies of patches and products by BLAS took 1.1 to 6 times as
long for 1 to 64 channels.)

If channels are filtered one by one (`depthwise`), outputs are channels, and a tile adds products of
vectors; otherwise, each of its rows has one factor for all outputs.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from tinygrad_cg_kernels.loops.ranges import Ranged
from tinygrad_cg_kernels.runtime import machine
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.errstate import quiet
from tinygrad_cg_kernels.runtime.intrinsics import wide_vectors
from tinygrad_cg_kernels.runtime.promotion import INT64
from tinygrad_cg_kernels.runtime.tile_intrinsics import (
    add_products,
    clear_tile,
    stack_array,
    store_tile,
)

Pair = tuple[int, int]
Shape = tuple[int, ...]

CHUNK = 512
"""Windows whose products are added in one sum, for the gradient by filters. Sums of chunks are
added afterwards, for precision."""
MAX_CHUNK_BYTES = 1 << 23
"""Limit for the sums of all chunks; chunks are longer if there are many filters."""
MAX_MERGED = 1 << 12
"""Limit for the elements of a line of windows that is computed as one."""
PRODUCTS_PER_ELEMENT = 8
"""Products that take about as long as one element of an elementwise kernel."""


class Grid(NamedTuple):
    """The windows on padded images."""

    size: Pair
    """Rows and columns of windows."""
    strides: Pair
    dilations: Pair
    start: Pair = (0, 0)
    """The position of the first window."""


class _Tile(NamedTuple):
    """The shape of a tile: windows or taps, and outputs."""

    rows: int
    lanes: int


@cache
def _tile(dtype: np.dtype, outputs: int) -> _Tile:
    """Return the shape of tiles that wastes least for a number of outputs of a group.

    Sums of eight vectors, or more, hide the time that one addition takes. Processors without
    AVX-512 have 16 registers: 12 sums, and the operands.
    """
    bits = machine.vector_bits()
    vector = bits // 8 // dtype.itemsize
    tiles = [_Tile(8, min(vector, 4)), _Tile(8, vector)]
    tiles.append(_Tile(8 if bits == 512 else 6, 2 * vector))

    def cost(tile: _Tile) -> float:
        vectors = max(tile.lanes // vector, 1)
        return -(-outputs // tile.lanes) * (vectors + 0.3)  # products, and the load of a factor

    return min(tiles, key=cost)


def slack_of(dtype: np.dtype, outputs: int = 1) -> int:
    """Return how many elements of memory have to follow an array that is read by outputs.

    The last vector of a row also reads the next row; results of these numbers are not used.
    """
    lanes = 2 * machine.vector_bits() // 8 // dtype.itemsize
    return lanes if outputs % lanes else 0


def _merges(channels: int, dtype: np.dtype, *grids: Grid) -> bool:
    """Return whether a line of windows is computed as one: if channels do not fill a vector."""
    few = 8 * channels * dtype.itemsize < machine.vector_bits()
    short = channels * grids[0].size[1] <= MAX_MERGED
    return few and short and all(grid.strides[1] == 1 for grid in grids)


# The kernels. `sizes` has the numbers of `_plan`, then others.


@jitable
def _read(sizes):
    """Return the numbers of `_plan`: of positions, of taps, the groups and their channels."""
    positions = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    taps = sizes[5], sizes[6], sizes[7], sizes[8], sizes[9]
    return positions, taps, sizes[10], sizes[11]


@cache
def _sum_core(depthwise: bool, rows: int, lanes: int) -> Callable:
    """Return the core of a convolution; a unit is a tile of windows, with all outputs."""
    size, step = rows * lanes, int(depthwise)

    def sum_windows(unused, none, first, count, sizes, images, filters, out):
        wide_vectors()
        positions, steps, groups, channels = _read(sizes)
        width, height, across, down, image = positions
        tall, row_step, broad, column_step, run = steps
        outputs, blocks, windows = sizes[12], sizes[13], sizes[14]
        start, out_start = sizes[15], sizes[16]
        out_across, out_down, out_image = sizes[17], sizes[18], sizes[19]
        tile, spare = stack_array(size, images.dtype), stack_array(size, images.dtype)
        starts, places = stack_array(rows, INT64), stack_array(rows, INT64)
        for block in range(groups * blocks):
            group, output = block // blocks, block % blocks * lanes
            kept, window = min(lanes, outputs - output), first * rows
            column, line = window % width, window // width
            row, n = line % height, line // height
            origin = start + n * image + row * down + column * across
            origin += group * channels + step * output
            place = out_start + n * out_image + row * out_down + column * out_across
            place += group * outputs + output
            for _ in range(count):
                for p in range(rows):  # the last tile may repeat the last window
                    starts[p], places[p] = origin, place
                    if window + 1 < windows:
                        window += 1
                        column += 1
                        origin += across
                        place += out_across
                        if column == width:
                            column = 0
                            row += 1
                            origin += down - width * across
                            place += out_down - width * out_across
                            if row == height:
                                row = 0
                                origin += image - height * down
                                place += out_image - height * out_down
                clear_tile(tile, rows, lanes)
                at = block * tall * broad * run * lanes
                for i in range(tall):
                    for j in range(broad):
                        tap = i * row_step + j * column_step
                        for k in range(tap, tap + run):
                            add_products(tile, rows, lanes, images, starts, k, step, filters, at)
                            at += lanes
                if kept == lanes:
                    store_tile(tile, rows, lanes, out, places)
                    continue
                for p in range(rows):
                    starts[p] = p * lanes
                store_tile(tile, rows, lanes, spare, starts)
                for p in range(rows):
                    for c in range(kept):
                        out[places[p] + c] = spare[p * lanes + c]

    return jitable(sum_windows)


@cache
def _correlate_core(depthwise: bool, rows: int, lanes: int) -> Callable:
    """Return the core of the transpose; a unit is a tile of taps, for a chunk of lines."""
    size, step = rows * lanes, int(depthwise)

    def correlate(unused, none, first, count, sizes, images, upstream, out):
        wide_vectors()
        positions, steps, groups, channels = _read(sizes)
        width, height, across, down, image = positions
        tall, row_step, broad, column_step, run = steps
        outputs, pitch, tiles = sizes[12], sizes[13], sizes[14]
        lines, chunk = sizes[15], sizes[16]
        tile = stack_array(size, images.dtype)
        starts, places = stack_array(rows, INT64), stack_array(rows, INT64)
        taps = tall * broad * run
        for unit in range(first, first + count):
            top, stop = unit // tiles * chunk, min((unit // tiles + 1) * chunk, lines)
            for group in range(groups):
                for p in range(rows):
                    tap = min(unit % tiles * rows + p, taps - 1)
                    i, j = tap // run // broad, tap // run % broad
                    starts[p] = i * row_step + j * column_step + tap % run + group * channels
                for block in range(0, pitch, lanes):
                    for p in range(rows):
                        places[p] = ((unit * groups + group) * rows + p) * pitch + block
                    clear_tile(tile, rows, lanes)
                    at = (top * width * groups + group) * outputs + block
                    for line in range(top, stop):
                        k = line // height * image + line % height * down + step * block
                        for _ in range(width):
                            add_products(tile, rows, lanes, images, starts, k, step, upstream, at)
                            k += across
                            at += groups * outputs
                    store_tile(tile, rows, lanes, out, places)

    return jitable(correlate)


def _plan(
    shape: Shape, window: Pair, groups: int, grid: Grid, depthwise: bool = False
) -> tuple[int, ...]:
    """Return the numbers that describe windows: positions, then taps, then groups."""
    _, height, width, channels = shape
    line, run, (rows, columns) = width * channels, channels // groups, window
    (down, across), (row, column) = grid.strides, grid.dilations
    if depthwise:
        run = 1
    elif column == 1 and groups == 1:  # a row of the window is in one piece
        columns, run = 1, columns * run
    positions = (grid.size[1], grid.size[0], across * channels, down * line, height * line)
    taps = (rows, row * line, columns, column * channels, run)
    return (*positions, *taps, groups, channels // groups)


def _filter_rows(filters: np.ndarray, lanes: int) -> np.ndarray:
    """Return filters as (groups, blocks of outputs, taps, lanes), with zeros in the last block."""
    *taps, groups, outputs = filters.shape
    if groups == 1 and outputs == lanes:
        return np.ascontiguousarray(filters)
    blocks = -(-outputs // lanes)
    new = np.empty if blocks * lanes == outputs else np.zeros
    rows = new((groups, blocks, *taps, lanes), filters.dtype)
    for block in range(blocks):
        part = filters[..., block * lanes : (block + 1) * lanes]
        rows[:, block, ..., : part.shape[-1]] = part.transpose(3, 0, 1, 2, 4)
    return rows


def _bound(
    core: Callable, depthwise: bool, tile: _Tile, dtype: np.dtype, sizes: Shape, *work: int
) -> Callable[..., object]:
    """Return a function of images, rows of vectors, and results. `work` are units and elements."""
    if not work[0]:
        return lambda *arrays: None
    return _kernel(core, depthwise, tile, len(sizes)).bound((dtype,) * 3, sizes, *work)


@cache
def _kernel(core: Callable, depthwise: bool, tile: _Tile, sizes: int) -> Ranged:
    function = core(depthwise, *tile)
    name = f"{'depthwise_' * depthwise}{function.__name__}_{tile.rows}_{tile.lanes}"
    return Ranged(name, function, sizes, ())


@lru_cache(1024)
def _sum_launch(
    dtype: np.dtype,
    images: Shape,
    filters: Shape,
    grid: Grid,
    out: Shape,
    positions: Grid,
    depthwise: bool,
) -> tuple[int, Callable[..., object]]:
    """Return the lanes of a tile, and what runs the kernel."""
    *window, _, groups, outputs = filters
    tile = _tile(dtype, outputs)
    starts = (
        (at.start[0] * shape[2] + at.start[1]) * shape[3]
        for at, shape in ((grid, images), (positions, out))
    )
    count = images[0] * prod(grid.size)
    plan = _plan(images, (window[0], window[1]), groups, grid, depthwise)
    sizes = *plan, outputs, -(-outputs // tile.lanes), count, *starts
    sizes += _plan(out, (1, 1), 1, positions)[2:5]
    units, work = -(-count // tile.rows), count * prod(filters) // PRODUCTS_PER_ELEMENT
    return tile.lanes, _bound(_sum_core, depthwise, tile, dtype, sizes, units, work)


def sum_windows(
    images: np.ndarray,
    filters: np.ndarray,
    grid: Grid,
    out: np.ndarray,
    positions: Grid,
    depthwise: bool = False,
) -> None:
    """Write the sums over windows of images times filters to `out` (n, rows, columns, outputs).

    Filters are (height, width, channels of a group, groups, outputs of a group), with any strides;
    if `depthwise`, (height, width, 1, 1, channels), and images have the slack of `slack_of`.
    `positions` has the start and the steps of rows and columns in `out`.
    """
    if depthwise and _merges(images.shape[3], images.dtype, grid, positions):
        *taps, channels = filters.shape
        rows, width = grid.size
        repeated = np.empty((*taps, width, channels), filters.dtype)
        repeated[...] = filters[..., None, :]
        filters = repeated.reshape(*taps, width * channels)
        grid, positions = (g._replace(size=(rows, 1)) for g in (grid, positions))
    key = images.dtype, images.shape, filters.shape, grid, out.shape, positions, depthwise
    lanes, run = _sum_launch(*key)
    rows = _filter_rows(filters, lanes)
    run(images, rows, out)


@lru_cache(1024)
def _correlate_launch(
    dtype: np.dtype, images: Shape, upstream: Shape, window: Pair, grid: Grid, depthwise: bool
) -> tuple[Shape, Callable[..., object]]:
    """Return the shape of the sums, and what runs the kernel."""
    groups, outputs = upstream[3:]
    plan = _plan(images, window, groups, grid, depthwise)
    tile, taps = _tile(dtype, outputs), plan[5] * plan[7] * plan[9]
    pitch, tiles = -(-outputs // tile.lanes) * tile.lanes, -(-taps // tile.rows)
    size = max(tiles * tile.rows * groups * pitch * dtype.itemsize, 1)
    lines, chunks = images[0] * grid.size[0], max(MAX_CHUNK_BYTES // size, 1)
    chunk = max(-(-CHUNK // grid.size[1]), -(-lines // chunks))
    sizes = *plan, outputs, pitch, tiles, lines, chunk
    work = prod(upstream[:4]) * pitch * taps // PRODUCTS_PER_ELEMENT
    shape = -(-lines // chunk), tiles, groups, tile.rows, pitch
    units = prod(shape[:2])
    return shape, _bound(_correlate_core, depthwise, tile, dtype, sizes, units, work)


def correlate(
    images: np.ndarray, upstream: np.ndarray, window: Pair, grid: Grid, depthwise: bool = False
) -> np.ndarray:
    """Return the transpose of `sum_windows` by its filters: (*window, channels of a group, groups,
    outputs).

    Upstream is (n, rows, columns, groups, outputs of a group), with the slack of `slack_of`; if
    `depthwise`, images have it, too.
    """
    columns = outputs = upstream.shape[4]
    if depthwise and _merges(outputs, images.dtype, grid):
        n, rows, width, *_ = upstream.shape
        columns = width * outputs
        upstream, grid = upstream.reshape(n, rows, 1, 1, columns), grid._replace(size=(rows, 1))
    key = images.dtype, images.shape, upstream.shape, window, grid, depthwise
    shape, run = _correlate_launch(*key)
    groups = upstream.shape[3]
    channels = 1 if depthwise else images.shape[3] // groups
    sums = np.empty(shape, images.dtype)
    run(images, upstream, sums)
    total = sums[0] if len(sums) == 1 else quiet.run(np.add.reduce, sums, 0)
    total = total.transpose(0, 2, 1, 3).reshape(shape[1] * shape[3], groups, shape[4])
    total = np.ascontiguousarray(total[: prod(window) * channels, :, :columns])
    if columns != outputs:
        total = quiet.run(np.add.reduce, total.reshape(len(total), 1, -1, outputs), 2)
    return total.reshape(*window, channels, groups, outputs)
