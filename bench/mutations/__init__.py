"""Mutation testing: what keeps programs right is broken on purpose, one place at a time, and the
tests of the code's own folder must notice.

    python -m bench.mutations                        # all of the selected mutants, 2 at a time
    python -m bench.mutations --jobs 16 --shard 0/2
    python -m bench.mutations --room verifiers --list

`operators` makes mutants from the syntax tree, `rooms` says from which functions and which tests
judge them, `traces` which tests execute which lines, `runner` runs tests in forked processes,
`journal` keeps what is known, so that a run that was stopped goes on where it was.
"""
