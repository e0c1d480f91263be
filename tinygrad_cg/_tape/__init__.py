"""Gradient tapes, graph mode, and recomputation."""
