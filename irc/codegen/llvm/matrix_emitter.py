"""Products of rows and panels by registers of whole tiles: AMX.

There are eight tiles, of up to 16 rows of 64 bytes. Four hold sums of 32 rows by 32 columns, two
rows of each factor: a term's tile of 16 rows by 32 terms, or of 16 pairs of terms by 16 columns,
serves two products, and of factors that are cut into parts up to six. How many rows tiles have is
set for a whole kernel when it begins; what has other rows, or as many as are known when it runs,
has settings of its own around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irc.codegen.llvm.kernel_writer import KernelBody, Ref, emits
from irc.dialects.kernel.dots import ROWS, SPLIT_ROWS, rows_of
from irc.ir.core import Region, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import f32

SETTINGS = 64
"""The bytes that say what the tiles are."""
COUNTS = 48
"""Where among them the tiles' numbers of rows begin."""
TILE_ROWS, ROW_BYTES = 16, 64
#: The tiles of sums by number of rows and of columns, of rows, and of columns.
SUMS, LEFT, RIGHT = ((0, 1), (2, 3)), (4, 5), (6, 7)
VECTOR = "<16 x i32>"
LARGEST = 0x7F7F_FFFF
"""The bits of the largest number of f32; an infinity's are the next."""


@emits("kernel.dot_rows")
def dot_rows(body: KernelBody, op: Any) -> None:
    dot = rows_of(op.left.type.element)
    assert dot is not None
    missing = [name for name in dot.sets if name not in body.features.sets]
    if missing:
        raise InvalidIR(f"the target has no {missing[0]}, by which rows of {dot.element} are "
                        "multiplied", op=op)  # fmt: skip
    rows, usual = body.constants.get(op.rows), body.tile_rows
    if usual is None:
        usual = body.tile_rows = rows or TILE_ROWS * int(op.tiles)
        body.allocas += _set_up(body, usual)
    if rows is None:
        _set_up_some(body, op)
    elif rows != usual:
        body.lines += _set_up(body, rows)
    _multiply(body, op, rows or TILE_ROWS * int(op.tiles))
    if rows != usual:
        body.lines += _set_up(body, usual)


def release(body: KernelBody) -> None:
    """Leave the tiles as they were before the kernel: nothing of them is to be saved then."""
    _run(body, "tilerelease")


def _set_up(body: KernelBody, rows: int) -> list[str]:
    """Lines that give the tiles their rows, with all 64 bytes of each."""
    return _configure(body, f"@{_settings(body, rows)}")


def _set_up_some(body: KernelBody, op: Any) -> None:
    """Give the tiles the rows of an operation, of which the last tile has some."""
    first = TILE_ROWS * (int(op.tiles) - 1)
    name, place = _settings(body, first + TILE_ROWS), body.alloca("i8", SETTINGS, SETTINGS)
    whole = body.value(f"load {VECTOR}, ptr @{name}, align {SETTINGS}")
    body.line(f"store {VECTOR} {whole}, ptr {place}, align {SETTINGS}")
    left = body.value(f"trunc i64 {body.value(f'sub nsw i64 {body[op.rows]}, {first}')} to i8")
    last = int(op.tiles) - 1
    for tile in (*SUMS[last], LEFT[last]):
        there = body.value(f"getelementptr i8, ptr {place}, i64 {COUNTS + tile}")
        body.line(f"store i8 {left}, ptr {there}, align 1")
    body.lines += _configure(body, place)


def _configure(body: KernelBody, settings: str) -> list[str]:
    function = body.module.declare("llvm.x86.ldtilecfg", "void", ["ptr"])
    return [f"  call void {function}(ptr {settings})"]


def _settings(body: KernelBody, rows: int) -> str:
    """The name of a constant that says what the tiles are for so many rows."""
    upper, lower = min(rows, TILE_ROWS), max(rows - TILE_ROWS, 0)
    counts = {SUMS[0][0]: upper, SUMS[0][1]: upper, SUMS[1][0]: lower, SUMS[1][1]: lower,
              LEFT[0]: upper, LEFT[1]: lower, RIGHT[0]: TILE_ROWS, RIGHT[1]: TILE_ROWS}  # fmt: skip
    content = bytearray(SETTINGS)
    content[0] = 1
    for tile, count in counts.items():
        if count:
            content[16 + 2 * tile] = ROW_BYTES
            content[COUNTS + tile] = count
    name = f"tiles.{rows}"
    text = "".join(f"\\{byte:02X}" for byte in content)
    body.module.helpers.setdefault(
        name, f'@{name} = private constant [{SETTINGS} x i8] c"{text}", align 64'
    )
    return name


def _run(body: KernelBody, name: str, *operands: tuple[str, Ref]) -> None:
    """An instruction without a result."""
    types = [f"{t} immarg" if t == "i8" else t for t, _ in operands]
    function = body.module.declare(f"llvm.x86.{name}", "void", types)
    body.line(f"call void {function}({', '.join(f'{t} {ref}' for t, ref in operands)})")


class _Panel:
    """The tiles of one product: some rows by the columns of a panel."""

    def __init__(self, body: KernelBody, op: Any, rows: int) -> None:
        self.body, self.op = body, op
        self.across = range(int(op.columns) // TILE_ROWS)
        self.down = range(-(-rows // TILE_ROWS))
        self.squares = [(r, c) for r in self.down for c in self.across]
        step = body.value(f"mul nsw i64 {body[op.left_step]}, 2")
        self.stride, below = str(ROW_BYTES), step
        if not op.in_tiles:
            self.stride, below = step, body.value(f"mul nsw i64 {step}, {TILE_ROWS}")
        # What lies between the terms of a row that follow each other, of which a tile has 32.
        self.passed = TILE_ROWS if op.in_tiles else 1
        lines = [_place(body, op.left, body[op.left_offset])]
        if len(self.down) > 1:
            lines.append(body.value(f"getelementptr i8, ptr {lines[0]}, i64 {below}"))
        panels = [_place(body, op.right, body[op.right_offset])]
        if len(self.across) > 1:
            beside = body.value(f"mul nsw i64 {body[op.right_step]}, 2")
            panels.append(body.value(f"getelementptr i8, ptr {panels[0]}, i64 {beside}"))
        # Where the rows and the columns of each part begin.
        self.lines, self.panels = [lines], [panels]
        for places, value in zip((self.lines, self.panels), op.apart, strict=False):
            distance = body.value(f"mul nsw i64 {body[value]}, 2")
            for _ in range(op.parts - 1):
                more = f", i64 {distance}"
                places.append(
                    [body.value(f"getelementptr i8, ptr {here}{more}") for here in places[-1]]
                )

    def sum_up(self, pairs: Sequence[tuple[int, int]], regions: Sequence[Region] = ()) -> None:
        """Sum all terms of some pairs of parts up in the tiles of sums. regions: what is done
        beside it."""
        body, op = self.body, self.op
        for r, c in self.squares:
            _run(body, "tilezero", ("i8", str(SUMS[r][c])))
        before, label, done = body.block, body.name("terms"), body.name("summed")
        body.branch(body.value(f"icmp slt i64 0, {body[op.depth]}"), label, done)
        body.open(label)
        term, after = f"%{body.name('k')}", f"%{body.name('next')}"
        at = len(body.lines)
        body.line("")
        here = body.value(f"mul nsw i64 {term}, {2 * TILE_ROWS}")
        along = body.value(f"mul nsw i64 {term}, {2 * self.passed}")
        held: tuple[int | None, int | None] = (None, None)
        for pair in pairs:
            left, right = (None if a == b else a for a, b in zip(pair, held, strict=True))
            self._products(left, right, along, here)
            held = pair
        for region in regions:
            body[region.blocks[0].arguments[0]] = term
            body.emit_block(region.blocks[0])
        body.lines[at] = f"  {term} = phi i64 [ 0, %{before} ], [ {after}, %{body.block} ]"
        body.line(f"{after} = add nsw i64 {term}, 32")
        body.branch(body.value(f"icmp slt i64 {after}, {body[op.depth]}"), label, done)
        body.open(done)

    def _products(self, left: int | None, right: int | None, along: Ref, here: Ref) -> None:
        """Of a part of the rows with a part of the columns; None: the part that is loaded."""
        for r, c in self.squares:
            if right is not None and r == 0:
                place = self.body.value(
                    f"getelementptr i8, ptr {self.panels[right][c]}, i64 {here}"
                )
                self._load(RIGHT[c], place, str(ROW_BYTES), "right")
            if left is not None and c == 0:
                line = self.body.value(
                    f"getelementptr i8, ptr {self.lines[left][r]}, i64 {along}"
                )
                self._load(LEFT[r], line, self.stride, "left")
            tiles = (SUMS[r][c], LEFT[r], RIGHT[c])
            _run(self.body, "tdpbf16ps", *(("i8", str(tile)) for tile in tiles))

    def _load(self, tile: int, place: Ref, stride: str, side: str) -> None:
        # "t1": what is loaded is not to drive other lines out of the first-level cache.
        name = "tileloaddt164" if self.op.passing == side else "tileloadd64"
        _run(self.body, name, ("i8", str(tile)), ("ptr", place), ("i64", stride))

    def store(self, room: Ref) -> None:
        """Write the tiles of sums to a room, a row of the panel's columns after the other."""
        body, columns = self.body, int(self.op.columns)
        for r, c in self.squares:
            apart = r * TILE_ROWS * columns * 4 + c * ROW_BYTES
            place = body.value(f"getelementptr i8, ptr {room}, i64 {apart}")
            held = ("i8", str(SUMS[r][c])), ("ptr", place), ("i64", str(columns * 4))
            _run(body, "tilestored64", *held)


def _multiply(body: KernelBody, op: Any, rows: int) -> None:
    panel = _Panel(body, op, rows)
    dot = ROWS[0] if op.parts == 1 else SPLIT_ROWS[f32]
    panel.sum_up(dot.pairs, op.beside)
    panel.store(body[op.sums])
    if op.parts > 1:
        _mend_infinities(panel, rows * int(op.columns), body[op.sums])


def _mend_infinities(panel: _Panel, count: int, room: Ref) -> None:
    """Where sums of parts are no finite numbers, put those of the first parts in their place."""
    body = panel.body
    firsts = body.alloca("float", count, 64)
    largest = body.module.declare("llvm.umax.v16i32", VECTOR, [VECTOR, VECTOR])

    def most(place: Ref, before: Ref) -> Ref:
        bits = _magnitude(body, _loaded(body, room, place))
        return body.value(f"call {VECTOR} {largest}({VECTOR} {before}, {VECTOR} {bits})")

    bits = _over_vectors(body, count, most)
    lanes = body.value(f"bitcast <16 x i1> {_no_number(body, bits)} to i16")
    mend, done = body.name("mend"), body.name("mended")
    body.branch(body.value(f"icmp ne i16 {lanes}, 0"), mend, done, unlikely=True)
    body.open(mend)
    panel.sum_up([(0, 0)])
    panel.store(firsts)

    def mended(place: Ref, before: Ref) -> Ref:
        held, first = _loaded(body, room, place), _loaded(body, firsts, place)
        wrong = _no_number(body, _magnitude(body, held))
        value = body.value(f"select <16 x i1> {wrong}, {VECTOR} {first}, {VECTOR} {held}")
        there = body.value(f"getelementptr i32, ptr {room}, i64 {place}")
        body.line(f"store {VECTOR} {value}, ptr {there}, align 4")
        return before

    _over_vectors(body, count, mended)
    body.jump(done)
    body.open(done)


def _over_vectors(body: KernelBody, count: int, at: Callable[[Ref, Ref], Ref]) -> Ref:
    """Run `at(place, a vector of numbers)`, which gives the next vector, for each 16 of so many
    places; gives the last one."""
    before, label, done = body.block, body.name("vectors"), body.name("seen")
    body.jump(label)
    body.open(label)
    place, after = f"%{body.name('place')}", f"%{body.name('next')}"
    vector, start = f"%{body.name('numbers')}", len(body.lines)
    together = 4 if count % 64 == 0 else 1
    value = vector
    for number in range(together):
        here = body.value(f"add nsw i64 {place}, {16 * number}") if number else place
        value = at(here, value)
    body.lines[start:start] = [
        f"  {place} = phi i64 [ 0, %{before} ], [ {after}, %{body.block} ]",
        f"  {vector} = phi {VECTOR} [ zeroinitializer, %{before} ], [ {value}, %{body.block} ]",
    ]
    body.line(f"{after} = add nsw i64 {place}, {16 * together}")
    body.branch(body.value(f"icmp slt i64 {after}, {count}"), label, done)
    body.open(done)
    return value


def _loaded(body: KernelBody, room: Ref, place: Ref) -> Ref:
    there = body.value(f"getelementptr i32, ptr {room}, i64 {place}")
    return body.value(f"load {VECTOR}, ptr {there}, align 4")


def _magnitude(body: KernelBody, bits: Ref) -> Ref:
    return body.value(f"and {VECTOR} {bits}, splat (i32 {(1 << 31) - 1})")


def _no_number(body: KernelBody, magnitude: Ref) -> Ref:
    """Which lanes have an infinity or NaN."""
    return body.value(f"icmp ugt {VECTOR} {magnitude}, splat (i32 {LARGEST})")


def _place(body: KernelBody, pointer: Value, offset: Ref) -> Ref:
    return body.value(f"getelementptr i16, ptr {body[pointer]}, i64 {offset}")
