"""Boundaries without some of their converters."""

from __future__ import annotations

import contextlib


@contextlib.contextmanager
def without(conversion, cls):
    """`conversion` as if nobody had registered a converter of operations of `cls`."""
    taken = list(conversion.converters_of(cls))
    assert taken
    for converter in taken:
        conversion.withdraw(converter.function)
    try:
        yield
    finally:
        for converter in taken:
            conversion.converts(*converter.keys, benefit=converter.benefit)(converter.function)


@contextlib.contextmanager
def converting(conversion, function, *keys, benefit=2):
    """`conversion` with one more converter."""
    conversion.converts(*keys, benefit=benefit)(function)
    try:
        yield
    finally:
        conversion.withdraw(function)
