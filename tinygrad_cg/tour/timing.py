"""Timing functions against each other: in turns, in one process, by medians."""

import statistics
import time
from collections.abc import Callable, Mapping


def medians(
    functions: Mapping[str, Callable[[], object]], seconds: float, rounds: int = 30
) -> dict[str, float]:
    """The median time of each function, in seconds.

    The functions take turns, so that a slow moment of the machine meets all alike. In each
    turn a function runs once before the run that counts, to find its threads awake and its
    data in the caches, whatever the others did. There are at least three rounds, and as many
    more as `seconds` allow, until `rounds` have been made.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    for done in range(rounds):
        if done >= 3 and time.perf_counter() > end:
            break
        for name, function in functions.items():
            function()
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}
