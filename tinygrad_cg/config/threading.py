"""The number of threads that kernels use on large arrays; results have the same bits on any."""

from tinygrad_cg_kernels.runtime import threads

from .._ops.validation import as_int

__all__ = ["get_intra_op_parallelism_threads", "set_intra_op_parallelism_threads"]
__dir__ = __all__.copy  # what dir() shows


def get_num_threads() -> int:
    """Return the number of threads that large kernels use: 1 in a forked child process.

    Examples
    --------
    >>> tf.get_num_threads() >= 1
    True
    """
    return threads.get_num_threads()


def set_num_threads(num_threads: int) -> None:
    """Set the number of threads that large kernels use, for all threads of the process.

    The default is TINYGRAD_CG_NUM_THREADS in the environment, or NUMBA_NUM_THREADS (by default the
    number of cores). Raises ValueError for more than NUMBA_NUM_THREADS, or less than 1.
    """
    threads.set_num_threads(as_int("set_num_threads", "num_threads", num_threads))


def get_intra_op_parallelism_threads() -> int:
    """Return the number of threads that large kernels use, as `set_num_threads` set it."""
    return get_num_threads()


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Call `set_num_threads`; 0 means the default."""
    set_num_threads(num_threads or threads.default_threads())
