"""What cuBLASLt is told and asked for a product with a bias: by functions that record."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import pytest
import torch

from irc.boundary import cuda_blas, cuda_blas_lt, torch_abi

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)
_I, _P, _Q, _U = ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64


class Library:
    """cuBLASLt's functions, by name; `told` has the calls, `algorithms` how many it finds."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.algorithms, self.needs, self.code = 1, 4096, 0
        self._handles = 0x100
        create, set_one = self._create, self._set
        self.kept = {
            "cublasLtMatmul": ctypes.CFUNCTYPE(_I)(lambda: 0),
            "cublasLtMatmulDescCreate": create("product", _I, _I),
            "cublasLtMatrixLayoutCreate": create("layout", _I, _U, _U, _Q),
            "cublasLtMatmulPreferenceCreate": create("preference"),
            "cublasLtMatmulDescSetAttribute": set_one("product"),
            "cublasLtMatmulPreferenceSetAttribute": set_one("preference"),
            **{f"cublasLt{what}Destroy": ctypes.CFUNCTYPE(_I, _P)(self._destroy)
               for what in ("MatmulDesc", "MatrixLayout", "MatmulPreference")},
            "cublasLtMatmulAlgoGetHeuristic": ctypes.CFUNCTYPE(_I, *[_P] * 7, _I, _P, _P)(
                self._find
            ),
            cuda_blas_lt._LT_HANDLE: ctypes.CFUNCTYPE(_P)(lambda: 0x7FFF12345678),
            cuda_blas_lt._WORKSPACE: ctypes.CFUNCTYPE(_P)(lambda: 0xF0),
            cuda_blas_lt._WORKSPACE_SIZE: ctypes.CFUNCTYPE(ctypes.c_size_t)(lambda: 33 << 20),
        }

    def _create(self, what: str, *kinds: Any) -> Any:
        def create(out: int, *numbers: int) -> int:
            self._handles += 0x7FFF00000000
            ctypes.c_uint64.from_address(out).value = self._handles
            self.told.append((what, self._handles, *numbers))
            return self.code

        return ctypes.CFUNCTYPE(_I, _P, *kinds)(create)

    def _destroy(self, handle: int) -> int:
        self.told.append(("destroy", handle))
        return 0

    def _set(self, what: str) -> Any:
        def set_one(handle: int, name: int, value: int, size: int) -> int:
            given = int.from_bytes(ctypes.string_at(value, size), "little")
            self.told.append((f"{what} attribute", handle, name, given, size))
            return 0

        return ctypes.CFUNCTYPE(_I, _P, _I, _P, ctypes.c_size_t)(set_one)

    def _find(self, *given: Any) -> int:
        *handles, wanted, result, count = given
        assert wanted == 1
        self.told.append(("find", *handles))
        ctypes.c_int32.from_address(count).value = self.algorithms
        ctypes.c_uint64.from_address(result + 64).value = self.needs
        return 0

    def address(self, name: str) -> int | None:
        if name in self.kept:
            return ctypes.cast(self.kept[name], ctypes.c_void_p).value
        if name.startswith("cublas") or "tunable" in name or "BlasHandle" in name:
            return 0xC0DE  # not called
        return torch_abi.symbol_address(name)


def record_of(site: Any) -> Any:
    return cuda_blas_lt.BiasedRecord.from_address(site.words[cuda_blas_lt.RECORD])


@pytest.mark.parametrize("dtype", cuda_blas.DTYPES)
def test_a_site_tells_what_torch_does(dtype):
    library = Library()
    site = cuda_blas_lt.BiasedSite.create(library.address, dtype, (1, 0, 24, 8, 16, 17, 18, 25))
    assert site is not None
    first, second, out = site.layouts
    code = {"bfloat16": 14, "float16": 2, "float32": 0}[dtype]
    assert library.told == [
        ("layout", first, code, 16, 24, 17), ("layout", second, code, 16, 8, 18),
        ("layout", out, code, 24, 8, 25),
    ]  # fmt: skip
    bias = 0x7F1234567890
    for turn, alignments in enumerate((0x14208, 0x18888, 0x14208)):
        library.told.clear()
        assert site.words(alignments, bias + turn % 2) == ()
        record = record_of(site)
        assert list(record[:2]) == [alignments, bias + turn % 2]
        assert record[cuda_blas_lt.ALGORITHM] and record[cuda_blas_lt.NEEDS] == 4096
        if turn == 0:
            told = list(library.told)
    product, preference = record[cuda_blas_lt.PRODUCT], told[5][1]
    described = [(3, 1, 4), (4, 0, 4), (7, 4, 4), (8, bias, 8)]
    preferred = [(1, 33 << 20, 8), (5, 256, 4), (6, 1, 4), (7, 4, 4), (8, 16, 4)]
    handle = library.kept[cuda_blas_lt._LT_HANDLE]()
    assert told == [
        ("product", product, 68, 0), *(("product attribute", product, *a) for a in described),
        ("preference", preference), *(("preference attribute", preference, *a) for a in preferred),
        ("find", handle, product, first, second, out, out, preference),
    ]  # fmt: skip
    assert not library.told  # a third time nothing is asked


def test_tf32_is_as_torch_would_compute():
    library = Library()
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = True
    try:
        site = cuda_blas_lt.BiasedSite.create(library.address, "float32", (0, 0, 4, 4, 4, 4, 4, 4))
    finally:
        matmul.allow_tf32 = before
    assert site is not None and site.words[cuda_blas.SUMS_ARE] == 1
    site.load(1 << 16, 0x100)
    assert library.told[3][0] == "product" and library.told[3][2] == 77


def test_a_site_with_biases_anywhere_is_given_up():
    library = Library()
    site = cuda_blas_lt.BiasedSite.create(library.address, "float16", (0, 0, 4, 4, 4, 4, 4, 4))
    assert site is not None
    for place in range(cuda_blas_lt.MOST_RECORDS + 1):
        assert site.words[cuda_blas.FUNCTION]
        site.load(1 << 16, place)
    assert not site.words[cuda_blas.FUNCTION] and len(site.records) == cuda_blas_lt.MOST_RECORDS


def test_all_goes_with_the_words():
    library = Library()
    site = cuda_blas_lt.BiasedSite.create(library.address, "bfloat16", (0, 0, 4, 4, 4, 4, 4, 4))
    assert site is not None
    for place in range(3):
        site.load(1 << 16, place)
    whats = "product", "layout", "preference"
    made = sorted(each[1] for each in library.told if each[0] in whats)
    words = site.words
    del site
    gc.collect()
    assert not [each for each in library.told if each[0] == "destroy"] and words.load
    del words
    gc.collect()
    assert sorted(each[1] for each in library.told if each[0] == "destroy") == made
    assert len(made) == 3 + 2 * 3


def test_what_can_not_be_had_is_the_operators(monkeypatch):
    library, numbers = Library(), (0, 0, 4, 4, 4, 4, 4, 4)
    library.algorithms = 0
    site = cuda_blas_lt.BiasedSite.create(library.address, "bfloat16", numbers)
    assert site is not None
    site.load(1 << 16, 0x100)
    assert list(record_of(site)) == [1 << 16, 0x100, 0, 0, 0, 0, 0, 0]
    library.code = 7
    site.load(1 << 16 | 1, 0x100)
    assert list(record_of(site)) == [1 << 16 | 1, 0x100, 0, 0, 0, 0, 0, 0]
    assert cuda_blas_lt.BiasedSite.create(library.address, "bfloat16", numbers) is None
    del library.kept["cublasLtMatmul"]

    def missing(name: str) -> int | None:
        return None if name == "cublasLtMatmul" else library.address(name)

    assert cuda_blas_lt.BiasedSite.create(missing, "bfloat16", numbers) is None
    biased = cuda_blas_lt.finder(missing, lambda *given: 1)
    monkeypatch.setenv("DISABLE_ADDMM_CUDA_LT", "1")
    assert not any(biased("bfloat16", numbers, 0))
