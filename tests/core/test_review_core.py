"""Mistakes that were found by reading the core: each failed before it was mended."""

import copy
import math
import pickle
import threading
import warnings

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core.levels import state


def slope(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


# Recording -----------------------------------------------------------------------------------


def test_nothing_is_kept_while_a_tape_pauses():
    """A mark for lateness is no record: nothing hangs from what a pause computes."""
    x = tf.constant(3.0)
    with tf.GradientTape() as first:
        first.watch(x)
    late = x * 2.0
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        with tape.stop_recording():
            for _ in range(5):
                late = late * 1.5
                assert not hasattr(late._rec, "inputs")
    assert tape.gradient(x * 1.0 if False else x, x).numpy() == 1.0


def test_watching_late_does_not_reach_back_though_another_tape_watched():
    a, b = tf.constant(2.0), tf.constant(5.0)
    with tf.GradientTape() as first, tf.GradientTape(persistent=True) as second:
        first.watch(a)
        second.watch(b)
        y = a * b
        second.watch(a)
        z = y * a
    assert second.gradient(y, a) is None
    assert second.gradient(z, a).numpy() == 10.0
    assert second.gradient(z, b).numpy() == 4.0
    assert first.gradient(z, a).numpy() == 20.0


def test_marks_of_tapes_that_are_gone_do_not_pile_up():
    x, total = tf.constant(2.0), tf.constant(0.0)
    with tf.GradientTape() as outer:
        w = tf.constant(1.0)
        outer.watch(w)
        for _ in range(50):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x
            tape.gradient(y, x)
            total = total + y
    assert len(getattr(total._rec, "late", ())) <= 1


def test_what_has_no_gradient_is_not_called_late():
    x = tf.constant([1.0, -1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    for detached in (tf.stop_gradient(y), tf.cast(y > 0, tf.float32)):
        assert tape.gradient(detached, x) is None


def test_a_tape_that_is_forgotten_leaves_the_stack():
    tf.GradientTape(watch_accessed_variables=False).__enter__()
    assert state.frame is None


def test_a_rule_serves_tapes_outside_a_batch_too():

    @tf.custom_gradient
    def tripled(x):
        return x * 1.0, lambda dy: 3.0 * dy

    w, rows = tf.constant([1.0, 2.0]), tf.constant([[1.0, 1.0], [2.0, 2.0]])
    found = slope(lambda w: tf.reduce_sum(tf.vmap(lambda row: tripled(w) * row)(rows)), w)
    assert found.numpy().tolist() == [9.0, 9.0]
    found = slope(lambda w: tf.reduce_sum(tf.vmap(lambda row: tripled(w * row))(rows)), w)
    assert found.numpy().tolist() == [9.0, 9.0]


# Graphs --------------------------------------------------------------------------------------


def test_graph_entered_twice_keeps_listening():
    graph, v = tf.Graph(), tf.Variable(3.0)
    with graph.as_default():
        with graph.as_default():
            pass
        y = v * v
        assert tf.gradients(y, v)[0].numpy() == 6.0


def test_graph_leaves_no_trace_on_constants():
    with tf.Graph().as_default():
        tf.gradients(tf.constant(2.0) * 1.2345, [])
    assert (tf.constant(2.0) * 1.2345)._rec is None


def test_each_thread_enables_eager_execution_for_itself():
    tf.compat.v1.disable_eager_execution()
    try:
        in_a_thread(tf.compat.v1.enable_eager_execution)
        assert not tf.executing_eagerly()
    finally:
        tf.compat.v1.enable_eager_execution()
    assert tf.executing_eagerly()
    assert in_a_thread(tf.executing_eagerly)


# Rules ---------------------------------------------------------------------------------------


def test_rule_that_is_a_bound_method():
    class Doubling:
        def rule(self, dy):
            return 2.0 * dy

        def __call__(self, x):
            return x * 1.0, self.rule

    assert slope(tf.custom_gradient(Doubling()), tf.constant(3.0)).numpy() == 2.0


def test_rule_of_the_same_code_with_other_defaults_is_looked_at_again():
    @tf.custom_gradient
    def f(x, optional):
        def rule(dy, more):
            return dy, None

        rule.__defaults__ = (0.0,) if optional else None
        return x * 1.0, rule

    x = tf.constant(1.0)
    assert slope(lambda x: f(x, True), x).numpy() == 1.0
    with pytest.raises(TypeError, match="must accept 1 output gradient"):
        f(x, False)


# Variables -----------------------------------------------------------------------------------


def test_numbers_taken_from_a_variable_are_read_through_its_door():
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x):
        return x * float(v), lambda dy: dy

    with pytest.raises(TypeError, match="grad_fn must accept keyword argument 'variables'"):
        f(tf.constant(1.0))


def test_recomputing_uses_the_values_of_then_in_this_thread_only():
    v, seen = tf.Variable(2.0), []

    def f(x):
        if seen:
            seen.append(in_a_thread(lambda: float(v)))
        seen.append(float(v))
        return x * float(v)

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.recompute_grad(f)(x)
    v.assign(5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.CustomGradientWarning)
        assert tape.gradient(y, x).numpy() == 2.0
    assert seen == [2.0, 5.0, 2.0]
    assert float(v) == 5.0


def test_adding_from_several_threads_loses_nothing():
    v = tf.Variable(0.0)

    def add():
        for _ in range(500):
            v.assign_add(1.0)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert float(v) == 2000.0


def test_copies_keep_what_a_variable_is():
    with tf.compat.v1.variable_scope("scope", use_resource=False):
        v = tf.compat.v1.get_variable("v", initializer=1.0)
    for copied in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert (copied.name, copied.resource, float(copied)) == ("scope/v:0", False, 1.0)
    with tf.GradientTape():
        part = tf.Variable([1.0, 2.0, 3.0])[0:2]
        assert pickle.loads(pickle.dumps(part)).numpy().tolist() == [1.0, 2.0]


def test_item_assignment_names_the_way():
    with pytest.raises(TypeError, match=r"variable\[index\].assign"):
        tf.Variable([1.0, 2.0])[0] = 5.0


# Tapes ---------------------------------------------------------------------------------------


def test_leaving_and_asking_in_another_thread():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x

        def ask():
            try:
                tape.gradient(y, x)
            except ValueError as error:
                return str(error)
            return None

        assert "not in this thread" in in_a_thread(ask)
    assert tape.gradient(y, x).numpy() == 6.0


@pytest.mark.parametrize("persistent", [False, True])
def test_a_tape_that_was_never_entered_says_so(persistent):
    tape = tf.GradientTape(persistent=persistent)
    with pytest.raises(RuntimeError, match="enter it"):
        tape.gradient(tf.constant(1.0), tf.constant(1.0))


def test_truth_of_several_elements():
    with pytest.raises(ValueError, match="where"):
        bool(tf.constant([1.0, 2.0]))


# Primitives ----------------------------------------------------------------------------------


def test_integers_reach_an_elementwise_kernel_as_floats():
    gauss = tf.primitive("ReviewGauss", lambda x: math.exp(-x * x), elementwise=True)
    np.testing.assert_allclose(gauss([0, 1, 2]).numpy(), np.exp([-0.0, -1.0, -4.0]))


def test_a_cell_that_runs_again():
    for factor in (2.0, 3.0):
        op = tf.primitive("ReviewAgain", lambda x, f=factor: x * f, replace=True)

        @tf.RegisterGradient("ReviewAgain", replace=True)
        def rule(op, dy, f=factor):
            return dy * f

        assert slope(op, tf.constant(1.0)).numpy() == factor
    with pytest.raises(KeyError, match="replace=True"):
        tf.primitive("ReviewAgain", np.sin)


def test_what_primitives_refuse():
    with pytest.raises(TypeError, match="name must be a string"):
        tf.primitive(np.sin)
    with pytest.raises(TypeError, match="leave elementwise=True out"):
        tf.primitive("ReviewUfunc", np.tanh, elementwise=True)
    double = tf.primitive("ReviewDouble", lambda x: 2 * x, elementwise=True)
    with pytest.raises(TypeError, match="ReviewDouble: the elementwise kernel takes 1 inputs"):
        double(1.0, 2.0)
    with pytest.raises(TypeError, match="no attributes"):
        double(1.0, n=3)
    scaled = tf.primitive("ReviewScaled", lambda x, factor: x * factor)
    with pytest.raises(TypeError, match="attribute 'factor' is a tensor"):
        scaled(tf.constant(1.0), factor=tf.constant(2.0))
    empty = tf.primitive("ReviewEmpty", lambda x: ())
    with pytest.raises(ValueError, match="returned no arrays"):
        empty(tf.constant(1.0))
    missing = tf.primitive("ReviewMissing", lambda x: math.nonsense(x), elementwise=True)
    with pytest.raises(TypeError, match=r"ReviewMissing: no kernel .*nonsense"):
        missing(1.0)
    typo = tf.primitive("ReviewTypo", lambda x: x.shape[0], elementwise=True)
    with pytest.raises(TypeError, match=r"ReviewTypo: no kernel .*Unknown attribute 'shape'"):
        typo(1.0)


def test_shape_rules_hold_for_elementwise_kernels_and_several_outputs():
    wrong = tf.primitive("ReviewShape", lambda x: 2 * x, shape=lambda x: (99,), elementwise=True)
    with pytest.raises(ValueError, match="shape rule"):
        wrong([1.0, 2.0])
    pair = tf.primitive("ReviewPair", lambda x: (x, x[:1]), shape=lambda x: [x.shape, (1,)])
    assert [part.shape for part in pair([1.0, 2.0])] == [(2,), (1,)]
    assert [aval.shape for aval in pair.primitive.abstract(tf.constant([1.0])._data)] == [
        (1,),
        (1,),
    ]
