"""Where a tile begins is added to the pointer; what its lanes add is the same in every tile."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from loop_programs import softmax

import irc
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import kernel
from irc.ir import attributes as A
from irc.ir.passes import PassContext, PassManager
from irc.passes.kernel.gpu.form import form_gpu_kernel
from irc.passes.kernel.gpu.schedule import changed, default_schedule


def _accesses(source: str) -> list[tuple[str, str]]:
    """What loads and stores add to their pointers: before the lanes, and the lanes."""
    return re.findall(r"tl\.(?:load|store)\(p\d \+ (?:(\w+) \+ )?(\w+)[,)]", source)


def _defined(source: str, name: str) -> str:
    """All that a name is made of."""
    texts, pending = "", [name]
    while pending:
        text = re.search(rf"^ +{pending.pop()} = (.*)$", source, re.M)[1]
        texts += text + "\n"
        pending += re.findall(r"\bv\d+", text)
    return texts


def _source(op, **entries: A.Attribute) -> str:
    return emit_kernel(form_gpu_kernel(op, changed(default_schedule(op), **entries)))


def test_rows_begin_at_the_pointer() -> None:
    one = A.IntegerAttr(1)
    source = _source(softmax(64, 197).op, x_block=A.IntegerAttr(4), row_group=one)
    accesses = _accesses(source)
    assert len(accesses) == 2 and len(set(accesses)) == 1
    common, lanes = accesses[0]
    assert "program_id" in _defined(source, common) and "arange" not in _defined(source, common)
    assert "program_id" not in _defined(source, lanes) and "197" in _defined(source, lanes)


def test_places_in_a_loop_stay_whole() -> None:
    """There the compiler steps from turn to turn."""
    source = _source(softmax(6, 500).op, x_block=A.IntegerAttr(2), r_block=A.IntegerAttr(64))
    accesses = _accesses(source)
    assert len(accesses) == 4 and not any(common for common, _ in accesses)


LARGE = """
func.func @main(%x: tensor<[32, 4, {rows}, 512] x f32, strides [4, 1, 65536, 128], "cuda:0">)
    -> (tensor<[32, 4, {rows}, 512] x f32, strides [{plane4}, {plane}, 512, 1], "cuda:0">,
        tensor<[32, 4, {rows}] x f32, strides [{rows4}, {rows}, 1], "cuda:0">)
    attributes {{level = "loop"}} {{
  %y, %s = loop.compute par(i0: 32, i1: 4, i2: {rows}) red(i3: 512) -> map, reduce(sum, f32) {{
    %a = loop.read %x[i0, i1, i2, i3] : f32
    loop.yield %a, %a
  }} : tensor<[32, 4, {rows}, 512] x f32, strides [{plane4}, {plane}, 512, 1], "cuda:0">,
       tensor<[32, 4, {rows}] x f32, strides [{rows4}, {rows}, 1], "cuda:0">
  return %y, %s : tensor<[32, 4, {rows}, 512] x f32, strides [{plane4}, {plane}, 512, 1], "cuda:0">,
       tensor<[32, 4, {rows}] x f32, strides [{rows4}, {rows}, 1], "cuda:0">
}}"""


@pytest.mark.parametrize("rows, split", [(512, False), (128, True)])
def test_terms_that_only_their_sum_keeps_small_stay_whole(rows: int, split: bool) -> None:
    """Places of 128 x 512 rows of an image with its channels innermost: 65536 times a row's number
    is more than 32 bits hold, less 33554431 for each channel."""
    plane = rows * 512
    text = LARGE.format(rows=rows, rows4=rows * 4, plane=plane, plane4=plane * 4)
    module = irc.parse(text.replace("\n   ", " "))
    PassManager.parse("schedule,form-kernels").run(module, PassContext(target="sm_90"))
    (func,) = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    source = str(emit_kernel(func))
    assert func.attributes["index_bits"].value == 32
    (read,) = re.findall(r"tl\.load\(p0 \+ ([^,)]*)", source)
    assert ("+" in read) is split
    written = re.findall(r"tl\.store\(p\d \+ ([^,)]*)", source)
    assert len(written) == 2 and all("+" in place for place in written)
