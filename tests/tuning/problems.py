"""Small problems for the tests of tuning, for this machine."""

from __future__ import annotations

from irc.target import Target
from irc.tuning import Candidate, Problem

REST = "form-kernels,join-launches,bufferize,plan-memory"
ENTRIES = (
    "block = 0 : i64, collapse = [], copies = 1 : i64, lanes = 8 : i64, order = [], outer = [], "
    'spans = 5 : i64, tail = "mask", tile_axis = "", vector_axis = "i0"'
)


def squares(name: str = "x", size: int = 256, target: Target | None = None) -> Problem:
    """A vector's squares, with a complete schedule."""
    type_ = f"tensor<[{size}] x f32, strides [1]>"
    text = f"""
builtin.module attributes {{irc.target = {target or Target.host()}}} {{
  func.func @main(%{name}: {type_}) -> {type_} attributes {{level = "loop"}} {{
    %y = loop.compute par(i0: {size}) -> map schedule #loop.schedule<cpu, {ENTRIES}> {{
      %a = loop.read %{name}[i0] : f32
      %b = arith.mulf %a, %a : f32
      loop.yield %b
    }} : {type_}
    return %y : {type_}
  }}
}}
"""
    return Problem(text, REST, f"squares {size}")


def lanes(count: int) -> Candidate:
    """Vectors of so many elements."""
    return Candidate("irc", f"#loop.schedule<cpu, lanes = {count} : i64>")


#: Nothing is a schedule's of a GPU here.
FAILS = Candidate("irc", "#loop.schedule<gpu, num_warps = 4 : i64>")
CHOICES = [Candidate(), lanes(4), lanes(16)]
