"""Small models of many Hugging Face architectures, built from configurations, without downloads.

Each entry has 2 layers and a hidden size near 64; weights are random under a fixed seed.
`ZOO[name]` gives an `Entry`: `make_model()` an eval-mode f32 model that returns tensors, and
`make_inputs(size)` its tensor arguments for one of the entry's two `sizes` (odd where the
architecture allows it: sequence length, or image side).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

BATCH = 2
VOCABULARY = 99


@dataclasses.dataclass(frozen=True)
class Entry:
    """One architecture: how to make its model and its inputs, and what kind it is."""

    name: str
    kind: str
    make_model: Callable[..., nn.Module]
    make_inputs: Callable[[int], tuple[torch.Tensor, ...]]
    sizes: tuple[int, int]
    fullgraph: bool = True
    # Programs that dynamic=True makes for the two sizes: more than 1 only where torch specializes.
    dynamic_graphs: int = 1
    # Only the first dimension is a symbol: torch alone traces for more than 8 minutes with all.
    batch_only: bool = False


ZOO: dict[str, Entry] = {}


class Outputs(nn.Module):
    """Wraps a model so that it takes tensors by position and returns its chosen output tensors."""

    def __init__(
        self,
        model: nn.Module,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        fixed: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.inputs = inputs
        self.outputs = outputs
        self.fixed = fixed or {}

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The named outputs of the wrapped model."""
        result = self.model(**dict(zip(self.inputs, tensors, strict=True)), **self.fixed)
        return tuple(getattr(result, name) for name in self.outputs)


class Decoder(nn.Module):
    """A causal model: prefill of the tokens given, then three cached steps of one token each.

    The steps take the most likely token of a fixed list, so every logit of every step is a result.
    """

    STEPS = 3

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Logits `[b, n, v]` of the prefill and `[b, 1, v]` of each step."""
        result = self.model(input_ids=tokens, attention_mask=mask, use_cache=True)
        logits = [result.logits]
        for step in range(self.STEPS):
            mask = torch.cat([mask, mask.new_ones(mask.shape[0], 1)], 1)
            token = tokens[:, step : step + 1]
            result = self.model(
                input_ids=token,
                attention_mask=mask,
                past_key_values=result.past_key_values,
                use_cache=True,
            )
            logits.append(result.logits)
        return tuple(logits)


def _generator(size: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 + size)


def text_inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Tokens and a mask whose second row has its last two positions switched off."""
    tokens = torch.randint(3, VOCABULARY, (BATCH, size), generator=_generator(size))
    mask = torch.ones(BATCH, size, dtype=torch.long)
    mask[1, -2:] = 0
    return tokens, mask


def causal_inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Tokens and a mask whose second row is padded on the left, as generation does it."""
    tokens, mask = text_inputs(size)
    return tokens, mask.flip(1)


def pair_inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Encoder tokens, their mask, and decoder tokens of another length."""
    tokens, mask = text_inputs(size)
    return tokens, mask, text_inputs(size - 2)[0]


def image_inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Images `[b, 3, size, size]`."""
    return (torch.randn(BATCH, 3, size, size, generator=_generator(size)),)


def batch_inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Images `[size, 3, 27, 27]`, for an architecture with a fixed image size."""
    return (torch.randn(size, 3, 27, 27, generator=_generator(size)),)


def sound_inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Waveforms of `16 * size` samples."""
    return (torch.randn(BATCH, 16 * size, generator=_generator(size)),)


def token_inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Tokens only."""
    return text_inputs(size)[:1]


COMMON = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 128, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip


def _build(model: str, config: str, options: dict[str, Any]) -> nn.Module:
    """The transformers class `model` from `config(**options)`, in eval mode, seeded."""
    import transformers

    made_config = getattr(transformers, config)(**options)
    torch.manual_seed(0)
    made = getattr(transformers, model)(made_config)
    _spread(made)
    return made.eval()


def _spread(model: nn.Module) -> None:
    """Give zero-initialised and one-initialised parameters and buffers values that matter."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, value in [*model.named_parameters(), *model.named_buffers()]:
            if not value.is_floating_point() or value.numel() < 2:
                continue
            if name.endswith(("running_var", "running_mean")) or bool(
                (value == value.flatten()[0]).all()
            ):
                noise = torch.rand(value.shape, generator=generator) * 0.2
                value.add_(noise.to(value.dtype))


def _add(
    name: str,
    kind: str,
    build: tuple[str, str, dict[str, Any]],
    wrap: Callable[[nn.Module], nn.Module],
    make_inputs: Callable[[int], tuple[torch.Tensor, ...]],
    sizes: tuple[int, int] = (17, 23),
    **flags: Any,
) -> None:
    model, config, options = build

    def make_model(**changes: Any) -> nn.Module:
        return wrap(_build(model, config, options | changes)).eval()

    ZOO[name] = Entry(name, kind, make_model, make_inputs, sizes, **flags)


def _encoder(name: str, model: str, **options: Any) -> None:
    def wrap(made: nn.Module) -> nn.Module:
        return Outputs(made, ("input_ids", "attention_mask"), ("last_hidden_state",))

    build = f"{model}Model", f"{model}Config", COMMON | options
    _add(name, "encoder", build, wrap, text_inputs)


def _decoder(name: str, model: str, suffix: str = "ForCausalLM", **options: Any) -> None:
    build = f"{model}{suffix}", f"{model}Config", COMMON | options
    _add(name, "decoder", build, Decoder, causal_inputs)


def _pair(name: str, model: str, **options: Any) -> None:
    def wrap(made: nn.Module) -> nn.Module:
        names = "input_ids", "attention_mask", "decoder_input_ids"
        return Outputs(made, names, ("logits",), {"use_cache": False})

    build = f"{model}ForConditionalGeneration", f"{model}Config", options
    _add(name, "encoder-decoder", build, wrap, pair_inputs)


def _vision(
    name: str,
    model: str,
    sizes: tuple[int, int],
    suffix: str = "Model",
    make_inputs: Callable[[int], tuple[torch.Tensor, ...]] = image_inputs,
    batch_only: bool = False,
    **options: Any,
) -> None:
    def wrap(made: nn.Module) -> nn.Module:
        output = "logits" if suffix != "Model" else "last_hidden_state"
        return Outputs(made, ("pixel_values",), (output,))

    build = f"{model}{suffix}", f"{model}Config", options
    _add(name, "vision", build, wrap, make_inputs, sizes, batch_only=batch_only)


_encoder("bert", "Bert")
_encoder("roberta", "Roberta", max_position_embeddings=66, pad_token_id=1, bos_token_id=0)
_encoder("distilbert", "DistilBert", dim=64, n_layers=2, n_heads=4, hidden_dim=128)
_encoder("electra", "Electra", embedding_size=32)
_encoder("albert", "Albert", embedding_size=32)
_encoder(
    "deberta_v2", "DebertaV2", relative_attention=True, position_buckets=8,
    norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"], conv_kernel_size=3,
)  # fmt: skip
_encoder("mpnet", "MPNet", pad_token_id=1, max_position_embeddings=66)
_encoder(
    "modernbert",
    "ModernBert",
    global_attn_every_n_layers=2,
    local_attention=8,
    cls_token_id=1,
    sep_token_id=2,
)

_decoder("gpt2", "GPT2", suffix="LMHeadModel", n_embd=64, n_layer=2, n_head=4, n_positions=64)
_decoder("llama", "Llama", num_key_value_heads=2)
_decoder("mistral", "Mistral", num_key_value_heads=2, sliding_window=8)
_decoder("qwen2", "Qwen2", num_key_value_heads=2)
_decoder("gemma", "Gemma", num_key_value_heads=1, head_dim=16)
_decoder("opt", "OPT", ffn_dim=128, word_embed_proj_dim=64, pad_token_id=1)
_decoder("gpt_neox", "GPTNeoX")
_decoder("phi", "Phi", partial_rotary_factor=0.5)
_decoder("bloom", "Bloom", n_layer=2, n_head=4)
_decoder("falcon", "Falcon", alibi=False, new_decoder_architecture=False)
_decoder("gptj", "GPTJ", n_embd=64, n_layer=2, n_head=4, n_positions=64, rotary_dim=8)
_decoder("mixtral", "Mixtral", num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
         experts_implementation="batched_mm")  # fmt: skip
_decoder(
    "qwen2_moe", "Qwen2Moe", num_key_value_heads=2, num_experts=4, num_experts_per_tok=2,
    moe_intermediate_size=32, shared_expert_intermediate_size=64,
    experts_implementation="batched_mm",
)  # fmt: skip

_pair(
    "t5", "T5", vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2,
    num_heads=4, pad_token_id=0, decoder_start_token_id=0,
)  # fmt: skip
_pair(
    "bart", "Bart", vocab_size=VOCABULARY, d_model=64, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
    max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2,
    decoder_start_token_id=2, forced_eos_token_id=None,
)  # fmt: skip

_CLASSIFIER = "ForImageClassification"
_STAGES = {
    "num_channels": 3,
    "embedding_size": 16,
    "hidden_sizes": [16, 32, 48, 64],
    "num_labels": 7,
}
_vision("resnet", "ResNet", (65, 71), suffix=_CLASSIFIER, depths=[1, 1, 2, 1], **_STAGES)
_vision(
    "regnet", "RegNet", (65, 71), suffix=_CLASSIFIER, depths=[1, 1, 2, 1], groups_width=8, **_STAGES
)
_vision(
    "convnext", "ConvNext", (65, 97), suffix=_CLASSIFIER, depths=[1, 1, 2, 1],
    hidden_sizes=[16, 32, 48, 64], num_labels=7,
)  # fmt: skip
# Sides that stay odd through all strides: torch guards on their parity.
_vision(
    "mobilenet_v2", "MobileNetV2", (65, 97), suffix=_CLASSIFIER, depth_multiplier=0.25, num_labels=7
)
_vision("efficientnet", "EfficientNet", (65, 71), suffix=_CLASSIFIER, width_coefficient=0.25,
        depth_coefficient=0.3, hidden_dim=320, num_labels=7)  # fmt: skip
_vision(
    "vit", "ViT", (5, 7), make_inputs=batch_inputs, hidden_size=64, num_hidden_layers=2,
    num_attention_heads=4, intermediate_size=128, image_size=27, patch_size=3,
)  # fmt: skip
_vision(
    "swin", "Swin", (5, 7), make_inputs=batch_inputs, image_size=64, patch_size=4, embed_dim=16,
    depths=[1, 1], num_heads=[2, 4], window_size=3, batch_only=True,
)  # fmt: skip


def _wav2vec2(made: nn.Module) -> nn.Module:
    return Outputs(made, ("input_values",), ("last_hidden_state",))


_add(
    "wav2vec2", "audio",
    ("Wav2Vec2Model", "Wav2Vec2Config", {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "conv_dim": (32, 32, 32), "conv_stride": (4, 2, 2),
        "conv_kernel": (8, 3, 3), "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4,
    }),
    _wav2vec2, sound_inputs, (51, 67),
)  # fmt: skip


def _whisper(made: nn.Module) -> nn.Module:
    names = "input_features", "decoder_input_ids"
    return Outputs(made, names, ("logits",), {"use_cache": False})


def whisper_inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Spectra of fixed length, as the architecture wants, and decoder tokens."""
    spectra = torch.randn(BATCH, 16, 60, generator=_generator(size))
    return spectra, text_inputs(size)[0]


_add(
    "whisper", "audio",
    ("WhisperForConditionalGeneration", "WhisperConfig", {
        "vocab_size": VOCABULARY, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
        "decoder_ffn_dim": 128, "num_mel_bins": 16, "max_source_positions": 30,
        "max_target_positions": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None,
    }),
    _whisper, whisper_inputs,
)  # fmt: skip


def _mamba(made: nn.Module) -> nn.Module:
    return Outputs(made, ("input_ids",), ("logits",), {"use_cache": False})


_add(
    "mamba", "state space",
    ("MambaForCausalLM", "MambaConfig", {
        "vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 2, "state_size": 8,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    }),
    # Its scan is a Python loop over the tokens: torch itself makes a program a length.
    _mamba, token_inputs, (7, 9), dynamic_graphs=2,
)  # fmt: skip


# Architectures whose programs have what those above lack.


def _other(
    name: str,
    kind: str,
    model: str,
    config: str,
    options: dict[str, Any],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    make_inputs: Callable[[int], tuple[torch.Tensor, ...]],
    sizes: tuple[int, int] = (17, 23),
    fixed: dict[str, Any] | None = None,
    **flags: Any,
) -> None:
    def wrap(made: nn.Module) -> nn.Module:
        return Outputs(made, inputs, outputs, fixed)

    _add(name, kind, (model, config, options), wrap, make_inputs, sizes, **flags)


def pixels(side: int) -> Callable[[int], tuple[torch.Tensor, ...]]:
    """Images `[size, 3, side, side]`, for an architecture with a fixed image size."""

    def make(size: int) -> tuple[torch.Tensor, ...]:
        return (torch.randn(size, 3, side, side, generator=_generator(size)),)

    return make


def captioned_inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Tokens of which the first four stand for an image, their mask, and the images."""
    tokens, mask = causal_inputs(size)
    tokens = torch.where(tokens == 3, 4, tokens)
    tokens[:, :4] = 3
    return tokens, torch.ones_like(mask), pixels(27)(BATCH)[0]


NAMES = "input_ids", "attention_mask"
_PLAIN = {k: v for k, v in COMMON.items() if k == "vocab_size" or k.endswith("token_id")}
_NO_CACHE = {"use_cache": False}
_VIT = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    "image_size": 27, "patch_size": 3,
}  # fmt: skip

# Relative shifts.
_other(
    "xlnet", "encoder", "XLNetModel", "XLNetConfig",
    _PLAIN | {"d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128},
    NAMES, ("last_hidden_state",), text_inputs, fixed={"use_mems": False},
)  # fmt: skip
# Latents that attend to the input.
_other(
    "perceiver", "encoder", "PerceiverForMaskedLM", "PerceiverConfig",
    COMMON | {"d_model": 32, "d_latents": 64, "num_latents": 8, "num_blocks": 1,
              "num_self_attends_per_block": 2, "num_self_attention_heads": 4,
              "num_cross_attention_heads": 4, "qk_channels": 32, "v_channels": 64},
    ("inputs", "attention_mask"), ("logits",), text_inputs,
)  # fmt: skip
# A scan in chunks.
_other(
    "mamba2", "state space", "Mamba2ForCausalLM", "Mamba2Config",
    _PLAIN | {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8, "num_heads": 4,
              "head_dim": 32, "n_groups": 2, "chunk_size": 8},
    NAMES, ("logits",), causal_inputs, fixed=_NO_CACHE,
)  # fmt: skip
# Gated relative positions; codebooks with transposed convolutions; kernels predicted from spectra.
_add(
    "wavlm", "audio",
    ("WavLMModel", "WavLMConfig", {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "conv_dim": (32, 32, 32), "conv_stride": (4, 2, 2),
        "conv_kernel": (8, 3, 3), "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4, "num_buckets": 32, "max_bucket_distance": 40,
    }),
    _wav2vec2, sound_inputs, (51, 67),
)  # fmt: skip
_other(
    "dac", "audio", "DacModel", "DacConfig",
    {"encoder_hidden_size": 8, "downsampling_ratios": [2, 4], "decoder_hidden_size": 32,
     "n_codebooks": 2, "codebook_size": 32, "codebook_dim": 4},
    ("input_values",), ("audio_values",),
    lambda size: (torch.randn(BATCH, 1, 8 * size, generator=_generator(size)),), (13, 17),
)  # fmt: skip
_other(
    "univnet", "audio", "UnivNetModel", "UnivNetConfig",
    {"model_in_channels": 8, "model_hidden_channels": 8, "num_mel_bins": 16,
     "resblock_kernel_sizes": [3], "resblock_stride_sizes": [4],
     "resblock_dilation_sizes": [[1, 3]], "kernel_predictor_num_blocks": 1,
     "kernel_predictor_hidden_channels": 8},
    ("input_features", "noise_sequence"), ("waveforms",),
    lambda size: (torch.randn(BATCH, size, 16, generator=_generator(size)),
                  torch.randn(BATCH, size, 8, generator=_generator(size + 1))),
)  # fmt: skip
# Two towers; an image's tokens put where a mask holds.
_other(
    "clip", "multimodal", "CLIPModel", "CLIPConfig",
    {"text_config": COMMON, "vision_config": _VIT, "projection_dim": 24},
    (*NAMES, "pixel_values"), ("logits_per_image", "logits_per_text"),
    lambda size: (*text_inputs(size), pixels(27)(BATCH)[0]),
)  # fmt: skip
_other(
    "blip_2", "multimodal", "Blip2ForConditionalGeneration", "Blip2Config",
    {"vision_config": _VIT, "num_query_tokens": 4, "image_token_index": 3,
     "qformer_config": COMMON | {"encoder_hidden_size": 64, "cross_attention_frequency": 2},
     "text_config": COMMON | {"model_type": "opt", "ffn_dim": 128, "word_embed_proj_dim": 64}},
    (*NAMES, "pixel_values"), ("logits",), captioned_inputs, fixed=_NO_CACHE,
)  # fmt: skip

# One of each kind of layer or block: what is held of these on every change.
SMALL: dict[str, Entry] = {
    name: dataclasses.replace(ZOO[name], make_model=partial(ZOO[name].make_model, **changes))
    for name, changes in {
        "bert": {"num_hidden_layers": 1},
        "gpt2": {"n_layer": 1},
        "llama": {"num_hidden_layers": 1},
        "resnet": {"depths": [1, 1], "hidden_sizes": [16, 32]},
        "univnet": {},
    }.items()
}
