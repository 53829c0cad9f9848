"""The pass `inline-computes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import cast

from irc.analysis.contraction import follows_tiles, tiled
from irc.analysis.cost import class_of, moved, told, work
from irc.analysis.loop import array_bytes, is_map, points
from irc.analysis.tile_cost import ROW
from irc.dialects import arith, loop
from irc.ir.attributes import Type
from irc.ir.core import Block, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.fuel import NO_FUEL
from irc.ir.symbols import Dim, free_symbols, substitute
from irc.ir.traits import Terminator
from irc.ir.types import TensorType, element_bytes
from irc.passes.common.bodies import axis, clean_block, extents_of
from irc.passes.common.substitution import substitute_read
from irc.passes.loop.demand import drop_masks, drop_selects
from irc.passes.loop.evaluations import (
    adjacent_axis,
    depth_of,
    evaluated_points,
    is_quotient,
    reads_across,
    repeated_axes,
    run_bytes,
)
from irc.passes.loop.once import (
    axes_that_matter,
    costs_more_than_a_load,
    inlined_by,
    narrowed,
)
from irc.passes.loop.positions import (
    Known,
    fold_scatters,
    is_chosen_position,
    map_position,
    position_folds,
)
from irc.passes.loop.proven_checks import drop_proven_checks
from irc.passes.loop.quotients import fold_quotient
from irc.passes.loop.summary import Summary
from irc.target import Target, target_of
from irc.target.costs import Cost

ONCE = "it differs by column only, and is computed once for its reader"
EPILOGUE = "it is computed with the sums of a contraction, whose kernel stores it instead of these"
#: How many maps behind each other are looked through, for who reads sums and of which these are.
_FAR = 8
TURNED = "it lays elements out that its readers would gather again and again"
NEEDED = "its array is needed anyway, by a result or by something else than a compute"


@register_pass
class InlineComputes(Pass):
    """Substitutes maps into the computes that read them.

    A map is inlined when it is a plain view, or when that takes less time (`irc.analysis.cost`):
    its readers evaluate it again, and read what it reads, but nothing stores its array or loads it.
    All its readers inline it or none does, unless it is a plain view. On a cpu a small map that one
    of them would evaluate again and again is left for that one to compute once (`group-computes`);
    where it differs along some of its axes only, that is a new map over these. On a GPU a map that
    only widens floats is always inlined, so that the narrow ones are stored. What narrows sums of
    a contraction's tiles stays with them where their readers are computed with those of another.

    Before:
        %a = loop.compute par(i: 4) -> map { %x = loop.read %s[i] ... %e = math.exp %x ... }
        %b = loop.compute red(i: 4) -> reduce(sum, f32) { %r = loop.read %a[i] ... }
    After:
        %b = loop.compute red(i: 4) -> reduce(sum, f32) {
          %x = loop.read %s[i] ... %e = math.exp %x ... }
    """

    name = "inline-computes"
    summary = "substitute cheap and singly read maps into their readers"
    anchor = "func.func"
    asks_target = True
    max_ops: int = 256
    max_reads: int = 48

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        chooser = _Chooser(self, block, target_of(context), context.explains)
        chosen = chooser.choose(context)
        inlined = 0
        for outer in block.reversed_ops:
            if not isinstance(outer, loop.ComputeOp):
                continue
            inlines = outer in chosen or outer in chooser.once
            if inlines and not any(r.has_uses for r in outer.results):
                outer.erase()
                continue
            inlined += inline_into(outer, chosen, chooser.once, chooser.near_bytes)
            fold_scatters(outer, extents_of(outer))
        context.count("inlined reads", inlined)
        context.count("proven checks", drop_proven_checks(block))


class _Chooser:
    """Decides which maps are inlined, producers first."""

    def __init__(
        self, options: InlineComputes, block: Block, target: Target, explains: bool
    ) -> None:
        self.options, self.explains = options, explains
        self.block = block
        self.target, self.near_bytes = target, target.processor.near_bytes
        self.chosen: dict[Operation, None] = {}
        # The maps that are left for their readers to compute once, with those that inline them.
        self.once: dict[Operation | None, set[Operation]] = {}
        # The axes of maps along which what they make differs, as far as that was asked.
        self.matter: dict[Operation, frozenset[str]] = {}
        self.summaries: dict[Operation, Summary] = {}
        # The index expressions that maps are, as far as that was asked.
        self.positions: dict[Operation, Known] = {}
        self.numbers = {op: number for number, op in enumerate(block.ops)}
        # The costs before and after that the last decision compared, if any.
        self.weighed: tuple[Cost, Cost] | None = None

    def choose(self, context: PassContext) -> dict[Operation, None]:
        """The maps to inline; a remark says of each other map that computes read why it stays."""
        for op in self.block.ops:
            if isinstance(op, loop.ComputeOp):
                self.summaries[op] = self.summarize(op)
                if not is_map(op) or not compute_readers(op):
                    continue
                reason = self.refusal(op)
                if reason is None and not context.spend("inline-computes", op):
                    reason = NO_FUEL
                if reason is None:
                    self.chosen[op] = None
                if context.explains:
                    self.remark(op, reason, context)
        return self.chosen

    def remark(self, op: loop.ComputeOp, reason: str | None, context: PassContext) -> None:
        """Tell a decision, with the times before and after where it was made by them."""
        times = f": {told(self.target, *self.weighed)}" if self.weighed is not None else ""
        if reason is not None:
            context.remark(f"is not inlined into its readers: {reason}{times}", op)
        elif times:
            context.remark(f"is inlined{times}", op)

    def summarize(self, op: loop.ComputeOp) -> Summary:
        total = Summary()
        for inner in op.block.ops:
            if isinstance(inner, loop.ReadOp):
                source = inner.source
                maker = source.defining_op
                total.masked |= inner.mask is not None
                if maker is not None and maker in self.chosen:
                    total.inline(inner, self.summaries[maker], self.is_apart(inner))
                    continue
                total.reads += 1
                total.sources[source] = array_bytes(source.type)
                total.indirect |= bool(inner.positions)
            elif Terminator not in inner.traits:
                total.work += class_of(inner)
            total.ops += 1
        total.settle()
        return total

    def is_apart(self, read: loop.ReadOp) -> bool:
        """Whether what a read evaluates isn't what another read at its place does: it is looked
        up, or not always read; on a CPU its decisions were measured with all counted so."""
        return bool(read.positions) or read.mask is not None or not self.target.is_gpu

    def refusal(self, op: loop.ComputeOp) -> str | None:
        """Why a map that computes read is not inlined; None when it is."""
        self.weighed = None
        if self.only_widens(op):
            return None
        external = is_needed(op)
        readers = list(self.readers(op))
        summary = self.summaries[op]
        if summary.ops > self.options.max_ops:
            return f"{summary.ops} operations, over max_ops ({self.options.max_ops})"
        if summary.reads > self.options.max_reads:
            return f"{summary.reads} reads, over max_reads ({self.options.max_reads})"
        if summary.is_view:
            if self.rounds_sums(op, readers, summary):
                return EPILOGUE
            return TURNED if self.is_turned(op, readers) else None
        if not external and map_position(op, self.positions) is not None:
            return None  # by which a reader knows where it reads
        if not external and self.is_left_alone(op):
            return ONCE
        summary = self.summaries[op]
        if summary.is_view:
            return None
        if follows_tiles(op, self.target, summary.sources):
            if not all(self.continues(op, read) for read in readers):
                return EPILOGUE
            if self.shares_reader(op, readers, summary):
                return EPILOGUE
        own = points(a.extent for a in op.axis_list)
        evaluations = sum(evaluated_points(read, self.target) for read in readers)
        if external and summary.reads:
            return NEEDED
        if not external and not summary.reads and is_chosen_position(op):
            return None  # by which it may
        if summary.indirect and len(readers) > 1:
            return "each of its readers would look its positions up"
        divided = self.divisions(readers)
        if evaluations <= own and not external and divided == Cost() and not self.explains:
            return None  # whatever anything costs
        if not own:
            return None  # no point of it is ever evaluated, however many its readers have
        for before, after in self.choices(
            op, readers, summary, own, evaluations, external, divided
        ):
            self.weighed = before, after
            if self.target.operations(after) > self.target.operations(before):
                if external:
                    return NEEDED
                return (f"{len(readers)} reads would evaluate it {evaluations / own:.3g} times at "
                        "each point")  # fmt: skip
        return None

    def rounds_sums(
        self, op: loop.ComputeOp, readers: Sequence[loop.ReadOp], summary: Summary
    ) -> bool:
        """Whether a map does nothing but round the sums of a contraction's tiles for a contraction
        that multiplies them on a GPU, or for a map over more points, as one that puts them between
        others is: what is stored between both is narrow then."""
        types = [value.type for value in (op.results[0], *summary.sources)]
        sizes = [element_bytes(each.element) for each in types if isinstance(each, TensorType)]
        if not self.target.is_gpu or min(sizes[1:], default=0) <= sizes[0]:
            return False
        if not follows_tiles(op, self.target, summary.sources):
            return False
        left = [read.parent_op for read in readers if not self.continues(op, read)]
        seen = set[Operation]()
        while left:  # maybe by way of maps
            reader = left.pop()
            if tiled(reader, self.target) is not None:
                return True
            if isinstance(reader, loop.ComputeOp) and reader not in seen and is_map(reader):
                if _points(reader) > _points(op):
                    return True
                seen.add(reader)
                left += [read.parent_op for read in self.readers(reader)]
        return False

    def shares_reader(
        self, op: loop.ComputeOp, readers: Sequence[loop.ReadOp], summary: Summary
    ) -> bool:
        """Whether a map that narrows sums of a contraction's tiles has a reader that is computed
        with those of a later one: a kernel has tiles of one contraction, so that what comes of
        these is stored in any case, and half as much if it is narrow."""
        own = next(s for s in summary.sources if tiled(s.defining_op, self.target) is not None)
        sums, narrow = (element_bytes(each.type.element)  # type: ignore[attr-defined]
                        for each in (own, op.results[0]))  # fmt: skip
        maker, left = own.defining_op, [op]
        seen: set[Operation] = {op}
        if narrow >= sums or maker is None:
            return False
        for _ in range(_FAR):
            every = (reader for each in left for reader in self.all_that_continue(each))
            left = list(dict.fromkeys(every))
            for reader in left:
                others = self.sums_of(reader, seen)
                if any(self.numbers[other] > self.numbers[maker] for other in others):
                    return True
                if any(isinstance(inner, arith.TruncFOp) for inner in reader.block.ops):
                    return False  # the last one that narrows it is asked
        return False

    def all_that_continue(self, op: loop.ComputeOp) -> list[loop.ComputeOp]:
        """The maps over a map's points that read it; none if anything else does."""
        reads = list(self.readers(op))
        if not all(self.continues(op, read) for read in reads):
            return []
        return [cast(loop.ComputeOp, read.parent_op) for read in reads]

    def sums_of(self, op: loop.ComputeOp, seen: set[Operation]) -> Iterator[Operation]:
        """The contractions whose kernels multiply tiles that a map's elements come of, by way of
        maps that were not `seen`, as far as that is looked at."""
        left = [op]
        for _ in range(_FAR):
            makers = [read.source.defining_op for each in left for read in each.reads]
            left = []
            for maker in makers:
                if not isinstance(maker, loop.ComputeOp) or maker in seen:
                    continue
                if tiled(maker, self.target) is not None:
                    yield maker
                elif is_map(maker):
                    seen.add(maker)
                    left.append(maker)

    def is_turned(self, op: loop.ComputeOp, readers: list[loop.ReadOp]) -> bool:
        """Whether a map only lays elements out along its innermost axis that lie apart, for readers
        that read each of them many times: vectors then load what they would gather. On a GPU these
        are products' tiles, which get what lies side by side in pieces that memory moves at once,
        and what is laid out lies in smaller ones (a 3x3 window's taps)."""
        if not op.axis_list:
            return False
        own = points(a.extent for a in op.axis_list)
        reads = [r for r in op.block.ops if isinstance(r, loop.ReadOp)]
        across = any(reads_across(r, op) for r in reads)
        if not across or adjacent_axis(op) != len(op.axis_list) - 1:
            return False
        if self.target.is_gpu:
            products = all(tiled(r.parent_op, self.target) is not None for r in readers)
            return products and all(run_bytes(r) < ROW for r in reads)
        return all(
            tiled(read.parent_op, self.target) is None
            and evaluated_points(read, self.target) >= self.target.features.turned_reads * own
            for read in readers
        )

    def only_widens(self, op: Operation) -> bool:
        """Whether a map for computes makes of each element a wider float: on a GPU each of them
        does so by itself, and narrow elements are stored instead. Residuals of bf16 that a norm
        of f32 reads were stored as f32 (GPT-2's of 4096 x 768: 13.8 us a kernel)."""
        if not self.target.is_gpu or not is_map(op) or len(op.results) != 1 or is_needed(op):
            return False
        assert isinstance(op, loop.ComputeOp)
        bodies = [type(inner) for inner in op.block.ops]
        if bodies != [loop.ReadOp, arith.ExtFOp, loop.YieldOp]:
            return False
        read = op.block.first
        assert isinstance(read, loop.ReadOp)
        own = tuple(axis(k) for k in range(len(op.axis_list)))
        return read.mask is None and not read.positions and tuple(read.indices) == own

    def readers(self, op: Operation) -> Iterator[loop.ReadOp]:
        """The reads of a map's elements by computes, also of those that are only widened."""
        for read in compute_readers(op):
            reader = read.parent_op
            assert reader is not None
            if self.only_widens(reader) and compute_readers(reader):
                yield from self.readers(reader)
            else:
                yield read

    def continues(self, op: loop.ComputeOp, read: loop.ReadOp) -> bool:
        """Whether the reader of a map is computed with the same sums, too: it is a map over the
        same points, in any order of axes (`rows-first` gives it that of the sums)."""
        reader = read.parent_op
        assert isinstance(reader, loop.ComputeOp)
        extent_of = {axis(k): a.extent for k, a in enumerate(reader.axis_list)}
        indices = tuple(read.indices)
        return (
            is_map(reader)
            and len(set(indices)) == len(indices) == len(extent_of)
            and [extent_of.get(dim) for dim in indices] == [a.extent for a in op.axis_list]
        )

    def is_left_alone(self, op: loop.ComputeOp) -> bool:
        """Whether a map is left for its reader to compute once. Where not all of its axes matter,
        that is a new map over those that do, and this one becomes a view of it."""
        classes = self.summaries[op].work
        if not costs_more_than_a_load(classes, self.target):
            return False
        names = axes_that_matter(op, self.matter)
        inside = inlined_by(op, names, classes, self.target)
        if inside is None:
            return False
        if len(names) == len(op.axis_list):
            self.once[op] = inside
            return True
        fewer = narrowed(op, names)
        self.once[fewer] = inside
        self.summaries[fewer], self.summaries[op] = self.summaries[op], self.summarize(op)
        return False

    def choices(
        self, op: loop.ComputeOp, readers: list[loop.ReadOp], summary: Summary, own: int,
        evaluations: int, external: bool, divided: Cost,
    ) -> Iterator[tuple[Cost, Cost]]:  # fmt: skip
        """What a map costs by itself, and what in its readers: first where these stay kernels of
        their own, then where they share one with it, and its elements pass in cache.

        Which of them it will be is not known yet; inlining has to pay either way.
        """
        speeds, more = self.target.processor, max(0, evaluations - own)
        array = op.results[0].type
        size, each = array_bytes(array), _element_bytes(array)
        makers = {source.defining_op for source in summary.sources} - self.once.keys()
        finishes = any(isinstance(maker, loop.ComputeOp) for maker in makers)
        again = summary.work
        if more and len(readers) == 1 and tiled(readers[0].parent_op, self.target) is None:
            # A GPU waits for memory while it computes again what differs by column only.
            spare = self.target.is_gpu and size <= self.near_bytes and not finishes
            again = 0 if spare else self.work_along(op, repeated_axes(readers[0], op))
        # What is read from behind the cache each time that all points are evaluated.
        far = 0
        for source, bytes_ in summary.sources.items():
            if bytes_ > self.near_bytes:
                far += min(bytes_, own * _element_bytes(source.type))
        alone = Cost(alone=self.across(op) * more if more else 0)
        after = work(summary.work, min(own, evaluations)) + work(again, more) + alone + divided
        before = Cost() if external else work(summary.work, own)
        stored = 0 if external else 2 * own
        # One of several shares a kernel with it, if that is more than positions.
        launches = int(not external and (len(readers) == 1 or not summary.reads))
        yield (
            before + moved(stored + evaluations, each, size, speeds)
            + Cost(far=far, launches=launches),
            after + Cost(far=far * evaluations // max(own, 1)),
        )  # fmt: skip
        if summary.reads and more and (finishes or len(readers) > 1):
            yield before + Cost(near=stored + evaluations), after

    def divisions(self, readers: Sequence[loop.ReadOp]) -> Cost:
        """What finding places takes that are quotients and remainders, where a map is inlined."""
        total = Cost()
        for read in readers:
            quotients = sum(map(is_quotient, read.indices))
            if quotients and not self.target.is_gpu and (apart := self.divided(read)):
                times = evaluated_points(read, self.target)
                total += Cost(alone=apart * times, divisions=quotients * times)
        return total

    def divided(self, read: loop.ReadOp) -> int:
        """How many reads of a map are at places that don't follow each other where it is a factor
        of tiles on a CPU: its axes are quotients and remainders of the depth, which lanes go
        along. A view may stand between."""
        reader, maker = read.parent_op, read.source.defining_op
        assert isinstance(reader, loop.ComputeOp) and isinstance(maker, loop.ComputeOp)
        depth = depth_of(reader) if tiled(reader, self.target) is not None else set()
        if is_map(reader) and [type(o) for o in reader.block.ops][:-1] == [loop.ReadOp]:
            for factor in compute_readers(reader):
                product = factor.parent_op
                if isinstance(product, loop.ComputeOp) and tiled(product, self.target) is not None:
                    pairs = zip(reader.axis_list, factor.indices, strict=True)
                    depth |= {a.name for a, d in pairs if depth_of(product) & free_symbols(d)}
        pairs = zip(maker.axis_list, read.indices, strict=True)
        axes = {a.name for a, d in pairs if is_quotient(d) and depth & free_symbols(d)}
        return self.reads_along(maker, axes) if axes else 0

    def reads_along(self, op: loop.ComputeOp, names: set[str]) -> int:
        """The reads, with everything that is inlined, of which some index has one of the axes."""
        count = 0
        for inner in op.block.ops:
            if isinstance(inner, loop.ReadOp):
                along = [bool(names & free_symbols(dim)) for dim in inner.indices]
                maker = inner.source.defining_op
                if maker in self.chosen:
                    assert isinstance(maker, loop.ComputeOp)
                    pairs = zip(maker.axis_list, along, strict=True)
                    count += self.reads_along(maker, {a.name for a, varies in pairs if varies})
                else:
                    count += any(along)
        return count

    def across(self, op: loop.ComputeOp) -> int:
        """How many reads, with everything that is inlined, step over memory along the innermost
        axis of their map, in arrays that no cache keeps."""
        count = 0
        for inner in op.block.ops:
            if isinstance(inner, loop.ReadOp):
                maker = inner.source.defining_op
                if maker in self.chosen:
                    assert isinstance(maker, loop.ComputeOp)
                    count += self.across(maker)
                elif array_bytes(inner.source.type) > self.near_bytes:
                    count += reads_across(inner, op, self.target.is_gpu)
        return count

    def work_along(
        self, op: loop.ComputeOp, names: set[str], places: Mapping[str, Dim] | None = None,
        seen: set[tuple[object, ...]] | None = None,
    ) -> int:  # fmt: skip
        """The operations of what differs along the axes `names` in one evaluation of a
        map, with everything that is inlined into it: the rest is done once for all their points.
        places: what its axes are of the outermost map; seen: what was counted of that already."""
        total, seen = 0, set() if seen is None else seen
        differs: set[Value] = set()
        for inner in op.block.ops:
            if Terminator in inner.traits:
                continue
            dims: tuple[Dim, ...] = ()
            if isinstance(inner, loop.ReadOp):
                dims = tuple(inner.indices)
            elif isinstance(inner, loop.IndexOp):
                dims = (inner.expression,)
            along = any(not names.isdisjoint(free_symbols(d)) for d in dims)
            if not along and differs.isdisjoint(inner.operands):
                continue
            differs.add(inner.results[0])
            maker = inner.source.defining_op if isinstance(inner, loop.ReadOp) else None
            if maker in self.chosen:
                assert isinstance(maker, loop.ComputeOp)
                pairs = list(zip(maker.axis_list, dims, strict=True))
                assert isinstance(inner, loop.ReadOp)
                shifts = not differs.isdisjoint(inner.positions)
                along_it = {a.name for a, d in pairs if shifts or names & free_symbols(d)}
                at = {a.name: substitute(d, places or {}) for a, d in pairs}
                key = (maker, *at.values(), frozenset(along_it))
                if self.is_apart(inner):
                    total += self.work_along(maker, along_it, at)
                elif key not in seen:
                    seen.add(key)
                    total += self.work_along(maker, along_it, at, seen)
            elif not dims:
                total += class_of(inner)
        return total


def _element_bytes(type_: Type) -> int:
    assert isinstance(type_, TensorType)
    return element_bytes(type_.element)


def compute_readers(op: Operation) -> list[loop.ReadOp]:
    """The reads of an operation's results inside other computes."""
    return [
        user
        for result in op.results
        for user in result.users
        if isinstance(user, loop.ReadOp) and user.source is result
    ]


def is_needed(op: Operation) -> bool:
    """Whether more than computes take what an operation makes."""
    return sum(r.use_count for r in op.results) > len(compute_readers(op))


def _points(op: loop.ComputeOp) -> int:
    return points(a.extent for a in op.axis_list)


def inline_into(
    compute: loop.ComputeOp,
    chosen: dict[Operation, None],
    some: Mapping[Operation | None, Set[Operation]],
    near_bytes: int,
) -> int:
    """Substitute the chosen maps into one compute, and those that are for `some` computes if it is
    one of them, and what they read in turn; gives how many reads went. Arrays of up to `near_bytes`
    are read without a mask where that may be."""
    block = compute.block
    extents = extents_of(compute)
    done: dict[tuple[object, ...], Value] = {}
    replaced: dict[Value, Value] = {}
    inlined = 0
    op = block.first
    while op is not None:
        source = op.source.defining_op if isinstance(op, loop.ReadOp) else None
        if isinstance(op, loop.ReadOp) and not op.results[0].has_uses:
            # Nobody wants it any more: expanding it again and again would be exponential.
            dead, op = op, op.next
            dead.erase()
            continue
        if source is None or (source not in chosen and compute not in some.get(source, ())):
            op = op.next
            continue
        assert isinstance(op, loop.ReadOp) and isinstance(source, loop.ComputeOp)
        key = (tuple(op.operands), op.attributes["indices"], op.attributes["operandSegmentSizes"])
        value = done.get(key)
        previous = op.prev
        if value is None:
            value = done[key] = substitute_read(op, source, extents)
        while value in replaced:
            value = replaced[value]
        replaced[op.results[0]] = value
        op.results[0].replace_all_uses_with(value)
        op.erase()
        # What was put in place of the read may read inlined maps itself: look at it next.
        op = previous.next if previous is not None else block.first
        inlined += 1
    if inlined:
        drop_selects(block)
        drop_masks(block, extents, near_bytes)
        folds = position_folds(block, extents)
        clean_block(block, lambda op: folds(op) or fold_quotient(op, block))
    return inlined
