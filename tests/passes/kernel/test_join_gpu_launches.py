"""Launches of a GPU that need nothing of each other become one, with the same results."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import host, kernel
from irc.interp.core import run
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import stages
from tests.passes.kernel.test_launches_that_join import A, B, kernel_text, module_of

FORMED = [text for name, text in stages("sm_90").items() if name != "kernel-to-host"]
BEFORE = ",".join(FORMED).replace("join-launches,", "")


def formed(function: Any, args: list[Any]) -> Any:
    """The program with its kernels for sm_90."""
    module = irc.trace(function, args)
    PassManager.parse(BEFORE).run(module, PassContext(target="sm_90"))
    return module


def joined(module: Any, options: str = "") -> int:
    """Run the pass; how many launches went."""
    context = PassContext(target="sm_90")
    PassManager.parse(f"join-launches{options}", verify="each").run(module, context)
    return context.statistics["join-launches", "joined"]


def kernels(module: Any) -> dict[str, kernel.KernelFuncOp]:
    """The kernels that are launched, by name."""
    used = {op.callee for op in module.walk() if isinstance(op, host.LaunchOp)}
    every = {k.sym_name: k for k in module.walk() if isinstance(k, kernel.KernelFuncOp)}
    assert used == set(every)
    return every


def apart(x: Any, y: Any, z: Any) -> Any:
    """A map, rows that are stored, and sums, of an input each."""
    return x.exp(), torch.softmax(y, 1), z.sum(1)


SHAPES = (17, 50), (40, 33), (90, 12)
INPUTS = [torch.randn(s, generator=torch.Generator().manual_seed(0)) for s in SHAPES]


def test_one_launch_with_the_same_values() -> None:
    module = formed(apart, INPUTS)
    before = kernels(module)
    assert len(before) == 3 and joined(module) == 2
    ((name, only),) = kernels(module).items()
    assert only.is_gpu and only.grid == sum(k.grid for k in before.values())
    assert int(only.num_warps) == max(int(k.num_warps) for k in before.values())
    for ours, eager in zip(run(module, *INPUTS), apart(*INPUTS), strict=True):
        torch.testing.assert_close(ours, eager)
    assert name.count("_") == 2


def test_triton_runs_each_part_in_instances_of_its_own() -> None:
    module = formed(apart, INPUTS)
    joined(module)
    ((_, only),) = kernels(module).items()
    (launch,) = [op for op in module.walk() if isinstance(op, host.LaunchOp)]
    arguments = module.body.block.first.block.arguments
    given = [INPUTS[list(arguments).index(value)] for value in launch.inputs]
    outputs = [torch.full(r.type.shape, 7.0) for r in launch.results]
    job = runtime.Job.of(only, emit_kernel(only), [*given, *outputs], {})
    (after,) = runtime.run_interpreted([job])
    returned = list(module.body.block.first.block.last.operands)
    places = [list(launch.results).index(value) for value in returned]
    for place, eager in zip(places, apart(*INPUTS), strict=True):
        torch.testing.assert_close(after[len(given) + place], eager)


def test_an_update_goes_along_where_nothing_else_reads_the_argument() -> None:
    def step(cache: Any, other: Any, place: Any, x: Any) -> Any:
        cache.index_copy_(0, place, x.exp())
        other.index_copy_(0, place, x.tanh())
        return x.cos()

    def seen(cache: Any, other: Any, place: Any, x: Any) -> Any:
        before = cache.sum(1)
        return step(cache, other, place, x), before

    args = [torch.zeros(9, 33), torch.zeros(9, 33), torch.tensor([3, 5]), torch.randn(2, 33)]
    for function, most in ((step, 1), (seen, 2)):
        module = formed(function, args)
        assert joined(module)
        PassManager.parse("bufferize,plan-memory", verify="each").run(module)
        used = [op.callee for op in module.walk() if isinstance(op, host.LaunchOp)]
        assert sum("index_copy" not in name for name in used) >= most
        mine, eager = ([t.clone() for t in args] for _ in range(2))
        ours, theirs = irc.run(module, *mine), function(*eager)
        theirs = list(theirs) if isinstance(theirs, tuple) else [theirs]
        for a, b in zip([*ours, *mine], [*theirs, *eager], strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("most, expected", [(2 * 32 * 4, 1), (2 * 32 * 4 - 1, 0)])
def test_small_launches_are_joined(most: int, expected: int) -> None:
    module = module_of([A, B], [gpu_text("k0")])
    assert joined(module, f"{{gpu_bytes={most}}}") == expected


@pytest.mark.parametrize(
    "one, other, expected",
    [("", "", 1), ("num_warps = 1 : i64,", "num_warps = 4 : i64,", 1),
     ("num_warps = 1 : i64,", "num_warps = 8 : i64,", 0),
     ("num_stages = 1 : i64,", "num_stages = 3 : i64,", 0),
     ("COMBINES grid = 128", "num_warps = 2 : i64,", 1),
     ("COMBINES grid = 129", "num_warps = 2 : i64,", 0),
     ("COMBINES grid = 129", "num_warps = 1 : i64,", 1)],
)  # fmt: skip
def test_kernels_that_are_alike_are_joined(one: str, other: str, expected: int) -> None:
    texts = gpu_text("k0", one), gpu_text("k1", other)
    assert joined(module_of([A, B.replace("@k0", "@k1")], texts)) == expected


def test_a_tiny_launch_goes_along_with_a_large_map() -> None:
    large, other, tiny = torch.randn(2000, 1000), torch.randn(1000, 2000), torch.randn(64, 64)

    def launches(function: Any, *args: Any) -> int:
        module = formed(function, list(args))
        return len(kernels(module)) - joined(module)

    assert launches(lambda x, y: (x.exp(), y.sin()), large, tiny) == 1
    assert launches(lambda x, y: (x.exp(), y.sin()), large, other) == 2
    assert launches(lambda x, y: (x.sum(1), y.sin()), large, tiny) == 2
    assert launches(lambda x, y: (x.exp(), y.sin()), large, torch.randn(128, 256)) == 2


def test_a_gpus_kernel_and_a_cpus_stay_apart() -> None:
    texts = gpu_text("k0"), kernel_text("k1")
    assert joined(module_of([A, B.replace("@k0", "@k1")], texts)) == 0


def test_symbolic_grids_stay_apart() -> None:
    text = gpu_text("k0").replace("#sym<32>", "#sym<s0>").replace("[],", '["s0"],')
    text = text.replace("!kernel.ptr<f32>) attributes", "!kernel.ptr<f32>, %n: index) attributes")
    assert joined(module_of([A, B], [text])) == 0


def gpu_text(name: str, facts: str = "") -> str:
    """A kernel that copies 32 elements."""
    words, sums = facts.partition("COMBINES grid = ")[2], ""
    if words:
        facts = ""
        sums = """%z = kernel.iota : vector<32xindex>
      %s = kernel.reduce %z {combiner = "sum", dim = 0 : i64} : (vector<32xindex>) -> index"""
    if "num_warps" not in facts:
        facts += "num_warps = 1 : i64,"
    if "num_stages" not in facts:
        facts += "num_stages = 1 : i64,"
    return f"""
    kernel.func @{name}(%p0: !kernel.ptr<f32>, %p1: !kernel.ptr<f32>) attributes {{
        grid = #sym<{words or 32}>, {facts} index_bits = 32 : i64,
        outputs = array<i64: 1>, symbols = [], target = "gpu"}} {{
      {sums}
      %i = kernel.program_id : index
      %v = kernel.load %p0[%i] : f32
      kernel.store %v, %p1[%i] : f32
      kernel.return }}"""
