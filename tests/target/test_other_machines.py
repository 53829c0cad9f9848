"""Programs for processors that aren't this one, with other numbers of threads: each compiles down
to kernels that fit, whoever multiplies there by that processor's figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import irc
from irc.options.options import from_mapping
from irc.pipeline import lower
from tests.passes.frozen.freezing_support import known_program
from tests.target.machines import MACHINES


class Attention(nn.Module):
    """Heads of 32 elements of the same array."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.together, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.together(x).unflatten(-1, (3, -1, 32)).permute(2, 0, 3, 1, 4)
        heads = nn.functional.scaled_dot_product_attention(*parts.unbind(0))
        return self.out(heads.transpose(1, 2).flatten(2))


def layers() -> tuple[nn.Module, torch.Tensor]:
    """Two layers of a transformer's, and few of the terms a multiple of a vector."""
    return (nn.Sequential(nn.Linear(2050, 520), nn.GELU(), nn.Linear(520, 96)),
            torch.empty(7, 21, 2050))  # fmt: skip


def pixels() -> tuple[nn.Module, torch.Tensor]:
    """Convolutions of single pixels, with what follows them: 196 places, 2048 terms."""
    model = nn.Sequential(nn.Conv2d(2048, 512, 1, bias=False), nn.BatchNorm2d(512), nn.ReLU(),
                          nn.Conv2d(512, 64, 1), nn.ReLU())  # fmt: skip
    return model, torch.empty(4, 2048, 7, 7)


class Block(nn.Module):
    """A layer for each place of an image, whose rows are counted by a quotient of its pixels."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def patches() -> tuple[nn.Module, torch.Tensor]:
    """Convolutions of patches, of which an image of few pixels, and so of symbols, has none."""
    model = nn.Sequential(nn.Conv2d(3, 64, 4, 4), Block(64), nn.Conv2d(64, 128, 2, 2), Block(128),
                          nn.Conv2d(128, 256, 2, 2), Block(256))  # fmt: skip
    return model, torch.empty(2, 3, 96, 96)


def attention() -> tuple[nn.Module, torch.Tensor]:
    return Attention(128), torch.empty(3, 70, 128)


PROGRAMS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    program.__name__: program for program in (layers, pixels, patches, attention)
}


@pytest.mark.parametrize("kind", ["static", "dynamic", "frozen", "bf16", "bf16 frozen"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", MACHINES)
def test_programs_are_compiled_for_it(name: str, program: str, kind: str) -> None:
    torch.manual_seed(0)
    model, x = PROGRAMS[program]()
    if "bf16" in kind:
        model, x = model.bfloat16(), x.bfloat16()
    frozen = "frozen" in kind
    if frozen:
        module = known_program(model.eval(), x)
    else:
        module = irc.trace(model.eval(), (x,), dynamic=kind == "dynamic")
    lower(module, MACHINES[name], from_mapping({"freezing": frozen}))
    assert module.lookup("main") is not None
