"""What `pad-strides` leaves as it is, and why: each reason by a program that has it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import irc.interp  # noqa: E402
from irc.ir import parse  # noqa: E402
from irc.ir.passes import PassContext, PassManager  # noqa: E402
from irc.ir.symbols import symbol  # noqa: E402
from irc.passes.layout.pad_strides import (  # noqa: E402
    _makes_arrays,
    is_channels_last,
    takes_exact_strides,
)

S0 = symbol("s0")


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ((2, 3, 4, 5), (60, 1, 15, 3), True), ((2, 3, 4, 5), (60, 20, 5, 1), False),
        ((2, 3, 4, 5, 6), (360, 1, 90, 18, 3), True), ((2, 3, 4), (12, 1, 3), False),
        ((2, 3, 4, 5, 6, 2), (720, 1, 180, 36, 6, 3), False),
        ((2, 1, 4, 5), (20, 1, 5, 1), False), ((2, 2, 4, 5), (40, 1, 10, 2), True),
        ((2, 3, 1, 5), (15, 1, 15, 3), True), ((1, 3, 4, 5), (999, 1, 15, 3), True),
        ((1, 3, 4, 5), (999, 20, 5, 1), False), ((2, 3, 4, 5), (999, 1, 15, 3), False),
        ((2, 3, 4, 1), (12, 1, 3, 999), True), ((S0, 3, 4, 5), (60, 1, 15, 3), True),
    ],
)  # fmt: skip
def test_images_with_channels_innermost(sizes: Any, strides: Any, expected: bool) -> None:
    assert is_channels_last(sizes, strides) is expected


ARRAYS = """
func.func @main(%x: X, %i: index) attributes {level = "layout"} {
  %n = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (X) -> index
  sym.assert {relation = "eq", lhs = #sym<s0>, rhs = #sym<2>, message = "two"}
  %new_neg = graph.neg %x : (X) -> X
  %new_copy = layout.copy %x : (X) -> X
  %new_turned = graph.permute %x {permutation = array<i64: 1, 0>} : (X) -> T
  %view = graph.permute %x {permutation = array<i64: 1, 0>, view} : (X) -> T
  %handle = layout.view %x {offset = #sym<0>} : (X) -> T
  %refined = sym.refine %x : (X) -> tensor<[2, 3] x f32, strides [3, 1]>
  %constant = graph.constant {value = dense<1.0> : tensor<2x3xf32>}
      : tensor<[2, 3] x f32, strides [3, 1]>
  %full = graph.full {value = 1.0 : f32} : X
  %scalar = graph.from_scalar %i : (index) -> tensor<[] x i64, strides []>
  %bits = graph.call_aten %x {callee = "aten.view.dtype", arguments = {self = #aten.operand<0>,
      dtype = #aten.dtype<"int32">}} : (X) -> tensor<[s0, 3] x i32, strides [3, 1]>
  %new_exact = graph.call_aten %x {callee = "aten.relu.default",
      arguments = {self = #aten.operand<0>}} : (X) -> X
  %new_mm = graph.call_aten %x, %view {callee = "aten.mm.default",
      arguments = {self = #aten.operand<0>, mat2 = #aten.operand<1>}}
      : (X, T) -> tensor<[s0, s0] x f32, strides [s0, 1]>
  func.return
}"""


def named(text: str) -> dict[str, Any]:
    text = text.replace("X", "tensor<[s0, 3] x f32, strides [3, 1]>")
    text = text.replace("T", "tensor<[3, s0] x f32, strides [1, 3]>")
    module = parse(text)
    irc.verify(module)
    return {op.results[0].name_hint: op for op in module.walk() if op.results}


def test_arrays_are_made_by_what_has_memory_of_its_own() -> None:
    ops = named(ARRAYS)
    assert {n for n, op in ops.items() if _makes_arrays(op)} == {n for n in ops if "new" in n}


def test_calls_take_exact_strides_but_products() -> None:
    ops = named(ARRAYS)
    assert {n for n, op in ops.items() if takes_exact_strides(op)} == {"bits", "new_exact"}


# -- the exponential of a matrix of long rows: what is done with it, and why it stays

KINDS = {
    "PART": "tensor<[3, 2047] x f32, strides [2047, 1]>",
    "FLAT": "tensor<[8188] x f32, strides [1]>",
    "BITS": "tensor<[4, 2047] x i32, strides [2047, 1]>",
    "SUMS": "tensor<[2047] x f32, strides [1]>",
    "X": "tensor<[4, 2047] x f32, strides [2047, 1]>",
}
SLICE = "graph.slice %e {dim = 0 : i64, start = #sym<1>, step = 1 : i64, view} : (X) -> PART"
RELU = 'graph.call_aten %u {callee = "aten.relu.default", arguments = {self = #aten.operand<0>}}'
FREE = [2048, 1]
DENSE = [2047, 1]
CASES: dict[str, tuple[str, list[int] | str]] = {
    "only read": ("%m = graph.neg %e : (X) -> X", FREE),
    "a view of it": (f"%v = {SLICE}; %m = graph.neg %v : (PART) -> PART", FREE),
    "a reshape": (
        "%v = graph.reshape %e {view} : (X) -> FLAT; %m = graph.neg %v : (FLAT) -> FLAT",
        "graph.reshape of it would become a copy",
    ),
    "a handle": (
        "%v = layout.view %e {offset = #sym<2047>} : (X) -> PART; "
        "%m = graph.neg %v : (PART) -> PART",
        "layout.view of it would become a copy",
    ),
    "a handle on a view": (
        f"%u = {SLICE}; %v = layout.view %u {{offset = #sym<0>}} : (PART) -> PART; "
        "%m = graph.neg %v : (PART) -> PART",
        "layout.view of it would become a copy",
    ),
    "known sizes of it": (
        "%v = sym.refine %e : (X) -> X; %m = graph.neg %v : (X) -> X",
        "sym.refine of it would become a copy",
    ),
    "known sizes of it returned": (
        "%m = sym.refine %e : (X) -> X", "the caller sees it (result 0)",
    ),
    "bits": (
        '%v = graph.call_aten %e {callee = "aten.view.dtype", arguments = {self = '
        '#aten.operand<0>, dtype = #aten.dtype<"int32">}} : (X) -> BITS; '
        "%m = graph.neg %v : (BITS) -> BITS",
        "aten.view.dtype wants exact strides",
    ),
    "a call": (f"%u = graph.neg %e : (X) -> X; %m = {RELU} : (X) -> X",
               "aten.relu.default wants exact strides"),
    "a call of its sums": (
        "%s = graph.reduce %e {dims = array<i64: 0>, combiner = \"sum\"} : (X) -> SUMS; "
        "%u = graph.neg %s : (SUMS) -> SUMS; " f"%m = {RELU} : (SUMS) -> SUMS",
        FREE,
    ),
    "returned": (
        "%m = graph.neg %x : (X) -> X; return %e, %m : X, X", "the caller sees it (result 0)",
    ),
    "a view of it returned": (f"%m = {SLICE}", "the caller sees it (result 0)"),
    "a handle returned": (
        "%m = layout.view %e {offset = #sym<2047>} : (X) -> PART", "the caller sees it (result 0)",
    ),
    "given to an argument": (
        "graph.update_input %e {argument = 0 : i64} : (X); %m = graph.neg %x : (X) -> X",
        "the caller sees it (argument 0)",
    ),
}  # fmt: skip


def padded(
    body: str, options: str = "", of: str = "graph.exp", rows: str = "4"
) -> tuple[list[Any], list[str]]:
    """The strides that the result of `of` has after the pass, and what is said of it. Values stay
    as they are."""
    steps = body.split("; ")
    if "return" not in steps[-1]:
        kind = steps[-1].rpartition("-> ")[2]
        steps.append(f"return %m : {kind}")
    results = steps[-1].partition(" : ")[2]
    text = "\n".join((
        f"func.func @main(%x: X) -> ({results}) attributes {{level = \"layout\"}} {{",
        '%n = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (X) -> index',
        "%e = graph.exp %x : (X) -> X", *steps, "}",
    ))  # fmt: skip
    for name, kind in KINDS.items():
        text = text.replace(name, kind)
    text = text.replace("tensor<[4,", f"tensor<[{rows},")
    module, context = parse(text), PassContext()
    x = torch.randn(4, 2047, generator=torch.Generator().manual_seed(0))
    expected = irc.interp.run(parse(text), x.clone())
    PassManager.parse("pad-strides" + options, verify="each").run(module, context)
    torch.testing.assert_close(irc.interp.run(module, x), expected)
    (made,) = [op.results[0].type for op in module.walk() if op.name == of]
    said = [r.message for r in context.remarks if r.op_name == of]
    return list(made.strides or ()), said  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CASES)
def test_long_rows_are_padded_unless_somebody_minds(name: str) -> None:
    body, expected = CASES[name]
    strides, said = padded(body)
    if isinstance(expected, str):
        assert strides == DENSE and [m.partition(": ")[2] for m in said] == [expected]
    else:
        assert (strides, said) == (expected, [])


def test_all_bytes_of_the_limit_may_be_added() -> None:
    read, extra = CASES["only read"][0], 3 * 4
    assert padded(read, f"{{max-bytes={extra}}}") == (FREE, [])
    strides, said = padded(read, f"{{max-bytes={extra - 1}}}")
    assert strides == DENSE and "its 12 bytes more are over the limit (11 in all)" in said[0]


def test_the_strides_of_a_calls_result_are_its_own() -> None:
    body = f"%u = graph.neg %x : (X) -> X; %v = {RELU} : (X) -> X; %m = graph.neg %v : (X) -> X"
    said = "strides [2047, 1] were not padded: aten.relu.default chooses the strides of its result"
    assert padded(body, of="graph.call_aten") == (DENSE, [said])


def test_symbolic_sizes_are_padded_if_asked() -> None:
    read = CASES["only read"][0]
    said = "strides [2047, 1] were not padded: its sizes are symbolic"
    assert padded(read, rows="s0") == (DENSE, [said])
    assert padded(read, "{symbolic=true}", rows="s0") == (FREE, [])
    assert padded(read, "{symbolic=true}") == (FREE, [])
