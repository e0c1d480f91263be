"""Spellings in `tinygrad_cg.numpy`: each line gives in NumPy what it gives here, dtype and all."""

import inspect

import numpy
import pytest

import tinygrad_cg as tf

CASES = """
np.abs([-1, 2])
np.absolute(-1.5)
np.add(1, 2)
np.add([1, 2], 0.5)
np.add(numpy.float32([1]), 0.5)
np.add(numpy.float32([1]), [0.5])
np.add(numpy.int32([1]), 1)
np.add(numpy.int32([1]), 0.5)
np.add(numpy.array([True]), 1)
np.add(numpy.float32([1]), 1j)
np.all([[True, False], [True, True]])
np.all([[True, False], [True, True]], 1)
np.all([[1, 0]], axis=0, keepdims=True)
np.any([[True, False], [False, False]], axis=1)
np.amax([[1, 5], [7, 2]], 0)
np.amin([[1, 5], [7, 2]])
np.arange(3)
np.arange(1, 4, 2)
np.arange(3.0)
np.arange(0, 1, 0.25)
np.arange(3, dtype=numpy.float32)
np.argmax([[1, 5], [7, 2]])
np.argmax([[1, 5], [7, 2]], 0)
np.argmax([[1, 5], [7, 2]], axis=1, keepdims=True)
np.argmin([[1, 5], [7, 2]], keepdims=True)
np.around([0.5, 1.5])
np.array([1, 2])
np.array([1.0, 2])
np.array([1, 2], dtype=float)
np.asarray([1, 2], numpy.float32)
np.asarray(1.5)
np.astype(numpy.array([1.7]), int)
np.broadcast_to([1, 2], (2, 2))
np.ceil([1.2, -1.2])
np.clip([1, 5], 2, 3)
np.clip([1.0, 5.0], None, 3)
np.clip([1, 5], 0.5, 2.5)
np.clip(a=[1, 5], a_min=2, a_max=3)
np.clip([1, 5], min=2)
np.concat([[1], [2.5]])
np.concatenate([[[1, 2]], [[3, 4]]])
np.concatenate(([[1, 2]], [[3, 4]]), axis=1)
np.concatenate([[[1, 2]], [3]], axis=None)
np.conj([1 + 2j])
np.conjugate([1.0])
np.copy([1, 2])
np.cos([0, 1])
np.divide(1, 2)
np.true_divide([1, 2], 2)
np.equal([1, 2], [1, 3])
np.exp(1)
np.exp([0.0, 1.0])
np.exp(numpy.float32([0, 1]))
np.expand_dims([1, 2], 0)
np.expand_dims(a=[1, 2], axis=-1)
np.expm1(0)
np.eye(2)
np.eye(2, 3, 1)
np.eye(N=2, M=3, k=-1, dtype=int)
np.floor([1.7, -1.2])
np.floor_divide([7, -7], 2)
np.floor_divide(7.0, 2)
np.full((2,), 3)
np.full(2, 3.5)
np.full((2, 2), fill_value=3, dtype=numpy.float32)
np.full_like([1, 2], 3)
np.full_like([1.0, 2.0], fill_value=3, dtype=float)
np.greater([1, 2], 1)
np.greater_equal([1, 2], 2)
np.identity(2)
np.imag([1 + 2j])
np.isfinite([1.0, numpy.inf])
np.isinf([1.0, numpy.inf])
np.isnan([1.0, numpy.nan])
np.less([1, 2], 2)
np.less_equal([1, 3], 2)
np.linspace(0, 1, 3)
np.linspace(0, 10).sum()
np.linspace(0, 1, num=4, endpoint=False)
np.linspace(0, 4, 3, dtype=int)
np.linspace(numpy.float32(0), numpy.float32(1), 3)
np.log([1, 2])
np.log1p(1.0)
np.logical_and([True, False], [True, True])
np.logical_not([True, False])
np.logical_or([1, 0], 0)
np.logical_xor([True, True], [True, False])
np.matmul([[1, 2]], [[3], [4]])
np.matmul([1, 2], [3, 4])
np.matvec([[1, 2], [3, 4]], [1.0, 1.0])
np.max([[1, 5], [7, 2]], axis=1)
np.max([[1, 5], [7, 2]], keepdims=True)
np.maximum([1, 5], 3)
np.maximum([1, 5], 3.5)
np.mean([1, 2])
np.mean([[1, 2], [3, 5]], 0)
np.mean(numpy.float32([1, 2]))
np.mean([[1, 2]], axis=1, dtype=numpy.float32, keepdims=True)
np.mean([True, False])
np.min([[1, 5], [7, 2]], (0, 1))
np.minimum([1, 5], 3)
np.mod([7, -7], 3)
np.multiply(2, 1.5)
np.ndim([[1]])
np.negative([1, -2])
np.not_equal([1, 2], [1, 3])
np.ones(2)
np.ones((1, 2), int)
np.ones_like([1, 2])
np.ones_like([1, 2], dtype=float)
np.permute_dims([[1, 2], [3, 4]])
np.positive([1, 2])
np.pow(2, 3)
np.power([2.0, 3.0], 2)
np.power(2, 0.5)
np.prod([[1, 5], [7, 2]])
np.prod(numpy.int32([3, 4]))
np.prod([[1, 5], [7, 2]], 0)
np.ravel([[1, 2], [3, 4]])
np.real([1 + 2j])
np.reciprocal([2.0, 4.0])
np.remainder([7, -7], 3)
np.reshape([1, 2, 3, 4], (2, 2))
np.reshape([1, 2], shape=(2, 1))
np.rint([0.5, 1.5])
np.round([0.5, 1.5, 2.345])
np.round([1.25, 2.345], 2)
np.round([123.0, 155.0], decimals=-1)
np.round([123, 155], -1)
np.shape([[1, 2, 3]])
np.sign([-2.0, 0.0, 3.0])
np.sin([0, 1])
np.size([[1, 2, 3]])
np.sqrt([4, 9])
np.square([2, 3])
np.squeeze([[1, 2]])
np.squeeze([[[1, 2]]], axis=0)
np.stack([[1, 2], [3, 4]])
np.stack(([1, 2], [3, 4]), axis=1)
np.subtract(3, 1.5)
np.sum([[1, 5], [7, 2]])
np.sum([[1, 5], [7, 2]], 0)
np.sum([[1, 5], [7, 2]], axis=1, keepdims=True)
np.sum([1, 2], None, float)
np.sum(numpy.int32([1, 2]))
np.sum(numpy.uint8([200, 100]))
np.sum([True, True])
np.sum(numpy.float32([1, 2]))
np.take([[1, 2], [3, 4]], [0, 3])
np.take([[1, 2], [3, 4]], [1], 1)
np.take([[1, 2], [3, 4]], -1)
np.tanh([0, 1])
np.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 2]])
np.tensordot([[1, 2]], [[3], [4]], axes=1)
np.transpose([[1, 2], [3, 4]])
np.transpose([[[1, 2]], [[3, 4]]], axes=(0, 2, 1))
np.unstack(numpy.array([[1, 2], [3, 4]]))
np.unstack(numpy.array([[1, 2], [3, 4]]), axis=1)
np.where([True, False], [1, 2], [3, 4])
np.where([True, False], 1, 2.5)
np.where([[True, False], [True, True]])
np.zeros(2)
np.zeros((1, 2), numpy.int32)
np.zeros_like([1.5])
np.zeros_like([1.5], int)
np.pi * np.ones(1)
np.float32(1.5)
np.random.normal(size=(2, 3)).shape
np.random.uniform(1.0, [2.0, 3.0]).shape
""".strip().splitlines()


@pytest.mark.parametrize("case", CASES)
def test_as_in_numpy(case):
    ours = eval(case, {"np": tf.numpy, "numpy": numpy})
    theirs = eval(case, {"np": numpy, "numpy": numpy})
    for found, expected in zip(arrays(ours), arrays(theirs), strict=True):
        assert found.dtype == expected.dtype
        precision = numpy.finfo(found.dtype).eps if found.dtype.kind in "fc" else 0
        numpy.testing.assert_allclose(found, expected, rtol=4 * precision)


def arrays(value):
    """A result as arrays; `unstack` and `where` give several."""
    return [numpy.asarray(part) for part in (value if isinstance(value, tuple) else [value])]


def test_every_function_is_tried():
    tried = {case.split("(")[0].removeprefix("np.") for case in CASES}
    functions = {name for name in tf.numpy.__all__ if inspect.isfunction(getattr(tf.numpy, name))}
    assert functions <= tried


def test_results_are_tensors_and_keep_gradients():
    x = tf.numpy.array([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.numpy.mean(tf.numpy.square(tf.numpy.concatenate([x, [3.0]])))
    assert isinstance(y, tf.Tensor)
    assert tape.gradient(y, x).numpy() == pytest.approx([2 / 3, 4 / 3])


def test_lists_of_tensors_are_stacked():
    x = tf.constant(2.0)
    assert tf.numpy.square([x, x]).numpy().tolist() == [4.0, 4.0]
    assert tf.numpy.sum([x, x]).dtype == numpy.float32


def test_seeded_draws_repeat():
    tf.numpy.random.seed(3)
    first = tf.numpy.random.normal(5.0, 0.1, 3)
    tf.numpy.random.seed(3)
    assert first.numpy().tolist() == tf.numpy.random.normal(5.0, 0.1, (3,)).numpy().tolist()


@pytest.mark.parametrize("call", ["sum([1], 0, None, 3)", "exp([1], 2)", "max([1], 0, None)"])
def test_parameters_that_are_not_there_are_refused(call):
    """NumPy's out= and initial= would change what is meant: TypeError, not another number."""
    with pytest.raises(TypeError, match="positional argument"):
        eval(f"np.{call}", {"np": tf.numpy})
