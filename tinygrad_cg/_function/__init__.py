"""Whole programs, gradients included, as graphs and compiled kernels."""
