"""What form-kernels tells of reads and writes along the vectors, and of memory not shared."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import irc
from irc.dialects import loop
from irc.passes.kernel.cpu.remarks import _apart, _read_stride, _write_strides

SQUARE = "tensor<[8, 8] x f32, strides [8, 1]>"
ROW = "tensor<[8] x f32, strides [1]>"


def computed(text, cls=loop.ComputeOp):
    """The first compute or group of a function of two squares, and what must be kept."""
    module = irc.parse(f"""
    func.func @main(%x: {SQUARE}, %z: {SQUARE}, %k: tensor<[8] x i64, strides [1]>) -> {SQUARE}
        attributes {{level = "loop"}} {{
      {text}
      func.return %x : {SQUARE} }}""")
    return next(op for op in module.walk() if isinstance(op, cls)), module


READS = {
    "%x[i, j]": (8, 1), "%x[j, i]": (1, 8), "%x[i, 2*j]": (8, 2), "%x[3, j]": (0, 1),
    "%x[i, floordiv(j, 2)]": (8, None), "%x[%p, j]": (None, None),
}  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_the_step_of_a_read(read):
    op, _ = computed(f"""%y = loop.compute par(i: 8, j: 4) -> map {{
      %p = loop.read %k[i] : i64
      %v = loop.read {read} : f32
      loop.yield %v }} : tensor<[8, 4] x f32, strides [4, 1]>""")
    found = list(op.reads)[-1]
    assert (_read_stride(found, "i", 8), _read_stride(found, "j", 8)) == READS[read]


@pytest.mark.parametrize(
    "axes, outputs, types, along",
    [
        ("par(i: 8, j: 8)", "map", [SQUARE], {"i": [8], "j": [1]}),
        ("par(i: 8) red(j: 8)", "reduce(sum, f32)", [ROW], {"i": [1], "j": [0]}),
        ("red(j: 8) par(i: 8)", "reduce(sum, f32)", [ROW], {"i": [1], "j": [0]}),
        ("par(i: 8) red(j: 8)", "map", [SQUARE], {"i": [8], "j": [1]}),
        ("par(i: 8) scan(j: 8)", "scan(sum, f32)", [SQUARE], {"i": [8], "j": [1]}),
        ("par(i: 8) red(j: 8)", "reduce(moments, f32)", [ROW, ROW], {"i": [1, 1], "j": [0, 0]}),
        ("par(i: 8, j: 8)", "scatter(sum, [j, i])", [SQUARE], {"i": [None], "j": [None]}),
        ("par(i: 8, j: 8)", "map, scatter(sum, [j, i])", [SQUARE, SQUARE],
         {"i": [8, None], "j": [1, None]}),
    ],
    ids=str,
)  # fmt: skip
def test_the_steps_of_writes(axes, outputs, types, along):
    names = ", ".join(f"%y{k}" for k in range(len(types)))
    inits = "inits(%z)" if "scatter" in outputs else ""
    values = "%v, %v" if outputs.startswith("map, ") else "%v"
    op, _ = computed(f"""{names} = loop.compute {axes} {inits} -> {outputs} {{
      %v = loop.read %x[i, j] : f32
      loop.yield {values} }} : {", ".join(types)}""")
    for axis, steps in along.items():
        assert list(_write_strides(op, axis, 8)) == steps


def square(name, read, axes="par(i: 8, j: 8)", out="map"):
    return f"""{name} = loop.compute {axes} -> {out} {{ %v{name[1:]} = loop.read {read} : f32
      loop.yield %v{name[1:]} }} : {SQUARE}
    """


def group(*members, result):
    body = "".join(members)
    return f"%y = loop.group (i: 8, j: 8) {{ {body} loop.yield {result} }} : {SQUARE}"


SUM = square("%s", "%z[k, k]", "par(i: 8, j: 8) red(k: 8)", "reduce(sum, f32)")
COLUMNS = square("%c", "%z[j, i]")
WHY = {
    "it is read at [j, i], not at the point that is written": [
        square("%y", "%x[j, i]"),
        group(square("%a", "%x[i, j]"), square("%b", "%x[j, i]"), result="%a"),
    ],
    "the result is that of a reduce": [
        group(square("%a", "%x[i, j]"), COLUMNS, SUM, result="%s"),
        group(SUM, square("%a", "%x[i, j]"), result="%s"),
    ],
    "the result is that of a scatter": [
        f"""%y = loop.compute par(i: 8, j: 8) inits(%x) -> scatter(sum, [j, i]) {{
          %v = loop.read %z[j, i] : f32
          loop.yield %v }} : {SQUARE}""",
    ],
    "what is written comes before the last read of it": [
        group(COLUMNS, square("%a", "%x[i, j]"), result="%c"),
        group(COLUMNS, SUM, square("%a", "%x[i, j]"), result="%c"),
        f"""%y, %w = loop.compute par(i: 8, j: 8) inits(%z) -> map, scatter(sum, [j, i]) {{
          %v = loop.read %x[i, j] : f32
          loop.yield %v, %v }} : {SQUARE}, {SQUARE}""",
    ],
}


@pytest.mark.parametrize("reason, text", [(r, t) for r, ts in WHY.items() for t in ts])
def test_why_a_result_is_not_in_the_memory_of_an_input(reason, text):
    op, module = computed(text, loop.GroupOp if "group" in text else loop.ComputeOp)
    x = module.body.block.first.block.arguments[0]
    _, told = next(_apart(op, [x], SimpleNamespace(inplace=None)))
    assert told == f"result 0 can't be in the memory of {x.described}: {reason}"
    assert not list(_apart(op, [x], SimpleNamespace(inplace=(0, 1, 0, 2))))
