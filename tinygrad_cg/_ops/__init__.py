"""Operations. Everything about one of them stands in its record, in the module of its kind.

They and their kernels are loaded without passes of the garbage collector: loading makes many
objects that stay, and looking through all of them for cycles would take a third of the time that
it takes to import the library.
"""

import gc
from importlib import import_module

_MODULES = (
    "activations attention blocks casts comparison complex convolution creation decompositions "
    "diagonals distributions eigenvectors einsum elementwise factorizations fourier indexing "
    "integers least_squares linear_algebra losses matrices matrix_functions normalizations norms "
    "operators padding pooling protocol reductions sampling scans segments shape sorting "
    "special_functions tapers trigonometry updates"
)

_was_enabled = gc.isenabled()
gc.disable()
try:
    MODULES = [import_module(f".{name}", __name__) for name in _MODULES.split()]
finally:
    if not gc.get_freeze_count():  # else the program itself has frozen objects
        gc.freeze()
        gc.unfreeze()  # they go to the oldest generation, and no pass looks at them
    if _was_enabled:
        gc.enable()
