"""The pass `fuse-attention`."""

from __future__ import annotations

from typing import Any

from irc.dialects import aten, func
from irc.dialects.sym.facts import facts_of
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.passes.graph.attention.function import FUSED, AtenFunction
from irc.passes.graph.attention.masks import planned
from irc.passes.graph.attention.program import NotAttention
from irc.passes.graph.attention.recognize import Attention, objection, recognize
from irc.passes.graph.attention.rewrite import four_dimensions
from irc.target import target_of

SOFTMAX, PRODUCT = "aten._softmax.default", "aten.bmm.default"


# bmm(softmax(bmm(q, k^T) * scale + mask), v) -> attention(q, k, v, mask, scale)
@pattern(aten.AtenOp, name="aten.fuse_attention", counted="fused")
def fuse(op: Any, rw: Any) -> Any:
    if op.qualified != PRODUCT or op.results[0].type.device != "cpu":
        return rw.no_match("it is no product on a CPU")
    options, target, ranges = rw.state
    program = AtenFunction(rw.builder, ranges)
    try:
        attention = recognize(program, op.results[0])
        reason = objection(program, attention, target.features.core_bytes)
        if reason and not options.force:
            raise NotAttention(reason)
        result, remark = fused(program, attention)
    except NotAttention as error:
        if not error.told:
            return rw.no_match(error.reason)
        return rw.decline(f"attention is left as it is written: {error.reason}")
    rw.remark(remark)
    shape = op.results[0].type.shape
    rw.replace(op, [program.emit("reshape.default", result, list(shape))])
    return True


def fused(program: AtenFunction, attention: Attention) -> tuple[Value, str]:
    """The fused attention's result, of four dimensions, and what a user is told of it. Raises
    NotAttention before it adds anything to the program."""
    dtype = "float64" if program.dtype(attention.query.base) == "float64" else "float32"
    plan = planned(program, attention, dtype)
    query, key, value = (four_dimensions(program, o)
                         for o in (attention.query, attention.key, attention.value))  # fmt: skip
    keywords = {"scale": attention.scale}
    if plan.mask is not None:
        keywords["attn_mask"] = plan.mask
    arguments = [query, key, value, 0.0, plan.causal]
    result, _ = program.results(FUSED, arguments, keywords)
    if plan.rows is None:
        return result, plan.remark
    nothing = program.emit("full.default", [], plan.otherwise, dtype=program.dtype(query))
    visible: Value = program.emit("where.self", plan.rows, result, nothing)
    return visible, plan.remark


@register_pass
class FuseAttention(PatternPass):
    """Makes one operator of softmax(query @ key^T * scale + mask) @ value, of ATen's operators.

    The scale may stand anywhere (on the scores, the query, the key, split, as a division); heads
    may be dimensions of views, of einsum, or shared by groups of queries (repeated keys and values
    are then not copied); masks are added, or a number takes a score's place where they say so. A
    mask that constants make is computed here: if it lets each query see the keys up to its own, the
    operator is told so and reads none. Nothing else may read the scores or the probabilities.

    A row without any key is NaN as written and 0 in ATen's operator. It is NaN here too, by a
    selection, unless the mask is known to leave each row a key or to be finite. Where a finite
    number (at most -1e4) takes a score's place, scores that stay are taken to be at least 104 above
    it; a row without any key is then the mean of the values, as written.

    Only where it pays: the scores, or the keys and values that are copied as written, don't fit
    into a core's second-level cache; or rows of 16-bit floats one at a time.

    force: wherever it is right, whether it pays or not.

    Before:
        %s = aten.bmm.default %q, %kt {...} : (...) -> tensor<[48, 197, 197] x f32, ...>
        %m = aten.mul.Tensor %s {arguments = {other = 0.125 : f64, ...}} : ...
        %p = aten._softmax.default %m {arguments = {dim = -1 : i64, ...}} : ...
        %y = aten.bmm.default %p, %v {...} : (...) -> tensor<[48, 197, 64] x f32, ...>
    After:
        %o, %l = aten._scaled_dot_product_flash_attention_for_cpu.default %q4, %k4, %v4
          {arguments = {scale = 0.125 : f64, ...}} :
          (...) -> (tensor<[4, 12, 197, 64] x f32, ...>, tensor<[4, 12, 197] x f32, ...>)
        %y = aten.reshape.default %o {...} : (...) -> tensor<[48, 197, 64] x f32, ...>
    """

    name = "fuse-attention"
    summary = "attention that was written out becomes the operator that computes all of it"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    force: bool = False

    patterns = (fuse,)

    def prepare(self, op: Operation, context: PassContext) -> Any:
        assert isinstance(op, func.FuncOp)
        if target_of(context).is_gpu:
            return None  # which kernel it runs is decided where the graph is traced
        written = any(isinstance(o, aten.AtenOp) and o.qualified == SOFTMAX for o in op.block.ops)
        return (self, target_of(context), facts_of(op).ranges) if written else None


__all__ = ["FuseAttention", "fused"]
