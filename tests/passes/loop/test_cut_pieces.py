"""Maps that are cut where conditions on their axes change: which of them, where, and that values
are eager's, bit for bit."""

from __future__ import annotations

import itertools
import operator
import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch.nn import functional

import irc
from irc.dialects import layout
from irc.interp.core import run
from irc.ir.passes import PassContext, PassManager
from irc.ir.text.printer import print_op
from irc.pipeline import pipeline_text
from irc.target import Target
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve
from tests.passes.loop.put_together import DTYPES, LAYOUTS, image, program, same_bits
from tests.passes.loop.texts import body_of, computes, expanded, heads, parsed, ran, remarks

CUT = "cut-pieces"
X, Z = "%x: f32[48, 64]", "%z: f32[48, 64]"


def condition(name: str, expression: Any, predicate: str, bound: Any, swapped: bool = False) -> str:
    """Lines that compare two index expressions."""
    pair = f"%{name}_1, %{name}_0" if swapped else f"%{name}_0, %{name}_1"
    return f"""%{name}_0 = loop.index {{expression = #sym<{expression}>}} : index
      %{name}_1 = loop.index {{expression = #sym<{bound}>}} : index
      %{name} = arith.cmpi {predicate}, {pair} : index
      """


def masked(
    conditions: str, masks: Sequence[str], axes: str = "i0: 48, i1: 64", type_: str = "f32[48, 64]",
    rest: str = "", index: str = "i0, i1",
) -> str:  # fmt: skip
    """A map that is exp(x) under each mask, one over the other."""
    reads = "".join(
        f"""%r{k} = loop.read %x[{index}] (where %{mask}) : f32
      %e{k} = math.exp %r{k} : f32
      %s{k + 1} = arith.select %{mask}, %e{k}, %s{k} : f32
      """
        for k, mask in enumerate(masks)
    )
    return f"""%y = loop.compute par({axes}) -> map {rest} {{
      %s0 = arith.constant 2.0 : f32
      {conditions}{reads}loop.yield %s{len(masks)} }} : {type_}"""


def cut(body: str, arguments: str = X, results: str = "%y: f32[48, 64]", target: Any = "avx2",
        options: str = "") -> tuple[Any, PassContext]:  # fmt: skip
    """A module after the pass, and what the pass told."""
    module = parsed(arguments, body, results)
    return module, ran(module, CUT + options, target)


def keeps_values(body: str, module: Any, arguments: str = X, results: str = "%y: f32[48, 64]",
                 shapes: Sequence[Sequence[int]] = ((48, 64),)) -> None:  # fmt: skip
    """A module has the values of the text it was."""
    inputs = [torch.randn(*shape) for shape in shapes]
    own = [x.clone() for x in inputs]
    expected = run(parsed(arguments, body, results), *inputs)
    same_bits(run(module, *own), expected)
    same_bits(own, inputs)


def count(context: PassContext, name: str = "pieces") -> int:
    return context.statistics[(CUT, name)]


def main_of(module: Any) -> str:
    """The function's text."""
    return print_op(module.lookup("main"))


def sizes(module: Any, axis: int = 0) -> list[str]:
    """The extents of an axis of all computes."""
    return [str(op.axis_list[axis].extent) for op in computes(module)]


# -- where it is cut

HOLDS: dict[str, Callable[[int, int], bool]] = {
    "slt": operator.lt, "sle": operator.le, "sgt": operator.gt, "sge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


@pytest.mark.parametrize("predicate", HOLDS)
@pytest.mark.parametrize("swapped", [False, True])
def test_pieces_end_where_the_outcome_changes(predicate, swapped):
    for sign, bound in itertools.product((1, -1), (-1, 0, 1, 20, 46, 47, 48)):
        body = masked(condition("c", f"{sign}*i0", predicate, sign * bound, swapped), ["c"])
        module, context = cut(body)
        places = (sign * place for place in range(48))
        pairs = ((sign * bound, p) if swapped else (p, sign * bound) for p in places)
        outcomes = [HOLDS[predicate](*pair) for pair in pairs]
        expected = [str(len(list(each))) for _, each in itertools.groupby(outcomes)]
        assert sizes(module) == expected, (sign, bound)
        assert count(context) == (len(expected) if len(expected) > 1 else 0)
        if bound == 20:
            keeps_values(body, module)


def test_a_decided_condition_is_gone_and_so_is_what_it_forbade():
    module, _ = cut(masked(condition("c", "i0", "slt", "20"), ["c"]))
    first, second = computes(module)
    assert body_of(first) == "read exp yield" and next(first.block.ops).mask is None
    assert body_of(second) == "constant yield"


def test_results_keep_their_name_types_and_strides():
    module, context = cut(masked(condition("c", "i0", "slt", "20"), ["c"]))
    (join,) = [op for op in module.walk() if isinstance(op, layout.JoinOp)]
    assert join.array.name_hint == "y"
    assert [piece.type.strides for piece in join.operands] == [(64, 1), (64, 1)]
    (told,) = remarks(context)
    assert re.fullmatch("'loop.compute': is cut into 2 pieces: .* -> .*", told)
    assert count(context, "cut") == 1


def test_two_results_are_cut_at_once():
    body = f"""%y, %w = loop.compute par(i0: 48, i1: 64) -> map, map {{
      {condition("c", "i0", "slt", "20")}%r = loop.read %x[i0, i1] (where %c) : f32
      %e = math.exp %r : f32
      loop.yield %e, %r }} : f32[48, 64], tensor<[48, 64] x f32, strides [128, 1]>"""
    results = "%y: f32[48, 64]"
    module, context = cut(body, results=results)
    assert sizes(module) == ["20", "28"] and count(context, "cut") == 1
    joins = [op for op in module.walk() if isinstance(op, layout.JoinOp)]
    assert [join.array.type.strides for join in joins] == [(64, 1), (128, 1)]
    keeps_values(body, module)


@pytest.mark.parametrize(("strides", "axis"), [("64, 1", 0), ("1, 48", 1), ("256, 2", 0)])
def test_the_axis_along_which_elements_are_adjacent_is_not_cut(strides, axis):
    """Of borders along both axes only the other's cut; without unit strides that is the first."""
    conditions = condition("a", "i0", "slt", "20") + condition("b", "i1", "slt", "24")
    body = masked(conditions, ["a", "b"], type_=f"tensor<[48, 64] x f32, strides [{strides}]>")
    module = irc.parse(expanded(f"""func.func @main({X}) attributes {{level = "loop"}} {{
      {body}
      func.return }}"""))  # fmt: skip
    context = ran(module, CUT, "avx2")
    assert count(context) == 2
    assert sizes(module, axis) == (["20", "28"] if axis == 0 else ["24", "40"])
    assert sizes(module, 1 - axis) == [str((48, 64)[1 - axis])] * 2


def test_the_outermost_axis_in_memory_is_cut_first():
    conditions = condition("a", "i0", "slt", "5") + condition("b", "i1", "slt", "3")
    for strides, dims in (([512, 64, 1], [1, 1, 0]), ([64, 640, 1], [0, 1])):
        body = masked(
            conditions, ["a", "b"], "i0: 10, i1: 8, i2: 64", index="i0, i1, i2",
            type_=f"tensor<[10, 8, 64] x f32, strides {strides}>",
        )  # fmt: skip
        module, context = cut(body, "%x: f32[10, 8, 64]", "")
        assert count(context) == len(dims) + 1
        assert [op.dim for op in module.walk() if isinstance(op, layout.JoinOp)] == dims


STAY = {
    "of two axes": condition("c", "i0 + i1", "slt", "20"),
    "of a multiple": condition("c", "2*i0", "slt", "20"),
    "of a remainder": condition("c", "mod(i0, 7)", "slt", "3"),
    "always": condition("c", "i0", "slt", "48"),
    "beyond the end": condition("c", "i0", "slt", "60"),
    "never": condition("c", "i0", "slt", "0"),
    "before the begin": condition("c", "i0", "sge", "-3"),
    "unsigned": condition("c", "i0", "ult", "20"),
    "of data": """%v = loop.read %x[i0, i1] : f32
      %c = arith.cmpf olt, %v, %s0 : f32
      """,
}


@pytest.mark.parametrize("name", STAY)
def test_maps_without_a_border_inside_an_axis_stay(name):
    body = masked(STAY[name], ["c"])
    module, context = cut(body)
    assert main_of(module) == main_of(parsed(X, body, "%y: f32[48, 64]"))
    assert not count(context) and not remarks(context)


BORDER = condition("c", "i0", "slt", "20")
KINDS = {
    "scheduled": (masked(BORDER, ["c"], rest="schedule #loop.schedule<cpu>"), "f32[48, 64]"),
    "a reduction": (
        f"""%y = loop.compute par(i0: 48) red(i1: 64) -> reduce(sum, f32) {{
      {BORDER}%r = loop.read %x[i0, i1] (where %c) : f32
      %e = math.exp %r : f32
      loop.yield %e }} : f32[48]""", "f32[48]"),
    "a map and a reduction": (
        f"""%m, %y = loop.compute par(i0: 48) red(i1: 64) -> map, reduce(sum, f32) {{
      {BORDER}%r = loop.read %x[i0, i1] (where %c) : f32
      %e = math.exp %r : f32
      loop.yield %e, %e }} : f32[48, 64], f32[48]""", "f32[48]"),
    "a scan": (
        f"""%y = loop.compute par(i0: 48) scan(i1: 64) -> scan(sum, f32) {{
      {BORDER}%r = loop.read %x[i0, i1] (where %c) : f32
      %e = math.exp %r : f32
      loop.yield %e }} : f32[48, 64]""", "f32[48, 64]"),
    "in a group": (
        f"""%y = loop.group (i0: 48) {{
      {masked(BORDER, ["c"]).replace("%y", "%inner")}
      loop.yield %inner }} : f32[48, 64]""", "f32[48, 64]"),
    "of no axes": (
        """%y = loop.compute -> map {
      %c = arith.constant true
      %r = loop.read %x[3, 4] (where %c) : f32
      loop.yield %r } : f32[]""", "f32[]"),
    "what an argument becomes": (
        masked(BORDER, ["c"]) + "\ngraph.update_input %y {argument = 0 : i64} : (f32[48, 64])",
        "f32[48, 64]"),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_what_is_no_lone_map_stays(name):
    body, type_ = KINDS[name]
    module, context = cut(body, results=f"%y: {type_}")
    assert not count(context) and heads(module) == heads(parsed(X, body, f"%y: {type_}"))


def test_the_map_of_these_alone_would_be_cut():
    assert count(cut(masked(BORDER, ["c"]))[1]) == 2


def test_a_map_that_reads_an_argument_before_it_changes_is_cut():
    body = masked(BORDER, ["c"]) + """
      %n = loop.compute par(i0: 48, i1: 64) -> map {
        %v = loop.read %x[47 - i0, i1] : f32
        loop.yield %v } : f32[48, 64]
      graph.update_input %n {argument = 0 : i64} : (f32[48, 64])"""  # fmt: skip
    module, context = cut(body)
    assert count(context) == 2
    keeps_values(body, module)


# -- how far


def test_a_map_stays_whole_where_launches_take_longer_than_what_they_spare():
    """16 rows of 2 elements are less work than a second launch; where that costs nothing, they
    are cut, and so are more rows."""
    def rows(many: int) -> str:
        return masked(BORDER.replace("<20>", f"<{many // 2}>"), ["c"], f"i0: {many}, i1: 2",
                      f"f32[{many}, 2]")  # fmt: skip

    features = TargetFeatures.avx2()
    free = Target(evolve(features, launch=0))
    for many, target, pieces in ((16, "avx2", 0), (16, free, 2), (512, "avx2", 2)):
        _, context = cut(rows(many), f"%x: f32[{many}, 2]", "", target)
        assert count(context) == pieces and len(remarks(context)) == pieces // 2


def stripes(*borders: int) -> str:
    """Rows under one condition more behind each border."""
    conditions = "".join(condition(f"c{k}", "i0", "sge", b) for k, b in enumerate(borders))
    return masked(conditions, [f"c{k}" for k in range(len(borders))])


def test_at_most_so_many_pieces_are_made_of_a_map():
    body = stripes(3, 11, 20, 33)
    for most, pieces in ((1, 0), (4, 0), (5, 5), (32, 5)):
        module, context = cut(body, options=f"{{max_pieces={most}}}")
        assert count(context) == pieces
        keeps_values(body, module)


@pytest.mark.parametrize(("most", "pieces"), [(1, 0), (2, 2), (3, 3), (4, 4), (32, 4)])
def test_pieces_that_are_cut_again_are_counted_together(most, pieces):
    conditions = condition("a", "i0", "slt", "5") + condition("b", "i1", "slt", "3")
    arguments, results = "%x: f32[10, 8, 32]", "%y: f32[10, 8, 32]"
    body = masked(
        conditions, ["a", "b"], "i0: 10, i1: 8, i2: 32", "f32[10, 8, 32]", index="i0, i1, i2"
    )
    module, context = cut(body, arguments, results, options=f"{{max_pieces={most}}}")
    assert count(context) == pieces
    keeps_values(body, module, arguments, results, [(10, 8, 32)])


def test_the_default_is_32_pieces():
    for borders, pieces in ((31, 32), (32, 0)):
        assert count(cut(stripes(*range(1, borders + 1)))[1]) == pieces


def test_without_fuel_nothing_is_cut():
    body = masked(BORDER, ["c"])
    for fuel in (0, 1):
        module = parsed(X, body, "%y: f32[48, 64]")
        before = main_of(module)
        context = ran(module, CUT, "avx2", fuel)
        assert count(context) == 2 * fuel
        assert (main_of(module) == before) == (fuel == 0)
        (x,) = module.lookup("main").block.arguments
        assert all(user.parent_op.parent_op is module.lookup("main") for user in x.users)


# -- sizes that are not known

BIND = """%n0 = sym.bind_size %x {dim = 0, symbol = "n"} : (f32[n, 64]) -> index
%m0 = sym.bind_size %x2 {dim = 0, symbol = "m"} : (f32[m, 64]) -> index
"""
SYMBOLIC = {
    "a number": ("n + 5", [("sge", "3")]),
    "behind a size": ("n + 5", [("sge", "n + 1")]),
    "a size that may be nothing": ("n + 5", [("sge", "n")]),
    "two in order": ("n + 9", [("sge", "n + 5"), ("slt", "2")]),
    "two of no order": ("m + n + 9", [("sge", "n + 5"), ("sge", "m + 2")]),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_axes_whose_sizes_are_not_known_stay_whole(name):
    """Their pieces would be copied: a launch makes none in its place."""
    extent, borders = SYMBOLIC[name]
    conditions = "".join(condition(f"c{k}", "i0", *b) for k, b in enumerate(borders))
    masks = [f"c{k}" for k in range(len(borders))]
    body = BIND + masked(
        conditions, masks, f"i0: {extent}, i1: 64", f"f32[{extent}, 64]", index="0, i1"
    )
    arguments, results = "%x: f32[n, 64], %x2: f32[m, 64]", f"%y: f32[{extent}, 64]"
    module, context = cut(body, arguments, results)
    assert sizes(module) == [extent]
    assert count(context) == 0


def ranged(begin: str, name: str) -> str:
    """A map for a range of a size whose condition is one of an axis of known size."""
    return f"""%{name} = loop.compute par(i0: n, i1: 48, i2: 64) -> map
      attributes {{when = #sym.range<n, {begin}>}} {{
      {condition("c", "i1", "slt", 20)}
      %r = loop.read %x[i0, i1, i2] (where %c) : f32
      %e = math.exp %r : f32
      loop.yield %e }} : f32[n, 48, 64]
    """


def test_maps_for_a_range_of_a_size_stay_whole():
    """What chooses between them takes computes."""
    body = f"""%n0 = sym.bind_size %x {{dim = 0, symbol = "n"}} : (f32[n, 48, 64]) -> index
    {ranged("0, 16", "p")} {ranged("17", "q")}
    %y = sym.choose %p, %q : (f32[n, 48, 64], f32[n, 48, 64]) -> f32[n, 48, 64]
    """
    module, context = cut(body, "%x: f32[n, 48, 64]", "%y: f32[n, 48, 64]")
    assert count(context) == 0
    whole = body.replace("attributes {when = #sym.range<n, 0, 16>}", "")
    whole = whole.replace("sym.choose %p, %q : (f32[n, 48, 64], f32[n, 48, 64])",
                          "layout.view %p {offset = #sym<0>} : (f32[n, 48, 64])")  # fmt: skip
    whole = whole.replace(ranged("17", "q"), "")
    module, context = cut(whole, "%x: f32[n, 48, 64]", "%y: f32[n, 48, 64]")
    assert count(context) == 2


# -- programs


def pieces_of(function: Any, *arguments: Any) -> tuple[Any, int]:
    """A traced function behind the pass, and how many pieces its maps are."""
    text = pipeline_text()
    before = text.split(f",{CUT}")[0]
    module = irc.trace(function, arguments)
    context = PassContext(target=Target.named("avx2"))
    PassManager.parse(f"functional,{before},{CUT}").run(module, context)
    return module, count(context)


def agree(function: Any, *arguments: Any) -> None:
    """A compiled call changes and gives what eager's does."""
    inputs, own = ([a.clone() for a in arguments] for _ in range(2))
    expected = function(*inputs)
    same_bits(irc.compile(function, arguments)(*own), expected)
    same_bits(own, inputs)


def rolled(x: Any) -> Any:
    return torch.roll(x, (3, -2), (1, 2))


PROGRAMS = {
    "rolled": (rolled, 4),
    "rolled in place": (lambda x: x.copy_(rolled(x)), 0),
    "rolled in place of another": (lambda x: x.mul_(2).add(rolled(x)), 4),
    "concatenated": (lambda x: torch.cat([x * 2, x[:, 3:9].abs()], 1), 2),
    "padded": (lambda x: functional.pad(x * 2, (0, 0, 0, 0, 2, 3), value=2.0), 3),
    "padded along two axes": (lambda x: functional.pad(x * 2, (0, 0, 1, 2, 3, 4), value=2.0), 5),
    "padded along the innermost axis": (lambda x: functional.pad(x * 2, (2, 3)), 0),
    "a row of its own": (lambda x: torch.select_scatter(x * 2, x[:, 7].abs(), 1, 5), 3),
    "the first rows": (lambda x: torch.where(torch.arange(14).view(-1, 1, 1) < 4, x.sqrt(), x), 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, pieces = PROGRAMS[name]
    x = torch.randint(-9, 9, (2, 14, 14, 128)).float()
    assert pieces_of(function, x.clone())[1] == pieces
    agree(function, x)


@pytest.mark.parametrize("strides", LAYOUTS)
def test_rolls_of_all_strides_and_dtypes(strides):
    for number, dtype in enumerate(DTYPES):
        x = image(random.Random(number), (3, 9, 17, 11), dtype, strides)
        function = partial(torch.roll, shifts=(1, -2), dims=((0, 2), (2, 3))[number % 2])
        same_bits(irc.compile(function, (x,))(x), function(x))


def test_empty_images():
    for shape in ((0, 16, 16), (16, 0, 16), (16, 16, 0)):
        x = torch.randn(shape)
        agree(lambda x: (torch.cat([x.abs(), x, -x], 0), torch.cat([x, x * 2], 1)), x)
        agree(lambda x: functional.pad(x, (0, 0, 1, 2, 3, 0), value=1.0), x)


def check_random(seed: int) -> int:
    """Both the pass alone and a compiled program give eager's values; how many pieces it made."""
    function, arguments = program(seed)
    expected = function(*arguments)
    module, pieces = pieces_of(function, *arguments)
    same_bits(run(module, *arguments), expected)
    same_bits(irc.compile(function, tuple(arguments))(*arguments), expected)
    return pieces


def check_dynamo(seed: int, dynamic: bool) -> None:
    """What torch.compile gives for a program, and for one of its calls with other sizes."""
    function, arguments = program(seed)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="irc", dynamic=dynamic)
    same_bits(compiled(*arguments), function(*arguments))


def test_random_programs():
    pieces = [check_random(seed) for seed in range(189, 201)]
    assert sum(map(bool, pieces)) >= 5 and max(pieces) >= 4


@pytest.mark.parametrize("dynamic", [False, True])
def test_random_programs_by_way_of_dynamo(dynamic):
    for seed in range(198, 203):
        check_dynamo(seed, dynamic)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_more_random_programs(seed):
    check_random(seed)
    if seed % 5 == 0:
        for dynamic in (False, True):
            check_dynamo(seed, dynamic)


def test_one_program_of_many_sizes():
    def function(x, y):
        whole = torch.cat([x * 2, y.abs()], 1)
        padded = functional.pad(whole, (0, 0, 1, 2), value=-1.0)
        return torch.roll(padded, (2, 1), (1, 0)), torch.stack([x, x.relu()], 1)

    compiled = torch.compile(function, backend="irc", dynamic=True)
    for batch, one, other in ((2, 5, 7), (3, 40, 9), (4, 2, 31)):
        x, y = (torch.randint(-9, 9, (batch, rows, 24)).float() for rows in (one, other))
        same_bits(compiled(x, y), function(x, y))


@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_of_concatenations_and_pads(dynamic):
    def function(x, y):
        whole = torch.cat([x * x, y * 3, x], 1)
        return functional.pad(whole, (0, 0, 2, 3, 1, 0), value=1.0)

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="irc", dynamic=dynamic)
    x, y = (torch.randint(-9, 9, (3, rows, 32)).double().requires_grad_() for rows in (9, 14))
    weight = torch.randint(-9, 9, (4, 37, 32)).double()
    gradients = [torch.autograd.grad(f(x, y), (x, y), weight) for f in (compiled, function)]
    same_bits(*gradients)
