"""Results of the simulated device compared with those of the CPU."""

from typing import Any

import numpy as np

from tinygrad_cg._core.primitive import OPS, Primitive

VECTORS = {"eig", "eigh", "svd"}
"""Operations whose vectors have signs and phases that the device's library chooses."""

TOLERANCE = {"e": 2e-3, "f": 3e-6, "F": 3e-6, "d": 1e-12, "D": 1e-12}


def of_kind(kind: str) -> list[Primitive]:
    return [record for record in OPS.values() if record.kind == kind]


ELEMENTWISE = of_kind("elementwise")


def difference(name: str, results: Any, want: Any) -> str | None:
    """Return how a result of the device differs from the CPU's, in dtype, shape or numbers."""
    if isinstance(want, (list, tuple)):
        if len(results) != len(want):
            return f"{name}: {len(results)} results, not {len(want)}"
        pairs = zip(results, want, strict=True)
        return next(filter(None, [difference(name, *pair) for pair in pairs]), None)
    got = results.get()
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{name}: {got.dtype} {got.shape}, not {want.dtype} {want.shape}"
    error = TOLERANCE.get(got.dtype.char, 0.0)
    if np.allclose(got, want, rtol=error, atol=error, equal_nan=True):
        return None
    return f"{name}: {got.ravel()[:4]}, not {want.ravel()[:4]}"
