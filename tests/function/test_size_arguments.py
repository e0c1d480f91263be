"""Integer arguments that sizes depend on: their values are part of the signature."""

import pickle

import numpy as np
import pytest

import tinygrad_cg as tf

X = tf.constant(np.arange(12.0).reshape(3, 4))

FORMS = {
    "slice": lambda x, t: x[:t] * 2.0,
    "columns": lambda x, t: x[:, t - 1 :],
    "window": lambda x, t: x[t - 1 : t + 1],
    "tf.slice": lambda x, t: tf.slice(x, [0, 0], [3, t]),
    "reshape": lambda x, t: tf.reshape(tf.reshape(x, [-1])[: 4 * t], [t, -1]),
    "zeros": lambda x, t: tf.zeros([t, 2], x.dtype) + x[0, 0],
    "one_hot": lambda x, t: tf.one_hot([1, 0], t, dtype=x.dtype) * x[0, 1],
    "tile": lambda x, t: tf.tile(x, [1, t]),
    "repeat": lambda x, t: tf.repeat(x, t, axis=0),
    "indices": lambda x, t: x[[t, t - 1]],
    "keras": lambda x, t: tf.keras.ops.slice(x, [t - 1, 0], [1, 2]),
    "top_k": lambda x, t: tf.math.top_k(x, t)[0],
    "pad": lambda x, t: tf.pad(x, [[t, 0], [0, 0]]),
    "axis": lambda x, t: tf.reduce_sum(x, axis=t - 1),
    "roll": lambda x, t: tf.roll(x, t, 0),
    "broadcast": lambda x, t: tf.broadcast_to(x[0, 1], [t, t]),
    "linspace": lambda x, t: tf.linspace(x[0, 1], x[2, 2], t),
    "in a loop": lambda x, t: _in_a_loop(x, t),
    "array": lambda x, t: _in_an_array(x, t, size=t),
    "array that grows": lambda x, t: _in_an_array(x, t, size=0, dynamic_size=True),
}


def _in_a_loop(x, t):
    total = tf.zeros([t, 4], x.dtype)
    for i in tf.range(3):
        total = total + x[:t] * tf.cast(i, x.dtype)
    return total


def _in_an_array(x, n, **size):
    rows = tf.TensorArray(x.dtype, **size)
    for i in tf.range(n):
        rows = rows.write(i, x[i] * tf.cast(i + 1, x.dtype))
    return rows.stack()


@pytest.mark.parametrize("name", FORMS)
def test_values_and_gradients_are_those_of_eager(name):
    """Each value has a program, which calls with it find again, also under a tape."""
    form = FORMS[name]
    compiled = tf.function(form)
    for _ in range(2):
        for number in (2, 1, 2):
            t = tf.constant(number)
            np.testing.assert_allclose(compiled(X, t), form(X, t), rtol=1e-12)
            slopes = [
                tf.grad(lambda x, f=f, t=t: tf.reduce_sum(tf.sin(f(x, t))))(X)
                for f in (compiled, form)
            ]
            np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-12)
    assert compiled.cache_size == (1 if name == "indices" else 2)


@pytest.mark.quick
def test_arguments_in_structures_and_by_keyword():
    @tf.function
    def f(x, options, *, width):
        return x[: options["rows"], :width], options["rows"] * 2

    for rows, width in ((1, 2), (3, 1), (1, 2)):
        part, twice = f(X, {"rows": tf.constant(rows), "y": X}, width=tf.constant(width))
        assert (part.shape, int(twice)) == ((rows, width), 2 * rows)
    assert f.cache_size == 2


@pytest.mark.quick
def test_methods_concrete_functions_and_pickles():
    class Rows:
        @tf.function
        def __call__(self, x, t):
            return x[:t]

    rows = Rows()
    assert [rows(X, tf.constant(k)).shape[0] for k in (1, 3, 1)] == [1, 3, 1]
    concrete = tf.function(first_rows).get_concrete_function(X, tf.constant(2))
    assert concrete(X, tf.constant(2)).shape == (2, 4)
    with pytest.raises(TypeError, match="traced for other arguments"):
        concrete(X, tf.constant(3))
    again = pickle.loads(pickle.dumps(tf.function(first_rows)))
    assert again(X, tf.constant(1)).shape == (1, 4)


def first_rows(x, t):
    return x[:t]


@pytest.mark.quick
def test_what_is_no_size_is_refused_as_before():
    many = tf.constant(np.arange(70))
    for function, arguments in (
        (lambda x, t: x * float(int(t)), (X, tf.constant(2))),  # the user's code asks
        (lambda x, t: [x for _ in range(int(t))], (X, tf.constant(2))),
        (lambda x, t: x[: tf.cast(x[0, 1], "int32")], (X, tf.constant(2))),  # of a float
        (lambda x, t: tf.reshape(x, t[:2]), (X, many)),  # of too many integers
    ):
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="as a Python value"):
            tf.function(function, autograph=False)(*arguments)


@pytest.mark.quick
def test_mapped_functions_may_branch_on_tensors():
    import functools

    class Steep:
        def __call__(self, x):
            if x > 0.0:
                return 2.0 * x
            return 3.0 * x

    def bent(x):
        if x > 0.0:
            return 5.0 * x
        return 7.0 * x

    steep = Steep()

    @tf.function
    def f(x):
        return [
            *map(bent, [x, -x]),
            *map(steep, (x,)),
            functools.reduce(lambda a, b: bent(a) + b, [x, x]),
        ]

    for value in (2.0, -1.0):
        wanted = [bent(value), bent(-value), steep(value), bent(value) + value]
        np.testing.assert_allclose(f(tf.constant(value)), wanted)


@pytest.mark.quick
def test_an_array_that_grows_in_a_loop_of_many_rounds():
    """Its indices have values, as the loop has, also where there are many."""

    @tf.function
    def squares(x, n):
        rows = tf.TensorArray(x.dtype, size=0, dynamic_size=True)
        for i in tf.range(n):
            rows = rows.write(i, x * tf.cast(i, x.dtype))
        return rows.stack()

    for number in (100, 3):
        result = squares(tf.constant(2.0), tf.constant(number))
        np.testing.assert_array_equal(result, 2.0 * np.arange(number))
    by_float = tf.function(lambda x, y: squares(x, tf.cast(y, tf.int32)))
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="an array that grows"):
        by_float(tf.constant(2.0), tf.constant(3.0))
