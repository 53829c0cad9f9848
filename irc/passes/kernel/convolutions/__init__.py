"""Kernels of convolutions that irc computes itself."""
