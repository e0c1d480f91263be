"""Kernels for NVIDIA GPUs, of the same scalar functions; loaded when a device is used."""
