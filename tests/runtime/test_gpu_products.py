"""Products of matrices as calls of what is below torch's operators: over a stub, and on GPUs."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

from irc.boundary import cuda_blas, cuda_blas_lt, torch_abi
from irc.codegen.host.gpu_products import gpu_product
from irc.codegen.host.support_products import KEPT_WORDS
from irc.codegen.llvm.jit import compile_module, load_object
from irc.program import host_program as P
from irc.runtime import native
from irc.target.cpu import TargetFeatures
from tests.runtime.gpu_stub import Stub
from tests.runtime.test_gpu_host import lowered

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)


@pytest.fixture
def stub() -> Stub:
    return Stub()


def plain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.relu(x @ w) @ w.t()) + 1


def batched(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.bmm(torch.relu(x), y).softmax(-1) @ y.transpose(1, 2)


def biased(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.addmm(b, x, w)) * 2


def turned(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x * 2, w, b) + 1


CASES: dict[str, tuple[Any, list[torch.Tensor]]] = {
    "gemm": (plain, [torch.randn(5, 7), torch.randn(7, 6)]),
    "row": (plain, [torch.randn(1, 7), torch.randn(7, 6)]),
    "batched": (batched, [torch.randn(3, 5, 7), torch.randn(3, 7, 6)]),
    "biased": (biased, [torch.randn(5, 7), torch.randn(7, 6), torch.randn(6)]),
    "turned": (turned, [torch.randn(5, 7), torch.randn(6, 7), torch.randn(6)]),
}
FORMS = {"row": ["gemm"] * 2, "turned": ["biased"], "biased": ["biased"], "gemm": ["gemm"] * 2,
         "batched": ["batched"] * 2}  # fmt: skip


def close(mine: torch.Tensor, eager: torch.Tensor) -> None:
    tolerance = 1e-5 if eager.dtype == torch.float32 else 3e-2
    torch.testing.assert_close(mine, eager, rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", [*CASES])
def test_products_are_functions_of_cublas(stub, name, dtype, monkeypatch):
    function, args = CASES[name]
    args = [a.to(dtype) for a in args]
    call = stub.build(lowered(function, args), monkeypatch)
    for _ in range(2):
        stub.blas.products.clear()
        (y,) = stub.call(call, *args)
        assert [each[:2] for each in stub.blas.products] == [(n, dtype) for n in FORMS[name]]
        close(y, function(*args))
        del y
    assert not any(stub.blas.modes)


def usual(stub: Stub, call: Any, args: Any) -> bool:
    """Whether a call asks cuBLAS; its values are right in any case."""
    stub.blas.products.clear()
    (y,) = stub.call(call, *args)
    close(y, plain(*args))
    return len(stub.blas.products) == 2


def test_other_settings_are_the_operators(stub, monkeypatch):
    function, args = CASES["gemm"]
    args = [a.bfloat16() for a in args]
    call = stub.build(lowered(function, args), monkeypatch)
    assert usual(stub, call, args)
    stub.blas.tuned = True
    assert not usual(stub, call, args)
    stub.blas.tuned = False
    torch.use_deterministic_algorithms(True)
    try:
        assert not usual(stub, call, args)
    finally:
        torch.use_deterministic_algorithms(False)
    torch._C._set_sm_carveout_experimental(4)
    try:
        assert not usual(stub, call, args)
    finally:
        torch._C._set_sm_carveout_experimental(None)
    assert usual(stub, call, args)
    matmul = torch.backends.cuda.matmul
    # The stub reads f16's last.
    before = matmul.allow_fp16_reduced_precision_reduction
    matmul.allow_fp16_reduced_precision_reduction = False
    try:
        assert not usual(stub, call, args)
    finally:
        matmul.allow_fp16_reduced_precision_reduction = before
    stub.blas.code = 13
    assert not usual(stub, call, args)
    stub.blas.code = 0
    assert usual(stub, call, args)


@pytest.mark.parametrize("name", [*CASES])
def test_without_the_functions_the_operator_is_called(stub, name, monkeypatch):
    function, args = CASES[name]
    stub.blas.missing = True
    call = stub.build(lowered(function, args), monkeypatch)
    for _ in range(2):
        close(stub.call(call, *args)[0], function(*args))


def thrower() -> int:
    """A function that throws one of torch's exceptions, whatever it is called with."""
    text = """
    @words = private constant [5 x i8] c"none\\00"
    declare void @fail(ptr, ptr, i32, ptr)
    define void @throws() uwtable {
      call void @fail(ptr @words, ptr @words, i32 1, ptr @words)
      unreachable
    }"""
    name = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"
    address = torch_abi.symbol_address(name)
    assert address is not None
    loaded = load_object(
        compile_module(text, TargetFeatures.host()), exports=("throws",), symbols={"fail": address}
    )
    KEPT.append(loaded)
    return loaded.address("throws")


KEPT: list[Any] = []


@pytest.mark.parametrize("name", [*CASES])
def test_what_is_thrown_ends_in_the_operator(stub, name, monkeypatch):
    function, args = CASES[name]
    stub.blas.handle_of = thrower()
    call = stub.build(lowered(function, args), monkeypatch)
    for _ in range(3):
        close(stub.call(call, *args)[0], function(*args))
    assert not stub.blas.products


def test_an_algorithm_is_asked_for_by_alignments(stub, monkeypatch):
    function, (x, w, b) = CASES["biased"]
    call = stub.build(lowered(function, [x, w, b]), monkeypatch)
    memory = torch.zeros(256)
    start = -memory.data_ptr() // 4 % 64  # where it is a multiple of 256 bytes
    for offset in (0, 1, 0, 0, 2):
        w = memory[start + offset :][:42].view(7, 6).copy_(w.clone())
        stub.streams[0] = 0x50 + offset
        close(stub.call(call, x, w, b)[0], function(x, w, b))
        assert stub.blas.products[-1][-1] == 0x50 + offset
        assert stub.blas.alignments[-1] >> 16 == 1
        found = [stub.blas.alignments[-1] >> 4 * i & 15 for i in range(4)]
        addresses = [w.data_ptr(), x.data_ptr(), None, b.data_ptr()]
        for zeros, address in zip(found, addresses, strict=True):
            if address is not None:
                largest = next(n for n in range(8, -1, -1) if address % (1 << n) == 0)
                assert zeros == largest
    assert len(stub.blas.alignments) >= 4  # the result's place may change, too


def test_products_of_one_shape_have_each_its_own_bias(stub, monkeypatch):
    def function(x: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
        return torch.relu(torch.addmm(c, torch.relu(torch.addmm(b, x, w)), v)) + 1

    args = [torch.randn(5, 6), torch.randn(6, 6), torch.randn(6), torch.randn(6, 6), torch.ones(6)]
    call = stub.build(lowered(function, args), monkeypatch)
    memory = torch.randn(3, 64)
    for turn in range(5):
        close(stub.call(call, *args)[0], function(*args))
        if turn < 2:
            args[2] = memory[turn, :6]  # elsewhere, with the same alignment
    assert 3 <= len(stub.blas.alignments) <= 10


def test_a_record_is_for_its_bias_and_its_alignments(stub):
    """The native function itself."""
    numbers = (0, 0, 6, 5, 7, 6, 7, 6)
    words = stub.blas.biased("float32", numbers, 0, 0)
    pointers = [ctypes.c_void_p] * 4
    biased, alignments = (native.gpu_support(f"irc_gpu_{n}") for n in ("biased", "alignments"))
    call = ctypes.PYFUNCTYPE(ctypes.c_int32, *pointers[:1], *pointers, *pointers[:2])(biased)
    kept = (ctypes.c_uint64 * KEPT_WORDS)()
    key = ctypes.PYFUNCTYPE(ctypes.c_uint64, *pointers)(alignments)
    memory = torch.randn(4, 1024)
    first, second, bias, out = (row[-row.data_ptr() // 4 % 64 :] for row in memory)
    places = [t.data_ptr() for t in (first, second, bias, out)]
    assert key(*places) == 0x18888 and key(places[0] + 4, *places[1:]) == 0x18882
    for moved in ([0, 0, 256, 0], [0, 0, 0, 0], [64, 0, 0, 0], [0, 32, 0, 0], [0, 0, 0, 4]):
        given = [a + b for a, b in zip(places, moved, strict=True)]
        assert call(ctypes.addressof(words), *given, 0, ctypes.addressof(kept)) == 2
        assert words(key(*given), given[2]) == ()
        assert call(ctypes.addressof(words), *given, 0, ctypes.addressof(kept)) == 0
    assert len(stub.blas.products) == 5


def three(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Three products with launches between."""
    for _ in range(3):
        x = torch.relu(x @ w) + 1
    return x


def test_a_handle_is_asked_for_once_and_again_behind_an_operator(stub, monkeypatch):
    def parted(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.sort(three(x, w)).values @ w  # an operator that may use the handle, too

    x, w = torch.randn(8, 16).bfloat16() / 4, torch.randn(16, 16).bfloat16() / 4
    for function, asked in ((three, 1), (parted, 2)):
        stub.blas.asked = 0
        stub.blas.modes = []
        call = stub.build(lowered(function, [x, w]), monkeypatch)
        for turn in range(1, 3):
            close(stub.call(call, x, w)[0], function(x, w))
            assert stub.blas.asked == asked * turn, function
            assert len(stub.blas.modes) == 2 * asked * turn, "set and set back once"


def test_a_product_of_another_dtype_asks_again(stub, monkeypatch):
    def both(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = three(x, w).float()
        return (three(y, w.float()).bfloat16() @ w) @ w

    x, w = torch.randn(8, 16).bfloat16() / 4, torch.randn(16, 16).bfloat16() / 4
    call = stub.build(lowered(both, [x, w]), monkeypatch)
    close(stub.call(call, x, w)[0], both(x, w))
    assert stub.blas.asked == 3


def test_a_function_that_is_not_there_is_not_called_with_a_kept_handle(stub, monkeypatch):
    def both(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = three(x, w)
        return torch.bmm(y.view(2, 4, 16), w.view(2, 8, 16).transpose(1, 2)) + 1

    of_all = stub.blas.words
    monkeypatch.setattr(stub.blas, "words", lambda form, dtype: (
        cuda_blas.ProductFunction() if form == "batched" else of_all(form, dtype)))  # fmt: skip
    library = stub.gpu.library
    monkeypatch.setattr(stub.gpu, "library", lambda which, *rest: (
        stub.blas.words(*rest) if which == "product" else library(which, *rest)))  # fmt: skip
    x, w = torch.randn(8, 16).bfloat16() / 4, torch.randn(16, 16).bfloat16() / 4
    call = stub.build(lowered(both, [x, w]), monkeypatch)
    close(stub.call(call, x, w)[0], both(x, w))
    assert {each[0] for each in stub.blas.products} == {"gemm"}


@pytest.mark.parametrize("what", ["no_algorithm", "needs", "interrupted"])
def test_what_an_algorithm_may_be(stub, what, monkeypatch):
    function, args = CASES["biased"]
    call = stub.build(lowered(function, args), monkeypatch)
    setattr(stub.blas, what, 4096 if what == "needs" else True)
    if what == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            stub.call(call, *args)
        stub.blas.interrupted = False
    for _ in range(2):
        close(stub.call(call, *args)[0], function(*args))
    assert bool(stub.blas.products) is (what != "no_algorithm")


def test_tensors_of_an_operator_that_may_not_run_are_not_used_behind_it(stub, monkeypatch):
    """Operands of a product, then of an operator: each has its own handle."""

    def function(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(x) @ w
        return torch.sort(y, 1)[1], (torch.relu(y) @ w.t()).cumsum(0)

    args = [torch.randn(5, 7), torch.randn(7, 6)]
    module = lowered(function, args)
    for stub.blas.missing in (False, True):
        call = stub.build(module, monkeypatch)
        for mine, eager in zip(stub.call(call, *args), function(*args), strict=True):
            torch.testing.assert_close(mine, eager, rtol=1e-4, atol=1e-5)


def product_of(
    callee: str, *, dtypes: Any = "bfloat16", device: str = "cuda:0", **given: Any
) -> Any:
    """What `gpu_product` says of a call on operands given as (sizes, strides)."""
    layouts, arguments = {}, {}
    for number, (name, value) in enumerate(given.items()):
        if not isinstance(value, tuple):
            arguments[name] = value
            continue
        dtype = dtypes if isinstance(dtypes, str) else dtypes.get(name, "bfloat16")
        layouts[number] = P.Layout(dtype, *value, 2, device)
        arguments[name] = P.Register(number)
    step = P.CallOperator(f"aten.{callee}.out", tuple(arguments.items()), (), floating=True)
    return gpu_product(step, layouts)


ADDED: dict[str, Any] = {
    "self": ((6,), (1,)), "mat1": ((4, 8), (8, 1)), "mat2": ((8, 6), (6, 1)),
    "out": ((4, 6), (6, 1)),
}  # fmt: skip
DENSE: dict[str, Any] = {
    "self": ((4, 8), (8, 1)), "mat2": ((8, 6), (6, 1)), "out": ((4, 6), (6, 1)),
}  # fmt: skip
def test_which_products_are_known():
    found = product_of("mm", **DENSE)
    assert found.words == (0, 0, 6, 4, 8, 6, 8, 6) and (found.first, found.second) == (1, 0)
    columns = {**DENSE, "mat2": ((8, 6), (1, 9)), "self": ((4, 8), (1, 5)), "out": ((4, 6), (7, 1))}
    assert product_of("mm", **columns).words == (1, 1, 6, 4, 8, 9, 5, 7)
    row = {**DENSE, "self": ((1, 8), (8, 1)), "out": ((1, 6), (6, 1))}
    assert product_of("mm", **row).words == (0, 0, 6, 1, 8, 6, 8, 6)
    assert product_of("addmm", **ADDED).bias == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"out": ((4, 6), (1, 4))}, {"mat2": ((8, 6), (12, 2))}, {"mat2": ((8, 6), (0, 1))},
        {"self": ((1, 8), (9, 1)), "out": ((1, 6), (6, 1))},
        {"self": ((1, 8), (1, 1)), "out": ((1, 6), (6, 1))}, {"mat2": ((8, 6), (1, 7))},
        {"self": ((4, 1), (1, 1)), "mat2": ((1, 6), (6, 1))},
        {"mat2": ((8, 1), (1, 1)), "out": ((4, 1), (1, 1))}, {"self": ((0, 8), (8, 1)),
         "out": ((0, 6), (6, 1))}, {"device": "cpu"}, {"dtypes": "float64"},
        {"dtypes": {"out": "float32"}}, {"mat2": ((7, 6), (6, 1))}, {"out_dtype": 3},
    ],
)  # fmt: skip
def test_which_products_are_the_operators(changed):
    assert product_of("mm", **{**DENSE, **changed}) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"self": ((1, 6), (6, 1))}, {"self": ((6,), (2,))}, {"self": ((1,), (1,))}, {"beta": 2},
        {"alpha": 0.5}, {"out": ((4, 6), (7, 1))}, {"dtypes": {"self": "float32"}},
        {"mat1": ((1, 8), (8, 1)), "out": ((1, 6), (6, 1))},
    ],
)  # fmt: skip
def test_which_biased_products_are_the_operators(changed):
    assert product_of("addmm", **{**ADDED, **changed}) is None


def test_which_batched_products_are_known():
    given: dict[str, Any] = {
        "self": ((3, 4, 8), (32, 1, 4)), "mat2": ((3, 8, 6), (0, 6, 1)),
        "out": ((3, 4, 6), (24, 6, 1)),
    }  # fmt: skip
    assert product_of("bmm", **given).words == (0, 1, 6, 4, 8, 6, 4, 6, 0, 32, 24, 3)
    one = {name: ((1, *sizes[1:]), strides) for name, (sizes, strides) in given.items()}
    assert product_of("bmm", **one) is None


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", cuda_blas.DTYPES)
@pytest.mark.parametrize("form", cuda_blas.FORMS)
def test_torch_has_the_functions(form, dtype):
    from irc.boundary import cuda
    from irc.runtime import gpu_libraries

    gpu = cuda.installed()
    assert gpu is not None
    words = cuda_blas.addresses(gpu.symbol_address, form, dtype)
    assert words[cuda_blas.FUNCTION]
    cuda_blas.expect(words)
    assert cuda_blas.self_test(words, form, dtype, gpu_libraries._call_product) is None
    given = gpu_libraries.library_of(gpu)("product", form, dtype)
    assert list(given) == list(words)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_bits_are_the_operators(dtype, monkeypatch):
    from irc.codegen.host import gpu_lowering

    def every(x: Any, w: Any, v: Any, b: Any, s: Any, t: Any) -> Any:
        return (x @ w, x @ v.t(), torch.addmm(b, x, w), torch.nn.functional.linear(x, v, b),
                torch.bmm(s, t), torch.bmm(s, t.clone().transpose(1, 2).transpose(1, 2)),
                x[:1] @ w, torch.bmm(s.transpose(1, 2), s), x[:, :40] @ w[:40])  # fmt: skip

    def given(rows: int, inner: int, columns: int) -> list[torch.Tensor]:
        sizes = [(rows, inner), (inner, columns), (columns, inner), (columns,),
                 (12, rows, inner), (12, inner, columns)]  # fmt: skip
        return [torch.randn(size, device="cuda").to(dtype) for size in sizes]

    seen: list[int] = []
    emitted = gpu_lowering.emit_gpu_product
    monkeypatch.setattr(gpu_lowering, "emit_gpu_product",
                        lambda *given: seen.append(1) or emitted(*given))  # fmt: skip
    for sizes in ((128, 768, 768), (33, 64, 47), (256, 100, 512)):
        torch._dynamo.reset()
        torch.manual_seed(1)
        args = given(*sizes)
        call = torch.compile(every, backend="irc", dynamic=False, options={"fx_graph_cache": False})
        for mine, eager in zip(call(*args), every(*args), strict=True):
            assert torch.equal(mine, eager), sizes
    assert len(seen) >= 12


@pytest.mark.gpu
def test_errors_of_libraries_are_torchs(monkeypatch):
    """A product that is not deterministic: the function throws, the operator says why."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    x = torch.randn(64, 64, device="cuda", dtype=torch.bfloat16)
    call = torch.compile(lambda x: torch.relu(x @ x) + 1, backend="irc")
    first = call(x)
    torch.use_deterministic_algorithms(True)
    try:
        found, expected = [], []
        for run, texts in ((call, found), (lambda x: torch.relu(x @ x) + 1, expected)):
            try:
                run(x)
            except RuntimeError as error:
                texts.append(str(error)[:60])
        assert found == expected
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(call(x), first)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", cuda_blas.DTYPES)
def test_torch_has_the_functions_for_a_bias(dtype):
    from irc.boundary import cuda
    from irc.runtime import gpu_libraries

    gpu = cuda.installed()
    assert gpu is not None
    site = cuda_blas_lt.BiasedSite.create(gpu.symbol_address, dtype, cuda_blas_lt.TEST_NUMBERS)
    assert site is not None
    assert cuda_blas_lt.self_test(site, dtype, gpu_libraries._call_biased) is None
    assert gpu_libraries.library_of(gpu)("biased", dtype, site.numbers, 0)[cuda_blas.FUNCTION]


def test_a_library_without_the_functions_gives_none():
    words = cuda_blas.finder(lambda name: None, lambda *given: 1)("gemm", "bfloat16")
    assert not any(words) and ctypes.sizeof(words) == 8 * cuda_blas.WORDS
