"""Under deterministic algorithms a GPU's kernels don't add in the order of their threads."""

from __future__ import annotations

import attrs
import pytest

import irc
from irc.dialects import graph
from irc.ir.passes import PassManager
from irc.target import Target
from irc.target.attribute import carry

OPERATORS = {
    "scatter_add.default": ("dim = 0 : i64, index = #aten.operand<1>, src = #aten.operand<2>", 2),
    "scatter.src": ("dim = 0 : i64, index = #aten.operand<1>, src = #aten.operand<2>", 2),
    "scatter_reduce.two": ('dim = 0 : i64, index = #aten.operand<1>, src = #aten.operand<2>, '
                           'reduce = "prod"', 2),
    "index_add.default": ("dim = 0 : i64, index = #aten.operand<1>, source = #aten.operand<2>", 1),
    "index_put.default": ("indices = [#aten.operand<1>], values = #aten.operand<2>, "
                          "accumulate = true", 1),
}  # fmt: skip


def converted(
    name: str, element: str = "f32", device: str = "cuda:0", deterministic: bool = True,
    given: str = "", target: str = "sm_90",
) -> tuple[list[str], list[str]]:  # fmt: skip
    """The operations that write at indices, and what is left to ATen."""
    arguments, rank = OPERATORS[name]
    arguments = given or arguments
    where = "" if device == "cpu" else f', "{device}"'
    sizes, strides = ("3, 4", "4, 1") if rank == 2 else ("12", "1")
    x = f"tensor<[{sizes}] x {element}, strides [{strides}]{where}>"
    i = f"tensor<[{sizes}] x i64, strides [{strides}]{where}>"
    text = f"""
    func.func @main(%x: {x}, %i: {i}, %v: {x}) -> {x} attributes {{level = "aten"}} {{
      %y = aten.{name} %x, %i, %v {{arguments = {{self = #aten.operand<0>, {arguments}}}}} :
        ({x}, {i}, {x}) -> {x}
      return %y : {x}
    }}"""
    module = irc.parse(text)
    carry(module, attrs.evolve(Target.named(target), deterministic=deterministic))
    PassManager.parse("convert-aten-to-graph", verify="each").run(module)
    ops = list(module.walk())
    return (
        [op.name for op in ops if isinstance(op, graph.Put | graph.Scatter)],
        [op.callee for op in ops if isinstance(op, graph.CallAten)],
    )


@pytest.mark.parametrize("name", OPERATORS)
def test_sums_and_choices_by_index_are_left_to_aten(name: str) -> None:
    assert converted(name) == ([], [f"aten.{name}"])
    kernels, calls = converted(name, deterministic=False)
    assert kernels and not calls


def test_what_has_no_order_stays_a_kernel() -> None:
    """Sums of integers, largest elements; and a CPU's kernels write in order."""
    largest = 'dim = 0 : i64, index = #aten.operand<1>, src = #aten.operand<2>, reduce = "amax"'
    assert converted("scatter_add.default", "i64")[1] == []
    assert converted("scatter_reduce.two", given=largest)[1] == []
    assert converted("scatter_add.default", device="cpu", target="avx2")[1] == []
