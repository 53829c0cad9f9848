"""Native host functions: checks, results, failure, threads, fork, references."""

import gc
import resource
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
import torch

from irc.boundary import torch_abi
from irc.boundary.aten_paths import Named, find_operator
from irc.codegen.host.arguments import HostArguments
from irc.codegen.host.aten import AtenCall, call_aten, needs_python
from irc.codegen.host.emitter import I64, TensorSpec
from irc.codegen.host.kernel_calls import KernelCalls
from irc.codegen.host.memory import HostMemory
from irc.codegen.host.results import HostResults

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)

if torch_abi.available():
    from tests.runtime.host_programs import F32, SlowPath, add_kernel, build, chain, spec


def _rss_kilobytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


@pytest.fixture(scope="module")
def three():
    return build(1, chain(3))


def test_computes_for_any_number_of_rows(three):
    for rows in (0, 1, 5, 300):
        x = torch.randn(rows, 8)
        (y,) = three.call(x)
        assert torch.equal(y, x + 1 + 1 + 1) and y.stride() == (8, 1) and not y.requires_grad


def test_reads_offset_inputs_and_parameters(three):
    base = torch.randn(10, 8)
    assert torch.equal(three.call(base[3:])[0], base[3:] + 1 + 1 + 1)
    weight = torch.nn.Parameter(base.clone())
    (y,) = three.call(weight)
    assert torch.equal(y, base + 1 + 1 + 1) and type(y) is torch.Tensor and not y.requires_grad


def _strange_inputs():
    x = torch.randn(4, 8)
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)

    class Sub(torch.Tensor):
        pass

    return {
        "dtype": x.double(),
        "rank": x[0],
        "size": x[:, :4].contiguous(),
        "stride": x.new_zeros(8, 4).t(),
        "meta": x.to("meta"),
        "fake": fake,
        "negative bit": torch._neg_view(x),
        "sparse": x.to_sparse(),
        "zero tensor": torch._efficientzerotensor(4, 8),
        "subclass": x.as_subclass(Sub),
        "not a tensor": 3,
        "None": None,
        "nested": torch.nested.nested_tensor([x]),
        "quantized": torch.quantize_per_tensor(x, 1.0, 0, torch.qint8),
    }


@pytest.mark.parametrize("what", _strange_inputs())
def test_anything_else_goes_to_the_python_executor(three, what):
    given = _strange_inputs()[what]
    with pytest.raises(SlowPath):
        three.call(given)
    with pytest.raises(SlowPath):
        three.call_boxed([given])


def test_wrong_number_of_arguments_goes_to_the_python_executor(three):
    x = torch.randn(2, 8)
    for wrong in ((), (x, x)):
        with pytest.raises(SlowPath):
            three.call(*wrong)
        with pytest.raises(SlowPath):
            three.call_boxed(list(wrong))
    with pytest.raises(SlowPath):
        three.call_boxed((x,))


def test_stride_of_a_dimension_of_size_one_is_free(three):
    x = torch.randn(1, 8).as_strided((1, 8), (999, 1))
    assert torch.equal(three.call(x)[0], x + 1 + 1 + 1)


def test_boxed_call_empties_the_list_and_drops_inputs(three):
    x = torch.randn(2, 8)
    gone = weakref.ref(x)
    given = [x]
    del x
    three.call_boxed(given)
    assert given == [] and gone() is None


def test_argument_is_released_in_the_middle():
    seen = []

    def body(e):
        arguments = HostArguments(e)
        x = arguments.argument_tensor(0, spec(None))
        e.begin()
        arguments.release_argument(0)
        e.error_if_null(e.call_python("look", []))
        del x
        return [HostResults(e).result_none()]

    x = torch.randn(2)
    gone = weakref.ref(x)
    program = build(1, body, {"look": lambda: seen.append(gone() is None)})
    program.call(x)
    given = [x]
    del x
    program.call_boxed(given)
    assert seen == [False, True]


def test_scalars_in_and_out():
    def body(e):
        arguments, results = HostArguments(e), HostResults(e)
        n, f = arguments.argument_int(0), arguments.argument_float(1)
        flag = arguments.argument_bool(2)
        arguments.require_equal(n, e.builder.mul(n, I64(1)))
        e.begin()
        return [
            results.result_int(e.builder.add(n, I64(1))),
            results.result_float(f),
            results.result_bool(flag),
            results.result_none(),
            results.result_int(-5),
        ]

    program = build(3, body)
    assert program.call(2**62, 0.5, True) == (2**62 + 1, 0.5, True, None, -5)
    assert program.call(-3, -0.0, False)[:3] == (-2, 0.0, False)
    for wrong in (
        (True, 0.5, True),
        (1, 1, True),
        (1, 0.5, 1),
        (2**63, 0.5, True),
        ("1", 0.5, True),
    ):
        with pytest.raises(SlowPath):
            program.call(*wrong)


def test_an_argument_as_result_is_the_same_object():
    def body(e):
        x, results = HostArguments(e).argument_tensor(0, spec(None)), HostResults(e)
        e.begin()
        same = results.result_tensor(x)
        return [same, results.result_object("constant"), same]

    constant = torch.ones(1)
    program = build(1, body, {"constant": constant})
    x = torch.randn(3, requires_grad=True)
    a, b, c = program.call(x)
    assert a is x and c is x and b is constant


def test_kernel_status_becomes_the_named_error():
    def refuse(code):
        raise ZeroDivisionError(f"code {code}")

    def body(e):
        x = HostArguments(e).argument_tensor(0, spec(None))
        memory = HostMemory(e)
        n = memory.size(x, 0)
        e.begin()
        y = memory.empty((n,), (1,), F32)
        kernel = add_kernel(e.module, 1.0, status=True)
        operands = [memory.data(x), memory.data(y)]
        KernelCalls(e).call_kernel(kernel, operands, extent=n, grain=100, on_status="negative")
        return [HostResults(e).result_tensor(y)]

    program = build(1, body, {"negative": refuse})
    good = torch.rand(10_000)
    bad = good.clone()
    bad[-3] = -1.0
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            assert torch.equal(program.call(good)[0], good + 1)
            with pytest.raises(ZeroDivisionError, match="code 7"):
                program.call(bad)
    finally:
        torch.set_num_threads(before)


MM = AtenCall("aten.mm.default", {})


def _mm(e, path=None):
    x = HostArguments(e).argument_tensor(0, spec(None, None))
    y = HostArguments(e).argument_tensor(1, spec(None, None))
    e.begin(below_autograd=True)
    memory = HostMemory(e)
    scratch = memory.arena(1000)
    first = memory.arena_tensor(scratch, 0, (4, 4), (4, 1), F32)
    call_aten(e, AtenCall("aten.mm.out", {"self": x, "mat2": y, "out": first}), floating=True)
    arguments = {"self": first, "mat2": y}
    return call_aten(e, AtenCall("aten.mm.default", arguments, [2]), floating=True, path=path)


@pytest.mark.parametrize("path", ["dispatcher", "boxed"])
def test_failed_aten_call_raises_torchs_own_error_and_leaks_nothing(path):
    program = build(2, lambda e: [HostResults(e).result_tensor(t) for t in _mm(e, path)])
    x, wrong, late = torch.randn(4, 4), torch.randn(5, 5), torch.randn(4, 5)
    assert torch.equal(program.call(x, x)[0], x @ x @ x)
    with pytest.raises(RuntimeError) as eager:
        torch.mm(x, wrong)
    with pytest.raises(RuntimeError) as ours:
        program.call(x, wrong)
    assert str(ours.value) == str(eager.value)

    def fail(times):
        for _ in range(times):
            for bad in (wrong, late):
                try:
                    program.call(x, bad)
                except RuntimeError:
                    pass

    fail(100)
    counts = [sys.getrefcount(t) for t in (x, wrong, late)]
    grown = []
    for _ in range(4):  # what leaks does so each time; what the process gets once, it keeps
        before = _rss_kilobytes()
        fail(400)
        grown.append(_rss_kilobytes() - before)
    assert [sys.getrefcount(t) for t in (x, wrong, late)] == counts
    assert min(grown) < 100


def test_runs_below_autograd_and_autocast_and_restores_the_thread():
    program = build(2, lambda e: [HostResults(e).result_tensor(t) for t in _mm(e)])
    x = torch.randn(4, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (y,) = program.call(x, x)
        assert torch.mm(x, x).dtype == torch.bfloat16
    assert y.dtype == torch.float32 and not y.requires_grad
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            program.call(x, x)
            assert torch.is_grad_enabled() is enabled
            with pytest.raises(RuntimeError):
                program.call(x, torch.randn(5, 5))
            assert torch.is_grad_enabled() is enabled
    assert torch.mm(x, x).requires_grad
    assert not torch._C._dispatch_tls_is_dispatch_key_excluded(
        torch._C.DispatchKey.AutogradFunctionality
    )


@pytest.mark.parametrize("path", ["shim", "dispatcher", "boxed"])
def test_aten_results_of_each_path_are_bit_equal(path):
    def body(e):
        x = HostArguments(e).argument_tensor(0, spec(None, 8))
        e.begin(below_autograd=True)
        results = []
        for callee, arguments in (
            ("aten.sort.default", {"self": x, "dim": 1, "descending": True}),
            ("aten.cumsum.default", {"self": x, "dim": 0, "dtype": Named("dtype", "float64")}),
            ("aten.cat.default", {"tensors": [x, x], "dim": 1}),
            ("aten.avg_pool2d.default", {"self": x3(e, x), "kernel_size": [2, 2]}),
        ):
            results += call_aten(e, AtenCall(callee, arguments, [2, 2]), floating=True, path=path)
        return [HostResults(e).result_tensor(t) for t in results]

    def x3(e, x):
        memory = HostMemory(e)
        return memory.view(x, (1, memory.size(x, 0), 8), (8, 8, 1), 0)

    x = torch.randn(6, 8)
    expected = (
        *torch.sort(x, 1, True),
        torch.cumsum(x, 0, dtype=torch.float64),
        torch.cat([x, x], 1),
        torch.nn.functional.avg_pool2d(x[None], [2, 2]),
    )
    got = build(1, body).call(x)
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert torch.equal(ours, theirs) and ours.dtype == theirs.dtype
        assert ours.stride() == theirs.stride()


def test_none_for_a_tensor_goes_through_python():
    """Operators take it that don't say so, as attention's gradients; this one does not."""

    def body(e):
        x = HostArguments(e).argument_tensor(0, spec(2, 2, strides=(2, 1)))
        e.begin(below_autograd=True)
        call = AtenCall("aten.mm.default", {"self": x, "mat2": None}, [2])
        return [HostResults(e).result_tensor(t) for t in call_aten(e, call, floating=True)]

    with pytest.raises((RuntimeError, TypeError)):
        build(1, body).call(torch.ones(2, 2))


def test_python_error_in_a_boxed_call_passes_through():
    def body(e):
        e.begin()
        e.error_if_null(e.call_python("raise", [I64(3)]))
        return [HostResults(e).result_none()]

    def refuse(n):
        raise KeyError(n)

    with pytest.raises(KeyError, match="3"):
        build(0, body, {"raise": refuse}).call()


def test_reentrant_and_recursive():
    holder = []

    def body(e):
        n = HostArguments(e).argument_int(0)
        e.begin()
        HostMemory(e).arena(4096)
        e.error_if_null(e.call_python("again", [n]))
        return [HostResults(e).result_int(n)]

    seen = []
    program = build(1, body, {"again": lambda n: (seen.append(n), n and holder[0](n - 1))})
    holder.append(program.call)
    assert program.call(20) == (20,) and seen == list(range(20, -1, -1))


def test_threads_share_one_program(three):
    failures = []

    def work(seed):
        x = torch.full((seed + 1, 8), float(seed))
        for _ in range(2000):
            (y,) = three.call(x)
            if not (y.shape == x.shape and bool((y == seed + 3).all())):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_parallel_pieces_cover_the_range():
    program = build(1, chain(2, grain=64))
    before = torch.get_num_threads()
    try:
        for threads in (2, 3, 1):
            torch.set_num_threads(threads)
            x = torch.randn(1001, 8)
            assert torch.equal(program.call(x)[0], x + 1 + 1)
    finally:
        torch.set_num_threads(before)


FORK = """
import os, sys, torch
sys.path.insert(0, sys.argv[1])
from tests.runtime.host_programs import build, chain
program = build(1, chain(3, grain=64))
torch.set_num_threads(2)
x = torch.randn(2000, 8)
expected = x + 1 + 1 + 1
assert torch.equal(program.call(x)[0], expected)
child = os.fork()
if child == 0:
    ok = all(torch.equal(program.call(x)[0], expected) for _ in range(50))
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
assert torch.equal(program.call(x)[0], expected)
"""


def test_forked_child_runs_with_one_thread():
    path = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", FORK, path], timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_program_dies_with_its_builtins():
    marker = type("Marker", (), {})()
    gone = weakref.ref(marker)

    def body(e):
        e.begin()
        HostMemory(e).arena(1 << 20)
        return [HostResults(e).result_object("marker")]

    program = build(0, body, {"marker": marker})
    call = program.call
    del marker, program
    assert call() == (gone(),)
    del call
    gc.collect()
    assert gone() is None


def test_large_arena_is_recycled():
    def body(e):
        n = HostArguments(e).argument_int(0)
        e.begin()
        scratch = HostMemory(e).arena(n)
        return [HostResults(e).result_int(e.builder.ptrtoint(scratch.block, I64))]

    program = build(1, body)
    (first,) = program.call(64 << 20)
    assert first % 64 == 0 and program.call(32 << 20) == (first,) == program.call(64 << 20)
    (small,) = program.call(1000)
    assert small % 64 == 0 and small != first and program.call(900) == (small,)
    with pytest.raises(MemoryError):
        program.call(1 << 60)
    with pytest.raises(MemoryError):
        program.call(-1)


def test_spec_words():
    words = TensorSpec(6, (None, 8), (8, None)).words()
    assert words == [6, 2, 1, -1, 8, 8, -1]


def test_nothing_for_a_tensor_that_is_not_optional():
    """Shims take a handle of a tensor that is none; the backward of attention without a mask is
    called so."""
    callee = "aten._scaled_dot_product_efficient_attention_backward.default"
    op = find_operator(callee)
    arguments = {a.name: 0 for a in op._schema.arguments if str(a.type) != "Tensor"}
    without = {**arguments, "attn_bias": None}
    for path in ("shim", "dispatcher"):
        assert not needs_python(AtenCall(callee, arguments), op, path)
        assert needs_python(AtenCall(callee, without), op, path) == (path != "shim")
    optional = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    mask = AtenCall(optional, {"attn_mask": None})
    assert not needs_python(mask, find_operator(optional), "dispatcher")


def test_torch_gets_no_tensor_by_a_shim():
    def body(e):
        x = HostArguments(e).argument_tensor(0, spec(None))
        e.begin()
        call = AtenCall("aten.mul.Tensor", {"self": x, "other": None}, [1])
        (y,) = call_aten(e, call, floating=True, path="shim")
        return [HostResults(e).result_tensor(y)]

    program = build(1, body)
    for _ in range(3):
        with pytest.raises((RuntimeError, TypeError)):
            program.call(torch.randn(2))
    assert torch_abi.undefined_tensor() is torch_abi.undefined_tensor()
