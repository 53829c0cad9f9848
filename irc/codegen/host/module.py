"""The module that a native host function stands in: functions from elsewhere, constant data."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from irc.codegen.host import support, support_gpu
from irc.codegen.host.base import I8, I32, I64, PTR, VOID, Value, opaque

_TYPES = {"i32": I32, "i64": I64, "ptr": PTR, "void": VOID}
_SUPPORT = {**support.SIGNATURES, **support_gpu.SIGNATURES}


class HostModule:
    """What the host function `name` shares with all that is in `module`."""

    def __init__(self, module: ir.Module, name: str) -> None:
        self.module, self.name = module, name
        #: Names of the functions that the loader must find.
        self.externals: set[str] = set()
        self._globals = 0
        self._known_constants: dict[tuple[str, tuple[int | float, ...]], Value] = {}

    def declare(self, name: str, result: ir.Type, parameters: Sequence[ir.Type]) -> ir.Function:
        """The external function `name` in this module, declared once."""
        self.externals.add(name)
        known = self.module.globals.get(name)
        if known is not None:
            return known
        return ir.Function(self.module, ir.FunctionType(result, parameters), name)

    def support(self, name: str) -> ir.Function:
        """A support function (`irc.codegen.host.support`)."""
        result, parameters = _SUPPORT[name]
        return self.declare(name, _TYPES[result], [_TYPES[p] for p in parameters])

    def word_of(self, name: str) -> Value:
        """The external variable `name`, an i64."""
        self.externals.add(name)
        return self.module.globals.get(name) or ir.GlobalVariable(self.module, I64, name)

    def constants(self, values: Sequence[int | float], type_: ir.Type = I64) -> Value:
        """A pointer to a constant array in the module; equal ones are one."""
        known = self._known_constants.get((str(type_), tuple(values)))
        if known is not None:
            return known
        array = ir.ArrayType(type_, max(1, len(values)))
        words = list(values) or [0]
        data = ir.GlobalVariable(self.module, array, f"{self.name}.data.{self._globals}")
        self._globals += 1
        data.initializer = ir.Constant(array, [ir.Constant(type_, v) for v in words])
        data.linkage, data.global_constant = "internal", True
        self._known_constants[str(type_), tuple(values)] = opaque(data)
        return data

    def text(self, value: str) -> Value:
        """A pointer to `value` as a zero-ended UTF-8 string."""
        return self.constants([*value.encode(), 0], I8)
