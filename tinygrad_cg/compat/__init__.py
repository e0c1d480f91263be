"""Names of earlier versions."""

from . import v1

__all__ = ["v1"]


def __dir__() -> list[str]:
    return sorted(__all__)
