"""Support functions, as LLVM text, around operators' results, the lock and boxed arguments.

`irc_fit_result(slot, spec) -> i32`: looks at an operator's result, whose handle is in `slot`, with
a `spec` as for arguments but without wildcards. Other strides, and another dtype than the one that
the operator's shape function promised, are mended: a copy takes its place in `slot`, and the handle
that was there is gone.
1 when rank or sizes differ, 2 when a shim failed.

`irc_arena_view(block, index, data, spec) -> ptr`: the handle number `index` that is kept with the
arena's `block`, made over `data` when it is missing; null when the shim failed.

`irc_fail(runtime, thread_state, callable, kinds, payload, count)`: calls what must raise.
`irc_lock` and `irc_unlock` keep the saved thread state in the word that they get, null while the
interpreter lock is held. `irc_drop_argument` and `irc_take_list` are for the references of a boxed
call.
"""

from __future__ import annotations

RESULTS = """
define i32 @irc_fit_result(ptr %slot, ptr %spec) {
entry:
  %dim.out = alloca i64
  %sizes.out = alloca ptr
  %strides.out = alloca ptr
  %dtype.out = alloca i32
  %made.out = alloca ptr
  %handle = load ptr, ptr %slot
  %e1 = call i32 @aoti_torch_get_dim(ptr %handle, ptr %dim.out)
  %e2 = call i32 @aoti_torch_get_sizes(ptr %handle, ptr %sizes.out)
  %e3 = call i32 @aoti_torch_get_strides(ptr %handle, ptr %strides.out)
  %e.dtype = call i32 @aoti_torch_get_dtype(ptr %handle, ptr %dtype.out)
  %e12 = or i32 %e1, %e2
  %e34 = or i32 %e3, %e.dtype
  %e = or i32 %e12, %e34
  %e.ok = icmp eq i32 %e, 0
  br i1 %e.ok, label %rank, label %failed
rank:
  %rank.at = getelementptr i64, ptr %spec, i64 1
  %want.rank = load i64, ptr %rank.at
  %rank.is = load i64, ptr %dim.out
  %rank.ok = icmp eq i64 %want.rank, %rank.is
  %with.strides.at = getelementptr i64, ptr %spec, i64 2
  %with.strides.word = load i64, ptr %with.strides.at
  %with.strides = icmp ne i64 %with.strides.word, 0
  %sizes = load ptr, ptr %sizes.out
  %strides = load ptr, ptr %strides.out
  %want.sizes = getelementptr i64, ptr %spec, i64 3
  %want.strides = getelementptr i64, ptr %want.sizes, i64 %want.rank
  %dtype.word = load i64, ptr %spec
  %dtype = trunc i64 %dtype.word to i32
  %dtype.is = load i32, ptr %dtype.out
  %dtype.differs = icmp ne i32 %dtype, %dtype.is
  br i1 %rank.ok, label %loop, label %wrong
loop:
  %i = phi i64 [ 0, %rank ], [ %i.next, %one ]
  %differs = phi i1 [ %dtype.differs, %rank ], [ %differs.next, %one ]
  %done = icmp eq i64 %i, %want.rank
  br i1 %done, label %compared, label %size
size:
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  %size.is = load i64, ptr %size.at
  %want.size = word i64, ptr %want.sizes, i64 %i
  %size.ok = icmp eq i64 %size.is, %want.size
  br i1 %size.ok, label %stride, label %wrong
stride:
  %stride.counts = icmp sgt i64 %size.is, 1
  %stride.looked = and i1 %stride.counts, %with.strides
  br i1 %stride.looked, label %compare, label %one
compare:
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %stride.is = load i64, ptr %stride.at
  %want.stride = word i64, ptr %want.strides, i64 %i
  %other = icmp ne i64 %stride.is, %want.stride
  br label %one
one:
  %differs.here = phi i1 [ false, %stride ], [ %other, %compare ]
  %differs.next = or i1 %differs, %differs.here
  %i.next = add i64 %i, 1
  br label %loop
compared:
  br i1 %differs, label %mend, label %good
mend:
  %made.strides = select i1 %with.strides, ptr %want.strides, ptr %strides
  %kind.out = alloca i32
  %index.out = alloca i32
  %e.kind = call i32 @aoti_torch_get_device_type(ptr %handle, ptr %kind.out)
  %e.index = call i32 @aoti_torch_get_device_index(ptr %handle, ptr %index.out)
  %kind = load i32, ptr %kind.out
  %index = load i32, ptr %index.out
  %e4 = call i32 @aoti_torch_empty_strided(i64 %want.rank, ptr %want.sizes, ptr %made.strides,
                                           i32 %dtype, i32 %kind, i32 %index, ptr %made.out)
  %empty.ok = icmp eq i32 %e4, 0
  br i1 %empty.ok, label %copy, label %failed
copy:
  %made = load ptr, ptr %made.out
  %e5 = call i32 @aoti_torch_copy_(ptr %made, ptr %handle, i32 0)
  %copy.ok = icmp eq i32 %e5, 0
  br i1 %copy.ok, label %replace, label %undo
replace:
  store ptr %made, ptr %slot
  %ignored = call i32 @aoti_torch_delete_tensor_object(ptr %handle)
  br label %good
undo:
  %ignored.too = call i32 @aoti_torch_delete_tensor_object(ptr %made)
  br label %failed
good:
  ret i32 0
wrong:
  ret i32 1
failed:
  ret i32 2
}

define ptr @irc_arena_view(ptr %block, i64 %index, ptr %data, ptr %spec) {
entry:
  %cache.at = getelementptr i8, ptr %block, i64 -56
  %cache = load ptr, ptr %cache.at
  %cell = getelementptr ptr, ptr %cache, i64 %index
  %known = load ptr, ptr %cell
  %missing = icmp eq ptr %known, null
  br i1 %missing, label %make, label %answer
answer:
  ret ptr %known
make:
  %dtype.word = load i64, ptr %spec
  %dtype = trunc i64 %dtype.word to i32
  %rank = word i64, ptr %spec, i64 1
  %sizes = getelementptr i64, ptr %spec, i64 3
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  %e = call i32 @aoti_torch_create_tensor_from_blob_v2(ptr %data, i64 %rank, ptr %sizes,
      ptr %strides, i64 0, i32 %dtype, i32 0, i32 -1, ptr %cell, i32 0, ptr null, i64 0)
  %ok = icmp eq i32 %e, 0
  br i1 %ok, label %made, label %failed
made:
  %new = load ptr, ptr %cell
  ret ptr %new
failed:
  store ptr null, ptr %cell
  ret ptr null
}
"""

LOCK = """
define void @irc_lock(ptr %thread.state) {
entry:
  %state = load ptr, ptr %thread.state
  %held = icmp eq ptr %state, null
  br i1 %held, label %done, label %take
take:
  store ptr null, ptr %thread.state
  call void @PyEval_RestoreThread(ptr %state)
  br label %done
done:
  ret void
}

define void @irc_unlock(ptr %thread.state) {
entry:
  %state = load ptr, ptr %thread.state
  %held = icmp eq ptr %state, null
  br i1 %held, label %give, label %done
give:
  %saved = call ptr @PyEval_SaveThread()
  store ptr %saved, ptr %thread.state
  br label %done
done:
  ret void
}

define void @irc_fail(ptr %runtime, ptr %thread.state, ptr %callable, ptr %kinds, ptr %payload,
                      i64 %count) {
entry:
  call void @irc_lock(ptr %thread.state)
  %result = call ptr @irc_call_python(ptr %callable, ptr %kinds, ptr %payload, i64 %count)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %done, label %silent
silent:
  call void @Py_DecRef(ptr %result)
  %error = word ptr, ptr %runtime, i64 11
  call void @PyErr_SetString(ptr %error, ptr @irc_silent)
  br label %done
done:
  ret void
}

define void @irc_drop_argument(ptr %owned, i64 %index, ptr %thread.state) {
entry:
  %none = icmp eq ptr %owned, null
  br i1 %none, label %done, label %drop
drop:
  call void @irc_lock(ptr %thread.state)
  %at = getelementptr ptr, ptr %owned, i64 %index
  %item = load ptr, ptr %at
  store ptr null, ptr %at
  call void @Py_DecRef(ptr %item)
  br label %done
done:
  ret void
}

define void @irc_take_list(ptr %list, ptr %owned, i64 %count) {
entry:
  %items.at = getelementptr i8, ptr %list, i64 24
  %items = load ptr, ptr %items.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %clear, label %one
one:
  %item = word ptr, ptr %items, i64 %i
  call void @Py_IncRef(ptr %item)
  %at = getelementptr ptr, ptr %owned, i64 %i
  store ptr %item, ptr %at
  %i.next = add i64 %i, 1
  br label %loop
clear:
  %ignored = call i32 @PyList_SetSlice(ptr %list, i64 0, i64 %count, ptr null)
  ret void
}

@irc_silent = private constant [42 x i8] c"a failed step of the program didn't raise\\00"
"""
