"""The pass `choose-product-library`."""

from __future__ import annotations

from typing import Any

from irc.analysis.channels_last import library_is_there
from irc.dialects import aten, func, graph
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import f32

#: The matrix products, with the names that their factors have there.
FACTORS = {"aten.mm.default": ("self", "mat2"), "aten.addmm.default": ("mat1", "mat2")}


@register_pass
class ChooseProductLibrary(Pass):
    """Has large matrix products of f32 computed by oneDNN where torch's own choice, MKL, is slower.

    On AMD's processors oneDNN computes them up to 1.4 times as fast, from about 16 million
    multiplications on; below, what it does before and after a product costs more than it gains
    (`python -m bench.products`). On others, torch's choice stays. The operator remains the same,
    with the same operands: the attribute `library` says whose code runs. Its result is new memory.

    Taken are products of constant sizes whose left factor and result are row-major and whose right
    factor, or the transposed one, is; a bias is a vector. A remark tells why another one was not.

    processor: LLVM's name of the processor that decides; "" for this machine's.
    least: multiplications from which a product is large.

    Before:
        %y = graph.call_aten %x, %w {callee = "aten.mm.default", ...} :
          (tensor<[256, 768] x f32, strides [768, 1]>, tensor<[768, 3072] x f32, strides [1, 768]>) -> ...
    After:
        %y = graph.call_aten %x, %w {callee = "aten.mm.default", library = "onednn", ...} : ...
    """  # noqa: E501

    name = "choose-product-library"
    summary = "have large products computed by oneDNN where it is faster than torch's choice"
    anchor = "func.func"
    preserves = "real"
    processor: str = ""
    least: int = 2**24

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        calls = [
            o for o in op.block.ops if isinstance(o, graph.CallAten) and o.callee in FACTORS
        ]  # fmt: skip
        if not calls or not self.is_faster() or not library_is_there():
            return
        for call in calls:
            why = self.objection(call)
            if why is None:
                call.attributes["library"] = A.StringAttr("onednn")
                context.count("products of oneDNN")
            else:
                context.remark(f"{call.callee} stays with torch's library: {why}", call)

    def is_faster(self) -> bool:
        """Whether large products are faster with oneDNN on the processor."""
        from irc.codegen.llvm.target import TargetFeatures

        return (self.processor or TargetFeatures.host().cpu).startswith("znver")

    def objection(self, call: graph.CallAten) -> str | None:
        """Why torch's choice stays for a product."""
        given = call.arguments.as_dict()
        left, right = (_operand(call, given, name) for name in FACTORS[call.callee])
        bias = _operand(call, given, "self") if "mat1" in given else None
        for type_ in (left, right, call.results[0].type, *([] if bias is None else [bias])):
            if type_.element is not f32 or type_.device != "cpu":
                return f"{type_} is not f32 on a CPU"
            if not all(isinstance(n, int) for n in (*type_.shape, *type_.strides)):
                return f"{type_} has symbolic sizes"
        (rows, inner), columns = left.shape, right.shape[1]
        if rows * inner * columns < self.least:
            return f"{rows * inner * columns} multiplications are few"
        if left.strides != (inner, 1) or call.results[0].type.strides != (columns, 1):  # type: ignore[attr-defined]
            return "its left factor or its result is not row-major"
        if right.strides not in ((columns, 1), (1, inner)):
            return "neither its right factor nor the transposed one is row-major"
        if bias is not None and (bias.shape != (columns,) or bias.strides != (1,)):
            return f"what is added is {bias}, no vector"
        factors = [given.get(name) for name in ("alpha", "beta")]
        if any(factor is not None and factor.value != 1 for factor in factors):
            return "it is scaled"
        return None


def _operand(call: graph.CallAten, given: dict[str, Any], name: str) -> Any:
    attr = given[name]
    assert isinstance(attr, aten.OperandAttr)
    value: Value = call._operands[attr.index]
    return value.type

