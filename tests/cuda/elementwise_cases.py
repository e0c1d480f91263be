"""Elementwise kernels of all records on the simulated device, against the CPU: a program.

It prints how many cases it compared, and what differs.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.cuda.comparison import ELEMENTWISE, difference
from tinygrad_cg_kernels.cuda import adapter, elementwise, kernels
from tinygrad_cg_kernels.loops.engine import Elementwise, Pointwise

FURTHER = "efFDbBiIqQ?"
SHAPES = {
    1: [((),), ((0, 3),), ((1,),)],
    2: [((), ()), ((2, 1), (1, 3)), ((2, 2, 1), (3,)), ((0, 3), (1,)), ((3,), ())],
    3: [((2, 1), (), (1, 3)), ((3,), (2, 3), (1, 1)), ((0,), (), (1,))],
}


def numbers(record: Any, position: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return values from the interval that a record gives for an operand."""
    if record.kernel.kind == "select" and position == 0:
        return np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2 == 1
    rng = np.random.default_rng(position)
    if dtype.kind in "biu":
        return rng.integers(1, 4, shape).astype(dtype)
    interval = record.samples[position] if position < len(record.samples or ()) else None
    low, high = getattr(interval, "low", 0.5), getattr(interval, "high", 1.5)
    values = rng.uniform(low, high, shape)
    return (values + 1j * rng.uniform(low, high, shape) if dtype.kind == "c" else values).astype(
        dtype
    )


def layouts(array: np.ndarray) -> Iterator[np.ndarray]:
    """Views of the values of an array: transposed memory, every second element, backwards."""
    yield np.asfortranarray(array)
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    yield wide[..., ::2]
    yield array[..., ::-1].copy()[..., ::-1]


def compare(name: str, cpu: Callable, operands: list[np.ndarray]) -> str | None:
    """Return what differs between the kernel of the CPU and the device's."""
    run = kernels.device_run(cpu)
    assert run is not None
    library = adapter.array_module()
    results = run(*[library.asarray(operand) for operand in operands])
    return difference(name, results, cpu(*operands))


def cases() -> Iterator[tuple[str, Any, list[np.ndarray]]]:
    for index, record in enumerate(ELEMENTWISE):
        kernel, count = record.kernel, record.kernel.inputs
        taken = [c for c in FURTHER if any(takes(np.dtype(c)) for takes in record.dtypes)]
        whole = not any(takes(np.dtype(float)) for takes in record.dtypes)
        further = taken[index % len(taken)] if taken else "d"
        for code in {"q" if whole else "d", further}:
            dtype = np.dtype(code)
            operands = [numbers(record, k, dtype, (2, 3)) for k in range(count)]
            if compiled(kernel, operands):
                yield f"{record.name} {dtype}", kernel, operands
        dtype = np.dtype("q" if whole else "d")
        choices = SHAPES[count]
        shapes = choices[index % len(choices)]
        operands = [numbers(record, k, dtype, shape) for k, shape in enumerate(shapes)]
        yield f"{record.name} {shapes}", kernel, operands
        operands = [numbers(record, k, dtype, (2, 3)) for k in range(count)]
        views = [list(layouts(operand)) for operand in operands]
        chosen = [views[k][(index + k) % 3] for k in range(count)]
        yield f"{record.name} strides", kernel, chosen


def compiled(kernel: Elementwise, operands: list[np.ndarray]) -> bool:
    """Return whether the CPU has a kernel for dtypes: few functions take all that they could."""
    try:
        kernel(*operands)
    except TypeError:
        return False
    return True


def _parts(x, y):
    return x * y, x < y, x - y


USERS = {
    "several": Pointwise("several", _parts, 2),
    "single": Pointwise("single", lambda x: x * x + 1, 1),
}


OF_MANY = {
    2: Pointwise("two", lambda x, y: x - y, 2),
    3: Pointwise("three", lambda x, y, z: x - y * z, 3),
}


def users() -> Iterator[tuple[str, Any, list[np.ndarray]]]:
    """Functions of users, whose results may be several."""
    x, y = np.linspace(0.5, 2, 6).reshape(2, 3), np.array([1.0, 2.0, 0.25])
    yield "several", USERS["several"], [x, y]
    yield "several float32", USERS["several"], [x.astype("f"), y.astype("f")]
    yield "single int", USERS["single"], [np.arange(4)]
    for code in "bhfD":  # four elements a thread, two, one
        yield f"single {code}", USERS["single"], [np.arange(70).astype(code)]


def transposed(n: int = 1) -> Iterator[tuple[str, Any, list[np.ndarray]]]:
    """Operands that are read by tiles, with edges, other dimensions, and others that are not."""
    x = np.arange(70.0 * n * n).reshape(7 * n, 10 * n)
    y = np.arange(70 * n * n).reshape(10 * n, 7 * n)
    block = np.arange(120 * n**3, dtype="f").reshape(4 * n, 5 * n, 6 * n)
    for operands in [
        [x.T, y],
        [y, x.T],
        [x.T, x[::-1].T],
        [(x * (1 + k)).astype("D").T for k in range(3)],  # wide numbers: no tiles
    ]:
        yield f"{len(operands)} of {x.T.shape}", OF_MANY[len(operands)], operands
    for axes in [(2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)]:
        other = np.arange(6.0 * n).reshape(-1, 1) if axes[1] == 2 else np.float64(3)
        yield f"axes {axes}", OF_MANY[2], [block.transpose(axes), np.asarray(other)]
    yield "a reversed transpose", OF_MANY[2], [x[:, ::-1].T, y[::-1]]


def main() -> None:
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    differences, count, tiled, find = [], 0, [], elementwise._tiles

    def noted(*arguments: Any) -> Any:
        tiled.append(find(*arguments))
        return tiled[-1]

    elementwise._tiles = noted
    for name, kernel, operands in [*cases(), *users(), *transposed()]:
        if chosen in name:
            count += 1
            differences.append(compare(name, kernel, operands))
    print(
        json.dumps(
            {
                "cases": count,
                "tiles": sum(tiles[0].count("tiles") for tiles in tiled if tiles),
                "differences": [difference for difference in differences if difference],
            }
        )
    )


if __name__ == "__main__":
    main()
