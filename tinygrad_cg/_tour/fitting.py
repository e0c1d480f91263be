"""Part four: a real fit on unscaled data, where the naive loss fails."""

from collections.abc import Callable

import numpy as np

from tinygrad_cg._core.tracking import track
from tinygrad_cg._tour.console import heading, say, table
from tinygrad_cg._tour.custom_rules import log1pexp, naive_log1pexp, softplus
from tinygrad_cg._tour.logistic import (
    LogisticProblem,
    NewtonStep,
    differentiate,
    make_loss,
    make_problem,
    newton,
)
from tinygrad_cg._tour.measurements import Measurements


def show(data: Measurements) -> None:
    """Print the fit, and what the other two losses do."""
    heading("4. Newton's method with a rule for every order")
    problem = make_problem(data)
    describe(data, problem)
    show_start(problem)
    show_fit(problem)
    show_failures(problem)


def describe(data: Measurements, problem: LogisticProblem) -> None:
    print(f"\n{data.title}")
    if data.note:
        print(data.note)
    rows = data.labels.size
    say(
        f"""{rows} rows, {len(data.features)} features, unscaled: the largest is
        {np.abs(data.measurements).max():g}. Class 1 is {data.classes[1]!r}
        ({int(data.labels.sum())} rows), class 0 is {data.classes[0]!r}. Fitted on
        {problem.fitted.labels.size} rows, tested on the {problem.held_out.labels.size} held
        out."""
    )
    if data.constant:
        say(f"Left out, because they are constant: {', '.join(data.constant)}.")


def show_start(problem: LogisticProblem) -> None:
    """Print value, gradient and Hessian of the three losses at the start."""
    margins = np.abs(problem.fitted.inputs @ problem.start)
    limit = np.log(np.finfo(np.float64).max)
    say(
        f"""The start is the plane halfway between the two classes' means. There x @ w reaches
        {margins.max():.3g} in size, and exp overflows in float64 above {limit:.2f}. The loss
        is mean(log(1 + exp(x @ w)) - y * (x @ w)) + ridge. The table has each way to write
        log(1 + exp(z)), at the start:"""
    )
    functions = (naive_log1pexp, log1pexp, softplus)
    names = ("as written", "the documents' rule", "softplus with its rule")
    rows = []
    for name, function in zip(names, functions, strict=True):
        here = differentiate(make_loss(problem, function), problem.start)
        entries = (finiteness(here.gradient), finiteness(here.hessian))
        rows.append((name, f"{here.value:.6g}", *entries))
    table(("log(1 + exp(z))", "loss", "gradient", "Hessian"), rows)


def finiteness(values: np.ndarray) -> str:
    bad = int(np.sum(~np.isfinite(values)))
    return "finite" if bad == 0 else f"{bad} of {values.size} nan"


def show_fit(problem: LogisticProblem) -> None:
    """Fit with the stable rule, and print each step."""
    say(
        """Newton's method needs the Hessian. Each row is one backward pass of a tape around
        the tape of the gradient, through softplus and then through its rule."""
    )
    steps, trouble = run_newton(problem, softplus)
    if not steps:
        say(f"It cannot begin: {trouble}.")
        return
    table(
        ("step", "loss", "decrement", "taken", "accuracy", "held out"),
        [describe_step(n, step, problem) for n, step in enumerate(steps)],
    )
    if trouble:
        say(f"It stops there: {trouble}.")
    last, held_out = steps[-1], problem.held_out
    right = held_out.accuracy(last.weights)
    say(
        f"""After {len(steps) - 1} steps the loss is {last.value:.6f}. The plane is right
        for {round(right * held_out.labels.size)} of {held_out.labels.size} rows held out
        ({right:.1%}); at the start it was right for {held_out.accuracy(problem.start):.1%}."""
    )


def describe_step(number: int, step: NewtonStep, problem: LogisticProblem) -> tuple[str, ...]:
    return (
        str(number),
        f"{step.value:.6g}",
        f"{step.decrement:.1e}",
        f"{step.rate:.3g}" if step.rate else step.end,
        f"{problem.fitted.accuracy(step.weights):.3f}",
        f"{problem.held_out.accuracy(step.weights):.3f}",
    )


def show_failures(problem: LogisticProblem) -> None:
    """Print what Newton's method does with the other two losses."""
    for name, function in (("the naive loss", naive_log1pexp), ("the documents' rule", log1pexp)):
        steps, trouble = run_newton(problem, function)
        outcome = f"it stops at step {len(steps)}: {trouble}."
        if not trouble:
            loss = steps[-1].value
            outcome = f"it converges to a loss of {loss:.6f} in {len(steps) - 1} steps."
        say(f"With {name}, on the same unscaled data: {outcome}")


def run_newton(problem: LogisticProblem, function: Callable) -> tuple[list[NewtonStep], str]:
    """Return the steps of Newton's method, and what stopped it before its end, if anything did."""
    steps: list[NewtonStep] = []
    try:
        for step in track(newton(make_loss(problem, function), problem.start), "Newton steps"):
            steps.append(step)
    except FloatingPointError as error:
        return steps, str(error)
    return steps, ""
