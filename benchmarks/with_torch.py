"""The work in PyTorch: by `torch.autograd`, and by `torch.func` under `torch.compile`."""

import importlib
import os
from typing import Any

from benchmarks import THREADS
from benchmarks.library import LOOPS, NESTED, Library

# Its threads wait for work by spinning, for milliseconds as they come: whoever is measured after it
# would have one core fewer.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
torch: Any = importlib.import_module("torch")
torch.set_num_threads(THREADS)


class Log1pexp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x)
        ctx.save_for_backward(e)
        return torch.log(1 + e)

    @staticmethod
    def backward(ctx, dy):
        (e,) = ctx.saved_tensors
        return dy * (1 - 1 / (1 + e))


class TwiceDifferentiable(torch.autograd.Function):
    """From x, not from e: what forward computed is a constant to PyTorch's second order."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.log(1 + torch.exp(x))

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * (1 - 1 / (1 + torch.exp(x)))


class Both(Library):
    def __init__(self):
        self.exp, self.log, self.sin, self.cos = torch.exp, torch.log, torch.sin, torch.cos
        self.where = torch.where
        self.tanh, self.sum, self.mean, self.matvec = torch.tanh, torch.sum, torch.mean, torch.mv
        self.relu, self.softplus = torch.relu, torch.nn.functional.softplus
        super().__init__()

    def softmax(self, x):
        return torch.softmax(x, -1)

    def take(self, x, rows):
        return torch.index_select(x, 0, rows)

    def mean_cross_entropy(self, logits, labels):
        return torch.nn.functional.cross_entropy(logits, labels)

    def hessian(self, function, x):
        return torch.func.hessian(function)(x.detach())

    def jacobian(self, function, x):
        return torch.func.jacrev(function)(x.detach())


class Eager(Both):
    def __init__(self):
        super().__init__()
        self.second_order = self._twice(lambda x: TwiceDifferentiable.apply(x).sum())
        self.products_twice = self._twice(self._products)

    def array(self, values, wanted):
        return torch.tensor(values, requires_grad=wanted)

    def custom(self, x):
        return Log1pexp.apply(x)

    def value_and_grads(self, function, count=1):
        def run(*arguments):
            y = function(*arguments)
            return y.detach(), *torch.autograd.grad(y, arguments[:count])

        return run

    def _twice(self, function):
        def run(x):
            (first,) = torch.autograd.grad(function(x), x, create_graph=True)
            total = first.sum()
            return total.detach(), *torch.autograd.grad(total, x)

        return run

    def hvp(self, function, x, v):
        (first,) = torch.autograd.grad(function(x), x, create_graph=True)
        return torch.autograd.grad(first, x, v)[0]


class Compile(Both):
    """Every size compiled for itself, and the rule of log(1 + exp(x)) derived by PyTorch."""

    lacks = LOOPS | NESTED

    def array(self, values, wanted):
        return torch.tensor(values)

    def custom(self, x):
        return torch.log(1 + torch.exp(x))

    def value_and_grads(self, function, count=1):
        both = torch.func.grad_and_value(function, tuple(range(count)))

        def run(*arguments):
            gradients, value = both(*arguments)
            return value, *gradients

        return run

    def hvp(self, function, x, v):
        return torch.func.jvp(torch.func.grad(function), (x,), (v,))[1]

    def compiled(self, program):
        torch.compiler.reset()  # other rows' programs, whose guards it would go through
        return torch.compile(program, dynamic=False)


MODES = {"eager": Eager, "compile": Compile}
