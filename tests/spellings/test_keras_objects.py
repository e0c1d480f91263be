"""Losses and metrics as objects: Keras 3.15's numbers (TensorFlow backend)."""

import inspect
import random
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf

pytestmark = pytest.mark.quick

Y = np.array([[0.0, 1.0], [0.5, -1.0], [1.0, 1.0]], np.float32)
ONE_HOT = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], np.float32)
P = np.array([[0.5, 0.25], [0.75, 0.5], [0.1, 0.9]], np.float32)
W = np.array([1.0, 0.0, 3.0], np.float32)

# The mean, the sum, the mean with weights W, and that over the sum of weights.
LOSSES = [
    ("MeanSquaredError", Y, [0.657499969, 1.97249997, 0.545416653, 0.409062475]),
    ("MeanAbsoluteError", Y, [0.666666687, 2.0, 0.708333313, 0.53125]),
    ("Huber", Y, [0.307916671, 0.923749983, 0.272708327, 0.204531237]),
    ("CosineSimilarity", Y, [-0.368015885, -1.10404766, -0.929939985, -0.697454989]),
    ("LogCosh", Y, [0.271595448, 0.814786315, 0.245474502, 0.184105873]),
    ("Hinge", Y, [0.8125, 2.4375, 0.791666687, 0.59375]),
    ("SquaredHinge", Y, [0.837187469, 2.51156235, 0.670416653, 0.502812505]),
    ("BinaryCrossentropy", ONE_HOT, [1.27757347, 3.83272052, 2.64915872, 1.9868691]),
    ("CategoricalCrossentropy", ONE_HOT, [1.30400765, 3.91202307, 2.66878915, 2.00159192]),
    ("KLDivergence", ONE_HOT, [1.32551897, 3.97655678, 2.76468086, 2.07351065]),
    ("Poisson", ONE_HOT, [1.16276002, 3.48828006, 2.00734115, 1.5055058]),
    ("CategoricalHinge", ONE_HOT, [1.26666665, 3.79999995, 2.21666646, 1.6624999]),
]


@pytest.mark.parametrize(("name", "y_true", "numbers"), LOSSES, ids=[row[0] for row in LOSSES])
def test_losses_are_kerass(name, y_true, numbers):
    make = getattr(tf.keras.losses, name)
    losses = [
        make()(y_true, P),
        make(reduction="sum")(y_true, P),
        make()(y_true, P, sample_weight=W),
        make(reduction="mean_with_sample_weight")(y_true, P, sample_weight=W),
    ]
    assert_allclose([float(value) for value in losses], numbers, rtol=1e-6)
    assert make(reduction=None)(y_true, P).shape == (3,)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("MeanSquaredError", [0.26, 0.26]),
        ("BinaryCrossentropy", [0.72163, 7.20922]),
        ("Huber", [0.13, 0.13]),
        ("CosineSimilarity", [-0.375, -0.375]),
        ("Hinge", [0.95, 0.75]),
    ],
)
def test_a_vector_and_a_column_are_examples_of_one_number(name, numbers):
    """So each has a weight of its own, whichever of labels and predictions is the column."""
    labels, column = tf.constant([1.0, 0.0, 1.0, 1.0]), tf.constant([[0.2], [0.4], [0.9], [0.6]])
    weights, loss = tf.constant([1.0, 2.0, 0.0, 0.5]), getattr(tf.keras.losses, name)
    losses = [loss()(labels, column, weights), loss()(column, labels, weights)]
    assert_allclose(losses, numbers, rtol=2e-5)
    assert loss(reduction=None)(labels, column).shape == (4,)


def test_options_of_losses():
    losses = tf.keras.losses
    labels = np.array([1, 0, 1])
    by_row = losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)(labels, P)
    assert_allclose(by_row, [0.8259394, 0.5759394, 0.3711007], rtol=1e-6)
    ignoring = losses.SparseCategoricalCrossentropy(ignore_class=0)
    assert_allclose(ignoring(labels[:, None], P), 0.60198647, rtol=1e-6)
    smooth = losses.BinaryCrossentropy(True, 0.2, reduction="none")(ONE_HOT, P)
    assert_allclose(smooth, [0.76250815, 0.692974, 0.9027752], rtol=1e-6)
    cosines = losses.CosineSimilarity(axis=0, reduction="none")(P, ONE_HOT)
    assert_allclose(cosines, [-0.66272897, -0.23596458], rtol=1e-6)
    assert_allclose(losses.MeanSquaredError()([1.0, 2.0, 3.0], [[1.0], [2.0], [5.0]]), 4 / 3)
    half = losses.MeanSquaredError(reduction="mean_with_sample_weight")
    assert float(half([1.0, 2.0], [2.0, 2.0], sample_weight=2.0)) == 1.0
    assert losses.MSE is losses.mse is losses.mean_squared_error
    assert losses.MeanSquaredError()(Y.astype(np.float64), P.astype(np.float64)).dtype == tf.float64
    assert losses.MeanSquaredError(dtype="float64")(Y, P).dtype == tf.float64
    with pytest.raises(ValueError, match=r"reduction must be one of .*, got 'avg'"):
        losses.Huber(reduction="avg")
    for base, methods in (
        (losses.Loss, "call"),
        (tf.keras.metrics.Metric, "result, update_state"),
        (tf.keras.optimizers.schedules.LearningRateSchedule, "__call__"),
    ):
        # Python 3.12 quotes the names
        with pytest.raises(TypeError, match=r"class Own with.* abstract methods? .*") as raised:
            type("Own", (base,), {})()
        assert str(raised.value).replace("'", "").endswith(f" {methods}")


def test_a_loss_of_ones_own_is_differentiable():
    class Quartic(tf.keras.losses.Loss):
        def call(self, y_true, y_pred):
            return tf.reduce_mean((y_true - y_pred) ** 4, axis=-1)

    gradient = tf.grad(lambda p: Quartic()(Y, p))(tf.constant(P))
    assert_allclose(gradient, 4 * (P - Y) ** 3 / 6, rtol=1e-5)


def test_metrics_are_kerass():
    mean = tf.keras.metrics.Mean(name="loss")
    assert (mean.name, float(mean.result())) == ("loss", 0.0)
    mean.update_state([[1.0, 2.0], [3.0, 5.0]], sample_weight=[1.0, 3.0])
    assert_allclose(mean.result(), 3.375)
    assert_allclose(mean(2.0), 3.1, rtol=1e-6)
    total = tf.keras.metrics.Sum()
    total.update_state([[1.0, 2.0], [3.0, 5.0]], sample_weight=[1.0, 3.0])
    assert_allclose(total.result(), 27.0)
    mean.reset_state()
    step = tf.function(lambda x: mean.update_state(x))
    for value in (1.0, 2.0, 6.0):
        step(tf.constant(value))
    assert float(mean.result()) == 3.0
    assert [v.trainable for v in mean.variables] == [False, False]


@pytest.mark.parametrize(
    ("name", "of_classes", "numbers"),
    [
        ("Accuracy", lambda y, p: (y, p.argmax(-1)), (0.5, 0.467273)),
        ("Accuracy", lambda y, p: (y[:, None], p.argmax(-1)), (0.5, 0.467273)),
        ("BinaryAccuracy", lambda y, p: (1.0 * (p[:, 0] > 0.5), p[:, 1]), (0.5, 0.563129)),
        ("CategoricalAccuracy", lambda y, p: (np.eye(3)[y], p), (0.5, 0.467273)),
        ("SparseCategoricalAccuracy", lambda y, p: (y, p), (0.5, 0.467273)),
        ("SparseCategoricalAccuracy", lambda y, p: (y[:, None], p), (0.5, 0.467273)),
    ],
)
def test_accuracies_are_kerass(name, of_classes, numbers):
    """Once without weights, then with them added."""
    rng = np.random.default_rng(0)
    y, p, weights = rng.integers(0, 3, 6), rng.random((6, 3)), rng.random(6)
    metric = getattr(tf.metrics, name)()
    assert metric.name == re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
    metric.update_state(*of_classes(y, p))
    assert_allclose(metric.result(), numbers[0], rtol=1e-6)
    metric.update_state(*of_classes(y, p), sample_weight=weights)
    assert_allclose(metric.result(), numbers[1], rtol=2e-6)


# Keras 3.15's: without weights, with W added, and with W alone.
MEANS = [
    ("MeanSquaredError()", Y, (0.6575, 0.5155357, 0.4090625)),
    ("MeanAbsoluteError()", Y, (0.6666667, 0.5892857, 0.53125)),
    ("MeanAbsolutePercentageError()", Y, (8.33334e07, 7.142862e07, 6.250005e07)),
    ("MeanSquaredLogarithmicError()", ONE_HOT, (0.2228205, 0.2878846, 0.3366826)),
    ("RootMeanSquaredError()", Y, (0.8108637, 0.7180082, 0.6395799)),
    ("LogCoshError()", Y, (0.2715954, 0.2216014, 0.1841058)),
    ("CosineSimilarity()", Y, (0.3680159, 0.5562668, 0.697455)),
    ("Hinge()", Y, (0.8125, 0.6875, 0.59375)),
    ("SquaredHinge()", Y, (0.8371875, 0.6461161, 0.5028125)),
    ("CategoricalHinge()", ONE_HOT, (1.266667, 1.492857, 1.6625)),
    ("KLDivergence()", ONE_HOT, (1.325519, 1.752943, 2.073511)),
    ("Poisson()", ONE_HOT, (1.16276, 1.358615, 1.505506)),
    ("BinaryCrossentropy()", ONE_HOT, (1.277573, 1.682885, 1.986869)),
    (
        "BinaryCrossentropy(from_logits=True, label_smoothing=0.2)",
        ONE_HOT,
        (0.7860858, 0.8327273, 0.8677084),
    ),
    ("CategoricalCrossentropy()", ONE_HOT, (1.304008, 1.702627, 2.001592)),
    (
        "CategoricalCrossentropy('c', 'float64', True, 0.2)",
        ONE_HOT,
        (0.8309932, 0.9381744, 1.01856),
    ),
]


@pytest.mark.parametrize(("text", "labels", "numbers"), MEANS, ids=[row[0] for row in MEANS])
def test_means_of_losses_are_kerass(text, labels, numbers):
    metric, other = (eval(f"metrics.{text}", {"metrics": tf.keras.metrics}) for _ in range(2))
    values = [metric(labels, P), metric(labels, P, sample_weight=W), other(labels, P, W)]
    assert_allclose([float(value) for value in values], numbers, rtol=1e-6)
    assert metric.result().dtype == ("float64" if "float64" in text else "float32")


@pytest.mark.parametrize(
    ("text", "of_classes", "numbers"),
    [
        ("SparseCategoricalCrossentropy()", lambda y, p: (y, p), (2.632168, 2.719371)),
        ("SparseCategoricalCrossentropy()", lambda y, p: (y[:, None], p), (2.632168, 2.719371)),
        (
            "SparseCategoricalCrossentropy(from_logits=True)",
            lambda y, p: (y, p),
            (1.561467, 1.583443),
        ),
        ("TopKCategoricalAccuracy(2)", lambda y, p: (np.eye(4)[y], p), (0.5, 0.472737)),
        ("TopKCategoricalAccuracy()", lambda y, p: (np.eye(4)[y], p), (1.0, 1.0)),
        ("SparseTopKCategoricalAccuracy(2)", lambda y, p: (y, p), (0.5, 0.472737)),
        ("SparseTopKCategoricalAccuracy(2)", lambda y, p: (y[:, None], p), (0.5, 0.472737)),
        (
            "SparseTopKCategoricalAccuracy(k=2, from_sorted_ids=True)",
            lambda y, p: (y, np.argsort(-p, -1)),
            (0.5, 0.472737),
        ),
        # a label between classes is none of them
        (
            "SparseCategoricalAccuracy()",
            lambda y, p: ([0.0, 1.5, 2.0, 3.0, 0.0, 1.0], p),
            (0.3333333, 0.3536205),
        ),
        ("Accuracy()", lambda y, p: ([1, 2, 3, 1], [1.0, 2.5, 3.0, 1.2]), (0.5, None)),
    ],
)
def test_metrics_of_classes_are_kerass(text, of_classes, numbers):
    rng = np.random.default_rng(0)
    p, y, weights = rng.random((6, 4)), rng.integers(0, 4, 6), rng.random(6)
    metric = eval(f"metrics.{text}", {"metrics": tf.keras.metrics})
    assert_allclose(metric(*of_classes(y, p)), numbers[0], rtol=1e-6)
    if numbers[1] is not None:
        assert_allclose(metric(*of_classes(y, p), sample_weight=weights), numbers[1], rtol=2e-6)


def test_weights_of_metrics_may_be_of_elements():
    root = tf.keras.metrics.RootMeanSquaredError()
    assert_allclose(root(Y, P, sample_weight=np.abs(Y)), 0.9023119, rtol=1e-6)
    column, vector = np.array([[0.2], [0.4], [0.9], [0.6]]), np.array([1.0, 0.0, 1.0, 1.0])
    weights = np.array([1.0, 2.0, 0.0, 0.5])
    for name, number in (("MeanSquaredError", 0.2971429), ("BinaryAccuracy", 0.7142857)):
        metric = getattr(tf.keras.metrics, name)()
        assert_allclose(metric(vector, column, sample_weight=weights), number, rtol=1e-6)


def test_names_and_options_of_metrics():
    metrics = tf.keras.metrics
    assert metrics.LogCoshError().name == "logcosh"
    assert metrics.KLDivergence("divergence").name == "divergence"
    assert list(inspect.signature(metrics.TopKCategoricalAccuracy).parameters)[:2] == ["k", "name"]
    with pytest.raises(TypeError, match=r"MeanSquaredError: got an unexpected keyword .*threshold"):
        metrics.MeanSquaredError(threshold=0.5)
    with pytest.raises(AttributeError, match=r"use tf\.keras\.losses\.mean_squared_error"):
        metrics.mean_squared_error  # noqa: B018
    with pytest.raises(AttributeError, match=r"'Recall': use tf\.keras\.metrics\.Mean"):
        metrics.Recall  # noqa: B018


@pytest.mark.parametrize(
    ("text", "shape", "deviation", "largest"),
    [
        ("GlorotUniform(1)", (200, 300), 0.0632, 0.1096),
        ("GlorotNormal(1)", (200, 300), 0.0632, 0.1438),
        ("HeNormal(1)", (3, 3, 20, 50), 0.1054, 0.2397),
        ("HeUniform(1)", (3, 3, 20, 50), 0.1054, 0.1826),
        ("LecunNormal(1)", (4000,), 0.0158, 0.0360),
        ("LecunUniform(1)", (200, 300), 0.0707, 0.1225),
        ("RandomUniform(seed=1)", (100, 100), 0.0289, 0.05),
        ("TruncatedNormal(seed=1)", (100, 100), 0.0440, 0.1),
        ("RandomNormal(seed=1)", (100, 100), 0.05, None),
        ('VarianceScaling(2, "fan_out", "untruncated_normal")', (3, 100, 200), 0.0577, None),
        ("Orthogonal(2.0)", (100, 60), 0.2, None),
        ("Orthogonal(2.0)", (6, 100), 0.2, None),
        ("Constant(3.0)", (2, 3), 0.0, 3.0),
        ("zeros()", (3,), 0.0, 0.0),
        ("Identity(2.0)", (2, 4), 0.8660, 2.0),
    ],
)
def test_initializers_have_the_spread_of_kerass(text, shape, deviation, largest):
    initializer = eval(
        text,
        {},
        {name: getattr(tf.initializers, name) for name in [*tf.initializers.__all__, "zeros"]},
    )
    values = initializer(shape)
    assert (values.shape, values.dtype.name) == (shape, "float32")
    assert_allclose(np.std(values), deviation, rtol=0.03, atol=1e-3)
    if largest is not None:
        assert_allclose(np.abs(values).max(), largest, rtol=0.01, atol=1e-6)
    np.testing.assert_array_equal(values, initializer(shape))
    assert initializer(shape, "float64").dtype.name == "float64"


def test_initializers_by_name():
    columns = tf.initializers.Orthogonal()((6, 3, 4), "float64").numpy().reshape(18, 4)
    assert_allclose(columns.T @ columns, np.eye(4), atol=1e-14)
    get, normal = tf.initializers.get, tf.random_normal_initializer(stddev=0.1)
    assert (
        type(get("glorot_uniform")) is type(get("GlorotUniform")) is tf.initializers.GlorotUniform
    )
    assert get(normal) is normal
    assert type(normal) is tf.initializers.RandomNormal
    assert float(np.std(normal([1000]) - tf.random_normal_initializer(stddev=0.1)([1000]))) > 0.1
    assert tf.constant_initializer([1, 2])((2, 2)).numpy().tolist() == [[1, 2], [1, 2]]
    for call, words in (
        (lambda: get("glorot"), "identifier must be a function or one of"),
        (lambda: tf.initializers.VarianceScaling(mode="fan"), "mode must be one of"),
        (lambda: tf.initializers.VarianceScaling(-1.0), "scale must be positive"),
        (lambda: tf.initializers.Identity()((2,)), "shape must have two axes"),
        (lambda: tf.initializers.Orthogonal()((2,)), "at least 2 axes"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_metric_of_ones_own_has_its_state_by_add_weight():
    class Totals(tf.keras.metrics.Metric):
        def __init__(self, name="totals", **options):
            super().__init__(name=name, **options)
            self.totals = self.add_weight(shape=(2,), name="totals", initializer="zeros")
            self.count = self.add_weight(name="count", dtype=tf.int64)

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.totals.assign_add([tf.reduce_sum(y_true), tf.reduce_sum((y_true - y_pred) ** 2)])
            self.count.assign_add(tf.size(y_true, out_type=tf.int64))

        def result(self):
            return self.totals[1] / tf.cast(self.count, tf.float32)

    metric = Totals()
    for update in (metric.update_state, tf.function(metric.update_state)):
        metric.reset_state()
        update(tf.constant([1.0, 2.0]), tf.constant([2.0, 4.0]))
        update(tf.constant([0.0]), tf.constant([2.0]))
        assert (float(metric.result()), metric.totals.numpy().tolist()) == (3.0, [3.0, 9.0])
        assert [(v.dtype, v.trainable) for v in metric.variables] == [
            (tf.float32, False),
            (tf.int64, False),
        ]
    with pytest.raises(ValueError, match=r"add_weight: initializer must be .* got 'ones'"):
        metric.add_weight(initializer="ones")


def test_a_determinant_has_named_parts():
    sign, log = result = tf.linalg.slogdet(tf.constant([[2.0, 0.0], [0.0, -3.0]]))
    assert (result.sign, result.log_abs_determinant) == (sign, log)
    assert_allclose([float(sign), float(log)], [-1, np.log(6)], rtol=1e-6)


def test_names_of_variables_have_scopes():
    with tf.name_scope("a"), tf.name_scope("b") as inner:
        assert (inner, tf.Variable(1.0, name="v").name) == ("a/b/", "a/b/v:0")

    class Layer(tf.Module):
        @tf.Module.with_name_scope
        def build(self):
            self.w = tf.Variable(1.0, name="w")
            return self.w.name

    class Outer(tf.Module):
        def __init__(self):
            super().__init__()
            with self.name_scope:
                self.layer = Layer()

    assert (Layer().build(), Outer().layer.build()) == ("layer/w:0", "outer/layer/w:0")
    assert Layer("q").name_scope.name == "q/"
    assert tf.Variable(1.0, name="v").name == "v:0"
    with pytest.raises(ValueError, match="must be a string, got int"):
        tf.name_scope(3)


def test_labels_become_rows():
    rows = tf.keras.utils.to_categorical
    for labels in ([0, 2], [[0.0], [2.0]], np.array([0, 2], np.uint8)):
        result = rows(labels)
        assert (result.tolist(), result.dtype) == ([[1, 0, 0], [0, 0, 1]], "float64")
    assert rows([[0, 1]], 2).tolist() == [[[1, 0], [0, 1]]]
    assert rows([], 3).shape == (0, 3)
    compiled = tf.function(lambda x: rows(x, 3), jit_compile=False)(tf.constant([[2], [0]]))
    assert (compiled.numpy().tolist(), compiled.dtype) == ([[0, 0, 1], [1, 0, 0]], "float32")
    for labels in ([1.5], [-1], [3]):
        with pytest.raises(ValueError, match="labels must be integers from 0 to 2"):
            rows(labels, 3)


def test_seeds_and_norms():
    assert_allclose(tf.keras.utils.normalize([[3.0, 4.0], [0.0, 0.0]]), [[0.6, 0.8], [0.0, 0.0]])
    assert_allclose(tf.keras.utils.normalize([[3.0, 1.0]], 0, 1), [[1.0, 1.0]])
    draws = []
    for _ in range(2):
        tf.keras.utils.set_random_seed(3)
        draws.append((random.random(), np.random.rand(), float(tf.random.normal(()))))
    assert draws[0] == draws[1]
