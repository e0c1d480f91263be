"""A GPU against the CPU: `python -m tests.support.device_sweep [--processes N] [NAMES]`.

All operations, and the checks of `device_checks`, in processes of their own. A line for each
failure; the last lines are a summary. `--json FILE` writes one line of JSON for each case, with
the traceback. NAMES are tasks, such as `sum`, `sizes:sum` or `threads`, or `own`, `sizes`, `rest`
or `checks` for all of a part; `--list` prints all.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import re
import time
import traceback
import warnings
from collections import Counter, deque
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

ROOT = str(Path(__file__).resolve().parents[2])
SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PARTS = ("checks", "own", "sizes", "rest")
SLOW = r"gamma|beta|bessel|zeta|user"  # in names of tasks whose kernels take 5 to 15 s to compile
MAX_DEATHS = 3  # of workers in one task
MAX_ALL_DEATHS = 50
MAX_LINES = 3  # of the same failure
NUMBER = r"0x\w+|[-+]?\b\d[\d.]*(e[-+]?\d+)?"
GRACE = 4  # seconds after the end, for the cases that run


def tasks() -> list[str]:
    """Return the names of all tasks. Those whose kernels take long to compile are the last."""
    from tests.support import device_checks, op_cases

    listed = [f"{part}:{name}" for part in PARTS[1:] for name in op_cases.names()]
    listed = [*device_checks.CHECKS, *listed]
    return sorted(listed, key=lambda name: bool(re.search(SLOW, name)) + name.startswith("rest"))


def is_asked(task: str, names: list[str]) -> bool:
    part, _, name = task.rpartition(":")
    return not names or bool({task, name, part or "checks"} & set(names))


def work(to: Connection, device: str, largest: int, end: float) -> None:
    """Run the tasks that come, and report each case; end if the device no longer answers."""
    import numpy as np

    from tests.support import device_cases, device_checks
    from tests.support.simulator import spare_threads

    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        spare_threads()
    device_cases.DEVICE, device_cases.LARGEST = device, largest
    warned: Counter[str] = Counter()
    warnings.simplefilter("always")
    warnings.showwarning = lambda text, kind, file, line, *_: warned.update(
        [f"{kind.__name__}: {str(text)[:200]} ({short(file)}:{line})"]
    )
    np.seterr(all="ignore")
    while (task := to.recv()) is not None:
        name, skip = task
        part, _, op = name.rpartition(":")
        try:
            cases = iter(getattr(device_cases, part)(op) if part else device_checks.CHECKS[op]())
        except Exception as error:
            cases = iter([("begin", lambda error=error: _raise(error))])
        for k in range(10**6):
            if time.time() > end:
                to.send(("skipped", name, {}))
                break
            start, report = time.perf_counter(), {"task": name, "case": "next case", "number": k}
            try:
                label, run = next(cases)
                if k < skip:
                    continue
                report["case"] = label
                to.send(("begins", name, report))
                said = run()
                report |= {"status": "passed", "said": said}
            except StopIteration:
                break
            except BaseException as error:
                report |= describe(error)
            report["seconds"] = time.perf_counter() - start
            report["warnings"] = dict(warned)
            warned.clear()
            to.send(("ends", name, report))
            if report["status"] == "FAILED" and not answers(device):
                to.send(("broken", name, report))
                os._exit(1)
            if report["case"] == "next case":
                break
        to.send(("done", name, {}))


def _raise(error: BaseException) -> None:
    raise error


def answers(device: str) -> bool:
    """Return whether the device still computes."""
    import tinygrad_cg as tf

    try:
        return (tf.constant([1.0, 2.0]).to_device(device) * 3.0).numpy().tolist() == [3.0, 6.0]
    except Exception:
        return False


def short(file: str) -> str:
    return file.removeprefix(ROOT + os.sep)


def describe(error: BaseException) -> dict[str, Any]:
    """Return the words of an error, and the innermost line of the library that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if short(f.filename).startswith(("tinygrad_cg", "kernels"))]
    place = [*frames[:1], *frames[-1:], *own][-1] if frames else None
    return {
        "status": "FAILED",
        "type": type(error).__name__,
        "message": " ".join(str(error).split()),
        "place": f"{short(place.filename)}:{place.lineno}" if place else "",
        "traceback": "".join(traceback.format_exception(error)),
    }


class Worker:
    """A process with its task, and when it last reported."""

    def __init__(self, arguments: tuple) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()
        self.task: tuple[str, int] | None = None
        self.last: dict[str, Any] = {}
        self.since = time.time()

    def give(self, task: tuple[str, int]) -> None:
        self.task, self.last, self.since = task, {}, time.time()
        self.connection.send(task)


class Sweep:
    """The processes, what they reported, and what is left."""

    def __init__(self, options: argparse.Namespace, names: list[str]) -> None:
        self.start = time.time()
        self.end = self.start + options.seconds
        self.options = options
        self.left = deque((name, 0) for name in names)
        self.arguments = options.device, options.largest, self.end
        self.workers: list[Worker] = []
        self.reports: list[dict[str, Any]] = []
        self.skipped: list[str] = []
        self.names = names
        self.deaths: Counter[str] = Counter()
        self.groups: dict[str, list[dict[str, Any]]] = {}
        self.warned: Counter[str] = Counter()
        self.log = open(options.json, "w") if options.json else None  # noqa: SIM115

    def run(self) -> None:
        count = min(self.options.processes, len(self.left))
        self.workers = [Worker(self.arguments) for _ in range(count)]
        while time.time() < self.end + GRACE:
            for worker in self.workers:
                if worker.task is None and self.left and time.time() < self.end:
                    with contextlib.suppress(OSError):  # it died: its connection says so below
                        worker.give(self.left.popleft())
            busy = [worker for worker in self.workers if worker.task is not None]
            if not busy:
                break
            for connection in wait([worker.connection for worker in busy], timeout=0.5):
                self.hear(next(worker for worker in busy if worker.connection is connection))
            for worker in busy:
                if worker.task and time.time() - worker.since > self.options.patience:
                    worker.process.kill()
                    self.lost(worker, f"no word for {self.options.patience} s: killed")
        for worker in self.workers:
            if worker.task is not None:
                self.skipped.append(f"{worker.task[0]} (cut off in {worker.last.get('case')})")
            worker.process.kill()
        self.skipped += [name for name, _ in self.left]

    def hear(self, worker: Worker) -> None:
        try:
            kind, name, report = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(5)
            self.lost(worker, f"the process died with code {worker.process.exitcode}")
            return
        worker.since = time.time()
        if kind == "begins":
            worker.last = report
        elif kind == "ends":
            worker.last = report
            self.record(report)
        elif kind == "skipped":
            self.skipped.append(name)
        elif kind == "broken":
            self.lost(worker, "")
        elif kind == "done":
            worker.task = None

    def lost(self, worker: Worker, why: str) -> None:
        """Record what a worker died of; a new one goes on behind the case."""
        name, skip = worker.task or ("", 0)
        case = worker.last.get("case", "the start of the process")
        if why:
            words = {"type": "Died", "message": why, "place": "", "traceback": ""}
            self.record({"task": name, "case": case, "status": "FAILED", "seconds": 0.0, **words})
        self.deaths[name] += 1
        self.workers.remove(worker)
        if self.deaths[name] < MAX_DEATHS:
            self.left.appendleft((name, max(skip, worker.last.get("number", -1) + 1)))
        else:
            self.skipped.append(f"{name} (after {MAX_DEATHS} deaths)")
        if self.left and sum(self.deaths.values()) < MAX_ALL_DEATHS:
            self.workers.append(Worker(self.arguments))

    def record(self, report: dict[str, Any]) -> None:
        self.reports.append(report)
        self.warned.update(report.get("warnings", {}))
        if self.log:
            print(json.dumps(report, default=str), file=self.log, flush=True)
        if report["status"] == "FAILED":
            message = re.sub(NUMBER, "#", report["message"])
            key = f"{report['type']} {report['place']} {message[:60]}"
            self.groups.setdefault(key, []).append(report)
            if len(self.groups[key]) <= MAX_LINES:
                print(line(report), flush=True)

    def summary(self) -> None:
        failed = [report for report in self.reports if report["status"] == "FAILED"]
        said = [report for report in self.reports if isinstance(report.get("said"), str)]
        errors = [report for report in self.reports if isinstance(report.get("said"), float)]
        print("\nChecks said:")
        told = Counter(
            f"{report['task']}: {re.sub(NUMBER, '#', report['said'])[:150]}"
            for report in said
            if report["said"] and ":" not in report["task"]
        )
        for words, count in told.items():
            print(f"  {count} x {words}")
        refused = Counter(report["said"][:90] for report in said if ":" in report["task"])
        print(f"Both devices refuse {sum(refused.values())} cases, such as {list(refused)[:2]}")
        print("Largest errors that passed, in units of rounding:")
        for report in sorted(errors, key=lambda report: -report["said"])[:8]:
            print(f"  {report['said']:.0f} {report['task']} {report['case'][:70]}")
        print("Slowest cases:")
        for report in sorted(self.reports, key=lambda report: -report["seconds"])[:10]:
            print(f"  {report['seconds']:.1f} s {report['task']} {report['case'][:70]}")
        print(f"Warnings: {sum(self.warned.values())}")
        for text, count in self.warned.most_common(6):
            print(f"  {count} x {text[:200]}")
        print(self.covered())
        if self.skipped:
            print(f"Skipped: {len(self.skipped)} tasks: {' '.join(self.skipped)[:500]}")
        print(f"Failures: {len(failed)} in {len(self.groups)} groups")
        for group in sorted(self.groups.values(), key=len, reverse=True)[:25]:
            names = list(dict.fromkeys(report["task"] for report in group))
            print(f"  {len(group)} x in {len(names)} tasks, such as {line(group[0])[:260]}")
        print(
            f"{len(self.reports) - len(failed)} passed, {len(failed)} failed, {len(self.skipped)} "
            f"tasks skipped, {sum(self.deaths.values())} processes died, "
            f"{time.time() - self.start:.0f} s"
        )

    def covered(self) -> str:
        """Return how many operations ran with all examples, also larger sizes, also all dtypes."""
        ran = set(self.names) - {name.split()[0] for name in self.skipped}
        own, larger, rest = [
            {task.partition(":")[2] for task in ran if task.startswith(f"{part}:")}
            for part in PARTS[1:]
        ]
        return (
            f"Operations that ran: {len(own)} with their examples, {len(own & larger)} also with "
            f"larger operands, {len(own & larger & rest)} also with the other dtypes"
        )


def line(report: dict[str, Any]) -> str:
    case, place = str(report["case"])[:80], report["place"]
    return f"FAILED {report['task']} {case}: {report['type']}: {report['message'][:250]} ({place})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--seconds", type=float, default=85, help="no case begins after them")
    parser.add_argument("--patience", type=float, default=40, help="seconds that a case may take")
    parser.add_argument("--largest", type=int, default=10**6, help="elements of an operand")
    parser.add_argument("--device", default="gpu:0", help="cpu: to try the cases themselves")
    parser.add_argument("--json", help="a file to write: one line for each case")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    names = [task for task in tasks() if is_asked(task, options.names)]
    if options.list or not names:
        print("\n".join(names) or f"no task of these names: {' '.join(options.names)}")
        return 0 if names else 2
    for variable in SINGLE:
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    sweep = Sweep(options, names)
    sweep.run()
    sweep.summary()
    return 1 if sweep.groups else 0


if __name__ == "__main__":
    raise SystemExit(main())
