"""Einstein summation, as transposes, reshapes and matrix products."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
from math import prod
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from .._core.conversion import INT32, convert_operands
from .._core.kinds import is_bool
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .elementwise import multiply
from .indexing import getitem
from .linear_algebra import matmul
from .reductions import reduce_sum
from .shape import cast, reshape, squeeze, swap_last, transpose

# A term is a tensor with a label for each of its axes. Labels are single characters; the axes
# that an ellipsis stands for are labelled with digits, the last of them "0".

Term = tuple[Tensor, str]
_LETTERS = ascii_uppercase + ascii_lowercase  # what NumPy's integers stand for, 0 to 51


def einsum(subscripts: Any, *operands: Any) -> Tensor:
    """Return the sum over products of elements with equal indices, as ``np.einsum``."""
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: subscripts must be a string, got {type(subscripts).__name__}")
    tensors = convert_operands(operands)
    ranks = tuple(tensor._data.ndim for tensor in tensors)
    inputs, output = _parse(subscripts, ranks)
    if all(is_bool(tensor.dtype) for tensor in tensors):
        raise TypeError("einsum: does not support bool: cast to a numeric dtype first")
    terms = list(zip(map(_number, tensors), inputs, strict=True))
    sizes = _sizes(subscripts, terms)
    terms = [_distinct(subscripts, term, sizes) for term in terms]
    while len(terms) > 1:
        pair = _cheapest([labels for _, labels in terms], output, sizes)
        first, second = (terms[i] for i in pair)
        terms = [term for i, term in enumerate(terms) if i not in pair]
        kept = {*output}.union(*(labels for _, labels in terms))
        first = _sum_unneeded(first, kept | {*second[1]})
        terms.append(_product(first, _sum_unneeded(second, kept | {*first[1]}), kept))
    x, labels = _sum_unneeded(terms[0], {*output})
    return _order_axes(x, labels, output)


def from_lists(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of `einsum` from NumPy's other form, as x, [0, 1], y, [1, 2], [0, 2].

    Raises TypeError for labels that are not integers, ValueError for those not in 0 .. 51.
    """
    if not arguments or isinstance(arguments[0], str):
        return arguments
    operands, labels = arguments[0 : len(arguments) // 2 * 2 : 2], arguments[1::2]
    text = ",".join(map(_letters, labels))
    if len(arguments) % 2:
        text += "->" + _letters(arguments[-1])
    return text, *operands


def _letters(labels: Any) -> str:
    if not isinstance(labels, (list, tuple)):
        raise TypeError(
            f"einsum: after each operand, a list of integers must name its axes, got {labels!r}"
        )
    letters = []
    for label in labels:
        if label is not Ellipsis and not 0 <= operator.index(label) < len(_LETTERS):
            raise ValueError(f"einsum: labels must be from 0 to 51, got {label}")
        letters.append("..." if label is Ellipsis else _LETTERS[label])
    return "".join(letters)


# Subscripts ----------------------------------------------------------------------------------


def _refuse(subscripts: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"einsum: in the subscripts {subscripts!r}, {reason}")


@lru_cache(maxsize=1024)
def _parse(subscripts: str, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Return the labels of each operand's axes, and of the result's."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        reason = f"the commas separate {len(parts)} operands, but the call passes {len(ranks)}"
        raise _refuse(subscripts, reason)
    if "->" in right:
        raise _refuse(subscripts, "'->' may occur only once, before the labels of the result")
    inputs = tuple(_labels(subscripts, part, rank) for part, rank in zip(parts, ranks, strict=True))
    counts = Counter("".join(inputs))
    hidden = "".join(sorted((label for label in counts if label.isdigit()), reverse=True))
    if not arrow:
        once = sorted(label for label, count in counts.items() if count == 1)
        return inputs, hidden + "".join(label for label in once if not label.isdigit())
    before, dots, after = right.partition("...")
    _check_letters(subscripts, before + after)
    output = before + hidden + after if dots else before + after
    if hidden and not dots:
        raise _refuse(subscripts, "the result needs '...', too: sum over its axes afterwards")
    for label, count in Counter(output).items():
        if count > 1 or label not in counts:
            reason = "names {!r} twice" if count > 1 else "names {!r}, but no operand does"
            raise _refuse(subscripts, f"the result {reason.format(label)}")
    return inputs, output


def _labels(subscripts: str, part: str, rank: int) -> str:
    before, dots, after = part.partition("...")
    named = len(before) + len(after)
    _check_letters(subscripts, before + after)
    if named > rank or (named < rank and not dots):
        raise _refuse(subscripts, f"{part!r} names {named} axes, but its operand has {rank}")
    if rank - named > 10:
        raise _refuse(subscripts, f"'...' stands for {rank - named} axes; at most 10 are supported")
    hidden = "".join(str(i) for i in range(rank - named - 1, -1, -1))
    return before + hidden + after


def _check_letters(subscripts: str, labels: str) -> None:
    wrong = [label for label in labels if not (label.isascii() and label.isalpha())]
    if wrong:
        raise _refuse(subscripts, f"{wrong[0]!r} is not allowed: use letters, ',', '->' and '...'")


def _sizes(subscripts: str, terms: list[Term]) -> dict[str, int]:
    """Return the size of each label; axes of size 1 broadcast."""
    sizes: dict[str, int] = {}
    for x, labels in terms:
        for label, size in zip(labels, x._data.shape, strict=True):
            current = sizes.get(label, 1)
            if size != current and 1 not in (size, current):
                name = "..." if label.isdigit() else label
                raise _refuse(
                    subscripts, f"the axes {name!r} have different sizes, {current} and {size}"
                )
            sizes[label] = size if current == 1 else current
    return sizes


# Terms ---------------------------------------------------------------------------------------


def _number(x: Tensor) -> Tensor:
    """Return booleans as int32."""
    return cast(x, INT32) if is_bool(x.dtype) else x


def _distinct(subscripts: str, term: Term, sizes: dict[str, int]) -> Term:
    """Return a term with each label once, and without axes of size 1 that only broadcast."""
    x, labels = term
    for label in {*labels} if len({*labels}) < len(labels) else ():
        for _ in range(labels.count(label) - 1):
            x, labels = _diagonal(subscripts, x, labels, label)
    single = [i for i, label in enumerate(labels) if x._data.shape[i] == 1 != sizes[label]]
    if single:
        x = squeeze(x, single)
        labels = "".join(label for i, label in enumerate(labels) if i not in single)
    return x, labels


def _diagonal(subscripts: str, x: Tensor, labels: str, label: str) -> Term:
    """Return the diagonal of two axes with one label, as the last axis."""
    first = labels.index(label)
    second = labels.index(label, first + 1)
    rest = [i for i in range(len(labels)) if i not in (first, second)]
    shape = x._data.shape
    if shape[first] != shape[second]:
        reason = f"the axes {label!r} have different sizes, {shape[first]} and {shape[second]}"
        raise _refuse(subscripts, reason)
    flat = transpose(x, (*rest, first, second))
    flat = reshape(flat, (*(shape[i] for i in rest), shape[first] ** 2))
    x = getitem(flat, (..., slice(None, None, shape[first] + 1)))
    return x, "".join(labels[i] for i in rest) + label


def _sum_unneeded(term: Term, kept: set[str]) -> Term:
    """Return a term without the axes whose labels nothing else needs."""
    x, labels = term
    axes = [i for i, label in enumerate(labels) if label not in kept]
    if not axes:
        return term
    return reduce_sum(x, axes), "".join(label for label in labels if label in kept)


def _cheapest(terms: list[str], output: str, sizes: dict[str, int]) -> tuple[int, int]:
    """Return the two terms whose product takes the fewest steps, and is the smallest of these."""
    if len(terms) == 2:
        return 0, 1

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        both = {*terms[pair[0]], *terms[pair[1]]}
        others = {*output}.union(*(labels for i, labels in enumerate(terms) if i not in pair))
        return _count(both, sizes), _count(both & others, sizes)

    return min(combinations(range(len(terms)), 2), key=cost)


def _count(labels: Iterable[str], sizes: dict[str, int]) -> int:
    return prod(sizes[label] for label in labels)


def _product(first: Term, second: Term, kept: set[str]) -> Term:
    """Return the product of two terms, summed over the labels of both that nothing else needs."""
    (x, left), (y, right) = first, second
    longer = left if prod(x._data.shape) >= prod(y._data.shape) else right
    shared = [label for label in longer if label in left and label in right]
    batch = [label for label in shared if label in kept]
    contracted = [label for label in shared if label not in kept]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    labels = "".join(batch + rows + columns)
    sizes = dict(zip(left + right, x._data.shape + y._data.shape, strict=True))
    if not contracted:
        x = _order_axes(x, left, batch + rows)
        y = _order_axes(y, right, batch + columns)
        shape = y._data.shape
        x = reshape(x, x._data.shape + (1,) * len(columns))
        y = reshape(y, (*shape[: len(batch)], *(1,) * len(rows), *shape[len(batch) :]))
        return multiply(x, y), labels
    product = matmul(
        _matrices(x, left, batch, rows, contracted), _matrices(y, right, batch, contracted, columns)
    )
    shape = tuple([sizes[label] for label in labels])
    return product if product._data.shape == shape else reshape(product, shape), labels


def _matrices(x: Tensor, labels: str, batch: list, rows: list, columns: list) -> Tensor:
    """Return a term as a stack of matrices: a view, wherever one of its transposes can be."""
    own = [label for label in labels if label not in batch]
    is_transposed = bool(rows) and own[0] in columns
    order = [*batch, *columns, *rows] if is_transposed else [*batch, *rows, *columns]
    x = _order_axes(x, labels, order)
    shape, lead = x._data.shape, len(batch)
    middle = lead + len(columns if is_transposed else rows)
    matrix = (*shape[:lead], prod(shape[lead:middle]), prod(shape[middle:]))
    x = x if matrix == shape else reshape(x, matrix)
    return swap_last(x) if is_transposed else x


def _order_axes(x: Tensor, labels: str, order: Iterable[str]) -> Tensor:
    perm = [labels.index(label) for label in order]
    return x if perm == sorted(perm) else transpose(x, perm)
