"""Elementwise loops: one engine for contiguous, scalar, strided and in-place operands."""
