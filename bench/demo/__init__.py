"""The demonstration: what irc is for, in less than three minutes on two cores.

    python -m bench.demo [--out out/demo] [--patience 110] [--skip-speed] [--skip-levels]

Four parts: the text of one level; a rule written in three lines, run, and a wrong one and a wrong
pass caught; every level of a model read back, interpreted and compiled on; and a table of eager
mode, TorchInductor and irc, each also with frozen weights, with times and memory.
"""
