"""The texts of kernels, and the executables that call them."""
