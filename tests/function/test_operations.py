"""Every registered operation, eagerly and compiled: values, first and second gradients."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import differentiated, unfused
from tests.support.op_cases import examples, first_gradients, generator, names, second_gradients

EXAMPLES = [
    pytest.param(example, id=f"{name}-{i}")
    for name in names()
    for i, example in enumerate(examples(name))
]


def same(results, expected):
    for result, other in zip(results, expected, strict=True):
        assert result.dtype == other.dtype
        np.testing.assert_allclose(result, other, rtol=1e-12, atol=1e-12)


def arrays(result):
    return [
        tensor.numpy() for tensor in (result if isinstance(result, (list, tuple)) else [result])
    ]


def compiled(example):
    return example._replace(primitive=_Compiled(example))


class _Compiled:
    """Stands for an operation whose calls are compiled."""

    def __init__(self, example):
        self.name = f"compiled {example.primitive.name}"
        self.vjp = example.primitive.vjp
        self.function = unfused(example.call)

    def __call__(self, *tensors):
        return self.function(*tensors)


@pytest.mark.parametrize("example", EXAMPLES)
def test_value(example):
    tensors = [tf.constant(operand) for operand in example.operands]
    function = unfused(example.call)
    expected = arrays(example.call(*tensors))
    same(arrays(function(*tensors)), expected)
    same(arrays(function(*tensors)), expected)
    assert function.cache_size == 1


@pytest.mark.parametrize("example", EXAMPLES)
def test_gradients(example):
    if example.primitive.rules is None or not example.real():
        return
    rng = generator(example.primitive)
    result = example.run(*example.operands)
    weights = np.asarray(rng.normal(size=result.shape)).astype(result.dtype)
    directions = [
        np.asarray(rng.normal(size=example.operands[i].shape)).astype(example.operands[i].dtype)
        for i in example.real()
    ]
    other = example._replace(primitive=_Compiled(example), params={})
    operands = example.operands
    expected = first_gradients(example, operands, weights)
    same(first_gradients(other, operands, weights), expected)
    expected = second_gradients(example, operands, weights, directions)
    same(second_gradients(other, operands, weights, directions), expected)


@pytest.mark.parametrize("example", EXAMPLES)
def test_tapes_inside(example):
    if example.primitive.rules is None or not example.real():
        return
    rng = generator(example.primitive)
    result = example.run(*example.operands)
    weights = tf.constant(np.asarray(rng.normal(size=result.shape)).astype(result.dtype))
    derivatives = differentiated(example, weights, tf.sin)
    tensors = [tf.constant(operand) for operand in example.operands]
    function = unfused(derivatives)
    results, expected = function(*tensors), derivatives(*tensors)
    tf.nest.assert_same_structure(results, expected)
    pairs = zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True)
    for actual, other in pairs:
        assert (actual is None) == (other is None)
        if actual is not None:
            same([actual.numpy()], [other.numpy()])
