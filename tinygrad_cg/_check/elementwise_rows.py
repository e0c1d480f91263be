"""Rows of parts of an argument: elements at kinks, of very different size, or all of them."""

from __future__ import annotations

import math

import numpy as np

from .._core.tracking import track
from .._core.wording import in_words
from ..errors import NotLinearError
from . import evaluate, verdicts
from .check import DOUBTFUL, Check, unit_directions
from .judges import first_steps, judge_of, lines_along
from .lines import fetch
from .problem import largest, move_point
from .reference import FIRST, LEVELS, difference_all
from .rows import reverse_row
from .verdicts import DerivativeRow, tolerance

MAX_SPLIT = 10_000  # elements of an argument that is split into parts
MAX_SINGLE = 64  # elements that are compared one by one at kinks
MAX_PARTS = 8  # parts by size
HIDDEN = 5  # powers of ten that elements are below the largest, if they are hidden in a sum
MAX_DOUBTS = 200  # elements that are compared again, of those that `full` compares
MAX_SHOWN = 20  # elements with rows of their own

# Parts ---------------------------------------------------------------------------------------


def compare_parts(check: Check) -> None:
    """Compare parts of the directions: elements at kinks, elements of different size."""
    problem = check.problem
    false = [row for row in check.rows if row.false]
    clear = [row.order for row in false if not row.relative_error <= 1e-6]
    orders = {row.order for row in check.rows if row.order < min(clear, default=math.inf)}
    for order in sorted(orders):
        wide = check.wide_gradients(order)
        for j in check.indices if wide else ():
            parts = _parts_of(check, order, j)
            judged = []
            lines = [lines_along(check, order, j, part, ("x",)) for part, _ in parts]
            is_single = all(np.count_nonzero(part) == 1 for part, _ in parts)  # at kinks
            scales = [scale for _, scale in parts]
            fetch(first_steps(check, lines, scales, LEVELS if is_single else FIRST))
            for (part, scale), line in zip(parts, lines, strict=True):
                last, scales = list(problem.last), list(problem.scales)
                last[j], scales[j] = part, scale
                with evaluate.using(problem, last=last, scales=scales):
                    judge = judge_of(check, order, j, "x", line)
                    row = reverse_row(check, order, j, "x", judge, wide)
                if np.count_nonzero(part) == 1:
                    row.index = tuple(int(axis[0]) for axis in np.nonzero(part))
                    if row.verdict == verdicts.KINK:
                        number = problem.point[j][row.index]
                        text = f"{row.argument}{list(row.index)} = {number:.6g}"
                        check.kinks.setdefault((order, row.argument), []).append(text)
                judged.append(row)
                if row.false:
                    row.detail = row.detail or "in a part of the elements" * (row.index is None)
                    check.rows.append(row)
            whole = sum(part for part, _ in parts)
            if judged and {row.verdict for row in judged} == {verdicts.TRUE}:
                _add_up(check, order, j, judged, np.asarray(whole))


def _add_up(
    check: Check, order: int, j: int, judged: list[DerivativeRow], whole: np.ndarray
) -> None:
    """Replace inconclusive rows by the sum of the parts that passed.

    A step that suits all elements may see a kink that none of the parts has.
    """
    problem, name = check.problem, check.names[j]
    if not whole.all():  # some elements are in none of the parts
        return
    value = sum(row.value or 0.0 for row in judged)
    reference = sum(row.reference for row in judged)
    uncertainty = sum(row.uncertainty for row in judged)
    rounding = sum(row.rounding for row in judged)
    for row in check.rows:
        mine = (row.order, row.argument, row.path, row.index) == (order, name, "x", None)
        if not mine or row.verdict not in DOUBTFUL or not math.isfinite(row.value or 0.0):
            continue
        derivative = value
        if row.mode == "forward":
            last = [whole if i == j else None for i in check.indices]
            try:
                with evaluate.using(problem, last=last):
                    derivative = evaluate.tangent(problem, check.base, order, j).number
            except NotLinearError:  # perhaps by rounding alone
                continue
        allowed = tolerance(check.precision) * max(abs(value), abs(derivative))
        allowed += rounding * check.precision
        if abs(derivative - value) <= allowed:
            row.value, row.reference, row.uncertainty = derivative, reference, uncertainty
            row.rounding, row.kind = max(row.rounding, rounding), judged[0].kind
            row.verdict, row.detail = verdicts.TRUE, ""


def _parts_of(check: Check, order: int, j: int) -> list[tuple[np.ndarray, float]]:
    """Return the directions of parts that need steps of their own, and their scales."""
    value, way = check.problem.wide_point[j], check.problem.last[j]
    if not 1 < value.size <= MAX_SPLIT:
        return []
    name = check.names[j]
    own_rows = [row for row in check.rows if (row.order, row.argument) == (order, name)]
    if value.size <= MAX_SINGLE and any(row.verdict in DOUBTFUL for row in own_rows):
        units = [unit[0] for unit, _, _ in unit_directions([value])]
        return [(unit, largest(value[unit != 0]) or 1.0) for unit in units]
    sizes = np.abs(value)
    gradient = check.wide_gradients()[j]
    share = np.abs(way) * (1.0 if gradient is None else np.abs(gradient))
    keys = 100 * _classes(sizes, 3) + _classes(share, 4)
    classes = np.unique(keys)
    if len(classes) < 2:
        return []
    parts = []
    for key in classes[:MAX_PARTS]:
        mask = keys == key
        scale = largest(value[mask]) or 1.0
        own = np.sign(way) if np.isrealobj(way) else way / np.abs(way)
        inside = np.where(sizes[mask] > 0, sizes[mask], scale) / scale
        part = np.zeros_like(way)
        part[mask] = (own[mask] * inside).astype(check.problem.point[j].dtype)
        parts.append((part, scale))
    return parts


def _classes(sizes: np.ndarray, decades: int) -> np.ndarray:
    """Return for each size how many times `decades` powers of ten below the largest it is."""
    top = largest(sizes)
    with np.errstate(all="ignore"):
        below = np.floor(-np.log10(sizes / top) / decades) if top else 0.0 * sizes
    return np.clip(np.nan_to_num(below, nan=0.0, posinf=0.0, neginf=0.0), 0, 9).astype(int)


def compare_hidden(check: Check) -> None:
    """Compare far smaller elements of the order before by themselves: a weighted sum hides them.

    Not those that may be rounding errors of the largest.
    """
    problem = check.problem
    if check.full or check.precision > 1e-12:
        return
    for order in dict.fromkeys(row.order for row in check.rows):
        arrays = check.wide_gradients(order - 1) if order > 1 else problem.base_values
        if not arrays or any(row.false for row in check.rows):
            return
        chosen = problem.weights if order == 1 else problem.ways[order - 1]
        terms = [way * (0.0 if g is None else g) for way, g in zip(chosen, arrays, strict=True)]
        classes = _classes(np.abs(np.concatenate(list(map(np.ravel, terms)))), HIDDEN)
        parts = np.split(classes, np.cumsum([way.size for way in chosen])[:-1])
        for number in sorted({1, 2} & {*classes}):
            pairs = zip(chosen, parts, strict=True)
            ways = [way * (part == number).reshape(way.shape) for way, part in pairs]
            with evaluate.using(problem, **_instead(check, order, ways)):
                gradients = evaluate.arrays(problem, check.base, order)
                last = enumerate(problem.last)
                lines = [lines_along(check, order, j, way, ("x",)) for j, way in last]
                fetch(first_steps(check, lines, problem.scales, FIRST))
                for j, line in enumerate(lines):
                    judge = judge_of(check, order, j, "x", line, as_weighed=False)
                    row = reverse_row(check, order, j, "x", judge, gradients)
                    if row.false:
                        check.has_hidden = True
                        row.detail = f"for {_name_hidden(check, order, ways)} alone"
                        check.rows.append(row)


def _name_hidden(check: Check, order: int, ways: list[np.ndarray]) -> str:
    """Return words for the elements of the outputs or of a gradient that ways are not 0 at."""
    names = ["the output"] * len(ways) if order == 1 else check.names
    pairs = [(name, i) for name, way in zip(names, ways, strict=True) for i in np.argwhere(way)[:3]]
    places = [f"{name}{list(map(int, index)) or ''}" for name, index in pairs]
    count = sum(map(np.count_nonzero, ways))
    places = [*places[:2], f"{count - 2} more"] if count > 3 else places
    return f"{in_words(places)}{f' of the gradient of order {order - 1}' if order > 1 else ''}"


# Every element -------------------------------------------------------------------------------


def _instead(check: Check, order: int, ways: list[np.ndarray]) -> dict:
    """Return the fields of the problem that weigh the elements of the order before by `ways`."""
    own = check.problem.ways
    return {"weights": ways} if order == 1 else {"ways": [*own[: order - 1], ways, *own[order:]]}


def add_full_rows(check: Check, order: int) -> None:
    """Compare every element of the derivative; add a row for each element that is not right.

    All elements by one input are compared at once; those that differ are compared again.
    """
    problem = check.problem
    chosen = problem.weights if order == 1 else problem.ways[order - 1]
    units = [unit for unit, _, _ in unit_directions(chosen)]

    if order == 1:
        gradients = evaluate.pull_back(problem, check.base, units)
    else:
        gradients = []
        for unit in track(units, f"check_gradients: derivatives of order {order}"):
            with evaluate.using(problem, **_instead(check, order, unit)):
                gradients.append(evaluate.arrays(problem, check.base, order))
    doubts = _doubts(check, order, chosen, gradients)
    doubts = sorted(doubts, key=lambda doubt: -doubt[0])[:MAX_DOUBTS]
    shown: set[tuple] = set()
    for _, number, unit, j, index in track(doubts, f"check_gradients: doubts of order {order}"):
        if (j, index) in shown or len(shown) >= MAX_SHOWN:
            continue
        scales = list(problem.scales)
        scales[j] = largest(problem.wide_point[j][index]) or 1.0
        chosen_one = _instead(check, order, units[number])
        with evaluate.using(problem, last=unit, scales=scales, **chosen_one):
            judge = judge_of(check, order, j, as_weighed=False)
            row = reverse_row(check, order, j, "x", judge, gradients[number])
        row.index = index
        if row.verdict != verdicts.TRUE:
            shown.add((j, index))
            check.rows.append(row)


def _doubts(
    check: Check, order: int, chosen: list[np.ndarray], gradients: list
) -> list[tuple[float, int, list, int, tuple]]:
    """Return where elements of the derivative may differ from differences, and how far.

    `gradients` has those of each element of the order before, along the directions of `chosen`.
    """
    problem, base, precision = check.problem, check.base, check.precision

    def elements(point: list) -> np.ndarray:
        if order == 1:
            arrays = evaluate.reference_outputs(problem, point)
        else:
            pairs = zip(evaluate.arrays(problem, point, order - 1), problem.point, strict=False)
            arrays = [np.zeros(own.shape) if array is None else array for array, own in pairs]
        return np.concatenate(list(map(_real_numbers, arrays, chosen)))

    middle, doubts = elements(base), []
    count = sum(way.size for way in problem.last)
    for unit, j, index in track(
        unit_directions(problem.last), f"check_gradients: differences of order {order}", count
    ):
        scale = float(np.abs(base[j][index]))
        scale = scale if 0.0 < scale < np.inf else problem.scales[j]

        def line(step: float, unit: list = unit) -> np.ndarray:
            try:
                return elements(move_point(base, unit, step))
            except Exception:  # it is not defined there
                return np.full(middle.shape, np.nan)

        way = np.conj(unit[j][index])
        values = [0.0 if g[j] is None else np.real(way * g[j][index]) for g in gradients]
        with np.errstate(all="ignore"):
            reference, error, noise = difference_all(line, middle, scale, precision)
            gap = np.abs(values - reference)
            size = np.maximum(np.abs(values), np.abs(reference))
            close = gap <= tolerance(precision) * size + 16 * precision * np.abs(values)
            natural = np.abs(middle) / scale
            close &= error <= 1e-3 * np.maximum(size, 0.01 * natural)
            close |= (gap <= 4 * noise) & (size <= 4 * noise)
            weight = np.nan_to_num(gap / np.maximum(size, noise), nan=np.inf)
        doubts += [(float(weight[i]), int(i), unit, j, index) for i in np.flatnonzero(~close)]
    return doubts


def _real_numbers(array: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return the elements in the order of `unit_directions`: of complex ones both parts."""
    parts = (np.real(array), np.imag(array)) if np.iscomplexobj(like) else (np.real(array),)
    return np.stack(parts, axis=-1).astype(np.float64).ravel()
