"""Backbones `hf-encoder` and `hf-causal`: the same profile for any model; a family of its own only fixes the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plant_cli.api import Backbone, BackboneSpec, MachineSection, hookimpl, option
from plant_cli.kit.profile import HuggingFaceOptions


class EncoderOptions(HuggingFaceOptions):
    """Options of `hf-encoder`."""

    model: str = option(help="Hub id or local folder of the model.")
    revision: str | None = option(None, "Pinned revision of a hub model.")
    adapter_targets: list[str] = option(
        ["query", "key", "value", "attention.output.dense"], "Names of the linear maps that get low-rank adapters."
    )


class CausalOptions(EncoderOptions):
    """Options of `hf-causal`."""

    adapter: Literal["full", "lora", "none"] = option(
        "lora", "What fine-tuning may change: all weights, low-rank adapters on them, or nothing."
    )
    adapter_targets: list[str] = option(["q_proj", "k_proj", "v_proj", "o_proj"], "Names of the linear maps that get low-rank adapters.")


def load_encoder(options: EncoderOptions, machine: MachineSection) -> Backbone:
    """Load a bidirectional model."""
    return _load(options, "encoder")


def load_causal(options: CausalOptions, machine: MachineSection) -> Backbone:
    """Load a left-to-right model; its language-model head is left out."""
    return _load(options, "causal")


def _load(options: EncoderOptions, kind: Literal["encoder", "causal"]) -> Backbone:
    from plant_cli.kit.huggingface import HuggingFaceBackbone, Profile

    profile = Profile(model=options.model, revision=options.revision, adapter_targets=tuple(options.adapter_targets), kind=kind)
    return HuggingFaceBackbone(profile, options)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The two generic backbones."""
    return [
        BackboneSpec(
            name="hf-encoder",
            summary="Any Hugging Face encoder (BERT, RoBERTa, ModernBERT …): --set model.backbone.model=FOLDER.",
            options=EncoderOptions,
            load=load_encoder,
        ),
        BackboneSpec(
            name="hf-causal",
            summary="Any Hugging Face causal model (Mistral, LLaMA, Phi …) with low-rank adapters, 4-bit if asked for.",
            options=CausalOptions,
            load=load_causal,
        ),
    ]
