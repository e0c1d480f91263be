"""Timing functions against each other: in turns, in one process, by medians."""

import statistics
import time
from collections.abc import Callable, Mapping

from tinygrad_cg_kernels.runtime import tiers

_SLICE = 1e-3  # seconds that a function has for itself before another one runs
_SETTLED = 0.1  # seconds that a function runs at most until its kernels have optimized code


def medians(
    functions: Mapping[str, Callable[[], object]],
    seconds: float,
    rounds: int = 30,
    warm: float = 0.0,
) -> dict[str, float]:
    """Return the median time of each function, in seconds.

    The functions take turns, so that a slow moment of the machine meets all alike, back and
    forth, so that none always comes after the same other. In each turn a function runs once, and
    for `warm` seconds, before the run that counts, to find its threads awake and its data in the
    caches, whatever the others did; what counts is the mean over a millisecond, or one call if
    that is longer. There are at least three rounds, and as many more as `seconds` allow, until
    `rounds` have been made. Kernels have optimized code before.
    """
    names = list(functions)
    for function in functions.values():
        settle(function)
    calls = {name: _calls(function) for name, function in functions.items()}
    times: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    for done in range(rounds):
        if done >= 3 and time.perf_counter() > end:
            break
        for name in reversed(names) if done % 2 else names:
            functions[name]()
            warmed = time.perf_counter() + warm
            while warm and time.perf_counter() < warmed:
                functions[name]()
            times[name].append(_mean(functions[name], calls[name]))
    return {name: statistics.median(taken) for name, taken in times.items()}


def settle(function: Callable[[], object]) -> None:
    """Run a function, until its kernels are those of later calls, and no thread compiles others."""
    end = time.perf_counter() + _SETTLED
    for _ in range(2 * tiers.TIER_UP_CALLS):
        function()
        if time.perf_counter() > end:
            break
    tiers.wait()
    function()


def _calls(function: Callable[[], object]) -> int:
    """Return how many calls fill a turn, by a function's third call; one if none does."""
    for _ in range(2):
        function()
    return max(1, round(_SLICE / _mean(function, 1)))


def _mean(function: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls
