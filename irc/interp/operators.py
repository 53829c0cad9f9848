"""Calling torch operators by name with encoded arguments, as the aten, graph and host levels do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from irc.dialects import aten
from irc.dialects.aten.facts import GPU_ATTENTION
from irc.dialects.aten.trust import check_operator, is_trusted
from irc.interp.core import Frame, carried
from irc.ir import attributes as A
from irc.ir.diagnostics import UserError

# Operators whose result's elements are undefined.
UNDEFINED = frozenset({
    torch.ops.aten.empty, torch.ops.aten.empty_like, torch.ops.aten.empty_strided,
    torch.ops.aten.empty_permuted, torch.ops.aten.new_empty, torch.ops.aten.new_empty_strided,
})  # fmt: skip


def operator(callee: str) -> Any:
    """The torch operator overload called "aten.mm.default" or "aten.extern.ns.op.overload".

    Raises UserError when torch has none of that name.
    """
    parts = aten.qualified_name(callee).split(".")
    if len(parts) != 3:
        raise UserError(f"'{callee}' is no operator name (namespace.name.overload)")
    namespace, name, overload = parts
    try:
        return getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except AttributeError:
        raise UserError(f"torch has no operator '{callee}'") from None


def decode(frame: Frame, attr: A.Attribute, inputs: Sequence[Any]) -> Any:
    """The Python value of one encoded argument."""
    if isinstance(attr, A.IntegerAttr | A.FloatAttr | A.BoolAttr | A.StringAttr):
        return attr.value
    if isinstance(attr, A.DimAttr):
        return frame.dim(attr.dim)
    if isinstance(attr, A.DimsAttr):
        return [None if d is None else frame.dim(d) for d in attr.dims]
    if isinstance(attr, A.DenseIntsAttr):
        return list(attr.values)
    if isinstance(attr, A.ArrayAttr):
        items = [decode(frame, a, inputs) for a in attr]
        return complex(items[1], items[2]) if items[:1] == ["complex"] else items
    if isinstance(attr, aten.OperandAttr):
        return inputs[attr.index]
    if attr is aten.NONE:
        return None
    if isinstance(attr, aten.NamedAttr):
        return aten.to_torch(attr)
    raise UserError(f"{attr} can't be passed to an operator")


def bind(
    frame: Frame, target: Any, arguments: Mapping[str, A.Attribute], inputs: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments for a call of `target`."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    in_order = True
    for argument in target._schema.arguments:
        attr = arguments.get(argument.name)
        if attr is None:
            in_order = False
            continue
        content = _as_argument(decode(frame, attr, inputs), str(argument.type))
        if in_order and not argument.kwarg_only:
            positional.append(content)
        else:
            keywords[argument.name] = content
    return positional, keywords


def _as_argument(content: Any, type_: str) -> Any:
    """A data-dependent scalar is a tensor in the frame; operators want a Python number."""
    if isinstance(content, torch.Tensor) and "Tensor" not in type_:
        return content.item()
    if isinstance(content, list) and "Tensor" not in type_:
        return [c.item() if isinstance(c, torch.Tensor) else c for c in content]
    return content


def call_operator(
    frame: Frame, callee: str, arguments: Mapping[str, A.Attribute], inputs: Sequence[Any]
) -> Any:
    """Call an operator on contents. In mode "real", dtype arguments that ask for a smaller float
    are raised to f64, as every float is carried so."""
    if not is_trusted(frame.module):
        check_operator(aten.qualified_name(callee))
    target = operator(callee)
    positional, keywords = bind(frame, target, arguments, inputs)
    if frame.mode == "real":
        positional = [_raise_dtype(p) for p in positional]
        keywords = {k: _raise_dtype(v) for k, v in keywords.items()}
    watch = frame.state.get("watch")
    with torch.no_grad():
        if callee in GPU_ATTENTION:
            return attention(target, positional, keywords)
        if watch is not None and torch.Tag.nondeterministic_seeded in target.tags:
            return watch.call_random(target, positional, keywords)
        content = target(*positional, **keywords)
    if watch is not None and target.overloadpacket in UNDEFINED:
        watch.fill_undefined(content)
    return content


def attention(target: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """What the library's kernel of a GPU computes, by torch on a CPU; the other results, as
    logarithms of sums are, are NaN. Raises UserError where it drops probabilities."""
    names = [argument.name for argument in target._schema.arguments]
    named = {**dict(zip(names, positional, strict=False)), **keywords}
    if named.get("dropout_p"):
        raise UserError(f"'{target}' drops probabilities, which a CPU has no kernel for")
    result = torch.nn.functional.scaled_dot_product_attention(
        named["query"], named["key"], named["value"], named.get("attn_bias"),
        is_causal=bool(named.get("is_causal")), scale=named.get("scale"),
    )  # fmt: skip
    shapes = target(**{name: x.to("meta") if isinstance(x, torch.Tensor) else x
                       for name, x in named.items()})  # fmt: skip
    return [result, *map(_unknown, shapes[1:])]


def _unknown(like: Any) -> Any:
    """A tensor of a shape that holds nothing that is known."""
    if not isinstance(like, torch.Tensor):
        return like
    content = torch.zeros(like.shape, dtype=like.dtype)
    return content.fill_(math.nan) if content.is_floating_point() else content


def _raise_dtype(content: Any) -> Any:
    return carried(content, "real") if isinstance(content, torch.dtype) else content


def results_of(content: Any, count: int) -> list[Any]:
    """An operator's outcome as one entry per result."""
    if count == 0:
        return []
    if isinstance(content, tuple | list):
        return list(content)
    return [content]
