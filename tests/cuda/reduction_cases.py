"""Reductions and normalisations on the simulated device, against the CPU: a program.

It prints how many cases it compared, what differs, and which runs gave other bits than the first.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.cuda.comparison import difference, of_kind
from tinygrad_cg_kernels.cuda import adapter, kernels, layouts
from tinygrad_cg_kernels.reduce.moments import Moment
from tinygrad_cg_kernels.reduce.reduction import Reduction
from tinygrad_cg_kernels.reduce.scan import Scan
from tinygrad_cg_kernels.reduce.search import ArgReduction
from tinygrad_cg_kernels.reduce.softmax import Normalisation, log_softmax_grad, softmax_grad

AXES = [
    ((37,), (0,)),
    ((3, 5), (0, 1)),
    ((2, 19), (1,)),
    ((21, 3), (0,)),
    ((2, 5, 3), (1,)),
    ((2, 5, 3), (0, 2)),
    ((4, 1), (1,)),
    ((), ()),
    ((2, 3), ()),
    ((7, 3), (1,)),
    ((45, 2), (0,)),
    ((5, 3, 2, 3), (1, 3)),
]
GRADIENTS = softmax_grad, log_softmax_grad
DTYPES = "dfeDFbBiq?"
SPECIAL = np.array([1.0, -0.0, np.nan, np.inf, -np.inf, 3.0, np.nan, 2.0])


def numbers(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    values = np.asarray(rng.normal(size=shape))
    if dtype.kind == "b":
        return np.asarray(values > 0.5)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0, 3, shape), dtype)
    return np.asarray(
        values + (1j * values[..., ::-1] if dtype.kind == "c" and shape else 0), dtype
    )


def unsupported(kernel: Any, arguments: list[Any]) -> bool:
    try:
        kernel(*arguments)
    except TypeError:
        return True
    return False


def cases() -> Iterator[tuple[str, Any, list[Any]]]:
    records = [*of_kind("reduction"), *of_kind("normalisation")]
    for index, kernel in enumerate({record.kernel: None for record in records}):
        if isinstance(kernel, Scan):
            continue
        axes = isinstance(kernel, (Reduction, Moment))
        for k, (shape, reduced) in enumerate(AXES):
            if not axes and len(reduced) != 1:
                continue
            codes = {"d", DTYPES[(index + k) % len(DTYPES)]}
            for dtype in map(np.dtype, codes):
                operands = [numbers(dtype, shape)]
                if kernel in GRADIENTS:
                    operands.append(numbers(dtype, shape)[::-1].copy())
                axis = [reduced, k % 2 == 0] if axes else [reduced[0]]
                if not unsupported(kernel, [*operands, *axis]):
                    yield f"{kernel.name} {shape} {reduced} {dtype}", kernel, [*operands, *axis]
        axis = (0,) if axes else 0
        more = 1 + (kernel in GRADIENTS)
        wide = numbers(np.dtype(float), (6, 4))
        yield f"{kernel.name} strides", kernel, [wide[::-2, ::2]] * more + [axis]
        yield f"{kernel.name} transposed", kernel, [wide.T] * more + [axis]
        if isinstance(kernel, (Reduction, ArgReduction, Moment)):
            yield f"{kernel.name} special", kernel, [SPECIAL, axis]
            yield f"{kernel.name} last special", kernel, [SPECIAL[3:6], axis]
        if isinstance(kernel, Moment):
            for dtype, sizes in (("d", [3e200, 3e-200, 1]), ("f", [1e30, 1e-30, 1])):
                rows = np.multiply.outer(np.array(sizes), [1.0, -2.0, 0.5]).astype(dtype)
                yield f"{kernel.name} sizes {dtype}", kernel, [rows, (1,)]
        yield f"{kernel.name} empty", kernel, [np.zeros((3, 0))] * more + [axis]
        if not isinstance(kernel, Normalisation):
            yield f"{kernel.name} nothing", kernel, [np.zeros((0, 3))] * more + [axis]


def run(kernel: Any, arguments: list[Any]) -> Any:
    """Return the result on the device, or the words of the error."""
    library = adapter.array_module()
    run_on_device = kernels.device_run(kernel)
    assert run_on_device is not None
    parts = [library.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
    try:
        return run_on_device(*parts)
    except ValueError as error:
        return str(error)


def expected(kernel: Any, arguments: list[Any]) -> Any:
    try:
        return kernel(*arguments)
    except ValueError as error:
        return str(error)


def compare(name: str, kernel: Any, arguments: list[Any]) -> str | None:
    want, result = expected(kernel, arguments), run(kernel, arguments)
    if isinstance(want, str) or isinstance(result, str):
        return (
            None if isinstance(result, str) and result == want else f"{name}: {result}, not {want}"
        )
    kernels._made.cache_clear()
    layouts.NARROW, limit = 0, layouts.NARROW  # indices of 64 bits
    again = run(kernel, arguments)
    layouts.NARROW = limit
    kernels._made.cache_clear()
    if again.get().tobytes() != result.get().tobytes():
        return f"{name}: other bits at the second run"
    return difference(name, result, want)


def main() -> None:
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    differences, count = [], 0
    for name, kernel, arguments in cases():
        if chosen in name:
            count += 1
            differences.append(compare(name, kernel, arguments))
    print(
        json.dumps(
            {
                "cases": count,
                "differences": [difference for difference in differences if difference],
            }
        )
    )


if __name__ == "__main__":
    main()
