"""The cache on disk, in one room: the folder, its entries, their keys, and how many there may be.

    folder    makes, opens and judges the folder
    store     entries: bytes under a key
    keys      what decides a program
    locks     of processes that would make the same entry, one does
    limits    how large the folder becomes, and what goes first

`SECURITY.md` and docs/promises.md say what is promised of it. Generated code for GPUs is not kept
here: Triton has a cache of its own, and its sources are loaded from memory.
"""
