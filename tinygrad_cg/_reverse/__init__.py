"""The reverse sweep, its arguments and observers, Variables, and graph mode."""
