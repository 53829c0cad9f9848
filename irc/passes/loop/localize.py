"""The pass `localize`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irc.dialects import func, loop
from irc.ir import attributes as A
from irc.ir.core import Block, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.passes.common.bodies import SEGMENTS, clean_block


@register_pass
class Localize(Pass):
    """Drops what nobody outside reads: results of groups, and outputs of computes.

    An array that only members of its group read is not stored any more: it lives for one point
    of the shared axes. Remarks: who needs an array that members read and that is stored too.

    Before:
        %a, %b = loop.group (i0: 4) { ... loop.yield %m, %n }      // %a is not used
    After:
        %b = loop.group (i0: 4) { ... loop.yield %n }
    """

    name = "localize"
    summary = "drop results of groups and outputs of computes that nobody reads"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        context.count("dropped", localize_block(op.regions[0].blocks[0]))
        for group in op.walk() if context.explains else ():
            if isinstance(group, loop.GroupOp):
                for member, reason in stored_anyway(group):
                    context.remark(f"is stored, although its group reads it: {reason}", member)


def localize_block(block: Block) -> int:
    """Drop unused results of the computes and groups of a block, last first; how many went."""
    dropped = 0
    for op in block.reversed_ops:
        if not isinstance(op, loop.ComputeOp | loop.GroupOp):
            continue
        if not any(r.has_uses for r in op.results):
            dropped += len(op.results)
            op.erase()
            continue
        if isinstance(op, loop.GroupOp):
            dropped += localize_group(op)
        else:
            dropped += _drop_outputs(op)
    return dropped


def localize_group(group: loop.GroupOp) -> int:
    """Drop unused results of a group and of its members; how many went."""
    terminator = group.yield_op
    keep = [r.has_uses for r in group.results]
    dropped = keep.count(False)
    if dropped:
        stored = [v for v, k in zip(terminator.operands, keep, strict=True) if k]
        terminator.operands = stored
        terminator.attributes[SEGMENTS] = A.DenseIntsAttr((len(stored), 0, 0))
        _with_results(group, keep, group.attributes)
    return dropped + localize_block(terminator.parent)  # type: ignore[arg-type]


def stored_anyway(group: loop.GroupOp) -> Iterator[tuple[Operation, str]]:
    """The members of a group that other members read and that are stored too, with the reason."""
    for value, result in zip(group.yield_op.values, group.results, strict=True):
        member = value.defining_op
        if member is None or all(user is group.yield_op for user in value.users):
            continue
        names = dict.fromkeys(_reader_name(user) for user in result.users)
        yield member, f"{' and '.join(names)} {'need' if len(names) > 1 else 'needs'} the array"


def _reader_name(user: Operation) -> str:
    """What needs an array, as a remark says it."""
    if isinstance(user, func.ReturnOp):
        return "the caller"
    if isinstance(user, loop.ReadOp | loop.YieldOp):
        return "a compute outside of it"
    return str(user.attributes.get("callee", user.name)).strip('"')


def _drop_outputs(op: loop.ComputeOp) -> int:
    outputs = op.output_list
    live = [any(r.has_uses for r in op.results_of(k)) for k in range(len(outputs))]
    # A scatter's operands are shared between its outputs: it stays whole.
    if all(live) or any(o.kind == "scatter" for o in outputs):
        return 0
    keep = [live[k] for k, o in enumerate(outputs) for _ in range(o.result_count)]
    terminator = op.yield_op
    values = [v for v, k in zip(terminator.values, live, strict=True) if k]
    terminator.operands = values
    terminator.attributes[SEGMENTS] = A.DenseIntsAttr((len(values), 0, 0))
    attributes = dict(op.attributes)
    attributes["outputs"] = A.ArrayAttr([o for o, k in zip(outputs, live, strict=True) if k])
    clean_block(op.block)
    _with_results(op, keep, attributes)
    return keep.count(False)


def _with_results(op: Operation, keep: Sequence[bool], attributes: dict[str, A.Attribute]) -> None:
    """Replace `op` by one that has only the results to keep, with the same region."""
    region = op.regions[0]
    kept: list[Value] = [r for r, k in zip(op.results, keep, strict=True) if k]
    new = type(op)(op.operands, [r.type for r in kept], attributes, (region,), op.location)
    op.regions = ()
    assert op.parent is not None
    op.parent.insert_before(new, op)
    for old, fresh in zip(kept, new.results, strict=True):
        fresh.name_hint = old.name_hint
        old.replace_all_uses_with(fresh)
    op.erase()
