"""What captures launches into a graph and replays it: CUDA's, behind a small interface.

A graph reads and writes the very memory that its capture named. The tests have a driver of their
own with that property, so that what is built on it is tested without a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from irc.boundary import cuda
from irc.boundary.cuda import Gpu
from irc.ir.gc import gc_paused
from irc.runtime import graphs_fills

Run = Callable[[Sequence[Any]], Sequence[Any]]


class CapturedGraph(Protocol):
    """Launches that were captured. One with a `handle`, as the driver names it, may be launched
    by that."""

    def replay(self) -> None:
        """Enqueue them on the current stream."""


class GraphDriver(Protocol):
    """Captures on one device. `device`: its name, as layouts have it; `native`: how native code
    reaches it, None where it can't."""

    device: str
    native: Gpu | None

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
_THIS_THREAD = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may do what they like
_FREE_ON_LAUNCH = 1  # CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, as torch has it


@functools.cache
def _library() -> Any:
    """CUDA's driver; calls release the interpreter lock."""
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the driver. Raises RuntimeError with its own words."""
    library = _library()
    code = getattr(library, name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        library.cuGetErrorString(code, ctypes.byref(text))
        words = text.value.decode() if text.value else f"error {code}"
        raise RuntimeError(f"{name}: {words}")


class DriverGraph:
    """A graph of the driver. torch's own takes the state of torch's generator to itself while it
    captures, and no other thread may draw a random number then; this one knows of no generator."""

    def __init__(self, gpu: int, pool: Any) -> None:
        self._gpu, self._pool = gpu, pool
        self._graph = ctypes.c_void_p()
        self._ready = ctypes.c_void_p()
        self._in_pool = False

    def capture_begin(self, stream: int) -> None:
        """What this thread launches on the stream is captured, what it allocates is the pool's."""
        torch._C._cuda_beginAllocateCurrentThreadToPool(self._gpu, self._pool)
        self._in_pool = True
        try:
            _call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), _THIS_THREAD)
        except BaseException:
            torch._C._cuda_endAllocateToPool(self._gpu, self._pool)
            raise

    def capture_end(self, stream: int) -> None:
        """The capture is over; RuntimeError where an error spoilt it."""
        try:
            _call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(self._graph))
        finally:
            torch._C._cuda_endAllocateToPool(self._gpu, self._pool)

    def instantiate(self) -> None:
        """Get ready for replays."""
        gpu = cuda.installed()
        fill = None if gpu is None else graphs_fills.kernel_of(gpu, self._gpu)
        if fill is not None:
            with contextlib.suppress(graphs_fills.GraphRefused):  # the graph is as it was
                graphs_fills.fill_by_kernels(_library(), self._graph.value or 0, fill)
        _call("cuGraphInstantiateWithFlags", ctypes.byref(self._ready), self._graph,
              ctypes.c_uint64(_FREE_ON_LAUNCH))  # fmt: skip
        _call("cuGraphDestroy", self._graph)
        self._graph = ctypes.c_void_p()

    @property
    def handle(self) -> int | None:
        """What `cuGraphLaunch` takes."""
        return self._ready.value

    def replay(self) -> None:
        """Enqueue what was captured."""
        stream = torch._C._cuda_getCurrentRawStream(self._gpu)
        code = _library().cuGraphLaunch(self._ready, ctypes.c_void_p(stream))
        if code:
            raise RuntimeError(f"cuGraphLaunch: error {code} of CUDA's driver")

    def __del__(self) -> None:
        for name, held in (("cuGraphExecDestroy", self._ready), ("cuGraphDestroy", self._graph)):
            if held.value:
                getattr(_library(), name)(held)
        if self._in_pool:
            torch._C._cuda_releasePool(self._gpu, self._pool)


class CudaDriver:
    """CUDA graphs through torch, on the GPU of this number."""

    def __init__(self, gpu: int) -> None:
        self.gpu, self.device = gpu, f"cuda:{gpu}"
        self.native = cuda.installed()
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
        with _capturing, gc_paused, _own_workspaces():
            side.wait_stream(here)
            with torch.cuda.stream(side):
                if random:
                    captured = self._with_generator(run, tensors, pool)
                else:
                    captured = self._without_generator(run, tensors, pool, side.cuda_stream)
            here.wait_stream(side)
        return captured

    def _without_generator(
        self, run: Run, tensors: Sequence[Any], pool: Any, stream: int
    ) -> tuple[CapturedGraph, Sequence[Any]]:
        graph = DriverGraph(self.gpu, pool)
        graph.capture_begin(stream)
        try:
            results = run(tensors)
        except BaseException:
            with contextlib.suppress(RuntimeError):  # what spoilt the capture is told already
                graph.capture_end(stream)
            raise
        graph.capture_end(stream)
        graph.instantiate()
        return graph, results

    def _with_generator(
        self, run: Run, tensors: Sequence[Any], pool: Any
    ) -> tuple[CapturedGraph, Sequence[Any]]:
        graph = torch.cuda.CUDAGraph()
        try:
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        except BaseException:
            self._forget(graph, pool)
            raise
        try:
            results = run(tensors)
        except BaseException:
            self._abandon(graph, pool)
            raise
        try:
            graph.capture_end()
        except BaseException:
            self._forget(graph, pool)
            raise
        return graph, results

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
