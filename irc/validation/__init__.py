"""Checking passes: programs run in the interpreter before and after them, and compared.

`sizes` chooses values of symbols, `inputs` makes arguments, `running` runs a function so that
undefined elements and random calls show, `compare` holds two outcomes against each other, and
`semantics` puts them around the passes of a pipeline.
"""
