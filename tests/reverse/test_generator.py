"""Generators of random numbers that are objects."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_raises
from tinygrad_cg.errors import InvalidArgumentError

pytestmark = pytest.mark.quick
Generator = tf.random.Generator


def test_a_seed_gives_the_same_numbers_and_draws_move_on():
    first, second = Generator.from_seed(3), Generator.from_seed(3)
    drawn = [first.normal([3]).numpy() for _ in range(3)]
    assert len({numbers.tobytes() for numbers in drawn}) == 3
    for numbers in drawn:
        np.testing.assert_array_equal(second.normal([3]), numbers)
    other = Generator.from_seed(4)
    assert other.normal([3]).numpy().tolist() != drawn[0].tolist()
    third = Generator.from_seed(3)
    before = third.skip(2)
    np.testing.assert_array_equal(third.normal([3]), drawn[2])
    assert before.numpy().tolist() == [0, 0, 3]


def test_the_state_can_be_kept_and_given_back():
    generator = Generator.from_seed(-5)
    generator.uniform([2])
    state = generator.state.numpy()
    drawn = generator.uniform([2]).numpy()
    for other in (Generator.from_state(state), Generator(state=state)):
        np.testing.assert_array_equal(other.uniform([2]), drawn)
    generator.reset(state)
    copy = Generator(copy_from=generator)
    np.testing.assert_array_equal(generator.uniform([2]), drawn)
    np.testing.assert_array_equal(copy.uniform([2]), drawn)
    generator.reset_from_key_counter(-5, [1, 0])
    np.testing.assert_array_equal(generator.uniform([2]), drawn)
    generator.reset_from_seed(-5)
    generator.skip(1)
    np.testing.assert_array_equal(generator.uniform([2]), drawn)
    assert int(generator.key) == -5
    assert generator.algorithm == 1


def test_a_program_draws_other_numbers_at_each_call():
    generator = Generator.from_seed(7)
    compiled = tf.function(lambda x: x * generator.normal([2]) + generator.uniform([]))
    draws = [compiled(2.0).numpy() for _ in range(3)]
    generator.reset_from_seed(7)
    for draw in draws:
        expected = 2.0 * generator.normal([2]) + generator.uniform([])
        np.testing.assert_allclose(draw, expected, rtol=1e-6)


def test_draws():
    generator = Generator.from_seed(1)
    assert abs(float(tf.reduce_mean(generator.normal([4000], 2.0, 0.5))) - 2.0) < 0.05
    assert float(tf.reduce_max(tf.abs(generator.truncated_normal([1000])))) <= 2.0
    whole = generator.uniform([1000], -2, 3, tf.int32).numpy()
    assert {*whole.tolist()} == {-2, -1, 0, 1, 2}
    full = generator.uniform_full_int([500], tf.int8).numpy()
    assert full.dtype == np.int8
    assert full.min() < -100 < 100 < full.max()
    assert generator.uniform_full_int([2]).dtype == tf.uint64
    trials = generator.binomial([3000], 10.0, 0.3).numpy()
    assert trials.dtype == np.int32
    assert abs(trials.mean() - 3.0) < 0.15
    seeds = generator.make_seeds(3).numpy()
    assert seeds.shape == (2, 3)
    assert seeds.dtype == np.int64
    parts = generator.split(2)
    assert parts[0].normal([2]).numpy().tolist() != parts[1].normal([2]).numpy().tolist()


def test_parameters_have_gradients_with_the_draws_held():
    generator = Generator.from_seed(2)
    mean, deviation = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch([mean, deviation])
        drawn = generator.normal([3], mean, deviation)
    by_mean, by_deviation = tape.gradient(drawn, [mean, deviation])
    assert float(by_mean) == 3.0
    expected = tf.reduce_sum((drawn - 1.0) / 2.0)
    assert float(by_deviation) == pytest.approx(float(expected), rel=1e-5)


def test_the_generator_of_a_program():
    before = tf.random.get_global_generator()
    assert tf.random.get_global_generator() is before
    try:
        tf.random.set_global_generator(Generator.from_seed(9))
        drawn = tf.random.get_global_generator().normal([2])
        np.testing.assert_array_equal(drawn, Generator.from_seed(9).normal([2]))
    finally:
        tf.random.set_global_generator(before)
    assert tf.random.create_rng_state(5, "philox").numpy().tolist() == [0, 0, 5]


def test_what_is_refused():
    assert_raises(InvalidArgumentError, "alg must be", Generator.from_seed, 1, "threefry")
    assert_raises(InvalidArgumentError, "three integers", Generator.from_state, [1, 2])
    assert_raises(InvalidArgumentError, "either copy_from or state", Generator)
    assert_raises(InvalidArgumentError, "counter must be two", Generator.from_key_counter, 1, [1])
    assert_raises(TypeError, "seed must be an integer", Generator.from_seed, 1.5)
    assert_raises(TypeError, "needs a Generator", tf.random.set_global_generator, 3)
    generator = Generator.from_seed(1)
    assert_raises(TypeError, "integer one", generator.uniform_full_int, [1], tf.float32)
