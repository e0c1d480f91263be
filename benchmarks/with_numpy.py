"""The same numbers in NumPy, by formulas derived on paper."""

import numpy as np

from benchmarks import LENGTH


def value_and_gradient(values: np.ndarray):
    def run():
        e = np.exp(values)
        return np.log(1 + e).sum(), 1 - 1 / (1 + e)

    return run


compiled_value_and_gradient = value_and_gradient  # this library compiles, the peers do not


def chain(value: np.ndarray):
    def run():
        powers = [value]
        for _ in range(LENGTH):
            powers.append(powers[-1] * value)
        gradient, upstream = np.zeros(()), np.ones(())
        for power in reversed(powers[:-1]):
            gradient = gradient + upstream * power
            upstream = upstream * value
        return powers[-1], gradient + upstream

    return run


def constant_chain(value: np.ndarray):
    def run():
        y = value
        for _ in range(LENGTH):
            y = y * value
        gradient = np.ones(())
        for _ in range(LENGTH):
            gradient = gradient * value
        return y, gradient

    return run


def second_order(values: np.ndarray):
    def run():
        gradient = 1 / (1 + np.exp(-values))
        return gradient, gradient * (1 - gradient)

    return run


def rosenbrock_hessian(values: np.ndarray):
    def run():
        x, following = values[:-1], values[1:]
        diagonal = np.zeros_like(values)
        diagonal[:-1] = 1200.0 * x**2 - 400.0 * following + 2.0
        diagonal[1:] += 200.0
        beside = np.diag(-400.0 * x, 1)
        return (np.diag(diagonal) + beside + beside.T,)

    return run


def layer_jacobian(values: np.ndarray):
    x, w = values[0], values[1:]
    return lambda: ((1 - np.tanh(w @ x) ** 2)[:, None] * w,)
