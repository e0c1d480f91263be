"""The pattern of each registered operation, against its dense derivatives."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.op_cases import examples, names
from tinygrad_cg._core.kinds import is_complex
from tinygrad_cg._core.primitive import OPS

DIFFERENTIABLE = [name for name in names() if OPS[name].rules is not None]
EXACT = """
    add subtract multiply divide negative exp sin square sqrt tanh logaddexp getitem getitem_adjoint
    gather gather_adjoint set_row identity cast reshape expand_dims squeeze transpose broadcast_to
    concatenate stack take_along_axis add_along_axis pad sum mean prod logsumexp cumsum cumprod
    softmax log_softmax matmul matvec conv conv_input conv_filter mean_pool mean_pool_adjoint
    optimization_barrier multiply_tangent expm
"""
"""Each entry of their patterns is other than zero at random points."""
EXACT_SECOND = """
    add subtract multiply divide exp sin square sqrt tanh getitem gather set_row concatenate pad sum
    mean cumsum matmul matvec conv mean_pool
"""
"""And so is each entry of the patterns of second derivatives."""


def calls(name):
    """Functions of one vector, all operands that are floats, to a flat real result; a vector."""
    for example in examples(name):
        positions = example.real()
        operands = example.operands
        if not positions or any(is_complex(operand.dtype) for operand in operands):
            continue
        sizes = [operands[k].size for k in positions]

        def run(z, example=example, positions=positions, sizes=sizes):
            moved, start = list(example.operands), 0
            for k, size in zip(positions, sizes, strict=True):
                moved[k] = tf.reshape(z[start : start + size], moved[k].shape)
                start += size
            y = tf.reshape(example.call(*moved), (-1,))
            return tf.math.real(y) + 0.7 * tf.math.imag(y) if is_complex(y.dtype) else y

        yield run, np.concatenate([operands[k].reshape(-1) for k in positions])


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_no_entry_is_lost(name):
    for run, point in calls(name):
        with np.errstate(all="ignore"):
            expected = tf.jacobian(run)(point) != 0
        pattern = tf.jacobian_sparsity(run, point).toarray()
        assert pattern.shape == expected.shape
        assert not (expected & ~pattern).any()
        local = tf.jacobian_sparsity(run, point, at=point).toarray()
        assert not (expected & ~local).any()
        assert not (local & ~pattern).any()
        if name in EXACT.split():
            np.testing.assert_array_equal(pattern, expected)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_no_entry_of_second_derivatives_is_lost(name):
    for run, point in calls(name):
        with np.errstate(all="ignore"):
            weights = np.random.default_rng(0).uniform(0.5, 1.5, run(point).shape)

        def weighted(z, run=run, weights=weights):
            return tf.reduce_sum(run(z) * weights)

        with np.errstate(all="ignore"):
            expected = tf.hessian(weighted)(point) != 0
        pattern = tf.hessian_sparsity(weighted, point).toarray()
        assert not (expected & ~pattern).any()
        np.testing.assert_array_equal(pattern, pattern.T)
        local = tf.hessian_sparsity(weighted, point, at=point).toarray()
        assert not (expected & ~local).any()
        if name in EXACT_SECOND.split():
            np.testing.assert_array_equal(pattern, expected)
