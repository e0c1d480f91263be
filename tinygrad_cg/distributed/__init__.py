"""Derivatives of sums and means over data that no machine holds at once, block by block.

``distributed.value_and_grad(loss, over=(X, y))`` is a function of the parameters. `loss` is written
for a block of the data: ``loss(w, x_block, y_block)``. Blocks come from Dask's arrays, dataframes
and bags, from lists of files, from arrays on disk or from any iterable. They are computed in this
process, on a Dask cluster, or by an executor with the interface of ``concurrent.futures``.
The engine does the scheduling, transport and retries.

Results are added in a binary tree whose shape depends only on the number of blocks, and a block is
computed with one thread of BLAS. So results have the same bits for each engine and each number of
workers, on processors of the same kind.
"""

from __future__ import annotations

import functools as _functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

from .. import nest
from .._core.conversion import convert, is_tensor
from .._core.levels import is_alive, state
from .._core.record import find_tokens
from .._core.suggestions import refuse_name
from .._core.tracking import track
from .._ops.creation import constant
from .._ops.namespaces.namespace import spelled
from .._ops.validation import as_choice, check_function
from .._transforms.differentiable import Differentiable
from ..errors import InvalidArgumentError
from ._data_blocks import (
    BlockSource,
    BlockSum,
    Evaluation,
    blocks,
    call,
    compile_transform,
    files,
    pack,
)
from ._engines import find_engine, run_in_order, run_on_dask

__all__ = ["blocks", "files", "grad", "hessian", "hvp", "jacobian", "map", "value_and_grad"]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = _functools.partial(refuse_name, __name__)


def _over_blocks(name: str, doc: str):
    def transform(
        f: Callable[..., Any],
        *,
        over: Any,
        executor: Any = None,
        reduction: str = "sum",
        argnums: int | Sequence[int] = 0,
        allow_nan: bool = False,
    ) -> Callable[..., Any]:
        return _total(name, f, over, executor, reduction, argnums, allow_nan)

    transform.__doc__ = doc
    return spelled(transform, name)


value_and_grad = _over_blocks(
    "value_and_grad",
    """Return a function of the parameters that returns the value and gradient over all blocks.

    Parameters
    ----------
    f:
        A function of the parameters and a block to a real scalar: ``f(w, x_block, y_block)``. It is
        compiled with its derivative once in each process. Other processes get a pickled copy:
        lambdas and functions of a notebook need cloudpickle.
    over:
        The blocks: an iterable that can be read repeatedly, a function that returns an iterator,
        `blocks`, `files`, or a Dask array, dataframe or bag, whose partitions are the blocks. A
        tuple has several of these, which are read in parallel. If a block is a tuple, `f` gets
        several arguments; a dataframe becomes a dict of its columns, a list a stack.
    executor:
        The engine: None for this process, an executor with the interface of ``concurrent.futures``,
        or a Dask client. For Dask's collections, None is the current client, if any exists.
    reduction:
        ``"sum"`` adds the results of the blocks. ``"mean"`` is for an f that gives the mean of its
        block: it weights blocks by the lengths of the first axes of their first arrays. Blocks of
        length 0 are left out.
    argnums:
        The parameters to differentiate with respect to, as for ``tf.value_and_grad``.
    allow_nan:
        Whether a NaN in the result of a block is accepted.

    Results are arrays if the parameters are, otherwise tensors. They cover all blocks, or an error
    is raised: `BlockError` for a block that cannot be read, raises, or gives a NaN, and for a lost
    worker when the engine stops retrying. Its attribute `block` is the index, if it is known.
    TypeError or InvalidArgumentError for arguments of other kinds, and for parameters that a tape
    or another transformation watches.

    Examples
    --------
    >>> X, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 0.0, 2.0])
    >>> loss = lambda w, x, y: tf.reduce_sum((tf.linalg.matvec(x, w) - y) ** 2)
    >>> data = tf.distributed.blocks(X, y, size=2)
    >>> tf.distributed.value_and_grad(loss, over=data)(np.array([1.0, 0.5]))
    (np.float64(32.75), array([50., 65.]))
    """,
)
grad = _over_blocks(
    "grad",
    """Return a function of the parameters that returns the gradient over all blocks.

    See `value_and_grad` for arguments and errors.

    Examples
    --------
    >>> data = [np.array([1.0, 2.0]), np.array([3.0])]
    >>> loss = lambda w, x: tf.reduce_sum((x - w) ** 2)
    >>> tf.distributed.grad(loss, over=data)(np.array(1.0))
    np.float64(-6.0)
    """,
)
hvp = _over_blocks(
    "hvp",
    """Return a function of the parameters and a vector: the Hessian over all blocks, times it.

    The vector is as for ``tf.hvp``; see `value_and_grad` for arguments and errors.

    Examples
    --------
    >>> loss = lambda w, x: tf.reduce_sum(x * w**3)
    >>> product = tf.distributed.hvp(loss, over=[np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    >>> product(np.array([1.0, 1.0]), np.array([1.0, 0.0]))
    array([24.,  0.])
    """,
)
hessian = _over_blocks(
    "hessian",
    """Return a function of the parameters that returns the second derivatives over all blocks.

    They have the structure of ``tf.hessian``; see `value_and_grad` for arguments and errors.

    Examples
    --------
    >>> loss = lambda w, x: tf.reduce_sum(x * w**2)
    >>> tf.distributed.hessian(loss, over=[np.array([1.0, 2.0])] * 2)(np.array([1.0, 1.0]))
    array([[4., 0.],
           [0., 8.]])
    """,
)


def jacobian(
    f: Callable[..., Any],
    *,
    over: Any,
    executor: Any = None,
    argnums: int | Sequence[int] = 0,
    allow_nan: bool = False,
) -> Callable[..., Any]:
    """Return a function of the parameters that returns the Jacobian's rows of all blocks.

    ``f(w, block)`` returns tensors whose first axis counts the rows of a block. The result is
    ``tf.jacobian`` of each block, concatenated along that axis in the order of the blocks. It must
    fit into the memory of this process. See `value_and_grad` for other arguments and errors.

    Examples
    --------
    >>> data = [np.array([1.0, 2.0]), np.array([3.0])]
    >>> tf.distributed.jacobian(lambda w, x: w[0] * x + w[1], over=data)(np.array([2.0, 1.0]))
    array([[1., 1.],
           [2., 1.],
           [3., 1.]])
    """
    return _total("jacobian", f, over, executor, "rows", argnums, allow_nan)


def map(
    f: Callable[[Any], Any], many: Iterable[Any], *, executor: Any = None, label: str = "map"
) -> list[Any]:
    """Return ``[f(item) for item in many]``, computed by an executor, with progress.

    For ensembles, several starts of an optimiser, bootstraps and hyperparameters. `executor` is as
    for `value_and_grad`. If it takes longer than a second, a bar or lines on stderr say how many
    items are done, under the name `label`. `BlockError` names the item that raises.

    Examples
    --------
    >>> slope = tf.grad(lambda x: x**3)
    >>> [float(value) for value in tf.distributed.map(slope, [1.0, 2.0])]
    [3.0, 12.0]
    """
    check_function("map", f)
    if not isinstance(many, Iterable):
        raise TypeError(f"map: many must be iterable, got {type(many).__name__}")
    engine = find_engine("map", executor)
    task = _functools.partial(call, pack("map", f) if engine.pickles else f, engine.is_remote)
    with closing(run_in_order("map", task, ((item,) for item in many), engine)) as results:
        return [*track(results, label, getattr(many, "__len__", lambda: None)())]


def _total(
    name: str,
    f: Any,
    over: Any,
    executor: Any,
    reduction: str,
    argnums: Any,
    allow_nan: bool,
) -> Callable[..., Any]:
    """Return the function of the parameters that a transform makes of `f` and its data."""
    transform = Differentiable(name, f, argnums)
    if name != "jacobian":  # which has "rows"
        as_choice(name, "reduction", reduction, ("sum", "mean"))
    source, add_up = BlockSource(name, over), BlockSum(reduction)
    find_engine(name, executor)
    compiled = _functools.cache(lambda argnums: compile_transform(name, f, argnums))

    def total(*args: Any) -> Any:
        engine = find_engine(name, executor, source.of_dask)
        parameters, vector = (args[:-1], args[-1:]) if name == "hvp" else (args, ())
        _refuse_watched(name, nest.flatten(args))
        transform.sources(parameters)  # checks them
        numbers = tuple([number % len(parameters) for number in transform.argnums])
        chosen = numbers[0] if transform.single else numbers
        program = pack(name, (name, f, chosen)) if engine.pickles else compiled(chosen)
        values: Any = nest.map_structure(
            lambda leaf: convert(leaf).numpy() if is_tensor(leaf) else leaf, (parameters, vector)
        )
        task = Evaluation(
            name, program, values[0], values[1], reduction == "mean", allow_nan, engine.is_remote
        )
        if engine.client is not None and source.is_remote:
            result = run_on_dask(engine.client, task, [*source.rows()], add_up)
        else:
            with closing(run_in_order(name, task, source.read_rows(), engine)) as results:
                result = add_up(results)
        if result is None:
            raise InvalidArgumentError(f"{name}: over= has no blocks, or only empty ones")
        arrays = transform.are_arrays(parameters)
        return nest.map_structure(lambda leaf: leaf[()] if arrays else constant(leaf), result[1])

    total.__name__ = total.__qualname__ = f"{name}_over_blocks"
    return total


def _refuse_watched(name: str, leaves: Sequence[Any]) -> None:
    for leaf in leaves if state.frame is not None else ():
        if is_tensor(leaf) and is_alive(find_tokens(convert(leaf)._rec)):
            raise TypeError(
                f"{name}: a tape or transformation watches a parameter, but does not see the "
                "operations on blocks: pass arrays, as tensor.numpy() gives them, or declare the "
                "derivative by custom_gradient"
            )
