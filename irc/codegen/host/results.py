"""What a native host function returns: each is emitted when all steps are."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from irc.codegen.host.base import (
    F64,
    I64,
    PTR,
    RUNTIME_NONE,
    VOID,
    HostTensor,
    Size,
    Value,
    as_value,
)
from irc.codegen.host.emitter import HostEmitter


class HostResults:
    """Makes the Python objects that a call gives; `HostEmitter.finish` takes them."""

    def __init__(self, emitter: HostEmitter) -> None:
        self.emitter, self.builder = emitter, emitter.builder

    def result_tensor(self, tensor: HostTensor) -> Callable[[], Value]:
        """The tensor as a Python object; an argument stays the object that the caller passed."""
        if tensor.argument is not None:
            return lambda: self._borrowed_result(self.emitter.item(tensor.argument or 0))
        wrap = self.emitter.declare("irc_wrap_tensor", PTR, (PTR,))
        return lambda: self.builder.call(wrap, [tensor.handle])

    def _borrowed_result(self, item: Value) -> Value:
        self.builder.call(self.emitter.declare("Py_IncRef", VOID, (PTR,)), [item])
        return item

    def result_object(self, key: Hashable) -> Callable[[], Value]:
        """A Python object that the loader keeps: a constant result."""
        return lambda: self._borrowed_result(self.emitter.object(key))

    def result_none(self) -> Callable[[], Value]:
        """None."""
        return lambda: self._borrowed_result(self.emitter.runtime_object(RUNTIME_NONE))

    def result_int(self, value: Size) -> Callable[[], Value]:
        """A Python int."""
        make = self.emitter.declare("PyLong_FromLongLong", PTR, (I64,))
        return lambda: self.builder.call(make, [as_value(value)])

    def result_float(self, value: Value) -> Callable[[], Value]:
        """A Python float."""
        make = self.emitter.declare("PyFloat_FromDouble", PTR, (F64,))
        return lambda: self.builder.call(make, [value])

    def result_bool(self, value: Value) -> Callable[[], Value]:
        """True or False from an i1."""
        make = self.emitter.declare("PyBool_FromLong", PTR, (I64,))
        return lambda: self.builder.call(make, [self.builder.zext(value, I64)])
