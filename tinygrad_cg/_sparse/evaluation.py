"""Sparse Jacobians and Hessians: products for groups of columns or rows, and their entries."""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.sparse.coloring import decompress

from .. import nest
from .._core.conversion import convert, promote
from .._core.kinds import is_complex, is_exact
from .._core.levels import state
from .._core.record import narrow
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from .._core.transformed import returns_transformed
from .._function.tracing.function import Function, function
from .._function.tracing.scans import map_fn
from .._function.tracing.signature import FunctionCall, Statics
from .._ops.creation import fill_zeros
from .._ops.elementwise import equal
from .._ops.indexing import gather
from .._ops.shape import cast, concatenate, reshape
from .._reverse.sweep import differentiate_once
from .._transforms.batching import vmap
from .._transforms.differentiable import Differentiable
from .._transforms.forward import ForwardAccumulator
from .._transforms.functional import gradient_function
from ..errors import InvalidArgumentError
from .colorings import Coloring, check_choice, hessian_coloring, jacobian_coloring
from .sparsity import SparsityPattern, import_scipy
from .sparsity_detection import Detection

_MAX_PLANS = 16  # kept by one function
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

    The pattern, its colouring and the program are made at the first call with arguments of some
    structure, shapes, dtypes and integer values, and kept. The arguments' dtypes promote to the
    dtype of the result; for SciPy, float16 becomes float32. Entries of the pattern that are zero
    are stored. The result is an array of numbers and cannot be differentiated: arguments that a
    tape watches, and calls inside `function`, `vmap` and other transforms, raise errors.

    Raises ImportError without SciPy (but for "arrays"), TypeError for complex arguments or outputs
    and for functions without a derivative, InvalidArgumentError for a pattern or colouring that
    does not fit, ValueError for other values of `mode` and `format`.

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
    check_choice(own, "mode", mode, ("auto", "forward", "reverse", "both"))
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
    own = "sparse_hessian"
    return _SparseDerivative(
        own, f, argnums, pattern, coloring, "symmetric", format, chunk_size
    ).wrapped()


class _Pass(NamedTuple):
    """The products for colours of columns, or of rows. `program` computes those of `numbers[k]`."""

    by_rows: bool
    lines: int  # elements of a product
    colors: np.ndarray
    numbers: list[Tensor]
    program: Function[..., Any]
    places: np.ndarray  # of the entries in all products


class _Prepared(NamedTuple):
    """What is kept for one signature. `program` computes all entries, where memory allows."""

    values: list[np.ndarray]  # those of integer arguments, which the pattern depends on
    coloring: Coloring
    passes: list[_Pass]
    program: Function[..., Any] | None
    indptr: np.ndarray
    indices: np.ndarray
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
        check_choice(name, "format", format, _FORMATS)
        if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
            raise ValueError(f"{name}: chunk_size must be a positive integer, got {chunk_size!r}")
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
        self.plans: OrderedDict[Any, list[_Prepared]] = OrderedDict()

    def wrapped(self) -> Callable[..., Any]:
        def transformed(*args: Any, **kwargs: Any) -> Any:
            self._refuse_levels()
            return self._matrix(args, kwargs)

        return functools.update_wrapper(transformed, self.given.f, updated=())

    # The program -----------------------------------------------------------------------------

    def _products(
        self, by_rows: bool, number: Any, colors: Any, lines: int, call: tuple, is_batch: bool
    ) -> Any:
        """Return the product for one colour, or for a vector of them a row for each."""
        one = self._row if by_rows else self._column

        def run(each: Any) -> Any:
            return one(each, colors, *call)

        all_of = vmap(run) if is_batch else functools.partial(map_fn, run)
        products = all_of(number) if number.shape else run(number)
        if products.shape[-1] != lines:
            raise InvalidArgumentError(self._wrong_size(by_rows, products.shape[-1], lines))
        return products

    def _column(self, number: Any, colors: Any, args: tuple, kwargs: dict) -> Tensor:
        """Return the derivative in the direction of a colour's columns."""
        inner, sources = self.transform.sources(args)
        flat = nest.flatten(sources)
        with ForwardAccumulator(flat, self._seeds(flat, number, colors, True)) as accumulator:
            output, _ = self.transform.run(inner, kwargs)
            targets = self.transform.tensors(output, real=True)
        return _join(accumulator.jvp(targets, "zero"), flat)

    def _row(self, number: Any, colors: Any, args: tuple, kwargs: dict) -> Tensor:
        """Return the gradient of the sum of a colour's rows."""
        token, sources, output, _ = self.transform.record(args, kwargs)
        targets, flat = self.transform.tensors(output, real=True), nest.flatten(sources)
        upstream = self._seeds(targets, number, colors, False)
        return _join(fill_zeros(flat, differentiate_once(token, targets, upstream, flat)), flat)

    def _seeds(self, like: list, number: Any, colors: Any, columns: bool) -> list[Tensor]:
        """Return ones where the colour is `number`, and zeros elsewhere."""
        ends = np.cumsum([0, *(prod(tensor.shape) for tensor in like)]).tolist()
        if ends[-1] != colors.shape[0]:
            raise InvalidArgumentError(self._wrong_size(columns, ends[-1], colors.shape[0]))
        return [
            cast(equal(reshape(colors[start:end], tuple(tensor.shape)), number), tensor.dtype)
            for tensor, start, end in zip(like, ends, ends[1:], strict=False)
        ]

    # A call ----------------------------------------------------------------------------------

    def _refuse_levels(self) -> None:
        frame = state.frame
        if frame is not None and (frame.level is not None or frame.natural):
            raise TypeError(
                f"{self.name}: the result is an array of numbers, so it cannot be computed inside "
                "of function, vmap, jvp or the like: call it outside, or use jacobian or hessian"
            )

    def _refuse_watched(self, leaves: list) -> None:
        frame = state.frame
        if frame is None:
            return
        for leaf in leaves:
            if isinstance(leaf, Tensor) and narrow(leaf._rec, frame.group) is not None:
                raise TypeError(
                    f"{self.name}: a tape watches what {self.given.definition.name} is computed "
                    "from, but the result is an array of numbers, which has no gradient: pass "
                    "stop_gradient(x), or use jacobian or hessian"
                )

    def _matrix(self, args: tuple, kwargs: dict) -> Any:
        inner, sources = self.given.sources(args)
        call = FunctionCall(tuple(inner), kwargs, self.statics)
        self._refuse_watched(call.leaves)
        plan = self._find(call, nest.flatten(sources))
        parts = self._values(plan, call.leaves), _copy(plan.indices), _copy(plan.indptr)
        if self.format == "arrays":
            return parts
        if plan.dtype.itemsize == 2:  # SciPy has no float16
            parts = parts[0].astype(np.float32), *parts[1:]
        matrix = copy.copy(plan.matrix)  # takes half as long as to make and check another one
        matrix.data, matrix.indices, matrix.indptr = parts
        return matrix if self.format == "csr" else matrix.asformat(self.format)

    def _values(self, plan: _Prepared, leaves: list) -> np.ndarray:
        """Return the values of the pattern's entries."""
        data = empty((plan.coloring.pattern.nnz,), plan.dtype)
        if not data.size:
            return data
        if plan.program is not None:
            return self._run(plan.program, *leaves)
        for part in plan.passes:
            is_whole = len(plan.passes) == len(part.numbers) == 1
            first = 0
            for number in part.numbers:
                products = self._run(part.program, number, *leaves)
                decompress(part.places, products, first, data, is_whole)
                first += products.size
        return data

    def _run(self, program: Callable[..., Any], *leaves: Any) -> np.ndarray:
        result = program(*leaves)
        self._refuse_watched([result])
        return result._data

    def _wrong_size(self, columns: bool, size: int, expected: int) -> str:
        noun, what = ("columns", "arguments") if columns else ("rows", "output")
        return (
            f"{self.name}: the pattern has {expected} {noun}, but the {what} of "
            f"{self.given.definition.name} {'have' if columns else 'has'} {size} elements"
        )

    # Plans -----------------------------------------------------------------------------------

    def _find(self, call: FunctionCall, sources: list[Tensor]) -> _Prepared:
        """Return the plan for a call, which is made at the first one."""
        values = []
        if self.pattern is None:
            values = [x.numpy() for x in call.leaves if isinstance(x, Tensor) and is_exact(x.dtype)]
        plans = self.plans.setdefault(call.key, [])
        self.plans.move_to_end(call.key)
        for plan in plans:
            if all(map(np.array_equal, plan.values, values)):
                return plan
        plan = self._plan([value.copy() for value in values], call, sources)
        plans[:] = [plan, *plans[: _MAX_PLANS - 1]]
        if len(self.plans) > _MAX_PLANS:
            self.plans.popitem(last=False)
        return plan

    def _plan(
        self, values: list[np.ndarray], call: FunctionCall, sources: list[Tensor]
    ) -> _Prepared:
        if not sources:
            raise ValueError(f"{self.name}: argnums selects no tensor that has a gradient")
        if any(is_complex(source.dtype) for source in sources):
            raise TypeError(
                f"{self.name}: {self.given.definition.name} has a complex argument: use jacobian"
            )
        pattern, is_declared = (self.pattern, True) if self.pattern else self._detect(call)
        width = sum(source.size for source in sources)
        if pattern.shape[1] != width:
            raise InvalidArgumentError(self._wrong_size(True, width, pattern.shape[1]))
        indptr, indices = pattern.indptr, pattern.indices
        if pattern.nnz < 2**31:
            indptr = indptr.astype(indices.dtype)
        dtype = functools.reduce(promote, [source.dtype for source in sources])
        coloring = self._color(pattern)
        sides = ((False, coloring.columns), (True, coloring.rows))
        passes = [
            self._pass(call, coloring, by_rows, colors)
            for by_rows, colors in sides
            if colors is not None
        ]
        program = self._whole(passes)
        matrix = None
        if self.scipy is not None:
            parts = indices, indices, indptr  # each matrix gets its own, and other numbers
            matrix = self.scipy.csr_array(parts, shape=pattern.shape)
            matrix.has_canonical_format = True
        plan = _Prepared(values, coloring, passes, program, indptr, indices, dtype, matrix)
        if is_declared:
            self._check(plan, call)
        return plan

    def _pass(
        self, call: FunctionCall, coloring: Coloring, by_rows: bool, colors: np.ndarray
    ) -> _Pass:
        made_of, count = call.without_leaves(), int(colors.max(initial=-1)) + 1
        shape = coloring.pattern.shape
        lines = shape[by_rows]
        batch = self.chunk_size or max(_MAX_ELEMENTS // max(lines, 1), 1)
        # Transposed products scatter: in a batch, this takes longer than one after the other.
        is_linear = not by_rows and self.mode != "symmetric"
        is_batch = bool(self.chunk_size) or (is_linear and count * max(shape) <= _MAX_BATCH)
        batch = -(-count // max(-(-count // batch), 1))  # all calls take about as many
        colors = colors.astype(np.int8 if count < 64 else np.int32)  # fewer bytes to read
        starts = range(0, count, max(batch, 1))
        numbers = [convert(np.arange(k, k + batch, dtype=colors.dtype)) for k in starts]

        def products(number: Any, *leaves: Any) -> Any:
            filled = made_of.fill_leaves(leaves)
            return self._products(by_rows, number, colors, lines, filled, is_batch)

        program, places = function(products, autograph=False), coloring.places(by_rows)
        return _Pass(by_rows, lines, colors, numbers, program, places)

    def _whole(self, passes: list[_Pass]) -> Function[..., Any] | None:
        """Return the program for all entries; None if its products take too much memory."""
        used = [part for part in passes if part.numbers]
        sizes = [part.numbers[0].size * part.lines for part in used]
        if any(len(part.numbers) > 1 for part in used) or sum(sizes) > _MAX_ELEMENTS:
            return None
        places = used[0].places if used else None
        if len(used) > 1:
            places = np.where(used[0].places < 0, used[1].places + sizes[0], used[0].places)

        def entries(*leaves: Any) -> Any:
            products = [part.program.python_function(part.numbers[0], *leaves) for part in used]
            return gather(concatenate([reshape(part, (-1,)) for part in products]), places)

        return function(entries, autograph=False)

    def _color(self, pattern: SparsityPattern) -> Coloring:
        coloring, is_symmetric = self.coloring, self.mode == "symmetric"
        if coloring is None:
            return (
                hessian_coloring(pattern) if is_symmetric else jacobian_coloring(pattern, self.mode)
            )
        if not isinstance(coloring, Coloring):
            sides = coloring if self.mode == "both" else (coloring,)
            if self.mode == "reverse":
                return Coloring(pattern, rows=coloring)
            return Coloring(pattern, *sides, symmetric=is_symmetric)
        if (coloring.mode == "symmetric") != is_symmetric:
            raise InvalidArgumentError(f"{self.name}: coloring has mode {coloring.mode!r}")
        return coloring

    def _detect(self, call: FunctionCall) -> tuple[SparsityPattern, bool]:
        """Return the pattern, and whether the user declared a part of it."""
        f, args, names = self.given.f, tuple(call.args), sorted(call.kwargs)
        traced: Any = f
        numbers = [number % len(args) for number in self.given.argnums]
        if names:

            @functools.wraps(f)
            def positional(*values: Any) -> Any:
                named = zip(names, values[-len(names) :], strict=True)
                return f(*values[: -len(names)], **dict(named))

            traced, args = positional, (*args, *map(call.kwargs.__getitem__, names))
        second = self.mode == "symmetric"
        name = "hessian_sparsity" if second else "jacobian_sparsity"
        detection = Detection(Differentiable(name, traced, numbers), args, None, second)
        return detection.hessian() if second else detection.jacobian(), detection.is_declared

    def _check(self, plan: _Prepared, call: FunctionCall) -> None:
        """Raise an error if the pattern that the user passed lacks entries that are not zero here.

        Sums of random columns (or rows) are compared with a product for each.
        """
        part, pattern = plan.passes[0], plan.coloring.pattern
        data, ends = self._values(plan, call.leaves), (pattern.rows(), pattern.indices)
        lines, others = ends[::-1] if part.by_rows else ends
        kind, made_of = part.colors.dtype, call.without_leaves()

        @function(autograph=False)
        def derivative(marks: Any, *leaves: Any) -> Any:
            filled = made_of.fill_leaves(leaves)
            return self._products(part.by_rows, kind.type(1), marks, part.lines, filled, False)

        sizes = np.bincount(lines, abs(data), part.lines)
        generator, tolerance = np.random.default_rng(0), np.sqrt(np.finfo(plan.dtype).eps)
        for _ in range(_CHECKS):
            marks = generator.integers(0, 2, part.colors.size).astype(kind)
            product = self._run(derivative, convert(marks), *call.leaves)
            sums = np.bincount(lines, data * marks[others], part.lines)
            wrong = abs(sums - product) > tolerance * (sizes + abs(product))  # False for NaN
            if wrong.any():
                source = "pattern=" if self.pattern else "a pattern of declare_sparsity"
                raise InvalidArgumentError(
                    f"{self.name}: {source} lacks an entry of "
                    f"{'column' if part.by_rows else 'row'} {int(wrong.argmax())} that is not "
                    "zero, so other entries would be wrong. Pass no pattern, or compare it with "
                    "jacobian at a small size"
                )


def _copy(array: np.ndarray) -> np.ndarray:
    """Return a copy that the caller may write to, in memory that is used again."""
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _join(tensors: Sequence[Tensor], sources: Sequence[Tensor]) -> Tensor:
    """Return all elements as a vector, in the dtype in which those of the sources meet."""
    dtype = functools.reduce(promote, [source.dtype for source in sources])
    parts = [reshape(cast(tensor, dtype), (-1,)) for tensor in tensors]
    return parts[0] if len(parts) == 1 else concatenate(parts)
