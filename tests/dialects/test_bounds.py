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


# -- what is not known says nothing

SIZED = "tensor<[6, s0] x f32, strides [s0, 1]>"


def sized(index: str, axes: str = "par(i: 6, j: s0)", made: str = SIZED) -> str:
    """A read of %x of sizes 6 and s0."""
    return f"""func.func @main(%x: {SIZED}) attributes {{level = "loop"}} {{
  %s = sym.bind_size %x {{dim = 1 : i64, symbol = "s0"}} : ({SIZED}) -> index
  %y = loop.compute {axes} -> map {{
    %a = loop.read %x[{index}] : f32
    loop.yield %a
  }} : {made}
  func.return
}}"""


@pytest.mark.parametrize(
    ("index", "axes", "made", "error"),
    [
        ("i, j", "par(i: 6, j: s0)", SIZED, None),
        # There may be no point at all.
        ("9, j", "par(i: 6, j: s0)", SIZED, None),
        ("9, j", "par(i: 6, j: 0)", "tensor<[6, 0] x f32, strides [0, 1]>", None),
        ("9, j", "par(i: 6, j: 1)", "tensor<[6, 1] x f32, strides [1, 1]>", "index 0, 9, is 9"),
        # The second size is no number, nor is the second index: the first ones are.
        ("i, j + 99", "par(i: 6, j: 2)", "tensor<[6, 2] x f32, strides [2, 1]>", None),
        ("s0, j", "par(i: 6, j: 2)", "tensor<[6, 2] x f32, strides [2, 1]>", None),
        ("i + s0, j", "par(i: 6, j: 2)", "tensor<[6, 2] x f32, strides [2, 1]>", None),
        ("i + 1, s0", "par(i: 6, j: 2)", "tensor<[6, 2] x f32, strides [2, 1]>",
         r"index 0, i \+ 1, is 6"),
        ("6 - i, j", "par(i: 6, j: 2)", "tensor<[6, 2] x f32, strides [2, 1]>", "index 0, .* is 6"),
        ("i - 1, j", "par(i: 6, j: 2)", "tensor<[6, 2] x f32, strides [2, 1]>", "is -1 at"),
        ("-1, j", "par(i: 6, j: 2)", "tensor<[6, 2] x f32, strides [2, 1]>", "index 0, -1, is -1"),
        ("5, j", "par(i: 6, j: 2)", "tensor<[6, 2] x f32, strides [2, 1]>", None),
    ],
)  # fmt: skip
def test_only_what_is_known_of_a_space(index: str, axes: str, made: str, error: str | None) -> None:
    check(sized(index, axes, made), error)


def test_a_dimension_whose_size_is_no_number_hides_no_other() -> None:
    text = sized("i, j", "par(i: 6, j: 2)", "tensor<[6, 2] x f32, strides [2, 1]>")
    text = text.replace(SIZED, "tensor<[s0, 6] x f32, strides [6, 1]>")
    text = text.replace("dim = 1", "dim = 0")
    check(text, None)
    check(text.replace("[i, j]", "[i, j + 5]"), "index 1")


@pytest.mark.parametrize(
    ("count", "index", "error"),
    [(6, "floordiv({}, 2)", "index 0, .* is 3 at a point"), (7, "floordiv({}, 2)", None),
     (7, "{}", "index 0, .* is 7 at a point")],
)  # fmt: skip
def test_so_many_corners_are_tried(count: int, index: str, error: str | None) -> None:
    """An index that is no sum of multiples, of as many axes as there are corners for."""
    names = [f"i{k}" for k in range(count)]
    axes = ", ".join(f"{name}: 2" for name in names)
    strides = [2 ** (count - 1 - k) for k in range(count)]
    made = f"tensor<{[2] * count} x f32, strides {strides}>"
    check(f"""func.func @main(%x: tensor<[3] x f32, strides [1]>) attributes {{level = "loop"}} {{
  %y = loop.compute par({axes}) -> map {{
    %a = loop.read %x[{index.format(" + ".join(names))}] : f32
    loop.yield %a
  }} : {made}
  func.return
}}""", error)  # fmt: skip


@pytest.mark.parametrize(("masks", "error"), [("", "index 0"), (" masks(%m)", None)])
def test_what_a_mask_keeps_from_being_scattered(masks: str, error: str | None) -> None:
    kind = "tensor<[8] x f32, strides [1]>"
    check(f"""func.func @main(%x: {kind}) attributes {{level = "loop"}} {{
  %y = loop.compute par(i: 6) inits(%x) -> scatter(sum, [i + 3]) {{
    %m = arith.constant true
    %a = loop.read %x[i] : f32
    loop.yield %a{masks}
  }} : {kind}
  func.return
}}""", error)  # fmt: skip


BAD, GOOD = "%v = kernel.load %p[%far] : f32", "%v = kernel.load %p[%0] : f32"
REACHES = "reaches element 64 of argument 0"
HEAD = """%far = arith.constant 64 : index
  %k3 = arith.constant 3 : index
  %k5 = arith.constant 5 : index
  %m1 = arith.constant -1 : index
  %yes = arith.cmpi slt, %0, %1 : index
  %no = arith.cmpi slt, %1, %0 : index
"""


def branches(condition: str, first: str, second: str) -> str:
    return f"kernel.if {condition} {{ {first} kernel.yield }} else {{ {second} kernel.yield }}"


def loop(bounds: str, body: str) -> str:
    return f"kernel.for %j = {bounds} {{ {body} kernel.yield }}"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (BAD, REACHES),
        (GOOD, None),
        (branches("%yes", BAD, GOOD), REACHES),
        (branches("%yes", GOOD, BAD), None),
        (branches("%no", BAD, GOOD), None),
        (branches("%no", GOOD, BAD), REACHES),
        # A branch that data decides.
        ("%d = kernel.load %p[%0] : f32 %u = arith.cmpf olt, %d, %f : f32 "
         + branches("%u", BAD, BAD), None),
        # Loops that run, and such that don't or are not known to.
        (loop("%0 to %1 step %1", BAD), REACHES),
        (loop("%1 to %1 step %1", BAD), None),
        (loop("%8 to %4 step %1", BAD), None),
        (loop("%0 to %8 step %none", BAD), None),
        (loop("%0 to %8 step %less", BAD), None),
        (loop("%0 to %data step %1", BAD), None),
        (loop("%data to %8 step %1", BAD), None),
        (loop("%0 to %8 step %data", BAD), None),
        # The last pass: 0, 3 and 6 of 7, of 6 only up to 3.
        (loop("%0 to %k7 step %k3", "%q0 = arith.addi %j, %k58 : index "
              "%v = kernel.load %p[%q0] : f32"), REACHES),
        (loop("%0 to %k6 step %k3", "%q0 = arith.addi %j, %k58 : index "
              "%v = kernel.load %p[%q0] : f32"), None),
        (loop("%1 to %4 step %1", "%q0 = arith.subi %1, %j : index "
              "%v = kernel.load %p[%q0] : f32"), "reaches element -2"),
        (loop("%1 to %4 step %1", "%q0 = arith.subi %k3, %j : index "
              "%v = kernel.load %p[%q0] : f32"), None),
        # Multiples from either side; what a product of two variables is, is not known.
        (loop("%0 to %8 step %1", "%q0 = arith.muli %j, %k10 : index "
              "%v = kernel.load %p[%q0] : f32"), "reaches element 70"),
        (loop("%0 to %8 step %1", "%q0 = arith.muli %k10, %j : index "
              "%v = kernel.load %p[%q0] : f32"), "reaches element 70"),
        (loop("%0 to %8 step %1", "%t0 = arith.addi %j, %1 : index "
              "%q0 = arith.muli %t0, %k9 : index %v = kernel.load %p[%q0] : f32"),
         "reaches element 72"),
        (loop("%0 to %8 step %1", "%q0 = arith.muli %j, %m1 : index "
              "%v = kernel.load %p[%q0] : f32"), "reaches element -7"),
        (loop("%0 to %k10 step %1", "%q0 = arith.muli %j, %j : index "
              "%v = kernel.load %p[%q0] : f32"), None),
        (loop("%0 to %k3 step %1", "%t0 = arith.subi %j, %1 : index "
              "%q0 = arith.muli %t0, %t0 : index %v = kernel.load %p[%q0] : f32"), None),
        (loop("%0 to %k10 step %1", "%t0 = arith.muli %j, %k10 : index "
              "%q0 = arith.divsi %t0, %1 : index %v = kernel.load %p[%q0] : f32"), None),
        (loop("%0 to %8 step %1", "%up = arith.addi %j, %8 : index "
              + loop("%0 to %up step %1", "%q0 = arith.addi %k, %k57 : index "
                     "%v = kernel.load %p[%q0] : f32").replace("%j", "%k")), None),
        # Twice one variable, and what is left of it.
        (loop("%0 to %k58 step %1", "%q0 = arith.addi %j, %j : index "
              "%v = kernel.load %p[%q0] : f32"), "reaches element 114"),
        (loop("%0 to %k58 step %1", "%t0 = arith.addi %j, %k6 : index "
              "%q0 = arith.subi %t0, %j : index %v = kernel.load %p[%q0] : f32"), None),
        (loop("%0 to %k58 step %1", "%t0 = arith.addi %j, %far : index "
              "%q0 = arith.subi %t0, %j : index %v = kernel.load %p[%q0] : f32"), REACHES),
        # What is read is not known, whatever is added to it.
        ("%q0 = arith.addi %data, %far : index %v = kernel.load %p[%q0] : f32", None),
        ("%q0 = arith.addi %far, %data : index %v = kernel.load %p[%q0] : f32", None),
        ("%q0 = arith.muli %data, %0 : index %v = kernel.load %p[%q0] : f32", None),
        # Numbers made of numbers.
        ("%q0 = arith.muli %8, %8 : index %v = kernel.load %p[%q0] : f32", REACHES),
        ("%q0 = arith.divsi %far, %0 : index %v = kernel.load %p[%q0] : f32", None),
        ("%q0 = arith.minsi %far, %8 : index %v = kernel.load %p[%q0] : f32", None),
        ("%q0 = arith.subi %4, %8 : index %v = kernel.load %p[%q0] : f32", "reaches element -4"),
        # Vectors: the last lane counts; a mask hides all.
        ("%v = kernel.load %p[%k60] : vector<4xf32>", None),
        ("%v = kernel.load %p[%k60] : vector<8xf32>", "reaches element 67 of argument 0"),
        ("%v = kernel.load %p[%far] (where %c) : f32", None),
        ("%w = arith.constant dense<1.0> : vector<8xf32> kernel.store %w, %q[%k60] : vector<8xf32>",
         "reaches element 67 of argument 1"),
        # Memory of the kernel's own is none of the arrays.
        ("%s = kernel.scratch {count = 4 : i64} : !kernel.ptr<f32> %v = kernel.load %s[%far] : f32",
         None),
    ],
)  # fmt: skip
def test_what_surely_runs_of_a_kernel(body: str, error: str | None) -> None:
    numbers = "".join(f"%k{n} = arith.constant {n} : index\n" for n in (6, 7, 9, 10, 57, 58, 60))
    numbers += "%none = arith.subi %1, %1 : index\n%less = arith.subi %0, %1 : index\n"
    numbers += "%data0 = kernel.load %p[%0] : f32\n%data1 = arith.fptosi %data0 : f32 to i64\n"
    numbers += "%data = arith.index_cast %data1 : i64 to index\n"
    check(kernel(HEAD + numbers + body), error)


ARRAYS = """func.func @main(%x: KIND, %z: OTHER) -> OTHER {{
  {bind}
  %y = host.launch %x, %z {{callee = @k}} : (KIND, OTHER) -> OTHER
  func.return %y : OTHER
}}
kernel.func @k(%p: !kernel.ptr<f32>, %o: !kernel.ptr<f32>, %q: !kernel.ptr<f32>{arguments})
    attributes {{grid = #sym<{grid}>, outputs = array<i64: 2>, symbols = [{symbols}], target = "{target}"}} {{
  %c = arith.constant {place} : index
  {body}
  kernel.return
}}"""  # noqa: E501


@pytest.mark.parametrize(
    ("target", "grid", "pointer", "place", "error"),
    [
        ("gpu", "8", "p", "99", None),  # the size of %x is no number
        ("gpu", "8", "o", "8", "reaches element 8 of argument 1 of @k, .* last element is 7"),
        ("gpu", "8", "o", "7", None),
        ("gpu", "s0", "o", "8", "reaches element 8 of argument 1"),
        ("gpu", "8", "o", "%m", None),
        ("gpu", "8", "o", "%n", None),
        ("cpu", "s0", "o", "%end", None),
        ("cpu", "8", "o", "%end", "reaches element 8"),
        ("cpu", "7", "o", "%end", None),
        ("cpu", "8", "o", "%begin", None),
        ("cpu", "8", "o", "%n", None),
    ],
)
def test_arrays_and_points_of_kernels(target, grid, pointer, place, error) -> None:
    kinds = "tensor<[s0, s1] x f32, strides [s1, 1]>", "tensor<[8] x f32, strides [1]>"
    bind = "\n".join(
        f'%s{d} = sym.bind_size %x {{dim = {d} : i64, symbol = "s{d}"}} : (KIND) -> index'
        for d in (0, 1)
    )
    body = f"%v = kernel.load %{pointer}[{place if place[0] == '%' else '%c'}] : f32"
    arguments = ", %m: index, %n: index" + (", %begin: index, %end: index" * (target == "cpu"))
    text = ARRAYS.format(bind=bind, grid=grid, target=target, body=body, arguments=arguments,
                         symbols='"s0", "s1"', place=place if place[0] != "%" else 0)  # fmt: skip
    check(text.replace("KIND", kinds[0]).replace("OTHER", kinds[1]), error)
