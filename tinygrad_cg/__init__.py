"""Reverse-mode automatic differentiation on a tape, with gradients of your own at every order.

``import tinygrad_cg as tf`` gives TensorFlow's names; NumPy's are in ``tinygrad_cg.numpy``,
Keras's in ``tinygrad_cg.keras.ops``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import compat, contrib, dtypes, errors, keras, linalg, math, nest, nn, numpy, random
from .arrays import (
    broadcast_to,
    clip_by_value,
    concat,
    expand_dims,
    fill,
    gather,
    identity,
    linspace,
    ones,
    ones_like,
    range,
    rank,
    reshape,
    shape,
    size,
    squeeze,
    stack,
    stop_gradient,
    transpose,
    unstack,
    where,
    zeros,
    zeros_like,
)
from .convert import is_tensor
from .custom_gradient import custom_gradient, grad_pass_through
from .dtypes import (
    DType,
    as_dtype,
    bool,
    cast,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .errors import CustomGradientWarning
from .linalg import eye, matmul, tensordot
from .math import (
    abs,
    add,
    argmax,
    argmin,
    cos,
    divide,
    equal,
    exp,
    floor,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    pow,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round,
    scalar_mul,
    sigmoid,
    sign,
    sin,
    sqrt,
    square,
    subtract,
    tanh,
    truediv,
)
from .ops.creation import constant, convert_to_tensor
from .tape import GradientTape, UnconnectedGradients
from .tensor import Tensor, TensorShape
from .variable import Variable

newaxis = None

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
