"""What the tests of the passes on frozen programs share."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import irc
from irc.dialects import graph
from irc.interp.core import run
from irc.ir import attributes as A
from irc.ir.contents import content_attribute
from irc.ir.module import ModuleOp
from irc.ir.passes import PassContext, PassManager
from irc.passes.frozen.freeze import known_values

GRAPH = "functional,convert-aten-to-graph,canonicalize,cse"


def known_program(model: nn.Module, *args: torch.Tensor, dynamic: bool = False) -> ModuleOp:
    """The aten-level program of a model, the elements of whose tensors are told in `arg_info`."""
    module = irc.trace(model, args, dynamic=dynamic)
    function: Any = module.lookup("main")
    tensors = [*model.parameters(), *model.buffers()]
    entries = list(function.arg_info)
    for position, tensor in enumerate(tensors):
        kind = function.block.arguments[position].type
        value = content_attribute(tensor.detach(), module.resources, kind)
        entries[position] = A.DictAttr({**entries[position].as_dict(), "value": value})
    function.attributes["arg_info"] = A.ArrayAttr(entries)
    assert len(known_values(function)) == len(tensors)
    return module


def frozen_program(
    model: nn.Module, *args: torch.Tensor, passes: str = "", dynamic: bool = False
) -> tuple[ModuleOp, PassContext]:
    """The graph-level program with the model's tensors as constants, after `passes`."""
    module = known_program(model, *args, dynamic=dynamic)
    context = PassContext()
    text = GRAPH.replace("functional,", "functional,freeze,")
    manager = PassManager.parse(text + (f",{passes}" if passes else ""), verify="each")
    manager.run(module, context)
    return module, context


def check(model: nn.Module, *args: torch.Tensor, passes: str, tolerance: float = 1e-5) -> Any:
    """`frozen_program`, after comparing its values with the model's."""
    module, context = frozen_program(model, *args, passes=passes)
    with torch.no_grad():
        expected = model(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for got, wanted in zip(run(module, *args), expected, strict=True):
        torch.testing.assert_close(got, wanted, atol=tolerance, rtol=tolerance)
    return module, context


def calls(module: ModuleOp, name: str = "") -> list[graph.CallAten]:
    """The calls of operators whose names hold `name`."""
    found = [op for op in module.walk() if isinstance(op, graph.CallAten)]
    return [op for op in found if name in op.callee]


def of_class(module: ModuleOp, *classes: type) -> list[Any]:
    """All operations of these classes."""
    return [op for op in module.walk() if isinstance(op, classes)]


def norm_with_statistics(norm: Any) -> Any:
    """A batch norm in eval mode whose tensors are all random."""
    for tensor in (norm.weight, norm.running_var):
        tensor.data.uniform_(0.5, 1.5)
    for tensor in (norm.bias, norm.running_mean):
        tensor.data.normal_()
    return norm.eval()
