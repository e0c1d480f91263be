"""Patterns of false gradients: how the elements that a rule gave differ from the right ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np

from .elements import Elements, TooMuch, largest, look_at_elements
from .orders import Orders
from .verdicts import DerivativeRow

SHOWN = 3  # elements to name


def describe_patterns(orders: Orders, rows: Sequence[DerivativeRow], otherwise: str = "") -> str:
    """Return sentences on how the false gradients of one order differ from the right ones.

    These depend on counts of elements, not on the speed of the machine. Where no pattern is
    found the sentence is `otherwise`, or says that elements were too many to look at.
    """
    names = [source.name for source in orders.problem.sources]
    if rows[0].nearby and orders.second is not None:
        orders = orders.second
    with np.errstate(all="ignore"):
        return _describe(orders, rows, names, otherwise)


def _describe(
    orders: Orders, rows: Sequence[DerivativeRow], names: list[str], otherwise: str
) -> str:
    false = dict.fromkeys(row.argument for row in rows if row.path == "x" and row.argument in names)
    found, left = {}, {}
    for name in false:
        try:
            elements = look_at_elements(orders, rows[0].order, names.index(name))
        except TooMuch as error:
            left[name] = f"The elements of {name} were not looked at one by one: {error}."
            continue
        text = None if elements is None else name_pattern(elements)
        if text:
            found[name] = text
    if not found:
        return otherwise or " ".join(left.values())
    if len(found) == len(false) and len(set(found.values())) == 1:
        return next(iter(found.values()))
    if len(names) == 1:
        return " ".join(found.values())
    return " ".join(f"By {name}: {text[0].lower()}{text[1:]}" for name, text in found.items())


def describe_upstreams(orders: Orders, name: str) -> str | None:
    """Return a sentence on how a gradient depends on its upstream, if not as a product with it."""
    problem = orders.problem
    j = [source.name for source in problem.sources].index(name)
    point = problem.wide_point if problem.wide else problem.point
    upstreams = [[factor * one for one in problem.weights] for factor in (0.0, 1.0, 2.0, -1.0)]
    try:
        found = [one[j] for one in problem.pull_back(point, upstreams)]
    except Exception:
        return None
    if any(one is None or not np.isfinite(one).all() for one in found[1:]):
        return None
    none, once, twice, negative = found
    close = partial(np.allclose, rtol=1e-5, atol=1e-7 * largest(np.stack(found[1:])))
    none = none if np.isfinite(none).all() else np.zeros_like(none)  # it divides by the upstream
    if close(once, none) and close(twice, none) and none.any():
        return "It is the same for every upstream: was the product with it forgotten?"
    if not close(none, 0.0) and close(twice - once, once - none):
        constant = np.ravel(none)[np.argmax(np.abs(none))]
        return (
            f"It is affine in the upstream: where this is zero, the gradient is {constant:.6g} "
            "and not 0. A term of it lacks the product with the upstream."
        )
    if close(twice, 4.0 * once):
        return "It grows with the square of the upstream: is there a second product with it?"
    if close(negative, once) and close(twice, 2.0 * once):
        return "It depends on the absolute value of the upstream: the sign of this is lost."
    if close(twice, once) and close(negative, -once):
        return "It depends on the sign of the upstream only, or divides by its size."
    return None


# Patterns ------------------------------------------------------------------------------------


def name_pattern(one: Elements) -> str | None:
    """Return a sentence for the first pattern that explains every element; None without one."""
    if not largest(one.right) or one.match(one.given):
        return None
    patterns = (_zero, _ratio, _of_complex, _of_outputs, _permuted, _summed, _parts, _factors)
    patterns += (_quadratic, _softmax, _centred, _offset, _terms, _where)
    found = (pattern(one) for pattern in (*patterns, _digits))
    return next((text for text in found if text), None)


def _zero(one: Elements) -> str | None:
    return None if one.given.any() else "The rule gives 0 for it."


def _ratio(one: Elements) -> str | None:
    """Name a constant ratio; a single number is looked at in several points."""
    ratio = _constant_ratio(one, None)
    if ratio is None or np.isclose(ratio, 1.0, rtol=one.tolerance):  # false in few elements, then
        return None
    if not np.isclose(ratio, np.real(ratio)):
        return f"It is {ratio:.6g} times that."
    ratio = float(np.real(ratio))
    if np.isclose(ratio, -1.0, rtol=1e-5):
        return "The sign is wrong."
    text = f"It is {ratio:.6g} times that."
    count = max(ratio, 1 / ratio) if ratio > 0 else 0.0
    size = one.x.size // max(one.outputs.size, 1) if one.outputs is not None else 0
    if size > 1 and np.isclose(count, size, rtol=1e-5):
        how = "of a mean not scaled" if ratio > 1 else "of a sum scaled as that of a mean"
        text += f" {one.name} has {size} elements for each output: is the rule {how}?"
    return text


def _constant_ratio(one: Elements, factor: Callable[[Elements], Any] | None) -> Any:
    """Return c if the rules gave c times a factor times the right ones, at all points."""
    pairs = []
    for each in (one, *one.more):
        with np.errstate(all="ignore"):
            right = each.right * (1.0 if factor is None else factor(each))
        known = np.isfinite(each.right)
        if right.shape != each.given.shape or not np.isfinite(right[known]).all():
            return None
        pairs.append((each.given[known], right[known]))
    given, right = (np.concatenate(part) for part in zip(*pairs, strict=True))
    size = largest(right)
    if len(given) < 2 or not size:
        return None
    ratio = np.vdot(right, given) / np.vdot(right, right)
    if not ratio or not np.isfinite(ratio):
        return None
    fits = np.abs(given - ratio * right) <= one.tolerance * np.abs(ratio) * (np.abs(right))
    small = np.abs(right) <= 1e-3 * size
    fits |= small & (np.abs(given - ratio * right) <= 1e-2 * one.tolerance * abs(ratio) * size)
    return ratio if fits.all() else None


def _of_complex(one: Elements) -> str | None:
    if not np.iscomplexobj(one.given) or one.given.shape != one.right.shape:
        return None
    if one.match(np.conj(one.given)):
        return "It is the complex conjugate of that."
    w = one.upstream
    if w is not None and w.shape == one.given.shape and one.match(w * np.conj(one.given / w)):
        return "Its factor of the upstream gradient is the complex conjugate of the right one."
    if one.match_given(np.real(one.right) + 0j):
        return "It is the real part of that."
    return None


def _of_outputs(one: Elements) -> str | None:
    """Name the outputs whose gradients are false, where those of others are right."""
    false = [k for k, part in enumerate(one.parts) if not part.match(part.given)]
    if not 0 < len(false) < len(one.parts):
        return None
    which = f"output {false[0]}" if len(false) == 1 else f"outputs {_and(list(map(str, false)))}"
    text = f"It is false for {which} of {len(one.parts)} only, counted from 0."
    inside = name_pattern(one.parts[false[0]]) if len(false) == 1 else None
    return f"{text} {inside}" if inside else text


def _permuted(one: Elements) -> str | None:
    """Name a gradient whose elements stand at other positions."""
    given, right = one.given, one.right
    if given.size < 2 or not np.isfinite(right).all():
        return None
    if given.ndim >= 2:
        for axes in permutations(range(given.ndim)):
            if one.match(np.transpose(given, axes)):
                return "It is the transpose of that."
        for axes in permutations(range(given.ndim)):
            if given.size == right.size and one.match(
                np.transpose(given, axes).reshape(right.shape)
            ):
                return "It is the transpose of that, in the wrong shape."
    for axis in range(given.ndim):
        along = f" along axis {axis}" if given.ndim > 1 else ""
        if one.match(np.flip(given, axis)):
            return f"Its elements stand in reverse order{along}."
        for shift in range(1, min(given.shape[axis], 33)):
            if one.match(np.roll(given, shift, axis)):
                back = shift - given.shape[axis]
                way = -shift if shift <= -back else -back
                return f"Its elements are shifted by {way:+d}{along}."
    if np.isrealobj(given) and np.ptp(right) > one.tolerance * np.abs(right).max():
        ranks = np.empty(given.size, int)
        ranks[np.argsort(given, axis=None)] = np.arange(given.size)
        if one.agree(np.sort(given, axis=None), np.sort(right, axis=None)).all():
            return "Its elements are the right ones in another order: it is permuted."
    return None


def _summed(one: Elements) -> str | None:
    """Name a sum over another axis than the one that the argument is spread over."""
    if one.jacobian is None or one.outputs is None or one.upstream is None or _unknown(one):
        return None
    parts = one.upstream * one.jacobian.sum(axis=1).reshape(one.outputs.shape)
    for count in range(1, parts.ndim + 1):
        for axes in combinations(range(parts.ndim), count):
            summed = parts.sum(axis=axes)
            fits = summed.size == one.given.size
            if fits and one.match_given(summed.reshape(one.given.shape)):
                return f"It is the sum over {_axes(axes)}, which is another than the right one."
    return None


def _unknown(one: Elements) -> bool:
    return not np.isfinite(one.right).all()


def _axes(axes: Sequence[int]) -> str:
    if len(axes) == 1:
        return f"axis {axes[0]}"
    return f"axes {', '.join(map(str, axes))}"


def _parts(one: Elements) -> str | None:
    """Name a part of the Jacobian, or its transpose, in place of the whole."""
    if one.jacobian is None or one.upstream is None or _unknown(one):
        return None
    rows, columns = one.jacobian.shape
    if rows != columns or rows < 2:
        return None
    upstream = one.upstream.ravel()
    if one.match_given((one.jacobian @ upstream).reshape(one.given.shape)):
        return (
            "It is the product of the Jacobian with the upstream gradient; its transpose is needed."
        )
    moves = bool((np.count_nonzero(one.jacobian, axis=0) == 1).all())
    if moves and np.ptp(upstream):
        slopes = one.jacobian.sum(axis=0)
        if one.agree(np.sort(one.given.ravel() / slopes), np.sort(upstream)).all():
            return "The elements of the upstream gradient are permuted: it needs the inverse order."
    if one.match_given((np.diag(one.jacobian) * upstream).reshape(one.given.shape)):
        return (
            f"It has the diagonal of the Jacobian only: each output depends on other elements of "
            f"{one.name}, too."
        )
    return None


FACTORS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("{x}", lambda x: x),
    ("{x}**2", lambda x: x * x),
    ("the square root of {x}", lambda x: np.sqrt(x)),
    ("the sign of {x}", lambda x: np.sign(x)),
)
OF_OUTPUTS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("the output", lambda y: y),
    ("1 - the output", lambda y: 1.0 - y),
    ("1 + the output", lambda y: 1.0 + y),
    ("the output's square", lambda y: y * y),
)


def _factors(one: Elements) -> str | None:
    """Name a factor made of an argument, or of the output, that is missing or too much."""
    if sum(each.given.size for each in (one, *one.more)) < 3:
        return None
    named = [(words.format(x=one.name), lambda each, of=of: of(each.x)) for words, of in FACTORS]
    for name, value in one.others.items():
        if value.shape in (one.x.shape, ()) and np.isrealobj(value):
            named += [(words.format(x=name), partial(_of_other, name, of)) for words, of in FACTORS]
    if one.outputs is not None and one.outputs.shape in (one.x.shape, ()):
        named += [(words, lambda each, of=of: of(each.outputs)) for words, of in OF_OUTPUTS]
    for words, value_of in named:
        for missing in (True, False):

            def factor(each: Elements, of: Any = value_of, by: bool = missing) -> Any:
                return 1.0 / of(each) if by else of(each)

            ratio = _constant_ratio(one, factor)
            if ratio is not None and _is_simple(ratio):
                text = f"A factor is {'missing' if missing else 'too much'}: {words}."
                ratio = float(np.real(ratio))
                besides = (
                    "" if np.isclose(ratio, 1.0) else f" Besides it is {ratio:.6g} times that."
                )
                return text + besides
    return None


def _of_other(name: str, of: Callable[[Any], Any], each: Elements) -> Any:
    return of(each.others[name])


def _is_simple(ratio: Any) -> bool:
    """Return whether a number is a fraction of small integers."""
    if not np.isclose(ratio, np.real(ratio)):
        return False
    ratio = float(np.real(ratio))
    near = Fraction(ratio).limit_denominator(6)
    return 0 < abs(near) <= 12 and bool(np.isclose(ratio, float(near), rtol=1e-6))


def _quadratic(one: Elements) -> str | None:
    """Name a quadratic form whose rule takes its matrix for symmetric."""
    for each in (one, *one.more):
        if each.outputs is None or each.outputs.size != 1 or each.upstream is None:
            return None
        if each.x.size < 2 or _unknown(each):
            return None
        size = largest(each.x) * largest(each.right) * each.x.size
        expected = 2.0 * each.outputs.item() * each.upstream.item()
        for found in (each.given, each.right):  # Euler's theorem for a degree of 2
            if abs(np.vdot(each.x, found) - expected) > each.tolerance * size:
                return None
    return (
        f"It is right in the direction of {one.name} only, as 2 A {one.name} is for "
        f"{one.name} A {one.name}: a matrix that is not symmetric needs A plus its transpose."
    )


def _softmax(one: Elements) -> str | None:
    """Name the axes of a softmax, or of its logarithm, whose rule sums over others."""
    y, dy = one.outputs, one.upstream
    if y is None or dy is None or not y.shape == dy.shape == one.x.shape or _unknown(one):
        return None
    sets = [axes for k in range(y.ndim) for axes in combinations(range(y.ndim), k + 1)]

    def pull(p: np.ndarray, axes: tuple[int, ...], is_log: bool) -> np.ndarray:
        if is_log:
            return dy - p * dy.sum(axis=axes, keepdims=True)
        return p * (dy - (dy * p).sum(axis=axes, keepdims=True))

    for is_log in (False, True):
        p = np.exp(y) if is_log else y
        right = next((axes for axes in sets if one.match(pull(p, axes, is_log))), None)
        for axes in sets if right is not None else ():
            powers = np.exp(one.x - one.x.max(axis=axes, keepdims=True))
            own = powers / powers.sum(axis=axes, keepdims=True)
            if any(one.match_given(pull(each, axes, is_log)) for each in (p, own)):
                return (
                    f"It is that of a softmax over {_axes(axes)}; the outputs are one over "
                    f"{_axes(right or ())}."
                )
    return None


def _centred(one: Elements) -> str | None:
    """Name the mean or the variance that the rule of a normalization takes for constant."""
    y = one.outputs
    if y is None or y.shape != one.x.shape or one.given.shape != y.shape or _unknown(one):
        return None
    for count in range(1, y.ndim + 1):
        for axes in combinations(range(y.ndim), count):
            mean = partial(np.mean, axis=axes, keepdims=True)
            centred = one.given - mean(one.given)
            scaled = y * mean(one.given * y)
            for found, what in (
                (centred, "the mean"),
                (one.given - scaled, "the variance"),
                (centred - scaled, "the mean and the variance"),
            ):
                if one.match(found):
                    return (
                        f"It takes {what} over {_axes(axes)} for constant: the outputs depend on "
                        f"{one.name} through {what}, too."
                    )
    return None


def _offset(one: Elements) -> str | None:
    """Name a constant: the rule itself, or what it adds."""
    if _unknown(one):
        return None
    if (
        one.upstream is not None
        and one.upstream.shape == one.given.shape
        and one.outputs is not None
    ):
        points = (one, *one.more)
        slopes = np.concatenate([np.ravel(each.given / one.upstream) for each in points])
        rights = np.concatenate([np.ravel(each.right / one.upstream) for each in points])
        if len(slopes) > 1 and np.ptp(slopes) <= one.tolerance * np.abs(slopes).max():
            return f"It is {slopes[0]:.6g} times the upstream gradient, wherever it is computed."
        offsets = slopes - rights
        if len(slopes) > 1 and np.ptp(offsets) <= one.tolerance * np.abs(rights).max():
            much = f"{abs(offsets[0]):.6g} {'more' if offsets[0] > 0 else 'less'}"
            return f"The factor of the upstream gradient is {much} than it must be, everywhere."
    return None


def _terms(one: Elements) -> str | None:
    """Name a term of a product rule that is missing, or a reciprocal."""
    points = (one, *one.more)
    if _unknown(one) or one.upstream is None or one.outputs is None:
        return None
    if not one.upstream.shape == one.outputs.shape == one.x.shape or len(points) * one.x.size < 3:
        return None

    def fits(factor: Callable[[Elements], np.ndarray]) -> bool:
        found = [(each.upstream * factor(each), each) for each in points]
        return all(bool(np.isfinite(a).all()) and b.match_given(a) for a, b in found)

    if fits(lambda each: each.outputs / each.x):
        return (
            f"It is the output divided by {one.name}, times the upstream gradient: the output is a "
            "product, and the term with the derivative of the other factor is missing."
        )
    if fits(lambda each: each.right / each.upstream - each.outputs / each.x):
        return (
            f"The output divided by {one.name} is missing, times the upstream gradient: the output "
            "is a product, and its rule has the term of the other factor only."
        )
    if fits(lambda each: each.upstream / each.right):
        return "The factor of the upstream gradient is the reciprocal of the right one."
    return None


def _where(one: Elements) -> str | None:
    """Name the positions of false elements, where others are right."""
    false = ~one.agree(one.given)
    count = int(false.sum())
    if not 0 < count < false.size:
        return None
    text: str = _where_false(one, false)
    inside = Elements(one.name, one.x[false], one.given[false], one.right[false], one.tolerance)
    there = _zero(inside) or (_ratio(inside) if count > 1 else None)
    if _unknown(one):
        text = text.replace("It is false", "Kinks aside, it is false", 1)
    if there:
        text += f" {there.replace('It is', 'There it is').replace('The sign', 'There the sign')}"
    return text


def _where_false(one: Elements, false: np.ndarray) -> str:
    count = f"{int(false.sum())} of {false.size} elements"
    x = one.x
    if np.isrealobj(x) and np.isfinite(x).all():
        for words, where in (
            ("< 0", x < 0), ("> 0", x > 0), ("<= 0", x <= 0), (">= 0", x >= 0), ("is 0", x == 0)
        ):  # fmt: skip
            if np.array_equal(false, where):
                text = f"It is false only where {one.name} {words} ({count})."
                return f"{text} That is {next(_named(one, false))}." if false.sum() == 1 else text
    if one.given.ndim > 1:
        for axis in range(one.given.ndim):
            others = tuple(i for i in range(one.given.ndim) if i != axis)
            hit = false.any(axis=others)
            whole = false.all(axis=others)
            if hit.sum() == 1 and false.shape[axis] > 1 and np.array_equal(hit, whole):
                index = int(np.flatnonzero(hit)[0])
                return f"It is false only at index {index} of axis {axis} ({count})."
    if false.sum() <= SHOWN:
        return f"It is false only at {_and(list(_named(one, false)))}."
    if np.isrealobj(x) and np.isfinite(x).all() and min(false.sum(), (~false).sum()) > 1:
        if x[false].max() < x[~false].min():
            return f"It is false only where {one.name} <= {x[false].max():.6g} ({count})."
        if x[false].min() > x[~false].max():
            return f"It is false only where {one.name} >= {x[false].min():.6g} ({count})."
        size = np.abs(x)
        if size[false].min() > size[~false].max():
            return f"It is false only where |{one.name}| >= {size[false].min():.6g} ({count})."
        if size[false].max() < size[~false].min():
            return f"It is false only where |{one.name}| <= {size[false].max():.6g} ({count})."
    return f"It is false at {count}, first at {next(_named(one, false))}."


def _named(one: Elements, false: np.ndarray) -> Iterator[str]:
    for index in np.argwhere(false):
        position = tuple(int(i) for i in index)
        given, right = one.given[position] + 0.0, one.right[position] + 0.0  # no -0
        yield f"{one.name}{list(position)} ({given:.6g} in place of {right:.6g})"


def _digits(one: Elements) -> str | None:
    """Name the digits that agree, of a solution that is not exact."""
    error = largest(one.given - one.right) / largest(one.right)
    if error > 1e-2:
        return None
    digits = int(-np.log10(error))
    return (
        f"It agrees to {digits} digits: an approximate solve, a small term left out, or rounding?"
    )


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
