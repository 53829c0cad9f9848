"""Device time of calls on a GPU: recorded in a CUDA graph and replayed, so that what Python takes
to launch counts for nobody."""

from __future__ import annotations

from collections.abc import Callable

import torch

FLUSH_BYTES = 1 << 28


def recorded(call: Callable[[], object], calls: int) -> torch.cuda.CUDAGraph:
    """`calls` calls as one CUDA graph, after some that warm up."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # Autograd's nodes remember the stream that they were made on.
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            call()
    return graph


def replayed(graph: torch.cuda.CUDAGraph, calls: int, flush: torch.Tensor | None = None) -> float:
    """Microseconds a call of one replay; `flush`: an array that is written before, larger than
    the cache, so that the first call finds nothing there."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if flush is not None:
        flush.zero_()
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1000 / calls
