"""The options that every Hugging Face backbone takes; imports no torch."""

from __future__ import annotations

from typing import Literal

from plant_cli.api import Options, option


class HuggingFaceOptions(Options):
    """Options shared by backbones that are Hugging Face models."""

    max_tokens: int = option(4096, "Tokens kept of a document; what lies beyond is counted and reported.", ge=1)
    window: int | None = option(None, "Positions of one window (default: what the model can read).", ge=8)
    overlap: int = option(32, "Tokens that neighbouring windows of a long document have in common; their hidden states are averaged.", ge=0)
    adapter: Literal["full", "lora", "none"] = option(
        "full", "What fine-tuning may change: all weights, low-rank adapters on them, or nothing."
    )
    lora_rank: int = option(16, "Rank r of the adapters.", ge=1)
    lora_alpha: float = option(32.0, "Scale α of the adapters; the update is multiplied by α/r.", gt=0)
    lora_dropout: float = option(0.05, "Dropout before the adapters.", ge=0, lt=1)
    quantization: Literal["none", "nf4"] = option("none", "nf4: frozen weights in 4 bits with double quantisation, computing in bf16.")
    gradient_checkpointing: bool = option(False, "Recompute activations in the backward pass: less memory, about a third slower.")
    trust_remote_code: bool = option(False, "Run code that comes with the model. Only for sources you trust.")
