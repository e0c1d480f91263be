"""The names of ``autograd.builtins``: Python's own, whose containers hold tensors as they are."""

from builtins import dict, isinstance, list, tuple, type  # noqa: UP029

__all__ = ["dict", "isinstance", "list", "tuple", "type"]
__dir__ = __all__.copy
