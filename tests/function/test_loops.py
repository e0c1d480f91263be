"""Loops of programs: values and derivatives of any order are those of eager runs."""

from functools import partial

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import same, unfused
from tests.support.peaks import peak_bytes
from tinygrad_cg._function.codegen import rounds
from tinygrad_cg._function.tracing import loops
from tinygrad_cg.errors import InvalidArgumentError
from tinygrad_cg.keras import ops
from tinygrad_cg_kernels.runtime import compile as build

X = np.array([0.3, -0.2, 0.5])
STEPS = np.linspace(0.1, 1.0, 12).reshape(4, 3)
W = np.random.default_rng(0).normal(size=(3, 3))


@tf.custom_gradient
def odd(x):
    """A square whose rule is not its derivative."""
    return x * x, lambda dy: dy * 7.0 * x


variable = tf.Variable([1.5, -0.5, 1.0], dtype=tf.float64)


def halves(x, xs):
    """A loop that ends by its values."""
    end, count = tf.while_loop(
        lambda y, n: tf.reduce_sum(y * y) > 0.05,
        lambda y, n: (0.5 * y + 0.1 * y * y, n + 1),
        (x, 0),
    )
    return end * tf.cast(count, x.dtype)


def both(x, xs):
    last, rows = ops.scan(lambda c, s: (tf.sin(c) + s, (c * s, tf.ones_like(s), s)), x, xs)
    return last + tf.reduce_sum(rows[0] * rows[1] - rows[2], 0)


FUNCTIONS = {
    "scan": lambda x, xs: tf.scan(lambda c, s: tf.tanh(c * s + x), xs, x),
    "scan in reverse": lambda x, xs: tf.scan(lambda c, s: tf.sin(c) * s * x, xs, reverse=True),
    "carry and rows": both,
    "a pair": lambda x, xs: tf.foldl(lambda c, s: (c[1], c[0] * s + c[1]), xs, (x, 2 * x))[1],
    "a carry that stays": lambda x, xs: tf.foldl(lambda c, s: (c[0], c[1] * c[0] + s), xs, (x, x)),
    "each state kept": lambda x, xs: tf.foldr(
        lambda c, s: tf.sin(c) * s * x, xs, x, checkpoint="every"
    ),
    "some states kept": lambda x, xs: tf.scan(
        lambda c, s: tf.sin(c) * s * x, tf.concat([xs, xs[:3]], 0), checkpoint="sqrt"
    ),
    "some states kept, in reverse": lambda x, xs: tf.reduce_sum(
        ops.scan(
            lambda c, s: (tf.sin(c * s), {"a": s * c}),
            x,
            tf.concat([xs, xs[:1]], 0),
            reverse=True,
            checkpoint="sqrt",
        )[1]["a"],
        0,
    ),
    "products": lambda x, xs: tf.foldl(lambda c, s: tf.tanh(c @ W + s), xs, tf.reshape(x, (1, 3))),
    "a reduction": lambda x, xs: tf.foldl(lambda c, s: tf.nn.softmax(c * s) * tf.norm(c), xs, x),
    "a mean": lambda x, xs: tf.foldl(lambda c, s: tf.sin(c) + tf.reduce_mean(c) * s, xs, x),
    "nested": lambda x, xs: tf.foldl(
        lambda c, s: tf.foldl(lambda a, b: tf.sin(a * b) + s, xs, c), xs, x
    ),
    "a custom gradient": lambda x, xs: tf.foldl(lambda c, s: odd(c) + s, xs, x),
    "recomputed": lambda x, xs: tf.foldl(tf.recompute_grad(lambda c, s: tf.sin(c) * s), xs, x),
    "a variable": lambda x, xs: tf.foldl(lambda c, s: tf.sin(c * variable) + s, xs, x),
    "a branch": lambda x, xs: tf.foldl(
        lambda c, s: tf.cond(tf.reduce_sum(c) > 0.5, lambda: c * s, lambda: tf.exp(c) + s), xs, x
    ),
    "while": halves,
}


def flat(f):
    """The sum of squares of all that a function returns."""
    return lambda x, xs: sum(tf.reduce_sum(leaf * leaf) for leaf in tf.nest.flatten(f(x, xs)))


MODES = {
    "value": lambda f: f,
    "gradient": lambda f: tf.grad(f, (0, 1)),
    "hessian": lambda f: lambda x, xs: tf.hessian(lambda x: f(x, xs))(x),
    "forward": lambda f: lambda x, xs: tf.jvp(f, (x, xs), (tf.cos(x), tf.cos(xs)))[1],
    "forward over reverse": lambda f: (
        lambda x, xs: tf.jvp(lambda x: tf.grad(f)(x, xs), (x,), (tf.cos(x),))[1]
    ),
    "batch": lambda f: lambda x, xs: tf.vmap(f, (0, None))(tf.stack([x, -2 * x, 0 * x]), xs),
    "gradients of a batch": lambda f: (
        lambda x, xs: tf.vmap(tf.grad(f), (0, None))(tf.stack([x, -2 * x]), xs)
    ),
    "a gradient through a batch": lambda f: tf.grad(
        lambda x, xs: tf.reduce_sum(tf.vmap(f, (0, None))(tf.stack([x, -2 * x]), xs) ** 2)
    ),
}


FEW_MODES = "value", "gradient", "forward over reverse"
IN_ALL_MODES = "scan", "carry and rows", "products", "a custom gradient", "a branch", "while"


def eager(mode, f):
    """The same, where `while` needs values: of one example after the other."""
    if mode == "batch":
        return lambda x, xs: tf.stack([f(start, xs) for start in (x, -2 * x, 0 * x)])
    if mode == "gradients of a batch":
        return lambda x, xs: tf.stack([tf.grad(f)(start, xs) for start in (x, -2 * x)])
    if mode == "a gradient through a batch":
        return tf.grad(lambda x, xs: f(x, xs) ** 2 + f(-2 * x, xs) ** 2)
    return MODES[mode](f)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_eager_runs(name):
    """Operation by operation: kernels are another test's."""
    f = flat(FUNCTIONS[name])
    arguments = tf.constant(X), tf.constant(STEPS)
    for mode in MODES if name in IN_ALL_MODES else FEW_MODES:
        results = tf.nest.flatten(unfused(MODES[mode](f))(*arguments))
        wanted = tf.nest.flatten(eager(mode, f)(*arguments))
        for result, other in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-9, atol=1e-9, err_msg=mode)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_of_loops_and_their_gradients(name):
    f, arguments = flat(FUNCTIONS[name]), (tf.constant(X), tf.constant(STEPS))
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        value = tf.function(f)(*arguments)
    gradients = tape.gradient(value, arguments, unconnected_gradients="zero")
    np.testing.assert_allclose(value, f(*arguments), rtol=1e-12)
    for gradient, other in zip(gradients, tf.grad(f, (0, 1))(*arguments), strict=True):
        np.testing.assert_allclose(gradient, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_products_of_other_dtypes(dtype):
    x, xs, w = (tf.constant(array.astype(dtype)) for array in (X, STEPS, W))
    if dtype == "complex128":
        x, xs = x + 0.1j, xs - 0.2j

    def f(x, xs):
        end = tf.foldl(lambda c, s: tf.tanh(c @ w + s), xs, tf.reshape(x, (1, 3)))
        return tf.reduce_sum(tf.abs(end) ** 2)

    run = tf.value_and_grad(f, (0, 1))
    same(unfused(run)(x, xs), run(x, xs), 1e-5 if dtype == "float32" else 1e-12)


def test_third_derivatives_of_a_loop_that_its_values_end():
    f = lambda x: tf.reduce_sum(halves(x, None))
    for _ in range(3):
        before = f
        f = lambda x, before=before: tf.reduce_sum(tf.grad(before)(x) ** 2)
    x = tf.constant(X)
    np.testing.assert_allclose(unfused(f)(x), f(x), rtol=1e-9)


def test_each_example_of_a_batch_has_rounds_of_its_own():
    starts, goals = np.array([[0.5, 0.7], [0.8, 0.3], [0.9, 0.95]]), np.array([1.0, 30.0, -5.0])

    def grown(x, goal):
        return tf.reduce_sum(
            tf.while_loop(lambda y: tf.reduce_sum(y) < goal, lambda y: (y * y + 0.3,), (x,))[0]
        )

    derivatives = [grown, tf.grad(grown), lambda x, goal: tf.hessian(lambda x: grown(x, goal))(x)]
    for f in derivatives:
        results = unfused(tf.vmap(f))(tf.constant(starts), tf.constant(goals))
        pairs = zip(tf.constant(starts), tf.constant(goals), strict=True)
        np.testing.assert_allclose(results, tf.stack([f(*pair) for pair in pairs]), rtol=1e-12)


def test_a_body_of_elementwise_operations_is_one_function_in_machine_code(monkeypatch):
    compiled = []

    def compile_rounds(loop, otherwise):
        compiled_loop = rounds.compile_rounds(loop, otherwise)
        compiled.append(compiled_loop is not None)
        return compiled_loop

    monkeypatch.setattr(loops, "compile_rounds", compile_rounds)
    monkeypatch.setattr(rounds, "scalarize", lambda *_: None)
    names = "scan", "scan in reverse", "carry and rows", "a pair", "while"
    for name in names:
        compiled.clear()
        f = flat(FUNCTIONS[name])
        tf.function(tf.value_and_grad(f, (0, 1)))(tf.constant(X), tf.constant(STEPS))
        assert compiled
        assert all(compiled), name


def test_machine_code_is_for_any_number_of_rounds():
    def recurrence(length):
        return tf.function(
            tf.grad(
                lambda x: tf.reduce_sum(
                    ops.scan(lambda c, _: (tf.tanh(c * x), None), x, None, length)[0]
                )
            )
        )

    recurrence(10)(tf.constant(X))
    before = build.compiled.count("rounds")
    result = recurrence(1000)(tf.constant(X))
    assert build.compiled.count("rounds") == before
    assert np.isfinite(result).all()


def test_assignments_and_random_numbers_and_prints_are_those_of_each_round(capfd):
    total = tf.Variable(np.zeros(3))

    @tf.function
    def summed(xs):
        return tf.foldl(
            lambda c, s: (total.assign_add(s), c * 2.0 + total)[1], xs, tf.zeros_like(xs[0])
        )

    result = summed(tf.constant(STEPS))
    np.testing.assert_allclose(total, STEPS.sum(0))
    expected = np.zeros(3)
    for row in np.cumsum(STEPS, 0):
        expected = expected * 2 + row
    np.testing.assert_allclose(result, expected)

    @tf.function
    def noisy(x):
        return tf.foldl(lambda c, s: c * tf.random.normal((3,), dtype=tf.float64) * x, STEPS, x)

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = noisy(x)
    np.testing.assert_allclose(tape.gradient(y, x) * x, 5 * y, rtol=1e-12)  # with the same numbers
    assert np.abs(noisy(x) - y).max() > 0

    tf.function(lambda x: tf.foldl(lambda c, s: (tf.print(s[0]), c * s)[1], STEPS[:2], x))(x)
    assert capfd.readouterr().err.splitlines() == ["0.1", "0.34545454545454546"]


def both_gradients(f, x, variables):
    """Return the gradients, and those of the sum of their squares."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        first = tape.gradient(y, [x, *variables])
        square = sum(tf.reduce_sum(gradient * gradient) for gradient in first)
    return [*first, *outer.gradient(square, [x, *variables])]


def test_gradients_by_a_variable_are_those_of_each_round_that_reads_it():
    """Also where the body assigns it: TensorFlow's numbers."""
    v, x = tf.Variable([2.0, 3.0], dtype=tf.float64), tf.constant([0.3, 0.2], tf.float64)

    def step(c):
        c = c * v
        v.assign_add(c)
        return c * v

    def fold(x):
        return tf.reduce_sum(tf.foldl(lambda c, e: step(c) * e, np.array([0.5, 0.2]), x) * v)

    def until(x):
        end = tf.while_loop(lambda c: tf.reduce_sum(c * c) < 6.0, lambda c: (step(c),), (x,))
        return tf.reduce_sum(end[0] * v)

    numbers = {
        fold: [[28.95765517, 218.00071987], [14.78041768, 50.40102113]],
        until: [[13.52, 38.88], [5.148, 6.912]],
    }
    for f, expected in numbers.items():
        v.assign([2.0, 3.0])
        wanted = both_gradients(f, x, [v])
        v.assign([2.0, 3.0])
        gradients = both_gradients(tf.function(f), x, [v])
        np.testing.assert_allclose(gradients[:2], expected, rtol=1e-9)
        np.testing.assert_allclose(gradients, wanted, rtol=1e-12)


def test_gradients_flow_through_recorded_assignments_of_each_round():
    v, w = (tf.Variable(value, dtype=tf.float64) for value in ([2.0, 3.0], [0.2, 0.5]))
    rows = tf.constant([[0.5, 0.2], [0.1, 0.4], [0.3, 0.3]], tf.float64)

    def learn(c, e):
        with tf.GradientTape() as tape:
            cost = tf.reduce_sum(tf.sin(v * e - c * w) ** 2)
        v.assign_sub(0.3 * tape.gradient(cost, v))
        return c * 0.5 + v * e

    def chosen(c, e):
        return tf.cond(tf.reduce_sum(c) > 0.4, lambda: v.assign_add(c * w) * e, lambda: v * c + e)

    def fold(step):
        return lambda x: tf.reduce_sum(tf.foldl(step, rows, x) * v)

    def until(x):
        goes_on = lambda c: tf.reduce_sum(c) < 9.0
        return tf.reduce_sum(tf.while_loop(goes_on, lambda c: (learn(c, c) * 2.0,), (x,))[0] * v)

    def around(f):
        def run(x):
            with tf.experimental.recorded_assignments(restore=True):
                return f(x)

        return run

    def inside(c, e):
        with tf.experimental.recorded_assignments(restore=True):
            return learn(c, e)

    x = tf.constant([0.3, 0.2], tf.float64)
    for f in (around(fold(learn)), around(fold(chosen)), around(until), fold(inside)):
        derivatives = partial(both_gradients, f, variables=[w])
        expected = derivatives(x)
        results = unfused(derivatives)(x)
        for result, other in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-10)
        np.testing.assert_array_equal(v, [2.0, 3.0])


def test_a_record_of_one_round_is_not_kept_for_the_next():
    v = tf.Variable(2.0)

    def step(c, e):
        with tf.experimental.recorded_assignments():
            v.assign(c * v)
        return c * e

    with pytest.raises(ValueError, match="block ends in a round of foldl, and 'Variable:0' must"):
        tf.function(lambda x: tf.foldl(step, tf.ones(3), x))(tf.constant(1.0))
    with tf.GradientTape() as tape:
        y = v * v
    assert float(tape.gradient(y, v)) == 4.0


def test_a_loop_that_its_values_end_prints_in_each_round(capfd):
    def halved(x):
        return tf.while_loop(
            lambda y: y > 1.0, lambda y: (tf.print(y), total.assign_add(y), y / 2.0)[2:], (x,)
        )[0]

    total = tf.Variable(0.0)
    for run in (halved, tf.function(halved)):
        total.assign(0.0)
        assert float(run(tf.constant(6.0))) == 0.75
        assert float(total) == 10.5
        assert capfd.readouterr().err.splitlines() == ["6", "3", "1.5"]

    def shown(x):
        return tf.while_loop(lambda y: y > 1.0, lambda y: (tf.print(y), y / 2.0)[1:], (x,))[0]

    for run in (tf.vmap(shown), tf.function(tf.vmap(shown)), tf.vmap(tf.function(shown))):
        np.testing.assert_allclose(run(tf.constant([6.0, 1.5])), [0.75, 0.75])
        assert capfd.readouterr().err.splitlines() == ["6", "1.5", "3", "0.75", "1.5", "0.75"]
    with tf.GradientTape() as tape:
        x = tf.Variable(6.0)
        y = tf.function(shown)(x)
    assert float(tape.gradient(y, x)) == 0.125
    assert capfd.readouterr().err.splitlines() == ["6", "3", "1.5"]


@pytest.mark.parametrize("error", [TypeError, ValueError, InvalidArgumentError, KeyError])
def test_an_error_of_the_body_is_raised_at_once(error):
    calls = []

    def body(i, x):
        calls.append(i)
        raise error("the user's")

    x = tf.constant(1.0)
    for call in (
        lambda x: ops.fori_loop(0, 5, body, x),
        lambda x: ops.while_loop(lambda i, _: i < 5, lambda i, x: (i + 1, body(i, x)), (0, x)),
        lambda x: tf.while_loop(lambda i, _: i < 5, lambda i, x: (i + 1, body(i, x)), (0, x)),
        lambda x: ops.scan(lambda c, s: (body(s, c), s), x, tf.zeros(3)),
    ):
        calls.clear()
        with pytest.raises(error, match="the user's"):
            tf.function(call)(x)
        assert len(calls) == 1
    table = {i: float(i) for i in range(5)}  # which needs the value of i
    assert float(tf.function(lambda x: ops.fori_loop(0, 5, lambda i, v: v + table[i], x))(x)) == 11
    with pytest.raises(KeyError):
        tf.function(lambda x: ops.fori_loop(0, 9, lambda i, v: v + table[int(i)], x))(x)


def test_random_numbers_in_a_loop_without_a_length_are_an_error():
    f = tf.function(
        lambda x: tf.while_loop(
            lambda y: tf.reduce_sum(y) < 9.0, lambda y: (y + tf.random.uniform((3,)),), (x,)
        )
    )
    with pytest.raises(InvalidArgumentError, match="random numbers are drawn in a loop"):
        f(tf.constant(X, tf.float32))


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (
            lambda c, s: tf.concat([c, s], 0),
            InvalidArgumentError,
            r"float64\(3,\) .* float64\(6,\)",
        ),
        (lambda c, s: tf.cast(c, tf.float32), TypeError, "float64.3,.* float32.3,.*cast"),
        (lambda c, s: (c, s), ValueError, "structure"),
    ],
)
def test_a_round_must_return_what_it_was_given(body, error, words):
    f = tf.function(lambda x: tf.foldl(body, STEPS, x))
    with pytest.raises(error, match=words):
        f(tf.constant(X))


@pytest.mark.parametrize("autograph", [True, False])
def test_a_name_that_is_assigned_again_after_the_loop_that_read_it(autograph):
    def scanned(x):
        w = x
        y = tf.foldl(lambda s, e: s * w + e, STEPS, x)
        w = w * 100.0
        return tf.reduce_sum(y)

    def repeated(x):
        w = x
        (y,) = tf.while_loop(lambda s: tf.reduce_sum(s) < 2.0, lambda s: (s + w * w,), (x,))
        w = w * 100.0
        return tf.reduce_sum(y)

    for f in (scanned, repeated):
        program = tf.function(f, autograph=autograph, jit_compile=False)
        for g in (tf.grad, tf.hessian):
            np.testing.assert_allclose(g(program)(tf.constant(X)), g(f)(tf.constant(X)), 1e-12)


def test_loops_that_print_follow_each_other_in_a_batch(capfd):
    def scanned(x):
        return tf.foldl(lambda c, e: (tf.print("scanned"), c + e)[1], tf.constant([1.0, 2.0]), x)

    def repeated(x):
        return tf.while_loop(
            lambda c: c < 9.0, lambda c: ((tf.print("repeated"), c + 1.0)[1],), (x,)
        )[0]

    xs = tf.constant([1.0, 2.0])
    for f, times, expected in ((scanned, 4, [7.0, 8.0]), (repeated, 11, [9.0, 9.0])):
        program = tf.function(tf.vmap(lambda x, f=f: f(f(x) - 3.0) if f is repeated else f(f(x))))
        capfd.readouterr()
        np.testing.assert_array_equal(program(xs), expected)
        assert "".join(capfd.readouterr()).count(f.__name__) == times


def test_a_condition_is_one_bool():
    f = tf.function(lambda x: tf.while_loop(lambda y: y < 3.0, lambda y: (y * 2.0,), (x,)))
    with pytest.raises(TypeError, match="the condition must be one bool, got bool of shape"):
        f(tf.constant(X))


def test_memory_of_a_long_loop_whose_gradient_keeps_some_states():
    """Of 100,000 rounds at most 1,000 states at a time."""
    size, w = 64, tf.constant(np.linspace(-1.0, 1.0, 64))

    def last(w, checkpoint=None):
        def step(h, _):
            return tf.tanh(h * w + 0.1), None

        h, _ = ops.scan(step, tf.zeros(size, w.dtype), None, 100_000, checkpoint=checkpoint)
        return tf.reduce_sum(h * h)

    spared = tf.function(tf.grad(lambda w: last(w, "sqrt")))
    np.testing.assert_allclose(spared(w), tf.function(tf.grad(last))(w), rtol=1e-9)
    assert peak_bytes(lambda: spared(w)) < 1000 * 8 * size


def test_what_the_gradient_keeps_is_one_of_three():
    for call in (
        lambda: tf.scan(tf.add, X, checkpoint="none"),
        lambda: tf.foldl(tf.add, X, checkpoint=True),
        lambda: ops.scan(lambda c, x: (c, x), 0.0, X, checkpoint="all"),
    ):
        with pytest.raises(ValueError, match="`checkpoint` must be None, 'every' or 'sqrt'"):
            call()


def test_the_texts_of_loops_are_shown():
    def small(x):
        return tf.foldl(lambda x, step: tf.linalg.matvec(W, x) + step, STEPS, tf.sin(x))

    def elementwise(x):
        return tf.foldl(lambda x, step: tf.sin(x) + step, STEPS, x)

    for function in (small, elementwise):
        texts = tf.function(function).kernels(tf.constant(X))
        assert sum("def rounds(" in text for text in texts) == 1
    large = tf.function(lambda x: ops.fori_loop(0, 2, lambda i, x: tf.sin(tf.cumsum(x)), x))
    texts = large.kernels(tf.ones((80, 80)))
    assert sum("def call(" in text for text in texts) == 2  # of the program, and of the body


@pytest.mark.parametrize("fold", [tf.foldl, tf.foldr, tf.scan])
def test_a_fold_reads_its_first_slice_alone(fold, monkeypatch):
    """To take all slices apart made tracing a million rounds take a minute."""
    monkeypatch.setattr("tinygrad_cg._transforms.control_flow.unstack", None)
    x = tf.constant([1.0, 2.0, 3.0])
    result = tf.function(lambda x: fold(lambda a, b: a - b, x))(x).numpy()
    assert result.tolist() == {tf.foldl: -4.0, tf.foldr: 0.0, tf.scan: [1.0, -1.0, -4.0]}[fold]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tf.reduce_sum(tf.map_fn(tf.abs, x)),
        lambda x: tf.scan(lambda total, y: total + y, x)[-1],
        lambda x: tf.foldl(tf.maximum, x),
    ],
)
def test_a_loop_whose_second_derivative_is_constant(f):
    """Its rounds read nothing."""
    x = tf.constant([1.0, -2.0, 3.0], tf.float64)
    np.testing.assert_array_equal(tf.function(tf.hessian(f))(x), np.zeros((3, 3)))
