"""Boundaries without some of their converters."""

from __future__ import annotations

import contextlib


@contextlib.contextmanager
def without(conversion, cls):
    """`conversion` as if nobody had registered a converter of operations of `cls`."""
    functions = {converter.function for converter in conversion.converters_of(cls)}
    assert functions
    every = {c: None for row in conversion.table.values() for c in row}
    taken = [converter for converter in every if converter.function in functions]
    for converter in taken:
        conversion.withdraw(converter.function)
    try:
        yield
    finally:
        for converter in taken:
            register = conversion.converts(
                *converter.keys, benefit=converter.benefit, **converter.data
            )
            register(converter.function)


@contextlib.contextmanager
def converting(conversion, function, *keys, benefit=2):
    """`conversion` with one more converter."""
    conversion.converts(*keys, benefit=benefit)(function)
    try:
        yield
    finally:
        conversion.withdraw(function)
