"""The option `check_bounds`: kernels in the interpreter, each access held to its tensor."""

from __future__ import annotations

import re

import pytest
import torch

import irc
from irc.ir.diagnostics import UserError
from irc.pipeline import stages
from irc.tools.cli import main

pytestmark = pytest.mark.fault("V18")


def lowered(f, *inputs: torch.Tensor) -> str:
    module = irc.trace(f, inputs, dynamic=True)
    for stage in stages():
        irc.PassManager.parse(stage).run(module)
    return str(module)


def build(text: str):
    return irc.build(irc.parse(text, "edited.mlir"), options={"check_bounds": True})


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        (r"(kernel\.store %\w+, %\w+)\[(%\w+)\]", "store"),
        (r"(kernel\.load %\w+)\[(%\w+)\]", "load"),
    ],
)
@pytest.mark.parametrize("far", [100_000_000, -70])
def test_an_access_outside_is_an_index_error(pattern: str, kind: str, far: int) -> None:
    x = torch.randn(65)
    text = lowered(lambda x: torch.relu(x) * 2, x)
    torch.testing.assert_close(build(text)(x)[0], torch.relu(x) * 2)
    moved = f"%big = arith.constant {far} : index\n"
    lines = text.splitlines()
    number = next(i for i, line in enumerate(lines) if re.search(pattern, line))
    place = re.search(pattern, lines[number])
    assert place is not None
    moved += f"%far = arith.addi {place[2]}, %big : index\n"
    lines[number] = moved + re.sub(pattern, r"\1[%far]", lines[number])
    edited = build("\n".join(lines))
    with pytest.raises(IndexError, match=rf"edited\.mlir:{number + 3}:.*kernel\.{kind}'.*reaches"):
        edited(x)
    torch.testing.assert_close(build(text)(x)[0], torch.relu(x) * 2)


def test_memory_beyond_a_view_is_not_its_tensors() -> None:
    """An argument that is part of a larger storage: what lies around it is outside."""
    base = torch.arange(200.0)
    x = base[10:75]
    text = lowered(lambda x: x + 1, x)
    for step in (-1, 1):
        moved = f"%one = arith.constant {step} : index\n%far = arith.addi \\2, %one : index\n"
        load = r"(%\w+ = kernel\.load %\w+)\[(%\w+)\]"
        edited = re.sub(load, moved + r"\1[%far]", text, count=1)
        with pytest.raises(IndexError, match="reaches element"):
            build(edited)(base[10:74])  # four whole vectors: no tail with a mask


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.softmax(x, 1).sum(0),
        lambda x: x.t().contiguous() @ x + x.mean(),
        lambda x: torch.nn.functional.max_pool2d(x[None, None], 3, 2, 1).cumsum(-1),
        lambda x: torch.cat([x[1:], x.flip(0)])[:, ::2].index_select(0, torch.tensor([3, 0, 3])),
    ],
)
def test_right_programs_run_as_without(f) -> None:
    torch.manual_seed(2)
    x = torch.randn(9, 13)
    call = irc.compile(f, (x,), options={"check_bounds": True})
    torch.testing.assert_close(call(x), f(x))


def test_it_is_of_cpu_kernels() -> None:
    with pytest.raises(UserError, match="check_bounds is of kernels for a CPU"):
        irc.build(irc.parse(""), "triton", {"check_bounds": True})


def test_the_command_line(tmp_path, capsys) -> None:
    kind = "tensor<[4] x f32, strides [1]>"
    path = tmp_path / "double.mlir"
    path.write_text(
        f'func.func @main(%x: {kind}) -> {kind} attributes {{level = "layout"}} {{\n'
        f"%y = graph.add %x, %x : ({kind}, {kind}) -> {kind}\nfunc.return %y : {kind}\n}}"
    )
    assert main(["run", str(path), "--compiled", "--check-bounds"]) == 0
    assert main(["run", str(path), "--check-bounds"]) != 0
    assert "the interpreter checks in any case" in capsys.readouterr().err
