"""Fuel: every number of rewrites gives a right program, and the last rewrite has a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import irc
from irc.ir.passes import PassContext, PassManager
from irc.ir.rewrite.driver import apply_patterns_greedily, pattern
from irc.ir.rewrite.fuel import Fuel
from irc.ir.text.parser import parse_file
from irc.pipeline import stages
from irc.validation.bisection import guilty_rewrite
from irc.validation.compare import rounding_of
from irc.validation.inputs import make_inputs
from irc.validation.semantics import Trial, first_difference, run_trial, run_twice
from irc.validation.sizes import assignments
from tests.ir_files import run_opt

CORPUS = Path(__file__).parents[1] / "corpus"
STAGES = {name: text for name, text in stages("avx2").items() if name != "functional"}
#: Programs of the corpus that the interpreter is quick with, and the stage that they are taken to.
PROGRAMS = dict.fromkeys("""
    an_optimizer_step cheap_values_read_twice column_values convolution_and_activation
    expensive_values_read_twice joins linear_and_activation pads_and_windows pointwise
    pointwise_with_rows_and_columns residual_convolutions results_over_other_axes
    softmax_of_columns softmax_of_rows sums sum_with_its_transpose sums_of_two_axes_of_one_value
    symbolic_softmax transposed_and_not updates_arguments updates_symbolic_parts
    what_a_sum_needs_is_returned
""".split(), "fuse-loops") | dict.fromkeys("""
    embedding_and_its_gradient gathers_along_a_dimension no_elements sizes_of_one slices_and_steps
    split_axes symbolic_joins_and_pads symbolic_views
""".split(), "loop-to-kernel")  # fmt: skip


def lowered(path: Path, until: str, limit: int | None) -> tuple[Any, Fuel]:
    """A program after a stage, with so much fuel."""
    module, fuel = parse_file(path), Fuel(limit)
    context = PassContext(target="avx2", fuel=fuel, explains=False)
    for stage, text in STAGES.items():
        PassManager.parse(text).run(module, context)
        if stage == until:
            break
    return module, fuel


def test_thirty_programs() -> None:
    assert len(PROGRAMS) == 30


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_right_whatever_the_fuel(name: str) -> None:
    path, until = CORPUS / f"{name}.mlir", PROGRAMS[name]
    traced = parse_file(path)
    function = traced.lookup("main")
    sizes = next(iter(assignments(function, seed=0)))
    trial = run_trial(traced, "main", sizes, make_inputs(function, sizes, 0), 0)
    assert isinstance(trial, Trial)
    mode = trial.modes[-1]
    expected, tolerance = {mode: trial.outcomes[mode]}, rounding_of(function)
    _, everything = lowered(path, until, None)
    assert everything.spent and not everything.is_empty
    names = []
    for limit in range(everything.spent + 1):
        module, fuel = lowered(path, until, limit)
        assert fuel.spent == limit and fuel.is_empty
        found = {mode: run_twice(module, "main", trial, mode, False)}
        difference = first_difference(expected, found, "real", tolerance)
        assert difference is None, (fuel.last, difference)
        names.append(fuel.last)
    assert names[0] == "" and names[-1] == everything.last
    assert all(n.startswith(f"rewrite {k}: ") for k, n in enumerate(names) if k)


SUMS = """
func.func @main(%x: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = arith.addi %c0, %x : i32
  %b = arith.addi %a, %c1 : i32
  %d = arith.muli %x, %c1 : i32
  return %b : i32
}
"""


def canonical(limit: int) -> tuple[str, str]:
    module, fuel = irc.parse(SUMS), Fuel(limit)
    PassManager.parse("canonicalize", verify="each").run(module, PassContext(fuel=fuel))
    assert irc.run(module, 4)[0] == 5
    return irc.print_op(module), fuel.last


def test_the_driver_stops_at_each_rewrite_and_names_it() -> None:
    texts, names = zip(*(canonical(limit) for limit in range(6)), strict=True)
    assert texts[0] == irc.print_op(irc.parse(SUMS)) and names[0] == ""
    kinds = [name.partition(" of ")[0] for name in names]
    made = [k.partition(": ")[2] for k in kinds if k]
    assert made[:2] == ["canonicalize: constant-to-right", "canonicalize: fold"]
    assert "canonicalize: dce" in made
    assert "'arith.addi' at <text>:5:" in names[1]
    assert len({texts[0], texts[1], texts[2], texts[3]}) == 4
    after = "arith.addi %x, %c0"
    assert after not in texts[0] and after in texts[1] and after not in texts[2]


def test_what_no_fuel_is_left_for_is_told() -> None:
    path = CORPUS / "softmax_of_rows.mlir"
    module = parse_file(path)
    context = PassContext(target="avx2", fuel=Fuel(0))
    for stage in ("aten-to-graph", "graph-to-layout", "layout-to-loop", "fuse-loops"):
        PassManager.parse(STAGES[stage]).run(module, context)
    told = {r.pass_name for r in context.remarks if r.message.endswith("there is no fuel left")}
    assert {"inline-computes", "merge-computes", "group-computes"} <= told


def test_flag_and_option(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    path = tmp_path / "sums.mlir"
    path.write_text(SUMS)
    _, output, errors = run_opt([str(path), "--canonicalize", "--fuel=1"])
    assert errors.startswith("irc-opt: fuel: rewrite 1: canonicalize: constant-to-right of")
    assert "arith.addi %x, %c0" in output
    assert "; there were no more" in run_opt([str(path), "--canonicalize", "--fuel=99"])[2]
    assert "irc-opt: fuel: no rewrite" in run_opt([str(path), "--canonicalize", "--fuel=0"])[2]
    assert "--fuel" in run_opt([str(path), "--fuel=0"])[2]  # without passes it means nothing
    x = torch.randn(5, 7)
    for limit in (0, 2):
        compiled = irc.compile(lambda x: torch.softmax(x, 1) * 2, (x,), options={"fuel": limit})
        torch.testing.assert_close(compiled(x), torch.softmax(x, 1) * 2)
        assert "irc: fuel: " + ("rewrite 2: " if limit else "no rewrite") in capfd.readouterr().err


def test_the_wrong_rewrite_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from irc.passes.common import canonicalize

    @pattern(irc.lookup_op("arith.addi"), name="planted.forgets")
    def forgets(op: Any, rw: Any) -> Any:
        if op.results[0].name_hint != "b":
            return rw.no_match("not this one")
        rw.replace(op, [op.lhs])
        return None

    known = canonicalize.canonicalization_patterns
    monkeypatch.setattr(canonicalize, "canonicalization_patterns", lambda: [*known(), forgets])
    module = irc.parse(SUMS)

    def is_wrong(made: Any) -> bool:
        return irc.run(made, 4)[0] != 5

    found = guilty_rewrite(module, "canonicalize,cse", is_wrong)
    assert "canonicalize: planted.forgets of 'arith.addi' at <text>:6:" in found
    assert irc.print_op(module) == irc.print_op(irc.parse(SUMS))
    assert guilty_rewrite(module, "canonicalize", lambda made: False) == ""
    assert guilty_rewrite(module, "canonicalize", lambda made: True) == ""


def test_fuel_is_of_all_passes_together() -> None:
    fuel = Fuel(3)
    for _ in range(2):
        apply_patterns_greedily(irc.parse(SUMS), fuel=fuel)
    assert fuel.spent == 3 and fuel.is_empty


FROZEN = """
func.func @main(%x: tensor<3x2xf32>, %r: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %a = graph.constant {value = dense<[[0.5, 1.5], [-1.0, 2.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %b = graph.constant {value = dense<[[3.0, 0.5], [2.0, -0.5]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %c = graph.constant {value = dense<[2.0, 0.25]> : tensor<2xf32>} : tensor<2xf32>
  %zero = graph.full {value = 0.0 : f32} : tensor<3x2xf32>
  %s = graph.broadcast %c {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<3x2xf32>
  %p = graph.call_aten %x, %a {callee = "aten.mm.default", arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[2, 1]>]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %q = graph.call_aten %x, %b {callee = "aten.mm.default", arguments = {mat2 = #aten.operand<1>, self = #aten.operand<0>}, eager_strides = [#sym.dims<[2, 1]>]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %m = graph.mul %p, %s : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %n = graph.maximum %m, %zero : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %o = graph.add %q, %r : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %n, %o : tensor<3x2xf32>, tensor<3x2xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize(
    "merging, expected",
    [("", {"graph.fold_scales", "fold-constants", "graph.pack_product", "graph.fuse_activation",
           "graph.fuse_addition"}),
     ("merge-linears,", {"merge-linears", "graph.pack_product", "fold-constants"})],
)  # fmt: skip
def test_passes_on_frozen_weights_stop_anywhere(merging: str, expected: set[str]) -> None:
    passes = f"fold-batch-norms,{merging}fold-constants,pack-weights,fuse-epilogues,cse,dce"
    x, r = torch.randn(3, 2), torch.randn(3, 2)
    everything, before = Fuel(None), irc.run(irc.parse(FROZEN), x, r)
    PassManager.parse(passes).run(irc.parse(FROZEN), PassContext("avx2", fuel=everything))
    seen = set()
    for limit in range(everything.spent + 1):
        module, fuel = irc.parse(FROZEN), Fuel(limit)
        PassManager.parse(passes, verify="each").run(module, PassContext("avx2", fuel=fuel))
        torch.testing.assert_close(irc.run(module, x, r), before)
        seen.add(fuel.last.partition(" of ")[0].rpartition(": ")[2])
    assert expected <= seen
