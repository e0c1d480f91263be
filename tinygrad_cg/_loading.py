"""The operations and their kernels, loaded without passes of the garbage collector.

Loading makes many objects that stay: looking through all of them for cycles would take a third
of the time that it takes to import the library.
"""

import gc

_was_enabled = gc.isenabled()
gc.disable()
try:
    from . import _ops as ops  # noqa: F401
finally:
    if not gc.get_freeze_count():  # else it is the program's own doing, and left alone
        gc.freeze()
        gc.unfreeze()  # into the oldest generation, unseen
    if _was_enabled:
        gc.enable()
