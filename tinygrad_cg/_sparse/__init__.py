"""Sparse derivatives: patterns, colourings, and evaluation by compressed products."""
