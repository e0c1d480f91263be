"""Observers of the checked passes: which custom gradients run, and where derivatives end.

A `Recorder` is a level below all tapes, so it sees each operation and each call of a custom
gradient, with the tapes' nodes of inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from .._core.conversion import is_tensor
from .._core.kinds import is_inexact
from .._core.levels import Token
from .._core.record import Node, find, nodes_of
from .._core.tensor import Tensor
from .._reverse.observer import Observer
from .._rules.custom_gradient import running_functions
from .._rules.definition import Definition, closure, source_line
from .._rules.returned import input_names
from ..errors import users_expression, users_line
from .observing import ObservingLevel

MAX_NON_FINITE = 8  # operations to keep

SourceLine = tuple[str, int]  # a file and a line number


class DetachSite(NamedTuple):
    """A place where a derivative ends: values taken out of a tensor, or `stop_gradient`.

    From `order` on, derivatives lack the paths through it. It is `in_body` if it is in a function
    that has a rule, and not in the rule. `expression` is the source of what takes the values.
    """

    what: str
    definition: Definition | None
    site: SourceLine
    order: int
    in_body: bool
    expression: str = ""


class NonFinite(NamedTuple):
    """An operation that returned infinity or NaN for finite operands.

    `size` counts the elements of the infinite operand, or of the last one, such as a divisor.
    """

    what: str
    operation: str
    operands: tuple[str, ...]
    size: int
    site: SourceLine
    expression: str


@dataclass
class CustomCall:
    """One call of a custom gradient.

    `order` is the order of the derivatives that its rule returns: 2 if a rule called it.
    `captured` has the sources that the outputs depend on without its arguments. It is `bypassed`
    if a tape watches such sources and none of the arguments, and `used` if a tape watches an
    argument. It is `standalone` if it can be called by itself: if the tensors it captures do not
    depend on its arguments. `through` has the indices of the inputs that the outputs depend on.
    """

    definition: Definition
    call: Any
    function: Any
    args: list
    kwargs: dict
    order: int
    parent: CustomCall | None
    captured: set[str] = field(default_factory=set)
    bypassed: bool = False
    used: bool = False
    standalone: bool = True
    through: set[int] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def key(self) -> tuple:
        return (*source_line(self.function), self.name)

    @property
    def names(self) -> list[str]:
        return input_names(self.call)

    @property
    def root(self) -> CustomCall:
        """Return the outermost custom gradient around this one."""
        return self if self.parent is None else self.parent.root

    @property
    def is_gradient_function(self) -> bool:
        """Return whether this is the gradient function of another custom gradient itself."""
        if self.parent is None:
            return False
        inner = getattr(self.parent.call.grad_fn, "_function", None)
        return inner is not None and source_line(inner) == source_line(self.function)


class Recorder(ObservingLevel, Observer):
    """An observer of one pass that keeps what the diagnosis needs."""

    def __init__(self, names: Sequence[str], keeps_non_finite: bool = False):
        self.names = names
        self.sources: list = []
        self.keeps_non_finite = keeps_non_finite
        self.calls: list[CustomCall] = []
        self.detached: list[DetachSite] = []
        self.taken: dict[SourceLine, dict[str, None]] = {}  # where functions with rules take values
        self.nones: set[str] = set()  # sentences: where rules return None for what a tape watches
        self.adapted: list[str] = []  # warnings: how gradients were changed to fit
        self.non_finite: list[NonFinite] = []
        self.coarsest = 0.0  # the precision of the least precise result that depends on sources
        self._by_definition: dict[int, CustomCall] = {}
        self._rules: list[Any] = []  # definitions of the running rules; None for operations

    # The level -------------------------------------------------------------------------------

    def begin(self, sources: list) -> None:
        self.sources = sources

    def see(self, primitive: Any, inputs: tuple, params: dict, outs: list[Tensor]) -> None:
        if any(any(nodes_of(tensor._rec)) for tensor in inputs):
            if primitive.name == "stop_gradient":
                self._detach(primitive.name)
            for tensor in outs:
                if is_inexact(tensor.dtype):
                    self.coarsest = max(self.coarsest, float(np.finfo(tensor.dtype).eps))
        if self.keeps_non_finite and len(self.non_finite) < MAX_NON_FINITE:
            self._keep_non_finite(primitive, inputs, outs)

    def custom_called(self, call: Any, function: Any, args: tuple, kwargs: dict) -> None:
        """Keep the call of a custom gradient, with its arguments without their records."""
        parent = self._running()
        order = 1 if parent is None else parent.order + 1
        leaves = nest.flatten((args, kwargs))
        bare, named = nest.map_structure(
            lambda leaf: Tensor(leaf._data) if type(leaf) is Tensor else leaf, [list(args), kwargs]
        )
        seen = CustomCall(call.definition, call, function, bare, named, order, parent)
        seen.standalone = all(type(leaf._data) is np.ndarray for leaf in leaves if is_tensor(leaf))
        self.calls.append(seen)
        self._by_definition[id(call.definition)] = seen

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        """Return new outputs, and look whether the tapes see them through the inputs."""
        results = super().custom_call(call, inputs, outputs)
        seen = self._by_definition.get(id(getattr(call, "definition", None)))
        if seen is not None:
            tensors = [*outputs, *(tensor for tensor in inputs if tensor is not None)]
            groups = [record.group for tensor in tensors for record in nodes_of(tensor._rec)]
            for token in {token for group in groups for token in group if token.alive}:
                self._follow(seen, token, inputs, outputs)
        return results

    def _follow(self, seen: CustomCall, token: Token, inputs: Sequence, outputs: Sequence) -> None:
        def nodes(tensors: Iterable) -> list[Node | None]:
            return [find(tensor._rec, token) for tensor in tensors if tensor is not None]

        input_nodes = nodes(inputs)
        entries = {*input_nodes} - {None}
        leaves = dict(zip(nodes(self.sources), self.names, strict=True))
        captured, through = _find_reached(nodes(outputs), entries, leaves, token)
        closed = nodes(find_captures(seen.function).values())
        seen.standalone &= not _find_reached(closed, entries, {}, token)[1]
        seen.through |= {i for i, node in enumerate(input_nodes) if node in through}
        seen.captured |= captured
        seen.used |= bool(entries)
        seen.bypassed |= bool(captured and not entries)

    # The observer ----------------------------------------------------------------------------

    def run_rule(self, call: Callable[[Node, Any], Any], node: Node, dy: Any) -> Any:
        definition = getattr(node.saved, "definition", None)
        self._rules.append(definition)
        try:
            results = list(call(node, dy))
        finally:
            self._rules.pop()
        seen = self._by_definition.get(id(definition))
        if seen is not None and dy is not None:
            sources = dict(zip(map(id, self.sources), self.names, strict=True))
            variables = [sources.get(id(v), v.name) for v in node.saved.variables or ()]
            names = [*seen.names, *variables]
            for name, result, operand in zip(names, results, node.inputs, strict=False):
                if result is None and operand is not None:
                    self.nones.add(f"The rule of `{seen.name}` returns None for {name}.")
        return results

    def begin_tangents(self, definition: Any) -> None:
        self._rules.append(definition)

    def end_tangents(self, began: int) -> None:
        self._rules.pop()

    def notice(self, definition: Definition, kind: str, message: str) -> bool:
        if kind in ("scalar", "dtype"):
            self.adapted.append(message)
        return True

    def detach(self, definition: Definition, file: str, line: int) -> bool:
        """Keep where a rule, or the function, took values out of a recorded tensor."""
        self._detach("NumPy", definition, (file, line))
        return True

    def _detach(self, what: str, definition: Definition | None = None, site: Any = None) -> None:
        running = self._running()
        order = 1 if running is None else running.order + 1
        if inside := running_functions():
            if what != "stop_gradient":  # the function has a rule, which ignores its operations
                self.taken.setdefault(site, {})[users_expression()] = None
                return
            definition, order = inside[-1], order + 1  # but the rule may use the result
        if definition is None and running is not None:
            definition = running.definition
        site = site or users_line()[:2]
        if all((point.what, point.site) != (what, site) for point in self.detached):
            end = DetachSite(what, definition, site, order, bool(inside), users_expression())
            self.detached.append(end)

    def _running(self) -> CustomCall | None:
        """Return the custom gradient whose rule is running."""
        running = map(self._by_definition.get, map(id, reversed(self._rules)))
        return next(filter(None, running), None)

    def _keep_non_finite(self, primitive: Any, inputs: tuple, outs: list) -> None:
        arrays, operands = (
            [tensor._data for tensor in tensors if is_inexact(tensor.dtype)]
            for tensors in (outs, inputs)
        )
        is_nan = any(bool(np.isnan(array).any()) for array in arrays)
        fine = (lambda array: ~np.isnan(array)) if is_nan else np.isfinite
        is_origin = all(fine(array).all() for array in operands)
        bad = [~fine(array) for array in arrays]
        if is_origin and any(map(np.any, bad)):
            examples = tuple(_example(array, is_nan, bad[0]) for array in operands)
            what = "NaN" if is_nan else "infinite"
            sizes = [array.size for array in operands if not np.isfinite(array).all()]
            size = [*(array.size for array in operands[-1:]), *sizes][-1]
            place = users_line()[:2], users_expression()
            self.non_finite.append(NonFinite(what, primitive.label, examples, size, *place))


def find_captures(function: Any) -> dict[str, Any]:
    """Return the tensors that a function captures, by its own names for them."""
    return {name: value for name, value in closure(function).items() if type(value) is Tensor}


def _example(array: np.ndarray, of_nan: bool, bad: np.ndarray) -> str:
    """Return an element that shows what went wrong: one where the result is `bad`."""
    flat = array[bad] if bad.shape == array.shape and bad.any() else array.reshape(-1)
    worst = flat[~np.isfinite(flat)] if of_nan else flat[np.argsort(np.abs(flat))[-1:]]
    if not worst.size:
        worst = flat[np.argsort(np.abs(flat))[:1]]
    return f"{worst[0] + 0.0:.4g}" if worst.size else "nothing"


def _find_reached(
    start: Sequence, stop: set, leaves: dict, token: Token
) -> tuple[set[str], set[Node]]:
    """Return the leaves that `start` depends on without `stop`, and which of `stop` it reaches."""
    reached: set[str] = set()
    through: set[Node] = set()
    pending, visited = list(start), {None}
    while pending:
        node = pending.pop()
        if node in stop:
            through.add(node)
        elif node not in visited:
            visited.add(node)
            if node in leaves:
                reached.add(leaves[node])
            pending += [find(operand, token) for operand in node.inputs]
    return reached, through
