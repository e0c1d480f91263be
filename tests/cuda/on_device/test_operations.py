"""Every operation on a device: its value and first two derivatives are those of the CPU."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support import op_cases
from tinygrad_cg._core.primitive import OPS

VECTORS = {"eig", "eigh", "svd"}  # their signs and phases are the library's choice


def derivatives(example, move):
    """The results of an operation, and the first two derivatives of their sum of squares."""
    operands = [move(tf.constant(one)) for one in example.operands]
    sources = [operands[i] for i in example.real()]
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            found = example.call(*operands)
            results = list(found) if isinstance(found, (list, tuple)) else [found]
            targets = [tf.reduce_sum(one * one) for one in results if one.dtype.kind == "f"]
        first = inner.gradient(targets, sources) if targets and sources else []
        known = [one for one in first if one is not None]
    second = outer.gradient(known, sources) if known else []
    return [*results, *first, *second]


@pytest.mark.parametrize("name", op_cases.names())
def test_an_operation_is_that_of_the_cpu(name):
    few = 1 if op_cases.is_elementwise(OPS[name]) else 2  # the simulator takes its time
    for example in op_cases.examples(name)[:few]:
        want = derivatives(example, lambda x: x)
        found = derivatives(example, lambda x: x.gpu())
        assert len(found) == len(want)
        for one, other in zip(want, found, strict=True):
            assert (one is None) == (other is None)
            if other is not None:
                assert other.device == "gpu:0"
                assert (other.dtype, other.shape) == (one.dtype, one.shape)
                if name not in VECTORS:
                    np.testing.assert_allclose(other.numpy(), one.numpy(), 1e-9, 1e-11)
