"""docs/behaviour.md 1.4: structures of inputs and outputs, and the upstreams a rule gets."""

import collections

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient, numbers

Pair = collections.namedtuple("Pair", ["left", "right"])


def weighted(structure):
    """The sum of all leaves, with a rule that gives 1, 2, 3, ... times dy in nest order."""

    @tf.custom_gradient
    def f(tree):
        leaves = tf.nest.flatten(tree)

        def grad(dy):
            return [dy * float(index + 1) for index in range(len(leaves))]

        return sum(leaves[1:], start=leaves[0]), grad

    with tf.GradientTape() as tape:
        tape.watch(structure)
        y = f(structure)
    return numbers(tape.gradient(y, structure))


def leaf():
    return tf.constant(1.0)


@pytest.mark.parametrize(
    ("structure", "expected"),
    [
        pytest.param([leaf(), leaf()], [1.0, 2.0], id="list"),
        pytest.param((leaf(), [leaf(), leaf()]), [1.0, [2.0, 3.0]], id="nested"),
        pytest.param({"z": leaf(), "a": leaf()}, {"z": 2.0, "a": 1.0}, id="dict"),
        pytest.param(
            collections.OrderedDict([("z", leaf()), ("a", leaf())]),
            {"z": 2.0, "a": 1.0},
            id="OrderedDict, keys sorted",
        ),
        pytest.param(Pair(right=leaf(), left=leaf()), [1.0, 2.0], id="namedtuple"),
        pytest.param([(), leaf(), [], leaf()], [[], 1.0, [], 2.0], id="empty parts"),
        pytest.param(
            {"b": [leaf(), leaf()], "a": (leaf(), {"d": leaf(), "c": leaf()})},
            {"b": [4.0, 5.0], "a": [1.0, {"d": 3.0, "c": 2.0}]},
            id="deep",
        ),
    ],
)
def test_gradients_are_flat_in_nest_order(structure, expected):
    """1.4: dict and OrderedDict use sorted keys."""
    assert weighted(structure) == expected


def test_source_structures_keep_their_types():
    """1.4: a namedtuple and an OrderedDict come back as such."""
    pair = Pair(leaf(), leaf())
    ordered = collections.OrderedDict([("z", leaf()), ("a", leaf())])
    with tf.GradientTape() as tape:
        tape.watch([pair, ordered])
        y = pair.left * ordered["z"]
    gradients = tape.gradient(y, [pair, ordered])
    assert isinstance(gradients[0], Pair)
    assert isinstance(gradients[1], collections.OrderedDict)
    assert list(gradients[1]) == ["z", "a"]


def test_several_positional_structures_are_flattened_in_order():
    """1.4."""

    @tf.custom_gradient
    def f(pair, scale, table):
        y = pair[0] * pair[1] * scale * table["a"] * table["b"]
        return y, lambda dy: [dy * index for index in (1.0, 2.0, 3.0, 4.0, 5.0)]

    a, b, c, d, e = (leaf() for _ in range(5))
    with tf.GradientTape() as tape:
        tape.watch([a, b, c, d, e])
        y = f((a, b), c, {"b": e, "a": d})
    assert numbers(tape.gradient(y, [a, b, c, d, e])) == [1.0, 2.0, 3.0, 4.0, 5.0]


def splitting(structure, dys):
    """A function of one input whose outputs x*1, x*2, x*3 are laid out by `structure`."""

    @tf.custom_gradient
    def f(x):
        def grad(*upstreams):
            dys.append(numbers(upstreams))
            return sum(upstreams[1:], start=upstreams[0])

        return structure(x * 1.0, x * 2.0, x * 3.0), grad

    return f


@pytest.mark.parametrize(
    ("structure", "pick", "seen"),
    [
        (lambda a, b, c: (a, b), lambda y: y[1], [0.0, 1.0]),
        (lambda a, b, c: [a, b], lambda y: y[0], [1.0, 0.0]),
        (lambda a, b, c: {"z": a, "a": b}, lambda y: y["z"], [0.0, 1.0]),
        (lambda a, b, c: Pair(a, b), lambda y: y.right, [0.0, 1.0]),
        (lambda a, b, c: {"q": [c], "p": (a, b)}, lambda y: y["q"][0], [0.0, 0.0, 1.0]),
        (lambda a, b, c: {"q": [c], "p": (a, b)}, lambda y: y["p"][1], [0.0, 1.0, 0.0]),
    ],
)
def test_output_structure_is_kept_and_upstreams_are_flat(structure, pick, seen):
    """1.4: {'z':.., 'a':..} gives g(d_a, d_z); {'q':[c],'p':(a,b)} gives g(p0, p1, q0)."""
    dys = []
    function = splitting(structure, dys)
    x = tf.constant(1.0)
    output = function(x)
    expected = structure(x, x, x)
    tf.nest.assert_same_structure(output, expected)
    assert type(output) is type(expected)
    assert gradient(lambda x: pick(function(x)), x) == [1.0]
    assert dys == [seen]


def test_unused_outputs_get_zeros_and_not_none():
    """1.4: persistent tape on the first output only: dys ([1,1], [0,0])."""
    dys = []
    function = splitting(lambda a, b, c: (a, b), dys)
    x = tf.constant([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first, second = function(x)
    assert numbers(tape.gradient(first, x)) == [1.0, 1.0]
    assert numbers(tape.gradient(second, x)) == [1.0, 1.0]
    assert dys == [[[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]]


def test_unused_integer_output_gets_integer_zeros():
    """1.4."""
    seen = []

    @tf.custom_gradient
    def f(x):
        def grad(dy, dcount):
            seen.append(dcount)
            return dy * 3.0

        return (x * 2.0, tf.constant([1, 2])), grad

    assert gradient(lambda x: f(x)[0], tf.constant(1.0)) == [3.0]
    (upstream,) = seen
    assert upstream.dtype == tf.int32
    assert numbers(upstream) == [0, 0]


def test_the_same_tensor_returned_twice_is_two_outputs():
    """1.4: two distinct tensors, two dys."""
    dys = []

    @tf.custom_gradient
    def f(x):
        y = x * 2.0

        def grad(first, second):
            dys.append(numbers([first, second]))
            return first * 10.0 + second * 100.0

        return (y, y), grad

    x = tf.constant(1.0)
    left, right = f(x)
    assert left is not right
    assert gradient(lambda x: f(x)[0], x) == [10.0]
    assert gradient(lambda x: f(x)[1], x) == [100.0]
    assert gradient(f, x) == [110.0]
    assert dys == [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("wrap", [list, tuple])
def test_one_element_output_gives_one_upstream(wrap):
    """1.4."""

    @tf.custom_gradient
    def f(x):
        return wrap([x * 2.0]), lambda dy: dy * 5.0

    x = tf.constant(1.0)
    assert type(f(x)) is wrap
    assert gradient(lambda x: f(x)[0], x) == [5.0]


@pytest.mark.parametrize(
    ("rule", "outputs"),
    [
        pytest.param(lambda dy, other: dy, 1, id="2 for 1"),
        pytest.param(lambda: 1.0, 1, id="0 for 1"),
        pytest.param(lambda dy: dy, 2, id="1 for 2"),
        pytest.param(lambda a, b, c, *more: a, 2, id="at least 3 for 2"),
        pytest.param(lambda a, b, *, flag: a, 2, id="a required keyword"),
    ],
)
@pytest.mark.parametrize("recording", [False, True])
def test_rule_that_cannot_take_the_upstreams(rule, outputs, recording):
    """Decision 11 and 4.1: TypeError when the function is called forward."""

    @tf.custom_gradient
    def my_fn(x):
        return [x * 2.0] * outputs, rule

    words = rf"the rule must take {outputs} argument"
    x = tf.constant(1.0)
    call = (lambda: gradient(my_fn, x)) if recording else (lambda: my_fn(x))
    with pytest.raises(TypeError, match=words) as caught:
        call()
    assert "my_fn" in str(caught.value)
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    ("rule", "outputs"),
    [
        pytest.param(lambda *dys: dys[0] * 3.0, 2, id="star"),
        pytest.param(lambda dy, *more: dy * 3.0, 3, id="one and star"),
        pytest.param(lambda dy, alpha=3.0: dy * alpha, 1, id="default"),
        pytest.param(lambda dy, *, alpha=3.0: dy * alpha, 1, id="keyword default"),
        pytest.param(lambda dy, **options: dy * 3.0, 1, id="options"),
    ],
)
def test_rules_that_can_take_the_upstreams(rule, outputs):
    """Decision 11; a default is left alone (1.9)."""

    @tf.custom_gradient
    def f(x):
        return [x * 2.0] * outputs, rule

    assert gradient(lambda x: f(x)[0], tf.constant(1.0)) == [3.0]


def test_mixed_keys_in_a_dict_are_a_type_error():
    """1.4: keys that cannot be sorted."""

    @tf.custom_gradient
    def f(table):
        return table["a"] * 2.0, lambda dy: [dy, dy]

    x = leaf()
    with pytest.raises(TypeError):
        gradient(lambda x: f({"a": x, 1: x}), x)
    assert_next_gradient_is_right()


def test_lists_and_tuples_are_different_structures():
    """1.4: assert_same_structure."""
    with pytest.raises(TypeError):
        tf.nest.assert_same_structure([1, 2], (1, 2))
    tf.nest.assert_same_structure([1, {"a": (2,)}], [3, {"a": (4,)}])
