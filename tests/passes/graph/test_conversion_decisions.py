"""What converters, complex pairs and the types of calls decide, question by question."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

import irc
from irc.dialects import aten, sym
from irc.ir import attributes as A
from irc.ir.diagnostics import UserError
from irc.ir.passes import PassManager
from irc.ir.symbols import symbol
from irc.ir.types import (
    ComplexType,
    IntegerType,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
    index,
)
from irc.passes.graph.convert_aten import complex_pairs, pointwise
from irc.passes.graph.convert_aten.convert_aten_to_graph import stays_complex
from irc.passes.graph.convert_aten.support import LARGEST, TO_GRAPH, _before, fits, is_float
from irc.passes.graph.functionalize.functionalize import _Functionalizer
from irc.passes.graph.functionalize.storage_roots import Root, StorageTensor
from irc.passes.graph.result_types import (
    _mentions_symbols,
    element_of_call,
    is_view_call,
    types_of_call,
)
from tests.passes.graph.aten_programs import NONE, Program, tensor

S, U8, U16 = symbol("s0"), IntegerType(8, True), IntegerType(16, True)
C64, C32 = ComplexType(f32), ComplexType(f16)


def names(module):
    return [op.name for op in module.lookup("main").block.ops]


def converted(p, *values):
    """The operations of a program after the conversion, without `graph.` and the return."""
    module = p.returned(*values)
    p.function.attributes["level"] = A.StringAttr("aten")
    PassManager.parse("convert-aten-to-graph,dce", verify="none").run(module)
    return [name.removeprefix("graph.") for name in names(module)[:-1]], module


@pytest.mark.parametrize(
    "number, element, outcome",
    [
        (1j, f32, False), (1j, i8, False), (math.inf, f16, True), (math.nan, i1, True),
        (math.nan, f16, True), (65504, f16, True), (65505, f16, False), (-65504, f16, True),
        (-65505, f16, False), (LARGEST[f32], f32, True), (3.5e38, f32, False), (1e308, f64, True),
        (LARGEST[bf16], bf16, True), (3.4e38, bf16, False), (300, i1, True), (127, i8, True),
        (128, i8, False), (-128, i8, True), (-129, i8, False), (255, U8, True), (256, U8, False),
        (-255, U8, True), (-256, U8, False), (65535, U16, True), (65536, U16, False),
        (2**31 - 1, i32, True), (2**31, i32, False), (1e300, C64, True), (1.5, i8, True),
    ],
)  # fmt: skip
def test_numbers_that_are_elements(number, element, outcome):
    assert fits(number, element) is outcome


@pytest.mark.parametrize(
    "first, second, outcome",
    [
        (None, f32, f32), (i8, None, i8), (i1, None, i1), (None, None, None), (f32, f64, f32),
        (f16, i64, f16),
        (i32, i64, i32), (i32, f64, f64), (i1, i64, i64), (i1, i1, i1), (i1, f32, f32),
        (i8, i1, i8), (i64, f16, f16), (f64, i1, f64),
    ],
)  # fmt: skip
def test_the_first_kind_of_operand_goes_before_the_second(first, second, outcome):
    assert _before(first, second) is outcome


def test_which_elements_are_floats():
    assert is_float(bf16) and not is_float(i8) and not is_float(C64)


@pytest.mark.parametrize(
    "element, exponent, outcome",
    [
        (f32, 0, "full pow"), (f32, 1, ""), (f32, 2, "mul"), (f32, 3, "mul mul"),
        (f32, 4, "full pow"), (f32, 0.5, "sqrt"), (f32, -0.5, "rsqrt"),
        (f16, 0.5, "cast full pow cast"), (f16, -0.5, "cast full pow cast"),
        (bf16, 0.5, "cast sqrt cast"),
        (bf16, -0.5, "cast rsqrt cast"), (f16, 2, "cast mul cast"), (f32, -1, "reciprocal"),
        (f32, -2, "full pow"), (f32, 2.5, "full pow"), (f32, 1.5, "full pow"), (i64, 0, "full"),
        (i64, 1, ""), (i64, 2, "mul"), (i64, 3, "mul mul"), (i64, 4, "full pow"),
        (i64, -1, "call_aten"), (i64, -2, "call_aten"), (i8, 0, "full"), (i1, 2, "call_aten"),
    ],
)  # fmt: skip
def test_powers_of_a_number(element, exponent, outcome):
    kind = tensor((7,) if is_float(element) else (4,), None, element)
    p = Program(kind)
    found, module = converted(p, p.call("pow.Tensor_Scalar", kind, p.arguments[0], exponent))
    assert " ".join(found) == outcome
    if is_float(element):
        dtype = {f32: torch.float32, f16: torch.float16, bf16: torch.bfloat16}[element]
        x = torch.tensor([0.0, -0.0, -1.5, 2.25, math.inf, -math.inf, math.nan]).to(dtype)
        got, expected = irc.run(module, x)[0], x**exponent
        torch.testing.assert_close(got, expected, equal_nan=True)
        there = ~expected.isnan()
        assert torch.equal(got[there].signbit(), expected[there].signbit())
    elif outcome != "call_aten":
        x = torch.tensor([0, -3, 2, 1], dtype=torch.int8 if element is i8 else torch.int64)
        assert torch.equal(irc.run(module, x)[0], x**exponent)


@pytest.mark.parametrize("name", ["isposinf", "isneginf"])
@pytest.mark.parametrize("element", [f32, i64])
def test_infinities_of_a_sign(name, element):
    p = Program(tensor((4,), None, element))
    made = p.call(f"{name}.default", tensor((4,), None, i1), p.arguments[0])
    found, module = converted(p, made)
    assert found == (["full", "eq"] if element is f32 else ["full"])
    x = torch.tensor([math.inf, -math.inf, math.nan, 1.0]) if element is f32 else torch.arange(4)
    assert torch.equal(irc.run(module, x)[0], getattr(torch, name)(x))


def test_whether_large_numbers_are_the_largest_of_8_bits():
    large = torch.tensor(1e6).to(torch.float8_e4m3fn).float()
    assert pointwise.saturates_e4m3() is (not bool(large.isnan()))


# -- complex numbers as pairs


def complex_op(name, *kinds, made=None, more=()):
    p = Program(*kinds)
    return p.call(name, made or kinds[0], *p.arguments, *more).defining_op


PAIR, HALF, REAL = (tensor((4,), None, e) for e in (C64, C32, f32))
AWAY = TensorType((4,), C64, (1,), "cuda:0")


@pytest.mark.parametrize(
    "op, outcome",
    [
        (lambda: complex_op("add.Tensor", PAIR, PAIR), True),
        (lambda: complex_op("sub.Tensor", PAIR, REAL), True),
        (lambda: complex_op("add.Tensor", HALF, HALF), False),
        (lambda: complex_op("mul.Tensor", PAIR, PAIR), True),
        (lambda: complex_op("mul.Tensor", PAIR, HALF), False),
        (lambda: complex_op("sin.default", PAIR), False),
        (lambda: complex_op("view.default", PAIR, more=([2, 2],)), True),
        (lambda: complex_op("clone.default", PAIR), True),
        (lambda: complex_op("clone.default", PAIR, made=AWAY), False),
        (lambda: complex_op("clone.default", AWAY), True),
        (lambda: complex_op("view_as_real.default", PAIR, made=tensor((4, 2))), True),
        (lambda: sym.RefineOp((Program(PAIR).arguments[0],), (PAIR,)), False),
    ],
)  # fmt: skip
def test_operators_on_complex_values_that_are_known(op, outcome):
    assert complex_pairs._is_known(op()) is outcome


@pytest.mark.parametrize("name", ["add.Tensor", "sub.Tensor"])
def test_a_scaled_sum_of_pairs_is_not_known(name):
    p = Program(PAIR, PAIR)
    op = p.call(name, PAIR, *p.arguments).defining_op
    assert complex_pairs._is_known(op)
    entries = {**op.arguments.as_dict(), "alpha": A.IntegerAttr(2)}
    op.attributes["arguments"] = A.DictAttr(entries)
    assert not complex_pairs._is_known(op)


@pytest.mark.parametrize("name", ["cat.default", "stack.default"])
@pytest.mark.parametrize("second, outcome", [(PAIR, True), (REAL, False)])
def test_all_that_is_joined_is_complex(name, second, outcome):
    p = Program(PAIR, second)
    op = p.call(name, tensor((8,), None, C64), list(p.arguments), 0).defining_op
    assert complex_pairs._is_known(op) is outcome


def test_what_moves_elements_is_known_where_it_is_converted(monkeypatch):
    op = complex_op("clone.default", PAIR)
    assert TO_GRAPH.table and complex_pairs._is_known(op)
    monkeypatch.setattr(TO_GRAPH, "_table", {})
    assert not complex_pairs._is_known(op)
    assert complex_pairs._is_known(complex_op("mul.Tensor", PAIR, PAIR))
    monkeypatch.setattr(TO_GRAPH, "_table", {"aten.sin.default": []})
    assert not complex_pairs._is_known(complex_op("sin.default", PAIR))


def test_arguments_that_hold_pairs():
    p = Program(PAIR, REAL)
    x, y = p.arguments
    pairs = {x: (y, y)}
    assert complex_pairs._parts(x, pairs) == (y, y)
    assert complex_pairs._parts([x, x], pairs) == [(y, y), (y, y)]
    assert all(complex_pairs._parts(v, pairs) is None for v in (y, [y], [], [1], 2.0, None))
    assert complex_pairs.is_complex(x) and not complex_pairs.is_complex(y)
    assert not complex_pairs.is_complex(Program(i64).arguments[0])


@pytest.mark.parametrize(
    "name, kinds, made, outcome",
    [
        ("mul.Tensor", (PAIR, PAIR), PAIR, True), ("mul.Tensor", (REAL, REAL), REAL, False),
        ("t.default", (PAIR,), PAIR, False), ("view_as_real.default", (PAIR,), REAL, False),
        ("abs.default", (PAIR,), REAL, True), ("complex.default", (REAL, REAL), PAIR, True),
        ("pow.Tensor_Scalar", (REAL, index), REAL, False),
        ("pow.Tensor_Scalar", (PAIR, index), PAIR, True),
    ],
)  # fmt: skip
def test_what_stays_complex(name, kinds, made, outcome):
    assert stays_complex(complex_op(name, *kinds, made=made)) is outcome


def test_a_view_that_is_not_called_one_is_no_computation():
    assert not stays_complex(complex_op("_unsafe_view.default", PAIR, more=([2, 2],)))


# -- the types that torch gives


def typed(name, kinds, *more):
    p = Program(*kinds)
    op = p.call(name, REAL, *p.arguments, *more).defining_op
    return types_of_call(op.schema, op.operands, op.arguments)


GAPS = tensor((2, 3), (4, 1))


@pytest.mark.parametrize(
    "name, kinds, more, outcome",
    [
        ("t.default", [GAPS], (), [tensor((3, 2), (1, 4))]),
        ("t.default", [tensor((2, 3), NONE)], (), [tensor((3, 2), NONE)]),
        ("add.Tensor", [GAPS, tensor((2, 3), NONE)], (), [tensor((2, 3))]),
        ("add.Tensor", [REAL, tensor((4,), None, f64)], (), [tensor((4,), None, f64)]),
        ("t.default", [tensor((S, 3), NONE)], (), None),
        ("t.default", [tensor((2, 3), (S, 1))], (), None),
        ("mm.default", [REAL, REAL], (), None),
        ("view.default", [REAL], ([S],), None), ("full.default", [], ([S], 1.0), None),
        ("view.default", [REAL], ([2, 2],), [tensor((2, 2))]),
        ("full.default", [], ([2, 3], 1.0), [tensor((2, 3))]),
        ("size.int", [REAL], (0,), None),
        ("split.Tensor", [REAL], (3,), [tensor((3,)), tensor((1,))]),
        ("neg.default", [TensorType((4,), f32, (1,), "cuda:0")], (),
         [TensorType((4,), f32, (1,), "cuda:0")]),
    ],
)  # fmt: skip
def test_the_types_of_a_call(name, kinds, more, outcome):
    assert typed(name, kinds, *more) == outcome


@pytest.mark.parametrize(
    "attribute, outcome",
    [
        (A.DimAttr(3), False), (A.DimAttr(S), True), (A.DimsAttr((1, 2)), False),
        (A.DimsAttr((1, S)), True), (A.ArrayAttr([A.DimAttr(1), A.DimAttr(S)]), True),
        (A.ArrayAttr([A.DimAttr(1)]), False), (A.DictAttr({"a": A.DimAttr(S), "b": A.UNIT}), True),
        (A.DictAttr({"b": A.UNIT}), False), (A.IntegerAttr(3), False),
    ],
)  # fmt: skip
def test_arguments_that_mention_symbols(attribute, outcome):
    assert _mentions_symbols(attribute) is outcome


@pytest.mark.parametrize(
    "name, source, more, outcome",
    [
        ("reshape.default", tensor((2, 3)), ([6],), True),
        ("reshape.default", tensor((2, 3), (1, 2)), ([6],), False),
        ("contiguous.default", tensor((2, 3)), (), True),
        ("contiguous.default", GAPS, (), False), ("split.Tensor", tensor((4,)), (2,), True),
        ("split.Tensor", tensor((4,)), (4,), True), ("var_mean.default", REAL, (), False),
    ],
)  # fmt: skip
def test_whether_a_call_gives_a_view(name, source, more, outcome):
    p = Program(source)
    op = p.call(name, REAL, p.arguments[0], *more).defining_op
    assert is_view_call(op.schema, source, op) is outcome


def test_the_element_of_each_result():
    for name, kinds, more, outcome in (
        ("add.Tensor", (i8, f64), (), f64),
        ("max.dim", (f32,), (0,), f32), ("max.dim", (f32,), (0,), i64),
        ("mm.default", (f32, f32), (), None),
    ):  # fmt: skip
        p = Program(*[tensor((4,), None, element) for element in kinds])
        op = p.call(name, [REAL, REAL], *p.arguments, *more)[0].defining_op
        number = int(outcome is i64)
        assert element_of_call(op.schema, op.operands, op.arguments, number) is outcome


def test_a_call_that_torch_refuses_gives_no_view_and_says_so():
    p = Program(REAL)
    op = p.call("reshape.default", REAL, p.arguments[0], [3]).defining_op
    with pytest.raises(UserError, match="can't be told.*invalid for input"):
        is_view_call(op.schema, REAL, op)


# -- functionalize


@pytest.mark.parametrize(
    "name, source, made, more, outcome",
    [
        ("t.default", GAPS, tensor((3, 2), NONE), (), True),
        ("contiguous.default", GAPS, GAPS, (), True),
        ("contiguous.default", GAPS, tensor((2, 3)), (), False),
        ("contiguous.default", tensor((2, 3), NONE), tensor((2, 3)), (), None),
        ("contiguous.default", tensor((2, 3)), tensor((2, 3), NONE), (), None),
        ("reshape.default", tensor((2, 3)), tensor((6,)), ([6],), True),
        ("reshape.default", GAPS, tensor((6,)), ([6],), False),
        ("reshape.default", GAPS, GAPS, ([6],), False),  # torch is asked, not the types
        ("_to_copy.default", GAPS, tensor((2, 3)), (), False),
        ("prims.split_dim.default", tensor((6,)), tensor((2, 3), NONE), (0, 2), None),
        ("prims.split_dim.default", tensor((6,)), tensor((2, 3)), (0, 2), True),
    ],
)  # fmt: skip
def test_what_may_be_a_view_is_one_where_eager_mode_gives_one(name, source, made, more, outcome):
    p = Program(source)
    op = p.call(name, made, p.arguments[0], *more).defining_op

    def is_view():
        shown = SimpleNamespace(type=source)
        return _Functionalizer.is_view(None, op, op.schema, shown)

    if outcome is None:
        with pytest.raises(UserError, match="can't be told without strides"):
            is_view()
    else:
        assert is_view() is outcome


@pytest.mark.parametrize(
    "namespace, operands, written, outcome, changed",
    [
        ("mine", "aa", "a", "a", {0: "a", 1: "a"}),
        ("mine", "as", "a", "a", {0: "a", 1: "a"}),  # the same places, another value
        ("mine", "ap", "a", None, None),  # a part of what is written is read
        ("aten", "ap", "a", "a", {0: "a"}),  # which eager mode refuses there
        ("aten", "ap", "ap", None, None),
        ("mine", "ab", "a", "a", {0: "a"}),
        ("mine", "ab", "ab", "ab", {0: "a", 1: "b"}),
        ("mine", "a?", "a", "a", {0: "a"}),
        ("mine", "pp", "p", "p", {0: "p", 1: "p"}),
        ("aten", "sa", "as", "a", {0: "a", 1: "a"}),
    ],
)
def test_the_storages_that_a_call_writes(namespace, operands, written, outcome, changed):
    kind = tensor((4,))
    values = dict(zip("asbp?", Program(*[kind] * 5).arguments, strict=True))
    first, second = Root(values["a"]), Root(values["b"])
    whole = StorageTensor(first, (), values["a"], 0, kind)
    known = {
        "a": whole, "s": StorageTensor(first, (), values["s"], 0, kind),
        "p": StorageTensor(first, (), values["p"], 0, tensor((2,))),
        "b": StorageTensor(second, (), values["b"], 0, kind),
    }  # fmt: skip
    state = SimpleNamespace(tensors={values[name]: made for name, made in known.items()})
    set_to = {}
    op = SimpleNamespace(
        schema=SimpleNamespace(namespace=namespace),
        set_operand=lambda number, value: set_to.update({number: value}),
    )
    found = _Functionalizer.unite_places(
        state, op, [values[name] for name in operands], [known[name] for name in written]
    )
    assert found == (None if outcome is None else [known[name] for name in outcome])
    if changed is not None:
        assert set_to == {number: values[name] for number, name in changed.items()}


def test_an_operation_that_reads_anew_says_whether_a_type_changed():
    p = Program(REAL, REAL, GAPS)
    x, y, gaps = p.arguments
    for now, outcome in (({x: y}, False), ({x: gaps}, True), ({y: gaps}, True), ({}, False)):
        op = p.call("add.Tensor", REAL, x, y).defining_op
        state = SimpleNamespace(current=lambda value, builder, now=now: now.get(value, value))
        assert _Functionalizer.refresh_operands(state, op) is outcome
        assert op.operands == (now.get(x, x), now.get(y, y))


def test_dtypes_are_arguments_too():
    p = Program(REAL)
    made = p.call("_to_copy.default", tensor((4,), None, f64), p.arguments[0])
    op = made.defining_op
    entries = {**op.arguments.as_dict(), "dtype": aten.DtypeAttr("float64")}
    found = types_of_call(op.schema, op.operands, A.DictAttr(entries))
    assert found == [tensor((4,), None, f64)]
