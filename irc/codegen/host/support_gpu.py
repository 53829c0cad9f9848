"""Support functions of native programs of a GPU, as LLVM text: compiled once per process.

`table` is that of `irc.boundary.cuda`, through which all of CUDA is called; `device` the number of
a GPU in the program.

`irc_gpu_check_tensor(table, device, runtime, object, spec, out) -> i32`: as `irc_check_tensor`, for
a plain dense tensor of that GPU. `irc_gpu_check_number`, with the same arguments, also takes one of
the CPU: torch takes its numbers (without dimensions) beside a GPU's tensors, and attention saves
such as its own.

`irc_gpu_enter(table, device, guard) -> i32`: makes the GPU this thread's current one, unless it is
the driver's and torch's (whose handles, of cuBLAS say, are those of its own), and stores a guard of
torch's, which remembers the one before, at `guard` (which holds null, or a guard that was stored
before). `irc_gpu_leave(table, guard)` deletes it.
`irc_gpu_stream(table, device, out) -> i32`: the current stream.

`irc_gpu_launch(table, kernel, stream, grid, values, params, state) -> i32`: launches `grid` program
instances, none for 0. `values`: a word for each pointer, for each size, and two for Triton's
memory; `params`: where these words are; `state`: the word of `irc_lock`, which is called before
Python is asked for a variant. 0, the driver's error, or -1 where the kernel couldn't be had.

`irc_gpu_late(table, device, stream, data, bytes, fail) -> i32`: leaves the check of so many truth
values in the device's ring, words of which are the number of the next check to look at, that of the
next one to come, where the places are, the kernel that writes whether all hold there
(`irc.runtime.check_kernel`; 0: the values are copied), and for each place the object `fail` (owned)
that raises the error, and bytes. 1 where Python must do it: there is no ring or no place left in
it, the values are many, or the stream is captured. `irc.runtime.late_ring` looks at them.

`irc_gpu_told(table, device) -> i32`: whether an error of a check may be known: one was left behind,
or a flag of the device is false (`irc.runtime.late_flags`).

A kernel's *descriptor*, in words: number of pointers, of sizes, of variants; the Python object that
is called with a key and adds the variant; then where each variant is, whose words never change: its
key, the function, threads of a program instance, bytes of shared memory, and whether its program
instances may begin early, since they wait for what was launched before them. Another variant takes
a place by one write, so that launches need no lock. `irc.program.gpu_kernels.key_of`
says what a key is; `irc_gpu_key` follows it.
"""

from __future__ import annotations

from irc.boundary import cuda
from irc.codegen.host import (
    support_convolutions,
    support_draws,
    support_memory,
    support_products,
    support_reads,
)
from irc.codegen.host.support import CHECK_TENSOR, written_out

POINTERS, SIZES, VARIANTS, LOADER, FIRST_VARIANT = 0, 1, 2, 3, 4
VARIANT_WORDS, VARIANT_LIMIT = 5, 16
DESCRIPTOR_WORDS = FIRST_VARIANT + VARIANT_LIMIT
#: Pointers behind a kernel's arguments: Triton's memory, for descriptors and for its profiler.
SCRATCH_POINTERS = 2
#: A ring of late checks: its words, places, and the bytes of a place.
RING_HEAD, RING_TAIL, RING_MEMORY, RING_KERNEL, RING_ENTRIES = 0, 1, 2, 3, 4
RING_PLACES, RING_BYTES = 256, 1024
RING_WORDS = RING_ENTRIES + 2 * RING_PLACES
#: A board of flags of checks: its words, and those from one flag to the next.
BOARD_COUNT, BOARD_MEMORY, BOARD_NEXT, BOARD_WORDS = 0, 1, 2, 3
FLAG_WORDS = 2
#: Threads of the kernel of a check.
CHECK_THREADS = 256
#: What a launch gives where the kernel couldn't be had.
NOT_LOADED = -1
_LARGEST_GRID = (1 << 31) - 1


DECLARATIONS = """
declare i32 @aoti_torch_get_dtype(ptr, ptr)
declare i32 @aoti_torch_get_dim(ptr, ptr)
declare i32 @aoti_torch_get_sizes(ptr, ptr)
declare i32 @aoti_torch_get_strides(ptr, ptr)
declare i32 @aoti_torch_get_data_ptr(ptr, ptr)
declare i32 @aoti_torch_get_device_index(ptr, ptr)
declare i32 @irc_check_tensor(ptr, ptr, ptr, ptr)
declare ptr @irc_call_python(ptr, ptr, ptr, i64)
declare void @irc_lock(ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare ptr @memset(ptr, i32, i64)
@irc_int_kind = private constant [1 x i8] c"\\01"
"""

#: What is other than in `irc_check_tensor`, and by what it is replaced.
_FOR_GPU = (
    ("@irc_check_tensor(ptr %runtime,",
     "@irc_gpu_check_tensor(ptr %table, i64 %device, ptr %runtime,"),
    ("%required = word i64, ptr %runtime, i64 4", "%required = word i64, ptr %table, i64 2"),
    ("%forbidden = word i64, ptr %runtime, i64 5", "%forbidden = word i64, ptr %table, i64 3"),
    ("  %e4 = call i32 @aoti_torch_get_strides(ptr %handle, ptr %strides.out)\n", """\
  %e4 = call i32 @aoti_torch_get_strides(ptr %handle, ptr %strides.out)
  %index.out = alloca i32
  %e.index = call i32 @aoti_torch_get_device_index(ptr %handle, ptr %index.out)
  %index = load i32, ptr %index.out
  %mask = word i64, ptr %table, i64 1
  %index.wide = or i64 %device, %mask
  %index.want = trunc i64 %index.wide to i32
  %index.off = xor i32 %index, %index.want
  %e.where = or i32 %e.index, %index.off
"""),
    ("  %e = or i32 %e12, %e34\n",
     "  %e1234 = or i32 %e12, %e34\n  %e = or i32 %e1234, %e.where\n"),
)  # fmt: skip

DEVICES = """
define i32 @irc_gpu_check_number(ptr %table, i64 %device, ptr %runtime, ptr %object, ptr %spec,
                                 ptr %out) {
entry:
  %e = call i32 @irc_gpu_check_tensor(ptr %table, i64 %device, ptr %runtime, ptr %object, ptr %spec,
                                      ptr %out)
  %ok = icmp eq i32 %e, 0
  br i1 %ok, label %done, label %other
done:
  ret i32 0
other:
  %e.cpu = call i32 @irc_check_tensor(ptr %runtime, ptr %object, ptr %spec, ptr %out)
  ret i32 %e.cpu
}

define i32 @irc_gpu_enter(ptr %table, i64 %device, ptr %guard) {
entry:
  %now.out = alloca ptr
  store ptr null, ptr %now.out
  %number.out = alloca i8
  store i8 -1, ptr %number.out
  %get = word ptr, ptr %table, i64 5
  %first = getelementptr ptr, ptr %table, i64 16
  %wanted = word ptr, ptr %first, i64 %device
  %e1 = call i32 %get(ptr %now.out)
  %now = load ptr, ptr %now.out
  %there = icmp eq ptr %now, %wanted
  br i1 %there, label %ask, label %move
ask:
  %ask.at = getelementptr ptr, ptr %table, i64 TABLE_GET_DEVICE
  %get.device = load ptr, ptr %ask.at
  %unknown = icmp eq ptr %get.device, null
  br i1 %unknown, label %move, label %compare
compare:
  %e.number = call i32 %get.device(ptr %number.out)
  %number = load i8, ptr %number.out
  %number.wide = sext i8 %number to i64
  %torchs = icmp eq i64 %number.wide, %device
  br i1 %torchs, label %done, label %move
move:
  %mask = word i64, ptr %table, i64 1
  %index.wide = or i64 %device, %mask
  %index = trunc i64 %index.wide to i32
  %held = load ptr, ptr %guard
  %none = icmp eq ptr %held, null
  br i1 %none, label %create, label %set
create:
  %create.at = getelementptr ptr, ptr %table, i64 8
  %create.guard = load ptr, ptr %create.at
  %e2 = call i32 %create.guard(i32 %index, ptr %guard)
  %created = icmp eq i32 %e2, 0
  br i1 %created, label %look, label %failed
set:
  %set.at = getelementptr ptr, ptr %table, i64 10
  %set.guard = load ptr, ptr %set.at
  %e3 = call i32 %set.guard(ptr %held, i32 %index)
  %moved = icmp eq i32 %e3, 0
  br i1 %moved, label %look, label %failed
look:
  %e4 = call i32 %get(ptr %now.out)
  %now.again = load ptr, ptr %now.out
  %there.now = icmp eq ptr %now.again, %wanted
  br i1 %there.now, label %done, label %force
force:
  %force.at = getelementptr ptr, ptr %table, i64 6
  %set.context = load ptr, ptr %force.at
  %e5 = call i32 %set.context(ptr %wanted)
  ret i32 %e5
done:
  ret i32 0
failed:
  ret i32 -1
}

define void @irc_gpu_leave(ptr %table, ptr %guard) {
entry:
  %held = load ptr, ptr %guard
  %none = icmp eq ptr %held, null
  br i1 %none, label %done, label %drop
drop:
  store ptr null, ptr %guard
  %delete = word ptr, ptr %table, i64 9
  %ignored = call i32 %delete(ptr %held)
  br label %done
done:
  ret void
}

define i32 @irc_gpu_stream(ptr %table, i64 %device, ptr %out) {
entry:
  %mask = word i64, ptr %table, i64 1
  %index.wide = or i64 %device, %mask
  %index = trunc i64 %index.wide to i32
  %get = word ptr, ptr %table, i64 7
  %e = call i32 %get(i32 %index, ptr %out)
  ret i32 %e
}
"""

LAUNCH = """
define i64 @irc_gpu_key(i64 %pointers, i64 %sizes, ptr %values) {
entry:
  br label %pointer
pointer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %pointer.one ]
  %key = phi i64 [ 0, %entry ], [ %key.next, %pointer.one ]
  %i.end = icmp eq i64 %i, %pointers
  br i1 %i.end, label %size, label %pointer.one
pointer.one:
  %at = getelementptr i64, ptr %values, i64 %i
  %address = load i64, ptr %at
  %low = and i64 %address, 15
  %off = icmp ne i64 %low, 0
  %bit = zext i1 %off to i64
  %far = icmp ugt i64 %i, 31
  %place = select i1 %far, i64 31, i64 %i
  %shifted = shl i64 %bit, %place
  %key.next = or i64 %key, %shifted
  %i.next = add i64 %i, 1
  br label %pointer
size:
  %j = phi i64 [ 0, %pointer ], [ %j.next, %size.one ]
  %full = phi i64 [ %key, %pointer ], [ %full.next, %size.one ]
  %j.end = icmp eq i64 %j, %sizes
  br i1 %j.end, label %done, label %size.one
size.one:
  %word = add i64 %pointers, %j
  %size.at = getelementptr i64, ptr %values, i64 %word
  %number = load i64, ptr %size.at
  %rest = and i64 %number, 15
  %odd = icmp ne i64 %rest, 0
  %odd.bit = zext i1 %odd to i64
  %biased = add i64 %number, 2147483648
  %wide = icmp ugt i64 %biased, 4294967295
  %wide.bit = select i1 %wide, i64 2, i64 0
  %bits = or i64 %odd.bit, %wide.bit
  %j.far = icmp ugt i64 %j, 15
  %j.place = select i1 %j.far, i64 15, i64 %j
  %twice = shl i64 %j.place, 1
  %size.place = add i64 %twice, 32
  %size.shifted = shl i64 %bits, %size.place
  %full.next = or i64 %full, %size.shifted
  %j.next = add i64 %j, 1
  br label %size
done:
  ret i64 %full
}

define ptr @irc_gpu_variant(ptr %kernel, i64 %key) {
entry:
  %count.at = getelementptr i64, ptr %kernel, i64 2
  %count = load atomic i64, ptr %count.at acquire, align 8
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %end = icmp uge i64 %i, %count
  br i1 %end, label %none, label %one
one:
  %word = add i64 %i, FIRST_VARIANT
  %variant.at = getelementptr ptr, ptr %kernel, i64 %word
  %variant = load atomic ptr, ptr %variant.at acquire, align 8
  %its = load i64, ptr %variant
  %same = icmp eq i64 %its, %key
  br i1 %same, label %found, label %next
next:
  %i.next = add i64 %i, 1
  br label %look
found:
  ret ptr %variant
none:
  ret ptr null
}

define i32 @irc_gpu_launch(ptr %table, ptr %kernel, ptr %stream, i64 %grid, ptr %values,
                           ptr %params, ptr %state) {
entry:
  %key.out = alloca i64
  %config = alloca [7 x i64]
  %attribute = alloca [9 x i64]
  %some = icmp sgt i64 %grid, 0
  br i1 %some, label %begin, label %done
begin:
  %large = icmp sgt i64 %grid, LARGEST_GRID
  br i1 %large, label %invalid, label %keyed
keyed:
  %pointers = load i64, ptr %kernel
  %sizes = word i64, ptr %kernel, i64 1
  %key = call i64 @irc_gpu_key(i64 %pointers, i64 %sizes, ptr %values)
  %known = call ptr @irc_gpu_variant(ptr %kernel, i64 %key)
  %missing = icmp eq ptr %known, null
  br i1 %missing, label %ask, label %go
ask:
  call void @irc_lock(ptr %state)
  store i64 %key, ptr %key.out
  %loader = word ptr, ptr %kernel, i64 3
  %answer = call ptr @irc_call_python(ptr %loader, ptr @irc_int_kind, ptr %key.out, i64 1)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %lost, label %asked
asked:
  call void @Py_DecRef(ptr %answer)
  %new = call ptr @irc_gpu_variant(ptr %kernel, i64 %key)
  %still = icmp eq ptr %new, null
  br i1 %still, label %lost, label %go
go:
  %variant = phi ptr [ %known, %keyed ], [ %new, %asked ]
  %function = word ptr, ptr %variant, i64 1
  %threads.at = getelementptr i64, ptr %variant, i64 2
  %threads.word = load i64, ptr %threads.at
  %threads = trunc i64 %threads.word to i32
  %shared.at = getelementptr i64, ptr %variant, i64 3
  %shared.word = load i64, ptr %shared.at
  %shared = trunc i64 %shared.word to i32
  %early = word i64, ptr %variant, i64 4
  %is.early = icmp ne i64 %early, 0
  br i1 %is.early, label %overlapping, label %plain
overlapping:
  store i64 EARLY_ATTRIBUTE, ptr %attribute
  %allowed.at = getelementptr i64, ptr %attribute, i64 1
  store i64 1, ptr %allowed.at
  %grid.words = or i64 %grid, 4294967296
  store i64 %grid.words, ptr %config
  %threads.high = shl i64 %threads.word, 32
  %depth.words = or i64 %threads.high, 1
  %depth.at = getelementptr i64, ptr %config, i64 1
  store i64 %depth.words, ptr %depth.at
  %block.at = getelementptr i64, ptr %config, i64 2
  store i64 4294967297, ptr %block.at
  %bytes.at = getelementptr i64, ptr %config, i64 3
  store i64 %shared.word, ptr %bytes.at
  %stream.at = getelementptr i64, ptr %config, i64 4
  store ptr %stream, ptr %stream.at
  %attributes.at = getelementptr i64, ptr %config, i64 5
  store ptr %attribute, ptr %attributes.at
  %count.of = getelementptr i64, ptr %config, i64 6
  store i64 1, ptr %count.of
  %ex = word ptr, ptr %table, i64 TABLE_LAUNCH_EARLY
  %ex.code = call i32 %ex(ptr %config, ptr %function, ptr %params, ptr null)
  ret i32 %ex.code
plain:
  %instances = trunc i64 %grid to i32
  %launch = word ptr, ptr %table, i64 4
  %code = call i32 %launch(ptr %function, i32 %instances, i32 1, i32 1, i32 %threads, i32 1, i32 1,
                           i32 %shared, ptr %stream, ptr %params, ptr null)
  ret i32 %code
done:
  ret i32 0
invalid:
  ret i32 1
lost:
  ret i32 -1
}
"""

LATE = """
define i32 @irc_gpu_late(ptr %table, i64 %device, ptr %stream, ptr %data, i64 %bytes, ptr %fail) {
entry:
  %status.out = alloca i32
  %words = alloca [4 x i64]
  %params = alloca [4 x ptr]
  %rings = getelementptr ptr, ptr %table, i64 TABLE_RINGS
  %ring = word ptr, ptr %rings, i64 %device
  %none = icmp eq ptr %ring, null
  %many = icmp ugt i64 %bytes, RING_BYTES
  %not.here = or i1 %none, %many
  br i1 %not.here, label %python, label %look
look:
  %capturing = word ptr, ptr %table, i64 TABLE_IS_CAPTURING
  store i32 0, ptr %status.out
  %e.status = call i32 %capturing(ptr %stream, ptr %status.out)
  %status = load i32, ptr %status.out
  %e = or i32 %e.status, %status
  %plain = icmp eq i32 %e, 0
  %head = load i64, ptr %ring
  %tail = word i64, ptr %ring, i64 RING_TAIL
  %used = sub i64 %tail, %head
  %room = icmp ult i64 %used, RING_PLACES
  %can = and i1 %plain, %room
  br i1 %can, label %put, label %python
put:
  %slot = urem i64 %tail, RING_PLACES
  %memory = word ptr, ptr %ring, i64 RING_MEMORY
  %offset = mul i64 %slot, RING_BYTES
  %place = getelementptr i8, ptr %memory, i64 %offset
  %kernel = word ptr, ptr %ring, i64 RING_KERNEL
  %has.none = icmp eq ptr %kernel, null
  br i1 %has.none, label %copies, label %launches
launches:
  store i8 2, ptr %place
  %count.at = getelementptr i64, ptr %words, i64 1
  %seen.at = getelementptr i64, ptr %words, i64 2
  %tell.at = getelementptr i64, ptr %words, i64 3
  store ptr %data, ptr %words
  store i64 %bytes, ptr %count.at
  store ptr %place, ptr %seen.at
  store i64 1, ptr %tell.at
  %p1 = getelementptr ptr, ptr %params, i64 1
  %p2 = getelementptr ptr, ptr %params, i64 2
  %p3 = getelementptr ptr, ptr %params, i64 3
  store ptr %words, ptr %params
  store ptr %count.at, ptr %p1
  store ptr %seen.at, ptr %p2
  store ptr %tell.at, ptr %p3
  %launch = word ptr, ptr %table, i64 TABLE_LAUNCH
  %launch.code = call i32 %launch(ptr %kernel, i32 1, i32 1, i32 1, i32 CHECK_THREADS, i32 1, i32 1,
                                  i32 0, ptr %stream, ptr %params, ptr null)
  br label %asked
copies:
  %ignored = call ptr @memset(ptr %place, i32 2, i64 %bytes)
  %copy = word ptr, ptr %table, i64 TABLE_COPY_OUT
  %copy.code = call i32 %copy(ptr %place, ptr %data, i64 %bytes, ptr %stream)
  br label %asked
asked:
  %code = phi i32 [ %launch.code, %launches ], [ %copy.code, %copies ]
  %seen = phi i64 [ 1, %launches ], [ %bytes, %copies ]
  %well = icmp eq i32 %code, 0
  br i1 %well, label %note, label %python
note:
  call void @Py_IncRef(ptr %fail)
  %twice = shl i64 %slot, 1
  %entry.word = add i64 %twice, RING_ENTRIES
  %entry.at = getelementptr i64, ptr %ring, i64 %entry.word
  store ptr %fail, ptr %entry.at
  %bytes.at = getelementptr i64, ptr %entry.at, i64 1
  store i64 %seen, ptr %bytes.at
  %tail.next = add i64 %tail, 1
  store i64 %tail.next, ptr %tail.at
  %late.at = getelementptr i64, ptr %table, i64 TABLE_LATE
  store i64 1, ptr %late.at
  ret i32 0
python:
  ret i32 1
}
"""

TOLD = """
define i32 @irc_gpu_told(ptr %table, i64 %device) {
entry:
  %late = word i64, ptr %table, i64 TABLE_LATE
  %quiet = icmp eq i64 %late, 0
  br i1 %quiet, label %begin, label %told
begin:
  %boards = getelementptr ptr, ptr %table, i64 TABLE_FLAGS
  %first = word ptr, ptr %boards, i64 %device
  br label %board
board:
  %here = phi ptr [ %first, %begin ], [ %next, %end ]
  %none = icmp eq ptr %here, null
  br i1 %none, label %untold, label %flags
flags:
  %count = word i64, ptr %here, i64 BOARD_COUNT
  %memory = word ptr, ptr %here, i64 BOARD_MEMORY
  br label %flag
flag:
  %i = phi i64 [ 0, %flags ], [ %i.next, %look ]
  %last = icmp uge i64 %i, %count
  br i1 %last, label %end, label %look
look:
  %word = mul i64 %i, FLAG_WORDS
  %flag.at = getelementptr i64, ptr %memory, i64 %word
  %held = load atomic i8, ptr %flag.at monotonic, align 1
  %i.next = add i64 %i, 1
  %holds = icmp ne i8 %held, 0
  br i1 %holds, label %flag, label %told
end:
  %next = word ptr, ptr %here, i64 BOARD_NEXT
  br label %board
untold:
  ret i32 0
told:
  ret i32 1
}
"""

SIGNATURES = {
    **support_convolutions.SIGNATURES,
    **support_draws.SIGNATURES,
    **support_memory.SIGNATURES,
    **support_products.SIGNATURES,
    **support_reads.SIGNATURES,
    "irc_gpu_late": ("i32", ("ptr", "i64", "ptr", "ptr", "i64", "ptr")),
    "irc_gpu_told": ("i32", ("ptr", "i64")),
    "irc_gpu_check_tensor": ("i32", ("ptr", "i64", "ptr", "ptr", "ptr", "ptr")),
    "irc_gpu_check_number": ("i32", ("ptr", "i64", "ptr", "ptr", "ptr", "ptr")),
    "irc_gpu_enter": ("i32", ("ptr", "i64", "ptr")),
    "irc_gpu_leave": ("void", ("ptr", "ptr")),
    "irc_gpu_stream": ("i32", ("ptr", "i64", "ptr")),
    "irc_gpu_launch": ("i32", ("ptr", "ptr", "ptr", "i64", "ptr", "ptr", "ptr")),
}


def support_text() -> str:
    """The module as LLVM text, without a target line."""
    check = CHECK_TENSOR
    for old, new in _FOR_GPU:
        if check.count(old) != 1:
            raise AssertionError(f"irc_check_tensor has changed: {old}")
        check = check.replace(old, new)
    text = "".join((
        DECLARATIONS, check, DEVICES, LAUNCH, LATE, TOLD, support_products.products_text(),
        support_memory.memory_text(), support_convolutions.convolutions_text(),
        support_draws.draws_text(), support_reads.READS,
    ))  # fmt: skip
    for name in ("FIRST_VARIANT", "RING_BYTES", "RING_TAIL", "RING_PLACES",
                 "RING_MEMORY", "RING_KERNEL", "RING_ENTRIES", "CHECK_THREADS",
                 "BOARD_COUNT", "BOARD_MEMORY", "BOARD_NEXT", "FLAG_WORDS"):  # fmt: skip
        text = text.replace(name, str(globals()[name]))
    text = text.replace("EARLY_ATTRIBUTE", str(cuda.EARLY_ATTRIBUTE))
    for name in ("RINGS", "FLAGS", "GET_DEVICE", "IS_CAPTURING", "COPY_OUT", "LATE", "LAUNCH_EARLY",
                 "LAUNCH"):  # fmt: skip
        text = text.replace(f"TABLE_{name}", str(getattr(cuda, name)))
    return written_out(text.replace("LARGEST_GRID", str(_LARGEST_GRID)))
