"""Gradient tapes, forward mode, batching, transposition, and the transforms of functions."""
