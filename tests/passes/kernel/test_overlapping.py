"""Which launches let the next one begin: few program instances, and those that take long enough."""

from __future__ import annotations

import pytest

import irc
from irc.dialects import kernel
from irc.ir.passes import PassContext, PassManager


def kernels(rows: int, programs: int, between: str = "", target: str = "sm_90") -> dict:
    """The kernels of two launches on rows of f32, of which the first has so many program instances,
    by name."""
    row = f"tensor<[{rows}] x f32, strides [1]>"
    facts = 'num_warps = 1, num_stages = 1, outputs = array<i64: 1>, symbols = [], target = "gpu"'
    functions = "".join(f"""
    kernel.func @{name}(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>) attributes {{
        grid = #sym<{programs if name == "k0" else 1}>, {facts}}} {{
      %p = kernel.program_id : index
      %v = kernel.load %x[%p] : f32
      kernel.store %v, %y[%p] : f32
      kernel.return }}""" for name in ("k0", "k1"))  # fmt: skip
    module = irc.parse(f"""
    func.func @main(%x: {row}) -> {row} attributes {{level = "loop"}} {{
      %a = host.launch %x {{callee = @k0}} : ({row}) -> {row}
      {between}
      %b = host.launch %a {{callee = @k1}} : ({row}) -> {row}
      return %b : {row} }}{functions}""")
    PassManager.parse("overlap-launches").run(module, PassContext(target=target))
    return {k.sym_name: k for k in module.walk() if isinstance(k, kernel.KernelFuncOp)}


@pytest.mark.parametrize(
    ("rows", "programs", "opens"),
    [
        (32, 1, True),
        (1000, 512, True),
        (1000, 513, False),
        # Two arrays of 4 bytes an element: 6144 bytes for each of 1000, and a few less.
        (768_000, 1000, True),
        (768_000, 1001, False),
    ],
)
def test_many_short_program_instances_let_nothing_begin(
    rows: int, programs: int, opens: bool
) -> None:
    found = kernels(rows, programs)
    assert found["k0"].opens is opens and not found["k0"].early
    assert found["k1"].early and not found["k1"].opens


def test_how_many_and_how_short_is_the_targets() -> None:
    for figure in ("opening_programs = 600", "opening_bytes = 10"):
        assert kernels(1000, 600, target=f"#irc.target<sm_90, {figure}>")["k0"].opens
    assert not kernels(1000, 600, target="#irc.target<sm_90, opening_bytes = 20>")["k0"].opens
