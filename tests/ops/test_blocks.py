"""Blocks, patches, attention and adaptive pooling: derivatives, and what is refused."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._ops import attention, block_moves, casts, cumulative, pooling, sorting
from tinygrad_cg.keras import ops

RANDOM = np.random.default_rng(7)
IMAGE = RANDOM.normal(size=(1, 4, 2, 4))
HEADS = [RANDOM.normal(size=shape) for shape in ((1, 2, 2, 2), (1, 3, 1, 2), (1, 3, 1, 2))]
FUNCTIONS = {
    "space_to_depth": lambda x: block_moves.space_to_depth(x, 2) ** 3,
    "depth_to_space": lambda x: block_moves.depth_to_space(x, 2) ** 3,
    "space_to_batch": lambda x: block_moves.space_to_batch(x, (2, 2), ((1, 1), (0, 0))) ** 3,
    "batch_to_space": lambda x: (
        block_moves.batch_to_space(tf.reshape(x, (4, 2, 1, 4)), (2, 2), ((0, 1), (0, 0))) ** 3
    ),
    "unfold": lambda x: block_moves.unfold(x, 2, padding=1) ** 3,
    "fold": lambda x: block_moves.fold(tf.reshape(x, (1, 8, 4)), (3, 3), 2) ** 3,
    "frames": lambda x: block_moves.frames(x, 3, 1) ** 3,
    "reverse_sequence": lambda x: block_moves.reverse_sequence(x, [1, 2, 0, 2], 2, 1) ** 3,
    "average": lambda x: pooling.adaptive_pool(tf.reduce_mean, x, 3) ** 3,
    "max": lambda x: pooling.adaptive_pool(tf.reduce_max, x, (3, 1)) ** 3,
    "cumulative_logsumexp": lambda x: cumulative.cumulative_logsumexp(x, 1, reverse=True),
    "rearrange": lambda x: ops.rearrange(x, "b (h k) ... -> (k b) ... h", k=2) ** 3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    tf.assert_gradients(FUNCTIONS[name], IMAGE)


def test_derivatives_of_attention():
    mask = np.array([[True, True, False], [True, False, True]])
    tf.assert_gradients(
        lambda q, k, v: attention.dot_product_attention(
            q, k, v, mask=mask, attn_logits_soft_cap=2.0
        ),
        *HEADS,
    )


def test_sums_of_exponentials_keep_small_terms():
    result = cumulative.cumulative_logsumexp([-2000.0, 0.0, 1000.0])
    assert result.numpy().tolist() == [-2000.0, 0.0, 1000.0]
    result = cumulative.cumulative_logsumexp([1.0, 2.0], exclusive=True)
    assert result.numpy().tolist() == [-np.inf, 1.0]


def test_casts_stop_at_limits():
    result = casts.saturate_cast(np.float32([-1e20, 3e9, 1e20, np.nan]), "int64")
    assert result.numpy().tolist() == [-(2**63), 3 * 10**9, 2**63 - 1, 0]
    assert casts.saturate_cast(np.int64([-1, 2**40]), "uint32").numpy().tolist() == [0, 2**32 - 1]
    assert casts.saturate_cast(np.float64(1e300), "float32").numpy() == np.finfo(np.float32).max


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: block_moves.space_to_depth(IMAGE, 3), "multiples of block_size 3"),
        (lambda: block_moves.depth_to_space(IMAGE, 3), "4 channels must be a multiple of"),
        (lambda: block_moves.space_to_batch(IMAGE, (3, 1), ((0, 0), (0, 0))), "multiples of"),
        (lambda: block_moves.batch_to_space(IMAGE, (2, 1), ((0, 0), (0, 0))), "the batch, 1, must"),
        (lambda: block_moves.unfold(IMAGE, 5), "no window of size"),
        (lambda: block_moves.fold(IMAGE[0], 3, 2), "fold: x must have shape"),
        (lambda: block_moves.frames([1.0], 2, 1), "length must be no more than the last axis"),
        (lambda: block_moves.reverse_sequence(IMAGE, [3], 2), "lengths must be"),
        (lambda: pooling.adaptive_pool(tf.reduce_mean, IMAGE, (1, 2, 3)), None),
        (lambda: sorting.in_top_k([0], [1.0], 1), None),
        (lambda: attention.dot_product_attention(HEADS[1], HEADS[0], HEADS[0]), None),
        (lambda: casts.bitcast(np.int8([1, 2, 3]), np.int16), None),
        (lambda: ops.rearrange(IMAGE, "a b c -> c b a"), None),
        (lambda: ops.rearrange(IMAGE, "a (b k) c d -> a b k c d", k=3), None),
        (lambda: ops.psnr([1.0], [1.0, 2.0], 1.0), None),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        call()


@pytest.mark.parametrize("axis", ["", 0.0, []])
def test_an_axis_of_the_batch_is_an_integer_or_none(axis):
    with pytest.raises(TypeError, match="reverse_sequence: axis must be an integer"):
        tf.reverse_sequence(IMAGE, [1], 2, axis)
