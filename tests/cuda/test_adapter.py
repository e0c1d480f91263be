"""What the adapter asks of Numba's CUDA target, as far as that needs no GPU."""

import os
import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numba import NumbaPerformanceWarning

from tinygrad_cg._core import devices
from tinygrad_cg_kernels.cuda import adapter

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(sys.platform == "darwin", reason="Numba has no CUDA there"),
]


@pytest.fixture
def launched(monkeypatch):
    """The grids and blocks of kernels that are launched, and not run."""
    calls = []

    def call(kernel, arguments, grid, *rest):
        if rest:  # Numba's own target; with numba-cuda the configuration itself
            calls.append((arguments, grid, rest[0]))
        else:
            calls.append((arguments, grid.griddim, grid.blockdim))

    monkeypatch.setattr(type(adapter.device_kernel(write)), "call", call)
    monkeypatch.setattr(adapter, "stream", lambda: 0)
    return calls


def write(x):
    x[0] = 1


def test_launches_of_few_blocks_do_not_warn(launched):
    kernel = adapter.device_kernel(write)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for blocks in (1, 4, 127, 128, 500, 4):
            adapter.launch(kernel, blocks, ["x"])
            adapter.launch(kernel, blocks, ["x"], 32)
    wanted = [(blocks, size) for blocks in (1, 4, 127, 128, 500, 4) for size in (256, 32)]
    assert launched == [(("x",), (blocks, 1, 1), (size, 1, 1)) for blocks, size in wanted]


def test_grids_of_users_have_up_to_three_dimensions(launched):
    kernel = adapter.device_kernel(write)
    for blocks, threads in [((1, 2), (4, 2)), ((2, 3, 4), 32), ((16, 16), 1)]:
        adapter.launch(kernel, blocks, ["x"], threads)
    assert [grid for _, grid, _ in launched] == [(1, 2, 1), (2, 3, 4), (16, 16, 1)]
    assert [block for *_, block in launched] == [(4, 2, 1), (32, 1, 1), (1, 1, 1)]
    with pytest.warns(NumbaPerformanceWarning, match="Grid size 4 "):
        kernel[4, 32]  # Numba's own launches still warn


def test_streams_of_an_address_are_the_same_object(monkeypatch):
    monkeypatch.setattr(adapter, "cuda", Streams())
    stream = SimpleNamespace(ptr=0)
    cuda = SimpleNamespace(get_current_stream=lambda: stream)
    monkeypatch.setattr(adapter, "array_module", lambda: SimpleNamespace(cuda=cuda))
    adapter._stream_at.cache_clear()
    default = adapter.stream()
    stream.ptr = 5
    other = adapter.stream()
    assert (default, other) == (["default"], [5])
    assert adapter.stream() is other
    stream.ptr = 0
    assert adapter.stream() is default
    adapter._stream_at.cache_clear()


class Streams:
    """Numba's makers of streams, each with its own identity."""

    def external_stream(self, pointer):
        return [pointer]

    def default_stream(self):
        return ["default"]


class Toolkit:
    """What the adapter asks of Numba's CUDA target: a driver, and the compiler's library."""

    packages = True

    def __init__(self, error="", compiler=True, gpus=1):
        self.cudadrv = self.driver = self.nvvm = self
        self.is_driver, self.initialization_error = not error, error
        self.compiler, self.gpus, self.asked = compiler, [None] * gpus, 0

    @property
    def is_available(self):
        return Answer(self)

    def load_driver(self):
        if self.packages is None:
            raise ModuleNotFoundError("No module named 'cuda'")


class Answer:
    """Whether there is a driver, and as a function whether there is a compiler."""

    def __init__(self, toolkit):
        self.toolkit = toolkit

    def __bool__(self):
        return self.toolkit.is_driver

    def __call__(self):
        self.toolkit.asked += 1
        return self.toolkit.compiler or "CUDA_HOME" in os.environ


@pytest.fixture
def count(monkeypatch):
    """The number of GPUs that the adapter counts with a toolkit."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)

    def of(toolkit, nvcc=None):
        monkeypatch.setattr(adapter, "cuda", toolkit)
        monkeypatch.setattr(adapter, "driver", toolkit.load_driver)
        monkeypatch.setattr(adapter.shutil, "which", lambda name: nvcc)
        return adapter._count.__wrapped__()

    return of


def test_gpus_are_counted(count):
    assert count(Toolkit(gpus=2)) == 2
    for error in ("CUDA driver library cannot be found.", "CUDA_ERROR_NO_DEVICE: no device"):
        assert count(Toolkit(error)) == 0


def test_a_gpu_that_cannot_be_used_is_told(count):
    with pytest.warns(RuntimeWarning, match="cannot be used.*CUDA_ERROR_UNKNOWN"):
        assert count(Toolkit("Error at driver init: CUDA_ERROR_UNKNOWN (999)")) == 0
    with pytest.warns(RuntimeWarning, match="libNVVM, NVIDIA's compiler library, is missing"):
        assert count(Toolkit(compiler=False)) == 0
    broken = Toolkit()
    broken.packages = None
    with pytest.warns(RuntimeWarning, match="ModuleNotFoundError: No module named 'cuda'"):
        assert count(broken) == 0
    broken = Toolkit()
    del broken.gpus
    with pytest.warns(RuntimeWarning, match="AttributeError: .*gpus"):
        assert count(broken) == 0


def test_the_toolkit_of_nvcc_is_used_where_no_other_has_a_compiler(count, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", "")  # put back after the test
    monkeypatch.delenv("CUDA_HOME")
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch()
    assert count(Toolkit(compiler=False), str(nvcc)) == 1
    assert os.environ["CUDA_HOME"] == str(tmp_path / "cuda")


def in_two_threads(function, first_is_inside, second_is_done):
    """Call a function in two threads, the second when the first is inside; return the results."""
    results = []
    first = threading.Thread(target=lambda: results.append(function()))
    first.start()
    assert first_is_inside.wait(60)
    second = threading.Thread(target=lambda: (results.append(function()), second_is_done.set()))
    second.start()
    for thread in (first, second):
        thread.join(60)
    return results


class SlowToolkit(Toolkit):
    """A driver that is not ready before it has told whether it is."""

    def __init__(self):
        super().__init__()
        self.is_asked, self.is_counted = threading.Event(), threading.Event()
        self.is_ready = False

    @property
    def is_available(self):
        if self.is_asked.is_set() and not self.is_ready:
            raise RuntimeError("CUDA_ERROR_NOT_INITIALIZED")
        self.is_asked.set()
        self.is_ready = self.is_ready or not self.is_counted.wait(0.1)
        return Answer(self)


def test_threads_wait_for_the_first_use_of_the_driver(monkeypatch):
    toolkit = SlowToolkit()
    monkeypatch.setattr(adapter, "cuda", toolkit)
    monkeypatch.setattr(adapter, "driver", toolkit.load_driver)
    monkeypatch.setattr(adapter, "simulated", lambda: False)
    adapter._count.cache_clear()
    results = in_two_threads(adapter.device_count, toolkit.is_asked, toolkit.is_counted)
    adapter._count.cache_clear()
    assert results == [1, 1]


def test_threads_wait_until_the_functions_of_arrays_are_loaded(monkeypatch):
    is_loading, is_done, returned_early = threading.Event(), threading.Event(), []

    class Finder:
        def find_spec(self, name, path, target=None):
            if name.startswith("numba.cuda.np"):
                is_loading.set()
                returned_early.append(is_done.wait(0.1))

    monkeypatch.setattr(adapter, "simulated", lambda: False)
    monkeypatch.delattr(np, "row_stack", raising=False)
    for name in [name for name in sys.modules if name.startswith("numba.cuda.np")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    in_two_threads(adapter.load_array_functions.__wrapped__, is_loading, is_done)
    assert returned_early
    assert not any(returned_early)
    assert not hasattr(np, "row_stack")


def test_the_library_of_arrays_is_there_after_its_classes(monkeypatch):
    class Library:
        @property
        def ndarray(self):
            assert devices._library is None  # other threads would use it without its classes
            return Library

    monkeypatch.setattr(devices, "_library", None)
    monkeypatch.setattr(devices, "array_types", ())
    monkeypatch.setattr(adapter, "array_module", Library)
    assert type(devices.library()) is Library
    assert devices.array_types == (Library,)
