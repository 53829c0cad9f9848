"""Large products go to oneDNN on the processors where that is faster, with the same values."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from irc.analysis.channels_last import library_is_there
from irc.dialects import graph, host
from irc.frontend.backend import recording
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassContext, PassManager
from irc.ir.verifier import verify
from irc.passes.layout.choose_product_library import ChooseProductLibrary
from irc.pipeline import pipeline_text

pytestmark = pytest.mark.skipif(not library_is_there(), reason="torch without oneDNN")
PASS = "choose-product-library{processor=znver4 least=1000}"
LAYOUTS = pipeline_text("llvm").partition(",choose-product-library")[0]


def chosen(function: Any, *arguments: torch.Tensor, pass_: str = PASS) -> tuple[Any, PassContext]:
    """The program on the layout level with libraries chosen, and the pass's context."""
    context = PassContext(target="llvm", explains=True)
    module = irc.trace(function, arguments)
    text = f"functionalize,decompose-aten,{LAYOUTS},{pass_}"
    PassManager.parse(text, verify="each").run(module, context)
    return module, context


def libraries(module: Any) -> list[str | None]:
    return [op.library for op in module.walk() if isinstance(op, graph.CallAten)]


def randn(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*sizes, dtype=dtype)


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (lambda x, w: x @ w, [(11, 13), (13, 9)]),
        (lambda x, w: x @ w.t(), [(11, 13), (9, 13)]),
        (lambda x, w: (x + 1) @ (w * 2), [(11, 13), (13, 9)]),
        (lambda x, w, b: torch.addmm(b, x, w), [(11, 13), (13, 9), (9,)]),
        (lambda x, w, b: torch.nn.functional.linear(x, w, b).relu(), [(11, 13), (9, 13), (9,)]),
    ],
)
def test_taken(function: Any, sizes: list[tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    arguments = [randn(*size) for size in sizes]
    module, _ = chosen(function, *arguments)
    assert libraries(module) == ["onednn"]
    torch.testing.assert_close(irc.run(module, *arguments)[0], function(*arguments))
    rest = pipeline_text("llvm").partition("choose-product-library,")[2]
    PassManager.parse(rest, verify="each").run(module, PassContext(target="llvm"))
    (call,) = [op for op in module.walk() if isinstance(op, host.CallAtenOp)]
    assert call.path == "onednn" and call.callee in ("aten.mm.default", "aten.addmm.default")
    torch.testing.assert_close(irc.run(module, *arguments)[0], function(*arguments))
    executable = irc.build(module)
    assert executable.is_native
    (result,) = executable(*arguments)
    torch.testing.assert_close(result, function(*arguments))
    assert result.stride() == function(*arguments).stride()


@pytest.mark.parametrize(
    ("function", "arguments", "why"),
    [
        (lambda x, w: x @ w, [randn(3, 5), randn(5, 4)], "60 multiplications are few"),
        (lambda x, w: x.t() @ w, [randn(13, 11), randn(13, 9)], "not row-major"),
        (lambda x, w: x @ w[:, ::2], [randn(11, 13), randn(13, 18)], "nor the transposed one"),
        (lambda x, w: torch.addmm(x[:, :9], x, w, alpha=2), [randn(11, 13), randn(13, 9)],
         "no vector"),
        (lambda x, w: x @ w, [randn(11, 13, dtype=torch.float64),
                              randn(13, 9, dtype=torch.float64)], "is not f32"),
    ],
)  # fmt: skip
def test_not_taken(function: Any, arguments: list[torch.Tensor], why: str) -> None:
    module, context = chosen(function, *arguments)
    assert libraries(module) == [None]
    assert any(why in remark.message for remark in context.remarks)


def test_other_processors_keep_torchs_choice() -> None:
    product = (randn(11, 13), randn(13, 9))
    module, _ = chosen(
        torch.mm, *product, pass_="choose-product-library{processor=sapphirerapids least=1}"
    )
    assert libraries(module) == [None]


def test_a_library_needs_code_for_the_operator() -> None:
    module, _ = chosen(torch.mm, randn(11, 13), randn(13, 9))
    (call,) = [op for op in module.walk() if isinstance(op, graph.CallAten)]
    call.attributes["callee"] = irc.ir.attributes.StringAttr("aten.exp.default")
    with pytest.raises(InvalidIR, match=r"onednn has no code of its own for aten\.exp"):
        verify(module)


def test_a_compiled_model_is_right_with_either(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)
    )
    x = randn(3, 64, 256)
    for faster in (True, False):
        monkeypatch.setattr(ChooseProductLibrary, "is_faster", lambda self, f=faster: f)
        torch._dynamo.reset()
        with torch.no_grad(), recording() as made:
            call = torch.compile(model, backend="irc", options={"fx_graph_cache": False})
            torch.testing.assert_close(call(x), model(x))
        assert made[0].executable.metrics["aten_calls"] == 2
