"""Convolutions of a native program of a GPU as calls of the function below torch's operators.

    convolutions = gpu_convolutions(program)         # by the `id` of their steps
    code = emit_gpu_convolution(emitter, convolutions[id(step)], handle)   # 0: it is launched

Those are meant that write to memory of the program (`aten.convolution.out`), which `bufferize`
makes of convolutions of channels-last images of 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from irc.analysis.calls import CONVOLUTION_OUT
from irc.boundary.cuda_convolutions import Convolution
from irc.codegen.host.base import Value
from irc.codegen.host.emitter import HostEmitter
from irc.program import host_program as P
from irc.program.devices import device_number


@attrs.frozen
class GpuConvolution:
    """A convolution with the registers of its image, its weight and its result."""

    which: Convolution
    image: int
    weight: int
    out: int


def gpu_convolutions(program: P.HostProgram) -> dict[int, GpuConvolution]:
    """The steps of a program that are such convolutions."""
    calls = (step for step in program.steps if isinstance(step, P.CallOperator))
    convolutions = ((id(step), _convolution(step, program)) for step in calls)
    return {key: each for key, each in convolutions if each is not None}


def _convolution(step: P.CallOperator, program: P.HostProgram) -> GpuConvolution | None:
    if step.callee != CONVOLUTION_OUT or step.path is not None:
        return None
    arguments = dict(step.arguments)
    image, weight, out = (arguments[name].index for name in ("input", "weight", "out"))
    layouts = [program.layouts[register] for register in (image, weight, out)]
    sizes = [tuple(n for n in layout.sizes if isinstance(n, int)) for layout in layouts]
    numbers = (*arguments["padding"], *arguments["stride"], *arguments["dilation"])
    if not layouts[0].device.startswith("cuda") or len(numbers) != 6:
        return None
    if any(len(each) != 4 for each in sizes) or arguments.get("bias") is not None:
        return None
    which = Convolution(
        layouts[0].dtype, device_number(layouts[0].device), sizes[0], sizes[1],
        (*numbers, arguments["groups"]),
    )  # fmt: skip
    return GpuConvolution(which, image, weight, out)


def emit_gpu_convolution(
    emitter: HostEmitter, convolution: GpuConvolution, handle: Callable[[int], Value]
) -> Value:
    """Emit the convolution; `handle` gives that of a register."""
    words = emitter.memory_of(("gpu-library", "convolution", *attrs.astuple(convolution.which)))
    registers = (convolution.image, convolution.weight, convolution.out)
    operands = [words, *map(handle, registers)]
    return emitter.builder.call(emitter.support("irc_gpu_convolution"), operands)


__all__ = ["GpuConvolution", "emit_gpu_convolution", "gpu_convolutions"]
