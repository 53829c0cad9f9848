"""Convolutions of volumes are oneDNN's where ATen would unfold their windows."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from irc.frontend import backend  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from irc.target import Target  # noqa: E402
from irc.target.attribute import carry  # noqa: E402

CALLED = "aten.mkldnn_convolution.default"
NO_ONEDNN = not (torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled)


def callees(conv, image, pipeline="lower-to-cpu", **words):
    """The values of a compiled convolution, and what the host program calls."""
    torch._dynamo.reset()
    compiled = torch.compile(conv, backend="irc", **words)
    with torch.no_grad(), backend.recording() as graphs:
        result = compiled(image)
    (graph,) = graphs
    module = graph.imported.module.clone()
    carry(module, Target.named("host"))
    PassManager.parse(pipeline).run(module)
    calls = [op.callee for op in module.lookup("main").walk() if op.name == "host.call_aten"]
    return compiled, result, calls


@pytest.mark.skipif(NO_ONEDNN, reason="torch has no oneDNN")
@pytest.mark.parametrize("options", [
    {"padding": 1}, {"padding": (1, 0, 2), "stride": (2, 1, 3)}, {"dilation": 2, "padding": 2},
    {"groups": 2, "bias": False}, {"groups": 4, "padding": 1},
])  # fmt: skip
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_windows_of_volumes_are_onednns(options, last, dynamic):
    torch.manual_seed(0)
    conv = torch.nn.Conv3d(4, 8, 3, **options).eval()
    image = torch.randn(2, 4, 7, 9, 8)
    image[0, 1, 3, 4, 4], image[1, 2, 0, 0, 0] = torch.nan, torch.inf
    if last:
        image = image.to(memory_format=torch.channels_last_3d)
    compiled, result, calls = callees(conv, image, dynamic=dynamic)
    assert calls == [CALLED]
    with torch.no_grad():
        for images in (image, torch.cat([image, image])):
            exact = torch.nn.functional.conv3d(
                images.double(), conv.weight.double(),
                None if conv.bias is None else conv.bias.double(),
                conv.stride, conv.padding, conv.dilation, conv.groups,
            )  # fmt: skip
            result = compiled(images)
            torch.testing.assert_close(
                result.double(), exact, rtol=1e-4, atol=1e-5, equal_nan=True
            )
            assert result.stride() == conv(images).stride()


@pytest.mark.parametrize("conv", [
    torch.nn.Conv3d(4, 8, 1), torch.nn.ConvTranspose3d(4, 8, 3), torch.nn.Conv3d(4, 8, 3).double(),
])  # fmt: skip
def test_others_are_atens(conv):
    image = torch.randn(2, 4, 5, 6, 7, dtype=conv.weight.dtype)
    _, result, calls = callees(conv.eval(), image)
    assert CALLED not in calls
    torch.testing.assert_close(result, conv(image).detach())


@pytest.mark.skipif(NO_ONEDNN, reason="torch has no oneDNN")
def test_a_result_without_elements():
    conv = torch.nn.Conv3d(4, 8, 3, padding=1).eval()
    _, result, _ = callees(conv, torch.randn(0, 4, 5, 6, 7))
    assert result.shape == (0, 8, 5, 6, 7)


@pytest.mark.skipif(NO_ONEDNN, reason="torch has no oneDNN")
def test_a_frozen_volume_is_packed():
    torch.manual_seed(0)
    conv = torch.nn.Conv3d(4, 8, 3, padding=1).eval()
    image = torch.randn(1, 4, 5, 6, 7)
    _, result, calls = callees(conv, image, "lower-to-cpu{freezing=true}",
                               options={"freezing": True})  # fmt: skip
    torch.testing.assert_close(result, conv(image).detach(), rtol=1e-4, atol=1e-5)
    assert calls == ["aten.extern.mkldnn._convolution_pointwise.default"]
