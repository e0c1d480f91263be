"""A stand-in for ``cupyx``: see ``cupy`` beside it."""

from cupy.errors import errstate  # noqa: F401
