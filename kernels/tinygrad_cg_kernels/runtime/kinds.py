"""Kinds of numbers: the front end's names of the types in each."""

from tinygrad_cg_frontend import INTEGERS, PARTS

FLOAT64, FLOAT32 = frozenset(("f64",)), frozenset(("f32",))
FLOAT = FLOAT64 | FLOAT32
COMPLEX = frozenset(PARTS)
INTEGER = frozenset(INTEGERS)
BOOLEAN = frozenset(("b1",))
EXACT = INTEGER | BOOLEAN
REAL = FLOAT | EXACT
NUMBER = FLOAT | COMPLEX | INTEGER
ANY = NUMBER | BOOLEAN
