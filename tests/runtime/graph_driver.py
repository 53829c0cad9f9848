"""A driver of graphs for tests on a CPU: what a replay overwrites can be seen.

A capture runs the function once, puts back all that it changed, and keeps the results' memory. A
replay runs the function again on the tensors of the capture, and its results go into that memory,
whoever looks at it. Memory of a pool may be shared by what is captured earlier and later in it, so
a replay also spoils the results of the graphs that were captured into its pool after it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

Run = Callable[[Sequence[Any]], Sequence[Any]]
SPOILED = 0x7F


def at_address(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory by its address: as a graph, it keeps nothing alive."""
    storage = tensor.untyped_storage()
    memory = torch._C._construct_storage_from_data_pointer(
        storage.data_ptr(), tensor.device, storage.nbytes()
    )
    place = tensor.storage_offset(), tensor.shape, tensor.stride()
    return torch.empty(0, dtype=tensor.dtype).set_(memory, *place)


class Recorded:
    """A graph: a function, the tensors that it reads, and the memory that it writes."""

    def __init__(self, driver: RecordingDriver, run: Run, tensors: Sequence[Any], pool: Any):
        self.driver, self.run, self.pool = driver, run, pool
        self.tensors = [at_address(t) if isinstance(t, torch.Tensor) else t for t in tensors]
        self.number = next(driver.numbers)
        self.made: list[Any] = []
        self.replays = 0
        self.handle: int | None = self.number + 1

    def replay(self) -> None:
        self.replays += 1
        self.driver.replays += 1
        for other in self.driver.graphs:
            if other.pool == self.pool and other.number > self.number:
                other.spoil()
        found = self.run(self.tensors)
        for own, new in zip(self.made, found, strict=True):
            if isinstance(own, torch.Tensor):
                own.data.copy_(new)

    def spoil(self) -> None:
        """Somebody else's temporary values are where the results were that this graph made."""
        read = {t.untyped_storage().data_ptr() for t in self.tensors if isinstance(t, torch.Tensor)}
        for own in self.made:
            if isinstance(own, torch.Tensor) and own.untyped_storage().data_ptr() not in read:
                whole = torch.empty(0, dtype=torch.uint8).set_(own.untyped_storage())
                whole.fill_(SPOILED)


class RecordingDriver:
    """Captures by recording; `stream_number` is the current stream, `fails` may raise an error
    inside a capture."""

    device = "cpu"
    native: Any = None

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.pools = itertools.count()
        self.graphs: list[Recorded] = []
        self.replays = self.captures = 0
        self.stream_number = 0
        self.capturing = False
        self.inside = False
        self.fails: Callable[[], None] = lambda: None

    def stream(self) -> int:
        return self.stream_number

    def is_capturing(self) -> bool:
        return self.capturing

    def new_pool(self) -> Any:
        return next(self.pools)

    def entered(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def is_here(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == "cpu"

    def capture(
        self, run: Run, tensors: Sequence[Any], pool: Any, random: bool = True
    ) -> tuple[Recorded, list[Any]]:
        assert not self.inside
        graph = Recorded(self, run, tensors, pool)
        given = [t for t in graph.tensors if isinstance(t, torch.Tensor)]
        contents, random = [t.clone() for t in given], torch.get_rng_state()
        self.captures += 1
        self.inside = True
        try:
            self.fails()
            made = list(run(graph.tensors))
        finally:
            self.inside = False
            torch.set_rng_state(random)
            for tensor, content in zip(given, contents, strict=True):
                if not torch.equal(tensor, content):
                    tensor.copy_(content)
        graph.made = made
        graph.spoil()
        self.graphs.append(graph)
        return graph, made
