"""Loop-level programs of the gpu tests, and how to run one in every way there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import kernel, loop
from irc.dialects.func import FuncOp, ReturnOp
from irc.interp.core import Frame
from irc.interp.core import run as interpret
from irc.interp.host import fresh
from irc.interp.kernel import launch
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.builder import Builder
from irc.ir.core import Block, Region, Value
from irc.ir.module import ModuleOp
from irc.ir.symbols import Dim
from irc.ir.types import TensorType
from irc.passes.common.bodies import Body, axes_of, make_axes, make_compute
from irc.passes.kernel.gpu.form import form_gpu_kernel, kernel_inputs, kernel_outputs
from irc.passes.kernel.gpu.schedule import changed, default_schedule

Type = T.Type


def reduce(combiner: str, accumulator: Type = T.f32) -> loop.ResultAttr:
    """`reduce(combiner, accumulator)`."""
    return loop.ResultAttr("reduce", combiner, accumulator, None)


def scan(combiner: str, accumulator: Type = T.f32) -> loop.ResultAttr:
    """`scan(combiner, accumulator)`."""
    return loop.ResultAttr("scan", combiner, accumulator, None)


def scatter(combiner: str, indices: Sequence[Dim]) -> loop.ResultAttr:
    """`scatter(combiner, indices)`."""
    return loop.ResultAttr("scatter", combiner, None, A.DimsAttr(indices))


class Program:
    """A function under construction whose body is one compute or group."""

    def __init__(self, *types: TensorType) -> None:
        self.block = Block(types)
        self.args = self.block.arguments
        self.builder = Builder.at_end(self.block)
        self.symbols: dict[str, tuple[int, int]] = {}
        for number, type_ in enumerate(types):
            for dim, size in enumerate(type_.shape):
                if not isinstance(size, int) and str(size) not in self.symbols:
                    self.symbols[str(size)] = (number, dim)
        self._bind()

    def _bind(self) -> None:
        from irc.dialects import sym

        for name, (number, dim) in self.symbols.items():
            self.builder.create(sym.BindSizeOp, self.args[number], dim=dim, symbol=name)

    def compute(
        self,
        extents: Sequence[Dim],
        outputs: Sequence[loop.ResultAttr],
        types: Sequence[TensorType],
        fill: Callable[[Body, tuple[Dim, ...]], Sequence[Value] | tuple[Any, ...]],
        red: Sequence[int] = (),
        kind: str = "red",
        inits: Sequence[Value] = (),
    ) -> loop.ComputeOp:
        """A compute over axes i0, i1, ...; `fill` gives the values (or values, extra, masks)."""
        body = Body()
        yielded = fill(body, axes_of(len(extents)))
        if isinstance(yielded, tuple):
            body.finish(*yielded)
        else:
            body.finish(yielded)
        axes = make_axes(extents, red, kind)
        return make_compute(self.builder, axes, outputs, types, body, inits)

    def group(
        self,
        extents: Sequence[Dim],
        types: Sequence[TensorType],
        fill: Callable[[], Sequence[Value]],
    ) -> loop.GroupOp:
        """A group over the leading axes `extents`, filled through this program."""
        outer, block = self.builder, Block()
        self.builder = Builder.at_end(block)
        yielded = fill()
        segments = A.DenseIntsAttr((len(yielded), 0, 0))
        block.append(loop.YieldOp(yielded, (), {"operandSegmentSizes": segments}))
        self.builder = outer
        return outer.insert(
            loop.GroupOp((), types, {"axes": make_axes(extents)}, (Region([block]),))
        )

    def finish(self, op: Any) -> Program:
        """End the function with the results of `op`."""
        self.op = op
        self.builder.insert(ReturnOp(list(op.results)))
        region = Region([self.block])
        types = [r.type for r in op.results]
        attributes = {
            "sym_name": A.StringAttr("main"),
            "function_type": A.TypeAttr(T.FunctionType([a.type for a in self.args], types)),
        }
        function = FuncOp((), (), attributes, (region,))
        self.module = ModuleOp((), (), {}, (Region([Block()]),))
        self.module.regions[0].blocks[0].append(function)
        return self


class Case:
    """A program with arguments: its kernel, source, expected results, and runs of it."""

    def __init__(
        self, program: Program, args: Sequence[torch.Tensor], **schedule: A.Attribute
    ) -> None:
        self.program = program
        self.args = list(args)
        given = changed(default_schedule(program.op), **schedule)
        self.kernel: kernel.KernelFuncOp = form_gpu_kernel(program.op, given, "k")
        self.source = emit_kernel(self.kernel)
        self.expected = interpret(program.module, *args)
        self.sizes = {n: args[a].shape[d] for n, (a, d) in program.symbols.items()}

    def tensors(self) -> tuple[list[torch.Tensor], int]:
        """The kernel's tensors, outputs fresh; and how many are inputs."""
        position = {a: k for k, a in enumerate(self.program.args)}
        inputs = [self.args[position[v]] for v in kernel_inputs(self.program.op)]
        frame = Frame(None, symbols=dict(self.sizes))
        outputs = [fresh(frame, r.type) for r in kernel_outputs(self.program.op)]
        pairs = self.kernel.attributes.get("initialized")
        values = [] if pairs is None else list(pairs.values)
        for source, target in zip(values[::2], values[1::2], strict=True):
            outputs[target - len(inputs)].copy_(inputs[source])
        return [*inputs, *outputs], len(inputs)

    def interpreted(self) -> list[torch.Tensor]:
        """The results in irc's interpreter, at kernel level."""
        tensors, first = self.tensors()
        launch(Frame(None, symbols=dict(self.sizes)), self.kernel, tensors)
        return tensors[first:]

    def job(self) -> runtime.Job:
        """The launch for Triton's interpreter."""
        return runtime.Job.of(self.kernel, self.source, self.tensors()[0], self.sizes)

    def compiled(self) -> dict[str, Any]:
        """The kernel compiled for sm_90."""
        options = runtime.launch_options(self.kernel)
        return runtime.compile_for(
            self.source, "k", runtime.signature_of(self.kernel), **options
        )


def tensor(*shape: Dim, element: Type = T.f32, strides: Sequence[Dim] | None = None) -> TensorType:
    """A tensor type with strides (row-major by default)."""
    return TensorType(shape, element, strides or T.contiguous_strides(shape))


def close(actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """Assert equality up to a relative tolerance (exact for what is no float)."""
    if not actual.dtype.is_floating_point:
        assert torch.equal(actual, expected)
        return
    torch.testing.assert_close(
        actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True
    )


__all__ = ["Case", "Program", "axes_of", "close", "reduce", "scan", "scatter", "tensor"]
