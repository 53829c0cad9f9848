"""Rows FRZ-01 to FRZ-19: freezing, under no_grad."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn
from torch.nn import functional

from tests.backends import BACKEND, needs_backend
from tests.conformance.seed_support import assert_equal, options

pytestmark = needs_backend
seed = pytest.mark.seed


def frozen(fn: Callable[..., Any], **more: Any) -> Callable[..., Any]:
    """`fn` compiled with freezing."""
    chosen = options(freezing=True, **more)
    return torch.compile(fn, backend=BACKEND, options=chosen)


def host_program(fn: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """What `fn` gives on irc, frozen, and the frozen program down at the host level."""
    import irc
    from irc.frontend import backend
    from irc.pipeline import lower

    chosen = irc.Options(freezing=True)
    with backend.recording() as compiled, torch.no_grad():
        made = torch.compile(fn, backend="irc", options={"freezing": True})(*args)
    (only,) = compiled
    module = only.imported.module.clone()
    lower(module, options=chosen, functional=True)
    return made, module


def calls(module: Any, *names: str) -> list[Any]:
    """The calls of ATen whose names hold one of `names`, in a host program."""
    from irc.dialects import host

    found = [op for op in module.walk() if isinstance(op, host.CallAtenOp)]
    return [op for op in found if any(name in op.callee for name in names)]


def launches(module: Any) -> list[Any]:
    """The launches of generated kernels in a host program."""
    from irc.dialects import host

    return [op for op in module.walk() if isinstance(op, host.LaunchOp)]


def constants(module: Any) -> list[Any]:
    """The constants that a host program reads."""
    from irc.dialects import host

    return [op for op in module.walk() if isinstance(op, host.HostConstantOp)]


class ConvBN(nn.Module):
    """A convolution and a batch norm (f32), as a module or a function, with known statistics."""

    def __init__(
        self, channels: int = 3, bias: bool = False, function: bool = False, norms: int = 1
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 32, kernel_size=3, stride=2, bias=bias)
        self.norms = nn.ModuleList(
            nn.BatchNorm2d(32, eps=eps) for eps in (1e-3, 1e-1)[:norms]
        )
        self.function = function
        for norm in self.norms:
            for tensor in (norm.weight, norm.running_var):
                tensor.data.uniform_(0.5, 1.5)
            for tensor in (norm.bias, norm.running_mean):
                tensor.data.normal_()

    def norm(self, number: int, x: torch.Tensor) -> torch.Tensor:
        norm = self.norms[number]
        if not self.function:
            return norm(x)
        return functional.batch_norm(
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.1, norm.eps
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.norm(0, self.conv(x))
        for number in range(1, len(self.norms)):
            made = made + self.norm(number, self.conv(x))
        return made


@seed("FRZ-01")
@torch.no_grad()
def test_a_parameter_that_forward_writes_is_not_frozen() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = nn.Parameter(torch.zeros(10, 10))

        def forward(self) -> torch.Tensor:
            self.count.add_(10)
            return self.count

    run = frozen(Counting().forward, freezing_discard_parameters=True)
    for expected in (10.0, 20.0, 30.0):
        assert (run() == expected).all()


@seed("FRZ-02")
@torch.no_grad()
@pytest.mark.parametrize("discard", [False, True])
def test_a_returned_parameter_keeps_its_aliasing(discard: bool) -> None:
    class Slices(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.p = nn.Parameter(torch.zeros(10, 10))

        def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
            return self.p[1:], self.p

    model = Slices().eval()
    part, whole = frozen(model, freezing_discard_parameters=discard)()
    assert whole is model.p
    assert part.shape == (9, 10) and part.storage_offset() == 10
    assert part.untyped_storage().data_ptr() == model.p.untyped_storage().data_ptr()
    assert_equal((part, whole), model())


@seed("FRZ-03")
@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_cast_of_a_weight_is_folded(dtype: torch.dtype) -> None:
    model = nn.Linear(10, 10).eval()
    x = torch.rand(10, 10).to(dtype)

    def autocast(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype):
            return model(x)

    if BACKEND != "irc":
        assert_equal(frozen(autocast)(x), autocast(x), 1e-2)
        return
    made, module = host_program(autocast, x)
    assert_equal(made, autocast(x), 1e-2)
    assert not launches(module)
    assert made.dtype == dtype


@seed("FRZ-04")
@pytest.mark.skipif(BACKEND != "irc", reason="an option of irc's")
def test_eager_use_of_a_discarded_model_is_refused() -> None:
    model, x = ConvBN(3).eval(), torch.rand(3, 3, 32, 32)
    with torch.no_grad():
        expected = model(x)
        run = frozen(model, freezing_discard_parameters=True)
        for _ in range(3):
            assert_equal(run(x), expected, 1e-5)
    message = "Trying to run Pytorch Eager Module after Dynamo Freezing"
    for grad in (True, False):
        with torch.set_grad_enabled(grad), pytest.raises(RuntimeError, match=message):
            model(x)


@seed("FRZ-05")
@torch.no_grad()
def test_random_operators_are_not_folded() -> None:
    run = frozen(lambda: torch.rand([4, 4]) + 1)
    assert not torch.equal(run(), run())


@seed("FRZ-06")
@torch.no_grad()
def test_zeros_of_symbolic_sizes_are_not_folded() -> None:
    def fn(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return a.cos(), torch.zeros(a.shape[0], a.shape[1])

    run = torch.compile(fn, backend=BACKEND, dynamic=True, options=options(freezing=True))
    for shape in ((2, 4, 6), (3, 5, 6)):
        x = torch.randn(shape)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_dynamic(x, 1)
        assert_equal(run(x), fn(x))


@seed("FRZ-07")
@torch.no_grad()
def test_a_convolution_used_bare_and_by_a_norm_is_folded_once() -> None:
    class Toy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 1, 1)
            self.norm = nn.BatchNorm2d(1)
            self.norm.weight.data.normal_()
            self.norm.running_mean.normal_()

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.conv(x) + self.norm(self.conv(y))

    model = Toy().eval()
    x, y = torch.rand(64, 1, 32, 32), torch.rand(64, 1, 32, 32)
    assert_equal(frozen(model)(x, y), model(x, y))
    if BACKEND == "irc":
        torch._dynamo.reset()
        _, module = host_program(model, x, y)
        assert len(calls(module, "convolution")) == 2
        weights = {str(op.attributes["value"]) for op in constants(module)}
        assert len(weights) == 4  # the bare weight and bias, and the folded ones


@seed("FRZ-08")
def test_a_batch_norm_alone_is_equal_with_and_without_gradients() -> None:
    model, x = nn.BatchNorm2d(32, eps=0.001).eval(), torch.rand(3, 32, 15, 15)
    model.running_mean.normal_()

    def fn(x: torch.Tensor) -> torch.Tensor:
        return model(x) + 10

    run = frozen(fn)
    with_gradients = run(x)
    with torch.no_grad():
        without = run(x)
    torch.testing.assert_close(with_gradients, without)
    assert_equal(with_gradients, fn(x))


@seed("FRZ-09")
@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("bias", [True, False])
def test_a_norm_is_folded_into_its_convolution(bias: bool, dtype: torch.dtype) -> None:
    model = ConvBN(3, bias).eval().to(dtype)
    x = torch.rand(3, 3, 32, 32).to(dtype)
    assert_equal(frozen(model)(x), model(x), 1e-2)
    if BACKEND == "irc":
        torch._dynamo.reset()
        _, module = host_program(model, x)
        (call,) = calls(module, "convolution")
        assert not calls(module, "batch_norm")
        after = [op for op in launches(module) if call.is_before_in_block(op)]
        assert len(after) <= 1
        read = [v.defining_op for op in after for v in op.inputs]
        assert len([op for op in read if op in constants(module)]) <= 1
        # What is left of the seven tensors: a weight and a bias.
        assert len(constants(module)) == 2


@seed("FRZ-10")
@torch.no_grad()
@pytest.mark.parametrize("function", [False, True])
def test_a_module_called_twice_is_folded(function: bool) -> None:
    model = ConvBN(32, bias=True, function=function).eval()
    x = torch.rand(3, 32, 32, 32)

    def twice(x: torch.Tensor) -> torch.Tensor:
        model(x)
        return model(x)

    def both(x: torch.Tensor) -> torch.Tensor:
        return model(x) + model(x + 1)

    for fn in (twice, both):
        assert_equal(frozen(fn)(x), fn(x), 1e-2)


@seed("FRZ-11")
@torch.no_grad()
@pytest.mark.parametrize("function", [False, True])
def test_one_convolution_feeding_two_norms(function: bool) -> None:
    model = ConvBN(32, bias=True, function=function, norms=2).eval()
    x = torch.rand(3, 32, 32, 32)
    assert_equal(frozen(model)(x), model(x), 1e-2)

    def shared(x: torch.Tensor) -> torch.Tensor:
        made = model.conv(x)
        return model.norm(0, made) + model.norm(1, made)

    assert_equal(frozen(shared)(x), shared(x), 1e-2)


@seed("FRZ-12")
@torch.no_grad()
def test_folding_keeps_promotion() -> None:
    conv = nn.Conv2d(3, 32, bias=False, kernel_size=3, stride=2).eval().to(torch.bfloat16)
    x = torch.rand(3, 3, 32, 32).to(torch.bfloat16)

    def fn(x: torch.Tensor) -> torch.Tensor:
        return conv(x) * torch.full([1], 2.0)

    made = frozen(fn)(x)
    assert made.dtype == torch.float32
    assert_equal(made, fn(x))


@seed("FRZ-13")
@torch.no_grad()
@pytest.mark.skipif(BACKEND != "irc", reason="an option of irc's")
def test_a_discarded_parameter_is_freed() -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.p = nn.Parameter(torch.zeros(10, 10))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.p + 10) + x

    model, x = Shifted().eval(), torch.rand(10)
    expected = model(x)
    parameter = weakref.ref(model.p)
    run = frozen(model, freezing_discard_parameters=True)
    assert_equal(run(x), expected)
    assert parameter() is None
    assert_equal(run(x), expected)


@seed("FRZ-14")
@torch.no_grad()
@pytest.mark.parametrize("groups", [1, 2])
def test_windows_of_a_padded_convolution(groups: int) -> None:
    conv = nn.Conv2d(256, 384, kernel_size=1, bias=False, groups=groups).eval()

    def fn(x: torch.Tensor) -> torch.Tensor:
        padded = functional.pad(conv(x), (2, 2, 2, 2))
        wide = padded.as_strided([8, 384, 2, 20, 12], [153600, 400, 160, 1, 20])
        return wide.as_strided(
            [8, 384, 2, 2, 12, 12], [153600, 400, 160, 8, 20, 1]
        ).clone(memory_format=torch.contiguous_format)

    x = torch.randn(8, 256, 16, 16)
    assert_equal(frozen(fn)(x), fn(x))


@seed("FRZ-15")
@torch.no_grad()
def test_repeated_calls_are_equal() -> None:
    model, x = ConvBN(3).eval(), torch.rand(3, 3, 32, 32)
    run = frozen(model, cpp_wrapper=True)
    for _ in range(3):
        assert_equal(run(x), model(x))


@seed("FRZ-16")
@torch.no_grad()
def test_a_convolution_flattened() -> None:
    model = nn.Sequential(
        nn.BatchNorm2d(3), nn.Conv2d(3, 128, kernel_size=3, padding=1, bias=False), nn.Flatten(1)
    ).eval()
    x = torch.rand(2, 3, 5, 5)
    expected = model(x)
    assert_equal(frozen(model)(x), expected)
    assert_equal(frozen(model.to(memory_format=torch.channels_last))(x), model(x))


@seed("FRZ-17")
@torch.no_grad()
@pytest.mark.skipif(BACKEND != "irc", reason="looks into the program")
def test_a_frozen_weight_is_channels_last() -> None:
    from irc.dialects import host
    from irc.program.read_host import read_host_program
    from irc.runtime.build_program import constant_tensor

    model = nn.Conv2d(3, 128, kernel_size=3, padding=1, bias=False).eval()
    x = torch.rand(2, 3, 5, 5)
    made, module = host_program(model, x)
    assert_equal(made, model(x))
    (call,) = calls(module, "convolution")
    (weight,) = constants(module)
    packed = [op for op in weight.tensor.users if isinstance(op, host.PackOp)]
    if packed:  # in oneDNN's own order, of which strides tell nothing
        assert call in packed[0].packed.users
        return
    assert call in weight.tensor.users
    assert weight.tensor.type.strides == (27, 1, 9, 3)
    program = read_host_program(module)
    ((key, data),) = program.constants.items()
    held = constant_tensor(key, data, module.resources)
    assert held.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(held, model.weight.data)


@seed("FRZ-18")
@torch.no_grad()
@pytest.mark.parametrize("register", [False, True])
def test_linears_on_one_input(register: bool) -> None:
    class Three(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w1 = torch.ones(3, 3)
            self.w2 = torch.tensor([[0.0, 0.0, 1.0]] * 3)
            self.w3 = torch.eye(3)
            self.b1 = torch.zeros(3)
            self.b2 = torch.tensor([[-1.0, -1.0, -1.0]])
            self.b3 = torch.tensor([1.0, 2.0, 3.0])
            if register:
                for name in ("w1", "w2", "w3", "b1", "b2", "b3"):
                    value = self.__dict__.pop(name)
                    self.register_buffer(name, value)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            pairs = ((self.w1, self.b1), (self.w2, self.b2), (self.w3, self.b3))
            return tuple(functional.linear(x, w, b) for w, b in pairs)

    model, x = Three().eval(), torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert_equal(frozen(model)(x.clone()), model(x))
    if BACKEND == "irc":
        torch._dynamo.reset()
        _, module = host_program(model, x)
        assert len(calls(module, "mm.", "linear")) <= 2
        torch._dynamo.reset()
        model.b2 = model.b2.reshape(3)
        made, module = host_program(model, x)
        assert_equal(made, model(x))
        assert len(calls(module, "mm.", "linear")) == 1


@seed("FRZ-19")
@torch.no_grad()
def test_copies_for_layouts_are_not_redundant() -> None:
    conv = nn.Conv2d(3, 128, kernel_size=3, padding=1, bias=False).eval()

    def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1
        return conv(x), y

    x = torch.rand(2, 3, 5, 5)
    made = frozen(fn)(x)
    assert_equal(made, fn(x), 1e-4)
    assert all(m.is_contiguous() for m in made)
    if BACKEND == "irc":
        import irc

        torch._dynamo.reset()
        irc.metrics.reset()
        irc_made, module = host_program(fn, x)
        assert_equal(irc_made, fn(x), 1e-4)
        (call,) = calls(module, "convolution")
        after = [op for op in launches(module) if call.results[0] in op.inputs]
        assert len(after) <= 1
