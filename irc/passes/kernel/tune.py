"""The pass `tune`: schedules that were measured to be the fastest."""

from __future__ import annotations

from collections.abc import Sequence

from irc.analysis.cost import class_of
from irc.analysis.loop import points
from irc.dialects import func, loop
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import TensorType
from irc.options.options import DEFAULT, Options
from irc.options.table import own_backends
from irc.passes.kernel.sizes import with_sizes
from irc.target import Target, target_of
from irc.tuning import choose_all
from irc.tuning.applying import apply
from irc.tuning.candidates import candidates_for, kind_of
from irc.tuning.problem import problem_of

#: What is left to do to a scheduled program.
REST = "form-kernels,join-launches,bufferize,plan-memory"
#: How often schedules near the winner are measured, too, with `coordinate_descent_tuning`; on a
#: GPU, whose kernels take a second to build, the third and fourth time gained 6 to 15 % of some us.
MOST_STEPS, GPU_STEPS = 4, 2
BUILDS, LEAST = 32, 3
"""For a GPU so many candidates are built at a time for all operations of a function, but a few for
each."""


@register_pass
class Tune(Pass):
    """Measures what else each compute and group may run as, and writes what is the fastest into its
    schedule.

    Each is built and timed by itself, with the schedules that `irc.tuning.candidates` makes of the
    present one, those first that take the longest; docs/tuning.md tells how, and where it is kept.
    Where the leading size is a symbol, smaller and larger ones are measured, too (`variants`).
    On another machine than the target, and without seconds left, the schedules stay. Options of the
    compile say whether products, or what is no product, is tuned.

    least_points: computes of fewer points stay as they are: a call takes longer. take: the number
    of the candidate that is taken of each without measuring (-1: none is).

    Before:
        %y = loop.compute par(i0: 65536) -> map schedule #loop.schedule<cpu, lanes = 16 : i64, ...>
    After:
        %y = loop.compute par(i0: 65536) -> map schedule #loop.schedule<cpu, lanes = 8 : i64, ...>
    """

    name = "tune"
    summary = "give computes and groups the schedules that were measured to be the fastest"
    preserves = "real"
    asks_target = True
    least_points: int = 4096
    take: int = -1

    def run(self, op: Operation, context: PassContext) -> None:
        options = context.options if isinstance(context.options, Options) else None
        target = target_of(context)
        if target.is_gpu:  # what it registers isn't loaded for a CPU
            from irc.passes.kernel.gpu import contraction_candidates  # noqa: F401
        for function in op.regions[0].blocks[0].ops:
            if not isinstance(function, func.FuncOp):
                continue
            ops = [inner for inner in function.block.ops if self.is_tuned(inner, options, target)]
            ops = [inner for inner in sorted(ops, key=work_of, reverse=True)
                   if context.spend("tune", inner)]  # fmt: skip
            if self.take >= 0:
                for inner in ops:
                    candidates = candidates_for(inner, target)
                    apply(inner, candidates[min(self.take, len(candidates) - 1)])
                continue
            every = ops
            most = GPU_STEPS if target.is_gpu else MOST_STEPS
            steps = most if (context.options or DEFAULT).coordinate_descent_tuning else 1
            while steps and ops:
                ops, steps = self.better(ops, context), steps - 1
            with_sizes(every, REST, describe, LEAST if target.is_gpu else None, context)

    def better(self, ops: Sequence[Operation], context: PassContext) -> list[Operation]:
        """Write the fastest candidate of each operation into its schedule; gives those that have
        another one now."""
        target = target_of(context)
        problems = [problem_of(op, target, REST, describe(op)) for op in ops]
        distinct = len({problem.canonical() for problem in problems}) if target.is_gpu else 1
        most = max(LEAST, BUILDS // distinct) if target.is_gpu else None
        every = [candidates_for(op, target)[:most] for op in ops]
        asked = list(zip(problems, every, strict=True))
        changed = []
        for op, candidates, winner in zip(ops, every, choose_all(asked, context), strict=True):
            if winner != candidates[0]:
                apply(op, winner)
                context.count("tuned")
                changed.append(op)
        return changed

    def is_tuned(self, op: Operation, options: Options | None, made_for: Target) -> bool:
        """Whether an operation is to be tuned: one with a schedule, of the kinds that the options
        ask for, and not too small."""
        if not isinstance(op, loop.ComputeOp | loop.GroupOp) or "schedule" not in op.attributes:
            return False
        is_product = kind_of(op) == "contraction"
        small = points_of(op) < self.least_points
        return not small and (options is None or _asks(options, is_product, made_for.is_gpu))


def _asks(options: Options, is_product: bool, gpu: bool) -> bool:
    """Whether a compile's options ask for an operation's schedule to be measured. Where it was
    measured whether a library computes a product, other schedules were, too, and what is near the
    winner is left to coordinate descent."""
    if not is_product:
        return options.max_autotune or options.max_autotune_pointwise
    libraries = own_backends(options.max_autotune_gemm_backends, gpu)
    measured = "aten" in libraries and not options.coordinate_descent_tuning
    return (options.max_autotune or options.max_autotune_gemm) and not measured


def points_of(op: Operation) -> int:
    """The points of all computes of an operation, where sizes are symbolic by estimate."""
    shared = op.axis_list if isinstance(op, loop.GroupOp) else ()
    total = 0
    for inner in op.walk():
        if isinstance(inner, loop.ComputeOp):
            axes = {axis.name: axis.extent for axis in (*shared, *inner.axis_list)}
            total += points(axes.values())
    return total


def work_of(op: Operation) -> int:
    """About how long an operation takes, to put several in order."""
    body = sum(1 for inner in op.walk() if class_of(inner) or isinstance(inner, loop.ReadOp))
    return points_of(op) * (1 + body)


def describe(op: Operation) -> str:
    """An operation for people: its kind, and the type of its first result."""
    type_ = op.results[0].type
    shown = ""
    if isinstance(type_, TensorType):
        shown = f" {type_.element} {'x'.join(str(size) for size in type_.shape)}"
    return f"{kind_of(op)}{shown}"


__all__ = ["Tune"]
