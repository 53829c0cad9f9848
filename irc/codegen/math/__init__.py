"""Elementary functions as straight-line code, for both targets."""
