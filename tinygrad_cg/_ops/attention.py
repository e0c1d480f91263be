"""Attention: weighted means of values, by how well keys agree with queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.annotations import TensorLike
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
    value: TensorLike,
    bias: Any = None,
    mask: Any = None,
    scale: Any = None,
    is_causal: bool = False,
    flash_attention: Any = None,
    attn_logits_soft_cap: Any = None,
) -> Tensor:
    """Return ``softmax(query key' * scale + bias) value`` for each head: (batch, queries, heads,
    size) from queries of that shape and keys and values (batch, keys, key_heads, size); heads is a
    multiple of key_heads. `mask` is true for keys that a query attends to. `flash_attention` has no
    effect."""
    query, key, value = convert(query), convert(key), convert(value)
    name = "dot_product_attention"
    operands = {
        "query": (query, "batch queries heads size"),
        "key": (key, "batch keys key_heads size"),
        "value": (value, "batch keys key_heads value_size"),
    }
    check_shapes(name, operands)
    heads, shared = query.shape[2], key.shape[2]
    if not shared or heads % shared:
        raise InvalidArgumentError(
            f"{name}: the heads of query, {heads}, must be a multiple of those of key, {shared}"
        )
    if heads != shared:
        of_head = np.repeat(np.arange(shared), heads // shared)
        key, value = gather(key, of_head, 2), gather(value, of_head, 2)
    factor = float(query.shape[3]) ** -0.5 if scale is None else scale
    scores = multiply(einsum("btnh,bsnh->bnts", query, key), factor)
    if attn_logits_soft_cap is not None:
        scores = multiply(tanh(multiply(scores, 1 / attn_logits_soft_cap)), attn_logits_soft_cap)
    if bias is not None:
        scores = add(scores, bias)
    if is_causal:
        seen = np.tri(query.shape[1], key.shape[1], dtype=bool)
        mask = seen if mask is None else logical_and(mask, seen)
    if mask is not None:
        scores = where(mask, scores, -0.7 * float(np.finfo(scores.dtype).max))
    return einsum("bnts,bsnh->btnh", softmax(scores, -1), value)
