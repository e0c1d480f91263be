"""The caches of compiled programs, on disk and in memory."""

from tinygrad_cg_kernels.runtime import memory, service

from .._core import devices
from .._function.codegen import buffers

__all__ = ["clear_cache"]
__dir__ = __all__.copy  # what dir() shows


def clear_cache() -> None:
    """Delete the compiled code of all programs that `function` has fused.

    Programs of this process, and of others, stay in use; later ones are compiled anew. They are in
    the folder TINYGRAD_CG_CACHE_DIR (by default the user's cache folder), where those that were not
    used for longest make way beyond TINYGRAD_CG_CACHE_LIMIT bytes (256 MiB). The operations' own
    kernels stay. Memory that programs keep between calls, or for large arrays to come, is freed,
    also that of a GPU.
    """
    service.clear_programs()
    buffers.clear()
    memory.clear()
    devices.clear()
