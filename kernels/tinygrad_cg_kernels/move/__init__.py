"""Copies by index: gather, scatter, sort."""
