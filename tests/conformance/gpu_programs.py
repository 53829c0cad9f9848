"""Programs for a GPU without one: lowered at full size from fake tensors, and run at a small size
with their kernels in Triton's interpreter."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import attrs
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel, safe_name
from irc.dialects import kernel
from irc.frontend import backend
from irc.frontend.fx.joined_saves import NOTHING
from irc.frontend.fx.saved_activations import report_strides, saved_outputs, take_strides
from irc.frontend.importing.importer import import_graph
from irc.ir.passes import Instrumentation, PassContext, PassManager
from irc.options.options import Options
from irc.pipeline import pipeline_text
from irc.program.gpu_kernels import GpuKernels
from irc.runtime import triton_kernels


@attrs.define
class Program:
    """A graph of a model, lowered for a GPU: "forward", "backward" or "inference".

    `layouts`: the module on the layout level; `module`: the host program with its kernels.
    """

    stage: str
    layouts: Any
    module: Any
    context: PassContext

    @property
    def kernels(self) -> list[kernel.KernelFuncOp]:
        """The kernels, in order."""
        return [op for op in self.module.walk() if isinstance(op, kernel.KernelFuncOp)]

    def sources(self) -> dict[str, str]:
        """Triton's source of each kernel by its name."""
        return {k.sym_name: emit_kernel(k) for k in self.kernels}

    def compile_for_sm_90(self) -> None:
        """Compile every kernel; raises what Triton raises."""
        for func in self.kernels:
            options = runtime.launch_options(func)
            made = runtime.compile_for(
                emit_kernel(func), func.sym_name, runtime.signature_of(func), **options
            )
            assert made["cubin"]


class _KeepLayouts(Instrumentation):
    """Keeps a copy of the module as it is when the layouts are decided."""

    layouts: Any = None

    def after_pass(self, pass_: Any, op: Any, context: PassContext) -> None:
        if pass_.name == "insert-layout-copies":
            while op.parent_op is not None:
                op = op.parent_op
            self.layouts = op.clone()


def lowered(
    run: Callable[[Callable[..., Any]], None], options: dict[str, Any] | None = None
) -> list[Program]:
    """The programs that torch.compile makes of what `run` does under fake tensors.

    `run` gets a function that compiles (torch.compile with irc for target triton); nothing is
    computed and no memory of the tensors' sizes is taken.
    """
    found: list[Program] = []

    def compile_fx(
        module: Any, inputs: Any, chosen: Options, stage: str, *_: Any
    ) -> Callable[..., Any]:
        saved = saved_outputs(module) if stage == "forward" else frozenset()
        if stage == "backward":
            take_strides(module, inputs)
        graph = import_graph(module, caller_derives_views=True, saved=saved)
        imported = graph.module
        keep = _KeepLayouts()
        text = pipeline_text("triton", chosen)
        context = PassContext(target="triton", options=chosen)
        PassManager.parse(text, instrumentations=[keep]).run(imported, context)
        found.append(Program(stage, keep.layouts, imported, context))
        strides: list[Any] = []
        if saved:
            (main,) = [op for op in imported.ops if op.name == "host.func"]
            kinds = main.function_type.results
            strides = [getattr(kinds[o], "strides", None) if isinstance(o, int) else None
                       for o in graph.outputs]  # fmt: skip
            report_strides(module.graph.output_node().args[0], strides, saved)

        def boxed(arguments: list[Any]) -> Any:
            given = list(arguments)
            arguments.clear()
            results = list(module(*given))
            for number in saved:
                value, made = results[number], strides[number]
                if isinstance(value, torch.Tensor) and made is not None:
                    results[number] = torch.empty_strided(
                        value.shape, made, dtype=value.dtype, device=value.device
                    )
            return results

        boxed._boxed_call = True  # type: ignore[attr-defined]
        return boxed

    asked = {"target": "triton", **(options or {})}
    torch._dynamo.reset()
    # `module` is run as it is
    apart = mock.patch.object(backend, "joined_limits", lambda *_: NOTHING)
    with apart, mock.patch.object(backend, "compile_fx", compile_fx), FakeTensorMode():
        run(lambda f: torch.compile(f, backend="irc", fullgraph=True, options=asked))
    return found


@functools.cache
def worker() -> concurrent.futures.ProcessPoolExecutor:
    """A process with Triton's interpreter, which lives as long as this one."""
    with mock.patch.dict("os.environ", {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}):
        context = multiprocessing.get_context("spawn")
        pool = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
        pool.submit(int).result()  # started while the environment says so
    return pool


def _run(source: str, name: str, grid: int, packed: list[Any], scalars: list[int]) -> list[Any]:
    """Run one kernel; its tensors afterwards, packed."""
    tensors = [runtime._unpacked(*p) for p in packed]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(runtime.load(source), name)[(grid,)](*tensors, *scalars)
    return [runtime._packed(t) for t in tensors]


class InterpretedKernels:
    """A kernel table whose kernels run in Triton's CPU interpreter, in a process of its own."""

    def __init__(self, kernels: GpuKernels) -> None:
        self.source, self.kernels = kernels.source, kernels.kernels

    def launch(
        self, name: str, tensors: Sequence[torch.Tensor], symbols: Sequence[int], grid: int
    ) -> None:
        """Run the kernel on copies, and write its outputs back."""
        if not grid:
            return
        packed = [runtime._packed(t) for t in tensors]
        made = worker().submit(_run, self.source, safe_name(name), grid, packed, list(symbols))
        after = made.result(timeout=300)
        for position in self.kernels[name].outputs:
            tensors[position].copy_(runtime._unpacked(*after[position]))


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
    """Programs that are compiled inside for target triton run on the CPU, their kernels in
    Triton's interpreter."""
    with mock.patch.object(triton_kernels, "TritonKernels", InterpretedKernels):
        yield
