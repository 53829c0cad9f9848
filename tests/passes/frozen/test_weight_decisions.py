"""What the passes on constant weights decide, question by question."""

from __future__ import annotations

import pytest

from irc.analysis.constant_values import ConstantValues
from irc.dialects import graph
from irc.ir import attributes as A
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, f16, f32, f64, i32, index
from irc.passes.frozen import fold_batch_norms as N
from irc.passes.frozen import pack_weights as W
from irc.passes.frozen.weighted_products import weighted_product
from irc.target import Target
from tests.passes.graph.aten_programs import Graph, of

S = symbol("s0")
ELEMENTS = ("f32", "f16")


def ints(*numbers):
    return A.ArrayAttr([A.IntegerAttr(n) for n in numbers])


# -- pack-weights


@pytest.mark.parametrize(
    "attribute, outcome",
    [
        (A.DenseIntsAttr((1, 2)), [1, 2]), (ints(3, 4), [3, 4]), (ints(), []),
        (A.ArrayAttr([A.IntegerAttr(1), A.DimAttr(S)]), None),
        (A.ArrayAttr([A.DimAttr(S), A.DimAttr(S)]), None), (A.IntegerAttr(3), None),
    ],
)  # fmt: skip
def test_the_numbers_of_a_list(attribute, outcome):
    assert W.integers(attribute) == outcome


def test_sizes_that_are_known():
    assert W.known_sizes(TensorType((2, 3), f32)) == [2, 3]
    assert W.known_sizes(TensorType((), f32)) == []
    assert W.known_sizes(TensorType((2, S), f32)) is None


def test_which_operators_have_their_weights_packed():
    every, linears = W.PackWeights(), W.PackWeights(convolutions=False)
    for callee, both in (("aten.mm.default", True), ("aten.addmm.default", True),
                         ("aten.bmm.default", False)):  # fmt: skip
        assert every.takes(callee) is linears.takes(callee) is both
    assert every.takes(W.CONVOLUTION) and not linears.takes(W.CONVOLUTION)


@pytest.mark.parametrize(
    "types, outcome",
    [
        ([((2, 3), f32)], None), ([((2, 3), f32), ((4,), f32)], None),
        ([((2, 3), f64)], "oneDNN doesn't pack f64 here"),
        ([((2, 3), f32), ((2, 3), f16)], "oneDNN doesn't pack f16, f32 here"),
        ([((2, 3), f32), ((2, 0), f32)], "it has no elements"),
        ([((2, 3), f32), ((2, 3), f32, None, "cuda:0")], "it is on cuda:0"),
    ],
)  # fmt: skip
def test_why_tensors_are_not_packed(types, outcome):
    assert W.objection(ELEMENTS, *[TensorType(*t) for t in types]) == outcome
    assert W.objection(("f32",), TensorType((2,), f32)) is None


IMAGE = (2, 3, 5, 5)


def packed(p, call):
    """Pack the weight of a call whose result is the function's; why it was not, else None."""
    target = Target(Target.named("avx2").features, library=ELEMENTS)
    state = W.WeightPacking(W.PackWeights(), target)
    told = p.rewritten(call.results[0], W.PackWeights.patterns, state)
    before = f"the weight of {call.callee} was not packed: "
    assert len(told) <= 1 and all(why.startswith(before) for why in told)
    return told[0].removeprefix(before) if told else None


@pytest.mark.parametrize(
    "image, weight, changes, outcome",
    [
        (IMAGE, (4, 3, 1, 1), {}, None), (IMAGE, "argument", {}, "it is no constant"),
        (IMAGE, (4, 3, 1, 1), {"transposed": A.TRUE}, "the convolution is transposed"),
        ((2, 3, 0, 5), (4, 3, 1, 1), {}, "it has no elements"),
        ((2, 3, 5), (4, 3, 1), {}, "the image has another rank than 4 or 5"),
        ((2, 3, 5, 5, 5), (4, 3, 1, 1, 1), {"stride": ints(1)}, None),
        ((2, 3, 5, 5, 5, 5), (4, 3, 1, 1, 1, 1), {}, "the image has another rank than 4 or 5"),
        (IMAGE, (4, 3, 1, 1), {"stride": A.ArrayAttr([A.DimAttr(S)])}, "its stride is symbolic"),
        (IMAGE, (4, 3, 1, 1), {"padding": A.DimAttr(S)}, "its padding is symbolic"),
        (IMAGE, (4, 3, 1, 1), {"dilation": A.DimAttr(S)}, "its dilation is symbolic"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("biased", [False, True])
def test_which_convolutions_are_packed(image, weight, changes, outcome, biased):
    p, x, y = of(image, (4, 3, 1, 1))
    w = y if weight == "argument" else p.constant(*weight)
    bias = p.constant(4) if biased else None
    call = p.convolution(x, w, bias, TensorType(image, f32), **changes).defining_op
    assert packed(p, call) == outcome
    made = [op for op in p.function.block.ops if isinstance(op, graph.PackedConv)]
    assert (call.parent is None) is bool(made) is (outcome is None)
    if made:
        assert len(made[0].stride) == len(image) - 2 and (made[0].bias is not None) is biased


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize(
    "low, high, number, taken",
    [((0, 0, 1, 2), (0, 0, 1, 2), 0.0, True), ((0, 0, 1, 2), (0, 0, 2, 1), 0.0, False),
     ((0, 0, 1, 1), (0, 0, 1, 1), 1.0, False), ((0, 1, 1, 1), (0, 1, 1, 1), 0.0, False),
     ((0, 0, -1, 1), (0, 0, -1, 1), 0.0, False)],
)  # fmt: skip
def test_zeros_around_an_image_that_others_read_stay(low, high, number, taken, read):
    p, x = of(IMAGE)
    shape = tuple(a + b + c for a, b, c in zip(IMAGE, low, high, strict=True))
    padded = p.value(graph.Pad, x, low=list(low), high=list(high),
                     value=A.FloatAttr(number), result_types=TensorType(shape, f32))  # fmt: skip
    call = p.convolution(padded, p.constant(4, shape[1], 1, 1)).defining_op
    if read:
        p.value(graph.Neg, padded)
    assert packed(p, call) is None
    (made,) = [op for op in p.function.block.ops if isinstance(op, graph.PackedConv)]
    assert list(made.padding) == ([1, 2] if taken else [0, 0])
    assert (padded.defining_op.parent is None) is (taken and not read)


@pytest.mark.parametrize(
    "rows, bias, changes, outcome",
    [
        (4, None, {}, None), (4, (6,), {}, None), (2, None, {}, None),
        (1, None, {}, "it is multiplied with one row"), (S, None, {}, None),
        (4, (4, 6), {}, "what is added is tensor<4x6xf32>, no bias"),
        (4, (1,), {}, "what is added is tensor<1xf32>, no bias"),
        (4, (6,), {"beta": A.IntegerAttr(2)}, "beta is 2"),
        (4, (6,), {"alpha": A.FloatAttr(0.5)}, "alpha is 0.5"),
        (4, (6,), {"alpha": A.IntegerAttr(1), "beta": A.IntegerAttr(1)}, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("permuted", [False, True])
def test_which_products_are_packed(rows, bias, changes, outcome, permuted):
    p, x = of((rows, 3))
    weight = p.constant(6, 3) if permuted else p.constant(3, 6)
    right = p.value(graph.Permute, weight, permutation=[1, 0]) if permuted else weight
    added = None if bias is None else p.constant(*bias)
    call = p.mm(x, right, added, **changes).defining_op
    assert packed(p, call) == outcome
    made = [op for op in p.function.block.ops if isinstance(op, graph.PackedLinear)]
    assert (call.parent is None) is bool(made) is (outcome is None)
    if made:
        pack = made[0].weight.defining_op
        assert pack.weight is weight and pack.transposed is not permuted
        assert (made[0].bias is None) is (bias is None) and made[0].source is x
        assert (pack.input is None) is (rows is S)


def test_a_product_that_is_not_packed_for_its_factors():
    p, x, w = of((4, 3), (3, 6))
    assert packed(p, p.mm(x, w).defining_op) == "it is no constant"
    p, w = of((3, 6))
    turned = p.value(graph.Permute, w, permutation=[1, 0])
    assert packed(p, p.mm(turned, p.constant(3, 2)).defining_op) is None
    p, w = of((3, 6))
    turned = p.value(graph.Permute, w, permutation=[1, 0])
    assert packed(p, p.mm(w, turned).defining_op) == "it is no constant"
    p, x = of((4, 3), element=f64)
    call = p.mm(x, p.constant(3, 6, element=f64)).defining_op
    assert packed(p, call) == "oneDNN doesn't pack f64 here"


# -- weighted products


@pytest.mark.parametrize(
    "case, outcome",
    [
        ("plain", (False, 0, 1)), ("bias", (False, 0, 1)), ("transposed", (False, 1, 1)),
        ("groups", (False, 0, 1)), ("transposed groups", None), ("an argument's weight", None),
        ("an argument's bias", None), ("no batch", None),
    ],
)
def test_convolutions_with_constant_weights(case, outcome):
    p, x, w, b = of(IMAGE[1:] if case == "no batch" else IMAGE, (4, 3, 1, 1), (4,))
    changes = {}
    if "transposed" in case:
        changes["transposed"] = A.TRUE
    if "groups" in case:
        changes["groups"] = A.IntegerAttr(3)
    weight = w if "weight" in case else p.constant(4, 3, 1, 1)
    bias = b if case == "an argument's bias" else p.constant(4) if case == "bias" else None
    made = TensorType((2, 4, 5, 5), f32)
    call = p.convolution(x, weight, bias, made, **changes).defining_op
    found = weighted_product(call, ConstantValues())
    got = found and (found.permuted, found.weight_dim, found.channel)
    assert got == outcome
    if found:
        assert found.is_convolution and found.bias is bias and found.weight is weight


@pytest.mark.parametrize(
    "bias, changes, outcome",
    [
        (None, {}, True), ((6,), {}, True), ((1, 6), {}, True), ((4, 6), {}, False),
        ((1,), {}, False), ("argument", {}, False), ((6,), {"alpha": A.IntegerAttr(2)}, False),
        ((6,), {"beta": A.FloatAttr(0.5)}, False), ((6,), {"beta": A.IntegerAttr(1)}, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", [None, [1, 0], [0, 1]])
def test_linears_with_constant_weights(bias, changes, outcome, order):
    p, x, b = of((4, 3), (6,))
    weight = p.constant(6, 3) if order == [1, 0] else p.constant(3, 6)
    right = weight if order is None else p.value(graph.Permute, weight, permutation=order)
    added = b if bias == "argument" else None if bias is None else p.constant(*bias)
    found = weighted_product(p.mm(x, right, added, **changes).defining_op, ConstantValues())
    assert (found is not None) is outcome
    if found:
        assert (found.source, found.bias, found.channel) == (x, added, 1)
        assert (found.permuted, found.weight_dim) == ((True, 0) if order == [1, 0] else (False, 1))
        assert found.weight is (weight if order == [1, 0] else right) and not found.is_convolution


def test_what_is_no_product_with_a_constant_weight():
    p, x, w = of((4, 3), (3, 6))
    none = ConstantValues()
    assert weighted_product(p.mm(x, w).defining_op, none) is None
    assert weighted_product(p.value(graph.Neg, x).defining_op, none) is None
    constant = p.constant(3, 6)
    whole = p.mm(x, constant).defining_op
    whole.results[0].type = TensorType((4, 6), i32)
    assert weighted_product(whole, none) is None
    other = p.call_aten("aten.bmm.default", TensorType((4, 6), f32), {"self": x, "mat2": constant})
    assert weighted_product(other.defining_op, none) is None
    for results in ([], [x.type, x.type], [index]):
        odd = graph.CallAten([x, constant], results, dict(whole.attributes))
        assert weighted_product(p.builder.insert(odd), none) is None


# -- fold-batch-norms


def varying(p, case):
    """A value of 2 x 6 x 5, and whether it is constant and varies along dimension 1 alone."""
    shape = (2, 6, 5)
    kind = TensorType(shape, f32)

    def spread(value, dims):
        return p.value(graph.Broadcast, value, dims=dims, result_types=kind)

    x = p.arguments[0]
    if case == "a number":
        return p.full(2.0, *shape), True
    if case == "a vector":
        return spread(p.constant(6), [1]), True
    if case == "a vector in three dimensions":
        return spread(p.constant(1, 6, 1), [0, 1, 2]), True
    if case == "along another":
        return spread(p.constant(5), [2]), False
    if case == "along two":
        return spread(p.constant(2, 6), [0, 1]), False
    if case == "an argument's":
        return spread(p.arguments[1], [1]), False
    if case == "computed":
        return p.value(graph.Add, spread(p.constant(6), [1]), p.full(1.0, *shape)), True
    if case == "computed along two":
        return p.value(graph.Add, spread(p.constant(6), [1]), spread(p.constant(5), [2])), False
    if case == "a constant of all":
        return p.constant(*shape), False
    if case == "a number that is known later":
        return p.value(graph.Full, p.arguments[2], result_types=kind), False
    return x, False


@pytest.mark.parametrize(
    "case",
    ["a number", "a vector", "a vector in three dimensions", "along another", "along two",
     "an argument's", "computed", "computed along two", "a constant of all",
     "a number that is known later", "an argument"],
)  # fmt: skip
def test_what_varies_along_the_channels(case):
    p = Graph(TensorType((2, 6, 5), f32), TensorType((6,), f32), f32)
    value, outcome = varying(p, case)
    assert N.varies_along(value, 1, ConstantValues()) is outcome


def test_what_has_ones_beside_its_channels_need_only_be_constant():
    p, x, y = of((1, 6, 1), (1, S, 1))
    assert N.varies_along(p.constant(1, 6, 1), 1, ConstantValues())
    assert not N.varies_along(x, 1, ConstantValues())
    assert not N.varies_along(p.constant(1, 6, 5), 1, ConstantValues())
    assert not N.varies_along(p.value(graph.Neg, y), 1, ConstantValues())
    symbolic = p.value(graph.Full, value=A.FloatAttr(1.0), result_types=TensorType((2, S), f32))
    assert not N.varies_along(symbolic, 1, ConstantValues())
    wide = TensorType((S, 6), f32)
    assert N.varies_along(p.value(graph.Full, value=A.FloatAttr(1.0), result_types=wide), 1,
                          ConstantValues())  # fmt: skip


@pytest.mark.parametrize(
    "cls, first, function",
    [(graph.Add, False, "add"), (graph.Add, True, "add"), (graph.Sub, False, "sub"),
     (graph.Sub, True, "rsub"), (graph.Mul, False, "mul"), (graph.Mul, True, "mul"),
     (graph.Div, False, "div"), (graph.Div, True, None), (graph.Maximum, False, None)],
)  # fmt: skip
def test_steps_behind_a_product(cls, first, function):
    p, x, y = of((4, 6), (4, 6))
    c = p.full(2.0, 4, 6)
    user = p.value(cls, *((c, x) if first else (x, c))).defining_op
    step = N._step(user, x, 1, ConstantValues())
    assert (step and step.function) == function and (step is None or step.constant is c)
    assert N._step(p.value(cls, x, x).defining_op, x, 1, ConstantValues()) is None
    own = p.constant(1, 6)
    assert N._step(p.value(cls, own, own).defining_op, own, 1, ConstantValues()) is None
    assert N._step(p.value(cls, x, y).defining_op, x, 1, ConstantValues()) is None


@pytest.mark.parametrize(
    "source, made, dim, outcome",
    [
        ((4, 6), (2, 2, 6), 1, 2), ((4, 6), (24,), 1, None), ((4, 6), (4, 1, 6), 1, 2),
        ((4, 6), (4, 2, 3), 1, None), ((4, 1), (4,), 1, None),
        ((6, 0, 5), (5, 0, 6), 2, None), ((0, 5), (0, 5, 7), 1, None), ((4, 1), (4, 1), 1, None),
        ((4, 2), (2, 2, 2), 1, 2), ((6, 6), (6, 6), 1, 1), ((6, 6), (6, 2, 3), 0, 0),
        ((2, 3, 6), (6, 6), 2, 1), ((4, 6), (4, 6, 1), 0, 0),
        ((4, 6), (4, 2, 3), 0, 0),
        ((2, 2, 6), (4, 6), 2, 1), ((2, 2, 6), (4, 6), 0, None),
    ],
)  # fmt: skip
def test_where_the_channels_go_in_a_reshape(source, made, dim, outcome):
    p, x = of(source)
    view = p.value(graph.Reshape, x, result_types=TensorType(made, f32)).defining_op
    assert N._moved(view, dim) == outcome


def test_where_the_channels_go_in_a_permutation():
    p, x = of((2, 3, 4))
    view = p.value(graph.Permute, x, permutation=[1, 2, 0]).defining_op
    assert [N._moved(view, dim) for dim in range(3)] == [2, 0, 1]


def followed(make, *, conv=False):
    """What follows a product whose result `make` reads: functions, views, whether to the end."""
    p, x = of(IMAGE if conv else (4, 3))
    y = p.convolution(x, p.constant(6, 3, 1, 1)) if conv else p.mm(x, p.constant(3, 6))
    end = make(p, y)
    p.returned(end)
    told = []
    constants = ConstantValues()
    product = weighted_product(y.defining_op, constants)
    chain = N.follow(product, constants, told.append)
    if chain is None:
        return None, bool(told)
    return "".join(s.function[0] for s in chain.steps) + "v" * len(chain.views), chain.end is end


def scaled(p, y, number=2.0):
    return p.value(graph.Mul, y, p.full(number, *y.type.shape, element=y.type.element))


def shifted(p, y):
    return p.value(graph.Add, y, p.full(1.0, *y.type.shape, element=y.type.element))


def cast(p, y, element):
    return p.builder.insert(graph.Cast.to(y, element)).results[0]


def shaped(p, y, *shape):
    return p.value(graph.Reshape, y, result_types=y.type.with_shape(shape))


def negated(p, y):
    return p.value(graph.Neg, y)


CHAINS = {
    "scaled": (scaled, ("m", True)),
    "shifted only": (shifted, (None, False)),
    "shifted and scaled": (lambda p, y: scaled(p, shifted(p, y)), ("am", True)),
    "through views": (lambda p, y: scaled(p, shaped(p, y, 2, 2, 6)), ("mv", True)),
    "views behind": (lambda p, y: shaped(p, scaled(p, y), 2, 2, 6), ("mv", True)),
    "a view that mixes": (lambda p, y: scaled(p, shaped(p, y, 24)), (None, False)),
    "nothing": (lambda p, y: p.value(graph.Neg, y), (None, False)),
    "a function between": (lambda p, y: scaled(p, negated(p, scaled(p, y))), ("m", False)),
    "wider": (lambda p, y: cast(p, scaled(p, cast(p, y, f64)), f32), ("m", True)),
    "wider without end": (lambda p, y: scaled(p, cast(p, y, f64)), (None, False)),
    "two widths": (lambda p, y: cast(p, scaled(p, cast(p, scaled(p, y), f64)), f32), ("m", False)),
    "through integers": (lambda p, y: scaled(p, cast(p, cast(p, y, i32), f32)), (None, False)),
    "no steps": (lambda p, y: shaped(p, y, 2, 12), (None, False)),
    "read twice": (lambda p, y: p.value(graph.Sub, scaled(p, y), negated(p, y)), (None, True)),
    "read twice unscaled": (
        lambda p, y: p.value(graph.Sub, p.value(graph.Exp, y), negated(p, y)), (None, False)
    ),
}  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS)
def test_what_follows_a_product(chain):
    make, outcome = CHAINS[chain]
    assert followed(make) == outcome


def test_a_shift_behind_a_convolution_is_its_bias():
    assert followed(shifted, conv=True) == ("a", True)
    assert followed(lambda p, y: shaped(p, y, 2, 6, 25), conv=True) == (None, False)


@pytest.mark.parametrize(
    "functions, outcome",
    [
        ("mul", "m _"), ("div", "r _"), ("add", "_ a"), ("sub", "_ n"), ("rsub", "f c"),
        ("mul mul", "mul _"), ("mul div", "div _"), ("div mul", "mul _"), ("add add", "_ add"),
        ("add mul", "m mul"), ("add div", "r div"), ("sub sub", "_ sub"), ("add sub", "_ sub"),
        ("mul rsub", "neg c"), ("add rsub", "f sub"), ("sub rsub", "f sub"),
    ],
)  # fmt: skip
def test_scale_and_shift_that_steps_amount_to(functions, outcome):
    p = Graph()
    steps = tuple(N.AffineStep(name, p.constant(6), 0) for name in functions.split())
    scale, shift = N.accumulate(p.builder, steps)

    def said(value):
        if value is None:
            return "_"
        return value.defining_op.name.removeprefix("graph.")

    words = {"m": "constant", "a": "constant", "c": "constant", "r": "reciprocal", "n": "neg",
             "f": "full", "_": "_"}  # fmt: skip
    assert [said(scale), said(shift)] == [words.get(w, w) for w in outcome.split()]
