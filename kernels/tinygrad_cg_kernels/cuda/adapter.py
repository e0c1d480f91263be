"""The only module that imports numba.cuda or CuPy. All other modules use them through this one.

In Numba's CUDA simulator, kernels run as Python, and the tests replace CuPy. Work goes to the
current stream of the thread, by default to the default stream, which waits for CuPy's other
streams; and they wait for it.
"""

import contextlib
import os
import re
import shutil
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from math import prod
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np

from tinygrad_cg_frontend import Untranslatable
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import numba_backend, service
from tinygrad_cg_kernels.runtime.store import Store

cuda: Any = None  # numba.cuda; None on platforms that Numba has no CUDA for
with contextlib.suppress(ImportError), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Numba's module warns that numba-cuda replaces it
    from numba import cuda
    from numba.core import config

MIN_QUIET_BLOCKS = 128  # Numba warns of grids with fewer blocks

_launching = threading.Lock()  # the simulator runs one kernel at a time
_first_use = threading.RLock()  # other threads wait until the driver and its packages are ready


def simulated() -> bool:
    """Return whether device code runs in Numba's CUDA simulator."""
    return cuda is not None and bool(getattr(config, "ENABLE_CUDASIM", False))


THREADS, MAX_BLOCKS = (4, 2) if simulated() else (256, 32768)
"""In a block of the library's kernels, a power of two, and in a grid: threads loop over the rest.
In the simulator, each thread is a thread of Python."""


def device_count() -> int:
    """Return how many GPUs there are: 0 without a driver, 1 in the simulator.

    Warns once, and returns 0, if there is a driver and its GPUs cannot be used.
    """
    with _first_use:
        return 1 if simulated() else _count() if cuda is not None else 0


_NO_GPU = "library cannot be found", "CUDA is disabled", "NO_DEVICE"  # nothing to use


@cache
def _count() -> int:
    own, nvvm = cuda.cudadrv.driver.driver, cuda.cudadrv.nvvm
    try:
        if not own.is_available:
            reason = str(own.initialization_error)
            if any(text in reason for text in _NO_GPU):
                return 0
        elif nvvm.is_available() or (_find_toolkit() and nvvm.is_available()):
            driver()  # its packages are imported here
            return len(cuda.gpus)
        else:
            reason = "libNVVM, NVIDIA's compiler library, is missing: install the extra cuda13"
    except Exception as error:  # whatever a broken installation raises
        reason = f"{type(error).__name__}: {error}"
    warnings.warn(
        f"NVIDIA's driver is installed, but its GPUs cannot be used, so operations run on the CPU: "
        f"{reason.strip()}",
        RuntimeWarning,
        stacklevel=2,
    )
    return 0


def _find_toolkit() -> bool:
    """Name the folder of the toolkit whose `nvcc` is in the path, if no variable names one."""
    nvcc = shutil.which("nvcc")
    if nvcc is None or any(name in os.environ for name in ("CUDA_HOME", "CUDA_PATH")):
        return False
    os.environ["CUDA_HOME"] = str(Path(nvcc).resolve().parent.parent)
    return True


@cache
def array_module() -> Any:
    """Return the library of device arrays, imported by the first call."""
    try:
        import cupy  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "arrays on a GPU need CuPy: install the extra cuda12 or cuda13 of tinygrad_cg, "
            "whichever version of CUDA the driver has"
        ) from error
    return cupy


def linalg_errors() -> contextlib.AbstractContextManager[None]:
    """Return a context in which functions of matrices raise LinAlgError, as in NumPy.

    By default, CuPy's functions do not check on the GPU whether they found a result.
    """
    import cupyx  # pyright: ignore[reportMissingImports]

    return cupyx.errstate(linalg="raise")


def device_number(pointer: int) -> int:
    """Return the number of the GPU that has an address; 0 for that of an empty array."""
    if not pointer:
        return 0
    return array_module().cuda.runtime.pointerGetAttributes(pointer).device


# Streams ---------------------------------------------------------------------------------------


def stream() -> Any:
    """Return the current stream of this thread, as kernels of users are launched on it."""
    return _stream_at(array_module().cuda.get_current_stream().ptr)


@lru_cache(maxsize=64)  # Numba finds a configuration again by the identity of its stream
def _stream_at(pointer: int) -> Any:
    return cuda.external_stream(pointer) if pointer else cuda.default_stream()


def synchronize() -> None:
    """Wait until this thread's stream has done its work."""
    array_module().cuda.get_current_stream().synchronize()


# Compiling and launching -----------------------------------------------------------------------


@cache
def load_array_functions() -> None:
    """Load the module of numba-cuda that its compiler needs for arrays.

    Version 0.30 names a function there that NumPy 2.5 no longer has: `np.row_stack`, an alias.
    """
    name: Any = "row_stack"
    with _first_use, contextlib.suppress(ImportError):  # Numba's own module has no such part
        if simulated() or hasattr(np, name):
            return
        setattr(np, name, np.vstack)
        try:
            import numba.cuda.np.arrayobj  # pyright: ignore[reportMissingImports]  # noqa: F401
        finally:
            delattr(np, name)


def device_kernel(function: Callable) -> Any:
    """Return a kernel for the device. Its module must have this module's `cuda` as a global."""
    load_array_functions()
    numba_backend.register_helpers()
    return cuda.jit(_silent(function) if simulated() else function)


def _silent(function: Callable) -> Callable:
    """Return a kernel that runs as Python without warnings, as compiled code does."""
    errstate = np.errstate

    def kernel(*arguments: Any) -> None:
        with errstate(all="ignore"):
            function(*arguments)

    scope = function.__globals__  # where the simulator replaces `cuda`
    return FunctionType(kernel.__code__, scope, closure=kernel.__closure__)


def scalar_function(function: Callable, kernel: Callable | None = None) -> Callable:
    """Return a scalar function as device code calls it.

    In the simulator, it runs as Python on NumPy scalars. If it calls something that cannot run as
    Python, the CPU's `kernel` for arrays replaces it, or the function is compiled for the CPU.
    """
    compiled = build.scalar_function(function)
    return _simulated_function(function, compiled, kernel) if simulated() else compiled


@cache
def _simulated_function(function: Callable, device: Callable, kernel: Callable | None) -> Callable:
    numba_backend.register_helpers()
    compiled: Callable | None = None
    if build.is_ours(function):  # what a user wrote has to be Python
        compiled = numba.njit(**numba_backend.FLAGS)(device)
        if kernel is not None:
            compiled = lambda *numbers: kernel(*map(np.asarray, numbers))[()]  # noqa: E731

    def call(*numbers: Any) -> Any:
        try:
            return device(*numbers)
        except (NotImplementedError, TypeError):  # an intrinsic; `-` of two truths
            if compiled is None:
                raise
            return compiled(*numbers)

    return call


@cache
def device_function(function: Callable) -> Callable:
    """Return a helper of the library as device code calls it; in the simulator, the function."""
    return function if simulated() else cuda.jit(device=True)(function)


def in_kernels() -> Any:
    """Return the `cuda` for functions that kernels call: the simulator replaces that of kernels."""
    return _InKernel() if simulated() else cuda


class _InKernel:
    def __getattr__(self, name: str) -> Any:
        from numba.cuda.simulator import kernel

        return getattr(kernel._get_kernel_context(), name)


def blocks_for(count: int) -> int:
    """Return the number of blocks for `count` elements."""
    return min(-(-count // THREADS), MAX_BLOCKS)


def launch(kernel: Any, blocks: Any, arguments: Sequence[Any], block: Any = None) -> None:
    """Launch a kernel by Numba on the stream of this thread: one of a user, or in the simulator.

    The number of blocks, and that of threads in a block, is a number or a tuple of up to three.
    """
    block, arguments = block or THREADS, [*map(_argument, arguments)]
    if simulated():

        def run(*arguments: Any) -> None:
            with _launching:
                kernel[blocks, block](*arguments)

        array_module().cuda.get_current_stream().run(run, arguments)
    else:
        load_array_functions()
        _configured(kernel, blocks, block, stream())(*arguments)


def _argument(value: Any) -> Any:
    """Return a device array as Numba's kernels take it; anything else as it is."""
    if simulated() and isinstance(value, array_module().ndarray):
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

        return FakeCUDAArray(value._host)
    if hasattr(value, "__cuda_array_interface__"):
        return cuda.as_cuda_array(value, sync=False)  # the work is on the same stream
    return value


def _configured(kernel: Any, blocks: Any, block: Any, stream: Any) -> Any:
    """Return ``kernel[blocks, block, stream]``, without Numba's warning of a grid with few blocks.

    A setting, or a filter of warnings, would affect all threads. So this is a copy, with the right
    number of blocks, of a configuration for a large grid, which Numba caches.
    """
    from numba.cuda.errors import normalize_kernel_dimensions

    grid, block = normalize_kernel_dimensions(blocks, block)
    if prod(grid) >= MIN_QUIET_BLOCKS:
        return kernel[grid, block, stream]
    large = kernel[MIN_QUIET_BLOCKS, block, stream]
    configured = object.__new__(type(large))
    configured.__dict__.update(large.__dict__, griddim=grid)
    return configured


class Driver:
    """NVIDIA's driver: the package cuda.core, which numba-cuda needs, loads; CuPy launches."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._threads = threading.local()

    def load(self, kernel: Any, kinds: Sequence[Any]) -> tuple[int, Any]:
        """Return the driver's handle of a kernel, compiled for kinds of arguments or from the disk.

        The second result owns the kernel, and has to live as long. See `launches` for kinds.
        """
        device = self._core.Device(0)
        device.set_current()
        capability = tuple(device.compute_capability)
        key = _key_of(kernel.py_func, (capability, *kinds))
        stored = key and _store.read(key)
        if stored:
            name, code = stored[0]["entry"], stored[1]
        else:
            name, text = compile_ptx(kernel.py_func, kinds, capability)
            code, _ = self.link(text, capability)
            if key:
                _store.write(key, {"entry": name}, code)
        loaded = self._core.ObjectCode.from_cubin(code).get_kernel(name)
        handle = loaded.handle if hasattr(loaded, "handle") else loaded._handle  # of early versions
        return int(handle), loaded

    def link(self, text: str, capability: tuple[int, int]) -> tuple[bytes, str]:
        """Return the machine code of a PTX text for a capability, and what the linker says of it.

        So the driver need not read the version of PTX that Numba writes.
        """
        arch = "sm_{}{}".format(*capability)
        options = self._core.LinkerOptions(arch=arch, ptxas_options=["-v"])
        linker = self._core.Linker(self._core.ObjectCode.from_ptx(text.encode()), options=options)
        return bytes(linker.link("cubin").code), linker.get_info_log()

    def launch(self, loaded: tuple[int, Any], blocks: int, block: int, room: int) -> None:
        """Launch a kernel on the stream of this thread. `room` has its arguments' addresses."""
        if not hasattr(self._threads, "known"):
            self._core.Device(0).set_current()
            self._threads.known = True
        cuda = array_module().cuda
        pointer = cuda.get_current_stream().ptr
        try:
            cuda.driver.launchKernel(loaded[0], blocks, 1, 1, block, 1, 1, 0, pointer, room, 0)
        except RuntimeError as error:
            raise RuntimeError(
                f"the driver did not launch a kernel of {blocks} blocks of {block} threads: {error}"
            ) from error


@cache
def driver() -> Driver | None:
    """Return the driver for kernels of the library; None in the simulator."""
    if simulated():
        return None
    from cuda import core  # pyright: ignore

    if not hasattr(core, "Linker"):  # before version 0.5
        from cuda.core import experimental as core  # pyright: ignore
    return Driver(core)


_store = Store("device")


def _key_of(function: Callable, kinds: Any) -> str | None:
    """Return the name of a kernel's code on disk; None for a kernel with a user's function."""
    try:
        return f"{service.identity(function)} {kinds} {version('numba-cuda')} {numba.__version__}"
    except Untranslatable:
        return None


def argument_type(kind: Any) -> Any:
    """Return Numba's type for a kind of argument (see `launches`)."""
    if isinstance(kind, np.dtype):
        return numba.types.Array(numba.from_dtype(kind), 1, "C")
    return numba.types.int64 if kind is None else numba.types.UniTuple(numba.types.int64, kind)


def compile_ptx(
    function: Callable, kinds: Sequence[Any], capability: tuple[int, int]
) -> tuple[str, str]:
    """Return the name of a kernel for kinds of arguments, and its PTX text."""
    text, _ = cuda.compile_ptx(function, tuple(map(argument_type, kinds)), cc=capability)
    (name,) = re.findall(r"\.visible\s+\.entry\s+([\w$]+)", text)
    return name, text
