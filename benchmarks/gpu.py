"""`python -m benchmarks --device gpu`: work on a GPU, beside PyTorch and JAX on the same GPU.

Each library runs in each of its modes in a separate process: a fault of the GPU, or a call that
never returns, ends only that process, and another one starts. All of them prepare a row at the
same time, which compiles, and their results are compared; then they are timed one after another.
Times are medians, from the host's clock, of batches of calls. The device is waited for before and
after each batch. A percentage is the share of the bandwidth that copying a large array reaches.
Matrix products have the precision of float32 in all libraries, without TF32.
"""

import contextlib
import importlib
import importlib.util
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import COMPILED, EAGER, TORCH, Peer
from benchmarks.work import TOLERANCES, Data, logistic, perceptron
from tinygrad_cg._tour.console import table

SIZES = (1_000, 100_000, 10_000_000, 100_000_000)
SMALL = 100_000  # elements, the most that the CPU computes, and of a result that is compared
COPIED = 1 << 28  # float32 elements of the array whose copies show the bandwidth
WAIT = 40.0  # seconds, the most that a library may take to prepare a row
GRACE = 5.0  # seconds in which a row that has begun may still be timed
BATCH = 8e-3  # seconds that a batch of calls takes at least


@dataclass(frozen=True)
class Subject:
    """A library in one of its modes, on a device."""

    name: str
    peer: Peer
    device: str = "gpu"
    graphs: bool = False


REFERENCE = Subject("ours on the CPU", EAGER, "cpu")
SUBJECTS = (
    Subject("eager", EAGER),
    Subject("function", COMPILED),
    Subject("CUDA graphs", COMPILED, graphs=True),
    Subject("torch", TORCH),
    Subject("jax.jit", Peer("jax", "jit", True)),
)


@dataclass(frozen=True)
class Row:
    """A program of a library, by what makes it, on arrays of about so many elements.

    `passes` counts how often at least it reads or writes an array of that size, if nothing else
    goes through memory: x is read, and its gradient written. The perceptron, which writes no such
    gradient, and the HVP read x twice. The bytes of the report are 4 * size * passes.
    """

    name: str
    program: Callable[[Any], Callable[..., tuple]]
    data: Callable[[int], Data]
    passes: int
    wanted: int = 1


def vector(size: int) -> np.ndarray:
    """Return float32 numbers around 1, a million of them repeated."""
    numbers = np.random.default_rng(0).normal(1.0, 0.5, min(size, 1_000_000))
    return np.resize(numbers.astype("float32"), size)


def matrix(size: int, columns: int) -> np.ndarray:
    return vector(size - size % columns).reshape(-1, columns)


def indices(size: int, end: int) -> np.ndarray:
    numbers = np.random.default_rng(1).integers(end, size=min(size, 1_000_000))
    return np.resize(numbers.astype("int32"), size)


def labelled(size: int) -> Data:
    x = matrix(size, min(size, 1_000))
    return x, indices(len(x), x.shape[1]).astype("int64")


def network(size: int) -> Data:
    x = matrix(size + -size % 784, 784) - 1
    *weights, _, _ = perceptron(784, 256, 10, 1)
    return *weights, x, indices(len(x), 10).astype("int64")


def regression(size: int) -> Data:
    x = matrix(size, min(size, 100)) - 1
    w, v, _, _ = logistic(1, x.shape[1])
    return w.astype("float32"), v.astype("float32"), x, indices(len(x), 2).astype("float32")


def square(size: int) -> Data:
    return (matrix(size, isqrt(size)),)


def turned(size: int) -> Data:
    (x,) = square(size)
    return x, x.reshape(x.shape[::-1])


def embedding(size: int) -> Data:
    x = matrix(size, min(size, 64))
    return x, indices(len(x), len(x))


ROWS = (
    Row("log1pexp", lambda lib: lib.log1pexp, lambda n: (vector(n),), 2),
    Row("sin, tanh, exp, cos", lambda lib: lib.chain, lambda n: (vector(n),), 2),
    Row("cross-entropy", lambda lib: lib.cross_entropy, labelled, 2),
    Row("perceptron", lambda lib: lib.perceptron, network, 2, 4),
    Row("logistic HVP", lambda lib: lib.logistic_hvp, regression, 2),
    Row("sum", lambda lib: lambda x: (lib.sum(x),), lambda n: (vector(n),), 1, 0),
    Row("sums of columns", lambda lib: lambda x: (lib.sum(x, 0),), square, 1, 0),
    Row("sums of rows", lambda lib: lambda x: (lib.sum(x, 1),), square, 1, 0),
    Row("x.T * 2 + y", lambda lib: lambda x, y: (x.T * 2.0 + y,), turned, 3, 0),
    Row(
        "gather of rows",
        lambda lib: lib.value_and_grads(lambda x, rows: lib.sum(lib.take(x, rows) ** 2)),
        embedding,
        2,
    ),
    Row("softmax of rows", lambda lib: lambda x: (lib.softmax(x),), square, 2, 0),
    Row(
        "gather from 100",
        lambda lib: lib.value_and_grads(lambda x, rows, y: lib.sum(lib.take(x, rows) * y)),
        lambda n: (vector(100), indices(n, 100), vector(n)),
        2,
    ),
)
"""What matters most comes first. Gradients are by the first `wanted` arrays."""


# In the process of a library ---------------------------------------------------------------------


class _Ours:
    def __init__(self, device: str) -> None:
        self.tf = tf = importlib.import_module("tinygrad_cg")
        self.adapter = importlib.import_module("tinygrad_cg_kernels.cuda.adapter")
        self.device, self.on_gpu = f"/{device.upper()}:0", device == "gpu"
        if self.on_gpu and not tf.config.list_physical_devices("GPU"):
            raise RuntimeError("there is no GPU")

    def placed(self) -> Any:
        return self.tf.device(self.device)

    def wait(self, results: Any) -> None:
        if self.on_gpu:
            self.adapter.synchronize()

    def host(self, x: Any, step: int) -> np.ndarray:
        return self.tf.reshape(x, [-1])[::step].cpu().numpy()

    def copies(self, size: int) -> Callable[[], Any]:
        x, y = (self.adapter.array_module().zeros(size, "float32") for _ in range(2))
        return lambda: y.__setitem__(..., x)


class _Torch:
    def __init__(self, device: str) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.device = "cuda" if device == "gpu" else device
        self.name = self.torch.cuda.get_device_name() if device == "gpu" else device

    def placed(self) -> Any:
        return self.torch.device(self.device)

    def wait(self, results: Any) -> None:
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def host(self, x: Any, step: int) -> np.ndarray:
        return x.detach().reshape(-1)[::step].cpu().numpy()

    def copies(self, size: int) -> Callable[[], Any]:
        x, y = (self.torch.zeros(size, device=self.device) for _ in range(2))
        return lambda: y.copy_(x)


class _Jax:
    def __init__(self, device: str) -> None:
        self.jax: Any = importlib.import_module("jax")
        self.jax.config.update("jax_default_matmul_precision", "highest")
        if self.jax.devices()[0].platform != device:
            raise RuntimeError(f"JAX has no GPU: {self.jax.devices()}")

    def placed(self) -> Any:
        return contextlib.nullcontext()

    def wait(self, results: Any) -> None:
        self.jax.block_until_ready(results)

    def host(self, x: Any, step: int) -> np.ndarray:
        return np.asarray(x.reshape(-1)[::step])


DEVICES: dict[str, Any] = {"tinygrad_cg": _Ours, "torch": _Torch, "jax": _Jax}


@dataclass(frozen=True)
class Failure:
    """An error in one line; `broken` if its process cannot go on."""

    text: str
    broken: bool = False


class _Bench:
    """What the process of a library does."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.device = DEVICES[subject.peer.package](subject.device)
        self.library: Any = subject.peer.library
        self.run: Callable[[], Any] = tuple
        self.kernels: Callable[[], str] = str

    def describe(self) -> str:
        name = getattr(self.device, "name", self.subject.device)
        version = importlib.import_module(self.subject.peer.package).__version__
        return f"{version} on {name}"

    def arrays(self, data: Data, wanted: int) -> list[Any]:
        with self.device.placed():
            return [self.library.array(x, k < wanted) for k, x in enumerate(data)]

    def prepare(self, number: int, size: int) -> list[np.ndarray] | None:
        """Return results, of which large ones are sampled; None from the CPU if it takes long."""
        self.run, self.kernels = tuple, str  # the last row's arrays are freed
        if self.subject == REFERENCE and size > SMALL:
            return None
        row = ROWS[number]
        arrays = self.arrays(row.data(size), row.wanted)
        compiled = self.library.compiled(row.program(self.library))
        self.run = lambda: compiled(*arrays)
        self.kernels = lambda: compiled.kernels(*arrays)[0]
        for _ in range(3):  # the second call captures a graph
            results = self.run()
            self.device.wait(results)
        step = SMALL + 1
        return [self.device.host(x, int(np.prod(x.shape)) // step + 1) for x in results]

    def measure(self) -> float:
        return self.times(self.run)[1]

    def note(self) -> str:
        """Return what became of the launches of our compiled program."""
        lines = self.kernels().splitlines()
        return "; ".join(line.strip("# ") for line in lines if " launches" in line)

    def bandwidth(self, size: int) -> float:
        """Return the bytes a second, read and written, of copies of so many float32 numbers."""
        return 8 * size / self.times(self.device.copies(size))[1]

    def operations(self, size: int) -> dict[str, tuple[float, float]]:
        """Return `times` of operations on so many elements."""
        lib, rows = self.library, np.arange(size, dtype="int32")
        x, y, rows = self.arrays((vector(size), vector(size), rows), 0)
        runs: dict[str, Callable[[], Any]] = {
            "sin": lambda: lib.sin(x),
            "x + y": lambda: x + y,
            "sum": lambda: lib.sum(x),
            "gather": lambda: lib.take(x, rows),
        }
        return {name: self.times(run) for name, run in runs.items()}

    def times(self, run: Callable[[], Any]) -> tuple[float, float]:
        """Return the medians of a call's time: until it returns, and with what the GPU does."""
        self.batch(run, 2)
        calls = min(max(int(BATCH / self.batch(run, 1)[1]), 1), 200)
        end, taken = time.perf_counter() + 0.3, []
        while len(taken) < 3 or (len(taken) < 9 and time.perf_counter() < end):
            taken.append(self.batch(run, calls))
        host, whole = map(statistics.median, zip(*taken, strict=True))
        return host, whole

    def batch(self, run: Callable[[], Any], calls: int) -> tuple[float, float]:
        results, start = None, time.perf_counter()
        for _ in range(calls):
            results = run()
        host = time.perf_counter() - start
        self.device.wait(results)
        return host / calls, (time.perf_counter() - start) / calls


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _serve(connection: Any, subject: Subject) -> None:
    """Answer commands with results or failures, until the connection ends."""
    os.environ["TINYGRAD_CG_CUDA_GRAPHS"] = str(int(subject.graphs))
    bench, answer = None, None
    while True:
        try:
            command, *arguments = connection.recv()
        except EOFError:  # nobody asks any more
            return
        try:
            bench = bench or _Bench(subject)
            answer = getattr(bench, command)(*arguments)
        except Exception as error:
            answer = Failure(_line(error), bench is not None and _broken(bench))
        connection.send(answer)


def _broken(bench: _Bench) -> bool:
    """Return whether the device no longer works after an error, as after a fault of the GPU."""
    try:
        bench.device.wait(())
        (x,) = bench.arrays((np.ones(1, "float32"),), 0)
        return bench.device.host(x, 1)[0] != 1.0
    except Exception:
        return True


# In the process that prints ----------------------------------------------------------------------


class Worker:
    """The process of a library, seen from outside. It starts again after a failure."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.process: Any = None

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, self.subject), daemon=True)
        self.process.start()
        other.close()

    def stop(self) -> None:
        if self.process:
            self.process.kill()
        self.process = None

    def send(self, *command: Any) -> None:
        if not self.process:
            self.start()
        with contextlib.suppress(OSError):  # `answer` says so
            self.connection.send(command)

    def answer(self, end: float) -> Any:
        """Return the answer to what was sent, or a failure if none comes before `end`."""
        try:
            if self.connection.poll(max(end - time.perf_counter(), 0.0)):
                answer = self.connection.recv()
            else:
                answer = Failure("no answer in time", broken=True)
        except (EOFError, OSError):
            answer = Failure("its process died", broken=True)
        if isinstance(answer, Failure) and answer.broken:
            self.stop()
        return answer


def difference(results: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Return the largest difference, in parts of the largest number of each result."""
    worst = 0.0
    for result, right in zip(results, wanted, strict=True):
        if result.shape != right.shape:
            return float("inf")
        near = np.abs(result.astype("float64") - right).max() / (np.abs(right).max() + 1e-300)
        worst = max(worst, float(near) if np.isfinite(near) else float("inf"))
    return worst


class Session:
    """The measurements: printed as they come, kept in a report, and written to a file."""

    def __init__(self, end: float, path: Path | None, device: str) -> None:
        self.end, self.path, self.row = end, path, "start"
        self.report: dict[str, Any] = {"device": device, "rows": [], "failures": [], "skipped": []}
        subjects = [Subject(s.name, s.peer, device, s.graphs) for s in SUBJECTS]
        there = [s for s in subjects if importlib.util.find_spec(s.peer.package)]
        self.workers = [Worker(subject) for subject in (REFERENCE, *there)]
        descriptions = self.ask_all(self.workers, "describe")
        for worker in self.workers:
            if worker.subject.name not in descriptions:
                worker.stop()
        self.workers = [w for w in self.workers if w.subject.name in descriptions]
        self.report["libraries"] = descriptions
        print("; ".join(f"{name}: {text}" for name, text in descriptions.items()), flush=True)

    def fail(self, text: str) -> None:
        self.report["failures"].append(text)
        print(text, flush=True)

    def ask_all(self, workers: list[Worker], *command: Any) -> dict[str, Any]:
        """Return the answers of processes that work at the same time, without failures."""
        what = " ".join(map(str, command))
        end, answers = min(self.end + GRACE, time.perf_counter() + WAIT), {}
        for worker in workers:
            worker.send(*command)
        for worker in workers:
            answer = worker.answer(end)
            if isinstance(answer, Failure):
                self.fail(f"FAILED {worker.subject.name}, {self.row}, {what}: {answer.text}")
            elif answer is not None:
                answers[worker.subject.name] = answer
        return answers

    def ask_in_turn(self, names: Any, *command: Any) -> dict[str, Any]:
        """Return the answers of processes that work one after another."""
        answers: dict[str, Any] = {}
        for worker in self.workers:
            if worker.subject.name in names:
                answers |= self.ask_all([worker], *command)
        return answers

    def measure(self, number: int, size: int) -> None:
        """Compare and time one row."""
        row = ROWS[number]
        self.row = f"{row.name}, n = {size:,}"
        results = self.ask_all(self.workers, "prepare", number, size)
        reference = next((n for n in (REFERENCE.name, "torch", "jax.jit") if n in results), None)
        wrong = {}
        for name, values in results.items():
            far = difference(values, results[reference]) if reference else 0.0
            if far > TOLERANCES["float32"]:
                wrong[name] = far
                self.fail(f"WRONG {name}, {self.row}: {far:.1e} from {reference}")
        taken = self.ask_in_turn(set(results) - {REFERENCE.name}, "measure")
        least = 4 * size * row.passes
        entry = {"row": row.name, "size": size, "bytes": least, "reference": reference}
        notes = self.ask_in_turn({"CUDA graphs"} & set(taken), "note")
        self.report["rows"].append(entry | {"seconds": taken, "wrong": wrong, "notes": notes})
        left = self.end - time.perf_counter()
        print(f"{self.row}: {len(taken)} libraries, {left:.0f} s left", flush=True)
        self.write()

    def write(self) -> None:
        if self.path:
            self.path.write_text(json.dumps(self.report, indent=1))

    def cell(self, entry: dict[str, Any], name: str) -> str:
        """Return microseconds, the share of the bandwidth, and marks: replayed, or wrong."""
        if name not in entry["seconds"]:
            return "-"
        seconds, bandwidth = entry["seconds"][name], self.report.get("bandwidth")
        share = f" {entry['bytes'] / seconds / bandwidth:.0%}" if bandwidth else ""
        replayed = "*" if "replayed" in entry["notes"].get(name, "") else ""
        return f"{seconds * 1e6:,.1f}{share}{replayed}{' WRONG' if name in entry['wrong'] else ''}"

    def tables(self) -> None:
        names = [w.subject.name for w in self.workers if w.subject.name != REFERENCE.name]
        rows = [
            (e["row"], f"{e['size']:,}", *[self.cell(e, name) for name in names])
            for e in self.report["rows"]
        ]
        table(("us, share of bandwidth; *: a graph", "n", *names), rows)
        operations = self.report.get("operations", {})
        rows = [
            (op, *[f"{t[op][0] * 1e6:.1f} / {t[op][1] * 1e6:.1f}" for t in operations.values()])
            for op in next(iter(operations.values()), {})
        ]
        table(("us an operation: host / all", *operations), rows)
        bandwidth = self.report.get("bandwidth")
        print(f"\nBandwidth of copies: {bandwidth / 1e9:,.0f} GB/s." if bandwidth else "")
        print(f"{len(self.report['failures'])} failures. Skipped: {self.report['skipped']}")


def main(
    names: list[str],
    seconds: float,
    path: Path | None,
    sizes: Sequence[int] = SIZES,
    device: str = "gpu",
) -> None:
    """Measure rows whose names contain one of `names`, or all, for so many seconds; print tables.

    Without a GPU, the device "cpu" shows that all of it runs.
    """
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # others need memory, too
    session = Session(time.perf_counter() + seconds, path, device)
    copied = COPIED if max(sizes) > SMALL else SMALL
    for name in ("torch", "eager"):
        if device == "gpu" and "bandwidth" not in session.report:
            for value in session.ask_in_turn({name}, "bandwidth", copied).values():
                session.report["bandwidth"] = value
    few = min([1_000, *sizes])
    session.report["operations"] = session.ask_in_turn({"eager", "torch"}, "operations", few)
    for size in sorted(sizes):
        for number, row in enumerate(ROWS):
            if names and not any(name in row.name for name in names):
                continue
            if time.perf_counter() > session.end:
                session.report["skipped"].append(f"{row.name}, {size:,}")
                continue
            try:
                session.measure(number, size)
            except Exception as error:
                session.fail(f"FAILED {session.row}: {_line(error)}")
    session.tables()
    session.write()
    for worker in session.workers:
        worker.stop()
