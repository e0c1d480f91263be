"""Graphs of traced programs, and rewrites that make them smaller."""
