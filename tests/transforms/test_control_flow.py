"""Loops and choices of TensorFlow: the original's numbers, and derivatives through them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.modes import assert_right_in_all_modes
from tinygrad_cg.keras import ops

pytestmark = pytest.mark.quick


def test_scan_and_folds_are_those_of_the_original():
    x = tf.constant([1.0, 2.0, 3.0])
    assert_array_equal(tf.scan(lambda a, x: a * 2 + x, x), [1, 4, 11])
    assert_array_equal(tf.scan(lambda a, x: a * 2 + x, x, reverse=True), [17, 8, 3])
    sums, products = tf.scan(
        lambda state, x: (state[0] + x[0], state[1] * x[1]), (x, x + 1.0), initializer=(0.0, 1.0)
    )
    assert_array_equal(sums, [1, 3, 6])
    assert_array_equal(products, [2, 6, 24])
    assert float(tf.foldl(lambda a, x: a * 2 + x, x)) == 11
    assert float(tf.foldr(lambda a, x: a * 2 + x, x)) == 17
    assert float(tf.foldl(lambda a, x: a + x, tf.zeros([0]), initializer=5.0)) == 5


def test_while_loop_and_cond_are_those_of_the_original():
    i, product = tf.while_loop(lambda i, p: i < 10, lambda i, p: (i + 3, p * 2.0), (0, 1.0))
    assert (int(i), float(product), i.dtype.name) == (12, 16.0, "int32")
    i, _ = tf.while_loop(
        lambda i, p: i < 10, lambda i, p: [i + 3, p], (0, 1.0), maximum_iterations=2
    )
    assert int(i) == 6
    (last,) = tf.while_loop(lambda i: i < 10, lambda i: i + 3, [tf.constant(0)])
    assert int(last) == 12
    assert float(tf.cond(tf.constant(True), lambda: 1.0, lambda: 1 / 0)) == 1.0
    assert float(tf.cond(False, lambda: 1 / 0, lambda: 2.0)) == 2.0


def test_map_fn_gives_what_a_loop_gives():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert_array_equal(tf.map_fn(tf.reduce_sum, x), [3, 7])
    total, pair = tf.map_fn(
        lambda t: (t[0] + t[1], {"twice": 2 * t[0]}),
        (x, x),
        fn_output_signature=(tf.float32, {"twice": tf.float32}),
    )
    assert_array_equal(total, 2 * x)
    assert_array_equal(pair["twice"], 2 * x)


def test_derivatives_go_through_loops_in_all_modes():
    def recurrence(x):
        states = tf.scan(lambda s, x: tf.tanh(s * 1.5 + x * x), x, initializer=tf.ones_like(x[0]))
        return tf.concat([states, tf.map_fn(tf.sin, x)], 0)

    assert_right_in_all_modes(recurrence, np.array([[0.3, -0.2], [0.5, 0.7], [-0.4, 0.1]]))

    def newton(x):
        return tf.while_loop(
            lambda y, i: i < 4, lambda y, i: ((y + x / y) / 2, i + 1), (tf.ones_like(x), 0)
        )[0]

    assert_right_in_all_modes(newton, np.array([2.0, 0.7]))


def test_a_condition_that_differs_between_examples():
    def doubled(x):
        return tf.while_loop(
            lambda y, n: y < 10.0, lambda y, n: (y * y, n + 1), (x, 0), maximum_iterations=3
        )

    x = tf.constant([1.5, 3.0, 20.0, 1.1])
    values, counts = tf.vmap(doubled)(x)
    assert_allclose(values, [1.5**8, 81.0, 20.0, 1.1**8], rtol=1e-6)
    assert_array_equal(counts, [3, 2, 0, 3])
    slopes = tf.vmap(tf.grad(lambda x: doubled(x)[0]))(x)
    assert_allclose(slopes, [8 * 1.5**7, 108.0, 1.0, 8 * 1.1**7], rtol=1e-6)
    inner = lambda x: tf.vmap(lambda s: doubled(x * s)[0])(tf.constant([1.0, 2.0]))
    assert_allclose(tf.vmap(inner)(x)[1], [81.0, 36.0], rtol=1e-6)
    with pytest.raises(ValueError, match=r"shape \(\) before the round, and of \(2,\) after"):
        tf.vmap(lambda x: tf.while_loop(lambda y: y < 9, lambda y: (tf.stack([y, y]),), (x,)))(x)
    total = tf.Variable(0.0)
    with pytest.raises(ValueError, match="assigns to 'Variable:0' inside vmap"):
        tf.vmap(lambda x: tf.while_loop(lambda y: y < 9, lambda y: (total.assign(1) + y,), (x,)))(x)
    with pytest.raises(TypeError, match=r"to variable 'Variable:0' inside a tr.* Return"):
        tf.vmap(total.assign)(x)


@pytest.mark.quick
@pytest.mark.parametrize("run", [lambda f: f, tf.function])
def test_maps_over_nothing(run):
    """Stacks without rows in the shapes that the function gives, as tf.map_fn in a function."""
    nothing = tf.zeros([0, 3])

    def pairs(x):
        return tf.map_fn(lambda row: {"pair": tf.stack([row, row]), "is": row[0] > 0}, x)

    results = run(pairs)(nothing)
    assert {name: tuple(tensor.shape) for name, tensor in results.items()} == {
        "pair": (0, 2, 3),
        "is": (0,),
    }
    assert (results["pair"].dtype, results["is"].dtype) == (tf.float32, tf.bool)
    assert run(lambda x: tf.keras.ops.map(lambda row: row[:2], x))(nothing).shape == (0, 2)
    two = run(lambda x, y: tf.map_fn(lambda row: row[0] @ row[1], (x, y)))
    assert two(tf.ones([0, 2, 3]), tf.ones([0, 3, 4])).shape == (0, 2, 4)
    squares = run(lambda x: tf.map_fn(lambda row: row * row, x))
    assert [tuple(squares(tf.ones([n, 2])).shape) for n in (0, 1, 3, 0)] == [
        *((0, 2), (1, 2), (3, 2), (0, 2))
    ]
    assert run(tf.vmap(squares))(tf.ones([4, 0, 3])).shape == (4, 0, 3)
    assert run(tf.grad(lambda x: tf.reduce_sum(squares(x))))(nothing).shape == (0, 3)
    assert run(lambda x: tf.jvp(squares, (x,), (x,))[1])(nothing).shape == (0, 3)
    total = tf.Variable(0.0)

    def counted(row):
        total.assign_add(1.0)
        return row + total

    assert run(lambda x: tf.map_fn(counted, x))(nothing).shape == (0, 3)
    assert float(total) == 0.0
    with pytest.raises(TypeError, match=r"declares .'int32'., `fn` returned .'float32'."):
        run(lambda x: tf.map_fn(tf.sin, x, fn_output_signature=tf.int32))(nothing)


@pytest.mark.quick
@pytest.mark.parametrize("run", [lambda f: f, tf.function])
def test_states_that_grow(run):
    """The error names the loop, both shapes and what to do."""
    x, start = tf.ones(3), tf.ones([1])
    loops = {
        "scan": lambda x: tf.scan(lambda a, _: tf.concat([a, a], 0), x, start),
        "foldl": lambda x: tf.foldl(lambda a, _: tf.concat([a, a], 0), x, start),
        "keras": lambda x: tf.keras.ops.scan(lambda a, _: (tf.concat([a, a], 0), a), start, x),
    }
    if run is not tf.function:
        assert run(loops.pop("foldl"))(x).shape == (8,)  # Python's own loop
        loops["map_fn"] = lambda x: tf.map_fn(lambda i: tf.ones([int(i) + 1]), tf.range(3))
    for name, f in loops.items():
        words = "shapes, got|the types of its loop variables: loop variable 0 was float32"
        called = "scan" if name == "keras" else name
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=rf"^{called}: .*({words})"
        ) as info:
            run(f)(x)
        assert "zeros that each round fills in part" in str(info.value)
        assert "(2,)" in str(info.value)


@pytest.mark.quick
def test_what_a_map_over_nothing_needs_values_for():
    """Only `fn` knows the shape of its results, unless a TensorSpec says it."""
    nothing = tf.zeros([0, 3])

    def count(row):
        return tf.ones([int(row[0])])

    with pytest.raises(ValueError, match=r"map_fn: `elems` has no slices .*tf.TensorSpec\("):
        tf.map_fn(count, nothing)
    result = tf.map_fn(count, nothing, fn_output_signature=tf.TensorSpec([5], tf.int32))
    assert (tuple(result.shape), result.dtype) == ((0, 5), tf.int32)
    with pytest.raises(ZeroDivisionError):
        tf.map_fn(lambda row: 1 / 0, nothing)


@pytest.mark.quick
@pytest.mark.parametrize("run", [lambda f: f, tf.function])
def test_scans_over_nothing(run):
    """Stacks without rows: as tf.scan with an initializer gives, and jax.lax.scan."""
    nothing = tf.zeros([0, 3])
    states = run(lambda c: tf.scan(lambda c, x: (c[0] + x, c[1]), nothing, (c, 1.0)))(tf.ones(3))
    assert [tuple(state.shape) for state in states] == [(0, 3), (0,)]
    with pytest.raises(ValueError, match="no slices"):
        run(lambda x: tf.scan(lambda c, x: c + x, x))(nothing)
    total = tf.Variable(0.0)

    def step(c, x):
        total.assign_add(1.0)
        return c * tf.reduce_sum(x), (tf.cast(c, tf.int64), {"x": x[:2], "none": None})

    scan = run(lambda c, xs: tf.keras.ops.scan(step, c, xs))
    last, (counts, rows) = scan(tf.constant(2.0), nothing)
    assert (float(last), float(total)) == (2.0, 0.0)
    assert (counts.shape, counts.dtype) == ((0,), "int64")
    assert (rows["x"].shape, rows["x"].dtype, rows["none"]) == ((0, 2), "float32", None)
    last, none = run(lambda c: tf.keras.ops.scan(lambda c, _: (c, None), c, length=0))(2.0)
    assert (float(last), none) == (2.0, None)
    assert float(tf.grad(lambda c: scan(c, nothing)[0] ** 2)(tf.constant(2.0))) == 4.0
    each = tf.vmap(lambda c: scan(c, nothing))(tf.constant([1.0, 2.0]))
    assert_array_equal(each[0], [1.0, 2.0])
    assert each[1][1]["x"].shape == (2, 0, 2)


def test_a_tape_in_a_loop_watches_a_loop_variable_and_not_the_tensor_it_began_with():
    def descend(z, _):
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = tf.reduce_sum((z - x) ** 2 + z * x)
        return z - 0.25 * tape.gradient(y, z)

    x, zeros = tf.constant([0.3, -0.5, 0.2]), tf.zeros(2)
    loops = [
        lambda x: tf.foldl(descend, zeros, x),
        lambda x: tf.foldr(descend, zeros, x),
        lambda x: tf.scan(descend, zeros, x)[-1],
        lambda x: tf.while_loop(lambda i, z: i < 2, lambda i, z: (i + 1, descend(z, i)), (0, x))[1],
        lambda x: ops.fori_loop(0, 2, lambda i, z: descend(z, i), x),
        lambda x: ops.scan(lambda z, _: (descend(z, None), None), x, None, 2)[0],
    ]
    for loop in loops:
        assert_allclose(loop(x), 0.625 * x, rtol=1e-6)
        assert_allclose(tf.function(loop, jit_compile=False)(x), 0.625 * x, rtol=1e-6)


def test_what_loops_refuse():
    x = tf.constant([1.0, 2.0])
    with pytest.raises(TypeError, match="scan: `fn` must be callable, got int"):
        tf.scan(3, x)
    with pytest.raises(TypeError, match="while_loop: `body` must be callable"):
        tf.while_loop(lambda i: i < 3, None, [0])
    with pytest.raises(TypeError, match="cond: `false_fn` must be callable, got NoneType"):
        tf.cond(True, lambda: 1)
    with pytest.raises(ValueError, match="structure"):
        tf.while_loop(lambda i: i < 3, lambda i: (i, i), [0])
    with pytest.raises(ValueError, match="at least one variable"):
        tf.while_loop(lambda: True, lambda: (), [])
    with pytest.raises(ValueError, match=r"same size along the first axis, got \(2,\), \(3,\)"):
        tf.map_fn(lambda t: t[0], (x, tf.ones(3)))
    with pytest.raises(ValueError, match="at least one dimension"):
        tf.foldl(lambda a, x: a, 1.0)
    with pytest.raises(ValueError, match=r"expected 1 tensor\(s\), got 2"):
        tf.scan(lambda a, x: (a, x), x)
    with pytest.raises(TypeError, match=r"declares \['int32'\], `fn` returned \['float32'\]"):
        tf.map_fn(tf.sin, x, fn_output_signature=tf.int32)
    with pytest.raises(TypeError, match=r"declares \['float32', 'float32'\]"):
        tf.map_fn(tf.sin, x, fn_output_signature=(tf.float32, tf.float32))


# TensorArray ----------------------------------------------------------------------------------


def test_a_tensor_array_is_that_of_the_original():
    array = tf.TensorArray(tf.float32, size=3, element_shape=[2])
    array = array.write(1, [1.0, 2.0])
    assert_array_equal(array.stack(), [[0, 0], [1, 2], [0, 0]])
    assert (int(array.size()), array.element_shape.as_list()) == (3, [2])
    whole = tf.TensorArray(tf.int32, size=3).unstack([5, 6, 7])
    assert_array_equal(whole.gather([2, 0]), [7, 5])
    assert_array_equal(
        tf.TensorArray(tf.int32, size=3).scatter([2, 0, 1], [1, 2, 3]).stack(), [2, 3, 1]
    )
    parts = tf.TensorArray(tf.int32, size=2, infer_shape=False).split([1, 2, 3], [1, 2])
    assert_array_equal(parts.concat(), [1, 2, 3])
    growing = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
    growing = growing.write(0, 2.0).write(1, 3.0)
    assert [float(growing.read(0)), float(growing.read(0)), len(growing)] == [2.0, 2.0, 2]


def test_derivatives_go_through_a_tensor_array_in_all_modes():
    def powers(x):
        array = tf.TensorArray(x.dtype, size=3)
        for i in range(3):
            array = array.write(i, x ** (i + 1))
        return tf.exp(array.stack())

    assert_right_in_all_modes(powers, np.array([0.5, -0.3]))


def test_what_a_tensor_array_refuses():
    new = lambda: tf.TensorArray(tf.float32, size=2)
    with pytest.raises(tf.errors.OutOfRangeError, match="write to index 2 but array is not resize"):
        new().write(2, 1.0)
    with pytest.raises(IndexError, match="index -1"):
        new().write(-1, 1.0)
    with pytest.raises(IndexError, match="read from index 2 but array size is: 2"):
        new().read(2)
    with pytest.raises(ValueError, match="not yet been written"):
        new().stack()
    array = new().write(0, 1.0)
    array.read(0)
    with pytest.raises(ValueError, match="read index 0 twice"):
        array.read(0)
    with pytest.raises(ValueError, match=r"dtype .float64. does not match"):
        new().write(0, tf.constant(1.0, tf.float64))
    with pytest.raises(ValueError, match="Incompatible shape for value"):
        new().write(0, 1.0).write(1, [1.0, 2.0])
    with pytest.raises(ValueError, match="3 elements for an array of size 2"):
        new().unstack([1.0, 2.0, 3.0])


def test_masks_and_sums():
    assert_array_equal(tf.sequence_mask([1, 3, 2]), [[1, 0, 0], [1, 1, 1], [1, 1, 0]])
    rows = tf.sequence_mask([[0], [2]], 3, tf.float32)
    assert_array_equal(rows, [[[0, 0, 0]], [[1, 1, 0]]])
    assert rows.dtype == tf.float32
    with pytest.raises(ValueError, match="must be integers, got float32"):
        tf.sequence_mask([1.0])
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.add_n([x, x * x, tf.constant([1.0, 1.0])])
    assert_allclose(y, [3, 7])
    assert_allclose(tape.gradient(y, x), [3, 5])
    with pytest.raises(ValueError, match="at least one tensor"):
        tf.add_n([])
    with pytest.raises(ValueError, match="same shape and dtype"):
        tf.add_n([x, tf.constant([1.0])])
