"""Attention: weighted means of values, by how well keys agree with queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.conversion import convert
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .comparison import logical_and
from .einsum import einsum
from .elementwise import add, multiply, tanh, where
from .indexing import gather
from .reductions import softmax
from .validation import check_shapes


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: Any = None,
    is_causal: bool = False,
    cap: Any = None,
) -> Tensor:
    """Return ``softmax(query key' * scale + bias) value`` for each head, masked.

    `query` is (batch, T, N, H), `key` and `value` are (batch, S, K, H), where the K heads are
    shared by the N heads of queries if N is a multiple of K; the result is (batch, T, N, H). `bias`
    and `mask` (true where a key is seen) broadcast with (batch, N, T, S). `scale` is by default 1 /
    sqrt(H). With `is_causal` a query sees no key behind its place; scores are capped by tanh at
    `cap` if that is given. Modelled on ``keras.ops.dot_product_attention``. InvalidArgumentError
    for shapes that do not fit.
    """
    query, key, value = convert(query), convert(key), convert(value)
    name = "dot_product_attention"
    operands = {
        "query": (query, "batch T N H"),
        "key": (key, "batch S K H"),
        "value": (value, "batch S K size"),
    }
    check_shapes(name, operands)
    heads, shared = query.shape[2], key.shape[2]
    if not shared or heads % shared:
        raise InvalidArgumentError(f"{name}: N = {heads} must be a multiple of K = {shared}")
    if heads != shared:
        of_head = np.repeat(np.arange(shared), heads // shared)
        key, value = gather(key, of_head, 2), gather(value, of_head, 2)
    factor = float(query.shape[3]) ** -0.5 if scale is None else scale
    scores = multiply(einsum("btnh,bsnh->bnts", query, key), factor)
    if cap is not None:
        scores = multiply(tanh(multiply(scores, 1 / cap)), cap)
    if bias is not None:
        scores = add(scores, bias)
    if is_causal:
        seen = np.tri(query.shape[1], key.shape[1], dtype=bool)
        mask = seen if mask is None else logical_and(mask, seen)
    if mask is not None:
        scores = where(mask, scores, -0.7 * float(np.finfo(scores.dtype).max))
    return einsum("bnts,bsnh->btnh", softmax(scores, -1), value)
