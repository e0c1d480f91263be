"""Scans, gather, scatter, sorting and products on the simulated device, against the CPU: a program.

It prints how many cases it compared, and what differs.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.cuda.comparison import difference
from tests.cuda.reduction_cases import SPECIAL, numbers
from tinygrad_cg_kernels.cuda import adapter, bounds, kernels
from tinygrad_cg_kernels.linear.matmul import matmul
from tinygrad_cg_kernels.move import gather, order, scatter
from tinygrad_cg_kernels.reduce import scan

DTYPES = [np.dtype(code) for code in "dfeDq?"]
TWICE = np.array([2, 0, -1, 2, 2, -4])
MANY = np.array([2] * 11 + [0] * 4 + [2] * 3 + [1, -1, 3] * 3 + [0])
"""Indices that occur in one chunk of the simulated device, and in several."""
ROWS = np.array([[3, 3, -1], [0, 1, 1]])


def scans() -> Iterator[tuple[Any, list[Any]]]:
    shapes = ((19,), 0), ((2, 6), 1), ((9, 2), 0), ((2, 5, 2), 1), ((5, 3), 1), ((3, 19), 1)
    for k, (shape, axis) in enumerate(shapes):
        for dtype in {DTYPES[0], DTYPES[k], DTYPES[-1 - k]}:
            for kernel in (scan.cumsum, scan.cumprod):
                yield kernel, [numbers(dtype, shape), axis, k % 2 == 1, k > 1]
        x, y = numbers(DTYPES[k % 2], shape), numbers(DTYPES[k % 2], shape)
        for kernel in (scan.recurrence, scan.pull):
            yield kernel, [x, axis, k > 1, k % 2 == 1, y]
    zeros_and_infinities = np.resize([0.0, np.inf, 2.0, 3.0], (19, 2))
    yield scan.pull, [zeros_and_infinities, 0, False, True, np.resize([0.0, 1.0, 0.0], (19, 2))]
    yield scan.cumsum, [np.zeros((0, 3)), 0]
    yield scan.cumsum, [np.zeros((3, 0)), 0]


def moves() -> Iterator[tuple[Any, list[Any]]]:
    for dtype in DTYPES:
        x, y = numbers(dtype, (4, 2, 3)), numbers(dtype, (2, 5, 4))
        yield gather.gather, [x, TWICE]
        yield gather.gather, [y.transpose(0, 2, 1), ROWS, 1, 1]
        yield gather.scatter_add, [(4, 3), dtype, TWICE, numbers(dtype, (6, 3))]
        yield gather.index_add, [(4, 3), dtype, (TWICE,), numbers(dtype, (6, 3))]
        yield order.sort, [y, 1, True]
        if dtype.kind != "c":
            yield scatter.segment_extremum, [x, np.array([2, 0, -1, 2]), 4, dtype.kind != "f"]
            yield scatter.segment_extremum, [y, ROWS.repeat(2, 1)[:, :5], 4, True, 1]
    for dtype in (DTYPES[0], DTYPES[3], DTYPES[4]):  # whole numbers: any order gives the same bits
        values = np.arange(3 * MANY.size * 2).reshape(3, MANY.size, 2).astype(dtype)
        yield gather.scatter_add, [(3, 4, 2), dtype, MANY, values, 1]
        yield gather.scatter_add, [(4,), dtype, MANY, values[1, :, 0]]
    for largest in (False, True):
        yield scatter.segment_extremum, [numbers(DTYPES[0], (MANY.size, 2)), MANY, 5, largest]
    yield scatter.last_sources, [MANY, 4]
    for dtype in "bBHQ":
        yield gather.gather, [np.arange(200.0), np.array([0, 99, 127], dtype)]
    yield scatter.flat_positions, [np.array([[[0, 2], [1, 0]], [[1, 2], [0, 0]]], "i"), (2, 3)]
    x = numbers(DTYPES[0], (2, 4, 3))
    ints = numbers(np.dtype("q"), (3, 7))
    yield gather.gather, [x, np.array([[[1]], [[-3]]]), 2]
    yield scatter.last_sources, [TWICE, 5]
    yield scatter.last_sources, [ROWS, 4, 1]
    yield scatter.segment_extremum, [SPECIAL, np.array([0, 1, 1, 0, 2, 2, 3, 3]), 5, True]
    yield scatter.segment_extremum, [SPECIAL, np.array([0, 1, 1, 0, 2, 2, 3, 3]), 5, False]
    yield gather.gather, [x, np.zeros((0,), int), 1]
    yield gather.scatter_add, [(2, 4, 3), x.dtype, ROWS, numbers(x.dtype, (2, 3, 3)), 1, 1]
    yield gather.scatter_add, [(2, 3, 4), x.dtype, np.array([[3, 3], [0, -1]]), x[:, :3, :2], 2, 1]
    yield gather.scatter_add, [(3,), x.dtype, np.zeros(0, int), np.zeros(0)]
    yield gather.index_add, [(4, 3), x.dtype, (slice(1, 4, 2), 0), np.ones(2)]
    yield gather.index_add, [(4, 2, 3), x.dtype, (np.array([3, 3]), slice(None), 1), x[0, :2, :2]]
    yield gather.index_add, [(3,), x.dtype, (np.array(True),), np.ones((1, 3))]
    yield gather.index_add, [(2, 3), x.dtype, (..., np.array([0, 0])), np.ones((2, 2))]
    yield order.take_along_axis, [x, ROWS.reshape(2, 3, 1)[:, :2] % 3, 2]
    yield order.take_along_axis, [numbers(DTYPES[1], (4, 2)), ROWS.T % 2 - 4, 0]
    yield order.add_along_axis, [(4, 2), x.dtype, ROWS.T, numbers(x.dtype, (3, 2)), 0]
    for descending in (False, True):
        for axis in (0, 1):
            yield order.sort, [ints, axis, descending]
            yield order.argsort, [ints, axis, descending, True]
        yield order.argsort, [np.array([1.0, np.nan, 1.0, -np.inf, np.nan]), 0, descending]
    yield order.one_hot, [np.array([[0, 2, 3], [-1, 1, 1]]), 3, 1, np.dtype("i")]
    yield order.one_hot, [np.array([1, 0]), 2, 0, np.dtype("f")]
    for left, right in [((2, 3), (3, 2)), ((2, 2, 3), (3, 1)), ((3,), (3,)), ((0, 2), (2, 3))]:
        for dtype in DTYPES[:5]:
            yield matmul, [numbers(dtype, left), numbers(dtype, right)]
    yield matmul, [numbers(DTYPES[0], (2, 3)), numbers(DTYPES[1], (3, 2))]


def wrong() -> Iterator[tuple[Any, list[Any]]]:
    x = np.zeros((3, 2))
    for index in (3, -4):
        at = np.array([0, index])
        yield gather.gather, [x, at]
        yield gather.scatter_add, [(3, 2), x.dtype, at, np.ones((2, 2))]
        yield gather.index_add, [(2, 3), x.dtype, (slice(None), at), np.ones((2, 2))]
        yield order.take_along_axis, [x, at.reshape(1, 2), 0]
        yield order.add_along_axis, [(3, 2), x.dtype, at.reshape(1, 2), np.ones((1, 2)), 0]
    yield gather.gather, [x, np.array([1, 2**64 - 1, 0], np.uint64)]
    yield gather.gather, [np.zeros((0, 2)), np.array([0])]
    yield scatter.flat_positions, [np.array([[[0, 2]], [[1, 3]]]), (2, 3)]
    yield scatter.flat_positions, [np.array([[0, -1]], "b"), (2, 3)]
    yield gather.gather, [x, np.array([0.5])]
    yield scatter.last_sources, [np.array([0, 5]), 5]
    yield gather.scatter_add, [(3, 2), x.dtype, np.array([0]), np.ones(3)]
    yield matmul, [x, x]
    yield matmul, [x, np.array(1.0)]


def outcome(run: Any, arguments: list[Any]) -> Any:
    try:
        result = run(*arguments)
        bounds.raise_errors()
        return result
    except (ValueError, IndexError) as error:
        return error


def compare(kernel: Any, arguments: list[Any]) -> str | None:
    name = f"{getattr(kernel, 'name', None) or kernel.__name__} {arguments}"
    run = kernels.device_run(kernel)
    assert run is not None
    to_device = adapter.array_module().asarray
    moved = [to_device(a) if isinstance(a, np.ndarray) else a for a in arguments]
    want, result = outcome(kernel, arguments), outcome(run, moved)
    if isinstance(want, Exception) or isinstance(result, Exception):
        same = type(result) is type(want) and str(result) == str(want)
        return None if same else f"{name}: {result!r}, not {want!r}"
    exact = kernel in (gather.scatter_add, gather.index_add, order.add_along_axis)
    if exact and result.get().tobytes() != want.tobytes():
        return f"{name}: other bits than the CPU's"
    return difference(name, result, want)


def main() -> None:
    cases = [*scans(), *moves(), *wrong()]
    differences = [compare(kernel, arguments) for kernel, arguments in cases]
    print(
        json.dumps(
            {
                "cases": len(cases),
                "differences": [difference for difference in differences if difference],
            }
        )
    )


if __name__ == "__main__":
    main()
