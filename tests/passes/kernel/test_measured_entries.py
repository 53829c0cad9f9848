"""Entries of a schedule that were measured elsewhere, where they fit and where they don't."""

from __future__ import annotations

import attrs
import pytest
import torch

import irc
from irc.dialects import loop
from irc.ir.passes import PassContext, PassManager
from irc.target import Target
from irc.target.attribute import carry
from irc.target.cpu import TargetFeatures
from tests.passes.kernel.test_contractions import product

FITS = ("tile_rows = 3 : i64, tile_vectors = 1 : i64",)
MISFITS = (
    ("pack_left = true, pack_ahead = 16 : i64, lanes = 8 : i64", {}),
    ("pack_right = false, tile_vectors = 2 : i64", {"across": ["right"]}),
)


def scheduled(entries: str, **how: list[str]) -> tuple[irc.Operation, PassContext]:
    """A product with these entries, scheduled."""
    module = irc.parse(product(70, 50, 33, entries, **how))
    carry(module, Target.named("avx2"))
    context = PassContext()
    PassManager.parse("schedule", verify="each").run(module, context)
    return module, context


def compute_of(module: irc.Operation) -> loop.ComputeOp:
    (compute,) = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    return compute


def test_entries_that_fit_stay() -> None:
    (entries,) = FITS
    module, context = scheduled(f"{entries}, measured = true")
    kept = compute_of(module).schedule.entries
    assert [kept.get(k).value for k in ("tile_rows", "tile_vectors")] == [3, 1]
    assert "measured" not in kept.as_dict()
    assert not [r for r in context.remarks if "measured" in r.message]


@pytest.mark.parametrize(("entries", "how"), MISFITS, ids=[m[0] for m in MISFITS])
def test_entries_that_do_not_fit_give_way_to_the_model(
    entries: str, how: dict[str, list[str]]
) -> None:
    module, context = scheduled(f"{entries}, measured = true", **how)
    (remark,) = (r.message for r in context.remarks if "measured" in r.message)
    assert remark.startswith("isn't scheduled as it was measured: ")
    whole, _ = scheduled('products = "lanes"', **how)
    assert compute_of(module).schedule == compute_of(whole).schedule
    PassManager.parse("form-kernels,bufferize,plan-memory").run(module)
    sizes = ((50, 70) if "left" in how.get("across", ()) else (70, 50),
             (33, 50) if "right" in how.get("across", ()) else (50, 33))  # fmt: skip
    a, b = (torch.randn(size) for size in sizes)
    left, right = (a.t() if sizes[0] == (50, 70) else a), (b.t() if sizes[1] == (33, 50) else b)
    (result,) = irc.build(module)(a, b)
    torch.testing.assert_close(result, left @ right)


def test_entries_that_do_not_fit_a_symbolic_size_give_way_too() -> None:
    text = product("s0", 50, 33, "pack_right = false, measured = true", across=["right"],
                   left=[50, 1], result=[33, 1])  # fmt: skip
    a = 'tensor<["s0", 50] x f32, strides [50, 1]>'.replace('"', "")
    bind = f'  %s = sym.bind_size %a {{dim = 0 : i64, symbol = "s0"}} : ({a}) -> index\n'
    module = irc.parse(text.replace("  %y = loop", f"{bind}  %y = loop").replace("'s0'", "s0"))
    carry(module, Target.named("avx2"))
    context = PassContext()
    PassManager.parse("schedule", verify="each").run(module, context)
    assert [r for r in context.remarks if "isn't scheduled as it was measured" in r.message]
    PassManager.parse("form-kernels,bufferize,plan-memory").run(module)
    for rows in (1, 7, 200):
        x, w = torch.randn(rows, 50), torch.randn(33, 50)
        torch.testing.assert_close(irc.build(module)(x, w)[0], x @ w.t())


@pytest.mark.parametrize(("entries", "how"), MISFITS, ids=[m[0] for m in MISFITS])
def test_entries_that_somebody_wrote_are_an_error(entries: str, how: dict[str, list[str]]) -> None:
    with pytest.raises(irc.InvalidIR):
        module, _ = scheduled(entries, **how)
        PassManager.parse("form-kernels").run(module)


def test_parts_stay_where_their_blocks_do_not_fit() -> None:
    """Products of parts of bf16 are other numbers than those of f32."""
    cpu = TargetFeatures.avx512()
    cpu = attrs.evolve(cpu, sets=(*cpu.sets, "amx-bf16", "amx-tile"))
    schedules = []
    for entries in ("pack_right = false, tile_vectors = 2 : i64, measured = true", ""):
        given = ", ".join(['products = "bf16x6"', *filter(None, [entries])])
        module = irc.parse(product(256, 64, 96, given))
        carry(module, Target(cpu))
        PassManager.parse("schedule", verify="each").run(module)
        schedules.append(compute_of(module).schedule)
        PassManager.parse("form-kernels", verify="each").run(module)
    assert schedules[0] == schedules[1]
    assert schedules[0].entries.get("products").value == "bf16x6"


def test_a_conv_net_that_is_measured_compiles() -> None:
    """Images of several convolutions lie with their channels innermost between them, and each was
    measured by itself."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(16, 32, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 24, 1, bias=False), torch.nn.ReLU(),
        torch.nn.Conv2d(24, 32, 3, 1, 1), torch.nn.AvgPool2d(2), torch.nn.Flatten(1),
        torch.nn.Linear(32 * 25, 10),
    ).eval()  # fmt: skip
    x = torch.randn(2, 16, 20, 20)
    options = {"max_autotune": True, "max_autotune_conv_backends": "CPP",
               "max_autotune_budget": 8}  # fmt: skip
    with torch.no_grad():
        result = torch.compile(net, backend="irc", options=options)(x)
        torch.testing.assert_close(result, net(x), rtol=1e-4, atol=1e-4)
