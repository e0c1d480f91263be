"""Graph and gradients: everything is recorded, no tape is needed.

Follows ``tf.gradients`` and ``tf.Graph`` of TensorFlow 2.21, but computes at once: a
Graph records every operation that runs while it is the default graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tinygrad_cg_kernels.runtime.locks import ForkLock

from .. import nest
from .._core import levels
from .._core.kinds import is_differentiable
from .._core.levels import State, Token, state
from .._core.record import find, watch_tensor
from .._ops.creation import fill_zeros
from .arguments import check_source, check_upstream, flat_targets, wants_zeros
from .sweep import differentiate
from .variable import Variable

_lock = ForkLock()


class Graph(levels.Listener):
    """Records all operations while it is the default: ``with Graph().as_default():``.

    It stores nothing itself; each tensor keeps its own record while it exists.
    """

    def __init__(self) -> None:
        self._token = Token()
        self._token.everything = True
        self._variables: dict[str, Variable] = {}  # those of compat.v1.get_variable, by name

    def __del__(self) -> None:
        token = getattr(self, "_token", None)
        if token is not None:
            token.alive = False

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Return a context whose operations belong to this graph."""
        self._enter()
        try:
            yield self
        finally:
            self._leave()

    def _enter(self) -> None:
        levels.push(self._token)
        state.listeners.append(self)
        state.graphs.append(self)

    def _leave(self) -> None:
        levels.remove(self._token)
        levels.remove_listener(self)
        state.graphs.remove(self)

    def variable_read(self, variable: Variable) -> None:
        """Take note that a Variable is about to be read."""
        if is_differentiable(variable.dtype) and find(variable._rec, self._token) is None:
            watch_tensor(variable, self._token)


def default_graph() -> Graph | None:
    """Return the graph that operations of this thread belong to; None in eager mode."""
    return state.graphs[-1] if state.graphs else None


def disable_eager_execution() -> None:
    """Record all later operations, in this thread and in threads that start later."""
    with _lock:
        if State.base is None:
            State.base = Graph()
        if state.base_graph is None:
            state.base_graph = State.base
            state.base_graph._enter()


def enable_eager_execution() -> None:
    """Undo `disable_eager_execution`, in this thread and in threads that start later.

    A thread that runs already continues recording until it calls this function.
    """
    with _lock:
        State.base = None
        graph, state.base_graph = state.base_graph, None
        if graph is not None:
            graph._leave()


def executing_eagerly() -> bool:
    """Return True without a default graph: operations are then recorded only for tapes.

    Examples
    --------
    >>> tf.executing_eagerly()
    True
    """
    return default_graph() is None


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = "none",
) -> list[Any]:
    """Return the gradients of the sum of `ys` with respect to each of `xs`, as a list.

    Parameters
    ----------
    ys, xs:
        A tensor or a (nested) list of tensors.
    grad_ys:
        The upstream gradient of each of `ys`; ones by default, or where an entry is None.
    stop_gradients:
        Tensors to treat as constants.
    unconnected_gradients:
        "none" or "zero": the gradient if no y depends on an x.

    Works if every operation is recorded: inside ``with Graph().as_default():``, or after
    ``compat.v1.disable_eager_execution()``. Elsewhere it raises RuntimeError. Modelled on
    ``tf.gradients``.

    Examples
    --------
    >>> with tf.Graph().as_default():
    ...     x = tf.constant(3.0)
    ...     found = tf.gradients(x * x, x)
    >>> found[0].numpy()
    np.float32(6.0)
    """
    graph = default_graph()
    if graph is None:
        raise RuntimeError(
            "tf.gradients is not supported when eager execution is enabled. Use "
            "tf.GradientTape instead, or run this inside `with Graph().as_default():`, or after "
            "`compat.v1.disable_eager_execution()`."
        )
    zero = wants_zeros(unconnected_gradients)
    targets, sources = flat_targets(ys), nest.flatten(xs)
    stopped = [] if stop_gradients is None else nest.flatten(stop_gradients)
    for source in (*sources, *stopped):
        check_source(source)
    upstream = None if grad_ys is None else check_upstream(grad_ys, targets, optional=True)
    results, _ = differentiate(graph._token, targets, upstream, sources, stopped)
    return fill_zeros(sources, results) if zero else results
