"""Loops and choices by functions: what Python's give, in all modes, and TensorFlow's numbers."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import unfused
from tinygrad_cg.keras import ops

# Functions of x and w (2,), a stack xs of n rows, and n; the same on tensors in Python's loops ----


def step(c, s, w):
    return tf.sin(c * w) + 0.5 * s * c


def every(x, w, rows):
    """Return all states of a recurrence in Python."""
    states = [x]
    for row in rows:
        states.append(step(states[-1], row, w))
    return states


def every_scaled(x, w, rows):
    states = rows[:1]
    for row in rows[1:]:
        states.append(step(states[-1], row, w) * x)
    return states


def last(x, w, xs, n):
    return every(x, w, tf.unstack(xs))[-1]


def holds(x, n):
    return tf.math.real(x[1]) < n - 0.5


def chosen(x, w, xs, n):
    return x * w if n else tf.exp(w) * x * x


def by_cases(x, w, xs, n):
    return [tf.cos(x) * w, x * w, x * x * w][min(n, 2)]


def case(x, w, xs, n):
    pairs = [(holds(x, 1 - n), lambda: tf.cos(x) * w), (holds(x, 2 - n), lambda: x * w)]
    return tf.case(pairs, default=lambda: x * x * w)


def number(x, n):
    return tf.cast(tf.math.real(x[1]) * 0.0, "int32") + n


def switch_case(x, w, xs, n):
    branches = {0: lambda: tf.cos(x) * w, 1: lambda: x * w}
    return tf.switch_case(number(x, n), branches, default=lambda: x * x * w)


def switch(x, w, xs, n):
    branches = [lambda x, w: tf.cos(x) * w, lambda x, w: x * w, lambda x, w: x * x * w]
    return ops.switch(number(x, n), branches, x, w)


def size(c):
    return tf.reduce_sum(tf.math.real(c * tf.math.conj(c)))


def grow(c, w):
    return c * 1.5 + 0.1 * tf.sin(w * c)


LIMITS = {0: 0.0, 1: 0.3, 3: 1.5}  # of the sizes of states


def while_by_values(x, w, xs, n):
    return tf.while_loop(lambda c: size(c) < LIMITS[n], lambda c: (grow(c, w),), (x,))[0]


def python_while(x, w, xs, n):
    while size(x) < LIMITS[n]:
        x = grow(x, w)
    return x


def while_at_most(x, w, xs, n):
    rest = tf.while_loop(
        lambda c, k: size(c) < 1e9, lambda c, k: (grow(c, w), k + 1), (x, 0), maximum_iterations=n
    )
    return rest[0] * tf.cast(rest[1] + 1, x.dtype)


def python_at_most(x, w, xs, n):
    for _ in range(n):
        x = grow(x, w)
    return x * (n + 1.0)


def keras_while(x, w, xs, n):
    def goes_on(c, k):
        return k < n

    return ops.while_loop(goes_on, lambda c, k: (grow(c, w) / (n + 1.0), k + 1), (x, 0))[0]


def python_counted(x, w, xs, n):
    for _ in range(n):
        x = grow(x, w) / (n + 1.0)
    return x


def carry_and_rows(x, w, xs, n):
    end, rows = ops.scan(lambda c, s: (step(c, s, w), c * s + s), x, xs)
    return tf.concat([end[None], rows], 0)


def python_rows(x, w, xs, n):
    states = every(x, w, tf.unstack(xs))
    rows = [c * s + s for c, s in zip(states, tf.unstack(xs), strict=False)]
    return tf.stack([states[-1], *rows])


def reversed_rows(x, w, xs, n):
    end, rows = ops.scan(lambda c, s: (step(c, s, w), c * s), x, xs, reverse=True)
    return tf.concat([end[None], rows], 0)


def python_reversed_rows(x, w, xs, n):
    back = tf.unstack(xs)[::-1]
    states = every(x, w, back)
    rows = [c * s for c, s in zip(states, back, strict=False)]
    return tf.stack([states[-1], *rows[::-1]])


def of_a_length(x, w, xs, n):
    end, rows = ops.scan(lambda c, _: (step(c, 1.0, w), c), x, None, length=n)
    return tf.concat([end[None], rows], 0)


def python_length(x, w, xs, n):
    states = every(x, w, [1.0] * n)
    return tf.stack([states[-1], *states[:-1]])


def counted(x, w, xs, n):
    return ops.fori_loop(0, n, lambda i, c: step(c, tf.cast(i, c.dtype), w), x)


def each(s, x, w):
    return tf.exp(s * x) + w * s


def tensor_array(x, w, xs, n):
    array = tf.TensorArray(x.dtype, size=n)
    c = x
    for k in range(n):
        c = step(c, xs[k], w)
        array = array.write(k, c)
    return array.stack()


def compose(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


def partial_results(x, w, rows):
    states = [(rows[0] + w, rows[0] * x)]
    for row in rows[1:]:
        states.append(compose(states[-1], (row + w, row * x)))
    return tf.stack([a + b for a, b in states])


def associated(x, w, xs, reverse):
    return tf.add(*ops.associative_scan(compose, (xs + w, xs * x), reverse))


def of_structures(x, w):
    def positive():
        return {"a": x * w, "b": (tf.reduce_sum(x), 2.0)}

    def negative():
        return {"a": tf.sin(w) * x, "b": (tf.reduce_prod(w), tf.reduce_sum(w * w))}

    got = tf.cond(tf.math.real(tf.reduce_sum(x)) > 0.0, positive, negative)
    return got["a"] * got["b"][0] + got["b"][1]


def nested(x, w):
    total = tf.math.real(tf.reduce_sum(x))

    def inner():
        y = x * w
        return tf.cond(total > 2.0, lambda: y * y, lambda: tf.sin(y) * x)

    return tf.cond(total > 0.0, inner, lambda: w) * x


@tf.custom_gradient
def odd(x):  # the rule is no derivative: who uses another one is found out
    return x * x, lambda dy: 5.0 * dy * x


def with_rule(x, w):
    return tf.cond(tf.math.real(tf.reduce_sum(x)) > 0, lambda: odd(x) * w, lambda: odd(odd(w) * x))


def eagerly(f):
    """A choice that Python makes where it is eager: the sum of x is below 0, above 0, above 2."""
    case = lambda x, w, xs, n: f(x * (2.0 * n - 1.0), w)
    return case, case, ALL


SOME, ALL = (1, 3), (0, 1, 3)  # numbers of rounds
CASES = {
    "cond": (
        lambda x, w, xs, n: tf.cond(holds(x, n), lambda: x * w, lambda: tf.exp(w) * x * x),
        chosen,
        ALL,
    ),
    "cond of structures": eagerly(of_structures),
    "cond in cond": eagerly(nested),
    "cond with a rule": eagerly(with_rule),
    "case": (case, by_cases, ALL),
    "switch_case": (switch_case, by_cases, ALL),
    "while_loop": (while_by_values, python_while, ALL),
    "while_loop, at most": (while_at_most, python_at_most, ALL),
    "scan": (
        lambda x, w, xs, n: tf.scan(lambda c, s: step(c, s, w), xs, x),
        lambda x, w, xs, n: tf.stack(every(x, w, tf.unstack(xs))[1:]),
        SOME,
    ),
    "scan without a start": (
        lambda x, w, xs, n: tf.scan(lambda c, s: step(c, s, w) * x, xs),
        lambda x, w, xs, n: tf.stack(every_scaled(x, w, tf.unstack(xs))),
        SOME,
    ),
    "scan in reverse": (
        lambda x, w, xs, n: tf.scan(lambda c, s: step(c, s, w), xs, x, reverse=True),
        lambda x, w, xs, n: tf.stack(every(x, w, tf.unstack(xs)[::-1])[:0:-1]),
        SOME,
    ),
    "foldl": (lambda x, w, xs, n: tf.foldl(lambda c, s: step(c, s, w), xs, x), last, ALL),
    "foldr": (
        lambda x, w, xs, n: tf.foldr(lambda c, s: step(c, s, w), xs, x),
        lambda x, w, xs, n: every(x, w, tf.unstack(xs)[::-1])[-1],
        ALL,
    ),
    "map_fn": (
        lambda x, w, xs, n: tf.map_fn(lambda s: each(s, x, w), xs),
        lambda x, w, xs, n: tf.stack([each(s, x, w) for s in tf.unstack(xs)]),
        SOME,
    ),
    "vectorized_map": (
        lambda x, w, xs, n: tf.vectorized_map(lambda s: each(s, x, w), xs),
        lambda x, w, xs, n: tf.stack([each(s, x, w) for s in tf.unstack(xs)]),
        SOME,
    ),
    "TensorArray": (
        tensor_array,
        lambda x, w, xs, n: tf.stack(every(x, w, tf.unstack(xs))[1:]),
        SOME,
    ),
    "keras cond": (
        lambda x, w, xs, n: ops.cond(holds(x, n), lambda: x * w, lambda: tf.exp(w) * x * x),
        chosen,
        ALL,
    ),
    "keras switch": (switch, by_cases, ALL),
    "keras scan": (carry_and_rows, python_rows, SOME),
    "keras scan in reverse": (reversed_rows, python_reversed_rows, SOME),
    "keras scan of a length": (of_a_length, python_length, SOME),
    "keras while_loop": (keras_while, python_counted, ALL),
    "keras fori_loop": (
        counted,
        lambda x, w, xs, n: every(x, w, [float(i) for i in range(n)])[-1],
        ALL,
    ),
    "keras map": (
        lambda x, w, xs, n: ops.map(lambda s: each(s, x, w), xs),
        lambda x, w, xs, n: tf.stack([each(s, x, w) for s in tf.unstack(xs)]),
        SOME,
    ),
    "keras vectorized_map": (
        lambda x, w, xs, n: ops.vectorized_map(lambda s: each(s, x, w), xs),
        lambda x, w, xs, n: tf.stack([each(s, x, w) for s in tf.unstack(xs)]),
        SOME,
    ),
    "keras associative_scan": (
        lambda x, w, xs, n: associated(x, w, xs, False),
        lambda x, w, xs, n: partial_results(x, w, tf.unstack(xs)),
        SOME,
    ),
    "keras associative_scan in reverse": (
        lambda x, w, xs, n: associated(x, w, xs, True),
        lambda x, w, xs, n: partial_results(x, w, tf.unstack(xs)[::-1])[::-1],
        SOME,
    ),
}


def inputs(dtype, n):
    """Return x, w and a stack of n rows, as arrays."""
    x, w = np.array([0.4, 0.3]), np.array([0.9, -1.2])
    xs = np.sin(np.arange(2.0 * n) + 0.5).reshape(n, 2)
    if dtype == "complex128":
        x, w, xs = x + 0.2j * x - 0.1j, w + 0.1j * w**2, xs - 0.3j * xs**2
    return [array.astype(dtype) for array in (x, w, xs)]


def loss(f, n):
    """Return a real function of what a case gives."""

    def run(x, w, xs):
        y = f(x, w, xs, n)
        weights = tf.cast(tf.reshape(tf.range(1, 1 + tf.size(y)), tf.shape(y)), y.dtype)
        return tf.math.real(tf.reduce_sum(y * weights)) + size(y)

    return run


def reverse(f):
    def run(*operands):
        with tf.GradientTape() as tape:
            tape.watch(operands)
            y = f(*operands)
        return y, *tape.gradient(y, operands, unconnected_gradients="zero")

    return run


def forward(f):
    def run(*operands):
        ways = tuple([tf.cos(operand) for operand in operands])
        with tf.autodiff.ForwardAccumulator(operands, ways) as accumulator:
            y = f(*operands)
        return accumulator.jvp(y, "zero")

    return run


def squares(tensors):
    return sum(tf.reduce_sum(tf.math.real(tensor * tensor)) for tensor in tensors)


def summed(f):
    return lambda *operands: squares(tf.nest.flatten(f(*operands)))


def derivatives(f):
    """Return the value, and first and second derivatives in all modes."""
    modes = [
        reverse(f),
        forward(f),
        reverse(summed(reverse(f))),
        forward(reverse(f)),
        reverse(forward(f)),
    ]
    return lambda *operands: [mode(*operands) for mode in modes]


def of_batch(f):
    """Return the value and the gradients for a batch of x, and how they change with w."""
    return forward(tf.vmap(reverse(f), (0, None, None)))


def of_examples(f):
    def run(xs, *operands):
        rows = [reverse(f)(x, *operands) for x in tf.unstack(xs)]
        return [tf.stack(column) for column in zip(*rows, strict=True)]

    return forward(run)


def assert_same(results, expected, dtype, message):
    for result, other in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        assert result.dtype == other.dtype
        scale = 1.0 + np.abs(other).max(initial=0)
        tolerance = (1e-4 if dtype == "float32" else 1e-9) * scale
        np.testing.assert_allclose(result, other, rtol=0, atol=tolerance, err_msg=message)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_unrolled_loops(name):
    f, unrolled, counts = CASES[name]
    for dtype in ("float32", "float64", "complex128"):
        for n in counts if dtype == "float64" else counts[-1:]:
            operands = list(map(tf.constant, inputs(dtype, n)))
            expected = derivatives(loss(unrolled, n))(*operands)
            results = unfused(derivatives(loss(f, n)))(*operands)
            assert_same(results, expected, dtype, f"{dtype}, {n} rounds")
            if dtype == "float64":
                eager = derivatives(loss(f, n))(*operands)
                assert_same(eager, expected, dtype, f"eager, {n} rounds")


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_batches_are_those_of_each_example(name):
    f, unrolled, counts = CASES[name]
    for dtype in ("float64", "complex128"):
        for n in (counts[0], counts[-1]) if dtype == "float64" else counts[-1:]:
            x, *rest = map(tf.constant, inputs(dtype, n))
            xs = tf.stack([x, x[::-1] * 0.9])
            expected = of_examples(loss(unrolled, n))(xs, *rest)
            results = unfused(of_batch(loss(f, n)))(xs, *rest)
            assert_same(results, expected, dtype, f"{dtype}, {n} rounds")


COMPILED = (
    *("while_loop", "while_loop, at most", "scan", "scan in reverse", "foldl", "map_fn"),
    *("keras scan", "keras scan of a length", "keras fori_loop", "keras associative_scan"),
)


@pytest.mark.parametrize("name", COMPILED)
def test_kernels_have_the_same_results(name):
    f, unrolled, counts = CASES[name]
    for n in {0, 3}.intersection(counts):
        operands = list(map(tf.constant, inputs("float64", n)))
        results = tf.function(reverse(loss(f, n)))(*operands)
        assert_same(results, reverse(loss(unrolled, n))(*operands), "float64", f"{n} rounds")


# With the last number of rounds in `CASES`: of float64 the value, the sums of the gradients by x
# and w, and those of the gradients of the sum of squares of these; of complex128 the first three.
ORIGINAL = {
    ("cond", "keras cond"): (
        (-0.1008, 0.012, 1.072, -0.04432, 6.41248),
        (-0.082080198, (0.0296904 - 0.51852132j), (1.06888 + 0.1523656j)),
    ),
    ("case", "switch_case", "keras switch"): (
        (-0.0396, -0.35712, 0.36664, 15.38047898, -0.052141856),
        (-0.02704699489, (-0.3235936838 - 0.4254866576j), (0.362573344 + 0.0705844432j)),
    ),
    ("while_loop",): (
        (6.347403331, 26.01825818, 1.532063891, 1235.120292, 139.3849929),
        (6.366529922, (25.9775917 - 1.177367457j), (1.544518667 + 0.03935058925j)),
    ),
    ("while_loop, at most",): (
        (63.33617411, 304.3300347, 18.0521925, 239248.8175, 23693.30475),
        (63.60361894, (303.9836812 - 17.7228951j), (18.18665022 + 0.254805103j)),
    ),
    ("scan", "TensorArray"): (
        (1.998976224, 5.448205593, 11.60299163, 190.4455375, 393.3847235),
        (2.028949824, (5.354832456 - 0.1825260925j), (11.6489375 + 1.499624804j)),
    ),
    ("scan without a start",): (
        (4.321545111, 5.38909241, 0.6712096003, 151.0784755, 3.003299217),
        (4.366154135, (5.695609897 + 1.526911281j), (0.6316984412 - 0.02498241155j)),
    ),
    ("scan in reverse",): (
        (1.308257345, 4.774929195, 3.837600361, 152.1160356, 151.9157503),
        (1.289529209, (4.867493592 + 0.4324134017j), (3.831294731 + 0.1836403223j)),
    ),
    ("foldl",): (
        (-0.4284973547, -0.9040200399, 2.303776683, -9.688623166, 7.289923533),
        (-0.4154353738, (-0.9383976943 - 0.1644104968j), (2.299889142 + 0.5052059265j)),
    ),
    ("foldr",): (
        (-0.3337380873, -0.2294221193, 2.178494477, -4.974260733, 19.73500476),
        (-0.362256843, (-0.4177151015 + 0.4997740936j), (2.312448803 - 0.06831398187j)),
    ),
    ("map_fn", "vectorized_map", "keras map", "keras vectorized_map"): (
        (32.09981888, 0.1700268548, -5.076317894, -55.96341128, -40.52462598),
        (32.72520264, (-0.3534653904 + 5.859022229j), (-5.046155616 + 5.819511398j)),
    ),
    ("keras scan",): (
        (-2.223549273, 4.86078503, 2.508334828, 110.0531356, 25.66714215),
        (-1.899980119, (5.496989508 + 4.962527207j), (2.725393325 + 2.081723663j)),
    ),
    ("keras scan in reverse",): (
        (-0.05399292319, 2.538423337, -0.1394413248, 154.2814659, -213.3122323),
        (-0.2979291831, (2.885534491 + 5.753721962j), (-0.1908831615 - 0.6434777109j)),
    ),
    ("keras scan of a length",): (
        (13.34090181, 37.02609966, 14.90961189, 1254.244435, 2703.069661),
        (13.3732397, (37.17395417 - 1.818902081j), (14.95589433 + 0.5548216573j)),
    ),
    ("keras while_loop",): (
        (0.05055898376, 0.1493429987, 0.01014582703, 0.002294599055, 0.004451683371),
        (0.0506636657, (0.1492394073 - 0.003466727687j), (0.01017983383 + 0.0007266655573j)),
    ),
    ("keras fori_loop",): (
        (1.662237954, 5.658210597, 6.139480274, 257.8923763, 355.1731612),
        (1.703315598, (5.705932698 - 0.6152458536j), (6.208007441 + 0.5987369788j)),
    ),
    ("keras associative_scan",): (
        (16.90990754, 23.27722852, 51.85940206, 1870.482661, 5195.12004),
        (17.72960249, (25.54946859 + 3.972148982j), (50.7599363 - 11.35416163j)),
    ),
    ("keras associative_scan in reverse",): (
        (10.47747662, 1.717826205, -24.77701243, 304.4242872, -4240.708741),
        (11.68728573, (4.196528758 + 3.044875048j), (-24.12092672 - 6.810923122j)),
    ),
}
"""TensorFlow 2.21's numbers, and Keras 3.15's, by TensorFlow."""


@pytest.mark.parametrize("names", ORIGINAL)
def test_numbers_are_those_of_the_original(names):
    for name in names:
        f, _, counts = CASES[name]
        for dtype, numbers in zip(("float64", "complex128"), ORIGINAL[names], strict=True):
            x, w, xs = map(tf.constant, inputs(dtype, counts[-1]))
            first = reverse(lambda x, w, f=f, n=counts[-1], xs=xs: loss(f, n)(x, w, xs))
            second = reverse(lambda x, w, f=first: squares(f(x, w)[1:]))
            sums = [np.sum(gradient) for gradient in (*first(x, w), *second(x, w)[1:])]
            np.testing.assert_allclose(sums[: len(numbers)], numbers, rtol=1e-8, err_msg=name)
