"""``__array_ufunc__`` and ``__array_function__``: what is refused, what answers, and the list."""

import operator

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right
from tinygrad_cg._ops.protocol import ANSWERED_BY_NUMPY, functions, ufuncs
from tinygrad_cg.numpy import coverage


@pytest.fixture(scope="module")
def table():
    return coverage.rows()


def test_the_list_counts_what_numpy_has(table):
    """Issue: 127 ufuncs in NumPy 2.4; each function stands once, with one status."""
    assert len({(row.name, row.is_ufunc) for row in table}) == len(table)
    assert sum(coverage.counts(table).values()) == len(table)
    ours = coverage.counts([row for row in table if row.is_ufunc])
    assert ours["recorded"] >= 65
    others = coverage.counts([row for row in table if not row.is_ufunc])
    assert others["recorded"] >= 150


def test_the_list_is_what_is_registered(table):
    recorded = {row.name for row in table if row.status == "recorded"}
    assert {"add", "sum", "linalg.norm", "where", "concatenate"} <= recorded
    assert not recorded & {row.name for row in table if row.status == "answers"}
    assert not ANSWERED_BY_NUMPY & functions.keys()
    assert not ANSWERED_BY_NUMPY & ufuncs.keys()


def test_the_command_prints_it(capsys, table):
    coverage.main(["refused"])
    printed = capsys.readouterr().out.splitlines()
    refused = [row.name for row in table if row.status == "refused"]
    assert [line.split()[0] for line in printed if line.startswith("  ")] == refused


@pytest.mark.parametrize(
    ("names", "share"),
    [
        (("keras.ops",), 0.97),
        (("array API", "array API linalg", "array API fft"), 0.97),
        (("autograd.numpy", "autograd.numpy.linalg", "autograd.numpy.fft"), 0.97),
        (("tf.math", "tf.linalg", "tf.signal"), 0.8),
        (("tf",), 0.7),
    ],
)
def test_namespaces_are_covered(names, share):
    """Issue: at least 97 % of the differentiable functions of the first three."""
    coverages = [coverage.of_namespace(name) for name in names]
    present = sum(len(part.present) for part in coverages)
    assert present >= share * sum(len(names) for part in coverages for names in part)


def test_the_command_prints_a_namespace(capsys):
    coverage.main(["keras.ops"])
    summary, *lines = capsys.readouterr().out.splitlines()
    covered = coverage.of_namespace("keras.ops")
    assert summary.startswith(f"keras.ops: {len(covered.present)} of ")
    assert [line.split()[0] for line in lines] == [*covered.absent, *covered.refused]
    assert "ctc_decode" in covered.refused


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.sort_complex(x), r"np\.sort_complex is not supported.*alternatives.*np\."),
        (lambda x: np.frexp(x), r"np\.frexp is not supported.*\.numpy\(\).*alternatives"),
        (lambda x: np.add.at(x, 0, 1.0), r"np\.add\.at: .*`x = x\.at\[index\]\.add\(y\)`"),
        (lambda x: np.maximum.at(x.numpy() + tf.zeros(2), 0, 1.0), r"x\.at\[index\]\.max\(y\)"),
        (lambda x: np.sin.at(x, 0), r"x\.at\[index\]\.set\(np\.sin\(\.\.\.\)\)"),
        (lambda x: np.add.at(np.ones(2), 0, x[0]), r"np\.add\.at is not supported"),
        (lambda x: np.subtract.reduce(x), r"np\.subtract\.reduce .*alternatives.*\.reduce"),
        (lambda x: np.add.reduceat(x, [0, 1]), r"np\.add\.reduceat is not supported"),
        (lambda x: np.maximum.accumulate(x), r"np\.maximum\.accumulate is not supported"),
        (lambda x: np.add(x, 1, where=x > 0), r"np\.add: where= is not supported"),
        (lambda x: np.add(x, 1, out=np.ones(2)), r"np\.add: out= cannot be a tensor"),
        (lambda x: np.isnan(x, dtype=float), r"np\.isnan: dtype= is not supported"),
        (lambda x: np.sum(x, where=x), r"sum: where must be booleans"),
        (lambda x: np.ptp(x, nowhere=1.0), r"np\.ptp|unexpected keyword"),
        (lambda x: np.sum(x, out=np.ones(())), r"sum: out= is not supported"),
        (lambda x: np.putmask(x, x > 0, 1.0), r"np\.putmask is not supported"),
        (lambda x: np.fill_diagonal(x, 0.0), r"np\.fill_diagonal is not supported"),
        (lambda x: np.exp(x, np.ones(2)), r"np\.exp: out= cannot be a tensor"),
    ],
    ids=lambda value: value if isinstance(value, str) else "call",
)
def test_what_is_refused_names_the_function(call, words):
    """docs/behaviour.md 5.1: no gradient is lost in silence, and the error says where to go."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(TypeError, match=words):
            call(x)
        y = x * x
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.ones(2, like=x),
        lambda x: np.eye(2, like=x),
        lambda x: np.full(2, 3.0, like=x),
        lambda x: np.arange(3, like=x),
        lambda x: np.asarray([1.0, 2.0], like=x),
        lambda x: np.tri(2, like=x),
        lambda x: np.identity(2, like=x),
        lambda x: np.empty(2, like=x) * 0.0,
        lambda x: np.zeros_like(x),
        lambda x: np.ones_like(x),
        lambda x: np.full_like(x, 2.0),
        lambda x: np.empty_like(x),
    ],
)
def test_made_like_a_tensor(make):
    assert isinstance(make(tf.constant([1.0, 2.0])), tf.Tensor)


def test_answers_are_tensors():
    x = tf.constant([0.0, 2.0])
    (indices,) = np.nonzero(x)
    assert isinstance(indices, tf.Tensor)
    assert indices.numpy().tolist() == [1]
    assert np.count_nonzero(x) == 1
    assert np.array_equal(x, [0.0, 2.0])


def test_unique_keeps_its_gradient():
    """np.unique used to answer on the values: its numbers have gradients."""
    x = tf.constant([3.0, 1.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(np.unique(x) * [1.0, 10.0])
    assert tape.gradient(y, x).numpy().tolist() == [10.0, 1.0, 0.0]


def test_variables_are_recorded_too():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = np.sum(np.hypot(v, 1.0) * np.vstack([v, v]))
    gradient = tape.gradient(y, v).numpy()
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(gradient, 2 * (np.hypot(x, 1) + x * x / np.hypot(x, 1)), rtol=1e-6)


def test_the_acceptance_example():
    """Issue: np.linalg.norm(np.tanh(x @ w) + b) differentiates to the right numbers."""
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=2)

    def loss(w):
        return np.linalg.norm(np.tanh(x @ w) + b)

    tensor = tf.constant(w)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        y = loss(tensor)
    assert float(y) == pytest.approx(loss(w))
    inside = np.tanh(x @ w) + b
    expected = x.T @ (inside / loss(w) * (1 - np.tanh(x @ w) ** 2))
    np.testing.assert_allclose(tape.gradient(y, tensor).numpy(), expected, rtol=1e-12)


def test_einsum_differentiates():
    """Issue: np.einsum of NumPy code."""
    x, w = tf.constant([[1.0, 2.0]]), tf.constant([[3.0], [4.0]])
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = np.einsum("ij,jk->ik", x, np.concatenate([w[:1], np.square(w[1:])]))
    dx, dw = tape.gradient(y, [x, w])
    assert dx.numpy().tolist() == [[3.0, 16.0]]
    assert dw.numpy().tolist() == [[1.0], [16.0]]


def test_singular_matrices_are_numpys_error():
    x = tf.zeros((2, 2))
    with pytest.raises(np.linalg.LinAlgError, match="inv: Singular matrix"):
        np.linalg.inv(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="solve: Singular matrix"):
        tf.linalg.solve(x, tf.ones((2, 1)))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        tf.linalg.cholesky(x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.linalg.det(x)
        size = tf.linalg.slogdet(x)[1]
    assert y.numpy() == 0.0
    assert tape.gradient(y, x).numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(np.linalg.LinAlgError):
        tape.gradient(size, x)


class _OptedOut:
    """A class that takes no part in NumPy's functions: it answers by methods of its own."""

    __array_ufunc__ = None


_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
_ANSWERS = {
    f"__{name}__": f"__r{name}__" for name in (*_ARITHMETIC, "and", "or", "xor", "lshift", "rshift")
} | {
    "__lt__": "__gt__",
    "__gt__": "__lt__",
    "__le__": "__ge__",
    "__ge__": "__le__",
    "__eq__": "__eq__",
    "__ne__": "__ne__",
}
for _method in _ANSWERS.values():
    setattr(_OptedOut, _method, lambda self, other, name=_method: (name, type(other)))


@pytest.mark.quick
@pytest.mark.parametrize("method", _ANSWERS)
def test_operators_leave_the_answer_to_classes_that_opted_out(method):
    """NEP 13: with ``__array_ufunc__ = None`` on the right, an array's operator steps back."""
    other, answer = _OptedOut(), _ANSWERS[method]
    operate = getattr(operator, method)
    assert operate(np.array([1.0, 2.0]), other)[0] == answer  # as NumPy does
    large = tf.constant(np.ones(10_000))
    for x in (tf.constant([1.0, 2.0]), tf.Variable([1.0]), tf.constant([1, 2]), large):
        assert operate(x, other) == (answer, type(x))
    with tf.GradientTape() as tape:
        tape.watch(large)
        assert operate(large, other)[0] == answer
    traced = []
    tf.function(lambda x: (traced.append(operate(x, other)[0]), x)[1])(large)
    assert traced == [answer]
    if method in ("__add__", "__pow__", "__matmul__", "__lt__", "__and__"):
        name = {"__lt__": "less", "__pow__": "pow", "__and__": "bitwise.bitwise_and"}.get(method)
        function = operator.attrgetter(name or method.strip("_"))(tf)
        with pytest.raises(TypeError, match="unsupported type"):
            function(tf.constant([1, 2]), other)


@pytest.mark.quick
def test_tensors_are_compared_with_what_pytest_approximates():
    x = tf.constant([1.0, 2.0])
    for tensor, other in (
        (x, pytest.approx([1.0, 2.0 + 1e-7])),
        (x, pytest.approx(np.array([1.0, 2.0]))),
        (tf.Variable(3.0), pytest.approx(3.0)),
        (tf.constant(3.0), pytest.approx(3.0)),
    ):
        assert tensor == other
        assert other == tensor
        assert (tensor != other) is False
        assert tensor + 1.0 != other


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "expit",
            r"^scipy\.special\.expit is not supported on tensors: use tf\.sigmoid, or call",
        ),
        ("gammaln", r"^scipy\.special\.gammaln .* use tf\.math\.lgamma, or"),
        ("j0", r"^scipy\.special\.j0 .* use tf\.math\.special\.bessel_j0, or"),
        (
            "wrightomega",
            r"^scipy\.special\.wrightomega .* call wrightomega\(np\.asarray\(x\)\) in a function",
        ),
        (None, r"^the universal function twice .* call twice.*\(np\.asarray\(x\)\) in a function"),
        ("sin", r"^np\.spacing is not supported on tensors with these arguments"),
    ],
)
def test_universal_functions_of_others_keep_their_names(name, words):
    """So they do in rules, which get tensors where they are differentiated."""
    special = pytest.importorskip("scipy.special")

    def twice(x):
        return 2 * x

    call = np.frompyfunc(twice, 1, 1) if name is None else getattr(special, name, np.spacing)
    for run in (call, tf.custom_gradient(lambda x: (call(x), lambda dy: dy))):
        with pytest.raises(TypeError, match=words):
            tf.grad(lambda x: tf.reduce_sum(run(x)))(tf.constant([0.5, 1.0]))  # noqa: B023
