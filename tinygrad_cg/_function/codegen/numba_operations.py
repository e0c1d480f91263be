"""Operations on arrays as functions that Numba compiles.

Arrays have one axis. Where rows of an array lie, and other things that follow from shapes, are
tables made beforehand. Rows are reduced and scanned by the functions of the library's kernels.
`lapack_code` has functions of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.linear import pool
from tinygrad_cg_kernels.loops.engine import Elementwise, Pointwise
from tinygrad_cg_kernels.move.scatter import limits
from tinygrad_cg_kernels.reduce import combine, scan, search
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.promotion import INT64, broadcast_shapes, loop_dtype
from tinygrad_cg_kernels.runtime.texts import define

from ..fusion.nodes import OpaqueNode


class CodeOnArrays(NamedTuple):
    """A function ``f(out, *operands, *tables)`` of arrays of one axis.

    The operands are converted to `dtypes`; `out` has the dtype `result`. By default they have
    those of the operation. A function with several results has no `out`, and returns a tuple.
    """

    function: Callable[..., Any]
    tables: tuple[Any, ...] = ()
    dtypes: Sequence[np.dtype] | None = None
    result: np.dtype | None = None


def places(shape: tuple[int, ...], target: tuple[int, ...]) -> np.ndarray:
    """Return for each element of `target` the position of its element in an array of `shape`."""
    positions = np.arange(prod(shape)).reshape(shape)
    return np.broadcast_to(positions, target).reshape(-1).copy()


# Rows ----------------------------------------------------------------------------------------


def _lines(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first position of each row along some axes, and the steps from there."""
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    positions = np.arange(prod(shape)).reshape(shape).transpose([*kept, *axes])
    positions = positions.reshape(prod([shape[axis] for axis in kept]), -1)
    return positions[:, 0].copy(), positions[0] - positions[0, 0]


@cache
def _reduced(function: Callable) -> Callable:
    """Return code that puts a function of each row into `out`."""

    def run(out, x, starts, steps):
        row = np.empty(steps.size, x.dtype)
        for k in range(starts.size):
            for j in range(steps.size):
                row[j] = x[starts[k] + steps[j]]
            out[k] = function(row)

    return run


@cache
def _mapped(function: Callable, count: int) -> Callable:
    """Return code that computes a row of `out` from a row of each operand."""

    def one(out, x, starts, steps):
        row, result = np.empty(steps.size, x.dtype), np.empty(steps.size, out.dtype)
        for k in range(starts.size):
            for j in range(steps.size):
                row[j] = x[starts[k] + steps[j]]
            function(row, result)
            for j in range(steps.size):
                out[starts[k] + steps[j]] = result[j]

    def two(out, x, y, starts, steps):
        row, other = np.empty(steps.size, x.dtype), np.empty(steps.size, y.dtype)
        result = np.empty(steps.size, out.dtype)
        for k in range(starts.size):
            for j in range(steps.size):
                row[j], other[j] = x[starts[k] + steps[j]], y[starts[k] + steps[j]]
            function(row, other, result)
            for j in range(steps.size):
                out[starts[k] + steps[j]] = result[j]

    return one if count == 1 else two


def _axes(node: OpaqueNode) -> tuple[int, ...]:
    axis = node.params["axis"]
    return axis if isinstance(axis, tuple) else (axis,)


def _reduction(node: OpaqueNode) -> CodeOnArrays:
    name, kernel = node.op.name, node.op.kernel
    dtype = loop_dtype(kernel.result_dtype(node.operands[0].dtype))
    row = _mean_row if name == "mean" else kernel.row
    return CodeOnArrays(_reduced(row), _lines(node.operands[0].shape, _axes(node)), [dtype], dtype)


@jitable
def _mean_row(row):
    return combine.sum_row(row) / row.size


def _along(node: OpaqueNode, function: Callable, dtype: Any = None) -> CodeOnArrays:
    operands = node.operands
    dtypes = None if dtype is None else [dtype] * len(operands)
    tables = _lines(operands[0].shape, _axes(node))
    return CodeOnArrays(_mapped(function, len(operands)), tables, dtypes)


def _normalisation(node: OpaqueNode) -> CodeOnArrays:
    (function,) = node.op.kernel.functions
    return _along(node, function, node.dtype)


def _normalisation_pull(node: OpaqueNode) -> CodeOnArrays:
    return _along(node, _pulled(*node.op.kernel.functions), node.dtype)


@cache
def _pulled(total: Callable, pull: Callable) -> Callable:
    def run(dy, y, result):
        sum_of_row = total(dy, y)
        for j in range(y.size):
            result[j] = pull(dy[j], y[j], sum_of_row)

    return jitable(run)


def _scan(node: OpaqueNode) -> CodeOnArrays:
    kernel, params = node.op.kernel, node.params
    kernel = scan.pull if params.get("pulls") else kernel
    flags = params["reverse"], params["exclusive"]
    dtype = loop_dtype(kernel.result_dtype(node.dtype))
    function = _scanned(kernel.advance, kernel.start, len(node.operands), *flags)
    return _along(node, function, dtype)


@cache
def _scanned(advance: Any, start: Any, count: int, reverse: bool, exclusive: bool) -> Callable:
    def two(row, other, result):
        sizes = np.array([row.size, int(reverse), int(exclusive)])
        scan.rows_core(advance, start, 0, 1, sizes, row, other, result)

    def one(row, result):
        sizes = np.array([row.size, int(reverse), int(exclusive)])
        scan.rows_core(advance, start, 0, 1, sizes, row, row, result)

    return jitable(one if count == 1 else two)


def _search(node: OpaqueNode) -> CodeOnArrays:
    code = _reduced(_best_of(*node.op.kernel.functions))
    return CodeOnArrays(code, _lines(node.operands[0].shape, _axes(node)))


@cache
def _best_of(pick: Callable, better: Callable) -> Callable:
    def index(row):
        found, sizes = np.empty(1, np.int64), np.array([row.size])
        search.rows_core(pick, better, 0, 1, sizes, row, found)
        return found[0]

    return jitable(index)


@cache
def _order(indices: bool, descending: bool) -> Callable:
    def values(row, result):
        ordered = np.sort(row)
        for j in range(row.size):
            result[j] = ordered[row.size - 1 - j] if descending else ordered[j]

    def positions(row, result):
        if descending:
            order = np.argsort(row[::-1].copy(), kind="mergesort")
            for j in range(row.size):
                result[j] = row.size - 1 - order[row.size - 1 - j]
        else:
            order = np.argsort(row, kind="mergesort")
            for j in range(row.size):
                result[j] = order[j]

    return jitable(positions if indices else values)


def _sorted(node: OpaqueNode) -> CodeOnArrays:
    return _along(node, _order(node.op.name == "argsort", node.params["descending"]))


@jitable
def _inverse_order(row, result):
    for j in range(row.size):
        result[row[j]] = j


# Indices -------------------------------------------------------------------------------------


@jitable
def _inside(index, size):
    """Return an index counted from 0; raise IndexError if it is out of range."""
    if index < -size or index >= size:
        raise IndexError("an index is out of range")
    return index + size if index < 0 else index


def _batched_sizes(shape: tuple[int, ...], node: OpaqueNode) -> np.ndarray:
    """Return the sizes of the axes: batch, before, of the lookup, after; and of the indices."""
    axis, count = node.params["axis"], node.params["batch_dims"]
    before, after = prod(shape[count:axis]), prod(shape[axis + 1 :])
    indices = prod(node.operands[1].shape[count:])
    return np.array([prod(shape[:count]), before, shape[axis], after, indices])


def _gather(node: OpaqueNode) -> CodeOnArrays:
    return CodeOnArrays(_taken, (_batched_sizes(node.operands[0].shape, node),))


def _taken(out, x, indices, sizes):
    batch, before, size, after, count = sizes
    for b in range(batch):
        for m in range(before):
            for k in range(count):
                at = _inside(np.int64(indices[b * count + k]), size)
                to, start = ((b * before + m) * count + k) * after, (b * before + m) * size + at
                for a in range(after):
                    out[to + a] = x[start * after + a]


def _gather_adjoint(node: OpaqueNode) -> CodeOnArrays:
    return CodeOnArrays(_added, (_batched_sizes(node.shape, node),))


def _added(out, x, indices, sizes):
    batch, before, size, after, count = sizes
    out[:] = 0
    for b in range(batch):
        for m in range(before):
            for k in range(count):
                at = _inside(np.int64(indices[b * count + k]), size)
                start, to = ((b * before + m) * count + k) * after, (b * before + m) * size + at
                for a in range(after):
                    out[to * after + a] += x[start + a]


def _along_axis(node: OpaqueNode) -> CodeOnArrays:
    added, indices = node.op.name == "add_along_axis", node.operands[1].shape
    shape, axis = node.shape if added else node.operands[0].shape, node.params["axis"]
    sizes = np.array([prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]), indices[axis]])
    return CodeOnArrays(_at_lines(added), (sizes,))


@cache
def _at_lines(added: bool) -> Callable:
    def run(out, x, indices, sizes):
        before, size, after, count = sizes
        if added:
            out[:] = 0
        for m in range(before):
            for k in range(count):
                for a in range(after):
                    here = (m * count + k) * after + a
                    there = (m * size + _inside(np.int64(indices[here]), size)) * after + a
                    if added:
                        out[there] += x[here]
                    else:
                        out[here] = x[there]

    return run


def _one_hot(node: OpaqueNode) -> CodeOnArrays:
    shape, axis = node.operands[0].shape, node.params["axis"]
    sizes = np.array([prod(shape[:axis]), node.params["depth"], prod(shape[axis:])])
    return CodeOnArrays(_ones, (sizes,))


def _ones(out, indices, sizes):
    before, depth, after = sizes
    out[:] = 0
    for m in range(before):
        for a in range(after):
            at = np.int64(indices[m * after + a])
            if 0 <= at < depth:
                out[(m * depth + at) * after + a] = 1


def _set_row(node: OpaqueNode) -> CodeOnArrays:
    count, shape = node.params["batch_dims"], node.operands[0].shape
    sizes = np.array([prod(shape[:count]), shape[count], prod(shape[count + 1 :])])
    return CodeOnArrays(_replaced, (sizes,), [node.dtype, node.dtype, node.operands[2].dtype])


def _replaced(out, x, row, index, sizes):
    batch, size, after = sizes
    out[:] = x
    for b in range(batch):
        at = np.int64(index[b])
        if 0 <= at < size:
            for a in range(after):
                out[(b * size + at) * after + a] = row[b * after + a]
        elif batch == 1:
            raise IndexError("set_row: an index is out of range")


def _key_adjoint(node: OpaqueNode) -> CodeOnArrays:
    positions = np.arange(node.size).reshape(node.shape)[node.params["key"]]
    return CodeOnArrays(_added_at, (np.ascontiguousarray(positions).reshape(-1),))


def _added_at(out, x, positions):
    out[:] = 0
    for k in range(positions.size):
        out[positions[k]] += x[k]


def _key(node: OpaqueNode) -> CodeOnArrays:
    """Return the code of a move of elements, by their positions."""
    shape = node.operands[0].shape
    positions = node.run(np.arange(prod(shape)).reshape(shape))
    return CodeOnArrays(_moved, (np.ascontiguousarray(positions).reshape(-1),))


def _moved(out, x, positions):
    for k in range(positions.size):
        out[k] = x[positions[k]]


def _positions(node: OpaqueNode) -> CodeOnArrays:
    words = node.run.keywords
    return CodeOnArrays(_counted, (np.int64(words["size"]), np.int64(words["parts"])))


def _counted(out, indices, size, parts):
    each = indices.size // max(parts, 1)
    for k in range(indices.size):
        at = _inside(np.int64(indices[k]), size)
        out[k] = at + k // each * size if parts > 1 else at


def _segment_extremum(node: OpaqueNode) -> CodeOnArrays:
    x, indices = node.operands
    count, size = node.params["batch_dims"], node.params["size"]
    tail, batch = prod(x.shape[len(indices.shape) :]), prod(x.shape[:count])
    largest = node.params["largest"]
    first = np.array(limits(node.dtype)[0 if largest else 1], node.dtype)[()]
    sizes = np.array([batch, prod(indices.shape[count:]), size, tail])
    return CodeOnArrays(_extremes(largest), (sizes, first))


@cache
def _extremes(largest: bool) -> Callable:
    def run(out, x, indices, sizes, first):
        batch, count, size, after = sizes
        out[:] = first
        for k in range(batch * count):
            row = k // count * size + _inside(np.int64(indices[k]), size)
            for a in range(after):
                value, best = x[k * after + a], out[row * after + a]
                better = value > best if largest else value < best
                if better or value != value:
                    out[row * after + a] = value

    return run


def _last_sources(node: OpaqueNode) -> CodeOnArrays:
    count, shape = node.params["batch_dims"], node.operands[0].shape
    sizes = np.array([prod(shape[:count]), prod(shape[count:]), node.params["size"]])
    return CodeOnArrays(_last_named, (sizes,))


def _last_named(out, indices, sizes):
    batch, count, size = sizes
    out[:] = -1
    for k in range(batch * count):
        out[k // count * size + _inside(np.int64(indices[k]), size)] = k % count


def _flat_positions(node: OpaqueNode) -> CodeOnArrays:
    return CodeOnArrays(_flattened, (np.array(node.params["sizes"], np.int64),))


def _flattened(out, indices, sizes):
    for k in range(out.size):
        at = 0
        for axis in range(sizes.size):
            index = np.int64(indices[k * sizes.size + axis])
            if index < 0 or index >= sizes[axis]:
                raise IndexError("an index is out of range")
            at = at * sizes[axis] + index
        out[k] = at


def _segment_rows(node: OpaqueNode) -> CodeOnArrays:
    return CodeOnArrays(_sent, (np.int64(node.params["size"]),))


def _sent(out, ids, size):
    for k in range(ids.size):
        if ids[k] >= size:
            raise ValueError("a segment's id is out of range")
        out[k] = ids[k] if ids[k] >= 0 else size


def _searchsorted(node: OpaqueNode) -> CodeOnArrays:
    table, values = node.operands
    rows = node.shape[:-1]
    starts = [places(x.shape[:-1], rows) * x.shape[-1] for x in (table, values)]
    sizes = np.array([table.shape[-1], values.shape[-1]])
    return CodeOnArrays(_placed(node.params["side"]), (*starts, sizes))


@cache
def _placed(side: str) -> Callable:
    right = side == "right"

    def run(out, table, values, starts, others, sizes):
        length, count = sizes
        for k in range(starts.size):
            row = table[starts[k] : starts[k] + length]
            for j in range(count):
                value = values[others[k] + j]
                if right:
                    out[k * count + j] = np.searchsorted(row, value, "right")
                else:
                    out[k * count + j] = np.searchsorted(row, value)

    return run


# Elements ------------------------------------------------------------------------------------


def _elementwise(node: OpaqueNode) -> CodeOnArrays | None:
    kernel = node.op.kernel
    kernel = kernel.single if isinstance(kernel, Pointwise) else kernel
    kernel_of = getattr(node.op.run, "kernel_of", None)  # one by the parameters
    kernel = kernel if kernel_of is None else kernel_of(node.params)
    if kernel.inputs != len(node.operands):
        return None
    signature = kernel._signature(tuple([x.dtype for x in node.operands]))
    if signature.checked or kernel.refusal(signature.loop) is not None:
        return None
    tables = tuple([places(x.shape, node.shape) for x in node.operands])
    function = _of_elements(kernel.function, kernel.inputs)
    return CodeOnArrays(function, tables, signature.loop, signature.target)


@cache
def _of_elements(function: Callable, count: int) -> Callable:
    function = getattr(function, "py_func", function)

    def one(out, x, a):
        for k in range(out.size):
            out[k] = function(x[a[k]])

    def two(out, x, y, a, b):
        for k in range(out.size):
            out[k] = function(x[a[k]], y[b[k]])

    def three(out, x, y, z, a, b, c):
        for k in range(out.size):
            out[k] = function(x[a[k]], y[b[k]], z[c[k]])

    return (one, two, three)[count - 1]


def _several_elements(node: OpaqueNode, avals: Sequence[Any]) -> CodeOnArrays:
    """Return the code of a function of numbers with several results."""
    kernel = node.op.kernel
    loop = kernel.single._signature(tuple([x.dtype for x in node.operands])).loop
    shape = broadcast_shapes(*[x.shape for x in node.operands])
    function = getattr(kernel.single.function, "py_func", kernel.single.function)
    tables = [places(x.shape, shape) for x in node.operands]
    scope = {"np": np, "function": jitable(function)}
    names = [f"x{k}" for k in range(len(tables))]
    values = ", ".join([f"{name}[t{k}[j]]" for k, name in enumerate(names)])
    made = [f"    r{k} = np.empty({prod(shape)}, np.{x.dtype.name})" for k, x in enumerate(avals)]
    results = ", ".join([f"r{k}[j]" for k in range(len(avals))])
    lines = [f"def run({', '.join([*names, *[f't{k}' for k in range(len(tables))]])}):", *made]
    lines += [f"    for j in range({prod(shape)}):", f"        {results} = function({values})"]
    lines.append(f"    return ({', '.join([f'r{k}' for k in range(len(avals))])},)")
    return CodeOnArrays(text_code(node.op.name, lines, scope), tuple(tables), loop)


def text_code(name: str, lines: Sequence[str], scope: dict[str, Any]) -> Callable:
    return define("\n".join([*lines, ""]), f"Numba code of {name}", scope, "run")


def _user_code(node: OpaqueNode, aval: Any) -> CodeOnArrays | None:
    """Return the code of a user's primitive whose kernel Numba has compiled."""
    kernel = node.op.kernel
    if isinstance(kernel, Pointwise):
        return _several_elements(node, aval) if isinstance(aval, list) else _elementwise(node)
    if not hasattr(kernel, "py_func"):
        return None
    names = [f"x{k}" for k in range(len(node.operands))]
    arguments = [
        f"x{k}.reshape({x.shape!r}).copy()" if x.shape else f"np.array(x{k}[0])"
        for k, x in enumerate(node.operands)
    ]
    scope: dict[str, Any] = {"np": np, "kernel": kernel}
    for key, value in node.params.items():
        scope[f"own_{key}"] = value
        arguments.append(f"{key}=own_{key}")
    call = f"    r = kernel({', '.join(arguments)})"
    if not isinstance(aval, list):
        lines = [f"def run({', '.join(['out', *names])}):", call]
        lines.append("    out[:] = np.ascontiguousarray(r).reshape(-1)")
    else:
        parts = [f"np.ascontiguousarray(r[{k}]).reshape(-1).copy()" for k in range(len(aval))]
        lines = [f"def run({', '.join(names)}):", call, f"    return ({', '.join(parts)},)"]
    return CodeOnArrays(text_code(node.op.name, lines, scope))


def _array_program(node: OpaqueNode) -> CodeOnArrays:
    """Return the code of a function made by `differentiable`."""
    derivative = node.params["derivative"]
    inputs = derivative.inputs([x.shape for x in node.operands])
    lines, scope = derivative.runner.numba_lines(inputs)
    names = ", ".join([f"x{k}" for k in range(len(node.operands))])
    lines = [f"def run({names}):", *[f"    {line}" for line in lines]]
    return CodeOnArrays(text_code(derivative.runner.program.name, lines, {"np": np, **scope}))


# Products and images -------------------------------------------------------------------------


def _product(node: OpaqueNode) -> CodeOnArrays:
    """Return the code of products of stacks of matrices, for operands that NumPy's loop refuses."""
    x, y = [operand.shape for operand in node.operands]
    y = (*y, 1) if node.op.name == "matvec" or len(y) == 1 else y
    x = (1, *x) if len(x) == 1 else x
    batch = broadcast_shapes(x[:-2], y[:-2])
    starts = [places(shape[:-2], batch) * prod(shape[-2:]) for shape in (x, y)]
    return CodeOnArrays(_multiplied, (*starts, np.array([x[-2], x[-1], y[-1]])))


def _multiplied(out, x, y, starts, others, sizes):
    rows, inner, columns = sizes
    out[:] = 0
    for b in range(starts.size):
        for i in range(rows):
            for k in range(inner):
                factor = x[starts[b] + i * inner + k]
                for j in range(columns):
                    to = (b * rows + i) * columns + j
                    out[to] += factor * y[others[b] + k * columns + j]


def _convolution(node: OpaqueNode) -> CodeOnArrays | None:
    name, geometry = node.op.name, node.params["geometry"]
    first, second = [tuple(operand.shape) for operand in node.operands]
    images: Any
    filters: Any
    images, filters, windows = {
        "conv": (first, second, node.shape),
        "conv_input": (node.shape, second, first),
        "conv_filter": (first, node.shape, second),
    }[name]
    if len(filters) > 4 or len(images) != len(windows):
        return None
    plan = [prod(images[:-3]), *images[-3:], *windows[-3:-1], *filters[:2], filters[3]]
    plan += [geometry.groups, *geometry.strides, *geometry.dilations]
    plan += [geometry.padding[0][0], geometry.padding[1][0]]
    return CodeOnArrays(_taps(name), (np.array(plan),))


@cache
def _taps(name: str) -> Callable:
    forward, by_images = name == "conv", name == "conv_input"

    def run(out, first, second, plan):
        height, width, channels, rows, columns = plan[1], plan[2], plan[3], plan[4], plan[5]
        tall, broad, outputs, groups = plan[6], plan[7], plan[8], plan[9]
        own, each = channels // groups, outputs // groups
        out[:] = 0
        for line in range(plan[0] * rows * columns):
            n, r, c = line // (rows * columns), line // columns % rows, line % columns
            for tap in range(tall * broad):
                y = r * plan[10] + tap // broad * plan[12] - plan[14]
                x = c * plan[11] + tap % broad * plan[13] - plan[15]
                if y < 0 or y >= height or x < 0 or x >= width:
                    continue
                pixel = ((n * height + y) * width + x) * channels
                for k in range(channels):
                    window = line * outputs + k // own * each
                    weight = (tap * own + k % own) * outputs + k // own * each
                    for o in range(each):
                        if forward:
                            out[window + o] += first[pixel + k] * second[weight + o]
                        elif by_images:
                            out[pixel + k] += first[window + o] * second[weight + o]
                        else:
                            out[weight + o] += first[pixel + k] * second[window + o]

    return run


def _pooling(node: OpaqueNode) -> CodeOnArrays:
    name, window = node.op.name, node.params["window"]
    back = name == "mean_pool_adjoint"
    images, windows = (node.shape if back else node.operands[0].shape), node.shape
    windows = node.operands[0].shape if back else node.shape
    plan = pool.plan_of(images, (windows[-3], windows[-2]), window)
    dtype = loop_dtype(pool.mean_dtype(node.dtype)) if "mean" in name else node.operands[0].dtype
    result = INT64 if name == "max_pool_indices" else dtype
    return CodeOnArrays(_pooled(name), (plan,), [dtype], result)


@cache
def _pooled(name: str) -> Callable:
    kernel = jitable(pool.KERNELS[name])
    back, indices = name == "mean_pool_adjoint", name == "max_pool_indices"

    def run(out, x, plan):
        out[:] = 0
        if back:
            kernel(out, x, plan)
        elif indices:
            kernel(x, np.empty(plan[3], x.dtype), out, plan)
        else:
            kernel(x, out, plan)

    return run


_BUILDERS: dict[str, Callable[[OpaqueNode], CodeOnArrays | None]] = {
    **dict.fromkeys(("sum", "prod", "max", "min", "any", "all", "mean"), _reduction),
    **dict.fromkeys(("variance", "euclidean_norm", "logsumexp"), _reduction),
    **dict.fromkeys(("softmax", "log_softmax"), _normalisation),
    **dict.fromkeys(("softmax_pull", "log_softmax_pull"), _normalisation_pull),
    **dict.fromkeys(("cumsum", "cumprod", "recurrence"), _scan),
    **dict.fromkeys(("argmax", "argmin"), _search),
    **dict.fromkeys(("sort", "argsort"), _sorted),
    **dict.fromkeys(("take_along_axis", "add_along_axis"), _along_axis),
    **dict.fromkeys(("getitem", "transpose", "broadcast_to", "flip", "roll", "tile"), _key),
    **dict.fromkeys(("matmul", "matvec"), _product),
    **dict.fromkeys(("conv", "conv_input", "conv_filter"), _convolution),
    **dict.fromkeys(pool.KERNELS, _pooling),
    "differentiable": _array_program,
    "flat_positions": _flat_positions,
    "gather": _gather,
    "gather_adjoint": _gather_adjoint,
    "getitem_adjoint": _key_adjoint,
    "invert_permutation": lambda node: CodeOnArrays(
        _mapped(_inverse_order, 1), _lines(node.shape, (len(node.shape) - 1,))
    ),
    "last_sources": _last_sources,
    "one_hot": _one_hot,
    "searchsorted": _searchsorted,
    "segment_extremum": _segment_extremum,
    "segment_rows": _segment_rows,
    "set_row": _set_row,
}


def array_code(node: OpaqueNode, aval: Any) -> CodeOnArrays | None:
    """Return the code of an operation, whose results have `aval`; None if it has none."""
    if node.name == "positions":
        return _positions(node)
    if node.op is None:
        return _key(node) if node.name == "expand" else None
    arrays = [x for x in (node, *node.operands) if x.dtype != object]
    if not all(x.size for x in arrays) or any(x.dtype == np.float16 for x in arrays):
        return None
    if node.op.kind == "user":
        return _user_code(node, aval)
    build = _BUILDERS.get(node.op.name)
    if build is None and isinstance(node.op.kernel, Elementwise):
        build = _elementwise
    return None if build is None else build(node)
