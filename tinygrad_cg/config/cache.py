"""The caches of compiled programs, on disk and in memory."""

from tinygrad_cg_kernels.runtime import memory, service

from .._core import devices
from .._function.codegen import buffers

__all__ = ["clear_cache"]
__dir__ = __all__.copy  # what dir() shows


def clear_cache() -> None:
    """Delete the compiled code of all programs that `function` has fused.

    Running processes keep their programs; later processes compile again. The code is in the folder
    TINYGRAD_CG_CACHE_DIR (by default the user's cache folder); beyond TINYGRAD_CG_CACHE_LIMIT bytes
    (256 MiB) the least recently used programs are deleted. Kernels of single operations stay.
    Memory that programs keep between calls, or for later large arrays, is freed, also on a GPU.
    """
    service.clear_programs()
    buffers.clear()
    memory.clear()
    devices.clear()
