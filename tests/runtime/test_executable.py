"""Executables: native and Python programs behave alike."""

import threading

import pytest
import torch

from irc.boundary import torch_abi
from irc.ir.symbols import symbol
from irc.runtime.arguments import ArgumentError, ArgumentSpec
from irc.runtime.executable import Executable, NativeCode, ProgramInfo

S0 = symbol("s0")
INFO = ProgramInfo(
    "add3", (ArgumentSpec("x", "tensor", torch.float32, (S0, 8), (8, 1)),), metrics={"kernels": 3}
)


def _run_python(symbols, arguments):
    (x,) = arguments
    assert symbols == {"s0": x.shape[0]}
    return [x + 1 + 1 + 1]


def _native():
    from llvmlite import ir

    from irc.codegen.host.emitter import HostEmitter
    from irc.codegen.llvm.jit import compile_module
    from irc.target.cpu import TargetFeatures
    from tests.runtime.host_programs import chain

    module = ir.Module("m")
    emitter = HostEmitter(module, "add3", arguments=1)
    emitter.finish(chain(3)(emitter))
    code = compile_module(str(module), TargetFeatures.host())
    return NativeCode(code, "add3", tuple(emitter.slot_keys), frozenset(emitter.externals))


@pytest.fixture(params=["native", "python"])
def executable(request):
    if request.param == "native" and not torch_abi.available():
        pytest.skip(f"native host: {torch_abi.unavailable_reason()}")
    return Executable(INFO, _run_python, _native() if request.param == "native" else None)


def test_calls_and_boxed_calls(executable):
    x = torch.randn(4, 8, requires_grad=True)
    (y,) = executable(x)
    assert torch.equal(y, x.detach() + 1 + 1 + 1) and not y.requires_grad
    given = [x]
    assert executable.boxed._boxed_call
    assert torch.equal(executable.boxed(given)[0], y) and given == []
    assert executable.metrics == {"kernels": 3} and torch.is_grad_enabled()


def test_errors_name_the_argument(executable):
    x = torch.randn(4, 8)
    with pytest.raises(ArgumentError, match="argument x: .*float64"):
        executable(x.double())
    with pytest.raises(ArgumentError, match=r"x\.size\(1\) is 4"):
        executable.boxed([x[:, :4]])
    with pytest.raises(ArgumentError, match="takes 1 arguments and was called with 2"):
        executable.boxed([x, x])
    with pytest.raises(ArgumentError, match="called with 0"):
        executable()
    torch.testing.assert_close(executable(torch._neg_view(x)), executable(-x))


def test_tensor_subclass_runs(executable):
    class Sub(torch.Tensor):
        pass

    x = torch.randn(2, 8)
    (y,) = executable(x.as_subclass(Sub))
    assert torch.equal(y.as_subclass(torch.Tensor), x + 1 + 1 + 1)


def test_autocast_and_threads_do_not_matter(executable):
    wrong = []

    def work(i):
        x = torch.full((i + 1, 8), float(i))
        with torch.autocast("cpu"):
            for _ in range(300):
                (y,) = executable(x)
                if not torch.equal(y, x + 3):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
