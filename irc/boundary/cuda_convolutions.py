"""Convolutions of a GPU by cuDNN, below torch's operators.

    words = finder(symbol_address, call)(*attrs.astuple(which))   # which: a `Convolution`
    # FUNCTION is 0: the operator computes it

`aten.convolution` asks which library computes a convolution, as which operator, and that operator's
dispatcher, before it comes to the function that has cuDNN compute it. That one is called with
memory of the program for the result where torch's own question gave cuDNN. torch's settings are
read at each call, as the operator reads them (`irc.codegen.host.support_convolutions`); where one
asks for something else than cuDNN, or for what always gives the same bits, the operator is called.
The function is compared with its operator before the first program gets it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import attrs
import torch

from irc.boundary.cuda_blas import are_equal, plainly, whole_numbers

#: Words: torch's function; what gives its context, and tells whether cuDNN is enabled, may try
#: kernels, has to compute alike each time (as all operators have), may compute in TF32; then the
#: numbers: padding, stride, dilation, of rows and columns each, and groups.
(FUNCTION, CONTEXT, ENABLED, BENCHMARK, FIXED, DETERMINISTIC, TF32, PADDING, _, STRIDE, _, DILATION,
 _, GROUPS, WORDS) = range(15)  # fmt: skip

_SYMBOLS = {
    FUNCTION: (
        "_ZN2at6native21cudnn_convolution_outERKNS_6TensorES3_N3c108ArrayRefIlEES6_S6_lbbbRS1_"
    ),
    CONTEXT: "_ZN2at13globalContextEv",
    ENABLED: "_ZNK2at7Context16userEnabledCuDNNEv",
    BENCHMARK: "_ZNK2at7Context14benchmarkCuDNNEv",
    FIXED: "_ZNK2at7Context18deterministicCuDNNEv",
    DETERMINISTIC: "_ZNK2at7Context23deterministicAlgorithmsEv",
    TF32: "_ZNK2at7Context14allowTF32CuDNNESt8optionalINS_9Float32OpEE",
}
DTYPES = ("bfloat16", "float16")


class ConvolutionWords(ctypes.c_uint64 * WORDS):  # type: ignore[misc]
    """The words of one convolution; a ctypes array holds their address at offset 16."""


@attrs.frozen
class Convolution:
    """One of channels-last images: sizes of the image and the weight, and the numbers as words."""

    dtype: str
    device: int
    image: tuple[int, ...]
    weight: tuple[int, ...]
    numbers: tuple[int, ...]


#: Calls `irc_gpu_convolution` on words, an image, a weight and a result.
Caller = Callable[[ConvolutionWords, torch.Tensor, torch.Tensor, torch.Tensor], int]


def finder(
    symbol_address: Callable[[str], int | None], call: Caller
) -> Callable[..., ConvolutionWords]:
    """What gives the words for a convolution's fields, the function tested before by `call`."""
    tested: dict[str, bool] = {}

    def convolution(*fields: Any) -> ConvolutionWords:
        which = Convolution(*fields)
        words = addresses(symbol_address, which)
        if not words[FUNCTION]:
            return words
        if torch.cuda.is_current_stream_capturing() or not is_usual():
            return ConvolutionWords()  # no time for a test
        try:
            if which.dtype not in tested:
                tested[which.dtype] = self_test(symbol_address, which.dtype, call) is None
            return words if tested[which.dtype] and is_cudnns(which) else ConvolutionWords()
        except RuntimeError:  # the operator says why, when it is called
            return ConvolutionWords()

    return convolution


def addresses(symbol_address: Callable[[str], int | None], which: Convolution) -> ConvolutionWords:
    """The words with addresses; all 0 where torch lacks one of the functions."""
    words = ConvolutionWords()
    places = {word: symbol_address(name) for word, name in _SYMBOLS.items()}
    if None not in places.values():
        for word, address in places.items():
            words[word] = address or 0
        for word, number in enumerate(which.numbers, start=PADDING):
            words[word] = number
    return words


def is_usual() -> bool:
    """Whether torch's settings are those for which the function stands."""
    fixed = torch.backends.cudnn.deterministic or torch.are_deterministic_algorithms_enabled()
    return torch.backends.cudnn.enabled and not fixed


def is_cudnns(which: Convolution) -> bool:
    """Whether torch would have cuDNN compute it, which it asks of the sizes for one image."""
    dtype, numbers = getattr(torch, which.dtype), which.numbers
    padding, stride, dilation = (list(numbers[i : i + 2]) for i in (0, 2, 4))
    with plainly(), torch.cuda.device(which.device):
        image, weight = (
            torch.empty(sizes, dtype=dtype, device="cuda", memory_format=torch.channels_last)
            for sizes in ((1, *which.image[1:]), which.weight)
        )
        backend = torch._C._select_conv_backend(
            image, weight, None, stride, padding, dilation, False, [0, 0], numbers[6]
        )
    return str(backend).endswith(".Cudnn")


def self_test(symbol_address: Callable[[str], int | None], dtype: str, call: Caller) -> str | None:
    """Why the function isn't what the operator calls; None when it is, as far as the elements of a
    small convolution of whole numbers tell."""
    which = Convolution(dtype, 0, (2, 16, 6, 5), (8, 16, 3, 3), (1, 1, 2, 1, 1, 1, 1))

    def numbers(sizes: tuple[int, ...]) -> torch.Tensor:
        batches, channels, *plane = sizes
        rows = whole_numbers((batches, *plane, channels), getattr(torch, dtype))
        return rows.permute(0, 3, 1, 2)

    with plainly():
        image, weight = numbers(which.image), numbers(which.weight)
        expected = torch.conv2d(image, weight, None, (2, 1), (1, 1))
        zeros = torch.zeros(expected.shape, dtype=expected.dtype)
        out = zeros.to(memory_format=torch.channels_last).cuda()
        if call(addresses(symbol_address, which), image, weight, out):
            return "the convolution isn't computed"
        return None if are_equal(out, expected) else "it doesn't have the operator's values"


__all__ = [
    "DTYPES", "Convolution", "ConvolutionWords", "addresses", "finder", "is_cudnns", "is_usual",
    "self_test",
]  # fmt: skip
