"""Memory that is used again: when, how much of it, and that nobody who still looks ever notices."""

import ctypes
import gc
import os
import pickle
import platform
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support import op_cases
from tests.support.processes import run_in_child
from tests.support.python import run_python
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.runtime import memory
from tinygrad_cg_kernels.runtime.memory import LINE, PAGE, empty

FLOAT64 = np.dtype(np.float64)
SHAPE = (300, 300)  # what two threads share, in loops that take whole arrays
add = Elementwise("add", elementary.add, 2)


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    """Nothing is kept at first; afterwards arrays from 100,000 bytes on, and 4 MiB of them."""
    monkeypatch.setattr(memory, "MIN_KEPT_BYTES", 100_000)
    monkeypatch.setattr(memory, "MAX_KEPT_BYTES", 2**22)
    monkeypatch.setattr(memory, "_kept", {})
    return lambda: sum(len(pieces) for pieces in memory._kept.values())


@pytest.fixture
def dirty(monkeypatch):
    """Memory is full of NaN whenever it is handed out."""
    taken = memory._take

    def spoiled(size):
        piece = taken(size)
        piece[1][:] = 255
        return piece

    monkeypatch.setattr(memory, "_take", spoiled)


def address(array: np.ndarray) -> int:
    return array.ctypes.data


# What is made ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [SHAPE, (), (0, 7), (5,), (100_000, 1, 3)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?", "c16", "f2"])
def test_an_array_is_as_numpy_makes_it(shape, dtype):
    dtype = np.dtype(dtype)
    array, like = empty(shape, dtype), np.empty(shape, dtype)
    assert type(array) is np.ndarray
    assert (array.shape, array.strides, array.dtype) == (like.shape, like.strides, like.dtype)
    assert array.dtype is dtype
    names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED")
    assert [array.flags[name] for name in names] == [like.flags[name] for name in names]
    if array.nbytes >= memory.MIN_KEPT_BYTES:
        assert address(array) % LINE == 0
        array.fill(1)
        assert (array == 1).all()


def test_objects_are_nobodys_leftovers():
    assert empty((50_000,), np.dtype(object))[-1] is None


def test_small_arrays_are_numpys(kept):
    assert empty((12_499,), FLOAT64).base is None
    assert kept() == 0


# Who still looks ---------------------------------------------------------------------------------


class Own(np.ndarray):
    """A user's kind of array."""


def in_a_cycle(array):
    cycle = {"array": array}
    cycle["self"] = cycle
    return cycle


def in_a_generator(array):
    def look():
        yield array.sum()
        yield array.sum()

    generator = look()
    next(generator)
    return generator


OWNERS = {
    "itself": lambda array: array,
    "view": lambda array: array.view(),
    "view of a view": lambda array: array[1:].T[::2].view(),
    "one element": lambda array: array[7:8, 7],
    "transposed": lambda array: array.T,
    "flat": lambda array: array.reshape(-1),
    "bytes": lambda array: array.view(np.uint8),
    "repeated": lambda array: np.broadcast_to(array, (2, *array.shape)),
    "windows": lambda array: np.lib.stride_tricks.sliding_window_view(array, (2, 2)),
    "parts": lambda array: np.split(array, 3)[1],
    "own kind": lambda array: array.view(Own),
    "view of own kind": lambda array: array.view(Own)[1:].view(Own),
    "array of own kind": lambda array: np.asarray(array.view(Own)),
    "masked": lambda array: np.ma.masked_array(array),
    "records": lambda array: array.view([("a", "f8"), ("b", "f8")])["b"],
    "imaginary": lambda array: array.view(complex).imag,
    "memoryview": lambda array: memoryview(array),
    "part of a memoryview": lambda array: memoryview(array)[3:],
    "buffer": lambda array: array.data,
    "from a buffer": lambda array: np.frombuffer(array),
    "as an array": lambda array: np.asarray(memoryview(array)),
    "iterator": lambda array: array.flat,
    "iterator of all kinds": lambda array: np.nditer(array),
    "rows": lambda array: iter(array),
    "pointer": lambda array: array.ctypes,
    "typed pointer": lambda array: np.ctypeslib.as_ctypes(array),
    "capsule": lambda array: array.__dlpack__(),
    "versioned capsule": lambda array: array.__dlpack__(max_version=(1, 0)),
    "through DLPack": lambda array: np.from_dlpack(array),
    "pickle buffer": lambda array: pickle.PickleBuffer(array),
    "struct": lambda array: array.__array_struct__,
    "base": lambda array: array.base,
    "list": lambda array: [array],
    "closure": lambda array: lambda: array,
    "method": lambda array: array.sum,
    "generator": in_a_generator,
    "cycle": in_a_cycle,
    "tensor": lambda array: tf.Tensor(array),
    "value of a tensor": lambda array: tf.Tensor(array).numpy(),
    "view of a value": lambda array: np.asarray(tf.Tensor(array))[1:].T,
    "capsule of a tensor": lambda array: tf.Tensor(array).__dlpack__(),
    "tensor through DLPack": lambda array: np.from_dlpack(tf.Tensor(array)),
    "tensor from DLPack": lambda array: tf.numpy.from_dlpack(array, copy=False),
    "part of a tensor": lambda array: tf.Tensor(array)[1:, ::2],
    "reshaped tensor": lambda array: tf.reshape(tf.Tensor(array), [-1]),
    "transposed tensor": lambda array: tf.transpose(tf.Tensor(array)),
    "identity": lambda array: tf.identity(tf.Tensor(array)),
    "stopped": lambda array: tf.stop_gradient(tf.Tensor(array)),
    "reference": lambda array: tf.Tensor(array).ref(),
}


@pytest.mark.parametrize("name", OWNERS)
def test_memory_is_not_used_again_while_anything_refers_to_it(name, kept):
    array = empty(SHAPE, FLOAT64)
    array[:] = np.arange(array.size).reshape(SHAPE)
    where, expected = address(array), array.copy()
    there = np.ctypeslib.as_array((ctypes.c_double * array.size).from_address(where))
    owner = OWNERS[name](array)
    del array
    gc.collect()
    others = [empty(SHAPE, FLOAT64) for _ in range(4)]
    for other in others:
        other.fill(np.nan)
    assert kept() == 0
    assert where not in map(address, others)
    np.testing.assert_array_equal(there, expected.reshape(-1))
    del owner
    gc.collect()
    assert kept() == 1
    assert address(empty(SHAPE, FLOAT64)) == where


def test_a_resized_array_is_refused_or_apart(kept):
    array = empty(SHAPE, FLOAT64)
    with pytest.raises(ValueError, match="resize"):
        array.resize((600, 600), refcheck=False)
    assert kept() == 0


def square(x):
    return tf.custom_gradient(lambda x: (x * x, lambda dy: dy * 2.0 * x))(x)


def inputs(count):
    rng = np.random.default_rng(count)
    return [rng.uniform(0.5, 1.5, SHAPE) for _ in range(count)]


def references_of_a_tape(array):
    """A tape in use, its results, and what closures and rules hold; and how they are read."""
    x = tf.constant(array)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            middle = tf.exp(tf.sin(x)) * tf.tanh(square(x))
            y = tf.reduce_sum(middle / (1.0 + tf.exp(-middle)))
        first = tape.gradient(y, x)
    view = first.numpy()[3:]
    return lambda: [first.numpy(), outer.gradient(first, x).numpy(), np.array(view), float(y)]


@pytest.mark.usefixtures("dirty")
def test_tapes_and_what_they_gave():
    arrays = inputs(5)
    now = [references_of_a_tape(array)() for array in arrays]
    for _ in range(2):
        second = [references_of_a_tape(array) for array in arrays]
        for read, expected in zip(second, now, strict=True):
            for result, value in zip(read(), expected, strict=True):
                np.testing.assert_array_equal(result, value)


@pytest.mark.usefixtures("dirty")
def test_results_are_the_same_without_it(monkeypatch):
    arrays = inputs(2)
    results = [references_of_a_tape(array)() for array in arrays]
    monkeypatch.setattr(memory, "MIN_KEPT_BYTES", 2**40)
    for array, values in zip(arrays, results, strict=True):
        for result, value in zip(references_of_a_tape(array)(), values, strict=True):
            np.testing.assert_array_equal(result, value)


@pytest.mark.usefixtures("dirty")
def test_variables_and_optimizers():
    def trained():
        w = tf.Variable(inputs(1)[0])
        seen = []
        adam = tf.optimizers.Adam(0.1)
        for _ in range(3):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(tf.tanh(w) * tf.tanh(w))
            adam.apply_gradients([(tape.gradient(y, w), w)])
            seen.append((w.numpy(), w.numpy().copy()))
            w[1:].assign(w[1:] * 2.0)
            w.assign_add(w)
        return [*seen, (w.numpy(), w.numpy().copy())]

    first, second = trained(), trained()
    for (view, copy), (other, _) in zip(first, second, strict=True):
        np.testing.assert_array_equal(view, copy)
        np.testing.assert_array_equal(view, other)


@pytest.mark.usefixtures("dirty")
def test_compiled_programs():
    @tf.function
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sort(tf.exp(-tf.sort(tf.sin(x)))) * x
        return y, tape.gradient(y, x), tf.transpose(y)

    kept = []
    for array in inputs(3) * 2:
        results = [tensor.numpy() for tensor in program(tf.constant(array))]
        assert all(np.isfinite(result).all() for result in results)
        kept.append((results, [result.copy() for result in results]))
    for results, copies in kept:
        for result, copy in zip(results, copies, strict=True):
            np.testing.assert_array_equal(result, copy)
    for (results, _), (again, _) in zip(kept[:3], kept[3:], strict=True):
        for result, other in zip(results, again, strict=True):
            np.testing.assert_array_equal(result, other)


def enlarged(example):
    """The operands of an elementwise example's operation, as large as memory that is kept."""
    shapes, rng = (SHAPE,) * len(example.operands), np.random.default_rng(5)
    return op_cases.elementwise_example(example.primitive, rng, shapes, example.params).operands


@pytest.mark.usefixtures("dirty")
@pytest.mark.parametrize("start", range(4))
def test_operations_write_all_of_their_results(start):
    """Every operation twice, other results of its size between: nothing is left of those."""
    names = [name for name, op in OPS.items() if op_cases.is_elementwise(op)]
    for name in names[start::4]:
        example = op_cases.examples(name)[0]
        operands = enlarged(example)
        with np.errstate(all="ignore"):
            first = np.asarray(example.primitive.run(*operands, **example.params))
            copy = first.copy()
            second = np.asarray(example.primitive.run(*operands, **example.params))
        np.testing.assert_array_equal(first, copy, name)
        np.testing.assert_array_equal(second, copy, name)


@pytest.mark.usefixtures("dirty")
@pytest.mark.parametrize(
    "program",
    [
        lambda x: tf.nn.softmax(x),
        lambda x: tf.nn.log_softmax(x, axis=0),
        lambda x: tf.cumsum(x, axis=1),
        lambda x: tf.gather(x, [5, 3] * 200),
        lambda x: x @ tf.transpose(x),
        lambda x: tf.linalg.matvec(x, x[0]) * x,
        lambda x: tf.where(x > 1.0, x, tf.exp(x)),
        lambda x: tf.cast(x, tf.float16) * 2,
        lambda x: x[::2] + x[1::2, ::-1],
    ],
)
def test_other_operations(program):
    (array,) = inputs(1)
    first = program(tf.constant(array)).numpy()
    copy = first.copy()
    second = program(tf.constant(array)).numpy()
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, copy)
    np.testing.assert_array_equal(second, copy)


def test_a_kernel_in_place_sees_other_arrays_in_the_same_memory():
    """Whether arrays overlap is not told from their owning what they show: they never do."""
    memory_block = empty((2 * 80_000,), FLOAT64)
    memory_block[:] = 1.0
    x, y = memory_block[:80_000], memory_block[1:80_001]
    add(x, y, out=x)
    assert (x == 2.0).all()
    assert (memory_block[80_000:] == 1.0).all()


# How much is kept --------------------------------------------------------------------------------


def sizes():
    return [size for size, pieces in memory._kept.items() for _ in pieces]


def pages(count):
    return -(-(8 * count + LINE) // PAGE) * PAGE


def test_there_is_a_limit_and_what_was_unused_for_longest_makes_way():
    for counts in ([150_000, 100_000], [150_000], [120_000, 100_000]):
        arrays = [empty((count,), FLOAT64) for count in counts]
        del arrays
    assert sum(sizes()) <= memory.MAX_KEPT_BYTES
    assert sorted(sizes()) == [pages(count) for count in (100_000, 120_000, 150_000)]
    arrays = [empty((200_000,), FLOAT64)]
    del arrays
    assert sorted(sizes()) == [pages(count) for count in (100_000, 120_000, 200_000)]
    empty((2**19,), FLOAT64)  # more than all that may be kept
    assert sorted(sizes()) == [pages(count) for count in (100_000, 120_000, 200_000)]


def test_latest_first():
    first, second = (empty(SHAPE, FLOAT64) for _ in range(2))
    where = address(first)
    del second, first
    assert address(empty(SHAPE, FLOAT64)) == where


def test_memory_serves_its_size_alone_nearly(kept):
    empty((90_000,), FLOAT64)
    array = empty((89_999,), FLOAT64)
    assert kept() == 0
    other = empty((45_000,), FLOAT64)
    del array
    assert kept() == 1
    assert other.nbytes + LINE <= other.base._piece[1].nbytes < other.nbytes + LINE + PAGE


def test_it_is_freed_on_demand(kept):
    array = empty(SHAPE, FLOAT64)
    piece = weakref.ref(array.base._piece[1])
    del array
    assert kept() == 1
    assert piece() is not None
    memory.clear()
    assert kept() == 0
    assert piece() is None


def test_chains_are_computed_in_few_pieces(kept, monkeypatch):
    sizes = []
    fresh = np.empty
    monkeypatch.setattr(memory, "MAX_KEPT_BYTES", 2**30)

    def counted(size, dtype):
        sizes.append(size)
        return fresh(size, dtype)

    def run():
        x = tf.constant(array)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.cos(tf.exp(tf.tanh(tf.sin(x)))))
        return tape.gradient(y, x)

    (array,) = inputs(1)
    run()
    monkeypatch.setattr(memory.np, "empty", counted)
    run()
    assert 8 * 90_000 not in sizes
    assert pages(90_000) not in sizes


FAULTS = """
import resource
import numpy as np
import tinygrad_cg as tf
from tinygrad_cg_kernels.runtime import tiers

@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

def run(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(log1pexp(x))
    return tape.gradient(y, x)

for size in (20_000, 60_000, 100_000, 1_000_000, 6_000_000):
    x = tf.constant(np.linspace(-1.0, 1.0, size))
    for _ in range(2 * tiers.TIER_UP_CALLS if size < 200_000 else 10):
        run(x)
    tiers.wait()  # what compiles takes memory
    counts = [0]
    for _ in range(15):
        run(x)
        counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    print(int(np.median(np.diff(counts))))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what other allocators do is theirs")
def test_a_repeated_gradient_needs_no_new_pages_from_the_system(monkeypatch):
    for name in os.environ:
        if "MALLOC" in name:
            monkeypatch.delenv(name)
    counts = [int(count) for count in run_python(FAULTS).stdout.split()]
    assert len(counts) == 5
    assert max(counts) < 20, counts  # the least array has 40 pages


# Threads, forks, ends ----------------------------------------------------------------------------


def test_threads(kept):
    def work(number):
        for _ in range(200):
            arrays = [empty(SHAPE, FLOAT64) for _ in range(1 + number % 3)]
            for k, array in enumerate(arrays):
                array.fill(10 * number + k)
            if any((array != 10 * number + k).any() for k, array in enumerate(arrays)):
                return False
        return True

    with ThreadPoolExecutor(4) as workers:
        assert all(workers.map(work, range(4)))
    assert kept() >= 1
    assert sum(sizes()) <= memory.MAX_KEPT_BYTES
    addresses = [where for pieces in memory._kept.values() for where, _ in pieces]
    assert len(addresses) == len(set(addresses))


def test_a_loan_that_ends_where_its_thread_holds_the_lock(kept):
    array = empty(SHAPE, FLOAT64)
    piece = weakref.ref(array.base._piece[1])
    cycle = in_a_cycle(array)
    del array
    assert cycle
    with memory._lock:
        del cycle
        gc.collect()
        assert piece() is None
        assert empty(SHAPE, FLOAT64).shape == SHAPE
    assert kept() == 0
    empty(SHAPE, FLOAT64)
    assert kept() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("locked", [False, True])
def test_a_forked_child_goes_on(locked):
    array = empty(SHAPE, FLOAT64)
    array.fill(3.0)
    empty(SHAPE, FLOAT64)
    taken, ready = threading.Event(), threading.Event()

    def hold_lock():
        with memory._lock:
            ready.set()
            taken.wait(30)

    thread = threading.Thread(target=hold_lock)
    if locked:
        thread.start()
        ready.wait(30)

    def go_on():
        for _ in range(2):
            others = [empty(SHAPE, FLOAT64) for _ in range(3)]
            for other in others:
                other.fill(1.0)
            del other, others
        return bool((array == 3.0).all())

    try:
        run_in_child(go_on)
    finally:
        taken.set()
        if locked:
            thread.join()
    assert (array == 3.0).all()


AT_THE_END = """
import sys, threading, types
import numpy as np
import tinygrad_cg as tf
from tinygrad_cg_kernels.runtime import memory

def array():
    return memory.empty((200_000,), np.dtype(float))

kept = array()
tensor = tf.exp(tf.zeros(300_000))
here = threading.local()
here.array = array()
cycle = [array()]
cycle.append(cycle)
module = types.ModuleType("module")
module.array = array()
sys.modules["module"] = module
sys.array = array()
tf.array = np.array = memory.array = array()
memory._BufferOwner.array = array()
generator = (item for item in [array(), array()])
next(generator)
def quit(kept=array()):
    return array()
import atexit
atexit.register(quit)
print("done")
"""


OF_THE_PROCESS = """
import gc, sys
before = gc.get_freeze_count(), gc.isenabled(), sys.getswitchinterval()
import tinygrad_cg as tf
from tinygrad_cg_kernels.runtime.memory import keep_heap
assert keep_heap.cache_info().misses == 0
tf.grad(tf.sin)(1.0)
assert keep_heap.cache_info().misses == 1
assert (gc.get_freeze_count(), gc.isenabled(), sys.getswitchinterval()) == before
"""


def test_an_import_leaves_the_process_as_it_is():
    run_python(OF_THE_PROCESS)


def test_nothing_is_said_when_the_interpreter_ends():
    done = run_python("-W", "error", "-c", AT_THE_END, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "done", "")
