"""Products of rows and panels by registers of whole tiles: AMX.

There are eight tiles, of up to 16 rows of 64 bytes. Four hold sums of 32 rows by 32 columns, two
rows of each factor: a term's tile of 16 rows by 32 terms, or of 16 pairs of terms by 16 columns,
serves two products. How many rows tiles have is set for a whole kernel when it begins; a part of
them has settings of its own around it.
"""

from __future__ import annotations

from typing import Any

from irc.codegen.llvm.kernel_writer import KernelBody, Ref, emits
from irc.dialects.kernel.dots import rows_of
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR

SETTINGS = 64
"""The bytes that say what the tiles are."""
TILE_ROWS, ROW_BYTES = 16, 64
AHEAD = 2
"""Tiles of the right factor that lie between one that is loaded and one that is fetched."""
#: The tiles of sums by number of rows and of columns, of rows, and of columns.
SUMS, LEFT, RIGHT = ((0, 1), (2, 3)), (4, 5), (6, 7)


@emits("kernel.dot_rows")
def dot_rows(body: KernelBody, op: Any) -> None:
    dot = rows_of(op.left.type.element)
    assert dot is not None
    missing = [name for name in dot.sets if name not in body.features.sets]
    if missing:
        raise InvalidIR(f"the target has no {missing[0]}, by which rows of {dot.element} are "
                        "multiplied", op=op)  # fmt: skip
    rows, usual = int(op.rows), body.tile_rows
    if usual is None:
        body.tile_rows = rows
        body.allocas += _set_up(body, rows)
    elif usual != rows:
        body.lines += _set_up(body, rows)
    _multiply(body, op, rows)
    if usual not in (None, rows):
        assert usual is not None
        body.lines += _set_up(body, usual)


def release(body: KernelBody) -> None:
    """Leave the tiles as they were before the kernel: nothing of them is to be saved then."""
    _run(body, "tilerelease")


def _set_up(body: KernelBody, rows: int) -> list[str]:
    """Lines that give the tiles their rows, with all 64 bytes of each."""
    upper, lower = min(rows, TILE_ROWS), max(rows - TILE_ROWS, 0)
    counts = {SUMS[0][0]: upper, SUMS[0][1]: upper, SUMS[1][0]: lower, SUMS[1][1]: lower,
              LEFT[0]: upper, LEFT[1]: lower, RIGHT[0]: TILE_ROWS, RIGHT[1]: TILE_ROWS}  # fmt: skip
    content = bytearray(SETTINGS)
    content[0] = 1
    for tile, count in counts.items():
        if count:
            content[16 + 2 * tile] = ROW_BYTES
            content[48 + tile] = count
    name = f"tiles.{rows}"
    text = "".join(f"\\{byte:02X}" for byte in content)
    body.module.helpers.setdefault(
        name, f'@{name} = private constant [{SETTINGS} x i8] c"{text}", align 64'
    )
    function = body.module.declare("llvm.x86.ldtilecfg", "void", ["ptr"])
    return [f"  call void {function}(ptr @{name})"]


def _run(body: KernelBody, name: str, *operands: tuple[str, Ref]) -> None:
    """An instruction without a result."""
    types = [f"{t} immarg" if t == "i8" else t for t, _ in operands]
    function = body.module.declare(f"llvm.x86.{name}", "void", types)
    body.line(f"call void {function}({', '.join(f'{t} {ref}' for t, ref in operands)})")


def _multiply(body: KernelBody, op: Any, rows: int) -> None:
    across = range(int(op.columns) // TILE_ROWS)
    down = range(-(-rows // TILE_ROWS))
    pairs = [(r, c) for r in down for c in across]
    step, room_row = body.value(f"mul nsw i64 {body[op.left_step]}, 2"), str(int(op.columns) * 4)
    stride, below = str(ROW_BYTES), step
    if not op.in_tiles:
        stride, below = step, body.value(f"mul nsw i64 {step}, {TILE_ROWS}")
    # What lies between the terms that follow each other of a row, in tiles of which they are 32.
    passed = TILE_ROWS if op.in_tiles else 1
    lines = [_place(body, op.left, body[op.left_offset])]
    if len(down) > 1:
        lines.append(body.value(f"getelementptr i8, ptr {lines[0]}, i64 {below}"))
    panels = [_place(body, op.right, body[op.right_offset])]
    if len(across) > 1:
        beside = body.value(f"mul nsw i64 {body[op.depth]}, {2 * TILE_ROWS}")
        panels.append(body.value(f"getelementptr i8, ptr {panels[0]}, i64 {beside}"))
    for r, c in pairs:
        _run(body, "tilezero", ("i8", str(SUMS[r][c])))
    before, label, done = body.block, body.name("terms"), body.name("summed")
    body.branch(body.value(f"icmp slt i64 0, {body[op.depth]}"), label, done)
    body.open(label)
    term, after = f"%{body.name('k')}", f"%{body.name('next')}"
    at = len(body.lines)
    body.line("")
    here = body.value(f"mul nsw i64 {term}, {2 * TILE_ROWS}")
    along = body.value(f"mul nsw i64 {term}, {2 * passed}")
    for c in across:
        place = body.value(f"getelementptr i8, ptr {panels[c]}, i64 {here}")
        _fetch(body, place)
        _run(body, "tileloadd64", ("i8", str(RIGHT[c])), ("ptr", place), ("i64", str(ROW_BYTES)))
        for r in down:
            if not c:
                line = body.value(f"getelementptr i8, ptr {lines[r]}, i64 {along}")
                _run(body, "tileloadd64", ("i8", str(LEFT[r])), ("ptr", line), ("i64", stride))
            _run(body, "tdpbf16ps", *(("i8", str(t)) for t in (SUMS[r][c], LEFT[r], RIGHT[c])))
    for region in op.beside:
        body[region.blocks[0].arguments[0]] = term
        body.emit_block(region.blocks[0])
    body.lines[at] = f"  {term} = phi i64 [ 0, %{before} ], [ {after}, %{body.block} ]"
    body.line(f"{after} = add nsw i64 {term}, 32")
    body.branch(body.value(f"icmp slt i64 {after}, {body[op.depth]}"), label, done)
    body.open(done)
    for r, c in pairs:
        apart = r * TILE_ROWS * int(op.columns) * 4 + c * ROW_BYTES
        room = body.value(f"getelementptr i8, ptr {body[op.sums]}, i64 {apart}")
        _run(body, "tilestored64", ("i8", str(SUMS[r][c])), ("ptr", room), ("i64", room_row))


def _fetch(body: KernelBody, place: Ref) -> None:
    """Have the tile that is wanted two steps later brought to the first-level cache (a Xeon with
    seven other processes, 256 rows: 1.19 of packed oneDNN's rate against 1.03 for 768 x 768, 1.11
    against 0.96 for 768 x 3072, 1.23 against 1.06 for 3072 x 768, 1.10 against 0.90 for 4096 x
    4096)."""
    function = body.module.declare("llvm.prefetch.p0", "void", ["ptr", *["i32"] * 3])
    for line in range(TILE_ROWS):
        ahead = AHEAD * TILE_ROWS * ROW_BYTES + line * ROW_BYTES
        there = body.value(f"getelementptr i8, ptr {place}, i64 {ahead}")
        body.line(f"call void {function}(ptr {there}, i32 0, i32 3, i32 1)")


def _place(body: KernelBody, pointer: Value, offset: Ref) -> Ref:
    return body.value(f"getelementptr i16, ptr {body[pointer]}, i64 {offset}")
