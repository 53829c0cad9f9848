"""One captured call of a program: its graphs, the memory that they read, and what they gave.

`Capture` makes an `Instance` of a call, piece by piece, and gives the call's own results: each
piece is captured and replayed at once, or run as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import torch

from irc.program import host_program as P
from irc.runtime import late_checks
from irc.runtime.graphs_cuts import GIVES_BACK, Cut, GraphPiece
from irc.runtime.graphs_driver import CapturedGraph, GraphDriver
from irc.runtime.graphs_memory import (
    Addresses,
    Results,
    buffer_for,
    copy_all,
    storage_address,
)
from irc.runtime.python_host import PythonHost


class PieceHost(PythonHost):
    """Runs a piece in Python, and knows the step at which it stopped."""

    at = 0

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self._plan = [(self._noted(n, ready), dead) for n, (ready, dead) in enumerate(self._plan)]

    def _noted(self, number: int, ready: Callable[[Any], None]) -> Callable[[Any], None]:
        def run_step(run: Any) -> None:
            self.at = number
            ready(run)

        return run_step

    def steps(self, symbols: Mapping[str, int], arguments: Sequence[Any]) -> list[Any]:
        """The results of the piece, with the values of the symbols that it finds behind them."""
        contents = self._run(symbols, arguments)
        self.at = len(self._plan)
        return contents


class WholeHost:
    """Runs a program that is one piece through its native form: no step is known to it."""

    def __init__(self, program: P.HostProgram, piece: GraphPiece, call: Callable[..., Any]) -> None:
        places = {o.register: i for i, o in enumerate(program.outputs)}
        self._call, self._results = call, [places[r] for r in piece.gives]
        self.at = len(piece.numbers)

    def steps(self, symbols: Mapping[str, int], arguments: Sequence[Any]) -> list[Any]:
        """The results of the piece, whose arguments are the program's."""
        contents = self._call(*arguments)
        return [contents[i] for i in self._results]


AnyHost = PieceHost | WholeHost


@attrs.frozen
class GraphParts:
    """A program's pieces with what runs them, in order."""

    cut: Cut
    hosts: tuple[AnyHost, ...]

    @staticmethod
    def whole(program: P.HostProgram, cut: Cut, call: Callable[..., Any]) -> GraphParts | None:
        """A program of one captured piece as its native form `call` runs it; None for another."""
        if len(cut.pieces) != 1 or not cut.pieces[0].captured:
            return None
        (piece,) = cut.pieces
        piece = attrs.evolve(piece, takes=tuple(a.register for a in program.arguments))
        host = WholeHost(program, piece, call)
        return GraphParts(attrs.evolve(cut, pieces=(piece,)), (host,))


def run_piece(
    piece: GraphPiece, host: AnyHost, symbols: dict[str, int], values: dict[int, Any]
) -> None:
    """Run a piece as it is: from `values` by register, into these and `symbols`."""
    contents = host.steps(symbols, [values[r] for r in piece.takes])
    values.update(zip(piece.gives, contents, strict=False))
    symbols.update(zip(piece.symbols, contents[len(piece.gives) :], strict=True))


@attrs.define
class Feed:
    """What an uncaptured piece makes and a captured one reads, in the graph's memory."""

    register: int
    memory: torch.Tensor


@attrs.define
class InstancePart:
    """A piece of an instance: `graph` replays it, else `host` runs it; `feeds` are copied first."""

    piece: GraphPiece
    host: AnyHost
    graph: CapturedGraph | None = None
    feeds: list[Feed] = attrs.field(factory=list)


@attrs.define(eq=False)
class Instance:
    """A captured call, for arguments of one kind.

    `in_place`: arguments that the graphs read where they are; `buffered`: positions of those that
    are copied into `buffers` first. `own`: what graphs made, by register.
    """

    program: P.HostProgram
    stream: int
    symbols: Mapping[str, int]
    parts: list[InstancePart]
    pool: Any
    in_place: Addresses
    buffered: list[int]
    buffers: list[torch.Tensor]
    written: frozenset[int]
    #: Storages of arguments that are written, where others are copied.
    written_storages: frozenset[int]
    own: dict[int, Any]
    results: Results
    #: Results that are the caller's own arguments, by position, and what else no graph makes.
    returned: list[tuple[int, int]]
    others: list[tuple[int, int]]
    #: Results that are the same in every call of the kind: numbers that sizes give.
    constant: list[tuple[int, Any]]
    bumped: list[int]
    single: CapturedGraph | None = None
    #: Whether native code may replay it, as far as is known.
    fits_native: bool = True

    def is_for(self, arguments: list[Any]) -> bool:
        """Whether what it reads in place is where it was; the kinds are known to be right."""
        if not self.in_place.hold(arguments):
            return False
        if not self.written_storages:
            return True
        return all(storage_address(arguments[i]) not in self.written_storages
                   for i in self.buffered)  # fmt: skip

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """Replay with these arguments; gives the program's results."""
        copy_all(self.buffers, [arguments[i] for i in self.buffered])
        values: dict[int, Any] = {}
        if self.single is not None:
            self.single.replay()
        else:
            values.update(self.own)
            values.update(zip((a.register for a in self.program.arguments), arguments, strict=True))
            self._run_parts(values)
        return self.finish(arguments, values)

    def _run_parts(self, values: dict[int, Any]) -> None:
        symbols = dict(self.symbols)
        for part in self.parts:
            if part.graph is None:
                run_piece(part.piece, part.host, symbols, values)
                continue
            for feed in part.feeds:
                feed.memory.copy_(values[feed.register])
            part.graph.replay()

    def finish(self, arguments: Sequence[Any], values: Mapping[int, Any]) -> list[Any]:
        """The results, once everything is enqueued. `values`: what no graph made."""
        results: list[Any] = [None] * len(self.program.outputs)
        self.results.fresh(results)
        for position, number in self.constant:
            results[position] = number
        for position, argument in self.returned:
            results[position] = arguments[argument]
        if self.others:
            inside = {storage_address(t) for t in self.own.values() if isinstance(t, torch.Tensor)}
            for position, register in self.others:
                content = values[register]
                if isinstance(content, torch.Tensor) and storage_address(content) in inside:
                    content = content.clone()
                results[position] = content
        if self.bumped:
            torch.autograd.graph.increment_version([arguments[i] for i in self.bumped])
        return results


def _only_tells_sizes(piece: GraphPiece) -> bool:
    """Whether a piece gives numbers that depend on the arguments' sizes, and does nothing else."""
    steps = piece.program.steps
    return piece.reason == GIVES_BACK and all(isinstance(s, P.SymbolValue) for s in steps)


class CaptureFailed(Exception):
    """A capture ended with an error: `number` is the step in the whole program, None where no step
    is known to be its cause. `results` are the call's results all the same."""

    def __init__(self, error: Exception, number: int | None) -> None:
        super().__init__(str(error))
        self.error, self.number = error, number
        self.results: list[Any] = []


@attrs.define
class Capture:
    """What a capture needs to know. `modes`: (in place, buffered) positions of arguments; `kept`:
    results that stay in the graph's memory; `bumped`: arguments whose version a call raises."""

    program: P.HostProgram
    parts: GraphParts
    driver: GraphDriver
    pool: Any
    symbols: Mapping[str, int]
    modes: tuple[list[int], list[int]]
    kept: frozenset[int]
    bumped: list[int]
    gpu: int | None = None

    def make(self, arguments: Sequence[Any]) -> tuple[Instance, list[Any]]:
        """Capture a call and make it; gives its results too. Raises `CaptureFailed`, and what the
        program raises."""
        in_place, buffered = self.modes
        buffers = [buffer_for(arguments[i]) for i in buffered]
        copy_all(buffers, [arguments[i] for i in buffered])
        registers = [a.register for a in self.program.arguments]
        values = dict(zip(registers, arguments, strict=True))
        static = {registers[i]: buffer for i, buffer in zip(buffered, buffers, strict=True)}
        static |= {r: values[r] for i, r in enumerate(registers) if i not in set(buffered)}
        own: dict[int, Any] = {}
        symbols = dict(self.symbols)
        parts: list[InstancePart] = []
        failure: CaptureFailed | None = None
        for piece, host in zip(self.parts.cut.pieces, self.parts.hosts, strict=True):
            part = InstancePart(piece, host)
            if piece.captured and failure is None:
                try:
                    self._capture_piece(part, static, own, values, symbols)
                except CaptureFailed as error:
                    failure = error
            if part.graph is None:
                run_piece(piece, host, symbols, values)
            parts.append(part)
        instance = self._instance(arguments, parts, buffers, own, values)
        results = instance.finish(arguments, values)
        if failure is not None:
            failure.results = results
            raise failure
        return instance, results

    def _capture_piece(
        self, part: InstancePart, static: Mapping[int, Any], own: dict[int, Any],
        values: dict[int, Any], symbols: dict[str, int],
    ) -> None:  # fmt: skip
        """Capture one piece into `part` and replay it."""
        taken = []
        for register in part.piece.takes:
            if register in static or register in own:
                taken.append(static[register] if register in static else own[register])
                continue
            memory = values[register]
            if isinstance(memory, torch.Tensor):
                memory = buffer_for(memory)
                memory.copy_(values[register])
                part.feeds.append(Feed(register, memory))
            taken.append(memory)
        checks = late_checks.count_late(part.piece.program)
        standing = late_checks.standing(self.gpu, checks) if checks else None

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            with late_checks.collected(standing) as truths:
                contents = part.host.steps(symbols, tensors)
            if standing is not None and truths:
                standing.follow(truths)
            return contents

        if isinstance(part.host, PieceHost):
            part.host.at = 0
        try:
            graph, contents = self.driver.capture(run, taken, self.pool, part.piece.random)
        except Exception as error:
            part.feeds.clear()
            numbers, at = part.piece.numbers, part.host.at
            raise CaptureFailed(error, numbers[at] if at < len(numbers) else None) from error
        part.graph = graph
        graph.replay()
        own.update(zip(part.piece.gives, contents, strict=False))
        values.update(own)

    def _instance(
        self, arguments: Sequence[Any], parts: list[InstancePart], buffers: list[torch.Tensor],
        own: dict[int, Any], values: Mapping[int, Any],
    ) -> Instance:  # fmt: skip
        in_place, buffered = self.modes
        places = {a.register: i for i, a in enumerate(self.program.arguments)}
        fresh, passed, others, constant = [], [], [], []
        for position, output in enumerate(self.program.outputs):
            register = output.register
            if register in places:
                passed.append((position, places[register]))
            elif register in own and isinstance(own[register], torch.Tensor):
                fresh.append((position, own[register]))
            elif register in self.parts.cut.constant:
                constant.append((position, values[register]))
            elif register is not None:
                others.append((position, register))
        shared = [t for register, t in values.items()
                  if register not in own and isinstance(t, torch.Tensor)]  # fmt: skip
        written = self.parts.cut.written
        storages = {storage_address(arguments[i]) for i in written
                    if isinstance(arguments[i], torch.Tensor)} if buffered else set()  # fmt: skip
        if len(parts) > 1 and _only_tells_sizes(parts[-1].piece):
            parts = parts[:-1]
        graphs = [part.graph for part in parts if part.graph is not None]
        return Instance(
            self.program, self.driver.stream(), self.symbols, parts, self.pool,
            Addresses(arguments, in_place), buffered, buffers, written,
            frozenset(storages), own, Results(fresh, self.kept, shared), passed, others, constant,
            self.bumped, graphs[0] if len(parts) == 1 and graphs and not others else None,
        )  # fmt: skip


__all__ = ["Capture", "CaptureFailed", "GraphParts", "Instance", "PieceHost", "run_piece"]
