"""Tracing: what becomes an input, a constant or nothing, and what a trace leaves behind."""

import gc
import weakref

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state
from tinygrad_cg._core.levels import state
from tinygrad_cg._core.tensor import Aval
from tinygrad_cg._function.tracing.trace import FunctionTrace, TraceTensor, literal
from tinygrad_cg.errors import TapeWarning

pytestmark = pytest.mark.quick

X = np.array([1.0, -2.0, 3.0])


def program(function, *args):
    return function.get_concrete_function(*args)._traced.program


def traces():
    gc.collect()
    return sum(issubclass(type(thing), (FunctionTrace, TraceTensor)) for thing in gc.get_objects())


def test_what_others_hold_is_an_input_and_the_rest_a_constant():
    c, kept = tf.constant(X), []

    @tf.function
    def f(x):
        kept.append(tf.constant([1.0, 2.0, 3.0]))
        return x * c + tf.constant([4.0, 5.0, 6.0]) * kept[-1] + tf.constant(2.0)

    compiled = program(f, tf.constant(X))
    assert [id(capture) for capture in compiled.captures] == [id(c), id(kept[0])]
    constants = [value.array for value in compiled.graph.values() if value.array is not None]
    assert [constant.tolist() for constant in constants] == [[4.0, 5.0, 6.0], 2.0]
    np.testing.assert_allclose(f(tf.constant(X)), X * X + np.array([4, 10, 18]) + 2)


def test_a_held_tensor_can_be_watched_later():
    c = tf.constant(X)
    f = tf.function(lambda: tf.reduce_sum(c * c))
    f()
    with tf.GradientTape() as tape:
        tape.watch(c)
        y = f()
    assert tape.gradient(y, c).numpy().tolist() == (2 * X).tolist()


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, np.nan, np.inf])
def test_equal_elements_are_one_number(value):
    node = literal(np.full((2, 3), value))
    assert node.primitive.name == "broadcast_to"
    assert node.inputs[0].array.tobytes() == np.float64(value).tobytes()
    assert node.shape == (2, 3)


@pytest.mark.parametrize("array", [np.array([0.0, -0.0]), np.zeros(0), np.array(3.0), X])
def test_other_constants_are_kept(array):
    node = literal(array)
    assert node.array is array
    assert node.aval == Aval(array.shape, array.dtype)


def test_a_trace_stands_alone_and_is_gone_afterwards():
    v = tf.Variable(1.0)
    seen = []

    @tf.function
    def f(x):
        seen.append((state.frame.level, list(state.listeners), dict(state.overrides)))
        return x * v

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert all(tape not in listeners for _, listeners, _ in seen)
    assert all(type(level) is FunctionTrace for level, _, _ in seen)
    assert tape.gradient(y, [x, v])[1].numpy() == 2.0
    assert_clean_state()


def test_nothing_of_a_trace_stays():
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(x) ** 2) * tf.random.normal([], dtype=tf.float64)
        return tape.gradient(y, x)

    before = traces()
    compiled, x = tf.function(f), tf.constant(X)
    compiled(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x)
    tape.gradient(y, x)
    with pytest.raises(TypeError):
        tf.function(lambda x: bool(x))(x)
    assert traces() == before


def test_instances_and_results_are_freed():
    class Model:
        def __init__(self):
            self.w = tf.Variable(X)

        @tf.function
        def step(self, x):
            self.w.assign_add(x)
            return self.w * x

    model = Model()
    y = model.step(tf.constant(X))
    of_model, of_y = weakref.ref(model), weakref.ref(y)
    del model
    gc.collect()
    assert of_model() is None
    assert not Model.step._bound
    del y
    assert of_y() is None


def test_results_under_a_tape_are_freed_without_a_collector():
    f, x = tf.function(lambda x: tf.exp(x) * x), tf.constant(X)
    gc.disable()
    try:
        for sweep in (False, True) * 2:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            if sweep:
                tape.gradient(y, x)
            of_y = weakref.ref(y)
            del y, tape
            assert of_y() is None
    finally:
        gc.enable()


def test_a_tape_outside_cannot_watch_what_is_traced():
    @tf.function
    def f(x):
        tape.watch(x)
        return x * x

    x = tf.constant(X)
    with tf.GradientTape() as tape, pytest.warns(TapeWarning, match="before the call"):
        y = f(x)
    assert tape.gradient(y, x) is None


def test_large_constants_of_one_number_take_no_memory():
    f = tf.function(lambda x: tf.zeros([1000, 1000]) * x + tf.ones_like(tf.zeros([1000, 1000])))
    graph = f.graph(tf.constant(2.0))
    assert max(value.array.size for value in graph.values() if value.array is not None) == 1
