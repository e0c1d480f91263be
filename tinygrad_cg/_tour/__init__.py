"""The tour: `python -m tinygrad_cg`. Real work on real input, told in five parts."""
