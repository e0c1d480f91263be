"""Kernels as machine code, without Numba's front end.

Kernels use a small part of Python, whether they are the library's own (`kernels`) or generated from
traced programs (`programs`). `sources` finds their syntax trees; `translate` writes them down as
LLVM's intermediate representation, by the types in `values` and the instructions in `writer` and
`instructions`. `functions` has the elementary functions as texts and as vector functions, and
`calling` lets Python call what comes of it. What cannot be translated, such as complex elementary
functions and users' functions, Numba compiles: the kernels are functions that it compiles too.
"""
