"""The first home of custom gradients."""

from ..custom_gradient import custom_gradient

__all__ = ["custom_gradient"]
