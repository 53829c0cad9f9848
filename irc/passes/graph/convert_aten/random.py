"""Random numbers that kernels draw themselves."""

from __future__ import annotations

from irc.dialects import graph
from irc.ir.core import Value
from irc.passes.graph.convert_aten.support import Call, converts


@converts("aten.extern.irc.philox_bits.default")
def philox_bits(c: Call) -> Value:
    return c.emit(
        graph.Philox,
        c.state,
        base=c.base,
        numbers=c.numbers,
        strides=tuple(c.stride),
        threads=c.threads,
        vector=c.vector,
        result_types=c.result,
    )
