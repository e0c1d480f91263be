"""`python -m benchmarks.layers`: layers of small networks: convolutions, pools, normalizations.

Each layer's sum of cubes with its gradients, in float32: eager beside PyTorch, compiled beside
`jax.jit`. (Sums of squares of normalized numbers would have no gradient.) Images have their
channels last, but first in PyTorch, as its users have them. All libraries return the same values
and lengths of gradients before they are timed. Times are medians in microseconds, in turns; behind
the peers' times are ratios to ours.
"""

import argparse
import importlib
import math
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tinygrad_cg as tf
from benchmarks import THREADS
from benchmarks.peers import COMPILED, EAGER, INSTALLED, Peer
from tinygrad_cg._tour.console import table
from tinygrad_cg._tour.timing import medians

BATCH, EPSILON = 32, 1e-5
CHANNELS_FIRST = {"images": (0, 3, 1, 2), "filters": (3, 2, 0, 1)}
"""The order of axes in PyTorch."""
PAIRS = ((EAGER, Peer("torch", "eager")), (COMPILED, Peer("jax", "jit", True)))


class Ours:
    """The layers in this library."""

    conv = staticmethod(lambda x, w, stride: tf.nn.conv2d(x, w, stride, "SAME"))
    max_pool = staticmethod(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"))
    mean_pool = staticmethod(lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"))
    lookup = staticmethod(tf.nn.embedding_lookup)

    @staticmethod
    def batch_norm(x, scale, offset):
        mean, variance = tf.nn.moments(x, [0, 1, 2])
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, EPSILON)

    @staticmethod
    def layer_norm(x, scale, offset):
        return tf.keras.ops.layer_normalization(x, scale, offset, epsilon=EPSILON)


class Torch:
    """The layers in PyTorch."""

    def __init__(self):
        functions: Any = importlib.import_module("torch.nn.functional")
        self.functions = functions
        self.max_pool, self.mean_pool = (
            partial(pool, kernel_size=2) for pool in (functions.max_pool2d, functions.avg_pool2d)
        )

    def conv(self, x, w, stride):
        if stride > 1:  # where "same" padding has its zeros if sizes are even
            return self.functions.conv2d(self.functions.pad(x, (0, 1, 0, 1)), w, stride=stride)
        return self.functions.conv2d(x, w, padding="same")

    def lookup(self, x, rows):
        return self.functions.embedding(rows, x)

    def batch_norm(self, x, scale, offset):
        return self.functions.batch_norm(x, None, None, scale, offset, True, 0.0, EPSILON)

    def layer_norm(self, x, scale, offset):
        return self.functions.layer_norm(x, x.shape[-1:], scale, offset, EPSILON)


class Jax:
    """The layers in JAX."""

    def __init__(self):
        self.lax: Any = importlib.import_module("jax.lax")

    def conv(self, x, w, stride):
        order = "NHWC", "HWIO", "NHWC"
        return self.lax.conv_general_dilated(x, w, (stride,) * 2, "SAME", dimension_numbers=order)

    def _pool(self, start, function, x):
        windows = (1, 2, 2, 1)
        return self.lax.reduce_window(x, start, function, windows, windows, "VALID")

    def max_pool(self, x):
        return self._pool(-np.inf, self.lax.max, x)

    def mean_pool(self, x):
        return self._pool(0.0, self.lax.add, x) / 4

    def lookup(self, x, rows):
        return x[rows]

    def _normalized(self, axes, x, scale, offset):
        centered = x - x.mean(axes, keepdims=True)
        variance = (centered**2).mean(axes, keepdims=True)
        return centered * self.lax.rsqrt(variance + EPSILON) * scale + offset

    def batch_norm(self, *operands):
        return self._normalized((0, 1, 2), *operands)

    def layer_norm(self, *operands):
        return self._normalized(-1, *operands)


SPELLINGS = {"tinygrad_cg": Ours, "torch": Torch, "jax": Jax}


@dataclass(frozen=True)
class Layer:
    """A row: a function of a spelling and of arrays, by the roles of their axes."""

    name: str
    function: Callable[..., Any]
    arrays: dict[str, np.ndarray]

    def build(self, peer: Peer) -> Callable[[], tuple]:
        """Return a function of no arguments: the sum of cubes, and its gradients."""
        library, spelling = peer.library, SPELLINGS[peer.package]()
        wanted = [x.dtype.kind == "f" for x in self.arrays.values()]
        arrays = []
        for (role, x), is_wanted in zip(self.arrays.items(), wanted, strict=True):
            if peer.package == "torch" and role in CHANNELS_FIRST:
                x = np.ascontiguousarray(x.transpose(CHANNELS_FIRST[role]))
            arrays.append(library.array(x, is_wanted))

        def loss(*operands):
            return library.sum(self.function(spelling, *operands) ** 3)

        call = library.compiled(library.value_and_grads(loss, sum(wanted)))
        return lambda: library.finished(call(*arrays))


def numbers(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Return float32 normal numbers."""
    return np.random.default_rng(len(shape)).normal(0, scale, shape).astype("float32")


def convolution(size: int, channels: int, outputs: int, stride: int = 1) -> Layer:
    """Return a layer of filters of 3 x 3."""
    strided = ", stride 2" if stride == 2 else ""
    arrays = {
        "images": numbers(BATCH, size, size, channels),
        "filters": numbers(3, 3, channels, outputs, scale=(9 * channels) ** -0.5),
    }
    name = f"convolution, {size} x {size}, {channels} to {outputs}{strided}"
    return Layer(name, lambda spelling, x, w: spelling.conv(x, w, stride), arrays)


def of_images(name: str, method: str, size: int, parameters: int = 0) -> Layer:
    """Return a layer of images with 16 channels, with vectors of parameters."""
    arrays = {"images": numbers(BATCH, size, size, 16)}
    arrays |= {f"parameter {k}": numbers(16) for k in range(parameters)}
    label = f"{name}, {size} x {size}, 16"
    return Layer(label, lambda spelling, *operands: getattr(spelling, method)(*operands), arrays)


def lookup(rows: int, count: int) -> Layer:
    """Return a layer that looks up rows of 64 elements."""
    positions = np.random.default_rng(rows).integers(rows, size=count)
    arrays = {"rows": numbers(rows, 64), "positions": positions}
    return Layer(f"embedding, {count:,} of {rows:,} x 64", lambda s, *xs: s.lookup(*xs), arrays)


LAYERS = [
    convolution(28, 1, 16),
    convolution(28, 16, 32),
    convolution(28, 8, 16, 2),
    convolution(64, 3, 16),
    convolution(64, 16, 16),
    *[of_images("largest of 2 x 2", "max_pool", size) for size in (28, 64)],
    *[of_images("means of 2 x 2", "mean_pool", size) for size in (28, 64)],
    *[of_images("batch normalization", "batch_norm", size, 2) for size in (28, 64)],
    Layer(
        "layer normalization, 1,024 x 128",
        lambda spelling, *operands: spelling.layer_norm(*operands),
        {"rows": numbers(1024, 128), "scale": numbers(128), "offset": numbers(128)},
    ),
    lookup(1_000, 2_048),
    lookup(10_000, 2_048),
]


def runs(layer: Layer) -> dict[str, Callable[[], tuple]]:
    """Return a layer in each library, by the library's name, after all have given the same."""
    peers = [p for pair in PAIRS for p in pair if p in INSTALLED]
    calls = {peer.name: layer.build(peer) for peer in peers}
    expected = None
    for name, call in calls.items():
        values = [np.linalg.norm(np.asarray(value, np.float64)) for value in call()]
        expected = expected or values
        np.testing.assert_allclose(values, expected, rtol=1e-4, err_msg=f"{name}: {layer.name}")
    return calls


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layers", description=__doc__)
    parser.add_argument("names", nargs="*", help="layers whose names contain one of these; all")
    parser.add_argument("--quick", action="store_true", help="only three rounds, as a trial")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each, in a row")
    chosen = parser.parse_args()
    versions = [f"{p.package} {p.version}" for _, p in PAIRS if p in INSTALLED]
    print(", ".join([f"Python {platform.python_version()}, {THREADS} thread(s) each", *versions]))
    rows = []
    for layer in LAYERS:
        if chosen.names and not any(name in layer.name for name in chosen.names):
            continue
        print(layer.name, file=sys.stderr)
        times = medians(runs(layer), math.inf, 3 if chosen.quick else chosen.rounds)
        row = [layer.name]
        for ours, peer in PAIRS:
            row.append(f"{times[ours.name] * 1e6:.0f}")
            ratio = times.get(peer.name, math.nan) / times[ours.name]
            row.append(f"{times[peer.name] * 1e6:.0f} ({ratio:.2f})" if peer.name in times else "")
        rows.append(row)
    table(("", "eager", "torch eager", "compiled", "jax jit"), rows)


if __name__ == "__main__":
    main()
