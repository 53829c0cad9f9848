"""What each ATen operator is on the graph level: a converter per family of operators.

A file per topic; `support.py` has the table and what all of them use.
"""
