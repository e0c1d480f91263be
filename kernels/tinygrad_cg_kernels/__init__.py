"""Numba kernels over NumPy arrays: elementwise loops, reductions, gather and scatter.

Importing this package compiles nothing: each kernel is compiled when it is first used, and
kept on disk for later processes (see `compile`).
"""
