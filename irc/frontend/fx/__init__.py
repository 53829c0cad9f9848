"""Rewrites of FX graphs before they are imported."""
