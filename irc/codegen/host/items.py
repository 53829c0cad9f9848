"""Elements of tensors as scalars of a native host program."""

from __future__ import annotations

from llvmlite import ir

from irc.codegen.host.emitter import F64, I64, Value
from irc.ir.diagnostics import InvalidIR

_ITEM_BITS = {"bool": 8, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32,
              "uint32": 32, "int64": 64, "uint64": 64}  # fmt: skip


def load_item(b: ir.IRBuilder, address: Value, dtype: str, kind: str) -> Value:
    """The element at `address` as an i64, double or i1 value."""
    if dtype in _ITEM_BITS:
        bits = _ITEM_BITS[dtype]
        value = b.load(address, typ=ir.IntType(bits), align=1)
        if kind == "bool":
            return b.icmp_signed("!=", value, ir.Constant(value.type, 0))
        unsigned = dtype.startswith("u") or dtype == "bool"
        if kind == "float":
            return b.uitofp(value, F64) if unsigned else b.sitofp(value, F64)
        if bits == 64:
            return value
        return b.zext(value, I64) if unsigned else b.sext(value, I64)
    if dtype == "bfloat16":
        raw = b.load(address, typ=ir.IntType(16), align=1)
        wide = b.shl(b.zext(raw, ir.IntType(32)), ir.Constant(ir.IntType(32), 16))
        number = b.fpext(b.bitcast(wide, ir.FloatType()), F64)
    elif dtype in ("float16", "float32"):
        held = ir.HalfType() if dtype == "float16" else ir.FloatType()
        number = b.fpext(b.load(address, typ=held, align=1), F64)
    elif dtype == "float64":
        number = b.load(address, typ=F64, align=1)
    else:
        raise InvalidIR(f"the item of a {dtype} tensor is no scalar of the host program")
    if kind == "bool":
        return b.fcmp_unordered("!=", number, ir.Constant(F64, 0.0))
    return b.fptosi(number, I64) if kind == "int" else number
