"""Operations on arrays as calls of the kernels' functions of whole arrays, in Numba code.

Each operation is a function here, which says in which shapes these functions take its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.linear import matrix_code as matrices
from tinygrad_cg_kernels.linear import pool
from tinygrad_cg_kernels.loops.engine import Elementwise, Pointwise
from tinygrad_cg_kernels.move import array_code as arrays
from tinygrad_cg_kernels.move.scatter import limits
from tinygrad_cg_kernels.reduce import scan
from tinygrad_cg_kernels.runtime import service
from tinygrad_cg_kernels.runtime.objects import ufuncs
from tinygrad_cg_kernels.runtime.promotion import FLOAT64, broadcast_shapes, loop_dtype

from ..._ops.matrices import tolerance
from ..fusion.nodes import OpaqueNode


class CodeOnArrays(NamedTuple):
    """A function ``f(out, *operands, *tables)``.

    It takes arrays in these `shapes`, with one axis by default; operands of `dtypes`, and `out` of
    the dtype `result`, by default those of the operation. A function that `returns` has no `out`
    and no tables: it returns a tuple of arrays of one axis.
    """

    function: Callable[..., Any]
    shapes: Sequence[tuple[int, ...] | None] | None = None
    tables: Sequence[Any] = ()
    dtypes: Sequence[np.dtype] | None = None
    result: np.dtype | None = None
    returns: bool = False


Code = CodeOnArrays | None


def places(shape: tuple[int, ...], target: tuple[int, ...]) -> np.ndarray:
    """Return for each element of `target` the position of its element in an array of `shape`."""
    positions = np.arange(prod(shape)).reshape(shape)
    return np.broadcast_to(positions, target).reshape(-1).copy()


def _rows_of(node: OpaqueNode) -> tuple[np.ndarray, np.ndarray]:
    """Return the first position of each row along the axes, and the steps from there."""
    shape, axis = node.operands[0].shape, node.params.get("axis", len(node.shape) - 1)
    axes = axis if isinstance(axis, tuple) else (axis,)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    positions = np.arange(prod(shape)).reshape(shape).transpose([*kept, *axes])
    positions = positions.reshape(prod([shape[axis] for axis in kept]), -1)
    return positions[:, 0].copy(), positions[0] - positions[0, 0]


def _reduced(node: OpaqueNode, row: Callable, dtype: np.dtype | None = None) -> Code:
    return CodeOnArrays(arrays.reduced(row), None, _rows_of(node), dtype and [dtype], dtype)


def _reduction(node: OpaqueNode) -> Code:
    kernel = node.op.kernel
    row = arrays.mean(kernel.row) if node.name == "mean" else kernel.row
    return _reduced(node, row, loop_dtype(kernel.result_dtype(node.operands[0].dtype)))


def _mapped(node: OpaqueNode, function: Callable, dtype: np.dtype | None = None) -> Code:
    count = len(node.operands)
    code = arrays.mapped(function, count)
    return CodeOnArrays(code, None, _rows_of(node), None if dtype is None else [dtype] * count)


def _scan(node: OpaqueNode) -> Code:
    kernel = scan.pull if node.params.get("pulls") else node.op.kernel
    flags = int(node.params["reverse"]), int(node.params["exclusive"])
    function = arrays.scanned(kernel.advance, kernel.start, *flags)
    return _mapped(node, function, loop_dtype(kernel.result_dtype(node.dtype)))


def _elementwise(node: OpaqueNode) -> Code:
    kernel_of = getattr(node.op.run, "kernel_of", None)  # one by the parameters
    kernel = node.op.kernel if kernel_of is None else kernel_of(node.params)
    kernel = kernel.single if isinstance(kernel, Pointwise) else kernel
    signature = kernel._signature(tuple([x.dtype for x in node.operands]))
    is_unfit = signature.checked or kernel.inputs != len(node.operands)
    if is_unfit or kernel.refusal(signature.loop) is not None:
        return None
    tables = [places(x.shape, node.shape) for x in node.operands]
    function = arrays.elements(_without_dispatcher(kernel.function), kernel.inputs)
    return CodeOnArrays(function, None, tables, signature.loop, signature.target)


def _without_dispatcher(function: Any) -> Any:
    return arrays.jitable(getattr(function, "py_func", function))


def _cut(node: OpaqueNode, function: Callable, *cuts: Sequence[int], **words: Any) -> CodeOnArrays:
    """Return code for the result and the operands with the axes between cuts joined."""
    shapes = []
    for x, own in zip((node, *node.operands), cuts, strict=True):
        shapes.append(tuple([prod(x.shape[i:k]) for i, k in pairwise((0, *own, len(x.shape)))]))
    return CodeOnArrays(function, shapes, **words)


def _gather(node: OpaqueNode) -> Code:
    axis, count = node.params["axis"], node.params["batch_dims"]
    parts = count, axis, axis + len(node.operands[1].shape) - count
    ends = [parts, (count, axis, axis + 1)]
    name = node.name
    return _cut(node, getattr(arrays, name), *ends[:: 1 if name == "gather" else -1], (count,))


def _around(node: OpaqueNode, name: str = "axis") -> tuple[int, int]:
    """Return the cuts around the axis that a parameter names."""
    return node.params[name], node.params[name] + 1


def _set_row(node: OpaqueNode) -> Code:
    cuts = _around(node, "batch_dims")
    dtypes = [node.dtype, node.dtype, node.operands[2].dtype]
    return _cut(node, arrays.set_row, cuts, cuts, cuts[:1], (), dtypes=dtypes)


def _segment_extremum(node: OpaqueNode) -> Code:
    count, largest = node.params["batch_dims"], node.params["largest"]
    first = np.array(limits(node.dtype)[0 if largest else 1], node.dtype)[()]
    cuts = (count, count + 1), (count, len(node.operands[1].shape)), (count,)
    return _cut(node, arrays.segment_extremum(largest), *cuts, tables=[first])


def _flat_positions(node: OpaqueNode) -> Code:
    sizes = np.array(node.params["sizes"], np.int64)
    return CodeOnArrays(arrays.flat_positions, [None, (node.size, sizes.size)], [sizes])


def _searchsorted(node: OpaqueNode) -> Code:
    rows = [prod(x.shape[:-1]) for x in (node, *node.operands)]
    if not {*rows} <= {1, rows[0]}:
        return None
    return _cut(node, arrays.searchsorted(node.params["side"] == "right"), *[(-1,)] * 3)


def _of_integers(function: Callable, *integers: int) -> Code:
    return CodeOnArrays(function, None, [np.int64(x) for x in integers])


def _moved(node: OpaqueNode) -> Code:
    """Return the code of a move of elements, by their positions."""
    shape = node.operands[0].shape
    found = np.ascontiguousarray(node.run(np.arange(prod(shape)).reshape(shape)))
    return CodeOnArrays(arrays.moved, None, [found.reshape(-1)])


def _on_matrices(
    function: Callable, *loops: tuple[str, str], error: str = "", rows: int = 0
) -> Callable[[OpaqueNode], Code]:
    """Return a function from nodes to the code of an operation on stacks of matrices.

    A loop of LAPACK has a name and the core shapes of its operands and results: "mn,k" are a matrix
    of the first operand's sizes and a vector of the lesser of them, "mr" has as many columns as the
    second operand. `rows` are the rows of a result that is not of matrices.
    """

    def build(node: OpaqueNode) -> Code:
        if any(x.dtype.kind == "c" for x in (node, *node.operands)):
            return None
        m, n = node.operands[0].shape[-2:]
        letters = {"m": m, "n": n, "k": min(m, n), "r": node.operands[-1].shape[-1]}
        tables: list[Any] = []
        for name, cores in loops:
            ufunc = getattr(getattr(np.linalg, "_umath_linalg", None), name, None)
            if ufunc is None or ufuncs.inner_loop(ufunc, FLOAT64) is None:
                return None
            shapes = [tuple([letters[x] for x in core]) for core in cores.split(",")]
            used = dict.fromkeys(cores.replace(",", ""))
            sizes = tuple([letters[x] for x in used])
            address = service.numba_callable().loop_address(ufunc, FLOAT64)
            tables += [address, matrices.words(sizes, *shapes)]
        code = matrices.checked(function, f"{node.op.label}: {error}") if error else function
        result = None if node.dtype == np.bool_ else FLOAT64
        operands = [x.shape for x in node.operands]
        stacked = _of_stacks(node, code, rows or node.shape[-2], operands, tables)
        return stacked._replace(dtypes=[FLOAT64] * len(operands), result=result)

    return build


def _of_stacks(
    node: OpaqueNode, function: Callable, rows: int, operands: Sequence[Any], tables: Sequence[Any]
) -> CodeOnArrays:
    """Return the code of a function of matrices, which gives so many rows, for stacks of them."""
    stacks = [shape[:-2] for shape in operands]
    batch = broadcast_shapes(*stacks)
    shapes = [(prod(stack), *x[-2:]) for stack, x in zip(stacks, operands, strict=True)]
    shapes = [(prod(batch), rows, node.size // (prod(batch) * rows)), *shapes]
    unused = [0, np.zeros(1, np.int64)] * (2 - len(tables) // 2)
    own = places(stacks[0], batch), places(stacks[-1], batch)
    return CodeOnArrays(matrices.on_matrices(function), shapes, [*own, *tables, *unused])


def _product(node: OpaqueNode) -> Code:
    """Return the code of products that NumPy's loop refuses, of integers for example."""
    x, y = [operand.shape for operand in node.operands]
    y = (*y, 1) if node.name == "matvec" or len(y) == 1 else y
    return _of_stacks(node, matrices.product, x[-2], (x, y), ())


def _convolution(node: OpaqueNode) -> Code:
    name, geometry = node.name, node.params["geometry"]
    order = {"conv": (1, 2, 0), "conv_input": (0, 2, 1), "conv_filter": (1, 0, 2)}[name]
    both = [node.shape, *[operand.shape for operand in node.operands]]
    sizes: list[Any] = [both[k] for k in order]
    images, filters, windows = sizes
    if len(filters) > 4 or len(images) != len(windows):
        return None
    groups = geometry.groups
    shapes: list[Any] = [None] * 3
    for k, shape in zip(order[::2], (images, windows), strict=True):
        shapes[k] = (prod(shape[:-3]), *shape[-3:-1], groups, shape[-1] // groups)
    shapes[order[1]] = (*filters[:3], groups, filters[3] // groups)
    before = geometry.padding[0][0], geometry.padding[1][0]
    tables = geometry.strides, geometry.dilations, before
    return CodeOnArrays(matrices.convolution(name), shapes, tables)


def _pooling(node: OpaqueNode) -> Code:
    name = node.name
    images, windows = node.operands[0].shape, node.shape
    adjoint = name == "mean_pool_adjoint"
    if adjoint:
        images, windows = windows, images
    plan = pool.plan_of(images, (windows[-3], windows[-2]), node.params["window"])
    dtype = node.operands[0].dtype if "max" in name else loop_dtype(pool.mean_dtype(node.dtype))
    result = None if name == "max_pool_indices" else dtype
    code = matrices.pooling(pool.KERNELS[name], adjoint)
    return CodeOnArrays(code, None, [plan], [dtype], result)


# Users' code ---------------------------------------------------------------------------------


def _array_program(node: OpaqueNode) -> Code:
    derivative = node.params["derivative"]
    inputs = derivative.inputs([x.shape for x in node.operands])
    return _text(node, *derivative.runner.numba_lines(inputs))


def compiled_lines(count: int, lines: Sequence[str], scope: dict[str, Any]) -> Any:
    """Return the compiled function of so many arrays that has these lines."""
    names = ", ".join([f"x{k}" for k in range(count)])
    text = "\n".join([f"def run({names}):", *[f"    {line}" for line in lines], ""])
    scope = {"np": np, "write": arrays.write, **scope}
    return service.numba_callable().compile_part(text, scope, "run")


def _text(node: OpaqueNode, lines: list[str], scope: dict[str, Any]) -> CodeOnArrays:
    return CodeOnArrays(compiled_lines(len(node.operands), lines, scope), returns=True)


def _user_code(node: OpaqueNode, avals: Any) -> Code:
    """Return the code of a user's primitive whose kernel Numba can compile."""
    kernel: Any = node.op.kernel
    several = isinstance(avals, list)
    if isinstance(kernel, Pointwise) and not several:
        return _elementwise(node)
    if isinstance(kernel, Pointwise):
        loop = kernel.single._signature(tuple([x.dtype for x in node.operands])).loop
        shape = broadcast_shapes(*[x.shape for x in node.operands])
        scope = {"kernel": _without_dispatcher(kernel.single.function)}
        scope |= {f"place{k}": places(x.shape, shape) for k, x in enumerate(node.operands)}
        lines = [f"r{k} = np.empty({prod(shape)}, np.{x.dtype.name})" for k, x in enumerate(avals)]
        values = ", ".join([f"x{k}[place{k}[j]]" for k in range(len(node.operands))])
        results = [f"r{k}" for k in range(len(avals))]
        lines.append(f"for j in range({prod(shape)}):")
        lines.append(f"    {', '.join([f'{r}[j]' for r in results])} = kernel({values})")
        code = _text(node, [*lines, f"return ({', '.join(results)},)"], scope)
        return code._replace(dtypes=loop)
    if not hasattr(kernel, "py_func"):
        return None
    arguments = [f"x{k}.reshape({x.shape!r})" for k, x in enumerate(node.operands)]
    arguments += [f"{key}=own_{key}" for key in node.params]
    results = [f"r[{k}]" for k in range(len(avals))] if several else ["r"]
    flat = [f"np.ascontiguousarray({r}).reshape(-1).copy()" for r in results]
    lines = [f"r = kernel({', '.join(arguments)})", f"return ({', '.join(flat)},)"]
    own = {f"own_{key}": value for key, value in node.params.items()}
    return _text(node, lines, own | {"kernel": kernel})


_SINGULAR = "Singular matrix"
_REGULAR = "in Numba code, the gradient of a determinant needs a regular matrix"
_INVERSE, _DETERMINANT = ("inv", "mm,mm"), ("det", "mm,")
_BUILDERS: dict[str, Callable[[OpaqueNode], Code]] = {
    "prod max min any all sum mean variance euclidean_norm logsumexp": _reduction,
    "softmax log_softmax": lambda x: _mapped(x, x.op.kernel.functions[0], x.dtype),
    "softmax_pull log_softmax_pull": (
        lambda x: _mapped(x, arrays.pulled(*x.op.kernel.functions), x.dtype)
    ),
    "cumsum cumprod recurrence": _scan,
    "argmax argmin": lambda x: _reduced(x, arrays.best(*x.op.kernel.functions)),
    "sort": lambda x: _mapped(x, arrays.order(False, x.params["descending"])),
    "argsort": lambda x: _mapped(x, arrays.order(True, x.params["descending"])),
    "invert_permutation": lambda x: _mapped(x, arrays.inverse_order),
    "cast": lambda x: (
        None if x.operands[0].dtype.kind == "c" != x.dtype.kind else CodeOnArrays(arrays.write)
    ),
    "gather gather_adjoint": _gather,
    "take_along_axis add_along_axis": (
        lambda x: _cut(x, getattr(arrays, x.name), *[_around(x)] * 3)
    ),
    "one_hot": lambda x: _cut(x, arrays.one_hot, _around(x), _around(x)[:1]),
    "set_row": _set_row,
    "segment_extremum": _segment_extremum,
    "segment_rows": lambda x: _of_integers(arrays.segment_rows, x.params["size"]),
    "labels": lambda x: _of_integers(arrays.labels, x.params["classes"]),
    "last_sources": lambda x: _cut(x, arrays.last_sources, *[(x.params["batch_dims"],)] * 2),
    "flat_positions": _flat_positions,
    "searchsorted": _searchsorted,
    "getitem transpose broadcast_to flip roll tile": _moved,
    "getitem_adjoint": lambda x: CodeOnArrays(
        arrays.moved_back, None, [np.arange(x.size).reshape(x.shape)[x.params["key"]].ravel()]
    ),
    "check_coincident check_tangent": (  # they only warn, which Numba code does not
        lambda x: CodeOnArrays(arrays.copied, None, [places(x.operands[0].shape, x.shape)])
    ),
    "solve": _on_matrices(matrices.solve, ("solve", "mm,mr,mr"), error=_SINGULAR),
    "triangular_solve": lambda x: _on_matrices(
        matrices.triangular_solve(bool(x.params["lower"])), error=_SINGULAR
    )(x),
    "inverse inverse_of_regular": _on_matrices(matrices.of_one, _INVERSE, error=_SINGULAR),
    "determinant": _on_matrices(matrices.of_one, _DETERMINANT, rows=1),
    "log_abs_determinant": _on_matrices(matrices.log_abs_determinant, ("slogdet", "mm,,"), rows=1),
    "determinant_sign": _on_matrices(matrices.determinant_sign, ("slogdet", "mm,,"), rows=1),
    "cofactors": _on_matrices(matrices.cofactors, _INVERSE, _DETERMINANT, error=_REGULAR),
    "cofactor_change": (
        _on_matrices(matrices.cofactor_change, _INVERSE, _DETERMINANT, error=_REGULAR)
    ),
    "cholesky": _on_matrices(
        matrices.of_mean, ("cholesky_lo", "mm,mm"), error="Matrix is not positive definite"
    ),
    "eigh": _on_matrices(matrices.eigh, ("eigh_lo", "mm,m,mm")),
    "eigvalsh": _on_matrices(matrices.of_mean, ("eigvalsh_lo", "mm,m"), rows=1),
    "svd": _on_matrices(matrices.svd, ("svd_s", "mn,mk,k,kn")),
    "svdvals": _on_matrices(matrices.svdvals, ("svd", "mn,k"), rows=1),
    "qr": _on_matrices(matrices.qr, ("qr_r_raw", "mn,k"), ("qr_reduced", "mn,k,mk")),
    "vanish": lambda x: _on_matrices(
        matrices.vanish(tolerance(x.operands[1].dtype, x.operands[1].shape[-1]))
    )(x),
    "matmul matvec": _product,
    "conv conv_input conv_filter": _convolution,
    " ".join(pool.KERNELS): _pooling,
    "differentiable": _array_program,
}
BUILDERS = {name: build for names, build in _BUILDERS.items() for name in names.split()}


def array_code(node: OpaqueNode, aval: Any) -> Code:
    """Return the code of an operation, whose results have `aval`; None if it has none."""
    if node.op is None:
        if node.name == "positions":
            words = node.run.keywords
            return _of_integers(arrays.positions, words["size"], words["parts"])
        return _moved(node) if node.name == "expand" else None
    empty = any(x.dtype != object and not x.size for x in (node, *node.operands))
    if empty or any(x.dtype == np.float16 for x in (node, *node.operands)):
        return None
    if node.op.kind == "user":
        return _user_code(node, aval)
    is_elementwise = isinstance(node.op.kernel, Elementwise)
    build = BUILDERS.get(node.name, _elementwise if is_elementwise else None)
    return None if build is None else build(node)
