"""ATen calls of a native host program: a C shim, torch's C dispatcher, or a boxed Python call.

    mm = AtenCall("aten.mm.out", {"self": x, "mat2": w, "out": y})
    call_aten(emitter, mm, floating=True)

An argument is a `HostTensor`, an i64, double or i1 value, a Python constant, a `Named` dtype or
layout, None, or a list of these; one left out has the schema's default. Whatever the path, a failed
call is repeated through Python with the same arguments, so that torch's own error reaches the user.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs
from llvmlite import ir

from irc.codegen.host.emitter import (
    F64,
    I1,
    I32,
    I64,
    PTR,
    HostEmitter,
    HostTensor,
    Value,
    as_value,
    constant,
)
from irc.codegen.host.support import KIND_BOOL, KIND_FLOAT, KIND_INT, KIND_TENSOR

_RESULT_KINDS = {"Tensor": KIND_TENSOR, "int": KIND_INT, "float": KIND_FLOAT, "bool": KIND_BOOL}


@attrs.define(eq=False)
class AtenCall:
    """A call: `callee` is `namespace.name.overload`, `arguments` by schema name."""

    callee: str
    arguments: Mapping[str, Any]
    #: Rank of each tensor result, for the handles that come back.
    result_ranks: Sequence[int] = ()
    #: How many tensors a result of type Tensor[] has; needed for such an operator only.
    list_length: int | None = None
    #: The kind of device of all its tensors, "" where they differ: only then is there a C shim.
    device: str = "cpu"


def call_aten(
    emitter: HostEmitter, call: AtenCall, *, floating: bool, path: str | None = None
) -> list[HostTensor | Value | None]:
    """Emit `call`; the results are owned tensors, i64, double or i1 values.

    `floating`: are all tensors of the call floating point? `path` forces "shim", "dispatcher" or
    "boxed". Results of an `out=` or in-place overload are not returned: they are the arguments.
    """
    from irc.boundary import aten_paths

    op = aten_paths.find_operator(call.callee)
    chosen = aten_paths.classify(op, floating=floating, device=call.device, gpu=emitter.gpu)
    name = path or ("boxed" if needs_python(call, op, chosen.name) else chosen.name)
    if name != "boxed":
        # An operator may wait for another thread (a collective, a GPU) that needs the lock first.
        emitter.unlock()
    if name == "shim":
        if chosen.name != "shim":
            raise ValueError(f"{call.callee} has no C shim that is right here")
        return _call_shim(emitter, call, op, chosen)
    if name == "dispatcher":
        if not aten_paths.dispatcher_can(op._schema):
            raise ValueError(f"torch's C dispatcher can't carry the arguments of {call.callee}")
        return _call_dispatcher(emitter, call, op)
    return _call_boxed(emitter, call, op)


def needs_python(call: AtenCall, op: Any, path: str) -> bool:
    """Whether a number is given for a tensor, which only Python's entry makes one of, a complex
    number for a scalar, which C's have no type for, or, where it isn't a shim that is called,
    nothing for a tensor that isn't optional: gradients of attention are asked for so, without a
    mask."""
    from irc.boundary.aten_paths import complex_number

    for argument in op._schema.arguments:
        value = call.arguments.get(argument.name)
        if isinstance(value, list) and complex_number(value) is not None:
            return True
        absent = value is None and argument.name in call.arguments
        if absent and str(argument.type) == "Tensor" and path != "shim":
            return True
        is_tensor = str(argument.type) in ("Tensor", "Optional[Tensor]")
        if is_tensor and value is not None and not isinstance(value, HostTensor):
            return True
    return False


def _full_arguments(call: AtenCall, op: Any) -> dict[str, Any]:
    full = {}
    for argument in op._schema.arguments:
        if argument.name in call.arguments:
            full[argument.name] = call.arguments[argument.name]
        elif argument.has_default_value():
            full[argument.name] = argument.default_value
        else:
            raise ValueError(f"{call.callee} needs the argument {argument.name}")
    unknown = set(call.arguments) - set(full)
    if unknown:
        raise ValueError(f"{call.callee} has no argument {', '.join(sorted(unknown))}")
    return full


def _template(call: AtenCall) -> tuple[tuple[tuple[str, Any], ...], list[Value]]:
    """The arguments with their values taken out, and those values in order."""
    from irc.boundary.templates import Dynamic

    values: list[Value] = []

    def strip(argument: Any) -> Any:
        if isinstance(argument, HostTensor):
            values.append(argument.handle)
            return Dynamic(len(values) - 1)
        if isinstance(argument, ir.Value):
            values.append(argument)
            return Dynamic(len(values) - 1)
        if isinstance(argument, (list, tuple)):
            return tuple(strip(item) for item in argument)
        return argument

    return tuple((name, strip(value)) for name, value in call.arguments.items()), values


def _fail(emitter: HostEmitter, call: AtenCall, code: Value) -> None:
    arguments, values = _template(call)
    emitter.fail_if_error(code, ("aten-replay", call.callee, arguments), values)


# Boxed


def _fresh_results(call: AtenCall, op: Any) -> list[int]:
    """Kinds of the results, lists flattened; an argument that is returned counts, too."""
    returned = []
    for result in op._schema.returns:
        type_ = str(result.type)
        if type_ == "List[Tensor]" and call.list_length is not None:
            returned += [KIND_TENSOR] * call.list_length
        elif type_ in _RESULT_KINDS:
            returned.append(_RESULT_KINDS[type_])
        else:
            raise ValueError(f"{call.callee} has a result of type {type_}: its items must be known")
    return returned


def _without_arguments(emitter: HostEmitter, op: Any, results: list[Any]) -> list[Any]:
    """The results without those that are arguments written to, whose new handles go at once."""
    written = [r.alias_info is not None and r.alias_info.is_write for r in op._schema.returns]
    if len(written) != len(results):
        return results
    for value, same in zip(results, written, strict=True):
        if same and isinstance(value, HostTensor):
            emitter.release(value)
    return [value for value, same in zip(results, written, strict=True) if not same]


def _call_boxed(emitter: HostEmitter, call: AtenCall, op: Any) -> list[HostTensor | Value | None]:
    arguments, values = _template(call)
    kinds = _fresh_results(call, op)
    key = ("aten", call.callee, arguments)
    results = call_object(emitter, key, values, kinds, call.result_ranks)
    return _without_arguments(emitter, op, results)


def call_object(
    emitter: HostEmitter,
    key: Hashable,
    values: Sequence[Value],
    kinds: Sequence[int],
    ranks: Sequence[int],
) -> list[HostTensor | Value | None]:
    """Call the Python object `key`, which gives a tuple of results of these kinds: tensors of
    these ranks (owned from now on) and numbers."""
    b = emitter.builder
    emitter.lock()
    result = emitter.call_python(key, values)
    emitter.error_if_null(result)
    first = emitter.new_slots(len(kinds))
    drop = emitter.declare("Py_DecRef", ir.VoidType(), (PTR,))
    if not kinds:
        b.call(drop, [result])
        return []
    failed = emitter.unpack(result, kinds, emitter.slot(first))
    b.call(drop, [result])
    emitter.error_if(b.icmp_signed("!=", failed, I32(0)))
    return _take_results(emitter, kinds, ranks, first)


def _take_results(
    emitter: HostEmitter, kinds: Sequence[int], ranks: Sequence[int], first: int
) -> list[HostTensor | Value | None]:
    """Results that lie in consecutive owned slots; numbers leave theirs."""
    b = emitter.builder
    results: list[HostTensor | Value | None] = []
    remaining = list(ranks)
    for i, kind in enumerate(kinds):
        at = emitter.slot(first + i)
        if kind == KIND_TENSOR:
            results.append(emitter.own(remaining.pop(0) if remaining else 0, first + i))
            continue
        value = b.load(at, typ=F64 if kind == KIND_FLOAT else I64)
        b.store(PTR(None), at)
        results.append(b.trunc(value, I1) if kind == KIND_BOOL else value)
    return results


# Shims


def _call_shim(
    emitter: HostEmitter, call: AtenCall, op: Any, path: Any
) -> list[HostTensor | Value | None]:
    full = _full_arguments(call, op)
    marshal = _Marshal(emitter)
    parameters = [p for p in path.parameters if p.form != "result"]
    kinds = [_RESULT_KINDS[str(r.type)] for r in op._schema.returns]
    kinds = kinds[: len(path.parameters) - len(parameters)]
    first = emitter.new_slots(len(kinds))
    values = [marshal(p.form, full[p.argument]) for p in parameters]
    values += [emitter.slot(first + i) for i in range(len(kinds))]
    function = emitter.declare(path.symbol, I32, [v.type for v in values])
    _fail(emitter, call, emitter.builder.call(function, values))
    results = _take_results(emitter, kinds, call.result_ranks, first)
    return _without_arguments(emitter, op, results)


class _Marshal:
    """Turns one argument into the C value of a shim parameter's form."""

    def __init__(self, emitter: HostEmitter) -> None:
        self.emitter = emitter
        self.builder = emitter.builder

    def __call__(self, form: str, value: Any) -> Value:
        if form == "handles?":
            return self._optional_handles(value)
        if form.endswith("?") and form != "doubles?":
            return PTR(None) if value is None else self._spilled(self(form[:-1], value))
        return getattr(self, f"_{form.rstrip('?')}")(value)

    def _spilled(self, value: Value) -> Value:
        room = self.emitter.alloca(value.type)
        self.emitter.builder.store(value, room)
        return room

    def _handle(self, value: HostTensor | None) -> Value:
        return self.emitter.memory_of(("no-tensor",)) if value is None else value.handle

    def _generator(self, value: object) -> Value:
        raise ValueError("only torch's default generator can be passed to a C shim")

    def _i64(self, value: Any) -> Value:
        return as_value(value)

    def _double(self, value: Any) -> Value:
        if isinstance(value, ir.Value):
            is_integer = isinstance(value.type, ir.IntType)
            return self.emitter.builder.sitofp(value, F64) if is_integer else value
        return ir.Constant(F64, float(value))

    def _i32(self, value: Any) -> Value:
        if isinstance(value, ir.Value):
            wider = value.type.width < 32
            b = self.emitter.builder
            return b.zext(value, I32) if wider else b.trunc(value, I32)
        return I32(value.code() if hasattr(value, "code") else int(value))

    def _text(self, value: str) -> Value:
        return self.emitter.text(value)

    def _length(self, value: Sequence[Any] | None) -> Value:
        return constant(0 if value is None else len(value))

    def _index(self, value: Any) -> Value:
        return I32(-1 if value is None else value.device_index())

    def _i64s(self, value: Sequence[Any]) -> Value:
        return self.emitter.array(list(value))

    def _i32s(self, value: Sequence[Any]) -> Value:
        return self.emitter.constants([int(v) for v in value], I32)

    def _pointers(self, values: list[Value]) -> Value:
        room = self.emitter.alloca(PTR, max(1, len(values)))
        for i, value in enumerate(values):
            at = self.emitter.builder.gep(room, [constant(i)], source_etype=PTR)
            self.emitter.builder.store(value, at)
        return room

    def _handles(self, value: Sequence[HostTensor]) -> Value:
        return self._pointers([self("handle", v) for v in value])

    def _optional_handles(self, value: Sequence[HostTensor | None]) -> Value:
        return self._pointers([self("handle?", v) for v in value])

    def _doubles(self, value: Sequence[Any] | None) -> Value:
        return self._pointers([self("double?", v) for v in value or ()])


# The dispatcher


def _call_dispatcher(
    emitter: HostEmitter, call: AtenCall, op: Any
) -> list[HostTensor | Value | None]:
    from irc.boundary import aten_paths, torch_abi

    full = _full_arguments(call, op)
    stack_words = max(len(op._schema.arguments), len(op._schema.returns), 1)
    stack = emitter.alloca(I64, stack_words)
    packer = _Packer(emitter)
    for i, argument in enumerate(op._schema.arguments):
        word = packer(aten_paths.type_of(argument), full[argument.name])
        emitter.builder.store(word, emitter.word(stack, i))
    packer.check()
    name, overload = op._schema.name, op._schema.overload_name
    function = emitter.declare("torch_call_dispatcher", I32, (PTR, PTR, PTR, I64))
    code = emitter.builder.call(
        function,
        [
            emitter.text(name),
            emitter.text(overload),
            stack,
            constant(torch_abi.abi_version()),
        ],
    )
    _fail(emitter, call, code)
    return _dispatcher_results(emitter, call, op, stack)


def _dispatcher_results(
    emitter: HostEmitter, call: AtenCall, op: Any, stack: Value
) -> list[HostTensor | Value | None]:
    kinds = [_RESULT_KINDS[str(r.type)] for r in op._schema.returns]
    first = emitter.new_slots(len(kinds))
    b = emitter.builder
    for i in range(len(kinds)):
        word = b.load(emitter.word(stack, i), typ=I64)
        if kinds[i] == KIND_BOOL:
            word = b.and_(word, constant(1))
        b.store(word, emitter.slot(first + i))
    results = _take_results(emitter, kinds, call.result_ranks, first)
    return _without_arguments(emitter, op, results)


class _Packer:
    """Turns arguments into the dispatcher's 64-bit words; each tensor word owns a new handle."""

    def __init__(self, emitter: HostEmitter) -> None:
        self.emitter = emitter
        self.codes: list[Value] = []

    def check(self) -> None:
        """Leave the program if any word couldn't be made: there is no memory."""
        b = self.emitter.builder
        if self.codes:
            total = self.codes[0]
            for code in self.codes[1:]:
                total = b.or_(total, code)
            self.emitter.fail_if_error(total, ("shim-error", "packing arguments"), [])

    def _created(self, function: str, arguments: list[Value]) -> Value:
        room = self.emitter.alloca(I64)
        kinds = [*(a.type for a in arguments), PTR]
        callee = self.emitter.declare(function, I32, kinds)
        self.codes.append(self.emitter.builder.call(callee, [*arguments, room]))
        return self.emitter.builder.load(room, typ=I64)

    def __call__(self, type_: str, value: Any) -> Value:
        if type_.startswith("Optional["):
            if value is None:
                return constant(0)
            inner = self(type_[len("Optional[") : -1], value)
            box = self._created("torch_new_stable_ivalue", [])
            b = self.emitter.builder
            b.store(inner, b.inttoptr(box, PTR))
            return box
        if type_.startswith("List["):
            items = [self(type_[len("List[") : -1], item) for item in value]
            items_list = self._created("torch_new_list_reserve_size", [constant(len(items))])
            push = self.emitter.declare("torch_list_push_back", I32, (PTR, I64))
            b = self.emitter.builder
            for item in items:
                self.codes.append(b.call(push, [b.inttoptr(items_list, PTR), item]))
            return items_list
        if type_ == "Tensor":
            return self._created("aoti_torch_new_tensor_handle", [value.handle])
        if type_ == "str":
            text = self.emitter.text(value)
            size = constant(len(value.encode()))
            return self._created("torch_new_string_handle", [text, size])
        return self._scalar(type_, value)

    def _scalar(self, type_: str, value: Any) -> Value:
        b = self.emitter.builder
        if isinstance(value, ir.Value):
            if value.type == F64:
                return b.bitcast(value, I64)
            return b.zext(value, I64) if value.type == I1 else value
        if type_ == "float":
            return constant(struct.unpack("<q", struct.pack("<d", float(value)))[0])
        if hasattr(value, "code"):
            return constant(value.code() & 0xFFFFFFFF)
        return constant(int(value))
