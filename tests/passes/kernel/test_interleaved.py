"""Points of a short last axis are written out, and their vectors interleaved: values are eager
mode's, and what is stored are whole vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import irc
from irc.dialects import kernel, loop
from irc.interp import run
from irc.ir.passes import PassContext, PassManager
from irc.passes.kernel.cpu.interleaved import MOST
from tests.frontend.test_streamed_attention import PROGRAMS
from tests.target.machines import MACHINES

Function = Callable[..., torch.Tensor]


def complex_product(x: Any, f: Any) -> Any:
    """As rotary embeddings of the first Llama models."""
    return torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(f)[:, None])


def turned_pairs(x: Any, c: Any, s: Any) -> Any:
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * c[:, None] + turned * s[:, None]


def rotated(x: Any, c: Any, s: Any) -> Any:
    a, b = x[..., ::2], x[..., 1::2]
    c, s = c[:, None, : a.shape[-1]], s[:, None, : a.shape[-1]]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)


def colors(x: Any) -> Any:
    r, g, b = x.unbind(-1)
    return torch.stack((r * 3 + g, g, b - r), -1)


def corners(x: Any) -> Any:
    a, b, c, d = x.unbind(-1)
    return torch.stack((a - c / 2, b - d / 2, a + c / 2, b + d / 2), -1)


def pairs_of(a: Any, b: Any) -> Any:
    return torch.stack((a + 1, b), -1)


def arrays(*sizes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    if dtype.is_floating_point:
        return [torch.randn(size, generator=generator).to(dtype) for size in sizes]
    return [torch.randint(-100, 100, size, generator=generator).to(dtype) for size in sizes]


CASES: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "complex": (complex_product, [(6, 4, 24, 2), (6, 24, 2)]),
    "turned": (turned_pairs, [(6, 4, 48), (6, 48), (6, 48)]),
    "rotated": (rotated, [(6, 4, 48), (6, 48), (6, 48)]),
    "odd": (rotated, [(5, 3, 46), (5, 46), (5, 46)]),
    "colors": (colors, [(9, 37, 3)]),
    "corners": (corners, [(77, 4)]),
    "pairs": (pairs_of, [(11, 50), (11, 50)]),
}
DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "i32": torch.int32,
          "u8": torch.uint8, "i64": torch.int64}  # fmt: skip
#: Quotients of integers are floats, as corners' are.
ELEMENTS = [
    pytest.param(name, dtype, id=f"{name}-{short}")
    for name in ("colors", "pairs", "corners")
    for short, dtype in DTYPES.items()
    if name != "corners" or dtype.is_floating_point
]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    PROGRAMS.clear()
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Function, **options: Any) -> Function:
    passes = {"after:form-kernels": "test-keep-program"}
    return torch.compile(function, backend="irc", options={"passes": passes}, **options)


def interleaved() -> list[kernel.InterleaveOp]:
    return [op for program in PROGRAMS for op in program.walk()
            if isinstance(op, kernel.InterleaveOp)]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_vectors_are_interleaved(name: str) -> None:
    function, sizes = CASES[name]
    given = arrays(*sizes)
    torch.testing.assert_close(compiled(function, dynamic=False)(*given), function(*given))
    assert interleaved()


@pytest.mark.parametrize(("name", "dtype"), ELEMENTS)
def test_elements_of_all_sizes(name: str, dtype: torch.dtype) -> None:
    function, sizes = CASES[name]
    given = arrays(*sizes, dtype=dtype)
    torch.testing.assert_close(
        compiled(function, dynamic=False)(*given), function(*given), rtol=1e-2, atol=1e-2
    )
    assert interleaved()


@pytest.mark.parametrize("name", ["turned", "rotated", "colors"])
def test_symbolic_sizes(name: str) -> None:
    function, sizes = CASES[name]
    call = compiled(function, dynamic=True)
    for more in (0, 1, 6):
        given = arrays(*((size[0] + more, *size[1:]) for size in sizes))
        torch.testing.assert_close(call(*given), function(*given))


def test_special_numbers_and_strides() -> None:
    x = torch.randn(7, 3, 96)[..., ::2]
    x[0, 0, :4] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
    given = [x, *arrays((7, 48), (7, 48))]
    for function in (turned_pairs, rotated):
        torch.testing.assert_close(
            compiled(function, dynamic=False)(*given), function(*given), equal_nan=True
        )
    assert interleaved()


def test_many_points_stay_an_axis() -> None:
    """Code is written out for a few points alone."""

    def wide(*parts: Any) -> Any:
        return torch.stack([part * number for number, part in enumerate(parts)], -1)

    given = arrays(*[(20, 30)] * (MOST + 1))
    torch.testing.assert_close(compiled(wide, dynamic=False)(*given), wide(*given))
    assert not interleaved()


PAIRS = """
func.func @main(%x: tensor<[6, 40] x f32, strides [40, 1]>, %c: tensor<[6, 20] x f32, strides [20, 1]>) -> tensor<[6, 20, 2] x f32, strides [40, 2, 1]> attributes {level = "loop"} {
  %y = loop.compute par(i0: 6, i1: 20, i2: 2) -> map {
    %place = loop.index {expression = #sym<i2>} : index
    %one = arith.constant 1 : index
    %first = arith.cmpi slt, %place, %one : index
    %a = loop.read %x[i0, i1*2 + 1] (where %first) : f32
    %b = loop.read %x[i0, i1*2] : f32
    %f = loop.read %c[i0, i1] : f32
    %p = arith.mulf %a, %f : f32
    %q = arith.addf %b, %f : f32
    %r = arith.select %first, %p, %q : f32
    loop.yield %r
  } : tensor<[6, 20, 2] x f32, strides [40, 2, 1]>
  return %y : tensor<[6, 20, 2] x f32, strides [40, 2, 1]>
}
"""  # noqa: E501


@pytest.mark.parametrize("target", MACHINES.values(), ids=MACHINES)
def test_every_processor(target: Any) -> None:
    given = arrays((6, 40), (6, 20))
    (wanted,) = run(irc.parse(PAIRS), *given)
    module = irc.parse(PAIRS)
    PassManager.parse("share-reads,schedule", verify="each").run(
        module, PassContext(target=target)
    )
    (group,) = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    assert [axis.extent for axis in group.axis_list] == [6, 20]
    PassManager.parse("form-kernels", verify="each").run(module, PassContext(target=target))
    assert any(isinstance(op, kernel.InterleaveOp) for op in module.walk())
    (got,) = run(module, *given)
    torch.testing.assert_close(got, wanted, rtol=0, atol=0)
