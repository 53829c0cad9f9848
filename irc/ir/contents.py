"""The contents of constants that lie beside a program: their keys, and tensors of them.

    key = content_key(tensor)            # sha256 of the elements in row-major order
    tensor = content_tensor(bytes_or_tensor, torch.float32, (4, 8))

Two constants with equal bytes have one key, whatever their shapes and element types are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch

from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import ELEMENT_OF_DTYPE, TensorType

#: Constants of at most so many bytes stand in the text.
INLINE_BYTES = 256


def tensor_bytes(tensor: torch.Tensor) -> memoryview:
    """The elements of a tensor in row-major order, little-endian."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    if plain.numel() == 0:
        return memoryview(b"")
    return _bytes_of(plain).numpy().data


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor in row-major order, as bytes. To torch a lone element is contiguous
    whatever its stride, and so no bytes."""
    dense = tensor.contiguous()
    return dense.as_strided((dense.numel(),), (1,)).view(torch.uint8)


def content_key(tensor: torch.Tensor) -> str:
    """The sha256 of the tensor's bytes, in hexadecimal. Computed anew each time: not every write
    to a tensor is counted."""
    return hashlib.sha256(tensor_bytes(tensor)).hexdigest()


def content_attribute(
    tensor: torch.Tensor, resources: dict[str, Any], type_: TensorType | None = None
) -> A.DenseAttr | A.ResourceAttr:
    """The attribute of a constant with these elements, its large content put into `resources`.

    kind: the attribute's type; by default contiguous sizes without strides.
    """
    if type_ is None:
        element = ELEMENT_OF_DTYPE[str(tensor.dtype).removeprefix("torch.")]
        type_ = TensorType(tuple(tensor.shape), element, None, str(tensor.device))
    if tensor.numel() * tensor.element_size() <= INLINE_BYTES:
        return A.DenseAttr(type_, bytes(tensor_bytes(tensor)))
    key = content_key(tensor)
    resources[key] = tensor.detach()
    return A.ResourceAttr(key, type_)


def content_tensor(content: Any, dtype: torch.dtype, sizes: Sequence[int]) -> torch.Tensor:
    """A constant's content (bytes or a tensor of any shape) as a tensor of `sizes`.

    Shares the memory of a tensor of the same sizes and dtype, with its strides. Raises InvalidIR
    when there are more or fewer bytes than that.
    """
    shape = tuple(sizes)
    flat: torch.Tensor | None
    if isinstance(content, torch.Tensor):
        content = content.detach()
        if content.dtype == dtype and tuple(content.shape) == shape:
            return content
        flat = _bytes_of(content)
    else:
        flat = torch.frombuffer(bytearray(content), dtype=torch.uint8) if len(content) else None
    count = 1
    for size in shape:
        count *= size
    byte_count = count * torch.empty(0, dtype=dtype).element_size()
    held = 0 if flat is None else flat.numel()
    if held != byte_count:
        raise InvalidIR(
            f"a constant of {dtype} {list(shape)} has {byte_count} bytes, its content {held}"
        )
    if flat is None or not held:
        return torch.empty(shape, dtype=dtype)
    return flat.view(dtype).reshape(shape)


__all__ = ["INLINE_BYTES", "content_attribute", "content_key", "content_tensor", "tensor_bytes"]
