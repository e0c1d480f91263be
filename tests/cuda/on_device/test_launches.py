"""Kernels that are kept ready: what their launches give the driver, with a driver of Python."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp
from tests.cuda.on_device.test_programs import LABELS, MATRIX, VECTOR, cross_entropy
from tests.cuda.on_device.test_programs import totals as program_of_totals
from tests.support.stand_ins import cupy as simulated
from tinygrad_cg._core import devices
from tinygrad_cg_kernels.cuda import adapter, launches

pytestmark = pytest.mark.skipif(
    devices.count_gpus() > 0 and not adapter.simulated(), reason="replaces the driver"
)


class Driver:
    """Reads the arguments of a launch where the driver would, and runs the simulated kernel."""

    def __init__(self):
        self.loaded, self.launched = [], []

    def load(self, kernel, kinds):
        self.loaded.append((kernel, kinds))
        return kernel, kinds

    def launch(self, loaded, blocks, threads, room):
        kernel, kinds = loaded
        count = sum(
            7 if isinstance(kind, np.dtype) else 1 if kind is None else kind for kind in kinds
        )
        addresses = (ctypes.c_uint64 * count).from_address(room)
        words = iter([ctypes.c_int64.from_address(address).value for address in addresses])
        arguments = []
        for kind in kinds:
            if isinstance(kind, np.dtype):
                arguments.append(self.memory(kind, [next(words) for _ in range(7)]))
            else:
                fields = tuple([next(words) for _ in range(1 if kind is None else kind)])
                arguments.append(fields[0] if kind is None else fields)
        self.launched.append((blocks, threads))
        adapter.launch(kernel, blocks, arguments, threads)

    @staticmethod
    def memory(dtype, words):
        unused, parent, count, size, pointer, length, step = words
        assert (unused, parent) == (0, 0)
        assert (count, size) == (length, step)
        assert size == dtype.itemsize
        data = {"shape": (count,), "typestr": dtype.str, "strides": None, "version": 3}
        whole = simulated.ndarray(
            np.asarray(simulated._Address({**data, "data": (pointer, False)}, None))
        )
        return simulated.Memory(whole, 0, count)


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(adapter, "driver", lambda: driver)
    return driver


def test_elementwise_kernels_get_their_arguments(driver):
    x, v = tf.constant(MATRIX), tf.constant(VECTOR)
    for left, other in [(x, x), (x, v), (tf.transpose(x)[1:, ::-2], tf.constant(2.0))]:
        want = tf.math.atan2(left, other)
        result = tf.math.atan2(left.gpu(), other.gpu())
        np.testing.assert_allclose(result.cpu().numpy(), want.numpy(), rtol=1e-6)
    flat, strided = [kinds for _, kinds in driver.loaded][:2]
    assert flat == (None, *[np.dtype("f")] * 3)
    assert strided[:2] == (None, 2)


def test_a_kernel_is_loaded_once_for_arguments_of_the_same_kinds(driver):
    x = tf.constant(MATRIX).gpu()
    first, wide = tf.math.asinh(x), tf.cast(x, tf.float64)
    rows = x[1:]
    loaded, launched = len(driver.loaded), len(driver.launched)
    np.testing.assert_array_equal(tf.math.asinh(rows).cpu(), first.cpu()[1:])
    assert (len(driver.loaded), len(driver.launched)) == (loaded, launched + 1)
    tf.math.asinh(wide)
    assert (len(driver.loaded), len(driver.launched)) == (loaded + 1, launched + 2)


def test_lookups_check_their_indices_in_the_same_launch(driver):
    x, i = tf.constant(MATRIX).gpu(), tf.constant([[0, -1], [5, 2]]).gpu()
    for look_up, want in [
        (lambda x: tf.gather(x, i), MATRIX[[[0, -1], [5, 2]]]),
        (lambda x: tf.gather(tf.transpose(x), i, axis=1), MATRIX.T[:, [[0, -1], [5, 2]]]),
        (lambda x: tf.gather(x[:2, ::-2], i % 3, axis=1, batch_dims=1), None),
        (lambda x: tnp.take_along_axis(x[:2], i % 5, 1), None),
    ]:
        look_up(x)
        launched = len(driver.launched)
        result = look_up(x)
        assert len(driver.launched) - launched == (1 if want is not None else 2)  # one for %
        if want is not None:
            np.testing.assert_array_equal(result.numpy(), want)
    late = tf.gather(x, i + 1)
    with pytest.raises(IndexError, match="gather: index 6 is out of bounds for size 6"):
        late.numpy()


def test_programs_get_their_arguments(driver):
    for program, *arrays in [
        (tf.value_and_grad(cross_entropy), MATRIX, LABELS),
        (program_of_totals, MATRIX),
    ]:
        compiled = tf.function(program)
        operands = [tf.constant(array) for array in arrays]
        wanted = tf.nest.flatten(compiled(*operands))
        for _ in range(2):  # at the second call all is ready
            loaded = len(driver.loaded)
            results = tf.nest.flatten(compiled(*[operand.gpu() for operand in operands]))
            for want, got in zip(wanted, results, strict=True):
                np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), 5e-6, 5e-6)
        assert len(driver.loaded) == loaded


@pytest.mark.parametrize("error", [OSError, TypeError, AttributeError])
def test_errors_of_compiler_and_driver_are_not_swallowed(driver, monkeypatch, error):
    def load(kernel, kinds):
        raise error("no such version")

    monkeypatch.setattr(driver, "load", load)
    x = tf.constant([[0.5, 2.0]]).gpu()
    for operation in (tf.math.acosh, tf.reduce_sum, tf.nn.softmax, tf.cumsum):
        with pytest.raises(error, match="no such version"):
            operation(x)


# The library's own driver, on packages of Python ------------------------------------------------


class Packages:
    """What the library uses of cuda.core and CuPy; `error` is what a launch raises."""

    error = None

    def __init__(self):
        self.calls = []
        self.ObjectCode = self.Device = self.cuda = self.driver = self

    compute_capability = 9, 0

    def from_ptx(self, text):
        self.calls.append(("text", text))
        return self

    def LinkerOptions(self, arch, ptxas_options):
        return arch

    def Linker(self, code, options):
        self.calls.append(("link", options))
        return self

    def link(self, kind):
        assert kind == "cubin"
        return self

    code = b"code"

    def get_info_log(self):
        return ""

    def from_cubin(self, code):
        self.calls.append(("load", code))
        return self

    def get_kernel(self, name):
        self.calls.append(("kernel", name))
        return self

    handle = 77

    def __call__(self, number):
        self.calls.append(("device", number))
        return self

    def set_current(self):
        self.calls.append(("current",))

    def get_current_stream(self):
        return self

    ptr = 5

    def launchKernel(self, *arguments):
        if self.error:
            raise self.error
        self.calls.append(arguments)


def test_the_driver_is_called_with_the_address_of_the_arguments(monkeypatch):
    packages = Packages()
    text = ".version 8.0\n.visible .entry _Z6kernel_1$(\n\t.param .u64 a\n)\n{}"
    compiled = []

    class Numba:
        @staticmethod
        def compile_ptx(function, signature, cc):
            assert cc == (9, 0)
            compiled.append((function, signature))
            return text, None

    class Function:
        py_func = staticmethod(print)

    monkeypatch.setattr(adapter, "cuda", Numba)
    monkeypatch.setattr(adapter, "array_module", lambda: packages)
    real = adapter.Driver(packages)
    monkeypatch.setattr(adapter, "driver", lambda: real)
    array = simulated.asarray(np.arange(6.0))
    vector = launches.Place(array.dtype, 3, 16)
    prepared = [launches.Prepared(Function, 8, [count, (1, 2), vector]) for count in (3, 4)]
    for launch in prepared:
        launch([array])
    ((function, signature),) = compiled
    assert function is print
    assert [str(parameter) for parameter in signature] == [
        *("int64", "UniTuple(int64 x 2)", "array(float64, 1d, C)")
    ]
    device = ("device", 0), ("current",)
    linked = ("text", text.encode()), ("link", "sm_90")
    loaded = ("load", b"code"), ("kernel", "_Z6kernel_1$")
    assert packages.calls[:-2] == [*device, *linked, *loaded, *device]
    first, second = packages.calls[-2:]
    assert first[:-2] == second[:-2]
    *sizes, room, extra = second
    assert sizes == [77, 8, 1, 1, adapter.THREADS, 1, 1, 0, 5]
    assert extra == 0
    addresses = (ctypes.c_uint64 * 10).from_address(room)
    words = [ctypes.c_int64.from_address(address).value for address in addresses]
    assert words == [4, 1, 2, 0, 0, 3, 8, array.data.ptr + 16, 3, 8]
    packages.error = RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")
    with pytest.raises(RuntimeError, match=r"8 blocks of 4 threads: CUDA_ERROR_OUT_OF_MEMORY"):
        prepared[0]([array])


def test_kernels_of_early_versions_have_a_private_handle(monkeypatch):
    packages = Packages()
    packages.get_kernel = lambda name: SimpleNamespace(_handle=78)
    monkeypatch.setattr(adapter, "_key_of", lambda *_: None)
    monkeypatch.setattr(adapter, "compile_ptx", lambda *_: ("kernel", ""))
    handle, _ = adapter.Driver(packages).load(SimpleNamespace(py_func=print), ())
    assert handle == 78


def test_the_simulator_has_no_driver():
    assert adapter.driver() is None


@pytest.mark.parametrize("waits", [True, False])
def test_the_simulator_shows_that_a_barrier_is_missing(waits):
    """Threads take turns in one order, then in the other: neither hides what is not written yet."""

    def kernel(written, seen):
        i = cuda.threadIdx.x
        for turn in range(2):
            written[turn, i] = 1
            if waits:
                cuda.syncthreads()
            seen[turn, i] = written[turn, max(i - 1, 0)]
            cuda.syncthreads()

    written, seen = np.zeros((2, 2, 4))
    cuda.jit(kernel)[1, 4](written, seen)
    assert seen.tolist() == [[1, 1, 1, 1], [1, 1, 1, 1] if waits else [1, 0, 0, 0]]
