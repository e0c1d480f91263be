"""Hypotheses about wrong rules: what a rule gives that is wrong in one way.

A family is a function of the elements of a gradient; it yields hypotheses, the simplest first. One
explains a false gradient if what it says is true of each element, at each point, and for a second
upstream gradient. A new one is added to a family here, or as a family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from .elements import NOTHING, Elements, largest
from .rewrite import SourceCode, change_axis, scale_gradient

SHOWN = 3  # elements to name
SHIFTS = 32  # positions that elements may be shifted by


class Hypothesis(NamedTuple):
    """What is wrong, in words, and whether that is true of a sample of elements.

    `fitted` is how many numbers were fitted to the first sample. `fix` corrects the source of a
    function, given its name and the index of the gradient.
    """

    words: str
    fits: Callable[[Elements], bool]
    fitted: int = 0
    fix: Callable[[SourceCode, str, int], None] | None = None


def gives(
    words: str, predict: Callable[[Elements], Any], fitted: int = 0, fix: Any = None
) -> Hypothesis:
    """Return the hypothesis that a rule gives what `predict` makes of a sample."""
    return Hypothesis(words, lambda sample: sample.match_actual(predict(sample)), fitted, fix)


def explain(elements: Elements) -> Hypothesis | None:
    """Return the first hypothesis that explains every element; None without one."""
    samples = elements.samples
    if not largest(elements.right):
        return None
    is_close = all(sample.match(sample.actual) for sample in samples)
    count = sum(int(np.isfinite(sample.right).sum()) for sample in samples)
    with np.errstate(all="ignore"):
        for family in (_approximations,) if is_close else FAMILIES:
            for hypothesis in family(elements):
                is_tested = count > hypothesis.fitted
                if is_tested and all(map(hypothesis.fits, samples)):
                    return hypothesis
    return None


# One factor ----------------------------------------------------------------------------------


def _zero(elements: Elements) -> Iterator[Hypothesis]:
    yield Hypothesis("The rule gives 0 for it.", lambda sample: not sample.actual.any())


def _ratio(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a constant ratio."""
    ratio = _fitted_ratio(elements, lambda sample: sample.right)
    if ratio is None or np.isclose(
        ratio, 1.0, rtol=elements.tolerance
    ):  # false in few elements, then
        return
    words = _words_of_ratio(elements, ratio)
    numbers = [*elements.x.shape, *elements.upstream.shape, elements.x.size]
    for other in elements.others.values():
        numbers += [*other.shape, *(np.ravel(other) if other.size == 1 else ())]
    is_plain = isinstance(ratio, float) and not words.endswith("?")
    is_plain = is_plain and not any(
        np.isclose(number, (ratio, 1 / ratio), rtol=1e-5).any() for number in numbers
    )  # else it may be a size, or an argument
    fix = partial(scale_gradient, ratio=ratio) if is_plain else None
    yield gives(words, lambda sample: ratio * sample.right, 1, fix)


def _words_of_ratio(elements: Elements, ratio: Any) -> str:
    text = f"It is {ratio:.6g} times that."
    if isinstance(ratio, complex):
        return text
    if np.isclose(ratio, -1.0, rtol=1e-5):
        return "The sign is wrong."
    count = max(ratio, 1 / ratio) if ratio > 0 else 0.0
    size = elements.x.size // elements.outputs.size if elements.outputs.size else 0
    if size > 1 and np.isclose(count, size, rtol=1e-5):
        how = "of a mean not scaled" if ratio > 1 else "of a sum scaled as that of a mean"
        return f"{text} {elements.name} has {size} elements for each output: is the rule {how}?"
    sizes = [(a, b) for a, b in permutations(elements.x.shape, 2) if a != b]
    alike = [(a, b) for a, b in sizes if np.isclose(ratio, a / b, rtol=1e-5)]
    if size > 1 and alike:
        a, b = alike[0]
        return f"{text} Is a mean over {a} elements divided by {b}, the size of another axis?"
    return text


def _fitted_ratio(elements: Elements, of: Callable[[Elements], Any]) -> Any:
    """Return how many times a multiple of what `of` returns the rules gave; None without one."""
    samples = elements.samples
    expected = [np.ravel(of(sample)) for sample in samples]
    actual = np.concatenate([np.ravel(sample.actual) for sample in samples])
    if sum(map(len, expected)) != len(actual):
        return None
    right = np.concatenate(expected)
    finite = np.isfinite(right)
    ratio = np.vdot(right[finite], actual[finite]) / (
        np.vdot(right[finite], right[finite]) or np.nan
    )
    if not ratio or not np.isfinite(ratio):
        return None
    return float(np.real(ratio)) if np.isclose(ratio, np.real(ratio)) else complex(ratio)


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


def _factors(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a factor made of an argument, or of the output, that is missing or too much."""
    if sum(sample.actual.size for sample in elements.samples) < 3:
        return
    named: list[tuple[str, Callable[[Elements], Any]]] = [
        (words.format(x=elements.name), lambda sample, of=of: of(sample.x)) for words, of in FACTORS
    ]
    for name, value in elements.others.items():
        if value.shape in (elements.x.shape, ()) and np.isrealobj(value):
            named += [
                (words.format(x=name), lambda sample, of=of, name=name: of(sample.others[name]))
                for words, of in FACTORS
            ]
    if elements.outputs.size and elements.outputs.shape in (elements.x.shape, ()):
        named += [(words, lambda sample, of=of: of(sample.outputs)) for words, of in OF_OUTPUTS]
    for words, factor in named:
        for verb, power in (("missing", -1), ("too much", 1)):

            def scaled(sample: Elements, factor: Any = factor, power: int = power) -> Any:
                return sample.right * np.asarray(factor(sample), sample.right.dtype) ** power

            ratio = _fitted_ratio(elements, scaled)
            if _is_simple(ratio):
                text = f"A factor is {verb}: {words}."
                text += "" if np.isclose(ratio, 1.0) else f" Besides it is {ratio:.6g} times that."
                yield gives(text, lambda sample, r=ratio, of=scaled: r * of(sample), fitted=2)


def _is_simple(ratio: Any) -> bool:
    """Return whether a number is a fraction of small integers."""
    if not isinstance(ratio, float):
        return False
    near = Fraction(ratio).limit_denominator(6)
    return 0 < abs(near) <= 12 and bool(np.isclose(ratio, float(near), rtol=1e-6))


def _written_out(exact: float, *written: str) -> list[tuple[str, float]]:
    return [(text, float(text) / exact) for text in written]


APPROXIMATIONS: tuple[tuple[str, float], ...] = (
    *_written_out(np.pi, "3.14", "3.142", "3.1416", "3.14159", "3.141593"),
    *_written_out(np.e, "2.72", "2.718", "2.7183", "2.71828"),
    *_written_out(np.log(2), "0.69", "0.693", "0.6931", "0.69315", "0.693147"),
    *_written_out(np.log(10), "2.3", "2.303", "2.3026", "2.30259", "2.302585"),
    *_written_out(np.sqrt(2), "1.41", "1.414", "1.4142", "1.41421", "1.414214"),
    *_written_out(np.sqrt(2 * np.pi), "2.51", "2.507", "2.5066", "2.50663", "2.506628"),
    *_written_out(np.sqrt(2 / np.pi), "0.8", "0.798", "0.7979", "0.79788", "0.797885"),
)


def _approximations(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a constant that is written with few digits, as seen next to the exact gradient."""
    ratio = _fitted_ratio(elements, lambda sample: sample.shares[0])
    for text, near in APPROXIMATIONS if isinstance(ratio, float) else ():
        for power in (1, -1, 2, -2, 0.5, -0.5):
            error = near**power - 1.0
            if abs(ratio - 1.0 - error) <= 1e-3 * abs(error):
                yield Hypothesis(
                    f"It is {ratio:.9g} times that: is a constant written with too few digits, "
                    f"{text}?",
                    lambda sample: np.allclose(sample.actual, ratio * sample.shares[0], 1e-11, 0.0),
                )


# Complex numbers -----------------------------------------------------------------------------


def _of_complex(elements: Elements) -> Iterator[Hypothesis]:
    if not np.iscomplexobj(elements.actual):
        return
    yield gives("It is the complex conjugate of that.", lambda sample: np.conj(sample.right))
    if elements.upstream.shape == elements.actual.shape:
        yield gives(
            "Its factor of the upstream gradient is the complex conjugate of the right one.",
            lambda sample: sample.upstream * np.conj(sample.right / sample.upstream),
        )
    if elements.slopes.size:
        yield gives(
            "It is the product of the transposed Jacobian with the upstream gradient: the "
            "Jacobian, a matrix say, must be conjugated, too.",
            lambda sample: (sample.slopes.T @ sample.upstream.ravel()).reshape(sample.x.shape),
        )
    yield gives("It is the real part of that.", lambda sample: np.real(sample.right) + 0j)


# Other positions -----------------------------------------------------------------------------


def _permuted(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a gradient whose elements stand at other positions."""
    right, shape = elements.right, elements.actual.shape
    if right.size < 2 or right.size != elements.actual.size:
        return
    for axes in permutations(range(right.ndim)) if right.ndim > 1 else ():
        moved = np.transpose(right, axes).shape
        if axes != tuple(range(right.ndim)):
            words = "It is the transpose of that."
            if moved != shape:
                words = "It is the transpose of that, in the wrong shape."

            yield gives(
                words, lambda sample, axes=axes: np.transpose(sample.right, axes).reshape(shape)
            )
            yield gives(
                words,
                lambda sample, axes=axes, moved=moved: np.transpose(
                    sample.right.reshape(moved), np.argsort(axes)
                ),
            )
    for axis in range(right.ndim):
        along = f" along axis {axis}" if right.ndim > 1 else ""
        yield gives(
            f"Its elements stand in reverse order{along}.",
            lambda sample, axis=axis: np.flip(sample.right, axis),
        )
        for shift in range(1, min(shape[axis], SHIFTS + 1)):
            way = shift if 2 * shift <= shape[axis] else shift - shape[axis]
            yield gives(
                f"Its elements are shifted by {way:+d}{along}.",
                lambda sample, axis=axis, way=way: np.roll(sample.right, way, axis),
            )
    if np.isrealobj(right) and np.isfinite(right).all() and np.ptp(right):
        source = np.empty(right.size, int)
        source[np.argsort(elements.actual, axis=None)] = np.argsort(right, axis=None)
        yield gives(
            "Its elements are the right ones in another order: it is permuted.",
            lambda sample: np.ravel(sample.right)[source].reshape(shape),
        )


def _permuted_upstream(elements: Elements) -> Iterator[Hypothesis]:
    """Yield an upstream gradient that is permuted as the outputs are, and not back."""
    if not _is_square(elements) or np.ptp(elements.upstream) == 0:
        return
    if not (np.count_nonzero(elements.jacobian, axis=0) == 1).all():
        return
    upstream = (
        elements.actual / elements.jacobian.sum(axis=0).reshape(elements.actual.shape)
    ).ravel()
    source = np.empty(upstream.size, int)
    source[np.argsort(upstream)] = np.argsort(elements.upstream.ravel())
    yield gives(
        "The elements of the upstream gradient are permuted: it needs the inverse order.",
        lambda sample: (sample.jacobian.sum(axis=0) * sample.upstream.ravel()[source]).reshape(
            sample.x.shape
        ),
    )


# The Jacobian --------------------------------------------------------------------------------


def _is_linear(elements: Elements) -> bool:
    """Return whether the Jacobian and the upstream gradient are known."""
    return elements.jacobian.size > 0


def _is_square(elements: Elements) -> bool:
    return _is_linear(elements) and elements.jacobian.shape[0] == elements.jacobian.shape[1] > 1


def _summed(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a sum over another axis than the one that the argument is spread over."""
    if not _is_linear(elements):
        return
    shape = elements.outputs.shape
    for axes in _sets_of_axes(len(shape)):
        if np.prod([n for k, n in enumerate(shape) if k not in axes]) == elements.actual.size:

            def summed(sample: Elements, axes: tuple[int, ...] = axes) -> np.ndarray:
                parts = sample.upstream * sample.jacobian.sum(axis=1).reshape(shape)
                return parts.sum(axis=axes).reshape(sample.actual.shape)

            words = f"It is the sum over {_axes(axes)}, which is another than the right one."
            yield gives(words, summed)


def _parts(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a part of the Jacobian, or its transpose, in place of the whole."""
    if not _is_square(elements):
        return
    text = "It is the product of the Jacobian with the upstream gradient; its transpose is needed."
    is_small = elements.x.size <= 256 and elements.x.shape == elements.outputs.shape
    for axis in range(elements.x.ndim) if is_small else ():
        ones = np.cumsum(np.eye(elements.x.size).reshape(-1, *elements.x.shape), axis + 1)
        if np.allclose(elements.jacobian, ones.reshape(elements.x.size, -1).T):
            text += f" For a cumulative sum that is the one in reverse order, along axis {axis}."
    yield gives(
        text,
        lambda sample: (sample.jacobian @ sample.upstream.ravel()).reshape(sample.x.shape),
    )
    yield gives(
        f"It has the diagonal of the Jacobian only: each output depends on other elements of "
        f"{elements.name}, too.",
        lambda sample: (np.diag(sample.jacobian) * sample.upstream.ravel()).reshape(sample.x.shape),
    )


def _left_out(elements: Elements) -> Iterator[Hypothesis]:
    """Yield an index of the outputs, an example of a batch say, that the rule leaves out."""
    if not _is_linear(elements) or elements.outputs.shape == elements.x.shape:
        return
    for axis, size in enumerate(elements.outputs.shape):
        for index in (size - 1, *range(size - 1)) if 1 < size <= SHIFTS else ():
            mask = np.ones(elements.outputs.shape)
            mask[(slice(None),) * axis + (index,)] = 0.0
            yield gives(
                f"What leads through index {index} of axis {axis} of the output is missing: is an "
                "example of a batch left out?",
                lambda sample, mask=mask: (
                    sample.jacobian.T @ (mask * sample.upstream).ravel()
                ).reshape(sample.x.shape),
            )


def _held(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a part of the function that the rule takes for constant, or leaves out."""
    whole, shares = elements.shares
    if not elements.match(whole):
        return
    for k, share in enumerate(shares):
        if largest(share.gradient):

            def without(sample: Elements, k: int = k) -> np.ndarray:
                _, parts = sample.shares
                return sample.right - parts[k].gradient if k < len(parts) else NOTHING

            yield gives(share.words, without)


def _quadratic(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a quadratic form whose rule takes its matrix for symmetric."""
    if not _is_linear(elements) or elements.outputs.size != 1 or elements.x.size < 2:
        return

    def has_degree_two(sample: Elements) -> bool:
        """Return whether the gradients are those of a form of degree 2, along x (Euler)."""
        size = largest(sample.x) * largest(sample.right) * sample.x.size
        expected = 2.0 * sample.outputs.item() * sample.upstream.item()
        return all(
            abs(np.vdot(sample.x, gradient) - expected) <= sample.tolerance * size
            for gradient in (sample.actual, sample.right)
        )

    x = elements.name
    yield Hypothesis(
        f"It is right in the direction of {x} only, as 2 A {x} is for {x} A {x}: a matrix that is "
        "not symmetric needs A plus its transpose.",
        has_degree_two,
    )


# Means, norms and softmax --------------------------------------------------------------------


def _sets_of_axes(ndim: int) -> list[tuple[int, ...]]:
    return [axes for k in range(ndim) for axes in combinations(range(ndim), k + 1)]


def _other_axis(wrong: tuple[int, ...], right: tuple[int, ...]) -> Any:
    is_single = len(wrong) == len(right) == 1
    return partial(change_axis, old=wrong[0], new=right[0]) if is_single else None


def _softmax(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the axes of a softmax, or of its logarithm, whose rule sums over others."""
    y, dy = elements.outputs, elements.upstream
    if not y.shape == dy.shape == elements.x.shape:
        return

    def pull(sample: Elements, p: np.ndarray, axes: tuple[int, ...], is_log: bool) -> np.ndarray:
        dy = sample.upstream
        if is_log:
            return dy - p * dy.sum(axis=axes, keepdims=True)
        return p * (dy - (dy * p).sum(axis=axes, keepdims=True))

    def outputs(sample: Elements, axes: tuple[int, ...], is_log: bool) -> np.ndarray:
        return np.exp(sample.outputs) if is_log else sample.outputs

    def own(sample: Elements, axes: tuple[int, ...], is_log: bool) -> np.ndarray:
        powers = np.exp(sample.x - sample.x.max(axis=axes, keepdims=True))
        return powers / powers.sum(axis=axes, keepdims=True)

    sets = _sets_of_axes(y.ndim)
    for is_log in (False, True):
        p = outputs(elements, (), is_log)
        right = [axes for axes in sets if elements.match(pull(elements, p, axes, is_log))]
        for axes in sets if right else ():
            for of in (outputs, own) if axes != right[0] else ():
                yield gives(
                    f"It is that of a softmax over {_axes(axes)}; the outputs are one over "
                    f"{_axes(right[0])}.",
                    lambda sample, of=of, axes=axes, is_log=is_log: pull(
                        sample, of(sample, axes, is_log), axes, is_log
                    ),
                    fix=_other_axis(axes, right[0]),
                )


def _centred(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the mean or the variance that the rule of a normalization takes for constant."""
    y = elements.outputs
    if y.shape != elements.x.shape:
        return

    def centre(sample: Elements, axes: tuple[int, ...]) -> np.ndarray:
        return sample.actual - np.mean(sample.actual, axis=axes, keepdims=True)

    def scale(sample: Elements, axes: tuple[int, ...]) -> np.ndarray:
        return sample.outputs * np.mean(sample.actual * sample.outputs, axis=axes, keepdims=True)

    for axes in _sets_of_axes(y.ndim):
        for what, completed in (
            ("the mean", centre),
            ("the variance", lambda sample, axes: sample.actual - scale(sample, axes)),
            (
                "the mean and the variance",
                lambda sample, axes: centre(sample, axes) - scale(sample, axes),
            ),
        ):
            yield Hypothesis(
                f"It takes {what} over {_axes(axes)} for constant: the outputs depend on "
                f"{elements.name} through {what}, too.",
                lambda sample, of=completed, axes=axes: sample.match(of(sample, axes)),
            )
        for others in _sets_of_axes(y.ndim):
            mean = (
                np.mean(elements.upstream, axis=axes, keepdims=True)
                if _is_linear(elements)
                else None
            )
            if mean is not None and others != axes and elements.match(elements.upstream - mean):
                yield gives(
                    f"It subtracts the mean over {_axes(others)}; the outputs subtract that over "
                    f"{_axes(axes)}.",
                    lambda sample, axes=others: (
                        sample.upstream - np.mean(sample.upstream, axis=axes, keepdims=True)
                    ),
                    fix=_other_axis(others, axes),
                )


# Terms ---------------------------------------------------------------------------------------


def _offset(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a constant: the rule itself, or what it adds."""
    is_known = elements.outputs.size and np.isfinite(elements.right).all()
    if not is_known or elements.upstream.shape != elements.actual.shape:
        return
    slope = np.ravel(elements.actual / elements.upstream)[0]
    yield gives(
        f"It is {slope:.6g} times the upstream gradient, wherever it is computed.",
        lambda sample: slope * sample.upstream,
        fitted=1,
    )
    offset = np.mean((elements.actual - elements.right) / elements.upstream)
    much = f"{abs(offset):.6g} {'more' if offset > 0 else 'less'}"
    yield gives(
        f"The factor of the upstream gradient is {much} than it must be, everywhere.",
        lambda sample: sample.right + offset * sample.upstream,
        fitted=1,
    )


def _terms(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a term of a product rule that is missing, or a reciprocal."""
    if not elements.upstream.shape == elements.outputs.shape == elements.x.shape:
        return
    if (1 + len(elements.more)) * elements.x.size < 3:
        return
    yield gives(
        f"It is the output divided by {elements.name}, times the upstream gradient: the output is "
        "a product, and the term with the derivative of the other factor is missing.",
        lambda sample: sample.upstream * sample.outputs / sample.x,
    )
    yield gives(
        f"The output divided by {elements.name} is missing, times the upstream gradient: the "
        "output is a product, and its rule has the term of the other factor only.",
        lambda sample: sample.right - sample.upstream * sample.outputs / sample.x,
    )
    yield gives(
        "The factor of the upstream gradient is the reciprocal of the right one.",
        lambda sample: sample.upstream**2 / sample.right,
    )


# Some elements -------------------------------------------------------------------------------


def _of_outputs(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the outputs whose gradients are false, where those of others are right."""
    false = [k for k, part in enumerate(elements.parts) if not part.match(part.actual)]
    if not 0 < len(false) < len(elements.parts):
        return
    which = f"output {false[0]}" if len(false) == 1 else f"outputs {in_words(map(str, false))}"
    text = f"It is false for {which} of {len(elements.parts)} only, counted from 0."
    inside = explain(elements.parts[false[0]]) if len(false) == 1 else None
    yield Hypothesis(f"{text} {inside.words}" if inside else text, lambda sample: True)


def _where(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the positions of false elements, where others are right."""
    false = np.any([~sample.agree(sample.actual) for sample in elements.at_point], axis=0)
    count = int(false.sum())
    if not 0 < count < false.size:
        return
    text = _where_false(elements, false)
    inside = elements.only(false)
    there = next(
        (
            hypothesis.words
            for family in ((_zero, _ratio) if count > 1 else (_zero,))
            for hypothesis in family(inside)
            if all(map(hypothesis.fits, inside.samples))
        ),
        "",
    )
    if not np.isfinite(elements.right).all():
        text = text.replace("It is false", "Kinks aside, it is false", 1)
    if there:
        text += f" {there.replace('It is', 'There it is').replace('The sign', 'There the sign')}"
    yield Hypothesis(text, lambda sample: True)


def _where_false(elements: Elements, false: np.ndarray) -> str:
    count = f"{int(false.sum())} of {false.size} elements"
    x = elements.x
    if np.isrealobj(x) and np.isfinite(x).all():
        for words, where in (
            ("< 0", x < 0), ("> 0", x > 0), ("<= 0", x <= 0), (">= 0", x >= 0), ("is 0", x == 0)
        ):  # fmt: skip
            if np.array_equal(false, where):
                text = f"It is false only where {elements.name} {words} ({count})."
                return (
                    f"{text} That is {next(_named(elements, false))}." if false.sum() == 1 else text
                )
    if elements.actual.ndim > 1:
        for axis in range(elements.actual.ndim):
            others = tuple(i for i in range(elements.actual.ndim) if i != axis)
            hit = false.any(axis=others)
            whole = false.all(axis=others)
            if hit.sum() == 1 and false.shape[axis] > 1 and np.array_equal(hit, whole):
                index = int(np.flatnonzero(hit)[0])
                return f"It is false only at index {index} of axis {axis} ({count})."
    if false.sum() <= SHOWN:
        return f"It is false only at {in_words(_named(elements, false))}."
    if np.isrealobj(x) and np.isfinite(x).all() and min(false.sum(), (~false).sum()) > 1:
        if x[false].max() < x[~false].min():
            return f"It is false only where {elements.name} <= {x[false].max():.6g} ({count})."
        if x[false].min() > x[~false].max():
            return f"It is false only where {elements.name} >= {x[false].min():.6g} ({count})."
        size = np.abs(x)
        if size[false].min() > size[~false].max():
            return f"It is false only where |{elements.name}| >= {size[false].min():.6g} ({count})."
        if size[false].max() < size[~false].min():
            return f"It is false only where |{elements.name}| <= {size[false].max():.6g} ({count})."
    return f"It is false at {count}, first at {next(_named(elements, false))}."


def _named(elements: Elements, false: np.ndarray) -> Iterator[str]:
    for index in np.argwhere(false):
        position = tuple(int(i) for i in index)
        actual, right = elements.actual[position] + 0.0, elements.right[position] + 0.0  # no -0
        yield f"{elements.name}{list(position)} ({actual:.6g} in place of {right:.6g})"


def _digits(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the digits that agree, of a solution that is not exact."""
    error = max(
        largest(each.actual - each.right) / largest(each.right) for each in elements.at_point
    )
    if error <= 1e-2:
        digits = int(-np.log10(error))
        text = f"It agrees to {digits} digits: an approximate solve, a small term left out, or "
        yield Hypothesis(f"{text}rounding?", lambda sample: True)


def _axes(axes: Sequence[int]) -> str:
    if len(axes) == 1:
        return f"axis {axes[0]}"
    return f"axes {', '.join(map(str, axes))}"


def in_words(names: Any) -> str:
    """Return names as a list in words."""
    names = list(names)
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


FAMILIES: tuple[Callable[[Elements], Iterator[Hypothesis]], ...] = (
    *(_zero, _ratio, _of_complex, _of_outputs, _permuted, _summed, _permuted_upstream, _parts),
    *(_factors, _quadratic, _softmax, _centred, _offset, _terms, _left_out, _where, _held),
    *(_approximations, _digits),
)


# The upstream gradient -----------------------------------------------------------------------

OfUpstream = Callable[[np.ndarray, np.ndarray], tuple[Any, Any, Any]]
"""What a gradient is for none, twice and minus an upstream, of what it is for none and for one."""

OF_UPSTREAMS: tuple[tuple[str, OfUpstream], ...] = (
    (
        "It is the same for every upstream: was the product with it forgotten?",
        lambda none, once: (once, once, once),
    ),
    (
        "It is affine in the upstream: where this is zero, the gradient is {constant:.6g} and not "
        "0. A term of it lacks the product with the upstream.",
        lambda none, once: (none, 2 * once - none, 2 * none - once),
    ),
    (
        "It grows with the square of the upstream: is there a second product with it?",
        lambda none, once: (0 * once, 4 * once, once),
    ),
    (
        "It depends on the absolute value of the upstream: the sign of this is lost.",
        lambda none, once: (0 * once, 2 * once, once),
    ),
    (
        "It depends on the sign of the upstream only, or divides by its size.",
        lambda none, once: (0 * once, once, -once),
    ),
)


def explain_upstreams(
    none: np.ndarray, once: np.ndarray, twice: np.ndarray, minus: np.ndarray
) -> str | None:
    """Return the first sentence that explains gradients for multiples of an upstream."""
    actual = (none, twice, minus)
    close = partial(np.allclose, rtol=1e-5, atol=1e-7 * largest(np.stack([once, twice, minus])))
    if close(none, 0.0) and close(twice, 2 * once) and close(minus, -once):
        return None
    for words, of in OF_UPSTREAMS:
        if all(map(close, actual, of(none, once))):
            return words.format(constant=np.ravel(none)[np.argmax(np.abs(none))])
    return None
