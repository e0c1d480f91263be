"""Datasets: the elements, orders and lengths of tf.data."""

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick

Dataset = tf.data.Dataset


def listed(dataset):
    return [element.tolist() for element in dataset.as_numpy_iterator()]


def test_batches_of_slices():
    data = Dataset.from_tensor_slices(np.arange(5.0))
    assert listed(data.batch(2)) == [[0, 1], [2, 3], [4]]
    assert listed(data.batch(2, drop_remainder=True)) == [[0, 1], [2, 3]]
    assert [len(data.batch(2)), len(data.batch(2, drop_remainder=True))] == [3, 2]
    assert listed(data.batch(2).unbatch()) == listed(data) == [0, 1, 2, 3, 4]
    assert next(iter(data)).dtype == tf.float64


def test_structures_are_kept():
    pairs = Dataset.from_tensor_slices((np.eye(2), {"y": [1, 2]}))
    (x, labels), _ = pairs
    assert (x.numpy().tolist(), int(labels["y"])) == ([1, 0], 1)
    mapped = pairs.map(lambda x, y: (x * 2.0, y["y"])).batch(2)
    ((x, y),) = mapped
    assert (x.numpy().tolist(), y.numpy().tolist()) == ([[2, 0], [0, 2]], [1, 2])
    both = Dataset.zip((Dataset.range(3), Dataset.range(10, 20, 5)))
    assert [(int(a), int(b)) for a, b in both] == [(0, 10), (1, 15)]
    assert [(int(a), int(b)) for a, b in Dataset.range(2).enumerate(5)] == [(5, 0), (6, 1)]


def test_parts_and_repetitions():
    data = Dataset.range(5)
    assert listed(data.take(2)) == [0, 1]
    assert listed(data.skip(3)) == [3, 4]
    assert listed(data.take(2).repeat(2)) == [0, 1, 0, 1]
    assert listed(data.repeat().take(7)) == [0, 1, 2, 3, 4, 0, 1]
    assert listed(data.filter(lambda x: x % 2 == 0)) == [0, 2, 4]
    assert listed(data.take(1).concatenate(data.skip(4))) == [0, 4]
    assert listed(data.prefetch(tf.data.AUTOTUNE).cache()) == [0, 1, 2, 3, 4]
    assert int(data.reduce(np.int64(0), lambda total, x: total + x)) == 10
    sizes = [data.repeat(), data.filter(lambda x: True), data.repeat(2), data.skip(9), data.take(9)]
    assert [int(dataset.cardinality()) for dataset in sizes] == [-1, -2, 10, 0, 5]
    assert listed(data.take(0).repeat()) == []


def test_shuffled_orders():
    data = Dataset.range(20)
    shuffled = data.shuffle(20, seed=1)
    first, second = listed(shuffled), listed(shuffled)
    assert first != second
    assert sorted(first) == sorted(second) == listed(data) != first
    assert first == listed(data.shuffle(20, seed=1))
    same = data.shuffle(20, reshuffle_each_iteration=False)
    assert listed(same) == listed(same)
    near = listed(data.shuffle(3, seed=1))
    assert all(number <= place + 2 for place, number in enumerate(near))
    tf.random.set_seed(3)
    order = listed(data.shuffle(20))
    tf.random.set_seed(3)
    assert order == listed(data.shuffle(20))


def test_a_cache_is_filled_by_a_whole_loop():
    calls = []
    data = Dataset.range(3).map(lambda x: (calls.append(1), x)[1]).cache()
    next(iter(data))
    calls.clear()
    assert listed(data) == listed(data) == [0, 1, 2]
    assert len(calls) == 3


def test_a_compiled_step_goes_through_a_dataset():
    w = tf.Variable(0.0)
    optimizer = tf.keras.optimizers.SGD(0.5)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((w * x - y) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])

    x = np.array([1.0, -1.0, 0.5, -0.5], np.float32)
    for batch in Dataset.from_tensor_slices((x, 3 * x)).batch(2).repeat(30):
        step(*batch)
    assert float(w) == pytest.approx(3.0, abs=1e-3)


def test_what_datasets_refuse():
    with pytest.raises(ValueError, match=r"first axes of the same size, got shapes \(2,\), \(3,\)"):
        Dataset.from_tensor_slices((np.ones(2), np.ones(3)))
    with pytest.raises(ValueError, match=r"got shapes \(\)"):
        Dataset.from_tensor_slices(1.0)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        Dataset.range(3).batch(0)
    with pytest.raises(TypeError, match="infinite length"):
        len(Dataset.range(3).repeat())
    with pytest.raises(TypeError, match="needs datasets, got int"):
        Dataset.zip((Dataset.range(3), 1))


def test_generators_windows_and_padding():
    """TensorFlow's elements, for structures and for steps that skip or overlap."""

    def pairs(count):
        for i in range(int(count)):
            yield {"x": [i, i], "y": np.float64(i)}, i

    spec = tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.float32), tf.TensorSpec((), "int64")
    signature = {"x": spec[0], "y": spec[1]}, spec[2]
    data = Dataset.from_generator(pairs, args=[2], output_signature=signature)
    for _ in range(2):
        result = [
            (element["x"].numpy().tolist(), float(element["y"]), int(i)) for element, i in data
        ]
        assert result == [([0, 0], 0.0, 0), ([1, 1], 1.0, 1)]
    assert next(iter(data))[0]["y"].dtype == tf.float32
    assert listed(Dataset.from_generator(lambda: [1, 2], tf.int32)) == [1, 2]

    data = Dataset.range(7)
    for options, windows in (
        ((3,), [[0, 1, 2], [3, 4, 5], [6]]),
        ((3, 1, 2, True), [[0, 2, 4], [1, 3, 5], [2, 4, 6]]),
        ((3, 1, 2), [[0, 2, 4], [1, 3, 5], [2, 4, 6], [3, 5], [4, 6], [5], [6]]),
        ((2, 4), [[0, 1], [4, 5]]),
        ((2, 6, 1, True), [[0, 1]]),
    ):
        result = data.window(*options)
        assert [listed(window) for window in result] == windows
        assert len(result) == len(windows)
    two = Dataset.zip((Dataset.range(3), Dataset.range(4, 7))).window(2, 1, drop_remainder=True)
    rows = two.flat_map(lambda x, y: Dataset.zip((x.batch(2), y.batch(2))))
    value = [(x.numpy().tolist(), y.numpy().tolist()) for x, y in rows]
    assert value == [([0, 1], [4, 5]), ([1, 2], [5, 6])]

    rows = Dataset.range(1, 4).map(lambda x: tf.fill([x], x))
    assert listed(rows.padded_batch(2)) == [[[1, 0], [2, 2]], [[3, 3, 3]]]
    assert listed(rows.padded_batch(2, [4], np.int64(9), True)) == [[[1, 9, 9, 9], [2, 2, 9, 9]]]
    rows = rows.map(lambda x: (x, {"m": tf.cast([x, x], tf.float32)}))
    padded = rows.padded_batch(2, ([None], {"m": [2, None]}), (np.int64(-1), {"m": 9.0}))
    x, more = next(iter(padded))
    assert x.numpy().tolist() == [[1, -1], [2, 2]]
    assert more["m"].numpy()[0].tolist() == [[1, 9], [1, 9]]


def test_datasets_of_datasets():
    repeat = lambda times: lambda x: Dataset.from_tensors(x).repeat(x if times is None else times)
    data = Dataset.range(1, 5)
    assert listed(Dataset.range(4).flat_map(Dataset.range)) == [0, 0, 1, 0, 1, 2]
    blocks = data.interleave(repeat(3), cycle_length=2, block_length=2)
    assert listed(blocks) == [1, 1, 2, 2, 1, 2, 3, 3, 4, 4, 3, 4]
    turns = Dataset.range(1, 6).interleave(repeat(None), cycle_length=2)
    assert listed(turns) == [1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 4, 5, 5, 5, 5]
    assert listed(data.repeat().take_while(lambda x: x < 3)) == [1, 2]


@pytest.mark.parametrize(
    ("error", "words", "make"),
    [
        (
            TypeError,
            "from_generator: needs a function",
            lambda: Dataset.from_generator([1], "int32"),
        ),
        (TypeError, "map_func must return a Dataset", lambda: list(DATA.flat_map(lambda x: x))),
        (ValueError, "window: shift must be at least 1", lambda: DATA.window(2, 0)),
        (ValueError, "padded_shapes must not be", lambda: list(ROWS.padded_batch(2, [1]))),
        (ValueError, r"declares shape \(2,\), but element 0 of the .* \(1,\)", lambda: list(SHORT)),
        (ValueError, "batch: batch_size must be an integer, got str 'a'", lambda: DATA.batch("a")),
        (ValueError, "take: count must be an integer, got str 'a'", lambda: DATA.take("a")),
    ],
)
def test_groups_say_what_they_need(error, words, make):
    with pytest.raises(error, match=words):
        make()


DATA = Dataset.range(3)
ROWS = DATA.map(lambda x: tf.fill([x], x))
SHORT = Dataset.from_generator(lambda: [[1]], output_signature=tf.TensorSpec([2], tf.int32))
