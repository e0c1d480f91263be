"""What the registry-driven tests run an operation on, read from its record alone."""

from __future__ import annotations

import warnings
import zlib
from typing import Any, NamedTuple

import numpy as np

import tinygrad_cg as tf
from tests.support.references import reference, takes
from tinygrad_cg import _ops as ops
from tinygrad_cg._core.kinds import is_complex, is_inexact
from tinygrad_cg._core.primitive import OPS, Primitive
from tinygrad_cg._core.tensor import Aval
from tinygrad_cg._ops import define
from tinygrad_cg._ops.composition import TENSORS

ELEMENTWISE_SHAPES = {
    1: [((2, 3),)],
    2: [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (3,)), ((), (4,)), ((4,), ())],
    3: [((2, 3), (2, 3), (2, 3)), ((2, 3), (3,), (2, 1)), ((4,), (4,), ())],
    4: [((2, 3), (2, 3), (2, 3), (2, 3)), ((2, 3), (3,), (3,), (3,)), ((2, 3), (1, 3), (2, 1), ())],
}
ops.load_all()  # operations that are loaded later are tried, too
CLOSE = 0.05  # random operands keep this distance from the points that a record avoids


class Example(NamedTuple):
    """One call of an operation: float64 operands, and its parameters."""

    primitive: Primitive
    operands: tuple[np.ndarray, ...]
    params: dict[str, Any]
    fixed: frozenset[int]  # the operands that are not drawn, such as indices

    def run(self, *operands: np.ndarray) -> np.ndarray:
        """The value at other operands, from the kernel alone."""
        return self.primitive.run(*map(np.asarray, operands), **self.params)

    def reference(self, *operands: np.ndarray) -> np.ndarray:
        """The value by the record's NumPy function, which may warn."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return np.asarray(reference(self.primitive)(*operands, **self.params))

    def call(self, *tensors: Any) -> Any:
        """The value as a user computes it."""
        function = self.primitive.function
        if getattr(function, "primitive", None) is self.primitive:  # with the same parameters
            return function(*tensors, **self.params)
        return self.primitive(*map(tf.convert_to_tensor, tensors), **self.params)

    def cast(self, dtype: Any) -> tuple[np.ndarray, ...]:
        """The operands in another dtype; those that are fixed take other floats alone."""
        floats = is_inexact(np.dtype(dtype))
        return tuple(
            operand
            if operand.dtype == bool
            or (i in self.fixed and not (floats and is_inexact(operand.dtype)))
            else operand.astype(_like(operand, dtype))
            for i, operand in enumerate(self.operands)
        )

    def real(self) -> list[int]:
        """The positions of the operands to differentiate by."""
        return [i for i, operand in enumerate(self.operands) if is_inexact(operand.dtype)]

    def avals(self, *operands: np.ndarray) -> list[Aval]:
        return [Aval(operand.shape, operand.dtype) for operand in operands]


def _like(operand: np.ndarray, dtype: Any) -> np.dtype:
    """The dtype, or the complex one of its width for a complex operand."""
    return np.result_type(dtype, np.complex64) if is_complex(operand.dtype) else np.dtype(dtype)


class Decomposed(Example):
    """A call of the operations that an operation is made of."""

    def call(self, *tensors: Any) -> Any:
        decomposition = self.primitive.decomposition
        return decomposition(TENSORS, *map(tf.convert_to_tensor, tensors), **self.params)


def generator(primitive: Primitive) -> np.random.Generator:
    """Random numbers that are the same in each run."""
    return np.random.default_rng(zlib.crc32(primitive.name.encode()))


def names() -> list[str]:
    return list(OPS)


def examples(name: str) -> list[Example]:
    """All calls to test an operation on."""
    primitive = OPS[name]
    rng = generator(primitive)
    if not is_elementwise(primitive):
        return [_example(primitive, rng, case) for case in primitive.samples]
    domains, params = _split(primitive)
    return [
        elementwise_example(primitive, rng, shapes, options)
        for shapes in ELEMENTWISE_SHAPES[len(domains)]
        for options in params
    ]


def is_elementwise(primitive: Primitive) -> bool:
    return primitive.kind == "elementwise"


def _split(primitive: Primitive) -> tuple[list[define.Real], list[dict]]:
    """The domains of an elementwise operation's operands, and its sets of parameters."""
    domains = [sample for sample in primitive.samples if isinstance(sample, define.Real)]
    params = [sample for sample in primitive.samples if isinstance(sample, dict)]
    return domains, params or [{}]


def elementwise_example(
    primitive: Primitive, rng: np.random.Generator, shapes: tuple, params: dict | None = None
) -> Example:
    domains, choices = _split(primitive)
    rules = primitive.vjp or (True,) * len(domains)
    operands, fixed = [], set()
    for domain, sizes, rule in zip(domains, shapes, rules, strict=True):
        operand = _draw(rng, domain, sizes)
        if rule is None and primitive.rules is not None:  # a condition, or an order above 0
            middle = (domain.low + domain.high) / 2
            if domain.low > 1:
                operand = np.rint(operand).astype(np.int64)
                fixed.add(len(operands))
            else:
                operand = operand > middle
        operands.append(operand)
    chosen = choices[0] if params is None else params
    if takes(primitive, float):
        return Example(primitive, tuple(operands), chosen, frozenset(fixed))
    whole = tuple(np.rint(operand).astype(np.int64) for operand in operands)
    return Example(primitive, whole, chosen, frozenset(range(len(whole))))


def _draw(rng: np.random.Generator, domain: define.Real, sizes: tuple) -> np.ndarray:
    operand = np.asarray(rng.uniform(domain.low, domain.high, sizes))
    for point in domain.avoid:
        near = np.abs(operand - point) < CLOSE
        operand = np.where(near, operand + 2 * CLOSE, operand)
    return operand


def _example(primitive: Primitive, rng: np.random.Generator, case: define.Case) -> Example:
    operands = tuple(
        np.asarray(case.fixed[i] if i in case.fixed else rng.uniform(-2, 2, sizes))
        for i, sizes in enumerate(case.shapes)
    )
    return Example(primitive, operands, case.params, frozenset(case.fixed))


# Derivatives ---------------------------------------------------------------------------------


def first_gradients(example: Example, operands: tuple, weights: np.ndarray) -> list:
    """The gradient of sum(weights * f) by each operand; zeros where there is none."""
    tensors = [tf.constant(operand) for operand in operands]
    with tf.GradientTape() as tape:
        tape.watch([tensors[i] for i in example.real()])
        result = example.call(*tensors)
    sources = [tensors[i] for i in example.real()]
    gradients = tape.gradient(result, sources, tf.constant(weights), unconnected_gradients="zero")
    return [gradient.numpy() for gradient in gradients]


def second_gradients(
    example: Example, operands: tuple, weights: np.ndarray, directions: list[np.ndarray]
) -> list:
    """The gradient of the first gradients' product with `directions`."""
    tensors = [tf.constant(operand) for operand in operands]
    sources = [tensors[i] for i in example.real()]
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = example.call(*tensors)
        first = tape.gradient(result, sources, output_gradients=tf.constant(weights))
        pairs = zip(first, directions, strict=True)
        parts = [
            tf.reduce_sum(tf.math.real(tf.multiply(gradient, np.conj(way))))
            for gradient, way in pairs
            if gradient is not None
        ]
    gradients = outer.gradient(parts, sources) if parts else [None] * len(sources)
    return [
        np.zeros(source.shape, source.dtype) if gradient is None else gradient.numpy()
        for gradient, source in zip(gradients, sources, strict=True)
    ]


def numeric_gradients(function: Any, operands: tuple, positions: list[int], step: float) -> list:
    """Central differences of a real function of arrays, by each element of some operands.

    For a complex operand: by the real part, plus i times that by the imaginary part.
    """
    gradients = []
    for i in positions:
        gradient = np.zeros(operands[i].shape, operands[i].dtype)
        units = (1, 1j) if is_complex(gradient.dtype) else (1,)
        for index in np.ndindex(gradient.shape):
            for unit in units:
                ends = []
                for sign in (1, -1):
                    moved = operands[i].copy()
                    moved[index] += sign * step * unit
                    ends.append(function(*operands[:i], moved, *operands[i + 1 :]))
                gradient[index] += unit * (ends[0] - ends[1]) / (2 * step)
        gradients.append(gradient)
    return gradients
