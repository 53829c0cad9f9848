"""The verifier's rules by tables: what just fits and what just does not, on operations of their
own and on texts of a few lines."""

from __future__ import annotations

import pytest

from irc.dialects import arith
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir import verifier, verify
from irc.ir.core import Block, Operation, Region
from irc.ir.definition import SEGMENTS
from irc.ir.verifier import Stated
from tests.ir.verifier_ops import (
    Alike,
    AlikeBody,
    AlikeGroups,
    AlikeMany,
    Careful,
    Changes,
    End,
    Factual,
    Groups,
    Holder,
    Inner,
    Loose,
    Middle,
    Named,
    Referring,
    Silent,
    Sized,
    Some,
    Thing,
    block,
    check,
    holder,
    refused,
    text,
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """What other tests made known of classes is not known here."""
    monkeypatch.setattr(verifier, "_rules", {})


# -- definitions


@pytest.mark.parametrize(
    ("sizes", "operands", "error"),
    [
        ((1, 0, 0), "i", None),
        ((1, 1, 0), "if", None),
        ((1, 0, 2), "inn", None),
        ((1, 1, 1), "ifn", None),
        ((1, 0), "i", "[1, 0] does not fit 1 operands"),
        ((1, 0, 0, 0), "i", "[1, 0, 0, 0] does not fit 1 operands"),
        ((1, 0, 1), "i", "[1, 0, 1] does not fit 1 operands"),
        ((1, 0, 0), "in", "[1, 0, 0] does not fit 2 operands"),
        ((0, 1, 0), "f", "0 operands given for 'first'"),
        ((2, 0, 0), "ii", "2 operands given for 'first'"),
        ((1, 2, 0), "iff", "2 operands given for 'second'"),
        ((1, -1, 1), "i", "-1 operands given for 'second'"),
        ((1, 1, -1), "i", "-1 operands given for 'rest'"),
        ((1, 1, 0), "in", "operand 'second' is index, not"),
        ((1, 0, 1), "if", "operand 'rest' is f32, not"),
        ((1, 1, 2), "ifni", "operand 'rest' is i32, not"),
        ((1, 1, 2), "ifin", "operand 'rest' is i32, not"),
        ((1, 0, 0), "f", "operand 'first' is f32, not"),
        (None, "i", f"the attribute '{SEGMENTS}' is missing"),
    ],
)
def test_groups_of_operands(sizes, operands, error):
    kinds = {"i": T.i32, "f": T.f32, "n": T.index}
    makers = [Thing((), (kinds[o],)) for o in operands]
    attributes = {} if sizes is None else {SEGMENTS: A.DenseIntsAttr(sizes)}
    op = Groups([m.results[0] for m in makers], (), attributes)
    check(holder(block(*makers, op)), error)


@pytest.mark.parametrize(
    ("types", "error"),
    [((T.i32,), None), ((T.i32, T.f32, T.f64), None), ((), "has no results, not 1 or more"),
     ((T.f32,), "result 'first' is f32"), ((T.i32, T.f32, T.i32), "result 'rest' is i32"),
     ((T.i32, T.i32, T.f32), "result 'rest' is i32")],
)  # fmt: skip
def test_groups_of_results(types, error):
    check(holder(block(Some((), types))), error)


@pytest.mark.parametrize(
    ("attributes", "error"),
    [({}, None), ({"word": A.StringAttr("two"), "number": A.IntegerAttr(1)}, None),
     ({"word": A.StringAttr("three")}, "word 'three' is not one of one, two"),
     ({"word": A.IntegerAttr(1)}, "the attribute 'word' is 1 : i64, not a StringAttr"),
     ({"number": A.StringAttr("one")}, "the attribute 'number' is"),
     ({"other": A.StringAttr("three")}, None)],
)  # fmt: skip
def test_optional_attributes(attributes, error):
    check(Holder((), (), attributes), error)


def test_an_operation_stands_where_its_definition_says():
    check(Inner(), None)
    check(holder(block(Inner())), None)
    check(holder(block(Inner()), cls=Thing), None)
    check(holder(block(Inner()), cls=Loose), "stands in testverify.loose, not in testverify.holder")


def test_what_passed_says_nothing_of_other_types():
    head = "func.func @f(%x: f32, %d: f64) {\n%a = arith.addf %x, %x : f32\n"
    for line, error in (
        ("%b = arith.addf %d, %d : f64", None),
        ('%b = "arith.addf"(%x, %d) : (f32, f64) -> f32', "one type, not f32 and f64"),
        ('%b = "arith.addf"(%d, %d) : (f64, f64) -> f32', "one type, not f64 and f32"),
    ):
        for _ in range(2):
            check(text(f"{head}{line}\nreturn\n}}"), error)
    for operands, results, regions, error in ((1, 1, 0, "has 1 operand, not 2"),
                                              (3, 1, 0, "has 3 operands, not 2"),
                                              (2, 2, 0, "has 2 results, not 1"),
                                              (2, 0, 0, "has no results, not 1"),
                                              (2, 1, 1, "has 1 region, not 0")):  # fmt: skip
        module = text(head + "return\n}")
        body = module.lookup("f").block
        add = body.first
        inner = [Region([Block()]) for _ in range(regions)]
        x = body.arguments[0]
        body.insert_before(type(add)([x] * operands, [T.f32] * results, {}, inner), body.last)
        check(module, error)


N, F, X = T.i32, T.f32, T.index
ONE, NONE = A.DenseIntsAttr([1, 0]), A.DenseIntsAttr([0, 0])


@pytest.mark.parametrize(
    ("cls", "good", "bad", "error"),
    [
        # Operands, results, regions and sizes of groups of one that passes and of one that must not
        # pass after it.
        (Changes, ([N], [F], 0, None), ([F], [F], 0, None), "operand 'input' is f32"),
        (Alike, ([N, N], [N], 0, None), ([N, F], [N], 0, None), "one type, not i32 and f32"),
        (Alike, ([N, N], [N], 0, None), ([F, F], [N], 0, None), "one type, not f32 and i32"),
        (Alike, ([N, N], [N], 0, None), ([N], [N], 0, None), "has 1 operand, not 2"),
        (Alike, ([N, N], [N], 0, None), ([N, N], [N, N], 0, None), "has 2 results, not 1"),
        (Alike, ([N, N], [N], 0, None), ([N, N], [N], 1, None), "has 1 region, not 0"),
        (AlikeGroups, ([N], [N], 0, ONE), ([N], [N], 0, NONE), "[0, 0] does not fit 1 operands"),
        (AlikeGroups, ([N, N], [N], 0, A.DenseIntsAttr([1, 1])), ([N, N], [N], 0, None),
         "'operandSegmentSizes' is missing"),
        (AlikeBody, ([N], [N], 1, None), ([N], [N], 0, None), "has no regions, not 1"),
        (Silent, ([N, N], [], 0, None), ([N, F], [], 0, None), "one type, not i32 and f32"),
        (Silent, ([N, N], [], 0, None), ([N, N], [N], 0, None), "has 1 result, not 0"),
        (Middle, ([N, F, F, X], [], 0, None), ([N, F, N, X], [], 0, None), "operand 'rest' is i32"),
        (Middle, ([N, X], [], 0, None), ([N, F], [], 0, None), "operand 'last' is f32"),
        (AlikeMany, ([N, N], [N, N], 0, None), ([N, N, N], [N, N], 0, None),
         "operand 'rest' is i32"),
        (AlikeMany, ([N, N, F, F], [N, N, F], 0, None), ([N, F], [N, N], 0, None),
         "operand 'second' is f32"),
        (AlikeMany, ([N, N, F], [N, N, F, F], 0, None), ([N, N, F], [N, N, F, N], 0, None),
         "result 'others' is i32"),
        (AlikeMany, ([N, N, F], [N, N], 0, None), ([N, N, F], [N, F, F], 0, None),
         "result 'fourth' is f32"),
        (AlikeMany, ([N, N, F], [N, N], 0, None), ([N, N, F, N], [N, N], 0, None),
         "operand 'rest' is i32"),
    ],
)  # fmt: skip
def test_what_passed_says_nothing_of_others_of_its_class(cls, good, bad, error):
    def made(operands, results, regions, sizes):
        makers = [Thing((), (kind,)) for kind in operands]
        attributes = {} if sizes is None else {SEGMENTS: sizes}
        bodies = [Region([block()]) for _ in range(regions)]
        op = cls([m.results[0] for m in makers], results, attributes, bodies)
        return holder(block(*makers, op))

    for _ in range(2):
        check(made(*good), None)
        check(made(*bad), error)


def test_operations_of_one_type_are_known_by_it():
    """The quick way: operands and the only result, and nothing else to look at."""
    found = {cls: verifier._ClassRules(cls).alike_operands
             for cls in (arith.AddFOp, arith.NegFOp, Alike, AlikeGroups, AlikeBody, Silent,
                         Changes, Holder)}  # fmt: skip
    assert {cls: n for cls, n in found.items() if n is not None} == {
        arith.AddFOp: 2, arith.NegFOp: 1
    }  # fmt: skip


def test_where_an_operation_stands_is_asked_each_time():
    for cls, error in ((Holder, None), (Loose, "stands in testverify.loose")):
        makers = [Thing((), (N,)), Thing((), (N,))]
        op = Alike([m.results[0] for m in makers], [N])
        check(holder(block(*makers, op), cls=cls), error)


# -- blocks and terminators


def test_how_a_block_ends():
    check(holder(block()), None)
    check(holder(block(end=False)), "ends without a terminator")
    check(holder(block(Thing(), end=False)), None)  # it may be one
    check(holder(block(Inner(), end=False)), "ends without a terminator")
    check(holder(block(Some((), (T.i32,)), end=False), cls=Thing), None)
    check(holder(block(Some((), (T.i32,)), end=False), cls=Loose), None)
    check(holder(block(end=False), cls=Loose), None)
    check(holder(block(End())), "a terminator is not the last operation")


def test_one_block_needs_no_tree_of_dominators(monkeypatch):
    def none(region):
        raise AssertionError("a tree of dominators")

    monkeypatch.setattr(verifier, "dominator_tree", none)
    check(holder(block()), None)
    with pytest.raises(AssertionError, match="a tree of dominators"):
        verify(holder(block(), block()))


def test_a_region_without_a_block_declares_or_is_of_an_unknown_operation():
    for cls, error in ((Holder, "a region without a block"), (Loose, None), (Thing, None)):
        check(holder(cls=cls), error)


def test_the_parts_know_where_they_stand():
    op = holder(block(Some((), (T.i32,))))
    inner = op.regions[0].blocks[0]
    inner.first.parent = None
    check(op, "an operation does not know its block")
    inner.first.parent = Block()
    check(op, "an operation does not know its block")
    inner.first.parent = inner
    check(op, None)
    op.regions[0].parent = holder()
    check(op, "a region does not know the operation that owns it")


def test_block_arguments_are_in_place():
    op = holder(Block([T.i32, T.i32]))
    inner = op.regions[0].blocks[0]
    inner.append(End())
    first, second = inner.arguments
    check(op, None)
    second.index = 0
    check(op, "block argument 1 is out of place")
    second.index, first.index = 1, 1
    check(op, "block argument 0 is out of place")
    first.index, first.owner = 0, Block()
    check(op, "block argument 0 is out of place")


def test_successors():
    def jump(cls, target):
        return cls((), (), {}, (), successors=[target])

    entry, last = Block(), block()
    entry.append(jump(End, last))
    check(holder(entry, last), None)
    entry, last = Block(), block()
    entry.append(jump(Inner, last))
    entry.append(End())
    check(holder(entry, last), "only a terminator has successors")
    entry, last = Block(), block()
    entry.append(jump(Thing, last))
    check(holder(entry, last), None)
    entry, last = Block(), Block()
    entry.append(jump(End, last))
    last.append(jump(End, entry))
    check(holder(entry, last), "the entry block is a successor")
    entry, last = Block(), block()
    entry.append(jump(End, last))
    check(Holder((), (), {}, [Region([entry]), Region([last])]), "is in another region")
    check(jump(End, Block()), None)  # it stands in no region, and neither does the block


def test_names_are_given_once_in_all_regions():
    def named(name):
        return Named((), (), {"sym_name": A.StringAttr(name)})

    def table(*names):
        regions = [Region([block(named(n), end=False)]) for n in names]
        return Loose((), (), {}, regions)

    check(table("f", "g"), None)
    nameless = Loose((), (), {}, [Region([block(Named(), Named(), end=False)])])
    check(nameless, None)
    check(table("f", "f"), 'the name "f" is given twice')
    check(text('"t.a"() {sym_name = "f"} : () -> ()\nfunc.func @f() { return }\n'
               '"t.b"() {sym_name = "f"} : () -> ()'), None)  # fmt: skip


# -- what is visible where

NESTED = """func.func @f(%x: f32) {{
  "t.region"() ({{
    %a = "t.make"() : () -> f32
    {inside}
    "t.end"() : () -> ()
  }}) : () -> ()
  %b = "t.make"() : () -> f32
  {after}
  return
}}"""


def test_a_region_leaves_what_was_visible_before_it():
    check(text(NESTED.format(inside='"t.use"(%a, %x) : (f32, f32) -> ()',
                             after='"t.use"(%x, %b) : (f32, f32) -> ()')), None)  # fmt: skip


def uses(module: Operation, place: str, value: str) -> None:
    """Let the operation named `place` use the value of the operation or argument `value`."""
    named = {r.name_hint: r for op in module.walk() for r in op.results}
    named |= {a.name_hint: a for op in module.walk() for r in op.regions for b in r.blocks
              for a in b.arguments}  # fmt: skip
    next(op for op in module.walk() if op.name == place).set_operand(0, named[value])


@pytest.mark.parametrize(
    ("place", "value", "error"),
    [
        ("t.inside", "x", None),
        ("t.inside", "a", None),
        ("t.inside", "b", "operand 0 (%b) is used before its definition"),
        ("t.inside", "c", "operand 0 (%c) is used before its definition"),
        ("t.after", "a", "operand 0 (%a) is defined in a region that does not enclose"),
        ("t.after", "b", None),
    ],
)
def test_uses_of_values_of_regions(place, value, error):
    module = text(NESTED.format(inside='"t.inside"(%x) : (f32) -> ()\n%c = "t.make"() : () -> f32',
                                after='"t.after"(%x) : (f32) -> ()'))  # fmt: skip
    uses(module, place, value)
    check(module, error)


def test_a_value_of_a_detached_operation():
    maker = Thing((), (T.i32,))
    check(holder(block(Thing(maker.results))), "is made by an operation that is in no block")


ISOLATED = """func.func @f(%x: f32) {
  "t.region"() ({
    builtin.module {
      "t.inside"() : () -> ()
    }
    "t.end"() : () -> ()
  }) : () -> ()
  %b = "t.make"() : () -> f32
  return
}"""


@pytest.mark.parametrize("value", ["x", "b"])
def test_an_isolated_operation_sees_nothing_whatever_part_is_verified(value):
    module = text(ISOLATED)
    uses_ = next(op for op in module.walk() if op.name == "t.inside")
    named = {"x": module.lookup("f").block.arguments[0]}
    named |= {r.name_hint: r for op in module.walk() for r in op.results}
    user = Thing([named[value]])
    uses_.parent.append(user)
    error = f"operand 0 (%{value}) comes from outside of builtin.module, which is isolated"
    parts = [op for op in module.walk() if op.regions]
    assert len(parts) == 4
    for part in parts:
        check(part, error)
    check(user, None)  # it alone does not tell


def test_where_nothing_is_isolated():
    maker, later = Thing((), (T.i32,)), Thing((), (T.i32,))
    check(holder(block(maker, Thing(maker.results))), None)
    check(holder(block(Thing(later.results), later)), "is used before its definition")


def test_a_block_of_no_region_is_outside():
    maker = Thing((), (T.i32,))
    loose = Loose((), (), {}, [Region([block(Thing(maker.results), end=False)])])
    block(maker, loose)
    check(loose, "comes from outside of testverify.loose, which is isolated")


def test_the_operands_of_an_isolated_operation_are_of_outside():
    maker = Thing((), (T.i32,))
    loose = Loose((), (), {}, [Region([block(Thing(), end=False)])])
    op = Thing(maker.results, (), {}, [Region([block(loose)])])
    check(holder(block(maker, op)), None)
    check(op, None)


def test_a_part_may_use_what_is_around_it_and_nothing_of_another_region():
    module = text(NESTED.format(inside='"t.inside"(%x) : (f32) -> ()', after=""))
    region = next(op for op in module.walk() if op.name == "t.region")
    for value, error in (("x", None), ("b", None), ("a", None)):
        uses(module, "t.inside", value)
        check(region, error)
    other = Thing((), (T.f32,))
    Thing((), (), {}, [Region([block(other)])])
    next(op for op in module.walk() if op.name == "t.inside").set_operand(0, other.results[0])
    check(region, "is defined in a region that does not enclose this operation")


# -- blocks and what dominates them

BLOCKS = """func.func @f(%c: i1, %n: index) {{
  sym.assert {{relation = "le", lhs = #sym<1>, rhs = #sym<2>, message = "m"}}
  "t.jump"()[^one, ^two] : () -> ()
^one:
  %a = sym.bind %n {{symbol = "u0"}} : (index) -> index
  {one}
  "t.jump"()[^three, ^last] : () -> ()
^two:
  {two}
  "t.jump"()[^last] : () -> ()
^three:
  {three}
  "t.jump"()[^last] : () -> ()
^last:
  {last}
  func.return
^lost:
  %l = "t.make"() : () -> index
  {lost}
  "t.jump"()[^lost] : () -> ()
}}"""


@pytest.mark.parametrize("line", ['"t.use"(%a) : (index) -> ()', "sym.value {dim = #sym<u0>}"])
@pytest.mark.parametrize(
    ("place", "fits"), [("one", True), ("two", False), ("three", True), ("last", False)]
)
def test_values_and_symbols_are_seen_in_the_blocks_that_theirs_dominates(line, place, fits):
    if line.startswith("sym"):
        line = f"%v = {line} : index"
    lines = {name: "" for name in ("one", "two", "three", "last", "lost")} | {place: line}
    error = "does not dominate this use" if "%a" in line else "symbol 'u0' in the attribute 'dim'"
    check(text(BLOCKS.format(**lines)), None if fits else error)


@pytest.mark.parametrize(
    ("place", "value", "fits"),
    [("lost", "%l", True), ("lost", "%a", True), ("lost", "%n", True), ("last", "%l", False),
     ("one", "%l", False)],
)  # fmt: skip
def test_a_block_that_nothing_reaches_sees_all(place, value, fits):
    lines = {name: "" for name in ("one", "two", "three", "last", "lost")}
    lines[place] = f'"t.use"({value}) : (index) -> ()'
    check(text(BLOCKS.format(**lines)), None if fits else "does not dominate this use")


def test_what_nothing_reaches_is_verified():
    lines = {name: "" for name in ("one", "two", "three", "last")}
    check(text(BLOCKS.format(**lines, lost="%b = arith.addf %n, %n : index")), "operand 'lhs' is")


# -- what operations check themselves


@pytest.mark.parametrize("inside", [Careful, Factual, Referring])
def test_what_an_operation_checks_itself_is_run(inside):
    wrong = {Careful: "verify_op", Factual: "verify_facts", Referring: "verify_references"}[inside]
    for cls in (Holder, Sized):
        # Facts about symbols are those of the function around.
        error = None if cls is Holder and inside is Factual else f"refused by {wrong}"
        check(holder(block(inside()), cls=cls), error)


def test_what_is_made_of_facts_lasts_until_one_is_gone():
    stated = Stated()
    stated.ops += [Thing(), Thing()]
    stated.memo = "made"
    stated.shrink(2)
    assert len(stated.ops) == 2 and stated.memo == "made"
    stated.shrink(1)
    assert len(stated.ops) == 1 and stated.memo is None


# -- use lists


def test_use_lists_hold_each_use_once():
    def made():
        module = text('%a, %b = "t.make"() : () -> (i32, i32)\n"t.use"(%a, %a, %b) : '
                      '(i32, i32, i32) -> ()\n"t.use"(%b) : (i32) -> ()')  # fmt: skip
        return module, module.block.first, module.block.last

    module, maker, last = made()
    verify(module, uses=True)
    for position, wrong in ((0, None), (0, last), (1, last), (1, {last: 2})):
        module, maker, last = made()
        maker.results[position]._users = wrong
        verify(module)
        assert "the use list of" in refused(module, uses=True)
    op = holder(Block([T.i32]))
    op.regions[0].blocks[0].append(End())
    verify(op, uses=True)
    op.regions[0].blocks[0].arguments[0]._users = End()
    assert "the use list of" in refused(op, uses=True)
