"""Replacements for names, methods and arguments that other libraries have and we do not.

One table for each. A suggestion goes by meaning: ``expit`` is `tf.sigmoid`, though `exp` is spelled
more like it. ``tf`` is this library, as users import it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Container, Iterable
from importlib import import_module
from importlib.util import find_spec
from opcode import opmap
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)

_CONSTANT = "tf.constant(values)"
_DENSE = "a dense tensor; for few rows of a table tf.gather and tf.math.unsorted_segment_sum"
_GRADIENT = "tape.gradient(y, x) inside `with tf.GradientTape()`, or tf.grad(f)(x)"
_MODEL = "tf.Module with Variables of its own: there are no layers of Keras or PyTorch"
_PLACE = "`with tf.device('/GPU:0'):` around the code; tensors are on the CPU otherwise"
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
    "allclose": "tf.numpy.allclose",
    "flip": "tf.reverse(x, axis)",
    "outer": "tf.tensordot(x, y, 0)",
    "trapz": "tf.numpy.trapezoid",
    # transformations of JAX and HIPS autograd
    "Array": "tf.Tensor",
    "ShapeDtypeStruct": "tf.TensorSpec",
    "block_until_ready": "the value itself: it is there when the call returns",
    "Partial": "functools.partial",
    "check_grads": "tf.check_gradients",
    "checkpoint": "tf.recompute_grad",
    "Box": "tf.Tensor, which is what a differentiated function gets",
    "JVPNode": "tf.jvp",
    "VJPNode": "tf.GradientTape",
    "core": "the public functions of tinygrad_cg.autograd, and tinygrad_cg.autograd.extend",
    "defvjp_argnum": "defvjp(function, maker, ...), with a maker for each argument",
    "defvjp_argnums": "defvjp(function, maker, ...), with a maker for each argument",
    "getval": "getval of tinygrad_cg.autograd.tracer, or tf.stop_gradient(x) for a constant",
    "isbox": "isbox of tinygrad_cg.autograd.tracer, or tf.is_tensor(x)",
    "vspace": "tf.nest for the structure, tf.zeros_like and tf.ones_like for its elements",
    "custom_jvp": "tf.custom_derivatives, which takes a jvp",
    "custom_vjp": "tf.custom_gradient",
    "debug": "tf.print, and tf.debug_nans()",
    "defjvp": "tf.custom_derivatives",
    "defvjp": "tf.custom_gradient",
    "deriv": "tf.elementwise_grad",
    "device_get": "x.numpy()",
    "device_put": "x.gpu() or x.cpu()",
    "egrad": "tf.elementwise_grad",
    "fori_loop": "tf.while_loop, or a Python loop in a tf.function",
    "grad_and_value": "tf.value_and_grad, which gives the value first",
    "hessian_vector_product": "tf.hvp",
    "jacfwd": 'tf.jacobian(f, mode="forward")',
    "jacrev": 'tf.jacobian(f, mode="reverse")',
    "jit": "tf.function",
    "lax": "tf.cond, tf.while_loop, tf.scan and tf.map_fn",
    "holomorphic_grad": "tf.grad",
    "jax_enable_x64": "dtype=tf.float64, or arrays of NumPy, which keep their dtype",
    "key": "tf.random.set_seed(seed); random functions need no key",
    "make_jaxpr": "tf.function(f), and its graph; tf.show draws what a tape recorded",
    "make_jvp": "tf.jvp or tf.linearize",
    "make_vjp": "tf.vjp",
    "PRNGKey": "tf.random.set_seed(seed); random functions need no key",
    "permutation": "tf.random.shuffle(tf.range(n))",
    "pmap": "tf.vmap",
    "randint": "tf.random.uniform(shape, low, high, tf.int32)",
    "remat": "tf.recompute_grad",
    "scipy": "scipy itself with tf.value_and_grad(f), and tf.math for functions",
    "special": "tf.math and tf.math.special",
    "tensor_jacobian_product": "tf.vjp",
    "tree": "tf.nest",
    "tree_map": "tf.nest.map_structure",
    "tree_util": "tf.nest",
    "vector_jacobian_product": "tf.vjp",
    # Keras
    "BinaryFocalCrossentropy": "a function: (1 - p) ** gamma times the cross entropy at p",
    "Dice": "1 - 2 * tf.reduce_sum(y * p) / (tf.reduce_sum(y) + tf.reduce_sum(p))",
    "SeedGenerator": "seed=, an argument of random functions, or tf.random.set_seed(seed)",
    "binary_focal_crossentropy": "a function: (1 - p) ** gamma times the cross entropy at p",
    "categorical_focal_crossentropy": "a function: (1 - p) ** gamma times the cross entropy at p",
    "ctc": "tf.keras.ops.ctc_loss",
    "dice": "1 - 2 * tf.reduce_sum(y * p) / (tf.reduce_sum(y) + tf.reduce_sum(p))",
    # PyTorch
    "CrossEntropyLoss": "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)",
    "FloatTensor": _CONSTANT,
    "Function": "tf.custom_gradient",
    "Linear": _MODEL,
    "MSELoss": "tf.keras.losses.MeanSquaredError()",
    "Parameter": "tf.Variable",
    "ReLU": "tf.nn.relu",
    "addmm": "c + x @ y",
    "as_tensor": _CONSTANT,
    "autocast": "tf.cast",
    "backward": _GRADIENT,
    "bernoulli": "tf.random.uniform(shape) < p",
    "bmm": "tf.matmul",
    "cat": "tf.concat",
    "clamp": "tf.clip_by_value",
    "clip_grad_norm_": "tf.clip_by_global_norm(gradients, norm)",
    "compile": "tf.function",
    "cross_entropy": "tf.nn.sparse_softmax_cross_entropy_with_logits",
    "cuda": _PLACE,
    "detach": "tf.stop_gradient",
    "detect_anomaly": "tf.debug_nans()",
    "div": "tf.divide",
    "enable_grad": "tf.GradientTape",
    "flatten": "tf.reshape(x, [-1]) for a tensor, tf.nest.flatten for a structure",
    "from_numpy": _CONSTANT,
    "func": "tf.grad, tf.vmap, tf.jvp and their kin",
    "functional": "tf.nn for activations and losses, tf.jacobian, tf.hessian and tf.hvp for "
    "derivatives",
    "ger": "tf.tensordot(x, y, 0)",
    "gradcheck": "tf.check_gradients",
    "gradgradcheck": "tf.check_gradients, which checks all orders",
    "index_add": "x.at[index].add(y)",
    "index_select": "tf.gather",
    "inference_mode": _STATE,
    "inverse": "tf.linalg.inv",
    "is_grad_enabled": "tf.executing_eagerly; a tape records what is inside its block",
    "lerp": "x + weight * (y - x)",
    "long": "tf.int64",
    "manual_seed": "tf.random.set_seed",
    "masked_select": "tf.boolean_mask(x, mask)",
    "mm": "tf.matmul",
    "mse_loss": "tf.keras.losses.mean_squared_error",
    "mul": "tf.multiply",
    "mv": "tf.linalg.matvec",
    "neg": "tf.negative",
    "no_grad": _STATE,
    "numel": "tf.size",
    "optim": "tf.optimizers",
    "permute": "tf.transpose(x, perm)",
    "rand": "tf.random.uniform",
    "randn": "tf.random.normal",
    "randn_like": "tf.random.normal(x.shape)",
    "randperm": "tf.random.shuffle(tf.range(n))",
    "scatter_add": "x.at[index].add(y)",
    "set_default_dtype": "dtype=tf.float64, or arrays of NumPy, which keep their dtype",
    "set_detect_anomaly": "tf.debug_nans()",
    "set_grad_enabled": _STATE,
    "set_printoptions": "numpy.set_printoptions, which tensors follow",
    "sub": "tf.subtract",
    "tensor": _CONSTANT,
    "topk": "tf.math.top_k",
    "unsqueeze": "tf.expand_dims",
    # TensorFlow and Keras
    "Input": _MODEL,
    "Model": _MODEL,
    "Sequential": _MODEL,
    "SparseTensor": _DENSE,
    "activations": "tf.nn, or tf.keras.ops",
    "callbacks": _MODEL,
    "global_variables_initializer": "no initializer: a Variable has its value from the start",
    "layers": _MODEL,
    "list_logical_devices": "tf.config.list_physical_devices",
    "raw_ops": "the operation's own name, as tf.add",
    "saved_model": "pickle, which takes tensors, Variables and modules",
    "save": "pickle, which takes tensors, Variables and modules",
    "sparse": _DENSE,
    # TensorFlow 1
    "Session": "the values themselves: operations run when they are called",
    "get_variable": "tf.compat.v1.get_variable",
    "placeholder": "a parameter of a function; tf.function compiles it",
}

# Parts of TensorFlow and Keras that are not here.
ABSENT = {
    "RaggedTensor",
    "TFRecordDataset",
    "applications",
    "datasets",
    "distribute",
    "estimator",
    "feature_column",
    "io",
    "lookup",
    "mixed_precision",
    "preprocessing",
    "ragged",
    "regularizers",
    "string",
    "strings",
    "summary",
    "tpu",
    "xla",
}

# Methods and attributes of tensors.
METHODS = {
    # autograd
    "_value": "use x.numpy(), or getval(x) of tinygrad_cg.autograd.tracer",
    # PyTorch
    "add_": "tensors do not change: use x = x + y, or assign_add() of a Variable",
    "add": "use x + y",
    "backward": "gradients come from a tape: use " + _GRADIENT,
    "bmm": "use x @ y or tf.matmul(x, y)",
    "chunk": "use tf.split(x, count, axis)",
    "clamp": "use tf.clip_by_value(x, low, high)",
    "clone": "leave it out: tensors do not change; for a tensor of its own use tf.identity(x)",
    "contiguous": "leave it out: any layout is served",
    "copy_": "tensors do not change: use assign() of a Variable",
    "cuda": "use x.gpu()",
    "data": "use x.numpy() for the values, or tf.stop_gradient(x)",
    "detach": "use tf.stop_gradient(x), or x.numpy() for the values",
    "detach_": "use x = tf.stop_gradient(x)",
    "diag": "use tf.linalg.diag(x), or tf.linalg.diag_part(x) of a matrix",
    "dim": "use x.ndim",
    "div": "use x / y",
    "double": "use tf.cast(x, tf.float64)",
    "eq": "use x == y",
    "expand": "use tf.broadcast_to(x, shape)",
    "fill_": "tensors do not change: use tf.fill(shape, value)",
    "flip": "use tf.reverse(x, axis)",
    "float": "use tf.cast(x, tf.float32)",
    "gather": "use tf.gather(x, indices, axis=axis)",
    "ge": "use x >= y",
    "grad": "gradients are returned, not stored: use " + _GRADIENT,
    "grad_fn": "tf.show(tape) draws how a tensor was computed",
    "gt": "use x > y",
    "half": "use tf.cast(x, tf.float16)",
    "index_select": "use tf.gather(x, indices, axis=axis)",
    "int": "use tf.cast(x, tf.int32)",
    "inverse": "use tf.linalg.inv(x)",
    "is_contiguous": "leave it out: any layout is served",
    "is_cuda": "use x.device",
    "is_leaf": "a tape records what it watches: tensors have no such state",
    "isfinite": "use tf.math.is_finite(x)",
    "isinf": "use tf.math.is_inf(x)",
    "isnan": "use tf.math.is_nan(x)",
    "le": "use x <= y",
    "logsumexp": "use tf.reduce_logsumexp(x, axis=axis)",
    "long": "use tf.cast(x, tf.int64)",
    "lt": "use x < y",
    "masked_fill": "use tf.where(mask, value, x)",
    "masked_select": "use x[mask]",
    "matmul": "use x @ y or tf.matmul(x, y)",
    "mm": "use x @ y or tf.matmul(x, y)",
    "mul": "use x * y",
    "mul_": "tensors do not change: use x = x * y, or assign() of a Variable",
    "mv": "use tf.linalg.matvec(x, y)",
    "ne": "use x != y",
    "neg": "use -x",
    "ndimension": "use x.ndim",
    "nelement": "use x.size",
    "norm": "use tf.norm(x)",
    "numel": "use x.size",
    "parameters": "a Variable is its own parameter; a tf.Module has trainable_variables",
    "permute": "use tf.transpose(x, perm)",
    "pow": "use x ** y",
    "reciprocal": "use 1 / x",
    "register_hook": "use tf.grad_pass_through or tf.custom_gradient to change a gradient",
    "relu": "use tf.nn.relu(x)",
    "requires_grad": "a tape records what it watches: use tape.watch(x), or a tf.Variable",
    "requires_grad_": "a tape records what it watches: use tape.watch(x), or a tf.Variable",
    "repeat_interleave": "use x.repeat(count, axis)",
    "retain_grad": "use tape.gradient(y, x) with the tensor in the middle as x",
    "roll": "use tf.roll(x, shift, axis)",
    "scatter_": "tensors do not change: use x.at[index].set(value)",
    "scatter_add": "use x.at[index].add(y)",
    "sigmoid": "use tf.sigmoid(x)",
    "softmax": "use tf.nn.softmax(x)",
    "split": "use tf.split(x, count, axis)",
    "stride": "leave it out: any layout is served",
    "sub": "use x - y",
    "sub_": "tensors do not change: use x = x - y, or assign_sub() of a Variable",
    "t": "use x.T",
    "to": "use x.gpu() or x.cpu() for a device, tf.cast(x, dtype) for a dtype",
    "topk": "use tf.math.top_k(x, k)",
    "tril": "use tf.linalg.band_part(x, -1, 0)",
    "triu": "use tf.linalg.band_part(x, 0, -1)",
    "type": "use tf.cast(x, dtype)",
    "type_as": "use tf.cast(x, y.dtype)",
    "unique": "use tf.unique(x)",
    "unbind": "use tf.unstack(x, axis=axis)",
    "unsqueeze": "use tf.expand_dims(x, axis)",
    "view": "use tf.reshape(x, shape); for other bits tf.bitcast(x, dtype)",
    "zero_": "tensors do not change: use tf.zeros_like(x)",
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
}

_FUNCTIONS = {  # by what they are called as methods
    "math": "acos asin atan ceil erf floor log1p rsqrt sign square tan",
    "": "abs",
    "linalg": "det",
    "nn": "log_softmax",
}
METHODS |= {
    name: f"use tf.{home}{'.' if home else ''}{name}(x)"
    for home, names in _FUNCTIONS.items()
    for name in names.split()
}

# Attributes of tapes.
TAPES = {
    "backward": "use tape.gradient(y, x), which returns the gradient",
    "grad": "use tape.gradient(y, x)",
    "gradients": "use tape.gradient(y, [x, w]), which takes several",
    "hessian": "use tf.hessian(f)(x), or tape.jacobian(gradient, x) with a tape around this one",
}

# Attributes of optimizers.
OPTIMIZERS = {
    "lr": "use learning_rate",
    "minimize": "use apply_gradients([(tape.gradient(loss, w), w)])",
    "step": "use apply_gradients([(gradient, variable)]): gradients are not stored",
    "zero_grad": "leave it out: gradients are returned anew by each call, not added up",
}

# Attributes of datasets.
DATASETS = {
    "apply": "call the function with the dataset",
    "element_spec": "use next(iter(dataset)), and the shapes and dtypes of that",
    "scan": "carry the state in the loop over the dataset",
    "shard": "use from_tensor_slices(x[index::count])",
    "unique": "use tf.unique(x) before from_tensor_slices",
}

# Attributes of modules.
MODULES = {
    "parameters": "use trainable_variables",
    "state_dict": "use named_variables, or pickle",
    "weights": "use variables",
    "zero_grad": "leave it out: gradients are returned anew by each call, not added up",
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
    "dimension": "axis",
    "dims": "axis",
    "in_dims": "in_axes",
    "keep_dims": "keepdims",
    "keepdim": "keepdims",
    "lr": "learning_rate",
    "orders": "order",
    "out_dims": "out_axes",
    "reduction_indices": "axis",
}

# What to do instead of an argument that has no other name here.
_TOLERANCE = "leave it out: each reference is compared within its own error"
NO_ARGUMENTS = {
    "allow_int": "integers have no gradient: cast to floats first",
    "atol": _TOLERANCE,
    "create_graph": "leave it out: for a higher order put a tape around the tape",
    "device": "leave it out for the CPU; elsewhere write `with tf.device(name):` around the call",
    "eps": _TOLERANCE,
    "holomorphic": "leave it out: complex arguments have gradients",
    "requires_grad": "a tape records what it watches: use tape.watch(x), or a tf.Variable",
    "retain_graph": "use GradientTape(persistent=True)",
    "rtol": _TOLERANCE,
    "tol": _TOLERANCE,
}

_NAMESPACES = ("", "math", "nn", "linalg", "signal", "random", "keras.ops", "numpy", "nest")
_NAMESPACES += ("autograd.scipy.special",)
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
    """Raise AttributeError for a name that a module does not have, with what to use instead.

    For a module's ``__getattr__``. ``from module import name`` would lose the words of such an
    error: there it is an ImportError.
    """
    message = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        raise AttributeError(message)
    home = sys.modules.get(module)
    is_package = getattr(home, "__path__", None) is not None
    is_module = is_package and find_spec(f"{module}.{name}") is not None  # an import loads it now
    found = "" if is_module else suggest(name)
    remedy = f"use {found}" if found else ""
    if not found and name in ABSENT and not is_module:
        remedy = "the library lacks this part of TensorFlow"
    if not remedy:
        raise AttributeError(message)  # Python suggests what is spelled alike
    if _is_asked_by_import():
        raise ImportError(f"cannot import name {name!r} from {module!r}: {remedy}", name=name)
    raise AttributeError(f"{message}: {remedy}", obj=home)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == _LIBRARY


def _is_asked_by_import() -> bool:
    """Return whether an import statement outside of the library asks for a module's attribute."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def reads_own_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of keywords: one that another library has is answered by ours."""
    code = function.__code__
    own = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    is_transform = code.co_varnames[0] == "f" and not code.co_flags & inspect.CO_VARARGS
    most = code.co_argcount if is_transform else sys.maxsize

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not own.issuperset(kwargs):
            refuse_arguments(function.__name__, own, [name for name in kwargs if name not in own])
        if len(args) > most:
            name = function.__name__
            raise TypeError(
                f"{name}() takes at most {most} positional arguments, got {len(args)}: it returns "
                f"a function, which takes those of f: write {name}(f)(...)"
            )
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


def absent_attributes(texts: dict[str, str]) -> Callable[[T], T]:
    """Decorate a class: what reads one of these attributes learns what to use."""

    def add(owner: T) -> T:
        for name, words in texts.items():
            setattr(owner, name, AbsentAttribute(name, words))
        return owner

    return add


class NamesOfOtherLibraries:
    """Attributes that tensors do not have. To read one is an error that says what to use."""

    __slots__ = ()


for _name, _words in METHODS.items():
    setattr(NamesOfOtherLibraries, _name, FixedAttribute(_name, _words))


def refuse_argument(function: str, name: str, own: Container[str] | None = None) -> NoReturn:
    """Raise TypeError for an argument that a function does not have, as Python does.

    It names the function's argument for that; with `own` only if that is one of them.
    """
    message = f"{function}() got an unexpected keyword argument {name!r}"
    if name in NO_ARGUMENTS:
        raise TypeError(f"{message}: {NO_ARGUMENTS[name]}")
    known = ARGUMENTS.get(name)
    is_ours = known is not None and (own is None or known in own)
    raise TypeError(f"{message}: use {known}=" if is_ours else message)


def refuse_arguments(function: str, own: Container[str], others: Iterable[str]) -> NoReturn:
    """Raise TypeError for the first of arguments that a function with others does not have."""
    refuse_argument(function, next(iter(others)), own)


def refuse_others(function: str, **others: Any) -> None:
    """Raise TypeError for the first of other libraries' arguments that is given."""
    for name, value in others.items():
        if value is not None:
            refuse_argument(function, name)


class Required:
    """The default of a parameter that has none, in a function that reads all keywords first."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED = Required()
OTHERS = ("dim", "keepdim", "others")
"""Parameters of ours that are there for the error alone."""


def own_signature(function: Any) -> inspect.Signature:
    """Return the signature of a function without the arguments of other libraries."""
    signature = inspect.signature(function)
    own = [
        one.replace(default=inspect.Parameter.empty) if one.default is REQUIRED else one
        for name, one in signature.parameters.items()
        if name not in OTHERS
    ]
    return signature.replace(parameters=own)


F = TypeVar("F", bound=Callable[..., Any])


def hides_others(function: F) -> F:
    """Decorate a function whose arguments of other libraries are there for the error alone."""
    function.__signature__ = own_signature(function)
    return function
