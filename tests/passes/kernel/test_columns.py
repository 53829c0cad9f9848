"""What depends on the column alone, value by value, and what hoist-columns makes of it."""

from __future__ import annotations

import pytest

import irc
from irc.dialects import kernel
from irc.ir.core import Block, Operation
from irc.ir.types import IntegerType, VectorType, bf16, f32, f64, i1, i8, i64, index
from irc.passes.kernel.hoist_columns import _Columns, constant_of, is_storable


@pytest.mark.parametrize("element", [f32, f64, bf16, i8, i64, IntegerType(8, True)], ids=str)
def test_numbers_are_kept_in_memory_as_they_are(element):
    block = Block((element, VectorType((8,), element)))
    assert all(is_storable(value) for value in block.arguments)


@pytest.mark.parametrize(
    "type_", [i1, VectorType((8,), i1), index, VectorType((8,), index), kernel.PointerType(f32)],
    ids=str,
)  # fmt: skip
def test_conditions_places_and_pointers_are_not(type_):
    assert not is_storable(Block((type_,)).arguments[0])


TEXT = """
kernel.func @k0(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>, %begin: index, %end: index)
    attributes {outputs = array<i64: 1>, symbols = [], target = "cpu", grid = #sym<8>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %lanes = arith.constant 8 : index
  %columns = arith.constant 20 : index
  %half = arith.constant 0.5 : f32
  %yes = arith.constant true
  %outside = kernel.load %y[%zero] : f32
  kernel.for %row = %begin to %end step %one {
    %start = arith.muli %row, %columns : index
    %still = arith.addi %lanes, %columns : index
    kernel.for %middle = %zero to %lanes step %one {
      %sum = kernel.for %c = LOWER to UPPER step STEP iter_args(%a = %half) -> (f32) {
        %place = arith.addi %start, %c : index
        %twice = arith.addi %c, %c : index
        %between = arith.addi %c, %middle : index
        %fixed = arith.addi %lanes, %columns : index
        %b = kernel.load %x[%c] : f32
        %e = math.exp %b : f32
        %f = arith.addf %e, %outside : f32
        %g = kernel.load %x[%place] : f32
        %h = kernel.load %y[%c] : f32
        %v = kernel.load %x[%c] : vector<8xf32>
        %i = arith.cmpf ogt, %e, %half : f32
        %p = arith.cmpf ogt, %g, %half : f32
        %m = kernel.load %x[%c] (where %i) : f32
        %n = kernel.load %x[%c] (where %p) : f32
        %k = arith.addf %a, %e : f32
        %steps = kernel.iota : () -> vector<8xi64>
        %top, %at = kernel.reduce %v, %steps {combiner = "argmax"}
          : (vector<8xf32>, vector<8xi64>) -> (f32, i64)
        %room = kernel.scratch {count = 8 : i64} : !kernel.ptr<f32>
        kernel.store %f, %y[%place] : f32
        kernel.yield %k : f32
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}"""

OUTSIDE = {
    "begin", "columns", "end", "half", "lanes", "one", "outside", "x", "y", "yes", "zero",
}  # fmt: skip
SAME = OUTSIDE | {"b", "c", "e", "f", "fixed", "i", "m", "steps", "twice", "v"}


def columns(text, block="c", min_cost=1):
    """The search in the block of a loop of the kernel, what is named, and what must be kept."""
    module = irc.parse(text)
    func = next(op for op in module.walk() if isinstance(op, kernel.KernelFuncOp))
    named = {a.name_hint: a for a in func.block.arguments}
    for op in func.walk():
        values = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)]
        named |= {v.name_hint: v for v in values}
    rows = next(op for op in func.block.ops if isinstance(op, kernel.ForOp))
    return _Columns(func, rows, named[block].owner, min_cost), named, module


def filled(lower="%zero", upper="%columns", step="%lanes"):
    return TEXT.replace("LOWER", lower).replace("UPPER", upper).replace("STEP", step)


def test_what_is_the_same_in_all_rows():
    search, named, _ = columns(filled())
    for _ in range(2):  # the second time from what is known
        assert {name for name, value in named.items() if search.is_same(value)} == SAME
    for name, value in named.items():
        maker = value.defining_op
        if isinstance(maker, Operation) and maker.parent is search.block:
            assert search.is_same_in_all_rows(maker) is (name in SAME)
    (store,) = [op for op in search.block.ops if isinstance(op, kernel.StoreOp)]
    assert not search.is_same_in_all_rows(store)


def test_in_the_block_of_the_rows_nothing_is_a_column():
    search, named, _ = columns(filled(), "row")
    assert search.columns is None and search.column_count() == 0
    same = {name for name, value in named.items() if search.is_same(value)}
    assert same == OUTSIDE | {"still"}


@pytest.mark.parametrize(
    "bounds, count",
    [
        (("%zero", "%columns", "%lanes"), 24),
        (("%zero", "%columns", "%one"), 20),
        (("%one", "%columns", "%lanes"), 24),
        (("%lanes", "%columns", "%lanes"), 16),
        (("%zero", "%one", "%lanes"), 8),
        (("%one", "%one", "%lanes"), None),
        (("%lanes", "%one", "%lanes"), None),
        (("%begin", "%columns", "%lanes"), None),
        (("%zero", "%end", "%lanes"), None),
        (("%zero", "%columns", "%end"), None),
    ],
    ids=str,
)
def test_columns_are_counted_in_whole_steps(bounds, count):
    search, _, _ = columns(filled(*bounds))
    assert search.column_count() == count
    assert (search.find() is None) == (count is None)


def test_what_is_found_and_what_it_takes():
    search, named, _ = columns(filled(), min_cost=8)
    found = search.find()
    assert found is not None and found.columns is search.block.parent_op
    assert [v.name_hint for v in found.chosen] == ["e", "f"]
    assert {op.results[0].name_hint for op in found.needed} == {"b", "e", "f"}
    assert (found.count, found.bytes_needed) == (24, 24 * 4)
    assert columns(filled(), min_cost=10_000)[0].find() is None


def test_known_integers():
    _, named, _ = columns(filled())
    known = {name: constant_of(value) for name, value in named.items()}
    integers = {"zero": 0, "one": 1, "lanes": 8, "columns": 20}
    assert {name: n for name, n in known.items() if n is not None} == integers
