"""Hypotheses about wrong rules: the gradient that a rule returns if it is wrong in one way.

A family is a function of the elements of a gradient; it yields hypotheses, the simplest first. A
hypothesis explains a wrong gradient if what it says is true of each element, at each point, and for
a second upstream gradient. To add one, yield it from a family, or add a family to `FAMILIES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from .._core.wording import in_words
from .elements import NOTHING, Elements
from .operations import ORDINALS
from .problem import can_broadcast, largest
from .rewrite import (
    SourceCode,
    Written,
    add_transpose,
    captured,
    change_axis,
    change_output,
    conjugate_factor,
    literals,
    partner,
    replace_number,
    reverse_cumsum,
    rewrite_gradient,
    scale_gradient,
    sum_means,
    transpose_matrix,
)

MAX_NAMED = 3  # elements to name
MAX_ERROR = 0.02  # of a rounded constant
MAX_SHIFT = 32  # positions that elements may be shifted by
LEFT_OUT = "Does the rule leave out a sample of a batch?"

Fix = Callable[[SourceCode, str, int], None]
_close: Any = partial(np.isclose, rtol=1e-5)


class Hypothesis(NamedTuple):
    """What is wrong, in words, and whether that is true of a sample of elements.

    `fitted` is how many numbers were fitted to the first sample. `fix` corrects the source of a
    function, given its name and the index of the gradient.
    """

    words: str
    fits: Callable[[Elements], bool]
    fitted: int = 0
    fix: Fix | None = None


def gives(
    words: str, predict: Callable[[Elements], Any], fitted: int = 0, fix: Fix | str | None = None
) -> Hypothesis:
    """Return the hypothesis that the rules return what `predict` makes of a sample.

    A `fix` that is a string is a pattern for `rewrite_gradient`.
    """
    if isinstance(fix, str):
        fix = partial(rewrite_gradient, pattern=fix)
    return Hypothesis(words, lambda sample: sample.match_actual(predict(sample)), fitted, fix)


def explain(elements: Elements) -> Hypothesis | None:
    """Return the first hypothesis that explains every element; None without one."""
    samples = elements.samples
    if not largest(elements.expected):
        return None
    is_close = all(sample.match(sample.actual) for sample in samples)
    count = sum(int(np.isfinite(sample.expected).sum()) for sample in samples)
    with np.errstate(all="ignore"):
        for family in (_approximations,) if is_close else FAMILIES:
            for hypothesis in family(elements):
                if count > hypothesis.fitted and all(map(hypothesis.fits, samples)):
                    return hypothesis
    return None


def times_correct(ratio: float) -> str:
    """Return words for a multiple of the correct gradient."""
    if _close(ratio, -1.0):
        return "The sign is wrong."
    return f"It is {ratio:.6g} times the correct gradient."


# One factor ----------------------------------------------------------------------------------


def _zero(elements: Elements) -> Iterator[Hypothesis]:
    yield Hypothesis("It is always 0.", lambda sample: not sample.actual.any())


def _ratio(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a constant ratio."""
    ratio = _fitted_ratio(elements, lambda sample: sample.expected)
    if ratio is None or abs(ratio) < elements.tolerance:
        return
    if np.isclose(ratio, 1.0, rtol=elements.tolerance):  # few elements are wrong
        return
    words, fix = f"It is {ratio:.6g} times the correct gradient.", None
    if isinstance(ratio, complex):
        yield from _of_complex(elements)
    else:
        words, fix = _meaning_of_ratio(elements, ratio)
        if _is_chance(elements, ratio) and words == times_correct(ratio):
            return  # any two numbers have a ratio, and this may be another for other arguments
    yield gives(words, lambda sample: ratio * sample.expected, 1, fix)


CONSTANTS: tuple[tuple[str, str, float], ...] = (
    ("the square root of 2", "2.0**0.5", np.sqrt(2.0)),
    ("the square root of pi", "np.sqrt(np.pi)", np.sqrt(np.pi)),
    ("the square root of 2 pi", "np.sqrt(2.0 * np.pi)", np.sqrt(2.0 * np.pi)),
    ("pi", "np.pi", np.pi),
    ("2 pi", "2.0 * np.pi", 2.0 * np.pi),
    ("180 / pi", "180.0 / np.pi", 180.0 / np.pi),
    ("the logarithm of 2", "np.log(2.0)", np.log(2.0)),
    ("the logarithm of 10", "np.log(10.0)", np.log(10.0)),
    ("the square root of 2 / pi", "np.sqrt(2.0 / np.pi)", np.sqrt(2.0 / np.pi)),
    ("2 over the square root of pi", "2.0 / np.sqrt(np.pi)", 2.0 / np.sqrt(np.pi)),
    ("e", "np.e", np.e),
)


def _meaning_of_ratio(elements: Elements, ratio: float) -> tuple[str, Fix | str | None]:
    """Return words for a ratio, and a correction by the only thing that equals it."""
    text, written = times_correct(ratio), elements.read()
    matches = _matching(ratio, _own_numbers(written))
    if matches:  # it stands in the function
        words, fix = matches[0]
        return _name_ratio(text, ratio, words), fix
    if _is_product(ratio, [*written.used, *written.numbers.values()]):
        return text, None  # a constant would be right for the values of these numbers alone
    constants = ((number, words, f"({code})") for words, code, number in CONSTANTS)
    matches = _matching(ratio, _named_numbers(elements, written)) or _matching(ratio, constants)
    question = _question_about_means(elements, ratio)
    is_chance = np.isclose(ratio, 2.0) and matches and matches[0][0] in elements.others
    if question:
        text = f"{text} {question}"
    elif is_chance:  # a lost or doubled 2 is commoner than a factor that happens to be 2
        return f"{text} {matches[0][0]} is 2, too.", partial(scale_gradient, ratio=2.0)
    elif matches and matches[0][0]:
        text = _name_ratio(text, ratio, matches[0][0])
    sizes = [*elements.x.shape, elements.x.size, *elements.upstream.shape]
    for value in elements.others.values():
        sizes += value.shape
    names_sizes = written.names_sizes or elements.runs("mean")
    if len(matches) == 1:
        return text, matches[0][1]
    if not matches and not question and not written.gradient_names_sizes:
        for power in (2.0, 3.0, 4.0, 0.5):  # of the derivatives of powers
            for number, _, code in _sizes(elements, written):
                if _close(ratio * power, number):
                    text = (
                        f"{text[:-1]}, as if a factor {power:g} and a division by {number} were "
                        f"missing (a mean over {number} elements)."
                    )
                    named = [name for name, n in written.numbers.items() if n == power]
                    if named:  # an exponent, for example
                        return text, f"({named[0]}) * gradient / {code}"
                    return text, partial(_divide, code=code, power=power)
    counts = [*elements.upstream.shape, elements.upstream.size]
    averages = written.gradient_names_sizes
    if averages and any(count > 1 and _close(ratio * count, 1.0) for count in counts):
        return text, sum_means  # if the rule averages
    is_size = names_sizes and any(_close(size, (ratio, 1.0 / ratio)).any() for size in sizes)
    return text, None if matches or is_size else partial(scale_gradient, ratio=ratio)


def _name_ratio(text: str, ratio: float, words: str) -> str:
    return f"{text} The value of {words} is {ratio:.6g}."


def _own_numbers(written: Written) -> list[tuple[float, str, str]]:
    """Return the numbers that stand in the function, with words and code."""
    numbers = ((number, code, f"({code})") for code, number in written.numbers.items())
    return [row for row in numbers if abs(row[0]) not in (0.0, 1.0)]


def _matching(ratio: float, numbers: Iterable[tuple[float, str, str]]) -> list[tuple[str, str]]:
    """Return words and patterns of the numbers that a ratio, or its reciprocal, equals."""
    matches = []
    for number, words, code in numbers:
        if _close(ratio, number):
            matches.append((words, f"gradient / {code}"))
        elif _close(ratio * number, 1.0):
            below = f"({words})" if " " in words else words
            matches.append((words and f"1 / {below}", f"gradient * {code}"))
    return matches


def _is_product(ratio: float, numbers: list[float]) -> bool:
    """Return whether a ratio is a number, or the product of two, or of their reciprocals."""
    powers = [power for number in numbers if number for power in (number, 1.0 / number)]
    own = [power for power in powers if abs(power) != 1.0]
    return any(_close(ratio, a * b) for a in own for b in [1.0, *own])


def _divide(source: SourceCode, name: str, index: int, code: str, power: float) -> None:
    scale_gradient(source, name, index, 1.0 / power)
    rewrite_gradient(source, name, index, f"gradient / {code}")


def _sizes(elements: Elements, written: Written) -> Iterator[tuple[float, str, str]]:
    """Yield the sizes of axes that the outputs do not have, if the function names any."""
    shape, x = elements.x.shape, elements.name
    is_less = 0 < elements.outputs.size < elements.x.size
    if is_less and (written.names_sizes or elements.runs("mean")):
        codes = [f"{x}.shape[{axis}]" for axis in range(len(shape))]
        for size, code in zip(shape, codes, strict=True):
            if size > 1:
                yield size, "", code
        others = {**captured(elements.function), **elements.others}.items()
        arrays = [(name, array) for name, array in others if isinstance(array, np.ndarray)]
        axes = {f"{name}.shape[{k}]": n for name, a in arrays for k, n in enumerate(a.shape)}
        yield from ((n, "", code) for code, n in axes.items() if n > 1 and n not in shape)
        if len(shape) > 1 and elements.outputs.size == 1 and elements.x.size not in axes.values():
            yield elements.x.size, "", f"({' * '.join(codes)})"


def _named_numbers(elements: Elements, written: Written) -> Iterator[tuple[float, str, str]]:
    """Yield numbers that a ratio may be, with words (none for sizes) and code."""
    for name, value in elements.others.items():
        number = float(np.real(value.ravel()[0])) if value.size == 1 else 0.0
        if number and abs(number) != 1.0:
            yield number, name, name
            yield number**2, f"{name}**2", f"{name}**2"
        if number > 0.0 and number != 1.0:
            yield np.log(number), f"tf.math.log({name})", f"tf.math.log({name})"
    yield from _sizes(elements, written)


def _question_about_means(elements: Elements, ratio: float) -> str:
    """Return a question if the ratio is that of a mean and a sum, or of means over other axes."""
    count = max(ratio, 1 / ratio) if ratio > 0 else 0.0
    size = elements.x.size // elements.outputs.size if elements.outputs.size else 0
    has_mean = elements.runs("mean")
    if size <= 1 or not (has_mean or elements.runs("sum") or elements.runs("adjoint")):
        return ""
    if _close(count, size):
        if ratio > 1:
            missing = f"Does the rule lack a division by {size}, as for a mean over {size} elements"
            return f"{missing}, or does it have an extra factor of {size}?"
        missing = f"Does the rule take a mean over {size} elements instead of a sum"
        return f"{missing}, or does it lack a factor of {size}?"
    is_two = np.isclose(ratio, (0.5, 2.0)).any()  # a lost or doubled 2 is commoner
    for a, b in permutations(elements.x.shape, 2) if has_mean and not is_two else ():
        if a != b and _close(ratio, a / b):
            return f"Does the rule divide by {b}, where a mean over {a} elements divides by {a}?"
    return ""


def _fitted_ratio(elements: Elements, of: Callable[[Elements], Any]) -> Any:
    """Return how many times a multiple of what `of` returns the rules returned, or None."""
    samples = elements.samples
    predicted = [np.ravel(of(sample)) for sample in samples]
    actual = np.concatenate([np.ravel(sample.actual) for sample in samples])
    if sum(map(len, predicted)) != len(actual):
        return None
    expected = np.concatenate(predicted)
    finite = np.isfinite(expected)
    square = np.vdot(expected[finite], expected[finite])
    ratio = np.vdot(expected[finite], actual[finite]) / (square or np.nan)
    if not ratio or not np.isfinite(ratio):
        return None
    return float(np.real(ratio)) if np.isclose(ratio, np.real(ratio)) else complex(ratio)


def _by_sign(elements: Elements) -> Iterator[Hypothesis]:
    """Yield two ratios: one for positive, one for negative elements."""
    if not np.isrealobj(elements.x) or not np.isrealobj(elements.expected):
        return
    values, expected, actual = (
        np.concatenate([getattr(sample, field).ravel() for sample in elements.samples])
        for field in ("x", "expected", "actual")
    )
    ratios = []
    for mask in (values > 0.0, ~(values > 0.0)):
        if mask[: elements.x.size].sum() < 2:  # any single element has a ratio
            return
        used = mask & np.isfinite(expected)
        ratios.append(np.vdot(expected[used], actual[used]) / np.sum(expected[used] ** 2))
    above, below = map(float, ratios)
    if np.isfinite(above * below):
        x = elements.name
        yield gives(
            f"It is {above:.6g} times the correct gradient where {x} > 0, and {below:.6g} times "
            f"the correct gradient where {x} < 0.",
            lambda sample: np.where(sample.x > 0.0, above, below) * sample.expected,
            fitted=2,
        )


# A factor or a term with a name --------------------------------------------------------------

OF_ARGUMENTS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("{x}", "{x}", lambda x: x),
    ("{x}**2", "{x}**2", lambda x: x * x),
    ("the square root of {x}", "tf.sqrt({x})", np.sqrt),
    ("the sign of {x}", "tf.sign({x})", np.sign),
)
OF_OUTPUTS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("the output", "output", lambda y: y),
    ("1 - the output", "(1.0 - output)", lambda y: 1.0 - y),
    ("1 + the output", "(1.0 + output)", lambda y: 1.0 + y),
    ("the output's square", "output**2", lambda y: y * y),
)
OF_VARIABLES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("{v}", lambda v: v),
    ("{v}**2", lambda v: v * v),
    ("(1.0 - {v})", lambda v: 1.0 - v),
    ("(1.0 + {v})", lambda v: 1.0 + v),
)

Named = tuple[str, str, Callable[[Elements], Any]]  # words, code, and the values for a sample


def _named_arguments(elements: Elements) -> Iterator[Named]:
    """Yield simple functions of the arguments and of the output."""
    x = elements.name
    for name, value in {x: elements.x, **elements.others}.items():
        if name == x or (value.shape in (elements.x.shape, ()) and np.isrealobj(value)):
            for words, code, of in OF_ARGUMENTS:

                def values(sample: Elements, of: Any = of, name: str = name) -> Any:
                    return of(sample.x if name == x else sample.others[name])

                yield words.format(x=name), code.format(x=name), values
    if elements.outputs.size and elements.outputs.shape in (elements.x.shape, ()):
        for words, code, of in OF_OUTPUTS:
            yield words, code, lambda sample, of=of: of(sample.outputs)


def _named_variables(elements: Elements) -> Iterator[Named]:
    """Yield simple functions of the function's own variables that fit the argument's shape."""
    is_smooth = bool(np.isfinite(elements.expected).all())
    for name, value in elements.derivation.variables.items() if is_smooth else ():
        if name == elements.name or not can_broadcast(value.shape, elements.x.shape):
            continue
        for code, of in OF_VARIABLES:

            def values(sample: Elements, name: str = name, of: Any = of) -> Any:
                return of(sample.derivation.variables.get(name, np.nan))

            text = code.format(v=name)
            words = text[1:-1] if text.startswith("(") else text
            yield f"`{words}`", text if name.isidentifier() else f"({text})", values


def _factors(
    elements: Elements, named: Callable[[Elements], Iterator[Named]]
) -> Iterator[Hypothesis]:
    """Yield a named factor that is missing, or one too many."""
    if sum(sample.actual.size for sample in elements.samples) < 3:
        return
    for words, code, factor in named(elements):
        for power, operator in ((-1, "*"), (1, "/")):

            def scaled(sample: Elements, factor: Any = factor, power: int = power) -> Any:
                return sample.expected * np.asarray(factor(sample), sample.expected.dtype) ** power

            ratio = _fitted_ratio(elements, scaled)
            if isinstance(ratio, float) and power < 0 and not _is_simple(ratio):
                is_it = elements.match_actual(ratio * scaled(elements))
                own = _own_numbers(elements.read()) if is_it else ()
                for _, pattern in _matching(abs(ratio), own):
                    sign, rest = "-" * (ratio < 0.0), pattern.removeprefix("gradient")
                    rest = rest.replace("(", "", 1)[:-1] if rest.count("(") == 1 else rest
                    yield gives(
                        f"It must be multiplied by {sign}{words}{rest}.",
                        lambda sample, r=ratio, of=scaled: r * of(sample),
                        fitted=2,
                        fix=f"gradient * {sign}{code}{rest}",
                    )
            if not _is_simple(ratio):
                continue
            text = f"It must be {'multiplied' if power < 0 else 'divided'} by {words}."
            fix = f"gradient {operator} {code}"
            if not np.isclose(ratio, 1.0):
                more = f"it has a constant factor of {ratio:.6g}"
                more = "the sign is wrong" if np.isclose(ratio, -1.0) else more
                text += f" Besides, {more}."
                fix = f"gradient * {1.0 / ratio:.9g} {operator} {code}"
            yield gives(text, lambda sample, r=ratio, of=scaled: r * of(sample), 2, fix)


def _missing_terms(
    elements: Elements, named: Callable[[Elements], Iterator[Named]]
) -> Iterator[Hypothesis]:
    """Yield a named term of the factor of the upstream gradient that is missing."""
    upstream = elements.upstream
    if not upstream.size or upstream.shape not in (elements.x.shape, ()):
        return
    if np.iscomplexobj(elements.expected) or not np.isfinite(elements.expected).all():
        return
    if sum(sample.actual.size for sample in elements.samples) < 3:
        return
    for _, code, term in named(elements):

        def added(sample: Elements, term: Any = term) -> Any:
            return sample.upstream * np.asarray(term(sample), sample.expected.dtype)

        terms = np.ravel(added(elements) + np.zeros(elements.x.shape))
        gap = np.ravel(elements.expected - elements.actual)
        ratio = float(np.vdot(terms, gap) / (np.vdot(terms, terms) or np.nan))
        if not _is_simple(ratio):
            continue
        sign, size = "-" if ratio < 0 else "", abs(ratio)
        times = "" if np.isclose(size, 1.0) else f"{size:.6g} * "
        yield gives(
            f"It lacks the term `{sign}{times}dy * {code}`.",
            lambda sample, r=ratio, of=added: sample.expected - r * of(sample),
            fitted=2,
            fix=f"gradient {'-' if ratio < 0 else '+'} dy * {times}{code}",
        )


def _is_chance(elements: Elements, ratio: float) -> bool:
    """Return whether a ratio is that of two numbers that depend on larger arguments."""
    is_alone = elements.x.size == 1 and any(x.size > 1 for x in elements.others.values())
    return is_alone and not _is_simple(ratio)


def _is_simple(ratio: Any) -> bool:
    """Return whether a number is a fraction of small integers."""
    if not isinstance(ratio, float) or not np.isfinite(ratio):
        return False
    near = Fraction(ratio).limit_denominator(6)
    return 0 < abs(near) <= 12 and bool(np.isclose(ratio, float(near), rtol=1e-6))


def _approximations(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a constant with too few digits, first those that are written in the function."""
    near = _fitted_ratio(elements, lambda sample: sample.expected)
    if not isinstance(near, float) or abs(near - 1.0) > MAX_ERROR:
        return
    exact = [(code, number) for _, code, number in CONSTANTS]
    exact += [
        (f"1 / {code}" if code.startswith("np.") else f"1 / ({code})", 1.0 / number)
        for code, number in exact
    ]
    own = [(number, *pair) for number in literals(elements.function) for pair in exact]
    if not elements.match_actual(near * elements.expected):
        for number, code, correct in own:
            error = abs(number / correct - 1.0)
            if 1e-9 < error < 1e-3:
                yield Hypothesis(
                    f"Is the number {number:.9g} meant to be {code} = {correct:.9g}? This "
                    "would explain the error.",
                    lambda sample, error=error: (
                        largest(sample.actual - sample.expected)
                        <= 10.0 * error * largest(sample.expected)
                    ),
                    fix=partial(replace_number, number=number, code=code),
                )
        return
    ratio = _fitted_ratio(elements, lambda sample: sample.derivation.gradient)
    for digits in range(2, 8):
        own += [(float(f"{number:.{digits}g}"), code, number) for code, number in exact]
    for number, code, correct in own if isinstance(ratio, float) else ():
        for power in (1, -1, 2, -2, 0.5, -0.5):
            error = (number / correct) ** power - 1.0
            if abs(error) > 0.0 and abs(ratio - 1.0 - error) <= 1e-3 * abs(error):
                yield Hypothesis(
                    f"It is {ratio:.9g} times the correct gradient. Is the number {number:.9g} "
                    f"meant to be {code} = {correct:.9g}?",
                    lambda sample: np.allclose(
                        sample.actual, ratio * sample.derivation.gradient, 1e-11, 0.0
                    ),
                    fitted=1,
                    fix=partial(replace_number, number=number, code=code),
                )


def _of_complex(elements: Elements) -> Iterator[Hypothesis]:
    if not np.iscomplexobj(elements.actual):
        return
    yield gives(
        "It is the complex conjugate of the correct gradient.",
        lambda sample: np.conj(sample.expected),
        fix="tf.math.conj(gradient)",
    )
    if elements.upstream.shape == elements.actual.shape:
        yield gives(
            "The rule must conjugate the factor that it multiplies dy by.",
            lambda sample: sample.upstream * np.conj(sample.expected / sample.upstream),
            fix=conjugate_factor,
        )
    if elements.slopes.size:
        yield gives(
            "The rule multiplies dy by the transpose of the Jacobian (of a matrix, for example). "
            "It must also conjugate the Jacobian.",
            lambda sample: (sample.slopes.T @ sample.upstream.ravel()).reshape(sample.x.shape),
            fix="tf.math.conj(gradient)" if not np.imag(elements.upstream).any() else None,
        )
    yield gives(
        "It is the real part of the correct gradient.", lambda sample: np.real(sample.expected) + 0j
    )


# Other positions -----------------------------------------------------------------------------


def _permuted(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a gradient whose elements stand at other positions."""
    expected, shape = elements.expected, elements.actual.shape
    if expected.size < 2 or expected.size != elements.actual.size:
        return
    yield from _transposed(elements)
    for axis in range(expected.ndim):
        along = f" along axis {axis}" if expected.ndim > 1 else ""
        yield gives(
            f"Its elements are in reverse order{along}.",
            lambda sample, axis=axis: np.flip(sample.expected, axis),
            fix=f"tf.reverse(gradient, [{axis}])",
        )
        for shift in range(1, min(shape[axis], MAX_SHIFT + 1)):
            way = shift if 2 * shift <= shape[axis] else shift - shape[axis]
            yield gives(
                f"Its elements are shifted by {way:+d}{along}.",
                lambda sample, axis=axis, way=way: np.roll(sample.expected, way, axis),
                fix=f"tf.roll(gradient, {-way}, {axis})",
            )
    if np.isrealobj(expected) and np.isfinite(expected).all() and np.ptp(expected):
        source = np.empty(expected.size, int)
        source[np.argsort(elements.actual, axis=None)] = np.argsort(expected, axis=None)
        yield gives(
            "Its elements are correct, but in another order.",
            lambda sample: np.ravel(sample.expected)[source].reshape(shape),
        )


def _transposed(elements: Elements) -> Iterator[Hypothesis]:
    expected, shape = elements.expected, elements.actual.shape
    for axes in permutations(range(expected.ndim)) if expected.ndim > 1 else ():
        moved = np.transpose(expected, axes).shape
        if axes == tuple(range(expected.ndim)):
            continue
        words, back = "It is the transpose of the correct gradient.", np.argsort(axes)
        fix = "tf.transpose(gradient)" if expected.ndim == 2 and moved == shape else None
        if moved != shape:
            words = "It is the transpose of the correct gradient, in the wrong shape."
        yield gives(
            words,
            lambda sample, axes=axes: np.transpose(sample.expected, axes).reshape(shape),
            fix=fix,
        )
        if expected.ndim == 2 and moved == shape:
            yield Hypothesis(
                "It is not symmetric. The mean of this matrix and its transpose is the correct "
                "gradient.",
                lambda sample: sample.match((sample.actual + sample.actual.T) / 2.0),
                fix=partial(rewrite_gradient, pattern="(gradient + tf.transpose(gradient)) / 2.0"),
            )
        yield gives(
            words,
            lambda sample, back=back, moved=moved: np.transpose(
                sample.expected.reshape(moved), back
            ),
            fix=fix,
        )


def _permuted_upstream(elements: Elements) -> Iterator[Hypothesis]:
    """Yield an upstream gradient that is permuted as the outputs are, and not back."""
    if not _is_square(elements) or np.ptp(elements.upstream) == 0:
        return
    if not (np.count_nonzero(elements.jacobian, axis=0) == 1).all():
        return
    slopes = elements.jacobian.sum(axis=0).reshape(elements.actual.shape)
    upstream = (elements.actual / slopes).ravel()
    source = np.empty(upstream.size, int)
    source[np.argsort(upstream)] = np.argsort(elements.upstream.ravel())
    yield gives(
        "The rule permutes the elements of the upstream gradient as the function permutes "
        "those of its argument. It needs the inverse permutation.",
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
    """Yield a sum over another axis than the one that the argument is broadcast over."""
    if not _is_linear(elements):
        return
    shape = elements.outputs.shape
    sets = [
        axes
        for axes in _sets_of_axes(len(shape))
        if np.prod([n for k, n in enumerate(shape) if k not in axes]) == elements.actual.size
    ]

    def summed(sample: Elements, axes: tuple[int, ...]) -> np.ndarray:
        parts = sample.upstream * sample.jacobian.sum(axis=1).reshape(shape)
        return parts.sum(axis=axes).reshape(sample.actual.shape)

    right = [axes for axes in sets if elements.match(summed(elements, axes))]
    for axes in sets:
        if axes not in right:
            instead = f" instead of {_axes(right[0])}" if right else ""
            yield gives(
                f"It is the sum over {_axes(axes)}{instead or ', which is not the right one'}.",
                partial(summed, axes=axes),
                fix=_other_axis(axes, right[0]) if right else None,
            )


def _parts(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a part of the Jacobian, or its transpose, in place of the whole."""
    if not _is_square(elements):
        return
    text = "The rule multiplies by the Jacobian, not by its transpose."
    fix: Fix = transpose_matrix
    is_small = elements.x.size <= 256 and elements.x.shape == elements.outputs.shape
    for axis in range(elements.x.ndim) if is_small else ():
        ones = np.cumsum(np.eye(elements.x.size).reshape(-1, *elements.x.shape), axis + 1)
        if np.allclose(elements.jacobian, ones.reshape(elements.x.size, -1).T):
            text = f"The gradient of a cumulative sum must be summed in reverse, along axis {axis}."
            fix = reverse_cumsum
    yield gives(
        text,
        lambda sample: (sample.jacobian @ sample.upstream.ravel()).reshape(sample.x.shape),
        fix=fix,
    )
    yield gives(
        "It has only the diagonal of the Jacobian: each output depends on other elements of "
        f"{elements.name} as well.",
        lambda sample: (np.diag(sample.jacobian) * sample.upstream.ravel()).reshape(sample.x.shape),
    )


def _left_out(elements: Elements) -> Iterator[Hypothesis]:
    """Yield an index of the outputs, an example of a batch perhaps, that the rule leaves out."""
    if not _is_linear(elements) or elements.outputs.shape == elements.x.shape:
        return
    for axis, size in enumerate(elements.outputs.shape):
        for index in (size - 1, *range(size - 1)) if 1 < size <= MAX_SHIFT else ():
            mask = np.ones(elements.outputs.shape)
            mask[(slice(None),) * axis + (index,)] = 0.0
            yield gives(
                f"It lacks the part that comes from output[{':, ' * axis}{index}]. {LEFT_OUT}",
                lambda sample, mask=mask: (
                    sample.jacobian.T @ (mask * sample.upstream).ravel()
                ).reshape(sample.x.shape),
            )


def _through(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a wrong multiple of the part of the gradient that leads through one result."""
    if not np.isfinite(elements.expected).all():
        return
    whole, shares, _ = elements.derivation
    if not elements.match(whole):
        return
    x = elements.name
    wrong_multiples: list[Hypothesis] = []
    for k, share in enumerate(shares):
        if not largest(share.gradient):
            continue

        def changed(sample: Elements, extra: float, k: int = k) -> np.ndarray:
            parts = sample.derivation.shares
            return sample.expected + extra * parts[k].gradient if k < len(parts) else NOTHING

        if share.index is not None:
            what = f"{share.what[:-1]}[{share.index}]`"
            words = f"It lacks the part that comes from {what} ({share.site}). {LEFT_OUT}"
        else:
            noun = share.what if share.what[0] == "`" else "this value"
            words = f"The rule treats {share.what} ({share.site}) as a constant, but {noun} "
            words += f"depends on {x}."
        yield gives(words, partial(changed, extra=-1.0), fix=add_transpose)
        gap, part = elements.actual - whole, share.gradient
        extra = np.real(np.vdot(part, gap) / np.vdot(part, part))
        if share.index is not None or not np.isfinite(extra):
            continue
        term = f"term from differentiating {share.what} ({share.site})"
        words = f"The {term} is {1.0 + extra:.6g} times the correct one."
        if _close(extra, -2.0):  # as if two terms were missing that are the same
            words = f"The {term} seems to have the wrong sign: the error is -2 times this term."
        wrong_multiples.append(gives(words, partial(changed, extra=float(extra)), 1))
    yield from wrong_multiples


def _quadratic(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a quadratic form, or its quotient by another, whose rule takes a symmetric matrix."""
    if not _is_linear(elements) or elements.outputs.size != 1 or elements.x.size < 2:
        return

    def has_degree(sample: Elements, degree: float) -> bool:
        """Return whether the gradients are those of a form of a degree, along x (Euler)."""
        terms = sample.x * (sample.actual - sample.expected)
        size = largest(sample.x) * largest(sample.expected) * sample.x.size
        product = degree * sample.outputs.item() * sample.upstream.item()
        is_of_degree = abs(np.vdot(sample.x, sample.actual) - product) <= sample.tolerance * size
        return is_of_degree and abs(terms.sum()) <= 0.01 * np.abs(terms).sum()

    x = elements.name
    texts = {
        2.0: f"For a matrix A, the gradient of {x}^T A {x} is (A + A^T) {x}. This is 2 A {x} only "
        "if A is symmetric.",
        0.0: f"Along {x} it is 0, as for functions that do not change if {x} is multiplied by a "
        "positive number. Does the rule use a matrix A where it needs (A + A^T) / 2?",
    }
    has_matrix = elements.runs("matmul") or elements.runs("matvec")
    for degree, text in texts.items() if has_matrix else ((2.0, texts[2.0]),):
        yield Hypothesis(
            f"The gradient is right along {x}, and wrong in other directions. {text}",
            partial(has_degree, degree=degree),
            fix=partial(add_transpose, ratio=degree, is_mean=not degree),
        )


# Means, norms and terms ----------------------------------------------------------------------

Terms = tuple[int, int]  # whether there is the term of the mean, and that of the variance


def _sets_of_axes(ndim: int) -> list[tuple[int, ...]]:
    return [axes for k in range(ndim) for axes in combinations(range(ndim), k + 1)]


def _other_axis(wrong: tuple[int, ...], right: tuple[int, ...]) -> Any:
    is_single = len(wrong) == len(right) == 1
    return partial(change_axis, old=wrong[0], new=right[0]) if is_single else None


def _centred(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the mean or the variance that the rule of a normalization holds constant.

    With n elements that are normalized together, the Jacobian of a function of x minus its mean is
    K (I - 1 1^T / n); of a quotient by the deviation, it is K (I - 1 1^T / n - y y^T / n); K is
    diagonal.
    """
    y = elements.outputs
    if not _is_linear(elements) or y.shape != elements.x.shape:
        return

    def pulled(sample: Elements, axes: tuple, own: Terms, kept: Terms) -> np.ndarray:
        """Return the gradient of a function with its `own` terms, if only some are `kept`."""
        count, y = np.prod([sample.x.shape[axis] for axis in axes]), sample.outputs
        share = 1.0 - (own[0] + own[1] * y**2) / count
        scaled = np.diag(sample.jacobian).reshape(y.shape) / share * sample.upstream
        mean, scale = (np.mean(v, axis=axes, keepdims=True) for v in (scaled, scaled * y))
        return scaled - kept[0] * mean - kept[1] * scale * y

    for axes in _sets_of_axes(y.ndim):
        is_centred = np.abs(np.mean(y, axis=axes)).max() <= 1e-4 * largest(y)
        for what, own, kept in (
            ("the mean", (1, 0), (0, 0)),
            ("the variance" if is_centred else "the mean of the squares", (0, 1), (0, 0)),
            ("the mean", (1, 1), (0, 1)),
            ("the variance", (1, 1), (1, 0)),
            ("the mean and the variance", (1, 1), (0, 0)),
        ):
            whole = pulled(elements, axes, own, own)
            if np.isfinite(whole).all() and elements.match(whole):
                yield gives(
                    f"The rule does not differentiate {what} over {_axes(axes)} with respect to "
                    f"{elements.name}.",
                    partial(pulled, axes=axes, own=own, kept=kept),
                )
        mean = np.mean(elements.upstream, axis=axes, keepdims=True)
        is_centred = elements.match(elements.upstream - mean)
        for others in _sets_of_axes(y.ndim) if is_centred else ():
            if others != axes:
                yield gives(
                    f"The rule subtracts the mean over {_axes(others)}, but the function "
                    f"subtracts the mean over {_axes(axes)}.",
                    lambda sample, axes=others: (
                        sample.upstream - np.mean(sample.upstream, axis=axes, keepdims=True)
                    ),
                    fix=_other_axis(others, axes),
                )


def _offset(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a constant: the rule itself, or what it adds."""
    is_known = elements.outputs.size and np.isfinite(elements.expected).all()
    if not is_known or elements.upstream.shape not in (elements.actual.shape, ()):
        return
    slope = np.ravel(elements.actual / elements.upstream)[0]
    words = f"It is {slope:.6g} times the upstream gradient at every point."
    if not _is_chance(elements, float(np.real(slope))):
        yield gives(
            "It equals the upstream gradient everywhere." if np.isclose(slope, 1.0) else words,
            lambda sample: slope * sample.upstream,
            fitted=1,
        )
    offset = np.mean((elements.actual - elements.expected) / elements.upstream)
    size, is_more = abs(offset), offset > 0
    times = "" if np.isclose(size, 1.0) else f" * {size:.6g}"
    yield gives(
        f"It {'has the extra' if is_more else 'lacks the'} term `dy{times}`.",
        lambda sample: sample.expected + offset * sample.upstream,
        fitted=1,
        fix=f"gradient {'-' if is_more else '+'} dy{times}" if _is_simple(size) else None,
    )


def _terms(elements: Elements) -> Iterator[Hypothesis]:
    """Yield a term of a product rule that is missing, or a reciprocal."""
    if not elements.upstream.shape == elements.outputs.shape == elements.x.shape:
        return
    if (1 + len(elements.more)) * elements.x.size < 3:
        return
    x = elements.name
    other = partner(elements.read().value, x)
    has_product = any(map(elements.runs, ("multiply", "divide"))) and not elements.runs("where")
    if other is None:
        words = (
            f"It is dy * output / {x}. Does the rule treat the output as {x} times a constant, or "
            f"as {x} divided by a constant?"
        )
    else:
        words = f"The rule treats the {other[0]} `{other[1]}` as a constant."
    if other is not None or has_product:
        yield gives(words, lambda sample: sample.upstream * sample.outputs / sample.x)
    for sign, part in ((1, "factor"), (-1, "divisor")):
        yield gives(
            f"It lacks the term `{'-' * (sign < 0)}dy * output / {x}`, which comes from "
            f"differentiating the {part} {x} of the output.",
            lambda sample, sign=sign: (
                sample.expected - sign * sample.upstream * sample.outputs / sample.x
            ),
            fix=f"gradient {'+' if sign > 0 else '-'} dy * output / {x}",
        )
    yield gives(
        "The rule multiplies dy by the reciprocal of the correct factor.",
        lambda sample: sample.upstream**2 / sample.expected,
        fix="dy * dy / gradient",
    )


# Some elements -------------------------------------------------------------------------------


def _of_outputs(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the outputs whose gradients are wrong, if those of others are right."""
    false = [k for k, part in enumerate(elements.parts) if not part.match(part.actual)]
    if not 0 < len(false) < len(elements.parts):
        return
    which = in_words(ORDINALS[k] if k < len(ORDINALS) else f"{k + 1}th" for k in false)
    text = f"It is wrong only for the {which} output{'s' * (len(false) > 1)}."
    inside = explain(elements.parts[false[0]]) if len(false) == 1 else None
    fix = inside and inside.fix and partial(change_output, output=false[0], fix=inside.fix)
    yield Hypothesis(f"{text} {inside.words}" if inside else text, lambda sample: True, 0, fix)


def _where(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the positions of wrong elements, if these are telling or the same is true of all."""
    for hypothesis in _somewhere(elements):
        if re.search(r"only where|only at index|There (?!it is always 0)", hypothesis.words):
            yield hypothesis


def _somewhere(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the positions of wrong elements, if others are right."""
    false = np.any([_are_false(sample) for sample in elements.at_point], axis=0)
    count = int(false.sum())
    if not 0 < count < false.size:
        return
    text = _where_wrong(elements, false)
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
    if not np.isfinite(elements.expected).all():
        text = text.replace("It is wrong", "Apart from the kink, it is wrong", 1)
    if there:
        there = there.replace("The sign", "There the sign")
        text += f" {there.replace('It is', 'There it is')}"
    yield Hypothesis(text, lambda sample: True)


def _are_false(sample: Elements) -> np.ndarray:
    """Return where elements are wrong: beside a kink, differences are less accurate."""
    false, exact = ~sample.agree(sample.actual), sample.derivation.gradient
    if exact.shape != false.shape:
        return false
    is_near = np.isclose(exact, sample.expected, 1e-3, 1e-3 * largest(exact))
    return false & ~(is_near & np.isclose(sample.actual, exact, 1e-9, 1e-12 * largest(exact)))


def _where_wrong(elements: Elements, false: np.ndarray) -> str:
    comparable = int(np.isfinite(elements.expected).sum())  # at kinks there is no reference
    count = f"{int(false.sum())} of {comparable} elements"
    x, name = elements.x, elements.name
    ends = np.flatnonzero(false)[[0, -1]]
    is_block = x.ndim == 1 and 1 < false.sum() == 1 + np.ptp(ends)
    if is_block and len({*np.sign(np.diff(x))}) == 1:
        part = f"{name}[{ends[0]}:{ends[1] + 1}]"  # the values are sorted
        masks = [_are_false(s) for s in elements.samples if not np.array_equal(s.x, x)]
        if masks and false.sum() > MAX_NAMED and all(np.array_equal(m, false) for m in masks):
            return f"It is wrong only at {part} ({count})."
        count += f", {part}"
    values = np.concatenate([sample.x.ravel() for sample in elements.samples])
    is_wrong = np.concatenate([_are_false(sample).ravel() for sample in elements.samples])
    is_ordered = np.isrealobj(x) and bool(np.isfinite(values).all())
    for words, there in (
        ("is 0", values == 0), ("< 0", values < 0), ("> 0", values > 0), ("<= 0", values <= 0),
        (">= 0", values >= 0),
    ) if is_ordered else ():  # fmt: skip
        if np.array_equal(is_wrong, there):
            at = f", at {next(_named(elements, false))}" if false.sum() == 1 else ""
            return f"It is wrong only where {name} {words} ({count}){at}."
    for axis in range(false.ndim) if false.ndim > 1 else ():
        others = tuple(i for i in range(false.ndim) if i != axis)
        hit, whole = false.any(axis=others), false.all(axis=others)
        if hit.sum() == 1 and false.shape[axis] > 1 and np.array_equal(hit, whole):
            index = int(np.flatnonzero(hit)[0])
            return f"It is wrong only at index {index} of axis {axis} ({count})."
    if false.ndim == 2 and np.array_equal(false, ~np.eye(*false.shape, dtype=bool)):
        return f"It is wrong only off the diagonal ({count})."
    if false.sum() <= MAX_NAMED:
        return f"It is wrong only at {in_words(_named(elements, false))}."
    if is_ordered and min(false.sum(), (~false).sum()) > 1:
        errors = np.abs(elements.actual - elements.expected) / np.abs(elements.expected)
        text = "It is wrong only where"
        if errors[false].min() < 1e3 * elements.tolerance:  # others may be wrong by less
            text = f"It is wrong by more than {elements.tolerance:.0e} of its value where"
        for label, numbers in ((name, values), (f"|{name}|", np.abs(values))):
            wrong, right = numbers[is_wrong], numbers[~is_wrong]
            if wrong.max() < right.min():
                bounds = f"<= {wrong.max():.6g} ({count})", f">= {right.min():.6g}"
            elif wrong.min() > right.max():
                bounds = f">= {wrong.min():.6g} ({count})", f"<= {right.max():.6g}"
                bounds = bounds[0], bounds[1] if right.any() or label == name else "is 0"
            else:
                continue
            right_words = f", and right where {label} {bounds[1]}" * text.endswith("only where")
            return f"{text} {label} {bounds[0]}{right_words}."
    return f"It is wrong at {count}, first at {next(_named(elements, false))}."


def _named(elements: Elements, false: np.ndarray) -> Iterator[str]:
    is_product = _is_product_with_upstream(elements)
    pair = elements.actual, elements.expected
    gradients, correct = (array / elements.upstream for array in pair) if is_product else pair
    for index in np.argwhere(false):
        position = tuple(int(i) for i in index)
        got, expected = (f"{array[position] + 0.0:.6g}" for array in (gradients, correct))
        if is_product:
            dy = f"dy{list(position)}"
            times = {"0": "0", "1": dy, "-1": f"-{dy}"}
            got, expected = (times.get(text, f"{text} * {dy}") for text in (got, expected))
        yield f"{elements.name}{list(position)} (expected {expected}, got {got})"


def _is_product_with_upstream(elements: Elements) -> bool:
    """Return whether each element is a number times the same element of the upstream gradient."""
    samples = elements.at_point
    if len(samples) < 2 or elements.upstream.shape != elements.actual.shape:
        return False
    first, other = (
        [array / sample.upstream for array in (sample.actual, sample.expected)]
        for sample in samples[:2]
    )
    return np.allclose(first, other, 1e-5, 1e-7, equal_nan=True)


def _digits(elements: Elements) -> Iterator[Hypothesis]:
    """Yield the digits that agree, of a solution that is not exact."""
    error = max(
        largest(sample.actual - sample.expected) / largest(sample.expected)
        for sample in elements.at_point
    )
    if error <= 1e-2:
        yield Hypothesis(
            f"It is wrong by {error:.2g} of its value at most. Does the rule lack a small term, or "
            "use rounded numbers? Is a solver in the rule or in the function not accurate?",
            lambda sample: True,
        )


def _axes(axes: Sequence[int]) -> str:
    return f"{'axis' if len(axes) == 1 else 'axes'} {', '.join(map(str, axes))}"


FAMILIES: tuple[Callable[[Elements], Iterator[Hypothesis]], ...] = (
    *(_zero, _approximations, _ratio, _of_complex, _of_outputs),
    *(_permuted, _summed, _permuted_upstream, _parts),
    partial(_factors, named=_named_arguments),
    *(_quadratic, _centred, _offset, _terms, _left_out, _where, _by_sign),
    partial(_missing_terms, named=_named_arguments),
    _through,
    partial(_factors, named=_named_variables),
    partial(_missing_terms, named=_named_variables),
    *(_somewhere, _digits),
)


# The upstream gradient -----------------------------------------------------------------------

# the gradient for k times an upstream gradient, from those for none and for one, and k
OF_UPSTREAMS: dict[str, Callable[[np.ndarray, np.ndarray, float], Any]] = {
    "The gradient is the same for each upstream gradient. Does the rule lack a factor dy?": (
        lambda none, once, k: once
    ),
    "For dy = 0, {it} is {constant:.6g}, not 0. Does the rule have a term that is not multiplied "
    "by dy?": lambda none, once, k: none + k * (once - none),
    "The gradient grows with the square of dy. Does the rule multiply by dy twice?": (
        lambda none, once, k: k * k * once
    ),
    "The gradient depends on the absolute value of dy. Does the rule lose the sign of dy?": (
        lambda none, once, k: abs(k) * once
    ),
    "The gradient depends on the sign of dy only. Does the rule divide by the size of dy?": (
        lambda none, once, k: np.sign(k) * once
    ),
}


def explain_upstreams(gradients: dict[float, np.ndarray]) -> str | None:
    """Return the first sentence that explains gradients for multiples of an upstream."""
    none, once = gradients[0.0], gradients[1.0]
    close = partial(np.allclose, rtol=1e-5, atol=1e-7 * largest(np.stack([*gradients.values()])))
    if all(close(gradient, k * once) for k, gradient in gradients.items()):
        return None
    for words, of in OF_UPSTREAMS.items():
        if all(close(gradient, of(none, once, k)) for k, gradient in gradients.items()):
            it = "the largest element of the gradient" if none.size > 1 else "the gradient"
            return words.format(it=it, constant=np.ravel(none)[np.argmax(np.abs(none))])
    return None
