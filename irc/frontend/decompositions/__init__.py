"""Which ATen operators are taken apart while torch traces, and into what."""
