"""Reverse-mode automatic differentiation on a tape, with gradients of your own at every order.

``import tinygrad_cg as tf`` gives TensorFlow's names; NumPy's are in ``tinygrad_cg.numpy``,
Keras's in ``tinygrad_cg.keras.ops``.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import (
    autodiff,
    compat,
    config,
    contrib,
    dtypes,
    errors,
    experimental,
    linalg,
    math,
    nest,
    nn,
    random,
)
from ._core.conversion import IndexedSlices, is_tensor
from ._core.tensor import Tensor, TensorShape
from ._function.codegen import fused_rules as _fused_rules  # noqa: F401 (for gradient functions)
from ._ops import protocol as _numpy_dispatch
from ._ops.creation import constant, convert_to_tensor
from ._reverse.graph_mode import Graph, executing_eagerly, gradients
from ._reverse.variable import Variable
from ._rules import pickling as _pickling  # noqa: F401 (registers how custom gradients travel)
from ._rules.custom_gradient import custom_gradient, grad_pass_through
from ._rules.user_ops import NotDifferentiable, RegisterGradient, primitive
from ._spellings.arrays import (
    argsort,
    broadcast_to,
    clip_by_value,
    concat,
    expand_dims,
    fill,
    gather,
    identity,
    linspace,
    one_hot,
    ones,
    ones_like,
    pad,
    range,
    rank,
    reshape,
    shape,
    size,
    sort,
    split,
    squeeze,
    stack,
    stop_gradient,
    transpose,
    unstack,
    where,
    zeros,
    zeros_like,
)
from ._transforms.batching import vectorized_map, vmap
from ._transforms.functional import elementwise_grad, grad, jvp, linearize, value_and_grad, vjp
from ._transforms.matrices import hessian, hessians, hvp, jacobian
from ._transforms.recompute import recompute_grad
from ._transforms.tape import GradientTape, UnconnectedGradients
from .config.cache import clear_cache
from .config.threading import get_num_threads, set_num_threads
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
from .linalg import einsum, eye, matmul, norm, tensordot
from .math import (
    abs,
    acos,
    acosh,
    add,
    argmax,
    argmin,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    cumsum,
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
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    truediv,
)

__all__ = [
    "CustomGradientWarning",
    "DType",
    "GradientTape",
    "Graph",
    "IndexedSlices",
    "Module",
    "NotDifferentiable",
    "RegisterGradient",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "UnconnectedGradients",
    "Variable",
    "abs",
    "acos",
    "acosh",
    "add",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "asin",
    "asinh",
    "assert_gradients",
    "atan",
    "atan2",
    "atanh",
    "autodiff",
    "bool",
    "broadcast_to",
    "cast",
    "check_gradients",
    "clear_cache",
    "clip_by_value",
    "compat",
    "complex64",
    "complex128",
    "concat",
    "config",
    "constant",
    "contrib",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "custom_derivatives",
    "custom_gradient",
    "debug_nans",
    "debugging",
    "divide",
    "double",
    "dtypes",
    "einsum",
    "elementwise_grad",
    "equal",
    "errors",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "experimental",
    "eye",
    "fill",
    "float16",
    "float32",
    "float64",
    "floor",
    "function",
    "gather",
    "get_num_threads",
    "grad",
    "grad_pass_through",
    "gradients",
    "greater",
    "greater_equal",
    "half",
    "hessian",
    "hessians",
    "hvp",
    "identity",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_tensor",
    "jacobian",
    "jvp",
    "keras",
    "less",
    "less_equal",
    "linalg",
    "linearize",
    "linspace",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "math",
    "matmul",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nest",
    "newaxis",
    "nn",
    "norm",
    "not_equal",
    "numpy",
    "one_hot",
    "ones",
    "ones_like",
    "optimizers",
    "pad",
    "plot_derivatives",
    "pow",
    "primitive",
    "random",
    "range",
    "rank",
    "ravel_tree",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reshape",
    "round",
    "scalar_mul",
    "set_num_threads",
    "shape",
    "show",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "subtract",
    "tan",
    "tanh",
    "tensordot",
    "test",
    "transpose",
    "truediv",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unstack",
    "value_and_grad",
    "vectorized_map",
    "vjp",
    "vmap",
    "where",
    "zeros",
    "zeros_like",
]

newaxis = None
_numpy_dispatch.loaders.append(partial(import_module, f"{__name__}.numpy"))

# Modules and names loaded at their first use, so that importing the library stays quick: modules,
# and what is found in one.
_LAZY = {
    "Module": ".module",
    "TensorSpec": "._function.tracing.signature",
    "assert_gradients": "._check",
    "check_gradients": "._check",
    "custom_derivatives": "._derivatives",
    "debug_nans": ".debugging",
    "debugging": "",
    "function": "._function.tracing.function",
    "keras": "",
    "numpy": "",
    "optimizers": "",
    "plot_derivatives": "._pictures.curves",
    "ravel_tree": "._transforms.ravel",
    "show": "._pictures.picture",
    "test": "",
}

if TYPE_CHECKING:
    from . import debugging, keras, numpy, optimizers, test
    from ._check import assert_gradients, check_gradients
    from ._derivatives import custom_derivatives
    from ._function.tracing.function import function
    from ._function.tracing.signature import TensorSpec
    from ._pictures.curves import plot_derivatives
    from ._pictures.picture import show
    from ._transforms.ravel import ravel_tree
    from .debugging import debug_nans
    from .module import Module


def _draw(tape: GradientTape) -> dict[str, str]:
    """Return what a notebook shows for a tape."""
    from ._pictures.picture import tape_bundle

    return tape_bundle(tape)


GradientTape._draw = staticmethod(_draw)


def __getattr__(name: str) -> Any:
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(home or f".{name}", __name__)
    found = getattr(module, name) if home else module
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
