"""Derivatives of functions over arrays and numbers that are written in loops, as for Numba.

`code_reading` turns a function's source into a `program`: numbers in single assignment, arrays in
memory, structured control flow. `tangents` (forward mode) and `adjoints` (reverse mode) make
programs of programs, `kernel_text` writes a program in the language of the kernels, and `running`
compiles and calls it.
"""
