"""Agreement with PyTorch on the inputs with which it tests its own operations.

``python -m benchmarks.torch_samples [NAME ...]`` needs ``torch`` and ``expecttest``, which the
test suite does not. It takes every operation of the table below with all samples in float64, and
compares the value, the gradient and the gradient of the gradient in five modes: under tapes,
forward over reverse, batched, compiled, and compiled twice over. It prints what differs, and how
many samples agreed. An operation is given to PyTorch with its own arguments, and to this library
as the table spells it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp

SAMPLES = 8  # of each operation at most, spread over all that there are
TOLERANCE = 1e-7

Function = Callable[..., Any]


def _reduce(function: Function) -> Function:
    return lambda x, dim=None, keepdim=False: function(x, axis=_axes(dim), keepdims=keepdim)


def _axes(dim: Any) -> Any:
    return None if dim in ((), []) else tuple(dim) if isinstance(dim, list) else dim


def _spread(function: Function) -> Function:
    def spread(x, dim=None, unbiased=None, correction=1, keepdim=False):
        if isinstance(dim, bool):  # the first overload: unbiased alone
            dim, unbiased = None, dim
        ddof = correction if unbiased is None else int(unbiased)
        return function(x, axis=_axes(dim), ddof=1 if ddof is None else ddof, keepdims=keepdim)

    return spread


def _scaled(function: Function) -> Function:
    return lambda x, y, alpha=1: function(x, y * alpha if alpha != 1 else y)


def _divide(x, y, rounding_mode=None):
    quotient = tnp.divide(x, y)
    rounded = {None: lambda q: q, "trunc": tnp.trunc, "floor": tnp.floor}
    return rounded[rounding_mode](quotient)


def _clamp(x, min=None, max=None):
    return tnp.clip(x, min, max)


def _dims(function: Function) -> Function:
    def called(x, *dims, **named):
        dims = named.get("dims", dims)
        return function(x, tuple(dims[0]) if len(dims) == 1 and np.ndim(dims[0]) else tuple(dims))

    return called


def _squeeze(x, dim=None):
    dims = range(tf.rank(x)) if dim is None else [dim] if np.ndim(dim) == 0 else dim
    if not tf.rank(x):
        return x
    rank = len(x.shape)
    return tnp.squeeze(x, tuple(dim for dim in dims if x.shape[dim % rank] == 1))


def _softmax(function: Function) -> Function:
    def softmax(x, dim, dtype=None):
        x = tf.cast(x, "float64")
        return function(x, axis=dim) if tf.rank(x) else tnp.reshape(function(x[None]), [])

    return softmax


def _loss(function: Function) -> Function:
    def loss(x, y, reduction="mean", **named):
        losses = function(x, y, **named)
        return {"mean": tnp.mean, "sum": tnp.sum, "none": lambda a: a}[reduction](losses)

    return loss


def _smooth(x, y, beta=1.0):
    d = tnp.abs(x - y)
    return tnp.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta) if beta else d


def _huber(x, y, delta=1.0):
    d = tnp.abs(x - y)
    return tnp.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))


def _binary_logits(x, y, weight=None, pos_weight=None):
    weight = 1.0 if weight is None else weight
    pos_weight = 1.0 if pos_weight is None else pos_weight
    return weight * tf.nn.weighted_cross_entropy_with_logits(y, x, pos_weight)


def _layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    axes = list(range(-len(shape), 0))
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, bias, weight, eps)


def _addmm(product: Function) -> Function:
    return lambda c, a, b, beta=1, alpha=1: beta * c + alpha * product(a, b)


def _baddbmm(c, a, b, beta=1, alpha=1):
    return beta * c + alpha * tnp.matmul(a, b)


def _diag_embed(x, offset=0, dim1=-2, dim2=-1):
    return tnp.moveaxis(tf.linalg.diag(x, k=offset), (-2, -1), (dim1, dim2))


def _gather(x, dim, index):
    return tnp.take_along_axis(x, index, dim) if np.ndim(index) else x


def _sorted(x, dim=-1, descending=False, stable=False):
    values = tnp.sort(x, dim) if tf.rank(x) else x
    return tnp.flip(values, dim) if descending and tf.rank(x) else values


def _vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    if dim is None and len(x.shape) > 1:
        total = tnp.linalg.vector_norm(x, ord=ord)
        return tnp.reshape(total, [1] * len(x.shape)) if keepdim else total
    return tnp.linalg.vector_norm(x, ord=ord, axis=_axes(dim), keepdims=keepdim)


def _svd(a, full_matrices=True, some=True):
    u, s, vh = tnp.linalg.svd(a, full_matrices=False)
    return s, u @ (s[..., None] * vh)


def _symmetric(a):
    """Return the mean of both triangles: PyTorch reads one, and its gradient is that by both."""
    return (a + a.mT) / 2


def _eigh(a, UPLO="L"):
    values, vectors = tnp.linalg.eigh(_symmetric(a))
    return values, tnp.abs(vectors)


def _fft(name: str) -> Function:
    several = name[-1] in "2n"

    def transform(x, *args, dim=None, **named):
        if dim is not None:
            named["axes" if several else "axis"] = [dim] if several and np.ndim(dim) == 0 else dim
        return getattr(tnp.fft, name)(x, *args, **named)

    return transform


def _triangular(a, b, upper=False, left=True, unitriangular=False):
    if unitriangular:
        a = tf.linalg.set_diag(a, tf.ones(a.shape[:-1], a.dtype))
    if left:
        return tf.linalg.triangular_solve(a, b, lower=not upper)
    flipped = tf.linalg.triangular_solve(
        tf.linalg.matrix_transpose(a), tf.linalg.matrix_transpose(b), lower=upper
    )
    return tf.linalg.matrix_transpose(flipped)


def _expand(x, *shape):
    shape = shape[0] if len(shape) == 1 and np.ndim(shape[0]) else shape
    lead = len(shape) - len(x.shape)
    return tnp.broadcast_to(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)])


def _tile(x, *reps):
    return tnp.tile(x, reps[0] if len(reps) == 1 and np.ndim(reps[0]) else reps)


def _repeat(x, *reps):
    return _tile(x, *reps)


def _index_select(x, dim, index):
    return tnp.take(x, index, axis=dim) if tf.rank(x) else x


def _conv(rank: int) -> Function:
    def each(value: Any) -> list[Any]:
        value = [value] if np.ndim(value) == 0 else [*value]
        return value * (rank // len(value))

    def conv(x, w, bias=None, stride=1, padding: Any = 0, dilation=1, groups=1):
        strides, dilations = each(stride), each(dilation)
        first, last = [0, *range(2, rank + 2), 1], [0, rank + 1, *range(1, rank + 1)]
        sizes = w.shape[2:]
        if padding == "same":
            pads = [
                ((d * (k - 1)) // 2, d * (k - 1) - (d * (k - 1)) // 2)
                for d, k in zip(dilations, sizes, strict=True)
            ]
        else:
            pads = [(amount, amount) for amount in each(0 if padding == "valid" else padding)]
        batched = len(x.shape) == rank + 2
        x = x if batched else x[None]
        x = tnp.transpose(tnp.pad(x, [(0, 0), (0, 0), *pads]), first)
        kernel = tnp.transpose(w, [*range(2, rank + 2), 1, 0])
        function = tf.nn.conv1d if rank == 1 else tf.nn.conv2d
        y = function(
            x,
            kernel,
            strides[0] if rank == 1 else strides,
            "VALID",
            dilations=dilations[0] if rank == 1 else dilations,
        )
        y = y if bias is None else y + bias
        y = tnp.transpose(y, last)
        return y if batched else y[0]

    return conv


_SAME = (
    "abs arccos:acos arccosh:acosh arcsin:asin arcsinh:asinh arctan:atan arctanh:atanh cos cosh "
    "deg2rad rad2deg exp exp2 expm1 floor ceil i0 log log10 log1p log2 negative:neg reciprocal "
    "sign sin sinc sinh sqrt square tan tanh trunc positive maximum minimum fmax fmin hypot "
    "logaddexp logaddexp2 copysign float_power kron inner outer fliplr flipud dot vdot matmul:mm "
    "matmul:bmm matmul matmul:mv ravel atleast_1d atleast_2d atleast_3d "
    "maximum:max/binary minimum:min/binary multiply:mul true_divide arctan2:atan2 tril triu "
    "diagonal linalg.inv linalg.det linalg.solve "
    "linalg.matrix_power linalg.tensorinv linalg.multi_dot block_diag"
)
_OF_MATH = (
    "digamma erf erfc erfinv lgamma rsqrt sigmoid xlogy special.i0e:bessel_i0e "
    "special.i1:bessel_i1 special.i1e:bessel_i1e special.ndtri:ndtri special.xlog1py:xlog1py"
)
_OF_NN = "relu relu6 selu silu softsign"


def _table() -> dict[str, Function]:
    functions: dict[str, Function] = {}
    for pair in _SAME.split():
        ours, _, theirs = pair.partition(":")
        module: Any = tnp
        for part in ours.split("."):
            module = getattr(module, part, None)
        if module is not None:
            functions[theirs or ours] = module
    for pair in _OF_MATH.split():
        theirs, _, ours = pair.partition(":")
        if hasattr(tf.math, ours or theirs):
            functions[theirs] = getattr(tf.math, ours or theirs)
    for name in _OF_NN.split():
        if hasattr(tf.nn, name):
            functions[f"nn.functional.{name}"] = getattr(tf.nn, name)
    transforms = "fft ifft rfft irfft hfft ihfft fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn"
    for name in transforms.split():
        functions[f"fft.{name}"] = _fft(name)
    nn = "nn.functional."
    functions |= {
        "add": _scaled(tnp.add),
        "sub": _scaled(tnp.subtract),
        "rsub": lambda x, y, alpha=1: y - alpha * x,
        "div/no_rounding_mode": _divide,
        "div/trunc_rounding": _divide,
        "div/floor_rounding": _divide,
        "__radd__": lambda x, y: y + x,
        "__rsub__": lambda x, y: y - x,
        "__rmul__": lambda x, y: y * x,
        "__rdiv__": lambda x, y: y / x,
        "__rpow__": lambda x, y: y**x,
        "__rmatmul__": lambda x, y: tnp.matmul(y, x),
        "pow": lambda x, y: x**y,
        "remainder": tnp.remainder,
        "fmod": tnp.fmod,
        "frac": lambda x: x - tnp.trunc(x),
        "clamp": _clamp,
        "clamp_min": lambda x, low: tnp.maximum(x, low),
        "clamp_max": lambda x, high: tnp.minimum(x, high),
        "logit": lambda x, eps=None: _logit(x, eps),
        "lerp": lambda x, y, w: x + w * (y - x),
        "addcmul": lambda x, a, b, value=1: x + value * a * b,
        "addcdiv": lambda x, a, b, value=1: x + value * a / b,
        "where": lambda x, condition, y: tnp.where(condition, x, y),
        "masked_fill": lambda x, mask, value: tnp.where(mask, value, x),
        "nan_to_num": lambda x, nan=0.0, posinf=None, neginf=None: tnp.nan_to_num(
            x, nan=nan or 0.0, posinf=posinf, neginf=neginf
        ),
        "sum": _reduce(tnp.sum),
        "mean": _reduce(tnp.mean),
        "amax": _reduce(tnp.amax),
        "amin": _reduce(tnp.amin),
        "max/reduction_no_dim": tnp.max,
        "min/reduction_no_dim": tnp.min,
        "prod": _reduce(tnp.prod),
        "nansum": _reduce(tnp.nansum),
        "nanmean": _reduce(tnp.nanmean),
        "logsumexp": lambda x, dim, keepdim=False: tf.reduce_logsumexp(
            x, _axes(dim) if tf.rank(x) else (), keepdim
        ),
        "std": _spread(tnp.std),
        "std/unbiased": _spread(tnp.std),
        "var": _spread(tnp.var),
        "var/unbiased": _spread(tnp.var),
        "cumsum": lambda x, dim, dtype=None: tnp.cumsum(x, dim) if tf.rank(x) else x,
        "cumprod": lambda x, dim, dtype=None: tnp.cumprod(x, dim) if tf.rank(x) else x,
        "diff": lambda x, n=1, dim=-1, prepend=None, append=None: _diff(x, n, dim, prepend, append),
        "reshape": _dims(tnp.reshape),
        "view": _dims(tnp.reshape),
        "reshape_as": lambda x, y: tnp.reshape(x, y.shape),
        "permute": _dims(tnp.transpose),
        "expand": _expand,
        "broadcast_to": tnp.broadcast_to,
        "expand_as": lambda x, y: tnp.broadcast_to(x, y.shape),
        "unsqueeze": lambda x, dim: tnp.expand_dims(x, dim),
        "squeeze": _squeeze,
        "squeeze/multiple": _squeeze,
        "flip": lambda x, dims: tnp.flip(x, tuple(dims) if len(dims) else ()) if len(dims) else x,
        "roll": lambda x, shifts, dims=None: tnp.roll(x, shifts, dims if dims != () else None),
        "rot90": lambda x, k=1, dims=(0, 1): tnp.rot90(x, k, dims),
        "tile": _tile,
        "repeat": _repeat,
        "stack": lambda xs, dim=0: tnp.stack(xs, dim),
        "hstack": tnp.hstack,
        "vstack": tnp.vstack,
        "dstack": tnp.dstack,
        "column_stack": tnp.column_stack,
        "cat": lambda xs, dim=0: tnp.concatenate(xs, dim),
        "transpose": lambda x, i, j: tnp.swapaxes(x, i, j) if tf.rank(x) else x,
        "linalg.cross": lambda x, y, dim=-1: tnp.cross(x, y, axis=dim),
        "linalg.tensorsolve": lambda a, b, dims=None: tnp.linalg.tensorsolve(a, b, dims),
        "t": lambda x: tnp.transpose(x),
        "trace": tnp.trace,
        "diag": lambda x, diagonal=0: tnp.diag(x, diagonal),
        "diagonal": lambda x, offset=0, dim1=0, dim2=1: tnp.diagonal(x, offset, dim1, dim2),
        "linalg.diagonal": lambda x, *, offset=0, dim1=-2, dim2=-1: tnp.diagonal(
            x, offset, dim1, dim2
        ),
        "diag_embed": _diag_embed,
        "diagflat": lambda x, offset=0: tnp.diagflat(x, offset),
        "movedim": tnp.moveaxis,
        "addmm": _addmm(tnp.matmul),
        "addmv": _addmm(tnp.matmul),
        "addr": _addmm(tnp.outer),
        "baddbmm": _baddbmm,
        "addbmm": lambda c, a, b, beta=1, alpha=1: beta * c + alpha * tnp.sum(a @ b, axis=0),
        "einsum": lambda xs, equation: tnp.einsum(equation, *xs),
        "tensordot": lambda x, y, dims=2: tnp.tensordot(x, y, dims),
        "trapezoid": lambda y, x=None, dx=1.0, dim=-1: tnp.trapezoid(y, x, dx, dim),
        "trapz": lambda y, x=None, dx=1.0, dim=-1: tnp.trapezoid(y, x, dx, dim),
        "gather": _gather,
        "take_along_dim": lambda x, index, dim=None: tnp.take_along_axis(x, index, dim),
        "take": lambda x, index: tnp.take(x, index),
        "index_select": _index_select,
        "sort": _sorted,
        "__getitem__": lambda x, key: x[key],
        "select": lambda x, dim, index: tnp.take(x, index, axis=dim),
        "narrow": lambda x, dim, start, length: _narrow(x, dim, start, length),
        "softmax": _softmax(tf.nn.softmax),
        "softmax/with_dtype": _softmax(tf.nn.softmax),
        "log_softmax": _softmax(tf.nn.log_softmax),
        "log_softmax/with_dtype": _softmax(tf.nn.log_softmax),
        nn + "softmin": lambda x, dim, dtype=None: tf.nn.softmax(-x, axis=dim),
        nn + "logsigmoid": lambda x: tf.math.log_sigmoid(x),
        nn + "tanhshrink": lambda x: x - tf.tanh(x),
        nn + "elu": lambda x, alpha=1.0: tnp.where(x > 0, x, alpha * tnp.expm1(x)),
        nn + "celu": lambda x, alpha=1.0: tnp.where(x > 0, x, alpha * tnp.expm1(x / alpha)),
        nn + "leaky_relu": lambda x, negative_slope=0.01: tf.nn.leaky_relu(x, negative_slope),
        nn + "gelu": lambda x, approximate="none": tf.nn.gelu(x, approximate == "tanh"),
        nn + "softplus": lambda x, beta=1.0, threshold=20.0: tnp.where(
            x * beta > threshold, x, tf.nn.softplus(x * beta) / beta
        ),
        nn + "mish": lambda x: x * tf.tanh(tf.nn.softplus(x)),
        nn + "hardtanh": lambda x, min_val=-1.0, max_val=1.0: tnp.clip(x, min_val, max_val),
        nn + "linear": lambda x, w, b=None: _plus(tnp.matmul(x, tnp.transpose(w)), b),
        nn + "mse_loss": _loss(lambda x, y: (x - y) ** 2),
        nn + "l1_loss": _loss(lambda x, y: tnp.abs(x - y)),
        nn + "smooth_l1_loss": _loss(_smooth),
        nn + "huber_loss": _loss(_huber),
        nn + "binary_cross_entropy_with_logits": _loss(_binary_logits),
        nn + "layer_norm": _layer_norm,
        nn + "conv1d": _conv(1),
        nn + "conv2d": _conv(2),
        "special.entr": lambda x: -tf.math.xlogy(x, x),
        "linalg.cholesky": lambda a, upper=False: _cholesky(a, upper),
        "cholesky": lambda a, upper=False: _cholesky(a, upper),
        "linalg.slogdet": tnp.linalg.slogdet,
        "logdet": tf.linalg.logdet,
        "linalg.eigvalsh": lambda a, UPLO="L": tnp.linalg.eigvalsh(_symmetric(a)),
        "linalg.eigh": _eigh,
        "linalg.svdvals": lambda a: tnp.linalg.svdvals(a),
        "linalg.qr": lambda a, mode="reduced": tnp.linalg.qr(a, mode),
        "linalg.pinv": lambda a, rtol=None, **named: tnp.linalg.pinv(a, rtol=rtol),
        "pinverse": lambda a, rcond=1e-15: tnp.linalg.pinv(a),
        "linalg.vector_norm": _vector_norm,
        "linalg.solve_triangular": _triangular,
        "linalg.vander": lambda x, N=None: tnp.vander(x, N, increasing=True),
        "linalg.vecdot": lambda x, y, dim=-1: tnp.vecdot(x, y, axis=dim),
        "matrix_exp": lambda a: tf.linalg.expm(a),
        "norm/nuc": lambda a, p="nuc", dim=None, keepdim=False: tnp.linalg.norm(
            a, "nuc", None if dim is None else tuple(dim), keepdim
        ),
        "dist": lambda x, y, p=2: tnp.linalg.vector_norm(x - y, ord=p),
        **{
            f"polygamma/polygamma_n_{n}": lambda x, n: tf.math.polygamma(float(n), x)
            for n in range(5)
        },
    }
    return functions


def _plus(x: Any, y: Any) -> Any:
    return x if y is None else x + y


def _logit(x, eps):
    x = x if eps is None else tnp.clip(x, eps, 1 - eps)
    return tnp.log(x) - tnp.log1p(-x)


def _diff(x, n, dim, prepend, append):
    named = {"prepend": prepend, "append": append}
    return tnp.diff(x, n, dim, **{k: v for k, v in named.items() if v is not None})


def _narrow(x, dim, start, length):
    start = int(start) % x.shape[dim] if start < 0 else int(start)
    key: list[Any] = [slice(None)] * len(x.shape)
    key[dim] = slice(start, start + length)
    return x[tuple(key)]


def _cholesky(a, upper):
    return tnp.linalg.cholesky(a, upper=upper)


# Comparison ----------------------------------------------------------------------------------


class Sample:
    """One sample of an operation, and both libraries' functions of its float64 arguments."""

    def __init__(self, torch: Any, operation: Any, function: Function, sample: Any):
        self.torch = torch
        arguments = (sample.input, sample.args, sample.kwargs)
        self.leaves: list[Any] = []
        self._marked = self._map(arguments, self._mark)
        self._converted = self._map(self._marked, self._plain)
        self._theirs, self._ours = operation, function
        self.arrays = [leaf.detach().numpy() for leaf in self.leaves]

    def _map(self, value: Any, change: Function) -> Any:
        if isinstance(value, (tuple, list)):
            parts = [self._map(part, change) for part in value]
            return parts if isinstance(value, list) else tuple(parts)
        if isinstance(value, dict):
            return {key: self._map(part, change) for key, part in value.items()}
        return change(value)

    def _mark(self, value: Any) -> Any:
        if isinstance(value, self.torch.Tensor) and value.requires_grad:
            self.leaves.append(value)
            return _Place(len(self.leaves) - 1)
        return value

    def _plain(self, value: Any) -> Any:
        return value.detach().numpy() if isinstance(value, self.torch.Tensor) else value

    def theirs(self, *leaves: Any) -> list[Any]:
        x, args, named = self._map(self._marked, lambda value: _put(value, leaves))
        if self._theirs.name in ("linalg.eigh", "linalg.eigvalsh"):
            x = _symmetric(x)
        results = self._theirs(x, *args, **named)
        if self._theirs.name == "linalg.eigh":
            results = results[0], results[1].abs()
        return self._floats(results)

    def ours(self, *leaves: Any) -> list[Any]:
        x, args, named = self._map(self._converted, lambda value: _put(value, leaves))
        results = self._ours(x, *args, **named)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        results = [tf.convert_to_tensor(result) for result in results]
        return [result for result in results if np.issubdtype(result.dtype, np.inexact)]

    def _floats(self, results: Any) -> list[Any]:
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        return [result for result in results if result.is_floating_point() or result.is_complex()]


class _Place(int):
    """The position of an argument that is differentiated."""


def _put(value: Any, leaves: Any) -> Any:
    return leaves[value] if isinstance(value, _Place) else value


def _weights(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


def by_torch(torch: Any, sample: Sample) -> list[list[np.ndarray]]:
    """Return values, gradients and gradients of a weighted sum of the gradients."""
    leaves = [torch.tensor(array, requires_grad=True) for array in sample.arrays]
    values = sample.theirs(*leaves)
    loss = sum(
        (_real(value) * torch.tensor(_weights(tuple(value.shape), k))).sum()
        for k, value in enumerate(values)
    )
    first = _grad(torch, loss, leaves)
    total = sum(
        (value * torch.tensor(_weights(tuple(value.shape), k))).sum()
        for k, value in enumerate(first)
    )
    second = _grad(torch, total, leaves)
    return [
        [value.detach().resolve_conj().numpy(force=True) for value in part]
        for part in (values, first, second)
    ]


def _grad(torch: Any, loss: Any, leaves: list[Any]) -> list[Any]:
    if not getattr(loss, "requires_grad", False):
        return [torch.zeros_like(leaf) for leaf in leaves]
    gradients = torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(gradients, leaves, strict=True)]


def _real(tensor: Any) -> Any:
    return tensor.real + tensor.imag if tensor.is_complex() else tensor


def _loss_of(sample: Sample) -> Function:
    def loss(*leaves):
        total = tf.constant(0.0, "float64")
        for k, tensor in enumerate(sample.ours(*leaves)):
            if np.iscomplexobj(tensor):
                tensor = tf.math.real(tensor) + tf.math.imag(tensor)
            total += tf.reduce_sum(tf.cast(tensor, "float64") * _weights(tuple(tensor.shape), k))
        return total

    return loss


def modes(sample: Sample) -> Iterator[tuple[str, Callable[[], list[list[Any]]]]]:
    """Yield how derivatives are found, and a function that finds what `by_torch` returns."""
    leaves = [tf.constant(array) for array in sample.arrays]
    places = tuple(range(len(leaves)))
    loss = _loss_of(sample)
    weights = [_weights(array.shape, k) for k, array in enumerate(sample.arrays)]

    def first(*xs):
        return tf.grad(loss, places)(*xs)

    def weighted(*xs):
        return sum(tf.reduce_sum(g * w) for g, w in zip(first(*xs), weights, strict=True))

    def second(*xs):
        return tf.grad(weighted, places)(*xs)

    yield "reverse", lambda: [sample.ours(*leaves), first(*leaves), second(*leaves)]

    def forward():
        _, gradient = tf.jvp(first, leaves, weights)  # the Hessian is symmetric
        return [sample.ours(*leaves), first(*leaves), gradient]

    yield "forward over reverse", forward

    def batched():
        twice = [tf.stack([leaf, leaf]) for leaf in leaves]
        results = [tf.vmap(function)(*twice) for function in (sample.ours, first, second)]
        return [[result[1] for result in part] for part in results]

    yield "batched", batched
    yield (
        "compiled",
        lambda: [tf.function(function)(*leaves) for function in (sample.ours, first, second)],
    )


def compare(wanted: list[list[np.ndarray]], got: list[list[Any]]) -> str:
    for name, theirs, ours in zip(("value", "gradient", "second"), wanted, got, strict=True):
        if len(theirs) != len(ours):
            return f"{name}: {len(theirs)} results, {len(ours)} here"
        for result, other in zip(theirs, ours, strict=True):
            other = np.asarray(other)
            if result.shape != other.shape:
                return f"{name}: shape {result.shape}, {other.shape} here"
            if not np.allclose(result, other, TOLERANCE, TOLERANCE, equal_nan=True):
                return f"{name}: {result.ravel()[:4]}, {other.ravel()[:4]} here"
    return ""


def main(wanted: list[str]) -> None:
    """Compare, and print what differs."""
    torch = import_module("torch")
    op_db = import_module("torch.testing._internal.common_methods_invocations").op_db
    warnings.simplefilter("ignore")
    functions, count, agreed, operations = _table(), 0, 0, 0
    for operation in op_db:
        variant = f"/{operation.variant_test_name}" if operation.variant_test_name else ""
        name = operation.name + variant
        if name not in functions or (wanted and name not in wanted):
            continue
        if not operation.supports_autograd:
            continue
        operations += 1
        samples = list(operation.sample_inputs("cpu", torch.float64, requires_grad=True))
        samples = samples[:: max(1, len(samples) // SAMPLES)][:SAMPLES]
        for k, raw in enumerate(samples):
            sample = Sample(torch, operation, functions[name], raw)
            if not sample.leaves or not all(array.dtype == np.float64 for array in sample.arrays):
                continue
            try:
                theirs = by_torch(torch, sample)
            except (RuntimeError, NotImplementedError) as error:
                print(f"{name} {k}: PyTorch cannot: {str(error).splitlines()[0][:90]}")
                continue
            for mode, find in modes(sample):
                count += 1
                try:
                    difference = compare(theirs, find())
                except Exception as error:
                    lines = str(error).splitlines() or [""]
                    difference = f"{type(error).__name__}: {lines[0][:150]}"
                agreed += not difference
                if difference:
                    shapes = [array.shape for array in sample.arrays]
                    print(f"{name} {k} {mode} {shapes} {raw.args} {raw.kwargs}: {difference}"[:330])
        tf.clear_cache()
    print(f"{operations} operations: {agreed} of {count} agreed")


if __name__ == "__main__":
    main(sys.argv[1:])
