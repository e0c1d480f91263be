"""The solver of ``autograd.scipy.integrate``, in recorded steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ... import numpy as np
from ... import stop_gradient
from ..numpy._numpy_functions import for_arrays
from .special import real

__all__ = ["odeint"]
__dir__ = __all__.copy

# The pair of orders 5 and 4 of Dormand and Prince (1980): times, what each slope adds to the state
# at the next, and by how much the result of order 4 differs from that of order 5.
_TIMES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_WEIGHTS = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_DIFFERENCE = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_TOLERANCE = 1.49012e-8  # SciPy's


@for_arrays
def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple = (),
    *,
    rtol: float | None = None,
    atol: float | Sequence[float] | None = None,
    tfirst: bool = False,
    mxstep: int = 0,
    hmax: float = 0.0,
) -> Any:
    """Return the solution of dy/dt = func(y, t, *args) at the times `t`, one row for each.

    `y0`, a vector or a number, is the state at ``t[0]``. The times ascend or descend; equal
    neighbours are allowed. It takes steps of Dormand and Prince's method of order 5 (SciPy uses
    LSODA: the values agree to the tolerances, by default 1.49e-8), and their sizes depend on values
    only. The gradient with respect to `y0`, `t` and `args` differentiates these steps, at every
    order and in forward mode; where `func` has kinks (a rectifier) it is less accurate than the
    solution, since only the error of the solution chooses the steps. The method is explicit: stiff
    equations take many steps. Inside `function` and `vmap`, whose tensors have no values, it
    raises: call it outside of them.

    Raises ValueError for times that do not ascend or descend, and RuntimeError if an interval takes
    more than `mxstep` steps (by default 10,000) or the state is no longer finite.
    """
    rtol = _TOLERANCE if rtol is None else rtol
    tolerance = numpy.asarray(_TOLERANCE if atol is None else atol, float)
    times, state = real(t), np.atleast_1d(real(y0))
    values = _values(times)
    if values.ndim != 1 or not values.size or state.ndim != 1:
        raise ValueError(
            f"odeint: t and y0 must be vectors, got shapes {values.shape} and {tuple(state.shape)}"
        )
    steps = numpy.diff(values)
    if not (numpy.all(steps >= 0) or numpy.all(steps <= 0)):
        raise ValueError(f"odeint: the times must ascend or descend, got t={values}")

    def slope(y: Any, at: Any) -> Any:
        rate = func(at, y, *args) if tfirst else func(y, at, *args)
        rate = np.stack(list(rate)) if isinstance(rate, (list, tuple)) else np.asarray(rate)
        if rate.size != state.size:
            raise ValueError(
                f"odeint: func must return {state.size} numbers, like y0, got shape "
                f"{tuple(rate.shape)}"
            )
        return np.reshape(np.astype(rate, state.dtype), state.shape)

    def scale(y: Any) -> numpy.ndarray:
        return tolerance + rtol * numpy.abs(_values(y))

    size, rows, first = 0.0, [state], None
    for k in range(1, values.size):
        at, end = times[k - 1], float(values[k])
        direction, now = (1.0 if end >= values[k - 1] else -1.0), float(values[k - 1])
        count = 0
        while now != end:
            if first is None:
                first = slope(state, at)
            if not size:
                size = _first_size(_values(state), _values(first), scale(state))
            size = min(size, hmax) if hmax else size
            is_last = size >= abs(end - now) * (1 - 1e-12)
            step = times[k] - at if is_last else direction * size
            slopes, ahead = [first], state
            for time, weights in zip(_TIMES[1:], _WEIGHTS[1:], strict=True):
                ahead = state + step * _sum(weights, slopes)
                slopes.append(slope(ahead, at + time * step))
            width = abs(float(_values(step))) if is_last else size
            error = _sum(_DIFFERENCE, [_values(slope) for slope in slopes])
            largest = numpy.maximum(scale(state), scale(ahead))
            norm = float(numpy.sqrt(numpy.mean((width * error / largest) ** 2)))
            if not numpy.isfinite(norm):
                norm = 1e10
                if width <= 1e-14 * max(abs(now), abs(end)):
                    raise RuntimeError(f"odeint: the state is no longer finite, after t={now:g}")
            if norm <= 1.0:
                state, first = ahead, slopes[-1]
                at = times[k] if is_last else at + step
                now = end if is_last else float(_values(at))
            grown = width * min(5.0, max(0.2, 0.9 * max(norm, 1e-10) ** -0.2))
            size = max(size, grown) if is_last and norm <= 1.0 else grown
            count += 1
            if count > (mxstep or 10_000):
                raise RuntimeError(
                    f"odeint: more than {mxstep or 10_000} steps from t={values[k - 1]:g} to "
                    f"t={end:g}: raise mxstep or the tolerances; stiff equations need an "
                    "implicit method"
                )
        rows.append(state)
    return np.stack(rows)


def _values(x: Any) -> numpy.ndarray:
    """Return the values of a tensor, which decide on steps and have no derivative."""
    return stop_gradient(x).numpy()


def _sum(weights: Sequence[float], slopes: Sequence[Any]) -> Any:
    """Return the weighed sum of slopes."""
    parts = [w * slope for w, slope in zip(weights, slopes, strict=True) if w]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _first_size(y: numpy.ndarray, slope: numpy.ndarray, scale: numpy.ndarray) -> float:
    """Return a first step, as Hairer, Norsett and Wanner (1993), II.4, start."""
    state, change = (float(numpy.sqrt(numpy.mean((vector / scale) ** 2))) for vector in (y, slope))
    return 1e-6 if state < 1e-5 or change < 1e-5 else 0.01 * state / change
