"""Emits one native host function: the program of a compiled graph as a Python builtin.

    emitter = HostEmitter(module, "program", arguments=2)
    x = emitter.argument_tensor(0, TensorSpec("float32", (None, 8), (8, 1)))
    rows = emitter.size(x, 0)
    emitter.begin()
    y = emitter.empty((rows, 8), (8, 1), "float32")
    emitter.call_kernel(kernel, [emitter.data(x), emitter.data(y)], extent=rows, grain=2048)
    emitter.finish([emitter.result_tensor(y)])

The module then exports `program` (one Python call argument per program argument) and
`program.boxed` (one list, which it empties). What belongs to a process and not to the code,
Python objects and the arena's slots, is reached through a context: an array of 64-bit words behind
the builtin's `self`. `object_slot(key)` reserves a word for an object that the loader supplies.

Until `begin`, nothing has happened that a caller could see, so a failed check hands the very same
arguments to the Python executor in the context's `CONTEXT_FALLBACK`, which raises the precise error
or runs the odd case slowly. After `begin`, every failure goes through one exit that deletes owned
handles, returns the arena, restores the thread's state and returns null with a Python error set.

Integers are i64, sizes and offsets in elements unless a name says bytes. Only a handle that was
made with `own` is deleted by the function; handles of arguments and constants are borrowed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from llvmlite import ir

from irc.codegen.host.base import (
    CDATA_POINTER,
    F64,
    I1,
    I8,
    I32,
    I64,
    OBJECT_SIZE,
    OBJECT_TYPE,
    PTR,
    RUNTIME_AUTOCAST_KEY,
    RUNTIME_AUTOGRAD_KEY,
    RUNTIME_FALSE,
    RUNTIME_FLOAT,
    RUNTIME_FORKED,
    RUNTIME_INT,
    RUNTIME_LIST,
    RUNTIME_NONE,
    RUNTIME_TRUE,
    TENSOR_FIELD,
    VOID,
    Arena,
    HostTensor,
    Size,
    TensorSpec,
    Value,
    as_value,
    constant,
    opaque,
)
from irc.codegen.host.memory import HostMemory
from irc.codegen.host.names import (
    CONTEXT_ARENA,
    CONTEXT_BOXED_FALLBACK,
    CONTEXT_FALLBACK,
    CONTEXT_OBJECTS,
    CONTEXT_RUNTIME,
)

__all__ = [
    "CONTEXT_ARENA", "CONTEXT_BOXED_FALLBACK", "CONTEXT_FALLBACK", "CONTEXT_OBJECTS",
    "CONTEXT_RUNTIME", "F64", "I1", "I8", "I32", "I64", "PTR", "VOID", "Arena", "HostEmitter",
    "Size", "HostTensor", "TensorSpec", "Value", "as_value", "constant",
]  # fmt: skip


class HostEmitter(HostMemory):
    """Builds one host function in `module`; see the module's text for the order of calls."""

    # Arguments and checks

    def require(self, condition: Value) -> None:
        """Before `begin`: hand the call to the Python executor unless `condition` (an i1)."""
        if self._began:
            raise AssertionError("argument checks come before begin()")
        after = self.function.append_basic_block("checked")
        self.builder.cbranch(condition, after, self._fallback)
        self.builder.position_at_end(after)

    def require_equal(self, left: Size, right: Size) -> None:
        """Before `begin`: hand the call to the Python executor unless the integers are equal."""
        self.require(self.builder.icmp_signed("==", as_value(left), as_value(right)))

    def _item(self, index: int) -> Value:
        at = self.builder.gep(self._items, [constant(index)], source_etype=PTR)
        return self.builder.load(at, typ=PTR)

    def _handle_of(self, item: Value) -> Value:
        return self.builder.gep(item, [constant(TENSOR_FIELD)], source_etype=I8)

    def argument_tensor(
        self, index: int, spec: TensorSpec, check: str = "irc_check_tensor", *more: Value
    ) -> HostTensor:
        """Argument `index`, checked against `spec`, with its data, sizes and strides.

        `check`: the support function that looks at it, and what it takes before the rest (`more`).
        """
        b = self.builder
        item = self._item(index)
        out = self.alloca(PTR, 3)
        checked = [*more, self._runtime, item, self.constants(spec.words()), out]
        failed = b.call(self._support(check), checked)
        self.require(b.icmp_signed("==", failed, ir.Constant(I32, 0)))
        handle = self._handle_of(item)
        return HostTensor(handle, len(spec.sizes), table=out, argument=index)

    def _require_type(self, item: Value, runtime_word: int) -> None:
        at = self.builder.gep(item, [constant(OBJECT_TYPE)], source_etype=I8)
        type_ = self.builder.load(at, typ=PTR)
        self.require(self.builder.icmp_unsigned("==", type_, self._runtime_object(runtime_word)))

    def argument_int(self, index: int) -> Value:
        """Argument `index` as an i64: exactly a Python int (a size, not a bool)."""
        item = self._item(index)
        self._require_type(item, RUNTIME_INT)
        overflow = self.alloca(I32)
        convert = self.declare("PyLong_AsLongLongAndOverflow", I64, (PTR, PTR))
        value = self.builder.call(convert, [item, overflow])
        seen = self.builder.load(overflow, typ=I32)
        self.require(self.builder.icmp_signed("==", seen, ir.Constant(I32, 0)))
        return value

    def argument_float(self, index: int) -> Value:
        """Argument `index` as a double: exactly a Python float."""
        item = self._item(index)
        self._require_type(item, RUNTIME_FLOAT)
        return self.builder.call(self.declare("PyFloat_AsDouble", F64, (PTR,)), [item])

    def argument_bool(self, index: int) -> Value:
        """Argument `index` as an i1: True or False."""
        b = self.builder
        item = self._item(index)
        true = b.icmp_unsigned("==", item, self._runtime_object(RUNTIME_TRUE))
        false = b.icmp_unsigned("==", item, self._runtime_object(RUNTIME_FALSE))
        self.require(b.or_(true, false))
        return true

    def constant_tensor(self, key: Hashable, rank: int) -> HostTensor:
        """A tensor object that the loader keeps (a weight, a buffer), borrowed and unchecked."""
        return HostTensor(self._handle_of(self.object(key)), rank)

    def release_argument(self, index: int) -> None:
        """Drop the reference to argument `index` when the caller gave it away (boxed calls)."""
        drop = self._support("irc_drop_argument")
        self.builder.call(drop, [self._owned, constant(index), self._thread_state])

    def begin(self, *, below_autograd: bool = False, other_keys: Sequence[Value] = ()) -> None:
        """End of the argument checks. `below_autograd` when any ATen op is called.

        Turns grad mode off and excludes autograd and autocast (and the dispatch keys `other_keys`)
        on this thread until the exit.
        """
        self._began = True
        if not below_autograd:
            return
        b = self.builder
        is_enabled = self.declare("aoti_torch_grad_mode_is_enabled", I8, ())
        is_excluded = self.declare("irc_tls_is_excluded", I8, (I32,))
        self._guards = [(None, b.call(is_enabled, []))]
        own = (RUNTIME_AUTOGRAD_KEY, RUNTIME_AUTOCAST_KEY)
        keys = [b.load(self.word(self._runtime, word), typ=I64) for word in own]
        for wide in (*keys, *other_keys):
            key = b.trunc(wide, I32)
            self._guards.append((key, b.call(is_excluded, [key])))
        self._guards = [(key, self._spill(b.and_(was, I8(1)))) for key, was in self._guards]
        self._set_guards(lambda key, was: I32(0) if key is None else I32(1))

    def _spill(self, value: Value) -> Value:
        room = self.alloca(value.type)
        self.builder.store(value, room)
        return room

    def _set_guards(self, state_of: Callable[[Value | None, Value], Value]) -> None:
        set_enabled = self.declare("aoti_torch_grad_mode_set_enabled", VOID, (I32,))
        set_excluded = self.declare("irc_tls_set_excluded", VOID, (I32, I32))
        for key, was in self._guards:
            if key is None:
                self.builder.call(set_enabled, [state_of(key, was)])
            else:
                self.builder.call(set_excluded, [key, state_of(key, was)])

    # Kernels

    def call_kernel(
        self,
        kernel: ir.Function,
        arguments: Sequence[Value],
        *,
        extent: Size | None = None,
        grain: Size = 1,
        on_status: Hashable | None = None,
    ) -> None:
        """Call a generated kernel: `kernel(arguments..., begin, end)`, or without a range.

        With `extent`, [0, extent) is divided among torch's threads in pieces of at least `grain`,
        as `at::parallel_for` does; one thread, or an extent of at most `grain`, is a plain call.
        A kernel that returns i32 reports 0 for success; any other code of any piece fails with
        `on_status`, called with that code.
        """
        b = self.builder
        has_status = kernel.function_type.return_type != VOID
        if extent is None:
            status = b.call(kernel, list(arguments))
        else:
            status = self._ranged_call(kernel, list(arguments), as_value(extent), as_value(grain))
        if has_status:
            if on_status is None:
                raise AssertionError(f"{kernel.name} returns a status that nobody checks")
            bad = b.icmp_signed("!=", status, I32(0))
            self.fail_if(bad, on_status, [b.sext(status, I64)])

    def threads(self) -> Value:
        """torch's thread count at this call as an i64; 1 in a forked child."""
        if self._threads is None:
            out = opaque(self._allocas.alloca(I32))
            function = self.declare("torch_get_num_threads", I32, (PTR,))
            self._allocas.call(function, [out])
            count = self._allocas.zext(self._allocas.load(out, typ=I32), I64)
            forked = self._allocas.load(
                self.word(self._runtime, RUNTIME_FORKED, self._allocas), typ=I64
            )
            alone = self._allocas.icmp_signed("!=", forked, constant(0))
            self._threads = self._allocas.select(alone, constant(1), count)
        return self._threads

    def _ranged_call(
        self, kernel: ir.Function, arguments: list[Value], extent: Value, grain: Value
    ) -> Value:
        b = self.builder
        status = None
        if kernel.function_type.return_type != VOID:
            status = self.alloca(I32)
            b.store(I32(0), status)
        many = b.icmp_signed(">", extent, grain)
        several = b.icmp_signed(">", self.threads(), constant(1))
        with b.if_else(b.and_(many, several)) as (parallel, serial):
            with parallel:
                self._parallel_call(kernel, arguments, extent, grain, status)
            with serial:
                code = b.call(kernel, [*arguments, constant(0), extent])
                if status is not None:
                    b.store(code, status)
        return code if status is None else b.load(status, typ=I32)

    def _parallel_call(
        self,
        kernel: ir.Function,
        arguments: list[Value],
        extent: Value,
        grain: Value,
        status: Value | None,
    ) -> None:
        b = self.builder
        members = arguments if status is None else [status, *arguments]
        # Named, so that not every access to an argument repeats the types of all.
        record = self.module.context.get_identified_type(f"{kernel.name}.arguments")
        if record.is_opaque:
            record.set_body(*(a.type for a in members))
        assert list(record.elements) == [a.type for a in members], kernel.name
        packed = self.alloca(record)
        for i, value in enumerate(members):
            at = b.gep(packed, [I32(0), I32(i)], source_etype=record)
            b.store(value, at)
        piece = self._trampoline(kernel, record)
        run = self.declare("torch_parallel_for", I32, (I64, I64, I64, PTR, PTR))
        b.call(run, [constant(0), extent, grain, piece, packed])

    def _trampoline(self, kernel: ir.Function, record: ir.IdentifiedStructType) -> ir.Function:
        """The function that a thread runs: unpacks `record`, calls `kernel` on [begin, end)."""
        name = f"{kernel.name}.piece"
        known = self.module.globals.get(name)
        if known is not None:
            return known
        piece = ir.Function(self.module, ir.FunctionType(VOID, (I64, I64, PTR)), name)
        piece.linkage = "internal"
        begin, end, packed = piece.args
        b = ir.IRBuilder(piece.append_basic_block("entry"))
        values = []
        for i, type_ in enumerate(record.elements):
            at = b.gep(packed, [I32(0), I32(i)], source_etype=record)
            values.append(b.load(at, typ=type_))
        has_status = kernel.function_type.return_type != VOID
        code = b.call(kernel, [*values[int(has_status) :], begin, end])
        if has_status:
            with b.if_then(b.icmp_signed("!=", code, I32(0))):
                b.atomic_rmw("xchg", values[0], code, "monotonic")
        b.ret_void()
        return piece

    # Results

    def result_tensor(self, tensor: HostTensor) -> Callable[[], Value]:
        """The tensor as a Python object; an argument stays the object that the caller passed."""
        if tensor.argument is not None:
            return lambda: self._borrowed_result(self._item(tensor.argument or 0))
        wrap = self.declare("irc_wrap_tensor", PTR, (PTR,))
        return lambda: self.builder.call(wrap, [tensor.handle])

    def _borrowed_result(self, item: Value) -> Value:
        self.builder.call(self.declare("Py_IncRef", VOID, (PTR,)), [item])
        return item

    def result_object(self, key: Hashable) -> Callable[[], Value]:
        """A Python object that the loader keeps: a constant result."""
        return lambda: self._borrowed_result(self.object(key))

    def result_none(self) -> Callable[[], Value]:
        """None."""
        return lambda: self._borrowed_result(self._runtime_object(RUNTIME_NONE))

    def result_int(self, value: Size) -> Callable[[], Value]:
        """A Python int."""
        make = self.declare("PyLong_FromLongLong", PTR, (I64,))
        return lambda: self.builder.call(make, [as_value(value)])

    def result_float(self, value: Value) -> Callable[[], Value]:
        """A Python float."""
        make = self.declare("PyFloat_FromDouble", PTR, (F64,))
        return lambda: self.builder.call(make, [value])

    def result_bool(self, value: Value) -> Callable[[], Value]:
        """True or False from an i1."""
        make = self.declare("PyBool_FromLong", PTR, (I64,))
        return lambda: self.builder.call(make, [self.builder.zext(value, I64)])

    def finish(self, results: Sequence[Callable[[], Value]]) -> None:
        """Return the results as a tuple and complete the function and its two entries."""
        self.lock()
        b = self.builder
        new_tuple = self.declare("PyTuple_New", PTR, (I64,))
        results_tuple = b.call(new_tuple, [constant(len(results))])
        b.store(results_tuple, self._result)
        self.error_if_null(results_tuple)
        set_item = self.declare("PyTuple_SetItem", I32, (PTR, I64, PTR))
        for i, make in enumerate(results):
            item = make()
            self.error_if_null(item)
            b.call(set_item, [results_tuple, constant(i), item])
        b.branch(self._cleanup)
        self._finish_failures()
        self._finish_exits()
        self._allocas.branch(self.function.blocks[1])
        self._handle_count.set(max(1, self._handles))
        self._handle_bytes.set(8 * self._handles)
        self._large_results_count.set(self._large_results)
        for _, views, arena in self._arenas:
            views.set(arena.views)
        self._define_entries()

    def _finish_exits(self) -> None:
        b = self.builder
        b.position_at_end(self._error)
        partial = b.load(self._result, typ=PTR)
        with b.if_then(b.icmp_unsigned("!=", partial, PTR(None))):
            b.call(self.declare("Py_DecRef", VOID, (PTR,)), [partial])
            b.store(PTR(None), self._result)
        b.branch(self._cleanup)
        b.position_at_end(self._cleanup)
        if self._handles:
            every = [self._handle_slots, constant(self._handles)]
            b.call(self._support("irc_release_handles"), every)
        for room, _, _ in self._arenas:
            block = b.load(room, typ=PTR)
            with b.if_then(b.icmp_unsigned("!=", block, PTR(None))):
                b.call(self._support("irc_arena_release"), [self._arena_slots(), block])
        self._set_guards(lambda key, was: b.zext(b.load(was, typ=I8), I32))
        for act in self._last_acts:
            act()
        b.ret(b.load(self._result, typ=PTR))
        b.position_at_end(self._fallback)
        b.ret(self._call_fallback(b, self._context, self._items, constant(self.arguments)))

    def _call_fallback(
        self,
        b: ir.IRBuilder,
        context: Value,
        items: Value,
        count: Value,
        which: int = CONTEXT_FALLBACK,
    ) -> Value:
        word = self.word(context, which, b)
        call = self.declare("PyObject_Vectorcall", PTR, (PTR, PTR, I64, PTR))
        return b.call(call, [b.load(word, typ=PTR), items, count, PTR(None)])

    def _define_entries(self) -> None:
        self._define_entry()
        self._define_boxed_entry()

    def _define_entry(self) -> None:
        entry = ir.Function(self.module, ir.FunctionType(PTR, (PTR, PTR, I64)), self.name)
        self_object, items, count = entry.args
        b = ir.IRBuilder(entry.append_basic_block("entry"))
        with b.if_then(b.icmp_signed("!=", count, constant(self.arguments)), likely=False):
            at = b.gep(self_object, [constant(CDATA_POINTER)], source_etype=I8)
            b.ret(self._call_fallback(b, b.load(at, typ=PTR), items, count))
        b.ret(b.call(self.function, [self_object, items, PTR(None)]))

    def _define_boxed_entry(self) -> None:
        """The entry that takes a list: its references move here, the list becomes empty."""
        entry = ir.Function(self.module, ir.FunctionType(PTR, (PTR, PTR)), f"{self.name}.boxed")
        self_object, arguments = entry.args
        b = ir.IRBuilder(entry.append_basic_block("entry"))
        context_at = b.gep(self_object, [constant(CDATA_POINTER)], source_etype=I8)
        context = b.load(context_at, typ=PTR)
        owned = opaque(b.alloca(PTR, size=constant(max(1, self.arguments))))
        runtime = b.load(context, typ=PTR)
        list_type = b.load(self.word(runtime, RUNTIME_LIST, b), typ=PTR)
        type_at = b.gep(arguments, [constant(OBJECT_TYPE)], source_etype=I8)
        is_list = b.icmp_unsigned("==", b.load(type_at, typ=PTR), list_type)
        size_at = b.gep(arguments, [constant(OBJECT_SIZE)], source_etype=I8)
        right_size = b.icmp_signed("==", b.load(size_at, typ=I64), constant(self.arguments))
        with b.if_then(b.not_(b.and_(is_list, right_size)), likely=False):
            room = opaque(b.alloca(PTR))
            b.store(arguments, room)
            b.ret(self._call_fallback(b, context, room, constant(1), CONTEXT_BOXED_FALLBACK))
        take = self._support("irc_take_list")
        b.call(take, [arguments, owned, constant(self.arguments)])
        result = b.call(self.function, [self_object, owned, owned])
        release = self._support("irc_release_objects")
        b.call(release, [owned, constant(self.arguments)])
        b.ret(result)
