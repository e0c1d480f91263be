"""`python -m benchmarks.gpu_host`: the CPU's time for an operation on a GPU, without a GPU.

Arrays are NumPy's, called arrays of a device, and launches do nothing. The times are for the
library only: CuPy and the driver take additional time. The other column counts the calls of Python
functions outside of this module. A process with a stand-in for CuPy in `sys.modules` cannot use a
real one.
"""

import sys
import time
from collections.abc import Callable
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

REPEATS = 3000


class _Pointer:
    __slots__ = ("ptr",)

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


class Array(np.ndarray):
    """An array that is taken for one of a device."""

    data: Any = _Pointer(4096)  # nothing reads memory; as quick as CuPy's, which is compiled

    def get(self) -> np.ndarray:
        return np.array(self)


def _made(make: Callable[..., Any]) -> Callable[..., Array]:
    def call(*arguments: Any, **named: Any) -> Any:
        result = make(*arguments, **named)
        return result.view(Array) if isinstance(result, np.ndarray) else result

    return call


_STREAM = SimpleNamespace(ptr=0, synchronize=lambda: None)


class _CuPy(ModuleType):
    """CuPy's functions that the benchmark needs."""

    ndarray = Array
    empty = Array  # as quick as CuPy's, which is compiled
    cuda = SimpleNamespace(
        get_current_stream=lambda: _STREAM,
        runtime=SimpleNamespace(pointerGetAttributes=lambda pointer: SimpleNamespace(device=0)),
    )

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        made = _made(function) if callable(function) and not isinstance(function, type) else None
        setattr(self, name, made or function)
        return made or function


class _Driver:
    """Loads nothing and launches nothing."""

    def load(self, kernel: Any, kinds: Any) -> None:
        return None

    def launch(self, loaded: Any, blocks: int, block: int, room: int) -> None:
        return None


def pretend() -> None:
    """Have the library take this machine for one with a GPU."""
    sys.modules["cupy"] = _CuPy("cupy")
    from tinygrad_cg_kernels.cuda import adapter

    driver = _Driver()
    adapter.device_count = lambda: 1
    adapter.driver = cache(lambda: driver)
    adapter.device_kernel = lambda function: function
    adapter.device_function = adapter.scalar_function = lambda function, *_: function


def programs() -> dict[str, Callable[[], Any]]:
    """Return the pieces of work by name."""
    import tinygrad_cg as tf

    x = tf.ones((32, 32)).gpu()
    y = tf.ones((32, 32)).gpu()
    rows = tf.constant([0, 3, 5]).gpu()

    @tf.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    def gradient() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = log1pexp(x)
        return tape.gradient(z, x)

    compiled = tf.function(lambda x: tf.tanh(x * 2.0) + 1.0)
    return {
        "sin": lambda: tf.sin(x),
        "x + y": lambda: x + y,
        "sum": lambda: tf.reduce_sum(x),
        "gather": lambda: tf.gather(x, rows),
        "gradient of log1pexp": gradient,
        "a program of function": lambda: compiled(x),
    }


def calls(run: Callable[[], Any]) -> int:
    """Return how many Python functions are called."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename != __file__

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def microseconds(run: Callable[[], Any], repeats: int) -> float:
    """Return the least time of a call: other processes only add to it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def main(arguments: list[str]) -> None:
    quick = "--quick" in arguments
    pretend()
    print(f"{'':24}{'us':>8}{'calls':>8}")
    for name, run in programs().items():
        for _ in range(3):
            run()
        taken = microseconds(run, 5 if quick else REPEATS)
        print(f"{name:24}{taken:8.1f}{calls(run):8}")


if __name__ == "__main__":
    main(sys.argv[1:])
