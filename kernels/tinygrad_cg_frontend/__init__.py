"""The fast front end: functions in a small part of Python, as LLVM's text.

``docs/frontend.md`` specifies that part. `IRModule` translates functions of a library or of a text
(`text_scope`) for given argument types. It returns an `LLVMSource`, which the caller compiles. If a
function uses anything else, `Untranslatable` is raised. The front end decides how many formulas are
inlined, how many vectors a loop computes at a time, what is compiled apart, and at which of LLVM's
levels. It knows nothing of Numba, and runs no code.
"""

from tinygrad_cg_frontend.formulas import (
    finish_formula,
    number_source,
    translate_formula,
    vectors_source,
)
from tinygrad_cg_frontend.intrinsics import (
    ANY_ORDER,
    Intrinsic,
    Mark,
    address_call,
    drives,
    inlined,
    intrinsic,
    llvm_function,
    noalias,
    number_by_number,
    outlined,
    short_rows,
    symbol_call,
    vectorised,
    wide_vectors,
)
from tinygrad_cg_frontend.library import Library, Processor
from tinygrad_cg_frontend.llvm_source import BASELINE, BASELINE_LONG, OPTIMIZED, LLVMSource
from tinygrad_cg_frontend.module import IRModule
from tinygrad_cg_frontend.sources import source_of
from tinygrad_cg_frontend.translate import are_inlined, text_scope
from tinygrad_cg_frontend.values import (
    FLOATS,
    INTEGERS,
    NOTHING,
    PARTS,
    STORED,
    Array,
    Formula,
    IRValue,
    Record,
    ScalarFunction,
    Static,
    Unsupported,
    Untranslatable,
    leaf_types,
    llvm_type,
    name_of,
    rebuilt,
)
from tinygrad_cg_frontend.writer import Writer

__all__ = [
    "ANY_ORDER",
    "BASELINE",
    "BASELINE_LONG",
    "FLOATS",
    "INTEGERS",
    "NOTHING",
    "OPTIMIZED",
    "PARTS",
    "STORED",
    "Array",
    "Formula",
    "IRModule",
    "IRValue",
    "Intrinsic",
    "LLVMSource",
    "Library",
    "Mark",
    "Processor",
    "Record",
    "ScalarFunction",
    "Static",
    "Unsupported",
    "Untranslatable",
    "Writer",
    "address_call",
    "are_inlined",
    "drives",
    "finish_formula",
    "inlined",
    "intrinsic",
    "leaf_types",
    "llvm_function",
    "llvm_type",
    "name_of",
    "noalias",
    "number_by_number",
    "number_source",
    "outlined",
    "rebuilt",
    "short_rows",
    "source_of",
    "symbol_call",
    "text_scope",
    "translate_formula",
    "vectorised",
    "vectors_source",
    "wide_vectors",
]
