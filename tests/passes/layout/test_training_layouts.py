"""Channels-last through forward and backward: values, strides, and the copies that are left."""

from __future__ import annotations

import torch
from torch import nn

from tests.passes.layout.training import GPU, trained


class Block(nn.Module):
    """ResNet's: three convolutions with batch norms, and what came in added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        sizes = (1, 3, 1)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels, channels, k, padding=k // 2, bias=False) for k in sizes
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in sizes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            y = norm(convolution(y))
            y = torch.relu(y + x if convolution is self.convolutions[-1] else y)
        return y


class Net(nn.Module):
    """ResNet with one size of images."""

    def __init__(self, blocks: int = 1, channels: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(*[Block(channels) for _ in range(blocks)])
        self.head = nn.Linear(channels, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.norm(self.stem(x))))
        return self.head(self.blocks(x).mean((2, 3)))


def images(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(dtype)


def test_resnet_in_bf16_copies_weights_and_its_input_only() -> None:
    torch.manual_seed(0)
    model = Net(2).to(torch.bfloat16)
    forward, backward = trained(
        model, images(2, 3, 33, 31, dtype=torch.bfloat16), target=GPU, check=False
    )
    assert all(forward.images_last) and len(forward.calls) == 7
    # The stem's image and weight, and the weight of each 3x3 convolution.
    assert sorted(tuple(c.source.type.shape) for c in forward.copies) == [
        (2, 3, 33, 31), (8, 3, 7, 7), (8, 8, 3, 3), (8, 8, 3, 3)
    ]  # fmt: skip
    assert all(backward.images_last) and len(backward.calls) == 7
    # The same again, the gradients of the weights, and of the image, which somebody wants.
    assert sorted(tuple(c.source.type.shape) for c in backward.copies) == [
        (2, 3, 33, 31), (2, 3, 33, 31),
        *[(8, 3, 7, 7)] * 2, *[(8, 8, 3, 3)] * 4,
    ]  # fmt: skip


def test_a_step_of_resnet_is_eagers() -> None:
    torch.manual_seed(1)
    forward, backward = trained(Net(), images(3, 3, 21, 19))
    assert all(forward.images_last) and all(backward.images_last)
    eval_forward, eval_backward = trained(Net().eval(), images(3, 3, 21, 19))
    assert all(eval_forward.images_last) and all(eval_backward.images_last)
