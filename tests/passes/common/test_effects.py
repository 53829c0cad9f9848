"""What `cse` must not merge and `dce` and `canonicalize` must not remove."""

from __future__ import annotations

import pytest

from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.diagnostics import InternalError
from irc.ir.passes import PassManager
from irc.ir.rewrite.driver import constant_value, is_trivially_dead, removable_when_unused
from tests.passes.common import toy

pytestmark = pytest.mark.fault("V19")
REMOVED = (toy.PureValue, toy.Read, toy.Alloc)
KEPT = (toy.Write, toy.Update, toy.Opaque, toy.Yielding)


def use_value(b, x):
    """A pure value of `x`, and a use of it."""
    b.create(toy.Use, [b.value(toy.PureValue, x, result_types=x.type)])


def run(text, module):
    return PassManager.parse(text, verify="none").run(module)


@pytest.mark.parametrize("pipeline", ["dce", "canonicalize"])
@pytest.mark.parametrize("kind", [*REMOVED, *KEPT])
def test_what_has_an_effect_stays_when_unused(kind, pipeline):
    module, block, b = toy.empty()
    b.value(kind, block.arguments[0], result_types=block.arguments[0].type)
    run(pipeline, module)
    assert toy.count(module, kind) == (kind in KEPT)
    assert removable_when_unused(kind) is (kind in REMOVED)


@pytest.mark.parametrize("pipeline", ["dce", "canonicalize"])
def test_what_has_no_result_is_not_dead(pipeline):
    module, block, b = toy.empty()
    mark = b.create(toy.Mark, block.arguments[0])
    assert not is_trivially_dead(mark)
    run(pipeline, module)
    assert toy.count(module, toy.Mark) == 1


@pytest.mark.parametrize("pipeline", ["dce", "canonicalize"])
def test_each_operation_of_a_class_may_say_whether_it_goes(pipeline):
    module, block, b = toy.empty()
    for _ in range(2):
        kept = b.create(toy.Asked, block.arguments[0], result_types=T.i64)
    kept.attributes["kept"] = A.UnitAttr()
    assert removable_when_unused(toy.Asked) is None
    run(pipeline, module)
    assert [op for op in module.walk() if isinstance(op, toy.Asked)] == [kept]


def test_dce_removes_chains_and_counts_them():
    module, block, b = toy.empty()
    x = block.arguments[0]
    (inner,) = toy.scope(b)
    first = inner.value(toy.PureValue, x, result_types=x.type)
    second = inner.value(toy.PureValue, first, result_types=x.type)
    inner.value(toy.PureValue, second, result_types=x.type)
    used = inner.value(toy.PureValue, x, result_types=x.type)
    inner.create(toy.Use, [used])
    context = run("dce", module)
    assert toy.count(module, toy.PureValue) == 1
    assert context.statistics[("dce", "removed")] == 3


@pytest.mark.parametrize("kind", [toy.PureValue, toy.Read, toy.Alloc, *KEPT])
def test_only_pure_operations_are_merged(kind):
    module, block, b = toy.empty()
    x = block.arguments[0]
    made = [b.value(kind, x, result_types=x.type) for _ in range(2)]
    b.create(toy.Use, made)
    context = run("cse", module)
    merged = kind is toy.PureValue
    assert toy.count(module, kind) == (1 if merged else 2)
    assert context.statistics.get(("cse", "merged"), 0) == int(merged)


@pytest.mark.parametrize(("kind", "left"), [(toy.Difference, 2), (toy.Total, 1)])
@pytest.mark.parametrize("exchanged", [False, True])
def test_operands_are_exchanged_where_that_is_the_same(kind, left, exchanged):
    module, block, b = toy.empty()
    x, y = block.arguments
    if exchanged:
        x, y = y, x
    b.create(toy.Use, [b.value(kind, x, y), b.value(kind, y, x), b.value(kind, x, y)])
    run("cse", module)
    assert toy.count(module, kind) == left


def test_a_value_of_one_scope_is_not_seen_in_its_sibling():
    module, block, b = toy.empty()
    x = block.arguments[0]
    for _ in range(2):
        (inner,) = toy.scope(b)
        use_value(inner, x)
    run("cse", module)
    assert toy.count(module, toy.PureValue) == 2


def test_a_value_of_one_block_is_not_seen_in_the_next():
    module, block, b = toy.empty()
    x = block.arguments[0]
    for inner in toy.scope(b, blocks=2):
        use_value(inner, x)
    run("cse", module)
    assert toy.count(module, toy.PureValue) == 2


def test_a_value_from_outside_is_seen_inside():
    module, block, b = toy.empty()
    x = block.arguments[0]
    use_value(b, x)
    (outer,) = toy.scope(b)
    (inner,) = toy.scope(outer)
    use_value(inner, x)
    run("cse", module)
    assert toy.count(module, toy.PureValue) == 1


def test_the_nearest_of_equal_values_outside_is_seen():
    module, _, b = toy.empty()
    (outer,) = toy.scope(b)
    (middle,) = toy.scope(outer)
    x = middle.value(toy.Alloc, module.lookup("main").block.arguments[0], result_types=T.i64)
    use_value(middle, x)
    (inner,) = toy.scope(middle)
    (innermost,) = toy.scope(inner)
    use_value(innermost, x)
    run("cse", module)
    assert toy.count(module, toy.PureValue) == 1


def test_what_has_no_result_is_not_merged():
    module, block, b = toy.empty()
    for _ in range(2):
        b.create(toy.Mark, block.arguments[0])
    run("cse", module)
    assert toy.count(module, toy.Mark) == 2


def test_every_result_type_is_compared():
    module, block, b = toy.empty()
    x = block.arguments[0]
    kinds = [(T.i64, T.i64), (T.i64, T.i32), (T.i64, T.i64)]
    made = [b.create(toy.Pair, x, result_types=types) for types in kinds]
    b.create(toy.Use, [v for op in made for v in op.results])
    run("cse", module)
    assert [op.result_types for op in module.walk() if isinstance(op, toy.Pair)] == kinds[:2]


def test_the_order_of_attributes_does_not_matter():
    module, block, b = toy.empty()
    made = []
    for names in ("ab", "ba"):
        made.append(b.value(toy.PureValue, block.arguments[0], result_types=T.i64))
        for name in names:
            made[-1].owner.attributes[name] = A.IntegerAttr(ord(name))
    b.create(toy.Use, made)
    run("cse", module)
    assert toy.count(module, toy.PureValue) == 1


def test_nothing_is_carried_into_an_isolated_region():
    module, block, b = toy.empty()
    x = block.arguments[0]
    use_value(b, x)
    (inner,) = toy.scope(b, toy.Isolated)
    use_value(inner, x)
    run("cse", module)
    assert toy.count(module, toy.PureValue) == 2


def test_attributes_and_result_types_are_compared():
    module, block, b = toy.empty()
    x = block.arguments[0]
    made = [b.value(toy.PureValue, x, result_types=kind) for kind in (T.i64, T.i32, T.i64)]
    made[2].owner.attributes["way"] = A.IntegerAttr(1)
    b.create(toy.Use, made)
    run("cse", module)
    assert toy.count(module, toy.PureValue) == 3


def test_an_argument_has_no_constant_value():
    _, block, b = toy.empty()
    assert constant_value(block.arguments[0]) is None
    made = b.value(toy.PureValue, block.arguments[0], result_types=block.arguments[0].type)
    assert constant_value(made) is None


@pytest.mark.parametrize(("limit", "ends"), [(0, True), (2, True), (1, False)])
def test_canonicalize_ends_after_so_many_rewrites(limit, ends):
    module, block, b = toy.empty()
    for _ in range(2):
        b.value(toy.PureValue, block.arguments[0], result_types=T.i64)
    if ends:
        context = run(f"canonicalize{{max_rewrites={limit}}}", module)
        assert context.statistics["canonicalize", "dce"] == 2
    else:
        with pytest.raises(InternalError, match="did not converge after 1 rewrites"):
            run("canonicalize{max_rewrites=1}", module)


def test_print_facts_tells_of_functions(capsys):
    module, _, b = toy.empty()
    toy.scope(b)
    run("print-facts", module)
    told = capsys.readouterr().err
    assert told.count("facts of") == told.count("facts of @main") == 1
