"""copy, deepcopy, pickle and cloudpickle of tensors, Variables, custom gradients, operations."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import gradient


@tf.custom_gradient
def steep(x):
    """x squared, with a gradient that tells it from the natural one."""
    return x * x, lambda dy: dy * 100.0


class Model:
    factor = 10.0

    @tf.custom_gradient
    def scaled(self, x):
        return x * self.factor, lambda dy: (dy * 7.0,)

    @staticmethod
    @tf.custom_gradient
    def separate(x):
        return x, lambda dy: dy * 5.0


@tf.recompute_grad
def recomputed(x):
    return x * x


class Nested:
    class Inner:
        rule = staticmethod(steep)


def by_pickle(value):
    return pickle.loads(pickle.dumps(value))


def by_cloudpickle(value):
    return pickle.loads(pytest.importorskip("cloudpickle").dumps(value))


PICKLERS = pytest.mark.parametrize("travelled", [by_pickle, by_cloudpickle])
ALL = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, by_pickle, by_cloudpickle])


@ALL
@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32", "complex128"])
def test_tensors(copied, dtype):
    x = tf.constant(np.array([[0, 1], [2, 3]], dtype))
    y = copied(x)
    assert type(y) is tf.Tensor
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.numpy(), x.numpy())


@PICKLERS
def test_the_record_stays_behind(travelled):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = travelled(y) * 2.0
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = travelled(x * x) * 2.0
    assert tape.gradient(z, x) is None


def test_a_deep_copy_keeps_the_gradient():
    """Tensors are immutable: a copy is the tensor, in a structure too."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = copy.deepcopy({"y": [x * x]})["y"][0]
    assert tape.gradient(y, x).numpy() == 6.0


@pytest.mark.parametrize("copied", [copy.deepcopy, by_pickle, by_cloudpickle])
@pytest.mark.parametrize("trainable", [True, False])
def test_variables(copied, trainable):
    v = tf.Variable([1.0, 2.0], trainable=trainable, name="weights")
    w = copied(v)
    v.assign([5.0, 6.0])
    assert w.numpy().tolist() == [1.0, 2.0]
    assert (w.name, w.trainable, w.dtype) == ("weights:0", trainable, np.float32)
    with tf.GradientTape() as tape:
        y = w * w
    assert (tape.gradient(y, w) is None) is not trainable


@ALL
@pytest.mark.parametrize("function", [steep, recomputed, Model.separate, Nested.Inner.rule])
def test_custom_gradients_of_a_module_are_names(copied, function):
    assert copied(function) is function


@pytest.mark.parametrize("copied", [copy.deepcopy, by_pickle, by_cloudpickle])
def test_methods(copied):
    model = Model()
    model.factor = 3.0
    method = copied(model.scaled)
    model.factor = 4.0
    assert float(method(tf.constant(2.0))) == 6.0
    assert gradient(method, tf.constant(2.0)) == [7.0]


def test_local_custom_gradients_by_cloudpickle():
    slope = tf.constant(30.0)

    @tf.custom_gradient
    def local(x):
        return tf.exp(x) * 0.0 + x * x, lambda dy: dy * slope

    assert gradient(by_cloudpickle(local), tf.constant(2.0)) == [30.0]
    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(local)
    assert copy.deepcopy([local])[0] is local


PROGRAM = """
import cloudpickle, sys
import tinygrad_cg as tf
from tinygrad_cg import exp

@tf.custom_gradient
def steep(x):
    return exp(x), lambda dy: dy * 100.0

def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = steep(x)
    return tape.gradient(y, x)

sys.stdout.buffer.write(cloudpickle.dumps((slope, steep, tf.constant(2.0), tf.Variable(3.0))))
"""


def test_another_process_by_cloudpickle():
    """What a notebook defines, in __main__, goes by value: to a worker that has no such name."""
    pytest.importorskip("cloudpickle")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    slope, there, x, v = pickle.loads(done.stdout)
    assert gradient(there, x) == [100.0]
    assert slope(x).numpy() == 100.0
    assert float(v) == 3.0


@PICKLERS
@pytest.mark.parametrize(
    "operation",
    [
        *(
            tf.exp,
            tf.round,
            tf.reduce_sum,
            tf.matmul,
            tf.math.log1p,
            tf.nn.relu,
            tf.where,
            tf.math.tan,
            tf.math.erf,
        ),
        *(tf.numpy.where, tf.numpy.linalg.inv, tf.numpy.hypot, tf.keras.ops.exp, tf.identity),
    ],
    ids=lambda operation: operation.__name__,
)
def test_operations_are_names(travelled, operation):
    """Pools of processes get functions by name."""
    assert travelled(operation) is operation
