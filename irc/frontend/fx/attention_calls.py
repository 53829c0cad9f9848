"""Calls of `scaled_dot_product_attention`, traced with the mask that they need.

Which kernel such a call runs, torch decides where it is traced, by the mask among others: on a GPU
no fused one takes a mask whose last stride is not 1, and any mask is read. So before torch decides,
a mask is judged by what is known of it:

* It leaves all scores as they are, by what computes it (`attention.facts`): it is left out.
* It lets each query see the keys up to its own position: torch is told so instead.
* It is the same for all keys of a query (a bool of stride 0 there): the query sees all keys or
  none, so it is left out, and the results of the latter are 0, as eager's are.
* A GPU has a fused kernel for a mask with these elements, but not with these strides: it is
  copied. Kernels differ in what a row without any key is, so none has such a row.

Where probabilities are dropped, calls stay as they are: other kernels draw other random numbers.
Whoever asks for remarks is told what became of a mask (`irc.frontend.fx.attention.MaskRemarks`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.fx.experimental.symbolic_shapes import statically_known_true

#: What kernels for f32 and bf16 multiply by log2(e) in f32: below this a mask is not seen, either.
LOWEST = -1e30


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    told: Callable[[str], None] = lambda message: None,
) -> Tensor:
    """`scaled_dot_product_attention` while a program is traced. told: what was done with a mask
    that the call is not given as it is."""

    def call(mask: Tensor | None, causal: bool = False) -> Tensor:
        return F.scaled_dot_product_attention(
            query, key, value, mask, dropout_p, causal, scale=scale, enable_gqa=enable_gqa
        )

    operands = query, key, value
    if attn_mask is None or is_causal or dropout_p != 0 or not _are_plain(*operands, attn_mask):
        return call(attn_mask, is_causal)
    is_fused = _has_kernel(*operands, attn_mask, enable_gqa)

    def as_before(result: Tensor) -> Tensor:
        """With the strides that the program was written for."""
        return result if is_fused else result.contiguous()

    mask = _JudgedMask(attn_mask, (query.size(-2), key.size(-2)))
    if mask.does_nothing:
        told("its mask is proven to change no score and not read")
        return as_before(call(None))
    if mask.is_causal:
        told("its mask is proven to be causal and not read")
        return as_before(call(None, True))
    if mask.is_of_rows:
        told("its mask is the same for all keys of a query: the result is multiplied by it")
        return as_before(call(None) * attn_mask.narrow(-1, 0, 1))
    dense = None if is_fused else mask.dense(_wants_gradients(*operands))
    if dense is None or not _has_kernel(*operands, dense[0], enable_gqa):
        return call(attn_mask)
    told("its mask is copied: the fused kernel takes none with these strides")
    result, rows = call(dense[0]), dense[1]
    return as_before(result if rows is None else result * rows)


def _are_plain(*tensors: Any) -> bool:
    """Whether all are tensors as programs are traced with, under no transform of functorch."""
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    return all(
        type(t) in (FunctionalTensor, FakeTensor) and t.layout is torch.strided and t.dim() > 1
        for t in tensors
    )


def _wants_gradients(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _has_kernel(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, shares: bool) -> bool:
    """Whether torch has a fused kernel for a call, as it is set up; so it is on a CPU, where its
    kernel takes any strides of a mask, or would not take the call without one."""
    if query.device.type != "cuda":
        return True
    cuda = torch.backends.cuda
    asked = cuda.SDPAParams(query, key, value, mask, 0.0, False, shares)
    kernels = (
        cuda.can_use_flash_attention, cuda.can_use_efficient_attention, cuda.can_use_cudnn_attention
    )  # fmt: skip
    return any(can_use(asked) for can_use in kernels)


class _JudgedMask:
    """A mask while it is traced; sizes: of queries and keys."""

    def __init__(self, mask: Tensor, sizes: tuple[Any, Any]) -> None:
        from irc.passes.graph.attention.facts import KnownMask, interval, known_mask

        self.mask = mask
        program, node = _node_of(mask)
        self._known, self._reach = KnownMask.UNKNOWN, None
        if node is not None:
            # A mask of several layers is judged once: what a node gives never changes.
            told, name = node.meta.setdefault("irc_masks", {}), str(sizes)
            if name not in told:
                told[name] = known_mask(program, node, sizes), interval(program, node)
            self._known, self._reach = told[name]
        learned = mask.requires_grad and torch.is_grad_enabled()
        self.does_nothing = self._known is KnownMask.NOTHING and not learned
        self.is_causal = self._known is KnownMask.CAUSAL and not learned

    @property
    def is_of_rows(self) -> bool:
        """Whether it says for each query whether it sees all keys, or none."""
        mask = self.mask
        same = statically_known_true(mask.stride(-1) == 0) or statically_known_true(
            mask.size(-1) == 1
        )
        return mask.dtype == torch.bool and same and statically_known_true(mask.size(-1) > 0)

    def dense(self, gradients: bool) -> tuple[Tensor, Tensor | None] | None:
        """The mask with a last stride of 1, in which each row has a key, and of which rows that is
        true (None: of all); None where no such mask stands for this one."""
        mask, shape = self.mask, self.mask.shape
        learned = mask.requires_grad and torch.is_grad_enabled()
        if learned or statically_known_true(mask.stride(-1) == 1):
            return None
        for dim in range(mask.dim() - 2):  # batches and heads may go on sharing one
            if statically_known_true(mask.stride(dim) == 0) and mask.size(dim) != 0:
                mask = mask.narrow(dim, 0, 1)
        mask = mask.contiguous()
        if mask.dtype == torch.bool:
            rows = mask.any(-1, keepdim=True)
            return (mask | ~rows).expand(shape), rows
        limit = -LOWEST if not gradients else 1e4  # what gradients read is as coarse as its scores
        if self._reach is not None and max(map(abs, self._reach)) <= limit:
            return mask.expand(shape), None
        if gradients:
            return None
        rows = mask.amax(-1, keepdim=True) != -math.inf
        mask = torch.where(rows, mask, 0.0)
        if mask.dtype != torch.float16:
            mask = mask.clamp_min(LOWEST)
        return mask.expand(shape), rows


def _node_of(mask: Tensor) -> tuple[Any, fx.Node | None]:
    """The node of the traced graph that gives a mask, and that graph as a program; None where no
    graph is made, or one whose nodes write tensors."""
    from irc.frontend.fx.fused_attention import TracedGraph

    mode = get_proxy_mode()
    if mode is None:
        return None, None
    tracer: Any = mode.tracer
    if isinstance(mask, FunctionalTensor):
        mask = mask.from_functional()
    elif any(map(_writes, tracer.graph.nodes)):
        return None, None
    slot = get_proxy_slot(mask, tracer, None)
    if slot is None:
        return None, None
    node = slot.proxy.node
    return TracedGraph(tracer.root, node), node


def _writes(node: fx.Node) -> bool:
    """Whether a node may write a tensor that it is given."""
    if node.op in ("placeholder", "get_attr", "output"):
        return False
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return bool(target._schema.is_mutable)
    return getattr(target, "__module__", None) != "_operator"  # which compute sizes


__all__ = ["attend"]
