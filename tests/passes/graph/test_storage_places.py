"""`as_strided` counts in a storage: that of an argument, or of what is made in the program."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import irc
from irc.ir.diagnostics import InvalidIR, UserError
from irc.ir.passes import PassManager
from irc.ir.verifier import verify


def behind(offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """A tensor that begins `offset` elements into its storage."""
    return torch.arange(60.0).as_strided(sizes, strides, offset)


COPIES: dict[str, Callable[[Tensor], Tensor]] = {
    "clone": lambda x: x.clone(),
    "sum": lambda x: x + 0,
    "cast": lambda x: x.to(torch.float64),
    "contiguous": lambda x: x.contiguous(),
    "like": lambda x: torch.empty_like(x).copy_(x),
    "clone written": lambda x: x.clone().neg_(),
}
LAYOUTS = {
    "rows": ((3, 4), (4, 1)),
    "gaps": ((3, 2), (10, 2)),
    "columns": ((3, 4), (1, 3)),
    "one row": ((1, 4), (20, 1)),
    "one": ((1,), (1,)),
    "number": ((), ()),
}


@pytest.mark.fault("V1")
@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_copy_of_an_argument_with_an_offset_begins_at_the_start_of_its_storage(
    copy: str, layout: str
) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        y = COPIES[copy](x)
        place = y.storage_offset() + y.numel() - 1
        read = y.as_strided((1,), (1,), place) + 1
        z = x.clone()
        z.as_strided((1,), (1,), 0).fill_(99.0)
        return read, z.fill_diagonal_(7.0) if z.dim() > 1 else z

    x = behind(11, *LAYOUTS[layout])
    expected = program(x)
    module = irc.trace(program, (x,))
    PassManager.parse("functional,aten-to-graph").run(module)
    found = [irc.run(module, x)]
    if layout in ("rows", "number"):
        found.append(irc.compile(program, (x,))(x))
    for got in found:
        for a, b in zip(got, expected, strict=True):
            assert torch.equal(a, b), copy


@pytest.mark.fault("V10")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("place", [0, 3, 11, 12])
def test_places_of_an_argument_s_storage_beside_its_elements_are_read(
    layout: str, place: int
) -> None:
    def program(x: Tensor) -> Tensor:
        return x.as_strided((2,), (3,), place) * 1

    x = behind(11, *LAYOUTS[layout])
    module = irc.trace(program, (x,))
    PassManager.parse("functional,aten-to-graph,graph-to-layout,layout-to-loop").run(module)
    (got,) = irc.run(module, x)
    assert torch.equal(got, program(x))
    assert torch.equal(irc.compile(program, (x,))(x), program(x))


OUTSIDE = """
func.func @main(%x: tensor<[s0] x f32, strides [1]>, %n: index) -> tensor<[3] x f32, strides [1]>
    attributes {{level = "aten"}} {{
  %s0 = sym.bind_size %x {{dim = 0 : i64, symbol = "s0", minimum = 2 : i64}} : (tensor<[s0] x f32, strides [1]>) -> index
  %n0 = sym.bind %n {{symbol = "n0", minimum = 0 : i64}} : (index) -> index
  %c = aten.clone.default %x {{arguments = {{self = #aten.operand<0>}}}} : (tensor<[s0] x f32, strides [1]>) -> tensor<[s0] x f32, strides [1]>
  %v = aten.as_strided.default %c {{arguments = {{self = #aten.operand<0>, size = [3 : i64], stride = [1 : i64], storage_offset = {place}}}}} : (tensor<[s0] x f32, strides [1]>) -> tensor<[3] x f32, strides [1]>
  func.return %v : tensor<[3] x f32, strides [1]>
}}
"""  # noqa: E501


@pytest.mark.fault("V1")
def test_symbolic_places_of_a_storage_are_checked_when_the_program_runs() -> None:
    module = irc.parse(OUTSIDE.format(place="#sym<n0>"))
    PassManager.parse("aten-to-graph").run(module)
    x = torch.arange(5.0)
    assert irc.run(module, x, 2)[0].tolist() == [2.0, 3.0, 4.0]
    with pytest.raises(RuntimeError, match="out of bounds of its storage"):
        irc.run(module, x, 3)


@pytest.mark.fault("V1")
def test_places_that_a_tensor_made_here_does_not_have_are_refused() -> None:
    x = behind(11, (3, 4), (4, 1))
    module = irc.trace(lambda x: (x + 1).as_strided((2,), (1,), 10) + 1, (x,))
    irc.run(module, x)
    text = irc.print_op(module).replace("storage_offset = 10", "storage_offset = 11")
    with pytest.raises(UserError, match="outside of the elements"):
        PassManager.parse("functional,aten-to-graph").run(irc.parse(text))


WINDOW = """
func.func @main(%x: tensor<3x4xf32>) -> tensor<2x2xf32> attributes {{level = "graph"}} {{
  %y = graph.strided_window %x {{offset = #sym<{offset}>, strides = #sym.dims<[{strides}]>}} : (tensor<3x4xf32>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}}
"""  # noqa: E501


@pytest.mark.fault("V1")
@pytest.mark.parametrize(
    "offset, strides, fits",
    [(0, "4, 1", True), (6, "4, 1", True), (7, "4, 1", False), (-1, "4, 1", False),
     (11, "0, 0", True), (0, "8, 4", False)],
)  # fmt: skip
def test_a_window_outside_of_its_source_is_refused(offset: int, strides: str, fits: bool) -> None:
    text = WINDOW.format(offset=offset, strides=strides)
    if fits:
        verify(irc.parse(text))
    else:
        with pytest.raises(InvalidIR, match="of a source that has 12"):
            verify(irc.parse(text))
