"""Training steps compiled for a GPU's record without a GPU: what torch.compile gives is lowered for
it to the layout level, and that runs in the interpreter."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import attrs
import torch
from torch import nn

import irc
import irc.interp
from irc.dialects import layout
from irc.frontend.backend import built_by
from irc.frontend.importing.importer import Imported
from irc.ir import attributes as A
from irc.ir.passes import PassContext, PassManager
from irc.ir.strides import channels_last_strides
from irc.options.options import Options
from irc.pipeline import stages
from irc.target import Target

GPU = Target.named("sm_90")
#: A GPU whose library computes f32 with channels innermost, so that values can be compared.
F32 = attrs.evolve(
    GPU,
    processor=attrs.evolve(GPU.processor, channels_last=("f32",)),
    tf32_convolutions=False,
)


@attrs.define
class Lowered:
    """A program of the layout level, and what its passes said."""

    module: Any
    context: PassContext

    @property
    def function(self) -> Any:
        """The program."""
        return self.module.lookup("main")

    @property
    def copies(self) -> list[Any]:
        """The copies of images and weights that are left."""
        found = (op for op in self.function.block.ops if isinstance(op, layout.CopyOp))
        return [op for op in found if op.source.type.rank in (4, 5)]

    @property
    def calls(self) -> list[Any]:
        """The convolutions and their backwards."""
        return [
            op for op in self.function.block.ops
            if getattr(op, "callee", "").startswith("aten.convolution")
        ]  # fmt: skip

    @property
    def images_last(self) -> list[bool]:
        """For each convolution, whether its image has the channels innermost."""
        images = [op.operands[op.arguments.as_dict()["input"].index].type for op in self.calls]
        return [kind.strides == channels_last_strides(kind.shape) for kind in images]

    def told(self, name: str) -> Any:
        """A figure of the verdict."""
        verdict: Any = self.function.attributes["channels_last"]
        return verdict.get(name).value if name != "wanted" else verdict.get(name) is A.TRUE


class Recorder:
    """Builds programs for a target: lowers them and interprets what comes out."""

    def __init__(self, target: Target, last: str = "graph-to-layout") -> None:
        self.target, self.last = target, last
        self.made: list[Lowered] = []

    def __call__(self, imported: Imported, options: Options, target: Target) -> Any:
        context = PassContext(target=self.target)
        texts = stages(self.target, options)
        names = [name for name in texts if name != "functional"]
        for name in names[: names.index(self.last) + 1]:
            PassManager.parse(texts[name], verify="end").run(imported.module, context)
        self.made.append(Lowered(imported.module, context))
        (*_, function) = [op for op in imported.module.ops if op.sym_name == "main"]
        infos = [SimpleNamespace(strides=info.get("strides")) for info in function.result_info]
        for info in infos:
            info.strides = None if info.strides is None else tuple(info.strides)

        def executable(*given: Any) -> list[Any]:
            return irc.interp.run(imported.module, *given)

        executable.info = SimpleNamespace(results=infos)  # type: ignore[attr-defined]
        return executable


def step(call: Callable[..., Any], model: nn.Module, inputs: Sequence[torch.Tensor]) -> list[Any]:
    """Outputs, the gradients of inputs and of parameters, and the buffers of one step."""
    given = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
    model.zero_grad(set_to_none=True)
    made = call(*given)
    outputs = list(made) if isinstance(made, tuple) else [made]
    sum(o.square().mean() for o in outputs if o.requires_grad).backward()
    gradients = [t.grad for t in (*given, *model.parameters())]
    return [*outputs, *gradients, *(b.clone() for b in model.buffers())]


def trained(
    model: nn.Module,
    *inputs: torch.Tensor,
    target: Target = F32,
    check: bool = True,
    dynamic: bool = False,
    last: str = "graph-to-layout",
    **options: Any,
) -> list[Lowered]:
    """The programs of a training step, forward and backward, whose results, gradients and buffers
    have the values of eager in double (within 1e-4 of the largest), and its strides. `last`: the
    stage to which they are lowered."""
    torch._dynamo.reset()
    recorder, eager = Recorder(target, last), copy.deepcopy(model)
    double = copy.deepcopy(model).double()
    with built_by(recorder):
        call = torch.compile(model, backend="irc", dynamic=dynamic, options=options or None)
        got = step(call, model, inputs)
    if not check:
        return recorder.made
    wanted = step(double, double, [t.double() if t.is_floating_point() else t for t in inputs])
    for a, b, like in zip(got, wanted, step(eager, eager, inputs), strict=True):
        if like is None:
            assert a is None
            continue
        assert a.stride() == like.stride() and a.dtype == like.dtype, (a.stride(), like.stride())
        error = (a.double() - b).detach().abs().max() if a.numel() else 0.0
        assert error <= 1e-4 * max(1.0, float(b.detach().abs().max())), float(error)
    return recorder.made
