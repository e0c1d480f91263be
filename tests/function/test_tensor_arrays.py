"""A TensorArray as a variable of loops and branches of a program: those of eager runs."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.peaks import peak_bytes
from tinygrad_cg.errors import AutographError, InvalidArgumentError
from tinygrad_cg.keras import ops

X = np.linspace(0.2, 1.0, 20)
COUNT = len(X)


def writes(x, n):
    ta, h = tf.TensorArray(x.dtype, size=COUNT), x[0]
    for i in tf.range(COUNT):
        h = tf.tanh(h + x[i])
        ta = ta.write(i, tf.stack([h * h, x[i]]))
    return ta.stack()


def reads_and_writes_backwards(x, n):
    squares = tf.TensorArray(x.dtype, size=COUNT).unstack(x * x)
    ta, h = tf.TensorArray(x.dtype, size=COUNT), x[0]
    for i in tf.range(COUNT):
        h = tf.tanh(h + squares.read(i))
        ta = ta.write(COUNT - 1 - i, h * h)
    return ta.gather([3, 0, 19])


def some_rows(x, n):
    """Every third element is written, after all were."""
    ta, h = tf.TensorArray(x.dtype, size=COUNT).unstack(tf.sin(x)), x[0]
    for i in tf.range(1, COUNT * 3 - 8, 3):
        if i < COUNT:
            ta = ta.write(i, h * h)
        h = tf.tanh(h + x[0])
    return ta.stack() * x


def one_row_again_and_again(x, n):
    ta = tf.TensorArray(x.dtype, size=2, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0]).write(1, x[1])
    for v in x:
        ta = ta.write(1, tf.sin(ta.read(1) * v) + ta.read(0))
    return ta.concat() if x is None else ta.stack()


def of_an_argument(x, n):
    ta, h = tf.TensorArray(x.dtype, size=COUNT, element_shape=()), x[0]
    for i in tf.range(n):
        h = tf.tanh(h + x[i])
        ta = ta.write(i, h * h)
    return ta.stack()


def of_an_argument_in_place(x, n):
    ta = tf.TensorArray(x.dtype, size=COUNT, clear_after_read=False).unstack(x)
    for i in tf.range(n - 5):
        ta = ta.write(i, ta.read(i) * x[0] + 1.0)
    return ta.stack()


def rows_of_rows(x, n):
    ta = tf.TensorArray(x.dtype, size=4).unstack(tf.zeros([4, COUNT], x.dtype))
    for j in tf.range(n - 17):
        row = tf.TensorArray(x.dtype, size=COUNT)
        for i in tf.range(COUNT):
            row = row.write(i, x[i] * tf.cast(j, x.dtype))
        ta = ta.write(j, row.stack())
    return ta.concat()


def of_those_before(x, n):
    ta = tf.TensorArray(x.dtype, size=COUNT, clear_after_read=False)
    ta = ta.write(0, x[0]).write(1, x[1])
    for i in tf.range(2, COUNT):
        ta = ta.write(i, ta.read(i - 1) + ta.read(i - 2) * 0.5)
    return ta.stack() * 0.1


def by_a_condition(x, n):
    ta = tf.TensorArray(x.dtype, size=COUNT, element_shape=(), clear_after_read=False)
    ta, i = ta.write(0, x[3]), 0
    while ta.read(i) < 6.0:
        h = ta.read(i) * 1.3 + x[i]
        i += 1
        ta = ta.write(i, h)
    return ta.stack()


def in_branches(x, n):
    ta = tf.TensorArray(x.dtype, size=3).unstack(x[:3])
    if x[0] > 0.1:  # noqa: SIM108
        ta = ta.write(1, x[5] * x[5])
    else:
        ta = ta.write(n - 19, x[4])
    return ta.stack() ** 2


def while_loop(x, n):
    def body(i, ta, h):
        return i + 1, ta.write(i, h), tf.sin(h * 2.0) + x[i]

    start = 0, tf.TensorArray(x.dtype, COUNT), x[0]
    _, ta, last = tf.while_loop(lambda i, *_: i < COUNT, body, start)
    return ta.stack() * last


def while_loop_of_an_argument(x, n):
    def body(i, ta, h):
        return i + 1, ta.write(i, h * h), tf.sin(h * 2.0) + x[i]

    start = tf.constant(0), tf.TensorArray(x.dtype, COUNT, element_shape=()), x[0]
    return tf.while_loop(lambda i, *_: i < n, body, start)[1].stack()


def scan(x, n):
    def step(carry, v):
        ta, k, h = carry
        return (ta.write(k, v * h), k + 1, tf.sin(h) * v), h

    (ta, _, _), hs = ops.scan(step, (tf.TensorArray(x.dtype, COUNT), 0, x[0]), x)
    return ta.stack() * hs


def folds(x, n):
    def step(carry, v):
        return carry[0].write(carry[1], v * v), carry[1] + 1

    return tf.foldr(step, x, (tf.TensorArray(x.dtype, COUNT), tf.constant(0)))[0].stack() * x


def fori_loop(x, n):
    def body(i, carry):
        return carry[0].write(i, carry[1] * carry[1]), tf.sin(carry[1] + x[i])

    return ops.fori_loop(0, COUNT, body, (tf.TensorArray(x.dtype, COUNT), x[0]))[0].stack()


CASES = [writes, reads_and_writes_backwards, some_rows, one_row_again_and_again, of_an_argument]
CASES += [by_a_condition, in_branches, while_loop, while_loop_of_an_argument]
CASES += [scan, folds, fori_loop, of_an_argument_in_place, rows_of_rows, of_those_before]


def completed(f):
    """The same with zeros where nothing was written, which eagerly is an error."""

    def run(x, n):
        return tf.reduce_sum(tf.exp(f(x, n)) * 0.1)

    return run


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_values_and_derivatives_are_those_of_eager_runs(f):
    loss, x, n = completed(f), tf.constant(X), tf.constant(COUNT)
    v = tf.constant(np.cos(X))
    np.testing.assert_allclose(tf.function(f)(x, n), f(x, n), rtol=1e-12)
    for transform in (
        tf.grad,
        lambda f: lambda x, n: tf.hvp(lambda x: f(x, n))(x, v),
        lambda f: lambda x, n: tf.jvp(lambda x: f(x, n), (x,), (v,))[1],
    ):
        result = tf.function(transform(loss))(x, n)
        np.testing.assert_allclose(result, transform(loss)(x, n), rtol=1e-9, atol=1e-12)
    third = lambda g: tf.grad(tf.grad(lambda s: g(s * x, n)))(tf.constant(1.1, x.dtype))
    np.testing.assert_allclose(third(tf.function(loss)), third(loss), rtol=1e-9)
    xs = tf.stack([x, 0.9 * x])
    each = tf.function(tf.vmap(tf.grad(loss), (0, None)))(xs, n)
    np.testing.assert_allclose(each, [tf.grad(loss)(x, n) for x in xs], rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(dtype):
    def f(x):
        ta, h = tf.TensorArray(x.dtype, size=COUNT), x[0]
        for i in tf.range(COUNT):
            h = h * x[i] + 0.5
            ta = ta.write(i, h)
        return tf.reduce_sum(tf.abs(ta.stack()) ** 2)

    x = tf.cast(tf.constant(X * (1 + 0.5j if dtype == "complex128" else 1)), dtype)
    gradient, expected = tf.function(tf.grad(f))(x), tf.grad(f)(x)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_examples_whose_loops_end_at_other_rounds():
    def f(x, n):
        ta = tf.TensorArray(x.dtype, size=4, element_shape=())
        for i in tf.range(n):
            ta = ta.write(i, x * tf.cast(i + 1, x.dtype))
        return ta.stack()

    result = tf.function(tf.vmap(f))(tf.constant([1.0, 2.0]), tf.constant([4, 2]))
    np.testing.assert_array_equal(result, [[1, 2, 3, 4], [2, 4, 0, 0]])


def names_in_loops(graph):
    names = []
    for value in graph.values():
        if "loop" in value.params:
            names += [
                node.primitive.name
                for node in value.params["loop"].body.graph.values()
                if node.primitive
            ]
    return names


@pytest.mark.parametrize("f", [writes, reads_and_writes_backwards, while_loop, scan, fori_loop])
def test_rows_that_are_known_before_are_no_arrays_in_the_loop(f):
    x, n = tf.constant(X), tf.constant(COUNT)
    for run in (
        completed(f),
        tf.grad(completed(f)),
        tf.grad(lambda x, n: tf.reduce_sum(tf.grad(completed(f))(x, n))),
    ):
        names = names_in_loops(tf.function(run).graph(x, n))
        assert names
        assert not {"set_row", "gather", "gather_adjoint"} & set(names)


def test_memory_of_a_long_loop():
    """A round costs a row, also of a loop whose length a call tells; and so does its gradient."""
    size = 20_000

    def of_constant_size(x, n):
        ta, h = tf.TensorArray(x.dtype, size=size), x[0]
        for i in tf.range(size):
            h = tf.sin(h + x[i])
            ta = ta.write(i, h * h)
        return tf.reduce_sum(ta.stack())

    def told(x, n):
        ta, h = tf.TensorArray(x.dtype, size=size, element_shape=()), x[0]
        for i in tf.range(n):
            h = tf.sin(h + x[i])
            ta = ta.write(i, h * h)
        return tf.reduce_sum(ta.stack())

    x, n = tf.constant(np.random.default_rng(0).uniform(size=size)), tf.constant(size)
    results = []
    for f in (of_constant_size, told):
        run = tf.function(tf.grad(f))
        results.append(run(x, n))
        assert peak_bytes(lambda run=run: run(x, n)) < 100 * x.nbytes
    np.testing.assert_allclose(*results, rtol=1e-9)


def test_what_a_program_refuses():
    x, n = tf.constant(X), tf.constant(COUNT)

    def beyond(x, n):
        ta = tf.TensorArray(x.dtype, size=3, element_shape=())
        for i in tf.range(n):
            ta = ta.write(i, x[i])
        return ta.stack()

    def reads_beyond(x, n):
        ta = tf.TensorArray(x.dtype, size=3).unstack(x[:3])
        return ta.read(n - 21)

    def grows(x, n):
        ta, i = tf.TensorArray(x.dtype, size=0, dynamic_size=True), 0
        while i < n:
            ta, i = ta.write(i, x[i]), i + 1
        return ta.stack()

    def other_shape(x, n):
        ta = tf.TensorArray(x.dtype, size=3).write(0, x)
        return ta.write(n - 19, x[0]).stack()

    def other_dtype(x, n):
        return tf.TensorArray(tf.float32, size=3).write(n - 19, x).stack()

    for f, error, words in [
        (beyond, IndexError, "index 3 is outside of 3 rows"),
        (reads_beyond, IndexError, "3"),
        (grows, AutographError, "`ta` grows in a loop"),
        (other_shape, ValueError, "Incompatible shape"),
        (other_dtype, InvalidArgumentError, "does not match TensorArray dtype"),
        (
            lambda x, n: tf.while_loop(
                lambda i, ta: i < n, lambda i, ta: (i + 1, x), (0, tf.TensorArray(x.dtype, 3))
            ),
            TypeError,
            "loop variable 1 was a TensorArray before the round, and a tensor after",
        ),
    ]:
        with pytest.raises(error, match=words):
            tf.function(f, jit_compile=True)(x, n)
