"""TensorFlow's ``tf.math.special``."""

from __future__ import annotations

from functools import partial

from ..._core.suggestions import refuse_name
from .. import bessel, integrals, special_functions
from .namespace import export_functions, named_unary

bessel_i0 = named_unary(special_functions.bessel_i0, __name__)
bessel_i0e = named_unary(special_functions.bessel_i0e, __name__)
bessel_i1 = named_unary(special_functions.bessel_i1, __name__)
bessel_i1e = named_unary(special_functions.bessel_i1e, __name__)
bessel_j0 = named_unary(bessel.bessel_j0, __name__)
bessel_j1 = named_unary(bessel.bessel_j1, __name__)
bessel_k0 = named_unary(bessel.bessel_k0, __name__)
bessel_k0e = named_unary(bessel.bessel_k0e, __name__)
bessel_k1 = named_unary(bessel.bessel_k1, __name__)
bessel_k1e = named_unary(bessel.bessel_k1e, __name__)
bessel_y0 = named_unary(bessel.bessel_y0, __name__)
bessel_y1 = named_unary(bessel.bessel_y1, __name__)
dawsn = named_unary(integrals.dawsn, __name__)
expint = named_unary(integrals.expint, __name__)
fresnel_cos = named_unary(integrals.fresnel_cos, __name__)
fresnel_sin = named_unary(integrals.fresnel_sin, __name__)
spence = named_unary(integrals.spence, __name__)

__all__ = export_functions(globals(), partial(refuse_name, "tinygrad_cg.math.special"))
