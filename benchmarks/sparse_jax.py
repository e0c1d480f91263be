"""`python -m benchmarks.sparse_jax asdex|sparsejac`: a process that times sparse Jacobians in JAX.

It answers lines as `benchmarks.sparse` sends them, and imports nothing of this library.
"""

import importlib
import sys
from typing import Any

import numpy as np

from benchmarks.sparse_work import Timed, answer

jax: Any = importlib.import_module("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy
asdex: Any = importlib.import_module("asdex")


def brusselator(n: int) -> Any:
    def laplacian(w):
        rows = jnp.roll(w, 1, 0) + jnp.roll(w, -1, 0)
        return rows + jnp.roll(w, 1, 1) + jnp.roll(w, -1, 1) - 4.0 * w

    def residuals(y):
        u, v = y.reshape(2, n, n)
        reaction = u * u * v
        du = 1.0 + reaction - 4.4 * u + laplacian(u)
        dv = 3.4 * u - reaction + laplacian(v)
        return jnp.stack([du, dv]).ravel()

    return residuals


def asdex_work(n: int, x: np.ndarray) -> Timed:
    """Return what asdex does, with the pattern and colours that it finds."""
    f, point = brusselator(n), jnp.asarray(x)
    pattern = asdex.jacobian_sparsity(f, point)
    coloring = asdex.jacobian_coloring(f, point, mode="fwd")
    compiled = jax.jit(f)
    evaluate = jax.jit(asdex.jacobian_from_coloring(f, coloring))
    return Timed(
        detect=lambda: asdex.jacobian_sparsity(f, point),
        color=lambda: asdex.color_cols(pattern),
        evaluate=lambda: evaluate(point).data.block_until_ready(),
        value=lambda: compiled(point).block_until_ready(),
        colors=int(coloring.num_colors),
        product=lambda v: np.asarray(evaluate(point) @ jnp.asarray(v)),
    )


def sparsejac_work(n: int, x: np.ndarray) -> Timed:
    """Return what sparsejac does, for the pattern that asdex finds: it detects none."""
    sparsejac: Any = importlib.import_module("sparsejac")
    f, point = brusselator(n), jnp.asarray(x)
    pattern = asdex.jacobian_sparsity(f, point)
    places = np.stack([np.asarray(pattern.rows), np.asarray(pattern.cols)], 1)
    data = jnp.ones(len(places))
    matrix = jax.experimental.sparse.BCOO((data, jnp.asarray(places)), shape=(x.size, x.size))
    compiled = jax.jit(f)
    evaluate = jax.jit(sparsejac.jacfwd(f, matrix))
    return Timed(
        detect=None,
        color=lambda: sparsejac.jacfwd(f, matrix),
        evaluate=lambda: evaluate(point).data.block_until_ready(),
        value=lambda: compiled(point).block_until_ready(),
        colors=None,
        product=lambda v: np.asarray(evaluate(point) @ jnp.asarray(v)),
    )


if __name__ == "__main__":
    importlib.import_module("jax.experimental.sparse")
    answer({"asdex": asdex_work, "sparsejac": sparsejac_work}[sys.argv[1]])
