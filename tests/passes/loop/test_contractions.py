"""What is fused with contractions whose kernels multiply tiles, and what leaves them alone."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import irc
from irc.analysis.contraction import tiled
from irc.analysis.loop import computes_in
from irc.dialects import arith, graph, loop
from irc.ir.passes import PassContext, PassManager
from irc.ir.text.parser import parse_attribute
from irc.options.options import from_mapping
from irc.pipeline import stages
from irc.target.attribute import carried

OWN = {
    "max_autotune_gemm": True, "max_autotune_gemm_backends": "IRC",
    "max_autotune_conv_backends": "IRC", "max_autotune_budget": 0,
}  # fmt: skip


def fused(function, shapes, target="avx512", dtype=torch.float32):
    """The module of a function behind the fusion of loops, without a library's products."""
    torch.manual_seed(0)
    args = tuple(torch.randn(shape).to(dtype) for shape in shapes)
    module = irc.trace(function, args)
    for name, text in stages(target, from_mapping(OWN)).items():
        PassManager.parse(text, verify="each").run(module, PassContext(target=target))
        if name == "fuse-loops":
            return module
    raise AssertionError


def contraction_in(module):
    """The only one whose kernel multiplies tiles."""
    target = carried(module)
    (found,) = (c for c in (tiled(op, target) for op in module.walk()) if c)
    return found


def kernels(module):
    """What each kernel has, in order: `dot` for a contraction of tiles, `map`, or its combiner."""
    target = carried(module)

    def told(compute):
        outputs = [o.combiner or o.kind for o in compute.output_list]
        outputs = ["dot"] if tiled(compute, target) else outputs
        return "+".join(outputs)

    (function,) = module.block.ops
    top = (op for op in function.block.ops if isinstance(op, loop.ComputeOp | loop.GroupOp))
    return [" ".join(told(c) for c in computes_in(op)) for op in top]


def relu_bias(x, w, b, m):
    return torch.relu(x.mT @ w.mT + b) * m


def norm_after(a, b, r):
    return functional.layer_norm(a @ b + r, [48])


A, B = (64, 32), (32, 48)
PROGRAMS = {
    "prologue": (lambda a, b: torch.sin(a) @ b, [A, B], ["dot"]),
    "norm before": (
        lambda a, b: functional.layer_norm(a, [32]) @ b, [A, B], ["moments", "dot"],
    ),
    "epilogue": (relu_bias, [(32, 64), (48, 32), (48,), (48,)], ["dot map"]),
    "residual": (lambda a, b, r: (a @ b).relu() + r, [A, B, (64, 48)], ["dot map"]),
    "two sums": (lambda a, b, c, d: a @ b + c @ d, [A, B, A, B], ["dot", "dot map"]),
    "one factor for three": (
        lambda x, a, b, c: (x @ a, x @ b, x @ c), [A, B, B, B], ["dot", "dot", "dot"],
    ),
    "softmax of sums": (
        lambda a, b: torch.softmax(a @ b, -1), [A, B], ["dot", "max map+sum map"],
    ),
    "norm after": (norm_after, [A, B, (64, 48)], ["dot map", "moments map"]),
    "epilogue, not prologue": (
        lambda x, a, b: functional.gelu(x @ a) @ b, [A, (32, 96), (96, 32)], ["dot map", "dot"],
    ),
    "sum of sums": (lambda a, b: (a @ b).relu().sum(0), [A, B], ["dot map", "sum"]),
    "whole axes": (
        lambda a, b: (a @ b).view(4, 16, 6, 8).transpose(1, 2) * 2, [A, B], ["dot", "map"],
    ),
    "few sums": (lambda a, b: a @ b, [(2, 90000), (90000, 3)], ["sum", "sum"]),
    "few products": (lambda a, b: (a @ b).softmax(1), [(8, 8), (8, 8)], ["sum max map+sum map"]),
    "batched": (
        lambda q, k, s: (q @ k.mT * 0.125 + s).relu(), [(3, 16, 32), (3, 20, 32), (16, 20)],
        ["dot map"],
    ),
    "image": (
        lambda x, w, b: functional.conv2d(x, w, b, padding=1).relu(),
        [(2, 4, 9, 8), (6, 4, 3, 3), (6,)], ["dot map"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_a_cpu_have_one_contraction_and_what_follows_its_sums(name):
    function, shapes, expected = PROGRAMS[name]
    assert kernels(fused(function, shapes)) == expected


def test_kernels_of_a_gpu_add_sums_of_several_contractions():
    function, shapes, _ = PROGRAMS["two sums"]
    assert kernels(fused(function, shapes, "sm_90")) == ["dot dot map"]
    function, shapes, _ = PROGRAMS["one factor for three"]
    assert kernels(fused(function, shapes, "sm_90")) == ["dot"] * 3


def test_factors_stay_narrow_and_sums_are_rounded_last():
    function, shapes, _ = PROGRAMS["residual"]
    module = fused(function, shapes, dtype=torch.bfloat16)
    assert kernels(module) == ["dot map"]
    found = contraction_in(module)
    assert all(isinstance(s.value.defining_op, arith.ExtFOp) for s in (found.left, found.right))
    # The sum is rounded for the library's sake before relu and the addition; here once, at last.
    assert sum(isinstance(op, arith.TruncFOp) for op in module.walk()) == 1
    module = fused(lambda a, b: (a.bfloat16() @ b.bfloat16()).float(), [A, B])
    found = contraction_in(module)
    narrow = [s.value.defining_op.operands[0] for s in (found.left, found.right)]
    assert [str(value.type) for value in narrow] == ["bf16", "bf16"]


def test_a_costly_factor_that_many_tiles_read_is_computed_once():
    wide = fused(lambda a, b: torch.sin(a) @ b, [(256, 256), (256, 8192)])
    assert kernels(wide) == ["map", "dot"]
    narrow = fused(lambda a, b: torch.sin(a) @ b, [(256, 256), (256, 128)])
    assert kernels(narrow) == ["dot"]


def test_checks_of_indices_stay_beside_a_contraction():
    def function(table, index, b):
        return table[index.long()] @ b

    module = fused(function, [(50, 32), (64,), B])
    assert "dot" in kernels(module)


def test_entries_of_a_schedule_go_along_into_the_group():
    torch.manual_seed(0)
    args = (torch.randn(A), torch.randn(B))
    module = irc.trace(lambda a, b: (a @ b).relu(), args)
    for name, text in stages("avx512", from_mapping(OWN)).items():
        PassManager.parse(text).run(module, PassContext(target="avx512"))
        if name == "aten-to-graph":
            (product,) = (op for op in module.walk() if isinstance(op, graph.DotGeneral))
            entries = parse_attribute("#loop.schedule<cpu, lanes = 4>")
            product.attributes["schedule"] = entries
        if name == "fuse-loops":
            break
    assert kernels(module) == ["dot map"]
    found = contraction_in(module)
    assert found.compute.schedule is entries


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    """Through the whole pipeline, against eager mode in float64."""
    function, shapes, _ = PROGRAMS[name]
    torch.manual_seed(0)
    args = tuple(torch.randn(shape) for shape in shapes)
    compiled = irc.compile(function, args, options=OWN)
    exact = function(*(a.double() for a in args))
    results, wanted = compiled(*args), exact if isinstance(exact, tuple) else (exact,)
    for mine, other in zip(results if isinstance(results, tuple | list) else [results], wanted,
                           strict=True):  # fmt: skip
        torch.testing.assert_close(mine.double(), other, rtol=2e-5, atol=2e-4)


def two_branches(x, w, v, b):
    return torch.relu((x @ w.mT + b) + (x @ v.mT + b))


def stored_elements(module):
    """The elements of what kernels store, in order."""
    (function,) = module.block.ops
    tops = [op for op in function.block.ops if isinstance(op, loop.ComputeOp | loop.GroupOp)]
    return [str(result.type.element) for op in tops for result in op.results]


BRANCHES = [(64, 96), (80, 96), (80, 96), (80,)]


def test_of_two_contractions_that_meet_the_first_has_what_narrows_its_sums():
    """A kernel has tiles of one contraction, so the other one's sums are stored: rounded."""
    module = fused(two_branches, BRANCHES, dtype=torch.bfloat16)
    assert kernels(module) == ["dot map", "dot map"]
    assert stored_elements(module) == ["bf16", "bf16"]
    module = fused(two_branches, BRANCHES)
    assert kernels(module) == ["dot", "dot map"] and stored_elements(module) == ["f32", "f32"]


def test_maps_over_sums_of_different_contractions_are_not_merged():
    def shared(x, w, v, b):
        first = x @ w.mT + b
        return first, torch.relu(first + x @ v.mT)

    module = fused(shared, BRANCHES)
    assert kernels(module) == ["dot map", "dot map"]


def test_what_a_pooling_gives_is_stored_as_contractions_read_it():
    def pooled(x, w):
        rows = functional.max_pool2d(x, 3, 2, 1).flatten(2)[0].mT
        return torch.relu(rows @ w.mT), torch.relu(rows @ w.mT + 1)

    module = fused(pooled, [(1, 64, 16, 16), (80, 64)], dtype=torch.bfloat16)
    assert set(stored_elements(module)) == {"bf16"}
