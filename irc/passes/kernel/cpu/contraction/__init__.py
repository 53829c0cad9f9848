"""Contractions on a cpu as tiles of sums in registers: their schedules and kernels."""
