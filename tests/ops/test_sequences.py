"""The loss of temporal classification, losses by samples of classes, and normal draws in bounds."""

import itertools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.modes import assert_right_in_all_modes
from tests.support.orders import assert_raises
from tinygrad_cg.errors import InvalidArgumentError
from tinygrad_cg.keras import ops

nn, random = tf.nn, tf.random
RNG = np.random.default_rng(2)
LABELS = np.array([[1, 2, 2], [2, 0, 0], [0, 0, 0]])
LENGTHS, FRAMES = [3, 1, 0], [5, 3, 4]
LOGITS = RNG.normal(size=(5, 3, 3))
WEIGHTS, BIASES, INPUTS = RNG.normal(size=(7, 3)), RNG.normal(size=7), RNG.normal(size=(4, 3))
TRUE = np.array([[1, 2], [5, 0], [0, 6], [4, 4]])
SAMPLE = (np.array([0, 5, 3]), np.full((4, 2), 0.25), np.array([0.75, 0.5, 0.125]))


def probability(scores, labels, blank):
    """The sum over all paths of frames that read as `labels`."""
    shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        read = [label for label, _ in itertools.groupby(path) if label != blank]
        if read == list(labels):
            total += np.prod(shares[np.arange(len(path)), list(path)])
    return total


@pytest.mark.quick
@pytest.mark.parametrize("blank", [0, -1])
def test_the_loss_is_that_of_all_paths(blank):
    labels = LABELS if blank == 0 else np.array([[1, 0, 0], [0, 2, 2], [1, 2, 1]])
    result = nn.ctc_loss(labels, LOGITS, LENGTHS, FRAMES, blank_index=blank).numpy()
    expected = [
        -np.log(probability(LOGITS[:n, i], labels[i, : LENGTHS[i]], blank % 3))
        for i, n in enumerate(FRAMES)
    ]
    assert_allclose(result, expected, rtol=1e-12)
    batch_first = LOGITS.transpose(1, 0, 2)
    again = nn.ctc_loss(labels, batch_first, LENGTHS, FRAMES, False, blank_index=blank)
    assert_array_equal(again, result)
    assert_array_equal(ops.ctc_loss(labels, batch_first, LENGTHS, FRAMES, blank), result)


@pytest.mark.quick
def test_the_loss_where_there_is_no_path():
    """A repeated label needs a blank between, so four frames for three labels here."""
    logits = tf.constant(LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = nn.ctc_loss(LABELS, logits, LENGTHS, [3, 0, 0])
    assert loss.numpy().tolist() == [np.inf, np.inf, 0.0]
    assert not tape.gradient(loss, logits).numpy().any()
    assert nn.ctc_loss(LABELS, LOGITS.astype("f"), LENGTHS, FRAMES).dtype == tf.float32


def test_the_loss_in_all_modes():
    assert_right_in_all_modes(lambda x: nn.ctc_loss(LABELS, x, LENGTHS, FRAMES), LOGITS)
    compiled = tf.function(nn.ctc_loss)
    result = compiled(tf.constant(LABELS), LOGITS, tf.constant(LENGTHS), tf.constant(FRAMES))
    expected = nn.ctc_loss(LABELS, LOGITS, LENGTHS, FRAMES)
    assert_allclose(result, expected, rtol=1e-13)


@pytest.mark.parametrize("hits", [True, False])
@pytest.mark.parametrize("loss", ["sampled_softmax_loss", "nce_loss"])
def test_losses_by_samples_in_all_modes(loss, hits):
    call = lambda w, b, x: getattr(nn, loss)(w, b, TRUE, x, 3, 7, 2, SAMPLE, hits)
    assert_right_in_all_modes(call, WEIGHTS, BIASES, INPUTS)
    parts = [WEIGHTS[:3], WEIGHTS[3:]]
    assert_array_equal(call(parts, BIASES, INPUTS), call(WEIGHTS, BIASES, INPUTS))


@pytest.mark.quick
def test_a_sample_of_all_classes_gives_the_whole_loss():
    """Each expected once: then the sampled softmax is the softmax."""
    everything = random.all_candidate_sampler(TRUE[:, :1], 1, 7, True)
    result = nn.sampled_softmax_loss(
        WEIGHTS, BIASES, TRUE[:, :1], INPUTS, 7, 7, sampled_values=everything
    )
    logits = INPUTS @ WEIGHTS.T + BIASES
    expected = nn.sparse_softmax_cross_entropy_with_logits(TRUE[:, 0], logits)
    assert_allclose(result, expected, rtol=1e-12)
    rows, places, weights = nn.compute_accidental_hits(TRUE, [0, 5, 3, 4], 2)
    assert_array_equal(rows, [1, 1, 2, 3, 3])
    assert_array_equal(places, [1, 0, 0, 3, 3])
    assert (weights.numpy() == np.finfo(np.float32).min).all()


@pytest.mark.quick
@pytest.mark.parametrize("name", ["uniform", "log_uniform"])
def test_samples_of_classes(name):
    sampler = getattr(random, f"{name}_candidate_sampler")
    size, classes = 9, np.arange(9)
    shares = np.full(9, 1 / 9)
    if name == "log_uniform":
        shares = np.log((classes + 2) / (classes + 1)) / np.log(10)
    sample = sampler(classes[:, None], 1, 20000, False, size, seed=1)
    counts = np.bincount(sample.sampled_candidates.numpy(), minlength=9)
    assert_allclose(counts / 20000, shares, atol=0.012)
    assert_allclose(sample.true_expected_count.numpy()[:, 0], 20000 * shares, rtol=1e-6)
    assert_allclose(
        sample.sampled_expected_count, 20000 * shares[sample.sampled_candidates.numpy()], rtol=1e-6
    )
    drawn = [sampler(TRUE, 2, 5, True, size, seed=i) for i in range(300)]
    assert all(len({*draw.sampled_candidates.numpy().tolist()}) == 5 for draw in drawn)
    # What is expected, from the number of draws, is what occurs on the average.
    occurs = np.bincount(np.concatenate([draw[0].numpy() for draw in drawn]), minlength=9) / 300
    expected = np.mean([draw.true_expected_count.numpy() for draw in drawn], 0)
    assert_allclose(occurs[TRUE], expected, atol=0.12)
    everything = sampler(TRUE, 2, 9, True, 9, seed=3)
    assert sorted(everything.sampled_candidates.numpy().tolist()) == classes.tolist()


def test_samples_are_drawn_at_each_call_of_a_program():
    compiled = tf.function(lambda: random.uniform_candidate_sampler(TRUE, 2, 6, True, 1000)[0])
    assert compiled().numpy().tolist() != compiled().numpy().tolist()
    losses = {
        float(tf.reduce_sum(nn.nce_loss(WEIGHTS, BIASES, TRUE, INPUTS, 3, 7, 2))) for _ in range(8)
    }
    assert len(losses) > 1


@pytest.mark.quick
def test_normal_draws_within_bounds():
    draw = random.stateless_parameterized_truncated_normal
    low, high = np.array([-1.0, 0.5, 6.0, -36.0]), np.array([2.0, 0.75, 9.0, -35.0])
    draws = draw((4000, 4), [1, 2], 0.0, 1.0, low, high).numpy()
    assert ((draws >= low) & (draws <= high)).all()
    grid = low + (high - low) * (np.arange(20000)[:, None] + 0.5) / 20000
    density = np.exp(-(grid**2 - grid[0] ** 2) / 2 - ((grid**2 - grid[0] ** 2) / -2).max(0))
    means = (grid * density).sum(0) / density.sum(0)
    assert_allclose(draws.mean(0), means, atol=0.05)
    assert draws.dtype == np.float64
    assert draw([2], [1, 2]).dtype == tf.float32
    assert_array_equal(draw([2], [1, 2]), draw([2], [1, 2]))
    far = tf.function(lambda low: draw([2], [1, 2], 0.0, 1.0, low, low + 1.0))
    assert np.isnan(far(tf.constant([-45.0, 44.0]))).all()  # not the bounds themselves
    assert_right_in_all_modes(
        lambda m, s, a: draw([2], [3, 4], m, s, a, a + 1.5),
        np.array([0.2, -0.3]),
        np.array([0.7, 1.5]),
        np.array([0.5, -2.0]),
    )


@pytest.mark.quick
@pytest.mark.parametrize(
    ("words", "call"),
    [
        (
            "logits must have shape (frames, batch, classes)",
            lambda: nn.ctc_loss(LABELS, LOGITS[0], LENGTHS, FRAMES),
        ),
        ("label_length must be from 0", lambda: nn.ctc_loss(LABELS, LOGITS, [4, 1, 0], FRAMES)),
        ("logit_length must be from 0", lambda: nn.ctc_loss(LABELS, LOGITS, LENGTHS, [6, 1, 0])),
        ("labels must be from 0 to 2", lambda: nn.ctc_loss(LABELS + 1, LOGITS, LENGTHS, FRAMES)),
        (
            "there are 3 classes",
            lambda: nn.ctc_loss(LABELS, LOGITS, LENGTHS, FRAMES, blank_index=3),
        ),
        ("label_length must have shape (3,)", lambda: nn.ctc_loss(LABELS, LOGITS, [1, 2], FRAMES)),
        (
            "labels must have shape (batch, num_true); got",
            lambda: nn.nce_loss(WEIGHTS, BIASES, TRUE, INPUTS, 3, 8, 2),
        ),
        (
            "unique classes must not exceed range_max",
            lambda: random.uniform_candidate_sampler(TRUE, 2, 8, True, 7),
        ),
        (
            "(batch, num_true = 1)",
            lambda: random.log_uniform_candidate_sampler(TRUE, 1, 8, False, 7),
        ),
        (
            "minvals below maxvals",
            lambda: random.stateless_parameterized_truncated_normal([1], [1, 2], minvals=3.0),
        ),
        (
            "37 standard deviations",
            lambda: random.stateless_parameterized_truncated_normal(
                [1], [1, 2], minvals=-99.0, maxvals=-90.0
            ),
        ),
        (
            "does not broadcast",
            lambda: random.stateless_parameterized_truncated_normal([1], [1, 2], [1.0, 2.0]),
        ),
    ],
)
def test_what_does_not_fit_is_refused(words, call):
    assert_raises(InvalidArgumentError, re.escape(words), call)
