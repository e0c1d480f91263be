"""Custom gradients: their definitions, calls, and what their rules return."""
