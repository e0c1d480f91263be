"""Timing functions against each other: in turns, in one process, by medians."""

import statistics
import time
from collections.abc import Callable, Mapping

TURN = 1e-3  # seconds that a turn lasts, if calls are short,
MOST = 100  # and the most calls in it
LONG = 0.1  # calls as long as this find nothing left of the others, once they are on their way


def medians(
    functions: Mapping[str, Callable[[], object]], seconds: float, rounds: int = 30, least: int = 3
) -> dict[str, float]:
    """The median time of a call of each function, in seconds.

    The functions take turns, so that a slow moment of the machine meets all alike. In each
    turn a short function runs once before what counts, to find its threads awake and its data
    in the caches, whatever the others did; then as often as a millisecond allows. There are
    `least` rounds, and as many more as `seconds` allow, until `rounds` have been made.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    for done in range(max(rounds, least)):
        if done >= least and time.perf_counter() > end:
            break
        for name, function in functions.items():
            times[name].append(turn(function))
    return {name: statistics.median(taken) for name, taken in times.items()}


def turn(function: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    first = timed(function, 1)
    if first > LONG:
        return first
    return timed(function, max(1, min(MOST, int(TURN / max(first, 1e-9)))))


def timed(function: Callable[[], object], calls: int) -> float:
    """Seconds that each of some calls takes."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls
