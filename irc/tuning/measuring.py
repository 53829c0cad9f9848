"""A problem with a candidate as something that runs, and how long it takes.

    runner = Runner(problem, candidate)         # built: passes, code, arguments
    runner.seconds()                            # one sample

Arguments are random numbers from a fixed seed, with the problem's strides. A sample on a CPU is as
many calls as take `SAMPLE_SECONDS`, one after the other, on a GPU a replay of a CUDA graph of calls
(`irc.tuning.replays`). So the caches hold what fits into them, as for a value that was just
computed; what the problem calls cold, as weights of a model, has copies, of which each call reads
the next one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch.utils._python_dispatch import _disable_current_modes

from irc.interp.core import torch_dtype
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.passes import PassContext, PassManager
from irc.ir.symbols import Dim, evaluate
from irc.ir.types import FloatType, TensorType, contiguous_strides
from irc.options.options import DEFAULT, Options
from irc.runtime import metrics
from irc.runtime.build_program import BuildOptions
from irc.runtime.building import build, on_its_gpu
from irc.runtime.executable import Executable
from irc.tuning.candidate import Candidate
from irc.tuning.problem import Problem, main_of
from irc.validation.sizes import argument_strides

SAMPLE_SECONDS = 200e-6
"""A sample on a CPU takes so long, or one call: the clock is then exact to a thousandth."""
MOST_CALLS = 1000
COLD_BYTES = 128 << 20
"""Copies of what comes from memory take so much together: more than a last cache holds."""
MOST_COPIES = 64
SEED = 0


def built(problem: Problem, candidate: Candidate, options: Options = DEFAULT) -> Executable:
    """The program of a problem that runs as a candidate says, to be captured on a GPU. Raises what
    passes raise."""
    module = problem.with_candidate(candidate)
    context = PassContext(options=options.replace(remarks=""), explains=False)
    with on_its_gpu(module):  # a thread begins with the first one
        PassManager.parse(problem.pipeline).run(module, context)
        return build(module, None, attrs.evolve(BuildOptions.of(options), captured=True))


def arguments_of(problem: Problem) -> list[Any]:
    """The arguments that a problem is measured on: equal for each candidate."""
    module = problem.module()
    sizes = dict(problem.sizes)
    generators: dict[str, torch.Generator] = {}
    function = main_of(module)
    arguments: list[Any] = []
    for position, argument in enumerate(function.block.arguments):
        type_ = argument.type
        if not isinstance(type_, TensorType):
            arguments.append(_number(argument, sizes))
            continue
        if type_.device not in generators:
            generators[type_.device] = torch.Generator(type_.device).manual_seed(SEED)
        strides = argument_strides(function, position)
        arguments.append(random_tensor(type_, strides, sizes, generators[type_.device]))
    return arguments


def _number(argument: Value, sizes: Mapping[str, int]) -> int | float:
    """The value of the symbol that an argument binds, or of one that binds none."""
    for user in argument.users:
        symbol = user.attributes.get("symbol")
        if isinstance(symbol, A.StringAttr) and symbol.value in sizes:
            return sizes[symbol.value]
    return 0.5 if isinstance(argument.type, FloatType) else 1


def random_tensor(
    type_: TensorType,
    steps: Sequence[Dim] | None,
    sizes: Mapping[str, int],
    generator: torch.Generator,
) -> torch.Tensor:
    """A tensor of a type: floats from -1 to 1, integers 0, which are indices of anything. Its
    memory is written, so that it is memory of its own."""
    shape = [evaluate(d, sizes) for d in type_.shape]
    strides = [evaluate(d, sizes) for d in steps or contiguous_strides(shape)]
    extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    dtype = torch_dtype(type_.element)
    memory = torch.empty(extent, dtype=dtype, device=type_.device)
    if dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        memory.uniform_(-1, 1, generator=generator)
    else:
        memory.view(torch.uint8).fill_(0)
    return memory.as_strided(shape, strides)


@contextlib.contextmanager
def _as_compiled(threads: int) -> Iterator[None]:
    """Eager mode with a compile's number of threads: neither fake tensors nor autograd."""
    before = torch.get_num_threads()
    if before != threads:
        torch.set_num_threads(threads)
    try:
        with _disable_current_modes(), torch.no_grad():
            yield
    finally:
        if before != threads:
            torch.set_num_threads(before)


class Runner:
    """A candidate of a problem, built. Raises what building raises; `seconds` what running does."""

    def __init__(self, problem: Problem, candidate: Candidate, options: Options = DEFAULT) -> None:
        self._problem = problem
        with _disable_current_modes(), metrics.paused():
            self._program = built(problem, candidate, options)  # the code lives as long
            self._call = self._program.fast_call
        target = problem.target
        self._gpu, self._threads = target.is_gpu, target.threads
        self._calls = self._turn = 0
        self._replays: Any = None

    def seconds(self, copies: Sequence[Sequence[Any]], pool: Any = None) -> float:
        """The time of a call, from one sample; `copies`: lists of arguments, to be taken in turn.
        """
        threads = torch.get_num_threads() if self._gpu else self._threads
        with _as_compiled(threads):
            return self._on_gpu(copies, pool) if self._gpu else self._on_cpu(copies)

    def forget(self) -> None:
        """Let go what is captured on arguments."""
        self._replays = None

    def _on_cpu(self, copies: Sequence[Sequence[Any]]) -> float:
        call = self._call
        if not self._calls:
            call(*copies[0])  # what is done once
            start = time.perf_counter()
            call(*copies[-1])
            once = time.perf_counter() - start
            self._calls = max(1, min(MOST_CALLS, int(SAMPLE_SECONDS / max(once, 1e-9))))
        chosen = [copies[(self._turn + n) % len(copies)] for n in range(self._calls)]
        self._turn += self._calls
        start = time.perf_counter()
        for arguments in chosen:
            call(*arguments)
        return (time.perf_counter() - start) / self._calls

    def _on_gpu(self, copies: Sequence[Sequence[Any]], pool: Any) -> float:
        from irc.tuning.replays import Replays

        with torch.cuda.device(_device(copies[0])):
            if self._replays is None:
                self._replays = Replays(self._call, copies, pool)
            return self._replays.seconds()


def _device(arguments: Sequence[Any]) -> torch.device:
    tensors = (a.device for a in arguments if isinstance(a, torch.Tensor))
    return next((d for d in tensors if d.type == "cuda"), torch.device("cuda"))


def copies_of(arguments: Sequence[Any], cold: Sequence[int]) -> list[list[Any]]:
    """Lists of arguments of which each has copies of its own of those at `cold`, and which share
    all others: so many that no cache holds all."""
    held = {number: arguments[number] for number in cold}
    tensors = [t for t in held.values() if isinstance(t, torch.Tensor)]
    size = sum(t.untyped_storage().nbytes() for t in tensors)
    count = min(MOST_COPIES, COLD_BYTES // size + 1) if size else 1
    copies = [list(arguments)]
    for _ in range(count - 1):
        copies.append([_copied(a) if n in held else a for n, a in enumerate(arguments)])
    return copies


def _copied(argument: Any) -> Any:
    """A tensor with memory and strides like another one's."""
    if not isinstance(argument, torch.Tensor):
        return argument
    memory = argument.as_strided((argument.untyped_storage().nbytes() // argument.itemsize,), (1,))
    return memory.clone().as_strided(argument.shape, argument.stride())


@attrs.define(eq=False)
class InProcess:
    """Builds and times candidates of one problem in this process. Safe from several threads, but
    for `seconds`."""

    problem: Problem
    options: Options = DEFAULT
    _runners: dict[Candidate, Runner] = attrs.field(factory=dict)
    _copies: list[list[Any]] | None = None
    _pool: Any = None

    def begin(self) -> None:
        """Make the arguments. Raises what torch raises where there is no memory."""
        if self._copies is None:
            with _disable_current_modes():
                arguments = arguments_of(self.problem)
                if self.problem.target.is_gpu:
                    from irc.tuning.replays import GraphPool

                    with torch.cuda.device(_device(arguments)):
                        self._pool = GraphPool(torch.cuda.current_device())
                self._copies = copies_of(arguments, self.problem.cold)

    @property
    def held_bytes(self) -> int:
        """Of the arguments, and once more for what calls compute of them."""
        tensors = [a for each in self._copies or () for a in each if isinstance(a, torch.Tensor)]
        return 2 * sum({t.data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())

    def has(self, candidate: Candidate) -> bool:
        """Whether a candidate is built."""
        return candidate in self._runners

    def prepare(self, candidate: Candidate) -> None:
        """Build a candidate. Raises what building raises."""
        self._runners[candidate] = Runner(self.problem, candidate, self.options)

    def seconds(self, candidate: Candidate) -> float:
        """A sample of a candidate. Raises what building or running raises."""
        if candidate not in self._runners:
            self.prepare(candidate)
        self.begin()
        assert self._copies is not None
        return self._runners[candidate].seconds(self._copies, self._pool)

    def rest(self) -> None:
        """Let the arguments go, and what is captured on them, until `begin` makes them again."""
        for runner in self._runners.values():
            runner.forget()
        self._copies = self._pool = None

    def close(self) -> None:
        """Let the programs and arguments go."""
        self._runners.clear()
        self._copies = self._pool = None


__all__ = ["InProcess", "Runner", "arguments_of", "built", "random_tensor"]
