"""A support function that divides a kernel's points among threads, as LLVM text.

`irc_share(extent, grain, threads, piece, packed)`: calls `piece(begin, end, packed, number)` for
parts of [0, extent) that cover it once, on up to `threads` of torch's threads, each part of at
least `grain` points but the last ones. `number`, less than `extent`, is that of the thread. A
thread has a share of its own, of consecutive points, as `at::parallel_for` gives it, so that what
one kernel leaves in a core's caches the next one finds there. It takes its share in `PIECES` parts;
who is through with his own takes parts of the others'. So a thread whose core does other work, or
has a lower clock, holds up a launch by a part rather than by its share (work stealing: Blumofe and
Leiserson, "Scheduling Multithreaded Computations by Work Stealing", 1999; here by counters, since
all parts are known beforehand).
"""

from __future__ import annotations

PIECES = 8
"""Parts of a thread's share."""
MOST_SHARES = 64
"""Threads beyond so many begin with a share that is another's. A share's counter has a line of the
cache, on the caller's stack."""

_BOARD = ("piece", "packed", "extent", "part", "step", "shares")
"""What all threads read: words before the counters, which begin at the second line."""
_LINE = 8
"""Words of a line of the cache."""

_TEXT = """
declare i32 @torch_parallel_for(i64, i64, i64, ptr, ptr)

define void @irc_share(i64 %extent, i64 %grain, i64 %threads, ptr %piece, ptr %packed) {
entry:
  %board = alloca [BOARD_WORDS x i64], align 64
  %grain.less = sub i64 %grain, 1
  %rounded = add i64 %extent, %grain.less
  %most = sdiv i64 %rounded, %grain
  %fewer = call i64 @llvm.smin.i64(i64 %most, i64 %threads)
  %few = call i64 @llvm.smin.i64(i64 %fewer, i64 MOST_SHARES)
  %shares = call i64 @llvm.smax.i64(i64 %few, i64 1)
  %shares.less = sub i64 %shares, 1
  %rounded.part = add i64 %extent, %shares.less
  %part = sdiv i64 %rounded.part, %shares
  %rounded.step = add i64 %part, PIECES_LESS
  %even = sdiv i64 %rounded.step, PIECES
  %step = call i64 @llvm.smax.i64(i64 %even, i64 %grain)
STORES
  br label %counter
counter:
  %share = phi i64 [ 0, %entry ], [ %share.next, %counter ]
  %line = add i64 %share, 1
  %word = mul i64 %line, LINE_WORDS
  %at = getelementptr i64, ptr %board, i64 %word
  %begin = mul i64 %share, %part
  store i64 %begin, ptr %at
  %share.next = add i64 %share, 1
  %more = icmp slt i64 %share.next, %shares
  br i1 %more, label %counter, label %run
run:
  %ignored = call i32 @torch_parallel_for(i64 0, i64 %shares, i64 1, ptr @irc_take_parts,
                                          ptr %board)
  ret void
}

define internal void @irc_take_parts(i64 %first, i64 %last, ptr %board) {
entry:
READS
  br label %thread
thread:
  %number = phi i64 [ %first, %entry ], [ %number.next, %through ]
  %is.thread = icmp slt i64 %number, %last
  br i1 %is.thread, label %share, label %done
share:
  %passed = phi i64 [ 0, %thread ], [ %passed.next, %empty ]
  %is.share = icmp slt i64 %passed, %shares
  br i1 %is.share, label %of, label %through
of:
  %sum = add i64 %number, %passed
  %which = srem i64 %sum, %shares
  %line = add i64 %which, 1
  %word = mul i64 %line, LINE_WORDS
  %counter = getelementptr i64, ptr %board, i64 %word
  %share.end = mul i64 %line, %part
  %upper = call i64 @llvm.smin.i64(i64 %share.end, i64 %extent)
  br label %take
take:
  %begin = atomicrmw add ptr %counter, i64 %step monotonic
  %is.left = icmp slt i64 %begin, %upper
  br i1 %is.left, label %call, label %empty
call:
  %whole = add i64 %begin, %step
  %end = call i64 @llvm.smin.i64(i64 %whole, i64 %upper)
  call void %piece(i64 %begin, i64 %end, ptr %packed, i64 %number)
  br label %take
empty:
  %passed.next = add i64 %passed, 1
  br label %share
through:
  %number.next = add i64 %number, 1
  br label %thread
done:
  ret void
}
"""

SIGNATURES = {"irc_share": ("void", ("i64", "i64", "i64", "ptr", "ptr"))}


def pieces_text() -> str:
    """The functions as LLVM text."""
    stores, reads = list[str](), list[str]()
    for place, name in enumerate(_BOARD):
        type_ = "ptr" if place < 2 else "i64"
        at = f"  %{name}.at = getelementptr i64, ptr %board, i64 {place}"
        stores += [at, f"  store {type_} %{name}, ptr %{name}.at"]
        reads += [at, f"  %{name} = load {type_}, ptr %{name}.at"]
    numbers = {
        "STORES": "\n".join(stores), "READS": "\n".join(reads), "LINE_WORDS": _LINE,
        "BOARD_WORDS": (MOST_SHARES + 1) * _LINE, "MOST_SHARES": MOST_SHARES,
        "PIECES_LESS": PIECES - 1, "PIECES": PIECES,
    }  # fmt: skip
    text = _TEXT
    for name, value in numbers.items():
        text = text.replace(name, str(value))
    return text


__all__ = ["MOST_SHARES", "PIECES", "SIGNATURES", "pieces_text"]
