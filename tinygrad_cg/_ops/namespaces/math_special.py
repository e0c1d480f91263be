"""TensorFlow's ``tf.math.special``."""

from __future__ import annotations

from ... import _ops
from ..._core.annotations import TensorLike
from ..._core.tensor import Tensor
from .. import special_functions as _special_functions
from .namespace import export_functions


def bessel_i0(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0."""
    return _special_functions.bessel_i0(x)


def bessel_i0e(x: TensorLike, name: str | None = None) -> Tensor:
    """Return ``exp(-abs(x)) * bessel_i0(x)``, which does not overflow."""
    return _special_functions.bessel_i0e(x)


def bessel_i1(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1."""
    return _special_functions.bessel_i1(x)


def bessel_i1e(x: TensorLike, name: str | None = None) -> Tensor:
    """Return ``exp(-abs(x)) * bessel_i1(x)``, which does not overflow."""
    return _special_functions.bessel_i1e(x)


def bessel_j0(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the Bessel function of the first kind of order 0.

    Elementwise; the shape of `x`, and its dtype (integers give float64). Right to 4 units in the
    last place of the larger of the value and sqrt(2 / (pi x)), with gradients at every order. NaN
    at infinities. Modelled on ``tf.math.special.bessel_j0``, by approximations of our own.
    """
    return _ops.bessel.bessel_j0(x)


def bessel_j1(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the Bessel function of the first kind of order 1; otherwise as `bessel_j0`."""
    return _ops.bessel.bessel_j1(x)


def bessel_k0(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of the second kind of order 0.

    Elementwise; the shape of `x`, and its dtype (integers give float64). Right to 4 units in the
    last place, with gradients at every order. Infinite at 0, and NaN below (as in SciPy; TensorFlow
    has inf). Modelled on ``tf.math.special.bessel_k0``, by approximations of our own.
    """
    return _ops.bessel.bessel_k0(x)


def bessel_k0e(x: TensorLike, name: str | None = None) -> Tensor:
    """Return ``exp(x) * bessel_k0(x)``, which does not underflow."""
    return _ops.bessel.bessel_k0e(x)


def bessel_k1(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of the second kind of order 1; see `bessel_k0`."""
    return _ops.bessel.bessel_k1(x)


def bessel_k1e(x: TensorLike, name: str | None = None) -> Tensor:
    """Return ``exp(x) * bessel_k1(x)``, which does not underflow."""
    return _ops.bessel.bessel_k1e(x)


def bessel_y0(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the Bessel function of the second kind of order 0.

    Elementwise; -inf at 0, and NaN below (as in SciPy; TensorFlow has -inf) and at infinity.
    Otherwise as `bessel_j0`.
    """
    return _ops.bessel.bessel_y0(x)


def bessel_y1(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the Bessel function of the second kind of order 1; otherwise as `bessel_y0`."""
    return _ops.bessel.bessel_y1(x)


def dawsn(x: TensorLike, name: str | None = None) -> Tensor:
    """Return Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x.

    Elementwise; the shape of `x`, and its dtype (integers give float64). Right to 4 units in the
    last place, by approximations of our own; the gradients lose no digits for large `x`, where 1 -
    2 x dawsn(x) does. Modelled on ``tf.math.special.dawsn``.
    """
    return _ops.integrals.dawsn(x)


def expint(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the exponential integral Ei(x): the integral of exp(t) / t from -inf to x, the
    principal value above 0. Infinite at 0; below 0 it is -E1(-x), as in SciPy (TensorFlow has NaN
    there). Accurate by approximations of our own, and differentiable at every order. After
    ``tf.math.special.expint``.

    Elementwise; the result has the shape of `x`, a tensor or array-like.
    """
    return _ops.integrals.expint(x)


def fresnel_cos(x: TensorLike, name: str | None = None) -> Tensor:
    """Return Fresnel's integral C(x): that of cos(pi t**2 / 2) from 0 to x; 1/2 at infinity.
    Accurate by approximations of our own, and differentiable at every order. After
    ``tf.math.special.fresnel_cos``.

    Elementwise; the result has the shape of `x`, a tensor or array-like.
    """
    return _ops.integrals.fresnel_cos(x)


def fresnel_sin(x: TensorLike, name: str | None = None) -> Tensor:
    """Return Fresnel's integral S(x): that of sin(pi t**2 / 2) from 0 to x; 1/2 at infinity.
    Accurate by approximations of our own, and differentiable at every order. After
    ``tf.math.special.fresnel_sin``.

    Elementwise; the result has the shape of `x`, a tensor or array-like.
    """
    return _ops.integrals.fresnel_sin(x)


def spence(x: TensorLike, name: str | None = None) -> Tensor:
    """Return Spence's function: the integral of log(t) / (1 - t) from 1 to x.

    It is the dilogarithm of 1 - x. Elementwise; the shape of `x`, and its dtype (integers give
    float64). NaN below 0 and at infinity. Right to 2 units in the last place, by approximations of
    our own, and differentiable at every order, at 1 too. Modelled on ``tf.math.special.spence``.
    """
    return _ops.integrals.spence(x)


__all__ = export_functions(globals())
