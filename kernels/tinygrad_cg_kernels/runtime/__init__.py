"""The base of kernels: compilation and its cache, threads, memory, dtypes, objects."""
