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
from contextlib import contextmanager
from typing import Any

import attrs
from llvmlite import ir

from irc.codegen.llvm import host_support as support

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
F64, PTR, VOID = ir.DoubleType(), ir.PointerType(), ir.VoidType()
_TYPES = {"i32": I32, "i64": I64, "ptr": PTR, "void": VOID}

#: Words of the context before the objects: the runtime table, the arena's slots, the
#: Python executor for many arguments and for one list.
CONTEXT_RUNTIME, CONTEXT_ARENA, CONTEXT_FALLBACK, CONTEXT_BOXED_FALLBACK = 0, 1, 2, 3
CONTEXT_OBJECTS = 4

#: Indices into `irc.runtime.torch_abi.runtime_table()`.
_RUNTIME_NONE, _RUNTIME_FORKED, _RUNTIME_TRUE, _RUNTIME_FALSE, _RUNTIME_LIST = 2, 6, 7, 8, 9
_RUNTIME_SYSTEM_ERROR = 11
_RUNTIME_INT, _RUNTIME_FLOAT, _RUNTIME_AUTOGRAD_KEY, _RUNTIME_AUTOCAST_KEY = 12, 13, 14, 15
_TENSOR_FIELD, _CDATA_POINTER, _LIST_ITEMS, _OBJECT_SIZE, _OBJECT_TYPE = 16, 16, 24, 16, 8

Value = ir.Value
Size = int | ir.Value


@attrs.frozen
class TensorSpec:
    """What an argument must be: dtype code, sizes and strides with None for "any, read it".

    `dtype` is torch's integer code (`torch_abi.dtype_code`); `strides` None accepts any.
    """

    dtype: int
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None = None

    def words(self) -> list[int]:
        """The table that `irc_check_tensor` reads."""
        strides = self.strides if self.strides is not None else (None,) * len(self.sizes)
        shape = [-1 if d is None else d for d in (*self.sizes, *strides)]
        return [self.dtype, len(self.sizes), int(self.strides is not None), *shape]


@attrs.define(eq=False)
class Tensor:
    """A tensor in the program: its handle, and what has been read from it so far."""

    handle: Value
    rank: int
    data: Value | None = None
    sizes: Value | None = None
    strides: Value | None = None
    #: Index of the owned handle slot, None when borrowed.
    slot: int | None = None
    #: Index of the argument that it is, None when it isn't one.
    argument: int | None = None


@attrs.define(eq=False)
class Arena:
    """One block of scratch memory for the length of a call."""

    block: Value
    views: int = 0


class _LateInt(ir.Constant):
    """An integer constant whose value is known when the function is finished."""

    def __init__(self) -> None:
        super().__init__(I64, 0)

    def set(self, value: int) -> None:
        """Fix the value: before the module is printed."""
        self.constant = value


def _opaque(value: Value) -> Value:
    """llvmlite gives memory it makes a typed pointer; everything here uses opaque ones."""
    value.type = PTR
    return value


def constant(value: int) -> ir.Constant:
    """An i64 constant."""
    return ir.Constant(I64, value)


def as_value(value: Size) -> Value:
    """`value` as an i64: Python integers become constants."""
    return constant(value) if isinstance(value, int) else value


class HostEmitter:
    """Builds one host function in `module`; see the module's text for the order of calls."""

    def __init__(self, module: ir.Module, name: str, *, arguments: int) -> None:
        self.module, self.name, self.arguments = module, name, arguments
        self.slot_keys: list[Hashable] = []
        #: Names of the functions that the loader must find.
        self.externals: set[str] = set()
        self._globals = 0
        self._handles = 0
        self._arenas: list[tuple[Value, _LateInt, Arena]] = []
        self._trampolines: dict[tuple[str, tuple[str, ...]], ir.Function] = {}
        self._threads: Value | None = None
        self._unlocked: Value | None = None
        self._began = False
        kind = ir.FunctionType(PTR, (PTR, PTR, PTR))
        self.function = ir.Function(module, kind, f"{name}.body")
        self.function.linkage = "internal"
        self._self, self._items, self._owned = self.function.args
        self._allocas = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(self.function.append_basic_block("start"))
        self._fallback = self.function.append_basic_block("fallback")
        self._error = self.function.append_basic_block("error")
        self._cleanup = self.function.append_basic_block("cleanup")
        self._prepare()

    # Building blocks

    def _prepare(self) -> None:
        b = self._allocas
        at = b.gep(self._self, [constant(_CDATA_POINTER)], source_etype=I8)
        self._context = b.load(at, typ=PTR)
        self._runtime = b.load(self._context, typ=PTR)
        self._handle_count = _LateInt()
        self._handle_slots = _opaque(b.alloca(PTR, size=self._handle_count, name="handles"))
        self._handle_bytes = _LateInt()
        b.call(
            self.declare("memset", PTR, (PTR, I32, I64)),
            [self._handle_slots, ir.Constant(I32, 0), self._handle_bytes],
        )
        self._result = _opaque(b.alloca(PTR, name="result"))
        b.store(PTR(None), self._result)
        self._thread_state = _opaque(b.alloca(PTR, name="thread.state"))
        b.store(PTR(None), self._thread_state)
        self._guards: list[tuple[Value | None, Value]] = []

    def declare(self, name: str, result: ir.Type, parameters: Sequence[ir.Type]) -> ir.Function:
        """The external function `name` in this module, declared once."""
        self.externals.add(name)
        known = self.module.globals.get(name)
        if known is not None:
            return known
        return ir.Function(self.module, ir.FunctionType(result, parameters), name)

    def _support(self, name: str) -> ir.Function:
        result, parameters = support.SIGNATURES[name]
        return self.declare(name, _TYPES[result], [_TYPES[p] for p in parameters])

    def alloca(self, kind: ir.Type, count: int | None = None) -> Value:
        """Stack memory that lives as long as the call (never inside a loop's growth)."""
        size = None if count is None else constant(count)
        return _opaque(self._allocas.alloca(kind, size=size))

    def constants(self, values: Sequence[int], kind: ir.Type = I64) -> Value:
        """A pointer to a constant array in the module."""
        array = ir.ArrayType(kind, max(1, len(values)))
        words = list(values) or [0]
        data = ir.GlobalVariable(self.module, array, f"{self.name}.data.{self._globals}")
        self._globals += 1
        data.initializer = ir.Constant(array, [ir.Constant(kind, v) for v in words])
        data.linkage, data.global_constant = "internal", True
        return _opaque(data)

    def text(self, value: str) -> Value:
        """A pointer to `value` as a zero-ended UTF-8 string."""
        return self.constants([*value.encode(), 0], I8)

    def array(self, values: Sequence[Size]) -> Value:
        """A pointer to i64s: in the module when all are constant, else on the stack."""
        if all(isinstance(v, int) for v in values):
            return self.constants([v for v in values if isinstance(v, int)])
        room = self.alloca(I64, len(values))
        for i, value in enumerate(values):
            self.builder.store(as_value(value), self.word(room, i))
        return room

    def word(self, base: Value, index: int, builder: ir.IRBuilder | None = None) -> Value:
        """The address of the `index`-th 64-bit word from `base`."""
        return (builder or self.builder).gep(base, [constant(index)], source_etype=I64)

    def object_slot(self, key: Hashable) -> int:
        """Reserve the context word for the Python object named `key`; equal keys share one.

        The loader stores there the address of the object that it makes for `key`, and keeps the
        object alive. `slot_keys[i]` is the key of word `CONTEXT_OBJECTS + i`.
        """
        if key not in self.slot_keys:
            self.slot_keys.append(key)
        return CONTEXT_OBJECTS + self.slot_keys.index(key)

    def object(self, key: Hashable) -> Value:
        """The Python object named `key`, borrowed."""
        word = self.word(self._context, self.object_slot(key))
        return self.builder.load(word, typ=PTR)

    def _runtime_object(self, index: int) -> Value:
        return self.builder.load(self.word(self._runtime, index), typ=PTR)

    @contextmanager
    def _cold(self, condition: Value, name: str) -> Any:
        """Emit into a block that runs only when `condition`; it must end the block itself."""
        taken = self.function.append_basic_block(name)
        after = self.function.append_basic_block("next")
        self.builder.cbranch(condition, taken, after)
        self.builder.position_at_end(taken)
        yield
        self.builder.position_at_end(after)

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
        return self.builder.gep(item, [constant(_TENSOR_FIELD)], source_etype=I8)

    def argument_tensor(self, index: int, spec: TensorSpec) -> Tensor:
        """Argument `index`, checked against `spec`, with its data, sizes and strides."""
        b = self.builder
        item = self._item(index)
        out = self.alloca(PTR, 3)
        spec_words = self.constants(spec.words())
        failed = b.call(self._support("irc_check_tensor"), [self._runtime, item, spec_words, out])
        self.require(b.icmp_signed("==", failed, ir.Constant(I32, 0)))
        data, sizes, strides = (b.load(self.word(out, i), typ=PTR) for i in range(3))
        handle = self._handle_of(item)
        return Tensor(handle, len(spec.sizes), data, sizes, strides, argument=index)

    def _require_type(self, item: Value, runtime_word: int) -> None:
        at = self.builder.gep(item, [constant(_OBJECT_TYPE)], source_etype=I8)
        kind = self.builder.load(at, typ=PTR)
        self.require(self.builder.icmp_unsigned("==", kind, self._runtime_object(runtime_word)))

    def argument_int(self, index: int) -> Value:
        """Argument `index` as an i64: exactly a Python int (a size, not a bool)."""
        item = self._item(index)
        self._require_type(item, _RUNTIME_INT)
        overflow = self.alloca(I32)
        convert = self.declare("PyLong_AsLongLongAndOverflow", I64, (PTR, PTR))
        value = self.builder.call(convert, [item, overflow])
        seen = self.builder.load(overflow, typ=I32)
        self.require(self.builder.icmp_signed("==", seen, ir.Constant(I32, 0)))
        return value

    def argument_float(self, index: int) -> Value:
        """Argument `index` as a double: exactly a Python float."""
        item = self._item(index)
        self._require_type(item, _RUNTIME_FLOAT)
        return self.builder.call(self.declare("PyFloat_AsDouble", F64, (PTR,)), [item])

    def argument_bool(self, index: int) -> Value:
        """Argument `index` as an i1: True or False."""
        b = self.builder
        item = self._item(index)
        true = b.icmp_unsigned("==", item, self._runtime_object(_RUNTIME_TRUE))
        false = b.icmp_unsigned("==", item, self._runtime_object(_RUNTIME_FALSE))
        self.require(b.or_(true, false))
        return true

    def constant_tensor(self, key: Hashable, rank: int) -> Tensor:
        """A tensor object that the loader keeps (a weight, a buffer), borrowed and unchecked."""
        return Tensor(self._handle_of(self.object(key)), rank)

    def begin(self, *, below_autograd: bool = False) -> None:
        """End of the argument checks. `below_autograd` when any ATen op is called.

        Turns grad mode off and excludes autograd and autocast on this thread until the exit.
        """
        self._began = True
        if not below_autograd:
            return
        b = self.builder
        is_enabled = self.declare("aoti_torch_grad_mode_is_enabled", I8, ())
        is_excluded = self.declare("irc_tls_is_excluded", I8, (I32,))
        self._guards = [(None, b.call(is_enabled, []))]
        for word in (_RUNTIME_AUTOGRAD_KEY, _RUNTIME_AUTOCAST_KEY):
            key = b.trunc(b.load(self.word(self._runtime, word), typ=I64), I32)
            self._guards.append((key, b.call(is_excluded, [key])))
        self._guards = [(key, self._spill(b.and_(was, I8(1)))) for key, was in self._guards]
        self._set_guards(lambda key, was: I32(0) if key is None else I32(1))

    def _spill(self, value: Value) -> Value:
        room = self.alloca(value.type)
        self.builder.store(value, room)
        return room

    def _set_guards(self, wanted: Callable[[Value | None, Value], Value]) -> None:
        set_enabled = self.declare("aoti_torch_grad_mode_set_enabled", VOID, (I32,))
        set_excluded = self.declare("irc_tls_set_excluded", VOID, (I32, I32))
        for key, was in self._guards:
            if key is None:
                self.builder.call(set_enabled, [wanted(key, was)])
            else:
                self.builder.call(set_excluded, [key, wanted(key, was)])

    # What a tensor says

    def _read(self, tensor: Tensor, what: str, kind: ir.Type) -> Value:
        """A borrowed field through the C shim `what`; the shim can't fail on a live tensor."""
        out = self.alloca(kind)
        function = self.declare(f"aoti_torch_get_{what}", I32, (PTR, PTR))
        self.builder.call(function, [tensor.handle, out])
        return self.builder.load(out, typ=kind)

    def data(self, tensor: Tensor) -> Value:
        """Address of the tensor's first element."""
        if tensor.data is None:
            tensor.data = self._read(tensor, "data_ptr", PTR)
        return tensor.data

    def size(self, tensor: Tensor, dimension: int) -> Value:
        """Elements along `dimension`."""
        if tensor.sizes is None:
            tensor.sizes = self._read(tensor, "sizes", PTR)
        return self.builder.load(self.word(tensor.sizes, dimension), typ=I64)

    def stride(self, tensor: Tensor, dimension: int) -> Value:
        """Elements between neighbours along `dimension`."""
        if tensor.strides is None:
            tensor.strides = self._read(tensor, "strides", PTR)
        return self.builder.load(self.word(tensor.strides, dimension), typ=I64)

    def storage_offset(self, tensor: Tensor) -> Value:
        """Elements between the storage's begin and the tensor's first element."""
        return self._read(tensor, "storage_offset", I64)

    # Tensors that the program makes

    def new_slots(self, count: int) -> int:
        """Reserve `count` consecutive owned handle slots, null at first; the index of the first.

        Whatever handle is stored in one is deleted at the exit, if not released before.
        """
        self._handles += count
        return self._handles - count

    def slot(self, index: int) -> Value:
        """The address of an owned handle slot."""
        return self.builder.gep(self._handle_slots, [constant(index)], source_etype=PTR)

    def own(self, rank: int, slot: int) -> Tensor:
        """The tensor whose handle a call has just stored into the owned slot `slot`."""
        return Tensor(self.builder.load(self.slot(slot), typ=PTR), rank, slot=slot)

    def release(self, tensor: Tensor) -> None:
        """Delete an owned tensor's handle now instead of at the exit."""
        if tensor.slot is None:
            return
        one = [self.slot(tensor.slot), constant(1)]
        self.builder.call(self._support("irc_release_handles"), one)

    def release_argument(self, index: int) -> None:
        """Drop the reference to argument `index` when the caller gave it away (boxed calls)."""
        b = self.builder
        gave = b.icmp_unsigned("!=", self._owned, PTR(None))
        with b.if_then(gave):
            at = b.gep(self._owned, [constant(index)], source_etype=PTR)
            item = b.load(at, typ=PTR)
            b.store(PTR(None), at)
            b.call(self.declare("Py_DecRef", VOID, (PTR,)), [item])

    def empty(self, sizes: Sequence[Size], strides: Sequence[Size], dtype: int) -> Tensor:
        """A new uninitialized CPU tensor with exactly these strides, owned."""
        slot = self.new_slots(1)
        function = self.declare(
            "aoti_torch_empty_strided", I32, (I64, PTR, PTR, I32, I32, I32, PTR)
        )
        failed = self.builder.call(
            function,
            [
                constant(len(sizes)),
                self.array(sizes),
                self.array(strides),
                I32(dtype),
                I32(0),
                I32(-1),
                self.slot(slot),
            ],
        )
        self.fail_if_error(failed, ("shim-error", "empty_strided"), [])
        tensor = self.own(len(sizes), slot)
        return tensor

    def view(
        self, base: Tensor, sizes: Sequence[Size], strides: Sequence[Size], offset: Size
    ) -> Tensor:
        """A handle that shares `base`'s storage at `offset` elements, invisible to autograd.

        For operands of calls inside the program; `result_view` makes what a caller sees.
        """
        slot = self.new_slots(1)
        function = self.declare(
            "aoti_torch__reinterpret_tensor", I32, (PTR, I64, PTR, PTR, I64, PTR)
        )
        failed = self.builder.call(
            function,
            [
                base.handle,
                constant(len(sizes)),
                self.array(sizes),
                self.array(strides),
                as_value(offset),
                self.slot(slot),
            ],
        )
        self.fail_if_error(failed, ("shim-error", "as_strided"), [])
        return self.own(len(sizes), slot)

    # Scratch memory

    def arena(self, size_bytes: Size) -> Arena:
        """Scratch memory of at least `size_bytes` bytes, aligned to 64, for this call only."""
        room = _opaque(self._allocas.alloca(PTR, name="arena"))
        self._allocas.store(PTR(None), room)
        views = _LateInt()
        acquire = self._support("irc_arena_acquire")
        block = self.builder.call(acquire, [self._arena_slots(), as_value(size_bytes), views])
        self.builder.store(block, room)
        empty = self.builder.icmp_unsigned("==", block, PTR(None))
        self.fail_if(empty, ("no-memory",), [as_value(size_bytes)])
        arena = Arena(block)
        self._arenas.append((room, views, arena))
        return arena

    def _arena_slots(self) -> Value:
        return self.builder.load(self.word(self._context, CONTEXT_ARENA), typ=PTR)

    def arena_pointer(self, arena: Arena, offset_bytes: Size) -> Value:
        """Address in the arena."""
        return self.builder.gep(arena.block, [as_value(offset_bytes)], source_etype=I8)

    def arena_tensor(
        self,
        arena: Arena,
        offset_bytes: Size,
        sizes: Sequence[Size],
        strides: Sequence[Size],
        dtype: int,
    ) -> Tensor:
        """A tensor handle over arena memory, for operands and results of ATen calls.

        With constant offset, sizes and strides the handle is made once per block and kept with
        it: only a graph's first call pays for it. It must not outlive the call in either case.
        """
        data = self.arena_pointer(arena, offset_bytes)
        if not all(isinstance(v, int) for v in (offset_bytes, *sizes, *strides)):
            slot = self.new_slots(1)
            self._from_blob(data, sizes, strides, dtype, self.slot(slot))
            tensor = self.own(len(sizes), slot)
        else:
            b = self.builder
            cache_at = b.gep(
                arena.block, [constant(8 - support.ARENA_HEADER_BYTES)], source_etype=I8
            )
            cell = b.gep(b.load(cache_at, typ=PTR), [constant(arena.views)], source_etype=PTR)
            arena.views += 1
            missing = b.icmp_unsigned("==", b.load(cell, typ=PTR), PTR(None))
            with b.if_then(missing, likely=False):
                self._from_blob(data, sizes, strides, dtype, cell)
            tensor = Tensor(b.load(cell, typ=PTR), len(sizes))
        tensor.data = data
        return tensor

    def _from_blob(
        self, data: Value, sizes: Sequence[Size], strides: Sequence[Size], dtype: int, out: Value
    ) -> None:
        kinds = (PTR, I64, PTR, PTR, I64, I32, I32, I32, PTR, I32, PTR, I64)
        function = self.declare("aoti_torch_create_tensor_from_blob_v2", I32, kinds)
        failed = self.builder.call(
            function,
            [
                data,
                constant(len(sizes)),
                self.array(sizes),
                self.array(strides),
                constant(0),
                I32(dtype),
                I32(0),
                I32(-1),
                out,
                I32(0),
                PTR(None),
                constant(0),
            ],
        )
        self.fail_if_error(failed, ("shim-error", "from_blob"), [])

    # Failure

    def call_python(self, key: Hashable, arguments: Sequence[Value]) -> Value:
        """Call the Python object `key` with i64, double, i1 values and tensors' handles (pointers).

        Returns the result object (a new reference) or null with a Python error set. i1 becomes
        bool; a pointer is a tensor handle.
        """
        kinds, payload = [], self.alloca(I64, max(1, len(arguments)))
        for i, value in enumerate(arguments):
            kinds.append(self._kind_of(value))
            stored = self.builder.zext(value, I64) if value.type == I1 else value
            self.builder.store(stored, self.word(payload, i))
        callee = self._support("irc_call_python")
        table = self.constants(kinds, I8)
        return self.builder.call(
            callee, [self.object(key), table, payload, constant(len(arguments))]
        )

    @staticmethod
    def _kind_of(value: Value) -> int:
        if value.type == I1:
            return support.KIND_BOOL
        if value.type == F64:
            return support.KIND_FLOAT
        return support.KIND_TENSOR if isinstance(value.type, ir.PointerType) else support.KIND_INT

    def fail_if(self, condition: Value, key: Hashable, arguments: Sequence[Value]) -> None:
        """Leave the program when the i1 `condition` holds, with the error that `key` raises.

        The Python object `key` is called with `arguments` (as in `call_python`) and must raise.
        """
        with self._cold(condition, "failed"):
            self.lock()
            result = self.call_python(key, arguments)
            raised = self.builder.icmp_unsigned("==", result, PTR(None))
            silent = self.function.append_basic_block("silent")
            self.builder.cbranch(raised, self._error, silent)
            self.builder.position_at_end(silent)
            self.builder.call(self.declare("Py_DecRef", VOID, (PTR,)), [result])
            text = self.text("a failed step of the program didn't raise")
            raise_error = self.declare("PyErr_SetString", VOID, (PTR, PTR))
            self.builder.call(raise_error, [self._runtime_object(_RUNTIME_SYSTEM_ERROR), text])
            self.builder.branch(self._error)

    def fail_if_error(self, code: Value, key: Hashable, arguments: Sequence[Value]) -> None:
        """`fail_if` for the i32 return code of a C shim, 0 being success."""
        self.fail_if(self.builder.icmp_signed("!=", code, I32(0)), key, arguments)

    # The interpreter lock

    def unlock(self) -> None:
        """Let other Python threads run until `lock`: around kernels that take long."""
        state = self.builder.call(self.declare("PyEval_SaveThread", PTR, ()), [])
        self.builder.store(state, self._thread_state)
        self._unlocked = state

    def lock(self) -> None:
        """Take the interpreter lock again if `unlock` gave it away on the way here."""
        if self._unlocked is None:
            return
        b = self.builder
        state = b.load(self._thread_state, typ=PTR)
        with b.if_then(b.icmp_unsigned("!=", state, PTR(None))):
            b.store(PTR(None), self._thread_state)
            b.call(self.declare("PyEval_RestoreThread", VOID, (PTR,)), [state])

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
            out = _opaque(self._allocas.alloca(I32))
            function = self.declare("torch_get_num_threads", I32, (PTR,))
            self._allocas.call(function, [out])
            count = self._allocas.zext(self._allocas.load(out, typ=I32), I64)
            forked = self._allocas.load(
                self.word(self._runtime, _RUNTIME_FORKED, self._allocas), typ=I64
            )
            alone = self._allocas.icmp_signed("!=", forked, constant(0))
            self._threads = self._allocas.select(alone, constant(1), count)
        return self._threads

    def _ranged_call(
        self, kernel: ir.Function, arguments: list[Value], extent: Value, grain: Value
    ) -> Value:
        b = self.builder
        status = self.alloca(I32)
        b.store(I32(0), status)
        many = b.icmp_signed(">", extent, grain)
        several = b.icmp_signed(">", self.threads(), constant(1))
        with b.if_else(b.and_(many, several)) as (parallel, serial):
            with parallel:
                self._parallel_call(kernel, arguments, extent, grain, status)
            with serial:
                code = b.call(kernel, [*arguments, constant(0), extent])
                if kernel.function_type.return_type != VOID:
                    b.store(code, status)
        return b.load(status, typ=I32)

    def _parallel_call(
        self,
        kernel: ir.Function,
        arguments: list[Value],
        extent: Value,
        grain: Value,
        status: Value,
    ) -> None:
        b = self.builder
        kinds = [a.type for a in arguments]
        record = ir.LiteralStructType([PTR, *kinds])
        packed = self.alloca(record)
        for i, value in enumerate([status, *arguments]):
            at = b.gep(packed, [I32(0), I32(i)], source_etype=record)
            b.store(value, at)
        piece = self._trampoline(kernel, record)
        run = self.declare("torch_parallel_for", I32, (I64, I64, I64, PTR, PTR))
        b.call(run, [constant(0), extent, grain, piece, packed])

    def _trampoline(self, kernel: ir.Function, record: ir.LiteralStructType) -> ir.Function:
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
        for i, kind in enumerate(record.elements):
            at = b.gep(packed, [I32(0), I32(i)], source_etype=record)
            values.append(b.load(at, typ=kind))
        code = b.call(kernel, [*values[1:], begin, end])
        if kernel.function_type.return_type != VOID:
            with b.if_then(b.icmp_signed("!=", code, I32(0))):
                b.atomic_rmw("xchg", values[0], code, "monotonic")
        b.ret_void()
        return piece

    # Results

    def result_tensor(self, tensor: Tensor) -> Callable[[], Value]:
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
        return lambda: self._borrowed_result(self._runtime_object(_RUNTIME_NONE))

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
        self._finish_exits()
        self._allocas.branch(self.function.blocks[1])
        self._handle_count.set(max(1, self._handles))
        self._handle_bytes.set(8 * self._handles)
        for _, views, arena in self._arenas:
            views.set(arena.views)
        self._define_entries()

    def unpack(self, result: Value, kinds: Sequence[int], out: Value) -> Value:
        """Store the items of the tuple `result` as words at `out`; i32, 0 for success."""
        arguments = [self._runtime, result, self.constants(kinds, I8), out, constant(len(kinds))]
        return self.builder.call(self._support("irc_unpack_results"), arguments)

    def error_if(self, condition: Value) -> None:
        """Leave the program when the i1 holds: a Python error is already set."""
        after = self.function.append_basic_block("made")
        self.builder.cbranch(condition, self._error, after)
        self.builder.position_at_end(after)

    def error_if_null(self, pointer: Value) -> None:
        """Leave the program when `pointer` is null: a Python error is already set."""
        self.error_if(self.builder.icmp_unsigned("==", pointer, PTR(None)))

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
            at = b.gep(self_object, [constant(_CDATA_POINTER)], source_etype=I8)
            b.ret(self._call_fallback(b, b.load(at, typ=PTR), items, count))
        b.ret(b.call(self.function, [self_object, items, PTR(None)]))

    def _define_boxed_entry(self) -> None:
        """The entry that takes a list: its references move here, the list becomes empty."""
        entry = ir.Function(self.module, ir.FunctionType(PTR, (PTR, PTR)), f"{self.name}.boxed")
        self_object, given = entry.args
        b = ir.IRBuilder(entry.append_basic_block("entry"))
        context_at = b.gep(self_object, [constant(_CDATA_POINTER)], source_etype=I8)
        context = b.load(context_at, typ=PTR)
        owned = _opaque(b.alloca(PTR, size=constant(max(1, self.arguments))))
        runtime = b.load(context, typ=PTR)
        list_type = b.load(self.word(runtime, _RUNTIME_LIST, b), typ=PTR)
        type_at = b.gep(given, [constant(_OBJECT_TYPE)], source_etype=I8)
        is_list = b.icmp_unsigned("==", b.load(type_at, typ=PTR), list_type)
        size_at = b.gep(given, [constant(_OBJECT_SIZE)], source_etype=I8)
        right_size = b.icmp_signed("==", b.load(size_at, typ=I64), constant(self.arguments))
        with b.if_then(b.not_(b.and_(is_list, right_size)), likely=False):
            room = _opaque(b.alloca(PTR))
            b.store(given, room)
            b.ret(self._call_fallback(b, context, room, constant(1), CONTEXT_BOXED_FALLBACK))
        items = b.load(b.gep(given, [constant(_LIST_ITEMS)], source_etype=I8), typ=PTR)
        for i in range(self.arguments):
            item = b.load(b.gep(items, [constant(i)], source_etype=PTR), typ=PTR)
            b.call(self.declare("Py_IncRef", VOID, (PTR,)), [item])
            b.store(item, b.gep(owned, [constant(i)], source_etype=PTR))
        clear = self.declare("PyList_SetSlice", I32, (PTR, I64, I64, PTR))
        b.call(clear, [given, constant(0), constant(self.arguments), PTR(None)])
        result = b.call(self.function, [self_object, owned, owned])
        release = self._support("irc_release_objects")
        b.call(release, [owned, constant(self.arguments)])
        b.ret(result)
