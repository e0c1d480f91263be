"""Optimizers: Keras 3.15's numbers, step for step, and what is refused."""

import copy
import pickle

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg.optimizers import SGD, Adam, Ftrl, Nadam

# After three steps from w and b with the gradients of `steps`, in Keras (JAX backend).
KERAS = [
    ("SGD()", [0.966000021, -1.98300004, 2.9914999], 0.485000014),
    ("SGD(0.1)", [0.659999967, -1.83000004, 2.91499996], 0.349999994),
    ("SGD(0.1, momentum=0.9)", [0.227999985, -1.61399996, 2.80700016], 0.0484999865),
    (
        "SGD(0.1, momentum=0.9, nesterov=True)",
        [-0.0347999632, -1.48259997, 2.74129987],
        -0.0563500263,
    ),
    ("SGD(0.1, weight_decay=0.01)", [0.65750277, -1.82425594, 2.90613389], 0.348851353),
    ("SGD(0.1, clipnorm=1.0)", [0.785425723, -1.89271283, 2.94635653], 0.400000006),
    ("SGD(0.1, clipvalue=0.5)", [0.859999955, -1.88000011, 2.91499996], 0.449999988),
    ("SGD(0.1, global_clipnorm=1.0)", [0.806970298, -1.90348518, 2.95174265], 0.455227762),
    ("Adam()", [0.997245967, -1.99724591, 2.99724603], 0.4976798),
    (
        "Adam(0.1, beta_1=0.8, beta_2=0.9, epsilon=1e-3)",
        [0.726896524, -1.72731256, 2.72814107],
        0.275880903,
    ),
    ("Adam(0.1, amsgrad=True)", [0.724595845, -1.72459626, 2.72459722], 0.267978966),
    ("Adam(0.1, weight_decay=0.01)", [0.72189194, -1.7188952, 2.71589923], 0.266767472),
    ("AdamW(0.1)", [0.723513603, -1.72231436, 2.72111607], 0.267493993),
    ("AdamW(0.1, weight_decay=0.1)", [0.697817028, -1.66811645, 2.63841629], 0.255989522),
    ("RMSprop()", [0.994753301, -1.99475336, 2.99475336], 0.496832579),
    ("RMSprop(0.1, rho=0.8, momentum=0.5)", [0.397351563, -1.39735174, 2.39735198], 0.0728828311),
    (
        "RMSprop(0.1, centered=True, epsilon=1e-3)",
        [0.437431365, -1.43972945, 2.44864702],
        0.161338657,
    ),
    ("Adagrad(0.1)", [0.839505434, -1.84465694, 2.86117506], 0.400759548),
    (
        "Adagrad(0.1, initial_accumulator_value=0.5, epsilon=1e-3)",
        [0.846281528, -1.86564732, 2.90356565],
        0.408431053,
    ),
    ("Adadelta(1.0)", [0.997272372, -1.99727237, 2.99727225], 0.49859342),
    ("Adadelta(1.0, rho=0.5, epsilon=1e-2)", [0.679872274, -1.68393683, 2.69874263], 0.373075932),
    ("Adamax(0.1)", [0.772259653, -1.77225971, 2.77225971], 0.306306124),
    ("Adamax(0.1, beta_1=0.8, beta_2=0.9)", [0.757012725, -1.75701272, 2.75701284], 0.301032186),
    ("Lion(0.1)", [0.699999928, -1.69999993, 2.70000029], 0.400000006),
    ("Nadam()", [0.9981215, -1.99812162, 2.99812126], 0.498772323),
    (
        "Nadam(0.1, beta_1=0.8, beta_2=0.9, epsilon=1e-3)",
        [0.790930808, -1.79105508, 2.79130292],
        0.366612643,
    ),
    (
        "Nadam(0.1, beta_2=0.9, weight_decay=0.01)",
        [0.807387114, -1.80439019, 2.80139303],
        0.37603578,
    ),
    ("Ftrl(0.1)", [0.683331728, -1.24163413, 1.25760758], 0.297617406),
    (
        "Ftrl(0.1, learning_rate_power=-0.3, initial_accumulator_value=0.5, "
        "l1_regularization_strength=0.4, l2_regularization_strength=0.2, "
        "l2_shrinkage_regularization_strength=0.1, beta=0.3)",
        [0.186442748, -0.255594432, 0.100284949],
        0.0408091061,
    ),
]


def variables(dtype=np.float32):
    return tf.Variable(np.array([1.0, -2.0, 3.0], dtype)), tf.Variable(np.array(0.5, dtype))


def steps(optimizer, w, b, count=3):
    for step in range(count):
        gradient = np.array([2.0, -1.0, 0.5], np.float32) / (step * step + 1)
        optimizer.apply_gradients([(gradient, w), (np.float32(1.5 - step), b)])


@pytest.mark.parametrize(("text", "w_after", "b_after"), KERAS, ids=[row[0] for row in KERAS])
def test_the_steps_are_keras(text, w_after, b_after):
    w, b = variables()
    optimizer = eval(text, vars(tf.optimizers))
    steps(optimizer, w, b)
    np.testing.assert_allclose(w.numpy(), w_after, rtol=3e-7)
    np.testing.assert_allclose(b.numpy(), b_after, rtol=3e-7)
    assert optimizer.iterations.numpy() == 3
    assert w.dtype == np.float32


# At steps 0, 2, 3, 6, 9 and 10, in Keras (TensorFlow backend).
SCHEDULES = [
    (
        "ExponentialDecay(0.1, 4, 0.5)",
        [0.1, 0.0707106814, 0.0594603531, 0.0353553407, 0.0210224111, 0.0176776703],
    ),
    ("ExponentialDecay(0.1, 4, 0.5, staircase=True)", [0.1, 0.1, 0.1, 0.05, 0.025, 0.025]),
    ("PiecewiseConstantDecay([2, 5], [1.0, 0.5, 0.25])", [1.0, 1.0, 0.5, 0.25, 0.25, 0.25]),
    (
        "PolynomialDecay(0.1, 8, 0.01, power=2.0)",
        [0.1, 0.0606250018, 0.0451562479, 0.015625, 0.01, 0.01],
    ),
    ("PolynomialDecay(0.1, 3, 0.01, cycle=True)", [0.1, 0.04, 0.01, 0.01, 0.01, 0.0250000022]),
    (
        "InverseTimeDecay(0.1, 4, 0.5)",
        [0.1, 0.0799999982, 0.0727272704, 0.0571428575, 0.0470588244, 0.0444444455],
    ),
    ("InverseTimeDecay(0.1, 4, 0.5, staircase=True)", [0.1, 0.1, 0.1, 0.0666666701, 0.05, 0.05]),
    ("CosineDecay(0.1, 8, alpha=0.1)", [0.1, 0.0868198127, 0.0722207576, 0.0231801961, 0.01, 0.01]),
    (
        "CosineDecay(0.0, 6, warmup_target=0.1, warmup_steps=3)",
        [0.0, 0.0666666701, 0.1, 0.05, 0.0, 0.0],
    ),
    (
        "CosineDecayRestarts(0.1, 4)",
        [0.100000001, 0.049999997, 0.0146446619, 0.0853553414, 0.0308658239, 0.0146446619],
    ),
    (
        "CosineDecayRestarts(0.1, 3, t_mul=1.0, m_mul=0.9, alpha=0.1)",
        [0.100000001, 0.0324999951, 0.0909999982, 0.0828999951, 0.0756099969, 0.059207499],
    ),
    (
        "CosineDecayRestarts(0.1, 2, t_mul=1.5, m_mul=0.8, alpha=0.2)",
        [0.100000001, 0.0840000063, 0.0680000037, 0.0652107447, 0.0215438679, 0.0604079664],
    ),
]


@pytest.mark.parametrize(("text", "rates"), SCHEDULES, ids=[row[0] for row in SCHEDULES])
def test_the_schedules_are_keras(text, rates):
    schedule = eval(text, vars(tf.keras.optimizers.schedules))
    results = [schedule(tf.constant(step, tf.int64)) for step in (0, 2, 3, 6, 9, 10)]
    assert {result.dtype.name for result in results} == {"float32"}
    np.testing.assert_allclose([float(result) for result in results], rates, rtol=1e-6, atol=1e-8)


def test_a_schedule_counts_the_steps_of_a_compiled_loop():
    """Steps 1 to 3 have the rates 0.5, 0.5 and 0.25: the count is read at each call."""
    schedule = tf.optimizers.schedules.PiecewiseConstantDecay([1], [0.5, 0.25])
    w, optimizer = tf.Variable(4.0), SGD(schedule)
    step = tf.function(lambda: optimizer.apply_gradients([(1.0, w)]))
    for expected in (3.5, 3.0, 2.75):
        step()
        assert float(w) == expected


def test_schedules_refuse_what_they_cannot_do():
    with pytest.raises(ValueError, match="2 values for 2 boundaries"):
        tf.optimizers.schedules.PiecewiseConstantDecay([1, 2], [0.5, 0.25])
    with pytest.raises(ValueError, match="decay_steps must be positive, got 0"):
        tf.optimizers.schedules.CosineDecay(0.1, 0)
    with pytest.raises(ValueError, match="beta_1 must be"):
        tf.optimizers.Lion(beta_1=0.0)


def test_sgd_by_hand():
    """velocity = 0.5 velocity - 0.1 g: -0.2, then -0.3; Nesterov looks half of it ahead."""
    w, n = tf.Variable(1.0), tf.Variable(1.0)
    heavy_ball, ahead = SGD(0.1, momentum=0.5), SGD(0.1, momentum=0.5, nesterov=True)
    points = []
    for _ in range(2):
        heavy_ball.apply_gradients([(2.0, w)])
        ahead.apply_gradients([(2.0, n)])
        points.append((float(w), float(n)))
    np.testing.assert_allclose(points, [(0.8, 0.7), (0.5, 0.35)], rtol=1e-6)


def test_adam_by_hand():
    """The first step is the learning rate against the gradient's sign, whatever its size."""
    w = tf.Variable(np.array([1.0, 1.0, 1.0]))
    Adam(0.01).apply_gradients([(np.array([1e-3, -5.0, 1e6]), w)])
    np.testing.assert_allclose(w.numpy(), [0.99, 1.01, 0.99], rtol=1e-4)
    g1, g2, x = 0.3, -0.2, 1.0
    w = tf.Variable(np.array(x))
    optimizer = Adam()
    for g in (g1, g2):
        optimizer.apply_gradients([(g, w)])
    m1, v1 = 0.1 * g1, 0.001 * g1**2
    m2, v2 = 0.9 * m1 + 0.1 * g2, 0.999 * v1 + 0.001 * g2**2
    x -= 0.001 * np.sqrt(1 - 0.999) / (1 - 0.9) * m1 / (np.sqrt(v1) + 1e-7)
    x -= 0.001 * np.sqrt(1 - 0.999**2) / (1 - 0.9**2) * m2 / (np.sqrt(v2) + 1e-7)
    assert float(w) == pytest.approx(x, rel=1e-7)


def test_training_finds_the_minimum():
    """The loop of every tutorial: a tape, gradients, apply_gradients."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(64, 3))
    targets = inputs @ [1.0, -2.0, 0.5] + 0.7
    w, b = tf.Variable(np.zeros(3)), tf.Variable(np.array(0.0))
    optimizer = tf.keras.optimizers.Adam(0.1)
    for _ in range(300):
        with tf.GradientTape() as tape:
            error = np.dot(inputs, w) + b - targets
            loss = tf.reduce_mean(tf.square(error))
        gradients = tape.gradient(loss, [w, b])
        optimizer.apply_gradients(zip(gradients, [w, b], strict=True))
    np.testing.assert_allclose(w.numpy(), [1.0, -2.0, 0.5], atol=1e-3)
    assert float(b) == pytest.approx(0.7, abs=1e-3)


def test_the_learning_rate_can_change():
    w = tf.Variable(1.0)
    optimizer = SGD(0.5)
    optimizer.apply_gradients([(1.0, w)])
    optimizer.learning_rate = 0.25
    optimizer.apply_gradients([(1.0, w)])
    optimizer.learning_rate.assign(0.125)
    optimizer.apply_gradients([(1.0, w)])
    assert float(w) == 1 - 0.5 - 0.25 - 0.125
    halving = SGD(lambda count: 0.5 / (1.0 + tf.cast(count, tf.float32)))
    for _ in range(2):
        halving.apply_gradients([(1.0, w)])
    assert float(w) == 0.125 - 0.5 - 0.25


def test_state_belongs_to_each_variable():
    v, w = tf.Variable(1.0), tf.Variable([1.0, 1.0])
    optimizer = Adam(0.1)
    optimizer.apply_gradients([(1.0, v)])
    optimizer.apply_gradients([([1.0, -1.0], w), (1.0, v)])
    kept = [variable.shape for variable in optimizer.variables]
    assert kept == [(), (), (), (), (2,), (2,)]
    assert not any(variable.trainable for variable in optimizer.variables)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda optimizer: pickle.loads(pickle.dumps(optimizer))]
)
@pytest.mark.parametrize("kind", [Adam, Ftrl, Nadam])
def test_copies_go_on_with_the_state(copied, kind):
    """A checkpoint: model and optimizer pickled together take the same further steps."""
    w, b = variables()
    optimizer = kind(0.1)
    steps(optimizer, w, b)
    other, w2, b2 = copied((optimizer, w, b))
    steps(optimizer, w, b)
    steps(other, w2, b2)
    assert w.numpy().tolist() == w2.numpy().tolist()
    assert other.iterations.numpy() == 6


def test_steps_are_not_recorded():
    """Assigning is not differentiated, and the next gradient is that at the new point."""
    w = tf.Variable(3.0)
    optimizer = SGD(0.5, momentum=0.5)
    with tf.GradientTape(persistent=True) as tape:
        y = w * w
        optimizer.apply_gradients([(w * 2.0, w)])
        z = w * w
    assert (tape.gradient(y, w).numpy(), tape.gradient(z, w).numpy()) == (6.0, 0.0)


def test_what_is_refused():
    v, w = tf.Variable(1.0), tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match=r"No gradients provided for any variable: 'Variable:0'"):
        SGD().apply_gradients([(None, v)])
    with pytest.raises(ValueError, match=r"gradient has shape \(\), variable 'Variable:0' has"):
        SGD().apply_gradients([(1.0, w)])
    with pytest.raises(
        TypeError, match=r"entry 0 is \(float, Tensor\)\. The second part must be a tf.Variable"
    ):
        SGD().apply_gradients([(1.0, tf.constant(1.0))])
    with pytest.raises(ValueError, match="SGD: momentum must be"):
        SGD(momentum=2.0)
    with pytest.raises(ValueError, match="only one of"):
        SGD(clipnorm=1.0, clipvalue=1.0)
    with pytest.raises(ValueError, match="learning_rate_power must be at most 0"):
        Ftrl(learning_rate_power=0.5)
    with pytest.raises(ValueError, match="l1_regularization_strength must be at least 0, got -1"):
        Ftrl(l1_regularization_strength=-1)
    with pytest.raises(TypeError, match="unexpected keyword"):
        SGD(momentun=1.0)
    with pytest.raises(TypeError, match="update_step"):
        vars(tf.optimizers)["Optimizer"](0.1)
    assert (float(v), w.numpy().tolist()) == (1.0, [1.0, 2.0])


def test_a_gradient_that_is_missing():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    with pytest.warns(tf.errors.TapeWarning, match="Gradients do not exist for variables"):
        SGD(0.5).apply_gradients([(None, v), (1.0, w)])
    assert (float(v), float(w)) == (1.0, 0.5)


def test_the_momentum_of_nadam_goes_on_in_compiled_steps():
    """What all Variables share is updated once a step, however many Variables there are."""
    (w, b), (w2, b2) = variables(), variables()
    optimizer, other = Nadam(0.1), Nadam(0.1)
    compiled = tf.function(lambda g, h: other.apply_gradients([(g, w2), (h, b2)]))
    for step in range(3):
        g, h = tf.constant([2.0, -1.0, 0.5]) / (step + 1.0), tf.constant(1.5 - step)
        optimizer.apply_gradients([(g, w), (h, b)])
        compiled(g, h)
    np.testing.assert_allclose(w2.numpy(), w.numpy(), rtol=1e-6)
    np.testing.assert_allclose(b2.numpy(), b.numpy(), rtol=1e-6)
    product = np.prod([0.9 * (1 - float(np.float32(0.96)) ** t / 2) for t in (1, 2, 3)])
    np.testing.assert_allclose(optimizer.variables[2], product, rtol=1e-12)
    np.testing.assert_allclose(other.variables[2], product, rtol=1e-12)


def test_a_compiled_step_is_traced_once_although_it_makes_slots():
    """Also in a function that has been traced, as in Keras; other Variables are refused there."""
    v, x, traces = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0]), []
    optimizers = [tf.optimizers.Adam(0.1), tf.optimizers.SGD(0.1, momentum=0.9)]

    @tf.function
    def step(x):
        traces.append(x.shape)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x * v * v)
        optimizers[len(x) % 2].apply_gradients([(tape.gradient(loss, v), v)])
        return loss

    short = tf.constant([1.0])
    compiled = [*map(float, (step(x), step(x), step(short))), *v.numpy()]
    assert [tuple(shape) for shape in traces] == [(2,), (1,)]
    v.assign([1.0, 2.0])
    optimizers[:] = tf.optimizers.Adam(0.1), tf.optimizers.SGD(0.1, momentum=0.9)
    eager = [float(step.python_function(part)) for part in (x, x, short)]
    np.testing.assert_allclose(compiled, [*eager, *v.numpy()], rtol=1e-6)


def test_slots_are_made_in_compiled_branches_and_loops():
    def results(compile):
        v, w, adam, sgd = tf.Variable([1.0, 2.0]), tf.Variable(3.0), Adam(0.1), SGD(0.1, 0.9)

        def train(x, flag):
            def round_of_loop(i):
                adam.apply_gradients([(w * x * tf.cast(i, tf.float32), w)])
                return i + 1

            tf.cond(
                flag,
                lambda: adam.apply_gradients([(v * x, v)]),
                lambda: sgd.apply_gradients([(w * x, w)]),
            )
            tf.while_loop(lambda i: i < 3, round_of_loop, [tf.constant(0)])
            return w * 1.0

        run = compile(train)
        outputs = [float(run(tf.constant(0.5), tf.constant(flag))) for flag in (True, False, True)]
        slots = [np.sum(variable) for variable in [*adam.variables, *sgd.variables]]
        return [*outputs, *v.numpy(), *slots]

    np.testing.assert_allclose(results(tf.function), results(lambda f: f), rtol=1e-6)


def test_a_refused_step_changes_nothing():
    v, w = tf.Variable(1.0), tf.Variable([1.0, 2.0])
    optimizer = Nadam()
    with pytest.raises(ValueError, match="gradient has shape"):
        optimizer.apply_gradients([(1.0, v), (1.0, w)])
    assert [float(variable) for variable in optimizer.variables] == [0.0, np.float32(0.001), 1.0]
    assert float(v) == 1.0


def test_an_optimizer_by_its_name():
    get = tf.keras.optimizers.get
    assert type(get("adam")) is type(get("Adam")) is Adam
    optimizer = SGD()
    assert get(optimizer) is optimizer
    with pytest.raises(ValueError, match=r"optimizers.get: .* or one of sgd, .*; got 'adamm'"):
        get("adamm")


@pytest.mark.quick
def test_constraints_hold_after_each_step():
    """Also of Variables that `get_variable` makes, in a `function`, and of copies."""
    within = tf.Variable([1.0, 2.0], constraint=lambda w: tf.clip_by_value(w, 0.0, 1.5))
    with tf.compat.v1.variable_scope("bounded", constraint=tf.nn.relu):
        positive = tf.compat.v1.get_variable("w", initializer=[1.0, 2.0])
    assert tf.Variable(1.0).constraint is None
    gradient = tf.constant([20.0, 1.0])
    optimizer = SGD(0.1)
    step = tf.function(lambda: optimizer.apply_gradients([(gradient, within)]))
    optimizer.apply_gradients([(gradient, within), (gradient, positive)])
    np.testing.assert_allclose(within.numpy(), [0.0, 1.5])
    np.testing.assert_allclose(positive.numpy(), [0.0, 1.9], rtol=1e-6)
    step()
    np.testing.assert_allclose(within.numpy(), [0.0, 1.4], rtol=1e-6)
    assert copy.deepcopy(within).constraint is within.constraint
    with pytest.raises(TypeError, match="constraint must be a function"):
        tf.Variable(1.0, constraint=2.0)


ROWS = [  # Keras 3.15 with TensorFlow 2.21: four steps of an embedding, two of whose rows are one
    ("SGD", {"learning_rate": 0.1}, [-0.5, 0.75, -2.5, -4.0]),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9}, [-0.92795, 0.53603, -5.0677, -6.5677]),
    ("Adam", {"learning_rate": 0.1}, [-0.38836, 0.61165, -0.02103, -1.52103]),
    ("Adam", {"learning_rate": 0.1, "amsgrad": True}, [-0.38836, 0.61165, -0.02103, -1.52103]),
    ("AdamW", {"learning_rate": 0.1}, [-0.38812, 0.61028, -0.02152, -1.51912]),
    ("Nadam", {"learning_rate": 0.1}, [-0.38623, 0.61377, -0.01818, -1.51818]),
    ("RMSprop", {"learning_rate": 0.1}, [-1.09976, -0.09975, -0.97548, -2.47548]),
    ("RMSprop", {"learning_rate": 0.1, "centered": True}, [-1.22708, -0.22708, -1.3518, -2.8518]),
    ("Adagrad", {"learning_rate": 0.1}, [-0.32219, 0.71302, 0.04196, -1.45804]),
    ("Adadelta", {"learning_rate": 1.0}, [-0.0079, 0.9921, 0.4894, -1.0106]),
    ("Adamax", {"learning_rate": 0.1}, [-0.3111, 0.6889, 0.1889, -1.3111]),
    ("Lion", {"learning_rate": 0.1}, [-0.4, 0.6, 0.1, -1.4]),
    ("Ftrl", {"learning_rate": 0.1}, [-0.32219, -0.07144, -0.02806, -1.31802]),
    ("Adam", {"learning_rate": 0.1, "clipnorm": 0.5}, [-0.39999, 0.60003, -0.03665, -1.53665]),
    ("SGD", {"learning_rate": 0.1, "clipvalue": 0.3}, [-0.12, 0.885, 0.26, -1.24]),
    ("SGD", {"learning_rate": 0.1, "global_clipnorm": 0.7}, [-0.042, 0.979, 0.24802, -1.25198]),
]


@pytest.mark.parametrize(("name", "options", "expected"), ROWS, ids=range(len(ROWS)))
def test_rows_count_by_themselves(name, options, expected):
    """`sums_rows=False`: squares, sizes and limits are those of each row, as in Keras."""
    results = []
    for sums_rows in (False, True):
        table = tf.Variable([[0.0, 1.0], [0.5, -1.0], [0.2, 0.3]])
        other = tf.Variable([0.3, 0.1])
        optimizer = getattr(tf.keras.optimizers, name)(**options, sums_rows=sums_rows)
        for step in range(1, 5):
            rows = step * np.array([[1.0, 2.0], [2.0, 1.0], [0.5, 0.25]], "f")
            slices = tf.IndexedSlices(rows, [1, 1, 0])
            pairs = [(slices, table), (step * np.array([0.4, -0.8], "f"), other)]
            optimizer.apply_gradients(pairs)
        results.append(table.numpy()[:2].ravel())
    np.testing.assert_allclose(results[0], expected, atol=2e-5)
    is_linear = name == "SGD" and not {"clipnorm", "clipvalue", "global_clipnorm"} & {*options}
    if name not in ("Lion", "Adamax"):  # these are signs, and sizes of equal signs
        assert is_linear == np.array_equal(*results)
