"""The pass `stream-attention`."""

from __future__ import annotations

from typing import Any

from irc.analysis.loop import estimate
from irc.analysis.streams import FEWEST, LONGEST
from irc.dialects import aten, graph
from irc.dialects.aten.facts import GPU_ATTENTION
from irc.dialects.graph.inferred import tensor_type
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.symbols import dim_product
from irc.ir.types import f32
from irc.passes.graph.contractions.products import cast, spread
from irc.passes.graph.stream_scores import exchanged
from irc.passes.graph.stream_softmaxes import Powers, full, product, sixteen_bits
from irc.target import target_of
from irc.target.gpu import GpuFeatures


# attention(q, broadcast(k), broadcast(v), bias) -> dot(exp(x - m), v) / sum(exp(x - m))
@pattern(graph.CallAten, name="graph.stream_attention", counted="streamed")
def stream(call: graph.CallAten, rw: Any) -> Any:
    if call.callee not in GPU_ATTENTION or not rw.state.is_gpu:
        return rw.no_match("it is no attention of a GPU's library")
    arguments = aten.arguments_of(call)
    reason = why_not(call, arguments) or why_kept(arguments, rw.state.gpu)
    if reason:
        return rw.decline(f"attention is the library's: {reason}")
    rw.remark("attention of few queries is streamed")
    query, key, value = (arguments[name] for name in ("query", "key", "value"))
    shape = (*tensor_type(query).shape[:-1], tensor_type(key).shape[2])
    b, type_ = rw.builder, tensor_type(call.results[0])
    scores = product(b, shape[:2], query, exchanged(b, key), rw.state)
    scale = arguments["scale"]
    if scale is None:
        scale = tensor_type(query).shape[3] ** -0.5  # type: ignore[operator]
    scores = b.value(graph.Mul, scores, full(b, scores, float(scale)))
    bias = arguments.get("attn_bias")
    if bias is not None:
        rank = tensor_type(bias).rank
        bias = spread(b, cast(b, bias, f32), shape, list(range(4 - rank, 4)))
        scores = b.value(graph.Add, scores, bias)
    quotient = Powers.of(b, scores).times(b, value, True, rw.state)
    rw.replace(call, [cast(b, quotient, type_.element), *call.results[1:]])
    return True


def why_not(call: graph.CallAten, arguments: dict[str, Any]) -> str:
    """Why a call can't be streamed."""
    query, key, value = (arguments[name] for name in ("query", "key", "value"))
    if any(result.has_uses for result in call.results[1:]):
        return "more than its result is read"
    if arguments["dropout_p"] or arguments["is_causal"]:
        return "it drops probabilities, or is causal"
    if not sixteen_bits((query, key, value)):
        return "it is not of 16-bit floats"
    types = [tensor_type(each) for each in (query, key, value)]
    if any(type_.rank != 4 for type_ in types):
        return "it has no batch and heads"
    sizes = [type_.shape[3] for type_ in types]
    if not all(isinstance(size, int) and 0 < size <= LONGEST for size in sizes):
        return f"heads of {sizes[0]} elements have no room in a tile"
    columns = types[1].shape[2]
    if isinstance(columns, int) and columns < FEWEST:
        return f"{columns} keys don't fill a tile"
    return ""


def why_kept(arguments: dict[str, Any], gpu: GpuFeatures) -> str:
    """Why the library's kernel is as fast. It reads keys of shared heads from an array that has
    them for each head, and has a program instance walk over many keys."""
    query, key = tensor_type(arguments["query"]), tensor_type(arguments["key"])
    rows = query.shape[2]
    if not isinstance(rows, int) or rows > FEWEST:
        return "its queries are many"
    if is_spread(arguments["key"]) and is_spread(arguments["value"]):
        return ""
    if estimate(key.shape[2]) <= gpu.library_stream:
        return "its keys are few"
    if 2 * estimate(dim_product(query.shape[:2])) > gpu.stream_programs:
        return "its heads are many"
    return ""


def is_spread(value: Value) -> bool:
    """Whether an array has what another one has several times."""
    op: Operation | None = value.defining_op
    while isinstance(op, graph.Reshape):
        op = op.operands[0].defining_op
    if not isinstance(op, graph.Broadcast):
        return False
    one, other = (tensor_type(v) for v in (op.operands[0], op.results[0]))
    return dim_product(one.shape) != dim_product(other.shape)


@register_pass
class StreamAttention(PatternPass):
    """Streams attention of few queries, where a GPU's library has no kernel that suits it.

    A step of decoding has a query for each head. Where heads share keys, the library reads them from
    an array that has them for each head, which has to be made; and where there are few heads, each
    program instance of its kernels walks over many keys. As products of irc's own with a softmax
    between (`stream-softmaxes`), queries of heads that share keys are rows of a tile, and keys have
    parts (`stream-products`). Rows that see no key are 0. Remarks tell why a call stays.

    Before:
        %k4 = graph.reshape %wide : (tensor<2x8x4x4096x64xbf16>) -> tensor<2x32x4096x64xbf16>
        %y, ... = graph.call_aten %q, %k4, %v4 {callee = "aten._scaled_dot_product_flash_attention.default", ...} : ...
    After:
        %s = graph.dot_general %q, %k4 {schedule = #loop.schedule<gpu>, ...} : ...
        %e = graph.exp %gap : ...
        %o = graph.dot_general %e16, %v4 {schedule = #loop.schedule<gpu>, ...} : ...
        %y = graph.div %o, %sum : ...
    """  # noqa: E501

    name = "stream-attention"
    summary = "stream attention of few queries of heads that share keys, or of few heads"
    anchor = "func.func"
    preserves = "real"
    asks_target = True

    patterns = (stream,)

    def prepare(self, op: Operation, context: PassContext) -> Any:
        return target_of(context)


__all__ = ["StreamAttention"]
