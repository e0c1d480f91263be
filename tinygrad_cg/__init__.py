"""Reverse-mode automatic differentiation on a tape, with your own gradients at every order.

``import tinygrad_cg as tf`` gives TensorFlow's names; NumPy's are in ``tinygrad_cg.numpy``,
Keras's in ``tinygrad_cg.keras.ops``.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import Any

if sys.argv[:1] == ["-m"] and __name__ in sys.orig_argv:  # `python -m` is loading the tour

    def _end_quietly(kind: Any, *error: Any, show: Any = sys.excepthook) -> None:
        """Say nothing of Ctrl-C while modules are loaded."""
        if kind is KeyboardInterrupt:
            sys.stderr.write("\n")
        else:
            show(kind, *error)

    sys.excepthook = _end_quietly

from ._core.suggestions import refuse_name
from ._function.codegen import fused_rules as _fused_rules  # noqa: F401 (for gradient functions)
from ._ops import protocol as _numpy_dispatch
from ._rules import pickling as _pickling  # noqa: F401 (registers how custom gradients travel)
from ._transforms.tape import GradientTape
from .errors import shorten_tracebacks as _shorten_tracebacks

# The public names by the module that each is found in; of "." they are the modules themselves.
_EAGER = {
    ".": ("autodiff config dtypes errors math nest"),
    "._core.conversion": "IndexedSlices is_tensor",
    "._core.tensor": "Tensor TensorShape",
    "._ops.creation": "constant convert_to_tensor",
    "._reverse.graph_mode": "Graph executing_eagerly gradients",
    "._reverse.name_scope": "get_current_name_scope name_scope",
    "._reverse.variable": "Variable",
    "._rules.custom_gradient": "custom_gradient grad_pass_through",
    "._rules.outside_code": "numpy_function py_function",
    "._rules.user_ops": "NotDifferentiable RegisterGradient no_gradient",
    "._transforms.batching": "vectorized_map vmap",
    "._transforms.custom_batching": "custom_vmap",
    "._transforms.functional": "elementwise_grad grad jvp linearize value_and_grad vjp",
    "._transforms.jacobians": "hessian hessians hvp jacobian",
    "._transforms.recompute": "recompute_grad",
    "._transforms.tape": "GradientTape UnconnectedGradients",
    ".config.cache": "clear_cache",
    ".config.threading": "get_num_threads set_num_threads",
    ".dtypes": (
        "DType as_dtype bool cast complex64 complex128 double float16 float32 float64 half int8 "
        "int16 int32 int64 uint8 uint16 uint32 uint64"
    ),
    ".errors": "CustomGradientWarning",
}
# Those loaded at their first use, so that importing the library stays quick.
_LAZY = {
    ".": (
        "autograd autograph bitwise compat contrib data debugging distributed experimental image "
        "keras linalg nn numpy optimizers random signal test train"
    ),
    "._array_code.array_functions": "differentiable",
    "._array_code.user_primitives": "primitive",
    "._check": "assert_gradients check_gradients",
    "._function.tracing.function": "function",
    "._function.tracing.scans": "foldl foldr map_fn scan",
    "._function.tracing.signature": "TensorSpec type_spec_from_value",
    "._sparse.colorings": "Coloring hessian_coloring jacobian_coloring",
    "._sparse.sparsity_declaration": "declare_sparsity",
    "._sparse.sparsity_detection": "hessian_sparsity jacobian_sparsity",
    "._sparse.evaluation": "sparse_hessian sparse_jacobian",
    "._sparse.plots": "show_sparsity",
    "._sparse.sparsity": "SparsityPattern",
    "._transforms.custom_derivatives": "custom_derivatives",
    "._transforms.control_flow": "case cond switch_case while_loop",
    "._ops.namespaces.arrays": (
        "argsort broadcast_to clip_by_value concat expand_dims fill gather identity linspace "
        "one_hot ones ones_like pad range rank reshape sequence_mask shape size slice "
        "sort split squeeze stack stop_gradient tensor_scatter_nd_add tensor_scatter_nd_max "
        "tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update transpose unstack "
        "where zeros zeros_like"
    ),
    "._ops.namespaces.programs": (
        "broadcast_dynamic_shape broadcast_static_shape complex control_dependencies device "
        "ensure_shape get_logger get_static_value group guarantee_const identity_n "
        "inside_function is_symbolic_tensor matrix_square_root meshgrid no_op realdiv repeat "
        "required_space_to_batch_paddings reverse roll saturate_cast "
        "searchsorted shape_n space_to_batch_nd strided_slice tile timestamp truncatediv "
        "truncatemod tuple unique unique_with_counts unravel_index"
    ),
    "._ops.block_moves": "batch_to_space reverse_sequence space_to_batch",
    "._ops.casts": "bitcast",
    "._ops.counting": "histogram_fixed_width histogram_fixed_width_bins",
    "._ops.normalizations": "clip_by_global_norm clip_by_norm",
    "._ops.updates": "boolean_mask dynamic_partition dynamic_stitch gather_nd scatter_nd",
    "._ops.volumes": "extract_volume_patches",
    "._transforms.ravel": "ravel_tree",
    "._transforms.tensor_array": "TensorArray",
    ".debugging": "Assert assert_equal assert_greater assert_less assert_rank debug_nans",
    ".debugging._pictures.curves": "plot_derivatives",
    ".debugging._pictures.picture": "show",
    "._rules.printing": "print",
    ".keras": "initializers losses metrics",
    ".keras.initializers": (
        "constant_initializer ones_initializer random_normal_initializer "
        "random_uniform_initializer zeros_initializer"
    ),
    ".linalg": "eig eigvals einsum eye matmul norm tensordot",
    ".math": (
        "abs acos acosh add add_n argmax argmin asin asinh atan atan2 atanh cos cosh cumsum "
        "divide equal exp floor greater greater_equal less less_equal log logical_and logical_not "
        "logical_or maximum minimum multiply negative not_equal pow reduce_all reduce_any "
        "reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round "
        "scalar_mul sigmoid sign sin sinh sqrt square subtract tan tanh truediv"
    ),
    ".module": "Module",
    ".signal": "fftnd ifftnd irfftnd rfftnd",
}
_HOMES = {name: home for table in (_EAGER, _LAZY) for home in table for name in table[home].split()}
__all__ = sorted([*_HOMES, "newaxis"])

__version__ = "0.1.0"
newaxis = None
_numpy_dispatch.namespace = partial(import_module, f"{__name__}.numpy")
GradientTape._pictures = staticmethod(
    partial(import_module, f"{__name__}.debugging._pictures.picture")
)
_shorten_tracebacks()


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        refuse_name(__name__, name)
    module = import_module(f".{name}" if home == "." else home, __name__)
    module = module if home == "." else getattr(module, name)
    globals()[name] = module
    return module


def __dir__() -> list[str]:
    return __all__.copy()


for _names in _EAGER.values():
    for _name in _names.split():
        __getattr__(_name)
