"""The pass `hoist-columns`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from irc.analysis.cost import USUAL, op_cost
from irc.dialects import arith, kernel
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.traits import Pure
from irc.ir.types import FloatType, IntegerType, VectorType, element_bytes, i1, index


@register_pass
class HoistColumns(Pass):
    """Computes once, before a kernel's loop over rows, what depends on the column alone.

    A batch norm over a channels-last image divides by a square root for each element that differs
    by channel only. Such values of at least `min_cost` (in units of about one addition) are kept
    in scratch memory of at most `max_bytes` a kernel; each row loads them. They come from inputs
    that the kernel doesn't write. Only kernels for a cpu change.

    Before:
        kernel.for %row = %begin to %end step %1 {
          kernel.for %c = %0 to %64 step %16 {
            %v = kernel.load %variance[%c] : vector<16xf32>
            %r = math.rsqrt %v : vector<16xf32>
            ... arith.mulf %x, %r ... } }
    After:
        %s = kernel.scratch {count = 64 : i64} : !kernel.ptr<f32>
        %any = arith.cmpi slt, %begin, %end : index
        kernel.if %any { kernel.for %c = %0 to %64 step %16 {
          ... kernel.store %r, %s[%c] ... } }
        kernel.for %row = %begin to %end step %1 {
          kernel.for %c = %0 to %64 step %16 {
            %r = kernel.load %s[%c] : vector<16xf32>
            ... arith.mulf %x, %r ... } }
    """

    name = "hoist-columns"
    summary = "compute what differs by column only once for all rows of a kernel"
    anchor = "kernel.func"
    min_cost: int = USUAL.division
    max_bytes: int = 32_768
    min_rows: int = 4

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, kernel.KernelFuncOp)
        grid = op.grid
        if op.is_gpu or (isinstance(grid, int) and grid < self.min_rows):
            return
        room = self.max_bytes
        for rows in [o for o in op.block.ops if isinstance(o, kernel.ForOp)]:
            for block in list(blocks_in(rows)):
                found = _Columns(op, rows, block, self.min_cost).find()
                needed = found.bytes_needed if found is not None else 0
                if found is None or not needed:
                    continue
                if needed > room:
                    context.remark(f"values of a column take {needed} bytes, over max_bytes", rows)
                    continue
                if not context.spend("hoist-columns", rows):
                    continue
                room -= needed
                context.count("hoisted", len(found.chosen))
                hoist(op, rows, found)


@attrs.define
class HoistedValues:
    """What one block of a loop over rows computes anew for each row.

    columns: the loop over columns that the block belongs to; None where it is the rows' own.
    chosen: the values to keep; needed: all operations that they take, in order; count: elements
    that one array of scratch memory needs; arrays: the chosen values of each such array.
    """

    columns: kernel.ForOp | None
    chosen: list[Value]
    needed: list[Operation]
    count: int
    arrays: list[list[Value]]

    @property
    def bytes_needed(self) -> int:
        """The bytes of scratch memory for all arrays."""
        return sum(self.size(array) * element_bytes(element_of(array[0])) for array in self.arrays)

    def size(self, array: list[Value]) -> int:
        """How many elements an array gets."""
        lanes = lanes_of(array[0])
        return self.count * self.scale(lanes) if self.columns is not None else len(array) * lanes

    def scale(self, lanes: int) -> int:
        """How many elements a column gets, so that a step has room for a vector of `lanes`."""
        step = 1 if self.columns is None else constant_of(self.columns.step) or 1
        return -(-lanes // step)


def blocks_in(rows: kernel.ForOp) -> Iterator[Block]:
    """The body of the loop over rows and those of all loops inside it."""
    for op in rows.walk():
        if isinstance(op, kernel.ForOp):
            yield op.block


def element_of(value: Value) -> Type:
    """The element type of a vector, or the type of a scalar."""
    kind = value.type
    return kind.element if isinstance(kind, VectorType) else kind


def lanes_of(value: Value) -> int:
    """How many elements a vector has; 1 for a scalar."""
    kind = value.type
    return int(kind.shape[0]) if isinstance(kind, VectorType) else 1  # type: ignore[arg-type]


def is_storable(value: Value) -> bool:
    """Whether memory keeps a value exactly as it is."""
    element = element_of(value)
    return isinstance(element, FloatType | IntegerType) and element is not i1


def constant_of(value: Value) -> int | None:
    """The integer that a value is known to be."""
    maker = value.defining_op
    if not isinstance(maker, arith.ConstantOp):
        return None
    attribute = maker.attributes["value"]
    return attribute.value if isinstance(attribute, A.IntegerAttr) else None


class _Columns:
    """Looks for the values of one block that don't depend on the row."""

    def __init__(
        self, func: kernel.KernelFuncOp, rows: kernel.ForOp, block: Block, min_cost: int
    ) -> None:
        self.rows, self.block, self.min_cost = rows, block, min_cost
        owner = block.parent_op
        assert isinstance(owner, kernel.ForOp)
        self.columns = None if owner is rows else owner
        self.constant = read_only(func)
        self.known: dict[Value, bool] = {}

    def find(self) -> HoistedValues | None:
        """What to keep; None where there is nothing, or the columns are not counted."""
        count = self.column_count()
        if count is None:
            return None
        same = {op: None for op in self.block.ops if self.is_same_in_all_rows(op)}
        chosen = self.choose(same)
        if not chosen:
            return None
        needed: set[Operation] = set()
        for value in chosen:
            needed |= self.makers(value, same)
        arrays = self.arrays(chosen)
        makers = [op for op in same if op in needed]
        return HoistedValues(self.columns, chosen, makers, count, arrays)

    def column_count(self) -> int | None:
        """The columns, in whole steps, that a row has; 0 for the rows' own block."""
        if self.columns is None:
            return 0
        bounds = [constant_of(v) for v in self.columns._operands[:3]]
        lower, upper, step = bounds
        if lower is None or upper is None or step is None or upper <= lower:
            return None
        return -(-(upper - lower) // step) * step

    def is_same_in_all_rows(self, op: Operation) -> bool:
        """Whether an operation's results depend on the column at most."""
        if len(op.results) != 1:
            return False
        if isinstance(op, kernel.LoadOp | kernel.GatherOp):
            if op.pointer not in self.constant:
                return False
        elif Pure not in op.traits:
            return False
        return all(self.is_same(value) for value in op._operands)

    def is_same(self, value: Value) -> bool:
        """Whether a value is the column, computed from it alone, or made outside of the rows."""
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = self._is_same(value)
        return found

    def _is_same(self, value: Value) -> bool:
        if self.columns is not None and value is self.columns.block.arguments[0]:
            return True
        maker = value.defining_op
        if maker is not None and maker.parent is self.block:
            return self.is_same_in_all_rows(maker)
        place = maker.parent if maker is not None else value.owner  # type: ignore[attr-defined]
        while place is not None:
            if place is self.rows.block:
                return False
            outer = place.parent_op
            place = None if outer is None else outer.parent
        return True

    def choose(self, same: dict[Operation, None]) -> list[Value]:
        """The values that something else needs and that are worth keeping."""
        wanted: list[Value] = [
            op.results[0] for op in same
            if any(user not in same for user in op.results[0].users)
        ]  # fmt: skip
        chosen: dict[Value, None] = {}
        seen: set[Value] = set()
        while wanted:
            value = wanted.pop()
            if value in seen:
                continue
            seen.add(value)
            if sum(map(op_cost, self.makers(value, same))) < self.min_cost:
                continue
            if is_storable(value):
                chosen[value] = None
                continue
            maker = value.defining_op
            assert maker is not None
            wanted += [o for o in maker._operands if o.defining_op in same]
        in_order = [op.results[0] for op in same]
        return [value for value in in_order if value in chosen]

    def makers(self, value: Value, same: dict[Operation, None]) -> set[Operation]:
        """The operations of the block that a value needs, its own among them."""
        found: set[Operation] = set()
        stack = [value.defining_op]
        while stack:
            op = stack.pop()
            if op is not None and op in same and op not in found:
                found.add(op)
                stack += [operand.defining_op for operand in op._operands]
        return found

    def arrays(self, chosen: list[Value]) -> list[list[Value]]:
        """The values by array of scratch memory: in each, as many of one type as a step of the
        columns has places for."""
        step = None if self.columns is None else constant_of(self.columns.step)
        found: list[list[Value]] = []
        open_: dict[Type, list[Value]] = {}
        for value in chosen:
            room = len(chosen) if step is None else max(1, step // lanes_of(value))
            array = open_.get(value.type)
            if array is None or len(array) == room:
                array = open_[value.type] = []
                found.append(array)
            array.append(value)
        return found


def read_only(func: kernel.KernelFuncOp) -> set[Value]:
    """The pointers of a kernel whose memory it doesn't write, under any name."""
    pairs = [*(func.inplace or ()), *(func.initialized or ())]
    written = {*pairs, *(func.outputs or ())}
    return {
        argument for number, argument in enumerate(func.block.arguments)
        if number not in written and isinstance(argument.type, kernel.PointerType)
    }  # fmt: skip


def hoist(func: kernel.KernelFuncOp, rows: kernel.ForOp, found: HoistedValues) -> None:
    """Fill scratch memory before the loop over rows, and load from there in it."""
    top = Builder.at_start(func.block, rows.location)
    pointers = []
    for array in found.arrays:
        count = A.IntegerAttr(found.size(array))
        kind = kernel.PointerType(element_of(array[0]))
        pointers.append(top.insert(kernel.ScratchOp((), (kind,), {"count": count})).results[0])
    _fill(top, rows, found, pointers)
    for array, pointer in zip(found.arrays, pointers, strict=True):
        for position, value in enumerate(array):
            maker = value.defining_op
            assert maker is not None
            builder = Builder.before(maker)
            builder.location = maker.location
            column = None if found.columns is None else found.columns.block.arguments[0]
            place = _place(builder, top, found, column, position, lanes_of(value))
            load = builder.value(
                kernel.LoadOp, pointer, place, None, None, result_types=(value.type,)
            )
            load.name_hint = value.name_hint
            value.replace_all_uses_with(load)
    for op in reversed(found.needed):
        if not op.results[0].has_uses:
            op.erase()


def _place(
    builder: Builder,
    top: Builder,
    found: HoistedValues,
    column: Value | None,
    position: int,
    lanes: int,
) -> Value:
    """Where in its array of scratch memory the value number `position` of a column is."""
    if found.columns is None or column is None:
        return _number(top, position * lanes)
    scale = found.scale(lanes)
    shift = position * lanes - scale * (constant_of(found.columns.lower) or 0)
    if scale != 1:
        by = _number(top, scale)
        column = builder.insert(arith.MulIOp((column, by), (index,))).results[0]
    if shift == 0:
        return column
    return builder.insert(arith.AddIOp((column, _number(top, shift)), (index,))).results[0]


def _number(top: Builder, number: int) -> Value:
    value = A.IntegerAttr(number, index)
    return top.insert(arith.ConstantOp((), (index,), {"value": value})).results[0]


def _fill(
    top: Builder, rows: kernel.ForOp, found: HoistedValues, pointers: Sequence[Value]
) -> None:
    """Compute what is kept, if there is any row."""
    before = Builder.before(rows)
    before.location = rows.location
    predicate = {"predicate": A.StringAttr("slt")}
    some = before.insert(arith.CmpIOp((rows.lower, rows.upper), (i1,), predicate)).results[0]
    body, nothing = Block(), Block()
    before.insert(kernel.IfOp((some,), (), {}, (Region([body]), Region([nothing])), rows.location))
    mapping: dict[Value, Value] = {}
    inner, column = body, None
    if found.columns is not None:
        inner = Block((index,))
        column = mapping[found.columns.block.arguments[0]] = inner.arguments[0]
        bounds = found.columns._operands[:3]
        body.append(kernel.ForOp(bounds, (), {}, (Region([inner]),), found.columns.location))
    for op in found.needed:
        inner.append(op.clone(mapping))
    builder = Builder.at_end(inner)
    for array, pointer in zip(found.arrays, pointers, strict=True):
        for position, value in enumerate(array):
            builder.location = value.defining_op.location  # type: ignore[union-attr]
            place = _place(builder, top, found, column, position, lanes_of(value))
            builder.create(kernel.StoreOp, mapping[value], pointer, place, None)
    for block in {inner: None, body: None, nothing: None}:
        block.append(kernel.KernelYieldOp((), ()))
