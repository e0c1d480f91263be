"""Generated text as machine code, without Numba's front end.

The text of generated kernels uses a small part of Python. `translate` writes it down as LLVM's
intermediate representation, `functions` has the elementary functions in that form, compiled once a
machine by Numba, and `machine` optimises modules, loads them, and keeps their code on disk.
"""
