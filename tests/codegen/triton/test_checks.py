"""Checks of truth values by flags (`kernel.check`): in irc's interpreter, in Triton's, and compiled
for sm_90."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import kernel
from irc.interp.core import Frame
from irc.interp.kernel import launch
from irc.ir.verifier import verify

#: What is checked: whether 16 numbers are positive, those from %n on left out where it is masked.
BODIES = {
    "scalar": """
      %v = kernel.load %x[%p] : i64
      %c = arith.cmpi sgt, %v, %zero : i64
      kernel.check %c, %flag : (i1, !kernel.ptr<i1>)""",
    "masked scalar": """
      %in = arith.cmpi slt, %p, %twelve : index
      %v = kernel.load %x[%p] : i64
      %c = arith.cmpi sgt, %v, %zero : i64
      kernel.check %c, %flag, %in : (i1, !kernel.ptr<i1>, i1)""",
    "tile": """
      %i = kernel.iota : vector<16xindex>
      %v = kernel.gather %x[%i] : vector<16xi64>
      %z = kernel.splat %zero : (i64) -> vector<16xi64>
      %c = arith.cmpi sgt, %v, %z : vector<16xi64>
      kernel.check %c, %flag : (vector<16xi1>, !kernel.ptr<i1>)""",
    "masked tile": """
      %i = kernel.iota : vector<16xindex>
      %t = kernel.splat %twelve : (index) -> vector<16xindex>
      %in = arith.cmpi slt, %i, %t : vector<16xindex>
      %v = kernel.gather %x[%i] : vector<16xi64>
      %z = kernel.splat %zero : (i64) -> vector<16xi64>
      %c = arith.cmpi sgt, %v, %z : vector<16xi64>
      kernel.check %c, %flag, %in : (vector<16xi1>, !kernel.ptr<i1>, vector<16xi1>)""",
    "rows": """
      %i = kernel.iota {dim = 0 : i64} : vector<4x4xindex>
      %j = kernel.iota {dim = 1 : i64} : vector<4x4xindex>
      %four = kernel.splat %size : (index) -> vector<4x4xindex>
      %r = arith.muli %i, %four : vector<4x4xindex>
      %at = arith.addi %r, %j : vector<4x4xindex>
      %v = kernel.gather %x[%at] : vector<4x4xi64>
      %z = kernel.splat %zero : (i64) -> vector<4x4xi64>
      %c = arith.cmpi sgt, %v, %z : vector<4x4xi64>
      kernel.check %c, %flag : (vector<4x4xi1>, !kernel.ptr<i1>)""",
}


def parsed(name: str) -> kernel.KernelFuncOp:
    grid = 16 if "scalar" in name else 1
    module = irc.parse(f"""
    kernel.func @k(%x: !kernel.ptr<i64>, %flag: !kernel.ptr<i1>) attributes {{grid = #sym<{grid}>,
        num_warps = 1 : i64, num_stages = 1 : i64, outputs = array<i64: 1>, symbols = [],
        target = "gpu"}} {{
      %p = kernel.program_id : index
      %zero = arith.constant 0 : i64
      %twelve = arith.constant 12 : index
      %size = arith.constant 4 : index
      {BODIES[name]}
      kernel.return
    }}""")
    verify(module)
    func = module.lookup("k")
    assert isinstance(func, kernel.KernelFuncOp)
    return func


def cases() -> list[tuple[str, int | None, bool]]:
    """A kernel, which number is negative, and what the flag says then."""
    return [
        (name, wrong, wrong is None or (wrong >= 12 and "masked" in name))
        for name in BODIES for wrong in (None, 0, 5, 11, 12, 15)
    ]  # fmt: skip


def numbers(wrong: int | None) -> torch.Tensor:
    x = torch.arange(1, 17)
    if wrong is not None:
        x[wrong] = -7
    return x


@pytest.fixture(scope="module")
def in_triton() -> list[list[torch.Tensor]]:
    jobs = []
    for name, wrong, _ in cases():
        func = parsed(name)
        flag = torch.ones((), dtype=torch.bool)
        jobs.append(runtime.Job.of(func, emit_kernel(func), [numbers(wrong), flag], {}))
    return runtime.run_interpreted(jobs)


@pytest.mark.parametrize("number", range(len(cases())))
def test_a_flag_is_cleared_by_what_is_false(number: int, in_triton) -> None:
    name, wrong, holds = cases()[number]
    memory = torch.ones(3, dtype=torch.bool)
    launch(Frame(None), parsed(name), [numbers(wrong), memory[1]])
    assert memory.tolist() == [True, holds, True]
    assert bool(in_triton[number][-1]) == holds


@pytest.mark.parametrize("name", ["scalar", "masked tile", "rows"])
def test_what_holds_is_not_stored(name: str) -> None:
    func = parsed(name)
    signature, options = runtime.signature_of(func), runtime.launch_options(func)
    ptx = runtime.compile_for(emit_kernel(func), "k", signature, **options)["ptx"]
    stores = [line.strip() for line in ptx.splitlines() if "st.global" in line]
    assert stores and all(line.startswith("@%p") and ".b8" in line for line in stores), stores
