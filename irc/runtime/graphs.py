"""Programs whose calls are captured into CUDA graphs and replayed.

    executable = GraphedExecutable(plain, GraphRunner(program, plain, hosts, driver, options))
    y, = executable(x)           # plainly; the second call captures, those behind it replay

`docs/design/graphs.md` says what may be expected. What a caller holds is never overwritten: results
are copied out of a graph's memory, or the graph waits until nobody refers to them.
"""

from __future__ import annotations

import ctypes
import re
import sys
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from irc.ir.location import UNKNOWN
from irc.ir.passes import Remark
from irc.program import host_program as P
from irc.runtime import host_steps, late_checks, lazy_bits, library_modes
from irc.runtime.arguments import check_arguments
from irc.runtime.executable import Executable
from irc.runtime.graphs_cuts import cut
from irc.runtime.graphs_driver import CudaDriver, GraphDriver
from irc.runtime.graphs_instance import (
    Capture,
    CaptureFailed,
    GraphParts,
    Instance,
    PieceHost,
    run_piece,
)
from irc.runtime.graphs_memory import Kinds, facts_of, storage_address
from irc.runtime.graphs_native import NativeReplays
from irc.runtime.graphs_options import GraphOptions
from irc.runtime.python_host import argument_symbols

COPIED_IN = 128 << 20
"""Bytes of inputs that are copied into a graph's memory; 60 us on an H200, where a graph saves
milliseconds."""
COPIED_OUT = 512 << 20
"""Bytes of results that are copied out of it."""
INSTANCES = 4
"""Graphs of one size: calls whose saved tensors may be alive at a time."""
REPLACES = 32
"""Calls of a size without a graph for which it takes the place of a size that nobody calls."""
_FREE_CAPTURES, _REPLAYS_A_CAPTURE = 8, 16
_REMEMBERED = 256
_REFUSED = 8  # steps that are left out before a program is given up
_PATIENCE = 0.05  # seconds that a call waits for another thread's

class Context:
    """What the graphs of one stream share: one call at a time, and one pool."""

    def __init__(self, driver: GraphDriver) -> None:
        self._driver, self._pool, self._users = driver, driver.new_pool(), 0
        #: Where saved tensors are, and the pool that they are in.
        self.saved: dict[int, Any] = {}
        self._lock = threading.Lock()
        # The thread that uses the graphs, and whether native code does: 0 for nobody.
        self._users_now = (ctypes.c_uint64 * 2)()

    @property
    def busy(self) -> int:
        """Where it is said whether somebody uses the stream's graphs: `irc.codegen.host
        .support_graphs` has the two words."""
        return ctypes.addressof(self._users_now)

    def acquire(self) -> bool:
        """Whether this call may use the stream's graphs: no call inside of another, and none that
        would wait long."""
        me, now = threading.get_ident(), self._users_now
        if now[0] == me or not self._lock.acquire(timeout=_PATIENCE):
            return False
        now[0] = me  # from here on no native call begins
        if now[1]:  # one has begun, and asks Python for its results
            self.release()
            return False
        return True

    def release(self) -> None:
        """The call has enqueued all that it does."""
        self._users_now[0] = 0
        self._lock.release()

    def pool(self) -> Any:
        """The pool of the stream: a new one where no graph is left in it, since torch takes none
        up again."""
        if not self._users:
            self._pool = self._driver.new_pool()
        return self._pool

    def joined(self, instance: Instance) -> None:
        """An instance has graphs in the pool, as long as it lives."""
        if instance.pool == self._pool:
            self._users += 1
            weakref.finalize(instance, self._left, self._pool).atexit = False

    def _left(self, pool: Any) -> None:
        self._users -= pool == self._pool

    def forget(self, addresses: Iterable[int]) -> None:
        """Saved tensors' memory is no graph's any more."""
        for address in addresses:
            self.saved.pop(address, None)


_contexts: dict[tuple[str, int], Context] = {}
_drivers: dict[int, CudaDriver] = {}


def context_of(driver: GraphDriver, stream: int) -> Context:
    """The context of a device's stream."""
    key = driver.device, stream
    context = _contexts.get(key)
    return _contexts.setdefault(key, Context(driver)) if context is None else context


def driver_of(program: P.HostProgram) -> GraphDriver | None:
    """What captures a program's calls; None for one that is not on one GPU."""
    gpu = host_steps.gpu_of(program)
    if gpu is None:
        return None
    return _drivers.setdefault(gpu, CudaDriver(gpu))


class Family:
    """The calls of one size on one stream, and their graphs. `settings`: torch's, of libraries."""

    def __init__(
        self, arguments: Sequence[Any], symbols: Mapping[str, int],
        settings: tuple[Any, ...] | None = None,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.facts, self.symbols = facts_of(arguments), symbols
        self._kinds = [Kinds(arguments)]
        self.instances: list[Instance] = []
        self.refused = ""
        #: Arguments that were elsewhere than a graph read them, by position: copied from then on.
        self.moved: set[int] = set()
        self.bumped: list[int] = []
        self.seen: list[Any] = []
        self.warm = False
        self.used = self.plain = self.captures = self.replays = self.failures = 0

    def knows(self, arguments: Sequence[Any]) -> bool:
        """Whether the arguments are of this kind, told without looking at each."""
        return any(kinds.knows(arguments) for kinds in self._kinds)

    def learn(self, arguments: Sequence[Any]) -> None:
        """Know arguments with the same facts, whose autograd state is another, from now on."""
        self._kinds = [Kinds(arguments), *self._kinds[:3]]

    def ready(self, arguments: list[Any]) -> Instance | None:
        """A graph that reads where the arguments are, and whose results nobody refers to."""
        for instance in self.instances:
            if instance.is_for(arguments) and instance.results.are_free():
                self.replays += 1
                return instance
        return None

    def see(self, arguments: Sequence[Any]) -> None:
        """Note which objects a call was given."""
        self.seen = [weakref.ref(a) if isinstance(a, torch.Tensor) else None for a in arguments]

    def may_capture(self) -> bool:
        """Whether captures have paid so far, or it is too early to say."""
        return self.captures < _FREE_CAPTURES + self.replays // _REPLAYS_A_CAPTURE


_thread = threading.local()


def _warm_here() -> weakref.WeakSet[Family]:
    """The families that this thread has called without a graph: its handles of libraries are made,
    which a capture could not do."""
    families: weakref.WeakSet[Family] | None = getattr(_thread, "warm", None)
    if families is None:
        families = _thread.warm = weakref.WeakSet()
    return families


class GraphRunner:
    """Calls of one program, through graphs where that is right, else through `plain`.

    `host_of` gives what runs a piece in Python. `kept`: results that stay in a graph's memory,
    which the caller is sure not to hand on: what autograd saves.
    """

    def __init__(
        self,
        program: P.HostProgram,
        plain: Executable,
        host_of: Callable[[P.HostProgram], PieceHost],
        driver: GraphDriver,
        options: GraphOptions,
    ) -> None:
        self.program, self.plain, self.driver, self.options = program, plain, driver, options
        self.kept: frozenset[int] = frozenset()
        self.off = ""
        self._host_of, self._gpu = host_of, host_steps.gpu_of(program)
        self._refused: dict[int, str] = {}
        self._failed: Counter[int | None] = Counter()
        self._families: dict[Any, list[Family]] = {}
        self.replays: NativeReplays | None = None
        self._told: set[str] = set()
        self._ticks = 0
        specs = plain.info.arguments
        self._numbers = [i for i, s in enumerate(specs) if s.kind != "tensor"]
        self._symbolic = [
            i for i, s in enumerate(specs)
            if any(not isinstance(d, int) for d in (*s.sizes, *(s.strides or ())))
        ]  # fmt: skip
        registers = {a.register: i for i, a in enumerate(program.arguments)}
        self._settings = library_modes.reader(program)
        self._offsets = [registers[b.register] for b in program.bindings if b.offset]
        #: Whether captures are of the native program, which doesn't tell the step that fails.
        self._natively = plain.is_native
        self._cut()
        if driver.native is not None and plain.is_native and not self._offsets:
            self.replays = NativeReplays(driver.native, self._gpu or 0, self._settings)

    def _cut(self) -> None:
        plan = cut(self.program, self.driver.device, self._refused)
        taken = {r for piece in plan.pieces if piece.captured for r in piece.takes}
        self._used = [i for i, a in enumerate(self.program.arguments)
                      if a.kind == "tensor" and a.register in taken]  # fmt: skip
        if not taken:
            self._stop("nothing in it can be captured, or too little for a graph")
            return
        whole = None
        if self._natively:
            whole = GraphParts.whole(self.program, plan, self.plain.fast_call)
        self._natively = whole is not None
        if whole is None:
            hosts = tuple(self._host_of(piece.program) for piece in plan.pieces)
            whole = GraphParts(plan, hosts)
        self.parts = whole

    # -- calls

    def __call__(self, *arguments: object) -> tuple[object, ...]:
        return self._run(list(arguments))

    def call_list(self, passed: list[object]) -> tuple[object, ...]:
        """As a call of the items; the list is emptied."""
        arguments = list(passed)
        passed.clear()
        return self._run(arguments)

    def _run(self, arguments: list[Any]) -> tuple[object, ...]:
        if not self.off:
            with self.driver.entered():
                if not self.driver.is_capturing():
                    results = self._on_stream(arguments)
                    if results is not None:
                        return tuple(results)
        return self.plain.fast_call(*arguments)

    def _on_stream(self, arguments: list[Any]) -> list[Any] | None:
        """The results of a call through a graph, or a first call; None for a plain one."""
        if self._gpu is not None:
            late_checks.raise_failed(self._gpu)
        stream = self.driver.stream()
        context = context_of(self.driver, stream)
        if not context.acquire():
            return None
        try:
            with torch._C._AutoDispatchBelowAutograd():
                self._count_native()
                family = self._family(stream, arguments)
                self._ticks += 1
                if family is None or family.refused:
                    return None
                instance = family.ready(arguments)
                if instance is not None:
                    family.used = self._ticks
                    if self.replays is not None:
                        self.replays.show(family, instance, context.busy)
                    if instance.single is not None:
                        return instance.run(arguments)
                with torch.no_grad(), _without_autocast():
                    if instance is not None:
                        return instance.run(arguments)
                    return self._without_instance(context, family, arguments)
        finally:
            if self.replays is not None:
                self.replays.hide_gone()
            context.release()

    def _count_native(self) -> None:
        """What was called without Python since the last call in it counts as other calls do."""
        for family, count in () if self.replays is None else self.replays.counted():
            self._ticks += count
            family.used, family.replays = self._ticks, family.replays + count

    # -- kinds of calls

    def _family(self, stream: int, arguments: Sequence[Any]) -> Family | None:
        """The family of a call; None for arguments that only a plain call looks at."""
        if len(arguments) != len(self.program.arguments):
            return None
        settings = None if self._settings is None else self._settings()
        try:
            key = (
                stream,
                settings,
                *[arguments[i] for i in self._numbers],
                *[arguments[i].shape for i in self._symbolic],
                *[arguments[i].storage_offset() for i in self._offsets],
            )
        except AttributeError:  # no tensor: the plain call says so
            return None
        known = self._families.get(key, ())
        for family in known:
            if family.knows(arguments):
                return family
        return self._new_family(key, arguments, settings)

    def _new_family(
        self, key: Any, arguments: Sequence[Any], settings: tuple[Any, ...] | None
    ) -> Family | None:
        if any(map(lazy_bits.is_lazy, arguments)):
            return None
        symbols = check_arguments(self.plain.info.arguments, arguments)
        symbols = argument_symbols(self.program, symbols, arguments)
        facts = facts_of(arguments)
        known = self._families.setdefault(key, [])
        for family in known:
            if family.facts == facts:
                family.learn(arguments)
                return family
        fresh = Family(arguments, symbols, settings)
        here = self.driver.device
        for spec, argument in zip(self.program.arguments, arguments, strict=True):
            elsewhere = isinstance(argument, torch.Tensor) and not self.driver.is_here(argument)
            if spec.layout is not None and spec.layout.device == here and elsewhere:
                fresh.refused = f"{spec.name} is a tensor of the {argument.device.type}"
                self.tell(f"calls are not captured: {fresh.refused}")
        known.append(fresh)
        self._forget_old()
        return fresh

    def _forget_old(self) -> None:
        """Families without a graph are not remembered without bound."""
        every = [(f.used, key, f) for key, fs in self._families.items() for f in fs]
        if len(every) <= _REMEMBERED:
            return
        idle = min((e for e in every if not e[2].instances), key=lambda e: e[0], default=None)
        if idle is not None:
            self._families[idle[1]].remove(idle[2])

    def _has_place(self, family: Family) -> bool:
        """Whether a size may have graphs: it is among the first, or takes an idle one's place."""
        every = [f for families in self._families.values() for f in families if f.warm]
        if family.warm or len(every) < self.options.sizes:
            return True
        self._warn_of_sizes()
        family.plain += 1
        idle = min(every, key=lambda f: f.used)
        if family.plain < REPLACES or idle.used > self._ticks - 2 * REPLACES:
            return False
        idle.warm, idle.plain = False, 0
        idle.instances.clear()
        self.tell("a size that is no longer called has made place for another")
        return True

    def _warn_of_sizes(self) -> None:
        if "sizes" in self._told:
            return
        self._told.add("sizes")
        warnings.warn(
            f"irc: {self.program.name} is called with more than {self.options.sizes} sizes; those "
            "beyond run without CUDA graphs (the option cuda_graph_sizes)", stacklevel=2,
        )  # fmt: skip

    # -- calls that no graph is ready for

    def _without_instance(
        self, context: Context, family: Family, arguments: Sequence[Any]
    ) -> list[Any] | None:
        if not self._has_place(family):
            return None
        family.used, family.warm = self._ticks, True
        if family not in _warm_here():
            return self._first(family, arguments)
        if not family.may_capture():
            self._tell_once("its inputs move too often: calls run without a graph")
            return None
        if len(family.instances) == INSTANCES:
            held = [not instance.results.are_free() for instance in family.instances]
            if all(held):
                self._tell_once(f"the saved tensors of {INSTANCES} calls are alive: "
                                "further calls run without a graph")  # fmt: skip
                return None
            family.instances.remove(family.instances[held.index(False)])
        modes = self._modes(context, family, arguments)
        family.see(arguments)
        return None if modes is None else self._captured(context, family, arguments, modes)

    def _first(self, family: Family, arguments: Sequence[Any]) -> list[Any]:
        """A call by pieces, none of them captured: kernels and libraries get ready."""
        written = [arguments[i] for i in sorted(self.parts.cut.written)]
        counted = [t for t in written if not t.is_inference()]
        before = [t._version for t in counted]
        symbols = dict(family.symbols)
        values = {a.register: x for a, x in zip(self.program.arguments, arguments, strict=True)}
        for piece, host in zip(self.parts.cut.pieces, self.parts.hosts, strict=True):
            run_piece(piece, host, symbols, values)
        bumped = {id(t) for t, old in zip(counted, before, strict=True) if t._version != old}
        family.bumped = [i for i in sorted(self.parts.cut.written) if id(arguments[i]) in bumped]
        _warm_here().add(family)
        family.see(arguments)
        return [None if o.register is None else values[o.register] for o in self.program.outputs]

    def _modes(
        self, context: Context, family: Family, arguments: Sequence[Any]
    ) -> tuple[list[int], list[int]] | None:
        """Which arguments a graph reads in place, and which are copied; None for too many bytes."""
        written = self.parts.cut.written
        storages = {storage_address(arguments[i]) for i in written}
        last = family.instances[-1] if family.instances else None
        if last is not None:
            family.moved.update(last.in_place.moved(arguments))
        in_place: list[int] = []
        buffered: list[int] = []
        for i in self._used:
            tensor, seen = arguments[i], family.seen[i]
            place = storage_address(tensor)
            stays = (
                place in storages or place in context.saved
                or isinstance(tensor, torch.nn.Parameter)
                or (i not in family.moved and seen is not None and seen() is tensor)
            )  # fmt: skip
            (in_place if stays or not tensor.numel() else buffered).append(i)
        size = sum(arguments[i].numel() * arguments[i].element_size() for i in buffered)
        if size > COPIED_IN:
            family.failures += 1
            text = f"{size >> 20} MiB of inputs change their place ({self._names(buffered)})"
            self._tell_once(f"calls are not captured: {text}")
            if family.failures == _FREE_CAPTURES:
                family.refused = text
            return None
        moved = family.moved.intersection(buffered)
        if last is not None and moved:
            self.tell(f"captured again, since an input moved: {self._names(sorted(moved))}")
        return in_place, buffered

    def _names(self, positions: Iterable[int]) -> str:
        return ", ".join(self.program.arguments[i].name for i in positions)

    def _captured(
        self,
        context: Context,
        family: Family,
        arguments: Sequence[Any],
        modes: tuple[list[int], list[int]],
    ) -> list[Any]:
        """Capture a call and make it."""
        family.captures += 1
        pool = self.driver.new_pool() if self.kept else self._pool(context, arguments)
        capture = Capture(
            self.program, self.parts, self.driver, pool, family.symbols, modes, self.kept,
            family.bumped, self._gpu,
        )  # fmt: skip
        try:
            instance, results = capture.make(arguments)
        except CaptureFailed as failure:
            self._refuse(family, failure)
            return failure.results
        if instance.results.copied_bytes > COPIED_OUT:
            family.refused = f"{instance.results.copied_bytes >> 20} MiB of results"
            self.tell(f"calls of a size are not captured: {family.refused}")
            return results
        saved = [storage_address(tensor) for _, tensor in instance.results.kept]
        context.saved.update(dict.fromkeys(saved, pool))
        weakref.finalize(instance, context.forget, saved).atexit = False
        context.joined(instance)
        family.instances.append(instance)
        return results

    def _pool(self, context: Context, arguments: Sequence[Any]) -> Any:
        """The pool of the saved tensors that a call takes, else its stream's."""
        for i in self._used:
            pool = context.saved.get(storage_address(arguments[i]))
            if pool is not None:
                return pool
        return context.pool()

    def _refuse(self, family: Family, failure: CaptureFailed) -> None:
        """What a failed capture teaches: a step to leave out, or not to try again."""
        text = " ".join(str(failure.error).split())[:200]
        number = failure.number
        self._failed[number] += 1
        if isinstance(failure.error, torch.OutOfMemoryError):
            family.refused = "there is too little memory"
            self.tell(f"calls of a size are not captured: {text}")
        elif self._natively:  # by pieces it is known which step fails
            self._natively = False
            self._failed.clear()
            self._cut()
            for known in self._families.values():
                _warm_here().difference_update(known)
        elif self._failed[number] == 1:
            self.tell(f"a capture failed and is tried again: {text}")
        elif number is None or len(self._refused) == _REFUSED:
            self._stop(f"a capture failed: {text}")
        else:
            self._refused[number] = f"a capture of it fails: {text}"
            step = describe(self.program.steps[number])
            self.tell(f"{step} is left out of graphs: {self._refused[number]}")
            self._cut()

    # -- telling

    def _stop(self, reason: str) -> None:
        self.off = reason
        self.tell(f"calls are not captured: {reason}")

    def _tell_once(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self.tell(message)

    def tell(self, message: str) -> None:
        """Tell a remark, if it is one of those that are asked for."""
        remark = Remark("cuda-graphs", message, UNKNOWN, self.program.name)
        if self.options.remarks and re.search(self.options.remarks, remark.text):
            print(remark, file=sys.stderr)


def describe(step: P.Step) -> str:
    """A step in a word: its kernel or its operator."""
    if isinstance(step, P.Launch):
        return step.kernel
    return step.callee if isinstance(step, P.CallOperator) else type(step).__name__


def _without_autocast() -> Any:
    return torch._C._DisableAutocast()


class GraphedExecutable(Executable):
    """An executable whose calls go through graphs."""

    __slots__ = ("_plain", "graphs")

    def __init__(self, plain: Executable, graphs: GraphRunner) -> None:
        self._plain, self.graphs = plain, graphs
        super().__init__(plain.info, plain.run_python)
        replays = graphs.replays
        if replays is None:
            self._take(graphs, graphs.call_list)
        else:
            self._take(*replays.builtins(graphs, graphs.call_list))

    @property
    def is_native(self) -> bool:
        """Whether plain calls go through a native host function."""
        return self._plain.is_native

    def keep_results(self, positions: Iterable[int]) -> None:
        """Results at these positions may stay in a graph's memory: nobody hands them on."""
        self.graphs.kept = frozenset(positions)


def graphed(
    program: P.HostProgram,
    plain: Executable,
    host_of: Callable[[P.HostProgram], PieceHost],
    options: GraphOptions,
) -> Executable:
    """The executable with graphs, where its program is on one GPU; else as it is."""
    driver = driver_of(program)
    if driver is None:
        return plain
    return GraphedExecutable(plain, GraphRunner(program, plain, host_of, driver, options))


__all__ = ["GraphRunner", "GraphedExecutable", "graphed"]
