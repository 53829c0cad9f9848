"""Each rule about strides, views and copies, by a program that breaks it."""

from __future__ import annotations

import pytest

from tests.dialects.verifying import check

ROWS = "tensor<[4, 6] x f32, strides [6, 1]>"
COLUMNS = "tensor<[6, 4] x f32, strides [1, 6]>"
BARE = "tensor<4x6xf32>"


def function(body: str, level: str = "layout", argument: str = ROWS) -> str:
    return (
        f'func.func @main(%x: {argument}) attributes {{level = "{level}"}} {{\n{body}\n'
        "func.return }"
    )


@pytest.mark.parametrize("level", ["layout", "loop"])
def test_every_type_has_strides(level):
    add = "%y = graph.add %x, %x : ({0}, {0}) -> {1}"
    if level == "layout":
        check(function(add.format(ROWS, ROWS), level), None)
    check(function("", level, BARE), f"argument 0 is {BARE}, .* on the {level} level all have")
    check(function(add.format(ROWS, BARE), level), "graph.add': the result is .* has no strides")
    check(function("", "graph", BARE), None)


def test_every_member_of_a_group_has_strides():
    made = "tensor<[4] x f32, strides [1]>"
    text = function(f"""%y = loop.group (i: 4) {{
        %s = loop.compute par(i: 4) red(j: 6) -> reduce(sum, f32) {{
          %a = loop.read %x[i, j] : f32
          loop.yield %a
        }} : tensor<4xf32>
        %t = loop.compute par(i: 4) -> map {{
          %a = loop.read %s[i] : f32
          loop.yield %a
        }} : {made}
        loop.yield %t
      }} : {made}""", "loop")  # fmt: skip
    check(text.replace("tensor<4xf32>", made), None)
    check(text, "loop.compute': the result is tensor<4xf32>, which has no strides")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("graph.permute %x {permutation = array<i64: 1, 0>, view} : (ROWS) -> COLUMNS", None),
        ("graph.permute %x {permutation = array<i64: 1, 0>, view} : (ROWS) -> "
         "tensor<[6, 4] x f32, strides [4, 1]>", r"strides \[4, 1\]; a view of .* has \[1, 6\]"),
        ("graph.permute %x {permutation = array<i64: 1, 0>} : (ROWS) -> "
         "tensor<[6, 4] x f32, strides [4, 1]>", None),
        ("graph.reverse %x {dims = array<i64: 0>, view} : (ROWS) -> ROWS", "takes a copy"),
        ("graph.neg %x {view} : (ROWS) -> ROWS", "which is of operations that only show elements"),
        ("graph.slice %x {dim = 1 : i64, start = #sym<1>, step = 2 : i64, view} : (ROWS) -> "
         "tensor<[4, 2] x f32, strides [6, 2]>", None),
        ("graph.slice %x {dim = 1 : i64, start = #sym<1>, step = 2 : i64, view} : (ROWS) -> "
         "tensor<[4, 2] x f32, strides [6, 1]>", r"a view of .* has \[6, 2\]"),
    ],
)  # fmt: skip
def test_flagged_views(body, error):
    body = body.replace("ROWS", ROWS).replace("COLUMNS", COLUMNS)
    check(function(f"%y = {body}"), error)


def test_a_flagged_reshape_regroups_its_strides():
    text = function("%y = graph.reshape %x {view} : (tensor<[4, 6] x f32, strides [S, 1]>) "
                    "-> tensor<[24] x f32, strides [1]>", "layout",
                    "tensor<[4, 6] x f32, strides [S, 1]>")  # fmt: skip
    check(text.replace("S", "6"), None)
    check(text.replace("S", "8"), "takes a copy")


COPY = "%y = layout.copy %x : (ROWS) -> {}"
VIEW = "%c = layout.copy %x : (ROWS) -> ROWS\n%y = layout.view %{} {{offset = #sym<{}>}} : (ROWS) "
HALF = "tensor<[2, 6] x f32, strides [6, 1]>"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (COPY.format("tensor<[4, 6] x f32, strides [1, 4]>"), None),
        (COPY.format("tensor<[6, 4] x f32, strides [1, 6]>"), "another size, element or device"),
        (COPY.format("tensor<[4, 6] x f64, strides [6, 1]>"), "another size, element or device"),
        (COPY.format("tensor<[4, 6] x f32, strides [0, 1]>"), "two elements of .* share a place"),
        (COPY.format(BARE), "has no strides"),
        (VIEW.format("c", 12) + f"-> {HALF}", None),
        (VIEW.format("c", 13) + f"-> {HALF}", "from element 13 to 24 of memory whose last .* 23"),
        (VIEW.format("c", -1) + f"-> {HALF}", "from element -1 to 10"),
        (VIEW.format("x", 13) + f"-> {HALF}", None),  # an argument's storage may be larger
        (VIEW.format("c", 0) + "-> tensor<[4, 6] x i32, strides [6, 1]>", "another element"),
        (VIEW.format("c", 0) + "-> tensor<2x6xf32>", "needs the strides of both"),
        (VIEW.format("c", 6) + f"-> {HALF}\n%z = layout.view %y {{offset = #sym<7>}} : ({HALF}) "
         f"-> {HALF}", "from element 13 to 24"),
    ],
)  # fmt: skip
def test_views_and_copies(body, error):
    check(function(body.replace("ROWS", ROWS)), error)


@pytest.mark.parametrize(
    ("level", "strides", "error"),
    [
        ("loop", "[6, 1]", None),
        ("loop", "[1, 4]", r"result 0 has strides \[6, 1\], its caller must see \[1, 4\]"),
        ("loop", "[6]", "its caller must see"),
        ("layout", "[1, 4]", None),  # insert-layout-copies is still to come
    ],
)
def test_results_have_the_strides_that_the_caller_must_see(level, strides, error):
    check(
        f"func.func @main(%x: {ROWS}) -> ({ROWS} {{irc.strides = #sym.dims<{strides}>}}) "
        f'attributes {{level = "{level}"}} {{ func.return %x : {ROWS} }}',
        error,
    )


def test_strides_of_single_elements_do_not_count():
    one = "tensor<[1, 6] x f32, strides [6, 1]>"
    check(
        f"func.func @main(%x: {one}) -> ({one} {{irc.strides = #sym.dims<[9, 1]>}}) "
        f'attributes {{level = "loop"}} {{ func.return %x : {one} }}',
        None,
    )


@pytest.mark.fault("V17")
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_strides_are_asked_of_members_of_groups_at_any_depth(depth):
    made = "tensor<[4] x f32, strides [1]>"
    inside = f"""%s = loop.compute par(i: 4) red(j: 6) -> reduce(sum, f32) {{
          %a = loop.read %x[i, j] : f32
          loop.yield %a
        }} : tensor<4xf32>
        %t = loop.compute par(i: 4) -> map {{
          %a = loop.read %s[i] : f32
          loop.yield %a
        }} : {made}
        loop.yield %t"""
    for level in range(depth - 1):
        inside = f"%g{level} = loop.group (i: 4) {{\n{inside}\n}} : {made}\nloop.yield %g{level}"
    text = function(f"%y = loop.group (i: 4) {{\n{inside}\n}} : {made}", "loop")
    check(text.replace("tensor<4xf32>", made), None)
    check(text, "loop.compute': the result is tensor<4xf32>, which has no strides")


ONE = "tensor<[1, 1] x f32, strides [9, 9]>"
NONE = "tensor<[0, 6] x f32, strides [6, 1]>"


@pytest.mark.parametrize(
    ("offset", "made", "error"),
    [
        (23, ONE, None),
        (24, ONE, "from element 24 to 24 of memory whose last element is 23"),
        (-1, ONE, "from element -1 to -1"),
        (99, NONE, None),  # no element is anywhere
        ("s0", ONE, None),
        (0, "tensor<[4, 6] x f32, strides [6, 1]>", None),
        (0, "tensor<[5, 6] x f32, strides [6, 1]>", "from element 0 to 29"),
        (0, 'tensor<[4, 6] x f32, strides [6, 1], "cuda:0">', "another element or device"),
    ],
)
def test_places_of_views(offset, made, error):
    bind = '%n = arith.constant 1 : index\n%s = sym.bind %n {symbol = "s0"} : (index) -> index\n'
    check(function(bind + VIEW.replace("ROWS", ROWS).format("c", offset) + f"-> {made}"), error)


@pytest.mark.parametrize(
    ("maker", "own"),
    [
        ("layout.copy %x : (ROWS) -> ROWS", True),
        ("graph.neg %x : (ROWS) -> ROWS", True),
        ("graph.permute %x {permutation = array<i64: 0, 1>, view} : (ROWS) -> ROWS", False),
        ('graph.call_aten %x {callee = "aten.exp.default", arguments = {self = #aten.operand<0>}} '
         ": (ROWS) -> ROWS", False),
        ("sym.refine %x : (ROWS) -> ROWS", False),
    ],
)  # fmt: skip
def test_memory_of_ones_own_ends_where_the_type_does(maker, own):
    pytest.importorskip("torch")
    text = f"%c = {maker}\n%y = layout.view %c {{offset = #sym<13>}} : (ROWS) -> {HALF}"
    check(function(text.replace("ROWS", ROWS)), "from element 13 to 24" if own else None)


@pytest.mark.parametrize(
    ("made", "error"),
    [
        ("tensor<[1, 6] x f32, strides [0, 1]>", None),
        ("tensor<[2, 6] x f32, strides [0, 1]>", "two elements of .* share a place"),
        ("tensor<[2, 0] x f32, strides [0, 1]>", None),
        ("tensor<[s0, 6] x f32, strides [0, 1]>", "two elements of .* share a place"),
        ("tensor<[s0, 6] x f32, strides [6, 1]>", None),
    ],
)
def test_copies_have_places_of_their_own(made, error):
    source = made.partition(", strides")[0] + ", strides [6, 1]>"
    bind = f'%s = sym.bind_size %x {{dim = 0 : i64, symbol = "s0"}} : ({source}) -> index\n'
    text = (bind if "s0" in made else "") + f"%y = layout.copy %x : ({source}) -> {made}"
    check(function(text, argument=source), error)


def returned(kind, fact, value="%x"):
    return (
        f"func.func @main(%x: {kind}, %n: index) -> ({kind if value == '%x' else 'index'} "
        f"{{{fact}}}) attributes {{level = \"loop\"}} {{\nBIND\nfunc.return {value} : "
        f"{kind if value == '%x' else 'index'} }}"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fact", "error"),
    [
        (ROWS, "irc.strides = #sym.dims<[6, 1]>", None),
        (ROWS, "irc.strides = #sym.dims<[6, 2]>", "its caller must see"),
        (ROWS, "mine.other = #sym.dims<[6, 2]>", None),
        (ROWS, "irc.strides = 1 : i64", "strides is 1 : i64, not a DimsAttr"),
        ("tensor<[0, 6] x f32, strides [6, 1]>", "irc.strides = #sym.dims<[1, 1]>", None),
        ("tensor<[0, 6] x f32, strides [6, 1]>", "irc.strides = #sym.dims<[1]>", "its caller must"),
        ("tensor<[1, 6] x f32, strides [6, 1]>", "irc.strides = #sym.dims<[1, 1]>", None),
        ("tensor<[2, 6] x f32, strides [6, 1]>", "irc.strides = #sym.dims<[1, 1]>", "must see"),
        ("tensor<[s0, 6] x f32, strides [6, 1]>", "irc.strides = #sym.dims<[1, 1]>", "must see"),
    ],
)
def test_what_is_said_of_results(kind, fact, error):
    bind = f'%s = sym.bind_size %x {{dim = 0 : i64, symbol = "s0"}} : ({kind}) -> index'
    check(returned(kind, fact).replace("BIND", bind if "s0" in kind else ""), error)


def test_a_number_that_is_returned_has_no_strides():
    text = returned(ROWS, "irc.strides = #sym.dims<[6, 2]>", "%n").replace("BIND", "")
    check(text, "strides .* do not fit index")


PIECE = "tensor<[2, 6] x f32, strides [6, 1]>"


@pytest.mark.parametrize(
    ("pieces", "made", "dim", "error"),
    [
        ([ROWS, ROWS], "tensor<[8, 6] x f32, strides [6, 1]>", 0, None),
        ([ROWS, "tensor<[6] x f32, strides [1]>"], "tensor<[5, 6] x f32, strides [6, 1]>", 0, None),
        ([ROWS, ROWS], "tensor<[4, 12] x f32, strides [12, 1]>", 1, None),
        ([ROWS, ROWS], "tensor<[9, 6] x f32, strides [6, 1]>", 0, "don't have the size of"),
        ([ROWS, ROWS], "tensor<[8, 6] x f32, strides [6, 1]>", 2, "joins along dimension 2"),
        ([ROWS, PIECE], "tensor<[4, 12] x f32, strides [12, 1]>", 1, "can't be a piece of"),
        ([ROWS, "tensor<[2] x f32, strides [1]>"], "tensor<[5, 6] x f32, strides [6, 1]>", 0,
         "can't be a piece of"),
        ([ROWS, ROWS], "tensor<[8, 6] x f64, strides [6, 1]>", 0, "can't be a piece of"),
        ([ROWS, ROWS], "tensor<[8, 6] x f32, strides [0, 1]>", 0, "share a place"),
        ([], "tensor<[0, 6] x f32, strides [6, 1]>", 0, None),
    ],
)  # fmt: skip
def test_pieces_fill_the_array_that_they_are_joined_to(pieces, made, dim, error):
    arguments = ", ".join(f"%a{k}: {piece}" for k, piece in enumerate(pieces))
    operands = ", ".join(f"%a{k}" for k in range(len(pieces)))
    text = (
        f'func.func @main({arguments}) attributes {{level = "loop"}} {{\n'
        f"%y = layout.join {operands} {{dim = {dim} : i64}} : ({', '.join(pieces)}) -> {made}\n"
        "func.return }"
    )
    check(text, error)
