"""Attention that was written by hand: how it is recognized, and what takes its place."""
