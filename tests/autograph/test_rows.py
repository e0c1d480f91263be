"""A `for` through the rows of a tensor is a loop of the program, or unrolled where it must be."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._function.tracing import loops

X = np.linspace(0.1, 1.0, 20)
INITIAL = tf.constant(X)


class Total:
    def __init__(self):
        self.value, self.count, self.all = 0.0, 0, []

    def add(self, x):
        self.value = self.value + x * x

    def note(self, x):
        self.count += 1
        self.all.append(x * self.count)
        return x


def recurrence(x):
    s = 0.5
    for v in x:
        s = tf.sin(s * v) + v
    return s


def by_index(x):
    s = x[0]
    for i in tf.range(1, 19):
        s = tf.sin(s * x[i] + x[i + 1]) + tf.cast(i, x.dtype) * 0.1
    return s


def assigned_inside(x):
    for v in x:
        y = v * v
        z = y * v
    return y + z


def left_early(x):
    s = x[0]
    for v in x:
        if v > 0.8:
            continue
        s = s + v * v
        if s > 2.0:
            break
    return s * s


def returns_early(x):
    s = x[0]
    for v in x:
        s = s + v * v
        if s > 2.0:
            return s * s
    return s


def nested(x):
    s = x[0]
    for i in tf.range(16):
        for v in x:
            s = tf.tanh(s * v + x[i])
    return s


def rows_of_a_matrix(x):
    s = x[:4]
    for row in tf.reshape(x, [20, 1]) * x[:4]:
        s = tf.tanh(row * s)
    return tf.reduce_sum(s)


def assigns_attributes(x):
    total = Total()
    for v in x:
        total.add(v)
    return total.value


def assigns_elements(x):
    values = {"s": x[0], "name": "s"}
    for v in x:
        values["s"] = tf.sin(values["s"] * v)
    return values["s"]


def of_an_argument(x, n):
    s = x[0]
    for i in tf.range(n):
        s = tf.sin(s * x[i] + 1.0)
    return s


def with_a_tape(x):
    s = x[0]
    for v in x:
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = tf.sin(v * s)
        s = s + tape.gradient(y, v)
    return s


LOOPS = [recurrence, by_index, assigned_inside, left_early, returns_early, nested]
LOOPS += [rows_of_a_matrix, assigns_attributes, assigns_elements, with_a_tape]


def appends(x):
    ys = []
    for v in x:
        ys.append(v * v)
    return tf.add_n(ys)


def counts(x):
    n, s = 0, x[0]
    for v in x:
        n += 1
        s = s * v + n
    return s / n


def needs_the_number(x):
    s, names = x[0], {3: 2.0}
    for i in tf.range(20):
        if int(i) in names:
            s = s * names[int(i)] * x[int(i)]
    return s


def calls_what_counts(x):
    total = Total()
    s = x[0]
    for v in x:
        s = s + total.note(v)
    return s + total.count + tf.add_n(total.all)


def changes_shapes(x):
    y = x[:1]
    for i in tf.range(20):
        y = tf.concat([y, x[:1] * tf.cast(i, x.dtype)], 0)
    return tf.reduce_sum(y * y)


UNROLLED = [appends, counts, needs_the_number, calls_what_counts, changes_shapes]


@pytest.fixture
def traced(monkeypatch):
    """The names of the loops that are traced."""
    names = []

    def run(wanted, *args):
        names.append(wanted.name)
        return before(wanted, *args)

    before = loops.complete
    monkeypatch.setattr(loops, "complete", run)
    return names


@pytest.mark.parametrize("f", [*LOOPS, *UNROLLED], ids=lambda f: f.__name__)
def test_values_and_derivatives_are_those_of_eager_runs(f, traced):
    v = tf.constant(np.cos(X))
    for transform in (
        lambda f: f,
        tf.grad,
        lambda f: lambda x: tf.hvp(f)(x, v),
        lambda f: lambda x: tf.jvp(f, (x,), (v,))[1],
    ):
        result, expected = tf.function(transform(f))(INITIAL), transform(f)(INITIAL)
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
    xs = tf.stack([INITIAL, 0.7 * INITIAL])
    np.testing.assert_allclose(tf.function(tf.vmap(f))(xs), [f(x) for x in xs], rtol=1e-9)
    outside = tf.grad(tf.grad(lambda s: tf.function(f)(s * INITIAL)))(tf.constant(1.1, tf.float64))
    inside = tf.grad(tf.grad(lambda s: f(s * INITIAL)))(tf.constant(1.1, tf.float64))
    np.testing.assert_allclose(outside, inside, rtol=1e-9, atol=1e-12)
    assert bool(traced) == (f in LOOPS) or f in (left_early, returns_early)


def unread(x):
    for _ in range(120):
        x = tf.sin(x) * 1.5
    return tf.reduce_sum(x)


def in_indices(x):
    s = x[0]
    for i in range(118, 0, -1):
        s = tf.sin(s * x[i % 20] + x[-1 - i % 3]) + tf.stack([x, -x])[0, (i + 1) % 20]
    return s


def until_a_tensor(x):
    for i in range(200):
        x = x * 0.98 + x[i % 20] * 0.01
        if tf.reduce_sum(x) < 2.0:
            break
    return tf.reduce_sum(x * x)


def as_a_number(x):
    for i in range(120):
        x = tf.sin(x) + 0.01 * i
    return tf.reduce_sum(x)


def in_a_list(x):
    factors = [1.0, 1.5, 0.5]
    for i in range(120):
        x = tf.sin(x) * factors[i % 3]
    return tf.reduce_sum(x)


def kept(x):
    states = []
    for _ in range(120):
        x = tf.sin(x)
        states.append(x)
    return tf.reduce_sum(tf.stack(states))


def read_afterwards(x):
    for i in range(120):
        x = tf.sin(x) + x[i % 2]
    return tf.reduce_sum(x) * i


def draws_of_numpy(x):
    rng = np.random.default_rng(1)
    for _ in range(120):
        x = tf.sin(x) + rng.normal()
    return tf.reduce_sum(x)


def goes_on_in_an_iterator(x):
    factors = iter(np.linspace(0.5, 1.5, 500))
    for _ in range(120):
        for factor in factors:
            x = tf.sin(x) * factor
            break
    return tf.reduce_sum(x)


def cell_of_its_own(x):
    called = []

    def cell(x):
        called.append(1)
        return tf.sin(x) * len(called)

    for _ in range(120):
        x = cell(x)
    return tf.reduce_sum(x)


def few(x):
    for _ in range(90):
        x = tf.sin(x)
    return tf.reduce_sum(x)


@pytest.mark.parametrize(
    ("f", "is_loop"),
    [
        *((unread, True), (in_indices, True), (until_a_tensor, True), (as_a_number, False)),
        *((in_a_list, False), (kept, False), (read_afterwards, False), (few, False)),
        *((draws_of_numpy, False), (goes_on_in_an_iterator, False), (cell_of_its_own, False)),
    ],
)
def test_ranges_whose_rounds_do_the_same_are_loops(f, is_loop, traced):
    transforms = [lambda f: f, tf.grad, lambda f: lambda x: tf.hvp(f)(x, tf.cos(x))]
    for transform in transforms if is_loop else transforms[:1]:
        traced.clear()
        result, expected = tf.function(transform(f))(INITIAL), transform(f)(INITIAL)
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
        assert bool(traced) == is_loop


def test_a_range_whose_end_is_an_argument():
    n = tf.constant(20)
    for transform in (lambda f: f, tf.grad, lambda f: tf.grad(lambda x, n: tf.grad(f)(x, n)[0])):
        result = tf.function(transform(of_an_argument))(INITIAL, n)
        np.testing.assert_allclose(result, transform(of_an_argument)(INITIAL, n), rtol=1e-9)


def test_a_hundred_thousand_rounds_and_their_gradient(traced):
    """They take memory for some numbers a round, and time in machine code."""
    x = tf.constant(np.random.default_rng(0).uniform(0.5, 1.0, 100_000))

    def first(x):
        s = x[0]
        for i in tf.range(100_000):
            s = tf.sin(s + x[i])
        return s

    def second(x):
        s = x[0]
        for row in x:
            s = tf.sin(s + row) * x[1]
        return s

    for f in (first, second):
        value, gradient = tf.function(tf.value_and_grad(f))(x)
        values = x.numpy()
        state, slope = values[0], 1.0
        states = []
        for item in values:
            states.append(state + item)
            state = np.sin(state + item) * (1.0 if f is first else values[1])
        slopes = np.cos(states) * (1.0 if f is first else values[1])
        for item in slopes[:-20:-1]:
            slope *= item
        np.testing.assert_allclose(value, state, rtol=1e-9)
        np.testing.assert_allclose(gradient[-1], slopes[-1], rtol=1e-9)
    assert traced.count("for") == 2


def test_state_of_the_program_in_a_loop(traced, capfd):
    total = tf.Variable(0.0, dtype=tf.float64)

    @tf.function
    def summed(x):
        for v in x:
            total.assign_add(v)
            tf.print(total)
        return total * 2.0

    np.testing.assert_allclose(summed(INITIAL), 2 * X.sum())
    np.testing.assert_allclose([*map(float, capfd.readouterr().err.split())], np.cumsum(X))

    def noisy(x):
        s = x[0]
        for v in x:
            s = s * 0.5 + tf.random.normal([], dtype=x.dtype) * v
        return s

    def noisier(x):
        s = x[0]
        for v in x:
            s = s * tf.random.uniform([], dtype=x.dtype) + tf.random.normal([], dtype=x.dtype) * v
        return s

    for f in (noisy, noisier):  # the second would draw in another order
        traced.clear()
        tf.random.set_seed(3)
        expected = f(INITIAL)
        tf.random.set_seed(3)
        np.testing.assert_allclose(tf.function(f)(INITIAL), expected, rtol=1e-12)
        assert bool(traced) == (f is noisy)


def test_errors_are_those_of_python():
    def reads_too_early(x):
        for v in x:
            y = y + v  # noqa: F821
        return y

    def raises(x):
        for i in tf.range(20):
            if int(i) == 17:
                raise KeyError("seventeen")
        return x

    with pytest.raises(UnboundLocalError):
        tf.function(reads_too_early)(INITIAL)
    with pytest.raises(KeyError, match="seventeen"):
        tf.function(raises)(INITIAL)


def test_control_flow_in_functions_that_are_differentiated():
    def f(x):
        return x * x if x > 0 else -x

    x = tf.constant(3.0)
    assert float(tf.function(tf.grad(f))(x)) == 6.0
    assert float(tf.function(tf.grad(tf.grad(f)))(x)) == 2.0
    assert tf.function(tf.vmap(tf.grad(f)))(tf.constant([3.0, -1.0])).numpy().tolist() == [6.0, -1]
    assert float(tf.function(tf.value_and_grad(f))(x)[1]) == 6.0


# What functions change ----------------------------------------------------------------------


class Box:
    def __init__(self):
        self.value, self.count, self.built = 0.0, 0, False

    def set(self, x):
        self.value = x
        self.count += 1
        return x

    def scaled(self, x):
        if not self.built:
            self.factor, self.built = tf.constant(3.0), True
        return x * self.factor


def sets_in_a_branch(x):
    box = Box()
    if x > 0:
        box.set(x)
        box.set(2.0 * x)
    else:
        box.set(-3.0 * x)
    return box.value + box.count


def sets_in_a_loop(x):
    box = Box()
    while x < 10.0:
        box.set(x)
        x = x + 1.0
    return x + box.value * box.count


def builds_in_a_branch(x):
    box = Box()
    return box.scaled(x) if x > 0 else -box.scaled(x)


def lists_of_its_own(x):
    def put(ys, y):
        ys.append(y)

    if x > 0:
        ys = []
        put(ys, x)
        put(ys, x * x)
        x = tf.add_n(ys)
    return x


@pytest.mark.parametrize("value", [2.0, -2.0])
@pytest.mark.parametrize(
    "f", [sets_in_a_branch, sets_in_a_loop, builds_in_a_branch, lists_of_its_own]
)
def test_what_called_functions_change_is_merged(f, value):
    x = tf.constant(value)
    for transform in (lambda f: f, tf.grad):
        result, expected = tf.function(transform(f))(x), transform(f)(x)
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_many_objects_beside_hide_no_change():
    crowd = [[k] for k in range(150_000)]

    def f(x):
        box = Box()
        if x > 0:
            box.set(x * len(crowd))
        else:
            box.set(-x)
        return box.value + box.count

    for value in (2.0, -2.0):
        assert tf.function(f)(tf.constant(value)) == f(tf.constant(value))


def attribute_in_cond(x):
    box = Box()
    tf.cond(x > 0, lambda: box.set(x), lambda: box.set(-x))
    return box.value


def nonlocal_in_scan(x):
    count = 0

    def step(state, row):
        nonlocal count
        count += 1
        return state + row

    return tf.scan(step, tf.stack([x, x, x]))[-1] + count


def list_in_switch(x):
    ys = []
    ways = [lambda: x, lambda: (ys.append(x), x)[1]]
    return tf.switch_case(tf.cast(x > 0, tf.int32), ways) + len(ys)


def tensor_in_scan(x):
    box = Box()
    box.value = x

    def step(state, row):
        box.value = box.value + state
        return state + row

    return tf.scan(step, tf.stack([x, x, x]))[-1] + box.value


def method_in_a_loop_of_tensors(x):
    box = Box()
    n = tf.cast(x, tf.int32)
    return tf.keras.ops.fori_loop(0, n, lambda i, v: box.set(v + 1.0), x) + box.count


def method_in_fori(x):
    box = Box()
    return tf.keras.ops.fori_loop(0, 3, lambda i, v: box.set(v + 1.0), x) + box.count


def tensor_in_fori(x):
    box = Box()
    box.value = x

    def add(i, v):
        box.value = box.value * v
        return v + 1.0

    return tf.keras.ops.fori_loop(0, 3, add, x) * box.value


def list_in_while(x):
    kept = []

    def body(i, y):
        kept.append(y)
        return i + 1, tf.sin(y)

    _, y = tf.while_loop(lambda i, y: i < 4, body, (0, x))
    return y + tf.reduce_sum(tf.stack(kept))


def list_and_value_in_fori(x):
    kept = []

    def body(i, y):
        kept.append(y)
        return y * (1.0 + int(i))

    return tf.keras.ops.fori_loop(0, 3, body, x) + tf.add_n(kept)


@pytest.mark.parametrize(
    "f", [method_in_fori, tensor_in_fori, list_in_while, list_and_value_in_fori]
)
def test_loops_of_known_length_whose_functions_change_objects_are_unrolled(f):
    x = tf.constant(2.0)
    for transform in (lambda f: f, tf.grad):
        result, expected = tf.function(transform(f))(x), transform(f)(x)
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (attribute_in_cond, "cond: `self.value` is changed by a function"),
        (nonlocal_in_scan, "scan: `count` is changed by a function"),
        (list_in_switch, "switch_case: `ys` is changed by a function"),
        (tensor_in_scan, "scan: `box.value` is changed by a function"),
        (method_in_a_loop_of_tensors, "while_loop: `self.value` is changed by a function"),
    ],
)
def test_what_functions_given_to_loops_change_is_an_error(f, words):
    with pytest.raises(tf.errors.AutographError, match=words):
        tf.function(f)(tf.constant(2.0))


LOG = []


def test_lists_of_a_module_and_what_is_done_while_tracing():
    def appends(x):
        if x > 0:
            LOG.append(x)
        return x * len(LOG)

    with pytest.raises(tf.errors.AutographError, match=r"`LOG` is a list of 1 .* list of 0"):
        tf.function(appends, jit_compile=True)(tf.constant(2.0))
    assert LOG == []
    traces = []

    def traced(c, s):
        traces.append("step")  # is done while tracing, as in the original
        return c + s

    result = tf.function(lambda x: tf.scan(traced, x))(tf.constant([1.0, 2.0, 3.0]))
    assert result.numpy().tolist() == [1.0, 3.0, 6.0]
    assert traces
