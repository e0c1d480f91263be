"""The same work in HIPS autograd."""

import importlib
from typing import Any

import numpy as np

from benchmarks import LENGTH

autograd: Any = importlib.import_module("autograd")
anp: Any = importlib.import_module("autograd.numpy")
extend: Any = importlib.import_module("autograd.extend")


@extend.primitive
def log1pexp(x):
    return anp.log(1 + anp.exp(x))


extend.defvjp(log1pexp, lambda y, x: lambda dy: dy * (1 - 1 / (1 + anp.exp(x))))

summed_value_and_gradient = autograd.value_and_grad(lambda x: anp.sum(log1pexp(x)))
summed_gradient = autograd.grad(lambda x: anp.sum(log1pexp(x)))
summed_second = autograd.value_and_grad(lambda x: anp.sum(summed_gradient(x)))


def value_and_gradient(values: np.ndarray):
    return lambda: summed_value_and_gradient(values)


compiled_value_and_gradient = value_and_gradient  # this library compiles, the peers do not


def chain(value: np.ndarray):
    def multiplied(x):
        y = x
        for _ in range(LENGTH):
            y = y * x
        return y

    differentiated = autograd.value_and_grad(multiplied)
    return lambda: differentiated(value)


def constant_chain(value: np.ndarray):
    def multiplied(x):
        y = x
        for _ in range(LENGTH):
            y = y * value
        return y

    differentiated = autograd.value_and_grad(multiplied)
    return lambda: differentiated(value)


def second_order(values: np.ndarray):
    return lambda: summed_second(values)


def rosenbrock_hessian(values: np.ndarray):
    second = autograd.hessian(
        lambda x: anp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    )
    return lambda: (second(values),)


def layer_jacobian(values: np.ndarray):
    x, w = values[0], values[1:]
    matrix = autograd.jacobian(lambda x: anp.tanh(anp.dot(w, x)))
    return lambda: (matrix(x),)
