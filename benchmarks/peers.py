"""Who is measured: a record for each library and mode."""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions, version

from benchmarks.library import Library
from benchmarks.work import Work


@dataclass(frozen=True)
class Peer:
    """A library in one of the modes that its `with_*` module has."""

    package: str
    mode: str
    compiles: bool = False

    @property
    def name(self) -> str:
        """Return what it is called in tables."""
        return f"{self.package} {self.mode}"

    @property
    def version(self) -> str:
        """Return the version that is installed."""
        return version(packages_distributions()[self.package][0])

    @property
    def library(self) -> Library:
        """Return the adapter, which imports the library."""
        return _library(self)

    def build(self, work: Work) -> Callable[[], tuple] | None:
        """Return a function of no arguments that does the work; None if the library `lacks` it."""
        library = self.library
        if work.program in library.lacks:
            return None
        call, finished = library.compiled(getattr(library, work.program)), library.finished
        arrays = [library.array(x, k < work.wanted) for k, x in enumerate(work.data())]
        return lambda: finished(call(*arrays))


@cache
def _library(peer: Peer) -> Library:
    return importlib.import_module(f"benchmarks.with_{peer.package}").MODES[peer.mode]()


EAGER, COMPILED = Peer("tinygrad_cg", "eager"), Peer("tinygrad_cg", "compiled", True)
TORCH, BY_HAND = Peer("torch", "eager"), Peer("numpy", "by hand")

PEERS = (
    EAGER,
    COMPILED,
    Peer("jax", "jit", True),
    Peer("torch", "compile", True),
    Peer("tensorflow", "function", True),
    Peer("tensorflow", "XLA", True),
    TORCH,
    Peer("jax", "eager"),
    Peer("tensorflow", "eager"),
    Peer("autograd", "eager"),
    BY_HAND,
)
"""Add a library here, and its adapter to the others."""

INSTALLED = tuple(peer for peer in PEERS if importlib.util.find_spec(peer.package))
