"""How many faults the tests detect: `python -m tests.support.faults COUNT SEED`.

It plants single faults in the library (a sign, swapped operands, a term or a check that is dropped,
an axis, an off-by-one, a dtype, a swallowed error), one at a time, in a copy of the tree, and runs
the tests that call the function, the narrowest first, until one fails. It prints the share that is
detected, and each fault that is not. A seed gives the same faults where the code still stands.

First it needs the map of which test calls what: `--map` runs the tests once to make it, all of
them or those that further arguments choose, as `--map -m quick -n 2`. For functions that no test
in the map calls, the tests in the folder of the room are run. The copy, the map, the kernels and
the results stay in `--folder`; a second run goes on where the first one stopped. `--fresh` copies
the tree anew and forgets results, not the map.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.fault_map import CHILD, FOLDER, Map
from tests.support.fault_places import Fault, choose, users

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "build", "*.pyc")
ROOMS = {"kernels": "kernels", "numpy": "spellings", "keras": "spellings", "compat": "spellings"}
"""Folders of tests, for parts of paths that name no folder of their own."""
OF_KERNELS = (
    "tests/kernels/test_accuracy.py",
    "tests/kernels/test_math.py",
    "tests/ops/test_ops.py",
)
VARIANT = re.compile(r"^_+|_?(64|32|real|complex)$")
"""What tells a function of the kernels from the operation that it computes."""
TIME_LIMIT = "time limit"
BROAD = ("tests/spellings", "tests/core")
"""Where tests of everything else are."""


class Outcome(NamedTuple):
    fault: str
    place: str
    detected: bool
    by: str


class Tree:
    """A copy of the project in which faults are planted."""

    def __init__(self, folder: Path):
        self.folder, self.root = folder, folder / "tree"
        self.maps, self.children = folder / "maps", folder / "children"
        for path in (self.maps, self.children):
            path.mkdir(parents=True, exist_ok=True)
        (self.children / "sitecustomize.py").write_text(CHILD, encoding="utf-8")
        self.reliable: set[str] = set()
        self.unreliable: set[str] = set()
        if not self.root.exists():
            shutil.copytree(ROOT, self.root, ignore=LEFT_OUT)

    def run(self, arguments: list[str], seconds: float, cache: str, **variables: str) -> str:
        """Run pytest; return "" if all pass, or else what failed."""
        paths = [str(self.root), str(self.root / "kernels"), str(self.root / "benchmarks/plugin")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([variables.pop("first", ""), *paths]).lstrip(os.pathsep),
            "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
            "TINYGRAD_CG_CACHE_DIR": str(self.folder / cache),
            **variables,
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for _ in range(round(seconds)):  # time for which all processes are stopped is no time
                try:
                    code = process.wait(1)
                except subprocess.TimeoutExpired:
                    continue
                break
            else:
                os.killpg(process.pid, 9)
                process.wait()
                return TIME_LIMIT
            if code in (0, 5):
                return ""
            output.seek(0)
            lines = output.read().splitlines()
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        return failed[0].partition(" - ")[0] if failed else f"exit code {code}"

    def write_map(self, arguments: list[str]) -> None:
        variables = {FOLDER: str(self.maps), "first": str(self.children)}
        self.run(["-p", "tests.support.fault_map", *arguments], 7200, "cache", **variables)

    def try_fault(self, fault: Fault, known: Map, seconds: float) -> Outcome:
        """Run tests with a fault until one fails that passes without it."""
        limit = 60.0 + 4 * seconds
        cache = "cache"
        if fault.path.startswith("kernels/"):  # all kernels are compiled anew
            cache = f"cache_{os.getpid()}"
        failed = ""
        for arguments in self.tests_of(fault, known, seconds):
            left_out = [f"--deselect={test}" for test in self.unreliable]
            with self.planted(fault):
                failed = self.run(["-x", *left_out, *arguments], limit, cache)
            if failed == TIME_LIMIT and arguments[0] not in known.tests:
                failed = ""  # these tests may take longer than that without a fault
            if failed and self.passes_without(failed, arguments, limit):
                break
            failed = ""
        if cache != "cache":
            shutil.rmtree(self.folder / cache, ignore_errors=True)
        return Outcome(fault.name, f"{fault.path}:{fault.line}", bool(failed), failed)

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        path = self.root / fault.path
        source, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(fault.plant(source), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def passes_without(self, failed: str, arguments: list[str], limit: float) -> bool:
        """Whether what failed with a fault passes without one."""
        if not failed.startswith("FAILED "):  # modules were not imported, or it took too long
            if failed != TIME_LIMIT:
                arguments = ["--collect-only", *arguments]
            return not self.run(arguments, limit, "cache")
        test = failed.removeprefix("FAILED ")
        if test not in self.reliable:
            if self.run([test], limit, "cache"):
                self.unreliable.add(test)
                return False
            self.reliable.add(test)
        return True

    def tests_of(self, fault: Fault, known: Map, seconds: float) -> Iterator[list[str]]:
        """Yield pytest's arguments, one run's after the other."""
        if "/elementary/" in fault.path:  # what is compiled is not in the map
            functions = {VARIANT.sub("", name) for name in users(self.root / fault.path, fault)}
            ids = [f"[{name}- or [{name}] or -{name}]" for name in sorted(functions)]
            yield [*OF_KERNELS, "-k", " or ".join(ids)]
            yield ["-m", "quick", *self.folders_of(fault)]
            return
        tests = known.tests_of(fault.path, fault.begins, seconds)
        if tests:
            yield tests
        if len(tests) < 5 and (fault.path.startswith("kernels/") or not fault.begins):
            yield ["-m", "quick", *self.folders_of(fault)]  # of what is compiled the map is silent
        for file in self.files_about(fault):
            yield [file]

    def files_about(self, fault: Fault, count: int = 3) -> list[str]:
        """Return the files of tests that name a module or a function most often."""
        stem = Path(fault.path).stem.strip("_")
        words = [word for word in fault.function.split(".") if not word.startswith("__")]
        function = words[-1] if words else stem
        names = [re.compile(rf"\b{re.escape(name)}\b") for name in (stem, function.strip("_"))]
        scores = {}
        for path in (self.root / "tests").rglob("test_*.py"):
            text = path.read_text(encoding="utf-8")
            of_module, of_function = (len(name.findall(text)) for name in names)
            own = stem.rstrip("s") in path.stem and len(stem) > 3
            score = of_module + 20 * (own + of_function)
            scores[path.relative_to(self.root).as_posix()] = score
        best = sorted(scores, key=lambda name: -scores[name])[:count]
        return [name for name in best if scores[name]]

    def folders_of(self, fault: Fault) -> list[str]:
        """Return the tests of a room."""
        parts = [part.strip("_") for part in Path(fault.path).with_suffix("").parts]
        for part in reversed(parts):
            for name in (part, ROOMS.get(part, part)):
                if (self.root / "tests" / name).is_dir():
                    return [f"tests/{name}"]
            if (self.root / "tests" / f"test_{part}.py").exists():
                return [f"tests/test_{part}.py"]
        return [*BROAD]


def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.faults", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("count", type=int, nargs="?", help="number of faults")
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "faults"))
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests for each fault")
    parser.add_argument("--again", action="store_true", help="try what was not detected again")
    parser.add_argument("--fresh", action="store_true", help="copy the tree, forget results")
    parser.add_argument("--map", nargs=argparse.REMAINDER, help="make the map; pytest's arguments")
    chosen = parser.parse_args(args)
    if chosen.fresh:
        shutil.rmtree(chosen.folder / "tree", ignore_errors=True)
        for path in chosen.folder.glob("results_*.jsonl"):
            path.unlink()
    tree = Tree(chosen.folder)
    if chosen.map is not None:
        tree.write_map(chosen.map)
    if chosen.count:
        run(tree, chosen.count, chosen.seed, chosen.seconds, chosen.again)


def run(tree: Tree, count: int, seed: int, seconds: float, again: bool) -> None:
    """Try each fault that has no result yet, and print the share that is detected."""
    known = Map(tree.maps)
    path = tree.folder / f"results_{seed}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    outcomes = {outcome.fault: outcome for outcome in (Outcome(*json.loads(x)) for x in lines)}
    faults = choose(tree.root, count, seed)
    for number, fault in enumerate(faults, 1):
        if fault.name in outcomes and (outcomes[fault.name].detected or not again):
            continue
        began = time.perf_counter()
        outcome = outcomes[fault.name] = tree.try_fault(fault, known, seconds)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcome) + "\n")
        said = f"detected by {outcome.by}" if outcome.detected else "NOT DETECTED"
        taken = time.perf_counter() - began
        print(f"{number}/{count} {taken:.0f} s {outcome.place} {fault.kind}: {said}", flush=True)
    results = [outcomes[fault.name] for fault in faults]
    missed = [outcome for outcome in results if not outcome.detected]
    share = 1 - len(missed) / len(results)
    print(f"{len(results) - len(missed)} of {len(results)} faults detected: {share:.1%}")
    for outcome in missed:
        print(f"{outcome.place}\n    {outcome.fault}")


if __name__ == "__main__":
    main()
