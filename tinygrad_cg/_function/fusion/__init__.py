"""From a graph to kernels: which values share a loop, and when each loop runs."""
