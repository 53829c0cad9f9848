"""cuBLAS's functions for `gpu_stub`: they compute by torch on the CPU's memory, and record."""

from __future__ import annotations

import ctypes
from typing import Any

import attrs
import torch

from irc.boundary import cuda_blas, cuda_blas_lt, torch_abi

_HANDLE = 0x7B
_TYPES = {0: torch.float32, 2: torch.float16, 14: torch.bfloat16}
_I, _P, _Q = ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64
_BEGIN = [_P, _I, _I, _I, _I, _I, _P]
#: Parameters by form and whether it is that of f32, behind what all begin with.
_FORMS = {
    ("gemm", False): [_P, _I, _I, _P, _I, _I, _P, _P, _I, _I, _I, _I],
    ("gemm", True): [_P, _I, _P, _I, _P, _P, _I],
    ("batched", False): [_P, _I, _I, _Q, _P, _I, _I, _Q, _P, _P, _I, _I, _Q, _I, _I, _I],
    ("batched", True): [_P, _I, _Q, _P, _I, _Q, _P, _P, _I, _Q, _I],
}
#: torch's own functions on a CPU too.
_TORCHS = {
    cuda_blas.CONTEXT: "_ZN2at13globalContextEv",
    cuda_blas.DETERMINISTIC: "_ZNK2at7Context23deterministicAlgorithmsEv",
    cuda_blas.LIBRARY: "_ZN2at7Context20blasPreferredBackendEv",
    cuda_blas.SPARED: "_ZNK2at7Context24_SMCarveout_EXPERIMENTALEv",
}


@attrs.define(eq=False, slots=False)
class StubBlas:
    """`code`: what cuBLAS answers; `tuned`: whether products are; `missing`: torch lacks the
    functions. `products`: what was computed; `modes`: those of the handle."""

    code: int = 0
    tuned: bool = False
    missing: bool = False
    products: list[tuple[Any, ...]] = attrs.field(factory=list)
    modes: list[int] = attrs.field(factory=list)
    #: How often the handle was asked for.
    asked: int = 0
    #: Instead of what gives the handle.
    handle_of: int = 0
    #: Of products with a bias: alignments that were asked for, whether there is no algorithm, what
    #: it needs, and whether the question is interrupted.
    alignments: list[int] = attrs.field(factory=list)
    no_algorithm: bool = False
    needs: int = 0
    interrupted: bool = False

    def __attrs_post_init__(self) -> None:
        self._kept: list[Any] = []
        self._records: list[cuda_blas_lt.BiasedRecord] = []

    def _callback(self, result: Any, kinds: list[Any], function: Any) -> int:
        self._kept.append(ctypes.CFUNCTYPE(result, *kinds)(function))
        address = ctypes.cast(self._kept[-1], ctypes.c_void_p).value
        assert address is not None
        return address

    def words(self, form: str, dtype: str) -> cuda_blas.ProductFunction:
        """As `cuda_blas.finder` gives them, not tested."""
        words = cuda_blas.ProductFunction()
        if self.missing:
            return words
        single = dtype == "float32"
        kinds = [*_BEGIN, *_FORMS[form, single]]
        words[cuda_blas.FUNCTION] = self._callback(
            _I, kinds, lambda *given: self._compute(form, single, given)
        )
        for word, name in _TORCHS.items():
            words[word] = torch_abi.symbol_address(name)
        for name in (f"_ZNK2at7Context24allow{k}16ReductionCuBLASEv" for k in ("BF", "FP")):
            if not single:
                words[cuda_blas.SUMS] = torch_abi.symbol_address(name)
        words[cuda_blas.HANDLE] = self.handle_of or self._callback(_P, [], self._give_handle)
        words[cuda_blas.SET_MODE] = self._callback(_I, [_P, _I], self._set_mode)
        words[cuda_blas.TUNING] = self._callback(_P, [], lambda: 0x7C)
        words[cuda_blas.TUNED] = self._callback(ctypes.c_bool, [_P], lambda of: self.tuned)
        words[cuda_blas.ELEMENT] = cuda_blas._ELEMENTS[dtype]
        cuda_blas.expect(words)
        return words

    def biased(
        self, dtype: str, numbers: tuple[int, ...], *place: int
    ) -> cuda_blas_lt.BiasedFunction:
        """As `cuda_blas_lt.finder` gives them: a site that finds its algorithms when asked."""
        words = cuda_blas_lt.BiasedFunction(*self.words("gemm", dtype))
        if self.missing:
            return words

        words[cuda_blas.FUNCTION] = self._callback(
            _I, [_P] * 14 + [_Q, _P], lambda *given: self._add(dtype, numbers, given)
        )
        words[cuda_blas_lt.WORKSPACE] = self._callback(_P, [], lambda: 0xF0)

        def load(alignments: int, bias: int) -> None:
            self.alignments.append(alignments)
            if self.interrupted:
                raise KeyboardInterrupt
            algorithm = 0 if self.no_algorithm else 0xA1
            record = cuda_blas_lt.BiasedRecord(
                alignments, bias, len(self._records), 0xD1, 0xD2, 0xD3, algorithm, self.needs
            )
            self._records.append(record)
            words[cuda_blas_lt.RECORD] = ctypes.addressof(record)

        words.load = load
        return words

    def _add(self, dtype: str, numbers: tuple[int, ...], given: tuple[Any, ...]) -> int:
        handle, product, one, a, first, b, second, zero, c, before, d, after, *rest = given
        algorithm, workspace, size, stream = rest
        assert (handle, first, second, before, after) == (_HANDLE, 0xD1, 0xD2, 0xD3, 0xD3)
        assert c == d and algorithm == 0xA1 and size == self.needs
        assert workspace == (0xF0 if size else None)
        assert [ctypes.c_float.from_address(p).value for p in (one, zero)] == [1.0, 0.0]
        if self.code:
            return self.code
        turn_first, turn_second, m, n, k, lda, ldb, ldc = numbers
        element = getattr(torch, dtype)
        self.products.append(("biased", element, turn_first, turn_second, m, n, k, stream))
        left = _matrix(a, lda, element, turn_first, m, k)
        right = _matrix(b, ldb, element, turn_second, k, n)
        place = self._records[product or 0][cuda_blas_lt.BIAS]
        bias = _matrix(place, m, element, 0, m, 1)
        _matrix(d, ldc, element, 0, m, n).copy_(left @ right + bias)
        return 0

    def _give_handle(self) -> int:
        self.asked += 1
        return _HANDLE

    def _set_mode(self, handle: int, mode: int) -> int:
        assert handle == _HANDLE
        self.modes.append(mode)
        return 0

    def _compute(self, form: str, single: bool, given: tuple[Any, ...]) -> int:
        """What BLAS does, column by column."""
        handle, first, second, m, n, k, one, *rest = given
        assert handle == _HANDLE and ctypes.c_float.from_address(one).value == 1.0
        if self.code:
            return self.code
        operands, element, batches = [], torch.float32, 1
        for last in (False, False, True):
            if last:
                assert ctypes.c_float.from_address(rest.pop(0)).value == 0.0
            pointer = rest.pop(0)
            if not single:
                element = _TYPES[rest.pop(0)]
            operands.append((pointer, rest.pop(0), rest.pop(0) if form == "batched" else 0))
        if form == "batched":
            batches = rest.pop(0)
        assert rest == ([] if single else [68, 99])
        self.products.append((form, element, first, second, m, n, k, *operands, batches))
        for i in range(batches):
            a, b, c = ((p + i * step * element.itemsize, ld) for p, ld, step in operands)
            left, right = _matrix(*a, element, first, m, k), _matrix(*b, element, second, k, n)
            _matrix(*c, element, 0, m, n).copy_(left @ right)
        return 0


def _matrix(
    address: int, leading: int, element: torch.dtype, turned: int, rows: int, columns: int
) -> torch.Tensor:
    if turned:
        return _matrix(address, leading, element, 0, columns, rows).t()
    assert leading >= rows
    size = ((columns - 1) * leading + rows) * element.itemsize
    memory = (ctypes.c_byte * size).from_address(address)
    return torch.frombuffer(memory, dtype=element).as_strided((rows, columns), (1, leading))
