"""torch's function for cuDNN's convolutions, for `gpu_stub`: it computes by torch, and records."""

from __future__ import annotations

import ctypes
from typing import Any

import attrs
import torch

from irc.boundary import cuda_convolutions, torch_abi
from irc.boundary.cuda_convolutions import Convolution, ConvolutionWords

_P, _Q, _B = ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool


@attrs.define(eq=False, slots=False)
class StubConvolutions:
    """`missing`: torch lacks the function; `context_of`: in place of what gives torch's context.
    `calls`: padding, stride, dilation, groups, whether kernels are tried, and where results are."""

    missing: bool = False
    context_of: int = 0
    calls: list[tuple[Any, ...]] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        kinds = [_P, _P, _P, _Q, _P, _Q, _P, _Q, _Q, _B, _B, _B, _P]
        self._function = ctypes.CFUNCTYPE(_P, *kinds)(self._compute)

    def words(self, *fields: Any) -> ConvolutionWords:
        """As `cuda_convolutions.finder` gives them, not tested."""
        if self.missing:
            return ConvolutionWords()
        own = ctypes.cast(self._function, ctypes.c_void_p).value
        name = cuda_convolutions._SYMBOLS[cuda_convolutions.FUNCTION]
        words = cuda_convolutions.addresses(
            lambda of: own if of == name else torch_abi.symbol_address(of), Convolution(*fields)
        )
        assert words[cuda_convolutions.FUNCTION]
        if self.context_of:
            words[cuda_convolutions.CONTEXT] = self.context_of
        return words

    def _compute(self, *given: Any) -> int:
        image, weight, *lists, groups, tries, fixed, short, out = given
        assert lists[1::2] == [2, 2, 2] and not fixed and short == torch.backends.cudnn.allow_tf32
        padding, stride, dilation = (
            tuple((ctypes.c_int64 * 2).from_address(each)) for each in lists[::2]
        )
        x, w, y = map(torch_abi.tensor_from_handle, (image, weight, out))
        assert y.is_contiguous(memory_format=torch.channels_last)
        y.copy_(torch.conv2d(x, w, None, stride, padding, dilation, groups))
        self.calls.append((padding, stride, dilation, groups, tries, y.data_ptr()))
        return int(out)
