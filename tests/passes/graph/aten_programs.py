"""Programs on the aten and the graph level, put together one operation at a time."""

from __future__ import annotations

from irc.dialects import aten, graph
from irc.dialects.func import FuncOp, ReturnOp
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.module import ModuleOp
from irc.ir.passes import PassContext
from irc.ir.rewrite.passes import apply_patterns
from irc.ir.types import TensorType, contiguous_strides, f32
from irc.passes.graph.convert_aten.support import Call

NONE = object()


def tensor(shape, strides=None, element=f32):
    """A tensor type, row-major unless strides are given; NONE for none."""
    if strides is NONE:
        return TensorType(shape, element)
    return TensorType(shape, element, contiguous_strides(shape) if strides is None else strides)


class Program:
    """A function on the aten level."""

    def __init__(self, *types):
        self.function = FuncOp.create("main", types, [])
        self.module = ModuleOp.empty()
        self.module.block.append(self.function)
        self.builder = Builder.at_end(self.function.block)
        self.arguments = self.function.block.arguments

    def call(self, name, kind, *args):
        """The result of a call (or the results, for a list of types)."""
        kinds = kind if isinstance(kind, list) else [kind]
        qualified = name if name.startswith("prims.") else f"aten.{name}"
        op = aten.make_aten(
            qualified, args, {}, lambda a: a if hasattr(a, "users") else None, kinds
        )
        self.builder.insert(op)
        return list(op.results) if isinstance(kind, list) else op.results[0]

    def converting(self):
        """A call being converted, on a value that nothing asks about."""
        named = {a: a for a in self.arguments}
        return Call(self.builder, None, {}, {}, [], named)

    def returned(self, *values):
        """The module of the function, which gives these values."""
        self.builder.create(ReturnOp, list(values))
        self.function.refresh_type()
        return self.module


class Graph(Program):
    """A function on the graph level."""

    def rewritten(self, value, patterns, state=None):
        """Apply patterns to the function, which gives `value`; why they declined."""
        context = PassContext()
        self.builder.create(ReturnOp, [value])
        apply_patterns(self.function, patterns, context, state)
        return [remark.message for remark in context.remarks]

    def value(self, cls, *operands, **rest):
        return self.builder.value(cls, *operands, **rest)

    def constant(self, *shape, element=f32):
        """A constant of ones."""
        kind = TensorType(shape, element)
        data = {16: b"\x00\x3c", 32: b"\x00\x00\x80\x3f", 64: bytes(6) + b"\xf0\x3f"}[element.width]
        return self.value(graph.Constant, value=A.DenseAttr(kind, data), result_types=kind)

    def full(self, number, *shape, element=f32):
        kind = TensorType(shape, element)
        value = graph.scalar_attribute(number, element)
        return self.value(graph.Full, value=value, result_types=kind)

    def call_aten(self, callee, made, tensors, **arguments):
        """A call with tensors by the names of its arguments (None: absent)."""
        given = [v for v in tensors.values() if v is not None]
        numbers = {
            name: aten.NONE if v is None else aten.OperandAttr(given.index(v))
            for name, v in tensors.items()
        }
        strides = A.ArrayAttr([A.DimsAttr(contiguous_strides(made.shape))])
        entries = {
            "callee": A.StringAttr(callee), "arguments": A.DictAttr({**numbers, **arguments}),
            "eager_strides": strides,
        }  # fmt: skip
        return self.builder.insert(graph.CallAten(given, [made], entries)).results[0]

    def convolution(self, x, weight, bias=None, made=None, **changes):
        """A convolution of 1 by 1 unless `changes` say more."""
        ones, zeros = (A.ArrayAttr([A.IntegerAttr(n)] * 2) for n in (1, 0))
        arguments = {
            "stride": ones, "padding": zeros, "dilation": ones, "output_padding": zeros,
            "transposed": A.FALSE, "groups": A.IntegerAttr(1), **changes,
        }  # fmt: skip
        if made is None:
            shape = (x.type.shape[0], weight.type.shape[0], *x.type.shape[2:])
            made = TensorType(shape, x.type.element)
        tensors = {"input": x, "weight": weight, "bias": bias}
        return self.call_aten("aten.convolution.default", made, tensors, **arguments)

    def mm(self, left, right, bias=None, **more):
        """A product, with a bias an `addmm`."""
        made = TensorType((left.type.shape[0], right.type.shape[1]), left.type.element)
        if bias is None:
            return self.call_aten("aten.mm.default", made, {"self": left, "mat2": right})
        tensors = {"self": bias, "mat1": left, "mat2": right}
        return self.call_aten("aten.addmm.default", made, tensors, **more)


def put_on(module, device):
    """A program traced on the CPU, with all tensors on a device."""
    for op in module.walk():
        blocks = [block for region in op.regions for block in region.blocks]
        for value in [*op.results, *(a for block in blocks for a in block.arguments)]:
            if isinstance(value.type, TensorType):
                type_ = value.type
                value.type = TensorType(type_.shape, type_.element, type_.strides, device)
    return module


def of(*shapes, element=f32):
    """A program with arguments of these sizes, and the arguments."""
    p = Graph(*[TensorType(shape, element) for shape in shapes])
    return p, *p.arguments
