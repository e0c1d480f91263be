"""From a Python function to a graph for each signature, and the calls of compiled programs."""
