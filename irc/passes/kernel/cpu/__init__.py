"""Kernels for CPUs: loop nests, vectors, reductions."""
