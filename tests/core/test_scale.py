"""Long chains and many runs: what a tape costs, measured in processes of their own."""

import json
import sys

import pytest

from tests.support.python import run_python

HEAD = """
import gc, json, resource, sys
import numpy as np
import tinygrad_cg as tf

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

x = tf.constant(np.array(1.0))
factor = tf.constant(np.array(1.0 + 1e-7))

def chain(count):
    with tf.GradientTape() as tape:
        tape.watch([x, factor])
        y = x
        for _ in range(count):
            y = y * factor
    return tape.gradient(y, [x, factor])
"""


def run(body):
    """What a program prints as JSON."""
    return json.loads(run_python(HEAD + body).stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="no resource module")
def test_a_million_multiplications():
    """A chain of 10^6 ops differentiates, without recursion, in at most 600 bytes an op."""
    results = run(
        """
chain(1000)
from tinygrad_cg_kernels.runtime import tiers
tiers.wait()
before = peak()
by_x, by_factor = chain(1_000_000)
print(json.dumps([float(by_x), float(by_factor), (peak() - before) / 1e6]))
"""
    )
    by_x, by_factor, size = results
    assert by_x == pytest.approx(1.1051709, rel=1e-6)  # (1 + 1e-7) ** 1e6
    assert by_factor == pytest.approx(1105170.8, rel=1e-6)
    assert size <= 600


def test_thousands_of_runs_leave_memory_where_it_was():
    """Everything is freed by reference counting: the garbage collector is off."""
    grown = run(
        """
import tracemalloc
from tinygrad_cg_kernels.runtime import tiers

@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

v = tf.Variable(2.0)

def once():
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = log1pexp(x) * v
        (by_x, by_v) = tape.gradient(y, [x, v])
    outer.gradient(by_x, x)

gc.disable()
for _ in range(6000):  # the interpreter keeps up to 2000 freed tuples of a size
    once()
tiers.wait()
tracemalloc.start()
objects = len(gc.get_objects())
before = tracemalloc.get_traced_memory()[0]
for _ in range(3000):
    once()
after = tracemalloc.get_traced_memory()[0]
print(json.dumps([after - before, len(gc.get_objects()) - objects]))
"""
    )
    assert grown[0] < 10_000  # bytes, over 3000 runs
    assert grown[1] < 50
