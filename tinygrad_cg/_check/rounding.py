"""The effect of rounding, measured by rounding at random (Parker, Monte Carlo Arithmetic).

The error of an operation is in proportion to the terms that it adds up, not to its result: a sum
of large terms that cancel is as uncertain as the terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.kinds import is_complex, is_floating, is_inexact
from .._core.tensor import Tensor
from .observing import ObservingLevel
from .problem import can_broadcast

AMPLITUDE = 16.0  # of the random rounding, in units of the usual one
EXACT = (  # operations that do not round; rules compare with their results
    *("absolute", "ceil", "clip", "conj", "floor", "imag", "max", "maximum", "min", "minimum"),
    *("negative", "real", "relu", "round", "sign", "unless_masked", "where"),
)
SUMS = (  # multilinear operations: the terms' size is the result for the operands' magnitudes
    *("sum", "mean", "cumsum", "matmul", "matvec", "conv", "conv_input", "conv_filter"),
    *("getitem_adjoint", "gather_adjoint", "add_along_axis", "mean_pool", "mean_pool_adjoint"),
    "recurrence",
)
SOLVERS = (  # backward stable: the result is exact for operands that differ by rounding
    *("solve", "inverse", "determinant", "log_abs_determinant", "cholesky", "cofactors"),
    *("cofactor_change", "expm", "sqrtm", "logm", "eigvalsh", "svdvals"),
)


class StochasticRounding(ObservingLevel):
    """A level that rounds each result at random, to measure the effect of rounding.

    With `constants`, it also rounds single numbers that are neither arguments nor results: a
    Python number takes the dtype of what it meets, and loses digits in float32 that it has in
    float64.
    """

    def __init__(self, seed: int, constants: bool = False):
        self.generator = np.random.default_rng(seed)
        self.constants = constants
        self._results: dict[int, Tensor] = {}

    def begin(self, sources: list) -> None:
        if self.constants:
            self._results |= {id(tensor): tensor for tensor in sources}

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        inputs = tuple(map(self._round_constant, inputs)) if self.constants else inputs
        return super().process(primitive, inputs, params)

    def see(self, primitive: Any, inputs: tuple, params: dict, outs: list[Tensor]) -> None:
        self.begin(outs)
        name = primitive.name
        if name in EXACT or (primitive.kind == "move" and name not in SUMS):
            return
        operands = [tensor._data for tensor in inputs]
        for result in outs:
            data = result._data
            if is_inexact(data.dtype) and type(data) is np.ndarray:
                with np.errstate(all="ignore"):
                    size = self._uncertainty(primitive, operands, params, data)
                    limits = np.finfo(data.dtype)
                    noise = self._draw(size * limits.eps, limits.smallest_subnormal)
                    result._data = np.asarray(np.where(np.isfinite(noise), data + noise, data))
                    result._data = result._data.astype(data.dtype)

    def see_rule(self, inputs: Sequence, outputs: Sequence, results: list) -> None:
        self.begin(results)

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
        """Return random numbers; for complex sizes, of both parts independently."""
        drawn = self.generator.uniform(-AMPLITUDE, AMPLITUDE, size.shape)
        if not is_complex(size.dtype):
            return drawn * (size + least)
        other = self.generator.uniform(-AMPLITUDE, AMPLITUDE, size.shape)
        return drawn * (np.real(size) + least) + 1j * other * (np.imag(size) + least)

    def _uncertainty(
        self, primitive: Any, operands: list, params: dict, out: np.ndarray
    ) -> np.ndarray:
        """Return how far each element may be off, in units of the precision.

        Complex elements have an uncertainty for each part.
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
        if name in ("logsumexp", "log_softmax", "sparse_cross_entropy"):
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


def _error_of(name: str, operands: list, out: np.ndarray) -> np.ndarray | float:
    """Return an estimate of the error of an inverse or a solution, from its residual."""
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
    """Return magnitudes; for complex numbers those of both parts: ``|re| + 1j |im|``."""
    if not is_inexact(operand.dtype):
        return operand
    magnitudes = np.abs(operand)
    if is_complex(operand.dtype):
        magnitudes = np.abs(np.real(operand)) + 1j * np.abs(np.imag(operand))
    return np.asarray(magnitudes, operand.dtype)


def _sizes_of_parts(name: str, operands: list, out: np.ndarray, is_polar: bool) -> np.ndarray:
    """Return the sizes that the parts of a complex result are rounded in proportion to.

    The imaginary part is rounded in proportion to itself in a sum, and where the operands'
    imaginary parts are tiny, as in a complex step. Otherwise in proportion to the whole.
    """
    componentwise = np.array(True)
    for operand in operands if name not in ("add", "subtract") else ():
        if is_complex(operand.dtype):
            tiny = np.abs(np.imag(operand)) <= 1e-10 * np.abs(np.real(operand))
            tiny &= (np.real(operand) > 0) | (not is_polar)
            fits = can_broadcast(tiny.shape, out.shape)
            componentwise = componentwise & (tiny if fits else tiny.all())
    size = np.abs(out)
    return size + 1j * np.where(componentwise, np.abs(np.imag(out)), size)


def _largest(operand: np.ndarray) -> Any:
    """Return the largest finite magnitude; for complex numbers that of each part."""
    finite = _magnitudes(operand[np.isfinite(operand)])
    if is_complex(operand.dtype):
        return complex(np.real(finite).max(initial=0.0), np.imag(finite).max(initial=0.0))
    return float(finite.max(initial=0.0))
