"""Observers of passes: traces of what they compute, and the search for the first NaN."""
