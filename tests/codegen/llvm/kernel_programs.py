"""Building kernels by hand, and running them compiled and interpreted. Used by tests and bench."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

from irc.codegen.llvm.jit import LoadedObject, load_object
from irc.codegen.llvm.kernel_emitter import compile_kernels
from irc.dialects import kernel
from irc.interp.core import Frame
from irc.interp.kernel import launch
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Block, Region, Value
from irc.ir.registry import lookup_op
from irc.target.cpu import TargetFeatures


def vector(element: Type, lanes: int) -> Type:
    """`vector<lanes x element>`; 0 lanes is the scalar."""
    return T.VectorType((lanes,), element) if lanes else element


class Program:
    """A kernel under construction. `elements`: one per pointer; the outputs are the last."""

    def __init__(
        self, name: str, elements: Sequence[Type], outputs: int, grid: int, **attrs: A.Attribute
    ) -> None:
        inputs = [kernel.PointerType(e) for e in elements] + [T.index, T.index]
        first = len(elements) - outputs
        self.func = kernel.KernelFuncOp.create(
            name, inputs, "cpu", outputs=A.DenseIntsAttr(range(first, len(elements))),
            grid=A.DimAttr(grid), **attrs,
        )  # fmt: skip
        *self.pointers, self.begin, self.end = self.func.block.arguments
        self.builder = Builder.at_end(self.func.block)

    def op(
        self, name: str, *operands: Any, to: Type | Sequence[Type] | None = None, **attrs: Any
    ) -> Any:
        """The result (None, one value, a tuple) of an operation by its name."""
        cls = lookup_op(name)
        assert cls is not None, name
        results = self.builder.create(cls, *operands, result_types=to, **attrs).results
        return results[0] if len(results) == 1 else tuple(results) or None

    def constant(self, value: float | int, type_: Type = T.index) -> Value:
        """A constant scalar, or a vector of it."""
        element = getattr(type_, "element", type_)
        is_float = isinstance(element, T.FloatType)
        attr = A.FloatAttr(value, element) if is_float else A.IntegerAttr(int(value), element)
        if element is T.i1:
            attr = A.BoolAttr(bool(value))
        return self.op("arith.constant", value=attr, to=type_)

    def load(self, pointer: Value, offset: Value, type_: Type, *masks: Value) -> Value:
        return self.op("kernel.load", pointer, offset, *masks, to=type_)

    def store(self, value: Value, pointer: Value, offset: Value, *mask: Value) -> None:
        self.op("kernel.store", value, pointer, offset, *mask)

    def splat(self, value: Value, lanes: int) -> Value:
        return self.op("kernel.splat", value, to=vector(value.type, lanes))

    def tail_mask(self, position: Value, end: Value, lanes: int) -> Value:
        """Which lanes from `position` on are before `end`."""
        iota = self.op("kernel.iota", to=vector(T.index, lanes))
        rest = self.splat(self.op("arith.subi", end, position), lanes)
        return self.op("arith.cmpi", iota, rest, predicate="slt")

    def loop(
        self, lower: Value, upper: Value, step: int, initial: Sequence[Value],
        body: Callable[..., Sequence[Value] | None], unroll: int | None = None,
    ) -> list[Value]:
        """kernel.for; `body(position, *carried)` gives the next carried values."""
        types = [v.type for v in initial]
        block = Block([T.index, *types])
        outer, self.builder = self.builder, Builder.at_end(block)
        self.op("kernel.yield", list(body(*block.arguments) or ()))
        self.builder = outer
        op = self.builder.create(
            kernel.ForOp, lower, upper, self.constant(step), list(initial), result_types=types,
            regions=(Region([block]),), unroll=unroll,
        )  # fmt: skip
        return list(op.results)

    def branch(
        self, condition: Value, types: Sequence[Type], *bodies: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """kernel.if with a then body and an else body."""
        regions = []
        outer = self.builder
        for body in bodies:
            block = Block()
            self.builder = Builder.at_end(block)
            self.op("kernel.yield", list(body()))
            regions.append(Region([block]))
        self.builder = outer
        return list(
            self.builder.create(
                kernel.IfOp, condition, result_types=list(types), regions=regions
            ).results
        )

    def done(self) -> kernel.KernelFuncOp:
        """The finished kernel."""
        self.op("kernel.return")
        return self.func


class Compiled:
    """Kernels of one object; `run(name, tensors, begin, end)` calls one on tensors' memory."""

    def __init__(
        self,
        kernels: Sequence[kernel.KernelFuncOp],
        features: TargetFeatures,
        precise: bool = False,
    ) -> None:
        self.data = compile_kernels(kernels, features, precise)
        self.loaded: LoadedObject = load_object(self.data)
        self.kernels = {k.sym_name: k for k in kernels}

    def function(self, name: str, pointers: int) -> Any:
        """The C function of a kernel with this many pointers and `begin`, `end`."""
        kind = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p] * pointers, ctypes.c_int64, ctypes.c_int64
        )
        function = kind(self.loaded.address(name))
        function.owner = self  # the code lives as long as this object
        return function

    def run(self, name: str, tensors: Sequence[torch.Tensor], begin: int, end: int) -> None:
        self.function(name, len(tensors))(*[t.data_ptr() for t in tensors], begin, end)


def interpret(callee: kernel.KernelFuncOp, tensors: Sequence[torch.Tensor]) -> None:
    """Run every instance of a kernel in the interpreter, on the tensors' memory."""
    launch(Frame(None), callee, tensors)
