"""Channels-last through forward and backward: values, strides, and the copies that are left."""

from __future__ import annotations

import attrs
import pytest
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


class Kinds(nn.Module):
    """Two convolutions of other kinds, one after the other."""

    def __init__(self, *convolutions: nn.Module) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(convolutions)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for convolution in self.convolutions:
            x = nn.functional.gelu(convolution(x))
        return x.flatten(1)


KINDS = {
    "groups": ((5, 6, 7, 9), nn.Conv2d(6, 9, 3, groups=3), nn.Conv2d(9, 4, 2)),
    "depthwise": ((2, 6, 9, 7), nn.Conv2d(6, 6, 5, padding="same", groups=6), nn.Conv2d(6, 6, 1)),
    "transposed": ((2, 5, 4, 3), nn.ConvTranspose2d(5, 3, 3, 2, 1, 1), nn.Conv2d(3, 3, 3)),
    "dilated": ((3, 4, 11, 13), nn.Conv2d(4, 7, 3, dilation=(2, 3), stride=2), nn.Conv2d(7, 1, 1)),
    "3-d": ((2, 3, 4, 5, 6), nn.Conv3d(3, 4, 2), nn.ConvTranspose3d(4, 3, 2)),
    "pooled": ((2, 4, 9, 8), nn.Conv2d(4, 5, 3), nn.AvgPool2d(2, 1), nn.Conv2d(5, 3, 2),
               nn.AdaptiveAvgPool2d((2, 3)), nn.MaxPool2d(2)),
    "one channel": ((3, 1, 8, 7), nn.Conv2d(1, 6, 3), nn.Conv2d(6, 1, 3)),
    "upsampled": ((2, 3, 4, 5), nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2),
                  nn.Conv2d(4, 3, 1)),
    "normalized": ((2, 4, 6, 5), nn.Conv2d(4, 6, 3), nn.GroupNorm(2, 6), nn.Conv2d(6, 4, 1),
                   nn.InstanceNorm2d(4, affine=True), nn.BatchNorm2d(4)),
    "shuffled": ((2, 4, 6, 5), nn.Conv2d(4, 8, 3), nn.PixelShuffle(2), nn.Conv2d(2, 3, 1)),
    "padded": ((2, 4, 6, 5), nn.ReflectionPad2d(1), nn.Conv2d(4, 4, 3), nn.ZeroPad2d(2),
               nn.Conv2d(4, 2, 3, bias=False)),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_steps_of_kinds_of_convolutions_are_eagers(name: str) -> None:
    shape, *parts = KINDS[name]
    torch.manual_seed(2)
    for part in parts:
        getattr(part, "reset_parameters", lambda: None)()
    programs = trained(Kinds(*parts), images(*shape))
    assert any(any(p.images_last) for p in programs), [p.images_last for p in programs]


class Seen(nn.Module):
    """An image that is saved is returned as well; so is a part of another one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 5, 3), nn.Conv2d(5, 4, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.tanh(self.first(x))
        z = self.second(y).sigmoid()
        return y, z[:, :2], z.square().mean((2, 3))


def test_what_the_caller_sees_has_eagers_strides() -> None:
    torch.manual_seed(3)
    trained(Seen(), images(2, 3, 9, 8))


def test_images_that_eager_has_channels_last_stay_so() -> None:
    torch.manual_seed(4)
    model = Net().to(memory_format=torch.channels_last)
    forward, backward = trained(model, images(2, 3, 21, 19).to(memory_format=torch.channels_last))
    assert all(forward.images_last) and all(backward.images_last)
    assert not forward.copies and not backward.copies


@pytest.mark.parametrize("training", [True, False])
def test_sizes_may_be_symbols(training: bool) -> None:
    torch.manual_seed(5)
    trained(Net().train(training), images(3, 3, 21, 19), dynamic=True)


def test_without_layout_optimization_all_is_as_in_eager() -> None:
    torch.manual_seed(6)
    programs = trained(Net(), images(2, 3, 21, 19), layout_optimization=False)
    for program in programs:
        assert not any(program.images_last) and not program.copies


def test_f32_keeps_its_layout_while_tf32_could_take_its_place() -> None:
    """On a GPU; here all arrays lie on the CPU, so the element alone decides: f32 is computed row
    by row there."""
    torch.manual_seed(7)
    for program in trained(Net(), images(2, 3, 21, 19), target=GPU):
        assert not any(program.images_last) and not program.copies
        assert not program.told("wanted")


def test_doubles_are_never_channels_last_on_a_gpu() -> None:
    torch.manual_seed(8)
    model = Kinds(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)).double()
    every = attrs.evolve(GPU, processor=attrs.evolve(GPU.processor, channels_last=("f64",)))
    for program in trained(model, images(2, 3, 9, 8, dtype=torch.float64), target=every):
        assert not any(program.images_last)


def test_a_step_is_eagers_with_its_loops_fused() -> None:
    """Sums and moments over channels-last images are split, and what is done to them is grouped."""
    torch.manual_seed(9)
    programs = trained(Net(0, 64), images(4, 3, 77, 77), last="fuse-loops")
    assert programs[0].context.statistics["split-reductions", "split"] == 1


def test_running_statistics_are_written_in_their_place() -> None:
    torch.manual_seed(10)
    forward, _ = trained(nn.BatchNorm2d(8), images(2, 8, 3, 4), last="kernel-to-host")
    assert forward.context.statistics["bufferize", "updates without a copy"] == 3
