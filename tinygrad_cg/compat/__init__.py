"""Names of earlier versions."""

from . import v1

__all__ = ["v1"]
