"""Elements that lie a few others apart, or backwards, are chosen from whole vectors (`strided`,
`kernel.load_strided`)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from irc.dialects import kernel
from irc.ir import verify
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from irc.pipeline import stages
from irc.target import Target
from irc.target.attribute import carry

ELEMENTS = {
    "f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16,
    "i8": torch.int8, "i64": torch.int64, "i1": torch.bool,
}  # fmt: skip


def program(stride: int, count: int, element: str = "f32", masked: bool = False) -> str:
    """Elements of a line, and the same under a condition that some rows have."""
    size, start = (count - 1) * abs(stride) + 1, 0 if stride > 0 else (count - 1) * -stride
    x = f"tensor<[3, {size}] x {element}, strides [{size}, 1]>"
    y = f"tensor<[3, {count}] x {element}, strides [{count}, 1]>"
    zero = {"i1": "false", "f32": "0.0 : f32", "f64": "0.0 : f64", "bf16": "0.0 : bf16",
            "f16": "0.0 : f16"}.get(element, f"0 : {element}")  # fmt: skip
    place = f"%x[r, c*{stride} + {start}]"
    read = f"%v = loop.read {place} : {element}"
    if masked:
        read = f"""%i = loop.index {{expression = #sym<r>}} : index
        %one = arith.constant 1 : index
        %m = arith.cmpi ne, %i, %one : index
        %z = arith.constant {zero}
        %v = loop.read {place} (where %m else %z) : {element}"""
    return f"""func.func @main(%x: {x}) -> {y} attributes {{level = "loop"}} {{
      %y = loop.compute par(r: 3, c: {count}) -> map {{
        {read}
        loop.yield %v }} : {y}
      return %y : {y} }}"""


def formed(text: str, target: str = "avx512") -> Any:
    """The program with its kernel."""
    module = irc.parse(text)
    carry(module, Target.named(target))
    PassManager.parse("schedule,form-kernels", verify="each").run(module)
    assert irc.print_op(irc.parse(irc.print_op(module))) == irc.print_op(module)
    return module


def loads(module: Any) -> list[int]:
    """The strides of what is chosen from whole vectors."""
    return [op.stride for op in module.walk() if isinstance(op, kernel.LoadStridedOp)]


@pytest.mark.parametrize("target", ["avx512", "avx2", "sse2"])
@pytest.mark.parametrize("stride", [2, 3, 4, 5, 7, 8, -1, -2, -3, -8])
def test_values(stride: int, target: str) -> None:
    torch.manual_seed(0)
    for element, dtype in ELEMENTS.items():
        for count, masked in ((64, False), (37, False), (50, True)):
            text = program(stride, count, element, masked)
            size = (count - 1) * abs(stride) + 1
            x = (torch.randn(3, size) * 20).to(dtype)
            expected = x[:, ::stride] if stride > 0 else x.flip(1)[:, ::-stride]
            if masked:
                expected = expected.clone()
                expected[1] = 0
            module = formed(text, target)
            torch.testing.assert_close(irc.run(module, x)[0], expected, rtol=0, atol=0)
            PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
            (result,) = irc.runtime.build(module)(x)
            torch.testing.assert_close(result, expected, rtol=0, atol=0)


@pytest.mark.parametrize("stride", [2, 5, 8, -1, -2])
def test_nothing_outside_of_them_is_read(stride: int) -> None:
    """The interpreter looks at the elements alone; memory ends with the last of them here."""
    count, target = 32, "avx512"
    size = (count - 1) * abs(stride) + 1
    module = formed(program(stride, count), target)
    assert set(loads(module)) == {stride}
    page = torch.zeros(4096 + 3 * size)[-3 * size :].reshape(3, size)
    PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
    assert not irc.runtime.build(module)(page)[0].any()


def test_when() -> None:
    """Up to the figure; the text says how far, and form-kernels follows it."""
    assert loads(formed(program(8, 64))) and not loads(formed(program(9, 64)))
    assert loads(formed(program(9, 64), "#irc.target<avx512, strided = 9>"))
    assert loads(formed(program(-1, 64), "#irc.target<avx512, strided = 1>"))
    assert not loads(formed(program(2, 64), "#irc.target<avx512, strided = 1>"))
    module = irc.parse(program(4, 64))
    carry(module, Target.named("avx512"))
    PassManager.parse("schedule").run(module)
    text = irc.print_op(module)
    assert "strided = 4 : i64" in text
    for strided, some in ((3, False), (4, True), (5, True)):
        again = irc.parse(text.replace("strided = 4", f"strided = {strided}"))
        PassManager.parse("form-kernels").run(again)
        assert bool(loads(again)) == some


@pytest.mark.parametrize("stride", [0, 1, 65, -65])
def test_strides_that_are_none(stride: int) -> None:
    text = irc.print_op(formed(program(2, 64))).replace("{stride = 2", f"{{stride = {stride}")
    with pytest.raises(InvalidIR, match=f"a stride of {stride}, not 2 to 64 either way, nor -1"):
        verify(irc.parse(text))
