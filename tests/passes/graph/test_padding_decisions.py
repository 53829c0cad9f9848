"""What the pass `pad-matmul` pads: which products, when it pays, and what takes no copy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from irc.analysis import products as M
from irc.dialects import graph
from irc.ir.passes import PassContext
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, f16, f32, f64
from irc.passes.graph.pad_matmul import PadMatmul
from irc.target import Target
from tests.passes.graph.aten_programs import of

S = symbol("s0")


@pytest.mark.parametrize(
    "left, right, element, padding",
    [
        ((8, 8), (8, 8), f32, None), ((6, 8), (8, 8), f32, (2, 0, 0)),
        ((8, 6), (6, 8), f32, (0, 2, 0)), ((8, 8), (8, 6), f32, (0, 0, 2)),
        ((1, 8), (8, 8), f32, None), ((12, 8), (8, 8), f16, (4, 0, 0)),
        ((12, 8), (8, 8), f32, None), ((6, 8), (8, 8), f64, None), ((S, 8), (8, 8), f32, None),
        ((S, 6), (6, 8), f32, (0, 2, 0)), ((6, 0), (0, 8), f32, None), ((0, 6), (6, 8), f32, None),
        ((6, 8), (8, 0), f32, None),
    ],
)  # fmt: skip
def test_which_products_would_be_padded(left, right, element, padding):
    p, x, y = of(left, right, element=element)
    found = M.product_of(p.mm(x, y).defining_op)
    assert (found and found.padding) == padding and (found is None or found.batch == 1)


def test_the_batch_and_the_order_of_factors():
    p, x, y = of((5, 6, 8), (5, 8, 8))
    made = TensorType((5, 6, 8), f32)
    found = M.product_of(p.call_aten("aten.bmm.default", made, {"self": x, "mat2": y}).defining_op)
    assert found.batch == 5 and found.transposed == (False, False)
    turned = p.value(graph.Permute, x, permutation=[0, 2, 1])
    again = p.value(graph.Permute, x, permutation=[1, 0, 2])
    assert M._is_transposed(turned) and not M._is_transposed(again) and not M._is_transposed(x)


@pytest.mark.parametrize(
    "force, balance, speedup, outcome",
    [
        (True, 1e9, 0.5, None), (False, 1e9, 2.0, "it is not compute-bound"),
        (False, 1.0, 2.0, None), (False, 1.0, 1.1, "padded, it is 1.10 times as fast"),
        (False, 1.0, 1.11, None), (False, 1.0, None, None),
        (False, 2 * 512 / 3, 2.0, "it is not compute-bound"), (False, 2 * 512 / 3.1, 2.0, None),
    ],
)  # fmt: skip
def test_when_padding_pays(force, balance, speedup, outcome):
    p, x, y = of((512, 512), (512, 512))
    call = p.mm(x, y).defining_op
    product = SimpleNamespace(m=512, k=512, n=512, dtype="float32")
    context = PassContext()
    context.settled, context.measure = Target.named("avx2"), lambda given: speedup
    why = PadMatmul(force=force, balance=balance).objection(call, product, context)
    assert why == outcome if outcome is None else why.startswith(outcome)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_balance_is_that_of_the_target_for_an_element(dtype):
    asked = []
    p, x, y = of((512, 512), (512, 512))
    call = p.mm(x, y).defining_op
    target = SimpleNamespace(
        operations_per_byte=lambda bits: asked.append(bits) or 1.0, is_gpu=False
    )
    product = SimpleNamespace(m=512, k=512, n=512, dtype=dtype)
    context = SimpleNamespace(settled=target, measure=None, options=PassContext().options)
    assert PadMatmul().objection(call, product, context) is None
    assert asked == [32 if dtype == "float32" else 16]


def padded(p, x, high, number=0.0, low=None):
    low = low or [0] * len(high)
    shape = [sum(sizes) for sizes in zip(x.type.shape, high, low, strict=True)]
    return p.value(
        graph.Pad, x, low=low, high=list(high),
        value=graph.scalar_attribute(number, f32), result_types=TensorType(shape, f32),
    )  # fmt: skip


def part(p, x, *shape, start=0, step=1):
    for dim, size in enumerate(shape):
        if x.type.shape[dim] != size:
            kind = graph.replace_size(x.type, dim, size)
            x = p.value(graph.Slice, x, dim=dim, start=start, step=step, result_types=kind)
    return x


@pytest.mark.parametrize(
    "make, taken",
    [
        (lambda p, x: part(p, padded(p, x, (2, 3)), 6, 5), True),
        (lambda p, x: part(p, padded(p, x, (2, 4)), 6, 5), False),
        (lambda p, x: part(p, padded(p, x, (2, 3), 1.0), 6, 5), False),
        (lambda p, x: part(p, padded(p, x, (2, 3)), 6, 5, start=1), False),
        (lambda p, x: part(p, padded(p, x, (2, 6)), 6, 5, step=2), False),
        (lambda p, x: part(p, padded(p, x, (1, 3), low=[1, 0]), 6, 5), False),
        (lambda p, x: x, False),
        (lambda p, x: p.value(graph.Neg, x), False),
    ],
)
def test_an_array_that_was_padded_before_is_found(make, taken):
    p, x = of((6, 5))
    value = make(p, x)
    found = M.padded_before(value, (2, 3))
    assert (found is not None) is taken and (found is None or found.type.shape == (8, 8))


def test_every_other_element_of_a_padded_array_is_no_part_of_it():
    p, x = of((6, 5))
    value = part(p, padded(p, x, (2, 3)), 6, 4, step=2)
    assert M.padded_before(value, (2, 4)) is None
    assert M.padded_before(part(p, padded(p, x, (2, 3)), 6, 4), (2, 4)) is not None


@pytest.mark.parametrize("which", [0, 1])
def test_each_factor_is_asked_for_itself(which):
    p, x, y = of((6, 7), (7, 5))
    factors = [x, y]
    plain = M.product_of(p.mm(*factors).defining_op)
    assert plain.padding == (2, 1, 3) and not any(plain.transposed + plain.computed)
    turned = p.value(graph.Permute, (x, y)[which], permutation=[1, 0])
    factors[which] = p.value(graph.Permute, p.value(graph.Copy, turned), permutation=[1, 0])
    found = M.product_of(p.mm(*factors).defining_op)
    assert found.transposed == (which == 0, which == 1)
    before = part(p, padded(p, (x, y)[which], ((2, 1), (1, 3))[which]), *(x, y)[which].type.shape)
    factors[which] = before
    assert M.product_of(p.mm(*factors).defining_op).computed == (which == 0, which == 1)


def test_a_factor_whose_padding_takes_no_copy():
    p, x = of((6, 5))
    before = part(p, padded(p, x, (2, 3)), 6, 5)
    computed = p.value(graph.Neg, x)
    assert M._is_padded_for_nothing(before, (2, 3)) and M._is_padded_for_nothing(computed, (2, 3))
    assert not M._is_padded_for_nothing(before, (3, 2)) and not M._is_padded_for_nothing(x, (3, 2))
    assert M._is_padded_for_nothing(x, (2, 3))  # another product's copy
    padded(p, x, (4, 4), 1.0)
    padded(p, x, (5, 5), low=(1, 0))
    assert not M._is_padded_for_nothing(x, (4, 4)) and not M._is_padded_for_nothing(x, (5, 5))
    turned = p.value(graph.Permute, before, permutation=[1, 0])
    assert M._is_padded_for_nothing(turned, (3, 2)) and not M._is_padded_for_nothing(turned, (2, 3))
    seen = p.value(graph.Exp, x)
    p.returned(seen)
    assert not M._is_padded_for_nothing(seen, (2, 3))


@pytest.mark.parametrize(
    "make, outcome",
    [
        (lambda p, v: p.returned(v), True), (lambda p, v: p.value(graph.Neg, v), False),
        (lambda p, v: p.mm(v, p.constant(5, 2)), False),
        (lambda p, v: p.call_aten("aten.sort.default", v.type, {"self": v}), True),
        (lambda p, v: p.returned(p.value(graph.Permute, v, permutation=[1, 0])), True),
        (lambda p, v: p.value(graph.Permute, v, permutation=[1, 0]), False),
        (lambda p, v: p.returned(p.value(graph.Neg, v)), False),
        (lambda p, v: p.builder.create(graph.UpdateInput, v, argument=0), True),
    ],
)  # fmt: skip
def test_values_whose_strides_somebody_sees(make, outcome):
    p, x = of((6, 5))
    value = p.value(graph.Exp, x)
    make(p, value)
    assert M.is_seen(value) is outcome and M.is_computed(value) and not M.is_computed(x)
