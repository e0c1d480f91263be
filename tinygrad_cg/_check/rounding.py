"""The effect of rounding, by arithmetic that rounds at random (Parker, Monte Carlo Arithmetic).

What an operation may be off by follows from the terms that it adds up, not from its result: a
sum of large terms that cancel is as uncertain as these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.kinds import is_inexact
from .._core.levels import Level, state
from .._core.primitive import apply
from .._rules.rebinding import rebind_outputs

EXACT = (  # what computes nothing that must be rounded; rules compare with results of these
    *("absolute", "ceil", "clip", "conj", "floor", "imag", "max", "maximum", "min", "minimum"),
    *("negative", "real", "relu", "round", "sign", "where"),
)
SUMS = (  # multilinear: the size of the terms is the result for the operands' magnitudes
    *("sum", "mean", "cumsum", "matmul", "matvec", "conv", "conv_input", "conv_filter"),
    *("getitem_adjoint", "gather_adjoint", "add_along_axis", "mean_pool", "mean_pool_adjoint"),
    "recurrence",
)
SOLVERS = ("solve", "inverse", "determinant", "log_abs_determinant", "cholesky")  # backward stable


class Rough(Level):
    """A level that rounds each result at random, to measure the effect of rounding."""

    def __init__(self, seed: int):
        self.generator = np.random.default_rng(seed)

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        out = apply(primitive, inputs, params)
        name = primitive.name
        if name in EXACT or (primitive.kind == "move" and name not in SUMS):
            return out
        for one in out if isinstance(out, list) else [out]:
            data = one._data
            if is_inexact(data.dtype) and type(data) is np.ndarray:
                with np.errstate(all="ignore"):
                    size = self._uncertainty(primitive, [one._data for one in inputs], params, data)
                    drawn = self.generator.uniform(-1.0, 1.0, data.shape)
                    limits = np.finfo(data.dtype)
                    noise = drawn * (size * limits.eps + limits.smallest_subnormal)
                    one._data = np.asarray(np.where(np.isfinite(noise), data + noise, data))
                    one._data = one._data.astype(data.dtype)
        return out

    def _uncertainty(
        self, primitive: Any, operands: list, params: dict, out: np.ndarray
    ) -> np.ndarray:
        """Return how far each element may be off, in units of the precision."""
        name, size = primitive.name, np.abs(out)
        if not all(type(one) is np.ndarray for one in operands):
            return size
        if name in SUMS:
            terms = primitive.run(*[_magnitudes(one) for one in operands], **params)
            return np.maximum(size, np.abs(terms))
        if name in SOLVERS:
            moved = [self._moved(one) for one in operands]
            try:
                other = primitive.run(*moved, **params)
            except Exception:  # no longer positive definite, say
                return size
            return size + np.abs(other - out) / np.finfo(out.dtype).eps
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
        noise = self.generator.uniform(-1.0, 1.0, operand.shape) * np.finfo(operand.dtype).eps
        return (operand + noise * _largest(operand)).astype(operand.dtype)

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        return rebind_outputs(state.frame, call, inputs, outputs)


def _magnitudes(operand: np.ndarray) -> np.ndarray:
    return np.abs(operand).astype(operand.dtype) if is_inexact(operand.dtype) else operand


def _largest(operand: np.ndarray) -> float:
    return float(np.abs(operand[np.isfinite(operand)]).max(initial=0.0))
