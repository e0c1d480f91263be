"""Tensors, conversion, levels, and the primitives that every operation goes through."""
