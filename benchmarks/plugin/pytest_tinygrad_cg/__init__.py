"""A pytest plugin: the fixture `gradient_benchmark`, and tracebacks without the library's frames.

pytest loads it by its entry point wherever tinygrad_cg is installed. It is next to the library,
so that test runs that do not use tinygrad_cg do not load it. pytest-benchmark is needed by tests
with the fixture alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["GradientBenchmark", "gradient_benchmark"]

FIXTURE = "gradient_benchmark"
DERIVATIVES = ("value", "gradient", "hvp")  # of order 0, 1 and 2
MODES = ("eager", "compiled")
_CHECKED = pytest.StashKey[dict[tuple[Any, ...], BaseException | None]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_CHECKED] = {}
    config.addinivalue_line(
        "markers",
        f"{FIXTURE}(derivatives={DERIVATIVES}, modes={MODES}): what the fixture of this name times",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that uses the fixture once for each derivative and mode."""
    if FIXTURE not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker(FIXTURE)
    options = dict(marker.kwargs) if marker is not None else {}
    derivatives = _chosen("derivatives", options.pop("derivatives", DERIVATIVES), DERIVATIVES)
    modes = _chosen("modes", options.pop("modes", MODES), MODES)
    if options or (marker is not None and marker.args):
        raise pytest.UsageError(f"pytest.mark.{FIXTURE} only takes derivatives= and modes=")
    pairs = [(derivative, mode) for derivative in derivatives for mode in modes]
    metafunc.parametrize(
        FIXTURE, pairs, indirect=True, ids=[f"{quantity}-{mode}" for quantity, mode in pairs]
    )


def _chosen(name: str, chosen: str | Sequence[str], allowed: Sequence[str]) -> Sequence[str]:
    names = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    if not names or not set(names) <= set(allowed):
        raise pytest.UsageError(
            f"pytest.mark.{FIXTURE}: {name} must be among {allowed}, got {chosen!r}"
        )
    return names


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let pytest-benchmark see that a test times something, for ``--benchmark-only``."""
    names: list[str] = getattr(item, "fixturenames", [])
    if FIXTURE in names and "benchmark" not in names and _has_benchmark(item.config):
        names.append("benchmark")


def _has_benchmark(config: pytest.Config) -> bool:
    return config.pluginmanager.has_plugin("benchmark")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, Any, Any]:
    """Hide the library's frames in a failure; ``--full-trace`` shows them.

    In the library's own tests they are what one looks for.
    """
    errors = sys.modules.get("tinygrad_cg.errors")
    if call.excinfo is not None and errors is not None:
        library = Path(errors.__file__ or "").parent
        if item.config.rootpath != library.parent:
            errors.hide_frames(call.excinfo.value)
    return (yield)


class GradientBenchmark:
    """What the fixture `gradient_benchmark` gives: a function that checks and times another."""

    def __init__(self, request: pytest.FixtureRequest, benchmark: Any):
        self.derivative: str
        self.derivative, self.mode = request.param
        self._request = request
        self._benchmark = benchmark

    def __call__(
        self,
        f: Callable[..., Any],
        *args: Any,
        argnums: int | Sequence[int] = 0,
        check: bool = True,
        order: int = 2,
        against: Callable[..., Any] | None = None,
    ) -> Any:
        """Check the gradients of ``f(*args)`` once, time one derivative, and return its result.

        Parameters
        ----------
        f:
            A function of floats, arrays, tensors or Variables, nested or not, to a real
            scalar tensor.
        args:
            Its arguments. Arrays become tensors beforehand.
        argnums:
            The argument, or the arguments, of the gradient and of the Hessian-vector product, as
            for `tinygrad_cg.grad`.
        check:
            False to leave out the check.
        order, against:
            As for `tinygrad_cg.check_gradients`.

        The test runs for the value, the gradient and the Hessian-vector product, with a vector of
        random numbers from a fixed seed; each eagerly and in a `tinygrad_cg.function`. It compiles,
        and runs once, before the timing. Runs of a test with the same other parameters are checked
        once together; a wrong gradient is not timed: all runs raise GradientError.

        The result is of group "<test>: <derivative>", so that both modes stand side by side;
        a group of ``pytest.mark.benchmark`` takes the place of <test>. `extra_info` has "function",
        "derivative", "order", "mode", "elements" (of the arguments of `argnums`) and "dtype".
        """
        import tinygrad_cg as tf

        arguments = [tf.nest.map_structure(_as_tensor, arg) for arg in args]
        if check:
            self._check(f, arguments, order, against)
        chosen = [argnums] if isinstance(argnums, int) else list(argnums)
        leaves = tf.nest.flatten([arguments[number] for number in chosen])
        run, operands = f, arguments
        if self.derivative == "gradient":
            run = tf.grad(f, argnums)
        elif self.derivative == "hvp":
            vectors = [tf.nest.map_structure(_Normal(), arguments[number]) for number in chosen]
            run = tf.hvp(f, argnums)
            operands = [*arguments, vectors[0] if isinstance(argnums, int) else tuple(vectors)]
        if self.mode == "compiled":
            run = tf.function(run)
        self._benchmark.group = f"{self._benchmark.group or self._test_name}: {self.derivative}"
        self._benchmark.extra_info |= {
            "function": getattr(f, "__name__", type(f).__name__),
            "derivative": self.derivative,
            "order": DERIVATIVES.index(self.derivative),
            "mode": self.mode,
            "elements": sum(leaf.size for leaf in leaves),
            "dtype": str(leaves[0].dtype) if leaves else "",
        }
        run(*operands)
        return self._benchmark(run, *operands)

    @property
    def _test_name(self) -> str:
        return getattr(self._request.node, "originalname", None) or self._request.node.name

    def _check(self, f: Any, args: list[Any], order: int, against: Any) -> None:
        """Check the gradients, unless another run of this test has done so."""
        from tinygrad_cg.test import assert_gradients

        node = self._request.node
        params = {name: value for name, value in node.callspec.params.items() if name != FIXTURE}
        indices = tuple(
            (name, node.callspec.indices.get(name, repr(value)))
            for name, value in sorted(params.items())
        )
        key = (node.parent.nodeid, self._test_name, indices)
        checked = node.config.stash[_CHECKED]
        if key not in checked:
            checked[key] = None
            try:
                assert_gradients(f, *args, order=order, against=against)
            except AssertionError as error:
                checked[key] = error
        failure = checked[key]
        if failure is not None:
            raise failure.with_traceback(None)


def _as_tensor(leaf: Any) -> Any:
    import tinygrad_cg as tf

    return leaf if tf.is_tensor(leaf) else tf.convert_to_tensor(leaf)


class _Normal:
    """Makes random numbers, of the shape and dtype of a tensor, from a seed of its own."""

    def __init__(self) -> None:
        import numpy as np

        self.generator = np.random.default_rng(0)

    def __call__(self, leaf: Any) -> Any:
        import tinygrad_cg as tf

        numbers = self.generator.standard_normal(tuple(leaf.shape))
        return tf.constant(numbers, dtype=leaf.dtype)


@pytest.fixture
def gradient_benchmark(request: pytest.FixtureRequest) -> GradientBenchmark:
    """Return a function that checks the gradients of another once, and times its derivatives."""
    if not _has_benchmark(request.config):
        pytest.fail(
            f"the fixture {FIXTURE!r} needs pytest-benchmark: pip install pytest-benchmark",
            pytrace=False,
        )
    return GradientBenchmark(request, request.getfixturevalue("benchmark"))
