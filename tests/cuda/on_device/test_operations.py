"""Every operation on a device: its value and first two derivatives are those of the CPU."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.cuda.comparison import VECTORS
from tests.support import op_cases
from tinygrad_cg._core.primitive import OPS


def derivatives(example, move):
    """The results of an operation, and the first two derivatives of their sum of squares."""
    operands = [move(tf.constant(operand)) for operand in example.operands]
    sources = [operands[i] for i in example.real()]
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            result = example.call(*operands)
            results = list(result) if isinstance(result, (list, tuple)) else [result]
            targets = [
                tf.reduce_sum(result * result) for result in results if result.dtype.kind == "f"
            ]
        first = inner.gradient(targets, sources) if targets and sources else []
        gradients = [gradient for gradient in first if gradient is not None]
    second = outer.gradient(gradients, sources) if gradients else []
    return [*results, *first, *second]


@pytest.mark.parametrize("name", op_cases.names())
def test_an_operation_is_that_of_the_cpu(name):
    few = 1 if op_cases.is_elementwise(OPS[name]) else 2  # the simulator takes its time
    for example in op_cases.examples(name)[:few]:
        want = derivatives(example, lambda x: x)
        results = derivatives(example, lambda x: x.gpu())
        assert len(results) == len(want)
        for value, other in zip(want, results, strict=True):
            assert (value is None) == (other is None)
            if other is not None:
                assert other.device == "gpu:0"
                assert (other.dtype, other.shape) == (value.dtype, value.shape)
                if name not in VECTORS:
                    np.testing.assert_allclose(other.numpy(), value.numpy(), 1e-9, 1e-11)
