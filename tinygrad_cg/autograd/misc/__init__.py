"""autograd's helpers: `flatten`, optimizers over nested parameters, fixed points."""

from .flatten import flatten

__all__ = ["flatten"]
__dir__ = __all__.copy
