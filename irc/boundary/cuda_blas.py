"""Products of matrices on a GPU by cuBLAS itself, with torch's handle, below torch's operators.

    words = finder(symbol_address)("gemm", "bfloat16")     # FUNCTION is 0: the operator computes it

`aten.mm.out` ends in `cublasGemmEx` with the handle of the current device and stream that torch
sets up, behind a dozen questions about its operands. The function itself wants addresses and sizes.
What torch would do otherwise than here (another library, tuned products, deterministic ones,
narrower sums) it decides by settings: `irc.codegen.host.support_products` reads them at each call
through the other words, and where one isn't as expected, it calls the operator.

Each function is compared with its operator before the first program gets it.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

FORMS = ("gemm", "batched")
DTYPES = ("bfloat16", "float16", "float32")
#: Words: cuBLAS's function; what gives the handle, and sets its mode; torch's context, and what
#: tells of it whether operators are deterministic, which library is preferred (and which is
#: expected), what sums may be in (and what is expected; null: nothing is asked), whether f16 may
#: be summed in f16, how many processors are left to others; what gives the context of tuning, and
#: tells whether products are tuned; the code of the dtype.
(FUNCTION, HANDLE, SET_MODE, CONTEXT, DETERMINISTIC, LIBRARY, LIBRARY_IS, SUMS, SUMS_ARE, NARROW,
 SPARED, TUNING, TUNED, ELEMENT, WORDS) = range(15)  # fmt: skip

_FUNCTIONS = {
    ("gemm", False): "cublasGemmEx",
    ("gemm", True): "cublasSgemm_v2",
    ("batched", False): "cublasGemmStridedBatchedEx",
    ("batched", True): "cublasSgemmStridedBatched",
}
#: From 2.13 on the handle's function has a parameter, whose default is true.
_HANDLES = (
    "_ZN2at4cuda24getCurrentCUDABlasHandleEv", "_ZN2at4cuda24getCurrentCUDABlasHandleEb",
)  # fmt: skip
_SYMBOLS = {
    SET_MODE: "cublasSetMathMode",
    CONTEXT: "_ZN2at13globalContextEv",
    DETERMINISTIC: "_ZNK2at7Context23deterministicAlgorithmsEv",
    LIBRARY: "_ZN2at7Context20blasPreferredBackendEv",
    SPARED: "_ZNK2at7Context24_SMCarveout_EXPERIMENTALEv",
    TUNING: "_ZN2at4cuda7tunable16getTuningContextEv",
    TUNED: "_ZNK2at4cuda7tunable13TuningContext18IsTunableOpEnabledEv",
}
_SUMS = {
    "bfloat16": {SUMS: "_ZNK2at7Context24allowBF16ReductionCuBLASEv"},
    "float16": {
        SUMS: "_ZNK2at7Context24allowFP16ReductionCuBLASEv",
        NARROW: "_ZNK2at7Context27allowFP16AccumulationCuBLASEv",
    },
    "float32": {},
}
#: cuBLAS's codes.
_ELEMENTS = {"bfloat16": 14, "float16": 2, "float32": 0}


class ProductFunction(ctypes.c_uint64 * WORDS):  # type: ignore[misc]
    """The words of one function; a ctypes array holds their address at offset 16."""


#: Calls `irc.codegen.host.support_products`' function of a form and a dtype on its words, with the
#: numbers of a product and three addresses.
Caller = Callable[[str, ProductFunction, ctypes.Array[Any], int, int, int], int]


def finder(
    symbol_address: Callable[[str], int | None], call: Caller
) -> Callable[[str, str], ProductFunction]:
    """What gives the words for a form and a dtype, each function tested before by `call`."""
    tested: dict[tuple[str, str], ProductFunction] = {}

    def product(form: str, dtype: str) -> ProductFunction:
        words = tested.get((form, dtype))
        if words is not None:
            return words
        words = addresses(symbol_address, form, dtype)
        if words[FUNCTION]:
            if torch.cuda.is_current_stream_capturing() or not is_usual(dtype):
                return ProductFunction()  # no time for a test
            expect(words)
            try:
                reason = self_test(words, form, dtype, call)
            except RuntimeError:  # the operator says why, when it is called
                return ProductFunction()
            if reason is not None:
                words = ProductFunction()
        return tested.setdefault((form, dtype), words)

    return product


def addresses(
    symbol_address: Callable[[str], int | None], form: str, dtype: str
) -> ProductFunction:
    """The words with addresses; all 0 where torch or cuBLAS lacks one of the functions."""
    words = ProductFunction()
    names = {FUNCTION: _FUNCTIONS[form, dtype == "float32"], **_SYMBOLS, **_SUMS[dtype]}
    places: dict[int, int | None] = {word: symbol_address(name) for word, name in names.items()}
    places[HANDLE] = next(filter(None, map(symbol_address, _HANDLES)), None)
    if None in places.values():
        return words
    for word, address in places.items():
        words[word] = address or 0
    words[ELEMENT] = _ELEMENTS[dtype]
    return words


def is_usual(dtype: str) -> bool:
    """Whether torch's settings are those for which the functions here stand."""
    sums = {
        "bfloat16": torch._C._get_cublas_allow_bf16_reduced_precision_reduction,
        "float16": torch._C._get_cublas_allow_fp16_reduced_precision_reduction,
    }.get(dtype)
    answer: Any = True if sums is None else sums()
    allowed = all(answer) if isinstance(answer, tuple) else bool(answer)
    library = torch._C._get_blas_preferred_backend()
    return allowed and library != torch._C._BlasBackend.Cublaslt  # type: ignore[attr-defined]


def expect(words: ProductFunction) -> None:
    """Note the settings as they are as those to expect."""
    context = ctypes.PYFUNCTYPE(ctypes.c_void_p)(words[CONTEXT])()
    for word in (LIBRARY, SUMS):
        if words[word]:
            ask = ctypes.PYFUNCTYPE(ctypes.c_uint8, ctypes.c_void_p)(words[word])
            words[word + 1] = ask(context)


def self_test(words: ProductFunction, form: str, dtype: str, call: Caller) -> str | None:
    """Why the function isn't what the operator calls; None when it is, as far as a product of small
    whole numbers tells."""
    with plainly():
        return _tested(words, form, getattr(torch, dtype), call)


@contextlib.contextmanager
def plainly() -> Iterator[None]:
    """Call operators as they are, wherever a program is compiled or loaded."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), torch._C._DisableAutocast(), torch.inference_mode(False):
        with torch.no_grad():
            yield


def whole_numbers(sizes: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Small ones on the GPU, copied there: the first use of each operator there loads its kernel,
    which takes milliseconds."""
    count = torch.arange(torch.Size(sizes).numel())
    return (count * 7 % 5 - 2).view(*sizes).to(dtype).cuda()


def are_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors of the GPU have equal elements, which the CPU compares."""
    return torch.equal(first.cpu(), second.cpu())


def _tested(
    words: ProductFunction, form: str, dtype: torch.dtype, call: Caller
) -> str | None:
    batches, rows, inner, columns = 3, 8, 16, 24
    left, right = (whole_numbers((batches, n, inner), dtype) for n in (rows, columns))
    out = torch.zeros(batches, rows, columns, dtype=dtype).cuda()
    if form == "gemm":
        left, right, out = left[0], right[0], out[0]
    # The operator first: a library that can't be set up raises its error here.
    expected = left @ right.transpose(-2, -1)
    shape = [1, 0, columns, rows, inner, inner, inner, columns]
    if form == "batched":
        shape += [columns * inner, rows * inner, rows * columns, batches]
    operands = (t.data_ptr() for t in (right, left, out))
    if call(form, words, (ctypes.c_int64 * len(shape))(*shape), *operands):
        return f"{form} isn't computed"
    return None if are_equal(out, expected) else f"{form} doesn't give the operator's values"


__all__ = [
    "DTYPES", "FORMS", "ProductFunction", "addresses", "are_equal", "expect", "finder", "is_usual",
    "plainly", "self_test", "whole_numbers",
]  # fmt: skip
