"""`python -m benchmarks.kernels`: each kernel against NumPy's, PyTorch's and JAX's function.

One thread, 100,000 elements; reductions over the last and the first axis of (4096, 1000).
"""

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks import THREADS
from tinygrad_cg._core.primitive import OPS, Primitive
from tinygrad_cg._tour.console import table
from tinygrad_cg._tour.timing import medians

PEERS = tuple(name for name in ("numpy", "torch", "jax") if importlib.util.find_spec(name))
LIBRARIES = ("tinygrad_cg", *PEERS)
DTYPES = ("float64", "float32")
WARM = 0.01  # seconds: for longer than a millisecond after JAX all others are slower


@dataclass(frozen=True)
class Function:
    """An elementary function: our record, and the peers' names for it.

    Operands are drawn from `low` to `high`. A name is looked up in the library's module, in
    dotted form; None where it has none.
    """

    name: str
    low: float
    high: float
    numpy: str | None = None
    torch: str | None = None
    jax: str | None = None
    operands: int = 1

    def data(self, size: int, dtype: str) -> list[np.ndarray]:
        """Return the operands, the same on every run."""
        rng = np.random.default_rng(size)
        return [rng.uniform(self.low, self.high, size).astype(dtype) for _ in range(self.operands)]

    def build(self, library: str, size: int, dtype: str) -> Callable[[], Any] | None:
        """Return the call to be timed; None if the library has no such function."""
        data = self.data(size, dtype)
        if library == "tinygrad_cg":
            kernel = OPS[self.name].kernel
            return lambda: kernel(*data)
        function = _found(library, getattr(self, library))
        return function and _call(library, function, data)


RANGES = {  # what operands are drawn from, where that is not what the record is tested on
    **dict.fromkeys(("exp", "exp2", "sinh", "cosh", "tanh", "arctan", "arctan2"), (-5, 5)),
    **dict.fromkeys(("arcsinh", "sigmoid", "softplus", "log_sigmoid", "hypot", "cbrt"), (-5, 5)),
    "logaddexp": (-5, 5),
    **dict.fromkeys(("log", "log2", "log10", "lgamma", "digamma", "sqrt", "rsqrt"), (0.1, 10)),
    **dict.fromkeys(("sin", "cos", "tan"), (-10, 10)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh", "erfinv"), (-0.99, 0.99)),
    **dict.fromkeys(("expm1", "erf", "erfc"), (-3, 3)),
    **dict.fromkeys(("power", "xlogy"), (0.1, 5)),
    "log1p": (-0.5, 10),
    "arccosh": (1.01, 10),
}
# Names of the peers that are not the record's. JAX has NumPy's names, but for these.
TORCH: dict[str, str | None] = {
    "power": "pow",
    "cbrt": None,
    "max": "amax",
    "min": "amin",
    "variance": "var",
    "softplus": "nn.functional.softplus",
    "log_sigmoid": "nn.functional.logsigmoid",
    "euclidean_norm": "linalg.vector_norm",
}
JAX: dict[str, str | None] = {
    **{name: f"nn.{name}" for name in ("sigmoid", "softplus", "log_sigmoid")},
    **{name: f"nn.{name}" for name in ("softmax", "log_softmax")},
    **{name: f"scipy.special.{name}" for name in ("erf", "erfc", "erfinv", "digamma", "xlogy")},
    "lgamma": "scipy.special.gammaln",
    "logsumexp": "scipy.special.logsumexp",
    "rsqrt": "lax.rsqrt",
    "euclidean_norm": None,
}
NUMPY: dict[str, str | None] = {"variance": "var", "euclidean_norm": "linalg.norm"}


def peers(name: str) -> dict[str, str | None]:
    """Return the dotted names of a record's function in the other libraries."""
    numpy = NUMPY.get(name, name if hasattr(np, name) else None)
    return {
        "numpy": numpy,
        "torch": TORCH.get(name, name),
        "jax": JAX.get(name, numpy and f"numpy.{numpy}"),
    }


def function(record: Primitive) -> Function:
    """Return what to time of an elementary function."""
    low, high = RANGES.get(record.name) or (record.samples[0].low, record.samples[0].high)
    return Function(record.name, low, high, operands=len(record.inputs), **peers(record.name))


FUNCTIONS = tuple(function(record) for record in OPS.values() if record.ulps is not None)
"""The functions whose records say how far off they may be."""


@dataclass(frozen=True)
class ReductionCase:
    """A reduction, or a function along an axis: our record, and the peers' names for it."""

    name: str
    numpy: str | None = None
    torch: str | None = None
    jax: str | None = None

    def build(
        self, library: str, shape: tuple[int, ...], axis: int, dtype: str
    ) -> Callable[[], Any] | None:
        """Return the call to be timed; None if the library has no such function."""
        data = _matrix(shape, dtype)
        if library == "tinygrad_cg":
            record, params = OPS[self.name], dict(OPS[self.name].samples[0].params)
            params["axis"] = (axis,) if isinstance(params["axis"], tuple) else axis
            return lambda: record.run(data, **params)
        name = getattr(self, library)
        function = _found(library, name)
        if function is None:
            return None
        more: dict[str, Any] = {"correction": 0} if self.name == "variance" else {}
        keyword = "dim" if library == "torch" else "axis"
        return _call(library, lambda x: function(x, **{keyword: axis}, **more), [data])


@lru_cache(maxsize=1)
def _matrix(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return one array for all libraries, where a cache line begins.

    JAX copies arrays to such an address, and PyTorch makes its own there; 16 bytes on, where
    NumPy's begin, a sum takes a fifth longer.
    """
    data = np.random.default_rng(0).normal(size=shape).astype(dtype)
    memory = np.empty(data.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    view = memory[start : start + data.nbytes].view(dtype).reshape(shape)
    view[...] = data
    return view


REDUCTIONS = tuple(
    ReductionCase(name, **peers(name)) for name, record in OPS.items() if record.kind == "reduction"
)


def _found(library: str, name: str | None) -> Callable | None:
    """Return a function by its dotted name, or None."""
    if name is None:
        return None
    *modules, last = name.split(".")
    module = importlib.import_module(".".join([library, *modules]))
    return getattr(module, last)


def _call(library: str, function: Callable, data: list[np.ndarray]) -> Callable[[], Any]:
    """Return a call on the library's own arrays that ends when the work is done."""
    if library == "numpy":
        return lambda: function(*data)
    if library == "torch":
        torch = importlib.import_module("torch")
        torch.set_num_threads(THREADS)
        tensors = [torch.from_numpy(array) for array in data]
        return lambda: function(*tensors)
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    compiled, arrays = jax.jit(function), [jax.numpy.asarray(array) for array in data]
    return lambda: compiled(*arrays).block_until_ready()


def row(name: str, dtype: str, builds: dict[str, Callable | None], seconds: float) -> list[str]:
    """Return our median time, the best peer's as a multiple of it, and each peer's."""
    calls = {library: call for library, call in builds.items() if call is not None}
    taken = medians(calls, seconds, 1000, warm=WARM)
    ours = taken.pop("tinygrad_cg")
    best = f"{min(taken.values()) / ours:.2f}" if taken else ""
    cells = [f"{taken[peer] / ours:.2f}" if peer in taken else "" for peer in PEERS]
    return [name, dtype, f"{ours * 1e6:.1f}", best, *cells]


def tables(seconds: float, names: list[str]) -> None:
    """Print both tables, of all records or those named."""
    headers = ("", "dtype", "us", "best/ours", *PEERS)
    elementary = [
        row(
            function.name,
            dtype,
            {lib: function.build(lib, 100_000, dtype) for lib in LIBRARIES},
            seconds,
        )
        for function in FUNCTIONS
        for dtype in DTYPES
        if not names or function.name in names
    ]
    print(f"{THREADS} thread(s), 100,000 elements; peers' times as multiples of ours.")
    table(headers, elementary)
    print(f"\n{THREADS} thread(s), over an axis of (4096, 1000).")
    reductions = [
        row(
            f"{reduction.name}, axis {axis}",
            dtype,
            {lib: reduction.build(lib, (4096, 1000), axis, dtype) for lib in LIBRARIES},
            seconds,
        )
        for reduction in REDUCTIONS
        for axis in (1, 0)
        for dtype in DTYPES
        if not names or reduction.name in names
    ]
    table(headers, reductions)


def main() -> None:
    """Measure and print, in a process that has started with the number of threads."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("names", nargs="*", help="which records; all by default")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row")
    chosen = parser.parse_args()
    if chosen.threads != THREADS:
        command = [sys.executable, "-m", "benchmarks.kernels", *sys.argv[1:]]
        environment = os.environ | {"BENCHMARK_THREADS": str(chosen.threads)}
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)
    tables(chosen.seconds, chosen.names)


if __name__ == "__main__":
    main()
