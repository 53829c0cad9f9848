"""Which operator of a library a call becomes, where it says whose (`backend`)."""

from __future__ import annotations

from irc.analysis.calls import ONEDNN_CONVOLUTION, integers
from irc.analysis.channels_last import CONVOLUTION
from irc.analysis.volumes import SHAPE
from irc.dialects import graph
from irc.ir import attributes as A
from irc.ir.diagnostics import UserError

BY_ONEDNN = A.StringAttr("onednn")


def library_call(op: graph.CallAten) -> dict[str, A.Attribute]:
    """`callee` and `arguments` of a convolution that oneDNN is to compute whatever ATen would
    choose; of other calls nothing, which stay as they are. Raises UserError for a transposed one,
    and for numbers that are symbolic."""
    if op.callee != CONVOLUTION or op.attributes.get("backend") is not BY_ONEDNN:
        return {}
    told = op.arguments.as_dict()
    numbers = {name: integers(told[name]) for name in SHAPE}
    if told["transposed"] is A.TRUE or any(not entry for entry in numbers.values()):
        raise UserError("oneDNN's operator is for a convolution of known numbers", op=op)
    spatial = op.results[0].type.rank - 2  # type: ignore[attr-defined]
    arguments = {"self": told["input"], **{n: told[n] for n in ("weight", "bias", "groups")}}
    for name, entry in numbers.items():
        assert entry is not None
        whole = entry * spatial if len(entry) == 1 else entry
        arguments[name] = A.ArrayAttr([A.IntegerAttr(number) for number in whole])
    return {"callee": A.StringAttr(ONEDNN_CONVOLUTION), "arguments": A.DictAttr(arguments)}


__all__ = ["library_call"]
