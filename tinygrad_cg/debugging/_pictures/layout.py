"""The layout of a picture: layers from operands to results, in frames inside frames.

After K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical
system structures", IEEE Trans. SMC 11 (1981), applied to each frame by itself, innermost first:
to the frame around it, it is one large box, with ports on its border for the lines that cross
it. (The layered layouts that install from PyPI alone know no nested frames, or are young.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import inf, sqrt
from typing import Any

import numpy as np

from .sketch import Item, Region, Sketch

GAP = 26.0  # between neighbours of a layer
LAYER = 34.0  # between layers
MARGIN = 16.0  # inside a frame
LANE = 14.0  # the width of a line between boxes
LOOP = 13.0  # the width of a line back, at the right of a repeated body
SHADOW = 5.0  # how far the second box of an operation that is repeated by itself looks out
ROUNDS = 12  # of ordering the layers
RELAXATIONS = 400  # of placing them

Point = tuple[float, float]


@dataclass(eq=False)
class Vertex:
    """A box of one frame's layout: an item, a frame, a bend of a line, or a port."""

    width: float = LANE
    height: float = 0.0
    rank: int = 0
    x: float = 0.0  # of the middle
    y: float = 0.0  # of the top
    layer: tuple[float, ...] = ()  # its top and bottom; of a port the border
    light: bool = False  # a constant: it follows what uses it, and pulls nothing
    above: list[tuple[Vertex, float, float]] = field(default_factory=list)
    below: list[tuple[Vertex, float, float]] = field(default_factory=list)


@dataclass
class Area:
    """The layout of one frame's inside, from its own top left corner."""

    width: float
    height: float
    boxes: dict[Any, Vertex]
    entries: dict[Source, Vertex]
    exits: dict[Source, Vertex]
    bends: dict[tuple[Source, Any], list[Vertex]]


Source = tuple[Item, str]
"""The origin of lines: an item, and their kind."""
Lines = dict[Source, tuple[Vertex, float, dict[Any, tuple[Vertex, float]]]]
"""The lines in a frame: their start and its offset, and by what they lead to their ends."""


@dataclass(eq=False)
class LayeredLayout:
    """Boxes ``(x, y, width, height)`` of items and frames, and the points of each edge.

    ``size(item)`` gives the width and height that an item needs, ``heading(frame)`` those of a
    frame's title, ``label(source, target, kind)`` those of an edge's. With `sideways` layers
    follow each other to the right: the layout is computed with x and y exchanged, and turned at
    its end.
    """

    sketch: Sketch
    size: Callable[[Item], tuple[float, float]]
    heading: Callable[[Region], tuple[float, float]]
    sideways: bool = False
    label: Callable[[Item, Item, str], tuple[float, float]] = lambda *edge: (0.0, 0.0)

    def __post_init__(self) -> None:
        sketch, sideways = self.sketch, self.sideways
        self.edges = sketch.edges()
        self.back = sketch.loops()
        self.lanes: dict[Source, float] = {}  # the widths of lines with labels on them
        for source, target, kind in self.edges:
            width, height = self.label(source, target, kind)
            lane = self.lanes.get((source, kind), LANE)
            self.lanes[source, kind] = max(lane, height if sideways else width)
        self.areas: dict[Region | None, Area] = {}
        self.titles: dict[Region, Vertex] = {}  # that lines pass on their way into the frame
        # an item with what is around it, from the outermost, which is None, to the innermost
        self.chains: dict[Item, list[Any]] = {
            item: [None, *reversed(list(sketch.around(item))), item] for item in sketch.items
        }
        for frame in (*sorted(sketch.frames, key=_depth, reverse=True), None):
            self.areas[frame] = self._area(frame)
        self.boxes: dict[Any, tuple[float, float, float, float]] = {}
        self._absolute(None, 0.0, 0.0)
        top = self.areas[None]
        self.width, self.height = top.width, top.height
        self.paths = [(*edge, self._path(*edge)) for edge in self.edges]
        self._distribute_arrows()
        self.loops = [(*loop, self._way_back(*loop)) for loop in self.back]
        if sideways:  # exchange x and y
            self.width, self.height = self.height, self.width
            self.boxes = {key: (y, x, high, wide) for key, (x, y, wide, high) in self.boxes.items()}
            for *_, points in (*self.paths, *self.loops):
                points[:] = [(y, x) for x, y in points]

    def _child(self, frame: Region | None, item: Item) -> Any:
        """Return the child of `frame` that is an item, or contains it; None for one outside."""
        inward = iter(self.chains[item])
        return next(inward) if frame in inward else None

    # One frame ---------------------------------------------------------------------------------

    def _area(self, frame: Region | None) -> Area:
        children = dict.fromkeys(self._child(frame, item) for item in self.sketch.items)
        children.pop(None, None)
        boxes = {child: self._box(child) for child in children}
        lines, entries, exits = self._lines(frame, boxes)
        last = _rank(list(boxes.values()), lines) + 1
        is_step = frame is not None and frame.kind == "step"
        if is_step and not self.sideways:
            across = 2 * round(sqrt(len(boxes)) / 2) if len(boxes) > 3 else 3
            for i, box in enumerate(boxes.values()):  # rows of an even number
                box.rank = 1 + i // across
            last = 2 + (len(boxes) - 1) // across
        for port in exits.values():
            port.rank = last
        layers: list[list[Vertex]] = [[] for _ in range(last + 1)]
        for vertex in (*entries.values(), *boxes.values(), *exits.values()):
            layers[vertex.rank].append(vertex)
        bends = _bend(lines, layers, self.lanes)
        if is_step:  # the line to the next row: in the middle
            for layer in layers:
                row = [vertex for vertex in layer if vertex.height]
                others = [vertex for vertex in layer if not vertex.height]
                layer[:] = [*row[: len(row) // 2], *others, *row[len(row) // 2 :]]
        layers = [layer for layer in layers if layer]
        _order(layers, self._anchors(frame, entries))
        _assign_positions(layers)
        if frame is not None and not self.sideways:
            self._make_room(frame, layers, entries)
        width, height = self._measure(frame, layers, entries, exits)
        return Area(width, height, boxes, entries, exits, bends)

    def _anchors(self, frame: Region | None, entries: dict[Source, Vertex]) -> list[Vertex]:
        """Return vertices above the entries, in the order in which lines leave the frame above."""
        around = None if frame is None else frame.parent
        above: dict[Any, list[tuple[float, Vertex]]] = defaultdict(list)
        for source, port in entries.items():
            child = self._child(around, source[0])
            if isinstance(child, Region) and child in self.areas:
                above[child].append((self.areas[child].exits[source].x, port))
        most = sorted(max(above.values(), key=len, default=[]), key=lambda entry: entry[0])
        anchors = [Vertex() for _ in most]
        for anchor, (_, port) in zip(anchors, most, strict=True):
            _join(anchor, 0.0, port, 0.0)
        return anchors

    def _make_room(self, frame: Region, layers: list[list[Vertex]], entries: dict) -> None:
        """Move the entries aside, as little as possible, where the frame's title stands."""
        width, height = self.heading(frame)
        if not entries or frame.kind == "repeat":
            return
        ports, best = layers[0], inf
        centres = [port.x for port in ports]
        left = min(vertex.x - vertex.width / 2 for layer in layers for vertex in layer)
        right = max(vertex.x + vertex.width / 2 for layer in layers for vertex in layer)
        title = Vertex(width, height)
        for i in range(len(ports) + 1):
            row = [*ports[:i], title, *ports[i:]]
            wanted = [*centres[:i], left + width / 2, *centres[i:]]
            weights = [1.0] * len(row)
            if i:  # it stands anywhere between lines
                wanted[i] = max(wanted[i], centres[i - 1] + width / 2 + LANE)
            weights[i] = 0.01
            positions = _separate(row, wanted, weights)
            wider = max(left - positions[0] + row[0].width / 2, 0.0)
            wider += max(positions[-1] + row[-1].width / 2 - right, 0.0)
            cost = wider + 0.2 * sum(abs(a - b) for a, b in zip(positions, wanted, strict=True)) + i
            if cost < best:
                best, moved = cost, list(zip(row, positions.tolist(), strict=True))
        for vertex, x in moved:
            vertex.x = x
        layers[0] = [vertex for vertex, _ in moved]
        _assign_positions(layers)
        layers[0] = ports
        self.titles[frame] = title

    def _box(self, child: Any) -> Vertex:
        if isinstance(child, Region):
            return Vertex(self.areas[child].width, self.areas[child].height)
        width, height = self.size(child)
        if self.sideways:
            width, height = height, width
        aside = self._aside(child)
        return Vertex(width + 2 * aside, height, light=child.kind == "constant")

    def _aside(self, child: Any) -> float:
        """Return the room that an item's line back to itself needs at its right."""
        alone = any(item is child and body is None for item, _, body in self.back)
        return SHADOW + LOOP if alone else 0.0

    def _lines(
        self, frame: Region | None, boxes: dict[Any, Vertex]
    ) -> tuple[Lines, dict[Source, Vertex], dict[Source, Vertex]]:
        """Return the lines of a frame, and the ports at which they enter and leave it."""
        entries: dict[Source, Vertex] = {}
        exits: dict[Source, Vertex] = {}
        lines: Lines = {}
        for item, target, kind in self.edges:
            source = (item, kind)
            child, key = self._child(frame, item), self._child(frame, target)
            if child is not key:
                start = boxes.get(child) or entries.setdefault(source, Vertex())
                end = boxes.get(key) or exits.setdefault(source, Vertex())
                line = lines.setdefault(source, (start, self._offset(child, source, True), {}))
                line[2].setdefault(key, (end, self._offset(key, source, False)))
        return lines, entries, exits

    def _offset(self, child: Any, source: Source, leaving: bool) -> float:
        """Return how far right of a box's middle the line of `source` crosses its border."""
        if not isinstance(child, Region):
            return 0.0
        area = self.areas[child]
        return (area.exits if leaving else area.entries)[source].x - area.width / 2

    def _measure(
        self, frame: Region | None, layers: list[list[Vertex]], entries: dict, exits: dict
    ) -> tuple[float, float]:
        """Set where all of a frame stands; return its width and height."""
        title, head = self.heading(frame) if frame is not None else (0.0, 0.0)
        least = side = 0.0
        if self.sideways:  # then the title stands next to the layers, not above them
            least, title, side, head = title + 2 * MARGIN, 0.0, head, 0.0
        vertices = [vertex for layer in layers for vertex in layer]
        if frame in self.titles:
            vertices.append(self.titles[frame])
        left = min(vertex.x - vertex.width / 2 for vertex in vertices)
        right = max(vertex.x + vertex.width / 2 for vertex in vertices)
        width = max(right - left, title) + 2 * MARGIN
        shift = (width - (right - left)) / 2 - left + side
        width += side + LOOP * len(self._carried(frame))
        if frame is not None and frame.kind == "repeat" and not self.sideways:
            ends = [port.x + shift + LANE for port in entries.values()]
            width = max(width, *(end + title for end in ends)) if ends else width
        y = bottom = head + MARGIN
        for layer in layers:
            height = max(vertex.height for vertex in layer)
            if bottom < y and exits and layer is layers[-1]:  # ports alone, at the border
                y = bottom
            bottom = y + height
            for vertex in layer:
                vertex.x += shift
                room = height - vertex.height
                vertex.y = y + (room if vertex.light else room / 2)
                vertex.layer = (y, bottom)
            y += height + (LAYER if height else LAYER / 3 + (10.0 if frame in self.titles else 0.0))
        height = max(bottom + MARGIN, least)
        for port in entries.values():
            port.layer = (0.0,)
        if frame in self.titles:  # past the title lines are straight
            self.titles[frame].x += shift
            for port in entries.values():
                port.layer = (0.0, head + 4.0)
        for port in exits.values():
            port.layer = (height,)
        return width, height

    # All together ------------------------------------------------------------------------------

    def _absolute(self, frame: Region | None, left: float, top: float) -> None:
        area = self.areas[frame]
        self.boxes[frame] = (left, top, area.width, area.height)
        for child, box in area.boxes.items():
            aside = self._aside(child)
            x, y = left + box.x - box.width / 2 + aside, top + box.y
            self.boxes[child] = (x, y, box.width - 2 * aside, box.height)
            if isinstance(child, Region):
                self._absolute(child, x, y)

    def title_left(self, frame: Region) -> float:
        """Return the left end of a title, which may stand between lines."""
        title = self.titles.get(frame)
        return self.boxes[frame][0] + (13 if title is None else title.x - title.width / 2)

    def _path(self, item: Item, target: Item, kind: str) -> list[Point]:
        """Return the points from the bottom of one item to the top of the other."""
        source = (item, kind)
        up, down = self.chains[item], self.chains[target]
        common = sum(frame is other for frame, other in zip(up, down, strict=False))
        x, y, width, height = self.boxes[item]
        apart = 0.0
        if kind == "derivative" and any(
            source is item and other != kind for source, _, other in self.edges
        ):
            apart = min(14.0, width / 4)
        points = [(x + width / 2 + apart, y + height)]
        for frame in reversed(up[common:-1]):
            area = self.areas[frame]
            points += self._points(frame, [*area.bends[source, None], area.exits[source]])
        outer, child = up[common - 1], down[common]
        points += self._points(outer, self.areas[outer].bends[source, child])
        for frame, child in pairwise(down[common:]):
            area = self.areas[frame]
            points += self._points(frame, [area.entries[source], *area.bends[source, child]])
        x, y, width, _ = self.boxes[target]
        return [*points, (x + width / 2, y)]

    def _points(self, frame: Region | None, passed: list[Vertex]) -> list[Point]:
        """Return the points of a line inside one frame: straight past each layer."""
        left, top, *_ = self.boxes[frame]
        return [(left + vertex.x, top + y) for vertex in passed for y in vertex.layer]

    def _carried(self, body: Region | None) -> list[Item]:
        """Return what each repetition of a body leaves to the next: it has a line back each."""
        sources = dict.fromkeys(source for source, _, frame in self.back if frame is body)
        return list(sources) if body is not None else []

    def _way_back(self, source: Item, target: Item, body: Region | None) -> list[Point]:
        """Return the corners of a line from one repetition to the next, around the body."""
        x, y, width, height = self.boxes[source]
        if body is None:  # one item: at its right
            right = x + width + SHADOW
            low, high = y + height - 8, y + 14
            return [(right, low), (right + LOOP, low), (right + LOOP, high), (right, high)]
        carried = self._carried(body)
        number = carried.index(source)
        left, _, wide, _ = self.boxes[body]
        lane = left + wide - LOOP * (number + 0.9)
        to, top, broad, _ = self.boxes[target]
        end = to + broad - 12
        # below and above all of their layers
        low = self._border(source, 1) + 6.0 + 7.0 * (number + 0.5) / len(carried)
        high = self._border(target, 0) - 10.0 - 7.0 * (number + 0.5) / len(carried)
        middle = x + width / 2 + min(12.0, width / 4)
        points = [(middle, y + height), (middle, low), (lane, low), (lane, high), (end, high)]
        return [*points, (end, top)]

    def _border(self, item: Item, side: int) -> float:
        """Return the top (side 0) or bottom (side 1) of an item's layer."""
        frame = self.chains[item][-2]
        return self.boxes[frame][1] + self.areas[frame].boxes[item].layer[side]

    def _distribute_arrows(self) -> None:
        """Let arrows that end at one item end side by side, in the order in which they come."""
        arriving: dict[Item, list] = defaultdict(list)
        for source, target, _, points in self.paths:
            arriving[target].append((points, source.kind == "constant"))
        for target, arrows in arriving.items():
            x, y, width, _ = self.boxes[target]
            arrows.sort(key=lambda arrow: arrow[0][-2][0])
            # constants at the corners: the middle is for what is differentiated
            for corner in (x + width - min(14.0, width / 4), x + min(14.0, width / 4)):
                while len(arrows) > 1 and arrows[-1][1]:
                    arrows.pop()[0][-1] = (corner, y)
                arrows.reverse()
            step = min(18.0, (width - 24) / len(arrows))
            for i, (points, _) in enumerate(arrows):
                points[-1] = (x + width / 2 + (i - (len(arrows) - 1) / 2) * step, y)


def _depth(frame: Region) -> int:
    return 0 if frame.parent is None else 1 + _depth(frame.parent)


# Layers ----------------------------------------------------------------------------------------


def _rank(boxes: list[Vertex], lines: Lines) -> int:
    """Give each box a rank from 1, below all its operands; return the last rank."""
    before: dict[Vertex, set[Vertex]] = {box: set() for box in boxes}
    after: dict[Vertex, set[Vertex]] = {box: set() for box in boxes}
    for start, _, ends in lines.values():
        for end, _ in ends.values():
            if end in before and start in before:
                before[end].add(start)
                after[start].add(end)
    done: set[Vertex] = set()
    waiting = list(boxes)
    while waiting:
        box = next((candidate for candidate in waiting if before[candidate] <= done), waiting[0])
        for other in before[box] - done:  # of frames in a cycle the first goes first: a line up
            after[other].discard(box)
        before[box] &= done
        box.rank = max((source.rank for source in before[box]), default=0) + 1
        waiting.remove(box)
        done.add(box)
    for box in boxes:  # what has no operands stands right above what uses it
        if not before[box] and after[box]:
            box.rank = max(box.rank, min(target.rank for target in after[box]) - 1)
    return max(box.rank for box in boxes)


def _bend(
    lines: Lines, layers: list[list[Vertex]], lanes: dict[Source, float]
) -> dict[tuple[Source, Any], list[Vertex]]:
    """Add vertices where lines pass a layer; those of one source share them."""
    bends: dict[tuple[Source, Any], list[Vertex]] = {}
    for source, (start, out, ends) in lines.items():
        trunk = [(start, out)]
        for key, (end, into) in sorted(ends.items(), key=lambda entry: entry[1][0].rank):
            for rank in range(start.rank + len(trunk), end.rank):
                bend = Vertex(lanes.get(source, LANE), rank=rank)
                _join(*trunk[-1], bend, 0.0)
                layers[rank].append(bend)
                trunk.append((bend, 0.0))
            passed = trunk[: max(end.rank - start.rank, 1)]
            bends[source, key] = [bend for bend, _ in passed[1:]]
            _join(*passed[-1], end, into)
    return bends


def _join(upper: Vertex, out: float, lower: Vertex, into: float) -> None:
    upper.below.append((lower, out, into))
    lower.above.append((upper, into, out))


def _order(layers: list[list[Vertex]], anchors: list[Vertex]) -> None:
    """Reduce crossings: sort each layer by its neighbours' positions, down and up again.

    The anchors stand still above the first layer.
    """
    for layer in (anchors, *layers):
        _pack(layer)
    best, fewest = [list(layer) for layer in layers], _crossings([anchors, *layers])
    means: dict[Vertex, float] = {}
    for iteration in range(ROUNDS):
        if not fewest:
            break
        down = iteration % 2 == 0
        for layer in layers if down else reversed(layers):
            for vertex in layer:
                ends = (vertex.above or vertex.below) if down else (vertex.below or vertex.above)
                means[vertex] = _mean(vertex, ends, [1.0] * len(ends))
            layer.sort(key=means.__getitem__)
            _pack(layer)
        crossings = _crossings([anchors, *layers])
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    for layer, vertices in zip(layers, best, strict=True):
        layer[:] = vertices
        _pack(layer)
    _exchange(layers, anchors, fewest)
    for anchor in anchors:
        for port, _, _ in anchor.below:
            port.above.clear()


def _exchange(layers: list[list[Vertex]], anchors: list[Vertex], fewest: float) -> None:
    """Exchange neighbours in a layer while lines cross less often then."""
    improved = fewest > 0
    while improved:
        improved = False
        for n, layer in enumerate(layers):
            near = [layers[n - 1] if n else anchors, layer]  # the layers with lines to this one
            count = _crossings(near)
            for i in range(len(layer) - 1):
                layer[i : i + 2] = layer[i + 1], layer[i]
                _pack(layer)
                crossings = _crossings(near)
                if crossings < count:
                    count, improved = crossings, True
                else:
                    layer[i : i + 2] = layer[i + 1], layer[i]
                    _pack(layer)


def _pack(layer: list[Vertex]) -> None:
    """Place the vertices of a layer next to each other, centred."""
    x = -sum(vertex.width + GAP for vertex in layer) / 2
    for vertex in layer:
        vertex.x = x + (vertex.width + GAP) / 2
        x += vertex.width + GAP


def _mean(vertex: Vertex, ends: list[tuple[Vertex, float, float]], pull: list[float]) -> float:
    """Return where neighbours pull a vertex to; its own position if there are none."""
    centres = [other.x + theirs - own for other, own, theirs in ends]
    together = sum(x * weight for x, weight in zip(centres, pull, strict=True))
    return together / sum(pull) if ends else vertex.x


def _crossings(layers: list[list[Vertex]]) -> float:
    """Return how often lines cross; lines of constants count less."""
    count = 0.0
    for layer in layers:
        ends = [
            (vertex.x + own, other.x + theirs, 0.4 if vertex.light else 1.0)
            for vertex in layer
            for other, own, theirs in vertex.below
        ]
        count += sum(
            min(light, weight)
            for (a, b, light), (c, d, weight) in combinations(ends, 2)
            if (a - c) * (b - d) < 0
        )
    return count


def _assign_positions(layers: list[list[Vertex]]) -> None:
    """Set the middles of all vertices near those of their neighbours, without overlaps."""
    for iteration in range(RELAXATIONS):
        down, both = iteration % 2 == 0, iteration >= ROUNDS
        moved = 0.0
        for layer in layers if down else reversed(layers):
            wanted, weights = [], []
            for vertex in layer:
                ends = vertex.above if down else vertex.below
                if both:
                    ends = [*vertex.above, *vertex.below]
                pull = [_stiffness(vertex, other) for other, _, _ in ends]
                weights.append(sum(pull) or 0.01)
                wanted.append(_mean(vertex, ends, pull))
            for vertex, x in zip(layer, _separate(layer, wanted, weights), strict=True):
                moved = max(moved, abs(vertex.x - x))
                vertex.x = x
        if both and moved < 0.02:
            break
    _straighten(layers)


def _straighten(layers: list[list[Vertex]]) -> None:
    """Put chains of vertices into one column, where there is room."""
    seen: set[Vertex] = set()
    position = {vertex: (layer, i) for layer in layers for i, vertex in enumerate(layer)}
    for layer in layers:
        for vertex in layer:
            column = [vertex]
            while len(column[-1].below) == 1:
                below, out, into = column[-1].below[0]
                heavy = [member for member, _, _ in below.above if not member.light]
                if heavy != column[-1:] or out != into:
                    break
                column.append(below)
            if vertex in seen or len(column) == 1:
                continue
            seen.update(column)
            rooms = [_room(*position[member]) for member in column]
            low, high = max(room[0] for room in rooms), min(room[1] for room in rooms)
            if low <= high:
                x = min(max(sum(member.x for member in column) / len(column), low), high)
                for member in column:
                    member.x = x


def _room(layer: list[Vertex], i: int) -> tuple[float, float]:
    """Return the interval in which a vertex can move between its neighbours."""
    vertex = layer[i]
    low = layer[i - 1].x + _distance(layer[i - 1], vertex) if i else -inf
    high = layer[i + 1].x - _distance(vertex, layer[i + 1]) if i + 1 < len(layer) else inf
    return low, high


def _distance(vertex: Vertex, other: Vertex) -> float:
    """Return the least distance between the middles of two neighbours."""
    lines = (vertex.height == 0) + (other.height == 0)
    return (vertex.width + other.width) / 2 + (GAP, LANE, 2.0)[lines]


def _stiffness(vertex: Vertex, other: Vertex) -> float:
    """Return the weight of a line in the layout: large where it passes layers, or is alone."""
    if vertex.rank > other.rank:
        vertex, other = other, vertex
    if vertex.light:
        return 0.02
    if len(vertex.below) == 1 == sum(not above.light for above, _, _ in other.above):
        return 12.0
    return 8.0 if vertex.height == 0 == other.height else 1.0


def _separate(layer: list[Vertex], wanted: Sequence[float], weights: Sequence[float]) -> np.ndarray:
    """Return the positions nearest to the wanted ones that keep order and distance.

    Least squares, by pooling adjacent violators: what would overlap moves as one block.
    """
    steps = [0.0]
    for vertex, other in pairwise(layer):
        steps.append(steps[-1] + _distance(vertex, other))
    blocks: list[list[float]] = []  # mean, weight, how many
    for x, step, weight in zip(wanted, steps, weights, strict=True):
        blocks.append([x - step, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, total, count = blocks.pop()
            other = blocks[-1]
            sum_ = other[1] + total
            blocks[-1] = [(other[0] * other[1] + mean * total) / sum_, sum_, other[2] + count]
    means = np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])
    return means + np.array(steps)
