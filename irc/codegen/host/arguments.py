"""The arguments of a native host function: checked before anything else happens."""

from __future__ import annotations

from llvmlite import ir

from irc.codegen.host.base import (
    F64,
    I8,
    I32,
    I64,
    OBJECT_TYPE,
    PTR,
    RUNTIME_FALSE,
    RUNTIME_FLOAT,
    RUNTIME_INT,
    RUNTIME_TRUE,
    HostTensor,
    Size,
    TensorSpec,
    Value,
    as_value,
    constant,
)
from irc.codegen.host.emitter import HostEmitter


class HostArguments:
    """What the function is called with. A check that fails hands the call to Python's executor."""

    def __init__(self, emitter: HostEmitter) -> None:
        self.emitter, self.builder = emitter, emitter.builder

    def require(self, condition: Value) -> None:
        """Before `begin`: hand the call to the Python executor unless `condition` (an i1)."""
        if self.emitter.began:
            raise AssertionError("argument checks come before begin()")
        after = self.emitter.function.append_basic_block("checked")
        self.builder.cbranch(condition, after, self.emitter.fallback)
        self.builder.position_at_end(after)

    def require_equal(self, left: Size, right: Size) -> None:
        """Before `begin`: hand the call to the Python executor unless the integers are equal."""
        self.require(self.builder.icmp_signed("==", as_value(left), as_value(right)))

    def argument_tensor(
        self, index: int, spec: TensorSpec, check: str = "irc_check_tensor", *more: Value
    ) -> HostTensor:
        """Argument `index`, checked against `spec`, with its data, sizes and strides.

        `check`: the support function that looks at it, and what it takes before the rest (`more`).
        """
        b = self.builder
        item = self.emitter.item(index)
        out = self.emitter.alloca(PTR, 3)
        checked = [*more, self.emitter.runtime, item, self.emitter.constants(spec.words()), out]
        failed = b.call(self.emitter.support(check), checked)
        self.require(b.icmp_signed("==", failed, ir.Constant(I32, 0)))
        handle = self.emitter.handle_of(item)
        return HostTensor(handle, len(spec.sizes), table=out, argument=index)

    def _require_type(self, item: Value, runtime_word: int) -> None:
        at = self.builder.gep(item, [constant(OBJECT_TYPE)], source_etype=I8)
        type_, right = self.builder.load(at, typ=PTR), self.emitter.runtime_object(runtime_word)
        self.require(self.builder.icmp_unsigned("==", type_, right))

    def argument_int(self, index: int) -> Value:
        """Argument `index` as an i64: exactly a Python int (a size, not a bool)."""
        item = self.emitter.item(index)
        self._require_type(item, RUNTIME_INT)
        overflow = self.emitter.alloca(I32)
        convert = self.emitter.declare("PyLong_AsLongLongAndOverflow", I64, (PTR, PTR))
        value = self.builder.call(convert, [item, overflow])
        seen = self.builder.load(overflow, typ=I32)
        self.require(self.builder.icmp_signed("==", seen, ir.Constant(I32, 0)))
        return value

    def argument_float(self, index: int) -> Value:
        """Argument `index` as a double: exactly a Python float."""
        item = self.emitter.item(index)
        self._require_type(item, RUNTIME_FLOAT)
        return self.builder.call(self.emitter.declare("PyFloat_AsDouble", F64, (PTR,)), [item])

    def argument_bool(self, index: int) -> Value:
        """Argument `index` as an i1: True or False."""
        b = self.builder
        item = self.emitter.item(index)
        true = b.icmp_unsigned("==", item, self.emitter.runtime_object(RUNTIME_TRUE))
        false = b.icmp_unsigned("==", item, self.emitter.runtime_object(RUNTIME_FALSE))
        self.require(b.or_(true, false))
        return true

    def release_argument(self, index: int) -> None:
        """Drop the reference to argument `index` when the caller gave it away (boxed calls)."""
        drop = self.emitter.support("irc_drop_argument")
        self.builder.call(drop, [self.emitter.owned, constant(index), self.emitter.thread_state])
