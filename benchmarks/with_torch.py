"""The same work in PyTorch, eager."""

import importlib
from typing import Any

import numpy as np

from benchmarks import LENGTH, THREADS

torch: Any = importlib.import_module("torch")
torch.set_num_threads(THREADS)


class Log1pexp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x)
        ctx.save_for_backward(x)
        return torch.log(1 + e)

    @staticmethod
    def backward(ctx, dy):
        # From x, not from e: what forward computed is a constant to PyTorch's second order.
        (x,) = ctx.saved_tensors
        return dy * (1 - 1 / (1 + torch.exp(x)))


class Log1pexpSavingE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x)
        ctx.save_for_backward(e)
        return torch.log(1 + e)

    @staticmethod
    def backward(ctx, dy):
        (e,) = ctx.saved_tensors
        return dy * (1 - 1 / (1 + e))


def value_and_gradient(values: np.ndarray):
    x = torch.tensor(values, requires_grad=True)

    def run():
        y = Log1pexpSavingE.apply(x).sum()
        (gradient,) = torch.autograd.grad(y, x)
        return y.detach(), gradient

    return run


compiled_value_and_gradient = value_and_gradient  # this library compiles, the peers do not


def chain(value: np.ndarray):
    x = torch.tensor(value, requires_grad=True)

    def run():
        y = x
        for _ in range(LENGTH):
            y = y * x
        (gradient,) = torch.autograd.grad(y, x)
        return y.detach(), gradient

    return run


def constant_chain(value: np.ndarray):
    x, factor = torch.tensor(value, requires_grad=True), torch.tensor(value)

    def run():
        y = x
        for _ in range(LENGTH):
            y = y * factor
        (gradient,) = torch.autograd.grad(y, x)
        return y.detach(), gradient

    return run


def second_order(values: np.ndarray):
    x = torch.tensor(values, requires_grad=True)

    def run():
        y = Log1pexp.apply(x).sum()
        (gradient,) = torch.autograd.grad(y, x, create_graph=True)
        (second,) = torch.autograd.grad(gradient.sum(), x)
        return gradient.detach(), second

    return run


def rosenbrock_hessian(values: np.ndarray):
    x = torch.tensor(values)
    second = torch.func.hessian(
        lambda x: (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()
    )
    return lambda: (second(x),)


def layer_jacobian(values: np.ndarray):
    x, w = torch.tensor(values[0]), torch.tensor(values[1:])
    matrix = torch.func.jacrev(lambda x: torch.tanh(w @ x))
    return lambda: (matrix(x),)
