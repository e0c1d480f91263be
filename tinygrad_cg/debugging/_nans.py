"""Search for the first NaN or infinity of a pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from .._core import devices
from .._core.kinds import is_floating, is_real_number
from .._core.levels import stack, state
from .._core.primitive import OPS
from ..errors import NonFiniteError, location_of
from ._table import source
from ._watcher import CallSite, Line, Watcher, values


class NaNDetector(Watcher):
    """An observer that raises at the first NaN or infinity. Made by `debug_nans`."""

    label = "debug_nans"

    def __init__(self, nans: bool = True, infs: bool = True):
        super().__init__()
        self.nans = nans
        self.infs = infs
        self._handed_on = False  # whether an infinity of the inputs was allowed

    def sees(self, site: Callable[[], CallSite], inputs: Sequence, outputs: Sequence, seconds: Any):
        if all(map(_finite, outputs)):
            return
        nan_in, inf_in = _any(np.isnan, inputs), _any(np.isinf, inputs)
        verb, what, question = "returned", "a NaN", np.isnan
        if self.nans and _any(np.isnan, outputs):
            verb = "received" if nan_in else "returned"
        elif self.infs and _any(np.isinf, outputs) and not (nan_in or inf_in):
            what, question = "an infinity", np.isinf
            if site().kind == "call" and self._handed_on:  # the infinity may be a mask
                return
        else:
            self._handed_on = self._handed_on or inf_in
            return
        _refuse(site(), f"{verb} {what}", question, inputs, outputs)


def _finite(tensor: Any) -> bool:
    array = values(tensor)
    if array is None:
        return True
    with np.errstate(all="ignore"):
        return bool(np.isfinite(array.sum())) or bool(np.isfinite(array).all())


def _any(question: Any, tensors: Sequence) -> bool:
    arrays = [values(tensor) for tensor in tensors if tensor is not None]
    return any(bool(question(array).any()) for array in arrays if array is not None)


def _refuse(
    site: CallSite, what: str, question: Any, inputs: Sequence, outputs: Sequence
) -> NoReturn:
    number = next(i for i, output in enumerate(outputs) if _any(question, [output]))
    arrays = [tensor._data for tensor in (outputs[number], *inputs) if tensor is not None]
    out, *operands = map(devices.to_host, arrays)
    bad = question(out)
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    of = {"operation": "{}", "call": "`{}`", "rule": "the rule of `{}`"}
    subject = of[site.kind].format(site.name)
    rule = f", in the rule of {site.rule}" if site.rule and site.kind == "operation" else ""
    many = f"{int(bad.sum())} of {bad.size} elements, the first at {list(index)}"
    detail = (many if bad.ndim else "") + _example(site, index, operands, out)
    lines = [
        f"{subject} {what}: {detail.lstrip(',; ') or 'the result'}",
        f"  {site.way}, order {site.order}{rule}",
        _where("at", site.line),
    ]
    if site.recorded is not None and site.recorded != site.line:
        lines.append(_where("the rule belongs to the operation at", site.recorded))
    if site.asked is not None and site.asked != site.line:
        lines.append(_where("the gradient was requested at", site.asked))
    if what.startswith("received"):
        lines.append(
            "  No watched operation computed the NaN: an operand is a constant, a result of NumPy, "
            "or was computed before the check began"
        )
    elif site.kind != "operation":
        lines.append(
            f"  No operation of {subject} computed this value: it came from NumPy, a constant or a "
            "captured tensor"
        )
    for i, (text, operand) in enumerate(zip(site.inputs, operands, strict=False)):
        lines.append(f"  operand {i}: {text}, {_range(operand)}")
    lines.append(f"  result: {site.outputs[number]}, {_range(out)}")
    lines.append(
        f"Detected Infinity or NaN in output {number} of eagerly-executed op "
        f'"{site.name}" (# of outputs: {len(outputs)})'
    )
    raise NonFiniteError("\n".join(lines), function=site.name, line=site.line, order=site.order)


def _example(site: CallSite, index: tuple[int, ...], operands: list, out: np.ndarray) -> str:
    """Return the operands of an elementwise operation at one index, as text."""
    record = OPS.get(site.name)
    if site.kind != "operation" or record is None or record.kind != "elementwise":
        return ""
    values = [np.broadcast_to(operand, out.shape)[index] for operand in operands]
    numbers = [f"{value:.6g}" for value in values]
    if site.name == "divide" and np.isinf(values[-1]) and np.isfinite(values[0]):
        return f"; the derivative of a division by {numbers[-1]} is NaN"
    return f", {site.name}({', '.join(numbers)}) = {out[index]:.6g}"


def _where(label: str, line: Line) -> str:
    text = source(line)
    return f"  {label} {location_of(*line)}" + (f": `{text}`" if text else "")


def _range(array: Any) -> str:
    if not isinstance(array, np.ndarray) or not is_real_number(array.dtype):
        return "not real numbers"
    finite = array[np.isfinite(array)] if is_floating(array.dtype) else array
    if not finite.size:
        return f"{array.item():g}" if array.size == 1 else "no finite number"
    low, high = finite.min(), finite.max()
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def debug_nans(nans: bool = True, infs: bool = True) -> NaNDetector:
    """Raise an error at the first NaN or infinity inside ``with tf.debug_nans():``.

    The first operation, forward or backward, that produces a NaN from operands without NaN or an
    infinity from finite operands (`nans` and `infs` choose) raises NonFiniteError (an
    InvalidArgumentError and a FloatingPointError). An operation that passes on a NaN from outside
    raises it, too. Infinities from outside, such as masks, may pass, except in gradients that a
    custom rule returns. The error names the operation, the values, your line, the rule it is part
    of and the order. A `function` called inside runs operation by operation. ValueError inside a
    traced function. Modelled on ``jax.debug_nans`` and ``tf.debugging.enable_check_numerics``.
    """
    return NaNDetector(nans, infs)


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Start `debug_nans` in this thread, until `disable_check_numerics`.

    Calling it again, and its arguments, have no effect. Modelled on
    ``tf.debugging.enable_check_numerics``.
    """
    if _enabled() is None:
        _Enabled().__enter__()


def disable_check_numerics() -> None:
    """Undo `enable_check_numerics` in this thread.

    Modelled on ``tf.debugging.disable_check_numerics``.
    """
    enabled = _enabled()
    if enabled is not None:
        enabled.__exit__()


class _Enabled(NaNDetector):
    label = "debugging.enable_check_numerics"


def _enabled() -> _Enabled | None:
    return next((level for level in stack(state.frame) if isinstance(level, _Enabled)), None)
