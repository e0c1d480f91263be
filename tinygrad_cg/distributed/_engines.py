"""This process, executors and Dask clusters: where blocks are computed, and in which order."""

from __future__ import annotations

import functools
import itertools
import os
import pickle
import sys
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import BlockError
from ._data_blocks import BlockSum, Evaluation, failure, naming, pack, read


class Engine(NamedTuple):
    """An executor, or None for this process; and its client, if it is a Dask cluster."""

    executor: Any
    client: Any = None

    @property
    def is_remote(self) -> bool:
        return self.executor is not None

    @property
    def pickles(self) -> bool:
        """Whether functions are sent to other processes."""
        return self.is_remote and not isinstance(self.executor, ThreadPoolExecutor)

    @property
    def workers(self) -> int:
        client = self.client or getattr(self.executor, "_client", None)
        if client is not None:
            return max(sum(client.nthreads().values()), 1)
        counts = [getattr(self.executor, name, None) for name in ("_max_workers", "num_workers")]
        return next((count for count in counts if isinstance(count, int)), os.cpu_count() or 1)


def find_engine(name: str, executor: Any, of_dask: bool = False) -> Engine:
    """Return the engine for an argument `executor`; TypeError if it is of another kind."""
    if executor is None and of_dask and "distributed" in sys.modules:
        with suppress(ValueError):  # there is no current client
            executor = sys.modules["distributed"].default_client()
    if executor is not None and hasattr(executor, "get_executor"):
        if getattr(executor, "asynchronous", False):
            raise TypeError(f"{name}: executor= is asynchronous: pass a synchronous client")
        return Engine(executor.get_executor(pure=False), executor)
    has_interface = callable(getattr(executor, "submit", None))
    if executor is not None and (isinstance(executor, type) or not has_interface):
        raise TypeError(
            f"{name}: executor= must be None, a Dask client, or have the interface of "
            f"concurrent.futures.Executor, got {executor!r}"
        )
    return Engine(executor)


def run_in_order(
    name: str, task: Callable[..., Any], rows: Generator[tuple], engine: Engine
) -> Generator[Any]:
    """Yield ``task(index, *row)`` of each row, in their order, and close `rows`."""
    if not engine.is_remote:
        indices = itertools.count()
        with closing(_read_ahead(name, rows)) as ahead:
            for row in ahead:
                result = task(next(indices), *row)
                row = None  # its memory is for the next one
                yield result
        return
    pending: deque[tuple[int, Any]] = deque()
    limit = 2 * engine.workers
    with closing(rows):
        try:
            for index in itertools.count():
                row = _next(name, index, rows)
                if row is not None:
                    pending.append((index, engine.executor.submit(task, index, *row)))
                while pending and (row is None or len(pending) >= limit):
                    first, future = pending.popleft()
                    with naming(name, first):  # its worker was lost, say
                        result = future.result()
                    yield result
                if row is None:
                    return
        finally:
            for _, future in pending:
                future.cancel()


def _next(name: str, index: int, rows: Iterator[tuple], reads: bool = False) -> tuple | None:
    """Return the next row; None after the last."""
    with naming(name, index):
        row = next(rows, None)
        return tuple(map(read, row)) if reads and row is not None else row


def _read_ahead(name: str, rows: Generator[tuple]) -> Generator[tuple]:
    """Yield rows with their files read; a thread reads the next row meanwhile."""
    with closing(rows), ThreadPoolExecutor(1, "tinygrad_cg-read") as reader:
        following = reader.submit(_next, name, 0, rows, True)
        for index in itertools.count(1):
            row = following.result()
            if row is None:
                return
            following = reader.submit(_next, name, index, rows, True)
            yield row
            row = None


# Dask ----------------------------------------------------------------------------------------

GROUP = 8
"""Results that a task adds up, or at last this process. It is a power of 2. The scheduler takes
milliseconds for each task."""

SMALL = 2**16
"""Bytes of a function with its parameters that are sent with every block."""


def run_on_dask(client: Any, task: Evaluation, rows: list[tuple], add_up: BlockSum) -> Any:
    """Return the sum over blocks, or their rows, computed by the workers of a cluster."""
    if not rows:
        return None
    dask = import_module("dask")
    content = pack(task.name, task)
    prefix = f"{task.name}-{uuid.uuid4().hex}"
    delayed = functools.partial(dask.delayed, pure=False)
    # large parameters go to a worker once, and from there to others; to another if it is lost
    evaluate = delayed(task) if len(content) <= SMALL else delayed(pickle.loads)(content)
    parts: Any = [
        evaluate(index, *row, dask_key_name=f"{prefix}-{index}") for index, row in enumerate(rows)
    ]
    while add_up.reduction != "rows" and len(parts) > GROUP:  # groups add up as pairs would
        groups = (parts[i : i + GROUP] for i in range(0, len(parts), GROUP))
        parts = [delayed(add_up)(group) for group in groups]
    threshold = "distributed.admin.large-graph-warning-threshold"  # it is for data in the graph
    limit = import_module("dask.utils").parse_bytes(dask.config.get(threshold))
    with dask.config.set({threshold: limit + 2 * len(content)}):
        futures = client.compute(parts)
    try:
        results = client.gather(futures)
    except BlockError:
        raise
    except Exception as error:
        index = None
        with suppress(Exception):  # the scheduler may be lost
            keys = [future.key for future in futures]
            index = client.run_on_scheduler(_find_block, keys, prefix)
        raise failure(task.name, index, error, False) from error
    finally:
        if running := [future for future in futures if not future.done()]:
            client.cancel(running)
    return add_up(results)


def _find_block(keys: list[str], prefix: str, dask_scheduler: Any = None) -> int | None:
    """Return the index of the block that failed, or that needs the task that did."""
    tasks = [dask_scheduler.tasks.get(key) for key in keys]
    left = [task.exception_blame for task in tasks if task and task.exception_blame]
    seen = set(left)
    while left:
        task = left.pop()
        if str(task.key).startswith(prefix):
            return int(task.key.rpartition("-")[2])
        left += task.dependents - seen
        seen |= task.dependents
    return None
