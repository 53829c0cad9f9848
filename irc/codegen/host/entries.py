"""The two functions by which Python enters a native host function.

`define_entries` defines `name`, which takes the arguments one by one, and `name.boxed`, which takes
a list and empties it. A call with another number of arguments goes to Python's executor.
"""

from __future__ import annotations

from llvmlite import ir

from irc.codegen.host.base import (
    CDATA_POINTER,
    I8,
    I64,
    OBJECT_SIZE,
    OBJECT_TYPE,
    PTR,
    RUNTIME_LIST,
    Value,
    constant,
    opaque,
    word,
)
from irc.codegen.host.module import HostModule
from irc.codegen.host.names import CONTEXT_BOXED_FALLBACK, CONTEXT_FALLBACK


def define_entries(home: HostModule, body: ir.Function, arguments: int) -> None:
    """Define both entries of `body`, which takes `arguments` arguments."""
    _define_entry(home, body, arguments)
    _define_boxed_entry(home, body, arguments)


def call_fallback(
    home: HostModule, b: ir.IRBuilder, context: Value, items: Value, count: Value,
    which: int = CONTEXT_FALLBACK,
) -> Value:  # fmt: skip
    """What Python's executor, an object of the context, gives for `count` arguments at `items`."""
    call = home.declare("PyObject_Vectorcall", PTR, (PTR, PTR, I64, PTR))
    executor = b.load(word(b, context, which), typ=PTR)
    return b.call(call, [executor, items, count, PTR(None)])


def _define_entry(home: HostModule, body: ir.Function, arguments: int) -> None:
    entry = ir.Function(home.module, ir.FunctionType(PTR, (PTR, PTR, I64)), home.name)
    self_object, items, count = entry.args
    b = ir.IRBuilder(entry.append_basic_block("entry"))
    with b.if_then(b.icmp_signed("!=", count, constant(arguments)), likely=False):
        at = b.gep(self_object, [constant(CDATA_POINTER)], source_etype=I8)
        b.ret(call_fallback(home, b, b.load(at, typ=PTR), items, count))
    b.ret(b.call(body, [self_object, items, PTR(None)]))


def _define_boxed_entry(home: HostModule, body: ir.Function, arguments: int) -> None:
    """The entry that takes a list: its references move here, the list becomes empty."""
    entry = ir.Function(home.module, ir.FunctionType(PTR, (PTR, PTR)), f"{home.name}.boxed")
    self_object, items = entry.args
    b = ir.IRBuilder(entry.append_basic_block("entry"))
    context_at = b.gep(self_object, [constant(CDATA_POINTER)], source_etype=I8)
    context = b.load(context_at, typ=PTR)
    owned = opaque(b.alloca(PTR, size=constant(max(1, arguments))))
    runtime = b.load(context, typ=PTR)
    list_type = b.load(word(b, runtime, RUNTIME_LIST), typ=PTR)
    type_at = b.gep(items, [constant(OBJECT_TYPE)], source_etype=I8)
    is_list = b.icmp_unsigned("==", b.load(type_at, typ=PTR), list_type)
    size_at = b.gep(items, [constant(OBJECT_SIZE)], source_etype=I8)
    right_size = b.icmp_signed("==", b.load(size_at, typ=I64), constant(arguments))
    with b.if_then(b.not_(b.and_(is_list, right_size)), likely=False):
        room = opaque(b.alloca(PTR))
        b.store(items, room)
        b.ret(call_fallback(home, b, context, room, constant(1), CONTEXT_BOXED_FALLBACK))
    b.call(home.support("irc_take_list"), [items, owned, constant(arguments)])
    result = b.call(body, [self_object, owned, owned])
    b.call(home.support("irc_release_objects"), [owned, constant(arguments)])
    b.ret(result)
