"""Sparse Jacobians and Hessians against dense ones."""

import sys

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.sparse.problems import PROBLEMS
from tinygrad_cg._sparse import evaluation
from tinygrad_cg.errors import InvalidArgumentError

pytest.importorskip("scipy")


@pytest.fixture(params=PROBLEMS, scope="module")
def problem(request):
    make, size = PROBLEMS[request.param]
    return make(size)


def assert_is(matrix, dense):
    """That no entry is lost, and all are equal, but for rounding."""
    assert matrix.has_sorted_indices
    np.testing.assert_allclose(matrix.toarray(), dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
def test_jacobians_of_problems(problem, mode):
    dense = tf.jacobian(problem.residuals)(problem.x)
    assert_is(tf.sparse_jacobian(problem.residuals, mode=mode)(problem.x), dense)


def test_hessians_of_problems(problem):
    dense = tf.hessian(problem.energy)(problem.x)
    matrix = tf.sparse_hessian(problem.energy)(problem.x)
    assert_is(matrix, dense)
    assert (matrix != matrix.T).nnz == 0


X = np.array([1.0, 2.0, 3.0])


def nested(a, b, scale=2.0, power=2):
    return {"u": a["x"] * b[0] ** power * scale, "v": tf.stack([b[0], b[1]])}


@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1, 0), -1])
def test_structures_are_raveled(argnums):
    """Columns in the order of argnums."""
    a, b = {"x": np.array([1.0, 2.0])}, (np.array(3.0), np.array(4.0))
    matrix = tf.sparse_jacobian(nested, argnums)(a, b, scale=5.0, power=3).toarray()
    blocks = [
        [[135.0, 0.0], [0.0, 135.0], [0.0, 0.0], [0.0, 0.0]],
        [[135.0, 0.0], [270.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
    ]
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    np.testing.assert_allclose(matrix, np.concatenate([blocks[k] for k in chosen], 1))


def test_a_pattern_holds_for_all_floats_and_for_the_integers_of_the_call():
    gathered = tf.sparse_jacobian(lambda x, i, t: tf.gather(x, i) * t)
    for places, factor in (([0, 2], 2.0), ([1, 1], 3.0), ([0, 2], 0.0), ([1, 1], 4.0)):
        expected = factor * np.eye(3)[places]
        np.testing.assert_array_equal(
            gathered(X, np.array(places), np.array(factor)).toarray(), expected
        )


def test_values_that_decide():
    """Branches, masks and Variables, after the program was made."""
    weight = tf.Variable([1.0, 0.0, 2.0], dtype=tf.float64)

    def f(x):
        if tf.reduce_sum(x) > 0:
            return weight * x
        return tf.where(x > -2.0, x, x[::-1]) * x[0]

    jacobian = tf.sparse_jacobian(f)
    for point in (X, -X, X):
        np.testing.assert_allclose(jacobian(point).toarray(), tf.jacobian(f)(point))
    weight.assign([0.0, 3.0, 5.0])
    np.testing.assert_allclose(jacobian(X).toarray(), np.diag([0.0, 3.0, 5.0]))
    of_variable = tf.sparse_jacobian(lambda v: v**2)(weight)
    np.testing.assert_allclose(of_variable.toarray(), np.diag([0.0, 6.0, 10.0]))


@pytest.mark.parametrize("chunk_size", [None, 1, 2, 100])
@pytest.mark.parametrize("mode", ["forward", "reverse", "both"])
def test_chunks(chunk_size, mode, monkeypatch):
    """Products in batches that do not divide the colours, in loops, and all in one program."""
    make, size = PROBLEMS["Brusselator"]
    problem = make(size)
    dense = tf.jacobian(problem.residuals)(problem.x)
    for limit, most in ((1, 2**22), (120, 0), (120, 2**22), (2**24, 0)):
        monkeypatch.setattr(evaluation, "_MAX_ELEMENTS", limit)
        monkeypatch.setattr(evaluation, "_MAX_BATCH", most)
        jacobian = tf.sparse_jacobian(problem.residuals, mode=mode, chunk_size=chunk_size)
        assert_is(jacobian(problem.x), dense)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtypes(dtype):
    matrix = tf.sparse_jacobian(lambda x: x[1:] * x[:-1])(X.astype(dtype))
    assert matrix.dtype == (np.float32 if dtype is np.float16 else dtype)
    np.testing.assert_array_equal(matrix.toarray(), [[2, 1, 0], [0, 3, 2]])


def test_formats():
    f = tf.function(lambda x: x[1:] * x[:-1])
    for name in ("csr", "csc", "coo"):
        matrix = tf.sparse_jacobian(f, format=name)(X)
        assert matrix.format == name
        np.testing.assert_array_equal(matrix.toarray(), [[2, 1, 0], [0, 3, 2]])
    data, indices, indptr = tf.sparse_jacobian(f, format="arrays")(tf.constant(X))
    assert (data.tolist(), indices.tolist(), indptr.tolist()) == (
        [2.0, 1.0, 3.0, 2.0],
        [0, 1, 1, 2],
        [0, 2, 4],
    )


def test_results_belong_to_the_caller():
    jacobian = tf.sparse_jacobian(lambda x: x[1:] * x[:-1])
    first = jacobian(np.array([0.0, 1.0, 0.0]))
    before = first.toarray()
    first.eliminate_zeros()
    second = jacobian(X)
    np.testing.assert_array_equal(second.toarray(), [[2, 1, 0], [0, 3, 2]])
    np.testing.assert_array_equal(first.toarray(), before)


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match="or use format='arrays'"):
        tf.sparse_jacobian(tf.square)
    assert tf.sparse_jacobian(tf.square, format="arrays")(X)[0].tolist() == [2.0, 4.0, 6.0]


def test_own_colorings():
    f = lambda x: x[1:] * x[:-1]
    expected = [[2, 1, 0], [0, 3, 2]]
    pattern = tf.SparsityPattern.of(expected)
    for options in (
        {"coloring": [0, 1, 0]},
        {"coloring": [0, 1], "mode": "reverse"},
        {"coloring": ([-1, 0, -1], [0, 1]), "mode": "both"},
        {"coloring": tf.Coloring(pattern, [5, 0, 5])},
        {"pattern": np.ones((2, 3))},
    ):
        np.testing.assert_array_equal(tf.sparse_jacobian(f, **options)(X).toarray(), expected)
    chain = lambda x: tf.reduce_sum(x[1:] * x[:-1] ** 2)
    for coloring in ([0, 1, 0], [0, 1, 2], tf.hessian_coloring(np.ones((3, 3)))):
        hessian = tf.sparse_hessian(chain, coloring=coloring)(X)
        np.testing.assert_array_equal(hessian.toarray(), tf.hessian(chain)(X))


def test_a_pattern_that_lacks_an_entry_is_an_error():
    """One that is not zero, wherever it is."""
    make, size = PROBLEMS["Brusselator"]
    problem = make(size)
    whole = tf.jacobian_sparsity(problem.residuals, problem.x).toarray()
    for row, column in np.argwhere(whole)[::29]:
        lacking = whole.copy()
        lacking[row, column] = False
        for mode in ("forward", "reverse"):
            with pytest.raises(InvalidArgumentError, match="lacks an entry"):
                tf.sparse_jacobian(problem.residuals, pattern=lacking, mode=mode)(problem.x)


def test_empty_results():
    assert tf.sparse_jacobian(lambda x: x[:0])(X).shape == (0, 3)
    assert tf.sparse_jacobian(lambda x: tf.ones(2))(X).nnz == 0
    assert tf.sparse_hessian(tf.reduce_sum)(X).nnz == 0


def test_nothing_is_differentiated_through():
    x = tf.constant(X)
    jacobian = tf.sparse_jacobian(tf.square)
    inside = "cannot be computed inside function, vmap, jvp"
    for transformed in (
        lambda: tf.function(jacobian)(x),
        lambda: tf.vmap(jacobian)(tf.stack([x, x])),
        lambda: tf.jvp(lambda x: jacobian(x).data, (x,), (x,)),
    ):
        with pytest.raises(TypeError, match=inside):
            transformed()
    with tf.GradientTape(persistent=True) as tape:
        assert jacobian(x).nnz == 3  # nothing is watched yet
        tape.watch(x)
        with pytest.raises(TypeError, match="a tape watches"):
            jacobian(x)
        with pytest.raises(TypeError, match="a tape watches"):
            tf.sparse_jacobian(lambda y: y * x)(X)
        assert jacobian(tf.stop_gradient(x)).nnz == 3
    assert jacobian(x).nnz == 3


def test_what_is_captured_is_not_differentiated_through():
    x = tf.constant(X)

    def of_captured(w):
        return tf.sparse_jacobian(lambda y: y * w)(X).data

    for transformed in (
        lambda: tf.function(of_captured)(x),
        lambda: tf.vmap(of_captured)(tf.stack([x, x])),
        lambda: tf.jvp(of_captured, (x,), (x,)),
        lambda: tf.hessian(lambda w: tf.reduce_sum(w**2 * of_captured(w)))(x),
    ):
        with pytest.raises(TypeError, match=r"inside (function|vmap)|a tape watches"):
            transformed()
    slopes = 2 * X
    np.testing.assert_allclose(
        tf.hessian(lambda w: tf.reduce_sum(w**2 * tf.sparse_jacobian(tf.square)(X).data))(x),
        np.diag(2 * slopes),
    )


def test_a_rule_that_uses_a_sparse_jacobian_is_checked():
    steps = lambda x: x[1:] * x[:-1]
    jacobian = tf.sparse_jacobian(steps)

    def with_factor(factor):
        @tf.custom_gradient
        def of_arrays(x):
            matrix = factor * jacobian(np.asarray(x))
            return steps(x), lambda dy: tf.constant(matrix.T @ np.asarray(dy))

        return tf.check_gradients(of_arrays, X, order=1)

    assert with_factor(1.0).ok
    assert "It is 2 times the correct gradient." in str(with_factor(2.0))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tf.sparse_jacobian(3), TypeError, "`f` must be a function"),
        (lambda: tf.sparse_jacobian(tf.sin, mode="fwd"), ValueError, "mode must be one of 'auto'"),
        (
            lambda: tf.sparse_jacobian(tf.sin, format="bsr"),
            ValueError,
            "format must be one of 'csr'",
        ),
        (lambda: tf.sparse_jacobian(tf.sin, chunk_size=0), ValueError, "at least 1, got 0"),
        (lambda: tf.sparse_jacobian(tf.sin, argnums=())(X), ValueError, "selects no tensor"),
        (lambda: tf.sparse_jacobian(tf.sin)(X + 1j), TypeError, "complex argument"),
        (lambda: tf.sparse_jacobian(lambda x: x * 1j)(X), TypeError, "needs a real output"),
        (
            lambda: tf.sparse_jacobian(tf.sin)(np.arange(3)),
            TypeError,
            "only floats have derivatives",
        ),
        (
            lambda: tf.sparse_jacobian(tf.sin, pattern=np.eye(3, 4))(X),
            InvalidArgumentError,
            "pattern has 4 columns, but the arguments of sin have 3 elements",
        ),
        (
            lambda: tf.sparse_jacobian(tf.sin, pattern=np.eye(4, 3))(X),
            InvalidArgumentError,
            "pattern has 4 rows, but the output of sin has 3 elements",
        ),
        (
            lambda: tf.sparse_jacobian(tf.sin, pattern=np.eye(4, 3), mode="reverse")(X),
            InvalidArgumentError,
            "pattern has 4 rows, but the output of sin has 3 elements",
        ),
        (
            lambda: tf.sparse_jacobian(lambda x: x[:2] + x[1:], coloring=[0, 0, 0])(X),
            InvalidArgumentError,
            "cannot be read from a product",
        ),
        (
            lambda: tf.sparse_jacobian(
                tf.sin, pattern=np.ones((3, 3)), coloring=tf.Coloring(np.eye(3), [0, 0, 0])
            ),
            InvalidArgumentError,
            "coloring= and pattern= have different patterns",
        ),
        (
            lambda: tf.sparse_hessian(tf.reduce_sum, coloring=tf.Coloring(np.eye(3), [0, 0, 0]))(X),
            InvalidArgumentError,
            "coloring has mode 'forward'",
        ),
        (lambda: tf.sparse_hessian(tf.sin)(X), ValueError, "must return one scalar"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()
