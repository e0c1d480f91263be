"""Explain why a gradient is None, from the records and the program's text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cached_property
from types import FrameType
from typing import Any

from .._core.conversion import is_tensor
from .._core.kinds import is_differentiable
from .._core.levels import Token, is_alive, run_on, unrecorded_frame
from .._core.record import (
    Node,
    find,
    find_tokens,
    is_leaf,
    nodes_of,
    operation_of_rule,
    watched_since,
)
from .._ops.creation import ones_like
from .._reverse.sweep import NEVER_ENTERED, sweep
from .._reverse.variable import Variable
from ..errors import users_line
from .dataflow import GRADIENT, DetachPoint, captures_of, find_cut


def explain(tape: Any, token: Token, target: Any, source: Any, frame: FrameType) -> str:
    """Return in words whether `target` has a gradient with respect to `source`, and why not."""
    return _MissingGradient(tape, token, target, source, frame).explain()


def mistake(tape: Any, token: Token, targets: list, sources: list) -> str:
    """Return in words which gradient is None whatever the tape recorded, and why; else ""."""
    frame = sys._getframe(users_line()[2] - 1)
    has_float = any(is_differentiable(target.dtype) for target in targets)
    for source in sources:
        if not is_differentiable(source.dtype) or not getattr(source, "trainable", True):
            continue
        for target in targets:
            reader = _MissingGradient(tape, token, target, source, frame)
            reason = "" if token.watches else reader.watch_reason()
            reason = reason or ("" if has_float else reader.dtype_reason())
            if reason := reason or reader.swapped_reason():
                return f"{reader.subject} is None, because {reason}"
    return ""


_WHEN = " (after it closed, inside stop_recording(), or in another thread)"


class _MissingGradient:
    def __init__(self, tape: Any, token: Token, target: Any, source: Any, frame: FrameType):
        self.tape = tape
        self.token = token
        self.target = target
        self.source = source
        self.goal = find(target._rec, token)
        self.leaf = find(source._rec, token)
        self.frame = frame
        self.space = {**frame.f_globals, **frame.f_locals}
        self.target_name = self._name(target, "the target")
        self.source_name = self._name(source, "the source")
        self.subject = f"the gradient of {self.target_name} with respect to {self.source_name}"

    @cached_property
    def status(self) -> Any:
        """What the text of the user's function says of the target."""
        return find_cut(self.frame, self.tape, self.target, self.source)

    def explain(self) -> str:
        target, source = self.target_name, self.source_name
        if self.target is self.source:
            return f"{target} is the source itself: its gradient is 1."
        reason = "" if self.token.entered else NEVER_ENTERED
        reason = reason or self.dtype_reason() or self.watch_reason() or self.swapped_reason()
        if not reason and self.goal is not None:
            if not self.token.alive and self.goal.rule is None and not self.goal.inputs:
                reason = self._cut_reason()
                if not reason:
                    return (
                        f"Whether {target} has a gradient with respect to {source} is no longer "
                        "known: gradient() has freed this tape's record. Call explain() before "
                        "gradient(), or use GradientTape(persistent=True)."
                    )
            else:
                reason = self._path_reason()
                if reason is None:
                    return f"T{self.subject[1:]} is not None."
        reason = reason or self._cut_reason() or self._unrecorded_reason()
        return f"T{self.subject[1:]} is None: {reason}."

    def _name(self, tensor: Any, otherwise: str) -> str:
        names = [name for name, value in self.space.items() if value is tensor and name[:1] != "_"]
        if isinstance(tensor, Variable):
            is_named = names and tensor.name == "Variable:0"  # which all have by default
            return f"the Variable {f'`{names[0]}`' if is_named else repr(tensor.name)}"
        return f"`{names[0]}`" if names else otherwise

    # Reasons ---------------------------------------------------------------------------------

    def dtype_reason(self) -> str:
        for name, tensor in ((self.target_name, self.target), (self.source_name, self.source)):
            if not is_differentiable(tensor._data.dtype):
                return (
                    f"{name} has the dtype {tensor.dtype}, and integers and bools have no gradient"
                )
        return ""

    def watch_reason(self) -> str:
        """Return why the tape does not watch the source, or watches it too late; else ""."""
        name, source = self.source_name, self.source
        remedy = f". Call tape.watch() on {name} before {name} is used"
        if self.leaf is None:
            if self.token in find_tokens(source._rec):
                return f"{name} was computed when this tape did not record" + _WHEN
            if not isinstance(source, Variable):
                others = any(is_alive(node.group) for node in nodes_of(source._rec))
                if others:
                    return f"{name} was never watched by this tape, only by another one{remedy}"
                return (
                    f"{name} was never watched{remedy}. If {name} was a Variable, write "
                    "x.assign_sub(step): `x = x - step` makes a Tensor"
                )
            if not source.trainable:
                return f"{name} is not trainable, and was never watched{remedy}"
            if not self.tape._watch_accessed:
                return (
                    f"{name} was never watched, as watch_accessed_variables=False demands{remedy}"
                )
            return f"{name} was never read while this tape recorded"
        if self.leaf.rule is None and self.goal is not None and not self.leaf.inputs:
            since = watched_since(self.leaf, self.token)
            if since > self.goal.serial:
                return f"{self.target_name} was computed before {name} was watched{remedy}"
        return ""

    def swapped_reason(self) -> str:
        if self.goal is None or self.goal not in nodes_before(self.leaf, self.token):
            return ""
        return (
            f"{self.source_name} was computed from {self.target_name}. Swap the two arguments: the "
            "result comes first"
        )

    def _cut_reason(self) -> str:
        status = self.status
        if isinstance(status, DetachPoint):
            return str(status)
        if self.goal is None and self.token in find_tokens(self.target._rec):
            return f"{self.target_name} was computed when this tape did not record" + _WHEN
        return ""

    def _unrecorded_reason(self) -> str:
        target, source = self.target_name, self.source_name
        if self.status == GRADIENT:
            return (
                f"{target} is itself a gradient, and does not depend on {source}: the "
                f"differentiated function is linear in {source}, or a rule returns a value that "
                f"does not depend on {source}"
            )
        if self.goal is None:
            return (
                f"this tape recorded nothing that leads to {target}. It was computed before the "
                "tape recorded, or from values that left the record (stop_gradient, numpy(), "
                "float(), integers, the value of a Variable that was assigned)"
            )
        if is_leaf(self.goal):
            return (
                f"this tape watched {target}, but no operation computed {target}. The result "
                "comes first, tape.gradient(y, x)"
            )
        nodes = nodes_before(self.goal, self.token)
        leaves = dict.fromkeys(self._describe(node) for node in nodes if is_leaf(node))
        words = f", which depends on {', '.join(leaves)}" if leaves else ""
        return f"no operation that this tape recorded leads from {source} to {target}{words}"

    def _describe(self, leaf: Node) -> str:
        own = [(name, value) for name, value in self.space.items() if name[:1] != "_"]
        own += [("", variable) for variable in self.tape.watched_variables()]
        for name, value in own:
            if is_tensor(value) and find(value._rec, self.token) is leaf:
                return (
                    f"the Variable {value.name!r}" if isinstance(value, Variable) else f"`{name}`"
                )
        return f"a watched tensor of shape {tuple(leaf.shape)}"

    # The record ------------------------------------------------------------------------------

    def _path_reason(self) -> str | None:
        """Return which rule ends the paths to the source; "" without paths, None if it has a
        gradient.

        None means that no explanation is needed.
        """
        nodes = nodes_before(self.goal, self.token)
        captured = self._captured_by(nodes)
        if self.leaf not in nodes:
            return captured
        blocked: list[tuple[Node, int]] = []

        def run(node: Any, dy: Any) -> Any:
            gradients = list(node.rule(node, dy))
            blocked.extend((node, i) for i, gradient in enumerate(gradients) if gradient is None)
            return gradients

        try:
            seeds = [(self.goal, ones_like(self.target))]
            totals, _ = run_on(unrecorded_frame(), sweep, self.token, seeds, {self.leaf}, (), run)
        except Exception as error:  # a user's rule
            return f"a rule raises {type(error).__name__}: {error}"
        if totals.get(self.leaf) is not None:
            return None
        for node, i in blocked:
            operand = dict(_operands(node, self.token)).get(i)
            if self.leaf in nodes_before(operand, self.token):
                return self._cut_reason() or self._blocked(node, i)
        return captured

    def _blocked(self, node: Node, index: int) -> str:
        definition = getattr(node.saved, "definition", None)
        if definition is None:
            name = operation_name(node) or "an operation"
            return f"`{name}` has no derivative with respect to its operand {index}"
        paths = getattr(node.saved, "paths", None)
        if paths is None:
            paths = [(i, "") for i in range(len(node.inputs))]
        names = definition.input_names(paths)
        label = f"input `{names[index]}`" if index < len(names) else "a Variable"
        return (
            f"the rule of `{definition.name}` returns None for its {label} ({definition.where()})"
        )

    def _captured_by(self, nodes: list[Node]) -> str:
        """Return that a custom gradient captured the source, or "" if none did."""
        for node in nodes:
            definition: Any = getattr(node.saved, "definition", None)
            function = getattr(definition, "function", None)
            for name, value in captures_of(function).items():
                if value is self.source:
                    return (
                        f"`{definition.name}` captures {self.source_name}, as `{name}`, but its "
                        f"rule gives gradients of arguments only. Pass `{name}` as an argument "
                        f"({definition.where()})"
                    )
        return ""


def _operands(node: Node, token: Token) -> Iterator[tuple[int, Node]]:
    for i, operand in enumerate(node.inputs):
        source = find(operand, token)
        if source and not (is_leaf(source) and watched_since(source, token) > node.serial):
            yield i, source


def nodes_before(goal: Node | None, token: Token) -> list[Node]:
    """Return the nodes that a tensor was computed from, starting with its own, `goal`."""
    nodes: dict[Node, None] = {}
    pending: list[Node] = [] if goal is None else [goal]
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes[node] = None
            pending += [source for _, source in _operands(node, token)]
    return list(nodes)


def operation_name(node: Node) -> str:
    """Return the name of a node's operation or rule; "" for other nodes."""
    definition: Any = getattr(node.saved, "definition", None)
    return definition.name if definition is not None else operation_of_rule(node.rule)


_TOO_EARLY = "is computed before tape.watch"
_MISTAKES = "takes the value", "writes values", _TOO_EARLY  # what one does not write on purpose
_read: set[tuple[str, int]] = set()  # lines that asked for the gradient of such a target


def reason_by_text(token: Token, target: Any, sources: list, is_late: bool) -> str:
    """Return where `target` loses its derivative, in the text of the user's innermost function.

    The result is "" if that is not found. For a warning. A target that is not late may be a
    constant on purpose: only code that takes values counts, and each line asks once.
    """
    file, line, depth = users_line()
    if not is_late and (file, line) in _read:
        return ""
    _read.add((file, line))
    frame = sys._getframe(depth - 1)
    try:
        space = {**frame.f_globals, **frame.f_locals}
        tapes = [value for value in space.values() if getattr(value, "_token", None) is token]
        for source in sources if tapes else ():
            status = find_cut(frame, tapes[0], target, source)
            if isinstance(status, DetachPoint) and (is_late or status.words.startswith(_MISTAKES)):
                is_early = status.words.startswith(_TOO_EARLY)
                remedy = "Call tape.watch before this" if is_early else "Use operations on tensors"
                return str(status) if is_late else f"{status}. {remedy}"
    except Exception:  # user's objects may raise; a warning must not end the program
        return ""
    return ""
