"""Densities under the names of ``scipy.stats``, with a module for each distribution."""

from . import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]
__dir__ = __all__.copy
