"""Operations. Everything about one of them stands in its record, in the module of its kind.

The modules of `_LATER` are loaded when they are first asked for, as by a function that calls
``_ops.pooling.max_pool``; the others with the library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # at run time `__getattr__` loads them
    from . import (  # noqa: F401
        activation_functions,
        attention,
        bessel,
        block_moves,
        candidates,
        casts,
        complex_parts,
        convolution,
        counting,
        decompositions,
        diagonals,
        distribution_functions,
        distributions,
        dlpack,
        eigenvectors,
        einsum,
        factorizations,
        filters,
        fourier,
        hurwitz,
        incomplete,
        integrals,
        least_squares,
        loss_functions,
        matrices,
        matrix_functions,
        normalizations,
        norms,
        padding,
        pooling,
        sampling,
        searching,
        segments,
        sequences,
        spectra,
        spectral,
        statistics,
        systems,
        tapers,
        updates,
        volumes,
        windows,
    )

_MODULES = (
    "comparison complex creation elementwise indexing integers linear_algebra operators protocol "
    "reductions cumulative shape sorting special_functions transfer trigonometry"
)
_LATER = (
    "activation_functions attention bessel block_moves candidates casts complex_parts convolution "
    "counting decompositions diagonals distribution_functions distributions dlpack eigenvectors "
    "einsum factorizations filters fourier hurwitz incomplete integrals least_squares "
    "loss_functions matrices matrix_functions normalizations norms padding pooling sampling "
    "searching segments sequences spectra spectral statistics systems tapers updates volumes "
    "windows"
)


def __getattr__(name: str) -> Any:
    """Return a module of `_LATER`, which is loaded now."""
    if name not in _LATER.split():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def load_all() -> None:
    """Load all modules, so that the registry has every operation."""
    for module in _LATER.split():
        import_module(f".{module}", __name__)


MODULES = [import_module(f".{name}", __name__) for name in _MODULES.split()]
