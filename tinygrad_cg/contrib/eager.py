"""The first home of custom gradients."""

from .._rules.custom_gradient import custom_gradient

__all__ = ["custom_gradient"]
