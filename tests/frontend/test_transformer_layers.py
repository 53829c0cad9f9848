"""torch's fused operators for transformer layers are taken apart: values, NaN and strides stay."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from irc.frontend.backend import recording
from tests.accuracy import inaccurate
from tests.backends import needs_backend

pytestmark = needs_backend
MASKS = {
    "no mask": {},
    "keys": {"src_key_padding_mask": torch.arange(7) >= torch.tensor([[7], [4], [0]])},
    "positions": {"src_mask": torch.ones(7, 7).triu(1).bool()},
    "both": {
        "src_mask": torch.full((7, 7), -torch.inf).triu(1),
        "src_key_padding_mask": torch.zeros(3, 7).masked_fill(torch.arange(7) == 2, -torch.inf),
    },
}


def compared(module: nn.Module, *inputs: torch.Tensor, **masks: torch.Tensor) -> None:
    """The compiled module is as accurate as eager mode and leaves no fused operator to ATen."""
    torch._dynamo.reset()
    module = module.eval()
    with torch.no_grad(), recording() as made:
        mine = torch.compile(module, backend="irc", fullgraph=True)(*inputs, **masks)
    with torch.no_grad():
        eager = module(*inputs, **masks)
        wide = {k: m.double() if m.is_floating_point() else m for k, m in masks.items()}
        exact = module.double()(*(x.double() for x in inputs), **wide)
    flat = [
        [t for t in (each if isinstance(each, tuple) else (each,)) if t is not None]
        for each in (mine, eager, exact)
    ]
    assert not inaccurate(*flat)
    assert [t.stride() for t in flat[0]] == [t.stride() for t in flat[1]]
    text = "".join(str(each.imported.module) for each in made)
    assert "aten._native" not in text and "aten._transformer" not in text


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("norm_first", "activation"), [(False, "relu"), (True, "gelu")])
def test_encoder_layer(mask, norm_first, activation):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        12, 3, 20, batch_first=True, norm_first=norm_first, activation=activation
    )
    compared(layer, torch.randn(3, 7, 12), **MASKS[mask])


@pytest.mark.parametrize("average", [True, False])
def test_attention_with_weights(average):
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(12, 3, batch_first=True)
    x, mask = torch.randn(3, 7, 12), MASKS["keys"]["src_key_padding_mask"]

    class Weights(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x, mask):
            return self.attention(
                x, x, x, key_padding_mask=mask, average_attn_weights=average
            )

    compared(Weights(), x, mask=mask)
