"""Random numbers that are drawn on the device: the bits, and the state, of NumPy's generator."""

from typing import Any

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core import devices
from tinygrad_cg._ops import sampling

COUNTS = (0, 1, 3, 4, 5, 1000, 2, 7)
RANGES = [
    *((0, 8, "i"), (-4, 4, "q"), (0, 2**32, "I"), (-(2**31), 2**31, "i"), (0, 2**32, "q")),
    *((0, 2**33, "q"), (-(2**63), 2**63, "q"), (0, 2**64, "Q"), (3, 4, "i"), (0, 2, "Q")),
]


def flat(state):
    """Return the state of a generator as numbers."""
    counters = state["state"]
    words = (*state["buffer"], *counters["counter"], *counters["key"])
    rest = [state[name] for name in ("buffer_pos", "has_uint32", "uinteger")]
    return [int(word) for word in (*words, *rest)]


def pair(**changes):
    """Return two generators in the same state."""
    generators: Any = np.random.Philox(5), np.random.Philox(5)
    for generator in generators:
        state = generator.state
        state["state"] = {**state["state"], **changes}
        generator.state = state
    return generators


FULL = 2**64 - 1


@pytest.mark.parametrize(
    "counter",
    [(0, 0, 0, 0), (FULL, 0, 0, 0), (FULL - 2, FULL, FULL, 7), (FULL - 2, FULL, FULL, FULL)],
)
def test_numbers_and_states_are_those_of_numpy(counter):
    from tinygrad_cg_kernels.cuda import draws

    there, here = pair(counter=np.array(counter, np.uint64))
    numpy = np.random.Generator(here)
    for count in COUNTS:
        for code in "df":
            numbers = draws.numbers(there, count, np.dtype(code)).get()
            want = numpy.random(count).astype(code)
            assert (numbers.dtype, numbers.tobytes()) == (want.dtype, want.tobytes())
            assert flat(there.state) == flat(here.state)
        for low, high, code in RANGES if count < 1000 else RANGES[:2]:
            numbers = draws.integers(there, count, low, high, np.dtype(code)).get()
            want = numpy.integers(low, high, count, code)
            assert (numbers.dtype, numbers.tobytes()) == (want.dtype, want.tobytes())
            assert flat(there.state) == flat(here.state)


def test_no_draw_is_one_by_rounding():
    from tinygrad_cg_kernels.cuda import draws

    largest = np.uint64(FULL)
    assert draws._double(largest, 0, (0, 0)) == 1 - 2.0**-53
    assert draws._single(largest, 0, (0, 0)) == 0
    assert draws._single(np.uint64(2**63), 0, (0, 0)) == 0.5


def test_what_is_not_drawn_there():
    from tinygrad_cg_kernels.cuda import draws

    generator = np.random.Philox(5)
    assert draws.bits_of(0, 10, np.dtype("i")) is None
    assert draws.bits_of(0, 8, np.dtype("b")) is None
    with pytest.raises(ValueError, match="integers from 0 to 10 of int32 are not drawn"):
        draws.integers(generator, 3, 0, 10, np.dtype("i"))
    with pytest.raises(TypeError, match="float64 or float32, not float16"):
        draws.numbers(generator, 3, np.dtype("e"))
    assert flat(generator.state) == flat(np.random.Philox(5).state)


BOUNDS = np.array([0.5, -2.0, 3.0])
DRAWS = [
    lambda: tf.random.uniform((2, 3)),
    lambda: tf.random.uniform((), dtype=tf.float64),
    lambda: tf.random.uniform((5,), -1.5, 0.3, tf.float64),
    lambda: tf.random.uniform((7,), -1.5, 0.3),
    lambda: tf.random.uniform((7,), 1.0, 1.0 + 2.0**-22),  # some round up, and begin again
    lambda: tf.random.uniform((4,), dtype=tf.float16),
    lambda: tf.random.uniform((2, 3), BOUNDS, 4.0),
    lambda: tf.random.uniform((3,), maxval=64, dtype=tf.int32),
    lambda: tf.random.uniform((3,), -8, 8, tf.int64),
    lambda: tf.random.uniform((3,), maxval=9, dtype=tf.int32),  # the CPU draws these,
    lambda: tf.random.uniform((5,), maxval=16, dtype=tf.int8),
    lambda: tf.random.normal((3,)),  # and these
    lambda: tf.random.uniform((0, 2)),
    lambda: tf.nn.dropout(tf.ones((6,)), 0.5),
    lambda: tf.random.uniform((2, 2), 0, 2**40, tf.int64),
]


def test_draws_one_after_the_other_are_those_of_the_cpu():
    tf.random.set_seed(3)
    want = [draw() for draw in [*DRAWS, *DRAWS]]
    left = flat(sampling._generator.bit_generator.state)
    tf.random.set_seed(3)
    with tf.device("GPU"):
        draw = [draw() for draw in [*DRAWS, *DRAWS]]
    for result, other in zip(draw, want, strict=True):
        assert (result.device, other.device) == ("gpu:0", "cpu")
        assert (result.dtype, result.shape) == (other.dtype, other.shape)
        assert result.numpy().tobytes() == other.numpy().tobytes()
    assert flat(sampling._generator.bit_generator.state) == left


def test_gradients_flow_to_bounds_with_the_draws_held():
    tf.random.set_seed(4)
    low, high = tf.constant(BOUNDS), tf.constant(BOUNDS + 2)
    want = tf.random.uniform((2, 3), low, high, tf.float64)
    tf.random.set_seed(4)
    low, high = low.gpu(), high.gpu()
    with tf.GradientTape() as tape:
        tape.watch([low, high])
        numbers = tf.random.uniform((2, 3), low, high, tf.float64)
    assert numbers.numpy().tobytes() == want.numpy().tobytes()
    upper = ((want.numpy() - BOUNDS) / 2).sum(0)
    for gradient, other in zip(
        tape.gradient(numbers, [low, high]), (2 - upper, upper), strict=True
    ):
        assert gradient.device == "gpu:0"
        np.testing.assert_allclose(gradient.numpy(), other, 1e-12)


def test_memory_that_does_not_suffice_leaves_the_generator_where_it_was():
    tf.random.set_seed(5)
    want = tf.random.uniform((4,)).numpy()
    tf.random.set_seed(5)
    devices.limit_memory(1 << 12)
    try:
        with tf.device("GPU"), pytest.raises(MemoryError, match=r"^uniform: the memory of 'gpu:0'"):
            tf.random.uniform((1 << 12,))
    finally:
        devices.limit_memory(0)
    assert tf.random.uniform((4,)).numpy().tobytes() == want.tobytes()


def test_programs_and_generators_give_the_numbers_of_the_cpu():
    def draw(x):
        return x + tf.random.uniform((3,), dtype=tf.float64)

    for function in (draw, tf.function(draw)):
        tf.random.set_seed(6)
        want = function(tf.constant(BOUNDS))
        tf.random.set_seed(6)
        with tf.device("GPU"):
            result = function(tf.constant(BOUNDS))
        assert (result.device, result.numpy().tobytes()) == ("gpu:0", want.numpy().tobytes())
    want = tf.random.Generator.from_seed(1).uniform((3,))
    with tf.device("GPU"):
        result = tf.random.Generator.from_seed(1).uniform((3,))
    assert result.numpy().tobytes() == want.numpy().tobytes()
