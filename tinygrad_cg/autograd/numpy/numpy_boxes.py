"""``autograd.numpy.numpy_boxes``: the class of the values in a differentiated function."""

from functools import partial as _partial

from ..._core.suggestions import refuse_name as _refuse_name
from ..._core.tensor import Tensor

__all__ = ["ArrayBox"]
__dir__ = __all__.copy
__getattr__ = _partial(_refuse_name, __name__)

ArrayBox = Tensor
