"""Rules made of the registry's operations, right ones, and with one random fault each.

``python -m tests.support.check_faults COUNT [FIRST]`` checks rules with one fault at points whose
elements are whole numbers. It prints each report that misses the fault, with the number that draws
it again, and how many there were.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinygrad_cg as tf
from tests.support import check_rules
from tests.support.op_cases import (
    Example,
    elementwise_example,
    examples,
    first_gradients,
    is_elementwise,
    second_gradients,
)
from tinygrad_cg._check import GradientReport
from tinygrad_cg._core.primitive import OPS

NAMES = [name for name in OPS if OPS[name].rules is not None]


class Fault(NamedTuple):
    """A rule with one fault, and what must be said of it."""

    name: str
    f: Callable[..., Any]
    operands: list[np.ndarray]
    first: int
    verdicts: tuple[str, ...]
    argument: str | None
    path: str


def draw(rng: np.random.Generator) -> Example:
    """A random operation, with random operands from its domain."""
    while True:
        name = NAMES[rng.integers(len(NAMES))]
        cases = examples(name)
        case = cases[rng.integers(len(cases))]
        if is_elementwise(case.primitive):
            shapes = tuple(operand.shape for operand in case.operands)
            case = elementwise_example(case.primitive, rng, shapes, case.params)
        else:
            operands = tuple(
                operand
                if i in case.fixed or operand.dtype.kind != "f"
                else rng.uniform(-2, 2, operand.shape)
                for i, operand in enumerate(case.operands)
            )
            case = case._replace(operands=operands)
        if case.real():
            return case


def function_of(example: Example) -> Callable[..., Any]:
    """The operation as a function of its real operands alone."""
    real = example.real()

    def function(*arrays):
        operands = [tf.constant(operand) for operand in example.operands]
        for i, operand in zip(real, arrays, strict=True):
            operands[i] = operand
        return example.call(*operands)

    return function


def ruled(function: Callable[..., Any], alter: Callable[..., Any] = lambda g, *_: g) -> Any:
    """A custom gradient of `function` whose rule is the true one, altered.

    ``alter(gradients, operands, dy)`` gives what the rule returns.
    """

    @tf.custom_gradient
    def op(*operands):
        def grad(dy):
            return alter(pulled(function, operands, dy), operands, dy)

        return function(*operands), grad

    return op


def pulled(function: Callable[..., Any], operands: Any, dy: Any) -> list:
    """The true gradient, which tapes record."""
    with tf.GradientTape() as tape:
        tape.watch(operands)
        y = function(*operands)
    return tape.gradient(y, operands, output_gradients=dy, unconnected_gradients="zero")


UNARY = (
    *(tf.sin, tf.tanh, tf.sigmoid, tf.square, tf.abs, tf.sort, tf.cumsum, tf.nn.softmax),
    *(check_rules.log1pexp, check_rules.softplus, check_rules.cube, check_rules.wrapped),
    *(check_rules.fused_with_upstream, check_rules.with_a_tape, check_rules.rectified),
    lambda x: tf.sqrt(tf.abs(x) + 0.5),
    lambda x: x - tf.reduce_mean(x),
    lambda x: tf.clip_by_value(x, -0.8, 0.9),
    lambda x: tf.gather(x, tf.constant([0, 0, 3, 4, 5, 2])),
    lambda x: tf.where(x > 0, x, 0.1 * x),
)
BINARY = (
    *(tf.add, tf.multiply, tf.subtract, tf.maximum),
    lambda a, b: a / (1.5 + tf.cos(b)),
    lambda a, b: tf.where(a > b, a, b * b),
)


def composition(rng: np.random.Generator) -> Callable[..., Any]:
    """A random function of two vectors of 6 elements, right at every order."""
    steps = []
    for _ in range(rng.integers(2, 7)):
        choices = UNARY if rng.integers(3) else BINARY
        step = choices[rng.integers(len(choices))]
        if rng.integers(2):
            step = ruled(step)
        steps.append((step, choices is BINARY, int(rng.integers(6))))

    def function(x, y):
        values = [x, y]
        for step, of_two, other in steps:
            more = [tf.identity(values[other % len(values)])] if of_two else []
            values.append(step(values[-1], *more))
        return values[-1]

    return function


def replaced(gradients: Any, index: int, change: Callable[[Any], Any]) -> list:
    return [change(gradient) if i == index else gradient for i, gradient in enumerate(gradients)]


@tf.custom_gradient
def false_identity(x):
    """The identity, whose rule gives twice the gradient."""
    return x * 1.0, lambda dy: 2.0 * dy


FAULTS = (
    *("sign", "factor", "None", "no upstream", "clip", "not summed", "swap", "drop", "stop"),
    "twice",
)


def draw_fault(kind: str, rng: np.random.Generator) -> Fault:
    """A fault that must be found: what it changes is not zero at this point."""
    while True:
        fault = _fault(kind, draw(rng), rng)
        if fault is not None:
            return fault


def _fault(kind: str, example: Example, rng: np.random.Generator) -> Fault | None:
    operands = [example.operands[i] for i in example.real()]
    function, index = function_of(example), int(rng.integers(len(operands)))
    shape = np.shape(example.run(*example.operands))
    weights = rng.uniform(0.5, 1.5, shape)
    first = first_gradients(example, example.operands, weights)
    if not _counts(first[index]):
        return None
    name, wrong = f"{kind} in {example.primitive.name}", ("wrong", "detached")
    argument = f"operands[{index}]"

    def fault(alter, order=1, verdicts=wrong, path="x", by=argument):
        return Fault(name, ruled(function, alter), operands, order, verdicts, by, path)

    if kind == "sign":
        return fault(lambda gs, *_: replaced(gs, index, lambda g: -g))
    if kind == "factor":
        factor = float(rng.choice((0.5, 0.9, 1.1, 2.0, 3.0)))
        return fault(lambda gs, *_: replaced(gs, index, lambda g: factor * g))
    if kind == "None":
        return fault(lambda gs, *_: replaced(gs, index, lambda g: None), verdicts=("detached",))
    if kind == "no upstream":
        linear = ("not linear in the upstream",)
        if not _counts(first_gradients(example, example.operands, np.ones(shape))[index]):
            return None

        def without(gs, xs, dy):
            return pulled(function, xs, tf.ones_like(dy))

        return fault(without, verdicts=linear, path="upstream")
    if kind == "clip":
        if np.iscomplexobj(example.run(*example.operands)):  # they have no order
            return None
        linear = ("not linear in the upstream",)

        def clipped(gs, xs, dy):
            return pulled(function, xs, tf.clip_by_value(dy, -2.0, 2.0))

        return fault(clipped, verdicts=linear, path="upstream")
    if kind == "not summed":
        if not is_elementwise(example.primitive) or operands[index].shape == shape:
            return None
        return fault(
            lambda gs, *_: replaced(gs, index, lambda g: tf.broadcast_to(g, shape)),
            verdicts=("raises",),
        )
    if kind == "swap":
        other = (index + 1) % len(operands)
        if other == index or operands[other].shape != operands[index].shape:
            return None
        if not _counts(first[index] - first[other]):
            return None
        return fault(lambda gs, *_: [gs[j] for j in _crossed(len(gs), index, other)])
    if kind == "drop":  # a part of the gradient is missing
        mask = np.where(np.arange(first[index].size) % 2, 1.0, 0.0).reshape(first[index].shape)
        if not _counts(first[index] * (1 - mask)):
            return None
        return fault(lambda gs, *_: replaced(gs, index, lambda g: g * tf.constant(mask)))
    ways = [rng.uniform(0.5, 1.5, operand.shape) for operand in operands]
    second = second_gradients(example, example.operands, weights, ways)
    if not _counts(second[index]):
        return None
    if kind == "stop":

        def stopped(gs, xs, dy):
            return pulled(function, [tf.stop_gradient(x) for x in xs], dy)

        return fault(stopped, 2, ("detached",))
    return fault(lambda gs, *_: [false_identity(g) for g in gs], 2, path="x")


def draw_fault_at_integers(kind: str, rng: np.random.Generator) -> Fault:
    """A fault at whole numbers; it changes something at another point, perhaps not at this one."""
    while True:
        example = draw(rng)
        fault = _fault(kind, example, rng)
        if fault is None:
            continue
        operands = [np.round(operand) for operand in fault.operands]
        try:
            values = function_of(example)(*map(tf.constant, operands))
        except (ValueError, ArithmeticError):  # a singular matrix, say
            continue
        if all(np.isfinite(np.asarray(value)).all() for value in tf.nest.flatten(values)):
            return fault._replace(operands=operands)


def run_at_integers(seed: int) -> tuple[Fault, GradientReport]:
    """Return a random fault, and the report of its check at whole numbers."""
    rng = np.random.default_rng([41, seed])
    fault = draw_fault_at_integers(FAULTS[seed % len(FAULTS)], rng)
    operands = [tf.constant(operand) for operand in fault.operands]
    return fault, tf.check_gradients(fault.f, *operands, order=2, seed=seed)


def main(count: int, first: int = 0) -> int:
    """Print which of `count` faults are missed, at whole numbers; return how many there were."""
    missed = 0
    with np.errstate(all="ignore"):
        for seed in range(first, first + count):
            fault, report = run_at_integers(seed)
            if report.ok:
                missed += 1
                print(f"{seed}: {fault.name}\n{report}\n", flush=True)
            elif report.first_false_order != fault.first:
                words = f"wrong from order {report.first_false_order} onwards, not {fault.first}"
                print(f"{seed}: {fault.name}: {words}", flush=True)
    print(f"{count} faults at whole numbers, {missed} missed")
    return missed


def _counts(gradient: np.ndarray) -> bool:
    return bool(np.isfinite(gradient).all()) and float(np.abs(gradient).max(initial=0.0)) > 1e-3


def _crossed(count: int, first: int, other: int) -> list[int]:
    order = list(range(count))
    order[first], order[other] = other, first
    return order


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])) > 2)
