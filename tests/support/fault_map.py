"""Which functions of the library each test calls.

This is a pytest plugin: with `-p tests.support.fault_map` and a folder in the environment variable
`FAULT_MAP` it writes a line for each test that passes. `CHILD` is the text of a `sitecustomize`
module that does so for processes that tests start.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest

FOLDER = "FAULT_MAP"
LIBRARY = (f"{os.sep}tinygrad_cg", f"{os.sep}kernels{os.sep}tinygrad_cg_")
CHILD = """
import os
if os.environ.get("FAULT_MAP") and os.environ.get("PYTEST_CURRENT_TEST"):
    import atexit
    from tests.support.fault_map import Calls
    _calls = Calls()
    _test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    _calls.start()
    atexit.register(lambda: _calls.write(_test, _calls.stop()))
"""


class Calls:
    """The code objects that run between `start` and `stop`."""

    def __init__(self) -> None:
        self.seen: dict[int, CodeType] = {}
        self.began = 0.0

    def start(self) -> None:
        self.seen.clear()
        self.began = time.perf_counter()
        threading.settrace(self._note)
        sys.settrace(self._note)

    def stop(self) -> float:
        """Return the seconds since `start`."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        return time.perf_counter() - self.began

    def _note(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        self.seen[id(code)] = code

    def write(self, test: str, seconds: float) -> None:
        root = os.getcwd()
        places = {
            (code.co_filename[len(root) + 1 :], code.co_firstlineno)
            for code in list(self.seen.values())
            if code.co_filename.startswith((root + LIBRARY[0], root + LIBRARY[1]))
        }
        row = {"test": test, "seconds": round(seconds, 3), "places": sorted(places)}
        with open(Path(os.environ[FOLDER], f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


_calls = Calls()
_failed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    _calls.start()
    result = yield
    seconds = _calls.stop()
    if item.nodeid not in _failed:
        _calls.write(item.nodeid, seconds)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed or report.skipped:
        _failed.add(report.nodeid)


class MappedTest(NamedTuple):
    """A test as the map has it."""

    seconds: float
    functions: int


class Map:
    """Tests by the functions that they call."""

    def __init__(self, folder: Path):
        self.tests: dict[str, MappedTest] = {}
        self.callers: dict[tuple[str, int], set[str]] = defaultdict(set)
        for path in sorted(folder.glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                before = self.tests.get(row["test"], MappedTest(0.0, 0))
                self.tests[row["test"]] = MappedTest(
                    max(row["seconds"], before.seconds), before.functions + len(row["places"])
                )
                for name, first in row["places"]:
                    self.callers[name, first].add(row["test"])

    def tests_of(self, path: str, begins: int, seconds: float, alike: int = 4) -> list[str]:
        """Return tests that call a function, as many as take some seconds, the narrowest first.

        Of the cases of one test function, `alike` come before those of others, then as many again.
        """
        ranks: dict[str, int] = defaultdict(int)
        ordered = []
        for test in sorted(self.callers[path, begins], key=lambda test: self.tests[test].functions):
            function = test.partition("[")[0]
            ranks[function] += 1
            ordered.append((ranks[function] // alike, len(ordered), test))
        chosen, total = [], 0.0
        for _, _, test in sorted(ordered):
            total += self.tests[test].seconds
            if chosen and total > seconds:
                break
            chosen.append(test)
        return chosen
