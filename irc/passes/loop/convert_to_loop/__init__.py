"""The pass `convert-to-loop`: a rule for each operation, and what it is on scalars."""
