"""The host program as plain data: its steps, when its memory is used last, its reading from IR."""
