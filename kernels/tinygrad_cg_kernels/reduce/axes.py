"""Plans for reducing arrays over any axes without copying them.

Axes are sorted by their steps in memory, and neighbouring axes are merged where possible. Then the
innermost run of reduced axes is reduced, as rows if it is the last run, else as columns. This
repeats until no reduced axis is left. An array is only copied if its innermost axis has gaps, or if
it has more runs than a core can step through.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from tinygrad_cg_kernels.reduce.combine import MAX_ROW_BYTES, column_sizes
from tinygrad_cg_kernels.runtime.threads import BLOCK, MIN_BLOCKED


class AxisRun(NamedTuple):
    """Neighbouring axes that are stepped through as one. The step is in bytes."""

    size: int
    step: int
    reduced: bool


class ReductionPlan(NamedTuple):
    """The plan for reducing an array of some shape and strides over some axes."""

    form: str
    """The core: "rows", "fours", "strided" or "columns". "none" if there is nothing to combine;
    "empty" for a result without elements to reduce.
    """
    shape: tuple[int, ...]
    """The result's shape."""
    sizes: tuple[int, ...] = ()
    """The `sizes` of the core (see `combine`)."""
    units: int = 0
    view: tuple[tuple[int, ...], tuple[slice, ...]] | None = None
    """The order of axes, and the index after it, that put the array into memory order."""
    copied: bool = False
    """Whether that view has to be copied."""
    partial: tuple[int, ...] | None = None
    """The shape of the core's result if it has to be reduced further, and over which axes."""
    rest: tuple[int, ...] = ()
    back: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """The result's sizes in memory order, and the order of axes of the final result."""


def reduced_shape(shape: tuple[int, ...], axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    """Return the shape of an array reduced over some axes."""
    sizes = enumerate(shape)
    return tuple([1 if k in axes else n for k, n in sizes if keepdims or k not in axes])


@lru_cache(maxsize=4096)
def plan(
    shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool, itemsize: int, *strides: int
) -> ReductionPlan:
    """Return the plan for an array of these strides, by default for a contiguous one."""
    result = reduced_shape(shape, axes, keepdims)
    if not prod(shape):
        return ReductionPlan("empty", result)
    strides = strides or contiguous_strides(shape, itemsize)
    order = sorted(range(len(shape)), key=lambda axis: (-abs(strides[axis]), axis))
    steps = [abs(step) if i in axes else step for i, step in enumerate(strides)]
    runs = [AxisRun(shape[i], steps[i], i in axes) for i in order]
    if all(run.size == 1 or not run.reduced for run in runs):
        return ReductionPlan("none", result)
    stage, copied = _first_stage(runs, itemsize), False
    if stage is None:
        close = contiguous_strides(tuple(run.size for run in runs), itemsize)
        runs = [run._replace(step=step) for run, step in zip(runs, close, strict=True)]
        stage, copied = _first_stage(runs, itemsize), True
        assert stage is not None
    view, back = None, None
    if order != sorted(order) or steps != list(strides):
        flips = tuple(slice(None, None, 1 if steps[i] == strides[i] else -1) for i in order)
        view = (tuple(order), flips)
    kept = [i for i in order if i not in axes]
    if kept != sorted(kept):
        back = (tuple(shape[i] for i in kept), tuple(kept.index(i) for i in sorted(kept)))
    return stage._replace(shape=result, view=view, copied=copied, back=back)


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _merge_runs(runs: Iterable[AxisRun], alike: bool) -> list[AxisRun]:
    """Merge neighbouring runs; with `alike`, only if both are kept or both are reduced."""
    merged: list[AxisRun] = []
    for run in runs:
        if run.size == 1:
            continue
        last = merged[-1] if merged else None
        if last and last.step == run.size * run.step and (last.reduced == run.reduced or not alike):
            run = AxisRun(last.size * run.size, run.step, run.reduced)
            merged.pop()
        merged.append(run)
    return merged


def _first_stage(runs: list[AxisRun], itemsize: int) -> ReductionPlan | None:
    """Return the plan for the innermost run of reduced axes; None if no core can step through."""
    *outer, inner = _merge_runs(runs, alike=True)
    reduced = inner
    if not inner.reduced:  # runs may be reordered if kept ones keep their order
        reduced = outer.pop(max(k for k, run in enumerate(outer) if run.reduced))
    lead = _merge_runs(outer, alike=False)
    if len(lead) > 1 or (inner.step != itemsize and (not inner.reduced or inner.step <= 0)):
        return None
    count, step = (lead[0].size, lead[0].step) if lead else (1, 0)
    parts = [(run.size, run.reduced) for run in outer]
    if reduced is inner:
        length = inner.size
        block = length if length < MIN_BLOCKED else BLOCK
        pieces = -(-length // block)
        sizes, units = (length, step, pieces, block, inner.step), count * pieces
        form = "fours" if block * itemsize <= MAX_ROW_BYTES and units > 1 else "rows"
        form = form if inner.step == itemsize else "strided"
    else:
        sizes = column_sizes(reduced.size, inner.size, step, reduced.step)
        pieces = sizes[5]
        form, units = "columns", count * pieces * sizes[7]
    if pieces > 1:
        parts.append((pieces, True))
    if reduced is not inner:
        parts.append((inner.size, False))
    rest = tuple(axis for axis, (_, again) in enumerate(parts) if again)
    partial = tuple(size for size, _ in parts) if rest else None
    return ReductionPlan(form, (), sizes, units, partial=partial, rest=rest)
