"""What a kernel computes, before a target decides how: axes, members, accesses, places."""
