"""Places outside of arrays that a text surely reaches, on the loop and kernel levels."""

from __future__ import annotations

import pytest

import irc
from irc.ir.diagnostics import InvalidIR
from tests.dialects.verifying import check

pytestmark = pytest.mark.fault("V18")
X = "tensor<[6, 8] x f32, strides [8, 1]>"


def compute(index: str, axes: str = "par(i: 6, j: 8)", made: str = X, mask: str = "") -> str:
    condition = "%c = arith.constant true\n" if mask else ""
    return f"""func.func @main(%x: {X}) attributes {{level = "loop"}} {{
  %y = loop.compute {axes} -> map {{
    %k = loop.index {{expression = #sym<0>}} : index
    {condition}%a = loop.read %x[{index}]{mask} : f32
    loop.yield %a
  }} : {made}
  func.return
}}"""


SMALL = "tensor<[5, 7] x f32, strides [7, 1]>"


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ("i, j", None),
        ("i, j + 1", r"index 1, j \+ 1, is 8 at a point of its space; the size is 8"),
        ("i - 1, j", "index 0, i - 1, is -1"),
        ("5 - i, 7 - j", None),
        ("5 - i, 6 - j", "is -1"),
        ("0, i + j", "is 12"),
        ("floordiv(i, 2)*2, mod(j, 5)", None),
        ("floordiv(i, 2)*2, mod(j, 5) + 6", "index 1"),
        ("6, j", "index 0, 6, is 6"),
        ("i, %k", None),  # data
    ],
)
def test_reads_stay_inside_of_their_arrays(index: str, error: str | None) -> None:
    check(compute(index), error)


def test_what_a_mask_guards_and_spaces_without_points_may_be_anything() -> None:
    check(compute("i, j + 1", mask=" (where %c)"), None)
    check(compute("i, j + 1", "par(i: 6, j: 0)", "tensor<[6, 0] x f32, strides [0, 1]>"), None)
    check(compute("i + 1, j + 1", "par(i: 5, j: 7)", SMALL), None)


@pytest.mark.parametrize(
    ("index", "error"), [("i", None), ("i + 3", "index 0"), ("mod(i, 4)", None), ("_0", None)]
)
def test_scatters_stay_inside_of_their_arrays(index: str, error: str | None) -> None:
    kind = "tensor<[8] x f32, strides [1]>"
    check(f"""func.func @main(%x: {kind}) attributes {{level = "loop"}} {{
  %y = loop.compute par(i: 6) inits(%x) -> scatter(sum, [{index}]) {{
    %a = loop.read %x[i] : f32
    %k = loop.index {{expression = #sym<i>}} : index
    loop.yield %a extra(%k)
  }} : {kind}
  func.return
}}""", error)  # fmt: skip


def kernel(body: str, grid: int = 8) -> str:
    kind = "tensor<[64] x f32, strides [1]>"
    return f"""func.func @main(%x: {kind}) -> {kind} {{
  %y = host.launch %x {{callee = @k}} : ({kind}) -> {kind}
  func.return %y : {kind}
}}
kernel.func @k(%p: !kernel.ptr<f32>, %q: !kernel.ptr<f32>, %begin: index, %end: index) attributes {{grid = #sym<{grid}>, outputs = array<i64: 1>, symbols = [], target = "cpu"}} {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %4 = arith.constant 4 : index
  %8 = arith.constant 8 : index
  %c = arith.constant true
  %f = arith.constant 1.0 : f32
{body}
  kernel.return
}}"""  # noqa: E501


LOOPS = """kernel.for %i = %begin to %end step %1 {{
  %r = arith.muli %i, %8 : index
  kernel.for %j = %0 to %8 step %4 {{
    %o = arith.addi %r, %j : index
    {}
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.parametrize(
    ("access", "error"),
    [
        ("%v = kernel.load %p[%o] : vector<4xf32>", None),
        ("%v = kernel.load %p[%o] : vector<8xf32>",
         "'kernel.load': reaches element 67 of argument 0 of @k, .* last element is 63"),
        ("%n = arith.addi %o, %4 : index\n%v = kernel.load %p[%n] : f32", "reaches element 64"),
        ("%n = arith.subi %o, %1 : index\n%v = kernel.load %p[%n] : f32", "reaches element -1"),
        ("%n = arith.addi %o, %4 : index\n%v = kernel.load %p[%n] (where %c) : f32", None),
        ("%n = arith.addi %o, %8 : index\nkernel.store %f, %q[%n] : f32",
         "'kernel.store': reaches element 68 of argument 1"),
        ("%n = arith.addi %o, %8 : index\n%d = kernel.load %p[%0] : f32\n"
         "%b = arith.cmpf olt, %d, %f : f32\nkernel.if %b {\nkernel.store %f, %q[%n] : f32\n"
         "kernel.yield\n}", None),
    ],
)  # fmt: skip
def test_kernels_stay_inside_of_their_arrays(access: str, error: str | None) -> None:
    check(kernel(LOOPS.format(access)), error)


@pytest.mark.parametrize(("index", "place"), [("%11", None), ("%2", "1039")])
def test_what_form_kernels_writes_is_followed(index: str, place: str | None) -> None:
    """Bounds that are computed from the kernel's points, in the shape that kernels have."""
    body = f"""
      %2 = arith.constant 1024 : index
      %3 = arith.constant -16 : index
      %16 = arith.constant 16 : index
      %64 = arith.constant 64 : index
      %6 = arith.cmpi slt, %begin, %end : index
      kernel.if %6 {{
        %7 = arith.muli %begin, %2 : index
        %e = arith.muli %end, %2 : index
        %9 = arith.minsi %e, %64 : index
        %10 = arith.andi %9, %3 : index
        kernel.for %11 = %7 to %10 step %16 {{
          %12 = kernel.load %p[{index}] : vector<16xf32>
          kernel.yield
        }}
        kernel.yield
      }}"""
    check(kernel(body, 1), None if place is None else f"reaches element {place}")


def test_a_grid_beyond_the_arrays_is_refused() -> None:
    access = LOOPS.format("%v = kernel.load %p[%o] : vector<4xf32>")
    check(kernel(access, 400_000_000), "reaches element 3199999999 of argument 0")
    check(kernel(access, 0), None)
    with pytest.raises(InvalidIR, match="the step is 0"):
        irc.verify(irc.parse(kernel(access).replace("step %1", "step %0")))


@pytest.mark.parametrize(("grid", "error"), [(0, None), (1, "reaches element 0 of argument 0")])
def test_a_grid_of_no_programs_reaches_nothing(grid: int, error: str | None) -> None:
    kind = "tensor<[0] x f32, strides [1]>"
    check(f"""func.func @main(%x: {kind}) -> {kind} {{
  %y = host.launch %x {{callee = @k}} : ({kind}) -> {kind}
  func.return %y : {kind}
}}
kernel.func @k(%p: !kernel.ptr<f32>, %q: !kernel.ptr<f32>) attributes
    {{grid = #sym<{grid}>, outputs = array<i64: 1>, symbols = [], target = "gpu"}} {{
  %0 = arith.constant 0 : index
  %v = kernel.load %p[%0] : f32
  kernel.store %v, %q[%0] : f32
  kernel.return
}}""", error)  # fmt: skip
