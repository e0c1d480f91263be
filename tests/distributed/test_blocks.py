"""Derivatives over blocks of data, in this process."""

import gc
import inspect
import threading
import weakref
from collections import Counter, namedtuple

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.block_losses import data, fitted, logistic, mean_logistic, read_rows
from tinygrad_cg import distributed
from tinygrad_cg.distributed._data_blocks import BlockSum, _objects, pack
from tinygrad_cg.errors import BlockError, InvalidArgumentError
from tinygrad_cg_kernels.linear import blas
from tinygrad_cg_kernels.runtime import threads

pytestmark = pytest.mark.quick
X, Y, W = data(1_000, 5)
BLOCKS = distributed.blocks(X, Y, size=150)


def square(w, x):
    return tf.reduce_sum((x - w) ** 2)


# Numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["value_and_grad", "grad", "hessian"])
def test_a_sum_over_blocks_is_that_over_the_data(name):
    total = getattr(distributed, name)(logistic, over=BLOCKS)(W)
    whole = getattr(tf, name)(logistic)(W, X, Y)
    for a, b in zip(tf.nest.flatten(total), tf.nest.flatten(whole), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        assert type(a) is type(b)


def test_hessian_vector_products_take_the_vector_last():
    vector = np.arange(5.0)
    total = distributed.hvp(logistic, over=BLOCKS)(W, vector)
    np.testing.assert_allclose(total, tf.hessian(logistic)(W, X, Y) @ vector, rtol=1e-12)


def test_rows_of_a_jacobian_are_in_the_order_of_the_blocks():
    total = distributed.jacobian(fitted, over=BLOCKS)(W)
    np.testing.assert_allclose(total, tf.jacobian(fitted)(W, X, Y), rtol=1e-12)
    assert total.shape == (1_000, 5)


def test_a_jacobian_needs_rows():
    """Rows of a scalar's gradients, one below the other, would be taken for them."""
    with pytest.raises(BlockError, match="f must return tensors whose first axis counts the rows"):
        distributed.jacobian(logistic, over=BLOCKS)(W)
    both = lambda w, x, y: {"a": fitted(w, x, y), "b": 2 * fitted(w, x, y)[:, None]}
    total = distributed.jacobian(both, over=BLOCKS)(W)
    assert (total["a"].shape, total["b"].shape) == ((1_000, 5), (1_000, 1, 5))


@pytest.mark.parametrize("size", [1, 7, 150, 1_000, 5_000])
def test_a_mean_weights_blocks_by_their_lengths(size):
    over = distributed.blocks(X, Y, size=size)
    value, gradient = distributed.value_and_grad(mean_logistic, over=over, reduction="mean")(W)
    whole = tf.value_and_grad(mean_logistic)(W, X, Y)
    np.testing.assert_allclose(value, whole[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, whole[1], rtol=1e-10)


def test_a_mean_of_float16_does_not_overflow():
    over = [np.full(70_000, 2, np.float16)] * 3
    loss = lambda w, x: tf.reduce_mean(tf.cast(x, tf.float32)) * tf.cast(w, tf.float32)
    gradient = distributed.grad(loss, over=over, reduction="mean")(np.float16(1))
    assert (gradient, gradient.dtype) == (2, np.float16)


def test_parameters_are_nested_and_several():
    Line = namedtuple("Line", "slope offset")
    loss = lambda line, scale, x: tf.reduce_sum(line["a"].slope * x + line["a"].offset * scale)
    over = [np.array([1.0, 2.0]), np.array([3.0])]
    line = {"a": Line(np.array(2.0), np.array(1.0))}
    total = distributed.grad(loss, over=over, argnums=(0, -1))(line, np.array([5.0]))
    assert total == ({"a": Line(6.0, 15.0)}, np.array([3.0]))
    hessian = distributed.hessian(loss, over=over)(line, np.array([5.0]))
    assert hessian["a"].slope["a"].offset == 0


def test_results_are_tensors_if_the_parameters_are():
    over = [np.array([1.0, 2.0], np.float32), np.array([3.0], np.float32)]
    for w in (tf.constant(1.0), tf.Variable(1.0), 1.0):
        value, gradient = distributed.value_and_grad(square, over=over)(w)
        assert isinstance(value, tf.Tensor)
        assert (float(value), float(gradient)) == (5.0, -6.0)


def count_while_alive(counter, array):
    counter["arrays"] += 1
    weakref.finalize(array, counter.subtract, ["arrays"])


def nested_sum(terms):
    """The tree, as a recursion: the left part has the greatest power of two below the count."""
    if len(terms) == 1:
        return terms[0]
    left = 1 << (len(terms) - 1).bit_length() - 1
    return nested_sum(terms[:left]) + nested_sum(terms[left:])


@pytest.mark.parametrize("count", range(1, 40))
def test_the_shape_of_the_tree_depends_on_the_number_of_blocks_alone(count):
    terms = np.random.default_rng(count).normal(size=count) * 10.0 ** (np.arange(count) % 7)
    _, total = BlockSum("sum")((1, np.asarray(term)) for term in terms)
    assert total == nested_sum(terms)


def test_few_sums_are_held():
    alive = Counter()

    class Held(np.ndarray):
        pass

    def results():
        for _ in range(1_000):
            array = np.zeros(1).view(Held)
            count_while_alive(alive, array)
            yield 1, array
            del array
            assert alive["arrays"] <= 11  # log2(1000) + 1

    class KeepsFirst(BlockSum):
        def add(self, a, b):
            return a[0] + b[0], a[1]

    assert KeepsFirst("sum")(results())[0] == 1_000


# Kinds of data -------------------------------------------------------------------------------


def test_files_are_read_by_their_reader(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, x=X, y=Y)
    keys = [(path, start, start + 150) for start in range(0, 1_000, 150)]
    over = distributed.files(keys, read_rows)
    a, b = (distributed.grad(logistic, over=source)(W) for source in (over, BLOCKS))
    assert (a == b).all()


def test_memory_maps_are_cut_into_blocks(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    over = distributed.blocks(mapped, Y, size=150)
    assert len(over) == 7
    assert all(type(part) is np.ndarray for block in over for part in block)
    assert (
        distributed.grad(logistic, over=over)(W) == distributed.grad(logistic, over=BLOCKS)(W)
    ).all()


@pytest.mark.parametrize("kind", ["h5py", "zarr", "pyarrow"])
def test_formats_on_disk(kind, tmp_path):
    package = pytest.importorskip(kind)
    expected = distributed.grad(square, over=distributed.blocks(X[:, 0], size=150))(W[0])
    if kind == "pyarrow":
        pandas = pytest.importorskip("pandas")
        for index, start in enumerate(range(0, 1_000, 150)):
            part = pandas.DataFrame({"x": X[start : start + 150, 0]})
            part.to_parquet(tmp_path / f"{index}.parquet")
        files = distributed.files(sorted(tmp_path.glob("*.parquet")), pandas.read_parquet)
        assert distributed.grad(lambda w, x: square(w, x["x"]), over=files)(W[0]) == expected
        return
    if kind == "h5py":
        array = package.File(tmp_path / "x.h5", "w").create_dataset("x", data=X[:, 0])
    else:
        array = package.open(tmp_path / "x.zarr", mode="w", shape=1_000, dtype=float)
        array[:] = X[:, 0]
    assert distributed.grad(square, over=distributed.blocks(array, size=150))(W[0]) == expected


def test_sources_of_a_tuple_are_read_side_by_side():
    over = ([x for x, _ in BLOCKS], lambda: (y for _, y in BLOCKS))
    total = distributed.grad(logistic, over=over)
    assert (total(W) == distributed.grad(logistic, over=BLOCKS)(W)).all()
    assert (total(W) == total(W)).all()
    short = ([Y] * 4, [Y] * 3)
    product = lambda w, x, y: w * tf.reduce_sum(x * y)
    with pytest.raises(
        BlockError, match=r"block 3 failed: ValueError: zip\(\) argument 2 is short"
    ):
        distributed.grad(product, over=short)(np.array(1.0))


def test_a_list_is_stacked_and_a_dict_is_one_argument():
    loss = lambda w, block: tf.reduce_sum(w * block["x"] + block["y"])
    over = [{"x": np.array([1.0, 2.0]), "y": np.array([0.0, 0.0])}]
    assert distributed.grad(loss, over=over)(np.array(1.0)) == 3
    over = [[{"x": 1.0, "y": 0.0}, {"x": 2.0, "y": 0.0}], [], [{"x": 3.0, "y": 0.0}]]
    assert distributed.grad(loss, over=over)(np.array(1.0)) == 6
    pairs = [[(1.0, 2.0), (3.0, 4.0)], iter([(5.0, 6.0)])]
    assert (
        distributed.grad(lambda w, x, y: w * tf.reduce_sum(x * y), over=pairs)(np.array(1.0)) == 44
    )


def test_dataframes_are_dicts_of_their_columns():
    pandas = pytest.importorskip("pandas", reason="the extra test brings it")
    frame = pandas.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    loss = lambda w, frame: w * tf.reduce_sum(frame["x"] * frame["y"])
    assert distributed.grad(loss, over=[frame])(np.array(1.0)) == 11
    assert distributed.grad(square, over=[frame["x"]])(np.array(1.0)) == -2


def test_empty_blocks_are_left_out():
    over = [np.empty(0), np.array([1.0, 3.0]), np.empty(0)]
    loss = lambda w, x: tf.reduce_mean((x - w) ** 2)
    assert distributed.value_and_grad(loss, over=over, reduction="mean")(np.array(1.0)) == (2, -2)
    assert distributed.jacobian(lambda w, x: w * x, over=over)(np.array(1.0)).tolist() == [1, 3]
    for reduction in ("sum", "mean"):
        with pytest.raises(InvalidArgumentError, match="no blocks, or only empty ones"):
            distributed.grad(loss, over=over[:1], reduction=reduction)(np.array(1.0))


# One block ahead -----------------------------------------------------------------------------


def test_a_thread_reads_one_block_ahead_and_two_are_held():
    alive, most, begun = Counter(), [], []

    class Block(np.ndarray):
        pass

    def read():
        for index in range(8):
            block = np.full(3, float(index)).view(Block)
            begun.append(threading.current_thread())
            count_while_alive(alive, block)
            most.append(alive["arrays"])
            yield block
            del block

    def loss(w, x):
        return tf.reduce_sum(w * x)

    total = distributed.grad(loss, over=read)
    assert total(np.array(1.0)) == 84
    assert threading.current_thread() not in begun
    assert max(most) <= 2
    gc.collect()
    assert not alive["arrays"]


def test_the_next_block_is_read_while_one_is_computed():
    computing, reading = threading.Event(), threading.Event()

    def read():
        yield np.array([1.0])
        assert computing.wait(60)  # only the computation of the first block ends this
        reading.set()
        yield np.array([2.0])

    def wait(x):
        computing.set()
        assert reading.wait(60)
        return np.asarray(x)

    loss = lambda w, x: w * tf.reduce_sum(tf.numpy_function(wait, [x], tf.float64))
    assert distributed.grad(loss, over=read)(np.array(1.0)) == 3


@pytest.mark.parametrize("index", [0, 2, 3])
def test_a_block_that_cannot_be_read_is_named(index):
    closed = []

    def read():
        try:
            for number in range(4):
                if number == index:
                    raise OSError("the disk is gone")
                yield np.array([1.0])
        finally:
            closed.append(True)

    with pytest.raises(
        BlockError, match=f"grad: block {index} failed: OSError: the disk"
    ) as caught:
        distributed.grad(square, over=read)(np.array(1.0))
    assert (caught.value.block, caught.value.function) == (index, "grad")
    assert isinstance(caught.value.__cause__, OSError)
    assert closed == [True]


def test_a_generator_is_closed_when_a_block_fails():
    closed = []

    def read():
        try:
            while True:
                yield np.array([np.nan])
        finally:
            closed.append(threads())

    def threads():
        """The threads, without those that compile."""
        return {thread for thread in threading.enumerate() if "compiler" not in thread.name}

    before = threads()
    with pytest.raises(BlockError, match="block 0 failed"):
        distributed.grad(square, over=read)(np.array(1.0))
    assert closed
    assert threads() == before


# Errors --------------------------------------------------------------------------------------


def test_a_block_that_raises_is_named():
    over = [np.zeros(3), np.zeros(3), np.zeros((2, 2))]
    loss = lambda w, x: tf.reduce_sum(w * x)
    with pytest.raises(BlockError, match="hvp: block 2 failed: InvalidArgumentError") as caught:
        distributed.hvp(loss, over=over)(np.ones(3), np.ones(3))
    assert isinstance(caught.value.__cause__, InvalidArgumentError)


def test_a_nan_is_an_error_that_names_its_block_unless_it_is_accepted():
    over = [np.ones(2), np.array([1.0, np.nan]), np.ones(2)]
    with pytest.raises(
        BlockError, match="block 1 failed: FloatingPointError: its result has a NaN"
    ):
        distributed.value_and_grad(square, over=over)(np.array(2.0))
    assert np.isnan(distributed.grad(square, over=over, allow_nan=True)(np.array(2.0)))
    infinite = [np.array([np.inf])]
    loss = lambda w, x: w * tf.reduce_sum(x)
    assert distributed.value_and_grad(loss, over=infinite)(np.array(2.0)) == (np.inf, np.inf)


@pytest.mark.parametrize(
    ("over", "words"),
    [
        (np.ones(3), r"got ndarray: cut it into blocks, distributed.blocks\(array, size="),
        (iter([np.ones(3)]), "got list_iterator: it can be read once; pass a list"),
        ("data.npy", r"got str: files are read by distributed.files\(paths, reader\)"),
        ({"x": np.ones(3)}, "got dict: files are read"),
        (3.0, r"got float: pass a single block as a list, \[block\]"),
        (([np.ones(3)], np.ones(3)), "got ndarray: cut it"),
    ],
)
def test_data_of_other_kinds_are_refused(over, words):
    with pytest.raises(TypeError, match=f"^grad: over= must be an iterable of blocks, {words}"):
        distributed.grad(square, over=over)


@pytest.mark.parametrize("over", [[], (), lambda: iter([])])
def test_no_blocks_are_an_error_and_not_zero(over):
    with pytest.raises(InvalidArgumentError, match="grad: over= has no blocks"):
        distributed.grad(square, over=over)(np.array(1.0))


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="grad: the argument `f` must be a function, got int"):
        distributed.grad(3, over=BLOCKS)
    with pytest.raises(
        InvalidArgumentError, match="reduction must be one of 'sum' or 'mean', got 'max'"
    ):
        distributed.grad(square, over=BLOCKS, reduction="max")
    with pytest.raises(InvalidArgumentError, match=r"reduction must be one of .* got 'rows'"):
        distributed.value_and_grad(square, over=BLOCKS, reduction="rows")
    with pytest.raises(TypeError, match="unexpected keyword argument 'workers'"):
        distributed.grad(square, over=BLOCKS, workers=3)
    with pytest.raises(TypeError, match="executor= must be None, a Dask client, or have the"):
        distributed.grad(square, over=BLOCKS, executor=2)
    with pytest.raises(ValueError, match="argnums contains 1, but"):
        distributed.grad(square, over=[np.ones(2)], argnums=1)(np.array(1.0))
    with pytest.raises(TypeError, match="argument 0 of square is of dtype int64"):
        distributed.grad(square, over=[np.ones(2)])(np.array(1))
    with pytest.raises(BlockError, match='reduction="mean" weights a block by the length'):
        distributed.grad(square, over=[np.array(1.0)], reduction="mean")(np.array(1.0))
    with pytest.raises(InvalidArgumentError, match=r"blocks: size must be at least 1, got 0"):
        distributed.blocks(X, size=0)
    with pytest.raises(
        InvalidArgumentError, match=r"first axes of the same size, got shapes \(1000, 5\), \(3,"
    ):
        distributed.blocks(X, np.ones(3), size=2)
    with pytest.raises(InvalidArgumentError, match="got shapes of none"):
        distributed.blocks(size=2)
    with pytest.raises(TypeError, match=r"files: paths must be a list of paths, got 'a\.npy'"):
        distributed.files("a.npy", np.load)
    with pytest.raises(TypeError, match="files: reader must be a function of a path, got str"):
        distributed.files(["a.npy"], "np.load")


def test_watched_parameters_are_refused():
    """A tape would not see the operations on blocks: no silent zero."""
    total = distributed.grad(square, over=[np.ones(2)])
    w, v = tf.constant(1.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        tape.watch(w)
        for parameter in (w, v):
            with pytest.raises(TypeError, match="grad: a tape or transformation watches a param"):
                total(parameter)
        assert float(total(tf.constant(2.0))) == 4  # which nobody watches
    with pytest.raises(TypeError, match="grad: a tape or transformation"):
        tf.grad(lambda w: distributed.value_and_grad(square, over=[np.ones(2)])(w)[0])(w)


def test_transformations_have_no_values_to_send():
    total = distributed.grad(square, over=[np.ones(2)])
    with pytest.raises((TypeError, ValueError), match=r"value|watches"):
        tf.function(lambda w: total(w))(tf.constant(1.0))
    with pytest.raises((TypeError, ValueError), match=r"value|watches"):
        tf.vmap(lambda w: total(w))(tf.constant([1.0, 2.0]))


def test_the_derivative_may_be_declared():
    both = distributed.value_and_grad(square, over=[np.ones(2), np.zeros(3)])

    @tf.custom_gradient
    def loss(w):
        value, gradient = both(w.numpy())
        return tf.constant(value), lambda dy: dy * gradient

    assert tf.grad(loss)(np.array(3.0)) == 26


# Threads and programs ------------------------------------------------------------------------


def test_blocks_are_computed_with_one_thread_of_blas(restore_threads):
    if blas._functions() is None:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    before = blas.get_num_threads()
    blas.set_num_threads(2)
    try:
        seen = []
        note = lambda x: seen.append(blas.get_num_threads()) or np.asarray(x)
        loss = lambda w, x: w * tf.reduce_sum(tf.numpy_function(note, [x], tf.float64))
        distributed.grad(loss, over=[np.ones(2)] * 2)(np.array(1.0))
        assert {*seen} == {1}
        assert blas.get_num_threads() == 2
        with pytest.raises(BlockError):
            distributed.grad(square, over=[np.array([np.nan])])(np.array(1.0))
        assert blas.get_num_threads() == 2
    finally:
        blas.set_num_threads(before)


def test_results_have_the_same_bits_for_each_number_of_threads(restore_threads):
    """Blocks are large enough for several threads of BLAS and of our kernels."""
    x, y, w = data(150_000, 20)
    over = distributed.blocks(x, y, size=100_000)
    before, results = blas.get_num_threads(), []
    try:
        for count in (1, 2):
            threads.set_num_threads(min(count, threads._MAX_THREADS))
            blas.set_num_threads(count)
            results.append(distributed.value_and_grad(logistic, over=over)(w))
    finally:
        blas.set_num_threads(before)
    assert results[0][0] == results[1][0]
    assert (results[0][1] == results[1][1]).all()


def test_a_function_is_traced_once():
    traces = []

    def loss(w, x):
        traces.append(x.shape)
        return tf.reduce_sum(w * x)

    total = distributed.grad(loss, over=[np.ones(2), np.ones(3), np.ones(2)])
    for _ in range(3):
        total(np.array(1.0))
    assert len(traces) == 2  # for each shape
    _objects.clear()
    packed = pack("grad", np.sin)
    assert packed.unpack() is np.sin
    built = [pack("grad", i).unpack() for i in range(40)]
    assert len(built) == 40
    assert len(_objects) == 16


# map -----------------------------------------------------------------------------------------


def test_map_keeps_the_order_and_names_items_that_raise():
    assert distributed.map(lambda x: x + 1, range(5)) == [1, 2, 3, 4, 5]
    assert distributed.map(lambda pair: pair, iter([(1, 2)])) == [(1, 2)]
    with pytest.raises(BlockError, match="map: item 2 failed: ZeroDivisionError") as caught:
        distributed.map(lambda x: 1 / x, [2, 1, 0])
    assert caught.value.block == 2
    with pytest.raises(TypeError, match="map: the argument `f` must be a function, got int"):
        distributed.map(3, [1])
    with pytest.raises(TypeError, match="map: many must be iterable, got int"):
        distributed.map(abs, 1)


def test_map_shows_progress(monkeypatch, capsys):
    monkeypatch.setenv("TINYGRAD_CG_PROGRESS", "1")
    monkeypatch.setattr("tinygrad_cg_kernels.runtime.progress.AFTER", 0)
    monkeypatch.setattr("tinygrad_cg._core.tracking._tqdm", lambda *_: None)
    assert distributed.map(abs, [-1, -2, -3], label="starts") == [1, 2, 3]
    assert "tinygrad_cg: starts, 0 of 3 after" in capsys.readouterr().err


def test_signatures_name_all_arguments():
    """For `help` and type checkers."""
    first, *others = (
        inspect.signature(getattr(distributed, name))
        for name in ("value_and_grad", "grad", "hvp", "hessian")
    )
    assert all(signature == first for signature in others)
    assert {"executor", "reduction", "argnums", "allow_nan"} < {*first.parameters}
