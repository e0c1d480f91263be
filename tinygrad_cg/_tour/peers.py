"""Other libraries, where they are installed: the same value and gradient, to time against ours.

Each entry takes an array and gives a function without arguments that returns value and gradient
of sum(log(1 + exp(x))), in the way that the library runs fastest.
"""

import os
from collections.abc import Callable, Iterator
from importlib import import_module as load
from importlib.util import find_spec

import numpy as np

Timed = Callable[[], tuple]
Maker = Callable[[np.ndarray], Timed]


def with_autograd(x: np.ndarray) -> Timed:
    autograd, anp = load("autograd"), load("autograd.numpy")
    both = autograd.value_and_grad(lambda x: anp.sum(anp.log(1 + anp.exp(x))))
    return lambda: both(x)


def with_jax(x: np.ndarray) -> Timed:
    jax, jnp = load("jax"), load("jax.numpy")
    jax.config.update("jax_enable_x64", True)
    both = jax.jit(jax.value_and_grad(lambda x: jnp.sum(jnp.log(1 + jnp.exp(x)))))
    point = jnp.asarray(x)
    return lambda: jax.block_until_ready(both(point))


def with_torch(x: np.ndarray) -> Timed:
    torch = load("torch")
    point = torch.tensor(x, requires_grad=True)

    def run() -> tuple:
        y = torch.log(1 + torch.exp(point)).sum()
        return y.detach(), torch.autograd.grad(y, point)[0]

    return run


def with_tensorflow(x: np.ndarray) -> Timed:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tf = load("tensorflow")

    @tf.function
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.math.log(1 + tf.exp(x)))
        return y, tape.gradient(y, x)

    point = tf.constant(x)
    return lambda: run(point)


MAKERS: dict[str, tuple[str, Maker]] = {  # by the heading of the column
    "autograd": ("autograd", with_autograd),
    "JAX": ("jax", with_jax),
    "PyTorch": ("torch", with_torch),
    "TF function": ("tensorflow", with_tensorflow),
}


def installed() -> Iterator[tuple[str, Maker]]:
    """Yield what is installed and can be loaded here."""
    for name, (module, maker) in MAKERS.items():
        try:
            if find_spec(module) is None:
                continue
            maker(np.ones(1))()
        except Exception:  # it does not fit this machine
            continue
        yield name, maker
