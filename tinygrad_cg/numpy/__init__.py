"""NumPy's names, on tensors, with NumPy's defaults: Python's floats are float64 here."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
from numpy import __array_api_version__, __array_namespace_info__  # noqa: F401 (for the array API)

from .._core.suggestions import refuse_name
from .._ops.dlpack import from_dlpack
from .._ops.namespaces.namespace import export_functions
from .._ops.protocol import register
from . import _along_axes as reductions
from . import _fits as fits
from . import _functions as functions
from . import _manipulation as moving
from . import _maps as maps
from . import _numpy_records as elementwise
from . import _pointwise as pointwise
from . import _products as products
from . import _quantiles as quantiles
from . import _readers as readers
from . import _totals as totals
from . import fft, linalg, random
from ._manipulation import c_, r_

_OF_NUMPY = (  # public here as they are
    "bool bool_ can_cast complex64 complex128 e finfo float16 float32 float64 "
    "iinfo inf int8 int16 int32 int64 nan newaxis pi result_type uint8 uint16 uint32 uint64"
)
globals().update({_name: getattr(np, _name) for _name in _OF_NUMPY.split()})
_FORWARDED = (  # NumPy's own: questions, indices, files, texts, and what has no gradient
    "allclose argwhere array2string array_equal array_equiv array_repr array_str base_repr "
    "binary_repr bitwise_count broadcast bytes_ cdouble complexfloating copyto csingle "
    "datetime64 diag_indices diag_indices_from digitize double dtype einsum_path errstate "
    "fill_diagonal flatnonzero floating format_float_positional format_float_scientific frexp "
    "frombuffer fromfile fromfunction fromiter fromstring generic genfromtxt get_printoptions "
    "geterr half indices inexact int_ intc integer intp iscomplexobj isrealobj isscalar "
    "issubdtype iterable ix_ lexsort load loadtxt mask_indices may_share_memory "
    "min_scalar_type ndarray ndenumerate ndindex nditer number object_ packbits place "
    "printoptions promote_types put put_along_axis putmask ravel_multi_index real_if_close "
    "save savetxt savez savez_compressed set_printoptions seterr shares_memory signedinteger "
    "single sort_complex spacing str_ timedelta64 tril_indices tril_indices_from triu_indices "
    "triu_indices_from typename ufunc uint unpackbits unravel_index unsignedinteger"
)
__all__ = ["c_", "fft", "from_dlpack", "linalg", "r_", "random"]
__all__ += _OF_NUMPY.split()

_ROOMS = (
    readers,
    maps,
    totals,
    reductions,
    quantiles,
    moving,
    pointwise,
    products,
    fits,
    functions,
)
_exported = {room: export_functions(vars(room)) for room in _ROOMS}
_functions = {name: vars(room)[name] for room, names in _exported.items() for name in names}
for _name in _exported[functions]:
    _functions[_name].__module__ = __name__  # where users find it
_functions |= {name: vars(elementwise)[name] for name in elementwise.__all__}
globals().update(_functions)
__all__ += _functions


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _FORWARDED.split():
        refuse_name(__name__, name)
    globals()[name] = attribute = getattr(np, name)
    return attribute


register(sys.modules[__name__], np, __all__)
register(linalg, np.linalg, linalg.__all__)
_strides = types.SimpleNamespace(sliding_window_view=moving._sliding_window_view)
register(_strides, np.lib.stride_tricks, vars(_strides))
register(fft, np.fft, fft.__all__)
