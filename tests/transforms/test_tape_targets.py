"""What a tape is asked for: targets, sources, unconnected ones, upstream gradients.

docs/behaviour.md 2.1, with numbers of TensorFlow 2.21, and 4.2 where it says otherwise.
"""

import collections
import warnings

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, numbers, values

pytestmark = pytest.mark.quick

Pair = collections.namedtuple("Pair", "first second")


def recorded(*numbers):
    """A persistent tape and a tensor for each of the numbers, watched."""
    tensors = [tf.constant(number) for number in numbers]
    tape = tf.GradientTape(persistent=True)
    with tape:
        tape.watch(tensors)
    return tape, *tensors


def assert_still_right():
    """The next gradient is right."""
    tape, x = recorded(3.0)
    with tape:
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


class TestTargetIsASource:
    """2.1: target is a source."""

    def test_watched(self):
        tape, x = recorded(2.0)
        assert tape.gradient(x, x).numpy() == 1.0

    @pytest.mark.parametrize("unconnected", ["none", "zero"])
    def test_unwatched(self, unconnected):
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            pass
        gradient = tape.gradient(x, x, unconnected_gradients=unconnected)
        assert gradient.numpy() == 1.0

    def test_with_another_target(self):
        tape, x = recorded(2.0)
        with tape:
            y = x * x
        assert tape.gradient([x, y], x).numpy() == 5.0

    def test_twice(self):
        tape, x = recorded(2.0)
        with tape:
            y = x * x
        assert tape.gradient([y, y], y).numpy() == 2.0
        assert tape.gradient([y, y], x).numpy() == 8.0

    def test_three_targets_of_two_sources(self):
        tape, x, y = recorded(2.0, 5.0)
        with tape:
            z = y * y
        assert values(tape.gradient([x, y, z], [x, y])) == [1.0, 11.0]

    @pytest.mark.parametrize("watched", [False, True])
    def test_repeated_source(self, watched):
        """Repeated sources each get the full gradient here too."""
        x, v = tf.constant(2.0), tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            if watched:
                tape.watch([x, v])
        assert values(tape.gradient(x, [x, x])) == [1.0, 1.0]
        assert values(tape.gradient([v, x], [v, x, v])) == [1.0, 1.0, 1.0]

    def test_vector(self):
        tape, x = recorded([1.0, 2.0])
        assert tape.gradient(x, x).numpy().tolist() == [1.0, 1.0]


class TestVariableAsTarget:
    """2.1: Variable as target."""

    def test_itself(self):
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            pass
        assert tape.gradient(v, v).numpy() == 1.0

    def test_assign_cuts(self):
        v, w = tf.Variable(3.0), tf.Variable(1.0)
        with tf.GradientTape() as tape:
            y = v * 2.0
            w.assign(y)
            z = w * 3.0
        assert values(tape.gradient(z, [v, w])) == [None, 3.0]

    def test_assigned_from_itself(self):
        """4.3: v.assign(v*2) under the tape; y=v*v gives 12."""
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            v.assign(v * 2.0)
            y = v * v
        assert tape.gradient(y, v).numpy() == 12.0


class TestStructures:
    """2.1: nested targets are summed, nested sources mirrored."""

    def test_non_scalar_target_is_summed(self):
        tape, x = recorded([1.0, 2.0])
        with tape:
            y = x * x
        assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]

    @pytest.mark.parametrize(
        "targets",
        [
            lambda y, z: [y, z],
            lambda y, z: (y, [z]),
            lambda y, z: {"b": y, "a": (z,)},
            lambda y, z: Pair(y, z),
        ],
    )
    def test_targets(self, targets):
        tape, x = recorded([1.0, 2.0])
        with tape:
            y, z = x * x, 3.0 * x
        assert tape.gradient(targets(y, z), x).numpy().tolist() == [5.0, 7.0]

    def test_repeated_sources(self):
        tape, x = recorded(2.0)
        with tape:
            y = x * x
        assert values(tape.gradient(y, [x, x])) == [4.0, 4.0]

    @pytest.mark.parametrize(
        ("sources", "mirrored"),
        [
            (lambda x, y: [x, y], [3.0, 2.0]),
            (lambda x, y: (x, y), (3.0, 2.0)),
            (lambda x, y: {"x": x, "n": [y, (x,)]}, {"x": 3.0, "n": [2.0, (3.0,)]}),
            (lambda x, y: Pair(x, [y]), Pair(3.0, [2.0])),
            (
                lambda x, y: collections.OrderedDict(z=x, a=y),
                collections.OrderedDict(z=3.0, a=2.0),
            ),
        ],
        ids=["list", "tuple", "dict", "namedtuple", "ordered"],
    )
    def test_sources(self, sources, mirrored):
        tape, x, y = recorded(2.0, 3.0)
        with tape:
            z = x * y
        gradients = values(tape.gradient(z, sources(x, y)))
        assert gradients == mirrored
        assert type(gradients) is type(mirrored)

    def test_empty(self):
        tape, x = recorded(2.0)
        with tape:
            y = x * x
        assert tape.gradient(y, []) == []
        assert tape.gradient([], [x]) == [None]

    def test_intermediates(self):
        """2.1: the total derivative of z=y*y, y=x*x at 2: [32, 8]."""
        tape, x = recorded(2.0)
        with tape:
            y = x * x
            z = y * y
        assert values(tape.gradient(z, [x, y])) == [32.0, 8.0]
        assert values(tape.gradient([y, z], [y])) == [9.0]

    def test_fan_out(self):
        tape, x = recorded(2.0)
        with tape:
            y = x * x
            z = y * 3.0 + y * 4.0
        assert tape.gradient(z, x).numpy() == 28.0


class TestUnconnected:
    """2.1: None, or zeros of the source's shape and dtype."""

    def test_none(self):
        tape, x, y = recorded(2.0, [1.0, 2.0])
        with tape:
            z = x * x
        assert tape.gradient(z, y) is None
        assert values(tape.gradient(z, [x, y])) == [4.0, None]

    @pytest.mark.parametrize("zero", ["zero", tf.UnconnectedGradients.ZERO])
    def test_zeros(self, zero):
        tape, x = recorded(2.0)
        y = tf.constant([[1.0, 2.0]], dtype=tf.float64)
        with tape:
            z = x * x
        gradient = tape.gradient(z, y, unconnected_gradients=zero)
        assert gradient.dtype == tf.float64
        assert gradient.numpy().tolist() == [[0.0, 0.0]]

    def test_zero_for_a_variable(self):
        tape, x = recorded(2.0)
        v = tf.Variable([1.0, 2.0])
        with tape:
            z = x * x
        gradient = tape.gradient(z, v, unconnected_gradients="zero")
        assert gradient.numpy().tolist() == [0.0, 0.0]

    def test_none_by_its_enum(self):
        tape, x, y = recorded(2.0, 3.0)
        with tape:
            z = x * x
        assert tape.gradient(z, y, unconnected_gradients=tf.UnconnectedGradients.NONE) is None

    @pytest.mark.parametrize("bad", ["nope", None, 0])
    def test_unknown(self, bad):
        tape, x = recorded(2.0)
        with tape:
            y = x * x
        words = f"Unknown value for unconnected_gradients: {bad!r}"
        with pytest.raises(ValueError, match=words):
            tape.gradient(y, x, unconnected_gradients=bad)
        assert tape.gradient(y, x).numpy() == 4.0


class TestOutputGradients:
    """2.1: y=x*x, z=3x at x=[1,2]."""

    @pytest.fixture
    def program(self):
        tape, x = recorded([1.0, 2.0])
        with tape:
            y, z = x * x, 3.0 * x
        return tape, x, y, z

    @pytest.mark.parametrize(
        ("upstream", "expected"),
        [
            (lambda: tf.constant([10.0, 100.0]), [20.0, 400.0]),
            (lambda: np.array([10.0, 100.0], np.float32), [20.0, 400.0]),
            (lambda: tf.constant(2.0), [4.0, 8.0]),
            (lambda: 2.0, [4.0, 8.0]),
        ],
        ids=["tensor", "array", "scalar tensor", "number"],
    )
    def test_of_one_target(self, program, upstream, expected):
        tape, x, y, _ = program
        gradient = tape.gradient(y, x, output_gradients=upstream())
        assert gradient.numpy().tolist() == expected
        assert gradient.dtype == tf.float32

    def test_another_float_is_cast(self, program):
        """4.2: cotangent float64 for float32."""
        tape, x, y, _ = program
        upstream = tf.constant([10.0, 100.0], dtype=tf.float64)
        gradient = tape.gradient(y, x, output_gradients=upstream)
        assert gradient.dtype == tf.float32
        assert gradient.numpy().tolist() == [20.0, 400.0]

    def test_of_each_target(self, program):
        tape, x, y, z = program
        upstreams = [tf.constant([10.0, 100.0]), tf.constant([1.0, 2.0])]
        gradient = tape.gradient([y, z], x, output_gradients=upstreams)
        assert gradient.numpy().tolist() == [23.0, 406.0]

    def test_in_a_dictionary(self, program):
        """2.1: flattened by sorted key."""
        tape, x, y, z = program
        upstreams = {"z": tf.constant([1.0, 2.0]), "a": tf.constant([10.0, 100.0])}
        gradient = tape.gradient({"z": z, "a": y}, x, output_gradients=upstreams)
        assert gradient.numpy().tolist() == [23.0, 406.0]

    def test_of_a_target_that_is_a_source(self):
        """2.1: gradient([loss, x], [x], output_gradients=[1., 2.]) = 4."""
        tape, x = recorded(1.0)
        with tape:
            loss = x * x
        (gradient,) = tape.gradient([loss, x], [x], output_gradients=[1.0, 2.0])
        assert gradient.numpy() == 4.0

    @pytest.mark.parametrize(
        "shape", [(3,), (1,), (2, 1), (1, 2), (0,)], ids=lambda shape: f"shape {shape}"
    )
    def test_wrong_shape(self, program, shape):
        """4.2: cotangent of wrong shape; also an InvalidArgumentError (decision 12)."""
        tape, x, y, _ = program
        with pytest.raises(ValueError, match=r"output_gradients\[0\] has shape") as caught:
            tape.gradient(y, x, output_gradients=tf.ones(shape))
        assert isinstance(caught.value, tf.errors.InvalidArgumentError)
        assert f"has shape {shape}, target has shape (2,)" in str(caught.value)
        assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]

    def test_wrong_shape_of_the_second(self, program):
        tape, x, y, z = program
        with pytest.raises(ValueError, match=r"output_gradients\[1\] has shape \(3,\)"):
            tape.gradient([y, z], x, output_gradients=[tf.ones(2), tf.ones(3)])

    def test_too_few(self, program):
        """4.2: 2 targets, 1 output gradient."""
        tape, x, y, z = program
        with pytest.raises(ValueError, match="2 targets, 1 output gradient"):
            tape.gradient([y, z], x, output_gradients=[tf.ones(2)])
        assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]

    def test_none_among_them(self, program):
        """2.1: a None entry raises ValueError."""
        tape, x, y, z = program
        with pytest.raises(ValueError, match="None"):
            tape.gradient([y, z], x, output_gradients=[tf.ones(2), None])

    def test_second_order_through_the_upstream(self):
        """1.14: HVP by output_gradients, [60, 1200] for x**3, x=[1,2], v=[10,100]."""
        x, v = tf.constant([1.0, 2.0]), tf.constant([10.0, 100.0])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x * x * x
            first = inner.gradient(y, x)
        product = outer.gradient(first, x, output_gradients=v)
        assert product.numpy().tolist() == [60.0, 1200.0]


class TestRefused:
    """2.1 and 4.2: arguments of gradient() that are no tensors."""

    def refuses(self, error, words, target, sources):
        tape, x = recorded(2.0)
        with tape:
            y = x * x
        with pytest.raises(error, match=words):
            tape.gradient(target(x, y), sources(x, y))
        assert tape.gradient(y, x).numpy() == 4.0
        assert_still_right()

    def test_target_none(self):
        words = (
            "Argument `target` should be a list or nested structure of Tensors, Variables or "
            "CompositeTensors to be differentiated, but received None"
        )
        self.refuses(TypeError, words, lambda x, y: None, lambda x, y: x)

    def test_none_among_the_targets(self):
        words = "Cannot convert the argument `type_value`: None to a TensorFlow DType"
        self.refuses(TypeError, words, lambda x, y: [y, None], lambda x, y: x)

    @pytest.mark.parametrize("sources", [lambda x: None, lambda x: [x, None]])
    def test_sources_none(self, sources):
        words = "Cannot convert the argument `type_value`: None to a TensorFlow DType"
        self.refuses(TypeError, words, lambda x, y: y, lambda x, y: sources(x))

    @pytest.mark.parametrize("number", [4.0, 4, np.float32(4.0)], ids=["float", "int", "np"])
    def test_target_is_a_number(self, number):
        words = "target is .*float.*, not a Tensor; did the function leave the library"
        if isinstance(number, int):
            words = "target is int, not a Tensor; did the function leave the library"
        self.refuses(TypeError, words, lambda x, y: number, lambda x, y: x)

    def test_target_is_an_array(self):
        words = "target is .*ndarray, not a Tensor"
        self.refuses(TypeError, words, lambda x, y: np.ones(2), lambda x, y: x)

    def test_number_among_the_targets(self):
        self.refuses(TypeError, "float, not a Tensor", lambda x, y: [y, 1.0], lambda x, y: x)

    def test_source_is_an_array(self):
        words = "source must be a Tensor or Variable, got numpy.ndarray"
        self.refuses(TypeError, words, lambda x, y: y, lambda x, y: np.ones(2))

    def test_source_is_a_number(self):
        words = "source must be a Tensor or Variable, got float"
        self.refuses(TypeError, words, lambda x, y: y, lambda x, y: [x, 3.0])


def upstream(*upstreams, targets=1):
    """The gradient at x = [1, 2] of y = x*x, and of z = 3x, with these output_gradients."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, z = x * x, 3.0 * x
    return numbers(tape.gradient([y, z][:targets], x, output_gradients=list(upstreams)))


def test_numbers_in_a_list_of_upstreams():
    """2.1: one entry for each target, a number is broadcast: [2, 4] for 1.0, [4, 8] for 2.0."""
    assert upstream(1.0) == [2.0, 4.0]
    assert upstream(2.0) == [4.0, 8.0]
    assert upstream(1.0, 1.0, targets=2) == [5.0, 7.0]
    assert upstream(tf.ones(2), 0.0, targets=2) == [2.0, 4.0]


@pytest.mark.parametrize(
    ("upstreams", "targets", "words"),
    [
        ((1.0, 2.0), 1, "1 target, 2 output gradients"),
        ((tf.ones(2), tf.ones(2), tf.ones(2)), 2, "2 targets, 3 output gradients"),
        ((tf.ones(2),), 2, "2 targets, 1 output gradient"),
        ((), 1, "1 target, 0 output gradients"),
    ],
    ids=["2 for 1", "3 for 2", "1 for 2", "0 for 1"],
)
def test_wrong_number_of_upstreams(upstreams, targets, words):
    """4.2, both directions: the original ignores what is too much ([2, 4] for 2 for 1)
    and takes ones for what is missing ([5, 7] for 1 for 2)."""
    with pytest.raises(ValueError, match=words):
        upstream(*upstreams, targets=targets)
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "upstream_value",
    ["text", object(), np.array(["a", "b"]), np.array([1.0, None], object), [[1.0], [1.0, 2.0]]],
    ids=["str", "object", "strings", "object array", "ragged"],
)
def test_upstreams_that_are_no_numbers(upstream_value):
    """4.2, other cotangents: an error at once."""
    with pytest.raises((TypeError, ValueError)):
        upstream(upstream_value)
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "upstream_value", [np.array([10, 100]), tf.constant([10, 100]), [True, True]]
)
def test_upstreams_of_integers_are_cast(upstream_value):
    """4.2: cast to the target's dtype."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    slope = tape.gradient(y, x, output_gradients=np.asarray(upstream_value))
    assert slope.dtype == tf.float32
    assert numbers(slope) == (np.asarray(upstream_value) * [2.0, 4.0]).tolist()


def test_what_has_no_gradient_is_not_called_late():
    x = tf.constant([1.0, -1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    for detached in (tf.stop_gradient(y), tf.cast(y > 0, tf.float32)):
        assert tape.gradient(detached, x) is None


def test_a_target_from_before_its_source_was_watched_is_not_too_late():
    """An outer tape knows how it was computed; that is no reason to warn of an inner one."""
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        y = x**3
        with tf.GradientTape() as inner:
            inner.watch(x)
            z = x * 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert inner.gradient(y, x) is None
        assert z is not None
    assert outer.gradient(y, x).numpy() == 12.0
