"""Repeats in a sequence: ``a b c b c b c d`` is ``a (b c)x3 d``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

MAX_LENGTH = 64  # the longest part that is searched for


class Repeat(NamedTuple):
    """`part`, `count` times; its items are of the sequence, or Repeats themselves."""

    part: tuple
    count: int


def collapse_repeats(sequence: Sequence[Hashable]) -> list:
    """Return the sequence with its repeats collapsed, at every level."""
    items = list(sequence)
    while True:
        collapsed = _once(items)
        if len(collapsed) == len(items):
            return collapsed
        items = collapsed


def _once(items: list) -> list:
    following = _next_indices(items)
    collapsed: list = []
    i = 0
    while i < len(items):
        period, count = _repeat(items, i, following)
        if count > 1:
            collapsed.append(Repeat(tuple(collapse_repeats(items[i : i + period])), count))
        else:
            collapsed.append(items[i])
        i += period * count
    return collapsed


def _next_indices(items: list) -> list[int]:
    latest: dict[Hashable, int] = {}
    following = [len(items)] * len(items)
    for i in range(len(items) - 1, -1, -1):
        following[i] = latest.get(items[i], len(items))
        latest[items[i]] = i
    return following


def _repeat(items: list, start: int, following: list[int]) -> tuple[int, int]:
    """Return the length of the shortest part that repeats from `start` on, and how often."""
    index = following[start]
    while index < len(items) and index - start <= MAX_LENGTH:
        period = index - start
        part = items[start:index]
        count = 1
        while items[start + count * period : start + (count + 1) * period] == part:
            count += 1
        if count > 1:
            return period, count
        index = following[index]
    return 1, 1
