"""Launches of a GPU that need nothing of each other become one, with the same results."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

import irc
from irc.analysis.launches import launch_bytes
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import host, kernel
from irc.interp.core import run, torch_dtype
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


def test_few_program_instances_begin_before_many() -> None:
    """A check of places by one begins with a table's zeros, not behind the last of them."""
    def gradient(grad: Any, places: Any) -> Any:
        return torch.ops.aten.embedding_dense_backward(grad, places, 3000, -1, False)

    args = [torch.randn(500, 64), torch.randint(0, 3000, (500,))]
    module = formed(gradient, args)
    assert joined(module) == 1
    (only,) = [k for k in kernels(module).values() if "_" in k.sym_name]
    (choice,) = [op for op in only.block.ops if isinstance(op, kernel.IfOp)]
    names = [[op.name for op in region.blocks[0].ops] for region in choice.regions]
    assert "kernel.reduce" in names[0] and "kernel.reduce" not in names[1]
    torch.testing.assert_close(run(module, *args)[0], gradient(*args))


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
     ("num_warps = 1 : i64,", "num_warps = 8 : i64,", 1),
     ("MANY", "num_warps = 4 : i64,", 1), ("MANY", "num_warps = 8 : i64,", 0),
     ("COMBINES grid = 4", "num_warps = 4 : i64,", 1),
     ("COMBINES grid = 4", "num_warps = 8 : i64,", 0),
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


def test_a_tiny_launch_goes_along_with_larger_tiles() -> None:
    """A table's zeros have tiles of more warps than a check of places, which gets them, too."""
    grad, places = torch.randn(4096, 256), torch.randint(0, 20000, (4096,))
    module = formed(
        lambda g, i: torch.ops.aten.embedding_dense_backward(g, i, 20000, -1, False),
        [grad, places],
    )
    assert joined(module) == 1
    (both,) = [k for k in kernels(module).values() if "_" in k.sym_name]
    (sums,) = [k for k in kernels(module).values() if "_" not in k.sym_name]
    # What is added to rows is read along them; a byte for each row that says where isn't.
    assert (both.num_warps, sums.num_warps) == (8, 2)


def decoding(token: Any, place: Any, table: Any, weight: Any, turn: Any) -> Any:
    """A token's row of a table and its norm, and rows of a smaller table by another index."""
    x = functional.embedding(token, table)
    return x, functional.rms_norm(x, x.shape[-1:], weight), turn[place]


def decoded() -> list[torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    table, turn = (torch.randn(s, generator=random).bfloat16() for s in ((40_000, 200), (256, 65)))
    return [torch.tensor([[39_999]]), torch.tensor([-7]), table, table[7] + 1, turn]


def test_what_is_looked_up_in_a_large_table_is_little() -> None:
    args = decoded()
    module = formed(decoding, args)
    before = kernels(module)
    assert len(before) == 2 and {int(k.num_warps) for k in before.values()} > {1}
    for launch in [op for op in module.walk() if isinstance(op, host.LaunchOp)]:
        assert launch_bytes(launch, before[launch.callee]) < 4000
    assert joined(module) == 1
    ((_, only),) = kernels(module).items()
    for ours, eager in zip(run(module, *args), decoding(*args), strict=True):
        torch.testing.assert_close(ours, eager)
    (launch,) = [op for op in module.walk() if isinstance(op, host.LaunchOp)]
    assert launch.attributes.get("checked") is None
    arguments = list(module.body.block.first.block.arguments)
    given = [args[arguments.index(value)] for value in launch.inputs]
    outputs = [torch.zeros(r.type.shape, dtype=torch_dtype(r.type.element))
               for r in launch.results]  # fmt: skip
    job = runtime.Job.of(only, emit_kernel(only), [*given, *outputs], {})
    (after,) = runtime.run_interpreted([job])
    values = [t for t in after[len(given) :] if t.dtype is torch.bfloat16]
    expected = [t for t in decoding(*args)]
    for eager in expected:
        assert any(t.shape == eager.shape and torch.allclose(t.float(), eager.float(), 1e-2, 1e-2)
                   for t in values)  # fmt: skip


def test_an_index_that_is_out_of_bounds_is_told_in_the_models_order() -> None:
    args = decoded()
    for token, place, message in ((40_000, 0, "size 40000"), (0, 256, "size 256"),
                                  (-1, 999, "size 40000")):  # fmt: skip
        args[0][0, 0], args[1][0] = token, place
        module = formed(decoding, args)
        assert joined(module) == 1
        with pytest.raises(IndexError, match=message):
            run(module, *args)


def test_an_update_of_an_argument_stays_apart_from_checks() -> None:
    def step(cache: Any, x: Any, place: Any, turn: Any) -> Any:
        cache.copy_(x.exp())
        return turn[place]

    def apart_from_it(cache: Any, x: Any, place: Any, turn: Any) -> Any:
        cache.copy_(x.exp())
        return turn + 1

    args = [torch.zeros(9, 33), torch.randn(9, 33), torch.tensor([5]), torch.randn(256, 65)]
    assert joined(formed(apart_from_it, args)) == 1
    module = formed(step, args)
    assert joined(module) == 0
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    assert not [op for op in module.walk() if isinstance(op, host.HostCopyOp)]


def test_bytes_of_launches() -> None:
    """All of an array, but no more than the kernel's program instances read; written ones whole."""
    whole = 2 * 32 * 4
    for text, expected in (
        (gpu_text("k0"), whole),
        (gpu_text("k0").replace("#sym<32>", "#sym<5>"), 5 * 4 + 32 * 4),
        (gpu_text("k0").replace("#sym<32>", "#sym<99>"), whole),
        (gpu_text("k0", looped="3"), 32 * 4 + 32 * 4),
        (gpu_text("k0", looped="3").replace("#sym<32>", "#sym<5>"), 15 * 4 + 32 * 4),
        (gpu_text("k0", looped="0").replace("#sym<32>", "#sym<5>"), 32 * 4),
        (gpu_text("k0", looped="%i").replace("#sym<32>", "#sym<5>"), whole),
        (kernel_text("k0").replace("#sym<2>", "#sym<1>"), whole),
    ):
        module = module_of([A], [text])
        (launch,) = [op for op in module.walk() if isinstance(op, host.LaunchOp)]
        (callee,) = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
        assert launch_bytes(launch, callee) == expected


def test_a_gpus_kernel_and_a_cpus_stay_apart() -> None:
    texts = gpu_text("k0"), kernel_text("k1")
    assert joined(module_of([A, B.replace("@k0", "@k1")], texts)) == 0


def test_symbolic_grids_stay_apart() -> None:
    text = gpu_text("k0").replace("#sym<32>", "#sym<s0>").replace("[],", '["s0"],')
    text = text.replace("!kernel.ptr<f32>) attributes", "!kernel.ptr<f32>, %n: index) attributes")
    assert joined(module_of([A, B], [text])) == 0


def gpu_text(name: str, facts: str = "", looped: str = "") -> str:
    """A kernel that copies 32 elements, reading each so often."""
    read = "%v = kernel.load %p0[%i] : f32"
    if looped:
        end = looped if looped == "%i" else "%end"
        bound = "" if looped == "%i" else f"%end = arith.constant {looped} : index"
        read = f"""{bound}
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %f = arith.constant 0.0 : f32
      %v = kernel.for %j = %zero to {end} step %one iter_args(%a = %f) -> (f32) {{
        %w = kernel.load %p0[%i] : f32
        kernel.yield %w : f32 }}"""
    words, sums = facts.partition("COMBINES grid = ")[2], ""
    if facts == "MANY":
        words, facts = "1000", ""
    elif words:
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
      {read}
      kernel.store %v, %p1[%i] : f32
      kernel.return }}"""
