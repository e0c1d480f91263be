"""Forward mode: ForwardAccumulator, and the tangent of each operation from its gradient rule.

An accumulator is a level. It attaches the tangent of a tensor to the tensor's record, so the
tangent goes wherever the record goes: residuals and Variables have it, too. Modelled on
``tf.autodiff.ForwardAccumulator``; unlike there, the rules of custom gradients are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tinygrad_cg_kernels.loops.engine import Pointwise

from .. import nest
from .._core import record as records
from .._core.conversion import convert, is_tensor, is_weak
from .._core.kinds import is_complex, is_differentiable
from .._core.levels import Level, Token, is_alive, push, remove, state
from .._core.primitive import Primitive, apply
from .._core.record import Node, attach, find, loose_node
from .._core.tensor import Tensor
from .._ops.creation import zeros_like
from .._ops.elementwise import add
from .._ops.shape import cast, identity, repeat
from .._reverse.arguments import UnconnectedGradients, wants_zeros
from .._reverse.observer import run_tangents
from .._rules.calls import AnyCall
from .._rules.outside_runs import CODE, Code
from .._rules.rebinding import TransformedCall, at_positions, rebind_outputs
from ..errors import TapeWarning, warn
from .transposition import UnitVectorsNeeded, transpose_vjp


class ForwardAccumulator(Level):
    """Computes Jacobian-vector products along with the operations that it sees.

    Parameters
    ----------
    primals:
        Tensors or Variables, nested or not.
    tangents:
        The vector: a tensor for each primal, of its shape and dtype.

    Use it as a context manager; `jvp` returns the tangents of values computed inside. Accumulators
    and tapes nest in any order and to any depth. A tape around an accumulator sees the operations
    of the tangents. An accumulator around a tape uses the rule of a rule. If that rule is not the
    derivative of the operations, the two second derivatives differ. Raises ValueError if primals
    and tangents do not fit, and for a primal that occurs twice.

    Examples
    --------
    >>> x = tf.constant(3.0)
    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
    ...     y = x * x
    >>> accumulator.jvp(y).numpy()
    np.float32(6.0)
    """

    def __init__(self, primals: Any, tangents: Any):
        self._token = Token()
        self._recording = False
        nest.assert_same_structure(primals, tangents)
        flat = nest.flatten(primals)
        vectors = list(map(_tangent_for, flat, nest.flatten(tangents)))
        if len({id(primal) for primal in flat}) < len(flat):
            raise ValueError(
                "Tensor {} was specified as a primal multiple times. This may indicate an error: "
                "add up the tangents, and pass it once"
            )
        with records.watch_lock:
            for primal, tangent in zip(flat, vectors, strict=True):
                if tangent is not None:
                    primal._rec = _without_the_past(primal._rec)
            self._attach(flat, vectors)

    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        push(self)
        self._recording = True
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._recording:
            remove(self)
            self._recording = False

    def __del__(self) -> None:
        token = getattr(self, "_token", None)
        if token is not None:
            token.alive = False

    def jvp(
        self,
        primals: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the tangent of each of `primals`, in their structure.

        None (zeros if `unconnected_gradients` is "zero") for values that do not depend on the
        accumulator's primals, or were not computed while it was active. TypeError for other values.
        """
        fill = wants_zeros(unconnected_gradients)
        tangents = []
        for primal in nest.flatten(primals):
            if not is_tensor(primal):
                raise TypeError(f"jvp: needs a Tensor or Variable, got {type(primal).__name__}")
            tangent = self._tangent(primal)
            tangents.append(zeros_like(convert(primal)) if tangent is None and fill else tangent)
        return nest.pack_sequence_as(primals, tangents)

    # The level -------------------------------------------------------------------------------

    def _tangent(self, tensor: Any) -> Tensor | None:
        node = find(tensor._rec, self._token)
        return None if node is None else node.saved

    def _attach(self, tensors: Sequence, tangents: Sequence[Tensor | None]) -> None:
        for tensor, tangent in zip(tensors, tangents, strict=True):
            if tangent is not None:
                attach(tensor, frozenset((self._token,)), (), _no_rule, tangent)

    def process(self, primitive: Primitive, inputs: tuple, params: dict) -> Any:
        """Run an operation, and compute the tangent of its result."""
        out = apply(primitive, inputs, params)
        tangents = [self._tangent(tensor) for tensor in inputs]
        if primitive.rules is not None and any(tangent is not None for tangent in tangents):
            if state.observers:
                out_tangents = run_tangents(
                    None, push_forward, primitive, inputs, params, out, tangents
                )
            else:
                out_tangents = push_forward(primitive, inputs, params, out, tangents)
            self._attach(out if isinstance(out, list) else [out], out_tangents)
        return out

    def custom_call(self, call: AnyCall, inputs: Sequence, outputs: Sequence) -> list:
        """Return the outputs with tangents: as declared, or by transposing the rule."""
        results = rebind_outputs(state.frame, call, inputs, outputs)
        tangents = [None if tensor is None else self._tangent(tensor) for tensor in inputs]
        if type(call) is TransformedCall and call.jvp_of_input is not None:
            first = tangents[0]
            natural = [None if first is None else call.jvp_of_input(first, self._token)]
        elif all(tangent is None for tangent in tangents):
            natural = [self._tangent(output) for output in outputs]
            if any(tangent is not None for tangent in natural):
                call.definition.warn_bypassed()
        else:
            natural = self._jvp(call, inputs, outputs, tangents)
        self._attach(results, natural)
        return results

    def _jvp(self, call: AnyCall, inputs: Sequence, outputs: Sequence, tangents: Sequence) -> list:
        definition, vjp = call.definition, call.vjp
        jvp = call.jvp if type(call) is TransformedCall else None
        if jvp is not None:
            with suppress(UnitVectorsNeeded):
                return run_tangents(definition, jvp, tangents)
        pairs = zip(inputs, tangents, strict=True)
        targets = [None if tangent is None else output._data for output, tangent in pairs]
        return run_tangents(
            *(definition, transpose_vjp, lambda dys: vjp(dys, targets)),
            *(outputs, tangents, definition, False, jvp is not None),
        )


def _without_the_past(record: Any) -> Any:
    """Return a tensor's records without those of finished tapes and accumulators."""
    while record is not None and type(record) is Node and not is_alive(record.group):
        record = record.next
    last: Any = record
    while last is not None and last.next is not None:
        if type(last.next) is Node and not is_alive(last.next.group):
            last.next = last.next.next
        else:
            last = last.next
    return record


def _no_rule(node: Node, dy: Any) -> tuple:
    raise AssertionError("a tangent is not differentiated in reverse")


def _tangent_for(primal: Any, tangent: Any) -> Tensor | None:
    """Return `tangent` as a tensor like `primal`; None for an integer primal."""
    if not is_tensor(primal):
        raise TypeError(
            f"ForwardAccumulator: a primal must be a Tensor or Variable, got "
            f"{type(primal).__name__}: wrap it in constant() before it is used"
        )
    dtype = primal._data.dtype
    if not is_differentiable(dtype):
        warn(
            "The dtype of the watched primal must be floating (e.g. tf.float32), got "
            f"tf.{dtype}: it has no tangent",
            TapeWarning,
        )
        return None
    tensor = convert(tangent, dtype if is_weak(tangent) or isinstance(tangent, list) else None)
    if tensor._data.dtype != dtype:
        raise ValueError(
            f"Tensor conversion requested dtype {dtype} for Tensor with dtype "
            f"{tensor._data.dtype}: ForwardAccumulator needs a tangent of its primal's dtype"
        )
    if tensor._data.shape != primal._data.shape:
        raise ValueError(
            f"ForwardAccumulator: a tangent has shape {tuple(tensor._data.shape)}, its primal "
            f"{tuple(primal._data.shape)}"
        )
    return tensor


# Tangents ------------------------------------------------------------------------------------


def push_forward(
    primitive: Primitive, inputs: tuple, params: dict, out: Any, tangents: Sequence
) -> list[Tensor | None]:
    """Return the tangent of each output of an operation, from the tangents of its operands.

    A linear operation is applied to the tangents. For an elementwise operation on real numbers, the
    derivative with respect to an operand is its gradient rule, unless the record declares a jvp.
    Other rules are transposed.
    """
    outs = out if isinstance(out, list) else [out]
    if primitive is CODE:
        return _code_tangents(params["code"], inputs, outs, tangents)
    if not any(is_differentiable(output._data.dtype) for output in outs):
        return [None] * len(outs)
    by_element = primitive.jvp is not None or (
        primitive.kind == "elementwise"
        and all(not is_complex(tensor._data.dtype) for tensor in (*inputs, *outs))
    )
    if primitive.linear and not (by_element and any(tangent is None for tangent in tangents)):
        result = apply(primitive, tuple(map(_fill_tangent, inputs, tangents)), params)
        return result if isinstance(result, list) else [result]
    if by_element:
        return [_elementwise(primitive, inputs, params, outs[0], tangents)]
    mask = sum(1 << i for i, tangent in enumerate(tangents) if tangent is not None)
    node: Any = loose_node(primitive, inputs, params, out, mask)
    if primitive.kind in ("user", "control"):  # the rule may ask which gradients are needed
        pairs = zip(node.inputs, tangents, strict=True)
        node.inputs = tuple([None if tangent is None else source for source, tangent in pairs])
    multi_output = isinstance(out, list)
    return transpose_vjp(
        lambda dys: node.rule(node, dys if multi_output else dys[0]),
        outs,
        tangents,
        getattr(node.saved, "definition", None),
        not multi_output and _is_by_element(primitive, outs[0], inputs, tangents),
    )


def _is_by_element(primitive: Primitive, out: Any, inputs: tuple, tangents: Sequence) -> bool:
    """Return whether each output element depends on one element of each input, for real numbers."""
    real = not any(is_complex(tensor._data.dtype) for tensor in (out, *inputs))
    pairs = zip(inputs, tangents, strict=True)
    shapes = [tensor._data.shape for tensor, tangent in pairs if tangent is not None]
    whole = all(shape == out._data.shape for shape in shapes)
    return real and whole and isinstance(primitive.kernel, Pointwise)


def _code_tangents(
    code: Code, inputs: tuple, outs: list, tangents: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Return the tangents of outside code, by running it again under an accumulator."""
    moving = [i for i, tangent in enumerate(tangents) if tangent is not None]
    wanted = [i for i, output in enumerate(outs) if is_differentiable(output._data.dtype)]
    if not wanted:
        return [None] * len(outs)

    def call(*tensors: Tensor) -> list[Tensor]:
        primals, end = list(tensors[: len(inputs)]), len(inputs) + len(outs)
        for i in moving:
            primals[i] = identity(primals[i])
        directions = list(tensors[end:])
        with ForwardAccumulator([primals[i] for i in moving], directions) as accumulator:
            results = code.repeat(primals, tensors[len(inputs) : end])
        return accumulator.jvp([results[i] for i in wanted], "zero")

    key = ("tangent", code.key, *moving)
    tangent = code.derivative("tangent", key, call, len(inputs))
    operands = (*inputs, *outs, *[tangent for tangent in tangents if tangent is not None])
    products = apply(CODE, operands, {"code": tangent})
    return at_positions(wanted, products, len(outs))


def _fill_tangent(tensor: Tensor, tangent: Tensor | None) -> Tensor:
    """Return the tangent, or zeros if it is None; indices and conditions are returned unchanged."""
    if tangent is not None:
        return tangent
    return zeros_like(tensor) if is_differentiable(tensor._data.dtype) else tensor


def _elementwise(
    primitive: Primitive, inputs: tuple, params: dict, out: Tensor, tangents: Sequence
) -> Tensor | None:
    total = None
    shape, dtype = out._data.shape, out._data.dtype
    for i, tangent in enumerate(tangents):
        if tangent is None:
            continue
        tangent = _fit_tangent(tangent, shape, dtype)
        if primitive.jvp is not None:
            jvp = primitive.jvp[i]
            part = None if jvp is None else jvp(tangent, *inputs, out, **params)
        else:
            node: Any = loose_node(primitive, inputs, params, out, 1 << i)
            part = node.rule(node, tangent)[i]
        if part is not None:
            part = _fit_tangent(part, shape, dtype)
            total = part if total is None else add(total, part)
    return total


def _fit_tangent(tensor: Tensor, shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
    return repeat(cast(tensor, dtype) if tensor._data.dtype != dtype else tensor, shape)
