"""Forming gpu kernels from loop computes and groups: see `form.py`."""
