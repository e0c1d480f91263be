"""Spellings in `keras.ops`: what Keras 3.15 gives, with its defaults and dtypes."""

import inspect

import numpy as np
import pytest

import tinygrad_cg as tf
import tinygrad_cg.keras.ops
from tests.support.spelling_cases import IMAGES, assert_gives, rows, spelled_by_records
from tinygrad_cg.keras import activations, losses, ops

HEADS = np.float32([[[[[1, 0]], [[0, 2]]]], [[[[1, 1]], [[2, 0]]]], [[[[1, 2]], [[3, 4]]]]])
NAMES = {"ops": ops, "losses": losses, "floats": np.float32, "HEADS": HEADS} | IMAGES
ROWS = rows("""
ops.abs([-1, 2]) -> [1, 2] int32
ops.add(1, 2) -> 3 int32
ops.add([1, 2], 0.5) -> [1.5, 2.5] float32
ops.all([[True, False], [True, True]]) -> False bool
ops.all([[True, False], [True, True]], axis=1, keepdims=True) -> [[False], [True]] bool
ops.any([[True, False], [False, False]], 0) -> [True, False] bool
ops.arange(3) -> [0, 1, 2] int32
ops.arange(1, 4, 2) -> [1, 3] int32
ops.arange(0, 1, 0.5) -> [0.0, 0.5] float32
ops.arange(3, dtype="float32") -> [0.0, 1.0, 2.0] float32
ops.argmax([[1, 5], [7, 2]]) -> 2 int32
ops.argmax([[1, 5], [7, 2]], axis=0) -> [1, 0] int32
ops.argmax([[1, 5], [7, 2]], keepdims=True) -> [[2]] int32
ops.argmin([[1, 5], [7, 2]], axis=1, keepdims=True) -> [[0], [1]] int32
ops.argsort([3, 1, 1]) -> [1, 2, 0] int32
ops.argsort([[3, 1], [2, 0]], axis=0) -> [[1, 1], [0, 0]] int32
ops.argsort([[3, 1], [2, 0]], None) -> [3, 1, 2, 0] int32
ops.array([1.0, 2.0]) -> [1.0, 2.0] float32
ops.array_split([1, 2, 3], 2) -> [1, 2] int32; [3] int32
ops.average_pool(line, 2) -> [[[3.0]]] float32
ops.average_pool(line, 2, strides=1, padding="same") -> [[[3.0], [4.0], [3.0]]] float32
ops.cholesky([[4.0, 2.0], [2.0, 5.0]]) -> [[2.0, 0.0], [1.0, 2.0]] float32
ops.det([[4.0, 2.0], [2.0, 5.0]]) -> 16.0 float32
ops.inv([[4.0, 2.0], [0.0, 5.0]]) -> [[0.25, -0.1], [0.0, 0.2]] float32
ops.slogdet([[0.0, 1.0], [1.0, 0.0]]) -> -1.0 float32; 0.0 float32
ops.fft(([1.0, 2.0], [0.0, 1.0])) -> [3.0, -1.0] float32; [1.0, -1.0] float32
ops.fft2(([[1.0, 2.0]], [[0.0, 1.0]])) -> [[3.0, -1.0]] float32; [[1.0, -1.0]] float32
ops.ifft2(([[3.0, -1.0]], [[1.0, -1.0]])) -> [[1.0, 2.0]] float32; [[0.0, 1.0]] float32
ops.rfft([1.0, 2.0, 3.0], 2) -> [3.0, -1.0] float32; [0.0, 0.0] float32
ops.i0(np.array([0.0, 1.0, -2.5], "f")) -> [1.0, 1.266066, 3.28984] float32
ops.i0(3) -> 4.880793 float32
ops.irfft(([3.0, -1.0], [0.0, 0.0])) -> [1.0, 2.0] float32
ops.ctc_loss(np.array([[1, 2], [2, 0]]), np.sin(np.arange(24, dtype="float32")).reshape(2, 4, 3),
    np.array([2, 1]), np.array([4, 3])) -> [1.634613, 1.90968] float32
ops.stft(np.array([1.0, 2.0, 4.0, -1.0, 0.5, 3.0], "f"), 3, 2, 4) -> [[2.0, 0.0, -2.0], [2.0, 0.0,
    -2.0], [-1.0, 0.0, 1.0], [3.0, 0.0, -3.0]] float32; [[0.0, -2.0, 0.0], [0.0, -2.0, 0.0], [0.0,
    1.0, 0.0], [0.0, -3.0, 0.0]] float32
ops.stft(np.array([1.0, 2.0, 4.0, -1.0, 0.5, 3.0]), 4, 2, 4, window=None, center=False) -> [[6.0,
    -3.0, 4.0], [6.5, 3.5, 2.5]] float64; [[0.0, -3.0, 0.0], [0.0, 4.0, 0.0]] float64
ops.istft((np.array([[1.0, 2.0, 4.0], [1.0, 0.0, 2.0]]), np.array([[0.0, 1.0, 0.0], [0.0, -1.0,
    0.0]])), 3, 2, 4) -> [0.0, 0.25] float64
ops.istft((np.array([[1.0, 2.0, 4.0], [1.0, 0.0, 2.0]]), np.array([[0.0, 1.0, 0.0], [0.0, -1.0,
    0.0]])), 4, 2, 4, 3, "hamming", False) -> [0.178855325914149, -1.15740740740741,
    0.308028616852146] float64
ops.cholesky([[4.0, 2.0], [2.0, 5.0]]) -> [[2.0, 0.0], [1.0, 2.0]] float32
ops.cholesky([[4.0, 2.0], [2.0, 5.0]], upper=True) -> [[2.0, 1.0], [0.0, 2.0]] float32
ops.cholesky_inverse([[2.0, 0.0], [1.0, 1.0]]) -> [[0.5, -0.5], [-0.5, 1.0]] float32
ops.eigh([[2.0, 0.0], [0.0, 3.0]]) -> [2.0, 3.0] float32; [[1.0, 0.0], [0.0, 1.0]] float32
ops.logdet([[4.0, 2.0], [2.0, 5.0]]) -> 2.7725887 float32
ops.lu_factor([[0.0, 1.0], [2.0, 3.0]]) -> [[2.0, 3.0], [0.0, 1.0]] float32; [1, 1] int32
ops.norm([[3.0, 4.0], [0.0, 0.0]], ord="nuc") -> 5.0 float32
ops.norm([[3.0, 4.0], [0.0, 1.0]], axis=1) -> [5.0, 1.0] float32
ops.norm([3, 4]) -> 5.0 float32
ops.solve_triangular([[2.0, 9.0], [1.0, 4.0]], [[20.0], [8.0]]) -> [[1.0], [2.0]] float32
ops.qr([[-2.0], [0.0]]) -> [[1.0], [0.0]] float32; [[-2.0]] float32
ops.svd([[3.0, 0.0]], False) -> [[1.0]] float32; [3.0] float32; [[1.0, 0.0]] float32
ops.eig([[2.0]]) -> [(2+0j)] complex64; [[(1+0j)]] complex64
ops.lstsq([[1.0], [2.0]], [5.0, 0.0]) -> [1.0] float32
ops.append([1.0, 2.0], [[3.0]]) -> [1.0, 2.0, 3.0] float32
ops.append([[1], [2]], [[3], [4]], axis=1) -> [[1, 3], [2, 4]] int32
ops.average([1, 2, 6]) -> 3.0 float32
ops.average([[1.0, 2.0], [3.0, 5.0]], axis=1, weights=[3.0, 1.0]) -> [1.25, 3.5] float32
ops.correlate([1.0, 2.0, 3.0], [1.0, 0.5]) -> [2.0, 3.5] float32
ops.count_nonzero([[0, 1], [2, 3]], axis=0) -> [1, 2] int32
ops.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]) -> [0.0, 0.0, 1.0] float32
ops.diag([1, 2], k=1) -> [[0, 1, 0], [0, 0, 2], [0, 0, 0]] int32
ops.diagflat([[1.0], [2.0]]) -> [[1.0, 0.0], [0.0, 2.0]] float32
ops.diff([1, 4, 9], n=2) -> [2] int32
ops.dot([[1, 2]], [3, 4]) -> [11] int32
ops.dsplit([[[1, 2]]], 2) -> [[[1]]] int32; [[[2]]] int32
ops.dstack([[1.0, 2.0], [3.0, 4.0]]) -> [[[1.0, 3.0], [2.0, 4.0]]] float32
ops.flip([[1, 2], [3, 4]]) -> [[4, 3], [2, 1]] int32
ops.fliplr([[1, 2], [3, 4]]) -> [[2, 1], [4, 3]] int32
ops.flipud([[1, 2], [3, 4]]) -> [[3, 4], [1, 2]] int32
ops.hsplit([[1, 2, 3, 4]], 2) -> [[1, 2]] int32; [[3, 4]] int32
ops.inner([1.0, 2.0], [[3.0, 4.0]]) -> [11.0] float32
ops.isclose([1.0, 2.0], [1.0, 2.1]) -> [True, False] bool
ops.kron([1, 2], [1, 10]) -> [1, 10, 2, 20] int32
ops.matrix_rank([[1.0, 2.0], [2.0, 4.0]]) -> 1 int32
ops.median([[1.0, 3.0], [2.0, 8.0]], axis=1) -> [2.0, 5.0] float32
ops.meshgrid([1, 2], [3]) -> [[1, 2]] int32; [[3, 3]] int32
ops.moveaxis([[[1, 2, 3]]], 2, 0) -> [[[1]], [[2]], [[3]]] int32
ops.nan_to_num([float("nan"), 1.0]) -> [0.0, 1.0] float32
ops.outer([1, 2], [3, 4]) -> [[3, 4], [6, 8]] int32
ops.percentile([1.0, 2.0, 3.0], 50) -> 2.0 float32
ops.pinv([[2.0, 0.0], [0.0, 4.0]]) -> [[0.5, 0.0], [0.0, 0.25]] float32
ops.quantile([1.0, 2.0, 3.0], 0.25) -> 1.5 float32
ops.repeat([1, 2], 2) -> [1, 1, 2, 2] int32
ops.roll([1, 2, 3], 1) -> [3, 1, 2] int32
ops.rot90([[1, 2], [3, 4]]) -> [[2, 4], [1, 3]] int32
ops.swapaxes([[1, 2]], 0, 1) -> [[1], [2]] int32
ops.tile([1, 2], 2) -> [1, 2, 1, 2] int32
ops.trace([[1, 2], [3, 4]]) -> 5 int32
ops.trapezoid([1.0, 2.0, 4.0]) -> 4.5 float32
ops.tri(2, 3) -> [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]] float32
ops.tril([[1, 2], [3, 4]]) -> [[1, 0], [3, 4]] int32
ops.triu([[1.0, 2.0], [3.0, 4.0]], k=1) -> [[0.0, 2.0], [0.0, 0.0]] float32
ops.vdot([1.0, 2.0], [3.0, 4.0]) -> 11.0 float32
ops.vsplit([[1], [2]], 2) -> [[1]] int32; [[2]] int32
ops.vstack([np.ones(1, "f"), np.zeros(1, "f")]) -> [[1.0], [0.0]] float32
ops.hstack([np.ones(1, "f"), np.zeros(1, "f")]) -> [1.0, 0.0] float32
ops.diagonal(np.array([[1, 2], [3, 4]], "i")) -> [1, 4] int32
ops.vander(np.array([1.0, 2.0], "f"), 3) -> [[1.0, 1.0, 1.0], [4.0, 2.0, 1.0]] float32
ops.corrcoef(np.array([[0.0, 1.0], [2.0, 1.0]], "f")) -> [[1.0, -1.0], [-1.0, 1.0]] float32
ops.solve([[4.0, 2.0], [0.0, 5.0]], [[2.0], [5.0]]) -> [[0.0], [1.0]] float32
ops.broadcast_to([1, 2], (2, 2)) -> [[1, 2], [1, 2]] int32
ops.cast([1.7], "int32") -> [1] int32
ops.cbrt([8]) -> [2.0] float32
ops.ceil([1.2]) -> [2.0] float32
ops.clip(np.array([1, 5], "int32"), 2, 3) -> [2, 3] int32
ops.clip(np.array([1.0, 5.0], "float32"), x_min=2, x_max=3) -> [2.0, 3.0] float32
ops.concatenate([np.ones((1, 1)), np.zeros((1, 1))]) -> [[1.0], [0.0]] float64
ops.concatenate(xs=[np.ones((1, 1)), np.zeros((1, 1))], axis=1) -> [[1.0, 0.0]] float64
ops.conj([1 + 2j]) -> [(1-2j)] complex128
ops.convert_to_numpy(np.array([1.0])) -> [1.0] float64
ops.convert_to_tensor([1, 2]) -> [1, 2] int32
ops.convert_to_tensor([1, 2], dtype="float32") -> [1.0, 2.0] float32
ops.conv(line, pair) -> [[[51.0], [35.0]]] float32
ops.conv(square, wide, strides=2, padding="same") -> [[[[21.0]]]] float32
ops.conv([[[1.0, 2.0, 4.0]]], pair, 1, "valid", "channels_first", 2) -> [[[41.0]]] float32
ops.conv_transpose(inputs=[[[1.0], [2.0]]], kernel=pair) -> [[[1.0], [12.0], [20.0]]] float32
ops.conv_transpose([[[1.0], [2.0]]], pair, 2) -> [[[1.0], [10.0], [2.0], [20.0]]] float32
ops.conv_transpose([[[1.0]]], pair, strides=3) -> [[[1.0], [10.0], [0.0]]] float32
ops.conv_transpose([[[1.0]]], pair, 2, "same", output_padding=1) -> [[[1.0]]] float32
ops.conv_transpose([[[1.0], [2.0]]], pair, 1, "same") -> [[[1.0], [12.0]]] float32
ops.copy([1, 2]) -> [1, 2] int32
ops.cos(0) -> 1.0 float32
ops.depthwise_conv([[[[1.0, 2.0]]]], [[[[1.0], [10.0]]]]) -> [[[[1.0, 20.0]]]] float32
ops.cosh(0) -> 1.0 float32
ops.divide(1, 2) -> 0.5 float32
ops.divide(np.array([1], "int64"), np.array([2], "int64")) -> [0.5] float32
ops.true_divide(1.0, 2) -> 0.5 float32
ops.einsum("ij,jk->ki", [[1, 2]], [[3], [4]]) -> [[11]] int32
ops.equal([1, 2], [1, 3]) -> [True, False] bool
ops.exp(1) -> 2.718282 float32
ops.exp(np.array([0], "int64")) -> [1.0] float32
ops.exp2([3]) -> [8.0] float32
ops.expand_dims([1, 2], axis=1) -> [[1], [2]] int32
ops.expm1([0]) -> [0.0] float32
ops.eye(2) -> [[1.0, 0.0], [0.0, 1.0]] float32
ops.eye(2, 3, k=1) -> [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] float32
ops.eye(N=1, M=2, dtype="int32") -> [[1, 0]] int32
ops.floor([1, 2]) -> [1.0, 2.0] float32
ops.floor([-1.5]) -> [-2.0] float32
ops.floor_divide([7, -7], 2) -> [3, -4] int32
ops.full((2,), 3) -> [3.0, 3.0] float32
ops.full(shape=(2,), fill_value=3, dtype="int32") -> [3, 3] int32
ops.full_like([1, 2], 5) -> [5, 5] int32
ops.greater([1, 2], 1) -> [False, True] bool
ops.greater_equal([1, 2], 2) -> [False, True] bool
ops.hypot(3, 4) -> 5.0 float32
ops.identity(2) -> [[1.0, 0.0], [0.0, 1.0]] float32
ops.imag([1 + 2j]) -> [2.0] float64
ops.less([1, 2], 2) -> [True, False] bool
ops.less_equal([1, 3], 2) -> [True, False] bool
ops.linspace(0, 10, 3) -> [0.0, 5.0, 10.0] float32
ops.linspace(0.0, 1.0, num=2, endpoint=False) -> [0.0, 0.5] float32
ops.log([1]) -> [0.0] float32
ops.arccos([1, 0]) -> [0.0, 1.5707964] float32
ops.arccosh([1, 2]) -> [0.0, 1.316958] float32
ops.arcsin([0, 1]) -> [0.0, 1.5707964] float32
ops.arcsinh(1) -> 0.8813736 float32
ops.arctan(1) -> 0.7853982 float32
ops.arctan2(1, -1) -> 2.3561945 float32
ops.erf([0, 1]) -> [0.0, 0.8427008] float32
ops.tan([0, 1]) -> [0.0, 1.5574077] float32
ops.log10([100]) -> [2.0] float32
ops.log1p(0) -> 0.0 float32
ops.log_sigmoid(0.0) -> -0.6931472 float32
ops.log_softmax([0.0, 0.0]) -> [-0.6931472, -0.6931472] float32
ops.log_softmax([[0.0, 0.0]], axis=0) -> [[0.0, 0.0]] float32
ops.logaddexp(0, 0) -> 0.6931472 float32
ops.logical_and([True, False], True) -> [True, False] bool
ops.logical_not([True, False]) -> [False, True] bool
ops.logical_or([True, False], False) -> [True, False] bool
ops.logical_xor([True, False], True) -> [False, True] bool
ops.logsumexp([0.0, 0.0]) -> 0.6931472 float32
ops.logsumexp([[0.0, 0.0]], axis=1, keepdims=True) -> [[0.6931472]] float32
ops.matmul([[1, 2]], [[3], [4]]) -> [[11]] int32
ops.max([[1, 5], [7, 2]]) -> 7 int32
ops.max([[1, 5], [7, 2]], axis=1, keepdims=True) -> [[5], [7]] int32
ops.amax([1, 2]) -> 2 int32
ops.amin([1, 2]) -> 1 int32
ops.max_pool(line, 2) -> [[[5.0]]] float32
ops.max_pool(square, pool_size=(2, 1), strides=1, padding="valid") -> [[[[3.0], [4.0]]]] float32
ops.maximum([1, 5], 3) -> [3, 5] int32
ops.cumprod([[2, 3], [4, 5]]) -> [2, 6, 24, 120] int32
ops.cumsum([[1, 2], [3, 4]], axis=1) -> [[1, 3], [3, 7]] int32
ops.cumsum([1, 2], dtype="float32") -> [1.0, 3.0] float32
ops.softmax([[0.0, 0.0]], axis=None) -> [[0.5, 0.5]] float32
ops.std([1, 3]) -> 1.0 float32
ops.var([[1.0, 3.0], [2.0, 6.0]], axis=1, keepdims=True) -> [[1.0], [4.0]] float32
ops.mean([1, 2]) -> 1.5 float32
ops.mean([[1.0, 2.0]], axis=0) -> [1.0, 2.0] float32
ops.min([[1, 5], [7, 2]], 0) -> [1, 2] int32
ops.minimum([1, 5], 3) -> [1, 3] int32
ops.mod([7, -7], 3) -> [1, 2] int32
ops.multiply(2, 1.5) -> 3.0 float32
ops.ndim([[1]]) -> 2 value
ops.not_equal([1, 2], [1, 3]) -> [False, True] bool
ops.one_hot([0, 2], 3) -> [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]] float32
ops.one_hot([0, 1], num_classes=2, axis=0, dtype="int32") -> [[1, 0], [0, 1]] int32
ops.ones((2,)) -> [1.0, 1.0] float32
ops.ones((2,), dtype="int32") -> [1, 1] int32
ops.ones_like([1.5]) -> [1.0] float32
ops.pad([1, 2], 1) -> [0, 1, 2, 0] int32
ops.pad([[1, 2]], ((0, 0), (1, 1)), constant_values=7) -> [[7, 1, 2, 7]] int32
ops.pad([1, 2, 3], (1, 2), mode="reflect") -> [2, 1, 2, 3, 2, 1] int32
ops.power(2, 3) -> 8 int32
ops.prod([[1, 5], [7, 2]], axis=1) -> [5, 14] int32
ops.prod([True, True]) -> 1 int32
ops.ravel([[1, 2]]) -> [1, 2] int32
ops.real([1 + 2j]) -> [1.0] float64
ops.reciprocal([2.0]) -> [0.5] float32
ops.relu([-1, 2]) -> [0, 2] int32
ops.reshape([1, 2], (2, 1)) -> [[1], [2]] int32
ops.reshape([[1, 2]], newshape=(-1,)) -> [1, 2] int32
ops.round([0.5, 1.5]) -> [0.0, 2.0] float32
ops.round(np.array([1.25, 2.349], "float32"), 1) -> [1.2, 2.3] float32
ops.round(np.array([123.0, 155.0], "float32"), decimals=-1) -> [120.0, 160.0] float32
ops.shape(np.ones((2, 3))) -> [2, 3] value
ops.rsqrt([4]) -> [0.5] float32
ops.sin(0) -> 0.0 float32
ops.sinh(0) -> 0.0 float32
ops.size([1, 2]) -> 2 int32
ops.softmax(np.zeros(2, "float32")) -> [0.5, 0.5] float32
ops.softmax(np.array([[0.0, 5.0], [0.0, 5.0]]), axis=0) -> [[0.5, 0.5], [0.5, 0.5]] float64
ops.softmax([[0.0, 0.0], [0.0, 0.0]], axis=None) -> [[0.25, 0.25], [0.25, 0.25]] float32
ops.softmax(np.zeros((2, 2), "float32"), axis=(0, 1)) -> [[0.25, 0.25], [0.25, 0.25]] float32
ops.sort([3, 1, 2]) -> [1, 2, 3] int32
ops.sort([[3, 1], [2, 0]], axis=0) -> [[2, 0], [3, 1]] int32
ops.sort([[3, 1], [2, 0]], None) -> [0, 1, 2, 3] int32
ops.split([1, 2, 3, 4], 2) -> [1, 2] int32; [3, 4] int32
ops.split([[1, 2, 3]], indices_or_sections=[1], axis=1) -> [[1]] int32; [[2, 3]] int32
ops.sqrt(4) -> 2.0 float32
ops.square([2, 3]) -> [4, 9] int32
ops.square([True]) -> [1] int32
ops.squeeze([[1, 2]]) -> [1, 2] int32
ops.squeeze([[[1, 2]]], axis=0) -> [[1, 2]] int32
ops.stack([[1, 2], [3, 4]]) -> [[1, 2], [3, 4]] int32
ops.stack(x=[[1, 2], [3, 4]], axis=1) -> [[1, 3], [2, 4]] int32
ops.stop_gradient(variable=[1.0]) -> [1.0] float32
ops.subtract(3, 1.5) -> 1.5 float32
ops.sum([[1, 5], [7, 2]]) -> 15 int32
ops.sum([[1, 5], [7, 2]], axis=0, keepdims=True) -> [[8, 7]] int32
ops.sum([True, True]) -> 2 int32
ops.sum(np.array([200, 100], "uint8")) -> 300 uint32
ops.sum(np.array([100, 100], "int8")) -> 200 int32
ops.take([[1, 2], [3, 4]], [0, 3]) -> [1, 4] int32
ops.take([[1, 2], [3, 4]], [1], axis=1) -> [[2], [4]] int32
ops.take_along_axis([[1, 2], [3, 4]], [0, 3]) -> [1, 4] int32
ops.take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1) -> [[2], [3]] int32
ops.tanh(0) -> 0.0 float32
ops.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 2]]) -> 9 int32
ops.tensordot([[1, 2]], [[3], [4]], axes=1) -> [[11]] int32
ops.top_k([1.0, 3.0, 2.0], 2) -> [3.0, 2.0] float32; [1, 2] int32
ops.transpose([[1, 2], [3, 4]]) -> [[1, 3], [2, 4]] int32
ops.transpose(np.array([[[1, 2]], [[3, 4]]]), axes=(0, 2, 1)) -> [[[1], [2]], [[3], [4]]] int64
ops.unstack([[1, 2], [3, 4]]) -> [1, 2] int32; [3, 4] int32
ops.unstack([[1, 2], [3, 4]], 2, 1) -> [1, 3] int32; [2, 4] int32
ops.where([True, False], [1, 2], [3, 4]) -> [1, 4] int32
ops.where([True, False, True]) -> [0, 2] int32
ops.where([True, False], x1=1.0, x2=2) -> [1.0, 2.0] float32
ops.zeros((2,)) -> [0.0, 0.0] float32
ops.zeros(shape=(2,), dtype="int32") -> [0, 0] int32
ops.zeros_like([1, 2]) -> [0, 0] int32
ops.batch_normalization(floats([[1]]), floats([0]), floats([1]), -1) -> [[0.9995004]] float32
ops.batch_normalization(floats([[1]]), floats([0]), floats([3]), 0, epsilon=1.0) -> [[0.5]] float32
ops.binary_crossentropy([1.0, 0.0], [0.9, 0.2]) -> [0.1053605, 0.2231435] float32
ops.binary_crossentropy([1.0, 0.0], [2.0, -1.0], from_logits=True) -> [0.126928, 0.3132617] float32
ops.categorical_crossentropy([[0.0, 1.0]], [[0.2, 0.8]]) -> [0.2231435] float32
ops.categorical_crossentropy([[0.0, 1.0]], [[1.0, 3.0]], True) -> [0.126928] float32
ops.sparse_categorical_crossentropy([1], [[0.2, 0.8]]) -> [0.2231435] float32
ops.sparse_categorical_crossentropy(np.array([1]), floats([[1, 3]]), True) -> [0.126928] float32
ops.celu([-1.0, 2.0], 2.0) -> [-0.7869387, 2.0] float32
ops.elu([-1.0, 2.0]) -> [-0.6321205, 2.0] float32
ops.elu([-1.0, 2.0], alpha=0.5) -> [-0.3160603, 2.0] float32
ops.gelu([-1.0, 2.0]) -> [-0.158808, 1.954598] float32
ops.gelu([-1.0, 2.0], False) -> [-0.1586553, 1.9545] float32
ops.glu([1.0, 2.0, 3.0, 4.0]) -> [0.9525741, 1.964028] float32
ops.hard_shrink([-1.0, 0.2]) -> [-1.0, 0.0] float32
ops.hard_sigmoid([-1.0, 4.0]) -> [0.3333333, 1.0] float32
ops.hard_silu([-1.0, 4.0]) -> [-0.3333333, 4.0] float32
ops.hard_swish([-1.0, 4.0]) -> [-0.3333333, 4.0] float32
ops.hard_tanh([-2.0, 0.5]) -> [-1.0, 0.5] float32
ops.layer_normalization(floats([[1, 3]])) -> [[-0.9999999, 0.9999999]] float32
ops.layer_normalization(floats([1, 3]), floats([1]), floats([1]), epsilon=3.0) -> [0.5, 1.5] float32
ops.leaky_relu([-1.0, 2.0]) -> [-0.2, 2.0] float32
ops.leaky_relu([-1.0, 2.0], 0.5) -> [-0.5, 2.0] float32
ops.moments(floats([1, 3]), [0]) -> 2.0 float32; 1.0 float32
ops.normalize([3.0, 4.0]) -> [0.6, 0.8] float32
ops.normalize([3.0, 4.0], order=1) -> [0.4285715, 0.5714286] float32
ops.relu6([-1.0, 7.0]) -> [0.0, 6.0] float32
ops.rms_normalization(floats([3, 4])) -> [0.8485281, 1.131371] float32
ops.rms_normalization(floats([3, 4]), 2.0, epsilon=1.0) -> [1.632993, 2.177324] float32
ops.selu([-1.0, 2.0]) -> [-1.111331, 2.101402] float32
ops.silu([-1.0, 2.0]) -> [-0.2689414, 1.761594] float32
ops.swish([-1.0, 2.0]) -> [-0.2689414, 1.761594] float32
ops.soft_shrink([-1.0, 0.2]) -> [-0.5, 0.0] float32
ops.sparse_plus([-2.0, 0.0, 2.0]) -> [0.0, 0.25, 2.0] float32
ops.sparse_sigmoid([-2.0, 0.0, 0.5]) -> [0.0, 0.5, 0.75] float32
ops.squareplus([-1.0, 2.0]) -> [0.618034, 2.414214] float32
ops.squareplus([-1.0, 2.0], b=1) -> [0.2071068, 2.118034] float32
ops.tanh_shrink([-1.0, 2.0]) -> [-0.2384058, 1.035972] float32
ops.threshold([-1.0, 2.0], 0.0, -5.0) -> [-5.0, 2.0] float32
ops.bitwise_and([6, 5], 3) -> [2, 1] int32
ops.bitwise_invert([6, -5]) -> [-7, 4] int32
ops.sparsemax([0.0, 2.0]) -> [0.0, 1.0] float32
losses.binary_crossentropy([[1.0, 0.0]], [[0.9, 0.2]]) -> [0.164252] float32
losses.binary_crossentropy([[1.0, 0.0]], [[2.0, -1.0]], True, 0.2) -> [0.3700948] float32
losses.categorical_crossentropy([[0.0, 1.0]], [[0.2, 0.8]]) -> [0.2231435] float32
losses.categorical_crossentropy([[0.0, 1.0]], [[1.0, 3.0]], True, 0.2) -> [0.326928] float32
losses.sparse_categorical_crossentropy(np.array([1]), floats([[1, 3]]), True) -> [0.126928] float32
losses.sparse_categorical_crossentropy([1], [[2.0, 8.0]]) -> [0.2231435] float32
losses.categorical_hinge([[0.0, 1.0]], [[0.2, 0.4]]) -> [0.8] float32
losses.hinge([[0.0, 1.0]], [[0.2, 0.4]]) -> [0.9] float32
losses.squared_hinge([[-1.0, 1.0]], [[0.2, 0.4]]) -> [0.9] float32
losses.huber([[0.0, 1.0]], [[3.0, 1.5]]) -> [1.3125] float32
losses.huber([[0.0, 1.0]], [[3.0, 1.5]], delta=2.0) -> [2.0625] float32
losses.kl_divergence([[0.2, 0.8]], [[0.5, 0.5]]) -> [0.1927448] float32
losses.log_cosh([[0.0, 1.0]], [[3.0, 1.5]]) -> [1.214722] float32
losses.mean_absolute_error([[0.0, 1.0]], [[3.0, 1.5]]) -> [1.75] float32
losses.mean_absolute_percentage_error([[2.0, 1.0]], [[3.0, 1.5]]) -> [50.0] float32
losses.mean_squared_error([[0.0, 1.0]], [[3.0, 1.5]]) -> [4.625] float32
losses.mean_squared_error([1.0, 2.0], [[3.0], [1.5]]) -> [4.0, 0.25] float32
losses.mean_squared_logarithmic_error([[0.0, 1.0]], [[3.0, 1.5]]) -> [0.9858024] float32
losses.poisson([[0.0, 1.0]], [[3.0, 1.5]]) -> [2.047267] float32
losses.cosine_similarity([[0.0, 1.0]], [[3.0, 4.0]]) -> [-0.8] float32
ops.scatter(np.int32([[1], [1]]), floats([1, 2]), (3,)) -> [0.0, 3.0, 0.0] float32
ops.scatter_update(floats([1, 2, 3]), [[0], [2]], [9.0, 8.0]) -> [9.0, 2.0, 8.0] float32
ops.scatter_update(floats([1, 2, 3]), [[0], [0]], [9.0, 8.0], "add") -> [18.0, 2.0, 3.0] float32
ops.scatter_update(floats([1, 2, 3]), [[0], [0]], [9.0, 8.0], "mul") -> [72.0, 2.0, 3.0] float32
ops.segment_sum(floats([1, 2, 4]), np.int32([1, 0, 1]), 2) -> [2.0, 5.0] float32
ops.segment_prod(floats([1, 2, 4]), np.int32([1, 0, 1]), 3) -> [2.0, 4.0, 1.0] float32
ops.segment_max(floats([1, 2, 4]), np.int32([1, 0, 1]), num_segments=2) -> [2.0, 4.0] float32
ops.segment_min(floats([1, 2, 4]), np.int32([1, 0, 1]), 2) -> [2.0, 1.0] float32
ops.cond(True, lambda: ops.abs(floats([-1])), list) -> [1.0] float32
ops.switch(-3, [ops.abs, ops.square], floats([-3])) -> [3.0] float32
ops.while_loop(lambda i: i < 5, lambda i: i + 2, ops.array(0)) -> 6 int32
ops.associative_scan(lambda a, b: a * b, floats([1, 2, 3])) -> [1.0, 2.0, 6.0] float32
ops.fori_loop(1, 4, lambda i, x: x * i, floats(1)) -> 6.0 float32
ops.map(lambda x: x + 1, floats([1, 2])) -> [2.0, 3.0] float32
ops.scan(lambda c, x: (c + x, c * x), floats(1), floats([1, 2])) -> 4.0 float32; [1.0, 4.0] float32
ops.vectorized_map(lambda x: x + 1, floats([1, 2])) -> [2.0, 3.0] float32
ops.vectorize(lambda x: x if x > 0 else 0.0)(floats([-1, 2])) -> [0.0, 2.0] float32
ops.select([np.array([True, False])], [floats([1, 2])], 5) -> [1.0, 5.0] float32
ops.slice(np.int32([1, 2, 3]), [1], [2]) -> [2, 3] int32
ops.slice_update(np.int32([1, 2, 3]), [1], np.int32([8, 9])) -> [1, 8, 9] int32
ops.adaptive_average_pool(floats([[[1], [2], [4]]]), 2) -> [[[1.5], [3.0]]] float32
ops.adaptive_max_pool(floats([[[1], [2], [4]]]), 2) -> [[[2.0], [4.0]]] float32
ops.empty(2) -> [0.0, 0.0] float32
ops.empty_like(np.int32([1])) -> [0] int32
ops.jvp(ops.sin, (floats([0]),), (floats([3]),)) -> [0.0] float32; [3.0] float32
ops.cdist(floats([[0, 0], [3, 4]]), floats([[0, 0], [0, 4]])) -> [[0.0, 4.0], [5.0, 3.0]] float32
ops.depth_to_space(floats([[[[1, 2, 3, 4]]]]), 2) -> [[[[1.0], [2.0]], [[3.0], [4.0]]]] float32
ops.space_to_depth(floats([[[[1], [2]], [[3], [4]]]]), 2) -> [[[[1.0, 2.0, 3.0, 4.0]]]] float32
ops.space_to_depth(floats([[[[1, 2], [3, 4]]]]), 2, data_format="channels_first")
    -> [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]] float32
ops.dot_product_attention(*HEADS) -> [[[[2.339523, 3.339523]], [[1.391141, 2.391141]]]] float32
ops.dot_product_attention(*HEADS, scale=1.0, is_causal=True)
    -> [[[[1.0, 2.0]], [[1.238406, 2.238406]]]] float32
ops.extract_sequences(floats([1, 2, 3, 4, 5]), 3, 2) -> [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]] float32
ops.unfold(floats([[[[1, 2, 3], [4, 5, 6]]]]), 2)
    -> [[[1.0, 2.0], [2.0, 3.0], [4.0, 5.0], [5.0, 6.0]]] float32
ops.unfold(floats([[[[1, 2], [4, 5]]]]), 2, padding=1, stride=2)
    -> [[[0.0, 0.0, 0.0, 5.0], [0.0, 0.0, 4.0, 0.0], [0.0, 2.0, 0.0, 0.0],
    [1.0, 0.0, 0.0, 0.0]]] float32
ops.fold(floats([[[1, 2], [3, 4], [5, 6], [7, 8]]]), (2, 3), 2)
    -> [[[[1.0, 5.0, 4.0], [5.0, 13.0, 8.0]]]] float32
ops.get_item(floats([1, 2, 3]), slice(1, None)) -> [2.0, 3.0] float32
ops.in_top_k(np.int32([1, 0]), floats([[1, 2, 3], [1, 2, 3]]), 2) -> [True, False] bool
ops.multi_hot(np.int32([0, 2, 2]), 4) -> [1.0, 0.0, 1.0, 0.0] float32
ops.multi_hot(np.int32([[0, 2], [1, 1]]), 3) -> [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]] float32
ops.polar(floats([2]), floats([0.5])) -> [(1.755165+0.9588511j)] complex64
ops.psnr(floats([1, 2]), floats([1.5, 2]), 2.0) -> 15.0515 float32
ops.rearrange(floats([[1, 2], [3, 4]]), "b (h w) -> h b w", h=2)
    -> [[[1.0], [3.0]], [[2.0], [4.0]]] float32
ops.rearrange(np.int32([[[1, 2]], [[3, 4]]]), "a b c -> c (b a)") -> [[1, 3], [2, 4]] int32
ops.saturate_cast(np.float32([-5.5, 3.7, 300.0]), "uint8") -> [0, 3, 255] uint8
ops.separable_conv(floats([[[[1], [2]], [[3], [4]]]]), floats([[[[1, 2]], [[3, 4]]]]),
    floats([[[[1], [10]]]]))
    -> [[[[107.0]], [[235.0]]]] float32
ops.view(floats([1, 2]), "int32") -> [1065353216, 1073741824] int32
ops.view(np.int32([1]), "uint8") -> [1, 0, 0, 0] uint8
ops.view_as_complex(floats([[1, 2], [3, 4]])) -> [(1+2j), (3+4j)] complex64
ops.view_as_real(np.complex64([1 + 2j])) -> [[1.0, 2.0]] float32
ops.allclose(floats([1, 2]), floats([1, 2.00001])) -> True bool
ops.angle(np.complex64([1j, -1])) -> [1.570796, 3.141593] float32
ops.argpartition(np.int32([3, 1, 2]), 1) -> [1, 2, 0] int32
ops.bincount(np.int32([1, 1, 3])) -> [0, 2, 0, 1] int32
ops.bincount(np.int32([1, 1, 3]), floats([1, 2, 3]), minlength=5)
    -> [0.0, 3.0, 0.0, 3.0, 0.0] float32
ops.bincount(np.int32([[1, 1], [0, 2]]), minlength=2) -> [[0, 2, 0], [1, 0, 1]] int32
ops.deg2rad(floats([180, 90])) -> [3.141593, 1.570796] float32
ops.digitize(floats([0, 1, 5]), floats([1, 3])) -> [0, 1, 2] int32
ops.fabs(floats([-1, 2])) -> [1.0, 2.0] float32
ops.fmax(floats([np.nan, 1]), floats([2, 0])) -> [2.0, 1.0] float32
ops.fmin(floats([np.nan, 1]), floats([2, 0])) -> [2.0, 0.0] float32
ops.fmod(floats([-5, 5]), floats([3, -3])) -> [-2.0, 2.0] float32
ops.fmod(np.int32([-5, 5]), np.int32([3, -3])) -> [-2, 2] int32
ops.geomspace(1.0, 8.0, 4) -> [1.0, 2.0, 4.0, 8.0] float32
ops.geomspace(1.0, 8.0, 3, endpoint=False) -> [1.0, 2.0, 4.0] float32
ops.heaviside(floats([-1, 0, 2]), 0.5) -> [0.0, 0.5, 1.0] float32
ops.histogram(floats([1, 2, 2, 5]), 2) -> [3.0, 1.0] float32; [1.0, 3.0, 5.0] float32
ops.nanargmax(floats([[1, np.nan], [3, 2]]), axis=1) -> [0, 0] int32
ops.nanargmin(floats([np.nan, 3, 1])) -> 2 int32
ops.nanargmin(floats([[np.nan, np.nan], [1, np.nan]]), 1) -> [-1, 0] int32
ops.nancumprod(floats([2, np.nan, 3])) -> [2.0, 2.0, 6.0] float32
ops.nancumsum(floats([[1, np.nan], [3, 2]]), axis=0) -> [[1.0, 0.0], [4.0, 2.0]] float32
ops.nancumsum(np.int32([1, 2])) -> [1, 3] int32
ops.nanmax(floats([[1, np.nan], [3, 2]]), axis=0) -> [3.0, 2.0] float32
ops.nanmax(np.int32([1, 2])) -> 2 int32
ops.nanmean(floats([[1, np.nan], [3, 2]]), axis=1, keepdims=True) -> [[1.0], [2.5]] float32
ops.nanmean(np.int32([1, 2])) -> 1.5 float32
ops.nanmedian(floats([1, np.nan, 4, 2])) -> 2.0 float32
ops.nanmin(floats([1, np.nan, 4, 2])) -> 1.0 float32
ops.nanpercentile(floats([1, np.nan, 4, 2]), 25.0) -> 1.5 float32
ops.nanprod(floats([[1, np.nan], [3, 2]]), axis=0) -> [3.0, 2.0] float32
ops.nanprod(np.int32([1, 2])) -> 2 int32
ops.nanquantile(floats([1, np.nan, 4, 2]), 0.75, method="lower") -> 2.0 float32
ops.nanstd(floats([1, np.nan, 4])) -> 1.5 float32
ops.nansum(floats([[1, np.nan], [3, 2]]), axis=0) -> [4.0, 2.0] float32
ops.nansum(np.int32([1, 2])) -> 3 int32
ops.nanvar(floats([1, np.nan, 4])) -> 2.25 float32
ops.isin(np.int32([1, 2, 3]), np.int32([2, 5])) -> [False, True, False] bool
ops.isin(np.int32([1, 2, 3]), np.int32([2, 5]), invert=True) -> [True, False, True] bool
ops.isneginf(floats([-np.inf, 1])) -> [True, False] bool
ops.isposinf(floats([np.inf, 1])) -> [True, False] bool
ops.isreal(np.complex64([1j, 2])) -> [False, True] bool
ops.ldexp(floats([1, 3]), np.int32([2, -1])) -> [4.0, 1.5] float32
ops.logaddexp2(floats([1, 3]), floats([1, 3])) -> [2.0, 4.0] float32
ops.logspace(0, 2, 3) -> [1.0, 10.0, 100.0] float32
ops.logspace(0.0, 3.0, 3, endpoint=False, base=2) -> [1.0, 2.0, 4.0] float32
ops.nonzero(floats([[0, 2], [3, 0]])) -> [0, 1] int32; [1, 0] int32
ops.ptp(floats([[1, 4], [2, 9]]), axis=1, keepdims=True) -> [[3.0], [7.0]] float32
ops.rad2deg(floats([1, 2])) -> [57.29578, 114.5916] float32
ops.searchsorted(np.int32([1, 3, 5]), np.int32([3, 6]), side="right") -> [2, 3] int32
ops.select([np.bool_([True, False]), np.bool_([True, True])], [floats([1, 2]), floats([3, 4])])
    -> [1.0, 4.0] float32
ops.signbit(floats([-1, -0.0, 2])) -> [True, True, False] bool
ops.trunc(floats([-1.5, 2.7])) -> [-1.0, 2.0] float32
ops.unique(np.int32([3, 1, 3])) -> [1, 3] int32
ops.unique(np.int32([3, 1, 3]), return_inverse=True, return_counts=True)
    -> [1, 3] int32; [1, 0, 1] int32; [1, 2] int32
ops.unique(np.int32([3, 1, 3]), return_index=True) -> [1, 3] int32; [1, 0] int32
ops.unique(np.int32([3, 1, 3]), size=4) -> [1, 3, 0, 0] int32
ops.unravel_index(np.int32([3, 5]), (2, 3)) -> [1, 1] int32; [0, 2] int32
ops.erfc(floats([0, 1])) -> [1.0, 0.1572992] float32
ops.divide_no_nan([1.0, 2.0], [0.0, 4.0]) -> [0.0, 0.5] float32
ops.bartlett(4) -> [0.0, 0.6666666, 0.6666666, 0.0] float32
ops.blackman(4) -> [-1.490116e-08, 0.63, 0.6299999, -1.490116e-08] float32
ops.hamming(4) -> [0.08000001, 0.77, 0.77, 0.08000001] float32
ops.hanning(4) -> [0.0, 0.75, 0.7499999, 0.0] float32
ops.kaiser(4, 3.0) -> [0.2048848, 0.8712419, 0.8712419, 0.2048848] float32
""")


@pytest.mark.parametrize(("call", "results"), ROWS)
def test_as_in_keras(call, results):
    assert_gives(call, results, NAMES)


def test_every_function_is_tried():
    tried = {call.split("(")[0].rpartition(".")[2] for call, _ in ROWS}
    own = {name for name in losses.__all__ if getattr(losses, name).__name__ == name} - {"get"}
    objects = {name for name in own if inspect.isclass(getattr(losses, name))}
    assert own - objects <= tried  # the objects are in test_keras_objects.py
    functions = {name for name in ops.__all__ if inspect.isfunction(getattr(ops, name))}
    elsewhere = {
        "custom_gradient",
        "dtype",
        "is_tensor",
        "vectorize",
        *spelled_by_records("keras.ops"),
    }
    assert functions - elsewhere <= tried


def test_other_names():
    assert ops is tf.keras.ops is tinygrad_cg.keras.ops
    assert ops.conjugate is ops.conj
    assert ops.dtype(ops.ones(2)) == "float32"
    assert ops.is_tensor(ops.ones(2))
    assert not ops.is_tensor(np.ones(2))


def test_converted_arrays_are_the_callers_own():
    x = ops.convert_to_tensor([1.0, 2.0])
    array = ops.convert_to_numpy(x)
    array[0] = 5.0
    assert x.numpy().tolist() == [1.0, 2.0]


def test_gradients_flow():
    x = tf.constant([3, 4], dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.sum(ops.multiply(ops.softmax(x, axis=None), x))
    p = np.exp([3.0, 4.0]) / np.sum(np.exp([3.0, 4.0]))
    expected = p + p * ([3.0, 4.0] - p @ [3.0, 4.0])
    assert tape.gradient(y, x).numpy() == pytest.approx(expected)


def test_random():
    draws = tf.keras.random.uniform((1000,), seed=1)
    assert draws.dtype == tf.float32
    assert 0.0 <= draws.numpy().min() < 0.1
    assert 0.9 < draws.numpy().max() < 1.0
    same = tf.keras.random.uniform((1000,), minval=0.0, maxval=1.0, dtype=None, seed=1)
    assert draws.numpy().tolist() == same.numpy().tolist()
    assert abs(tf.keras.random.normal((1000,), 5.0, 0.1, seed=2).numpy().mean() - 5.0) < 0.02


@pytest.mark.parametrize("call", ["amax([1], None, False, 5)", "prod([1], None, False, int)"])
def test_parameters_that_are_not_there_are_refused(call):
    with pytest.raises(TypeError, match="positional argument"):
        eval(f"ops.{call}", {"ops": ops})


def test_extrema_start_from_initial():
    assert float(ops.max([1.0, 2.0], initial=5)) == 5
    assert ops.min([[1.0, 2.0]], axis=1, keepdims=True, initial=0.5).numpy().tolist() == [[0.5]]
    assert float(ops.max(np.zeros(0, np.float32), initial=0.0)) == 0
    assert ops.max([1, 2], initial=0).dtype == "int32"


def test_linspace_has_axes_and_steps():
    spaced, step = ops.linspace(0, 10, num=5, endpoint=False, retstep=True)
    assert (spaced.numpy().tolist(), float(step)) == ([0, 2, 4, 6, 8], 2)
    columns = ops.linspace([0, 1], [2, 3], 3, axis=-1).numpy()
    assert columns.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert np.isnan(ops.linspace(0, 1, 1, retstep=True)[1])


def test_full_like_rounds_towards_zero_for_integers():
    assert ops.full_like([1, 2], 7.9).numpy().tolist() == [7, 7]


def test_activations():
    x = np.float32([-2.0, 0.1, 3.0])
    relu = activations.relu(x, negative_slope=0.1, max_value=2.0, threshold=0.2)
    np.testing.assert_allclose(relu, [-0.22, -0.01, 2.0], rtol=1e-6)
    np.testing.assert_allclose(activations.relu(x, 0.5), [-1.0, 0.1, 3.0], rtol=1e-6)
    np.testing.assert_allclose(activations.relu(x, max_value=1.0), [0, 0.1, 1.0], rtol=1e-6)
    np.testing.assert_array_equal(activations.gelu(x), ops.gelu(x, approximate=False))
    np.testing.assert_allclose(activations.mish(x), x * np.tanh(np.log1p(np.exp(x))), rtol=1e-6)
    limits = activations.mish(np.array([-np.inf, np.inf]))
    np.testing.assert_array_equal(limits, [0, np.inf])
    assert activations.mish([1, 2]).dtype == tf.float32
    np.testing.assert_allclose(activations.exponential(x), np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(activations.get(None)(x), x)
    assert activations.get("relu") is activations.get(activations.relu) is activations.relu
    with pytest.raises(ValueError, match=r"activations.get: identifier must be .*got 'get'"):
        activations.get("get")
    assert losses.get("mse") is losses.mean_squared_error
    assert type(losses.get("MeanSquaredError")) is losses.MeanSquaredError
    assert losses.get(None) is None
    assert losses.get(losses.mse) is losses.mse
    with pytest.raises(ValueError, match=r"losses.get: identifier must be .*got 'Loss'"):
        losses.get("Loss")


@pytest.mark.parametrize(
    ("module", "name", "remedy"),
    [
        (losses, "dice", "1 - 2"),
        (losses, "ctc", "tf.keras.ops.ctc_loss"),
        (tf.keras.random, "SeedGenerator", "seed="),
    ],
)
def test_what_keras_has_besides_has_a_remedy(module, name, remedy):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': use {remedy}"):
        getattr(module, name)


def test_where_needs_both_or_neither():
    with pytest.raises(ValueError, match="both be given"):
        ops.where([True], 1.0)


def test_unstack_checks_the_number():
    with pytest.raises(ValueError, match="num is 3, but there are 2 slices"):
        ops.unstack([1, 2], num=3)


def test_pad_values_are_for_the_constant_mode():
    with pytest.raises(ValueError, match="constant_values are for mode='constant'"):
        ops.pad([1, 2], 1, "edge", 5)
