"""Draws: their moments, their seeds, in functions, their gradients, and what is refused."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg import random
from tinygrad_cg.keras import random as keras_random

COUNT = 20000
DRAWS = {  # a call -> the mean and the deviation of the distribution
    "random.truncated_normal((COUNT,), 1.0, 2.0, seed=1)": (1.0, 2 * 0.8796),
    "random.stateless_truncated_normal((COUNT,), [1, 2])": (0.0, 0.8796),
    "random.stateless_normal((COUNT,), [1, 2], 3.0)": (3.0, 1.0),
    "random.stateless_uniform((COUNT,), [1, -2], 1, 3)": (2.0, 12**-0.5 * 2),
    "random.gamma((COUNT,), 4.0, 2.0, seed=1)": (2.0, 1.0),
    "random.stateless_gamma((COUNT,), [3, 4], 4.0)": (4.0, 2.0),
    "random.poisson((COUNT,), 9.0, seed=1)": (9.0, 3.0),
    "random.stateless_poisson((COUNT,), [3, 4], 9.0)": (9.0, 3.0),
    "random.stateless_binomial((COUNT,), [3, 4], 16, 0.5)": (8.0, 2.0),
    "random.categorical([[0.0, np.log(3.0)]], COUNT, seed=1)": (0.75, 0.433),
    "random.stateless_categorical([[0.0, np.log(3.0)]], COUNT, [1, 2])": (0.75, 0.433),
    "keras_random.beta((COUNT,), 2.0, 2.0, seed=1)": (0.5, 0.05**0.5),
    "keras_random.binomial((COUNT,), 16, 0.5, seed=1)": (8.0, 2.0),
    "keras_random.categorical([[0.0, np.log(3.0)]], COUNT, seed=1)": (0.75, 0.433),
    "keras_random.gamma((COUNT,), 4.0, seed=1)": (4.0, 2.0),
    "keras_random.randint((COUNT,), 0, 3, seed=1)": (1.0, (2 / 3) ** 0.5),
    "keras_random.truncated_normal((COUNT,), seed=1)": (0.0, 0.8796),
}


@pytest.mark.parametrize("call", DRAWS)
def test_moments(call):
    mean, deviation = DRAWS[call]
    draws, again = (eval(call, globals()).numpy() for _ in range(2))
    assert draws.tolist() == again.tolist()
    assert draws.size == COUNT
    assert abs(draws.mean() - mean) < 5 * deviation / COUNT**0.5
    assert draws.std() == pytest.approx(deviation, rel=0.05)
    assert "truncated" not in call or abs(draws - mean).max() < 2 * deviation / 0.8796 + 1e-5


def test_shapes_and_dtypes():
    assert random.gamma((2,), [1.0, 2.0, 3.0], [[1.0], [2.0]]).shape == (2, 2, 3)
    assert random.poisson((2,), [1.0, 2.0], tf.int32).dtype == tf.int32
    assert random.stateless_gamma((4, 2), [0, 0], [1.0, 2.0]).shape == (4, 2)
    assert random.categorical([[0.0, 1.0]] * 3, 5).dtype == tf.int64
    assert random.categorical([[0.0, 1.0]] * 3, 5).shape == (3, 5)


def test_shuffles_move_rows_and_their_gradients():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = random.shuffle(x, seed=3)
        z = tf.reduce_sum(y * y[:, ::-1] * [[1.0], [2.0], [3.0]])
    assert sorted(y.numpy().tolist()) == x.numpy().tolist()
    place = [y.numpy().tolist().index(row) + 1 for row in x.numpy().tolist()]
    expected = 2 * x.numpy()[:, ::-1] * np.array(place)[:, None]
    assert tape.gradient(z, x).numpy().tolist() == expected.tolist()
    assert keras_random.shuffle([[1, 2, 3]], axis=1, seed=1).numpy().sum() == 6


def test_gradients_flow_to_means_deviations_and_rates():
    tf.assert_gradients(
        lambda m, s, b: (
            random.truncated_normal((3,), m, s, tf.float64, seed=1)
            + random.gamma((3,), 2.0, b, tf.float64, seed=1)
        ),
        *(1.0, 2.0, 3.0),
    )


def test_seeds_make_seeds():
    seeds = random.split([1, 2], 3).numpy()
    assert seeds.shape == (3, 2)
    assert len({tuple(seed) for seed in seeds.tolist()}) == 3
    assert seeds.tolist() == random.split(tf.constant([1, 2]), 3).numpy().tolist()
    folded, other = (random.fold_in([1, 2], data).numpy().tolist() for data in (0, 1))
    assert folded != other
    assert random.fold_in([1, 2], 0).numpy().tolist() == folded
    draws = [random.stateless_normal((2,), seed).numpy().tolist() for seed in seeds]
    assert draws[0] != draws[1]


def test_functions_draw_anew():
    @tf.function
    def draw():
        others = (
            random.poisson((9,), 5.0),
            random.gamma((2,), [1.0, 2.0]),
            random.shuffle([1, 2, 3]),
        )
        return random.categorical([[0.0, 0.0]], 40), random.truncated_normal((3,)), *others

    (a, b, *others), (c, d, *_) = draw(), draw()
    assert [value.shape for value in others] == [(9,), (2, 2), (3,)]
    assert a.numpy().tolist() != c.numpy().tolist()
    assert b.numpy().tolist() != d.numpy().tolist()
    assert abs(d.numpy()).max() < 2


@pytest.mark.parametrize(
    "call",
    [
        "random.gamma((2,), -1.0)",
        "random.poisson((2,), [-1.0])",
        "random.stateless_gamma((2,), [1, 2], [1.0, 1.0, 1.0])",
        "random.stateless_binomial((2,), [1, 2], 3, 1.5)",
        "random.categorical([0.0, 1.0], 3)",
        "random.stateless_normal((2,), [1, 2, 3])",
        "random.split([1, 2], -1)",
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(tf.errors.InvalidArgumentError):
        eval(call, globals())
