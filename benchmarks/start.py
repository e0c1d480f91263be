"""How long it takes to begin: each in a separate process, with caches of its own.

`python -m benchmarks.start PACKAGE MODE` is such a process.
"""

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial

import numpy as np

from benchmarks.peers import PEERS, Peer
from benchmarks.work import Work, vector

CACHES = ("TINYGRAD_CG_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
GRADIENT = Work("log1pexp", "log1pexp", partial(vector, 1_000))
_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def import_times(rounds: int) -> dict[str, float]:
    """Return the median time to import each of some modules, in fresh processes taken in turns.

    The first round is for Python to write its bytecode, which it keeps as usual.
    """
    modules = ("numpy", "numba", "tinygrad_cg")
    times: dict[str, list[float]] = {module: [] for module in modules}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(rounds + 1):
        for module in modules:
            command = [sys.executable, "-c", _IMPORT.format(module)]
            done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
            times[module].append(float(done.stdout))
    return {module: statistics.median(taken[1:]) for module, taken in times.items()}


def start_times(peer: Peer, fresh: bool = True) -> tuple[float, ...]:
    """Return seconds to import a library, to a first gradient, and to it in a second process.

    With `fresh`, the first process finds its caches on disk empty.
    """
    command = [sys.executable, "-m", "benchmarks.start", peer.package, peer.mode]
    with tempfile.TemporaryDirectory() as folder:
        own = {name: os.path.join(folder, name) for name in CACHES} if fresh else {}
        taken = []
        for _ in range(2):
            done = subprocess.run(command, check=True, env=os.environ | own, stdout=subprocess.PIPE)
            taken.append(json.loads(done.stdout.splitlines()[-1]))
    (imported, first), (_, again) = taken
    return imported, first, again


def begin(package: str, mode: str) -> tuple[float, float]:
    """Return seconds to import the library, and to the first gradient in this process.

    What compiles has compiled another program before, so that its own start does not count.
    """
    peer = next(peer for peer in PEERS if (peer.package, peer.mode) == (package, mode))
    start = time.perf_counter()
    importlib.import_module(package)
    imported = time.perf_counter() - start
    library = peer.library
    if peer.compiles:
        twice = library.compiled(lambda x: (x * 2.0,))
        library.finished(twice(library.array(np.ones(3), False)))
    start = time.perf_counter()
    run = peer.build(GRADIENT)
    assert run is not None
    run()
    return imported, time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(begin(sys.argv[1], sys.argv[2])))
