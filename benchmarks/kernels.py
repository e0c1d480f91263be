"""`python -m benchmarks.kernels`: each kernel beside NumPy's, PyTorch's and JAX's function.

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
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._tour.printing import table
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
        """The operands, the same on every run."""
        rng = np.random.default_rng(size)
        return [rng.uniform(self.low, self.high, size).astype(dtype) for _ in range(self.operands)]

    def build(self, library: str, size: int, dtype: str) -> Callable[[], Any] | None:
        """The call to be timed; None if the library has no such function."""
        data = self.data(size, dtype)
        if library == "tinygrad_cg":
            kernel = OPS[self.name].kernel
            return lambda: kernel(*data)
        function = _found(library, getattr(self, library))
        return function and _call(library, function, data)


def alike(name: str, low: float, high: float, operands: int = 1, **names: str | None) -> Function:
    """A function whose name is the same everywhere, but for those given."""
    peers = {"numpy": name, "torch": name, "jax": f"numpy.{name}"} | names
    return Function(name, low, high, operands=operands, **peers)


FUNCTIONS = (
    alike("exp", -5, 5),
    alike("exp2", -5, 5),
    alike("expm1", -3, 3),
    alike("log", 0.1, 10),
    alike("log2", 0.1, 10),
    alike("log10", 0.1, 10),
    alike("log1p", -0.5, 10),
    alike("sin", -10, 10),
    alike("cos", -10, 10),
    alike("tan", -10, 10),
    alike("sinh", -5, 5),
    alike("cosh", -5, 5),
    alike("tanh", -5, 5),
    alike("arcsin", -0.99, 0.99),
    alike("arccos", -0.99, 0.99),
    alike("arctan", -5, 5),
    alike("arctan2", -5, 5, 2),
    alike("arcsinh", -5, 5),
    alike("arccosh", 1.01, 10),
    alike("arctanh", -0.99, 0.99),
    alike("sigmoid", -5, 5, numpy=None, jax="nn.sigmoid"),
    alike("softplus", -5, 5, numpy=None, torch="nn.functional.softplus", jax="nn.softplus"),
    alike(
        "log_sigmoid",
        -5,
        5,
        numpy=None,
        torch="nn.functional.logsigmoid",
        jax="nn.log_sigmoid",
    ),
    alike("erf", -3, 3, numpy=None, jax="scipy.special.erf"),
    alike("erfc", -3, 3, numpy=None, jax="scipy.special.erfc"),
    alike("erfinv", -0.99, 0.99, numpy=None, jax="scipy.special.erfinv"),
    alike("lgamma", 0.1, 10, numpy=None, jax="scipy.special.gammaln"),
    alike("digamma", 0.1, 10, numpy=None, jax="scipy.special.digamma"),
    alike("power", 0.1, 5, 2, torch="pow"),
    alike("hypot", -5, 5, 2),
    alike("cbrt", -5, 5, torch=None),
    alike("sqrt", 0.1, 10),
    alike("rsqrt", 0.1, 10, numpy=None, jax="lax.rsqrt"),
    alike("xlogy", 0.1, 5, 2, numpy=None, jax="scipy.special.xlogy"),
    alike("logaddexp", -5, 5, 2),
)
"""Add a function here; those without a record yet are left out of what is measured."""


@dataclass(frozen=True)
class Fold:
    """A reduction, or a function along an axis: our record, and the peers' names for it."""

    name: str
    numpy: str | None = None
    torch: str | None = None
    jax: str | None = None

    def build(
        self, library: str, shape: tuple[int, ...], axis: int, dtype: str
    ) -> Callable[[], Any] | None:
        """The call to be timed; None if the library has no such function."""
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
        place = "dim" if library == "torch" else "axis"
        return _call(library, lambda x: function(x, **{place: axis}, **more), [data])


@lru_cache(maxsize=1)
def _matrix(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """One array for all libraries, where a cache line begins.

    JAX copies arrays to such a place, and PyTorch makes its own there; 16 bytes on, where NumPy's
    begin, a sum takes a fifth longer.
    """
    data = np.random.default_rng(0).normal(size=shape).astype(dtype)
    memory = np.empty(data.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    place = memory[start : start + data.nbytes].view(dtype).reshape(shape)
    place[...] = data
    return place


FOLDS = (
    Fold("sum", "sum", "sum", "numpy.sum"),
    Fold("mean", "mean", "mean", "numpy.mean"),
    Fold("prod", "prod", "prod", "numpy.prod"),
    Fold("max", "max", "amax", "numpy.max"),
    Fold("min", "min", "amin", "numpy.min"),
    Fold("argmax", "argmax", "argmax", "numpy.argmax"),
    Fold("argmin", "argmin", "argmin", "numpy.argmin"),
    Fold("any", "any", "any", "numpy.any"),
    Fold("all", "all", "all", "numpy.all"),
    Fold("logsumexp", None, "logsumexp", "scipy.special.logsumexp"),
    Fold("softmax", None, "softmax", "nn.softmax"),
    Fold("log_softmax", None, "log_softmax", "nn.log_softmax"),
    Fold("variance", "var", "var", "numpy.var"),
    Fold("euclidean_norm", "linalg.norm", "linalg.vector_norm", None),
    Fold("cumsum", "cumsum", "cumsum", "numpy.cumsum"),
    Fold("cumprod", "cumprod", "cumprod", "numpy.cumprod"),
)


def measured(records: tuple) -> list:
    """The records that the library has."""
    return [record for record in records if record.name in OPS]


def _found(library: str, name: str | None) -> Callable | None:
    """A function by its dotted name, or None."""
    if name is None:
        return None
    *modules, last = name.split(".")
    module = importlib.import_module(".".join([library, *modules]))
    return getattr(module, last)


def _call(library: str, function: Callable, data: list[np.ndarray]) -> Callable[[], Any]:
    """A call on the library's own arrays that ends when the work is done."""
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
    """Our median time, the best peer's as a multiple of it, and each peer's."""
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
        row(one.name, dtype, {lib: one.build(lib, 100_000, dtype) for lib in LIBRARIES}, seconds)
        for one in measured(FUNCTIONS)
        for dtype in DTYPES
        if not names or one.name in names
    ]
    print(f"{THREADS} thread(s), 100,000 elements; peers' times as multiples of ours.")
    table(headers, elementary)
    print(f"\n{THREADS} thread(s), over an axis of (4096, 1000).")
    folds = [
        row(
            f"{one.name}, axis {axis}",
            dtype,
            {lib: one.build(lib, (4096, 1000), axis, dtype) for lib in LIBRARIES},
            seconds,
        )
        for one in measured(FOLDS)
        for axis in (1, 0)
        for dtype in DTYPES
        if not names or one.name in names
    ]
    table(headers, folds)


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
