"""The functions `numpy_function` and `py_function`: Python on values, as operations.

Where a batch or a trace has no values to give to such code, the code is an operation: a batch
carries it out for one example after the other, and a compiled program calls it. Follows
``tf.numpy_function`` and ``tf.py_function``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from .._core import devices
from .._core.conversion import as_dtype, check_dtype, convert, is_weak
from .._core.levels import stack, state, tokens_of
from .._core.primitive import Primitive, apply
from .._core.record import find_tokens, with_wholes
from .._core.tensor import Tensor
from ..errors import ArgumentTypeError, InvalidArgumentError
from .custom_gradient import running_functions
from .definition import Definition
from .outside_runs import CODE, Code, code_key, only_values, unknown_avals


def numpy_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any = None,
    stateful: bool = True,
    name: Any = None,
) -> Any:
    """Call a Python function of NumPy arrays, and return its results as tensors.

    Parameters
    ----------
    func:
        ``func(*arrays)`` gets a NumPy array for each of `inp` (a copy, which it may write to), of
        shape () for a number. It returns an array, or a tuple or list of arrays, of any shapes.
    inp:
        A list of tensors or array-likes.
    Tout:
        The dtype of the result, or a list of dtypes: one for each result, [] without results. It
        must be given.
        Arrays must have this dtype; Python's numbers and lists are converted.
    stateful:
        Whether calls have side effects: a compiled program then makes all calls, in order. If
        False, it skips calls with unused results.
    name:
        Used in messages; by default the name of `func`.

    Returns
    -------
    A tensor, or a list of them where `Tout` is a list or a tuple.

    It has no gradient, as in TensorFlow: declare one with `custom_gradient` or
    `custom_derivatives`. If a functional transform or a rule passes it a recorded tensor, a
    CustomGradientWarning appears. In `vmap`, `func` is called once for each example. In a
    `function`, each call of the program calls it. It is also called once during tracing, to learn
    the shapes of its results, which must be the same at each call of one program; the first call of
    the program uses that result if its arrays are equal. If an operand is on a GPU, `func` gets
    copies on the host, and results are on the GPU.

    Raises TypeError for a `func` that is not callable, an `inp` that is not a list and results of
    other dtypes, ValueError for another number of results, or for other shapes at a later call.
    Modelled on ``tf.numpy_function``.

    >>> y = tf.numpy_function(np.cumsum, [tf.constant([1.0, 2.0])], tf.float32)
    >>> y.numpy()
    array([1., 3.], dtype=float32)
    """
    call = _PythonCall("numpy_function", func, inp, Tout, name)
    call.stateful = bool(stateful)
    _warn_detached(call.operands)
    return call.pack(apply(_NUMPY, tuple(call.operands), {"code": call}))


def py_function(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any = None, name: Any = None
) -> Any:
    """Call a Python function of tensors with values, and return its results; differentiable.

    Parameters
    ----------
    func:
        ``func(*tensors)`` gets a tensor with values for each of `inp`, also in `vmap` and in a
        `function`: it may print them, or decide on them. It returns a tensor, or a tuple or list
        of tensors, of any shapes; arrays and numbers are converted.
    inp, Tout, name:
        As in `numpy_function`.

    Returns
    -------
    A tensor, or a list of them where `Tout` is a list or a tuple.

    Its derivatives come from the operations and custom gradients in `func`, at every order and
    in every mode. Eagerly, a tape records them directly. In `vmap`, `func` is called once for each
    example, and in a `function` at each call of the program, and once more for the gradient;
    Variables that it reads then have no gradient. See `numpy_function` for shapes in a `function`
    and for errors. Modelled on ``tf.py_function``.

    >>> tf.grad(lambda x: tf.py_function(lambda x: x**3, [x], tf.float32))(2.0).numpy()
    np.float32(12.0)
    """
    call = _PythonCall("py_function", func, inp, Tout, name)
    if not any(level.has_own_values for level in stack(state.frame)):
        return call.pack(call.tensors(*call.operands))
    definition = Definition(func, name)
    definition.role = "the function called by py_function,"
    call.definition, call.call = definition, functools.partial(definition.run, call.tensors)
    return call.pack(apply(CODE, tuple(call.operands), {"code": call}))


class _PythonCall(Code):
    """One call of the two functions, which checks its arguments and results."""

    def __init__(self, role: str, func: Any, inp: Any, outputs: Any, name: Any):
        if not callable(func):
            raise TypeError(f"{role}: func must be callable, got {type(func).__name__} {func!r}")
        if not isinstance(inp, (list, tuple)):
            raise TypeError(
                f"{role}: inp must be a list with a tensor for each argument of func, got "
                f"{type(inp).__name__}: write [x]"
            )
        if outputs is None:
            raise TypeError(
                f"{role}: Tout is missing: pass the dtype of the result, such as tf.float32, or a "
                "list of dtypes"
            )
        label = name or getattr(func, "__name__", type(func).__name__)
        super().__init__(f"{role} {label}", code_key(func), self.tensors, True)
        self.func = func
        self.operands = [convert(tensor) for tensor in inp]
        self.single = not isinstance(outputs, (list, tuple))
        self.dtypes = [as_dtype(dtype) for dtype in ([outputs] if self.single else outputs)]

    def arrays(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Return what the function of arrays gives."""
        with only_values():
            result = self.func(*[np.array(array) for array in arrays])
        return [self._array(i, part) for i, part in enumerate(self._results(result))]

    def tensors(self, *tensors: Tensor) -> list[Tensor]:
        """Return what the function of tensors gives."""
        result = self.func(*tensors)
        return [self._tensor(i, part) for i, part in enumerate(self._results(result))]

    def pack(self, tensors: list[Tensor]) -> Any:
        return tensors[0] if self.single else tensors

    def _results(self, result: Any) -> list:
        count = len(self.dtypes)
        if not count and result is None:
            return []
        several = isinstance(result, tuple) or (not self.single and isinstance(result, list))
        results = list(result) if several else [result]
        if len(results) != count:
            raise InvalidArgumentError(
                f"{self.name}: the function returned {len(results)} results, Tout has {count} "
                "dtypes: give one dtype for each result"
            )
        return results

    def _array(self, i: int, result: Any) -> np.ndarray:
        if isinstance(result, Tensor):
            result = result._values()
        if is_weak(result) and not isinstance(result, np.generic):
            return convert(result, self.dtypes[i])._data
        if isinstance(result, (list, tuple)):
            return np.array(result, self.dtypes[i])
        if result is None:
            self._refuse(i, "None")
        data = np.asarray(result)
        if check_dtype(data.dtype, f"{self.name}: result {i}") != self.dtypes[i]:
            self._refuse(i, str(data.dtype))
        return np.array(data, self.dtypes[i], order="C")

    def _tensor(self, i: int, result: Any) -> Tensor:
        weak = (is_weak(result) and not isinstance(result, np.generic)) or isinstance(result, list)
        if result is None:
            self._refuse(i, "None")
        tensor = convert(result, self.dtypes[i] if weak else None)
        if tensor._data.dtype != self.dtypes[i]:
            self._refuse(i, str(tensor._data.dtype))
        return tensor

    def _refuse(self, i: int, got: str) -> NoReturn:
        wanted = self.dtypes[i]
        raise ArgumentTypeError(
            f"{self.name}: output {i} of the function is {got}, but Tout declares {wanted}: return "
            f".astype(np.{wanted}), or change Tout"
        )


def _run_numpy_on_gpu(*arrays: Any, code: _PythonCall) -> list[Any]:
    outs = code.arrays(*map(devices.to_host, arrays))
    return [devices.move(array, devices.GPU) for array in outs]


_NUMPY = Primitive(
    "numpy_function",
    lambda *arrays, code: code.arrays(*arrays),
    ("inputs",),
    unknown_avals,
    kind="user",
    on_gpu=_run_numpy_on_gpu,
    mixes_devices=True,
)


def _warn_detached(operands: Sequence[Tensor]) -> None:
    """Warn, as where NumPy values are taken, unless a custom gradient is there to replace it."""
    if not state.rules or state.frame is None or running_functions():
        return
    tokens = tokens_of(stack(state.frame))
    for tensor in chain.from_iterable(map(with_wholes, operands)):
        recording = find_tokens(tensor._rec)
        if any(token in recording and not token.everything for token in tokens):
            state.rules[-1].warn_detached(tensor._rec)
            return
