"""Reductions and what rests on them: sums, moments, softmax, scans, searches."""
