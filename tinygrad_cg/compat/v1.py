"""The names that programs and documentation for TensorFlow 1 use."""

from functools import partial

from .._core.suggestions import refuse_name
from .._reverse.graph_mode import (
    Graph,
    disable_eager_execution,
    enable_eager_execution,
    executing_eagerly,
    gradients,
)
from .._reverse.variable_scope import AUTO_REUSE, get_variable, get_variable_scope, variable_scope
from .._rules.custom_gradient import custom_gradient
from ..math import (
    abs,
    add,
    cos,
    divide,
    exp,
    log,
    log1p,
    multiply,
    sigmoid,
    sin,
    sqrt,
    square,
    subtract,
    tanh,
)

__all__ = [
    "AUTO_REUSE",
    "Graph",
    "abs",
    "add",
    "cos",
    "custom_gradient",
    "disable_eager_execution",
    "divide",
    "enable_eager_execution",
    "executing_eagerly",
    "exp",
    "get_variable",
    "get_variable_scope",
    "gradients",
    "log",
    "log1p",
    "multiply",
    "sigmoid",
    "sin",
    "sqrt",
    "square",
    "subtract",
    "tanh",
    "variable_scope",
]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = partial(refuse_name, __name__)
