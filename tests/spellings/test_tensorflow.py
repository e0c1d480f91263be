"""Spellings at the top level and in `math`, `nn`, `linalg`: what TensorFlow 2.21 gives."""

import inspect

import pytest

import tinygrad_cg as tf
from tests.support.spelling_cases import IMAGES, assert_gives, rows, spelled_by_records
from tinygrad_cg._ops.namespaces import arrays, programs

ROWS = rows("""
tf.abs(-3) -> 3 int32
tf.add(1, 2) -> 3 int32
tf.argmax([[1, 5, 2], [7, 0, 3]]) -> [1, 0, 1] int64
tf.argmax([[1, 5, 2], [7, 0, 3]], axis=1) -> [1, 0] int64
tf.argmax([[1, 5, 2], [7, 0, 3]], 1, tf.int32) -> [1, 0] int32
tf.argmax([3, 3]) -> 0 int64
tf.argmin([[1, 5, 2], [7, 0, 3]]) -> [0, 1, 0] int64
tf.argmin(input=[[1, 5, 2], [7, 0, 3]], axis=-1, output_type=tf.int32) -> [0, 1] int32
tf.argsort([3.0, 1.0, 2.0]) -> [1, 2, 0] int32
tf.argsort([[3, 1], [1, 1]], 0, "DESCENDING", True) -> [[0, 0], [1, 1]] int32
tf.broadcast_to([1, 2], [2, 2]) -> [[1, 2], [1, 2]] int32
tf.cast([1.7, -1.7], tf.int32) -> [1, -1] int32
tf.cast(2, "float64") -> 2.0 float64
tf.cast([0, 2], tf.bool) -> [False, True] bool
tf.math.add_n([[1.0, 2.0], [3.0, 4.0], [0.5, 0.5]]) -> [4.5, 6.5] float32
tf.linalg.global_norm([[3.0, 0.0], None, 4.0]) -> 5.0 float32
tf.sequence_mask([1, 3]) -> [[True, False, False], [True, True, True]] bool
tf.sequence_mask([2], 3, tf.int32) -> [[1, 1, 0]] int32
tf.clip_by_value([-1.0, 0.5, 3.0], 0.0, 1.0) -> [0.0, 0.5, 1.0] float32
tf.clip_by_value(t=[1, 5], clip_value_min=2, clip_value_max=3) -> [2, 3] int32
tf.concat([[1, 2], [3]], 0) -> [1, 2, 3] int32
tf.concat(values=[[[1]], [[2]]], axis=1) -> [[1, 2]] int32
tf.concat(tf.constant([[1, 2], [3, 4]]), 0) -> [[1, 2], [3, 4]] int32
tf.constant([1, 2]) -> [1, 2] int32
tf.constant(3, shape=[2, 2]) -> [[3, 3], [3, 3]] int32
tf.constant([1, 2, 3, 4], dtype=tf.float32, shape=[2, 2]) -> [[1.0, 2.0], [3.0, 4.0]] float32
tf.convert_to_tensor(2.5) -> 2.5 float32
tf.convert_to_tensor(2, dtype=tf.float64) -> 2.0 float64
tf.convert_to_tensor(2, dtype_hint=tf.float32) -> 2.0 float32
tf.divide(tf.constant([1, 2]), tf.constant([2, 2])) -> [0.5, 1.0] float64
tf.truediv(tf.constant([1, 2]), tf.constant([2, 2])) -> [0.5, 1.0] float64
tf.einsum("ij,jk->ik", [[1, 2]], [[3], [4]]) -> [[11]] int32
tf.einsum("...i,...i->...", [[1.0, 2.0]], [[3.0, 4.0]], optimize="optimal") -> [11.0] float32
tf.equal([1, 2], [1, 3]) -> [True, False] bool
tf.not_equal([1, 2], [1, 3]) -> [False, True] bool
tf.exp(x=0.0, name="e") -> 1.0 float32
tf.expand_dims([1, 2], 0) -> [[1, 2]] int32
tf.expand_dims(input=[1, 2], axis=-1) -> [[1], [2]] int32
tf.eye(2) -> [[1.0, 0.0], [0.0, 1.0]] float32
tf.eye(2, 3) -> [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] float32
tf.eye(2, num_columns=1, batch_shape=[2], dtype=tf.int32) -> [[[1], [0]], [[1], [0]]] int32
tf.fill([2, 2], 9) -> [[9, 9], [9, 9]] int32
tf.fill(dims=(2,), value=0.5) -> [0.5, 0.5] float32
tf.gather([10, 20, 30], [2, 0]) -> [30, 10] int32
tf.gather([[1, 2], [3, 4]], [1], axis=1) -> [[2], [4]] int32
tf.gather(params=[[1, 2], [3, 4]], indices=[[1], [0]], batch_dims=1) -> [[2], [3]] int32
tf.greater([1, 2], 1) -> [False, True] bool
tf.greater_equal([1, 2], 2) -> [False, True] bool
tf.less([1, 2], 2) -> [True, False] bool
tf.less_equal([1, 3], 2) -> [True, False] bool
tf.identity([1, 2]) -> [1, 2] int32
tf.linspace(0.0, 1.0, 3) -> [0.0, 0.5, 1.0] float32
tf.logical_and([True, False], [True, True]) -> [True, False] bool
tf.logical_or([True, False], [False, False]) -> [True, False] bool
tf.logical_not([True, False]) -> [False, True] bool
tf.matmul([[1.0, 2.0]], [[3.0], [4.0]]) -> [[11.0]] float32
tf.matmul([[1, 2], [3, 4]], [[1, 2], [3, 4]], transpose_a=True) -> [[10, 14], [14, 20]] int32
tf.matmul(a=[[1, 2], [3, 4]], b=[[1, 2], [3, 4]], transpose_b=True) -> [[5, 11], [11, 25]] int32
tf.matmul([[1, 2], [3, 4]], [[1], [1]], False, False, True) -> [[4], [6]] int32
tf.maximum([1, 5], 3) -> [3, 5] int32
tf.minimum([1, 5], 3) -> [1, 3] int32
tf.negative([1, -2]) -> [-1, 2] int32
tf.cumsum([1, 2, 3]) -> [1, 3, 6] int32
tf.cumsum([[1.0, 2.0], [3.0, 4.0]]) -> [[1.0, 2.0], [4.0, 6.0]] float32
tf.cumsum([[1.0, 2.0], [3.0, 4.0]], axis=1) -> [[1.0, 3.0], [3.0, 7.0]] float32
tf.cumsum([1, 2, 3], exclusive=True) -> [0, 1, 3] int32
tf.math.cumsum(x=[1, 2, 3], reverse=True) -> [6, 5, 3] int32
tf.math.cumsum([1, 2, 3], 0, True, True) -> [5, 3, 0] int32
tf.math.cumprod([2, 3, 4]) -> [2, 6, 24] int32
tf.math.cumprod([2.0, 3.0, 4.0], exclusive=True, reverse=True) -> [12.0, 4.0, 1.0] float32
tf.math.reduce_variance([1.0, 2.0, 3.0, 4.0]) -> 1.25 float32
tf.math.reduce_variance([[1.0, 3.0], [2.0, 6.0]], 1, True) -> [[1.0], [4.0]] float32
tf.math.reduce_std([[1.0, 3.0], [2.0, 6.0]], axis=1) -> [1.0, 2.0] float32
tf.math.softmax([[0.0, 0.0]]) -> [[0.5, 0.5]] float32
tf.norm([3.0, 4.0]) -> 5.0 float32
tf.norm([[3.0, 4.0], [6.0, 8.0]], axis=1) -> [5.0, 10.0] float32
tf.norm([[3.0, 4.0], [6.0, 8.0]], axis=1, keepdims=True) -> [[5.0], [10.0]] float32
tf.norm([[3.0, 4.0], [0.0, 0.0]], axis=[0, 1]) -> 5.0 float32
tf.norm([3.0, -4.0], ord=1) -> 7.0 float32
tf.norm([3.0, -4.0], ord=np.inf) -> 4.0 float32
tf.one_hot([0, 2, -1], 3) -> [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]] float32
tf.one_hot([0, 1], depth=2, on_value=5, off_value=-1, axis=0) -> [[5, -1], [-1, 5]] int32
tf.one_hot([1], 2, on_value=5.0, axis=-1) -> [[0.0, 5.0]] float32
tf.one_hot([1], 2, dtype=tf.int64) -> [[0, 1]] int64
tf.one_hot(1, 2, True, False) -> [False, True] bool
tf.ones([2]) -> [1.0, 1.0] float32
tf.ones((1, 2), tf.int32) -> [[1, 1]] int32
tf.ones_like([1, 2]) -> [1, 1] int32
tf.ones_like(input=[1, 2], dtype=tf.float32) -> [1.0, 1.0] float32
tf.pad([[1, 2]], [[0, 1], [1, 0]]) -> [[0, 1, 2], [0, 0, 0]] int32
tf.pad([1.0, 2.0], [[1, 0]], constant_values=9) -> [9.0, 1.0, 2.0] float32
tf.pad([1, 2, 3], [[2, 1]], "REFLECT") -> [3, 2, 1, 2, 3, 2] int32
tf.pad([1, 2, 3], paddings=[[2, 1]], mode="symmetric") -> [2, 1, 1, 2, 3, 3] int32
tf.pow(2.0, 3.0) -> 8.0 float32
tf.pow([2, 3], 2) -> [4, 9] int32
tf.range(3) -> [0, 1, 2] int32
tf.range(1, 10, 4) -> [1, 5, 9] int32
tf.range(0.0, 1.0, 0.25) -> [0.0, 0.25, 0.5, 0.75] float32
tf.range(start=2, limit=4, dtype=tf.float32) -> [2.0, 3.0] float32
tf.rank([[1]]) -> 2 int32
tf.reduce_all([[True, False], [True, True]]) -> False bool
tf.reduce_all([[True, False], [True, True]], axis=1) -> [False, True] bool
tf.reduce_any([[True, False], [False, False]], 0) -> [True, False] bool
tf.reduce_logsumexp([0.0, 0.0]) -> 0.6931472 float32
tf.reduce_max([[1, 5], [7, 0]]) -> 7 int32
tf.reduce_max([[1, 5], [7, 0]], 0) -> [7, 5] int32
tf.reduce_mean([1, 2, 4]) -> 2 int32
tf.reduce_mean([1.0, 2.0]) -> 1.5 float32
tf.reduce_mean([[1, 2], [3, 5]], axis=1) -> [1, 4] int32
tf.reduce_mean([-1, -2]) -> -1 int32
tf.reduce_min([[1, 5], [7, 0]], axis=[0, 1], keepdims=True) -> [[0]] int32
tf.reduce_prod([[1, 5], [7, 2]], axis=-1) -> [5, 14] int32
tf.reduce_sum([[1, 5], [7, 0]]) -> 13 int32
tf.reduce_sum(input_tensor=[[1.0, 5.0], [7.0, 0.0]], axis=0) -> [8.0, 5.0] float32
tf.reduce_sum([[1, 5], [7, 0]], 0, True) -> [[8, 5]] int32
tf.reshape([[1, 2], [3, 4]], [-1]) -> [1, 2, 3, 4] int32
tf.reshape(tensor=[1, 2], shape=(2, 1)) -> [[1], [2]] int32
tf.shape([[1, 2, 3]]) -> [1, 3] int32
tf.shape(1.0) -> [] int32
tf.shape([[1, 2, 3]], tf.int64) -> [1, 3] int64
tf.size([[1, 2, 3]]) -> 3 int32
tf.sort([3.0, 1.0, 2.0]) -> [1.0, 2.0, 3.0] float32
tf.sort([[3, 1], [1, 2]], axis=0, direction="DESCENDING") -> [[3, 2], [1, 1]] int32
tf.split([1, 2, 3, 4], 2) -> [1, 2] int32; [3, 4] int32
tf.split([[1, 2, 3]], [1, -1], axis=1) -> [[1]] int32; [[2, 3]] int32
tf.split(value=[1, 2, 3], num_or_size_splits=[2, 1], num=2) -> [1, 2] int32; [3] int32
tf.square([2, 3]) -> [4, 9] int32
tf.squeeze([[[1], [2]]]) -> [1, 2] int32
tf.squeeze([[[1], [2]]], axis=[0]) -> [[1], [2]] int32
tf.stack([1, 2]) -> [1, 2] int32
tf.stack([[1, 2], [3, 4]], axis=1) -> [[1, 3], [2, 4]] int32
tf.stack(values=[[1, 2], [3, 4]]) -> [[1, 2], [3, 4]] int32
tf.stop_gradient([1.0]) -> [1.0] float32
tf.subtract(5, 2) -> 3 int32
tf.tensordot([[1, 2]], [[3], [4]], 1) -> [[11]] int32
tf.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 2]], axes=[[0, 1], [0, 1]]) -> 9 int32
tf.transpose([[1, 2], [3, 4]]) -> [[1, 3], [2, 4]] int32
tf.transpose([[[1, 2]], [[3, 4]]], perm=[0, 2, 1]) -> [[[1], [2]], [[3], [4]]] int32
tf.transpose([[1 + 2j]], conjugate=True) -> [[(1-2j)]] complex128
tf.unstack([[1, 2], [3, 4]]) -> [1, 2] int32; [3, 4] int32
tf.unstack([[1, 2], [3, 4]], 2, 1) -> [1, 3] int32; [2, 4] int32
tf.where([True, False], [1, 2], [3, 4]) -> [1, 4] int32
tf.where([True, False, True], 1.0, 0.0) -> [1.0, 0.0, 1.0] float32
tf.where([[True, False], [True, True]]) -> [[0, 0], [1, 0], [1, 1]] int64
tf.zeros([2]) -> [0.0, 0.0] float32
tf.zeros((), tf.int64) -> 0 int64
tf.zeros_like([1.5]) -> [0.0] float32
tf.zeros_like([1.5], tf.int32) -> [0] int32
tf.math.conj([1 + 2j]) -> [(1-2j)] complex128
tf.math.conj([1.0]) -> [1.0] float32
tf.math.floordiv([7, -7], 2) -> [3, -4] int32
tf.math.floormod([7, -7], 3) -> [1, 2] int32
tf.math.mod([7, -7], 3) -> [1, 2] int32
tf.math.imag([1 + 2j]) -> [2.0] float64
tf.math.real([1 + 2j]) -> [1.0] float64
tf.math.log_softmax([0.0, 0.0]) -> [-0.6931472, -0.6931472] float32
tf.math.logical_xor([True, True], [True, False]) -> [False, True] bool
tf.math.reciprocal([2.0, 4.0]) -> [0.5, 0.25] float32
tf.math.reduce_euclidean_norm([3.0, 4.0]) -> 5.0 float32
tf.math.scalar_mul(2.0, tf.constant([1.0, 2.0])) -> [2.0, 4.0] float32
tf.math.softmax([0.0, 0.0]) -> [0.5, 0.5] float32
tf.math.softmax([[0.0, 5.0], [0.0, 5.0]], axis=0) -> [[0.5, 0.5], [0.5, 0.5]] float32
tf.math.softplus([0.0]) -> [0.6931472] float32
tf.math.squared_difference([1.0, 2.0], [3.0, 3.0]) -> [4.0, 1.0] float32
tf.math.top_k([1.0, 3.0, 3.0], 2) -> [3.0, 3.0] float32; [1, 2] int32
tf.math.top_k([[1, 3], [4, 2]], index_type=tf.int64) -> [[3], [4]] int32; [[1], [0]] int64
tf.nn.top_k([1, 2], k=1) -> [2] int32; [1] int32
tf.nn.conv1d(line, pair, 2, "SAME") -> [[[51.0], [3.0]]] float32
tf.nn.conv1d([[[1.0, 2.0, 4.0]]], pair, 1, "VALID", data_format="NCW") -> [[[21.0, 42.0]]] float32
tf.nn.conv1d(line, filters=pair, stride=1, padding="VALID", dilations=2) -> [[[31.0]]] float32
tf.nn.conv1d_transpose([[[1.0], [2.0]]], pair, [1, 3, 1], 2) -> [[[1.0], [10.0], [2.0]]] float32
tf.nn.conv2d(square, wide, 1, "VALID") -> [[[[21.0]], [[43.0]]]] float32
tf.nn.conv2d(square, wide, [1, 2, 1, 1], "SAME") -> [[[[21.0], [2.0]]]] float32
tf.nn.conv2d(square, wide, 1, [[0, 0], [0, 0], [1, 0], [0, 0]])[0, 0] -> [[10.0], [21.0]] float32
tf.nn.conv2d([[[[1.0, 2.0]]]], [[[[1.0, 10.0]]]], 1, "SAME") -> [[[[1.0, 20.0]]]] float32
tf.nn.conv2d_transpose([[[[2.0]]]], wide, (1, 1, 2, 1), 2) -> [[[[2.0], [20.0]]]] float32
tf.nn.convolution(line, pair) -> [[[51.0], [35.0]]] float32
tf.nn.convolution(square, wide, padding="VALID") -> [[[[21.0]], [[43.0]]]] float32
tf.nn.depthwise_conv2d([[[[1.0, 2.0]]]], [[[[3.0], [4.0]]]], 1, "SAME") -> [[[[3.0, 8.0]]]] float32
tf.nn.depthwise_conv2d(square, [[[[1.0, 9.0]]]], 2, "VALID") -> [[[[1.0, 9.0]]]] float32
tf.nn.max_pool(line, 2, 1, "VALID") -> [[[5.0], [5.0]]] float32
tf.nn.max_pool1d([[[-1.0], [-5.0], [-3.0]]], 2, 2, "SAME") -> [[[-1.0], [-3.0]]] float32
tf.nn.max_pool2d(square, [1, 2, 2, 1], [1, 2, 2, 1], "VALID") -> [[[[4.0]]]] float32
tf.nn.max_pool2d([[[[1.0, 5.0]]]], (1, 2), 2, "VALID", data_format="NCHW") -> [[[[5.0]]]] float32
tf.nn.all_candidate_sampler([[1], [2]], 1, 3, True) -> [0, 1, 2] int64; [[1.0], [1.0]] float32;
    [1.0, 1.0, 1.0] float32
tf.nn.compute_accidental_hits([[1, 2], [5, 0]], [0, 5, 3], 2) -> [1, 1] int32; [1, 0] int64;
    [-3.402823e+38, -3.402823e+38] float32
tf.nn.ctc_loss([[1, 2], [2, 0]], tf.reshape(tf.sin(tf.range(24.0)), [4, 2, 3]), [2, 1], [4, 3]) ->
    [1.378002, 1.586974] float32
tf.nn.ctc_loss([[1, 0], [1, 0]], tf.reshape(tf.sin(tf.range(24.0)), [2, 4, 3]), [2, 1], [4, 3],
    logits_time_major=False, blank_index=-1) -> [1.538244, 1.447526] float32
tf.nn.nce_loss(tf.constant([[1.0], [2.0], [-1.0]]), tf.constant([0.5, 0.0, 1.0]), np.array([[1],
    [2]]), tf.constant([[1.0], [2.0]]), 2, 3, sampled_values=(np.array([0, 1]),
    tf.constant([[0.5], [0.25]]), tf.constant([0.5, 0.125]))) -> [6.460609, 9.833636] float32
tf.nn.sampled_softmax_loss(tf.constant([[1.0], [2.0], [-1.0]]), tf.constant([0.5, 0.0, 1.0]),
    np.array([[1], [2]]), tf.constant([[1.0], [2.0]]), 2, 3, sampled_values=(np.array([0, 1]),
    tf.constant([[0.5], [0.25]]), tf.constant([0.5, 0.125]))) -> [0.474077, 5.750615] float32
tf.nn.approx_max_k([1.0, 5.0, 3.0], 2) -> [5.0, 3.0] float32; [1, 2] int32
tf.nn.atrous_conv2d(tf.reshape(tf.range(12.0), [1, 3, 4, 1]), [[[[1.0]], [[10.0]]]], 2, "VALID")
    -> [[[[20.0], [31.0]], [[64.0], [75.0]], [[108.0], [119.0]]]] float32
tf.nn.atrous_conv2d_transpose(square, wide, [1, 2, 4, 1], 2, "VALID") -> [[[[1.0], [2.0], [10.0],
    [20.0]], [[3.0], [4.0], [30.0], [40.0]]]] float32
tf.nn.avg_pool(tf.reshape(tf.range(6.0), [1, 2, 3, 1]), 2, 1, "SAME") -> [[[[2.0], [3.0], [3.5]],
    [[3.5], [4.5], [5.0]]]] float32
tf.nn.avg_pool3d(tf.reshape(tf.range(12.0), [1, 2, 2, 3, 1]), 2, 1, "SAME") -> [[[[[5.0], [6.0],
    [6.5]], [[6.5], [7.5], [8.0]]], [[[8.0], [9.0], [9.5]], [[9.5], [10.5], [11.0]]]]] float32
tf.nn.max_pool3d(tf.reshape(tf.range(12.0), [1, 2, 2, 3, 1]), [1, 2, 2], 1, "VALID") -> [[[[[4.0],
    [5.0]]], [[[10.0], [11.0]]]]] float32
tf.nn.max_pool3d(tf.reshape(tf.range(12.0), [1, 2, 2, 3, 1]), 2, 2, "SAME") -> [[[[[10.0],
    [11.0]]]]] float32
tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 3, 3]], [4, 2]) -> [[1, 2], [3, 0]] int32; [2,
    1] int32
tf.nn.compute_average_loss([1.0, 2.0, 3.0], sample_weight=[1.0, 2.0, 0.0]) -> 1.666667 float32
tf.nn.compute_average_loss([1.0, 2.0, 3.0], global_batch_size=4) -> 1.5 float32
tf.nn.scale_regularization_loss([1.0, 2.0]) -> 3.0 float32
tf.nn.ctc_unique_labels([[3, 4, 4, 3], [1, 2, 3, 4]]) -> [[3, 4, 0, 0], [1, 2, 3, 4]] int64; [[0,
    1, 1, 0], [0, 1, 2, 3]] int32
tf.nn.conv3d(tf.reshape(tf.range(8.0), [1, 2, 2, 2, 1]), tf.reshape(tf.range(4.0), [2, 1, 2, 1,
    1]), [1, 1, 1, 1, 1], "SAME") -> [[[[[24.0], [10.0]], [[36.0], [14.0]]], [[[5.0], [0.0]],
    [[7.0], [0.0]]]]] float32
tf.nn.conv3d(tf.reshape(tf.range(12.0), [1, 3, 2, 2, 1]), tf.reshape(tf.range(4.0), [2, 1, 2, 1,
    1]), [1, 2, 1, 1, 1], "VALID") -> [[[[[24.0]], [[36.0]]]]] float32
tf.nn.convolution(tf.reshape(tf.range(12.0), [1, 3, 2, 2, 1]), tf.reshape(tf.range(4.0), [2, 1, 2,
    1, 1]), padding="VALID", dilations=[2, 1, 1]) -> [[[[[44.0]], [[56.0]]]]] float32
tf.nn.conv3d_transpose(tf.reshape(tf.range(4.0), [1, 2, 1, 2, 1]), tf.reshape(tf.range(4.0), [2,
    1, 2, 1, 1]), [1, 3, 1, 3, 1], 1, "VALID") -> [[[[[0.0], [0.0], [1.0]]], [[[0.0], [4.0],
    [6.0]]], [[[4.0], [12.0], [9.0]]]]] float32
tf.nn.conv_transpose(tf.reshape(tf.range(4.0), [1, 2, 1, 2, 1]), tf.reshape(tf.range(4.0), [2, 1,
    2, 1, 1]), [1, 4, 1, 2, 1], [2, 1, 1]) -> [[[[[0.0], [0.0]]], [[[0.0], [2.0]]], [[[0.0],
    [2.0]]], [[[4.0], [12.0]]]]] float32
tf.nn.conv_transpose(square, wide, [1, 2, 2, 1], 1) -> [[[[1.0], [12.0]], [[3.0], [34.0]]]] float32
tf.nn.depthwise_conv2d_backprop_input([1, 2, 2, 1], wide, square, [1, 1, 1, 1], "SAME") ->
    [[[[1.0], [12.0]], [[3.0], [34.0]]]] float32
tf.nn.depthwise_conv2d_backprop_filter(square, [1, 2, 1, 1], square, [1, 1, 1, 1], "SAME") ->
    [[[[30.0]], [[14.0]]]] float32
tf.nn.dilation2d(square, [[[0.0], [-2.5]]], [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]) ->
    [[[[1.0], [2.0]], [[3.0], [4.0]]]] float32
tf.nn.erosion2d(square, [[[0.0], [-2.5]]], [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]) ->
    [[[[2.0], [4.5]], [[4.0], [6.5]]]] float32
tf.nn.in_top_k([1, 0], [[0.1, 0.8, 0.3], [0.4, 0.5, 0.6]], 2) -> [True, False] bool
tf.nn.isotonic_regression([3.0, 1.0, 2.0, 0.5]) -> [3.0, 1.5, 1.5, 0.5] float32; [0, 1, 1, 2] int32
tf.nn.isotonic_regression([3, 1, 2, 5], decreasing=False) -> [2.0, 2.0, 2.0, 5.0] float64; [0, 0,
    1, 2] int32
tf.nn.local_response_normalization([[[[1.0, 2.0, 3.0]]]], 1, 1.0, 0.5, 2.0) -> [[[[0.08163266,
    0.03125, 0.05333333]]]] float32
tf.nn.lrn([[[[1.0, 2.0, 3.0]]]]) -> [[[[0.2581989, 0.5163978, 0.7745967]]]] float32
tf.nn.max_pool_with_argmax(square, [1, 2], [1, 1], "SAME") -> [[[[2.0], [2.0]], [[4.0], [4.0]]]]
    float32; [[[[1], [1]], [[3], [3]]]] int64
tf.nn.max_pool_with_argmax(square + square, 2, 2, "VALID", output_dtype=tf.int32,
    include_batch_in_index=True) -> [[[[4.0]]], [[[4.0]]]] float32; [[[[3]]], [[[7]]]] int32
tf.nn.normalize_moments(4.0, [8.0, 4.0], [20.0, 6.0], None) -> [2.0, 1.0] float32; [1.0, 0.5]
    float32
tf.nn.normalize_moments(4.0, [8.0, 4.0], [20.0, 6.0], 0.5) -> [2.5, 1.5] float32; [1.0, 0.5] float32
tf.nn.pool(line, [2], "MAX", padding="SAME") -> [[[5.0], [5.0], [3.0]]] float32
tf.nn.pool(tf.reshape(tf.range(6.0), [1, 6, 1]), [2], "AVG", dilations=[3]) -> [[[1.5], [2.5],
    [3.5]]] float32
tf.nn.separable_conv2d(square, wide, [[[[2.0, -1.0]]]], [1, 1, 1, 1], "SAME") -> [[[[42.0, -21.0],
    [4.0, -2.0]], [[86.0, -43.0], [8.0, -4.0]]]] float32
tf.nn.space_to_batch(square, [2, 2], [[0, 0], [0, 0]]) -> [[[[1.0]]], [[[2.0]]], [[[3.0]]],
    [[[4.0]]]] float32
tf.nn.sufficient_statistics([[1.0, 2.0], [3.0, 4.0]], [0], 0.5) -> 2.0 float32; [3.0, 5.0]
    float32; [6.5, 14.5] float32; 0.5 float32
tf.nn.with_space_to_batch(line, [2], "VALID", lambda x, count, padding: 2 * x) -> [[[2.0], [10.0],
    [6.0]]] float32
tf.nn.with_space_to_batch(line, [2], "SAME", lambda x, count, padding: tf.nn.pool(x, [2], "AVG",
    padding=padding), [2]) -> [[[2.5], [2.0], [2.5]]] float32
tf.extract_volume_patches(tf.reshape(tf.range(12.0), [1, 2, 2, 3, 1]), [1, 2, 1, 2, 1], [1, 1, 1,
    2, 1], "SAME") -> [[[[[0.0, 1.0, 6.0, 7.0], [2.0, 0.0, 8.0, 0.0]], [[3.0, 4.0, 9.0, 10.0],
    [5.0, 0.0, 11.0, 0.0]]], [[[6.0, 7.0, 0.0, 0.0], [8.0, 0.0, 0.0, 0.0]], [[9.0, 10.0, 0.0,
    0.0], [11.0, 0.0, 0.0, 0.0]]]]] float32
tf.nn.batch_norm_with_global_normalization(tf.constant(square), tf.constant([1.0]),
    tf.constant([4.0]), tf.constant([0.5]), tf.constant([2.0]), 0.0, True) -> [[[[0.5], [1.5]],
    [[2.5], [3.5]]]] float32
tf.nn.approx_min_k([1.0, 5.0, 3.0], 2) -> [1.0, 3.0] float32; [0, 2] int32
tf.nn.avg_pool(line, 2, 1, "VALID") -> [[[3.0], [4.0]]] float32
tf.nn.avg_pool1d(line, ksize=2, strides=2, padding="SAME") -> [[[3.0], [3.0]]] float32
tf.nn.avg_pool2d(square, [2, 1], strides=1, padding="VALID") -> [[[[2.0], [3.0]]]] float32
tf.nn.relu([-1.0, 2.0]) -> [0.0, 2.0] float32
tf.nn.relu(features=[-1, 2]) -> [0, 2] int32
tf.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[1.0, 3.0]]) -> [0.126928] float32
tf.nn.softmax_cross_entropy_with_logits([[1, 0]], logits=[[1.0, 3.0]]) -> [2.126928] float32
tf.nn.softmax_cross_entropy_with_logits([[0.5], [0.5]], [[1.0], [3.0]], 0) -> [1.126928] float32
tf.nn.sparse_softmax_cross_entropy_with_logits([0], [[1.0, 3.0]]) -> [2.126928] float32
tf.nn.sparse_softmax_cross_entropy_with_logits(labels=1, logits=[1.0, 3.0]) -> 0.126928 float32
tf.nn.softmax(logits=[[0.0, 0.0]]) -> [[0.5, 0.5]] float32
tf.nn.log_softmax([[0.0, 0.0]], -1) -> [[-0.6931472, -0.6931472]] float32
tf.nn.softplus(features=0.0) -> 0.6931472 float32
tf.nn.sigmoid(0.0) -> 0.5 float32
tf.nn.tanh(0.0) -> 0.0 float32
tf.math.atan2(1.0, -1.0) -> 2.3561945 float32
tf.math.atan2(y=[0.0, -1.0], x=-1.0) -> [3.1415927, -2.3561945] float32
tf.math.polygamma(1.0, [1.0, 2.0]) -> [1.644934, 0.644934] float32
tf.math.polygamma(a=[0.0, 2.0], x=1.0) -> [-0.5772157, -2.4041138] float32
tf.linalg.adjoint([[1 + 2j, 3 + 0j]]) -> [[(1-2j)], [(3-0j)]] complex128
tf.linalg.matrix_transpose([[[1, 2], [3, 4]]]) -> [[[1, 3], [2, 4]]] int32
tf.linalg.matvec([[1, 2], [3, 4]], [1, 1]) -> [3, 7] int32
tf.linalg.matvec([[1, 2], [3, 4]], [1, 1], transpose_a=True) -> [4, 6] int32
tf.linalg.einsum("ii->i", [[1, 2], [3, 4]]) -> [1, 4] int32
tf.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]) -> [[2.0, 0.0], [1.0, 2.0]] float32
tf.linalg.det([[4.0, 2.0], [2.0, 5.0]]) -> 16.0 float32
tf.linalg.inv([[4.0, 2.0], [0.0, 5.0]]) -> [[0.25, -0.1], [0.0, 0.2]] float32
tf.linalg.inv([[4.0, 2.0], [0.0, 5.0]], adjoint=True) -> [[0.25, 0.0], [-0.1, 0.2]] float32
tf.linalg.logdet([[4.0, 2.0], [2.0, 5.0]]) -> 2.7725887 float32
tf.linalg.slogdet([[0.0, 1.0], [1.0, 0.0]]) -> -1.0 float32; 0.0 float32
tf.linalg.solve([[4.0, 2.0], [0.0, 5.0]], [[2.0], [5.0]]) -> [[0.0], [1.0]] float32
tf.linalg.solve([[4.0, 2.0], [0.0, 5.0]], [[4.0], [7.0]], True) -> [[1.0], [1.0]] float32
tf.linalg.eye(1) -> [[1.0]] float32
tf.linalg.band_part([[1, 2], [3, 4]], 0, -1) -> [[1, 2], [0, 4]] int32
tf.linalg.cholesky_solve([[2.0, 0.0], [1.0, 2.0]], [[4.0], [10.0]]) -> [[0.0], [2.0]] float32
tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]) -> [0.0, 0.0, 1.0] float32
tf.linalg.diag([1, 2], k=1) -> [[0, 1, 0], [0, 0, 2], [0, 0, 0]] int32
tf.linalg.diag([1, 2], k=-1, num_rows=4, padding_value=9) -> [[9, 9], [1, 9], [9, 2], [9, 9]] int32
tf.linalg.diag([True], k=1) -> [[False, True], [False, False]] bool
tf.linalg.diag_part([[1, 2, 3], [4, 5, 6]], k=1) -> [2, 6] int32
tf.linalg.set_diag([[1, 2, 3], [4, 5, 6]], [7, 8], k=0) -> [[7, 2, 3], [4, 8, 6]] int32
tf.linalg.tensor_diag([1, 2]) -> [[1, 0], [0, 2]] int32
tf.linalg.tensor_diag_part([[1, 2], [3, 4]]) -> [1, 4] int32
tf.linalg.trace([[1, 2], [3, 4]]) -> 5 int32
tf.linalg.eigh([[2.0, 0.0], [0.0, 3.0]]) -> [2.0, 3.0] float32; [[1.0, 0.0], [0.0, 1.0]] float32
tf.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]) -> [1.0, 3.0] float32
tf.linalg.expm([[0.0, 1.0], [0.0, 0.0]]) -> [[1.0, 1.0], [0.0, 1.0]] float32
tf.linalg.logm([[1 + 0j, 1 + 0j], [0j, 1 + 0j]]) -> [[0j, (1+0j)], [0j, 0j]] complex128
tf.linalg.sqrtm([[4.0, 1.0], [0.0, 4.0]]) -> [[2.0, 0.25], [0.0, 2.0]] float32
tf.linalg.global_norm([[3.0], [4.0]]) -> 5.0 float32
tf.linalg.lu([[0.0, 1.0], [2.0, 3.0]]) -> [[2.0, 3.0], [0.0, 1.0]] float32; [1, 0] int32
tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]) -> 1 int32
tf.linalg.normalize([3.0, 4.0]) -> [0.6, 0.8] float32; [5.0] float32
tf.linalg.pinv([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]]) -> [[0.5, 0.0, 0.0], [0.0, 0.25, 0.0]] float32
tf.linalg.svd([[3.0, 0.0], [0.0, 2.0]], compute_uv=False) -> [3.0, 2.0] float32
tf.linalg.triangular_solve([[2.0, 9.0], [1.0, 4.0]], [[2.0], [9.0]]) -> [[1.0], [2.0]] float32
tf.linalg.norm([[3.0, 4.0], [0.0, 0.0]], ord=1, axis=(0, 1)) -> 4.0 float32
tf.linalg.norm([[3.0, 4.0], [0.0, 0.0]], ord=2, axis=[-2, -1], keepdims=True) -> [[5.0]] float32
tf.linalg.qr([[-2.0], [0.0]]) -> [[1.0], [0.0]] float32; [[-2.0]] float32
tf.linalg.svd([[3.0, 0.0]]) -> [3.0] float32; [[1.0]] float32; [[1.0], [0.0]] float32
tf.linalg.lstsq([[1.0], [2.0]], [[5.0], [0.0]]) -> [[1.0]] float32
tf.linalg.lstsq([[1.0]], [[4.0]], l2_regularizer=1.0) -> [[2.0]] float32
tf.linalg.eig([[2.0]]) -> [(2+0j)] complex64; [[(1+0j)]] complex64
tf.linalg.eigvals([[2.0]]) -> [(2+0j)] complex64
tf.linalg.tensordot([1, 2], [3, 4], axes=1) -> 11 int32
tf.linalg.norm([3.0, 4.0], ord=2) -> 5.0 float32
tf.dtypes.cast(1.5, tf.int32) -> 1 int32
tf.linspace(0, 10, 3) -> [0.0, 5.0, 10.0] float64
tf.linspace(np.float64(0), np.float64(1), 2) -> [0.0, 1.0] float64
tf.range(0, 1, 0.5) -> [0.0, 0.5] float32
tf.constant([], tf.int32) -> [] int32
tf.random.uniform([2], 1, 2, tf.int32) -> [1, 1] int32
tf.random.normal([0]) -> [] float32
tf.random.normal((0,), 0.0, 1.0, tf.float64) -> [] float64
tf.clip_by_norm([3.0, 4.0], 1.0) -> [0.6, 0.8] float32
tf.clip_by_norm([[3.0, 4.0], [0.3, 0.4]], 1.0, axes=[1]) -> [[0.6, 0.8], [0.3, 0.4]] float32
tf.nn.batch_normalization(np.array([[1, 3]], "f"), 2.0, 4.0, 1.0, 3.0, 0.0) -> [[-0.5, 2.5]] float32
tf.nn.batch_normalization(np.array([1, 3], "f"), 2, 1, None, None, 3.0) -> [-0.5, 0.5] float32
tf.nn.bias_add([[1.0, 2.0]], [10.0, 20.0]) -> [[11.0, 22.0]] float32
tf.nn.bias_add([[[1.0, 2.0]]], [10.0], data_format="NCW") -> [[[11.0, 12.0]]] float32
tf.nn.crelu([1.0, -2.0]) -> [1.0, 0.0, 0.0, 2.0] float32
tf.nn.dropout([1.0, 2.0], 0.0) -> [1.0, 2.0] float32
tf.nn.elu([-1.0, 2.0]) -> [-0.6321205, 2.0] float32
tf.nn.embedding_lookup(np.array([[1], [2]], "f"), [1, 0]) -> [[2.0], [1.0]] float32
tf.nn.embedding_lookup(np.array([[3, 4]], "f"), [0], max_norm=1.0) -> [[0.6, 0.8]] float32
tf.nn.gelu([-1.0, 2.0]) -> [-0.1586553, 1.9545] float32
tf.nn.gelu([-1.0, 2.0], approximate=True) -> [-0.158808, 1.954598] float32
tf.nn.l2_loss([1.0, 3.0]) -> 5.0 float32
tf.nn.l2_normalize([3.0, 4.0]) -> [0.6, 0.8] float32
tf.nn.l2_normalize([[3.0, 4.0], [0.0, 0.0]], axis=1) -> [[0.6, 0.8], [0.0, 0.0]] float32
tf.nn.leaky_relu([-1.0, 2.0]) -> [-0.2, 2.0] float32
tf.nn.leaky_relu([-1.0, 2.0], alpha=0.5) -> [-0.5, 2.0] float32
tf.nn.log_poisson_loss([1.0, 3.0], [0.0, 1.0]) -> [1.0, -0.2817183] float32
tf.nn.log_poisson_loss([1.0, 3.0], [0.0, 1.0], True) -> [1.0, 1.482363] float32
tf.nn.moments(np.array([1.0, 3.0], "f"), [0]) -> 2.0 float32; 1.0 float32
tf.nn.moments(np.array([[1, 3]], "f"), axes=1, keepdims=True) -> [[2.0]] float32; [[1.0]] float32
tf.nn.relu6([-1.0, 2.0, 7.0]) -> [0.0, 2.0, 6.0] float32
tf.nn.selu([-1.0, 2.0]) -> [-1.111331, 2.101402] float32
tf.nn.softsign([-1.0, 3.0]) -> [-0.5, 0.75] float32
tf.nn.sigmoid_cross_entropy_with_logits([1.0, 0.0], [2.0, -1.0]) -> [0.126928, 0.3132617] float32
tf.nn.sigmoid_cross_entropy_with_logits(labels=[0.3], logits=[2.0]) -> [1.526928] float32
tf.nn.silu([-1.0, 2.0]) -> [-0.2689414, 1.761594] float32
tf.nn.swish([-1.0, 2.0], beta=2.0) -> [-0.1192029, 1.964028] float32
tf.nn.weighted_cross_entropy_with_logits([1.0], [2.0], 3.0) -> [0.380784] float32
tf.nn.weighted_moments([1.0, 3.0], [0], [1.0, 3.0]) -> 2.5 float32; 0.75 float32
tf.nn.zero_fraction([0.0, 1.0]) -> 0.5 float32
tf.bitwise.bitwise_and([6, 5], 3) -> [2, 1] int32
tf.bitwise.bitwise_or(x=[6, 5], y=3) -> [7, 7] int32
tf.bitwise.bitwise_xor([6, 5], 3) -> [5, 6] int32
tf.bitwise.invert([6, -5]) -> [-7, 4] int32
tf.bitwise.left_shift([1, 3], 2) -> [4, 12] int32
tf.bitwise.right_shift([-8, 9], 1) -> [-4, 4] int32
tf.boolean_mask([1.0, 2.0, 3.0], [True, False, True]) -> [1.0, 3.0] float32
tf.boolean_mask(np.array([[1, 2], [3, 4]]), [True, False], axis=1) -> [[1], [3]] int64
tf.dynamic_partition([1.0, 2.0, 3.0], [1, 0, 1], 2) -> [2.0] float32; [1.0, 3.0] float32
tf.dynamic_stitch([[1, 0], [2]], [[10.0, 20.0], [30.0]]) -> [20.0, 10.0, 30.0] float32
tf.dynamic_stitch([0, [1, 0]], [[1.0], [[2.0], [3.0]]]) -> [[3.0], [2.0]] float32
tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]) -> [2, 3] int32
tf.gather_nd([[1, 2], [3, 4]], [[1]]) -> [[3, 4]] int32
tf.gather_nd(params=[[1, 2], [3, 4]], indices=[[1], [0]], batch_dims=1) -> [2, 3] int32
tf.scatter_nd([[1], [1], [0]], [1.0, 2.0, 3.0], [3]) -> [3.0, 3.0, 0.0] float32
tf.scatter_nd([[1]], [[1, 2]], shape=(2, 2)) -> [[0, 0], [1, 2]] int32
tf.tensor_scatter_nd_update([1, 2, 3], [[0], [2]], [9, 8]) -> [9, 2, 8] int32
tf.tensor_scatter_nd_update([[1, 2], [3, 4]], [[1]], [[7, 8]]) -> [[1, 2], [7, 8]] int32
tf.tensor_scatter_nd_add([1, 2, 3], [[0], [0]], [9, 8]) -> [18, 2, 3] int32
tf.tensor_scatter_nd_sub([1, 2, 3], [[0], [0]], [9, 8]) -> [-16, 2, 3] int32
tf.tensor_scatter_nd_max([1, 2, 3], [[0], [1], [0]], [9, 0, 10]) -> [10, 2, 3] int32
tf.tensor_scatter_nd_min([1, 2, 3], [[0], [1]], [9, 0]) -> [1, 0, 3] int32
tf.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, -1]) -> [[2, 3], [5, 6]] int32
tf.math.segment_sum([1.0, 2.0, 4.0], [0, 0, 2]) -> [3.0, 0.0, 4.0] float32
tf.math.segment_mean([1.0, 2.0, 4.0], [0, 0, 2]) -> [1.5, 0.0, 4.0] float32
tf.math.segment_prod([1.0, 2.0, 4.0], [0, 0, 2]) -> [2.0, 1.0, 4.0] float32
tf.math.segment_max([[1, 9], [2, -1]], [0, 0]) -> [[2, 9]] int32
tf.math.segment_max([-1.0, 2.0], [0, 2]) -> [-1.0, 0.0, 2.0] float32
tf.math.segment_min([1.0, 2.0, 4.0], [0, 0, 2]) -> [1.0, 0.0, 4.0] float32
tf.math.unsorted_segment_sum([[1.0], [2.0], [4.0]], [1, -1, 1], 3) -> [[0.0], [5.0], [0.0]] float32
tf.math.unsorted_segment_sum([[1, 2], [3, 4]], [[0, 1], [1, 0]], num_segments=2) -> [5, 5] int32
tf.math.unsorted_segment_mean([1.0, 2.0, 4.0], [1, 0, 1], 3) -> [2.0, 2.5, 0.0] float32
tf.math.unsorted_segment_prod([1.0, 2.0, 4.0], [1, 0, 1], 3) -> [2.0, 4.0, 1.0] float32
tf.math.unsorted_segment_max([1, 2, 4], [1, 0, 1], 3) -> [2, 4, -2147483648] int32
tf.math.unsorted_segment_min([1.0, 2.0, 4.0], [1, 0, 1], 2) -> [2.0, 1.0] float32
tf.math.unsorted_segment_sqrt_n([1.0, 2.0, 4.0], [1, 0, 1], 3) -> [2.0, 3.535534, 0.0] float32
tf.math.divide_no_nan([1.0, 2.0], [0.0, 4.0]) -> [0.0, 0.5] float32
tf.math.multiply_no_nan([np.inf, 2.0], [0.0, 4.0]) -> [0.0, 8.0] float32
tf.math.reciprocal_no_nan([0.0, 4.0]) -> [0.0, 0.25] float32
tf.math.xdivy([0.0, 2.0], [0.0, 4.0]) -> [0.0, 0.5] float32
tf.math.xlog1py([0.0, 2.0], [-1.0, 4.0]) -> [0.0, 3.218876] float32
tf.math.lbeta([[1.0, 2.0], [0.5, 0.5]]) -> [-0.6931472, 1.14473] float32
tf.math.l2_normalize([3.0, 4.0]) -> [0.6, 0.8] float32
tf.signal.hann_window(4) -> [0.0, 0.5, 1.0, 0.5] float32
tf.signal.hann_window(4, periodic=False) -> [0.0, 0.75, 0.7499999, 0.0] float32
tf.signal.hann_window(5) -> [0.0, 0.5, 1.0, 0.5, 0.0] float32
tf.signal.hamming_window(4, dtype=tf.float64) -> [0.08, 0.54, 1.0, 0.54] float64
tf.signal.hamming_window(1) -> [1.0] float32
tf.math.bessel_i0([0.5, 3.0]) -> [1.063483, 4.880793] float32
tf.math.bessel_i0e([0.5, 3.0]) -> [0.6450354, 0.2430004] float32
tf.math.bessel_i1([-0.5, 3.0]) -> [-0.2578943, 3.953371] float32
tf.math.bessel_i1e([-0.5, 3.0]) -> [-0.1564208, 0.1968268] float32
tf.math.special.bessel_i0([0.5, 3.0]) -> [1.063483, 4.880793] float32
tf.math.special.bessel_j0([0.5, 9.0]) -> [0.9384699, -0.09033362] float32
tf.math.special.bessel_j1([-0.5, 9.0]) -> [-0.2422685, 0.2453118] float32
tf.math.special.bessel_y0([0.5, 9.0]) -> [-0.4445187, 0.2499367] float32
tf.math.special.bessel_y1([0.5, 9.0]) -> [-1.471472, 0.1043146] float32
tf.math.special.bessel_k0([0.5, 3.0]) -> [0.9244191, 0.03473951] float32
tf.math.special.bessel_k0e([0.5, 3.0]) -> [1.524109, 0.6977617] float32
tf.math.special.bessel_k1([0.5, 3.0]) -> [1.656441, 0.04015643] float32
tf.math.special.bessel_k1e([0.5, 3.0]) -> [2.731009, 0.8065635] float32
tf.math.special.dawsn([-0.5, 3.0]) -> [-0.4244364, 0.178271] float32
tf.math.special.expint([0.25, 3.0]) -> [-0.5425433, 9.933833] float32
tf.math.special.fresnel_cos([0.5, -3.0]) -> [0.4923442, -0.6057208] float32
tf.math.special.fresnel_sin([0.5, -3.0]) -> [0.06473242, -0.496313] float32
tf.math.special.spence([0.0, 0.5, 1.0, 3.0]) -> [1.644934, 0.5822403, 0.0, -1.436746] float32
tf.math.zeta([2.0, 3.5], [1.0, 0.5]) -> [1.644934, 11.62081] float32
tf.math.ndtri([0.1, 0.5]) -> [-1.281552, 0.0] float32
tf.signal.kaiser_window(4, 3.0) -> [0.2048847, 0.8712419, 0.8712419, 0.2048847] float32
tf.linalg.diag([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]], k=(0, 1), align="LEFT_RIGHT") -> [[3.0, 1.0,
    0.0], [0.0, 4.0, 2.0], [0.0, 0.0, 5.0]] float32
tf.linalg.diag([[0.0, 1.0], [3.0, 4.0], [5.0, 0.0]], k=(-1, 1), num_rows=2, num_cols=3,
    padding_value=9.0) -> [[3.0, 0.0, 9.0], [5.0, 4.0, 1.0]] float32
tf.linalg.diag_part([[1, 2, 3], [4, 5, 6]], k=(-1, 1)) -> [[2, 6], [1, 5], [4, 0]] int32
tf.linalg.diag_part([[1, 2, 3], [4, 5, 6]], k=(0, 2), padding_value=9, align="LEFT_LEFT") -> [[3,
    9], [2, 6], [1, 5]] int32
tf.linalg.set_diag([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[0, 10, 20], [30, 40, 50]], k=(0, 1)) ->
    [[30, 10, 3], [4, 40, 20], [7, 8, 50]] int32
tf.linalg.banded_triangular_solve([[2.0, 3.0, 4.0], [9.0, 2.0, 3.0]], [[1.0], [1.0], [1.0]]) ->
    [[0.5], [0.0], [0.25]] float32
tf.linalg.banded_triangular_solve([[2.0, 3.0, 9.0], [-1.0, -2.0, -4.0]], [[1.0], [1.0], [2.0]],
    lower=False) -> [[-3.5], [-1.25], [-0.5]] float32
tf.linalg.banded_triangular_solve([[2.0, 3.0, 4.0], [9.0, 2.0, 3.0]], [[1.0], [1.0], [1.0]],
    adjoint=True) -> [[0.4166667], [0.08333334], [0.25]] float32
tf.linalg.banded_triangular_solve([[2.0, 3.0, 9.0], [-1.0, -2.0, -4.0]], [[1.0], [1.0], [2.0]],
    False, True) -> [[-1.0], [-1.5], [-1.625]] float32
tf.linalg.eigh_tridiagonal([0.0, 0.5, 2.0], [1.0, 0.5]) -> [-0.8153169, 1.114706, 2.200611] float32
tf.linalg.eigh_tridiagonal([0.0, 0.5, 2.0], [1.0, 0.5], select="i", select_range=(1, 2)) ->
    [1.114706, 2.200611] float32
tf.linalg.eigh_tridiagonal([0.0, 0.5, 2.0], [1.0, 0.5], select="v", select_range=(0.0, 2.0)) ->
    [1.114706] float32
tf.linalg.eigh_tridiagonal(np.array([1 + 0j, 2.0]), np.array([1j])) -> [0.381966011250105,
    2.61803398874989] float64
tf.linalg.l2_normalize([3.0, 4.0]) -> [0.6, 0.8] float32
tf.linalg.lu_reconstruct([[3.0, 4.0], [0.5, 2.0]], [1, 0]) -> [[1.5, 4.0], [3.0, 4.0]] float32
tf.linalg.lu_solve([[3.0, 4.0], [0.5, 2.0]], [1, 0], [[1.0], [2.0]]) -> [[0.6666667], [0.0]] float32
tf.linalg.lu_matrix_inverse([[3.0, 4.0], [0.5, 2.0]], [1, 0]) -> [[-0.6666667, 0.6666667], [0.5,
    -0.25]] float32
tf.linalg.tridiagonal_matmul(tf.constant([[-1.0, -2.0, 9.0], [2.0, 3.0, 4.0], [9.0, -1.0, 1.0]]),
    [[1.0], [2.0], [4.0]]) -> [[0.0], [-3.0], [18.0]] float32
tf.linalg.tridiagonal_matmul([[-1.0, -2.0, 9.0], [2.0, 3.0, 4.0], [9.0, -1.0, 1.0]], [[1.0],
    [2.0], [4.0]], "sequence") -> [[0.0], [-3.0], [18.0]] float32
tf.linalg.tridiagonal_solve(tf.constant([[1.0, 2.0, 9.0], [0.0, 3.0, 4.0], [9.0, -1.0, 1.0]]),
    tf.constant([1.0, 2.0, 4.0])) -> [2.5, 1.0, 0.75] float32
tf.linalg.tridiagonal_solve([tf.constant([1.0, 2.0]), tf.constant([2.0, 3.0, 4.0]),
    tf.constant([-1.0, 1.0])], tf.constant([[1.0], [2.0], [4.0]]), "sequence") -> [[0.4166667],
    [0.1666667], [0.9583333]] float32
tf.linalg.tridiagonal_solve(tf.constant([[2.0, 1.0, 7.0], [-1.0, 3.0, 2.0], [7.0, 1.0, 4.0]]),
    tf.constant([[1.0, 2.0, 4.0]]), "matrix", transpose_rhs=True) -> [[0.4166667], [0.1666667],
    [0.9583333]] float32
tf.math.igamma([0.5, 2.0], [1.0, 0.5]) -> [0.8427008, 0.09020401] float32
tf.math.igammac([0.5, 2.0], [1.0, 0.5]) -> [0.1572992, 0.909796] float32
tf.math.betainc([0.5, 2.0], [1.0, 0.5], [0.25, 0.75]) -> [0.5, 0.3125] float32
tf.math.bincount([1, 1, 2, 5]) -> [0, 2, 1, 0, 0, 1] int32
tf.math.bincount([1, 1, 2, 5], minlength=4, maxlength=5) -> [0, 2, 1, 0, 0] int32
tf.math.bincount([1, 1, 2], weights=[0.5, 1.0, 2.0]) -> [0.0, 1.5, 2.0] float32
tf.math.bincount([[1, 1, 2], [0, 3, 3]], axis=-1) -> [[0, 2, 1, 0], [1, 0, 0, 2]] int32
tf.math.bincount([[1, 1, 2], [0, 3, 3]], axis=-1, maxlength=2) -> [[0, 2], [1, 0]] int32
tf.math.bincount([[1, 1, 2], [0, 3, 3]], axis=-1, weights=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) ->
    [[0.0, 3.0, 3.0, 0.0], [4.0, 0.0, 0.0, 11.0]] float32
tf.math.bincount([1, 1, 2], binary_output=True, dtype=tf.float32) -> [0.0, 1.0, 1.0] float32
tf.math.confusion_matrix([1, 2, 0], [2, 2, 0]) -> [[1, 0, 0], [0, 0, 1], [0, 0, 1]] int32
tf.math.confusion_matrix([1, 2], [2, 2], 3, [0.5, 2.75], tf.float32) -> [[0.0, 0.0, 0.0], [0.0,
    0.0, 0.5], [0.0, 0.0, 2.75]] float32
tf.math.confusion_matrix([[1], [2]], [2, 2], weights=[0.5, 2.75]) -> [[0, 0, 0], [0, 0, 0], [0, 0,
    2]] int32
tf.math.invert_permutation([3, 4, 0, 2, 1]) -> [2, 4, 3, 0, 1] int32
tf.math.is_non_decreasing([1, 1, 2]) -> True bool
tf.math.is_strictly_increasing([[1.0, 2.0], [2.0, 3.0]]) -> False bool
tf.math.polyval([2.0, 3.0, 4.0], [1.0, 2.0]) -> [9.0, 18.0] float32
tf.math.polyval([], 2.0) -> 0.0 float32
tf.math.zero_fraction([0.0, 1.0, 0.0, 3.0]) -> 0.5 float32
tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], 5) -> [2, 1, 1, 0, 2] int32
tf.histogram_fixed_width_bins([[-1.0, 0.0, 1.5], [2.0, 5.0, 15.0]], [0.0, 5.0], 5) -> [[0, 0, 1],
    [2, 4, 4]] int32
tf.required_space_to_batch_paddings([4, 5], [3, 2], [[1, 0], [0, 2]]) -> [[1, 1], [0, 3]] int32;
    [[0, 1], [0, 1]] int32
tf.complex([1.0, -0.0], 2.0) -> [(1+2j), (-0+2j)] complex64
tf.guarantee_const([1.0]) -> [1.0] float32
tf.tuple([tf.constant([1.0]), tf.constant(2)]) -> [1.0] float32; 2 int32
tf.matrix_square_root([[4.0, 1.0], [0.0, 9.0]]) -> [[2.0, 0.2], [0.0, 3.0]] float32
tf.signal.vorbis_window(5) -> [0.1494358, 0.8563191, 1.0, 0.8563191, 0.1494358] float32
tf.signal.vorbis_window(4, dtype=tf.float64) -> [0.228014324191698, 0.973657777642331,
    0.973657777642331, 0.228014324191698] float64
tf.signal.kaiser_bessel_derived_window(5, 4.0) -> [0.2741844, 0.9616771, 0.9616771, 0.2741844]
    float32
tf.signal.kaiser_bessel_derived_window(4, dtype=tf.float64) -> [0.00726414976688407,
    0.999973615716017, 0.999973615716017, 0.00726414976688407] float64
tf.signal.mdct(np.array([1.0, 2.0, 4.0, -1.0, 0.5, 3.0]), 4) -> [[-8.09092059776156,
    0.370547441299605], [-0.720225261599846, -4.38049364834682]] float64
tf.signal.mdct([1.0, 2.0, 4.0, -1.0, 0.5], 4, window_fn=None, pad_end=True, norm="ortho") ->
    [[-2.230442, -0.1585127], [1.026349, -3.401706], [0.135299, -0.3266407]] float32
tf.signal.inverse_mdct([[1.0, 2.0], [4.0, -1.0]]) -> [-0.1670291, 0.7132412, -0.5425304,
    -1.387563, -1.612784, -0.3776866] float32
tf.signal.inverse_mdct([[1.0, 2.0], [4.0, -1.0]],
    window_fn=tf.signal.kaiser_bessel_derived_window, norm="ortho") -> [-0.01064253, 1.465037,
    -1.671371, -2.466819, -3.312747, -0.02406493] float32
tf.signal.inverse_stft_window_fn(3)(8, dtype=tf.float32) -> [0.0, 0.1404234, 0.5109583, 0.8722604,
    0.958871, 0.8722604, 0.5109583, 0.1404233] float32
tf.signal.inverse_stft_window_fn(6, tf.signal.hamming_window)(4, dtype=tf.float64) -> [12.5,
    1.85185185185185, 1.0, 1.85185185185185] float64
tf.signal.linear_to_mel_weight_matrix(2, 5, 8000, 300.0, 3800.0) -> [[0.0, 0.0], [0.9416204,
    0.0583796], [0.0188816, 0.9811184], [0.0, 0.3904279], [0.0, 0.0]] float32
tf.signal.mfccs_from_log_mel_spectrograms([[1.0, 2.0, 4.0, -1.0]]) -> [[4.24264, 0.7653667, -3.0,
    1.847759]] float32
tf.eigvals([[2.0, 0.0], [0.0, 3.0]]) -> [(2+0j), (3+0j)] complex64
tf.rfftnd([1.0, 2.0, 3.0, 5.0], [4], [0]) -> [(11+0j), (-2+3j), (-3+0j)] complex64
tf.batch_to_space(np.int32([[[[1]]], [[[2]]]]), (1, 2), [[0, 0], [0, 0]]) -> [[[[1], [2]]]] int32
tf.bitcast(np.float32([1.0]), tf.int32) -> [1065353216] int32
tf.broadcast_dynamic_shape(np.int32([2, 1]), np.int32([3])) -> [2, 3] int32
tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])) -> [2, 3] value
tf.ensure_shape([1.0, 2.0], [None]) -> [1.0, 2.0] float32
tf.identity_n([[1.0], [2]]) -> [1.0] float32; [2] int32
tf.meshgrid([1, 2], [3, 4, 5]) -> [[1, 2], [1, 2], [1, 2]] int32; [[3, 3], [4, 4], [5, 5]] int32
tf.meshgrid([1, 2], [3, 4, 5], indexing="ij")
    -> [[1, 1, 1], [2, 2, 2]] int32; [[3, 4, 5], [3, 4, 5]] int32
tf.realdiv([1.0], [4.0]) -> [0.25] float32
tf.repeat([[1, 2], [3, 4]], [1, 2], axis=0) -> [[1, 2], [3, 4], [3, 4]] int32
tf.repeat([1, 2], 2) -> [1, 1, 2, 2] int32
tf.reverse([[1, 2], [3, 4]], [0]) -> [[3, 4], [1, 2]] int32
tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], np.int32([2, 3]), 1) -> [[2, 1, 3], [6, 5, 4]] int32
tf.roll([1, 2, 3], [1], [0]) -> [3, 1, 2] int32
tf.saturate_cast([300.5, -1.0], tf.uint8) -> [255, 0] uint8
tf.searchsorted([1, 3, 5], [3, 6], side="right") -> [2, 3] int32
tf.searchsorted([[1, 3], [2, 4]], [[3], [3]]) -> [[1], [1]] int32
tf.searchsorted(np.ones((2, 0)), np.ones((2, 3))) -> [[0, 0, 0], [0, 0, 0]] int32
tf.searchsorted(np.ones((2, 3)), np.ones((2, 0))) -> [[], []] int32
tf.sequence_mask([1, 3]) -> [[True, False, False], [True, True, True]] bool
tf.sequence_mask([1], 2, tf.int32) -> [[1, 0]] int32
tf.shape_n([[1.0], [[2]]]) -> [1] int32; [1, 1] int32
tf.space_to_batch(np.int32([[[[1], [2]]]]), (1, 2), [[0, 0], [0, 0]]) -> [[[[1]]], [[[2]]]] int32
tf.space_to_batch_nd(np.int32([[1, 2, 3]]), [2], [[0, 1]]) -> [[1, 3], [2, 0]] int32
tf.strided_slice([1, 2, 3, 4], [1], [4], [2]) -> [2, 4] int32
tf.strided_slice([[1, 2], [3, 4]], [0, 1], [2, 2], begin_mask=1, shrink_axis_mask=2) -> [2, 4] int32
tf.tile([[1, 2]], [2, 2]) -> [[1, 2, 1, 2], [1, 2, 1, 2]] int32
tf.truncatediv(np.int32([-7, 7]), np.int32([2, -2])) -> [-3, -3] int32
tf.truncatemod(np.int32([-7, 7]), np.int32([2, -2])) -> [-1, 1] int32
tf.unique([3, 1, 3]) -> [3, 1] int32; [0, 1, 0] int32
tf.unique_with_counts([3, 1, 3]) -> [3, 1] int32; [0, 1, 0] int32; [2, 1] int32
tf.unravel_index([3, 5], [2, 3]) -> [[1, 1], [0, 2]] int32
tf.math.accumulate_n([[1.0], [2.0]]) -> [3.0] float32
tf.math.add_n([[1.0], [2.0]]) -> [3.0] float32
tf.math.angle(np.complex64([1j])) -> [1.570796] float32
tf.math.count_nonzero([[1, 0], [2, 3]], axis=1) -> [1, 2] int64
tf.math.cumulative_logsumexp([1.0, 2.0]) -> [1.0, 2.313262] float32
tf.math.cumulative_logsumexp([2.0, 4.0], reverse=True) -> [4.126928, 4.0] float32
tf.math.in_top_k([1, 0], [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], 2) -> [True, False] bool
tf.nn.depth_to_space([[[[1, 2, 3, 4]]]], 2) -> [[[[1], [2]], [[3], [4]]]] int32
tf.nn.space_to_depth([[[[1], [2]], [[3], [4]]]], 2) -> [[[[1, 2, 3, 4]]]] int32
""")


@pytest.mark.parametrize(("call", "results"), ROWS)
def test_as_in_tensorflow(call, results):
    assert_gives(call, results, {"tf": tf} | IMAGES)


@pytest.mark.parametrize("space", ["arrays", "programs", "math", "nn", "linalg"])
def test_every_function_is_tried(space):
    tried = {call.split("(")[0].rpartition(".")[2] for call, _ in ROWS}
    own = {"arrays": arrays, "programs": programs}
    module = own.get(space) or getattr(tf, space)
    functions = {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}
    elsewhere = {
        "clip_by_global_norm",
        "control_dependencies",
        "group",
        "no_op",
    }  # in ops/test_networks.py
    elsewhere |= {  # in test_programs.py
        *("device", "get_logger", "get_static_value", "inside_function", "is_symbolic_tensor"),
        "timestamp",
    }
    assert functions <= tried | elsewhere | spelled_by_records(space)


TOP_LEVEL = """
abs acos acosh add argmax argmin as_dtype asin asinh atan atan2 atanh bool broadcast_to cast
clip_by_value compat complex128 complex64 concat constant contrib convert_to_tensor cos cosh
custom_gradient divide double dtypes
equal errors executing_eagerly exp expand_dims eye fill float16 float32 float64 floor gather
grad_pass_through gradients Graph GradientTape greater greater_equal half identity int16
int32 int64 int8 is_tensor keras less less_equal linalg linspace log logical_and logical_not
logical_or math matmul maximum minimum multiply negative nest newaxis nn norm
NotDifferentiable not_equal numpy ones ones_like pow primitive random range rank
recompute_grad reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min
reduce_prod reduce_sum RegisterGradient reshape round scalar_mul shape sigmoid sign sin sinh size
sqrt square squeeze stack stop_gradient subtract tan tanh Tensor tensordot TensorShape transpose
truediv uint16 uint32 uint64 uint8 UnconnectedGradients unstack Variable where zeros
zeros_like CustomGradientWarning
argsort einsum one_hot pad sort split
"""
OTHERS = """
compat.v1.AUTO_REUSE compat.v1.custom_gradient compat.v1.disable_eager_execution
compat.v1.enable_eager_execution compat.v1.executing_eagerly compat.v1.exp
compat.v1.get_variable compat.v1.gradients compat.v1.Graph compat.v1.log
compat.v1.variable_scope contrib.eager.custom_gradient dtypes.cast dtypes.float32
errors.CustomGradientWarning errors.InvalidArgumentError errors.TapeWarning
keras.ops.custom_gradient nest.assert_same_structure nest.flatten nest.map_structure
nest.pack_sequence_as random.normal random.set_seed random.uniform
"""


@pytest.mark.parametrize("name", TOP_LEVEL.split())
def test_top_level_names(name):
    assert hasattr(tf, name)
    assert name in tf.__all__


@pytest.mark.parametrize("path", OTHERS.split())
def test_other_names(path):
    value = tf
    for name in path.split("."):
        assert name in dir(value)
        value = getattr(value, name)


@pytest.mark.parametrize("name", [name for name in tf.math.__all__ if hasattr(tf, name)])
def test_the_top_level_has_the_same_functions(name):
    assert getattr(tf, name) is getattr(tf.math, name)


def test_names_of_the_older_documents():
    assert tf.log is tf.math.log is tf.compat.v1.log
    assert tf.contrib.eager.custom_gradient is tf.custom_gradient
    assert tf.compat.v1.custom_gradient is tf.custom_gradient
    assert tf.compat.v1.gradients is tf.gradients


def test_functions_say_what_they_are():
    assert tf.reduce_sum.__name__ == "reduce_sum"
    assert tf.reduce_sum.__module__ == "tinygrad_cg.math"
    signature = (
        "(input_tensor: 'TensorLike', axis: 'Axes' = None, keepdims: 'bool' = False, "
        "name: 'str | None' = None) -> 'Tensor'"
    )
    assert str(inspect.signature(tf.reduce_sum)) == signature
    assert "rules of broadcasting" in tf.broadcast_to.__doc__


@pytest.mark.parametrize("space", ["math", "nn", "linalg", "arrays", "numpy", "keras.ops"])
def test_every_spelling_has_a_docstring(space):
    module = arrays if space == "arrays" else eval(f"tf.{space}", {"tf": tf})
    for name in module.__all__:
        function = getattr(module, name)
        if getattr(function, "__module__", None) == module.__name__:
            assert function.__doc__, name


def test_gradients_flow():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.concat(tf.unstack(tf.transpose(x)), 0)[1:] * 2)
    assert tape.gradient(y, x).numpy().tolist() == [[0.0, 2.0], [2.0, 2.0]]


def test_what_graphs_need_does_nothing():
    with tf.control_dependencies([tf.no_op(), tf.group(1)]):
        assert tf.ensure_shape([1.0], [1]).numpy().tolist() == [1.0]


@pytest.mark.parametrize(
    "call",
    [
        "ensure_shape([1.0], [2])",
        "tile([1], [1, 2])",
        "roll([1, 2], [1, 2], [0])",
        "meshgrid([1], indexing='x')",
        "unique([[1]])",
        "searchsorted([[1]], [1])",
        "strided_slice([1], [0], [1, 1])",
        "add_n([[1.0], [1.0, 2.0]])",
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(tf.errors.InvalidArgumentError):
        eval(f"tf.{call}", {"tf": tf})


def test_moves_have_gradients():
    def moved(x):
        parts = [tf.tile(x, [2]), tf.repeat(x, 2), tf.roll(x, [1], [0]), tf.reverse(x, [0])]
        parts += [tf.strided_slice(x, [0], [3], [2]), tf.meshgrid(x, x)[0][0]]
        return tf.concat(parts, 0) ** 3

    tf.assert_gradients(moved, [1.0, 2.0, 3.0])


def test_shapes_of_draws():
    assert tf.random.uniform([2, 3]).shape == (2, 3)
    draws = tf.random.normal((10000,), mean=3.0, stddev=0.5, seed=4).numpy()
    assert draws.mean() == pytest.approx(3.0, abs=0.02)
    assert draws.std() == pytest.approx(0.5, abs=0.02)
    tf.random.set_seed(7)
    first = tf.random.uniform([3])
    tf.random.set_seed(7)
    assert first.numpy().tolist() == tf.random.uniform([3]).numpy().tolist()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="num is 3, but there are 2 slices"):
        tf.unstack([1, 2], num=3)
    with pytest.raises(ValueError, match="both be given"):
        tf.where([True], 1.0)
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        tf.linalg.matrix_transpose([1.0])
    with pytest.raises(ValueError, match="'ord' must be a supported matrix norm"):
        tf.norm([[1.0]], ord=3, axis=(0, 1))
    for order in ("fro", 0, -1, -float("inf")):
        with pytest.raises(ValueError, match="'ord' must be a supported vector norm"):
            tf.norm([1.0, 2.0], ord=order)


def test_bad_windows_and_moves_are_refused():
    with pytest.raises(ValueError, match="direction must be 'ASCENDING' or 'DESCENDING'"):
        tf.sort([1], direction="down")
    with pytest.raises(ValueError, match="mode must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC'"):
        tf.pad([1], [[1, 1]], "EDGE")
    with pytest.raises(ValueError, match=r"paddings must have shape \(1, 2\)"):
        tf.pad([1], [1, 1])
    with pytest.raises(ValueError, match="data_format must be one of"):
        tf.nn.conv2d(tf.ones((1, 2, 2, 1)), tf.ones((1, 1, 1, 1)), 1, "SAME", "NWC")
