"""Collapse repetitions: draw what a loop recorded once, with a count."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from .sketch import Item, Region

MAX_BODY = 64  # items in the body of a loop
MIN_REPETITIONS = 3  # repetitions from which on a run is folded
OPERANDS = 8  # an item with more operands is never folded
PASSES = 4  # nested loops
LEAVES = ("watched", "constant")


def collapse_repeats(items: list[Item]) -> tuple[list[Item], list[Region]]:
    """Return the items with each run of repetitions collapsed, and frames of the bodies.

    In a run, labels repeat, and each operand either has the same position in the body or is the
    same item every time. The first repetition may have other operands.
    """
    users: dict[Item, list[Item]] = {}
    for item in items:
        for operand in item.operands:
            users.setdefault(operand, []).append(item)
    own = {
        operand for operand, (_, *more) in users.items() if operand.kind == "constant" and not more
    }
    groups = [  # an operation with constants of its own
        [*(operand for operand in item.operands if operand in own), item]
        for item in _in_sequence(items)
        if item not in own
    ]
    frames: list[Region] = []
    for exact in (True, False):  # first with equal constants, then with different ones
        for _ in range(PASSES):
            runs = _runs(groups, exact)
            if not runs:
                break
            groups = _merge(groups, runs, frames)
    kept = sorted((item for group in groups for item in group), key=lambda item: item.serial)
    return kept, [frame for frame in frames if frame.items <= set(kept)]


def _in_sequence(items: list[Item]) -> list[Item]:
    """Return the items by serial number, watched ones and constants before their first use."""
    used = [
        member
        for item in items
        if item.kind not in LEAVES or item.operands
        for member in (*item.operands, item)
    ]
    return list(dict.fromkeys([*used, *items]))


def _label(item: Item, exact: bool) -> Any:
    name = re.sub(r"\d+", "#", item.name) if item.kind in LEAVES else ""
    if exact and item.kind == "constant":
        name = item.name or item.value
    return (item.kind, item.operation, item.shape, item.dtype, len(item.tapes), item.count, name)


def _runs(groups: list[list[Item]], exact: bool) -> list[tuple[int, int, int]]:
    """Return (start, length of the body, times) of runs that do not overlap."""
    n = len(groups)
    group_of = {item: i for i, group in enumerate(groups) for item in group}
    operands = np.full((n, OPERANDS), -1)
    numbers: dict[Any, int] = {}
    labels = np.empty(n, np.int64)
    for i, group in enumerate(groups):
        others = {group_of[operand] for item in group for operand in item.operands} - {i}
        predecessors = sorted(others, reverse=True)
        label: Any = i  # never a repetition
        if len(predecessors) <= OPERANDS:
            label = (tuple(_label(item, exact) for item in group), len(predecessors))
            operands[i, : len(predecessors)] = predecessors
        labels[i] = numbers.setdefault(label, len(numbers))
    runs: list[tuple[int, int, int]] = []
    used = np.zeros(n, bool)
    for body in range(1, min(MAX_BODY, n // MIN_REPETITIONS) + 1):
        for start, stop in _stretches(labels, operands, used, body):
            least = max(start - body, 0)  # the first repetition may take its operands elsewhere
            while start > least and _begins(labels, operands, used, start - 1, body):
                start -= 1
            times = (stop - start) // body + 1
            if times >= MIN_REPETITIONS and not used[start : start + times * body].any():
                used[start : start + times * body] = True
                runs.append((start, body, times))
    return sorted(runs)


def _begins(labels: np.ndarray, operands: np.ndarray, used: np.ndarray, i: int, body: int) -> bool:
    """Return whether a run begins at item i: operands differ only where repetitions take each
    other's."""
    if used[i] or labels[i] != labels[i + body] or i + 2 * body >= len(labels):
        return False
    carried = (operands[i + 2 * body] - operands[i + body] == body) & (operands[i + body] >= i)
    return bool((carried | np.isin(operands[i + body], operands[i])).all())


def _stretches(
    labels: np.ndarray, operands: np.ndarray, used: np.ndarray, body: int
) -> list[tuple[int, int]]:
    """Return [start, stop) of each stretch whose items equal those one body later.

    Along a stretch, each operand stays the same or moves with the body.
    """
    here, there = operands[:-body], operands[body:]
    near = np.arange(body, len(labels))[:, None] - there < 2 * body  # in the body, or in the last
    moved = (here >= 0) & (there - here == body) & near
    same = (labels[:-body] == labels[body:]) & ((here == there) | moved).all(axis=1)
    same &= ~(used[:-body] | used[body:])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    spans = []
    for start, stop in edges.reshape(-1, 2).tolist():
        # all repetitions take the same from the one before
        last = max(stop - body, start)
        differ = (moved[start:last] != moved[start + body : last + body]).any(axis=1)
        for i in start + np.flatnonzero(differ):
            spans.append((start, int(i) + body))
            start = int(i) + 1
        spans.append((start, stop))
    return [(a, b) for a, b in spans if b - a >= body]


def _merge(
    groups: list[list[Item]], runs: list[tuple[int, int, int]], frames: list[Region]
) -> list[list[Item]]:
    merged, end = [], 0
    first: dict[Item, Item] = {}  # by the item of a later repetition
    for start, body, times in runs:
        merged += groups[end:start]
        end = start + body * times
        inside = [item for group in groups[start : start + body] for item in group]
        repetitions = [item for group in groups[start + body : end] for item in group]
        own = {*inside, *repetitions}
        for i, item in enumerate(repetitions):
            first[item] = stands = inside[i % len(inside)]
            stands.operands += [operand for operand in item.operands if operand not in own]
            stands.captured += [source for source in item.captured if source not in own]
            if item.kind == "constant" and item.value != stands.value:
                stands.value = ""
        each = {item: divmod(i, len(inside)) for i, item in enumerate([*inside, *repetitions])}
        for item, (time, i) in each.items():
            before = [each[operand] for operand in item.operands if operand in own]
            carried = [inside[j] for earlier, j in before if earlier == time - 1]
            inside[i].carried = list(dict.fromkeys([*inside[i].carried, *carried]))
        # what stands for all repetitions has the name and value of the last result
        for stands, last in zip(inside, repetitions[-len(inside) :], strict=True):
            if stands.kind not in LEAVES:
                stands.name, stands.value = last.name, last.value
            elif stands.name and stands.name != last.name and not stands.name.endswith("…"):
                stands.name, stands.value = f"{stands.name} …", ""
        operations = [item for item in inside if item.kind != "constant"]
        if len(operations) == 1:
            operations[0].count *= times
        else:
            frames.append(Region("repeat", "", frozenset(inside), count=times))
        merged.append(inside)
    merged += groups[end:]
    for group in merged:
        for item in group:
            item.operands = _map_item(item, item.operands, first)
            item.captured = _map_item(item, item.captured, first)
            item.carried = list(dict.fromkeys(first.get(source, source) for source in item.carried))
            item.derivative_of = {
                first.get(loss, loss): label for loss, label in item.derivative_of.items()
            }
    return merged


def _map_item(item: Item, others: list[Item], first: dict[Item, Item]) -> list[Item]:
    mapped = dict.fromkeys(first.get(other, other) for other in others)
    mapped.pop(item, None)
    return list(mapped)


def shorten(items: list[Item], frames: list[Region], most: int) -> list[Item]:
    """Return at most about `most` items; one of them stands for the earliest operations."""
    if len(items) <= most:
        return items
    cut = len(items) - most
    early, recent = items[:cut], items[cut:]
    # watched tensors that are used late stay
    needed = {source for item in recent for source in (*item.operands, *item.captured)}
    kept = [item for item in early if item.kind in LEAVES and item in needed]
    gone = dict.fromkeys(item for item in early if item not in kept)
    count = sum(
        item.count * prod(frame.count for frame in frames if item in frame.items)
        for item in gone
        if item.operation
    )
    rest = Item("earlier", f"{count:,} earlier operations", (), "", early[-1].serial)
    for others in [others for item in recent for others in (item.operands, item.captured)]:
        others[:] = dict.fromkeys(rest if item in gone else item for item in others)
    for item in recent:
        item.derivative_of = {
            loss: label for loss, label in item.derivative_of.items() if loss not in gone
        }
        item.carried = [source for source in item.carried if source not in gone]
    operands = [operand for item in gone for operand in item.operands]
    rest.operands = list(dict.fromkeys(operand for operand in operands if operand in kept))
    for frame in frames:
        if frame.items.issuperset(gone):
            frame.items |= {rest}
    return [*kept, rest, *recent]
