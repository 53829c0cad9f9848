"""Channels-last around convolutions: what is asked for, and that eager's operator gives it."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest
import torch

import irc.interp
from irc.analysis.channels_last import decide, kind_of, relative_times
from irc.dialects import layout
from irc.ir import attributes as A
from irc.ir.passes import PassContext, PassManager
from irc.ir.registry import lookup_attribute
from irc.ir.strides import channels_last_strides, same_layout
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, bf16, contiguous_strides
from irc.pipeline import pipeline_text
from irc.target import Target
from irc.target.figures import evolve
from tests.passes.loop.programs import program, tensor

PIPELINE = "propagate-channels-last,assign-layouts,insert-layout-copies"


def convolution(g: Any, x: Any, w: Any) -> Any:
    """A 3x3 convolution with padding 1 of `x` by `w`."""
    operand: Any = lookup_attribute("aten.operand")
    none: Any = lookup_attribute("aten.none")
    pair = lambda a: A.ArrayAttr([A.IntegerAttr(a), A.IntegerAttr(a)])  # noqa: E731
    n, _, height, width = x.type.shape
    made = g.call(
        "aten.convolution.default", x, w,
        type=x.type.with_shape((n, w.type.shape[0], height, width)),
        arguments={
            "input": operand(0), "weight": operand(1), "bias": none(), "stride": pair(1),
            "padding": pair(1), "dilation": pair(1), "transposed": A.BoolAttr(False),
            "output_padding": pair(0), "groups": A.IntegerAttr(1),
        },
    )  # fmt: skip
    made.defining_op.attributes["operand_strides"] = A.ArrayAttr(
        [A.DimsAttr(contiguous_strides(v.type.shape)) for v in (x, w)]
    )
    return made


def two_convolutions(g: Any, x: Any, w: Any) -> Any:
    middle = g.op("tanh", convolution(g, x, w))
    return g.op("exp", convolution(g, middle, w))


TYPES: list[TensorType] = [tensor(2, 8, 5, 6), tensor(8, 8, 3, 3)]


def test_one_copy_goes_in_and_none_between_or_after() -> None:
    module = program(TYPES, two_convolutions)
    x, w = torch.randn(2, 8, 5, 6), torch.randn(8, 8, 3, 3)
    expected = irc.interp.run(module, x, w)
    PassManager.parse(PIPELINE, verify="end").run(module)
    copies = [op for op in module.walk() if isinstance(op, layout.CopyOp)]
    assert len(copies) == 1
    (tanh,) = [op for op in module.walk() if op.name == "graph.tanh"]
    assert tanh.results[0].type.strides == channels_last_strides((2, 8, 5, 6))
    (got,) = irc.interp.run(module, x, w)
    torch.testing.assert_close(got, expected[0])
    (function,) = module.ops
    returned = function.return_op.operands[0]  # type: ignore[attr-defined]
    assert returned.type.strides == contiguous_strides((2, 8, 5, 6))


def verdict(module: Any, *, library: bool = True) -> Any:
    (function,) = module.ops
    target = attrs.evolve(Target.host(), library=("f32",) if library else ())
    return decide(function, target, 300)


def test_the_questions_are_asked_in_order() -> None:
    def nothing(g: Any, x: Any, w: Any) -> Any:
        return g.op("tanh", x)

    def all_returned(g: Any, x: Any, w: Any) -> Any:
        return convolution(g, x, w)

    def many(g: Any, x: Any, w: Any) -> Any:
        y = two_convolutions(g, x, w)
        for _ in range(600):
            y = g.op("tanh", y)
        return y

    batch = [tensor(symbol("s0"), 8, 5, 6), TYPES[1]]
    cases = [
        (TYPES, nothing, True, False, "no convolution"),
        (TYPES, all_returned, True, False, "as many images are returned"),
        (TYPES, two_convolutions, True, True, "on a CPU with oneDNN"),
        (batch, two_convolutions, True, True, "on a CPU with oneDNN"),
        (TYPES, many, True, True, "on a CPU with oneDNN"),
        (TYPES, many, False, False, "300 operations or more"),
        (batch, two_convolutions, False, False, "symbolic"),
        (TYPES, two_convolutions, False, True, "what the kinds"),
    ]
    for types, body, library, wanted, reason in cases:
        found = verdict(program(types, body), library=library)
        assert (found.innermost, reason in found.reason) == (wanted, True), (found, reason)


@pytest.mark.parametrize(
    "weight, groups, kind, wanted",
    [
        ((8, 8, 3, 3), 1, "small", True),
        ((256, 128, 3, 3), 1, "default", True),
        ((128, 256, 3, 3), 1, "in-out", True),
        ((128, 256, 1, 1), 1, "default", True),
        ((128, 16, 3, 3), 8, "grouped", False),
        ((128, 1, 3, 3), 128, "default", True),
    ],
)
def test_the_gain_depends_on_the_kind(
    weight: tuple[int, ...], groups: int, kind: str, wanted: bool
) -> None:
    assert kind_of(weight, groups, 64) == kind
    assert (relative_times(Target.named("avx2"))[kind] < 1) == wanted


@pytest.mark.parametrize(
    "figure, kind",
    [("grouped_time", "grouped"), ("narrowing_time", "in-out"), ("small_time", "small"),
     ("usual_time", "default")],
)  # fmt: skip
def test_the_gain_of_a_kind_is_a_figure(figure: str, kind: str) -> None:
    usual = relative_times(Target.named("avx2"))
    changed = relative_times(Target.named(f"#irc.target<avx2, {figure} = 3.5>"))
    assert changed == {**usual, kind: 3.5}


def test_whether_a_convolution_is_small_is_a_figure() -> None:
    (function,) = program(TYPES, two_convolutions).ops
    slow = Target.named("#irc.target<avx2, library = [], small_time = 3.5>")
    found = decide(function, slow, 300)
    assert not found.innermost and found.figures["relative_time"] == 3.5
    none = evolve(slow, small_channels=0)
    assert decide(function, none, 300).innermost


def test_the_verdict_is_an_attribute_and_a_remark() -> None:
    module, context = program(TYPES, two_convolutions), PassContext()
    PassManager.parse("propagate-channels-last").run(module, context)
    (function,) = module.ops
    entries = function.attributes["channels_last"].as_dict()  # type: ignore[attr-defined]
    assert entries["wanted"] is A.TRUE and entries["convolutions"].value == 2
    (remark,) = context.remarks
    assert "channels last: yes" in remark.message and "convolutions 2" in remark.message
    assert context.statistics["propagate-channels-last", "channels last"] == 2


def on_a_gpu(kind: TensorType) -> TensorType:
    return TensorType(kind.shape, kind.element, kind.strides, "cuda:0")


def asked_on_a_gpu(types: list[TensorType], *, tf32: bool, options: str = "", body: Any = None):
    """Which convolutions of a program on a GPU that likes channels last are asked for them; and the
    remarks."""
    module = program([on_a_gpu(kind) for kind in types], body or two_convolutions)
    gpu = attrs.evolve(Target.named("sm_90").gpu, channels_last=("bf16", "f32"))
    machine = attrs.evolve(Target.host(), processor=gpu, tf32_convolutions=tf32)
    context = PassContext(target=machine)
    PassManager.parse(f"propagate-channels-last{options}").run(module, context)
    calls = [op for op in module.walk() if op.name == "graph.call_aten"]
    asked = [c.attributes["operand_strides"][0].dims[1] == 1 for c in calls]
    return asked, " ".join(remark.message for remark in context.remarks)


@pytest.mark.fault("G1")
def test_a_layout_does_not_choose_the_precision_on_a_gpu() -> None:
    asked, remarks = asked_on_a_gpu(TYPES, tf32=True)
    assert asked == [False, False] and "TF32 could take the place of f32" in remarks
    assert "kept for precision 2" in remarks
    # Without TF32 there is one precision, and so where the user asks for any.
    assert asked_on_a_gpu(TYPES, tf32=False)[0] == [True, True]
    assert asked_on_a_gpu(TYPES, tf32=True, options="{any_precision=true}")[0] == [True, True]


@pytest.mark.fault("G1")
def test_convolutions_without_tf32_have_channels_last_beside_others() -> None:
    short = [kind.with_element(bf16) for kind in TYPES]
    assert asked_on_a_gpu(short, tf32=True)[0] == [True, True]

    def mixed(g: Any, x: Any, w: Any, a: Any, b: Any) -> Any:
        y = g.op("tanh", convolution(g, x, w))
        z = g.op("tanh", convolution(g, a, b))
        return g.op("exp", y), g.op("exp", convolution(g, z, b))

    asked, remarks = asked_on_a_gpu([*TYPES, *short], tf32=True, body=mixed)
    assert asked == [False, True, True] and "keeps its layout" in remarks


def already(g: Any, x: Any, w: Any) -> Any:
    """Two convolutions of images that eager has with channels innermost, by a weight in rows."""
    y = two_convolutions(g, x, w)
    for op in (op for op in y.defining_op.parent.ops if op.name == "graph.call_aten"):
        _, weight = op.attributes["operand_strides"]
        last = A.DimsAttr(channels_last_strides(op.operands[0].type.shape))
        op.attributes["operand_strides"] = A.ArrayAttr([last, weight])
    return y


def test_weights_of_images_that_have_channels_last_anyway_are_the_programs_to_convert() -> None:
    """Else the library converts them, in a launch of its own at each call."""
    module = program([on_a_gpu(kind.with_element(bf16)) for kind in TYPES], already)
    PassManager.parse("propagate-channels-last").run(
        module, PassContext(target=Target.named("sm_90"))
    )
    calls = [op for op in module.walk() if op.name == "graph.call_aten"]
    asked = [[d.dims for d in c.attributes["operand_strides"]] for c in calls]
    image, weight = (channels_last_strides(kind.shape) for kind in TYPES)
    assert asked == [[image, weight]] * 2


@pytest.mark.fault("G1")
def test_an_image_that_eager_has_channels_last_stays_so() -> None:
    """It is the layout, not the change of it, that decides the precision."""
    assert asked_on_a_gpu(TYPES, tf32=True, body=already)[0] == [True, True]


def test_the_option_reaches_the_pass() -> None:
    found = pipeline_text("triton", irc.Options(channels_last_tf32=True))
    assert "propagate-channels-last{any_precision=true}," in found
    both = irc.Options(channels_last_tf32=True, layout_optimization=False)
    assert "propagate-channels-last" not in pipeline_text("triton", both)


def test_symbolic_images_have_channels_last_too() -> None:
    module = program([tensor(symbol("s0"), 8, 5, 6), TYPES[1]], two_convolutions)
    PassManager.parse("propagate-channels-last").run(module)
    calls = [op for op in module.walk() if op.name == "graph.call_aten"]
    assert [c.eager_strides[0].dims[1] for c in calls] == [1, 1]


SIZES = list(itertools.product((1, 2), (1, 3, 8), (1, 5), (1, 6), (1, 4), (1, 3), (1, 2)))


@pytest.mark.parametrize("n", (1, 2))
def test_eager_gives_channels_last_for_channels_last(n: int) -> None:
    for batch, channels, height, width, out, kernel, stride in SIZES:
        shape = (batch, channels, height, width)
        last = channels_last_strides(shape)
        if batch != n or same_layout(shape, contiguous_strides(shape), last):
            continue
        x = torch.zeros(1).as_strided(shape, (0, 0, 0, 0)).contiguous()
        image = torch.empty_strided(shape, last).copy_(x)
        weight = torch.ones(out, channels, kernel, kernel)
        y = torch.ops.aten.convolution(
            image, weight, None, [stride] * 2, [kernel // 2] * 2, [1, 1], False, [0, 0], 1
        )
        assert y.stride() == channels_last_strides(y.shape)
