"""`python -m benchmarks.sparse`: sparse Jacobians beside asdex, sparsejac, and dense ones.

The first table is for the Jacobian of the Brusselator on an n by n grid: times to find the pattern
and to colour it, and to evaluate the Jacobian, compiled. Sides run in separate processes, in
turns; times are the least of all calls. A ratio is another side's time over ours. `--python` names
an interpreter that has jax, asdex and sparsejac, if it is not this one. sparsejac finds no pattern,
so it gets asdex's; its colours are networkx's, which takes minutes from n = 320 on, so it is left
out there without `--all`.

The second table solves bundle adjustment by `scipy.optimize.least_squares`, and the minimal surface
by `minimize(method="trust-constr")`, with sparse and with dense derivatives. The third is the time
and the peak memory of a process that evaluates the Brusselator at 2 million unknowns.
"""

import argparse
import functools
import importlib
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinygrad_cg as tf
from benchmarks.serving import AnsweringProcess
from benchmarks.sparse_work import STEPS, Timed, answer
from tests.sparse import problems
from tinygrad_cg._tour.console import table

SIZES = (32, 100, 320)
MOST_OF_SPARSEJAC = 100
POINTS = (200, 400, 800)  # the dense Jacobian of the last one takes a minute
LEAST_SQUARES: dict[str, Any] = {
    "x_scale": "jac",
    "ftol": 1e-3,
    "max_nfev": 50,
    "tr_solver": "lsmr",
    "tr_options": {"maxiter": 50},
}


def our_work(n: int, x: np.ndarray) -> Timed:
    """Return what this library does."""
    f, point = problems.brusselator(n).residuals, tf.constant(x)
    pattern = tf.jacobian_sparsity(f, point)
    coloring = tf.jacobian_coloring(pattern)
    evaluate = tf.sparse_jacobian(f)
    compiled = tf.function(f)
    return Timed(
        detect=lambda: tf.jacobian_sparsity(f, point),
        color=lambda: tf.jacobian_coloring(pattern),
        evaluate=lambda: evaluate(point),
        value=lambda: compiled(point),
        colors=coloring.count,
        product=lambda v: evaluate(point) @ v,
    )


class Worker(AnsweringProcess):
    """A process that times one side."""

    def __init__(self, name: str, command: list[str]):
        super().__init__(command)
        self.name = name

    def ask(self, n: int, step: str, seconds: float = 0.0) -> Any:
        """Return the answer for a step of the work at a size."""
        return self.answer(n, step, seconds)


def workers(python: str) -> list[Worker]:
    """Return the processes: ours, and those of the libraries that the interpreter has."""
    made = [Worker("tinygrad_cg", [sys.executable, "-m", "benchmarks.sparse", "--serve"])]
    for name in ("asdex", "sparsejac"):
        question = f"import importlib.util as u, sys; sys.exit(not u.find_spec('{name}'))"
        if not subprocess.run([python, "-c", question], check=False).returncode:
            made.append(Worker(name, [python, "-m", "benchmarks.sparse_jax", name]))
    return made


def compare(sides: list[Worker], sizes: list[int], seconds: float, rounds: int, most: int) -> None:
    """Print each side's times, and their ratios to ours."""
    rows = []
    for n in sizes:
        taking = [side for side in sides if side.name != "sparsejac" or n <= most]
        checks = [side.ask(n, "check") for side in taking]
        for _, product in checks[1:]:
            np.testing.assert_allclose(product, checks[0][1], rtol=1e-9, atol=1e-9)
        best: dict[tuple[str, str], float | None] = {}
        for turn in range(rounds):
            for side in taking if turn % 2 else taking[::-1]:
                for step in STEPS:
                    took = side.ask(n, step, seconds)
                    before = best.get((side.name, step))
                    best[side.name, step] = min(took, before) if before and took else took
        for side, (colors, _) in zip(taking, checks, strict=True):
            cells = [f"{n}", side.name, "" if colors is None else str(colors)]
            for step in STEPS[:-1]:
                took, ours = best[side.name, step], best["tinygrad_cg", step]
                assert ours is not None
                cells.append("" if took is None else f"{took * 1e3:.2f} ({took / ours:.1f})")
            took, value = best[side.name, "evaluate"], best[side.name, "value"]
            assert took is not None
            assert value is not None
            cells.append("" if colors is None else f"{took / value / colors:.1f}")
            rows.append(cells)
    names = ("n", "library", "colors", "pattern, ms", "coloring, ms", "Jacobian, ms")
    table((*names, "calls of f a color"), rows)


class Task(NamedTuple):
    """A problem that SciPy solves: `run` takes a function that returns derivatives at x."""

    name: str
    run: Callable[[Any], float]
    sparse: Callable[[Any], Any]
    dense: Callable[[Any], Any]
    x: np.ndarray


def as_arrays(f: Callable[..., Any], x: np.ndarray) -> Any:
    return tf.nest.map_structure(np.asarray, f(x))


def least_squares(points: int) -> Task:
    """Return bundle adjustment, by `scipy.optimize.least_squares`."""
    optimize: Any = importlib.import_module("scipy.optimize")
    bundle = problems.bundle_adjustment(points)
    f, sparse = tf.function(bundle.residuals), tf.sparse_jacobian(bundle.residuals)
    dense = tf.function(tf.jacobian(bundle.residuals))

    def run(jacobian: Any) -> float:
        of_arrays = functools.partial(as_arrays, f)
        return optimize.least_squares(of_arrays, bundle.x, jacobian, **LEAST_SQUARES).cost

    return Task(f"least_squares, {points} points", run, sparse, dense, bundle.x)


def trust_region(grid: int) -> Task:
    """Return the minimal surface, by `scipy.optimize.minimize`."""
    optimize: Any = importlib.import_module("scipy.optimize")
    surface = problems.minimal_surface(grid)
    f, sparse = tf.function(tf.value_and_grad(surface.energy)), tf.sparse_hessian(surface.energy)
    dense, start = tf.function(tf.hessian(surface.energy)), np.zeros(surface.x.size)
    options: dict[str, Any] = {"method": "trust-constr", "options": {"maxiter": 30}, "jac": True}

    def run(hessian: Any) -> float:
        of_arrays = functools.partial(as_arrays, f)
        return float(optimize.minimize(of_arrays, start, hess=hessian, **options).fun)

    return Task(f"trust-constr, {grid} x {grid}", run, sparse, dense, surface.x)


def solve(tasks: list[Task]) -> None:
    """Print the times of optimizations, with sparse and with dense derivatives."""
    rows = []
    for name, run, sparse, dense, x in tasks:
        results, times = [], []
        for derivative in (sparse, lambda x, dense=dense: np.asarray(dense(x))):
            derivative(x)  # made before the clock starts
            start = time.perf_counter()
            results.append(run(derivative))
            times.append(time.perf_counter() - start)
        np.testing.assert_allclose(results[0], results[1], rtol=1e-2, atol=1e-6)
        rows.append([name, *(f"{took:.2f}" for took in times), f"{times[1] / times[0]:.1f}"])
    table(("solved", "sparse, s", "dense, s", "ratio"), rows)


def solve_large(points: int) -> None:
    """Print the time of bundle adjustment where a dense Jacobian does not fit."""
    optimize: Any = importlib.import_module("scipy.optimize")
    bundle = problems.bundle_adjustment(points, 40)
    residuals = tf.function(bundle.residuals)
    start = time.perf_counter()
    result = optimize.least_squares(
        lambda x: residuals(x).numpy(),
        bundle.x,
        tf.sparse_jacobian(bundle.residuals),
        **LEAST_SQUARES,
    )
    took = time.perf_counter() - start
    shape = f"{4 * points} x {bundle.x.size}"
    before = np.sum(np.square(residuals(bundle.x).numpy())) / 2
    print(
        f"least_squares, {points} points, Jacobian {shape}: {took:.1f} s, {result.nfev} "
        f"evaluations, cost {before:.4g} to {result.cost:.4g}, optimality {result.optimality:.2g}, "
        f"{'converged' if result.success else 'not converged'}"
    )


def large(n: int) -> None:
    """Print what the Brusselator takes with 2 n^2 unknowns, and the peak of the memory."""
    problem = problems.brusselator(n)
    start = time.perf_counter()
    pattern = tf.jacobian_sparsity(problem.residuals, problem.x)
    found = time.perf_counter()
    coloring = tf.jacobian_coloring(pattern)
    colored = time.perf_counter()
    evaluate = tf.sparse_jacobian(problem.residuals, coloring=coloring)
    matrix = evaluate(problem.x)
    first = time.perf_counter()
    matrix = evaluate(problem.x)
    second = time.perf_counter() - first
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{problem.x.size:,} unknowns, {matrix.nnz:,} entries, {coloring.count} colors: pattern "
        f"{found - start:.2f} s, coloring {colored - found:.2f} s, first Jacobian "
        f"{first - colored:.2f} s, second {second:.2f} s; peak {peak:.2f} GiB"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has asdex")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, metavar="N")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each side")
    parser.add_argument("--all", action="store_true", help="sparsejac at all sizes")
    parser.add_argument("--quick", action="store_true", help="only small sizes, as a trial")
    parser.add_argument("--solve", action="store_true", help="only the second table")
    parser.add_argument("--large", type=int, metavar="N", help="one Brusselator, in this process")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        return answer(our_work)
    if chosen.large:
        return large(chosen.large)
    if not chosen.solve:
        sizes, seconds = ([8], 0.0) if chosen.quick else (list(chosen.sizes), 0.5)
        sides = workers(chosen.python)
        try:
            most = max(sizes) if chosen.all else MOST_OF_SPARSEJAC
            compare(sides, sizes, seconds, 1 if chosen.quick else chosen.rounds, most)
        finally:
            for side in sides:
                side.close()
        print(f"\nPython {platform.python_version()}; ratios to tinygrad_cg in parentheses.\n")
    points, grid = ([20], 6) if chosen.quick else (POINTS, 60)
    solve([*map(least_squares, points), trust_region(grid)])
    solve_large(100 if chosen.quick else 10_000)
    if not chosen.solve:
        arguments = ["-m", "benchmarks.sparse", "--large", "8" if chosen.quick else "1000"]
        subprocess.run([sys.executable, *arguments], check=True)
    return None


if __name__ == "__main__":
    main()
