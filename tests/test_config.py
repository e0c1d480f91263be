"""Threads and the cache as users set them."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.caches import link_kernels
from tinygrad_cg_kernels.runtime import threads

pytestmark = pytest.mark.usefixtures("restore_threads")


def test_threads_are_set_under_both_names():
    tf.set_num_threads(1)
    assert tf.get_num_threads() == 1
    assert tf.config.threading.get_intra_op_parallelism_threads() == 1
    tf.config.threading.set_intra_op_parallelism_threads(0)
    assert tf.get_num_threads() == threads.default_threads()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    assert tf.get_num_threads() == 1


def test_what_is_no_number_of_threads():
    for bad in (0, -1, 10**6):
        with pytest.raises(ValueError, match=f"set_num_threads: {bad} is not between 1 and"):
            tf.set_num_threads(bad)
    with pytest.raises(TypeError, match="num_threads must be an integer, got float"):
        tf.set_num_threads(1.5)


def test_the_cache_is_cleared(tmp_path, monkeypatch):
    link_kernels(tmp_path)
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))
    program = tf.function(lambda x: tf.exp(x) * 2.0, jit_compile=True)
    x = tf.constant([0.0, 1.0])
    value = program(x).numpy()
    assert list(tmp_path.rglob("programs/*.code"))
    tf.clear_cache()
    assert not list(tmp_path.rglob("programs/*.code"))
    assert program(x).numpy().tolist() == value.tolist()
    again = tf.function(lambda x: tf.exp(x) * 2.0, jit_compile=True)
    assert again(x).numpy().tolist() == value.tolist()
    assert list(tmp_path.rglob("programs/*.code"))


def test_what_is_no_limit_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TINYGRAD_CG_CACHE_LIMIT", "much")
    program = tf.function(lambda x: tf.exp(x) + 3.0, jit_compile=True)
    with pytest.raises(ValueError, match="TINYGRAD_CG_CACHE_LIMIT='much' is not a number of bytes"):
        program(tf.constant([0.0, 1.0]))


def test_functions_run_eagerly_for_a_debugger():
    traced = []

    @tf.function
    def square(x):
        traced.append(isinstance(x._data, np.ndarray))  # as a debugger would see it
        return x * x if x > 0.0 else x

    class Owner:
        @tf.function
        def method(self, x):
            return x.numpy() + 1.0

    x = tf.Variable(3.0)
    try:
        tf.config.run_functions_eagerly(True)
        assert tf.config.functions_run_eagerly()
        with tf.GradientTape() as tape:
            y = square(x.value()) + square(x=x.value())
        assert [float(y), float(tape.gradient(y, x)), traced] == [18.0, 12.0, [True, True]]
        assert Owner().method(x) == 4.0
    finally:
        tf.config.run_functions_eagerly(False)
    assert not tf.config.functions_run_eagerly()
    assert float(square(x.value())) == 9.0
    assert not all(traced)
