"""What well-formed products of matrices are, in kernels."""

from __future__ import annotations

from typing import Any

from irc.dialects.kernel import ops
from irc.dialects.kernel.dots import DOTS, LANE_DOTS, dot_of, rows_of
from irc.ir.core import BlockArgument, Region, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.hooks import verifies
from irc.ir.types import IntegerType, VectorType, f32, index


@verifies(ops.DotOp)
def verify_dot(op: Any) -> None:
    """Shapes and elements of a dot, and that its target has it. Raises InvalidIR."""
    left, right, total = (v.type for v in (op.left, op.right, op.accumulator))
    if op.total.type is not total:
        op.fail(f"gives {op.total.type}, not {total} as its accumulator")
    if any(len(t.shape) != 2 for t in (left, right, total)):
        op.fail(f"multiplies {left} and {right} into {total}, not tiles with two dimensions")
    (m, k), (depth, n) = left.shape, right.shape
    if k != depth or total.shape != (m, n):
        op.fail(f"multiplies {left} and {right} into {total}: their sizes don't fit")
    if left.element is not right.element:
        op.fail(f"multiplies {left.element} and {right.element}, which are to be one type")
    if op.precision != "ieee" and left.element is not f32:
        op.fail(f"precision {op.precision} is of factors of f32, not {left.element}")
    _check_dot(op, (m, n, k), left, total)


def _check_dot(op: Any, sizes: tuple[int, ...], left: VectorType, total: VectorType) -> None:
    around = op.parent_op
    while around is not None and not isinstance(around, ops.KernelFuncOp):
        around = around.parent_op
    if around is None or around.target not in DOTS:
        return
    dot = dot_of(around.target, left.element)
    if dot is None:
        raise InvalidIR(f"a {around.target} multiplies no tiles of {left.element}", op=op)
    if total.element is not dot.accumulator:
        op.fail(f"sums products of {left.element} up in {dot.accumulator}, not {total.element}")
    if any(size < least for size, least in zip(sizes, dot.least, strict=True)):
        op.fail(f"multiplies tiles of at least {_sizes(dot.least)} of {left.element} (m x n x k), "
                f"not {_sizes(sizes)}")  # fmt: skip


def _sizes(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


@verifies(ops.DotRowsOp)
def verify_dot_rows(op: Any) -> None:
    """Elements and sizes of a product of rows and a panel, and where it writes. Raises
    InvalidIR."""
    element = op.left.type.element
    dot = rows_of(element)
    if dot is None:
        raise InvalidIR(f"no cpu multiplies rows of {element}", op=op)
    if op.right.type.element is not element or op.sums.type.element is not dot.accumulator:
        op.fail(f"multiplies {op.left.type} and {op.right.type} into {op.sums.type}, where a cpu "
                f"sums products of {element} up in {dot.accumulator}")  # fmt: skip
    if len(op.apart) not in (0, 2):
        op.fail(f"has {len(op.apart)} distances between parts, not one for each factor, or none")
    rows, columns, depth = dot.tile
    if op.tiles not in (1, 2) or op.columns not in (columns, 2 * columns):
        op.fail(f"multiplies {op.tiles} tiles of rows and a panel of {op.columns} columns, not one "
                f"or two tiles and {columns} or {2 * columns} columns")  # fmt: skip
    count, most = _known(op.rows), rows * op.tiles
    if count is not None and not most - rows < count <= most:
        op.fail(f"multiplies {count} rows in {op.tiles} tiles of {rows}")
    terms = _known(op.depth)
    if terms is not None and (terms < 0 or terms % depth):
        op.fail(f"sums {terms} terms up, not a multiple of {depth}")
    room, needed = op.sums.defining_op, (most if count is None else count) * op.columns
    if not isinstance(room, ops.ScratchOp) or room.count < needed:
        op.fail(f"its sums need a kernel.scratch of {needed} elements")
    for factor in (op.left, op.right):
        if not isinstance(factor, BlockArgument) and not _is_scratch(factor):
            op.fail("its factors are neither arguments of the kernel nor kernel.scratch")
    if len(op.regions) > 1:
        op.fail(f"has {len(op.regions)} regions, not one of what is done beside it, or none")
    for region in op.regions:
        _verify_beside(op, region)


def _known(value: Any) -> int | None:
    """The number that an index is, if it is a constant."""
    attribute = getattr(value.defining_op, "attributes", {}).get("value")
    return None if attribute is None else int(attribute.value)


def _verify_beside(op: Any, region: Region) -> None:
    """What is done beside a product takes a term and gives nothing."""
    if len(region.blocks) != 1:
        op.fail(f"a body is one block, not {len(region.blocks)}")
    (block,) = region.blocks
    if [argument.type for argument in block.arguments] != [index]:
        op.fail("what is done beside it takes an index")
    last = block.last
    if not isinstance(last, ops.KernelYieldOp) or last.operands:
        op.fail("what is done beside it ends in kernel.yield of nothing")


@verifies(ops.DotLanesOp)
def verify_dot_lanes(op: Any) -> None:
    """Elements and sizes of a product of vectors in groups. Raises InvalidIR."""
    left, right, total = (v.type for v in (op.left, op.right, op.accumulator))
    if op.total.type is not total:
        op.fail(f"gives {op.total.type}, not {total} as its accumulator")
    if left is not right or any(len(t.shape) != 1 for t in (left, total)):
        op.fail(f"multiplies {left} and {right} into {total}, not vectors, of which both factors "
                "have one type")  # fmt: skip
    dots = [dot for dot in LANE_DOTS if dot.element is left.element]
    if not dots:
        raise InvalidIR(f"no cpu multiplies groups of {left.element}", op=op)
    dot = dots[0]
    if total.element is not dot.accumulator or left.shape[0] != dot.group * total.shape[0]:
        op.fail(f"multiplies {left} into {total}, where groups of {dot.group} {left.element} are "
                f"summed up in {dot.accumulator}")  # fmt: skip
    if total.shape[0] < 4 or total.shape[0] & (total.shape[0] - 1):
        op.fail(f"has {total.shape[0]} sums, not a power of two from 4 on")
    if op.unsigned_left and not isinstance(left.element, IntegerType):
        op.fail(f"{left.element} has a sign (unsigned_left)")


@verifies(ops.InterleaveOp)
def verify_interleave(op: Any) -> None:
    """The types of vectors whose lanes take turns. Raises InvalidIR."""
    types = [source.type for source in op.sources]
    known = isinstance(types[0], VectorType) and len(types[0].shape) == 1 if types else False
    if not known or len(set(types)) != 1:
        op.fail(f"interleaves {', '.join(map(str, types)) or 'nothing'}, not vectors of one type")
    first = types[0]
    if op.interleaved.type is not VectorType((len(types) * first.shape[0],), first.element):
        op.fail(f"gives {op.interleaved.type}, not the lanes of {len(types)} {first}")


def _is_scratch(value: Value) -> bool:
    return isinstance(value.defining_op, ops.ScratchOp)
