"""Products with a bias on a GPU by cuBLASLt itself, as torch's `addmm` with a vector asks for them.

    site = BiasedSite.create(symbol_address, "bfloat16", numbers)   # None: the operator computes it
    site.words                                                    # what native code reads

`gemm_and_bias` makes descriptions of the operands and asks cuBLASLt for an algorithm in each call:
here they are made once for a product and a bias, and the algorithm is asked for once for each
alignment of the operands, with the same questions, so that it is the same one. Settings are read as
`irc.boundary.cuda_blas` says, whose words these begin with. All of it lives as long as the words.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch

from irc.boundary import cuda_blas
from irc.boundary.cuda_blas import FUNCTION, HANDLE, SUMS, SUMS_ARE

#: Words behind those of `cuda_blas`: the record that was used last, what gives torch's workspace.
RECORD, WORKSPACE, WORDS = range(cuda_blas.WORDS, cuda_blas.WORDS + 3)
#: Words of a record, which nobody writes to once it is a site's: the alignments and the bias that
#: it is for; what describes the product, its first and second operand and the result; the algorithm
#: (null: there is none), and bytes of workspace that it needs.
(ALIGNMENTS, BIAS, PRODUCT, FIRST, SECOND, RESULT, ALGORITHM, NEEDS,
 RECORD_WORDS) = range(9)  # fmt: skip
#: Biases at different places before a site is given up: a record for each stays.
MOST_RECORDS = 64
#: An alignment is the number of zeros at the end of an address, 8 at most, in four bits.
ALIGNMENT_BITS, LARGEST_ALIGNMENT = 4, 8

_LT_HANDLE = "_ZN2at4cuda26getCurrentCUDABlasLtHandleEv"
_WORKSPACE = "_ZN2at4cuda22getCUDABlasLtWorkspaceEv"
_WORKSPACE_SIZE = "_ZN2at4cuda26getCUDABlasLtWorkspaceSizeEv"
_TF32 = "_ZNK2at7Context15allowTF32CuBLASEv"
_LT = (
    "cublasLtMatmul", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutCreate", "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescDestroy", "cublasLtMatrixLayoutDestroy", "cublasLtMatmulPreferenceDestroy",
)  # fmt: skip
# cuBLASLt's codes: how sums are computed, attributes of a product and of what is preferred.
_COMPUTE_32F, _COMPUTE_TF32 = 68, 77
_TURN_FIRST, _TURN_SECOND, _EPILOGUE, _BIAS_POINTER = 3, 4, 7, 8
_ADD_BIAS = 4
_MOST_WORKSPACE, _ALIGNMENT_OF_FIRST = 1, 5
_RESULT_WORDS, _RESULT_NEEDS = 16, 8


class BiasedFunction(ctypes.c_uint64 * WORDS):  # type: ignore[misc]
    """The words; a ctypes array holds their address at offset 16. Called by native code with the
    alignments and the bias that it has no record for."""

    #: What loads a record.
    load: Callable[[int, int], None]

    def __call__(self, alignments: int, bias: int) -> tuple[()]:
        self.load(alignments, bias)
        return ()


class BiasedRecord(ctypes.c_uint64 * RECORD_WORDS):  # type: ignore[misc]
    """The words of one."""


@attrs.define(eq=False)
class BiasedSite:
    """A product: `numbers` as `irc.codegen.host.gpu_products` has them."""

    words: BiasedFunction
    numbers: Sequence[int]
    functions: dict[str, Any]
    layouts: tuple[int, ...] = ()
    records: dict[tuple[int, int], BiasedRecord] = attrs.field(factory=dict)
    #: What is to be destroyed with the words: by which function.
    handles: list[tuple[Any, int]] = attrs.field(factory=list)

    @staticmethod
    def create(
        symbol_address: Callable[[str], int | None], dtype: str, numbers: Sequence[int]
    ) -> BiasedSite | None:
        """A site; None where torch or cuBLASLt lacks a function, or can't describe the operands.
        Raises torch's RuntimeError for settings that contradict each other."""
        base = cuda_blas.addresses(symbol_address, "gemm", dtype)
        names = (*_LT, _LT_HANDLE, _WORKSPACE, _WORKSPACE_SIZE, _TF32)
        addresses = {name: symbol_address(name) or 0 for name in names}
        if not base[FUNCTION] or 0 in addresses.values():
            return None
        words = BiasedFunction(*base)
        words[FUNCTION], words[HANDLE] = addresses["cublasLtMatmul"], addresses[_LT_HANDLE]
        words[WORKSPACE] = addresses[_WORKSPACE]
        cuda_blas.expect(words)
        if dtype == "float32":
            words[SUMS] = addresses[_TF32]
            words[SUMS_ARE] = int(torch._C._get_cublas_allow_tf32())
        functions: dict[str, Any] = {
            name: ctypes.PYFUNCTYPE(ctypes.c_int32)(addresses[name]) for name in _LT
        }
        for name in (_LT_HANDLE, _WORKSPACE_SIZE):
            functions[name] = ctypes.PYFUNCTYPE(ctypes.c_size_t)(addresses[name])
        site = BiasedSite(words, numbers, functions)
        words.load = site.load  # the words own the site: native code knows nothing else of it
        weakref.finalize(words, _destroy, site.handles).atexit = False
        try:
            site.layouts = site._described()
        except _Refused:
            return None
        return site

    def _call(self, function: str, *arguments: Any) -> None:
        if self.functions[function](*arguments):
            raise _Refused(function)

    def _created(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call(function, ctypes.byref(handle), *arguments)
        destroy = self.functions[function.replace("Create", "Destroy")]
        self.handles.append((destroy, handle.value or 0))
        return handle

    def _set(self, function: str, what: ctypes.c_void_p, name: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self._call(function, what, name, ctypes.byref(value), size)

    def _described(self) -> tuple[int, ...]:
        """Descriptions of the two operands and the result."""
        first, second, m, n, k, lda, ldb, ldc = self.numbers
        element, size = ctypes.c_int32(self.words[cuda_blas.ELEMENT]), ctypes.c_uint64
        shapes = (
            (k, m, lda) if first else (m, k, lda), (n, k, ldb) if second else (k, n, ldb),
            (m, n, ldc),
        )  # fmt: skip
        layouts = [
            self._created("cublasLtMatrixLayoutCreate", element, size(rows), size(columns),
                          ctypes.c_int64(leading))
            for rows, columns, leading in shapes
        ]  # fmt: skip
        return tuple(layout.value or 0 for layout in layouts)

    def load(self, alignments: int, bias: int) -> None:
        """Put the record for operands of these alignments and this bias in place. Where there is
        none, one without an algorithm: the operator, which is called then, tells its error."""
        record = self.records.get((alignments, bias))
        if record is None:
            if len(self.records) == MOST_RECORDS:
                self.words[FUNCTION] = 0
                return
            record = BiasedRecord(alignments, bias)
            with contextlib.suppress(_Refused):
                self._fill(record)
            self.records[alignments, bias] = record
        self.words[RECORD] = ctypes.addressof(record)

    def _fill(self, record: BiasedRecord) -> None:
        """What torch tells and asks for such a product."""
        tf32 = self.words[cuda_blas.ELEMENT] == 0 and self.words[SUMS_ARE]
        compute = _COMPUTE_TF32 if tf32 else _COMPUTE_32F
        product = self._created("cublasLtMatmulDescCreate", compute, 0)
        bias = ctypes.c_void_p(record[BIAS])
        described = ((_TURN_FIRST, ctypes.c_int32(self.numbers[0])),
                     (_TURN_SECOND, ctypes.c_int32(self.numbers[1])),
                     (_EPILOGUE, ctypes.c_int32(_ADD_BIAS)), (_BIAS_POINTER, bias))  # fmt: skip
        for name, value in described:
            self._set("cublasLtMatmulDescSetAttribute", product, name, value)
        preference = self._created("cublasLtMatmulPreferenceCreate")
        set_one = "cublasLtMatmulPreferenceSetAttribute"
        most = ctypes.c_size_t(self.functions[_WORKSPACE_SIZE]())
        self._set(set_one, preference, _MOST_WORKSPACE, most)
        for i in range(4):
            zeros = record[ALIGNMENTS] >> ALIGNMENT_BITS * i & (1 << ALIGNMENT_BITS) - 1
            self._set(set_one, preference, _ALIGNMENT_OF_FIRST + i, ctypes.c_uint32(1 << zeros))
        result, count = (ctypes.c_uint64 * _RESULT_WORDS)(), ctypes.c_int32()
        first, second, out = map(ctypes.c_void_p, self.layouts)
        self._call(
            "cublasLtMatmulAlgoGetHeuristic", ctypes.c_void_p(self.functions[_LT_HANDLE]()),
            product, first, second, out, out, preference, 1, ctypes.byref(result),
            ctypes.byref(count),
        )  # fmt: skip
        if count.value == 0:
            return
        record.algorithm = result  # the record owns it
        record[PRODUCT], record[NEEDS] = product.value or 0, result[_RESULT_NEEDS]
        record[FIRST], record[SECOND], record[RESULT] = self.layouts
        record[ALGORITHM] = ctypes.addressof(result)


def _destroy(handles: list[tuple[Any, int]]) -> None:
    for destroy, handle in reversed(handles):
        destroy(ctypes.c_void_p(handle))


class _Refused(Exception):
    """A function of cuBLASLt that gave an error."""


def finder(
    symbol_address: Callable[[str], int | None], call: Callable[..., int]
) -> Callable[..., BiasedFunction]:
    """What gives the words of a new site for a dtype and numbers, tested once for each dtype by
    `call`, which calls `irc.codegen.host.support_products`' function."""
    tested: dict[str, bool] = {}

    def biased(dtype: str, numbers: Sequence[int], *place: int) -> BiasedFunction:
        none = BiasedFunction()
        if os.environ.get("DISABLE_ADDMM_CUDA_LT") == "1" or not cuda_blas.is_usual(dtype):
            return none
        if torch.cuda.is_current_stream_capturing():
            return none  # no time for a test
        try:
            if dtype not in tested:
                site = BiasedSite.create(symbol_address, dtype, TEST_NUMBERS)
                tested[dtype] = site is not None and self_test(site, dtype, call) is None
            site = BiasedSite.create(symbol_address, dtype, numbers) if tested[dtype] else None
        except RuntimeError:  # the operator says why, when it is called
            return none
        return none if site is None else site.words

    return biased


def self_test(site: BiasedSite, dtype: str, call: Callable[..., int]) -> str | None:
    """Why a site of `TEST_NUMBERS` isn't what the operator computes; None when it is."""
    with cuda_blas.plainly():
        turned, _, columns, rows, inner, *_ = TEST_NUMBERS
        left, right, bias = (
            cuda_blas.whole_numbers(sizes, getattr(torch, dtype))
            for sizes in ((rows, inner), (columns, inner), (columns,))
        )
        # The operator first: a library that can't be set up raises its error here.
        expected = torch.addmm(bias, left, right.t())
        out = torch.zeros(expected.shape, dtype=expected.dtype).cuda()
        stream = torch.cuda.current_stream().cuda_stream
        pointers = [t.data_ptr() for t in (right, left, bias, out)]
        if call(site, *pointers, stream):
            return "a product with a bias isn't computed"
        same = cuda_blas.are_equal(out, expected)
        return None if same else "a product with a bias has other values than the operator's"


#: The product of the self-test: its right operand is turned.
TEST_NUMBERS = (1, 0, 24, 8, 16, 16, 16, 24)


__all__ = ["BiasedFunction", "BiasedRecord", "BiasedSite", "finder", "self_test"]
