"""What captures launches into a graph and replays it: CUDA's, behind a small interface.

A graph reads and writes the very memory that its capture named. The tests have a driver of their
own with that property, so that what is built on it is tested without a GPU.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from irc.ir.gc import gc_paused

Run = Callable[[Sequence[Any]], Sequence[Any]]


class CapturedGraph(Protocol):
    """Launches that were captured."""

    def replay(self) -> None:
        """Enqueue them on the current stream."""


class GraphDriver(Protocol):
    """Captures on one device. `device`: its name, as layouts have it."""

    device: str

    def stream(self) -> int:
        """A number for the current stream of the device."""

    def is_capturing(self) -> bool:
        """Whether the current stream is being captured by somebody."""

    def new_pool(self) -> Any:
        """A new pool of memory, to capture into."""

    def capture(
        self, run: Run, tensors: Sequence[Any], pool: Any, random: bool = True
    ) -> tuple[CapturedGraph, Sequence[Any]]:
        """The launches of `run(tensors)`, not run, and its results, whose memory is the pool's.
        `random`: it draws from torch's generator.

        Whatever `run` raises is raised again, and so is an error of the capture itself; nothing of
        the capture is left then.
        """

    def entered(self) -> contextlib.AbstractContextManager[Any]:
        """The device as the current one."""

    def is_here(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is on the device."""


# One capture at a time: torch keeps what is being captured for the whole process.
_capturing = threading.Lock()


class CudaDriver:
    """CUDA graphs through torch, on the GPU of this number."""

    def __init__(self, gpu: int) -> None:
        self.gpu, self.device = gpu, f"cuda:{gpu}"
        self._sides: dict[int, Any] = {}

    def stream(self) -> int:
        """The current stream's handle."""
        return torch._C._cuda_getCurrentRawStream(self.gpu)

    def is_capturing(self) -> bool:
        """Whether a capture of somebody else's is under way here."""
        return torch._C._cuda_isCurrentStreamCapturing()

    def new_pool(self) -> Any:
        """A handle that no graph has."""
        return torch.cuda.graph_pool_handle()

    def entered(self) -> contextlib.AbstractContextManager[Any]:
        """The GPU as the current one."""
        if torch.cuda.current_device() == self.gpu:
            return contextlib.nullcontext()
        return torch.cuda.device(self.gpu)

    def is_here(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is on the GPU."""
        return tensor.get_device() == self.gpu

    def capture(
        self, run: Run, tensors: Sequence[Any], pool: Any, random: bool = True
    ) -> tuple[CapturedGraph, Sequence[Any]]:
        """Capture on a stream of its own, one for each stream that programs are called on."""
        here = torch.cuda.current_stream(self.gpu)
        side = self._sides.get(here.cuda_stream)
        if side is None:
            side = self._sides[here.cuda_stream] = torch.cuda.Stream(self.gpu)
        graph = torch.cuda.CUDAGraph()
        with _capturing, gc_paused, _own_workspaces():
            side.wait_stream(here)
            with torch.cuda.stream(side):
                made = self._captured(graph, run, tensors, pool, random)
            here.wait_stream(side)
        return graph, made

    def _captured(
        self, graph: Any, run: Run, tensors: Sequence[Any], pool: Any, random: bool
    ) -> Sequence[Any]:
        try:
            self._begin(graph, pool, random)
        except BaseException:
            self._forget(graph, pool)
            raise
        try:
            made = run(tensors)
        except BaseException:
            self._abandon(graph, pool)
            raise
        try:
            graph.capture_end()
        except BaseException:
            self._forget(graph, pool)
            raise
        return made

    def _begin(self, graph: Any, pool: Any, random: bool) -> None:
        """Begin the capture. A graph takes the generator's state to itself while it is captured,
        and no thread may draw a number then: one that draws none is given another state."""
        generator = torch.cuda.default_generators[self.gpu]
        if random:
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            return
        own = generator.graphsafe_get_state()
        generator.graphsafe_set_state(generator.clone_state())
        try:
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        finally:
            generator.graphsafe_set_state(own)

    def _abandon(self, graph: Any, pool: Any) -> None:
        """End a capture whose launches nobody wants."""
        try:
            graph.capture_end()
        except RuntimeError:  # CUDA calls an invalidated capture an error at its end
            self._forget(graph, pool)
        else:
            graph.reset()

    def _forget(self, graph: Any, pool: Any) -> None:
        """Tell torch's allocator and its generator that a failed capture is over."""
        with contextlib.suppress(RuntimeError):  # it knows already
            torch._C._cuda_endAllocateToPool(self.gpu, pool)
        with contextlib.suppress(RuntimeError):  # there is nothing to free
            graph.reset()
        # The generator of a capture that failed still counts for the graph; an end of an empty
        # capture brings it back.
        empty = torch.cuda.CUDAGraph()
        empty.capture_begin(capture_error_mode="thread_local")
        empty.capture_end()
        empty.reset()


@contextlib.contextmanager
def _own_workspaces() -> Any:
    """cuBLAS's workspaces made inside belong to what is captured, and to nothing else: two graphs
    on two streams would otherwise compute in one."""
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)
    clear()
    try:
        yield
    finally:
        clear()
