"""The first home of custom gradients."""

from .._rules.custom_gradient import custom_gradient

__all__ = ["custom_gradient"]


def __dir__() -> list[str]:
    return sorted(__all__)
