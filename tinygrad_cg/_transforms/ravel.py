"""ravel_tree: a nested structure of tensors as one vector, for optimizers of vectors."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from .. import nest
from .._core.conversion import convert, promote
from .._core.tensor import Tensor
from .._ops.creation import zeros
from .._ops.indexing import getitem
from .._ops.shape import cast, concatenate, reshape
from ..errors import InvalidArgumentError


def ravel_tree(tree: Any) -> tuple[Tensor, Callable[[Any], Any]]:
    """Return a vector of all numbers in `tree`, and a function that turns a vector into a tree.

    Parameters
    ----------
    tree:
        A nested structure (`nest`) of tensors, Variables, arrays and numbers.

    Returns
    -------
    A 1-D tensor of the common dtype of the leaves, in the order of ``nest.flatten``; and
    ``unravel(vector)``, which gives the structure with tensors of the leaves' shapes and
    dtypes, from a 1-D tensor or array of that size. Both can be differentiated, to any order.

    For ``scipy.optimize``, whose vectors are float64 arrays: start from ``ravel_tree(params)``
    and call ``unravel`` in the objective. Raises TypeError for leaves that are not numbers,
    InvalidArgumentError in `unravel` for a vector of another shape.

    Modelled on ``jax.flatten_util.ravel_pytree``, but `unravel` casts.

    Examples
    --------
    >>> flat, unravel = tf.ravel_tree({"a": tf.constant([1.0, 2.0]), "b": tf.constant(3.0)})
    >>> flat.numpy()
    array([1., 2., 3.], dtype=float32)
    >>> unravel(flat * 10.0)["b"].numpy()
    np.float32(30.0)
    """
    leaves = [convert(leaf) for leaf in nest.flatten(tree)]
    shapes = [tuple(leaf.shape) for leaf in leaves]
    dtypes = [leaf.dtype for leaf in leaves]
    ends = list(itertools.accumulate((leaf.size for leaf in leaves), initial=0))

    def unravel(vector: Any) -> Any:
        tensor = convert(vector)
        if tensor.shape != (ends[-1],):
            raise InvalidArgumentError(
                f"unravel: needs a vector of {ends[-1]} elements, got shape {tuple(tensor.shape)}"
            )
        parts = [
            cast(reshape(getitem(tensor, slice(start, end)), shape), dtype)
            for start, end, shape, dtype in zip(ends, ends[1:], shapes, dtypes, strict=False)
        ]
        return nest.pack_sequence_as(tree, parts)

    if not leaves:
        return zeros(0), unravel
    dtype = functools.reduce(promote, dtypes)
    return concatenate([reshape(cast(leaf, dtype), (-1,)) for leaf in leaves]), unravel
