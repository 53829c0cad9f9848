"""Support functions, as LLVM text, for the arenas of host programs: memory for one call each.

A block of up to `POOLED_BYTES` belongs to one program, which keeps it in one of its `ARENA_SLOTS`
slots between calls. Larger blocks are in the pool of the process: a call takes the program's own
block there if it can, else the smallest one that is large enough, else fresh memory. What is not in
use is bounded: `OWN_LIMIT` bytes in the slots of all programs, `POOL_LIMIT` in the pool, or one
block however large. Slots are taken and filled with one atomic exchange each: there is no lock that
a fork could leave held.

The words of a program's slots: blocks, then the address of the pool, then the program's serial
number. Those of a pool are `POOL_IDLE` and so on; then for each place its block, and two hints for
who looks for one: the block's owner, and its capacity. The 64 bytes before a block hold its
capacity, an array of cached tensor handles, that array's length, and the serial number of the
program whose handles these are.

Where blocks leave a pool for others the larger ones stay; those of a pool with `POOL_TURNS`, which
nobody owns (`irc.codegen.host.support_kept`), leave in turn.

`irc_block(total, huge) -> ptr`: a fresh block that nobody owns, of `total` bytes with what stands
before it, of huge pages if the system allows it; null when there is no memory.
`irc_arena_acquire(slots, bytes, views) -> ptr`: memory of at least `bytes` bytes aligned to 64, and
room for `views` handles; null when there is no memory. `irc_arena_release(slots, block)`.
`irc_arena_drain(slots) -> i64`: frees what the slots hold; the bytes.
`irc_pool_drain(pool, owner, above) -> i64`: frees the blocks in the pool whose owner is `owner`, or
that hold more than `above` bytes; the bytes. The interpreter lock is held, so that no two run.
"""

from __future__ import annotations

ARENA_SLOTS = 8
POOL_PLACES = 16
POOLED_BYTES = 1 << 20
OWN_LIMIT = 16 << 20
POOL_LIMIT = 32 << 20
#: Words of a pool: bytes that are not in use in it, bytes that are not in use in programs' slots,
#: the most of the former, its places, 1 where blocks leave in turn, the place whose turn it is.
POOL_IDLE, POOL_SLOTS, POOL_MOST, POOL_COUNT, POOL_TURNS, POOL_TURN, POOL_HEAD = range(7)
#: Words of a program's slots.
SLOTS_WORDS = ARENA_SLOTS + 2
#: From this size on a block asks for huge pages: a fresh 4 KB page costs 0.25 us to touch.
HUGE_PAGE_THRESHOLD = 4 << 20
_MADV_HUGEPAGE = 14

_ACQUIRE = """
define ptr @irc_arena_acquire(ptr %slots, i64 %bytes, i64 %views) {
entry:
  %pool = word ptr, ptr %slots, i64 ARENA_SLOTS
  %serial = word i64, ptr %pool.at, i64 1
  %kept.at = getelementptr i64, ptr %pool, i64 POOL_SLOTS
  %large = icmp sgt i64 %bytes, POOLED_BYTES
  br i1 %large, label %common, label %scan
common:
  %taken = call ptr @irc_pool_take(ptr %pool, i64 %serial, i64 %bytes, i64 -1)
  %nothing = icmp eq ptr %taken, null
  br i1 %nothing, label %fresh, label %whose
whose:
  %owner.at = getelementptr i8, ptr %taken, i64 -40
  %owner = load i64, ptr %owner.at
  %mine = icmp eq i64 %owner, %serial
  br i1 %mine, label %keep, label %adopt
keep:
  ret ptr %taken
adopt:
  call void @irc_arena_forget(ptr %taken)
  %adopted = call ptr @irc_arena_own(ptr %taken, i64 %views, i64 %serial)
  ret ptr %adopted
scan:
  %i = phi i64 [ 0, %entry ], [ %i.next, %miss ]
  %end = icmp eq i64 %i, ARENA_SLOTS
  br i1 %end, label %fresh, label %try
try:
  %slot = getelementptr ptr, ptr %slots, i64 %i
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %miss, label %take
take:
  %block = atomicrmw xchg ptr %slot, ptr null acq_rel, align 8
  %lost = icmp eq ptr %block, null
  br i1 %lost, label %miss, label %got
miss:
  %i.next = add i64 %i, 1
  br label %scan
got:
  %capacity.at = getelementptr i8, ptr %block, i64 -64
  %capacity = load i64, ptr %capacity.at
  %was.kept = atomicrmw sub ptr %kept.at, i64 %capacity monotonic, align 8
  %fits = icmp uge i64 %capacity, %bytes
  br i1 %fits, label %reuse, label %small
reuse:
  ret ptr %block
small:
  call void @irc_arena_free(ptr %block)
  br label %fresh
fresh:
  %negative = icmp slt i64 %bytes, 0
  br i1 %negative, label %none, label %sized
sized:
  %padded = add i64 %bytes, 127
  %rounded = and i64 %padded, -64
  %huge = icmp uge i64 %bytes, HUGE_THRESHOLD
  %huge.padded = add i64 %bytes, 4194367
  %huge.rounded = and i64 %huge.padded, -2097152
  %total = select i1 %huge, i64 %huge.rounded, i64 %rounded
  %data = call ptr @irc_block(i64 %total, i1 %huge)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %none, label %own
own:
  %owned = call ptr @irc_arena_own(ptr %data, i64 %views, i64 %serial)
  ret ptr %owned
none:
  ret ptr null
}

define ptr @irc_block(i64 %total, i1 %huge) {
entry:
  %align = select i1 %huge, i64 2097152, i64 64
  %base = call ptr @aligned_alloc(i64 %align, i64 %total)
  %failed = icmp eq ptr %base, null
  br i1 %failed, label %none, label %advise
advise:
  br i1 %huge, label %hint, label %header
hint:
  %ignored = call i32 @madvise(ptr %base, i64 %total, i32 MADV_HUGEPAGE)
  br label %header
header:
  call void @llvm.memset.p0.i64(ptr %base, i8 0, i64 64, i1 false)
  %usable = sub i64 %total, 64
  store i64 %usable, ptr %base
  %data = getelementptr i8, ptr %base, i64 64
  ret ptr %data
none:
  ret ptr null
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define ptr @irc_arena_own(ptr %block, i64 %views, i64 %serial) {
entry:
  %count.wanted = add i64 %views, 1
  %cache = call ptr @calloc(i64 %count.wanted, i64 8)
  %cache.at = getelementptr i8, ptr %block, i64 -56
  store ptr %cache, ptr %cache.at
  %count.at = getelementptr i8, ptr %block, i64 -48
  %owner.at = getelementptr i8, ptr %block, i64 -40
  store i64 %serial, ptr %owner.at
  %no.cache = icmp eq ptr %cache, null
  br i1 %no.cache, label %undo, label %ready
ready:
  store i64 %views, ptr %count.at
  ret ptr %block
undo:
  store i64 0, ptr %count.at
  call void @irc_arena_free(ptr %block)
  ret ptr null
}

define void @irc_arena_forget(ptr %block) {
entry:
  %cache.at = getelementptr i8, ptr %block, i64 -56
  %cache = load ptr, ptr %cache.at
  %count.at = getelementptr i8, ptr %block, i64 -48
  %count = load i64, ptr %count.at
  call void @irc_release_handles(ptr %cache, i64 %count)
  call void @free(ptr %cache)
  ret void
}

define void @irc_arena_free(ptr %block) {
entry:
  call void @irc_arena_forget(ptr %block)
  %base = getelementptr i8, ptr %block, i64 -64
  call void @free(ptr %base)
  ret void
}
"""

_RELEASE = """
define void @irc_arena_release(ptr %slots, ptr %block) {
entry:
  %pool = word ptr, ptr %slots, i64 ARENA_SLOTS
  %kept.at = getelementptr i64, ptr %pool, i64 POOL_SLOTS
  %capacity.at = getelementptr i8, ptr %block, i64 -64
  %capacity = load i64, ptr %capacity.at
  %large = icmp ugt i64 %capacity, POOLED_BYTES
  br i1 %large, label %common, label %count
common:
  call void @irc_pool_put(ptr %pool, ptr %block)
  ret void
count:
  %was.kept = atomicrmw add ptr %kept.at, i64 %capacity monotonic, align 8
  %kept = add i64 %was.kept, %capacity
  %over = icmp ugt i64 %kept, OWN_LIMIT
  br i1 %over, label %full, label %scan
scan:
  %i = phi i64 [ 0, %count ], [ %i.next, %miss ]
  %end = icmp eq i64 %i, ARENA_SLOTS
  br i1 %end, label %full, label %try
try:
  %slot = getelementptr ptr, ptr %slots, i64 %i
  %pair = cmpxchg ptr %slot, ptr null, ptr %block acq_rel monotonic, align 8
  %stored = extractvalue { ptr, i1 } %pair, 1
  br i1 %stored, label %done, label %miss
miss:
  %i.next = add i64 %i, 1
  br label %scan
full:
  %was.full = atomicrmw sub ptr %kept.at, i64 %capacity monotonic, align 8
  call void @irc_arena_free(ptr %block)
  br label %done
done:
  ret void
}

define i64 @irc_arena_drain(ptr %slots) {
entry:
  %pool = word ptr, ptr %slots, i64 ARENA_SLOTS
  %kept.at = getelementptr i64, ptr %pool, i64 POOL_SLOTS
  br label %scan
scan:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %freed = phi i64 [ 0, %entry ], [ %freed.next, %next ]
  %end = icmp eq i64 %i, ARENA_SLOTS
  br i1 %end, label %done, label %take
take:
  %slot = getelementptr ptr, ptr %slots, i64 %i
  %block = atomicrmw xchg ptr %slot, ptr null acq_rel, align 8
  %empty = icmp eq ptr %block, null
  br i1 %empty, label %next, label %drop
drop:
  %capacity.at = getelementptr i8, ptr %block, i64 -64
  %capacity = load i64, ptr %capacity.at
  %was.kept = atomicrmw sub ptr %kept.at, i64 %capacity monotonic, align 8
  call void @irc_arena_free(ptr %block)
  br label %next
next:
  %here = phi i64 [ 0, %take ], [ %capacity, %drop ]
  %freed.next = add i64 %freed, %here
  %i.next = add i64 %i, 1
  br label %scan
done:
  ret i64 %freed
}
"""

_POOL = """
define ptr @irc_pool_take(ptr %pool, i64 %serial, i64 %bytes, i64 %most) {
entry:
  %places = word i64, ptr %pool, i64 POOL_COUNT
  br label %scan
scan:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %best = phi i64 [ -1, %entry ], [ %best.next, %next ]
  %cost = phi i64 [ -1, %entry ], [ %cost.next, %next ]
  %end = icmp eq i64 %i, %places
  br i1 %end, label %choose, label %look
look:
  %word = add i64 %i, POOL_HEAD
  %place = getelementptr ptr, ptr %pool, i64 %word
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %next, label %weigh
weigh:
  %owner.at = getelementptr i64, ptr %place, i64 %places
  %owner = load atomic i64, ptr %owner.at monotonic, align 8
  %size.at = getelementptr i64, ptr %owner.at, i64 %places
  %size = load atomic i64, ptr %size.at monotonic, align 8
  %mine = icmp eq i64 %owner, %serial
  %own.cost = select i1 %mine, i64 0, i64 %size
  %holds = icmp uge i64 %size, %bytes
  %fitting = icmp ule i64 %size, %most
  %enough = and i1 %holds, %fitting
  %cheaper = icmp ult i64 %own.cost, %cost
  %better = and i1 %enough, %cheaper
  br label %next
next:
  %found = phi i1 [ false, %look ], [ %better, %weigh ]
  %found.cost = phi i64 [ %cost, %look ], [ %own.cost, %weigh ]
  %best.next = select i1 %found, i64 %i, i64 %best
  %cost.next = select i1 %found, i64 %found.cost, i64 %cost
  %i.next = add i64 %i, 1
  br label %scan
choose:
  %missing = icmp slt i64 %best, 0
  br i1 %missing, label %none, label %take
take:
  %best.word = add i64 %best, POOL_HEAD
  %best.place = getelementptr ptr, ptr %pool, i64 %best.word
  %block = atomicrmw xchg ptr %best.place, ptr null acq_rel, align 8
  %lost = icmp eq ptr %block, null
  br i1 %lost, label %none, label %got
got:
  %capacity.at = getelementptr i8, ptr %block, i64 -64
  %capacity = load i64, ptr %capacity.at
  %was.idle = atomicrmw sub ptr %pool, i64 %capacity monotonic, align 8
  %fits = icmp uge i64 %capacity, %bytes
  br i1 %fits, label %give, label %small
give:
  ret ptr %block
small:
  call void @irc_arena_free(ptr %block)
  br label %none
none:
  ret ptr null
}

define void @irc_pool_put(ptr %pool, ptr %block) {
entry:
  %places = word i64, ptr %pool, i64 POOL_COUNT
  %limit = word i64, ptr %pool, i64 POOL_MOST
  %turns = word i64, ptr %pool, i64 POOL_TURNS
  %by.size = icmp eq i64 %turns, 0
  %turn = getelementptr i64, ptr %pool, i64 POOL_TURN
  %capacity.at = getelementptr i8, ptr %block, i64 -64
  %capacity = load i64, ptr %capacity.at
  %was.idle = atomicrmw add ptr %pool, i64 %capacity monotonic, align 8
  br label %evict
evict:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %idle = load atomic i64, ptr %pool monotonic, align 8
  %within = icmp ule i64 %idle, %limit
  %only = icmp ule i64 %idle, %capacity
  %alone = and i1 %only, %by.size
  %fine = or i1 %within, %alone
  br i1 %fine, label %store, label %more
more:
  %end = icmp eq i64 %i, %places
  br i1 %end, label %drop, label %look
look:
  %next.turn = atomicrmw add ptr %turn, i64 %turns monotonic, align 8
  %in.turn = urem i64 %next.turn, %places
  %which = select i1 %by.size, i64 %i, i64 %in.turn
  %word = add i64 %which, POOL_HEAD
  %place = getelementptr ptr, ptr %pool, i64 %word
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %empty = icmp eq ptr %seen, null
  %sizes.at = getelementptr i64, ptr %place, i64 %places
  %size.at = getelementptr i64, ptr %sizes.at, i64 %places
  %size = load atomic i64, ptr %size.at monotonic, align 8
  %exceeds = icmp ugt i64 %size, %capacity
  %larger = and i1 %exceeds, %by.size
  %stays = or i1 %empty, %larger
  br i1 %stays, label %next, label %take
take:
  %other = atomicrmw xchg ptr %place, ptr null acq_rel, align 8
  %lost = icmp eq ptr %other, null
  br i1 %lost, label %next, label %out
out:
  %other.at = getelementptr i8, ptr %other, i64 -64
  %other.capacity = load i64, ptr %other.at
  %was.less = atomicrmw sub ptr %pool, i64 %other.capacity monotonic, align 8
  call void @irc_arena_free(ptr %other)
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %evict
store:
  %owner.of = getelementptr i8, ptr %block, i64 -40
  %owner = load i64, ptr %owner.of
  br label %fill
fill:
  %k = phi i64 [ 0, %store ], [ %k.next, %miss ]
  %full = icmp eq i64 %k, %places
  br i1 %full, label %drop, label %try
try:
  %try.word = add i64 %k, POOL_HEAD
  %here = getelementptr ptr, ptr %pool, i64 %try.word
  %there = load atomic ptr, ptr %here monotonic, align 8
  %free.place = icmp eq ptr %there, null
  br i1 %free.place, label %claim, label %miss
claim:
  %owner.hint = getelementptr i64, ptr %here, i64 %places
  store atomic i64 %owner, ptr %owner.hint monotonic, align 8
  %size.hint = getelementptr i64, ptr %owner.hint, i64 %places
  store atomic i64 %capacity, ptr %size.hint monotonic, align 8
  %pair = cmpxchg ptr %here, ptr null, ptr %block acq_rel monotonic, align 8
  %stored = extractvalue { ptr, i1 } %pair, 1
  br i1 %stored, label %done, label %miss
miss:
  %k.next = add i64 %k, 1
  br label %fill
drop:
  %was.mine = atomicrmw sub ptr %pool, i64 %capacity monotonic, align 8
  call void @irc_arena_free(ptr %block)
  ret void
done:
  ret void
}

define i64 @irc_pool_drain(ptr %pool, i64 %owner, i64 %above) {
entry:
  %places = word i64, ptr %pool, i64 POOL_COUNT
  br label %scan
scan:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %freed = phi i64 [ 0, %entry ], [ %freed.next, %next ]
  %end = icmp eq i64 %i, %places
  br i1 %end, label %done, label %take
take:
  %word = add i64 %i, POOL_HEAD
  %place = getelementptr ptr, ptr %pool, i64 %word
  %block = atomicrmw xchg ptr %place, ptr null acq_rel, align 8
  %empty = icmp eq ptr %block, null
  br i1 %empty, label %next, label %look
look:
  %capacity.at = getelementptr i8, ptr %block, i64 -64
  %capacity = load i64, ptr %capacity.at
  %was.idle = atomicrmw sub ptr %pool, i64 %capacity monotonic, align 8
  %owner.at = getelementptr i8, ptr %block, i64 -40
  %whose = load i64, ptr %owner.at
  %theirs = icmp eq i64 %whose, %owner
  %large = icmp sgt i64 %capacity, %above
  %unwanted = or i1 %theirs, %large
  br i1 %unwanted, label %drop, label %back
drop:
  call void @irc_arena_free(ptr %block)
  br label %next
back:
  call void @irc_pool_put(ptr %pool, ptr %block)
  br label %next
next:
  %here = phi i64 [ 0, %take ], [ %capacity, %drop ], [ 0, %back ]
  %freed.next = add i64 %freed, %here
  %i.next = add i64 %i, 1
  br label %scan
done:
  ret i64 %freed
}
"""

SIGNATURES = {
    "irc_arena_acquire": ("ptr", ("ptr", "i64", "i64")),
    "irc_arena_release": ("void", ("ptr", "ptr")),
    "irc_arena_drain": ("i64", ("ptr",)),
    "irc_pool_drain": ("i64", ("ptr", "i64", "i64")),
}


def arena_text() -> str:
    """The functions as LLVM text."""
    text = _ACQUIRE + _RELEASE + _POOL
    names = ("ARENA_SLOTS", "POOLED_BYTES", "OWN_LIMIT", "POOL_SLOTS",
             "POOL_COUNT", "POOL_MOST", "POOL_TURNS", "POOL_TURN", "POOL_HEAD")  # fmt: skip
    for name in names:
        text = text.replace(name, str(globals()[name]))
    text = text.replace("HUGE_THRESHOLD", str(HUGE_PAGE_THRESHOLD))
    return text.replace("MADV_HUGEPAGE", str(_MADV_HUGEPAGE))
