"""The loss of connectionist temporal classification.

A. Graves et al., "Connectionist temporal classification" (2006), has the recursion; it is done on
logarithms, frame by frame, and its derivatives are those of its operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.annotations import TensorLike
from .._core.conversion import convert
from .._core.kinds import REAL
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .comparison import greater, less, not_equal
from .creation import full
from .elementwise import add, multiply, negative, where
from .indexing import gather, getitem
from .padding import pad
from .reductions import reduce_logsumexp
from .shape import (
    broadcast_to,
    cast,
    concatenate,
    expand_dims,
    floating,
    reshape,
    stack,
    transpose,
    unstack,
)
from .sorting import take_along_axis
from .validation import as_int, as_integers, check_kind, check_shapes

_NOTHING = -1e30  # the logarithm of no probability: with -inf, differences would be NaN


def _integers(name: str, argument: str, value: Any, shape: tuple[int, ...], limit: int) -> Tensor:
    """Return integers of a shape; InvalidArgumentError unless those known are from 0 to `limit`."""
    x = as_integers(name, argument, value)
    check_shapes(name, {argument: (x, " ".join(map(str, shape)))})
    data = x._data
    if isinstance(data, np.ndarray) and data.size and not 0 <= data.min() <= data.max() <= limit:
        raise InvalidArgumentError(
            f"{name}: {argument} must be from 0 to {limit}, got {data.tolist()}"
        )
    return cast(x, np.int64)


def ctc_loss(
    labels: TensorLike,
    logits: TensorLike,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return minus the logarithm of the probability of each sequence of labels, (batch,).

    Modelled on ``tf.nn.ctc_loss`` of dense labels: `labels` (batch, longest) has `label_length`
    integers in each row; `logits` (frames, batch, classes), or (batch, frames, classes) unless
    `logits_time_major`, has `logit_length` frames. `blank_index` is the class of blanks, 0 by
    default; a negative one counts from the end. The softmax is part of the loss, which is infinite,
    with the gradient 0, where there are too few frames. It is computed in float32 at least. Raises
    InvalidArgumentError for sizes that do not fit.
    """
    op_name, scores, truth = "ctc_loss", convert(logits), convert(labels)
    check_kind(op_name, "logits", scores, REAL)
    order = "frames batch classes" if logits_time_major else "batch frames classes"
    check_shapes(op_name, {"logits": (scores, order), "labels": (truth, "batch length")})
    scores = floating(scores)
    kind = scores.dtype
    scores = cast(scores, np.float32) if kind.itemsize < 4 else scores
    scores = transpose(scores, (1, 0, 2)) if logits_time_major else scores
    batch, frames, classes = scores.shape
    length = truth.shape[1]
    blank = as_int(op_name, "blank_index", 0 if blank_index is None else blank_index)
    if not -classes <= blank < classes:
        raise InvalidArgumentError(
            f"{op_name}: blank_index is {blank}, and there are {classes} classes"
        )
    counts = _integers(op_name, "label_length", label_length, (batch,), length)
    ends = _integers(op_name, "logit_length", logit_length, (batch,), frames)
    inside = less(np.arange(length), expand_dims(counts, 1))
    labels_inside = where(inside, truth, blank % classes)
    labels_inside = _integers(op_name, "labels", labels_inside, (batch, length), classes - 1)

    # Paths: a blank, and each label with a blank behind it.
    states = 2 * length + 1
    blanks = full((batch, length), blank % classes, np.int64)
    paired = reshape(stack([blanks, labels_inside], -1), (batch, 2 * length))
    path = concatenate([paired, full((batch, 1), blank % classes, np.int64)], 1)
    scores = add(scores, negative(reduce_logsumexp(scores, -1, True)))
    wanted = broadcast_to(expand_dims(path, 1), (batch, frames, states))
    emitted = take_along_axis(scores, wanted, 2)
    # A state follows itself, the one before it, and the label before that if it is another.
    previous = np.arange(states)[:, None] - np.arange(3)
    previous = np.where(previous < 0, states, previous)
    skips = not_equal(getitem(path, (slice(None), slice(2, None))), getitem(path, (..., slice(-2))))
    odd = np.arange(2, states) % 2 == 1
    allowed = pad(where(odd, skips, False), [(0, 0), (states - len(odd), 0)])
    closed = cast(where(allowed, 0.0, _NOTHING), scores.dtype)
    closed = pad(expand_dims(closed, -1), [(0, 0), (0, 0), (2, 0)])

    start = np.full(states, _NOTHING)
    start[0] = 0.0
    running = broadcast_to(convert(start.astype(scores.dtype)), (batch, states))
    for i, frame in enumerate(unstack(emitted, 1)):
        before = gather(pad(running, [(0, 0), (0, 1)], value=_NOTHING), previous, 1)
        ahead = add(reduce_logsumexp(add(before, closed), -1), frame)
        running = where(expand_dims(greater(ends, i), 1), ahead, running)
    last = multiply(counts, 2)
    both = stack([last, where(greater(last, 0), add(last, -1), states)], 1)
    ends_of_paths = take_along_axis(pad(running, [(0, 0), (0, 1)], value=_NOTHING), both, 1)
    loss = negative(reduce_logsumexp(ends_of_paths, -1))
    return cast(where(greater(loss, -0.5 * _NOTHING), np.inf, loss), kind)
