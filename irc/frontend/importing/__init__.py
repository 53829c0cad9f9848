"""From FX graphs to the aten level."""
