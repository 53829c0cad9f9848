"""Native host functions: a host program as machine code."""
