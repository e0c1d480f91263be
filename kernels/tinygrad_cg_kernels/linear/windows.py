"""Sums of products over windows on images: a convolution, and its transpose by the filters.

Images are (n, height, width, channels), padded and contiguous. A tile of results, some windows by
one or two vectors of outputs, stays in registers while the products are added, so no patches are
copied. Each result is a sum in the same order on any number of threads, and for any size of tiles.
(On an EPYC with vectors of 256 bits, copies of patches and products by BLAS took 1.1 to 6 times as
long for 1 to 64 channels.)

If channels are filtered one by one (`depthwise`), outputs are channels, and a tile adds products of
vectors; otherwise, each of its rows has one factor for all outputs.
"""

from collections.abc import Callable, Sequence
from functools import cache
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


class Part(NamedTuple):
    """Some of the results of a convolution, with windows of their own."""

    grid: Grid
    """The windows."""
    positions: Grid
    """The start and the steps of rows and columns in the result."""
    window: Pair
    """Rows and columns of taps."""


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


def slack_of(dtype: np.dtype, outputs: int, depthwise: bool) -> int:
    """Return how many elements of memory have to follow an array that is read by outputs.

    The last vector of a row also reads the next row; results of these numbers are not used. If
    `depthwise`, a row may be a line of windows.
    """
    if depthwise:
        return 2 * machine.vector_bits() // 8 // dtype.itemsize
    lanes = _tile(dtype, outputs).lanes
    return lanes if outputs % lanes else 0


def _merges(channels: int, dtype: np.dtype, *grids: Grid) -> bool:
    """Return whether a line of windows is computed as one: if channels do not fill a vector."""
    few = 8 * channels * dtype.itemsize < machine.vector_bits()
    short = channels * grids[0].size[1] <= MAX_MERGED
    return few and short and all(grid.strides[1] == 1 for grid in grids)


def _of_lines(grid: Grid) -> Grid:
    """Return a grid with one window for each row, all of a line."""
    return grid._replace(size=(grid.size[0], 1))


# The kernels. `sizes` has numbers for all units, then those of `_plan` for each part.


@jitable
def _read(sizes, at):
    """Return the numbers of `_plan` that begin at a place: of positions, and of taps."""
    positions = sizes[at], sizes[at + 1], sizes[at + 2], sizes[at + 3], sizes[at + 4]
    at += 5
    return positions, (sizes[at], sizes[at + 1], sizes[at + 2], sizes[at + 3], sizes[at + 4])


@cache
def _sum_core(depthwise: bool, rows: int, lanes: int) -> Callable:
    """Return the core of a convolution; a unit is a tile of windows of a part, with all outputs."""
    size, step = rows * lanes, int(depthwise)

    def sum_windows(unused, none, begin, units, sizes, images, filters, out):
        wide_vectors()
        parts, groups, channels, outputs = sizes[0], sizes[1], sizes[2], sizes[3]
        blocks, length, out_image, part = sizes[4], sizes[5], sizes[6], 7
        tile, spare = stack_array(size, images.dtype), stack_array(size, images.dtype)
        starts, places = stack_array(rows, INT64), stack_array(rows, INT64)
        for _ in range(parts):
            positions, steps = _read(sizes, part)
            width, height, across, down, image = positions
            tall, row_step, broad, column_step, run = steps
            windows, start, filter_start = sizes[part + 10], sizes[part + 11], sizes[part + 12]
            out_start, out_across, out_down = sizes[part + 13], sizes[part + 14], sizes[part + 15]
            part += PART_SIZES
            first, tiles = max(begin, 0), (windows + rows - 1) // rows
            count = min(begin + units, tiles) - first
            begin -= tiles
            for block in range(groups * blocks if count > 0 else 0):
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
                    at = block * length + filter_start
                    for i in range(tall):
                        for j in range(broad):
                            tap = i * row_step + j * column_step
                            for k in range(tap, tap + run):
                                add_products(
                                    tile, rows, lanes, images, starts, k, step, filters, at
                                )
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
        groups, channels, outputs, pitch = sizes[0], sizes[1], sizes[2], sizes[3]
        tiles, lines, chunk = sizes[4], sizes[5], sizes[6]
        positions, steps = _read(sizes, 7)
        width, height, across, down, image = positions
        tall, row_step, broad, column_step, run = steps
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
                        places[p] = ((unit * rows + p) * groups + group) * pitch + block
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
    """Return the numbers that describe windows: those of positions, then those of taps."""
    _, height, width, channels = shape
    line, run, (rows, columns) = width * channels, channels // groups, window
    (down, across), (row, column) = grid.strides, grid.dilations
    if depthwise:
        run = 1
    elif column == 1 and groups == 1:  # a row of the window is in one piece
        columns, run = 1, columns * run
    positions = (grid.size[1], grid.size[0], across * channels, down * line, height * line)
    return (*positions, rows, row * line, columns, column * channels, run)


PART_SIZES = 16
"""The numbers of a part, those of `_plan` among them."""


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
        rows[:, block, ..., : part.shape[-1]] = part.transpose(2, 0, 1, 3)
    return rows


@cache
def _kernel(core: Callable, depthwise: bool, tile: _Tile) -> Ranged:
    function = core(depthwise, *tile)
    name = f"{'depthwise_' * depthwise}{function.__name__}_{tile.rows}_{tile.lanes}"
    return Ranged(name, function, 7 + PART_SIZES, ())


def _bound(
    core: Callable, depthwise: bool, tile: _Tile, dtype: np.dtype, sizes: Shape, *work: int
) -> Callable[..., object]:
    """Return a function of images, rows of vectors, and results. `work` are units and elements."""
    if not work[0]:
        return lambda *arrays: None
    return _kernel(core, depthwise, tile).bound((dtype,) * 3, sizes, *work)


def window_sums(
    dtype: np.dtype,
    images: Shape,
    filters: Shape,
    out: Shape,
    parts: Sequence[Part],
    depthwise: bool = False,
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], object]:
    """Return a function of images, filters and `out`, arrays of these shapes and dtype.

    It writes to `out` (n, rows, columns, outputs) the sums over windows of images times filters.
    Filters are (taps, channels of a group, groups, outputs of a group), with any strides: the taps
    of one part follow those of another. If `depthwise`, they are (taps, 1, 1, channels), and images
    have the slack of `slack_of`.
    """
    taps, channels, groups, outputs = filters
    repeats = 1
    if depthwise and parts and _merges(images[3], dtype, *parts[0][:2]):
        repeats = parts[0].grid.size[1]
        outputs *= repeats
        parts = [
            Part(_of_lines(grid), _of_lines(positions), window) for grid, positions, window in parts
        ]
    tile = _tile(dtype, outputs)
    blocks, count, tap, sizes, units = -(-outputs // tile.lanes), 0, 0, [], 0
    for grid, positions, window in parts:
        start, target = (
            (at.start[0] * shape[2] + at.start[1]) * shape[3]
            for at, shape in ((grid, images), (positions, out))
        )
        windows = images[0] * prod(grid.size)
        steps = _plan(out, (1, 1), 1, positions)[2:4]
        plan = _plan(images, window, groups, grid, depthwise)
        sizes += [*plan, windows, start, tap * channels * tile.lanes, target, *steps]
        tap += prod(window)
        count += windows * prod(window)
        units += -(-windows // tile.rows)
    length = taps * channels * tile.lanes
    head = len(parts), groups, channels, outputs, blocks, length, prod(out[1:])
    work = count * channels * groups * outputs // PRODUCTS_PER_ELEMENT
    bound = _bound(_sum_core, depthwise, tile, dtype, (*head, *sizes), units, work)

    def run(images: np.ndarray, filters: np.ndarray, out: np.ndarray) -> None:
        if repeats > 1:
            filters = filters[..., None, :].repeat(repeats, -2).reshape(taps, 1, 1, outputs)
        bound(images, _filter_rows(filters, tile.lanes), out)

    return run


def filter_sums(
    dtype: np.dtype,
    images: Shape,
    upstream: Shape,
    window: Pair,
    grid: Grid,
    depthwise: bool = False,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the transpose of `window_sums` by its filters, a function of images and upstream.

    Upstream is (n, rows, columns, groups, outputs of a group), with the slack of `slack_of`; if
    `depthwise`, images have it, too. The result is (*window, channels of a group, groups, outputs).
    """
    groups, outputs = upstream[3:]
    width = grid.size[1] if depthwise and _merges(outputs, dtype, grid) else 1
    if width > 1:
        outputs, grid = width * outputs, _of_lines(grid)
    channels = 1 if depthwise else images[3] // groups
    shape = *window, channels, groups, outputs // width
    plan = _plan(images, window, groups, grid, depthwise)
    tile, taps = _tile(dtype, outputs), prod(window) * channels
    pitch, tiles = -(-outputs // tile.lanes) * tile.lanes, -(-taps // tile.rows)
    size = max(tiles * tile.rows * groups * pitch * dtype.itemsize, 1)
    count, limit = images[0] * grid.size[0], max(MAX_CHUNK_BYTES // size, 1)
    chunk = max(-(-CHUNK // grid.size[1]), -(-count // limit))
    sizes = groups, images[3] // groups, outputs, pitch, tiles, count, chunk, *plan
    work = prod(upstream[:4]) * pitch * taps // PRODUCTS_PER_ELEMENT
    chunks = -(-count // chunk)
    units = chunks * tiles
    bound = _bound(_correlate_core, depthwise, tile, dtype, sizes, units, work)

    def correlate(images: np.ndarray, upstream: np.ndarray) -> np.ndarray:
        sums = np.empty((chunks, tiles * tile.rows, groups, pitch), dtype)
        bound(images, upstream, sums)
        total = sums[0] if chunks == 1 else quiet.run(np.add.reduce, sums, 0, dtype)
        total = np.ascontiguousarray(total[:taps, :, :outputs])
        if width > 1:
            total = total.reshape(taps, width, outputs // width)
            total = quiet.run(np.add.reduce, total, 1, dtype)
        return total.reshape(shape)

    return correlate
