"""Who computes a product the fastest, by measuring: the problem that `irc.tuning` is given."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irc.analysis.channels_last import innermost_strides, turned_images
from irc.analysis.contraction import Contraction, contraction_of
from irc.analysis.depth_parts import window_parts
from irc.analysis.image_layouts import orders_of
from irc.analysis.loop import estimate
from irc.analysis.processor_ways import fills_panels, multiplies_parts, takes_parts, whole_tiles
from irc.analysis.product_ways import own_parts
from irc.analysis.products import factors, unpermuted
from irc.analysis.symbolic_sizes import SymbolicSize
from irc.dialects import func, graph, loop
from irc.dialects.aten.facts import MATRIX_PRODUCTS
from irc.dialects.kernel.dots import split_rows_of
from irc.dialects.loop.ops import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, PassManager
from irc.ir.symbols import Dim, dim_product, free_symbols, symbol, value_at
from irc.ir.types import TensorType, f32
from irc.options.options import Options
from irc.passes.graph.contractions.products import result_type
from irc.passes.graph.contractions.surroundings import Surroundings
from irc.passes.kernel.cpu.contraction.register_tiles import panel_vectors
from irc.target import Target, target_of
from irc.tuning import Candidate, Problem, choose_all
from irc.tuning.applying import members_of, merged
from irc.tuning.candidate import read_schedule_text
from irc.tuning.candidates import candidates_for, kind_of
from irc.tuning.problem import main_of, problem_of
from irc.validation.sizes import argument_entry

#: What is left to do to a program that says who computes its products.
REST = ("choose-contractions", "graph-to-layout", "layout-to-loop", "fuse-loops", "loop-to-kernel",
        "kernel-to-host")  # fmt: skip


FIRST = 4
"""Of irc's candidates so many come before those that split the depth, where the cost model doesn't;
where it does, half of all at most."""
PARTS = 3
"""Numbers of parts of the depth that are tried beside the cost model's."""
GPU_BUILDS, BUILDS, LEAST = 48, 160, 3
"""Of irc's candidates so many are built for all problems of a function, but a few for each: a
kernel for a GPU takes a second."""
SLOWED = 3.0
"""A convolution that irc would read in pieces, so that it takes so many times longer, isn't tried:
a library, which copies what lies badly, is faster."""
LARGE = 16 << 20
"""Elements of a weight that is laid out in one way only while it is measured."""


def fastest(
    calls: Sequence[graph.CallAten],
    schedules: int,
    context: PassContext,
    apart: int | None = None,
) -> dict[graph.CallAten, Candidate]:
    """Of each call the library, or irc with entries of a schedule, of which at most `schedules` are
    tried: what takes the least time with what is computed along with it. apart: as `ways_of` has
    it. Raises `NoValidChoicesError` where neither can be run."""
    if not calls:
        return {}
    target, function = target_of(context), calls[0].parent_op
    assert isinstance(function, func.FuncOp)
    surroundings, turned = Surroundings(function), frozenset[Operation]()
    if context.options is None or context.options.layout_optimization:
        free = context.options is not None and context.options.channels_last_tf32
        turned = turned_images(function, target, free)
    problems: dict[graph.CallAten, tuple[str, Problem]] = {}
    for call in calls:
        frozen = context.options if is_frozen(call, context) else None
        problem = product_problem(call, surroundings, target, frozen, call in turned)
        problems[call] = problem.canonical(), problem
    distinct = len({key for key, _ in problems.values()})
    most = max(LEAST, min(schedules, (GPU_BUILDS if target.is_gpu else BUILDS) // distinct))
    known: dict[str, list[Candidate]] = {}
    for call, (key, problem) in problems.items():
        if key not in known:
            known[key] = candidates_of(call, problem, most, context, apart)
    asked = [(problem, known[key]) for key, problem in problems.values()]
    return dict(zip(calls, choose_all(asked, context), strict=True))


def candidates_of(
    call: graph.CallAten,
    problem: Problem,
    most: int,
    context: PassContext,
    apart: int | None = None,
) -> list[Candidate]:
    """Who may compute a call: the library first, and of irc's at most about so many."""
    target = target_of(context)
    parts = parts_of(call, target, apart)
    slowed = SLOWED if call.callee not in MATRIX_PRODUCTS and target.is_gpu else math.inf
    ours = own_candidates(problem, target, most, first_own(call, target, apart), parts, slowed)
    split = in_parts_for(call, context, is_packed(call, context))
    if split is not None:
        ours = [split, *ours]
    if not is_frozen(call, context):
        return [Candidate("aten"), *ours]
    return [Candidate("onednn"), *in_panels(problem, call, target, most), *ours[: most // 4]]


def first_own(call: graph.CallAten, target: Target, apart: int | None = None) -> Candidate:
    """irc with the cost model's schedule: on a GPU in as many parts of the depth as take the least
    time."""
    parts = parts_of(call, target, apart)[0]
    return Candidate("irc", _in_parts(parts) if parts > 1 else "")


def parts_of(call: graph.CallAten, target: Target, apart: int | None = None) -> list[int]:
    """In how many parts of the depth irc may sum up a call, those first that take the least time.
    """
    if not target.is_gpu:
        return [1]
    if call.callee in MATRIX_PRODUCTS:
        return own_parts(call, target, apart)
    return window_parts(call, target)


def _in_parts(parts: int) -> str:
    """A schedule whose depth is summed up in parts."""
    return f"#loop.schedule<gpu, split_k = {parts} : i64>"


def is_frozen(call: graph.CallAten, context: PassContext) -> bool:
    """Whether a CPU's library packs a constant weight of a call."""
    options = context.options
    if options is None or not options.freezing or target_of(context).is_gpu:
        return False
    return any(is_constant(v) for v in call.operands)


def is_constant(value: Value) -> bool:
    """Whether a value is a constant, or a permutation of one."""
    return isinstance(unpermuted(value)[0].defining_op, graph.Constant)


def is_packed(call: graph.CallAten, context: PassContext) -> bool:
    """Whether the right factor of a product is a weight that is laid out once, on a CPU."""
    return is_frozen(call, context) and is_constant(call.operands[factors(call)[1]])


def panels_for(target: Target, element: Type) -> Candidate:
    """irc on a weight in panels of as many vectors as its fastest tiles have; of two tiles where
    registers hold whole ones."""
    vectors, rows = panel_vectors(target, target.lanes(f32)), whole_tiles(element, target)
    if rows is not None:
        vectors = max(2 * rows.tile[1] // target.lanes(rows.accumulator), 1)
    return Candidate("irc", f"#loop.schedule<cpu, tile_vectors = {vectors} : i64>")


def in_parts_for(
    call: graph.CallAten, context: PassContext, packed: bool
) -> Candidate | None:
    """irc on factors of f32 that are cut into parts of bf16, where registers of whole tiles take
    these; of a symbolic number of rows from as many on as that is faster for. packed: on a frozen
    weight that is laid out once, of known rows in parts."""
    target, options = target_of(context), context.options
    if call.callee not in MATRIX_PRODUCTS or (options is not None and not options.split_products):
        return None
    dot = split_rows_of(element_of(call))
    if dot is None or not takes_parts(product_sizes(call), element_of(call), target):
        return None
    if free_symbols(product_sizes(call)[-3]):
        return _parts_by_rows(call, target, packed)
    vectors = 2 * dot.tile[1] // target.lanes(dot.accumulator) if packed else 0
    return Candidate("irc", str(parts_schedule(vectors)))


def _parts_by_rows(
    call: graph.CallAten, target: Target, packed: bool
) -> Candidate | None:
    """irc on factors that are cut into parts where there are enough rows for it, on a weight that
    lies as fewer rows read it."""
    sizes, element = product_sizes(call), element_of(call)
    rows = sizes[-3]
    names = free_symbols(rows)
    size = SymbolicSize.of(symbol(next(iter(names))) if len(names) == 1 else rows)

    def pays(values: dict[str, int]) -> bool:
        known = value_at(rows, values)
        if known is None:
            return False
        return multiplies_parts([*sizes[:-3], known, *sizes[-2:]], element, target, packed,
                                cut=False)  # fmt: skip

    least = size.least(pays)
    if least is None:
        return None
    few: dict[str, A.Attribute] = {}
    if packed and fills_panels(sizes[-1], target):
        panels = panels_for(target, element).attribute()
        few = {} if panels is None else panels.entries.as_dict()
    entries = {"size": A.DimAttr(size.dim), "most": A.IntegerAttr(least - 1), **few}
    every = {**parts_schedule().entries.as_dict(), "variants": A.ArrayAttr([A.DictAttr(entries)])}
    return Candidate("irc", str(ScheduleAttr("cpu", A.DictAttr(every))))


def parts_schedule(vectors: int = 0) -> ScheduleAttr:
    """The entries of a product whose factors are cut into parts. vectors: of the panels that a
    frozen weight lies in."""
    entries: dict[str, A.Attribute] = {"products": A.StringAttr("bf16x6")}
    if vectors:
        entries["tile_vectors"] = A.IntegerAttr(vectors)
    return ScheduleAttr("cpu", A.DictAttr(entries))


def product_sizes(call: graph.CallAten) -> list[Dim]:
    """The sizes of a product: the left factor's, and columns."""
    left, right = (call.operands[number].type for number in factors(call))
    assert isinstance(left, TensorType) and isinstance(right, TensorType)
    return [*left.shape, right.shape[-1]]


def element_of(call: graph.CallAten) -> Type:
    """The element of what a call multiplies."""
    return result_type(call).element


def in_panels(
    problem: Problem, call: graph.CallAten, target: Target, most: int
) -> list[Candidate]:
    """irc on a weight in panels. Large ones are laid out in one way."""
    first = panels_for(target, element_of(call))
    types = [unpermuted(v)[0].type for v in call.operands if is_constant(v)]
    if any(estimate(dim_product(type_.shape)) > LARGE for type_ in types):  # type: ignore[attr-defined]
        return [first]
    near = own_candidates(problem, target, most, first)
    return near if near else [first]


def own_candidates(
    problem: Problem,
    target: Target,
    most: int,
    first: Candidate,
    parts: Sequence[int] = (1,),
    slowed: float = math.inf,
) -> list[Candidate]:
    """irc with the cost model's schedule, and with entries near it where its kernel multiplies
    tiles; `most` at all, as the pass `tune` looks around what was chosen. All have the entries of
    the first, as far as they don't say otherwise. parts: of the depth that may be summed up, the
    first one's first. slowed: none, where the model
    says that reading factors in pieces takes so many times longer."""
    if target.is_gpu:  # what it registers isn't loaded for a CPU
        from irc.passes.kernel.gpu.contraction_candidates import slowed_by_pieces
    module = problem.with_candidate(first)
    before, _, _ = problem.pipeline.partition(",loop-to-kernel")
    context = PassContext(target=target, explains=False)
    PassManager.parse(f"{before},schedule").run(module, context)
    entries, known = [Candidate("irc")], first.attribute()
    for op in main_of(module).block.ops:
        if isinstance(op, loop.ComputeOp | loop.GroupOp) and kind_of(op) == "contraction":
            if slowed < math.inf and slowed_by_pieces(op, target) > slowed:
                return []
            place = next((k for k, m in enumerate(members_of(op)) if _multiplies(m)), 0)
            near = [Candidate("irc", c.members[place] if c.members else c.schedule, (), c.expected)
                    for c in candidates_for(op, target)]  # fmt: skip
            splits = [Candidate("irc", _in_parts(count)) for count in parts[1 : 1 + PARTS]]
            ahead = FIRST if parts[0] == 1 else min(FIRST, most // 2)
            entries += [*near[:ahead], *splits, *near[ahead:]]
            products = _says_products(op)
            known = products if known is None else merged(products, known)
    return [_completed(each, first, known) for each in dict.fromkeys(entries)][:most]


def _completed(
    candidate: Candidate, first: Candidate, known: ScheduleAttr | None
) -> Candidate:
    """A candidate with the entries of the first one, or what else is known of all."""
    if not candidate.schedule:
        return first
    changes = merged(known, read_schedule_text(candidate.schedule))
    return Candidate("irc", str(changes), (), candidate.expected)


def _says_products(op: Operation) -> ScheduleAttr | None:
    """The entry that makes a compute or group for a GPU tiles of products, whatever else it says.
    """
    schedule = op.attributes.get("schedule")
    entry = schedule.entries.get("products") if isinstance(schedule, ScheduleAttr) else None
    if entry is None or not isinstance(schedule, ScheduleAttr) or not schedule.is_gpu:
        return None
    return ScheduleAttr("gpu", A.DictAttr({"products": entry}))


def _multiplies(op: Operation) -> bool:
    return isinstance(op, loop.ComputeOp) and isinstance(contraction_of(op), Contraction)


def product_problem(
    call: graph.CallAten,
    surroundings: Surroundings,
    target: Target,
    frozen: Options | None = None,
    innermost: bool = False,
) -> Problem:
    """A call as what is tuned, with what is computed along with it, and operands in eager's
    strides. frozen: the compile's options where its weight is a constant, which is packed.
    innermost: images that the program makes have their channels innermost there,
    on a CPU those that a library gives and reads, too: a GPU's problem decides that by itself."""
    words = {"target": "triton"} if target.is_gpu else {}
    rest = [REST[0], "panel-products"] if frozen else [REST[0]]
    if frozen:
        words |= {"freezing": "true", "epilogue_fusion": str(frozen.epilogue_fusion).lower()}
    told = "{" + " ".join(f"{name}={value}" for name, value in words.items()) + "}"
    rest += [stage + (told if words else "") for stage in REST[1:]]
    pipeline = ",".join(rest)
    around = surroundings.of(call, frozen is not None)
    asked = innermost_strides(call, False) if innermost and not target.is_gpu else {}
    what = described(call, len(around) - 1)
    strides = _strides(call)
    if innermost:
        strides |= {value: A.DimsAttr(order[0]) for value in _made_before(around)
                    if (order := orders_of(value.type)) is not None}  # fmt: skip
    eager = {name: call.attributes[name] for name in asked}
    call.attributes.update(asked)
    try:
        return problem_of(call, target, pipeline, what, "graph", around, strides)
    finally:
        call.attributes.update(eager)


def _made_before(around: Sequence[Operation]) -> list[Value]:
    """What operations read that others of the program make."""
    values = dict.fromkeys(value for op in around for value in op.operands)
    inside = set(around)
    return [v for v in values if v.defining_op is not None and v.defining_op not in inside]


def _strides(call: graph.CallAten) -> dict[Value, A.DimsAttr]:
    """The strides of the call's operands, and of the program's arguments, as far as they are known.
    """
    strides: dict[Value, A.DimsAttr] = {}
    function = call.parent_op
    assert isinstance(function, func.FuncOp)
    for position, argument in enumerate(function.block.arguments):
        entry = argument_entry(function, position, "strides")
        if isinstance(entry, A.DimsAttr):
            strides[argument] = entry
    tensors = [v for v in call.operands if isinstance(v.type, TensorType)]
    for value, entry in zip(tensors, call.operand_strides or (), strict=False):
        if isinstance(entry, A.DimsAttr):
            strides[value] = entry
    return strides


def described(call: graph.CallAten, more: int = 0) -> str:
    """A call for people, and how many operations around it: mm f32 64x32, 32x48 and 3 around it."""
    types = [v.type for v in call.operands if isinstance(v.type, TensorType)]
    sizes = ", ".join("x".join(map(str, type_.shape)) for type_ in types)
    around = f" and {more} around it" if more else ""
    return f"{call.callee.split('.')[1]} {types[0].element} {sizes}{around}"


__all__ = ["described", "element_of", "fastest", "in_parts_for", "is_frozen", "is_packed",
           "own_candidates", "panels_for", "parts_schedule", "product_problem",
           "product_sizes"]  # fmt: skip
