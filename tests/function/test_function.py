"""function: signatures, programs, Variables, randomness, errors, methods, threads."""

import functools
import warnings
from functools import partial

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state, run_in_threads
from tinygrad_cg import errors
from tinygrad_cg._function.tracing.function import Function

X = np.array([1.0, -2.0, 3.0])


def numbers(value):
    return value.numpy().tolist()


class Counted:
    """A Python function that counts how often it runs."""

    def __init__(self, function):
        self.function = function
        self.count = 0

    def __call__(self, *args, **kwargs):
        self.count += 1
        return self.function(*args, **kwargs)


# Signatures ----------------------------------------------------------------------------------


def test_python_runs_once_for_each_shape_and_dtype():
    python = Counted(lambda x: x * 2.0)
    f = tf.function(python)
    for _ in range(3):
        assert numbers(f(tf.constant(X))) == [2.0, -4.0, 6.0]
    assert python.count == f.cache_size == 1
    f(tf.constant(X[:2]))
    f(tf.constant(X, dtype=tf.float32))
    assert python.count == f.cache_size == f.experimental_get_tracing_count() == 3
    f(tf.constant(X))
    assert python.count == 3


def test_arrays_and_what_has_array_are_inputs():
    f = tf.function(lambda x: x + 1)
    assert numbers(f(X)) == numbers(f(tf.constant(X))) == [2.0, -1.0, 4.0]
    assert f.cache_size == 1
    assert isinstance(f(X), tf.Tensor)
    array = X.copy()
    y = f(array)
    array[:] = 0
    assert numbers(y) == [2.0, -1.0, 4.0]
    assert numbers(f(array)) == [1.0, 1.0, 1.0]


def test_a_float_needs_no_new_program_and_is_weak():
    python = Counted(lambda x, rate: x * rate)
    f = tf.function(python)
    for dtype in (tf.float32, tf.float64, tf.float16):
        x = tf.constant(X, dtype=dtype)
        for rate in (0.1, 0.25, -1e-3):
            result = f(x, rate)
            assert result.dtype == x.dtype
            assert numbers(result) == numbers(x * rate)
    assert python.count == 3


def test_floats_among_themselves_are_python_floats():
    def f(x, a, b):
        c = (a + 1) / b - 2**a + (-a) % b // 1 + abs(a - b)
        return x * c, tf.exp(a), tf.constant(b), tf.stack([a, b]), tf.where(a < b, x, -x), c

    x = tf.constant(X)
    for a, b in ((0.1, 0.7), (1.5, 0.3)):
        result, expected = tf.function(f)(x, a, b), f(x, a, b)
        for actual, other in zip(result[:5], expected[:5], strict=True):
            assert actual.dtype == other.dtype
            np.testing.assert_array_equal(actual, other)
        assert result[5].dtype == tf.float32
        np.testing.assert_allclose(result[5], expected[5], rtol=1e-7)


def test_numpy_functions_on_floats():
    f = tf.function(lambda x, a: x * np.exp(a) + np.multiply(a, x))
    np.testing.assert_allclose(f(tf.constant(X), 0.3), X * np.exp(0.3) + 0.3 * X)


@pytest.mark.parametrize(
    "use", [float, int, bool, lambda a: np.asarray(a), lambda a: f"{a:.2f}", lambda a: max(a, 0.0)]
)
def test_the_value_of_a_float_is_not_there(use):
    with pytest.raises(errors.OperatorNotAllowedInGraphError, match="static_argnums"):
        tf.function(lambda a: use(a))(0.5)
    assert_clean_state()


def test_integers_bools_strings_and_none_are_static():
    def f(x, power, flip=False, mode=None):
        y = x**power
        return -y if flip else y + (1 if mode == "more" else 0)

    compiled = tf.function(f)
    x = tf.constant(X)
    for args, kwargs in [((2,), {}), ((3,), {"flip": True}), ((1,), {"mode": "more"})]:
        np.testing.assert_array_equal(compiled(x, *args, **kwargs), f(x, *args, **kwargs))
    assert compiled.cache_size == 3
    assert numbers(compiled(x, True)) == numbers(x)  # not the program for 1
    assert compiled.cache_size == 4


def test_signed_zeros_and_sets_among_the_statics():
    f = tf.function(lambda x, z: x * z)
    x = tf.constant(np.array([1.0 + 0j]))
    for z in (0j, complex(0.0, -0.0), complex(-0.0, 0.0)):
        result, expected = f(x, z).numpy(), (x * z).numpy()
        assert str(result) == str(expected)
    g = tf.function(lambda x, names: x * len(names))
    names = {"a"}
    assert numbers(g(tf.constant(2.0), names)) == 2.0
    names.add("b")
    assert numbers(g(tf.constant(2.0), names)) == 4.0


def test_static_argnums_and_names():
    @functools.partial(tf.function, static_argnums=1, static_argnames="sign")
    def f(x, scale, sign=1.0):
        return x if scale > 1.0 and sign > 0 else -x

    x = tf.constant(X)
    assert numbers(f(x, 2.0)) == X.tolist()
    assert numbers(f(x, 0.5)) == (-X).tolist()
    assert numbers(f(x, 2.0, sign=-1.0)) == (-X).tolist()
    assert numbers(f(x, scale=0.5)) == (-X).tolist()
    assert f.cache_size == 4
    g = tf.function(lambda x, table: x * table[0], static_argnums=-1)
    assert numbers(g(x, np.array([2.0]))) == (2 * X).tolist()
    assert numbers(g(x, np.array([3.0]))) == (3 * X).tolist()
    with pytest.raises(TypeError, match="static_argnums"):
        tf.function(lambda x: x, static_argnums="x")


def test_nested_arguments_and_results():
    @tf.function
    def f(pair, by_name, *, last):
        a, [b, c] = pair
        return {"z": a + b, "a": (c * by_name["w"], None)}, [last], "text"

    x = tf.constant(X)
    result = f((x, [x, 2.0]), {"w": x, "n": 3}, last=x)
    assert list(result[0]) == ["z", "a"]
    assert numbers(result[0]["z"]) == (2 * X).tolist()
    assert numbers(result[0]["a"][0]) == (2 * X).tolist()
    assert result[0]["a"][1] is None
    assert numbers(result[1][0]) == X.tolist()
    assert result[2] == "text"
    f((x, [x, 2.0]), {"n": 3, "w": x}, last=x)
    assert f.cache_size == 1
    f((x, (x, 2.0)), {"n": 3, "w": x}, last=x)
    assert f.cache_size == 2


def test_results_are_tensors_of_their_own():
    c = tf.constant(X)
    x = tf.constant(X)
    y, same, captured, number, literal = tf.function(lambda x: (x, x, c, 3, tf.zeros([2])))(x)
    assert y is not x
    assert y is not same
    assert captured is not c
    assert isinstance(number, tf.Tensor)
    assert number.dtype == tf.int32
    assert numbers(literal) == [0.0, 0.0]
    assert tf.function(lambda x: None)(x) is None
    assert tf.function(lambda x: ())(x) == ()


def test_what_is_no_tensor_cannot_be_returned():
    with pytest.raises(TypeError, match=r"must return tensors.*got function"):
        tf.function(lambda x: tf.exp)(tf.constant(X))
    assert_clean_state()


def test_many_signatures_are_forgotten_and_warned_of():
    f = tf.function(lambda x, n: x * n, jit_compile=False)
    x = tf.constant(X)
    for n in range(4):
        f(x, n)
    with pytest.warns(errors.FunctionWarning, match=r"5 out of the last 5 calls.*retracing"):
        f(x, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(5, 80):
            assert numbers(f(x, n)) == (n * X).tolist()
    assert f.cache_size == 64
    f.clear()
    assert f.cache_size == 0
    assert numbers(f(x, 2)) == (2 * X).tolist()


def test_calls_between_new_programs_are_no_reason_to_warn():
    f = tf.function(lambda x, n: x * n, jit_compile=False)
    x = tf.constant(X)
    for n in range(12):
        f(x, n)
        f(x, n)


def test_the_original_arguments_are_accepted():
    f = tf.function(jit_compile=True, autograph=False, reduce_retracing=True)(lambda x: x)
    assert numbers(f(tf.constant(1.0))) == 1.0
    assert numbers(tf.function(f)(tf.constant(1.0))) == 1.0
    with pytest.raises(TypeError, match="decorates a function"):
        tf.function(3)


def test_names_graph_and_kernels():
    @tf.function
    def squares(x):
        """The squares."""
        return tf.reduce_sum(x * x)

    x = tf.constant(X)
    assert squares.__name__ == "squares"
    assert squares.__doc__ == "The squares."
    assert squares.python_function(x).numpy() == 14.0
    assert "multiply(x0, x0)" in str(squares.graph(x))
    assert isinstance(squares.kernels(x), list)
    assert "squares" in repr(squares)


def test_long_programs_are_not_compiled_unless_asked_to():
    ways = np.random.default_rng(0).integers(0, 3, 1001)  # rounds that are not alike

    def long(x):
        for way in ways:
            x = (tf.cos, tf.sin, tf.tanh)[way](x)
        return x

    x, expected = tf.constant(X), long(tf.constant(X))
    f = tf.function(long)
    with pytest.warns(errors.FunctionWarning, match=r"1001 operations.*jit_compile=True"):
        np.testing.assert_array_equal(f(x), expected)
    np.testing.assert_array_equal(f(x), expected)
    np.testing.assert_array_equal(tf.function(long, jit_compile=False)(x), expected)
    assert f.kernels(x) == []
    assert tf.function(tf.cos).kernels(x)
    assert tf.function(tf.cos, jit_compile=False).kernels(x) == []
    assert tf.function(tf.cos, experimental_compile=False).kernels(x) == []


# Variables -----------------------------------------------------------------------------------


def test_variables_are_read_and_assigned_at_each_call():
    v, other = tf.Variable(X), tf.Variable(np.float64(1), trainable=False)

    @tf.function
    def f(x):
        before = v * 1.0
        v.assign_add(x)
        other.assign(tf.reduce_sum(v))
        other.assign_sub(1.0)
        return before, v + 0.0, other * 1.0

    total = X.copy()
    for _ in range(3):
        before, after, last = f(tf.constant(X))
        np.testing.assert_allclose(before, total)
        total = total + X
        np.testing.assert_allclose(after, total)
        np.testing.assert_allclose(v.numpy(), total)
        np.testing.assert_allclose([last, other.numpy()], np.sum(total) - 1, rtol=1e-6)
    v.assign(X)
    np.testing.assert_allclose(f(tf.constant(X))[0], X)
    assert f.cache_size == 1


def test_parts_of_variables():
    v = tf.Variable(np.zeros((3, 2)))

    @tf.function
    def f(x):
        v[0].assign(x)
        v[1:, 1].assign_add(x)
        v[np.array([2, 2]), 0].assign(x)
        return v[0] * 2.0

    assert numbers(f(tf.constant([1.0, 2.0], tf.float64))) == [2.0, 4.0]
    assert numbers(v) == [[1.0, 2.0], [0.0, 1.0], [2.0, 2.0]]


def test_variables_as_arguments_and_in_structures():
    @tf.function
    def f(variables, x):
        for variable in variables:
            variable.assign_add(x)
        return variables[0] * 1.0

    a, b = tf.Variable(1.0), tf.Variable(2.0)
    assert numbers(f([a, b], tf.constant(1.0))) == 2.0
    assert (numbers(a), numbers(b)) == (2.0, 3.0)
    assert numbers(f([b, a], tf.constant(1.0))) == 4.0


def test_assigning_checks_as_it_does_eagerly():
    v = tf.Variable(X)
    with pytest.raises(ValueError, match="Shape mismatch"):
        tf.function(lambda x: v.assign(x[:2]))(tf.constant(X))
    with pytest.raises(ValueError, match="dtype"):
        tf.function(lambda x: v.assign(x))(tf.constant(X, dtype=tf.float32))
    with pytest.raises(errors.OperatorNotAllowedInGraphError):
        tf.function(lambda x: v.numpy())(tf.constant(X))
    assert numbers(v) == X.tolist()
    assert_clean_state()


def test_the_rate_of_a_step_may_be_a_float():
    v = tf.Variable(np.float32(1.0))
    step = tf.function(lambda rate: v.assign_sub(rate) * 1.0)
    assert numbers(step(0.25)) == 0.75
    assert numbers(step(0.5)) == 0.25
    set_to = tf.function(lambda rate: v.assign(rate) * 1.0)
    assert numbers(set_to(0.5)) == numbers(v) == 0.5


def test_variables_are_made_on_the_first_call_only():
    class Layer:
        def __init__(self):
            self.w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(2.0)
            return self.w * x

    layer = Layer()
    assert numbers(layer(tf.constant(3.0))) == 6.0
    layer.w.assign(3.0)
    assert numbers(layer(tf.constant(3.0))) == 9.0
    assert numbers(layer(tf.constant([3.0]))) == [9.0]
    with pytest.raises(ValueError, match=r"singleton tf.Variables created on the first call"):
        tf.function(lambda x: tf.Variable(1.0) * x)(tf.constant(1.0))
    assert_clean_state()


# Randomness ----------------------------------------------------------------------------------


def test_random_numbers_are_drawn_at_each_call_in_order():
    def f(x):
        a = tf.random.uniform([3], -1.0, 2.0)
        tf.random.normal([2])  # not used, but drawn
        b = tf.random.normal([3], dtype=tf.float64) * x
        return a, b, tf.random.uniform([2], 0, 10, dtype=tf.int32), a * 2.0

    compiled, x = tf.function(f), tf.constant(X)
    tf.random.set_seed(7)
    expected = [f(x), f(x)]
    compiled(x)
    tf.random.set_seed(7)
    for row in expected:
        for result, wanted in zip(compiled(x), row, strict=True):
            assert result.dtype == wanted.dtype
            np.testing.assert_array_equal(result, wanted)
    fixed = tf.function(lambda: tf.random.normal([2], seed=3))
    assert numbers(fixed()) == numbers(fixed()) == numbers(tf.random.normal([2], seed=3))


def test_gradients_see_the_numbers_of_their_call():
    f = tf.function(lambda x: tf.reduce_sum(tf.random.normal([3], dtype=tf.float64) * x**3))
    x = tf.constant(X)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        first = tape.gradient(y, x)
    second = outer.gradient(first, x)
    np.testing.assert_allclose(np.sum(first.numpy() * X) / 3, y)
    np.testing.assert_allclose(second.numpy() * X / 2, first)


# Errors and the rest -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda x: 1.0 if bool(x > 0) else x,
        lambda x: float(x),
        lambda x: x.numpy(),
        lambda x: np.arange(x),
        lambda x: list(range(tf.cast(x, tf.int32))),
        lambda x: tf.zeros([tf.cast(x, tf.int32)]),
        lambda x: x.item(),
    ],
)
def test_values_that_are_not_there_are_errors_at_the_users_line(use):
    with pytest.raises(
        TypeError, match=r"has no value while `<lambda>` is traced.*test_function\.py.*where\(x"
    ):
        tf.function(lambda x: use(x))(tf.constant(1.0))
    assert_clean_state()


def test_shapes_and_static_loops_are_there():
    @tf.function
    def f(x):
        total = tf.zeros([], x.dtype)
        for row in x:
            total = total + tf.reduce_sum(row) * len(x) * x.shape[0]
        return total

    assert numbers(f(tf.constant([[1.0, 2.0], [3.0, 4.0]]))) == 40.0


def test_an_index_without_a_value():
    f = tf.function(lambda x, i: (x[i], x[i, 1:]))
    x = tf.constant(np.arange(6.0).reshape(3, 2))
    for i in (0, 2, -1):
        row, rest = f(x, tf.constant(i))
        assert numbers(row) == numbers(x[i])
        assert numbers(rest) == numbers(x[i, 1:])
    picked = f(x, tf.constant([2, 0]))[0]
    assert numbers(picked) == numbers(x[np.array([2, 0])])


def test_an_error_in_the_function_is_the_users_and_leaves_nothing_behind():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            f(tf.constant(1.0))
        assert_clean_state()
    assert f.cache_size == 0


def test_a_tensor_that_escapes_is_refused_elsewhere():
    kept = []

    def leaking(x):
        kept.append(x * 2)
        return x

    tf.function(leaking)(tf.constant(1.0))
    for use in (
        lambda: tf.function(lambda x: x + kept[0])(tf.constant(1.0)),
        lambda: kept[0].numpy(),
        lambda: kept[0] + 1,
        lambda: tf.reshape(kept[0], (1,)),
        lambda: tf.reduce_sum(kept[0]),
        lambda: tf.cast(kept[0], tf.float64),
        lambda: float(kept[0]),
        lambda: tf.function(lambda x: x)(kept[0]),
    ):
        with pytest.raises(
            errors.InaccessibleTensorError, match=r"out of scope.*`leaking`.*Return it.*Variable"
        ):
            use()
    assert_clean_state()


def test_known_sizes_are_sizes():
    """Issue: `tf.zeros([tf.shape(x)[0], 3])` was an error; sizes are known for each program."""

    @tf.function
    def f(x):
        rows, columns = tf.shape(x)[0], tf.unstack(tf.shape(x))[1]
        flat = tf.reshape(x, [tf.reduce_prod(tf.shape(x))])
        wide = tf.reshape(flat, tf.concat([tf.shape(x), [1]], 0))
        zeros = tf.zeros([rows, 2 * columns // 3]) + tf.fill([rows, 2], 1.0)
        total = sum([x[i] for i in range(rows)], start=tf.zeros(int(columns)))
        return wide, zeros, tf.range(rows + 1), total / tf.cast(rows, tf.float32)

    for size in (2, 4):
        x = tf.constant(np.arange(3.0 * size, dtype=np.float32).reshape(size, 3))
        wide, zeros, counted, mean = f(x)
        assert (wide.shape, zeros.shape, counted.shape) == ((size, 3, 1), (size, 2), (size + 1,))
        assert numbers(mean) == numbers(tf.reduce_mean(x, 0))
    assert f.cache_size == 2
    assert numbers(tf.grad(lambda x: tf.reduce_sum(f(x)[3]))(x)) == [[0.25] * 3] * 4


def test_methods_have_programs_of_their_own():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @tf.function
        def __call__(self, x):
            return x * self.scale

        @tf.function(static_argnums=2)
        def power(self, x, n):
            return x**n * self.scale

    model, two = Model(2.0), Model(3.0)
    x = tf.constant(X)
    for _ in range(2):
        assert numbers(model(x)) == (2 * X).tolist()
        assert numbers(two(x)) == (3 * X).tolist()
        assert numbers(model.power(x, 2.0)) == (2 * X**2).tolist()
    assert model.power.cache_size == 1
    assert "multiply" in str(model.power.graph(x, 2.0))
    assert isinstance(Model.power, Function)


def test_partial_functions_and_callable_instances():
    f = tf.function(functools.partial(lambda a, x: a * x, 2.0))
    assert numbers(f(tf.constant(X))) == (2 * X).tolist()
    counted = Counted(lambda x: -x)
    assert numbers(tf.function(counted)(tf.constant(X))) == (-X).tolist()


def test_functions_in_functions_are_one_program():
    inner = tf.function(lambda x, n: x**n)
    outer = tf.function(lambda x: inner(x, 2) + inner(x, 3))
    assert numbers(outer(tf.constant(2.0))) == 12.0
    assert inner.cache_size == 0

    @tf.function
    def factorial(x, n):
        return x if n <= 1 else factorial(x, n - 1) * n

    assert numbers(factorial(tf.constant(1.0), 5)) == 120.0
    assert factorial.cache_size == 1


def test_gradients_and_graphs_inside():
    @tf.function
    def f(x):
        assert not tf.executing_eagerly()
        y = x**3
        (first,) = tf.gradients(y, x)
        return first, tf.gradients(first, x)[0]

    assert [numbers(number) for number in f(tf.constant(2.0))] == [12.0, 12.0]
    assert tf.executing_eagerly()


def test_threads():
    v = tf.Variable(np.float64(0.0))
    f = tf.function(lambda x: (v.assign_add(1.0), tf.reduce_sum(x * x))[1])

    def is_right(size):
        x = tf.constant(np.ones(size))
        return all(f(x).numpy() == size for _ in range(50))

    assert all(run_in_threads(*[partial(is_right, size) for size in (1, 2, 3, 3)]))
    assert numbers(v) == 200.0
    assert f.cache_size == 3


def test_user_primitives():
    double = tf.primitive("FunctionDouble", lambda x: 2 * x, shape=lambda x: x.shape)
    unknown = tf.primitive("FunctionUnknown", lambda x: 2 * x)
    tf.RegisterGradient("FunctionDouble")(lambda op, dy: 2 * dy)

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = double(x)
        return y, tape.gradient(y, x)

    x = tf.constant(X)
    assert [numbers(number) for number in tf.function(f)(x)] == [numbers(number) for number in f(x)]
    assert numbers(tf.function(unknown)(x)) == numbers(unknown(x))  # a call tells its shape


def test_copies_and_pickles():
    import copy
    import pickle

    f = tf.function(lambda x: x)
    assert copy.deepcopy(f) is f
    with pytest.raises((AttributeError, pickle.PicklingError), match="local object"):
        pickle.dumps(f)  # as Python's own functions; cloudpickle: see tests/rules/test_travel.py


@pytest.mark.parametrize("jit", [True, False])
def test_programs_refuse_input_as_operations_do(jit):
    program = tf.function(lambda x: tf.reduce_min(x, 0) * 2.0, jit_compile=jit)
    with pytest.raises(tf.errors.InvalidArgumentError, match="min of an empty axis"):
        program(tf.zeros((0, 2)))


def test_dtypes_that_no_kernel_takes_are_refused_in_the_words_of_the_operation():
    x = tf.constant([True, False])
    words = "floor_divide: no kernel for dtype bool, bool: cast bool to a numeric dtype first"
    for call in (lambda x: x // x, lambda x: tf.cast(x // x, tf.float32) + 1.0):
        with pytest.raises(TypeError, match=words):
            call(x)
        with pytest.raises(TypeError, match=words):
            tf.function(call)(x)
