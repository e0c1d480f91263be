"""Keras's loops, branches and maps by functions: Python's own, with derivatives in every mode."""

from functools import partial

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg.keras import ops

X = np.array([0.5, -1.5, 2.0])


def scanned(x):
    def step(carry, part):
        value, count = carry
        value = value * part["a"] + tf.sin(part["b"])
        return (value, count + 1), {"value": value, "twice": 2.0 * value}

    (last, count), rows = ops.scan(step, (1.0, 0), {"a": x, "b": x**2})
    rounds = tf.cast(count, x.dtype)  # in a program it has no value
    return last + tf.reduce_sum(rows["value"] * rows["twice"]) + (rounds - x.shape[0])


def written_out(x):
    value, total = 1.0, 0.0
    for i in range(x.shape[0]):
        value = value * x[i] + tf.sin(x[i] ** 2)
        total += 2.0 * value**2
    return value + total


def test_scan_is_a_loop_in_all_modes():
    x = tf.constant(X)
    for transform in (
        lambda f: f,
        tf.grad,
        tf.hessian,
        tf.function,
        lambda f: tf.function(tf.grad(f)),
        lambda f: lambda x: tf.vmap(f)(tf.stack([x, 2 * x])),
        lambda f: lambda x: tf.jvp(f, (x,), (tf.ones_like(x),))[1],
    ):
        result, expected = (transform(f)(x) for f in (scanned, written_out))
        np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.quick
def test_scan_backwards_and_without_slices():
    last, sums = ops.scan(
        lambda c, x: (c + x, c + x), 0.0, tf.constant([1.0, 2.0, 4.0]), reverse=True
    )
    assert (float(last), sums.numpy().tolist()) == (7.0, [7.0, 6.0, 4.0])
    last, powers = ops.scan(lambda c, x: (2 * c, (c, None)), tf.constant(1.0), length=3)
    assert (float(last), powers[0].numpy().tolist(), powers[1]) == (8.0, [1.0, 2.0, 4.0], None)


def test_maps():
    pairs = (tf.constant(X), tf.constant(X[::-1].copy()))
    np.testing.assert_array_equal(ops.map(lambda p: p[0] * p[1], pairs), X * X[::-1])
    np.testing.assert_array_equal(ops.vectorized_map(lambda x: x * x, tf.constant(X)), X * X)
    branched = ops.vectorize(lambda x, n: x**n if x > 0 else 0.0, excluded={1})
    assert branched([0.5, -1.0], 2).dtype == np.float32
    assert branched([0.5, -1.0], 2).numpy().tolist() == [0.25, 0.0]
    chosen = ops.select([X > 0], [tf.constant(X)], 7.0)
    assert chosen.numpy().tolist() == [0.5, 7.0, 2.0]
    assert ops.expand_dims([1.0, 2.0], (0, 2)).shape == (1, 2, 1)
    assert ops.full_like(np.zeros((2, 2), np.float32), [1.0, 2.0]).numpy().tolist() == [[1, 2]] * 2


def test_loops_and_branches_are_differentiated():
    def f(x):
        x = ops.cond(x > 1, lambda: x * x, lambda: -x)
        x = ops.switch(5, [lambda x: x, lambda x: x**3], x)
        x, n = ops.while_loop(lambda x, n: x < 1e3, lambda x, n: (x * x, n + 1), (x, 0))
        return ops.fori_loop(0, n, lambda i, x: x + i * tf.sin(x), x)

    def g(x):
        x = (x * x) ** 3  # 46.656 at 1.9, and its square is more than 1000
        return x * x

    x = tf.constant(1.9, tf.float64)
    assert float(f(x)) == pytest.approx(float(g(x)), rel=1e-14)
    assert float(tf.grad(f)(x)) == pytest.approx(float(tf.grad(g)(x)), rel=1e-14)
    assert float(tf.grad(tf.grad(f))(x)) == pytest.approx(float(tf.grad(tf.grad(g))(x)), rel=1e-14)
    assert float(ops.while_loop(lambda x: x < 9, lambda x: x + 1, x, maximum_iterations=2)) == 3.9


@pytest.mark.quick
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ops.map(lambda x: x, 1.0), ValueError, "at least one dimension"),
        (lambda: ops.scan(lambda c, x: (c, x), 0, (X, X[1:])), ValueError, "on the number of st"),
        (lambda: ops.scan(lambda c, x: (c, x), 0), ValueError, "on the number of steps"),
        (lambda: ops.switch(0, []), ValueError, "at least one branch"),
        (lambda: ops.switch(0.5, [abs]), TypeError, "index must be an integer"),
        (lambda: ops.while_loop(lambda a: 1, lambda a: (a, a), 0), ValueError, "structure"),
        (
            lambda: tf.function(lambda x: ops.cond(x > 0, lambda: x, lambda: (x, x)))(1.0),
            TypeError,
            r"same structure: `false_fn` returned .* `true_fn`",
        ),
    ],
)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


# Scans by associative operations -------------------------------------------------------------


def affine(a, b):  # apply one affine map after the other
    return {"w": a["w"] * b["w"], "c": b["w"] * a["c"] + b["c"]}


def associated(x, axis=0, reverse=False):
    elems = {"w": x + 0.5, "c": tf.sin(x)}
    composed = ops.associative_scan(affine, elems, reverse, axis)
    return tf.stack([composed["w"], composed["c"]])


def one_after_the_other(x, axis=0, reverse=False):
    elems = [{"w": row + 0.5, "c": tf.sin(row)} for row in tf.unstack(x, axis=axis)]
    elems = elems[::-1] if reverse else elems
    composed = elems[:1]
    for elem in elems[1:]:
        composed.append(affine(composed[-1], elem))
    composed = composed[::-1] if reverse else composed
    return tf.stack([tf.stack([elem[key] for elem in composed], axis) for key in ("w", "c")])


def derivatives(run, x, weights):
    def loss(x):
        return tf.reduce_sum(weights * run(x) ** 2)

    yield run(x)
    yield tf.grad(loss)(x)
    yield tf.hessian(loss)(x)
    yield tf.jvp(run, (x,), (tf.cos(x),))[1]
    yield tf.vmap(lambda factor: run(factor * x))(tf.constant([1.0, 2.0], x.dtype))
    yield tf.function(tf.grad(loss), jit_compile=False)(x)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 9])
def test_associative_scan_has_the_results_and_derivatives_of_a_loop(size):
    values = np.random.default_rng(size).uniform(-1, 1, (size, 2))
    for options in ((0, False), (0, True), (-1, True)):
        x = tf.constant(values if options[0] == 0 else values.T)
        weights = tf.constant(np.random.default_rng(0).uniform(-1, 1, (2, *x.shape)))
        ours = derivatives(partial(associated, axis=options[0], reverse=options[1]), x, weights)
        loop = partial(one_after_the_other, axis=options[0], reverse=options[1])
        for result, other in zip(ours, derivatives(loop, x, weights), strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-12, atol=1e-13)


def test_associative_scan_of_complex_numbers_of_nothing_and_what_it_refuses():
    z = tf.constant([1 + 1j, 2 - 1j, 0.5j, 1.5], tf.complex64)
    np.testing.assert_allclose(
        ops.associative_scan(tf.multiply, z), np.cumprod(z.numpy()), rtol=1e-6
    )
    assert ops.associative_scan(tf.add, tf.zeros((0, 3))).shape == (0, 3)
    assert ops.associative_scan(tf.add, [1, 2, 3]).numpy().tolist() == [1, 3, 6]
    for call, error, words in (
        (lambda: ops.associative_scan(tf.add, (X, X[1:])), ValueError, "same size along axis 0"),
        (lambda: ops.associative_scan(lambda a, b: a[:0], X), ValueError, "like those"),
        (lambda: ops.associative_scan(lambda a, b: (a, b), X), ValueError, "structure"),
        (lambda: ops.associative_scan(3, X), TypeError, "callable"),
        (lambda: ops.associative_scan(tf.add, X, axis=5), ValueError, "axis"),
    ):
        with pytest.raises(error, match=words):
            call()
