"""The operations of the host dialect."""

from __future__ import annotations

from irc.dialects.graph.packed import PackedType
from irc.dialects.sym.ops import ERRORS
from irc.ir import attributes as A
from irc.ir.core import Block
from irc.ir.definition import (
    Op,
    attribute,
    of,
    operand,
    region,
    result,
    variadic_operand,
    variadic_result,
)
from irc.ir.traits import (
    AllocatesMemory,
    FunctionLike,
    IsolatedFromAbove,
    MayAlias,
    MemoryView,
    Pure,
    ReadsMemory,
    RunsInRange,
    SymbolOp,
    Terminator,
    WritesMemory,
)
from irc.ir.types import TensorType

TENSOR = of(TensorType)
#: Bytes that the places in the arena are multiples of.
ALIGNMENT = 64


class HostFuncOp(Op):
    """The host program: arguments are tensors (with strides in their types, None-strided ones
    accept any) and scalars; `arg_info` and `result_info` as on func.func.

    `host.func @main(%x: tensor<[4] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]> {
    host.return %x : tensor<[4] x f32, strides [1]> }`
    """

    name = "host.func"
    traits = frozenset({FunctionLike, IsolatedFromAbove, SymbolOp})
    parents = ("builtin.module",)
    sym_name = attribute(A.StringAttr)
    function_type = attribute(A.TypeAttr)
    arg_info = attribute(A.ArrayAttr, optional=True)
    result_info = attribute(A.ArrayAttr, optional=True)
    body = region()

    @property
    def block(self) -> Block:
        """The entry block."""
        return self.regions[0].blocks[0]


class HostReturnOp(Op):
    """Ends the host program with its results.

    `host.return %x : tensor<[4] x f32, strides [1]>`
    """

    name = "host.return"
    traits = frozenset({Terminator})
    parents = ("host.func",)
    values = variadic_operand()


class LaunchOp(Op):
    """Runs the kernel `callee` over its whole grid.

    Before `bufferize`: operands are the tensors read, results the arrays written (value
    semantics); after it: `outs` are the tensors written and there is no result. Index arguments
    of the kernel are the symbols it names. `inplace` facts are the kernel's. `checked`: what was
    made a kernel reads or writes at positions that are data, in bounds only behind the assertions
    before it; it must not move before them. What reads at 0 instead where an index is out of bounds
    (`attach-checks`) may. `when`: it runs for these sizes alone.

    `%y = host.launch %x {callee = @k0}
    : (tensor<[4] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]>`
    """

    name = "host.launch"
    traits = frozenset({ReadsMemory, RunsInRange, WritesMemory})
    inputs = variadic_operand(TENSOR)
    outs = variadic_operand(TENSOR)
    callee = attribute(A.SymbolRefAttr)
    checked = attribute(A.UnitAttr)
    arrays = variadic_result(TENSOR)


class AllocOp(Op):
    """Fresh uninitialized memory with the sizes and strides of the result type.

    `escapes` is present when the caller gets it (it is then a tensor of its own, else it may be
    placed in the arena).

    `%y = host.alloc : tensor<[4] x f32, strides [1]>`
    """

    name = "host.alloc"
    traits = frozenset({AllocatesMemory})
    escapes = attribute(A.UnitAttr)
    offset = attribute(A.DimAttr, "bytes into the arena, set by plan-memory", optional=True)
    memory = result(TENSOR)


class FlagOp(Op):
    """A truth value that launches of a GPU tell the host by: memory of one element that stands as
    long as the process, and holds true until a kernel writes false there (`kernel.check`).

    Then the program fails with `error` (one of `sym.ERRORS`) and `message`. A GPU's says so late:
    it is looked at when a program is called on that GPU again. Flags of one device, error and
    message may be one.

    `%f = host.flag {error = "IndexError", message = "index out of bounds"}
    : tensor<[] x i1, strides [], "cuda:0">`
    """

    name = "host.flag"
    traits = frozenset({AllocatesMemory})
    message = attribute(A.StringAttr)
    error = attribute(A.StringAttr, default="RuntimeError", words=ERRORS)
    flag = result(TENSOR)


class HostViewOp(Op):
    """A handle on the memory of `source` with other sizes, strides and offset (in elements,
    relative to the source's first element).

    `%v = host.view %x {offset = #sym<0>}
    : (tensor<[4] x f32, strides [1]>) -> tensor<[2] x f32, strides [2]>`
    """

    name = "host.view"
    traits = frozenset({MayAlias, MemoryView, Pure})
    source = operand(TENSOR)
    offset = attribute(A.DimAttr)
    view = result(TENSOR)


class CallAtenOp(Op):
    """Calls an ATen (or custom) operator eagerly.

    `callee`: "aten.mm.default". `arguments`: as on graph.call_aten. `path`: shim, dispatcher or
    boxed. `outs` (with an out= overload as callee) are the tensors written; otherwise the results
    are fresh or alias inputs as the schema says.

    `%y = host.call_aten %a {callee = "aten.exp.default", arguments = {self = #aten.operand<0>}}
    : (tensor<[4] x f32, strides [1]>) -> tensor<[4] x f32, strides [1]>`
    """

    name = "host.call_aten"
    traits = frozenset({MayAlias, ReadsMemory, RunsInRange, WritesMemory})
    inputs = variadic_operand()
    callee = attribute(A.StringAttr)
    arguments = attribute(A.DictAttr)
    path = attribute(A.StringAttr, optional=True)
    outputs = variadic_result()


class HostConstantOp(Op):
    """A tensor kept alive by the executable, named by its key in the module's resources.

    `%w = host.constant {value = #irc.resource<"0123"> : tensor<4xf32>}
    : tensor<[4] x f32, strides [1]>`
    """

    name = "host.constant"
    traits = frozenset({Pure})
    value = attribute(A.Attribute)
    tensor = result(TENSOR)


class PackOp(Op):
    """The constant `source` as the operator `callee` packs it, once, when the program is loaded.

    `arguments` are the operator's but for the tensor, which is its first. The source is a
    `host.constant`, and isn't kept if nothing else uses it. `transposed`: a matrix, to be
    transposed first.

    `%p = host.pack %w {arguments = {batch_size = 4 : i64}, callee = "aten.extern.mkldnn._reorder_linear_weight.default"} : (tensor<[6, 4] x f32, strides [4, 1]>) -> !graph.packed<tensor<6x4xf32>>`
    """  # noqa: E501

    name = "host.pack"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    callee = attribute(A.StringAttr)
    arguments = attribute(A.DictAttr)
    transposed = attribute(A.UnitAttr)
    packed = result(of(PackedType))


class ItemOp(Op):
    """The only element of a tensor as a scalar (`index` for integers, f64 for floats, i1).

    With the flag `every`, the tensor is a dense one of i1, of any size, and the scalar is whether
    all its elements are true.

    `%n = host.item %t : (tensor<[] x i64>) -> index`
    """

    name = "host.item"
    traits = frozenset({ReadsMemory})
    source = operand(TENSOR)
    every = attribute(A.UnitAttr)
    scalar = result()


class HostCopyOp(Op):
    """Copies the elements of `source` into `target` (an updated input), whatever their strides.

    `host.copy %x, %y
    : (tensor<[4] x f32, strides [1]>, tensor<[4] x f32, strides [1]>)`
    """

    name = "host.copy"
    traits = frozenset({ReadsMemory, RunsInRange, WritesMemory})
    source = operand(TENSOR)
    target = operand(TENSOR)
