"""Transforms of functions of vectors, and their derivatives in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinygrad_cg as tf
from tests.support.compiled import unfused

POINT = np.array([0.7, -1.2, 1.9])
TANGENT = np.array([0.3, -1.0, 0.4])
WEIGHTS = np.array([1.5, -0.5, 2.0])


class Exact(NamedTuple):
    """A function of vectors in NumPy, its Jacobian, and the array of its second derivatives."""

    value: Callable[[np.ndarray], np.ndarray]
    first: Callable[[np.ndarray], np.ndarray]
    second: Callable[[np.ndarray], np.ndarray]


def diagonal(x: np.ndarray) -> np.ndarray:
    out = np.zeros((3, 3, 3))
    out[[0, 1, 2], [0, 1, 2], [0, 1, 2]] = x
    return out


SINE = Exact(np.sin, lambda x: np.diag(np.cos(x)), lambda x: -diagonal(np.sin(x)))


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: tf.reduce_sum(f(x) * tf.constant(WEIGHTS))


def along(gradient: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: tf.reduce_sum(gradient(x) * tf.constant(TANGENT))


def gradient(exact: Exact, x: np.ndarray) -> np.ndarray:
    return WEIGHTS @ exact.first(x)


def hessian(exact: Exact, x: np.ndarray) -> np.ndarray:
    return np.einsum("i,ijk->jk", WEIGHTS, exact.second(x))


def pair(x: np.ndarray) -> np.ndarray:
    return np.stack([x, -0.5 * x])


def each(expected: Callable[[Exact, np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda exact, x: np.stack([expected(exact, row) for row in pair(x)])


def tangent_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: tf.jvp(function, (x,), (tf.constant(TANGENT),))[1]


def value(exact: Exact, x: np.ndarray) -> np.ndarray:
    return exact.value(x)


def first(exact: Exact, x: np.ndarray) -> np.ndarray:
    return exact.first(x)


def tangent(exact: Exact, x: np.ndarray) -> np.ndarray:
    return exact.first(x) @ TANGENT


def product(exact: Exact, x: np.ndarray) -> np.ndarray:
    return hessian(exact, x) @ TANGENT


def of_pair(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: function(tf.stack([x, -0.5 * x]))


Transform = tuple[Callable[..., Any], Callable[[Exact, np.ndarray], np.ndarray]]
TRANSFORMS: dict[str, Transform] = {
    "value": (lambda f: f, value),
    "grad": (lambda f: tf.grad(loss(f)), gradient),
    "grad of grad": (lambda f: tf.grad(along(tf.grad(loss(f)))), product),
    "jacobian": (tf.jacobian, first),
    "forward jacobian": (lambda f: tf.jacobian(f, mode="forward"), first),
    "hessian": (lambda f: tf.hessian(loss(f)), hessian),
    "vmap": (lambda f: of_pair(tf.vmap(f)), each(value)),
    "vmap of grad": (lambda f: of_pair(tf.vmap(tf.grad(loss(f)))), each(gradient)),
    "vmap of hessian": (lambda f: of_pair(tf.vmap(tf.hessian(loss(f)))), each(hessian)),
    "grad of vmap": (
        lambda f: of_pair(tf.grad(lambda xs: tf.reduce_sum(tf.vmap(loss(f))(xs)))),
        each(gradient),
    ),
    "jvp": (tangent_of, tangent),
    "linearize": (lambda f: lambda x: tf.linearize(f, x)[1](tf.constant(TANGENT)), tangent),
    "vmap of jvp": (lambda f: of_pair(tf.vmap(tangent_of(f))), each(tangent)),
    "jvp of vmap": (
        lambda f: tangent_of(of_pair(tf.vmap(f))),
        lambda exact, x: np.array([[1.0], [-0.5]]) * each(tangent)(exact, x),
    ),
    "function of vmap of jvp": (lambda f: unfused(of_pair(tf.vmap(tangent_of(f)))), each(tangent)),
    "function of hvp": (
        lambda f: unfused(lambda x: tf.hvp(loss(f))(x, tf.constant(TANGENT))),
        product,
    ),
    "jvp of grad": (lambda f: tangent_of(tf.grad(loss(f))), product),
    "grad of jvp": (
        lambda f: tf.grad(lambda x: tf.reduce_sum(tangent_of(f)(x) * tf.constant(WEIGHTS))),
        product,
    ),
    "hvp": (lambda f: lambda x: tf.hvp(loss(f))(x, tf.constant(TANGENT)), product),
    "function": (unfused, value),
    "grad of function": (lambda f: tf.grad(unfused(loss(f))), gradient),
    "function of grad": (lambda f: unfused(tf.grad(loss(f))), gradient),
    "hessian of function": (lambda f: tf.hessian(unfused(loss(f))), hessian),
    "function of hessian": (lambda f: unfused(tf.hessian(loss(f))), hessian),
    "jacobian of function": (lambda f: tf.jacobian(unfused(f)), first),
    "function of jacobian": (lambda f: unfused(tf.jacobian(f)), first),
    "jvp of function": (lambda f: tangent_of(unfused(f)), tangent),
    "function of jvp": (lambda f: unfused(tangent_of(f)), tangent),
    "function of vmap of grad": (
        lambda f: unfused(of_pair(tf.vmap(tf.grad(loss(f))))),
        each(gradient),
    ),
}
