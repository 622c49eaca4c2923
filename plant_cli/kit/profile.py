"""The options that every Hugging Face backbone takes; imports no torch."""

from __future__ import annotations

from typing import Literal

from plant_cli.api import Options, option

Adapter = Literal["full", "lora", "dora", "none"]
Quantization = Literal["none", "nf4", "int8"]


class HuggingFaceOptions(Options):
    """Options of Hugging Face models."""

    max_tokens: int = option(4096, "Tokens kept of a document; what lies beyond is counted and reported.", ge=1)
    window: int | None = option(None, "Positions of one window (default: what the model can read).", ge=8)
    overlap: int = option(32, "Tokens that neighbouring windows of a long document have in common; their hidden states are averaged.", ge=0)
    adapter: Adapter = option(
        "full", "What fine-tuning may change: all weights, low-rank adapters (lora; dora learns lengths apart from directions), or nothing."
    )
    lora_rank: int = option(16, "Rank r of the adapters.", ge=1)
    lora_alpha: float = option(32.0, "Scale α of the adapters; the update is multiplied by α/r.", gt=0)
    lora_dropout: float = option(0.05, "Dropout before the adapters.", ge=0, lt=1)
    quantization: Quantization = option(
        "none", "Frozen weights in fewer bits. nf4: 4 bits, double quantisation, computing in bf16. int8: 8 bits, outliers in fp16."
    )
    gradient_checkpointing: bool = option(False, "Recompute activations in the backward pass: less memory, about a third slower.")
    trust_remote_code: bool = option(
        False,
        "Run code that comes with the model. Only for sources you trust; counts on the command line and in a recipe that you name, never "
        "from a run folder.",
        consent=True,
    )


class FrozenOptions(HuggingFaceOptions):
    """Options of small encoders that come with their weights: as they are, unless asked otherwise."""

    adapter: Adapter = option(
        "none",
        "What fine-tuning may change: nothing (hidden states are then computed once and cached), adapters (lora, dora), or all weights.",
    )


class EncoderOptions(HuggingFaceOptions):
    """Options of models by name: which model of the hub, and where adapters go."""

    model: str = option(help="Hub id or local folder of the model.")
    revision: str | None = option(None, "Commit, tag or branch of a hub model (default: the commit pinned here, else the newest).")
    adapter_targets: list[str] | None = option(
        None, "Names of the linear maps that get low-rank adapters (default: those of the attention, by the model's architecture)."
    )


class CausalOptions(EncoderOptions):
    """Options of causal models: adapters on 4-bit weights unless asked otherwise."""

    adapter: Adapter = option(
        "lora", "What fine-tuning may change: low-rank adapters (lora; dora learns lengths apart from directions), all weights, or nothing."
    )
    quantization: Quantization = option(
        "nf4", "Frozen weights in fewer bits. nf4: 4 bits, double quantisation, computing in bf16. int8: 8 bits, outliers in fp16."
    )
    gradient_checkpointing: bool = option(True, "Recompute activations in the backward pass: less memory, about a third slower.")
