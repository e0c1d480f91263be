"""Nested structures, after `tf.nest` (docs/behaviour.md 1.4, decision 10)."""

import collections

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg import nest

pytestmark = pytest.mark.quick

Point = collections.namedtuple("Point", "b a")
Other = collections.namedtuple("Other", "b a")
SamePoint = collections.namedtuple("Point", "b a")
Pair = collections.OrderedDict


class SpecialList(list):
    """A subclass, which is kept."""


@pytest.mark.parametrize(
    ("structure", "leaves"),
    [
        (1, [1]),
        (None, [None]),
        ("abc", ["abc"]),
        (b"abc", [b"abc"]),
        ([], []),
        ((), []),
        ({}, []),
        ([[], {}, ()], []),
        ([1, 2], [1, 2]),
        ((1, [2, (3,)]), [1, 2, 3]),
        ({"z": 1, "a": 2}, [2, 1]),
        (Pair(z=1, a=2), [2, 1]),
        ({"q": ["c"], "p": ("a", "b")}, ["a", "b", "c"]),
        (Point(1, [2]), [1, 2]),
        ([None, "text", 1.5], [None, "text", 1.5]),
        (range(3), [0, 1, 2]),
        ({"b": 1, "a": 2}.values(), [1, 2]),
    ],
    ids=repr,
)
def test_flatten(structure, leaves):
    assert nest.flatten(structure) == leaves


@pytest.mark.parametrize(
    "leaf",
    [None, "text", np.ones(2), {1, 2}, 1.5, len, (item for item in "ab")],
    ids=lambda leaf: type(leaf).__name__,
)
def test_leaves(leaf):
    assert not nest.is_nested(leaf)
    assert nest.flatten(leaf)[0] is leaf
    assert nest.flatten([leaf])[0] is leaf


@pytest.mark.parametrize("container", [[], (), {}, [1], Point(1, 2), Pair(), SpecialList()])
def test_containers(container):
    assert nest.is_nested(container)


def test_mixed_keys_cannot_be_ordered():
    with pytest.raises(TypeError, match="'<' not supported between instances"):
        nest.flatten({1: 2, "a": 3})


@pytest.mark.parametrize(
    ("structure", "flat", "packed"),
    [
        (1, [5], 5),
        ([1, (2, {"b": 3, "a": 4})], [10, 20, 30, 40], [10, (20, {"b": 40, "a": 30})]),
        (Pair(b=1, a=2), [10, 20], Pair(b=20, a=10)),
        (Point(1, [2]), (10, 20), Point(10, [20])),
        ([[], {}, ()], [], [[], {}, ()]),
        (SpecialList([1]), [2], SpecialList([2])),
        (collections.defaultdict(int, b=1, a=2), [10, 20], {"a": 10, "b": 20}),
        (range(2), [10, 20], [10, 20]),
        ({"b": 1, "a": 2}.values(), [10, 20], [10, 20]),
    ],
    ids=repr,
)
def test_pack_sequence_as(structure, flat, packed):
    result = nest.pack_sequence_as(structure, flat)
    assert result == packed
    assert type(result) in (type(structure), type(packed))


def test_pack_keeps_the_order_and_the_kind_of_a_mapping():
    packed = nest.pack_sequence_as(Pair(b=1, a=2), [10, 20])
    assert list(packed.items()) == [("b", 20), ("a", 10)]
    assert type(packed) is Pair
    counts = nest.pack_sequence_as(collections.defaultdict(int, a=1), [10])
    assert counts["new"] == 0


@pytest.mark.parametrize(
    ("structure", "flat", "error", "words"),
    [
        ([1, 2], [1], ValueError, "Structure had 2 atoms, but flat_sequence had 1 items"),
        ([1, 2], [1, 2, 3], ValueError, "Could not pack sequence"),
        (1, [1, 2], ValueError, "."),
        ([1], 5, TypeError, "Attempted to pack value"),
        (1, 5, TypeError, "incompatible type"),
    ],
)
def test_pack_errors(structure, flat, error, words):
    with pytest.raises(error, match=words):
        nest.pack_sequence_as(structure, flat)


def test_map_structure():
    assert nest.map_structure(lambda x: x + 1, 1) == 2
    assert nest.map_structure(lambda x: 2 * x, [1, (2, Point(3, 4))]) == [2, (4, Point(6, 8))]
    added = nest.map_structure(lambda x, y: (x, y), {"a": 1, "b": (2, 3)}, {"b": (5, 6), "a": 4})
    assert added == {"a": (1, 4), "b": ((2, 5), (3, 6))}
    assert nest.map_structure(lambda x, y: x + y, [1, 2], (1, 2), check_types=False) == [2, 4]


def test_map_structure_calls_in_flat_order():
    seen = []
    nest.map_structure(seen.append, {"z": [1], "a": (2, 3)})
    assert seen == [2, 3, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((3, [1]), TypeError, "func must be callable, got: 3"),
        ((len,), ValueError, "Must provide at least one structure"),
        ((max, [1, 2], [1]), ValueError, "don't have the same nested structure"),
        ((max, [1], (1,)), TypeError, "don't have the same nested structure"),
    ],
)
def test_map_structure_errors(arguments, error, words):
    with pytest.raises(error, match=words):
        nest.map_structure(*arguments)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, None),
        ("abc", np.ones(3)),
        ([1, (2,)], ["a", (None,)]),
        ({"a": 1}, Pair(a=2)),
        (Point(1, 2), SamePoint(3, 4)),
        (SpecialList([1]), [2]),
    ],
)
def test_same_structure(first, second):
    nest.assert_same_structure(first, second)


@pytest.mark.parametrize(
    ("first", "second", "error", "words"),
    [
        ([1], (1,), TypeError, "same sequence type"),
        ([1], {"a": 1}, TypeError, "same sequence type"),
        (Point(1, 2), (1, 2), TypeError, "same sequence type"),
        (Point(1, 2), Other(1, 2), TypeError, "same sequence type"),
        ([1, 2], [1], ValueError, "same number of elements"),
        ([1], 1, ValueError, "is a sequence, while substructure"),
        ([1, [2]], [[1], 2], ValueError, "is a sequence, while substructure"),
        ({"a": 1}, {"b": 1}, ValueError, "same set of keys"),
    ],
)
def test_different_structures(first, second, error, words):
    with pytest.raises(error, match="don't have the same nested structure") as caught:
        nest.assert_same_structure(first, second)
    assert words in str(caught.value)


def test_types_may_be_left_unchecked():
    nest.assert_same_structure([1, (2,)], (1, [2]), check_types=False)
    with pytest.raises(ValueError, match="same number of elements"):
        nest.assert_same_structure([1], (1, 2), check_types=False)


def test_paths_name_the_leaves():
    structure = [{"w": 1, "b": (2, 3)}, Point(4, 5)]
    assert nest.flatten_paths(structure, "x") == [
        ("x[0]['b'][0]", 2),
        ("x[0]['b'][1]", 3),
        ("x[0]['w']", 1),
        ("x[1].b", 4),
        ("x[1].a", 5),
    ]
    assert nest.flatten_paths(7, "x") == [("x", 7)]


def test_paths_follow_the_order_of_flatten():
    structure = {"z": [1, {}], "a": Pair(y=2, b={"k": 3})}
    assert [leaf for _, leaf in nest.flatten_paths(structure)] == nest.flatten(structure)


def test_tensors_are_leaves():
    x, v = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])
    assert not nest.is_nested(x)
    assert nest.flatten({"v": v, "t": x})[0] is x
    assert nest.flatten([v])[0] is v


def test_none_in_an_output_structure_has_no_upstream():
    """Decision 10."""

    @tf.custom_gradient
    def function(x):
        def rule(*upstream):
            received.append([dy.numpy() for dy in upstream])
            return upstream[0] + 10.0 * upstream[1]

        return {"z": x * 2.0, "none": None, "a": (x * 3.0, None)}, rule

    received = []
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
        loss = 5.0 * y["z"] + 7.0 * y["a"][0]
    assert y["none"] is None
    assert y["a"][1] is None
    assert tape.gradient(loss, x).numpy() == 57.0
    assert received == [[7.0, 5.0]]


def test_gradients_of_the_values_of_a_dictionary():
    """A view of a dictionary is a sequence of sources, in the dictionary's own order."""
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = x * y * y
    gradients = tape.gradient(z, {"y": y, "x": x}.values())
    assert [gradient.numpy() for gradient in gradients] == [12.0, 9.0]


def test_references_sort():
    """Keys of dictionaries by `ref()`: structures of them are flattened in one order."""
    ones = [tf.constant(1.0), tf.Variable(2.0), tf.constant(3.0)]
    flat = tf.nest.flatten({tensor.ref(): tensor for tensor in ones})
    again = tf.nest.flatten({tensor.ref(): tensor for tensor in reversed(ones)})
    assert [id(leaf) for leaf in flat] == [id(leaf) for leaf in again]
    assert {id(leaf) for leaf in flat} == {id(tensor) for tensor in ones}
    gradients = tf.grad(lambda tree: sum(tree.values()))({tensor.ref(): tensor for tensor in ones})
    assert set(gradients) == {tensor.ref() for tensor in ones}
    with pytest.raises(TypeError, match="not supported between instances"):
        _ = ones[0].ref() < 1
