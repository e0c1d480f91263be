"""Gradients of functions of eigenvalues and of singular values, and their derivatives.

The gradient of f(values) by a matrix is left diag(g) adjoint(right), where g is the gradient of f.
Its derivative has the quotients (g_i - g_j) / (v_i - v_j); that of singular values has also
(g_i + g_j) / (v_i + v_j) and g_i / v_i. For equal values the first has the limit f_ii - f_ij, for
values that are 0 all have the limit f_ii, if f does not depend on the order and the signs of the
values: A. Lewis and H. Sendov, "Twice differentiable spectral functions" (2001). The product of
the second derivatives of f with one vector tells all limits, see `_limits`. Other functions have
no second derivative there.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._core import devices
from .._core.kinds import is_complex
from .._core.levels import Token, is_transposing, stack, state
from .._core.record import Node, find, nodes_of
from .._core.tensor import Aval, Tensor
from ..errors import DerivativeWarning, warn
from .comparison import equal, logical_and
from .complex import conj
from .define import Case, operation
from .elementwise import add, divide, multiply, subtract, where
from .matrices import adjoint, copied_aval, copy_of, largest, product, tolerance
from .reductions import reduce_sum
from .shape import cast, expand_dims, reshape, swap_last

_MOST_NODES = 1000
_VALUES = np.array([[2.0, 2.0, 0.0]])


def _operation(name: str, run: Any, abstract: Any, vjp: Any, inputs: str, sample: Case) -> Any:
    names = tuple(inputs.split())
    return operation(
        name,
        run,
        abstract,
        vjp,
        inputs=names,
        kind="contraction",
        core=(2,) * len(names),
        samples=[sample],
        analytic=False,
    )


# Where quotients have limits -------------------------------------------------------------------


def _least(values: np.ndarray) -> np.ndarray:
    """Return the distance below which quotients lose most digits."""
    return _largest(values) * float(np.finfo(values.dtype).eps) ** 0.625


def _largest(x: np.ndarray) -> np.ndarray:
    return largest(np.abs(x), -1, True)


def _near(values: np.ndarray) -> np.ndarray:
    return np.abs(values - np.swapaxes(values, -1, -2)) <= _least(values)


def _zero(values: np.ndarray, name: str) -> np.ndarray:
    return (np.abs(values) <= _least(values)) & (name == "svdvals")


def _any_near(near: np.ndarray, zero: np.ndarray) -> bool:
    return bool(near.sum() > near.shape[-1] * zero[..., 0].size or zero.any())


def _matters(values: Tensor, name: str) -> bool:
    """Return whether a quotient may need its limit."""
    data = values._data
    return type(data) is not np.ndarray or _any_near(_near(data), _zero(data, name))


_pairs = _operation(
    "near_values",
    _near,
    lambda values: Aval((*values.shape[:-2], *values.shape[-1:] * 2), np.dtype(np.bool_)),
    None,
    "values",
    Case(((1, 3),), {}, {0: _VALUES}),
)
_zeros = _operation(
    "zero_values",
    _zero,
    lambda values, name: values._replace(dtype=np.dtype(np.bool_)),
    None,
    "values",
    Case(((1, 3),), {"name": "svdvals"}, {0: _VALUES}),
)


def _run_direction(values: np.ndarray, name: str) -> np.ndarray:
    """Return a vector that tells values near each other apart: of sum 0, and not 0 for zeros."""
    near, zero = _near(values), _zero(values, name)
    if not _any_near(near, zero):
        return np.zeros_like(values)
    place = 1 + (near & np.tril(np.ones_like(near), -1)).sum(-1)[..., None, :]
    squares = place * place
    mean = squares @ near / near.sum(-2, keepdims=True)
    return np.where(zero, squares, squares - mean).astype(values.dtype)


_direction = _operation(
    "direction_of_values",
    _run_direction,
    lambda values, name: values,
    None,
    "values",
    Case(((1, 3),), {"name": "svdvals"}, {0: _VALUES}),
)


def _run_weights(values: np.ndarray, direction: np.ndarray, name: str) -> np.ndarray:
    """Return the weights with which products along `direction` add up to the limits."""
    near, zero = _near(values), _zero(values, name)
    mean = direction @ near / near.sum(-2, keepdims=True)
    direction = np.where(zero, direction, direction - mean)
    total = (np.abs(direction) ** 2) @ near
    least = float(np.finfo(values.dtype).eps) * _largest(direction) ** 2
    counts = total > least
    weights = np.where(counts, direction / np.where(counts, total, 1), 0)
    return weights.astype(values.dtype)


_WAY = np.array([[1.0, -1.0, 1.0]])
_weights = _operation(
    "weights_of_limits",
    _run_weights,
    copied_aval,
    None,
    "values direction",
    Case(((1, 3), (1, 3)), {"name": "svdvals"}, {0: _VALUES, 1: _WAY}),
)


def _run_limits(
    image: np.ndarray,
    turned: np.ndarray,
    values: np.ndarray,
    slopes: np.ndarray,
    direction: np.ndarray,
    name: str,
) -> np.ndarray:
    """Return the limits, NaN where they are not known.

    They are known if f does not depend on the order of the values: equal values have equal slopes,
    and second derivatives of limits * conj(direction) plus a constant. `turned`, along 1j times the
    direction, tells whether f is holomorphic.
    """
    near, zero = _near(values), _zero(values, name)
    if not _any_near(near, zero):
        return copy_of(np.zeros_like(values), image, turned, slopes, direction)
    count = near.sum(-2, keepdims=True)
    weights = _run_weights(values, direction, name)
    limits = (image * weights) @ near
    slack = float(np.finfo(values.dtype).eps) ** 0.5
    rest = image - limits * direction.conj()
    rest = np.where(zero, rest, rest - rest @ near / count)
    size = np.where(_largest(values) == 0, 1, _largest(values))
    room = slack * (_largest(image) + _largest(slopes) / size)
    wrong = (np.abs(rest) > room) | ((weights == 0) @ near == count)
    if name == "eigvals":
        wrong = wrong | (np.abs(turned + 1j * image) > room)
    room = slack * _largest(slopes) + 2 * np.abs(limits) * _least(values)
    apart = near & (np.abs(slopes - np.swapaxes(slopes, -1, -2)) > room)
    wrong = wrong | apart.any(-2, keepdims=True) | (zero & (np.abs(slopes) > room))
    wrong = (wrong & ((count > 1) | zero)) @ near
    return copy_of(np.where(wrong, np.nan, limits).astype(values.dtype), turned)


def _image_rule(dy: Tensor, values: Tensor, direction: Tensor, name: str) -> Tensor:
    near = cast(_pairs(values), values.dtype)
    return multiply(conj(_weights(values, direction, name=name)), product(dy, near))


_limits_of = _operation(
    "limits_of_quotients",
    _run_limits,
    lambda image, *others, name: copied_aval(image, *others)._replace(dtype=others[1].dtype),
    (_image_rule, None, None, None, None),
    "image turned values slopes direction",
    Case(((1, 3),) * 5, {"name": "eigvalsh"}, {2: np.array([[1.0, 2.0, 4.0]])}),
)


def _limits(
    x: Tensor, out: Tensor, slopes: Tensor, left: Tensor, values: Tensor, right: Tensor, name: str
) -> Tensor:
    """Return the limits of quotients, NaN where there are none, or where nothing tells them."""
    arrays, tangents = devices.library_of(devices.data_of(values)), _tangents(x)
    nothing = Tensor(arrays.zeros(values._data.shape, values.dtype))
    tokens = _recording(x)
    if not (tokens or tangents) or is_transposing() or not _matters(values, name):
        return nothing
    direction = _direction(values, name=name)
    images = [  # directions, and second derivatives times these and times 1j these
        (direction, *_images(token, x, out, slopes, direction, nothing)) for token in tokens
    ]
    for group, tangent in tangents.items():
        image = _tangents(slopes).get(group)
        if image is None:
            images.append((direction, nothing, nothing))
            continue
        moved, image = cast(_by_slopes(tangent, left, right), values.dtype), expand_dims(image, -2)
        images.append((moved, image, multiply(image, -1j) if name == "eigvals" else nothing))
    result = Tensor(arrays.full(values._data.shape, np.nan, values.dtype))
    for direction, image, turned in images:
        operands = (image, turned, values, expand_dims(slopes, -2), direction)
        limits = _limits_of(*operands, name=name)
        result = where(equal(limits, limits), limits, result)
    return result


def _images(
    token: Token, x: Tensor, out: Tensor, slopes: Tensor, direction: Tensor, nothing: Tensor
) -> list[Tensor]:
    """Return the products of the second derivatives with `direction` and with 1j times it.

    NaN where the slopes depend on `x` otherwise than by the values `out`.
    """
    target, source = find(slopes._rec, token), find(out._rec, token)
    if target is None:
        return [nothing, nothing]
    if source is None:
        return [add(nothing, np.nan)] * 2
    sources = {source: None}
    origin, between = _ancestors(find(x._rec, token), {}), _ancestors(target, sources)
    if origin is None or between is None or not origin.isdisjoint(between):
        return [add(nothing, np.nan)] * 2
    products = []
    for seed in (
        (direction, multiply(direction, 1j)) if is_complex(direction.dtype) else (direction,)
    ):
        seeds = [(target, reshape(seed, slopes._data.shape))]
        totals, _ = state.sweep.pull_back(token, seeds, {*sources}, {*sources})
        parts = [expand_dims(totals[node], -2) for node in sources if node in totals]
        products.append(functools.reduce(add, parts) if parts else nothing)
    return (products * 2)[:2]


def _ancestors(node: Node | None, values: dict[Node, None]) -> set[Node] | None:
    """Return a node and what it was computed from; None where that is too much to look at.

    The search ends at `values`. Further calls for the same matrix are added to these.
    """
    ancestors: set[Node] = set()
    calls = {(node.rule, *node.inputs) for node in values}
    pending: list[Any] = [node]
    while pending:
        node = pending.pop()
        if node is None or node in ancestors or node in values:
            continue
        if (node.rule, *node.inputs) in calls:
            values[node] = None
            continue
        if len(ancestors) == _MOST_NODES:
            return None
        ancestors.add(node)
        pending += node.inputs
    return ancestors


def _recording(x: Tensor) -> list[Token]:
    """Return the tapes that record, and have a record of `x`."""
    tokens = [token for token in stack(state.frame) if type(token) is Token]
    return [token for token in tokens if find(x._rec, token) is not None]


def _tangents(tensor: Tensor) -> dict[Any, Tensor]:
    """Return the tangents of a tensor by their accumulators, whose records have no operands."""
    nodes = nodes_of(tensor._rec)
    return {node.group: node.saved for node in nodes if node.rule is not None and not node.inputs}


# What is left out ------------------------------------------------------------------------------


def _run_check(
    x: np.ndarray,
    left: np.ndarray,
    values: np.ndarray,
    right: np.ndarray,
    limits: np.ndarray,
    name: str,
    diagonal: bool,
) -> np.ndarray:
    """Return `x`; warn if it has terms between vectors of equal values whose limit is NaN."""
    unknown = np.isnan(limits)
    if unknown.any():
        inner = np.swapaxes(left, -1, -2).conj() @ x @ right
        both = inner if name == "eigvals" else (inner + np.swapaxes(inner, -1, -2).conj()) / 2
        several, zero = _near(values), _zero(values, name) & unknown
        if not diagonal:
            several = np.tril(several, -1) | np.triu(several, 1)
        asked = [
            np.where(several & unknown, np.abs(both), 0),
            np.where(zero & np.swapaxes(zero, -1, -2), np.abs(inner), 0),
        ]
        if left.shape[-2] > left.shape[-1]:
            asked.append(np.where(zero, np.abs(x @ right - left @ inner), 0))
        if right.shape[-2] > right.shape[-1]:
            back = np.swapaxes(x, -1, -2).conj() @ left - right @ np.swapaxes(inner, -1, -2).conj()
            asked.append(np.where(zero, np.abs(back), 0))
        room = 100 * tolerance(values.dtype, max(x.shape[-2:])) * largest(np.abs(x), None)
        if any(largest(array, None) > room for array in asked):
            warn(
                f"{name}: a derivative needs limits of quotients at (nearly) equal or zero "
                "values, and is computed without them. Second derivatives have them if "
                "the function does not depend on the order of the values; third derivatives and a "
                "tape around forward mode do not. For functions of a matrix use expm, "
                "logm, sqrtm, inv, pinv",
                DerivativeWarning,
            )
    return copy_of(x, left, values, right, limits)


_check = _operation(
    "check_limits",
    _run_check,
    copied_aval,
    (lambda dy: dy, None, None, None, None),
    "x left values right limits",
    Case(((2, 3, 3), (3, 3), (1, 3), (3, 3), (1, 3)), {"name": "svdvals", "diagonal": True}),
)


def _by_left(
    asked: Tensor, left: Tensor, values: Tensor, right: Tensor, name: str, diagonal: bool
) -> Tensor:
    """Return zeros, for the vectors; warn if what is asked for has terms between equal values."""
    unknown = devices.library_of(devices.data_of(values)).full(
        values._data.shape, np.nan, values.dtype
    )
    operands = (asked, left, values, right, Tensor(unknown))
    checked = _check(*operands, name=name, diagonal=diagonal)
    return multiply(product(checked, right), 0)


_ending = _operation(
    "without_limits",
    lambda x, *others, **_: copy_of(x, *others),
    copied_aval,
    (lambda dy: dy, None, _by_left, None, None),
    "x asked left values right",
    Case(((1, 3), (3, 3), (3, 3), (1, 3), (3, 3)), {"name": "svdvals", "diagonal": False}),
)


def _end(x: Tensor, *operands: Tensor, name: str, diagonal: bool) -> Tensor:
    """Return `x`; its derivative by the vectors lacks limits, and warns if these are asked for.

    `operands`: the tensor of which `x` is a linear function, left vectors, values, right vectors.
    """
    if not _matters(operands[2], name):
        return x
    return _ending(x, *operands, name=name, diagonal=diagonal)


# The gradient ----------------------------------------------------------------------------------


def _by_slopes(dy: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return reduce_sum(multiply(conj(left), product(dy, right)), -2, True)


def _slopes_rule(dy: Tensor, left: Tensor, values: Tensor, right: Tensor, name: str) -> Tensor:
    result = _by_slopes(dy, left, right)
    return _end(result, dy, left, values, right, name=name, diagonal=False)


def _matrix_rule(
    dy: Tensor,
    slopes: Tensor,
    left: Tensor,
    values: Tensor,
    right: Tensor,
    limits: Tensor,
    name: str,
) -> Tensor:
    if not is_transposing():
        operands = (dy, left, values, right, limits)
        dy = _check(*operands, name=name, diagonal=False)
    limits = where(equal(limits, limits), limits, 0)
    inner = product(product(adjoint(left), dy), right)
    back = adjoint(inner)
    gaps = conj(subtract(values, swap_last(values)))
    near = _pairs(values)
    quotients = divide(subtract(slopes, swap_last(slopes)), where(near, 1, gaps))
    others = 1 - np.eye(values._data.shape[-1], dtype=values.dtype)
    quotients = multiply(where(near, limits, quotients), others)
    if name != "svdvals":
        both = back if name == "eigvals" else multiply(add(inner, back), 0.5)
        result = product(product(left, multiply(quotients, both)), adjoint(right))
        return _end(result, dy, left, values, right, name=name, diagonal=True)
    zero = _zeros(values, name=name)
    zeros = logical_and(zero, swap_last(zero))
    sums = divide(add(slopes, swap_last(slopes)), where(zeros, 1, add(values, swap_last(values))))
    sums = where(zeros, limits, sums)
    middle = add(multiply(quotients, add(inner, back)), multiply(sums, subtract(inner, back)))
    result = product(product(left, multiply(middle, 0.5)), adjoint(right))
    over = where(zero, limits, divide(slopes, where(zero, 1, values)))
    height, width = dy._data.shape[-2:]
    if height > width:
        outside = subtract(product(dy, right), product(left, inner))
        result = add(result, product(multiply(outside, over), adjoint(right)))
    if width > height:
        outside = subtract(product(adjoint(dy), left), product(right, back))
        result = add(result, product(left, adjoint(multiply(outside, over))))
    return _end(result, dy, left, values, right, name=name, diagonal=True)


_gradient = _operation(
    "gradient_by_values",
    lambda x, slopes, left, values, right, limits, name: copy_of(
        (left * slopes) @ np.swapaxes(right, -1, -2).conj(), x, values, limits
    ),
    lambda x, slopes, left, *others, name: copied_aval(x, slopes, left, *others)._replace(
        dtype=np.result_type(slopes.dtype, left.dtype)
    ),
    (_matrix_rule, _slopes_rule, None, None, None, None),
    "x slopes left values right limits",
    Case(((2, 1, 1),) * 6, {"name": "eigvalsh"}, dict.fromkeys((2, 4), np.ones((1, 1), bool))),
)


def for_vectors(x: Tensor) -> Tensor:
    """Return `x` to compute the vectors of its gradient from: without its record, if that can be.

    Second derivatives use no derivative of vectors (see `_matrix_rule`), third ones do.
    """
    several = len(_recording(x)) + len(_tangents(x)) > 1
    everything = any(type(level) is Token and level.everything for level in stack(state.frame))
    return x if several or everything else x._with_record(None)


def gradient_by_values(
    name: str, x: Tensor, out: Tensor, slopes: Tensor, left: Tensor, values: Tensor, right: Tensor
) -> Tensor:
    """Return the gradient left diag(slopes) adjoint(right) of a function of the values of `x`.

    `out` has these values, with their record; `values`, as a row, has the record of the vectors.
    """
    limits = _limits(x, out, slopes, left, values, right, name)
    for tangent in () if is_transposing() else _tangents(x).values():
        if _matters(values, name):
            operands = (tangent, left, values, right, limits)
            _check(*operands, name=name, diagonal=False)
    operands = (x, expand_dims(slopes, -2), left, values, right, limits)
    return _gradient(*operands, name=name)
