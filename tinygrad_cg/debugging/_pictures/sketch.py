"""The content of a picture, as data: it holds no tensor, no node and no tape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..._core.wording import in_words

TIMES = "\u00d7"


@dataclass(eq=False)
class Item:
    """One thing in the picture.

    `kind` is "watched" (a tensor that a tape watches; its operand, if any, is the same tensor as
    tapes around know it), "operation", "custom" (a custom gradient), "bypassed" (one whose rule
    does not serve on these tapes), "constant" (an operand that no tape watches), "finished" (of
    what only tapes of the past have recorded), "update" (of a Variable by an optimizer) or
    "earlier" (many operations, left out). `name` is the user's variable, `operation` what made
    it. `order` is the order of the sweep that recorded it: 0 for none; None if that is
    not known. `serves` are the tapes and orders whose sweeps ask its rule, `captured` the items
    that a custom gradient's function uses and does not differentiate. `derivative_of` are the
    items that it is a derivative of, with a label such as "dz/dx", `carried` those of the
    repetition before whose results it uses. `tapes` are numbers of
    frames; `count` says how many like it stand here.
    """

    kind: str
    operation: str
    shape: tuple[int, ...]
    dtype: str
    serial: float
    tapes: frozenset[int] = frozenset()
    name: str = ""
    value: str = ""
    order: int | None = None
    serves: list[tuple[str, int | None]] = field(default_factory=list)
    operands: list[Item] = field(default_factory=list, repr=False)
    captured: list[Item] = field(default_factory=list, repr=False)
    derivative_of: dict[Item, str] = field(default_factory=dict, repr=False)
    carried: list[Item] = field(default_factory=list, repr=False)
    count: int = 1

    @property
    def title(self) -> str:
        """Return name and operation, as in ``y = multiply``; for a constant its value, too."""
        if self.kind == "constant":
            return self.name or self.value or self.kind
        if self.kind == "update":
            return f"{self.name} updated" if self.name else "update"
        return (" = ".join(filter(None, (self.name, self.operation))) or self.kind) + self.times

    @property
    def times(self) -> str:
        return f" {TIMES}{self.count:,}" if self.count > 1 else ""

    @property
    def detail(self) -> str:
        """Return dtype and shape, and the value if it is known and small."""
        if self.kind in ("earlier", "update") or (
            self.kind == "constant" and not (self.name or self.shape)
        ):
            return ""
        kind = " ".join(filter(None, (self.dtype, str(self.shape) if self.shape else "")))
        return " · ".join(filter(None, (self.value, kind)))

    @property
    def role(self) -> str:
        """Return how its rule is used, as text; "" without a rule of its own."""
        if self.kind == "bypassed":
            return "rule not used"
        if self.kind != "custom":
            return ""
        orders = sorted({order for _, order in self.serves if order is not None})
        if orders:
            return "rule serves order " + in_words([str(order) for order in orders])
        return "rule serves " + in_words([name for name, _ in self.serves])


@dataclass(eq=False)
class Region:
    """A frame: what one tape recorded ("tape"), or what is repeated ("repeat").

    Other kinds are "backward" (what the tapes around recorded of a backward pass of `tape`),
    "module" (the operations of a `Module`) and "step" (the last step of an optimizer).
    `recorders` are the tapes that recorded its gradient, and so lie around it; `extent` is all
    that is drawn in it, more than `items` where it lies around other tapes.
    """

    kind: str
    name: str
    items: frozenset[Item] = field(repr=False)
    order: int | None = None
    count: int = 1
    recorders: set[Region] = field(default_factory=set, repr=False)
    extent: frozenset[Item] = field(default=frozenset(), repr=False)
    parent: Region | None = field(default=None, repr=False)
    tape: Region | None = field(default=None, repr=False)
    remark: str = ""

    @property
    def title(self) -> str:
        if self.kind == "repeat":
            return f"{TIMES}{self.count:,}"
        if self.kind == "backward":
            name = self.tape.name.removeprefix("tape ") if self.tape is not None else ""
            return f"backward pass of {name}" if name else "backward pass"
        return self.name

    @property
    def detail(self) -> str:
        if self.kind != "tape":
            return self.remark
        return f"computes gradients of order {self.order}" if self.order is not None else ""


class Sketch:
    """Items, operands first, and the frames around them, outer before inner."""

    def __init__(self, items: list[Item], frames: list[Region]):
        self.items = items
        self.frames = nested(items, frames)
        self.home: dict[Item, Region | None] = dict.fromkeys(items)
        for frame in self.frames:
            for item in frame.extent:
                if self.home[item] is frame.parent:
                    self.home[item] = frame
        used = {frame for item in items for frame in self.around(item)}
        self.frames = [frame for frame in self.frames if frame in used or frame.kind == "tape"]

    def around(self, item: Item) -> Iterable[Region]:
        """Yield the frames around an item, innermost first."""
        frame = self.home[item]
        while frame is not None:
            yield frame
            frame = frame.parent

    def tapes(self, item: Item) -> list[Region]:
        """Return the tapes that recorded an item, or watch it."""
        return [frame for frame in self.frames if frame.kind == "tape" and item in frame.items]

    def badges(self, item: Item) -> list[Region]:
        """Return the tapes that recorded an item which is drawn outside of them."""
        around = set(self.around(item))
        return [frame for frame in self.tapes(item) if frame not in around]

    def note(self, item: Item) -> str:
        """Return a remark on an item: how its rule is used, and the only tapes that have it."""
        tapes = [frame for frame in self.around(item) if frame.kind == "tape"]
        recorded = item.kind not in ("constant", "update")
        strange = recorded and any(item not in frame.items for frame in tapes)
        only = f"only {in_words([frame.name for frame in self.tapes(item)])}" if strange else ""
        return ", ".join(filter(None, (item.role, only)))

    def edges(self) -> list[tuple[Item, Item, str]]:
        """Return (from, to, "operand", "captured" or "derivative"), each once."""
        edges = [(source, item, "operand") for item in self.items for source in item.operands]
        edges += [(source, item, "captured") for item in self.items for source in item.captured]
        edges += [
            (source, item, "derivative") for item in self.items for source in item.derivative_of
        ]
        return list(dict.fromkeys(edges))

    def loops(self) -> list[tuple[Item, Item, Region | None]]:
        """Return (from, to, frame) for each value that a repetition passes to the next one.

        The frame is the repeated body's, or None if a single item is repeated.
        """
        loops = []
        for item in self.items:
            repeats = [frame for frame in self.around(item) if frame.kind == "repeat"]
            for source in item.carried:
                if source is item and item.count > 1:
                    loops.append((source, item, None))
                else:
                    body = next((frame for frame in repeats if source in frame.extent), None)
                    loops += [(source, item, body)] if body is not None else []
        return loops


def nested(items: list[Item], frames: list[Region]) -> list[Region]:
    """Return the frames that hold something, parents first, each in the smallest frame that fits.

    A tape lies inside the tapes that recorded its gradient, with all its items. A constant lies
    where all of its users lie.
    """
    present = frozenset(items)
    users: dict[Item, set[Item]] = {item: set() for item in items if item.kind == "constant"}
    for item in items:
        for operand in item.operands:
            if operand in users:
                users[operand].add(item)
    for frame in sorted(frames, key=lambda frame: frame.order or 0):
        frame.items &= present
        inner = [other.extent for other in frames if frame in other.recorders]
        frame.extent = frame.items.union(*inner)
    for frame in frames:
        if frame.kind != "repeat":
            frame.extent |= {
                operand for operand, readers in users.items() if readers <= frame.extent
            }
    nonempty = [frame for frame in frames if frame.extent]
    around: dict[Region, list[Region]] = {}
    for i, frame in enumerate(nonempty):
        equal = [other for other in nonempty[:i] if other.extent == frame.extent]
        around[frame] = [other for other in nonempty if frame.extent < other.extent] + equal
    for frame in nonempty:
        frame.parent = max(around[frame], key=lambda other: len(around[other]), default=None)
    return sorted(nonempty, key=lambda frame: len(around[frame]))
