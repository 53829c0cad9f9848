"""Who computes a product the fastest, by measuring: the problem that `irc.tuning` is given."""

from __future__ import annotations

import attrs

from irc.analysis.contraction import Contraction, contraction_of
from irc.dialects import graph, loop
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.passes import PassContext, PassManager
from irc.ir.text.parser import parse
from irc.ir.text.printer import print_op
from irc.ir.types import TensorType
from irc.target import Target, target_of
from irc.tuning import Candidate, Problem, choose
from irc.tuning.applying import members_of
from irc.tuning.candidates import candidates_for, kind_of
from irc.tuning.problem import main_of, problem_of

#: What is left to do to a program that says who computes its products.
REST = ("choose-contractions", "graph-to-layout", "layout-to-loop", "fuse-loops", "loop-to-kernel",
        "kernel-to-host")  # fmt: skip

def fastest(call: graph.CallAten, schedules: int, context: PassContext) -> Candidate:
    """The library, or irc with entries of a schedule, of which at most `schedules` are tried: what
    takes the least time by itself. Raises `NoValidChoicesError` where neither can be run."""
    target = target_of(context)
    problem = product_problem(call, target)
    ours = own_candidates(problem, target, schedules)
    return choose(problem, [Candidate("aten"), *ours], context)


def own_candidates(problem: Problem, target: Target, most: int) -> list[Candidate]:
    """irc with the cost model's schedule, and with entries near it where its kernel multiplies
    tiles; `most` at all, as the pass `tune` looks around what was chosen."""
    module = problem.with_candidate(Candidate("irc"))
    stages = problem.pipeline.split(",")[: REST.index("fuse-loops") + 1]
    context = PassContext(target=target, explains=False)
    PassManager.parse(",".join([*stages, "schedule"])).run(module, context)
    entries = [""]
    for op in main_of(module).block.ops:
        if isinstance(op, loop.ComputeOp | loop.GroupOp) and kind_of(op) == "contraction":
            place = next((k for k, m in enumerate(members_of(op)) if _multiplies(m)), 0)
            for candidate in candidates_for(op):
                inner = candidate.members[place] if candidate.members else ""
                entries.append(inner or candidate.schedule)
    return [Candidate("irc", text) for text in dict.fromkeys(entries)][:most]


def _multiplies(op: Operation) -> bool:
    return isinstance(op, loop.ComputeOp) and isinstance(contraction_of(op), Contraction)


def product_problem(call: graph.CallAten, target: Target) -> Problem:
    """A call as what is tuned, with its operands in eager's strides."""
    words = "{target=triton}" if target.is_gpu else ""
    pipeline = ",".join([REST[0], *(stage + words for stage in REST[1:])])
    problem = problem_of(call, target, pipeline, described(call), "graph")
    strides = call.operand_strides
    if strides is None:
        return problem
    module = parse(problem.text, filename="<problem>")
    function = main_of(module)  # type: ignore[arg-type]
    entries = iter(strides)
    infos = [
        A.DictAttr({"strides": next(entries)} if isinstance(a.type, TensorType) else {})
        for a in function.block.arguments
    ]
    function.attributes["arg_info"] = A.ArrayAttr(infos)
    return attrs.evolve(problem, text=print_op(module))


def described(call: graph.CallAten) -> str:
    """A call for people: mm f32 64x32, 32x48."""
    types = [v.type for v in call._operands if isinstance(v.type, TensorType)]
    sizes = ", ".join("x".join(map(str, type_.shape)) for type_ in types)
    return f"{call.callee.split('.')[1]} {types[0].element} {sizes}"


__all__ = ["described", "fastest", "own_candidates", "product_problem"]
