"""``vectorize``, and the functions of functions on tensors: values of NumPy, and derivatives."""

import numpy as np
import pytest

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp
from tinygrad_cg.errors import InvalidArgumentError

X = np.array([[-1.2, 2.0, 0.5], [3.0, -4.5, 1.0]])


def branched(a, b):
    return a * b if a > 0 else b**2


def dot(a, b):
    return (a * b).sum()


@pytest.mark.parametrize(
    ("f", "options", "args"),
    [
        (branched, {}, (X, [1.0, 2.0, 3.0])),
        (branched, {"otypes": "f"}, (X, 2.0)),
        (lambda a, b: (a + b, a > b), {}, (X, 0.5)),
        (lambda a, n: a ** int(n[1]), {"excluded": {1}}, (X, [7, 3])),
        (dot, {"signature": "(n),(n)->()"}, (X, [1.0, 2.0, 3.0])),
        (lambda a: (a[:2], a.sum()), {"signature": "(n)->(m),()", "otypes": "dd"}, (X,)),
        (lambda a: a[:, ::-1], {"signature": "(m, n)->(m,n)"}, (np.stack([X, X + 1]),)),
        (branched, {"otypes": [np.float32]}, (np.zeros((0, 2)), 1.0)),
    ],
)
def test_vectorize_is_numpys(f, options, args):
    expected = np.vectorize(f, **options)(*args)
    results = tnp.vectorize(f, **options)(*[tf.constant(args[0]), *args[1:]])
    assert isinstance(results, tuple) == isinstance(expected, tuple)
    for result, other in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        assert result.dtype == other.dtype
        np.testing.assert_allclose(result, other, rtol=1e-15)


def test_derivatives_of_vectorized_functions():
    """They are those of the branch that each element takes, at every order, in every mode."""

    def f(x):
        return tnp.sum(tnp.vectorize(branched)(x, x**2))

    def g(x):
        return tf.reduce_sum(tf.where(x > 0, x**3, x**4))

    x = tf.constant(X[0])
    direction = tf.constant(np.array([0.3, -1.0, 2.0]))
    for transform in (tf.grad, tf.hessian, lambda f: lambda x: tf.jvp(f, (x,), (direction,))[1]):
        np.testing.assert_allclose(transform(f)(x), transform(g)(x), rtol=1e-12)

    def smooth(x):
        return tnp.vectorize(lambda a, b: tf.sin(a) * b, signature="(n),()->(n)")(x, x[..., 0])

    expected = np.sin(X) * X[:, :1]
    np.testing.assert_allclose(tf.function(smooth)(X), expected, rtol=1e-12)
    np.testing.assert_allclose(tf.vmap(smooth)(X), expected, rtol=1e-12)


@pytest.mark.quick
def test_vectorize_decorates():
    @tnp.vectorize(otypes="d")
    def power(x, n=2):
        """Return a power."""
        return x ** int(n)

    np.testing.assert_array_equal(power(X, n=[1, 2, 3]), X ** np.array([1, 2, 3]))
    assert (power.__name__, power.__doc__) == ("power", "Return a power.")
    assert tnp.vectorize(dot, doc="Other.").__doc__ == "Other."
    assert tnp.vectorize(lambda x: 0 if x < 0 else x)(X).numpy()[1, 0] == 3.0  # NumPy cuts it off
    assert tnp.vectorize(lambda x: 0 if x < 0 else x)([-1.0, 2.5]).dtype == np.float64


@pytest.mark.quick
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tnp.vectorize(3), TypeError, "`pyfunc` must be a function, got int"),
        (lambda: tnp.vectorize(dot, signature="(n"), ValueError, "is not a signature"),
        (lambda: tnp.vectorize(lambda a: [a, a])(X), ValueError, "give a signature"),
        (lambda: tnp.vectorize(dot, signature="(n),(n)->()")(X), TypeError, "2 arguments"),
        (lambda: tnp.vectorize(dot, signature="(n),(n)->()")(X, X.T), ValueError, "sizes 3 and 2"),
        (lambda: tnp.vectorize(abs, signature="(n)->()")(X), ValueError, "gives a result the axes"),
        (lambda: tnp.vectorize(abs, signature="(n)->()")(1.0), ValueError, "gives an argument"),
        (lambda: tnp.vectorize(abs)([]), ValueError, "without elements, otypes="),
        (lambda: tnp.vectorize(abs, otypes="dd")(X), ValueError, "2 otypes for 1 results"),
        (lambda: tnp.vectorize(dot)(X, [1.0, 2.0]), ValueError, "do not broadcast"),
    ],
)
def test_vectorize_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_choices_by_functions_in_all_modes():
    def f(x):
        chosen = np.select([x > 1, x < 0], [x * x, [1.0, 2.0, 3.0]], 7.0)
        return chosen + tnp.piecewise(x, [x < 0, x > 2], [3, 4, 5])

    expected = f(tf.constant(X)).numpy()
    np.testing.assert_array_equal(
        expected,
        np.select([X > 1, X < 0], [X * X, [[1.0, 2, 3]] * 2], 7)
        + np.piecewise(X, [X < 0, X > 2], [3, 4, 5]),
    )
    np.testing.assert_array_equal(tf.function(f)(X), expected)
    np.testing.assert_array_equal(tf.vmap(f)(X), expected)

    def rows(x):
        return np.apply_along_axis(lambda row: row * row.sum() - row.max(), -1, x)

    expected = X * X.sum(1, keepdims=True) - X.max(1, keepdims=True)
    for mode in (tf.function, tf.vmap):
        np.testing.assert_allclose(mode(rows)(X), expected, rtol=1e-12)
    for mode in (tf.function, tf.vmap):
        for shifted in (lambda v: v - v.mean(), lambda v: v[::-1], lambda v: tf.cumsum(v)):
            with pytest.raises(InvalidArgumentError, match=r"use np\.where"):  # the wrong elements
                mode(lambda x, f=shifted: tnp.piecewise(x, [x < 0], [f]))(X)
