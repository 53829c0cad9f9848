"""Text: reading and printing programs, in irc's own form and in MLIR's."""
