"""Sparse Jacobians and Hessians: products for groups of columns or rows, and their entries."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime.memory import empty

from .. import nest
from .._core.conversion import convert, promote
from .._core.kinds import is_complex, is_exact
from .._core.levels import is_alive, stack, state
from .._core.record import find_tokens, narrow
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Aval, Tensor
from .._core.transformed import returns_transformed
from .._function.tracing.function import Function, function
from .._function.tracing.scans import map_fn
from .._function.tracing.signature import FunctionCall, Statics
from .._ops.creation import fill_zeros
from .._ops.elementwise import equal
from .._ops.indexing import gather
from .._ops.shape import cast, concatenate, reshape
from .._ops.validation import as_choice, as_count
from .._reverse.sweep import differentiate_once
from .._transforms.batching import vmap
from .._transforms.differentiable import Differentiable
from .._transforms.forward import ForwardAccumulator
from .._transforms.functional import gradient_function
from .._transforms.ravel import ravel_tree
from ..errors import InvalidArgumentError
from .colorings import Coloring, hessian_coloring, jacobian_coloring
from .sparsity import SparsityPattern, import_scipy
from .sparsity_detection import Detection

_MAX_PLANS = 32  # kept by one function
_MAX_ELEMENTS = 2**24  # of the products that one call of a program computes
_MAX_BATCH = 2**22
_CHECKS = 8  # random products that a pattern of the user has to give
_FORMATS = ("csr", "csc", "coo", "arrays")


@returns_transformed
@reads_own_arguments
def sparse_jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    pattern: Any = None,
    coloring: Any = None,
    mode: str = "auto",
    format: str = "csr",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `f` as a sparse matrix.

    Parameters
    ----------
    f:
        Returns nested real tensors. They are raveled in the order of ``nest.flatten``: these are
        the rows. `function` compiles it.
    argnums:
        The positional argument of the derivative, or several. Each may be nested; they
        are raveled one after the other, as by `ravel_tree`: these are the columns.
    pattern:
        Anything that `SparsityPattern.of` accepts. By default `jacobian_sparsity` finds it. At the
        first call with arguments of some shapes, the matrix times a random vector is compared with
        the derivative of `f` in that direction: a pattern that lacks entries is an error.
    coloring:
        A `Coloring`, or integers: colours of the columns, or of the rows for mode "reverse". By
        default `jacobian_coloring` finds it.
    mode:
        "forward" (a product with the matrix for each colour of the columns), "reverse" (with its
        transpose, for each colour of the rows), "both", or "auto" for the cheapest.
    format:
        "csr" (``scipy.sparse.csr_array``, with sorted indices), "csc", "coo", or "arrays": a tuple
        ``(data, indices, indptr)`` of compressed rows, which needs no SciPy.
    chunk_size:
        How many products one call of the program computes as a batch, which takes memory. By
        default the batch has at most 16 million elements. Products of a gradient, and products with
        more than four million elements together, are computed one after the other.

    The first call with arguments of some structure, shapes, dtypes and integer values creates the
    pattern, its colouring and the program, which are kept. The arguments' dtypes promote to the
    dtype of the result; for SciPy, float16 becomes float32. Entries of the pattern that are zero
    are stored. The result is an array of numbers and cannot be differentiated: arguments that a
    tape, `vmap` or another transform follows, and calls inside `function`, raise errors.

    Raises ImportError without SciPy (except for "arrays"), TypeError for complex arguments or
    outputs and for functions without a derivative, InvalidArgumentError for a pattern or colouring
    that does not fit, ValueError for other values of `mode` and `format`.

    After Curtis, Powell and Reid, "On the estimation of sparse Jacobian matrices" (1974), and
    Gebremedhin, Manne and Pothen, "What color is your Jacobian?" (2005).

    Examples
    --------
    >>> difference = lambda x: x[1:] ** 2 - x[:-1]
    >>> tf.sparse_jacobian(difference)(np.array([1.0, 2.0, 3.0])).toarray()
    array([[-1.,  4.,  0.],
           [ 0., -1.,  6.]])
    """
    own = "sparse_jacobian"
    as_choice(own, "mode", mode, ("auto", "forward", "reverse", "both"))
    return _SparseDerivative(own, f, argnums, pattern, coloring, mode, format, chunk_size).wrapped()


@returns_transformed
@reads_own_arguments
def sparse_hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    pattern: Any = None,
    coloring: Any = None,
    format: str = "csr",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that returns the Hessian of a scalar function `f` as a sparse matrix.

    Rows and columns are the raveled arguments. Both triangles are stored, with the same bits.
    `coloring` is a `Coloring` that is symmetric, or the colours of a star colouring; by default
    `hessian_coloring` finds it, for the pattern of `hessian_sparsity`. Each colour costs a product
    of the Hessian with a vector. Everything else is as in `sparse_jacobian`; an output that is not
    a scalar raises InvalidArgumentError.

    After Coleman and Moré, "Estimation of sparse Hessian matrices and graph coloring problems"
    (1984).

    Examples
    --------
    >>> chain = lambda x: tf.reduce_sum(x[1:] * x[:-1] ** 2)
    >>> tf.sparse_hessian(chain)(np.array([1.0, 2.0, 3.0])).toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]])
    """
    return _SparseDerivative(
        "sparse_hessian", f, argnums, pattern, coloring, "symmetric", format, chunk_size
    ).wrapped()


class _Chunk(NamedTuple):
    """A call of a program with some numbers of colours, and the entries that its products have."""

    program: Any
    number: Tensor
    entries: np.ndarray
    places: np.ndarray


class _Prepared(NamedTuple):
    """What is kept for one signature: a program for all entries, or chunks that give them."""

    coloring: Coloring
    program: Function[..., Any] | None
    chunks: list[_Chunk]
    indptr: np.ndarray
    dtype: np.dtype
    matrix: Any  # of SciPy, with these indices


class _SparseDerivative:
    """A sparse Jacobian or Hessian of a function, for arguments of any signature."""

    def __init__(
        self,
        name: str,
        f: Any,
        argnums: Any,
        pattern: Any,
        coloring: Any,
        mode: str,
        format: str,
        chunk_size: int | None,
    ):
        as_choice(name, "format", format, _FORMATS)
        if chunk_size is not None:
            as_count(name, "chunk_size", chunk_size, least=1)
        self.name, self.mode, self.format, self.chunk_size = name, mode, format, chunk_size
        self.scipy: Any = None if format == "arrays" else import_scipy(name, "format='arrays'")
        self.given = Differentiable(name, f, argnums)
        traced = f if isinstance(f, Function) else function(f)
        self.transform = Differentiable(name, traced, argnums)
        if mode == "symmetric":
            gradient = gradient_function(self.transform)
            self.transform = Differentiable(name, gradient, argnums)
        if isinstance(coloring, Coloring):
            if pattern is not None and SparsityPattern.of(pattern) != coloring.pattern:
                raise InvalidArgumentError(
                    f"{name}: coloring= and pattern= have different patterns"
                )
            pattern = coloring.pattern
        self.pattern = None if pattern is None else SparsityPattern.of(pattern)
        self.coloring = coloring
        self.statics = Statics(self.given.f, None, None)
        self.plans: dict[Any, _Prepared] = {}

    def wrapped(self) -> Callable[..., Any]:
        def transformed(*args: Any, **kwargs: Any) -> Any:
            levels = [level for level in stack(state.frame) if level.has_own_values]
            if levels and levels[-1].is_abstract:
                raise self._inside()
            return self._matrix(args, kwargs)

        return functools.update_wrapper(transformed, self.given.f, updated=())

    # The program -----------------------------------------------------------------------------

    def _products(
        self, by_rows: bool, numbers: Any, colors: Any, lines: int, call: tuple, is_batch: bool
    ) -> Any:
        """Return the products for colours, a row for each of `numbers`."""

        def run(number: Any) -> Any:
            seeds = functools.partial(self._seeds, equal(colors, number), not by_rows)
            return (self._row if by_rows else self._column)(seeds, *call)

        products = vmap(run)(numbers) if is_batch else map_fn(run, numbers)
        self._check_size(by_rows, products.shape[-1], lines)
        return products

    def _column(self, seeds: Callable[[list], list], args: tuple, kwargs: dict) -> Tensor:
        """Return the derivative in the direction of a colour's columns."""
        inner, sources = self.transform.sources(args)
        flat = nest.flatten(sources)
        with ForwardAccumulator(flat, seeds(flat)) as accumulator:
            output, _ = self.transform.run(inner, kwargs)
            targets = self.transform.tensors(output, real=True)
        return _join(accumulator.jvp(targets, "zero"), flat)

    def _row(self, seeds: Callable[[list], list], args: tuple, kwargs: dict) -> Tensor:
        """Return the gradient of the sum of a colour's rows."""
        token, sources, output, _ = self.transform.record(args, kwargs)
        targets, flat = self.transform.tensors(output, real=True), nest.flatten(sources)
        upstream = differentiate_once(token, targets, seeds(targets), flat)
        return _join(fill_zeros(flat, upstream), flat)

    def _seeds(self, marks: Tensor, is_columns: bool, like: list) -> list[Tensor]:
        """Return ones where a colour is marked, and zeros elsewhere."""
        flat, unravel = ravel_tree(like)
        self._check_size(is_columns, flat.shape[0], marks.shape[0])
        return unravel(marks)

    # A call ----------------------------------------------------------------------------------

    def _refuse_watched(self, leaves: list) -> None:
        """Raise TypeError for tensors whose derivatives the result would lose."""
        frame = state.frame
        if frame is None:
            return
        for leaf in [leaf for leaf in leaves if isinstance(leaf, Tensor)]:
            if narrow(leaf._rec, frame.group) is not None:
                raise TypeError(
                    f"{self.name}: a tape watches an input of {self.given.definition.name}, but "
                    "the result is an array of numbers, which has no gradient: pass "
                    "stop_gradient(x), or use jacobian or hessian"
                )
            is_followed = frame.level is not None and is_alive(find_tokens(leaf._rec))
            if is_followed or isinstance(leaf._data, Aval):
                raise self._inside()

    def _inside(self) -> TypeError:
        return TypeError(
            f"{self.name}: the result is an array of numbers, so it cannot be computed inside "
            "function, vmap, jvp or another transform that follows the arguments: call it outside, "
            "or use jacobian or hessian"
        )

    def _matrix(self, args: tuple, kwargs: dict) -> Any:
        inner, sources = self.given.sources([_shared(arg) for arg in args])
        self._refuse_watched(flat := nest.flatten(sources))
        call = FunctionCall(tuple(inner), kwargs, self.statics)
        self._refuse_watched(call.leaves)
        plan = self._find(call, flat)
        indices = plan.coloring.pattern.indices
        parts = self._values(plan, call.leaves), _copy(indices), _copy(plan.indptr)
        if self.format == "arrays":
            return parts
        if plan.dtype.itemsize == 2:  # SciPy has no float16
            parts = parts[0].astype(np.float32), *parts[1:]
        matrix = copy.copy(plan.matrix)  # takes half as long as to make and check another one
        matrix.data, matrix.indices, matrix.indptr = parts
        return matrix if self.format == "csr" else matrix.asformat(self.format)

    def _values(self, plan: _Prepared, leaves: list) -> np.ndarray:
        if plan.program is not None:
            return self._run(plan.program, *leaves)
        data = empty((plan.coloring.pattern.nnz,), plan.dtype)
        for program, number, entries, places in plan.chunks:
            data[entries] = self._run(program, number, *leaves).reshape(-1)[places]
        return data

    def _run(self, program: Callable[..., Any], *leaves: Any) -> np.ndarray:
        result = program(*leaves)
        self._refuse_watched([result])
        return result._data

    def _check_size(self, columns: bool, size: int, expected: int) -> None:
        if size != expected:
            noun, what = ("columns", "arguments") if columns else ("rows", "output")
            raise InvalidArgumentError(
                f"{self.name}: the pattern has {expected} {noun}, but the {what} of "
                f"{self.given.definition.name} {'have' if columns else 'has'} {size} elements"
            )

    # Plans -----------------------------------------------------------------------------------

    def _find(self, call: FunctionCall, sources: list[Tensor]) -> _Prepared:
        """Return the plan for a call, which is made at the first one."""
        values: list[bytes] = []  # the pattern depends on them
        if self.pattern is None:
            tensors = [leaf for leaf in call.leaves if isinstance(leaf, Tensor)]
            values = [x.numpy().tobytes() for x in tensors if is_exact(x.dtype)]
        key = call.key, *values
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = self._plan(call, sources)
            if len(self.plans) > _MAX_PLANS:
                del self.plans[next(iter(self.plans))]
        return plan

    def _plan(self, call: FunctionCall, sources: list[Tensor]) -> _Prepared:
        if not sources:
            raise ValueError(f"{self.name}: argnums selects no tensor that has a gradient")
        if any(is_complex(source.dtype) for source in sources):
            raise TypeError(
                f"{self.name}: {self.given.definition.name} has a complex argument: use jacobian"
            )
        pattern, is_unchecked = self.pattern, True
        if pattern is None:
            second = self.mode == "symmetric"
            detection = Detection(self.given, call.args, call.kwargs, None, second)
            pattern, is_unchecked = detection.pattern(), detection.flow.is_declared
        width = sum(source.size for source in sources)
        self._check_size(True, width, pattern.shape[1])
        indptr, indices = pattern.table
        if pattern.nnz < 2**31:
            indptr = indptr.astype(indices.dtype)
        dtype = functools.reduce(promote, [source.dtype for source in sources])
        coloring = self._color(pattern)
        program, chunks = self._programs(call, coloring)
        matrix = None
        if self.scipy is not None:
            parts = indices, indices, indptr  # each matrix gets its own, and other numbers
            matrix = self.scipy.csr_array(parts, shape=pattern.shape)
            matrix.has_canonical_format = True
        plan = _Prepared(coloring, program, chunks, indptr, dtype, matrix)
        if is_unchecked:
            self._check(plan, call)
        return plan

    def _programs(
        self, call: FunctionCall, coloring: Coloring
    ) -> tuple[Function[..., Any] | None, list[_Chunk]]:
        """Return the program for all entries; several, if its products take too much memory."""
        shape, products, lines = coloring.pattern.shape, coloring.products(), coloring.lines()
        sides = [(False, coloring.columns), (True, coloring.rows)]
        sides = [(by_rows, colors) for by_rows, colors in sides if colors is not None]
        chunks, places, total, base = [], np.zeros(lines.size, np.int32), 0, 0
        for by_rows, colors in sides:
            count = int(colors.max(initial=-1)) + 1
            batch = self.chunk_size or max(_MAX_ELEMENTS // max(shape[by_rows], 1), 1)
            # Transposed products scatter: in a batch, this takes longer than one after the other.
            is_linear = not by_rows and self.mode != "symmetric"
            is_batch = bool(self.chunk_size) or (is_linear and count * max(shape) <= _MAX_BATCH)
            batch = -(-count // max(-(-count // batch), 1))  # all calls take about as many
            colors = colors.astype(np.int8 if count < 64 else np.int32)  # fewer bytes to read
            program = self._program(call, by_rows, colors, shape[by_rows], is_batch)
            for k in range(0, count, max(batch, 1)):
                turn = products - (base + k)
                inside = np.flatnonzero((turn >= 0) & (turn < min(batch, count - k)))
                own = turn[inside] * np.int64(shape[by_rows]) + lines[inside]
                number = convert(np.arange(k, k + batch, dtype=colors.dtype))
                chunks.append(_Chunk(program, number, inside, own))
                places[inside] = total + own
                total += batch * shape[by_rows]
            base += count
        if total > _MAX_ELEMENTS or not 0 < len(chunks) <= len(sides):
            return None, chunks

        def read(*leaves: Any) -> Any:
            products = [part.program.python_function(part.number, *leaves) for part in chunks]
            return gather(concatenate([reshape(part, (-1,)) for part in products]), places)

        return function(read, autograph=False), []

    def _program(
        self, call: FunctionCall, by_rows: bool, colors: Any, lines: int, is_batch: bool
    ) -> Function[..., Any]:
        """Return the program that takes numbers of colours and the leaves of a call."""
        made_of = call.without_leaves()

        def products(numbers: Any, *leaves: Any) -> Any:
            filled = made_of.fill_leaves(leaves)
            return self._products(by_rows, numbers, colors, lines, filled, is_batch)

        return function(products, autograph=False)

    def _color(self, pattern: SparsityPattern) -> Coloring:
        coloring, is_symmetric = self.coloring, self.mode == "symmetric"
        if coloring is None and is_symmetric:
            return hessian_coloring(pattern)
        if coloring is None:
            return jacobian_coloring(pattern, self.mode)
        if not isinstance(coloring, Coloring):
            sides = {"reverse": (None, coloring), "both": coloring}.get(self.mode, (coloring,))
            return Coloring(pattern, *sides, symmetric=is_symmetric)
        if (coloring.mode == "symmetric") != is_symmetric:
            raise InvalidArgumentError(f"{self.name}: coloring has mode {coloring.mode!r}")
        return coloring

    def _check(self, plan: _Prepared, call: FunctionCall) -> None:
        """Compare sums of random columns (or rows) with products: the pattern may lack entries."""
        pattern, by_rows = plan.coloring.pattern, plan.coloring.columns is None
        data, ends = self._values(plan, call.leaves), (pattern.rows(), pattern.indices)
        lines, others = ends[::-1] if by_rows else ends
        count, made_of = pattern.shape[by_rows], call.without_leaves()

        @function(autograph=False)
        def derivative(marks: Any, *leaves: Any) -> Any:
            filled = made_of.fill_leaves(leaves)
            return self._products(by_rows, np.ones(1, np.int8), marks, count, filled, True)[0]

        sizes = np.bincount(lines, abs(data), count)
        generator, tolerance = np.random.default_rng(0), np.sqrt(np.finfo(plan.dtype).eps)
        for _ in range(_CHECKS):
            marks = generator.integers(0, 2, pattern.shape[not by_rows]).astype(np.int8)
            product = self._run(derivative, convert(marks), *call.leaves)
            sums = np.bincount(lines, data * marks[others], count)
            wrong = abs(sums - product) > tolerance * (sizes + abs(product))  # False for NaN
            if wrong.any():
                source = "pattern=" if self.pattern else "a pattern of declare_sparsity"
                raise InvalidArgumentError(
                    f"{self.name}: {source} lacks an entry of "
                    f"{'column' if by_rows else 'row'} {int(wrong.argmax())} that is not "
                    "zero, so other entries would be wrong. Pass no pattern, or compare it with "
                    "jacobian at a small size"
                )


def _shared(arg: Any) -> Any:
    """Return an argument without a copy: nothing keeps it."""
    is_array = type(arg) is np.ndarray and arg.dtype.char in "df"
    return convert(arg, copy=False) if is_array else arg


def _copy(array: np.ndarray) -> np.ndarray:
    """Return a copy that the caller may write to, in memory that is used again."""
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _join(tensors: Sequence[Tensor], sources: Sequence[Tensor]) -> Tensor:
    """Return all elements as a vector, in the dtype in which those of the sources meet."""
    return cast(ravel_tree(tensors)[0], functools.reduce(promote, [x.dtype for x in sources]))
