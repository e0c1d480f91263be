"""`primitive`, and derivatives of elementwise kernels from their source.

A kernel that is a function of numbers is read into a program. Its derivative by each number is a
program again, and so a kernel of an operation, whose derivative is found in the same way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tinygrad_cg_kernels.runtime import generated

from .. import _ops as ops
from .._core.primitive import OPS, USER_OPS
from .._ops.elementwise import add, multiply
from .._rules.user_ops import UserOperation
from ..errors import UnsupportedCodeError
from .code_reading import read
from .kernel_text import ScalarWriter
from .program import ArrayProgram, Number
from .pruning import prune, share
from .scalar_operations import OpBuilder
from .tangents import partial


def primitive(
    name: str,
    kernel: Callable[..., Any] | None = None,
    shape: Callable[..., Any] | None = None,
    elementwise: bool = False,
    replace: bool = False,
    cuda: Any = None,
) -> Any:
    """Define an operation by its name and kernel, and return the function that applies it.

    Parameters
    ----------
    name:
        Unique. `RegisterGradient(name)` gives it a gradient. Without one, an elementwise kernel has
        the derivative of its source, see `elementwise`.
    kernel:
        ``kernel(*arrays, **attrs)`` computes the result: an array, or a tuple of them for several
        outputs. A NumPy function, or one compiled by numba.njit. It gets read-only views, and its
        results are copied. If left out, `primitive` is a decorator of the kernel.
    shape:
        ``shape(*inputs, **attrs)`` gives the shape of the result, or a pair (shape, dtype), from
        the inputs' `.shape` and `.dtype`, or a list of these for several outputs; the kernel's
        results are checked against it. If left out, a `function` calls the kernel once while it is
        traced, to learn them.
    elementwise:
        The kernel is a function of numbers, which is compiled into a loop over broadcast arrays.
        There may be one to three operands; integers are computed as float64. It returns a number,
        or a tuple for several outputs, which are all computed in one pass: floats in the dtype of
        the operands, integers as int64, truths as bool. If no gradient is registered, the kernel's
        source is differentiated, with its loops, branches and calls, to any order; see
        `differentiable` for the supported code.
    replace:
        Replace an existing primitive of that name, so that a notebook's cell can run again.
    cuda:
        The kernel for a GPU: made by ``numba.cuda.jit``, or a pair (kernel, configuration). It is
        launched as ``kernel(*inputs, *results, *attributes)``, with C-ordered arrays, and fills the
        results, whose shapes `shape` gives; it must not write to inputs. Parameters after the
        results have the names of attributes. The configuration is (blocks, threads), each a number
        or a tuple of up to three, or a function of the arguments of `shape` that returns this pair;
        by default each element of the first result has a thread, in blocks of 256; the last block
        may have spare threads. The gradient is the same on either device. Without `cuda`, an
        `elementwise` kernel and the derivatives from its source are compiled for the GPU (only
        tested in Numba's CUDA simulator); another kernel runs there if CuPy has its functions.

    The function takes tensors or array-likes by position, attributes by keyword.
    Raises KeyError for a name in use, TypeError for a kernel that is not callable, or for
    operands and attributes that it does not take.

    Examples
    --------
    >>> import math
    >>> gauss = tf.primitive("BellCurve", kernel=lambda x: math.exp(-x * x), elementwise=True)
    >>> gauss([0.0, 1.0]).numpy().round(3)
    array([1.   , 0.368], dtype=float32)
    """
    if not isinstance(name, str) or not name:
        what = f"must be a string, got {name!r}: write primitive(name, kernel)"
        raise TypeError(f"primitive: name {what}")
    if kernel is None:
        return lambda function: primitive(name, function, shape, elementwise, replace, cuda)
    if not callable(kernel):
        raise TypeError(f"primitive {name!r}: kernel must be callable, got {kernel!r}")
    ops.load_all()
    if name in OPS or (name in USER_OPS and not replace):
        raise KeyError(
            f"primitive: an operation named {name!r} is defined already; choose another name, or "
            "pass replace=True to run a notebook's cell again"
        )
    op = UserOperation(name, kernel, shape, elementwise, cuda, derived_gradient, kernel_for_device)
    USER_OPS[name] = op.primitive
    return op


def derived_gradient(
    operation: UserOperation, program: ArrayProgram | None = None
) -> Callable[..., Any]:
    """Return the gradient function of an elementwise operation from its source, or refuse that."""
    return _gradient_of(operation.primitive.name, program or _program_of(operation.kernel))


def kernel_for_device(kernel: Any, program: ArrayProgram | None = None) -> Callable[..., Any]:
    """Return an elementwise kernel for a GPU: itself, if it has no arrays or cannot be read."""
    try:
        program = program or _program_of(kernel)
    except UnsupportedCodeError:
        return kernel
    if not program.scratch:
        return kernel
    return generated.load(ScalarWriter(program).function("derivative", on_device=True)).derivative


def _program_of(kernel: Any) -> ArrayProgram:
    function = getattr(kernel, "py_func", kernel)
    names = inspect.signature(function).parameters
    program, _ = read(function, [Number("f64", name) for name in names], {})
    if len(program.outputs) == 1:  # an integer or a truth alone is a float in the result
        b = OpBuilder(program.body)
        floats = [b.cast(x, "f64") if isinstance(x, Number) else x for x in program.outputs]
        program.outputs = floats
    return program


def _gradient_of(name: str, program: ArrayProgram) -> Callable[..., Any]:
    """Return the gradient function of an operation whose kernel is a program."""
    floats = [k for k, x in enumerate(program.outputs) if x.is_float]

    @functools.cache
    def derivative(position: int) -> UserOperation:
        own = share(prune(partial(program, position)))
        label = f"{name}_derivative_{position}"
        kernel = generated.load(ScalarWriter(own).function("derivative")).derivative
        derive = functools.partial(derived_gradient, program=own)
        on_device = functools.partial(kernel_for_device, program=own)
        return UserOperation(label, kernel, None, True, None, derive, on_device, len(own.outputs))

    def gradient(op: Any, *upstream: Any) -> list[Any]:
        results: list[Any] = []
        for position, needed in enumerate(op.needs_input_grad):
            terms: list[Any] = []
            if needed:
                slopes = derivative(position)(*op.inputs)
                slopes = slopes if isinstance(slopes, tuple) else (slopes,)
                pairs = [(upstream[k], slope) for k, slope in zip(floats, slopes, strict=True)]
                terms = [multiply(dy, slope) for dy, slope in pairs if dy is not None]
            results.append(functools.reduce(add, terms) if terms else None)
        return results

    return gradient
