"""The effect of rounding, by arithmetic that rounds at random (Parker, Monte Carlo Arithmetic).

What an operation may be off by follows from the terms that it adds up, not from its result: a
sum of large terms that cancel is as uncertain as these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.kinds import is_complex, is_floating, is_inexact
from .._core.levels import Level, state
from .._core.primitive import apply
from .._core.tensor import Tensor
from .._rules.rebinding import rebind_outputs

AMPLITUDE = 16.0  # of random rounding: where terms cancel, few values are near a result
EXACT = (  # what computes nothing that must be rounded; rules compare with results of these
    *("absolute", "ceil", "clip", "conj", "floor", "imag", "max", "maximum", "min", "minimum"),
    *("negative", "real", "relu", "round", "sign", "where"),
)
SUMS = (  # multilinear: the size of the terms is the result for the operands' magnitudes
    *("sum", "mean", "cumsum", "matmul", "matvec", "conv", "conv_input", "conv_filter"),
    *("getitem_adjoint", "gather_adjoint", "add_along_axis", "mean_pool", "mean_pool_adjoint"),
    "recurrence",
)
SOLVERS = (  # backward stable: what they return is exact for operands that differ by rounding
    *("solve", "inverse", "determinant", "log_abs_determinant", "cholesky", "cofactors"),
    *("cofactor_change", "expm", "sqrtm", "logm", "eigvalsh", "svdvals"),
)


class Rough(Level):
    """A level that rounds each result at random, to measure the effect of rounding.

    `constants`: single numbers as well that are neither arguments nor results. Python's numbers
    become the dtype of what they meet, and lose digits in float32 that they have in float64.
    """

    def __init__(self, seed: int, constants: bool = False):
        self.generator = np.random.default_rng(seed)
        self.constants = constants
        self._results: dict[int, Tensor] = {}

    def add_results(self, tensors: Sequence) -> Any:
        """Note arguments and results; return them."""
        if self.constants:
            self._results |= {id(tensor): tensor for tensor in tensors}
        return tensors

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        inputs = tuple(map(self._round_constant, inputs)) if self.constants else inputs
        out = apply(primitive, inputs, params)
        self.add_results(out if isinstance(out, list) else [out])
        name = primitive.name
        if name in EXACT or (primitive.kind == "move" and name not in SUMS):
            return out
        for result in out if isinstance(out, list) else [out]:
            data = result._data
            if is_inexact(data.dtype) and type(data) is np.ndarray:
                with np.errstate(all="ignore"):
                    size = self._uncertainty(
                        primitive, [tensor._data for tensor in inputs], params, data
                    )
                    limits = np.finfo(data.dtype)
                    noise = self._draw(size * limits.eps, limits.smallest_subnormal)
                    result._data = np.asarray(np.where(np.isfinite(noise), data + noise, data))
                    result._data = result._data.astype(data.dtype)
        return out

    def _round_constant(self, operand: Tensor) -> Tensor:
        """Return a number rounded at random, unless it has few digits in this dtype, as 0.5."""
        data = operand._data
        if id(operand) in self._results or data.ndim or not is_floating(data.dtype):
            return operand
        with np.errstate(all="ignore"):
            if data == data.astype(np.float16):
                return operand
        size = np.abs(data) * np.finfo(data.dtype).eps
        return Tensor(np.asarray(data + self._draw(np.asarray(size)), data.dtype))

    def _draw(self, size: np.ndarray, least: float = 0.0) -> np.ndarray:
        """Return random numbers; for complex sizes for both parts by themselves."""
        drawn = self.generator.uniform(-AMPLITUDE, AMPLITUDE, size.shape)
        if not is_complex(size.dtype):
            return drawn * (size + least)
        other = self.generator.uniform(-AMPLITUDE, AMPLITUDE, size.shape)
        return drawn * (np.real(size) + least) + 1j * other * (np.imag(size) + least)

    def _uncertainty(
        self, primitive: Any, operands: list, params: dict, out: np.ndarray
    ) -> np.ndarray:
        """Return how far each element may be off, in units of the precision.

        Complex ones have an uncertainty for each part.
        """
        name = primitive.name
        size = np.abs(out)
        if is_complex(out.dtype):
            exponent = params.get("exponent", operands[-1])
            is_polar = "power" in name and not np.all(exponent == np.round(np.real(exponent)))
            size = _sizes_of_parts(name, operands, out, is_polar)
        if not all(type(operand) is np.ndarray for operand in operands):
            return size
        if name in SUMS or (name == "multiply" and is_complex(out.dtype)):
            terms = primitive.run(*map(_magnitudes, operands), **params)
            if is_complex(out.dtype):
                return np.abs(terms) + 1j * np.abs(np.imag(terms))
            return np.maximum(size, np.abs(terms))
        if name in SOLVERS:
            moved = [self._moved(operand) for operand in operands]
            try:
                other = primitive.run(*moved, **params)
            except Exception:  # no longer positive definite, say
                return size
            error = 4.0 * (_magnitudes(other - out) + _error_of(name, operands, out))
            return size + error / np.finfo(out.dtype).eps
        if name in ("logsumexp", "log_softmax"):
            return size + 1.0
        if name == "softmax":
            return size * (1.0 + _largest(operands[0]))
        if name == "variance":
            return size + np.sqrt(size) * _largest(operands[0])
        if name in ("softmax_pull", "log_softmax_pull"):
            dy, y = operands
            axis = params["axis"]
            if name == "softmax_pull":
                total = np.sum(np.abs(dy * y), axis=axis, keepdims=True)
                return np.abs(y) * (np.abs(dy) + total)
            total = np.sum(np.abs(dy), axis=axis, keepdims=True)
            return np.abs(dy) + np.exp(y) * (1.0 + np.abs(y)) * total
        return size

    def _moved(self, operand: np.ndarray) -> np.ndarray:
        """Return an operand whose elements differ by the rounding of its largest ones."""
        if not is_inexact(operand.dtype):
            return operand
        size = np.full(operand.shape, _largest(operand)) * np.finfo(operand.dtype).eps
        return (operand + self._draw(size)).astype(operand.dtype)

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        return self.add_results(rebind_outputs(state.frame, call, inputs, outputs))


def _error_of(name: str, operands: list, out: np.ndarray) -> np.ndarray | float:
    """Return about how far an inverse or a solution is off, from its residual."""
    dtype = np.clongdouble if is_complex(out.dtype) else np.longdouble
    wide = [operand.astype(dtype) for operand in operands]
    if name == "inverse":
        residual = np.eye(out.shape[-1]) - np.matmul(wide[0], out)
        return _magnitudes(np.matmul(out, residual)).astype(out.dtype)
    if name == "solve":
        residual = (wide[1] - np.matmul(wide[0], out)).astype(out.dtype)
        return _magnitudes(np.linalg.solve(operands[0], residual))
    return 0.0


def _magnitudes(operand: np.ndarray) -> np.ndarray:
    """Return magnitudes, for complex numbers those of both parts: ``|re| + 1j |im|``."""
    if not is_inexact(operand.dtype):
        return operand
    magnitudes = np.abs(operand)
    if is_complex(operand.dtype):
        magnitudes = np.abs(np.real(operand)) + 1j * np.abs(np.imag(operand))
    return np.asarray(magnitudes, operand.dtype)


def _sizes_of_parts(name: str, operands: list, out: np.ndarray, is_polar: bool) -> np.ndarray:
    """Return what both parts of a complex result are rounded in proportion to.

    The imaginary part in proportion to itself in a sum, and where that of the operands is tiny, as
    in a complex step: functions are then computed as their real parts and derivatives.
    """
    componentwise = np.array(True)
    for operand in operands if name not in ("add", "subtract") else ():
        if is_complex(operand.dtype):
            tiny = np.abs(np.imag(operand)) <= 1e-10 * np.abs(np.real(operand))
            tiny &= (np.real(operand) > 0) | (not is_polar)
            sizes = zip(tiny.shape[::-1], out.shape[::-1], strict=False)
            fits = tiny.ndim <= out.ndim and all(
                size_of_axis in (1, other) for size_of_axis, other in sizes
            )
            componentwise = componentwise & (tiny if fits else tiny.all())
    size = np.abs(out)
    return size + 1j * np.where(componentwise, np.abs(np.imag(out)), size)


def _largest(operand: np.ndarray) -> Any:
    """Return the largest finite magnitude, for complex numbers that of each part."""
    finite = _magnitudes(operand[np.isfinite(operand)])
    if is_complex(operand.dtype):
        return complex(np.real(finite).max(initial=0.0), np.imag(finite).max(initial=0.0))
    return float(finite.max(initial=0.0))
