"""What a tape is asked for: targets, sources, unconnected ones, upstream gradients.

docs/behaviour.md 2.1, with numbers of TensorFlow 2.21, and 4.2 where it says otherwise.
"""

import warnings
from collections import OrderedDict, namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, numbers, values

pytestmark = pytest.mark.quick

Pair = namedtuple("Pair", "first second")


def program():
    """A persistent tape, and what it watched and computed."""
    t = SimpleNamespace(
        tape=tf.GradientTape(persistent=True),
        x=tf.constant(2.0),
        a=tf.constant(5.0),
        w=tf.constant([1.0, 2.0]),
        v=tf.Variable([1.0, 2.0]),
        unwatched=tf.constant([[1.0, 2.0]], dtype=tf.float64),
    )
    with t.tape:
        t.tape.watch([t.x, t.a, t.w])
        t.y = t.x * t.x
        t.z = t.y * t.y
        t.fan = t.y * 3.0 + t.y * 4.0
        t.square_of_a, t.product = t.a * t.a, t.x * t.a
        t.p, t.q = t.w * t.w, 3.0 * t.w
    return t


def assert_still_right():
    """The next gradient is right."""
    t = program()
    assert t.tape.gradient(t.y, t.x).numpy() == 4.0


TARGETS = {  # targets, sources, gradients
    "a source": (lambda t: t.x, lambda t: t.x, 1.0),
    "a source that nobody watched": (lambda t: t.unwatched, lambda t: t.unwatched, [[1.0, 1.0]]),
    "a source of several elements": (lambda t: t.w, lambda t: t.w, [1.0, 1.0]),
    "a source and another": (lambda t: [t.x, t.y], lambda t: t.x, 5.0),
    "an intermediate, twice": (lambda t: [t.y, t.y], lambda t: t.y, 2.0),
    "the same twice": (lambda t: [t.y, t.y], lambda t: t.x, 8.0),
    "three": (lambda t: [t.x, t.a, t.square_of_a], lambda t: [t.x, t.a], [1.0, 11.0]),
    "a source, repeated": (lambda t: t.x, lambda t: [t.x, t.x], [1.0, 1.0]),
    "a Variable, repeated": (
        lambda t: [t.v, t.x],
        lambda t: [t.v, t.x, t.v],
        [[1.0, 1.0], 1.0, [1.0, 1.0]],
    ),
    "not a scalar": (lambda t: t.p, lambda t: t.w, [2.0, 4.0]),
    "a list": (lambda t: [t.p, t.q], lambda t: t.w, [5.0, 7.0]),
    "a nested list": (lambda t: (t.p, [t.q]), lambda t: t.w, [5.0, 7.0]),
    "a dictionary": (lambda t: {"b": t.p, "a": (t.q,)}, lambda t: t.w, [5.0, 7.0]),
    "a named tuple": (lambda t: Pair(t.p, t.q), lambda t: t.w, [5.0, 7.0]),
    "repeated sources": (lambda t: t.y, lambda t: [t.x, t.x], [4.0, 4.0]),
    "sources in a list": (lambda t: t.product, lambda t: [t.x, t.a], [5.0, 2.0]),
    "in a tuple": (lambda t: t.product, lambda t: (t.x, t.a), (5.0, 2.0)),
    "in a dictionary": (
        lambda t: t.product,
        lambda t: {"x": t.x, "n": [t.a, (t.x,)]},
        {"x": 5.0, "n": [2.0, (5.0,)]},
    ),
    "in a named tuple": (lambda t: t.product, lambda t: Pair(t.x, [t.a]), Pair(5.0, [2.0])),
    "in an ordered dictionary": (
        lambda t: t.product,
        lambda t: OrderedDict(z=t.x, a=t.a),
        OrderedDict(z=5.0, a=2.0),
    ),
    "no source": (lambda t: t.y, lambda t: [], []),
    "no target": (lambda t: [], lambda t: [t.x], [None]),
    "an intermediate as a source": (lambda t: t.z, lambda t: [t.x, t.y], [32.0, 8.0]),
    "a source that is a target": (lambda t: [t.y, t.z], lambda t: [t.y], [9.0]),
    "what is used twice": (lambda t: t.fan, lambda t: t.x, 28.0),
    "unconnected": (lambda t: t.y, lambda t: t.w, None),
    "one of them unconnected": (lambda t: t.y, lambda t: [t.x, t.w], [4.0, None]),
}


@pytest.mark.parametrize("name", TARGETS)
def test_gradients_of_targets_by_sources(name):
    """2.1: targets are summed, sources mirrored, each of repeated ones gets the whole gradient."""
    targets, sources, expected = TARGETS[name]
    t = program()
    gradients = values(t.tape.gradient(targets(t), sources(t)))
    assert gradients == expected
    assert type(gradients) is type(expected)


@pytest.mark.parametrize("unconnected", ["none", "zero"])
def test_a_target_that_is_an_unwatched_source(unconnected):
    x, v = tf.constant(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        pass
    for source in (x, v):
        assert tape.gradient(source, source, unconnected_gradients=unconnected).numpy() == 1.0


class TestAssignments:
    """2.1: a Variable as a target."""

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


class TestUnconnected:
    """2.1: None, or zeros of the source's shape and dtype."""

    @pytest.mark.parametrize("zero", ["zero", tf.UnconnectedGradients.ZERO])
    def test_zeros(self, zero):
        t = program()
        gradient = t.tape.gradient(t.y, t.unwatched, unconnected_gradients=zero)
        assert gradient.dtype == tf.float64
        assert gradient.numpy().tolist() == [[0.0, 0.0]]
        assert numbers(t.tape.gradient(t.y, t.v, unconnected_gradients=zero)) == [0.0, 0.0]

    def test_none_by_its_enum(self):
        t, none = program(), tf.UnconnectedGradients.NONE
        assert t.tape.gradient(t.y, t.a, unconnected_gradients=none) is None

    @pytest.mark.parametrize("bad", ["nope", None, 0])
    def test_unknown(self, bad):
        t = program()
        words = f"Unknown value for unconnected_gradients: {bad!r}"
        with pytest.raises(ValueError, match=words):
            t.tape.gradient(t.y, t.x, unconnected_gradients=bad)
        assert t.tape.gradient(t.y, t.x).numpy() == 4.0


UPSTREAMS = {  # targets, upstream gradients, the gradient by w = [1, 2]
    "a tensor": (lambda t: t.p, lambda: tf.constant([10.0, 100.0]), [20.0, 400.0]),
    "an array": (lambda t: t.p, lambda: np.array([10.0, 100.0], np.float32), [20.0, 400.0]),
    "a scalar tensor": (lambda t: t.p, lambda: tf.constant(2.0), [4.0, 8.0]),
    "a number": (lambda t: t.p, lambda: 2.0, [4.0, 8.0]),
    "float64, which is cast (4.2)": (
        lambda t: t.p,
        lambda: tf.constant([10.0, 100.0], dtype=tf.float64),
        [20.0, 400.0],
    ),
    "integers": (lambda t: t.p, lambda: np.array([10, 100]), [20.0, 400.0]),
    "narrow integers": (lambda t: t.p, lambda: np.array([10, 100], "i4"), [20.0, 400.0]),
    "bools": (lambda t: t.p, lambda: np.array([True, True]), [2.0, 4.0]),
    "of each target": (
        lambda t: [t.p, t.q],
        lambda: [tf.constant([10.0, 100.0]), tf.constant([1.0, 2.0])],
        [23.0, 406.0],
    ),
    "in a dictionary, flattened by sorted key": (
        lambda t: {"z": t.q, "a": t.p},
        lambda: {"z": tf.constant([1.0, 2.0]), "a": tf.constant([10.0, 100.0])},
        [23.0, 406.0],
    ),
    "of a target that is the source": (lambda t: [t.p, t.w], lambda: [1.0, 2.0], [4.0, 6.0]),
    "a number in a list": (lambda t: [t.p], lambda: [1.0], [2.0, 4.0]),
    "a larger number in a list": (lambda t: [t.p], lambda: [2.0], [4.0, 8.0]),
    "numbers": (lambda t: [t.p, t.q], lambda: [1.0, 1.0], [5.0, 7.0]),
    "a tensor and a number": (lambda t: [t.p, t.q], lambda: [tf.ones(2), 0.0], [2.0, 4.0]),
}


@pytest.mark.parametrize("name", UPSTREAMS)
def test_upstream_gradients(name):
    """2.1 and 4.2: one for each target, broadcast, and cast to the target's dtype."""
    targets, upstreams, expected = UPSTREAMS[name]
    t = program()
    gradient = t.tape.gradient(targets(t), t.w, output_gradients=upstreams())
    assert gradient.dtype == tf.float32
    assert gradient.numpy().tolist() == expected


SHAPES = [(3,), (1,), (2, 1), (1, 2), (0,)]
WRONG = [
    *(
        (
            [shape],
            1,
            rf"output_gradients\[0\] has shape \({str(shape)[1:-1]}\), target has shape \(2",
        )
        for shape in SHAPES
    ),
    ([(2,), (3,)], 2, r"output_gradients\[1\] has shape \(3,\)"),
    ([1.0, 2.0], 1, "1 target, 2 output gradients"),
    ([(2,), (2,), (2,)], 2, "2 targets, 3 output gradients"),
    ([(2,)], 2, "2 targets, 1 output gradient"),
    ([], 1, "1 target, 0 output gradients"),
    ([(2,), None], 2, "None"),
    *(
        ([wrong], 1, "")
        for wrong in ("text", object(), np.array(["a", "b"]), np.array([1.0, None], object))
    ),
    ([[[1.0], [1.0, 2.0]]], 1, ""),
]


@pytest.mark.parametrize(("upstreams", "count", "words"), WRONG)
def test_wrong_upstream_gradients(upstreams, count, words):
    """4.2: an error at once; a wrong shape is an InvalidArgumentError, too (decision 12).

    The original ignores upstream gradients that are too much, and takes ones for missing ones.
    """
    t = program()
    upstreams = [tf.ones(entry) if isinstance(entry, tuple) else entry for entry in upstreams]
    with pytest.raises((TypeError, ValueError), match=words or None) as caught:
        t.tape.gradient([t.p, t.q][:count], t.w, output_gradients=upstreams)
    if "shape" in words:
        assert isinstance(caught.value, tf.errors.InvalidArgumentError)
    assert t.tape.gradient(t.p, t.w).numpy().tolist() == [2.0, 4.0]
    assert_next_gradient_is_right()


def test_second_order_through_the_upstream():
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


NONE = (
    r' \(TensorFlow raises this as "Cannot convert the argument '
    "`type_value`: None to a TensorFlow DType"
)
REFUSED = {  # targets, sources, words
    "None": (
        lambda t: None,
        lambda t: t.x,
        "Argument `target` should be a list or nested structure of Tensors, Variables or "
        "CompositeTensors to be differentiated, but received None",
    ),
    "None among the targets": (lambda t: [t.y, None], lambda t: t.x, NONE),
    "None as a source": (lambda t: t.y, lambda t: None, NONE),
    "None among the sources": (lambda t: t.y, lambda t: [t.x, None], NONE),
    **{
        f"a number of type {type(number).__name__}": (
            lambda t, number=number: number,
            lambda t: t.x,
            f"target. of gradient.* is .*{kind}.*, not a Tensor; compute it with tensors",
        )
        for number, kind in ((4.0, "float"), (4, "int"), (np.float32(4.0), "float"))
    },
    "an array": (
        lambda t: np.ones(2),
        lambda t: t.x,
        "target. of gradient.* is .*ndarray, not a Tensor",
    ),
    "a number among the targets": (lambda t: [t.y, 1.0], lambda t: t.x, "float, not a Tensor"),
    "an array as a source": (
        lambda t: t.y,
        lambda t: np.ones(2),
        "source must be a Tensor or Variable, got numpy.ndarray",
    ),
    "a number as a source": (
        lambda t: t.y,
        lambda t: [t.x, 3.0],
        "source must be a Tensor or Variable, got float",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_are_no_tensors(name):
    """2.1 and 4.2."""
    target, sources, words = REFUSED[name]
    t = program()
    with pytest.raises(TypeError, match=words):
        t.tape.gradient(target(t), sources(t))
    assert t.tape.gradient(t.y, t.x).numpy() == 4.0
    assert_still_right()


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
