"""custom_gradient: functions that bring their own gradient rule, nested to any order.

Follows ``tf.custom_gradient`` of TensorFlow 2.21 and ``keras.ops.custom_gradient`` of
Keras 3.15. The function runs while tapes record its inner operations, for its rule may close
over them; then its outputs get a new producer, the rule, on exactly the tapes that watch one
of its inputs. On any other tape the inner operations stand.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import nest
from .convert import convert, is_differentiable, is_tensor, is_weak
from .levels import (
    NOTHING,
    Frame,
    Listener,
    Node,
    late_for,
    late_tokens,
    narrow,
    remove_listener,
    state,
)
from .recording import hang_parts, operands
from .returned import gradients_of_inputs, gradients_of_variables
from .rules import Definition, Rule, check_result
from .tensor import Tensor
from .variable import Variable


class Bind:
    """A decorated function that is also a method when it stands in a class.

    ``Bind.decorator(d)`` makes a decorator of ``d(function, args, kwargs)``; `function` is
    bound to the instance where there is one.
    """

    def __init__(self, function: Any, decorated: Callable[[Any, tuple, dict], Any]):
        functools.update_wrapper(self, function)
        self._function = function
        self._decorated = decorated

    @classmethod
    def decorator(cls, decorated: Callable[[Any, tuple, dict], Any]) -> Callable[[Any], Bind]:
        return lambda function: cls(function, decorated)

    def __get__(self, instance: Any, owner: Any = None) -> Bind:
        if hasattr(self._function, "__get__"):
            bound = self._function.__get__(instance, owner)
            if bound is not self._function:
                return Bind(bound, self._decorated)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._decorated(self._function, args, kwargs)

    def __repr__(self) -> str:
        return f"<custom gradient {getattr(self, '__qualname__', self._function)!r}>"


def custom_gradient(f: Any = None) -> Any:
    """Decorate a function that returns its value together with its gradient rule.

    Parameters
    ----------
    f:
        ``f(*args, **kwargs)`` returns ``(y, grad_fn)``. `y` is a nested structure of tensors,
        of any shapes and dtypes; ``grad_fn(*dys)`` takes the upstream gradient of each of
        them, flattened, and returns the gradient of each input, flattened: tensors of the
        inputs' shapes and dtypes, or None. If f uses trainable Variables that are not among
        its arguments, ``grad_fn(*dys, variables=[...])`` returns a pair of that and the list
        of the Variables' gradients. ``grad_fn(*inputs, upstream)`` is called Keras's way.

    Returns
    -------
    A `Bind`: calling it gives y, and gradients through y use the rule. Rules written in
    operations can be differentiated again; a rule may itself be a custom gradient.

    Inputs are all numbers, arrays and tensors among the positional arguments, and tensors
    passed by keyword. Raises TypeError if f is no function, or at the call, if what it returns
    is not a pair with a rule that fits; ValueError at the gradient, if the rule returns the
    wrong number or shapes. A `CustomGradientWarning` says so when a tape bypasses the rule.

    After ``tf.custom_gradient`` and ``keras.ops.custom_gradient``.
    """
    if f is None:
        return custom_gradient
    if not callable(f):
        raise TypeError(f"custom_gradient decorates a function, got {type(f).__name__} {f!r}")
    around = [one for one in state.listeners if isinstance(one, _Accessed)]
    definition = Definition(f, outer=around[-1].definition if around else None)
    return Bind(f, _Decorated(definition).call)


class _Accessed(dict, Listener):
    """Listens while a decorated function runs: the trainable Variables that it uses, by id."""

    __slots__ = ("definition",)

    def variable_read(self, variable: Variable) -> None:
        if variable.trainable and is_differentiable(variable._data.dtype):
            self[id(variable)] = variable

    variable_assigned = variable_read


class Call(NamedTuple):
    """One call of a decorated function: what its node saves."""

    rule: Rule
    definition: Definition
    grad_fn: Callable[..., Any]
    count: int  # of inputs: as many gradients must the rule return
    paths: list[tuple] | None  # where each input stood in the call; None: one per argument
    values: Sequence | None  # the inputs, if the rule wants them too
    variables: list[Variable] | None


class _Decorated:
    """What happens at each call of one decorated function."""

    def __init__(self, definition: Definition):
        self.definition = definition

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        definition = self.definition
        accessed = _Accessed()
        accessed.definition = definition
        listeners = state.listeners
        listeners.append(accessed)
        try:
            result = function(*args, **kwargs)
        finally:
            if listeners[-1] is accessed:
                listeners.pop()
            else:
                remove_listener(accessed)
        if type(result) is not tuple or len(result) != 2 or not callable(result[1]):
            result = check_result(definition, result)
        y, grad_fn = result
        single = type(y) is Tensor
        outputs = (y,) if single else _outputs(y)
        variables = (_own_variables(accessed, args, kwargs) or None) if accessed else None
        rule = definition.rule(grad_fn, len(outputs), variables)
        frame = state.frame
        if frame is None:
            results = [_copy(output) for output in outputs]
            return results[0] if single else _pack(y, results)
        if kwargs:
            inputs, paths = _inputs(definition, args, kwargs)
        else:
            inputs, paths = args, None
            for leaf in args:
                if type(leaf) is not Tensor:
                    inputs, paths = _inputs(definition, args, kwargs)
                    break
        kept = inputs if rule.keras else None
        if paths is not None:
            inputs = [convert(leaf) if is_tensor(leaf) else None for leaf in inputs]
        call = _new_call(Call, (rule, definition, grad_fn, len(inputs), paths, kept, variables))
        if single and paths is None and variables is None:
            group, nodes, mask = operands(frame, inputs)
            result = _natural(frame, call, group if mask else NOTHING, y)
            if mask:
                _attach(result, call, group, nodes)
            return result
        results = _hang(frame, call, inputs, outputs)
        return results[0] if single else _pack(y, results)


_new_call: Any = tuple.__new__


def _outputs(structure: Any) -> list[Tensor]:
    """The flat outputs as tensors; None is allowed among them, and left out."""
    return [convert(leaf) for leaf in nest.flatten(structure) if leaf is not None]


def _pack(structure: Any, results: list[Tensor]) -> Any:
    remaining = iter(results)
    leaves = [None if leaf is None else next(remaining) for leaf in nest.flatten(structure)]
    return nest.pack_sequence_as(structure, leaves)


def _own_variables(accessed: _Accessed, args: tuple, kwargs: dict) -> list[Variable]:
    for leaf in nest.flatten((args, kwargs)):
        accessed.pop(id(leaf), None)
    return sorted(accessed.values(), key=lambda variable: variable._serial)


def _inputs(
    definition: Definition, args: tuple, kwargs: dict
) -> tuple[Sequence, list[tuple] | None]:
    """The inputs of a call, one for each gradient its rule must return, and their paths."""
    values: list[Any] = []
    paths: list[tuple] = []
    for i, argument in enumerate(args):
        for path, leaf in nest.flatten_paths(argument):
            if _is_input(leaf):
                values.append(leaf)
                paths.append((i, path))
    for name in definition.keyword_order(kwargs) if kwargs else ():
        for path, leaf in nest.flatten_paths(kwargs[name]):
            if is_tensor(leaf):
                values.append(leaf)
                paths.append((name, path))
    return values, paths


def flat_inputs(definition: Definition, args: tuple, kwargs: dict) -> Sequence:
    """The inputs of a call, flat, in the order of the gradients that its rule returns."""
    return _inputs(definition, args, kwargs)[0]


def _is_input(leaf: Any) -> bool:
    return is_tensor(leaf) or is_weak(leaf) or isinstance(leaf, np.ndarray)


# The new producer ----------------------------------------------------------------------------


def _copy(output: Tensor) -> Tensor:
    """The same value as another tensor, so that an output is never an input itself."""
    if type(output) is not Tensor:
        return output._with_record(None)
    record = output._rec
    return Tensor(output._data, None if record is None else late_for(late_tokens(record)))


def _hang(frame: Frame, call: Call, inputs: Sequence, outputs: Sequence[Tensor]) -> list[Tensor]:
    """Outputs whose producer is the call, for tapes that watch an input of it."""
    if call.variables:
        inputs = [*inputs, *[variable._read() for variable in call.variables]]
    tensors = [tensor for tensor in inputs if tensor is not None]
    group, found, mask = operands(frame, tensors)
    if not mask:
        return [_natural(frame, call, NOTHING, output) for output in outputs]
    remaining = iter(found)
    nodes = tuple([None if tensor is None else next(remaining) for tensor in inputs])
    results = [_natural(frame, call, group, output) for output in outputs]
    if len(results) > 1:
        hang_parts(group, nodes, _custom_rule, call, results)
    elif results:
        _attach(results[0], call, group, nodes)
    return results


def _attach(result: Tensor, call: Call, group: frozenset, nodes: tuple) -> None:
    data = result._data
    if data.dtype.kind in "fc":
        result._rec = Node(group, nodes, _custom_rule, call, data.shape, data.dtype, result._rec)


def _natural(frame: Frame, call: Call, group: frozenset, output: Tensor) -> Tensor:
    """A copy of an inner output that keeps its producer on tapes outside `group`."""
    record = output._rec
    result = Tensor(output._data) if type(output) is Tensor else output._with_record(None)
    if record is not None and (record.group is not group or record.next is not None):
        _keep_producer(frame, call, group, record, result)
    return result


def _keep_producer(
    frame: Frame | None, call: Call, group: frozenset, record: Any, result: Tensor
) -> None:
    """The inner producer of an output stands on tapes that watch no input of the call: those
    of this frame, and those below a transformation, which the rule does not reach.
    """
    data = result._data
    others = NOTHING
    while frame is not None:
        below = frame.active(frame.resolve((record,))[0] - group)
        if below:
            following = result._rec
            node = narrow(record, below)
            result._rec = Node(
                below, (node,), _identity_rule, None, data.shape, data.dtype, following
            )
            others |= below
        frame = frame.lower
    if others:
        call.definition.warn_bypassed()
    elif not group:
        result._rec = late_for(late_tokens(record))


def _identity_rule(node: Node, dy: Tensor) -> tuple:
    return (dy,)


def _custom_rule(node: Node, dy: Any) -> Sequence:
    """Run the user's rule, and check and adapt what it returns."""
    call: Call = node.saved
    rule, definition, grad_fn, count, _, _, variables = call
    rules = state.rules
    rules.append(definition)
    try:
        if type(dy) is list or variables is not None or rule.keras:
            returned = rule.run(call, dy if type(dy) is list else (dy,))
        else:
            returned = grad_fn(dy)
    finally:
        rules.pop()
    if variables is not None:
        inputs, others = gradients_of_variables(call, returned)
        return gradients_of_inputs(call, inputs, node.inputs[:count]) + others
    if count == 1 and type(returned) is Tensor:  # nearly always so, and right
        data = returned._data
        target: Any = node.inputs[0]
        if data.shape == target.shape and data.dtype is target.dtype:
            return (returned,)
    return gradients_of_inputs(call, returned, node.inputs)


def grad_pass_through(f: Any) -> Any:
    """Decorate a function so that gradients pass through it unchanged.

    Each input must have the shape of the output that stands at its place. Variables that f
    uses get None. After ``tf.grad_pass_through``.
    """

    def through(*args: Any, **kwargs: Any) -> Any:
        def grad(*dys: Any, variables: Any = None) -> Any:
            if variables is not None:
                return dys, [None] * len(variables)
            return dys

        return f(*args, **kwargs), grad

    functools.update_wrapper(through, f, updated=())
    decorated = custom_gradient(through)
    decorated.__wrapped__ = f
    return decorated
