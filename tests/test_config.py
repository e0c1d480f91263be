"""Threads as users set them."""

import pytest

import tinygrad_cg as tf
from tinygrad_cg_kernels import threads


@pytest.fixture(autouse=True)
def restored():
    before = threads.get_num_threads()
    yield
    threads.set_num_threads(before)


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
