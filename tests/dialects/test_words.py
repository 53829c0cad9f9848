"""Attributes that name one of a few things: the verifier knows every word, on every level."""

from __future__ import annotations

import pytest

import irc
from irc.dialects.kernel.ops import TARGETS
from irc.ir import attributes as A
from irc.ir.diagnostics import UserError
from irc.ir.registry import DIALECT_MODULES, load_dialect, registered_ops
from tests.dialects.verifying import check

# Attributes whose strings are names that somebody gives, or texts for people.
NAMES = frozenset({"sym_name", "symbol", "callee", "path", "schema"})
TEXTS = frozenset({"message", "reason"})


@pytest.mark.fault("V6")
def test_every_string_attribute_has_its_words() -> None:
    for dialect in DIALECT_MODULES:
        load_dialect(dialect)
    loose = []
    for op in (o for o in registered_ops() if o.__module__.startswith("irc.")):
        for name, field in op.attribute_fields.items():
            if field.constraint is A.StringAttr and name not in NAMES | TEXTS:
                if field.words is None:
                    loose.append(f"{op.name}.{name}")
    assert not loose, "declare their words"


X = "tensor<4xf32>"
AT = "tensor<4xi64>"


@pytest.mark.fault("V6")
@pytest.mark.parametrize(
    "line",
    [
        f'%y = graph.reduce %x {{combiner = "bogus", dims = array<i64: 0>}} : ({X}) -> tensor<f32>',
        f'%y = graph.scan %x {{combiner = "bogus", dim = 0 : i64}} : ({X}) -> {X}',
        f'%y = graph.arg_reduce %x {{combiner = "max", dims = array<i64: 0>}} : ({X}) -> '
        "tensor<i64>",
        f'%y = graph.scatter %x, %i, %x {{combiner = "any", dim = 0 : i64}} : ({X}, {AT}, {X}) -> '
        f"{X}",
        "%y = arith.cmpi lt, %n, %n : index",
        "%y = arith.cmpf slt, %f, %f : f32",
    ],
)
def test_unknown_words_are_refused(line: str) -> None:
    text = f"func.func @main(%x: {X}, %i: {AT}, %n: index, %f: f32) {{\n  {line}\n  func.return\n}}"
    check(text, "not one of")


@pytest.mark.fault("V6")
def test_an_unknown_level_is_refused() -> None:
    text = 'func.func @main() attributes {level = "loops"} {\n  func.return\n}'
    check(text, "level 'loops' is not one of aten")


LOOP = """
func.func @main(%x: tensor<[4] x f32, strides [1]>) attributes {level = "loop"} {
  %y = loop.compute par(i: 4) -> OUTPUT {
    %a = loop.read %x[i] : f32
    loop.yield %a
  } : tensor<[4] x f32, strides [1]>
  func.return
}
"""


@pytest.mark.fault("V6")
@pytest.mark.parametrize(
    "output",
    ["reduce(bogus, f32)", "scan(set, f32)", "scatter(any, [i])", "map(sum)", "fold(sum, f32)",
     "map schedule #loop.schedule<tpu>"],
)  # fmt: skip
def test_unknown_outputs_and_targets_of_computes_are_refused(output: str) -> None:
    with pytest.raises(UserError, match="is not one of|does not combine"):
        irc.parse(LOOP.replace("OUTPUT", output))


@pytest.mark.fault("V6")
def test_schedules_and_kernels_know_the_same_targets() -> None:
    from irc.dialects.loop import SCHEDULE_TARGETS

    assert SCHEDULE_TARGETS == TARGETS
