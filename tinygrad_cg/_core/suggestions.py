"""What to use instead: for names, methods and arguments that other libraries have and we do not.

One table for each. A suggestion goes by meaning: ``expit`` is `tf.sigmoid`, though `exp` is spelled
more like it. ``tf`` is this library, as users import it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_CONSTANT = "tf.constant(values)"
_GRADIENT = "tape.gradient(y, x) inside `with tf.GradientTape()`, or tf.grad(f)(x)"
_STATE = "tf.stop_gradient(x) for a tensor, or tape.stop_recording() for a block of code"

# Names of functions, in any namespace.
NAMES = {
    # scipy.special
    "beta": "tf.exp(tf.math.lbeta(tf.stack([a, b], -1)))",
    "betaln": "tf.math.lbeta(tf.stack([a, b], -1))",
    "chdtr": "tf.math.igamma(v / 2, x / 2)",
    "entr": "-tf.math.xlogy(x, x)",
    "expit": "tf.sigmoid",
    "factorial": "tf.exp(tf.math.lgamma(n + 1))",
    "gamma": "tf.exp(tf.math.lgamma(x)) for positive x",
    "gammainc": "tf.math.igamma",
    "gammaincc": "tf.math.igammac",
    "gammaln": "tf.math.lgamma",
    "i0e": "tf.math.bessel_i0e",
    "i1": "tf.math.bessel_i1",
    "i1e": "tf.math.bessel_i1e",
    "loggamma": "tf.math.lgamma",
    "logit": "tf.math.log(p) - tf.math.log1p(-p)",
    "ndtr": "0.5 * tf.math.erfc(-x / 2**0.5)",
    "psi": "tf.math.digamma",
    "rel_entr": "tf.math.xlogy(x, x) - tf.math.xlogy(x, y)",
    "xlog1py": "tf.math.xlog1py",
    "xlogy": "tf.math.xlogy",
    # NumPy, JAX, autograd: names that are in tf.numpy, and what they are called in TensorFlow
    "absolute": "tf.abs",
    "all": "tf.reduce_all",
    "amax": "tf.reduce_max",
    "amin": "tf.reduce_min",
    "any": "tf.reduce_any",
    "arange": "tf.range",
    "arccos": "tf.acos",
    "arccosh": "tf.acosh",
    "arcsin": "tf.asin",
    "arcsinh": "tf.asinh",
    "arctan": "tf.atan",
    "arctan2": "tf.atan2",
    "arctanh": "tf.atanh",
    "array": _CONSTANT,
    "asarray": "tf.convert_to_tensor(values)",
    "clip": "tf.clip_by_value",
    "concatenate": "tf.concat",
    "conjugate": "tf.math.conj",
    "dot": "tf.matmul, tf.tensordot or tf.numpy.dot",
    "full": "tf.fill(shape, value)",
    "logsumexp": "tf.reduce_logsumexp",
    "max": "tf.reduce_max",
    "mean": "tf.reduce_mean",
    "min": "tf.reduce_min",
    "power": "tf.pow",
    "prod": "tf.reduce_prod",
    "std": "tf.math.reduce_std",
    "sum": "tf.reduce_sum",
    "var": "tf.math.reduce_variance",
    # transformations of JAX and HIPS autograd
    "Partial": "functools.partial",
    "check_grads": "tf.check_gradients",
    "checkpoint": "tf.recompute_grad",
    "custom_jvp": "tf.custom_derivatives, which takes a jvp",
    "custom_vjp": "tf.custom_gradient",
    "defjvp": "tf.custom_derivatives",
    "defvjp": "tf.custom_gradient",
    "deriv": "tf.elementwise_grad",
    "device_put": _CONSTANT,
    "egrad": "tf.elementwise_grad",
    "fori_loop": "tf.while_loop, or a Python loop in a tf.function",
    "grad_and_value": "tf.value_and_grad, which gives the value first",
    "hessian_vector_product": "tf.hvp",
    "jacfwd": 'tf.jacobian(f, mode="forward")',
    "jacrev": 'tf.jacobian(f, mode="reverse")',
    "jit": "tf.function",
    "lax": "tf.cond, tf.while_loop, tf.scan and tf.map_fn",
    "make_jvp": "tf.jvp or tf.linearize",
    "make_vjp": "tf.vjp",
    "PRNGKey": "tf.random.set_seed(seed); random functions need no key",
    "remat": "tf.recompute_grad",
    "special": "tf.math and tf.math.special",
    "tensor_jacobian_product": "tf.vjp",
    "tree": "tf.nest",
    "tree_map": "tf.nest.map_structure",
    "tree_util": "tf.nest",
    "vector_jacobian_product": "tf.vjp",
    # PyTorch
    "Function": "tf.custom_gradient",
    "as_tensor": _CONSTANT,
    "autocast": "tf.cast",
    "bmm": "tf.matmul",
    "cat": "tf.concat",
    "clamp": "tf.clip_by_value",
    "cross_entropy": "tf.nn.sparse_softmax_cross_entropy_with_logits",
    "detach": "tf.stop_gradient",
    "div": "tf.divide",
    "enable_grad": "tf.GradientTape",
    "from_numpy": _CONSTANT,
    "gradcheck": "tf.check_gradients",
    "gradgradcheck": "tf.check_gradients, which checks all orders",
    "index_select": "tf.gather",
    "inference_mode": _STATE,
    "is_grad_enabled": "tf.executing_eagerly; a tape records what is inside its block",
    "manual_seed": "tf.random.set_seed",
    "mm": "tf.matmul",
    "mse_loss": "tf.keras.losses.mean_squared_error",
    "mul": "tf.multiply",
    "neg": "tf.negative",
    "no_grad": _STATE,
    "permute": "tf.transpose(x, perm)",
    "rand": "tf.random.uniform",
    "randn": "tf.random.normal",
    "set_grad_enabled": _STATE,
    "sub": "tf.subtract",
    "tensor": _CONSTANT,
    "topk": "tf.math.top_k",
    "unsqueeze": "tf.expand_dims",
    # TensorFlow 1
    "Session": "the values themselves: operations run when they are called",
    "get_variable": "tf.compat.v1.get_variable",
    "placeholder": "a parameter of a function; tf.function compiles it",
}

# Methods and attributes of tensors.
METHODS = {
    # PyTorch
    "add_": "tensors do not change: use x = x + y, or assign_add() of a Variable",
    "backward": "gradients come from a tape: use " + _GRADIENT,
    "clamp": "use tf.clip_by_value(x, low, high)",
    "clone": "leave it out: tensors do not change; for a tensor of its own use tf.identity(x)",
    "contiguous": "leave it out: any layout is served",
    "cuda": "leave it out: tensors are on the CPU",
    "detach": "use tf.stop_gradient(x), or x.numpy() for the values",
    "double": "use tf.cast(x, tf.float64)",
    "expand": "use tf.broadcast_to(x, shape)",
    "float": "use tf.cast(x, tf.float32)",
    "grad": "gradients are returned, not stored: use " + _GRADIENT,
    "grad_fn": "tf.show(tape) draws how a tensor was computed",
    "half": "use tf.cast(x, tf.float16)",
    "int": "use tf.cast(x, tf.int32)",
    "long": "use tf.cast(x, tf.int64)",
    "masked_fill": "use tf.where(mask, value, x)",
    "matmul": "use x @ y or tf.matmul(x, y)",
    "mm": "use x @ y or tf.matmul(x, y)",
    "mul": "use x * y",
    "norm": "use tf.norm(x)",
    "numel": "use x.size",
    "permute": "use tf.transpose(x, perm)",
    "pow": "use x ** y",
    "register_hook": "use tf.grad_pass_through or tf.custom_gradient to change a gradient",
    "relu": "use tf.nn.relu(x)",
    "requires_grad": "a tape records what it watches: use tape.watch(x), or a tf.Variable",
    "requires_grad_": "a tape records what it watches: use tape.watch(x), or a tf.Variable",
    "retain_grad": "use tape.gradient(y, x) with the tensor in the middle as x",
    "sigmoid": "use tf.sigmoid(x)",
    "softmax": "use tf.nn.softmax(x)",
    "to": "tensors are on the CPU; for another dtype use tf.cast(x, dtype)",
    "type": "use tf.cast(x, dtype)",
    "unsqueeze": "use tf.expand_dims(x, axis)",
    "view": "use tf.reshape(x, shape); for other bits tf.bitcast(x, dtype)",
    "zero_grad": "leave it out: gradients are returned anew by each call, not added up",
    # functions that are methods elsewhere
    "cos": "use tf.cos(x)",
    "exp": "use tf.exp(x)",
    "log": "use tf.math.log(x)",
    "sin": "use tf.sin(x)",
    "sqrt": "use tf.sqrt(x)",
    "tanh": "use tf.tanh(x)",
    # JAX
    "block_until_ready": "leave it out: a value is there when the call returns",
    # TensorFlow
    "eval": "use x.numpy()",
    "set_shape": "use tf.ensure_shape(x, shape)",
}

# Attributes of what `custom_gradient` returns.
RULES = {
    "apply": "call it, as the function that it was made of",
    "defjvp": "a custom gradient has its rule in forward mode too; for a jvp of its own use "
    "tf.custom_derivatives(f, jvp=...)",
    "defvjp": "the rule belongs to the function: it returns (y, grad_fn), where grad_fn(dy) gives "
    "the gradient of each input",
}

# Names of arguments.
ARGUMENTS = {
    "argnum": "argnums",
    "dim": "axis",
    "dims": "axis",
    "in_dims": "in_axes",
    "keepdim": "keepdims",
    "out_dims": "out_axes",
}

# What to do instead of an argument that has no other name here.
NO_ARGUMENTS = {
    "requires_grad": "a tape records what it watches: use tape.watch(x), or a tf.Variable",
}

_NAMESPACES = ("", "math", "nn", "linalg", "signal", "random", "keras.ops", "numpy", "nest")
_LIBRARY = __name__.partition(".")[0]


def suggest(name: str) -> str:
    """Return what to use instead of a name that a namespace does not have; empty if unknown.

    A name of another namespace of the library is found there.
    """
    if name in NAMES:
        return NAMES[name]
    for namespace in _NAMESPACES:
        path = f"{_LIBRARY}.{namespace}".rstrip(".")
        try:
            names = getattr(import_module(path), "__all__", ())
        except ImportError:  # it is being loaded, and asks for something itself
            continue
        if name in names:
            return f"{path}.{name}".replace(_LIBRARY, "tf", 1)
    return ""


def refuse_name(module: str, name: str) -> NoReturn:
    """Raise AttributeError for a name that a module does not have, with what to use instead."""
    message = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        raise AttributeError(message)
    home = sys.modules.get(module)
    is_package = getattr(home, "__path__", None) is not None
    is_module = is_package and find_spec(f"{module}.{name}") is not None  # an import loads it now
    found = "" if is_module else suggest(name)
    if not found:
        raise AttributeError(message)  # Python suggests what is spelled alike
    raise AttributeError(f"{message}: use {found}", obj=home)


def reads_own_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of keywords: one that another library has is answered by ours."""
    code = function.__code__
    own = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not own.issuperset(kwargs):
            refuse_argument(function.__name__, next(name for name in kwargs if name not in own))
        return function(*args, **kwargs)

    return run


class AbsentAttribute:
    """A descriptor for an attribute that objects do not have: what reads it learns what to use."""

    def __init__(self, name: str, words: str):
        self.name = name
        self.words = words

    def __repr__(self) -> str:
        return f"<absent: {self.words}>"

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        kind = f"{owner.__name__!r} object" if instance is not None else f"type {owner.__name__!r}"
        raise AttributeError(f"{kind} has no attribute {self.name!r}: {self.words}", obj=instance)


class FixedAttribute(AbsentAttribute):
    """One that cannot be set either."""

    def __set__(self, instance: Any, value: Any) -> NoReturn:
        kind = type(instance).__name__
        raise AttributeError(
            f"{kind!r} object has no attribute {self.name!r} to set: {self.words}", obj=instance
        )


def refuse_argument(function: str, name: str) -> NoReturn:
    """Raise TypeError for an argument that a function does not have, as Python does."""
    message = f"{function}() got an unexpected keyword argument {name!r}"
    if name in NO_ARGUMENTS:
        raise TypeError(f"{message}: {NO_ARGUMENTS[name]}")
    known = ARGUMENTS.get(name)
    raise TypeError(f"{message}: use {known}=" if known else message)


def refuse_others(function: str, **others: Any) -> None:
    """Raise TypeError for the first of other libraries' arguments that is given."""
    for name, value in others.items():
        if value is not None:
            refuse_argument(function, name)


OTHERS = ("dim", "keepdim", "requires_grad")
"""Parameters of ours that are there for the error alone."""


def own_signature(function: Any) -> inspect.Signature:
    """Return the signature of a function without the arguments of other libraries."""
    signature = inspect.signature(function)
    own = [one for name, one in signature.parameters.items() if name not in OTHERS]
    return signature.replace(parameters=own)


F = TypeVar("F", bound=Callable[..., Any])


def hides_others(function: F) -> F:
    """Decorate a function whose arguments of other libraries are there for the error alone."""
    function.__signature__ = own_signature(function)  # type: ignore[attr-defined]
    return function
