"""Elements that lie a few others apart, or backwards, are chosen from whole vectors (`strided`,
`kernel.load_strided`)."""

from __future__ import annotations

import os
import subprocess
import sys
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
from tests.machines import runs_here

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
            if not runs_here(target):
                continue
            PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
            (result,) = irc.runtime.build(module)(x)
            torch.testing.assert_close(result, expected, rtol=0, atol=0)


@pytest.mark.parametrize("stride", [2, 5, 8, -1, -2])
@pytest.mark.parametrize("last", [False, True])
def test_nothing_outside_of_them_is_read(stride: int, last: bool) -> None:
    """Memory begins with the first of them, or ends with the last, behind which is a page that
    nobody may read."""
    assert set(loads(formed(program(stride, 32), "host"))) == {stride}
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, program(stride, 32), str(int(last))], capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "read"), done.stderr


GUARDED = """
import ctypes, mmap, sys
import irc, torch
from irc.ir.passes import PassManager
from irc.pipeline import pipeline_text
text, last = sys.argv[1], int(sys.argv[2])
pages = mmap.mmap(-1, 3 * mmap.PAGESIZE)
base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
protect = ctypes.CDLL(None).mprotect
for page in (0, 2):
    assert not protect(ctypes.c_void_p(base + page * mmap.PAGESIZE), mmap.PAGESIZE, 0)
module = irc.parse(text)
shape = tuple(module.lookup("main").block.arguments[0].type.shape)
size = 4 * shape[0] * shape[1]
start = mmap.PAGESIZE + (mmap.PAGESIZE - size if last else 0)
x = torch.frombuffer(pages, dtype=torch.float32, count=size // 4, offset=start).view(shape)
x.fill_(1)
passes = pipeline_text("llvm")
PassManager.parse(passes[passes.index("schedule"):]).run(module)
assert irc.runtime.build(module)(x)[0].all()
print("read")
"""


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
