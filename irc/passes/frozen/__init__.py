"""Passes on programs whose weights are constants."""
