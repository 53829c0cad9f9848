"""Support functions, as LLVM text, for large results: their memory serves again when they are gone.

A fresh page costs its first touch, 2 us in a virtual machine with a Zen 4, so that a result of 51
MB, as GPT-2's logits, takes 26 ms instead of 4, and a step with 134 MB of gradients 103 instead of
27 (`bench.large_results`). What malloc is given back above 32 MB goes to the system at once.
So a result of more than `POOLED_BYTES` is a block of a pool of its own
(`irc.codegen.host.support_arena`), and returns there when torch drops its storage, in any thread,
with the interpreter lock or without. What a caller holds is never used again before.

The tensor is torch's `from_blob` with a deleter; its storage is told torch's allocator, so that it
can be resized like any other (`irc.boundary.storages` finds where, and tests it).

`@irc_kept`: the words `KEPT_FROM_BLOB` and so on, then the pool.
`irc_new_result(rank, sizes, strides, dtype, bytes, asked, most, handle) -> i32`: a new tensor of
the CPU, uninitialized, as `aoti_torch_empty_strided` makes one, of `bytes` bytes, in a block that
holds at most `most`, unsigned; huge pages are asked for `asked` bytes of fresh memory. A block that
torch makes no tensor of is left: whether it was dropped by then is not known.
"""

from __future__ import annotations

from irc.codegen.host import support_arena

#: Words before the pool: the address of `torch_from_blob`, 0 where results are torch's alone; where
#: a tensor has its storage and a storage its allocator and its leave to be resized, in bytes; and
#: torch's allocator.
KEPT_FROM_BLOB, KEPT_STORAGE, KEPT_ALLOCATOR, KEPT_RESIZABLE, KEPT_TORCH, KEPT_HEAD = range(6)
#: The gradients of a large model are some hundreds.
KEPT_PLACES = 512
KEPT_WORDS = KEPT_HEAD + support_arena.POOL_HEAD + 3 * KEPT_PLACES
SYMBOL = "irc_kept"

_TEXT = """
@irc_kept = external global i64

define i32 @irc_new_result(i64 %rank, ptr %sizes, ptr %strides, i32 %dtype, i64 %bytes,
                           i64 %asked, i64 %most, ptr %out) {
entry:
  %from.blob = load ptr, ptr @irc_kept
  %able = icmp ne ptr %from.blob, null
  %large = icmp sgt i64 %bytes, POOLED_BYTES
  %kept = and i1 %able, %large
  %pool = getelementptr i64, ptr @irc_kept, i64 KEPT_HEAD
  br i1 %kept, label %take, label %plain
take:
  %known = call ptr @irc_pool_take(ptr %pool, i64 0, i64 %bytes, i64 %most)
  %none = icmp eq ptr %known, null
  br i1 %none, label %fresh, label %wrap
fresh:
  %padded = add i64 %bytes, 63
  %capacity = and i64 %padded, -64
  %total = add i64 %capacity, 64
  %data = call ptr @irc_block(i64 %total, i1 false)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %plain, label %hint.fresh
hint.fresh:
  call void @irc_huge_pages(ptr %data, i64 %asked)
  br label %wrap
wrap:
  %block = phi ptr [ %known, %take ], [ %data, %hint.fresh ]
  %error = call i32 %from.blob(ptr %block, i64 %rank, ptr %sizes, ptr %strides, i64 0, i32 %dtype,
      i32 0, i32 -1, ptr %out, i32 0, ptr null, i64 0, ptr @irc_drop_result, ptr null)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %told, label %plain
told:
  %handle = load ptr, ptr %out
  %tensor = load ptr, ptr %handle
  %words = getelementptr i64, ptr @irc_kept, i64 0
  %to.storage = word i64, ptr %words, i64 KEPT_STORAGE
  %storage.at = getelementptr i8, ptr %tensor, i64 %to.storage
  %storage = load ptr, ptr %storage.at
  %to.allocator = word i64, ptr %words, i64 KEPT_ALLOCATOR
  %allocator.at = getelementptr i8, ptr %storage, i64 %to.allocator
  %torchs = word i64, ptr %words, i64 KEPT_TORCH
  store i64 %torchs, ptr %allocator.at
  %to.resizable = word i64, ptr %words, i64 KEPT_RESIZABLE
  %resizable.at = getelementptr i8, ptr %storage, i64 %to.resizable
  store i8 1, ptr %resizable.at
  ret i32 0
plain:
  %plain.error = call i32 @aoti_torch_empty_strided(i64 %rank, ptr %sizes, ptr %strides,
                                                    i32 %dtype, i32 0, i32 -1, ptr %out)
  %made = icmp eq i32 %plain.error, 0
  %hinted = and i1 %made, %large
  br i1 %hinted, label %hint, label %done
hint:
  %plain.handle = load ptr, ptr %out
  %data.out = alloca ptr
  %ignored = call i32 @aoti_torch_get_data_ptr(ptr %plain.handle, ptr %data.out)
  %plain.data = load ptr, ptr %data.out
  call void @irc_huge_pages(ptr %plain.data, i64 %asked)
  br label %done
done:
  ret i32 %plain.error
}

define void @irc_drop_result(ptr %data, ptr %context) {
entry:
  %pool = getelementptr i64, ptr @irc_kept, i64 KEPT_HEAD
  call void @irc_pool_put(ptr %pool, ptr %data)
  ret void
}
"""

SIGNATURES = {
    "irc_new_result": ("i32", ("i64", "ptr", "ptr", "i32", "i64", "i64", "i64", "ptr")),
    "irc_drop_result": ("void", ("ptr", "ptr")),
}


def kept_text() -> str:
    """The functions as LLVM text."""
    text = _TEXT.replace("POOLED_BYTES", str(support_arena.POOLED_BYTES))
    for name in ("KEPT_STORAGE", "KEPT_ALLOCATOR", "KEPT_RESIZABLE", "KEPT_TORCH", "KEPT_HEAD"):
        text = text.replace(name, str(globals()[name]))
    return text
