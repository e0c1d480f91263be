"""Batching, forward mode, transposition, and the functional transforms."""
