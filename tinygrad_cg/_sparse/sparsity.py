"""The positions of a matrix where a derivative may be other than zero."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tinygrad_cg_kernels.sparse import index_sets

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


class SparsityPattern:
    """The entries of a matrix that may be nonzero, in compressed rows.

    Row i has the columns ``indices[indptr[i] : indptr[i + 1]]``, sorted and without duplicates.
    The arrays are read-only: `indptr` is int64 of shape (rows + 1,), `indices` int32 of shape
    (nnz,). Modelled on ``scipy.sparse.csr_array``.

    Examples
    --------
    >>> pattern = tf.SparsityPattern.of([[1.0, 0.0], [2.0, 3.0]])
    >>> pattern
    <SparsityPattern 2 x 2, 3 entries>
    >>> pattern.indices
    array([0, 0, 1], dtype=int32)
    """

    __slots__ = ("indices", "indptr", "shape")

    def __init__(self, indptr: Any, indices: Any, shape: tuple[int, int]):
        """Take sorted rows without duplicates, unchecked; `of` checks and sorts."""
        self.shape: tuple[int, int] = shape
        self.indptr: np.ndarray = np.asarray(indptr, _INT64)
        self.indices: np.ndarray = np.asarray(indices, _INT32)
        for name in ("indptr", "indices"):
            view = getattr(self, name)[:]
            view.flags.writeable = False
            setattr(self, name, view)

    @classmethod
    def of(cls, x: Any) -> SparsityPattern:
        """Return the pattern of `x`.

        `x` is one of: a pattern; a matrix or array of ``scipy.sparse`` (stored zeros count); a
        dense array with two axes (its nonzero elements); a triple ``(indptr, indices, shape)``,
        whose rows may be unsorted and may have duplicates. Raises TypeError and ValueError where
        `x` is none of these.

        Examples
        --------
        >>> tf.SparsityPattern.of(([0, 2, 3], [1, 0, 1], (2, 2))).toarray()
        array([[ True,  True],
               [False,  True]])
        """
        if isinstance(x, cls):
            return x
        if type(x).__module__.startswith("scipy.sparse"):
            if len(x.shape) != 2:
                raise ValueError(f"SparsityPattern.of: expected a matrix, got shape {x.shape}")
            rows = x.tocsr()
            return _checked(rows.indptr, rows.indices, rows.shape)
        if isinstance(x, tuple) and len(x) == 3 and isinstance(x[2], (tuple, list)):
            return _checked(*x)
        array = np.asarray(x)
        if array.dtype.kind not in "biufc":
            raise TypeError(
                "SparsityPattern.of: expected a pattern, an array of scipy.sparse, a dense array "
                f"or (indptr, indices, shape), got {type(x).__name__}"
            )
        if array.ndim != 2:
            raise ValueError(f"SparsityPattern.of: expected two axes, got shape {array.shape}")
        indptr = index_sets.starts(np.count_nonzero(array, axis=1))
        return SparsityPattern(indptr, np.nonzero(array)[1], (array.shape[0], array.shape[1]))

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.indices.size

    @property
    def density(self) -> float:
        """The number of entries divided by rows times columns; 0.0 for an empty matrix."""
        return self.nnz / max(self.shape[0] * self.shape[1], 1)

    @property
    def table(self) -> index_sets.Table:
        """`indptr` and `indices`, as the kernels take them."""
        return self.indptr, self.indices

    def rows(self) -> np.ndarray:
        """Return the row of each entry, as int64 of shape (nnz,)."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def toarray(self) -> np.ndarray:
        """Return the pattern as a dense array of bool."""
        dense = np.zeros(self.shape, bool)
        dense[self.rows(), self.indices] = True
        return dense

    def csr(self) -> Any:
        """Return the pattern as a ``scipy.sparse.csr_array`` of bool; ImportError without SciPy."""
        sparse = import_scipy("SparsityPattern.csr", "indptr and indices")
        entries = np.ones(self.nnz, bool), self.indices, self.indptr
        return sparse.csr_array(entries, shape=self.shape)

    def transposed(self) -> SparsityPattern:
        """Return the pattern of the transposed matrix."""
        rows, columns = self.shape
        return SparsityPattern(*index_sets.transpose_rows(self.table, columns), (columns, rows))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparsityPattern):
            return NotImplemented
        same = self.shape == other.shape and np.array_equal(self.indptr, other.indptr)
        return bool(same and np.array_equal(self.indices, other.indices))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        entries = "entry" if self.nnz == 1 else "entries"
        return f"<SparsityPattern {self.shape[0]} x {self.shape[1]}, {self.nnz} {entries}>"


def _checked(indptr: Any, indices: Any, shape: Any) -> SparsityPattern:
    """Return the pattern of compressed rows that may be unsorted; an error if they are invalid."""
    name = "SparsityPattern.of"
    shape, indptr, indices = tuple(shape), np.asarray(indptr), np.asarray(indices)
    if len(shape) != 2 or any(size != int(size) or size < 0 for size in shape):
        raise ValueError(f"{name}: shape must be (rows, columns), got {shape}")
    rows, columns = map(int, shape)
    for label, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise TypeError(
                f"{name}: {label} must be integers with one axis, got {array.dtype} of shape "
                f"{array.shape}"
            )
    if columns > 2**31 - 1:
        raise ValueError(f"{name}: at most 2**31 - 1 columns, got {columns}")
    if indptr.size != rows + 1 or indptr[0] != 0 or indptr[-1] != indices.size:
        raise ValueError(
            f"{name}: indptr must have {rows + 1} numbers from 0 to {indices.size}, the number of "
            f"indices, got {indptr.size} numbers"
            + (f" from {indptr[0]} to {indptr[-1]}" if indptr.size else "")
        )
    lengths = np.diff(indptr.astype(_INT64))
    if lengths.size and lengths.min() < 0:
        raise ValueError(f"{name}: indptr must not decrease")
    if indices.size and not (indices.min() >= 0 and indices.max() < columns):
        raise ValueError(
            f"{name}: indices must be 0 .. {columns - 1}, got {indices.min()} .. {indices.max()}"
        )
    table = np.ascontiguousarray(indptr, _INT64), np.ascontiguousarray(indices, _INT32)
    units = index_sets.unit_rows(columns)
    return SparsityPattern(*index_sets.multiply_rows(table, units, columns), (rows, columns))


def import_scipy(name: str, instead: str) -> Any:
    """Return ``scipy.sparse``; ImportError without SciPy."""
    try:
        return importlib.import_module("scipy.sparse")
    except ImportError as error:
        raise ImportError(
            f"{name} needs SciPy: install it with `pip install scipy`, or use {instead}"
        ) from error
