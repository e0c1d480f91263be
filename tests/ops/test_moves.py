"""Einsum, padding, splitting and sorting as users call them: values, gradients, errors."""

from types import SimpleNamespace

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._ops.einsum import einsum
from tinygrad_cg._ops.padding import pad
from tinygrad_cg._ops.shape import split, split_at
from tinygrad_cg._ops.sorting import argsort, one_hot, sort, take_along_axis, top_k
from tinygrad_cg._transforms.batching import vmap


def numbers(*shape):
    return np.asarray(np.random.default_rng(len(shape)).normal(size=shape))


SUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ji,jk->ki", (3, 2), (3, 4)),
    ("ba", (2, 3)),
    ("ij->", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iji->ij", (3, 2, 3)),
    ("iii", (2, 2, 2)),
    ("iijj->ji", (2, 2, 3, 3)),
    ("i,i->i", (3,), (3,)),
    ("i,j->ji", (3,), (4,)),
    (",i->i", (), (3,)),
    ("ij,kl->", (2, 3), (3, 2)),
    ("i,i", (1,), (3,)),
    ("ij,ij->j", (1, 3), (2, 3)),
    ("ij,j->", (0, 3), (3,)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("ijk,jil->kl", (3, 4, 5), (4, 3, 2)),
    ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("...ij,...jk", (5, 2, 3), (3, 4)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (6, 3, 4)),
    ("i...,i...->...", (2, 3), (2, 3)),
    ("...a->a...", (2, 3, 4)),
    ("i,j,ij->", (3,), (4,), (3, 4)),
    ("ab,bc,cd,de->ae", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("ij,ik,il->jkl", (2, 3), (2, 4), (2, 2)),
    (" a b , b c -> a c ", (2, 3), (3, 4)),
]


@pytest.mark.parametrize("case", SUMS, ids=str)
def test_einsum_is_numpys(case):
    subscripts, *shapes = case
    operands = [numbers(*shape) for shape in shapes]
    result = einsum(subscripts, *operands).numpy()
    expected = np.einsum(subscripts, *operands)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, atol=1e-13)
    transposed = [operand.copy(order="F") for operand in operands]
    np.testing.assert_allclose(einsum(subscripts, *transposed).numpy(), expected, atol=1e-13)


@pytest.mark.parametrize("case", SUMS, ids=str)
def test_einsum_is_linear_in_each_operand_and_its_gradient_says_so(case):
    subscripts, *shapes = case
    operands = [tf.constant(numbers(*shape)) for shape in shapes]
    with tf.GradientTape() as tape:
        tape.watch(operands)
        out = einsum(subscripts, *operands)
    total = np.sum(out.numpy())
    for operand, slope in zip(operands, tape.gradient(out, operands), strict=True):
        assert slope.shape == operand.shape
        assert np.vdot(operand.numpy(), slope.numpy()) == pytest.approx(total, abs=1e-12)


def test_second_derivatives_of_einsum():
    x, a = tf.constant(numbers(3)), numbers(3, 3)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = einsum("i,ij,j->", x, a, x)
        slope = tape.gradient(y, x)
    row = outer.gradient(slope, x, output_gradients=tf.constant(np.eye(3)[0]))
    np.testing.assert_allclose(row.numpy(), (a + a.T)[0])


def test_einsum_in_a_batch():
    stack, other = tf.constant(numbers(4, 2, 3)), numbers(3, 2)
    result = vmap(lambda x: einsum("ij,jk->ki", x, other))(stack).numpy()
    np.testing.assert_allclose(result, np.einsum("bij,jk->bki", stack.numpy(), other))


def test_transposed_operands_are_not_copied(monkeypatch):
    """BLAS reads a matrix along either axis: it must get the caller's own memory."""
    from tinygrad_cg_kernels.runtime import errstate

    seen = []
    run = errstate.quiet.run

    def watched(function, *arguments):
        if function is np.matmul:
            seen.extend(arguments)
        elif function.__name__ == "dot":  # x.dot, which has x
            seen.extend((function.__self__, arguments[0]))
        return run(function, *arguments)

    quiet = SimpleNamespace(run=watched)
    for module in ("matmul", "products"):
        monkeypatch.setattr(f"tinygrad_cg_kernels.linear.{module}.quiet", quiet)
    cases = (
        ("ji,kj->ik", (3, 2), (4, 3)),
        ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
        ("bsd,df->bsf", (2, 3, 4), (4, 5)),
        ("fd,bsd->bsf", (5, 4), (2, 3, 4)),
    )
    for subscripts, *shapes in cases:
        operands = [tf.constant(numbers(*shape)) for shape in shapes]
        seen.clear()
        einsum(subscripts, *operands)
        assert len(seen) == 2
        for matrix in seen:
            assert any(np.shares_memory(matrix, operand._data) for operand in operands)


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk->il", [(2, 3), (3, 4)], "the result names 'l', but no operand does"),
        ("ij,jk->ii", [(2, 3), (3, 4)], "the result names 'i' twice"),
        ("ij", [(2,)], "'ij' names 2 axes, but its operand has 1"),
        ("i", [(2, 3)], "'i' names 1 axes, but its operand has 2"),
        ("ij,jk", [(2, 3), (2, 3)], "the axes 'j' have different sizes, 3 and 2"),
        ("i1", [(2, 3)], "'1' is not allowed: use letters"),
        ("i.j", [(2, 3)], "'.' is not allowed: use letters"),
        ("ij,jk", [(2, 3)], "the commas separate 2 operands, but the call passes 1"),
        ("ij->i->j", [(2, 3)], "'->' may occur only once"),
        ("ii", [(1, 3)], "the axes 'i' have different sizes, 1 and 3"),
        ("...i->i", [(2, 3)], "the result needs '...', too: sum over its axes"),
        ("...i,...i", [(2, 3), (4, 3)], r"the axes '...' have different sizes, 2 and 4"),
    ],
)
def test_subscripts_that_do_not_fit(subscripts, shapes, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        einsum(subscripts, *[np.ones(shape) for shape in shapes])


def test_einsum_refuses_bool_and_other_subscripts():
    with pytest.raises(TypeError, match="einsum: does not support bool"):
        einsum("i->", [True, False])
    with pytest.raises(TypeError, match="subscripts must be a string, got list"):
        einsum([0], [1.0])
    assert einsum("i,j->", [True, True], [1.5]).numpy() == 3.0
    with pytest.raises(ValueError, match="labels must be from 0 to 51"):
        tf.numpy.einsum([1.0], [52])
    with pytest.raises(
        TypeError, match="after each operand, a list of integers must name its axes, got 3"
    ):
        tf.numpy.einsum([1.0], 3)


# Padding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["constant", "reflect", "symmetric", "edge", "wrap"])
@pytest.mark.parametrize("widths", [1, (2, 1), ((0, 3), (1, 0)), ((5, 4), (0, 0))])
def test_padding_and_its_gradient(mode, widths):
    x = tf.constant(numbers(2, 3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = pad(x, widths, mode)
    np.testing.assert_array_equal(out.numpy(), np.pad(x.numpy(), widths, mode))
    weights = numbers(*out.shape)
    slope = tape.gradient(out, x, output_gradients=weights).numpy()
    assert np.vdot(slope, x.numpy()) == pytest.approx(np.vdot(weights, out.numpy()))


def test_the_constant_has_a_gradient():
    value = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(value)
        out = pad(tf.ones((2, 3)), ((1, 0), (0, 2)), value=value)
    assert tape.gradient(out, value).numpy() == 9.0
    assert pad([1, 2], 1, value=7).numpy().tolist() == [7, 1, 2, 7]
    assert np.signbit(pad([1.0], 1, value=-0.0).numpy()).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pad([1], 1, "mean"), "mode must be one of"),
        (lambda: pad([1], -1), "must not be negative"),
        (lambda: pad([[1]], [(1, 1)] * 3), "a pair of widths for each of 2 axes"),
        (lambda: pad([], 1, "edge"), "cannot repeat elements of an empty axis"),
        (lambda: pad([1], 1, value=[1, 2]), "must be a single number"),
    ],
)
def test_padding_that_is_refused(call, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()


def test_widths_must_be_integers():
    with pytest.raises(TypeError, match="a width must be an integer"):
        pad([1], [(0.5, 1)])
    with pytest.raises(TypeError, match="widths must be numbers or pairs, got dict"):
        pad([1], {0: (1, 1)})


# Splitting -----------------------------------------------------------------------------------


def test_parts_keep_gradients():
    x = tf.constant(numbers(2, 6))
    with tf.GradientTape() as tape:
        tape.watch(x)
        first, *_, last = split(x, 3, axis=1)
        y = tf.reduce_sum(first * 2) + tf.reduce_sum(last * 3)
    assert tape.gradient(y, x).numpy()[0].tolist() == [2, 2, 0, 0, 3, 3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split([1, 2, 3], 2), "cannot split axis 0 of .* into 2 equal parts"),
        (lambda: split([1, 2, 3], 0), "0 equal parts"),
        (lambda: split([1, 2, 3], [1, 1]), r"sizes \(1, 1\) do not add up to 3"),
        (lambda: split([1, 2, 3], [-1, -1]), "do not add up to 3"),
        (lambda: split([1, 2, 3], [5, -1]), "do not add up to 3"),
        (lambda: split_at([1, 2, 3], 2), "2 equal parts"),
        (lambda: split_at([1, 2, 3], 0, uneven=True), "must be at least 1, got 0"),
        (lambda: split([1, 2, 3], 3, axis=1), "axis 1 is out of range"),
    ],
)
def test_parts_that_are_refused(call, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()


# Sorting and looking up ----------------------------------------------------------------------


def test_the_gradient_of_sorting_goes_back_to_where_elements_stood():
    x = tf.constant([3.0, 1.0, 2.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = sort(x, descending=True)
    slope = tape.gradient(y, x, output_gradients=tf.constant([1.0, 2.0, 3.0, 4.0]))
    assert slope.numpy().tolist() == [1.0, 3.0, 2.0, 4.0]


def test_the_largest_keep_gradients():
    x = tf.constant([[3.0, 1.0, 4.0], [1.0, 5.0, 5.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = top_k(x, 2)
        y = tf.reduce_sum(result.values * [2.0, 1.0])
    assert result.indices.numpy().tolist() == [[2, 0], [1, 2]]
    assert tape.gradient(y, x).numpy().tolist() == [[1.0, 0.0, 2.0], [0.0, 2.0, 1.0]]


def test_looking_up_broadcasts():
    x = tf.constant(numbers(3, 4))
    index = [[2, 0]]
    result = take_along_axis(x, index, 1).numpy()
    np.testing.assert_array_equal(result, np.take_along_axis(x.numpy(), np.array(index), 1))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = take_along_axis(x[:, :1], [[0] * 5] * 3, 1)
    assert tape.gradient(y, x).numpy().sum() == 15


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: take_along_axis([1], [0.5], 0), "indices must be integers"),
        (lambda: take_along_axis([1], [[0]], 0), "the numbers must be equal"),
        (lambda: take_along_axis([[1], [2]], [[0]] * 3, 1), "do not broadcast"),
        (lambda: top_k([1, 2], 3), "got k = 3"),
        (lambda: top_k(1.0), "at most the size of the last axis"),
        (lambda: one_hot([1.0], 2), "indices must be integers, got float32"),
        (lambda: one_hot([1], -2), "depth must not be negative"),
        (lambda: sort([1], 1), "axis 1 is out of range"),
        (lambda: argsort(1), "axis -1 is out of range"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
