"""Patterns of Jacobians and Hessians, against dense derivatives and patterns made otherwise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_cg as tf
from tests.sparse.problems import PROBLEMS, brusselator
from tinygrad_cg.errors import InvalidArgumentError

X = np.random.default_rng(0).normal(size=6)


def weighted(f):
    """The sum of f's elements, each times another number."""

    def scalar(x):
        y = tf.reshape(f(x), (-1,))
        return tf.reduce_sum(y * np.linspace(0.5, 1.5, y.shape[0]))

    return scalar


def entries(derivatives, width):
    """Where derivatives are other than zero: a product by 0 is NaN where a slope is none."""
    matrix = np.asarray(derivatives).reshape(-1, width)
    return (matrix != 0) & np.isfinite(matrix)


def jacobian(f, x):
    return entries(tf.jacobian(f)(x), x.size)


def hessian(f, x):
    return entries(tf.hessian(f)(x), x.size)


def counts(pattern, dense):
    """The numbers of lost and of superfluous entries."""
    return int((dense & ~pattern).sum()), int((pattern & ~dense).sum())


# The twelve problems -------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_have_exactly_the_entries_of_dense_derivatives(name):
    make, size = PROBLEMS[name]
    problem = make(size)
    first = tf.jacobian_sparsity(problem.residuals, problem.x).toarray()
    assert counts(first, jacobian(problem.residuals, problem.x)) == (0, 0)
    second = tf.hessian_sparsity(problem.energy, problem.x).toarray()
    assert counts(second, hessian(problem.energy, problem.x)) == (0, 0)


def brusselator_entries(n):
    """Rows and columns: each species with its four neighbours, and with the other species."""
    species, i, j = (grid.ravel() for grid in np.indices((2, n, n)))
    near = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
    columns = [species * n * n + (i + a) % n * n + (j + b) % n for a, b in near]
    columns.append((1 - species) * n * n + i * n + j)
    rows = np.tile(np.arange(2 * n * n), len(columns))
    return rows, np.concatenate(columns)


@pytest.mark.parametrize("n", [3, 8, 100])
def test_brusselator(n):
    rows, columns = brusselator_entries(n)
    expected = np.unique(rows * 2 * n * n + columns)
    pattern = tf.jacobian_sparsity(brusselator(n).residuals, tf.TensorSpec((2 * n * n,)))
    found = pattern.rows() * 2 * n * n + pattern.indices
    np.testing.assert_array_equal(found, expected)


# Functions of one vector ---------------------------------------------------------------------


@tf.custom_gradient
def plain(x):
    return tf.sin(x), lambda dy: dy * tf.cos(x)


@tf.custom_gradient
def wide_rule(x):
    """The rule reads more than the function."""
    return tf.sin(x), lambda dy: dy * tf.cos(x) + tf.reduce_sum(dy * x)


@tf.custom_gradient
def of_numpy(x):
    return tf.sin(x), lambda dy: tf.constant(dy.numpy() * np.cos(x.numpy()))


@tf.function
def compiled(x):
    return tf.sin(x[1:]) * x[:-1]


@tf.differentiable
def in_loops(u):
    v = u.copy()
    for i in range(1, len(u)):
        v[i] = u[i] * u[i - 1]
    return v


@tf.primitive("CubeForPatterns", elementwise=True)
def cube(a):
    return a * a * a


def branching(x):
    y = x**2
    if x[0] < 0:
        y = tf.reverse(y, [0])
    for _ in tf.range(2):
        y = y + tf.roll(y, 1, 0)
    return y


def heat(x, rounds=2):
    def body(i, u):
        return i + 1, u + 0.1 * (tf.roll(u, 1, 0) + tf.roll(u, -1, 0) - 2 * u)

    return tf.while_loop(lambda i, u: i < rounds, body, (tf.constant(0), x))[1]


def growing(x):
    def body(u):
        return (u * 2 + tf.roll(u, 1, 0) ** 2 + 0.5,)

    return tf.while_loop(lambda u: tf.reduce_sum(u) < 100.0, body, (x,))[0]


def ruled_loop(x):
    def body(i, u):
        return i + 1, wide_rule(u)

    return tf.while_loop(lambda i, u: i < 2, body, (tf.constant(0), x))[1]


def ruled(rule, function=tf.sin):
    """A function of one vector with a custom gradient, ``rule(dy, z)``."""

    def f(x):
        @tf.custom_gradient
        def call(z):
            return function(z), lambda dy: rule(dy, z)

        return call(x)

    return f


def outer_rule(x):
    """The rule reads a tensor from around the loop, besides its own."""

    def body(i, u):
        return i + 1, ruled(lambda dy, z: dy * tf.roll(x, 1, 0) * z, lambda z: z * 2.0)(u) + x

    return tf.while_loop(lambda i, u: i < 2, body, (tf.constant(0), x))[1]


def two_results(x):
    @tf.custom_gradient
    def call(a, b):
        def rule(first, second):
            return first * b + second * tf.cos(a), tf.roll(first * a, 1, 0)

        return (a * b, tf.sin(a)), rule

    return tf.concat(call(x, x[::-1]), 0)


def nested_rule(x):
    @tf.custom_gradient
    def call(z):
        @tf.custom_gradient
        def rule(dy):
            return dy * tf.cos(z), lambda ddy: ddy * tf.roll(z, 1, 0)

        return tf.sin(z), rule

    return call(x)


FACTOR = tf.Variable(np.ones(6))


def with_variable(x):
    @tf.custom_gradient
    def call(a):
        return a * FACTOR, lambda dy, variables=None: (dy * FACTOR * a[0], [dy * a])

    return call(x)


BAND = np.eye(6) + np.diag(np.ones(5), 1)
PARTS = np.array([0, 0, 1, 1, 2, 2])
TIGHT = {  # patterns without a superfluous entry
    "custom gradient": plain,
    "rule that reads more": wide_rule,
    "function": compiled,
    "elementwise primitive": cube,
    "recomputed": lambda x: tf.recompute_grad(lambda q: tf.sin(q) * tf.roll(q, 1, 0))(x),
    "batched": lambda x: tf.vmap(lambda a: tf.sin(a) * a)(x),
    "gradient": lambda x: tf.grad(lambda q: tf.reduce_sum(q[1:] ** 2 * q[:-1]))(x),
    "rounds": heat,
    "scan": lambda x: tf.scan(lambda c, e: c * 0.5 + tf.sin(e), x),
    "rule in a loop": ruled_loop,
    "stopped": lambda x: tf.stop_gradient(x**2) * x,
    "stopped in a loop": lambda x: tf.scan(lambda c, e: c + tf.stop_gradient(c) * e, x),
    "floor": lambda x: (tf.floor(x**2) + 1.0) * x,
    "scatter": lambda x: tf.tensor_scatter_nd_add(x * 2, [[1], [3]], x[:2] ** 2),
    "set": lambda x: x.at[2].set(x[0] * x[1]),
    "segments": lambda x: tf.math.segment_sum(x**2, PARTS),
    "cumsum": lambda x: tf.cumsum(x**2),
    "product by a dense constant": lambda x: tf.linalg.matvec(np.ones((4, 6)), x),
    "product by a constant band": lambda x: tf.linalg.matvec(BAND, x),
    "both sides": lambda x: BAND[:2, :2] @ tf.reshape(x, (2, 3)) @ BAND[:3, :3],
    "constant with zeros": lambda x: x[::-1] * np.array([1.0, 0.0, 2.0, 0.0, 3.0, 0.0]) + x,
    "einsum": lambda x: tf.einsum("ij,kj->ik", tf.reshape(x, (2, 3)), np.eye(3)),
    "convolution": lambda x: tf.nn.conv1d(
        tf.reshape(x, (1, 6, 1)), np.array([1.0, 0.0, 2.0]).reshape(3, 1, 1), 1, "SAME"
    ),
    "Fourier": lambda x: tf.math.real(tf.signal.fft(tf.cast(x, tf.complex128))),
    "elements that nothing reads": lambda x: (x**2 * x[0])[1:3] + tf.roll(tf.sin(x), 2, 0)[:2],
    "a constant mask": lambda x: tf.where(np.arange(6) > 2, x**2, x),
    "structure": lambda x: tf.concat([tf.sin(part) for part in tf.split(x, 3)][::-1], 0),
}
CHOOSING = {  # first derivatives are tight at a point
    "branch": lambda x: tf.cond(x[0] > 0, lambda: x * 2.0, lambda: tf.roll(x, 1, 0) ** 2),
    "rules in branches": lambda x: tf.cond(x[1] > 0, lambda: wide_rule(x), lambda: plain(x)),
    "Python's branch": branching,
    "rounds that a value decides": growing,
    "order": lambda x: tf.gather(x, tf.argsort(x)) * 2,
    "where": lambda x: tf.where(x > 0, x**2, tf.roll(x, 1, 0) ** 3),
    "relu": lambda x: tf.nn.relu(x) + tf.maximum(tf.roll(x, 1, 0), 0.3),
    "max": lambda x: tf.reduce_max(tf.reshape(x, (2, 3)), 1) ** 2,
}
WIDE = {
    "rule of another tensor": lambda x: ruled(lambda dy, z: dy * tf.roll(x, 1, 0))(x[::-1]),
    "rule of another tensor in a loop": outer_rule,
    "rule of two results": two_results,
    "rule with a rule": nested_rule,
    "rule with a Variable": with_variable,
    "rule with a loop": ruled(lambda dy, z: tf.scan(lambda c, e: c + e, dy * z)),
    "rule with a branch": ruled(
        lambda dy, z: tf.cond(z[0] > 0, lambda: dy * z, lambda: tf.roll(dy, 1, 0))
    ),
    "rule in a batch": lambda x: tf.vmap(ruled(lambda dy, z: tf.reduce_sum(dy) * z))(
        tf.reshape(x, (2, 3))
    ),
    "rule in a gradient": tf.grad(
        ruled(lambda dy, z: dy * z * z[::-1], lambda z: tf.reduce_sum(z**2))
    ),
    "differentiable": in_loops,
    "rule of NumPy code": of_numpy,
    "Python code": lambda x: tf.py_function(lambda a: a**2, [x], tf.float64),
    "segment's largest": lambda x: tf.math.segment_max(x**2, PARTS),
    "sort": lambda x: tf.sort(x) ** 2,
    "prod": lambda x: tf.reduce_prod(tf.reshape(x, (2, 3)), 1),
}


@pytest.mark.parametrize("name", [*TIGHT, *CHOOSING, *WIDE])
@pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
def test_functions(name):
    f = (TIGHT | CHOOSING | WIDE)[name]
    first = counts(tf.jacobian_sparsity(f, X).toarray(), jacobian(f, X))
    local = counts(tf.jacobian_sparsity(f, X, at=X).toarray(), jacobian(f, X))
    scalar = weighted(f)
    second = counts(tf.hessian_sparsity(scalar, X).toarray(), hessian(scalar, X))
    at_point = tf.hessian_sparsity(scalar, X, at=X).toarray()
    assert (first[0], local[0], second[0]) == (0, 0, 0)
    assert counts(at_point, hessian(scalar, X))[0] == 0
    if name in TIGHT:
        assert (first[1], second[1]) == (0, 0)
    if name in TIGHT or name in CHOOSING:
        assert local[1] == 0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[0] * x[1] + x[2] ** 2,
        lambda x: tf.reduce_sum(tf.sin(x * tf.roll(x, 1, 0))),
        lambda x: tf.reduce_sum(x / (1 + x)),
        lambda x: tf.reduce_sum(tf.linalg.matvec(tf.reshape(x, (3, 1)) * x, x)),
        lambda x: tf.reduce_sum(tf.sort(x) ** 2),
        lambda x: tf.reduce_max(x) ** 2,
        lambda x: tf.reduce_prod(x),
        lambda x: tf.reduce_sum(tf.nn.relu(x) ** 2),
    ],
)
@pytest.mark.parametrize("point", [np.zeros(3), np.array([1.0, 1.0, 0.0]), np.array([1.0, 0, 0])])
def test_nothing_is_lost_at_points_with_zeros_and_ties(f, point):
    """Slopes that are 0 at a point have derivatives that are not."""
    assert counts(tf.jacobian_sparsity(f, point, at=point).toarray(), jacobian(f, point))[0] == 0
    assert counts(tf.hessian_sparsity(f, point, at=point).toarray(), hessian(f, point))[0] == 0


def test_many_rounds_go_to_a_fixed_point():
    """Each element of a ring reaches the others; the ends of a chain do not come back."""
    full = tf.jacobian_sparsity(lambda x: heat(x, 10**5), X)
    assert full.density == 1.0

    def shifting(x):
        def body(i, u):
            return i + 1, tf.concat([u[:1], 0.5 * (u[1:] + u[:-1])], 0)

        return tf.while_loop(lambda i, u: i < 10**5, body, (tf.constant(0), x))[1]

    np.testing.assert_array_equal(
        tf.jacobian_sparsity(shifting, X).toarray(), np.tril(np.ones((6, 6), bool))
    )
    stacked = tf.jacobian_sparsity(
        lambda x: tf.scan(lambda c, e: c + x[0] * e, np.zeros(5000), tf.constant(0.0, tf.float64)),
        X,
    )
    assert stacked.shape == (5000, 6)
    assert set(stacked.indices) == {0}


def test_loops_that_may_have_no_round_and_rows_at_unknown_places():
    def spread(x):
        def body(u):
            return (tf.zeros_like(u) + 0.5 * u[1],)

        return tf.while_loop(lambda u: tf.reduce_sum(u) > 1.0, body, (x,))[0]

    expected = np.eye(6, dtype=bool) | (np.arange(6) == 1)
    np.testing.assert_array_equal(tf.jacobian_sparsity(spread, X).toarray(), expected)

    def written(x):
        def body(i, u):
            return i + 1, u.at[i % 6].set(0.5 * u[i % 6])

        return tf.while_loop(lambda i, u: i < 10**5, body, (tf.constant(0), x))[1]

    assert tf.jacobian_sparsity(written, X).density == 1.0  # the row that is read may be any
    row = tf.jacobian_sparsity(lambda x: (2.0 * x).at[tf.argmax(x)].set(x[0]), X).toarray()
    np.testing.assert_array_equal(row, np.eye(6, dtype=bool) | (np.arange(6) == 0))
    read = tf.hessian_sparsity(lambda x: tf.gather(x**3, tf.argmax(x)), X).toarray()
    np.testing.assert_array_equal(read, np.eye(6, dtype=bool))  # any element may be read


def test_branches_are_united():
    def f(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: x[:3], lambda: x[3:])

    expected = np.hstack([np.eye(3), np.eye(3)]).astype(bool)
    np.testing.assert_array_equal(tf.jacobian_sparsity(f, X).toarray(), expected)
    point = np.ones(6)
    np.testing.assert_array_equal(
        tf.jacobian_sparsity(f, X, at=point).toarray(), expected & (np.arange(6) < 3)
    )


# Arguments and results -----------------------------------------------------------------------


def test_structures_are_raveled_in_order():
    def f(first, other, last):
        u, v = first["u"], first["v"]
        return {"b": tf.transpose(u) * other, "a": tf.reduce_sum(v * last)}

    u, v = np.ones((2, 3)), np.ones(4)
    args = {"u": u, "v": v}, np.ones((3, 2)), np.ones(4)
    pattern = tf.jacobian_sparsity(f, *args, argnums=(2, 0))
    expected = np.zeros((7, 14), bool)
    expected[0, :4] = expected[0, 10:] = True  # a: last and v
    places = np.arange(6).reshape(2, 3).T.ravel()
    expected[1 + np.arange(6), 4 + places] = True
    np.testing.assert_array_equal(pattern.toarray(), expected)
    assert tf.jacobian_sparsity(f, *args, argnums=-1).shape == (7, 4)
    second = tf.hessian_sparsity(lambda *args: f(*args)["a"], *args, argnums=(2, 0)).toarray()
    assert second.sum() == 8
    assert second[np.arange(4), 10 + np.arange(4)].all()


def test_other_arguments_may_have_any_value_but_integers():
    args = X, np.zeros(6), np.array([5, 0, 1] * 30)

    def f(x, factors, places):
        return tf.gather(x * factors, places)

    pattern = tf.jacobian_sparsity(f, *args)
    assert pattern.nnz == 90
    assert set(pattern.indices) == {5, 0, 1}
    assert tf.jacobian_sparsity(f, *args, at=X).nnz == 0
    variable = tf.Variable(np.zeros(6))
    assert tf.jacobian_sparsity(lambda x: x * variable, X).nnz == 6
    assert tf.jacobian_sparsity(lambda x: x * variable, X, at=X).nnz == 0
    constant = tf.constant(np.zeros(6))
    assert tf.jacobian_sparsity(lambda x: x * constant, X).nnz == 0
    spec = tf.TensorSpec((6,), tf.float64)
    assert (
        tf.jacobian_sparsity(lambda x, y: tf.nn.relu(x) * y, spec, spec, at=X).nnz == (X > 0).sum()
    )


def test_specifications_scalars_and_nothing():
    spec = tf.TensorSpec((2, 3), tf.float32)
    assert tf.jacobian_sparsity(tf.transpose, spec).nnz == 6
    assert tf.jacobian_sparsity(tf.sin, 1.0).toarray().tolist() == [[True]]
    assert tf.hessian_sparsity(tf.sin, tf.Variable(1.0)).toarray().tolist() == [[True]]
    assert tf.jacobian_sparsity(lambda x: tf.zeros(3), X).nnz == 0
    assert tf.jacobian_sparsity(tf.sin, np.zeros(0)).shape == (0, 0)
    assert tf.jacobian_sparsity(lambda x: tf.reduce_sum(x), np.zeros((0, 2))).shape == (1, 0)
    assert tf.hessian_sparsity(lambda x: tf.reduce_sum(x**2), np.zeros(0)).shape == (0, 0)


def test_points_have_the_structure_of_the_arguments():
    pairs = np.ones(2), np.ones(2)
    points = np.array([1.0, -1.0]), np.array([0.0, 1.0])
    f = lambda a, b: tf.nn.relu(a) * b
    pattern = tf.jacobian_sparsity(f, *pairs, argnums=(0, 1), at=points)
    np.testing.assert_array_equal(pattern.toarray(), [[False, False, True, False], [False] * 4])
    nested = [dict(zip("ab", values, strict=True)) for values in (pairs, points)]
    again = tf.jacobian_sparsity(lambda d: f(d["a"], d["b"]), nested[0], at=nested[1])
    assert again == pattern


def test_callables():
    class Scale:
        factor = tf.Variable(np.ones(3))

        def __call__(self, x):
            return x * self.factor

        @tf.function
        def compiled(self, x):
            return x * self.factor

    scale = Scale()
    taken = tf.function(lambda x, n: x[:n], static_argnums=1)
    for f in (scale, scale.compiled, lambda x: np.sin(x) * 2):
        assert tf.jacobian_sparsity(f, np.ones(3)) == tf.SparsityPattern.of(np.eye(3))
    assert tf.jacobian_sparsity(taken, np.ones(3), 2) == tf.SparsityPattern.of(np.eye(2, 3))


def test_complex_numbers():
    z = np.ones(3, np.complex128)
    assert tf.jacobian_sparsity(lambda z: tf.math.real(z * z[::-1]), z).nnz == 5
    f = lambda z: tf.reduce_sum(tf.abs(z) + tf.math.imag(z))
    np.testing.assert_array_equal(tf.hessian_sparsity(f, z).toarray(), np.eye(3, dtype=bool))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tf.jacobian_sparsity(3, X), TypeError, "`f` must be a function, got int"),
        (lambda: tf.jacobian_sparsity(tf.sin, X, argnums=1), ValueError, "argnums contains 1"),
        (lambda: tf.jacobian_sparsity(tf.sin, np.arange(3)), TypeError, "dtype int64"),
        (lambda: tf.jacobian_sparsity(tf.argmax, X), TypeError, "dtype int64, which has no deriv"),
        (lambda: tf.jacobian_sparsity(lambda x: None, X), TypeError, "returned None"),
        (
            lambda: tf.jacobian_sparsity(tf.sin, tf.TensorSpec((None,))),
            ValueError,
            "a TensorSpec has an unknown size",
        ),
        (lambda: tf.hessian_sparsity(tf.sin, X), ValueError, r"one scalar, got shapes \(6,\)"),
        (lambda: tf.jacobian_sparsity(tf.sin, X, at=X[:2]), ValueError, r"`at` has shape \(2,\)"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


# Random compositions -------------------------------------------------------------------------

BINARY = [tf.add, tf.multiply, lambda a, b: a / (2.0 + b * b), tf.maximum, tf.math.atan2]
UNARY = [
    *(tf.sin, tf.square, tf.floor, tf.nn.relu, tf.exp, tf.cumsum, tf.sort, tf.stop_gradient),
    *(lambda a: tf.roll(a, 1, 0), lambda a: a[::-1], lambda a: tf.gather(a, [0, 0, 3, 1, 2])),
    *(lambda a: a * np.array([0.0, 1, 0, 2, 3]), lambda a: tf.linalg.matvec(BAND[:5, :5], a)),
    *(lambda a: tf.reduce_mean(a) + a, lambda a: tf.where(a > 0.1, a, a[::-1])),
    *(lambda a: tf.pad(a[1:], [[0, 1]]), lambda a: tf.nn.softmax(a), wide_rule, cube),
    *(lambda a: tf.cond(a[0] > 0, lambda: a * a[1], lambda: tf.roll(a, 2, 0)),),
    *(
        lambda a: tf.reshape(tf.reshape(tf.concat([a, a[:1]], 0), (2, 3)) @ BAND[:3, :3], (-1,))[
            :5
        ],
    ),
    *(lambda a: tf.scan(lambda c, e: c * 0.5 + e * e, a), lambda a: a.at[2].set(a[0] * a[4])),
]


@st.composite
def programs(draw):
    """A list of steps: an operation, and the values that it is of."""
    steps = []
    for k in range(draw(st.integers(1, 6))):
        operation = draw(st.sampled_from([*UNARY, *UNARY, *BINARY]))
        count = 2 if operation in BINARY else 1
        steps.append((operation, draw(st.tuples(*[st.integers(0, k)] * count))))
    return steps


@settings(max_examples=60)
@given(programs(), st.integers(0, 2**31))
def test_no_entry_of_random_programs_is_lost(steps, seed):
    def f(x):
        values = [x]
        for operation, operands in steps:
            values.append(operation(*[values[k] for k in operands]))
        return values[-1]

    point = np.random.default_rng(seed).normal(size=5) * 0.5
    first, scalar = jacobian(f, point), weighted(f)
    assert counts(tf.jacobian_sparsity(f, point).toarray(), first)[0] == 0
    assert counts(tf.jacobian_sparsity(f, point, at=point).toarray(), first)[0] == 0
    second = hessian(scalar, point)
    assert counts(tf.hessian_sparsity(scalar, point).toarray(), second)[0] == 0
    assert counts(tf.hessian_sparsity(scalar, point, at=point).toarray(), second)[0] == 0


# Declared patterns ---------------------------------------------------------------------------


@tf.declare_sparsity(lambda x: np.eye(x.shape[0]) + np.eye(x.shape[0], k=-1))
@tf.custom_gradient
def products(x):
    """A rule in NumPy, of neighbours' products."""

    def rule(dy):
        values, dys = x.numpy(), dy.numpy()
        gradient = dys * np.concatenate([[1.0], values[:-1]])
        gradient[:-1] += dys[1:] * values[1:]
        return tf.constant(gradient)

    return x * tf.concat([[1.0], x[:-1]], 0), rule


def test_declared_patterns_replace_what_is_inside():
    """In a function, in a loop; for first and second derivatives; the Jacobian is right."""
    x = np.linspace(1.0, 2.0, 6)
    f = lambda x: products(tf.sin(x))[1:] * x[0]
    pattern = tf.jacobian_sparsity(f, x)
    expected = np.eye(5, 6) + np.eye(5, 6, 1)
    expected[:, 0] = 1
    np.testing.assert_array_equal(pattern.toarray(), expected > 0)
    dense = tf.jacobian(f)(x)
    np.testing.assert_allclose(tf.sparse_jacobian(f)(x).toarray(), dense)
    looped = lambda x: tf.while_loop(lambda i, u: i < 2, lambda i, u: (i + 1, products(u)), (0, x))
    band = np.tri(6) - np.tri(6, k=-3)
    np.testing.assert_array_equal(tf.jacobian_sparsity(lambda x: looped(x)[1], x).toarray(), band)
    total = lambda x: tf.reduce_sum(products(x))
    both = np.eye(6) + np.eye(6, k=1) + np.eye(6, k=-1)
    np.testing.assert_array_equal(tf.hessian_sparsity(total, x).toarray(), both > 0)
    np.testing.assert_allclose(products(tf.constant(x)), x * [1.0, *x[:-1]])


def test_declarations_of_other_code():
    """Code in loops, several arguments and results, options, integers beside floats."""
    diagonal = tf.declare_sparsity(lambda u: np.tri(u.shape[0]) - np.tri(u.shape[0], k=-2))
    assert tf.jacobian_sparsity(diagonal(in_loops), np.ones(6)).nnz == 11
    assert tf.jacobian_sparsity(in_loops, np.ones(6)).nnz > 11

    @tf.declare_sparsity([[1, 1, 1], [0, 0, 1], [1, 0, 0]])
    def pair(a, count, b, scale=1.0):
        return {"x": [a * scale * b, count], "y": b[None]}

    def f(a, b):
        result = pair(a, tf.constant(2), b, scale=3.0)
        return tf.concat([result["x"][0], result["y"]], 0)

    pattern = tf.jacobian_sparsity(f, np.ones(2), np.array(2.0), argnums=(0, 1))
    assert pattern.toarray().astype(int).tolist() == [[1, 1, 1], [0, 0, 1], [1, 0, 0]]
    assert tf.jacobian_sparsity(f, np.ones(2), np.array(2.0)).nnz == 3


def test_wrong_declarations_are_errors():
    x = np.linspace(1.0, 2.0, 4)
    lacking = tf.declare_sparsity(np.eye(4))(lambda x: x * tf.roll(x, 1, 0))
    with pytest.raises(InvalidArgumentError, match="pattern of declare_sparsity lacks an entry"):
        tf.sparse_jacobian(lacking)(x)
    other = tf.declare_sparsity(np.eye(3))(tf.sin)
    with pytest.raises(InvalidArgumentError, match=r"must have shape \(4, 4\).*got \(3, 3\)"):
        tf.jacobian_sparsity(other, x)
    np.testing.assert_allclose(other(x), np.sin(x))
    with pytest.raises(TypeError, match="decorates a function, got int 3"):
        tf.declare_sparsity(np.eye(3))(3)
    with pytest.raises(TypeError, match=r"SparsityPattern\.of"):
        tf.declare_sparsity("dense")
