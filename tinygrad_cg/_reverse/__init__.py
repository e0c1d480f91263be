"""The reverse sweep, its arguments, and Variables."""
