"""Observers of the checked passes: which custom gradients run.

A `Recorder` is a level below all tapes, so it sees each operation, each call of a custom
gradient, and the tapes' nodes of what goes in and comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from .._core.conversion import is_tensor
from .._core.kinds import is_inexact
from .._core.levels import Level, Token, state
from .._core.primitive import apply
from .._core.record import Node, find, nodes_of
from .._core.tensor import Tensor
from .._reverse.observer import Observer
from .._rules.custom_gradient import running_functions
from .._rules.definition import Definition, closure, source_line
from .._rules.rebinding import rebind_outputs
from ..errors import users_line

CUTS = ("stop_gradient", "round", "floor", "ceil", "sign")  # they end a derivative


SourceLine = tuple[str, int]  # a file and its line


class Cut(NamedTuple):
    """The end of a derivative: values taken out of a tensor, or an operation without one.

    From `order` on derivatives lack what leads through here.
    """

    what: str
    definition: Definition | None
    site: SourceLine
    order: int


class Bad(NamedTuple):
    """An operation that made something infinite or NaN of finite numbers."""

    what: str
    operation: str
    operands: tuple[str, ...]
    site: SourceLine


@dataclass
class Seen:
    """One call of a custom gradient.

    `order` is the order of derivatives that its rule gives: 2 if a rule called it. `captured`
    are the sources that its outputs depend on otherwise than through its arguments;
    `bypassed` says that a tape watches some of these and none of the arguments, `used` that one
    watches an argument. It is `standalone` if it can be called by itself: if what it captures does
    not depend on its arguments. `through` has the indices of the inputs that the outputs depend
    on, as tapes see it.
    """

    definition: Definition
    call: Any
    function: Any
    args: list
    kwargs: dict
    order: int
    parent: Seen | None
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
        paths = self.call.paths
        paths = [(i, "") for i in range(self.call.count)] if paths is None else paths
        return self.definition.input_names(paths)

    @property
    def root(self) -> Seen:
        """Return the outermost custom gradient around this one."""
        return self if self.parent is None else self.parent.root

    @property
    def is_gradient_function(self) -> bool:
        """Return whether this is the gradient function of another custom gradient itself."""
        if self.parent is None:
            return False
        inner = getattr(self.parent.call.grad_fn, "_function", None)
        return inner is not None and source_line(inner) == source_line(self.function)


class Recorder(Level, Observer):
    """An observer of one pass that keeps what matters for the diagnosis."""

    def __init__(self, names: Sequence[str], hunting: bool = False):
        self.names = names
        self.sources: list = []
        self.hunting = hunting
        self.calls: list[Seen] = []
        self.cuts: list[Cut] = []
        self.adapted: list[str] = []  # warnings: what gradients were changed to fit
        self.bad: list[Bad] = []
        self.coarsest = 0.0  # the precision of the least precise result that depends on sources
        self._by_definition: dict[int, Seen] = {}
        self._rules: list[Any] = []  # definitions of the rules that run, None for operations

    # The level -------------------------------------------------------------------------------

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        out = apply(primitive, inputs, params)
        outs = out if isinstance(out, list) else [out]
        if any(any(nodes_of(tensor._rec)) for tensor in inputs):
            if primitive.name in CUTS:
                self._cut(primitive.name)
            for tensor in outs:
                if is_inexact(tensor.dtype):
                    self.coarsest = max(self.coarsest, float(np.finfo(tensor.dtype).eps))
        if self.hunting and len(self.bad) < 8:
            self._hunt(primitive, inputs, outs)
        return out

    def custom_called(self, call: Any, function: Any, args: tuple, kwargs: dict) -> None:
        """Keep the call of a custom gradient, with its arguments without their records."""
        parent = self._running()
        order = 1 if parent is None else parent.order + 1
        leaves = nest.flatten((args, kwargs))
        bare, named = nest.map_structure(
            lambda leaf: Tensor(leaf._data) if type(leaf) is Tensor else leaf, [list(args), kwargs]
        )
        seen = Seen(call.definition, call, function, bare, named, order, parent)
        seen.standalone = all(type(leaf._data) is np.ndarray for leaf in leaves if is_tensor(leaf))
        self.calls.append(seen)
        self._by_definition[id(call.definition)] = seen

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        """Return new outputs, and look whether the tapes see them through the inputs."""
        results = rebind_outputs(state.frame, call, inputs, outputs)
        seen = self._by_definition.get(id(getattr(call, "definition", None)))
        if seen is not None:
            tensors = [*outputs, *(tensor for tensor in inputs if tensor is not None)]
            groups = [record.group for tensor in tensors for record in nodes_of(tensor._rec)]
            for token in {token for group in groups for token in group if token.alive}:
                self._follow(seen, token, inputs, outputs)
        return results

    def _follow(self, seen: Seen, token: Token, inputs: Sequence, outputs: Sequence) -> None:
        def nodes(tensors: Iterable) -> list[Node | None]:
            return [find(tensor._rec, token) for tensor in tensors if tensor is not None]

        input_nodes = nodes(inputs)
        goes_in = {*input_nodes} - {None}
        leaves = dict(zip(nodes(self.sources), self.names, strict=True))
        captured, through = _find_reached(nodes(outputs), goes_in, leaves, token)
        closed = nodes(find_captures(seen.function).values())
        seen.standalone &= not _find_reached(closed, goes_in, {}, token)[1]
        seen.through |= {i for i, node in enumerate(input_nodes) if node in through}
        seen.captured |= captured
        seen.used |= bool(goes_in)
        seen.bypassed |= bool(captured and not goes_in)

    # The observer ----------------------------------------------------------------------------

    def run_rule(self, call: Callable[[Node, Any], Any], node: Node, dy: Any) -> Any:
        self._rules.append(getattr(node.saved, "definition", None))
        try:
            return call(node, dy)
        finally:
            self._rules.pop()

    def begin_tangents(self, definition: Any) -> None:
        self._rules.append(definition)

    def end_tangents(self, began: int) -> None:
        self._rules.pop()

    def notice(self, definition: Definition, kind: str, message: str) -> bool:
        if kind in ("scalar", "dtype"):
            self.adapted.append(message)
        return True

    def detach(self, definition: Definition, file: str, line: int) -> bool:
        """Keep where a rule, or the function, took values out of a tensor that is recorded."""
        self._cut("NumPy", definition, (file, line))
        return True

    def _cut(self, what: str, definition: Definition | None = None, site: Any = None) -> None:
        running = self._running()
        order = 1 if running is None else running.order + 1
        if inside := running_functions():
            if what != "stop_gradient":
                return  # the function has a rule, which does not look inside
            definition, order = inside[-1], order + 1  # but may compute with the result
        if definition is None and running is not None:
            definition = running.definition
        site = site or users_line()[:2]
        if all((cut.what, cut.site) != (what, site) for cut in self.cuts):
            self.cuts.append(Cut(what, definition, site, order))

    def _running(self) -> Seen | None:
        """Return the custom gradient whose rule is running."""
        running = map(self._by_definition.get, map(id, reversed(self._rules)))
        return next(filter(None, running), None)

    def _hunt(self, primitive: Any, inputs: tuple, outs: list) -> None:
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
            self.bad.append(Bad(what, primitive.label, examples, users_line()[:2]))


def find_captures(function: Any) -> dict[str, Any]:
    """Return the tensors that a function captures, by the names that it has for them."""
    return {name: value for name, value in closure(function).items() if type(value) is Tensor}


def _example(array: np.ndarray, of_nan: bool, bad: np.ndarray) -> str:
    """Return the element that best shows what went wrong: one where the result is `bad`."""
    flat = array[bad] if bad.shape == array.shape and bad.any() else array.reshape(-1)
    worst = flat[~np.isfinite(flat)] if of_nan else flat[np.argsort(np.abs(flat))[-1:]]
    if not worst.size:
        worst = flat[np.argsort(np.abs(flat))[:1]]
    return f"{worst[0] + 0.0:.4g}" if worst.size else "nothing"


def _find_reached(
    start: Sequence, stop: set, leaves: dict, token: Token
) -> tuple[set[str], set[Node]]:
    """Return the leaves that `start` depends on other than through `stop`, and what of that."""
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
