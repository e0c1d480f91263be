"""An example for each of the functions that are used most: what is typed, and what comes.

Functions made from records and from tables of spellings take theirs from here, by the record's name
or by the table's module and the function's name. `tests/project/test_examples.py` runs them all.
"""

from __future__ import annotations

EXAMPLES = {
    "absolute": (
        "tf.abs([-1.5, 2.0]).numpy()",
        "array([1.5, 2. ], dtype=float32)",
    ),
    "arccos": (
        "tf.acos([1.0, 0.0]).numpy().round(3)",
        "array([0.   , 1.571], dtype=float32)",
    ),
    "arccosh": (
        "tf.acosh([1.0, 2.0]).numpy().round(3)",
        "array([0.   , 1.317], dtype=float32)",
    ),
    "add": (
        "tf.add([1.0, 2.0], 10.0).numpy()",
        "array([11., 12.], dtype=float32)",
    ),
    "arcsin": (
        "tf.asin([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 1.571], dtype=float32)",
    ),
    "arcsinh": (
        "tf.asinh([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 0.881], dtype=float32)",
    ),
    "arctan": (
        "tf.atan([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 0.785], dtype=float32)",
    ),
    "arctanh": (
        "tf.atanh([0.0, 0.5]).numpy().round(3)",
        "array([0.   , 0.549], dtype=float32)",
    ),
    "cos": (
        "tf.cos([0.0, 1.0]).numpy().round(3)",
        "array([1.  , 0.54], dtype=float32)",
    ),
    "cosh": (
        "tf.cosh([0.0, 1.0]).numpy().round(3)",
        "array([1.   , 1.543], dtype=float32)",
    ),
    "divide": (
        "tf.divide([1, 2], 4).numpy()",
        "array([0.25, 0.5 ])",
    ),
    "equal": (
        "tf.equal([1, 2], [1, 3]).numpy()",
        "array([ True, False])",
    ),
    "exp": (
        "tf.exp([0.0, 1.0]).numpy().round(3)",
        "array([1.   , 2.718], dtype=float32)",
    ),
    "floor": (
        "tf.floor([1.7, -1.2]).numpy()",
        "array([ 1., -2.], dtype=float32)",
    ),
    "ceil": (
        "tf.math.ceil([1.2, -1.7]).numpy()",
        "array([ 2., -1.], dtype=float32)",
    ),
    "floor_divide": (
        "tf.math.floordiv([7, -7], 2).numpy()",
        "array([ 3, -4], dtype=int32)",
    ),
    "remainder": (
        "tf.math.floormod([7, -7], 3).numpy()",
        "array([1, 2], dtype=int32)",
    ),
    "greater": (
        "tf.greater([1.0, 3.0], 2.0).numpy()",
        "array([False,  True])",
    ),
    "greater_equal": (
        "tf.greater_equal([1.0, 2.0], 2.0).numpy()",
        "array([False,  True])",
    ),
    "less": (
        "tf.less([1.0, 3.0], 2.0).numpy()",
        "array([ True, False])",
    ),
    "less_equal": (
        "tf.less_equal([1.0, 2.0], 1.0).numpy()",
        "array([ True, False])",
    ),
    "not_equal": (
        "tf.not_equal([1, 2], [1, 3]).numpy()",
        "array([False,  True])",
    ),
    "log": (
        "tf.math.log([1.0, 10.0]).numpy().round(3)",
        "array([0.   , 2.303], dtype=float32)",
    ),
    "log1p": (
        "tf.math.log1p([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 0.693], dtype=float32)",
    ),
    "expm1": (
        "tf.math.expm1([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 1.718], dtype=float32)",
    ),
    "logical_and": (
        "tf.logical_and([True, True], [True, False]).numpy()",
        "array([ True, False])",
    ),
    "logical_or": (
        "tf.logical_or([True, False], [False, False]).numpy()",
        "array([ True, False])",
    ),
    "logical_not": (
        "tf.logical_not([True, False]).numpy()",
        "array([False,  True])",
    ),
    "logical_xor": (
        "tf.math.logical_xor([True, True], [True, False]).numpy()",
        "array([False,  True])",
    ),
    "maximum": (
        "tf.maximum([1.0, 5.0], 3.0).numpy()",
        "array([3., 5.], dtype=float32)",
    ),
    "minimum": (
        "tf.minimum([1.0, 5.0], 3.0).numpy()",
        "array([1., 3.], dtype=float32)",
    ),
    "multiply": (
        "tf.multiply([1.0, 2.0], [3.0, 4.0]).numpy()",
        "array([3., 8.], dtype=float32)",
    ),
    "negative": (
        "tf.negative([1.0, -2.0]).numpy()",
        "array([-1.,  2.], dtype=float32)",
    ),
    "round": (
        "tf.round([0.5, 1.5, 2.4]).numpy()",
        "array([0., 2., 2.], dtype=float32)",
    ),
    "sigmoid": (
        "tf.sigmoid([0.0, 2.0]).numpy().round(3)",
        "array([0.5  , 0.881], dtype=float32)",
    ),
    "sign": (
        "tf.sign([-2.0, 0.0, 3.0]).numpy()",
        "array([-1.,  0.,  1.], dtype=float32)",
    ),
    "sin": (
        "tf.sin([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 0.841], dtype=float32)",
    ),
    "sinh": (
        "tf.sinh([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 1.175], dtype=float32)",
    ),
    "sqrt": (
        "tf.sqrt([4.0, 9.0]).numpy()",
        "array([2., 3.], dtype=float32)",
    ),
    "rsqrt": (
        "tf.math.rsqrt([4.0, 16.0]).numpy()",
        "array([0.5 , 0.25], dtype=float32)",
    ),
    "square": (
        "tf.square([2.0, -3.0]).numpy()",
        "array([4., 9.], dtype=float32)",
    ),
    "subtract": (
        "tf.subtract([5.0, 2.0], 1.0).numpy()",
        "array([4., 1.], dtype=float32)",
    ),
    "tan": (
        "tf.tan([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 1.557], dtype=float32)",
    ),
    "tanh": (
        "tf.tanh([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 0.762], dtype=float32)",
    ),
    "erf": (
        "tf.math.erf([0.0, 1.0]).numpy().round(3)",
        "array([0.   , 0.843], dtype=float32)",
    ),
    "erfc": (
        "tf.math.erfc([0.0, 1.0]).numpy().round(3)",
        "array([1.   , 0.157], dtype=float32)",
    ),
    "lgamma": (
        "tf.math.lgamma([1.0, 5.0]).numpy().round(3)",
        "array([0.   , 3.178], dtype=float32)",
    ),
    "digamma": (
        "tf.math.digamma([1.0, 2.0]).numpy().round(3)",
        "array([-0.577,  0.423], dtype=float32)",
    ),
    "xlogy": (
        "tf.math.xlogy([0.0, 2.0], [0.0, 3.0]).numpy().round(3)",
        "array([0.   , 2.197], dtype=float32)",
    ),
    "isnan": (
        'tf.math.is_nan([1.0, float("nan")]).numpy()',
        "array([False,  True])",
    ),
    "isinf": (
        'tf.math.is_inf([1.0, float("inf")]).numpy()',
        "array([False,  True])",
    ),
    "isfinite": (
        'tf.math.is_finite([1.0, float("inf")]).numpy()',
        "array([ True, False])",
    ),
    "math.atan2": (
        "tf.atan2([1.0, 1.0], [1.0, -1.0]).numpy().round(3)",
        "array([0.785, 2.356], dtype=float32)",
    ),
    "math.pow": (
        "tf.pow([1.0, 2.0, 3.0], 2).numpy()",
        "array([1., 4., 9.], dtype=float32)",
    ),
    "math.add_n": (
        "tf.add_n([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]).numpy()",
        "array([111., 222.], dtype=float32)",
    ),
    "math.argmax": (
        "tf.argmax([[1.0, 3.0], [2.0, 0.0]], axis=1).numpy()",
        "array([1, 0])",
    ),
    "math.argmin": (
        "tf.argmin([[1.0, 3.0], [2.0, 0.0]], axis=1).numpy()",
        "array([0, 1])",
    ),
    "_spellings.programs.bincount": (
        "tf.math.bincount([0, 2, 2, 3]).numpy()",
        "array([1, 0, 2, 1], dtype=int32)",
    ),
    "math.conj": (
        "tf.math.conj([1 + 2j]).numpy()",
        "array([1.-2.j])",
    ),
    "math.real": (
        "tf.math.real([1 + 2j]).numpy()",
        "array([1.])",
    ),
    "math.imag": (
        "tf.math.imag([1 + 2j]).numpy()",
        "array([2.])",
    ),
    "math.count_nonzero": (
        "tf.math.count_nonzero([[0, 1], [2, 3]], axis=1).numpy()",
        "array([1, 2])",
    ),
    "math.cumsum": (
        "tf.cumsum([1.0, 2.0, 3.0]).numpy()",
        "array([1., 3., 6.], dtype=float32)",
    ),
    "math.cumprod": (
        "tf.math.cumprod([1.0, 2.0, 3.0]).numpy()",
        "array([1., 2., 6.], dtype=float32)",
    ),
    "math.divide_no_nan": (
        "tf.math.divide_no_nan([1.0, 2.0], [0.0, 4.0]).numpy()",
        "array([0. , 0.5], dtype=float32)",
    ),
    "math.log_softmax": (
        "tf.math.log_softmax([0.0, 0.0]).numpy().round(3)",
        "array([-0.693, -0.693], dtype=float32)",
    ),
    "math.reduce_all": (
        "tf.reduce_all([[True, False], [True, True]], axis=1).numpy()",
        "array([False,  True])",
    ),
    "math.reduce_any": (
        "tf.reduce_any([[True, False], [False, False]], axis=1).numpy()",
        "array([ True, False])",
    ),
    "math.reduce_logsumexp": (
        "tf.reduce_logsumexp([1000.0, 1000.0]).numpy().round(3)",
        "np.float32(1000.693)",
    ),
    "math.reduce_max": (
        "tf.reduce_max([[1.0, 2.0], [3.0, 0.0]], axis=0).numpy()",
        "array([3., 2.], dtype=float32)",
    ),
    "math.reduce_mean": (
        "tf.reduce_mean([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()",
        "array([1.5, 3.5], dtype=float32)",
    ),
    "math.reduce_min": (
        "tf.reduce_min([[1.0, 2.0], [3.0, 0.0]], axis=0).numpy()",
        "array([1., 0.], dtype=float32)",
    ),
    "math.reduce_prod": (
        "tf.reduce_prod([1.0, 2.0, 3.0]).numpy()",
        "np.float32(6.0)",
    ),
    "math.reduce_std": (
        "tf.math.reduce_std([1.0, 3.0]).numpy()",
        "np.float32(1.0)",
    ),
    "math.reduce_sum": (
        "tf.reduce_sum([[1.0, 2.0], [3.0, 4.0]], axis=0, keepdims=True).numpy()",
        "array([[4., 6.]], dtype=float32)",
    ),
    "math.reduce_variance": (
        "tf.math.reduce_variance([1.0, 3.0]).numpy()",
        "np.float32(1.0)",
    ),
    "math.segment_sum": (
        "tf.math.segment_sum([1.0, 2.0, 3.0], [0, 0, 1]).numpy()",
        "array([3., 3.], dtype=float32)",
    ),
    "math.unsorted_segment_sum": (
        "tf.math.unsorted_segment_sum([1.0, 2.0, 3.0], [1, 0, 1], 2).numpy()",
        "array([2., 4.], dtype=float32)",
    ),
    "math.softmax": (
        "tf.nn.softmax([[0.0, 0.0], [1.0, 2.0]]).numpy().round(3)",
        "array([[0.5  , 0.5  ],\n       [0.269, 0.731]], dtype=float32)",
    ),
    "math.softplus": (
        "tf.math.softplus([0.0, 20.0]).numpy().round(3)",
        "array([ 0.693, 20.   ], dtype=float32)",
    ),
    "math.squared_difference": (
        "tf.math.squared_difference([1.0, 2.0], [3.0, 2.0]).numpy()",
        "array([4., 0.], dtype=float32)",
    ),
    "math.top_k": (
        "tf.math.top_k([1.0, 9.0, 4.0], k=2).indices.numpy()",
        "array([1, 2], dtype=int32)",
    ),
    "math.l2_normalize": (
        "tf.math.l2_normalize([3.0, 4.0]).numpy().round(3)",
        "array([0.6, 0.8], dtype=float32)",
    ),
    "linalg.cholesky": (
        "tf.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).numpy()",
        "array([[2., 0.],\n       [1., 2.]], dtype=float32)",
    ),
    "linalg.det": (
        "tf.linalg.det([[1.0, 2.0], [3.0, 4.0]]).numpy().round(3)",
        "np.float32(-2.0)",
    ),
    "linalg.diag": (
        "tf.linalg.diag([1.0, 2.0]).numpy()",
        "array([[1., 0.],\n       [0., 2.]], dtype=float32)",
    ),
    "linalg.diag_part": (
        "tf.linalg.diag_part([[1.0, 2.0], [3.0, 4.0]]).numpy()",
        "array([1., 4.], dtype=float32)",
    ),
    "linalg.eigh": (
        "tf.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])[0].numpy().round(3)",
        "array([1., 2.], dtype=float32)",
    ),
    "linalg.eigvalsh": (
        "tf.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]).numpy().round(3)",
        "array([1., 2.], dtype=float32)",
    ),
    "linalg.einsum": (
        'tf.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]).numpy()',
        "array([21., 43.], dtype=float32)",
    ),
    "linalg.expm": (
        "tf.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).numpy().round(3)",
        "array([[1., 1.],\n       [0., 1.]], dtype=float32)",
    ),
    "linalg.eye": (
        "tf.eye(2).numpy()",
        "array([[1., 0.],\n       [0., 1.]], dtype=float32)",
    ),
    "linalg.inv": (
        "tf.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy()",
        "array([[0.5 , 0.  ],\n       [0.  , 0.25]], dtype=float32)",
    ),
    "linalg.logdet": (
        "tf.linalg.logdet([[2.0, 0.0], [0.0, 4.0]]).numpy().round(3)",
        "np.float32(2.079)",
    ),
    "linalg.lstsq": (
        "tf.linalg.lstsq([[1.0], [2.0]], [[2.0], [4.0]]).numpy().round(3)",
        "array([[2.]], dtype=float32)",
    ),
    "linalg.matmul": (
        "tf.matmul([[1.0, 2.0], [3.0, 4.0]], [[1.0], [10.0]]).numpy()",
        "array([[21.],\n       [43.]], dtype=float32)",
    ),
    "linalg.matvec": (
        "tf.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]).numpy()",
        "array([21., 43.], dtype=float32)",
    ),
    "linalg.norm": (
        "tf.norm([3.0, 4.0]).numpy()",
        "np.float32(5.0)",
    ),
    "linalg.pinv": (
        "tf.linalg.pinv([[2.0, 0.0]]).numpy().round(3)",
        "array([[0.5],\n       [0. ]], dtype=float32)",
    ),
    "linalg.qr": (
        "abs(tf.linalg.qr([[3.0], [4.0]])[1].numpy()).round(3)",
        "array([[5.]], dtype=float32)",
    ),
    "linalg.slogdet": (
        "[float(part) for part in tf.linalg.slogdet([[1.0, 0.0], [0.0, -1.0]])]",
        "[-1.0, 0.0]",
    ),
    "linalg.solve": (
        "tf.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [2.0]]).numpy()",
        "array([[1. ],\n       [0.5]], dtype=float32)",
    ),
    "linalg.svd": (
        "tf.linalg.svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False).numpy().round(3)",
        "array([4., 3.], dtype=float32)",
    ),
    "linalg.tensordot": (
        "tf.tensordot([1.0, 2.0], [3.0, 4.0], axes=1).numpy()",
        "np.float32(11.0)",
    ),
    "linalg.trace": (
        "tf.linalg.trace([[1.0, 2.0], [3.0, 4.0]]).numpy()",
        "np.float32(5.0)",
    ),
    "linalg.band_part": (
        "tf.linalg.band_part(tf.ones((3, 3)), 0, -1).numpy()",
        "array([[1., 1., 1.],\n       [0., 1., 1.],\n       [0., 0., 1.]], dtype=float32)",
    ),
    "linalg.cross": (
        "tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).numpy()",
        "array([0., 0., 1.], dtype=float32)",
    ),
    "nn.relu": (
        "tf.nn.relu([-1.0, 2.0]).numpy()",
        "array([0., 2.], dtype=float32)",
    ),
    "nn.leaky_relu": (
        "tf.nn.leaky_relu([-1.0, 2.0]).numpy().round(3)",
        "array([-0.2,  2. ], dtype=float32)",
    ),
    "nn.gelu": (
        "tf.nn.gelu([-1.0, 2.0]).numpy().round(3)",
        "array([-0.159,  1.954], dtype=float32)",
    ),
    "nn.elu": (
        "tf.nn.elu([-1.0, 2.0]).numpy().round(3)",
        "array([-0.632,  2.   ], dtype=float32)",
    ),
    "nn.silu": (
        "tf.nn.silu([-1.0, 2.0]).numpy().round(3)",
        "array([-0.269,  1.762], dtype=float32)",
    ),
    "nn.selu": (
        "tf.nn.selu([-1.0, 2.0]).numpy().round(3)",
        "array([-1.111,  2.101], dtype=float32)",
    ),
    "nn.moments": (
        "[part.numpy() for part in tf.nn.moments([1.0, 3.0], axes=0)]",
        "[np.float32(2.0), np.float32(1.0)]",
    ),
    "nn.bias_add": (
        "tf.nn.bias_add([[1.0, 2.0]], [10.0, 20.0]).numpy()",
        "array([[11., 22.]], dtype=float32)",
    ),
    "nn.conv2d": (
        'tf.nn.conv2d(tf.ones((1, 4, 4, 1)), tf.ones((2, 2, 1, 3)), 1, "VALID").shape',
        "TensorShape([1, 3, 3, 3])",
    ),
    "nn.conv1d": (
        'tf.nn.conv1d(tf.ones((1, 4, 1)), tf.ones((2, 1, 3)), 1, "VALID").shape',
        "TensorShape([1, 3, 3])",
    ),
    "nn.max_pool2d": (
        'tf.nn.max_pool2d(tf.ones((1, 4, 4, 1)), 2, 2, "VALID").shape',
        "TensorShape([1, 2, 2, 1])",
    ),
    "nn.avg_pool2d": (
        'tf.nn.avg_pool2d(tf.ones((1, 4, 4, 1)), 2, 2, "VALID").shape',
        "TensorShape([1, 2, 2, 1])",
    ),
    "nn.embedding_lookup": (
        "tf.nn.embedding_lookup(tf.eye(2), [1, 1]).numpy()",
        "array([[0., 1.],\n       [0., 1.]], dtype=float32)",
    ),
    "nn.l2_loss": (
        "tf.nn.l2_loss([3.0, 4.0]).numpy()",
        "np.float32(12.5)",
    ),
    "nn.softmax_cross_entropy_with_logits": (
        "tf.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[0.0, 0.0]]).numpy().round(3)",
        "array([0.693], dtype=float32)",
    ),
    "nn.sparse_softmax_cross_entropy_with_logits": (
        "tf.nn.sparse_softmax_cross_entropy_with_logits([1], [[0.0, 0.0]]).numpy().round(3)",
        "array([0.693], dtype=float32)",
    ),
    "nn.sigmoid_cross_entropy_with_logits": (
        "tf.nn.sigmoid_cross_entropy_with_logits([1.0], [0.0]).numpy().round(3)",
        "array([0.693], dtype=float32)",
    ),
    "dtypes.cast": (
        "tf.cast([1.7, -1.7], tf.int32).numpy()",
        "array([ 1, -1], dtype=int32)",
    ),
    "_spellings.arrays.argsort": (
        "tf.argsort([3.0, 1.0, 2.0]).numpy()",
        "array([1, 2, 0], dtype=int32)",
    ),
    "_spellings.arrays.boolean_mask": (
        "tf.boolean_mask([1.0, 2.0, 3.0], [True, False, True]).numpy()",
        "array([1., 3.], dtype=float32)",
    ),
    "_spellings.arrays.broadcast_to": (
        "tf.broadcast_to([1.0, 2.0], (2, 2)).numpy()",
        "array([[1., 2.],\n       [1., 2.]], dtype=float32)",
    ),
    "_spellings.arrays.clip_by_value": (
        "tf.clip_by_value([-2.0, 0.5, 3.0], 0.0, 1.0).numpy()",
        "array([0. , 0.5, 1. ], dtype=float32)",
    ),
    "_spellings.arrays.clip_by_norm": (
        "tf.clip_by_norm([3.0, 4.0], 1.0).numpy().round(3)",
        "array([0.6, 0.8], dtype=float32)",
    ),
    "_spellings.arrays.concat": (
        "tf.concat([[[1.0], [2.0]], [[3.0], [4.0]]], axis=1).numpy()",
        "array([[1., 3.],\n       [2., 4.]], dtype=float32)",
    ),
    "_spellings.arrays.expand_dims": (
        "tf.expand_dims([1.0, 2.0], axis=0).shape",
        "TensorShape([1, 2])",
    ),
    "_spellings.arrays.fill": (
        "tf.fill((2, 2), 7.0).numpy()",
        "array([[7., 7.],\n       [7., 7.]], dtype=float32)",
    ),
    "_spellings.arrays.gather": (
        "tf.gather([10.0, 20.0, 30.0], [2, 0]).numpy()",
        "array([30., 10.], dtype=float32)",
    ),
    "_spellings.arrays.gather_nd": (
        "tf.gather_nd([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [1, 0]]).numpy()",
        "array([2., 3.], dtype=float32)",
    ),
    "_spellings.arrays.linspace": (
        "tf.linspace(0.0, 1.0, 5).numpy()",
        "array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)",
    ),
    "_spellings.arrays.one_hot": (
        "tf.one_hot([0, 2], 3).numpy()",
        "array([[1., 0., 0.],\n       [0., 0., 1.]], dtype=float32)",
    ),
    "_spellings.arrays.ones": (
        "tf.ones((2, 2)).numpy()",
        "array([[1., 1.],\n       [1., 1.]], dtype=float32)",
    ),
    "_spellings.arrays.ones_like": (
        "tf.ones_like([1, 2]).numpy()",
        "array([1, 1], dtype=int32)",
    ),
    "_spellings.arrays.pad": (
        "tf.pad([1.0, 2.0], [[1, 2]]).numpy()",
        "array([0., 1., 2., 0., 0.], dtype=float32)",
    ),
    "_spellings.arrays.range": (
        "tf.range(0, 10, 3).numpy()",
        "array([0, 3, 6, 9], dtype=int32)",
    ),
    "_spellings.arrays.reshape": (
        "tf.reshape([1.0, 2.0, 3.0, 4.0], (2, -1)).numpy()",
        "array([[1., 2.],\n       [3., 4.]], dtype=float32)",
    ),
    "_spellings.arrays.scatter_nd": (
        "tf.scatter_nd([[1], [3]], [5.0, 7.0], (4,)).numpy()",
        "array([0., 5., 0., 7.], dtype=float32)",
    ),
    "_spellings.arrays.sequence_mask": (
        "tf.sequence_mask([1, 3], 3).numpy()",
        "array([[ True, False, False],\n       [ True,  True,  True]])",
    ),
    "_spellings.arrays.shape": (
        "tf.shape([[1.0, 2.0]]).numpy()",
        "array([1, 2], dtype=int32)",
    ),
    "_spellings.arrays.size": (
        "tf.size([[1.0, 2.0]]).numpy()",
        "np.int32(2)",
    ),
    "_spellings.arrays.slice": (
        "tf.slice([1.0, 2.0, 3.0, 4.0], [1], [2]).numpy()",
        "array([2., 3.], dtype=float32)",
    ),
    "_spellings.arrays.sort": (
        "tf.sort([3.0, 1.0, 2.0]).numpy()",
        "array([1., 2., 3.], dtype=float32)",
    ),
    "_spellings.arrays.split": (
        "[part.numpy().tolist() for part in tf.split([1.0, 2.0, 3.0, 4.0], 2)]",
        "[[1.0, 2.0], [3.0, 4.0]]",
    ),
    "_spellings.arrays.squeeze": (
        "tf.squeeze([[1.0], [2.0]]).shape",
        "TensorShape([2])",
    ),
    "_spellings.arrays.stack": (
        "tf.stack([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()",
        "array([[1., 3.],\n       [2., 4.]], dtype=float32)",
    ),
    "_spellings.arrays.stop_gradient": (
        "tf.grad(lambda x: tf.stop_gradient(x) * x)(3.0).numpy()",
        "np.float32(3.0)",
    ),
    "_spellings.arrays.tensor_scatter_nd_update": (
        "tf.tensor_scatter_nd_update([1.0, 2.0, 3.0], [[1]], [9.0]).numpy()",
        "array([1., 9., 3.], dtype=float32)",
    ),
    "_spellings.arrays.tensor_scatter_nd_add": (
        "tf.tensor_scatter_nd_add([1.0, 2.0, 3.0], [[1], [1]], [9.0, 1.0]).numpy()",
        "array([ 1., 12.,  3.], dtype=float32)",
    ),
    "_spellings.arrays.transpose": (
        "tf.transpose([[1.0, 2.0, 3.0]]).shape",
        "TensorShape([3, 1])",
    ),
    "_spellings.arrays.unstack": (
        "[float(one) for one in tf.unstack([1.0, 2.0])]",
        "[1.0, 2.0]",
    ),
    "_spellings.arrays.where": (
        "tf.where([True, False], [1.0, 2.0], 0.0).numpy()",
        "array([1., 0.], dtype=float32)",
    ),
    "_spellings.arrays.zeros": (
        "tf.zeros((2, 2)).numpy()",
        "array([[0., 0.],\n       [0., 0.]], dtype=float32)",
    ),
    "_spellings.arrays.zeros_like": (
        "tf.zeros_like([1.5, 2.5]).numpy()",
        "array([0., 0.], dtype=float32)",
    ),
    "_spellings.programs.tile": (
        "tf.tile([1.0, 2.0], [2]).numpy()",
        "array([1., 2., 1., 2.], dtype=float32)",
    ),
    "_spellings.programs.reverse": (
        "tf.reverse([1.0, 2.0, 3.0], [0]).numpy()",
        "array([3., 2., 1.], dtype=float32)",
    ),
    "_spellings.programs.searchsorted": (
        "tf.searchsorted([1.0, 3.0, 5.0], [0.0, 4.0]).numpy()",
        "array([0, 2], dtype=int32)",
    ),
    "signal.fft": (
        "tf.signal.fft([1 + 0j, 0j]).numpy()",
        "array([1.+0.j, 1.+0.j])",
    ),
    "signal.rfft": (
        "tf.signal.rfft([1.0, 0.0]).numpy()",
        "array([1.+0.j, 1.+0.j], dtype=complex64)",
    ),
}
HEAD = "\n\nExamples\n--------\n"


def with_example(key: str, doc: str) -> str:
    """Return a docstring with the example of `key`, if there is one."""
    if key not in EXAMPLES:
        return doc
    code, result = EXAMPLES[key]
    return f"{doc}{HEAD}>>> {code}\n{result}"


def without_example(doc: str) -> str:
    """Return a docstring without its example."""
    return doc.partition(HEAD)[0]
