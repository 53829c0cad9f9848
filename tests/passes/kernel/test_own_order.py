"""The order of the own axes of a gpu's rows: which one is chosen, values in any, refusals."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

import irc
from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.passes.kernel.gpu.form import form_gpu_kernel
from irc.passes.kernel.gpu.schedule import changed, default_schedule
from tests.passes.loop.texts import parsed, ran

GROUP = """%y = loop.group (i0: 40) {{
  %m, %s = loop.compute par(i0: 40) red(i1: 5, i2: 7, i3: 9) -> reduce({combiner}, f32){more} {{
    %a = loop.read %x[{place}] : f32
    loop.yield %a{again} }} : f32[40], f32[40]
  %q = loop.compute par(i0: 40, i1: 5, i2: 7, i3: 9) -> map {{
    %a = loop.read %x[{place}] : f32 %b = loop.read %m[i0] : f32 %c = loop.read %s[i0] : f32
    %d = arith.subf %a, %b : f32 %e = arith.mulf %d, %c : f32
    loop.yield %e }} : f32[40, 5, 7, 9]
  loop.yield %q }} : f32[40, 5, 7, 9]"""


def rows(place: str, shape: str, combiner: str = "moments") -> Any:
    more, again = ("", "") if combiner == "moments" else (", reduce(max, f32)", ", %a")
    body = GROUP.format(place=place, combiner=combiner, more=more, again=again)
    return parsed(f"%x: f32[{shape}]", body, "%y: f32[40, 5, 7, 9]")


def group_of(module: Any) -> Any:
    (group,) = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    return group


def order_of(module: Any) -> Any:
    return list(default_schedule(group_of(module)).entries.as_dict()["own_order"].values)


def test_rows_in_one_piece_keep_the_axes_as_they_stand() -> None:
    assert order_of(rows("i0, i1, i2, i3", "40, 5, 7, 9")) == [0, 1, 2]


def test_the_order_that_touches_the_fewest_sectors() -> None:
    """All is read and stored with the first axis innermost."""
    body = GROUP.format(place="i0, i2, i3, i1", combiner="moments", more="", again="")
    last = "tensor<[40, 5, 7, 9] x f32, strides [315, 1, 45, 5]>"
    body = body.replace("f32[40, 5, 7, 9]", last)
    module = parsed("%x: f32[40, 7, 9, 5]", body)
    assert order_of(module) == [1, 2, 0]


@pytest.mark.parametrize("combiner", ["moments", "sum"])
@pytest.mark.parametrize("order", itertools.permutations(range(3)), ids=str)
def test_values_in_any_order(order: tuple[int, ...], combiner: str) -> None:
    module = rows("i0, i2, i3, i1", "40, 7, 9, 5", combiner)
    torch.manual_seed(0)
    x = torch.randn(40, 7, 9, 5)
    (expected,) = irc.run(module, x)
    group = group_of(module)
    group.attributes["schedule"] = changed(
        default_schedule(group), own_order=A.DenseIntsAttr(order))
    ran(module, "form-kernels", "sm_90")
    (result,) = irc.run(module, x)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("order", [(0, 1), (0, 1, 3), (2, 1, 0, 3)], ids=str)
def test_what_is_no_order_of_the_axes_is_refused(order: tuple[int, ...]) -> None:
    group = group_of(rows("i0, i2, i3, i1", "40, 7, 9, 5"))
    schedule = changed(default_schedule(group), own_order=A.DenseIntsAttr(order))
    with pytest.raises(InvalidIR, match="own axes can't have the order"):
        form_gpu_kernel(group, schedule)


def test_places_of_extremes_keep_their_order() -> None:
    """The first of several that are alike is the first as the axes stand."""
    module = parsed("%x: f32[40, 9, 5]", """%y = loop.compute par(i0: 40) red(i1: 5, i2: 9)
      -> reduce(argmax, f32) { %a = loop.read %x[i0, i2, i1] : f32 loop.yield %a } : i64[40]""",
        "%y: i64[40]")  # fmt: skip
    (compute,) = [op for op in module.walk() if isinstance(op, loop.ComputeOp)]
    schedule = default_schedule(compute)
    assert "own_order" not in schedule.entries.as_dict()
    turned = form_gpu_kernel(compute, changed(schedule, own_order=A.DenseIntsAttr((1, 0))))
    assert str(turned) == str(form_gpu_kernel(compute, schedule)), "it has no order to choose"
