"""Programs of models and of op samples through the whole pipeline, their passes checked."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from irc import pipeline
from irc.frontend.backend import recording
from irc.ir.passes import PassManager
from irc.validation.semantics import SemanticsCheck
from tests.conformance import cases
from tests.models.zoo import SMALL, ZOO

# A few of each kind: pointwise, reductions, scans, views, indices, updates, padding, random.
ENTRIES = (
    "softmax", "nn.functional.layer_norm", "var", "cumsum", "as_strided", "index_select",
    "index_put", "masked_fill", "nn.functional.pad@circular", "nn.functional.dropout", "tan",
    "remainder", "argmax", "tril",
)  # fmt: skip


def compiled_modules(function, *arguments, dynamic=False, **keywords):
    """The aten-level modules that torch.compile makes of a call."""
    torch._dynamo.reset()
    with recording() as made, torch.no_grad():
        torch.compile(function, backend="irc", dynamic=dynamic)(*arguments, **keywords)
    torch._dynamo.reset()
    return [part.imported.module for part in made]


def check(module, selection="changed", seed=0) -> SemanticsCheck:
    """Lower a module with its passes checked; fail if one could not be."""
    manager = PassManager.parse(pipeline.pipeline_text("llvm"))
    hook = SemanticsCheck(selection, total=manager.count(), seed=seed)
    manager.instrumentations.append(hook)
    manager.run(module)
    assert not hook.skipped, hook.report
    return hook


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_first_samples_of_an_op(entry):
    op = cases.entries()[entry]
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        sample = next(iter(op.sample_inputs("cpu", dtype)))
        arguments = (sample.input, *sample.args)
        for module in compiled_modules(op.op, *arguments, dynamic=True, **sample.kwargs):
            check(module)


def test_two_layers_of_linear_and_norm_with_symbolic_sizes():
    torch.manual_seed(0)
    block = [nn.Linear(9, 9), nn.GELU(), nn.LayerNorm(9)]
    model = nn.Sequential(*block, nn.Linear(9, 9), nn.GELU(), nn.LayerNorm(9))
    (module,) = compiled_modules(model, torch.randn(4, 6, 9), dynamic=True)
    assert check(module).checked >= 8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "resnet"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_models_with_two_layers(name, dynamic):
    entry = ZOO[name]
    for module in compiled_modules(
        entry.make_model(), *entry.make_inputs(entry.sizes[0]), dynamic=dynamic
    ):
        check(module)


def test_a_sample_of_a_model():
    entry = SMALL["bert"]
    for module in compiled_modules(entry.make_model(), *entry.make_inputs(entry.sizes[0])):
        check(module, "sample:3", seed=1)
