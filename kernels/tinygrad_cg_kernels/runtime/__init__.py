"""What kernels stand on: compilation and its cache, threads, memory, dtypes, objects."""
