"""The native host function of a GPU's programs, over a stub of CUDA."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from typing import Any

import attrs
import pytest
import torch

import irc
from irc.boundary import cuda, torch_abi
from irc.codegen.host.support_gpu import RING_KERNEL, RING_PLACES
from irc.ir.passes import PassManager
from irc.options.options import Options
from irc.pipeline import pipeline_text
from irc.program import host_program as P
from irc.program.gpu_kernels import key_of
from irc.program.read_host import read_host_program
from irc.runtime import late_checks, native
from irc.runtime.arguments import ArgumentError
from irc.runtime.late_ring import Ring
from tests.codegen.triton.test_models import FUNCTIONS
from tests.runtime.gpu_stub import CHECK_KERNEL, SHARED, Stub, check_keys, moved

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)


def lowered(
    function: Any, args: list[Any], dynamic: bool = False, options: Options | None = None
) -> Any:
    """The host program of a function, with kernels for sm_90."""
    module = irc.trace(function, args, dynamic=dynamic)
    PassManager.parse(pipeline_text("triton", options, functional=False)).run(module)
    return module


@pytest.fixture
def stub() -> Stub:
    return Stub()


def relu_and_one(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) + 1


@pytest.fixture(scope="module")
def one_kernel() -> Any:
    return lowered(relu_and_one, [torch.randn(8, 16)])


def test_a_launch_gets_pointers_grid_and_stream(stub, one_kernel, monkeypatch):
    call = stub.build(one_kernel, monkeypatch)
    assert call.is_native and not stub.launches
    x = torch.randn(8, 16)
    stub.streams[0] = 0x57
    (y,) = stub.call(call, x)
    assert torch.equal(y, relu_and_one(x)) and y.stride() == (16, 1) and not y.requires_grad
    (launch,) = stub.launches
    assert launch.words == (x.data_ptr(), y.data_ptr()) and launch.zeros == (0, 0)
    assert launch.block == (96, 1, 1) and launch.grid[1:] == (1, 1) and launch.grid[0] >= 1
    assert launch.shared == SHARED and launch.stream == 0x57
    stub.streams[0] = 0x58
    stub.call(call, x)
    assert stub.launches[0].stream == 0x58
    assert stub.compiled == [("k0", 0)] and stub.loaded == [("k0:0", 0)] and not stub.guards


def test_a_launch_may_begin_before_the_one_before_it_ends(stub, monkeypatch):
    def sums(x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = torch.softmax(x, 1) + x.sum(0)
        return torch.relu(x @ x.t())

    plain, x = Stub(), torch.randn(8, 300)
    call, module = stub.build(lowered(sums, [x]), monkeypatch), lowered(sums, [x])
    for op in module.ops:
        op.attributes.pop("early", None)
    other = plain.build(module, monkeypatch)
    assert call.is_native and torch.equal(*stub.call(call, x), *plain.call(other, x))
    assert len(stub.launches) == len(plain.launches) > 2
    for ours, theirs in zip(stub.launches, plain.launches, strict=True):
        assert not theirs.early
        assert attrs.evolve(ours, words=(), early=False) == attrs.evolve(theirs, words=())
    # The first has none before it, the last one a product of the library's.
    assert not stub.launches[0].early and stub.launches[1].early and not stub.launches[-1].early


def test_a_variant_is_had_once_for_each_alignment(stub, one_kernel, monkeypatch):
    call = stub.build(one_kernel, monkeypatch)
    base = torch.randn(9 * 16)
    shifted = base[1:129].view(8, 16)
    for x in (base[:128].view(8, 16), shifted, shifted, base[16:].view(8, 16)):
        (y,) = stub.call(call, x)
        assert torch.equal(y, relu_and_one(x))
        check_keys(stub.launches, 2)
    assert stub.loaded == [("k0:0", 0), ("k0:1", 0)]


@pytest.mark.parametrize("name", [*FUNCTIONS])
def test_programs_have_eagers_values(stub, name, monkeypatch):
    function, args = FUNCTIONS[name]
    call = stub.build(lowered(function, args), monkeypatch)
    assert call.is_native
    results = stub.call(call, *[a.clone() for a in args])
    expected = function(*args)
    for ours, theirs in zip(results, expected if isinstance(expected, tuple) else (expected,),
                            strict=True):  # fmt: skip
        assert ours.stride() == theirs.stride() and ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def two_products(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = torch.relu(x @ w) * 1.5 + 1
        x = x.sum(1, keepdim=True) + x
    return x


def test_intermediates_are_in_one_block_and_products_in_torchs_shims(stub, monkeypatch):
    args = [torch.randn(8, 16), torch.randn(16, 16)]
    module = lowered(two_products, args)
    seen = []
    address = stub.gpu.symbol_address
    stub.gpu.symbol_address = lambda name: seen.append(name) or address(name)
    call = stub.build(module, monkeypatch)
    assert "aoti_torch_cuda_mm_out" in seen
    with torch.enable_grad():
        (y,) = stub.call(call, args[0], args[1].requires_grad_())
        assert torch.is_grad_enabled() and not y.requires_grad
    torch.testing.assert_close(y, two_products(*args).detach())
    words = {w for each in stub.launches for w in each.words} - {y.data_ptr()}
    program = moved(read_host_program(module))
    placed = [s for s in program.steps if isinstance(s, P.Alloc) and s.offset is not None]
    size = max(s.offset + 4096 for s in placed)
    assert placed and max(words) - min(words) < size


def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x * w, -1) + x.sum(0)


def test_sizes_are_given_and_chosen_by(stub, monkeypatch):
    module = lowered(scaled, [torch.randn(6, 40), torch.randn(40)], dynamic=True)
    call = stub.build(module, monkeypatch)
    kernels = {op.sym_name: op for op in module.ops if op.name == "kernel.func"}
    for rows, columns in ((5, 48), (7, 33), (16, 64), (5, 48)):
        x, w = torch.randn(rows, columns), torch.randn(columns)
        (y,) = stub.call(call, x, w)
        torch.testing.assert_close(y, scaled(x, w))
        for each in stub.launches:
            symbols = len(kernels[each.kernel].symbols or ())
            check_keys([each], len(each.words) - symbols)
            assert not symbols or {rows, columns} & set(each.words[-symbols:])
    assert len(stub.loaded) == len(set(stub.loaded)) >= 3


def test_more_kinds_than_a_descriptor_has_room_for(stub, monkeypatch):
    module = lowered(lambda *t: sum(t), [torch.randn(4) for _ in range(5)])
    call = stub.build(module, monkeypatch)
    base = torch.randn(64)
    for _ in range(2):
        for kind in range(32):
            given = [base[8 * i + (kind >> i & 1) :][:4] for i in range(5)]
            (y,) = stub.call(call, *given)
            torch.testing.assert_close(y, sum(given))
            check_keys(stub.launches, 6)
    assert len(stub.loaded) == 32


def test_variants_are_replaced_while_other_threads_launch(stub, monkeypatch):
    """Behind a product a program runs without the interpreter lock."""

    def function(w: torch.Tensor, *t: torch.Tensor) -> torch.Tensor:
        return sum(t, w @ w)

    w = torch.eye(4)
    module = lowered(function, [w, *(torch.randn(4) for _ in range(5))])
    call, stub._symbols = stub.build(module, monkeypatch), {}
    base, wrong = torch.randn(64), []

    def work(start: int) -> None:
        for kind in range(start, start + 40):
            given = [base[8 * i + (kind >> i & 1) :][:4] for i in range(5)]
            if not torch.allclose(call(w, *given)[0], sum(given, w)):
                wrong.append(kind)

    threads = [threading.Thread(target=work, args=(8 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(set(stub.loaded)) == 32


def test_the_python_executor_launches_the_same_code(stub, one_kernel, monkeypatch):
    from irc.runtime.gpu_kernels import NativeLauncher

    call = stub.build(one_kernel, monkeypatch)
    variants = next(o for k, o in call._objects.items() if k[0] == "gpu-kernel").owner
    launch = NativeLauncher(variants.owner, "k0")
    base, y = torch.randn(129), torch.empty(8, 16)
    stub.call(call, y)
    grid = stub.launches.pop().grid[0]
    stub.context = 0
    for x in (base[:128], base[1:], base[:128]):
        launch([x.view(8, 16), y], (), grid, 0, 0x77)
        assert torch.equal(y, relu_and_one(x.view(8, 16)))
    check_keys(stub.launches, 2)
    assert {each.stream for each in stub.launches} == {0x77}
    assert stub.context == stub.context_of(0) and len(stub.loaded) == 2
    stub.code = 700
    with pytest.raises(RuntimeError, match="launching @k0: error 700"):
        launch([y, y], (), grid, 0, 0)


def test_keys_of_many_arguments_share_their_last_bits():
    pointers = [16] * 40
    assert key_of(pointers, [3] * 20) == sum(1 << 32 + 2 * j for j in range(16))
    pointers[35] = 20
    assert key_of(pointers, []) == 1 << 31
    assert key_of([], [1 << 40, 16]) == 1 << 33


def test_native_keys_are_as_in_python(stub, monkeypatch):
    """40 pointers and 18 sizes, through the native function itself."""
    import ctypes

    from irc.codegen.host import support_gpu
    from irc.runtime.gpu_kernels import Descriptor

    launch = ctypes.PYFUNCTYPE(
        ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * 3
    )(native._gpu_support_object().address("irc_gpu_launch"))
    asked = []
    descriptor = Descriptor()
    loader = asked.append
    descriptor[support_gpu.POINTERS], descriptor[support_gpu.SIZES] = 40, 18
    descriptor[support_gpu.LOADER] = id(loader)
    state = ctypes.c_void_p()
    held = ctypes.addressof(state)
    generator = torch.Generator().manual_seed(5)
    for turn in range(50):
        bits = torch.randint(0, 40, (58,), generator=generator).tolist()
        words = [16 * n + 16 if n % 7 or turn % 2 else n for n in bits[:40]]
        words += [(n - 20) << (n % 36) for n in bits[40:]]
        values = (ctypes.c_int64 * 60)(*words, 0, 0)
        given = [ctypes.addressof(stub.gpu.table), ctypes.addressof(descriptor), 0, 1]
        assert launch(*given, ctypes.addressof(values), 0, held) == support_gpu.NOT_LOADED
        assert asked[-1] & (2**64 - 1) == key_of(words[:40], words[40:])
    assert launch(*given[:3], 0, ctypes.addressof(values), 0, held) == 0 and len(asked) == 50
    assert launch(*given[:3], 1 << 31, ctypes.addressof(values), 0, held) == 1


@pytest.mark.parametrize("what", ["compile", "load"])
def test_a_kernel_that_can_not_be_had_is_an_error_each_time(stub, one_kernel, what, monkeypatch):
    call = stub.build(one_kernel, monkeypatch)
    shifted = torch.randn(129)[1:].view(8, 16)
    stub.refuses = what
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no code for k0" if what == "compile" else "no mem"):
            stub.call(call, shifted)
    stub.refuses = ""
    assert torch.equal(stub.call(call, shifted)[0], relu_and_one(shifted))


def test_a_launch_that_fails_is_an_error(stub, one_kernel, monkeypatch):
    call = stub.build(one_kernel, monkeypatch)
    stub.code = 700
    with pytest.raises(RuntimeError, match="launching @k0: error 700"):
        stub.call(call, torch.randn(8, 16))
    stub.code = 0
    stub.call(call, torch.randn(8, 16))


def test_kernels_that_want_more_of_a_launch_are_left_to_python(stub, one_kernel, monkeypatch):
    stub.refuses = "clusters"
    assert not stub.build(one_kernel, monkeypatch).is_native


def test_a_thread_without_a_context_gets_the_devices(stub, one_kernel, monkeypatch):
    call = stub.build(one_kernel, monkeypatch)
    x = torch.randn(8, 16)
    stub.context = 0
    stub.call(call, x)
    assert stub.launches[0].context == stub.context_of(0) and stub.context == 0
    assert [what for what, _ in stub.guards] == ["create", "delete"]
    stub.guards.clear()
    stub.context = stub.context_of(1)
    stub.call(call, x)
    assert stub.launches[0].context == stub.context_of(0)
    assert stub.context == stub.context_of(1)
    stub.code = 700
    with pytest.raises(RuntimeError):
        stub.call(call, x)
    assert stub.context == stub.context_of(1) and len(stub.guards) == 4


def test_a_gpu_that_is_only_the_drivers_is_made_torchs(stub, one_kernel, monkeypatch):
    """torch puts off making a GPU current that nothing was done on yet: the driver's is the one
    from before, but handles and memory would be those of the other."""
    call = stub.build(one_kernel, monkeypatch)
    stub.torchs = 1
    stub.call(call, torch.randn(8, 16))
    assert stub.launches[0].context == stub.context == stub.context_of(0)
    assert [what for what, _ in stub.guards] == ["create", "delete"]
    stub.torchs = 0
    stub.guards.clear()
    stub.call(call, torch.randn(8, 16))
    assert not stub.guards
    stub.gpu.table[cuda.GET_DEVICE] = 0  # nothing tells
    stub.call(call, torch.randn(8, 16))
    assert [what for what, _ in stub.guards] == ["create", "delete"]


def test_each_step_is_on_the_gpu_of_its_arrays(stub, one_kernel, monkeypatch):
    """y on the first GPU, z on the second, and again on the first."""
    program = moved(read_host_program(one_kernel))
    launch = next(s for s in program.steps if isinstance(s, P.Launch))
    first = program.layouts[launch.tensors[0]]
    second = attrs.evolve(first, device="cuda:1")
    layouts = {0: first, 1: second, 2: first, 3: second, 4: first}
    steps = tuple(
        step
        for source in range(2)
        for step in (
            P.Alloc(source + 2, layouts[source + 2]),
            attrs.evolve(launch, tensors=(source, source + 2)),
        )
    ) + (P.Alloc(4, first), attrs.evolve(launch, tensors=(0, 4)))
    program = attrs.evolve(
        program, layouts=layouts, kinds=dict.fromkeys(layouts, "tensor"), registers=5, steps=steps,
        arguments=(P.Argument("x", "tensor", 0, first), P.Argument("z", "tensor", 1, second)),
        outputs=tuple(P.Output(r, "tensor", layouts[r]) for r in (2, 3, 4)),
    )  # fmt: skip
    functions = [op for op in one_kernel.ops if op.name == "kernel.func"]
    call = stub.build_program(program, functions, monkeypatch)
    stub.streams.update({0: 0x10, 1: 0x11})
    x, z = torch.randn(8, 16), torch.randn(8, 16)
    for ours, given in zip(stub.call(call, x, z), (x, z, x), strict=True):
        assert torch.equal(ours, relu_and_one(given))
    assert [each.stream for each in stub.launches] == [0x10, 0x11, 0x10]
    contexts = [each.context - stub.context_of(0) for each in stub.launches]
    assert contexts == [0, 1, 0] and stub.context == stub.context_of(0)
    assert [what for what, _ in stub.guards] == ["create", "set", "delete"]
    assert stub.loaded == [("k0:0", 0), ("k0:0", 1)]


def test_arguments_that_do_not_fit_go_to_the_python_executor(stub, one_kernel, monkeypatch):
    call = stub.build(one_kernel, monkeypatch)
    for wrong in (torch.randn(8, 17), torch.randn(8, 16).double(), torch.randn(16, 8).t(), 3):
        with pytest.raises(ArgumentError):
            stub.call(call, wrong)
    assert not stub.launches
    given = [torch.randn(8, 16)]
    (y,) = call.boxed(given)
    assert not given and y.shape == (8, 16)


@pytest.mark.parametrize("function", [torch.median, torch.neg])
def test_a_number_of_the_cpu_is_an_operators_and_no_kernels(stub, function, monkeypatch):
    number = torch.tensor(3.0)
    call = stub.build(lowered(function, [number]), monkeypatch)
    assert torch.equal(stub.call(call, number)[0], function(number))
    stub.gpu.table[cuda.KEYS_REQUIRED] = 2**64 - 1  # no tensor is a GPU's
    if function is torch.median:
        assert torch.equal(stub.call(call, number)[0], number)
    else:
        with pytest.raises(AssertionError, match="CUDA"):  # Python's executor takes it there
            stub.call(call, number)
        assert not stub.launches


def test_a_number_of_an_operator_goes_where_kernels_read_it(stub, monkeypatch):
    def shifted(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return other.median() + x

    x, other = torch.randn(4, 4), torch.randn(5)
    brought = []
    monkeypatch.setitem(
        native._MADE, "to-gpu", lambda device: lambda n: (brought.append(device) or n + 1,)
    )
    call = stub.build(lowered(shifted, [x, other]), monkeypatch)
    torch.testing.assert_close(stub.call(call, x, other)[0], shifted(x, other))
    assert not brought
    kind, stub.gpu.table[cuda.DEVICE_TYPE] = stub.gpu.table[cuda.DEVICE_TYPE], 99
    with pytest.raises(RuntimeError):
        stub.call(call, x, other)  # there is no memory on such a device
    assert brought == [0]
    stub.gpu.table[cuda.DEVICE_TYPE] = kind
    torch.testing.assert_close(stub.call(call, x, other)[0], shifted(x, other))


def test_memory_that_is_not_there_is_torchs_error(stub, monkeypatch):
    from irc.boundary import aten_paths

    asked = []
    monkeypatch.setattr(aten_paths.Named, "resolve", _without_gpus(asked))
    module = lowered(lambda x, y: x[:, None] * y, [torch.randn(6), torch.randn(5)], dynamic=True)
    call = stub.build(module, monkeypatch)
    x = torch.zeros(1 << 23)
    with pytest.raises(RuntimeError, match="alloc"):
        torch.empty(1 << 46)
    with pytest.raises(RuntimeError, match="alloc"):
        stub.call(call, x, x)
    assert "cuda:0" in asked and not stub.launches


def _without_gpus(asked: list[str]) -> Any:
    from irc.boundary.aten_paths import Named

    resolve = Named.resolve

    def resolved(self: Named) -> object:
        asked.append(self.name)
        return torch.device("cpu") if self.kind == "device" else resolve(self)

    return resolved


def pick(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return x[i] * 2


#: Truth values of checks are arrays, not flags (`tests/runtime/test_late_flags.py`).
NO_FLAGS = Options(late_checks=False)


def test_a_check_is_waited_for(stub, monkeypatch):
    args = [torch.randn(10, 4), torch.tensor([1, 9, 0])]
    call = stub.build(lowered(pick, args, options=NO_FLAGS), monkeypatch)
    assert call.is_native
    torch.testing.assert_close(stub.call(call, *args)[0], pick(*args))
    with pytest.raises((IndexError, RuntimeError)):
        stub.call(call, args[0], torch.tensor([1, 10, 0]))


def test_a_late_check_is_told_when_a_program_begins(stub, monkeypatch):
    told = []
    monkeypatch.setattr(late_checks, "check_truth", lambda t, *rest: told.append((bool(t), rest)))
    args = [torch.randn(10, 4), torch.tensor([1, 9, 0])]
    call = stub.build(lowered(pick, args, options=NO_FLAGS), monkeypatch, late_checks=True)
    stub.call(call, *args)
    stub.call(call, args[0], torch.tensor([1, 10, 0]))
    assert [truth for truth, _ in told] == [True, False]
    fail = told[1][1][-1]
    with pytest.raises((IndexError, RuntimeError)):
        fail()
    raised = []
    monkeypatch.setattr(late_checks, "raise_failed", raised.append)
    call = stub.build(lowered(pick, args, options=NO_FLAGS), monkeypatch, late_checks=True)
    stub.call(call, *args)
    assert not raised
    stub.gpu.table[cuda.LATE] = 1
    stub.call(call, *args)
    assert raised == [0]


@pytest.fixture(params=["copy", "kernel"])
def ring(stub, monkeypatch, request) -> Ring:
    """The ring of the stub's first GPU, with values that are copied, and looked at by a kernel."""
    monkeypatch.setattr(late_checks, "_rings", {})
    monkeypatch.setattr(cuda, "installed", lambda: stub.gpu)
    made = late_checks.ring_of(0)
    assert made is not None and stub.gpu.table[cuda.RINGS] == made.address
    made.use(CHECK_KERNEL if request.param == "kernel" else 0)
    return made


def test_late_checks_are_left_in_a_ring(stub, ring, monkeypatch):
    monkeypatch.setattr(late_checks, "check_truth", None)
    args = [torch.randn(10, 4), torch.tensor([1, 9, 0])]
    call = stub.build(lowered(pick, args, options=NO_FLAGS), monkeypatch, late_checks=True)
    wrong = torch.tensor([1, 10, 0])
    before = sys.getrefcount(None)
    for _ in range(600):  # more than there are places
        torch.testing.assert_close(stub.call(call, *args)[0], pick(*args))
    assert sys.getrefcount(None) < before + 300
    stub.call(call, args[0], wrong)
    assert stub.gpu.table[cuda.LATE] == 1 and ring.busy
    with pytest.raises((IndexError, RuntimeError)):
        stub.call(call, *args)
    stub.call(call, *args)
    late_checks.raise_failed(0)
    assert not ring.busy and stub.gpu.table[cuda.LATE] == 0
    assert len(stub.checked) == (602 if ring.words[RING_KERNEL] else 0)


def test_a_check_that_is_not_launched_is_left_to_python(stub, ring, monkeypatch):
    told: list[bool] = []
    monkeypatch.setattr(late_checks, "check_truth", lambda t, *rest: told.append(bool(t.all())))
    args = [torch.randn(10, 4), torch.tensor([1, 9, 0])]
    call = stub.build(lowered(pick, args, options=NO_FLAGS), monkeypatch, late_checks=True)
    ring.use(CHECK_KERNEL)
    stub.refuses = "check"
    stub.call(call, *args)
    assert told == [True] and not ring.busy


def test_a_check_that_has_not_arrived_is_waited_for_by_nobody(stub, ring, monkeypatch):
    args = [torch.randn(10, 4), torch.tensor([1, 9, 0])]
    call = stub.build(lowered(pick, args, options=NO_FLAGS), monkeypatch, late_checks=True)
    arrives: list[tuple[int, bytes]] = []
    stub.arrives = arrives  # copies to the CPU come later
    stub.call(call, args[0], torch.tensor([1, 10, 0]))
    for _ in range(3):
        stub.call(call, *args)
    for target, content in arrives:
        ctypes.memmove(target, content, len(content))
    for told in (True, False):
        if told:
            with pytest.raises((IndexError, RuntimeError)):
                late_checks.raise_failed(0)
        else:
            late_checks.raise_failed(0)
    assert not ring.busy


def test_a_full_ring_and_a_capture_leave_checks_to_python(stub, ring, monkeypatch):
    told: list[bool] = []
    monkeypatch.setattr(late_checks, "check_truth", lambda t, *rest: told.append(bool(t.all())))
    args = [torch.randn(10, 4), torch.tensor([1, 9, 0])]
    call = stub.build(lowered(pick, args, options=NO_FLAGS), monkeypatch, late_checks=True)
    stub.capturing = 1
    stub.call(call, *args)
    assert told == [True] and not ring.busy
    stub.capturing, stub.arrives = 0, []
    for _ in range(RING_PLACES):
        stub.call(call, *args)
    assert told == [True]
    stub.call(call, *args)
    assert told == [True] * 2
    for target, content in stub.arrives:
        ctypes.memmove(target, content, len(content))
    late_checks.raise_failed(0)
    assert not ring.busy


def total(x: torch.Tensor) -> Any:
    n = x.sum().item()
    return x * 2, n


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_number_is_read(stub, dtype, monkeypatch):
    x = torch.arange(12).to(dtype).view(3, 4)
    y, n = stub.call(stub.build(lowered(total, [x]), monkeypatch), x)
    assert torch.equal(y, x * 2) and n == total(x)[1]


def test_programs_of_several_threads(stub, one_kernel, monkeypatch):
    stub.runs = False
    call = stub.build(one_kernel, monkeypatch)
    x = torch.randn(8, 16)

    def work() -> None:
        for _ in range(200):
            call(x)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stub.launches) == 600


def test_what_a_program_made_goes_with_it(stub, one_kernel, monkeypatch):
    import weakref

    call = stub.build(one_kernel, monkeypatch)
    descriptor = next(o for k, o in call._objects.items() if k[0] == "gpu-kernel")
    gone = weakref.ref(descriptor)
    stub.call(call, torch.randn(8, 16))
    del call, descriptor
    gc.collect()
    assert gone() is None
