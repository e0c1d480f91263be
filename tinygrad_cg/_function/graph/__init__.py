"""Programs as graphs of operations, and what makes them smaller."""
