"""Language models of published sizes with random weights in 4 bits, made map by map: no hub,
never the whole model at full precision.
"""

from __future__ import annotations

from typing import Any

import plant_backbones
import torch
from plant_backbones import quantization
from plant_backbones.huggingface import HuggingFaceBackbone, Profile, prepare_network
from plant_backbones.profile import ATTENTION, CausalOptions
from torch import nn

TARGETS = {
    family.name: family.targets
    for family in plant_backbones.FAMILIES
    if family.kind == "causal" and family.models
}
TARGETS["smollm2"] = ATTENTION
# What config.json says of Mistral-7B-Instruct-v0.3, Llama-3.1-8B, DeepSeek-R1-Distill-Qwen-7B,
# Phi-3-mini-4k-instruct and SmolLM2-135M.
SIZES: dict[str, dict[str, Any]] = {
    "mistral": {
        "model_type": "mistral",
        "vocab_size": 32768,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 32768,
        "sliding_window": None,
    },
    "llama3": {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
    },
    # DeepSeek-V3 itself has 671 billion parameters: 340 GB in 4 bits, more than one card holds
    "deepseek": {
        "model_type": "qwen2",
        "vocab_size": 152064,
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "max_position_embeddings": 131072,
    },
    "phi3": {
        "model_type": "phi3",
        "vocab_size": 32064,
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "max_position_embeddings": 4096,
        "sliding_window": 2047,
        "pad_token_id": 32000,
    },
    "smollm2": {
        "model_type": "llama",
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 8192,
    },
}
SMALL = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
}
START = 1  # the id of the token that begins a text


def configuration(family: str, *, small: bool) -> Any:
    """The family's published configuration, or one of the same kind that a processor trains in
    a moment.
    """
    from transformers import AutoConfig

    sizes = SIZES[family]
    if small:
        grouped = sizes["num_key_value_heads"] < sizes["num_attention_heads"]
        sizes = {**sizes, **SMALL, "num_key_value_heads": 2 if grouped else 4}
    return AutoConfig.for_model(**sizes)


def empty_network(config: Any, options: CausalOptions) -> tuple[Any, Any]:
    """The network without weights, its linear maps those of bitsandbytes; and transformers'
    quantiser.
    """
    from accelerate import init_empty_weights
    from transformers import AutoModel
    from transformers.quantizers import AutoHfQuantizer

    quantizer = AutoHfQuantizer.from_config(
        quantization.loading_arguments(options, "auto")["quantization_config"], pre_quantized=False
    )
    with init_empty_weights(include_buffers=False):
        network = AutoModel.from_config(config, dtype=torch.bfloat16)
    quantizer.preprocess_model(model=network, device_map=None)
    return network, quantizer


def random_network(config: Any, options: CausalOptions, device: torch.device) -> Any:
    """The network as `from_pretrained` would load it; one map at a time is drawn in bf16 on the
    device and quantised there.
    """
    from bitsandbytes.nn import Params4bit

    network, quantizer = empty_network(config, options)
    draw = torch.Generator(device).manual_seed(0)
    for name, parameter in list(network.named_parameters()):
        place, _, leaf = name.rpartition(".")
        values = torch.zeros(parameter.shape, dtype=torch.bfloat16, device=device)
        if parameter.ndim > 1:
            values.normal_(std=0.02, generator=draw)
        elif leaf == "weight":  # of a norm
            values.fill_(1.0)
        if isinstance(parameter, Params4bit):
            drawn = Params4bit(values, requires_grad=False, **vars(parameter)).to(device)
        else:
            drawn = nn.Parameter(values, requires_grad=False)
        setattr(network.get_submodule(place), leaf, drawn)
    quantizer.postprocess_model(network)
    network.hf_quantizer = quantizer
    nn.Module.to(network, device)  # the positions' frequencies
    return network


class RandomBackbone(HuggingFaceBackbone):
    """A family's backbone over random weights. It has no tokenizer: it reads batches of token
    ids.
    """

    def __init__(
        self, family: str, config: Any, options: CausalOptions, device: torch.device, window: int
    ) -> None:
        profile = Profile(
            model=family, adapter_targets=TARGETS[family], kind="causal", device=str(device)
        )
        network = random_network(config, options, device)
        network = quantization.freeze(network, options, torch.bfloat16)
        self.network = prepare_network(network, profile, options)
        self.window, self.overlap, self.max_length = window, options.overlap, options.max_tokens
        self.hidden_size = config.hidden_size
        self.prefix, self.suffix, self.pad = [START], [], 0
        self.profile, self.options, self.adapted, self.tokenizer_hash = profile, options, True, ""
