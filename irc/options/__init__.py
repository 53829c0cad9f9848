"""What a compile may be told."""
