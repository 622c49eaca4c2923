"""Hugging Face models as data: their options, and families that name models and attention
layers. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import create_model

from plant_cli.api import Backbone, BackboneSpec, MachineSection, Options, option

if TYPE_CHECKING:
    from torch import Tensor

BERT_ATTENTION = (
    "query",
    "key",
    "value",
    "attention.output.dense",
)  # the names in BERT and its descendants
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")  # the names in most architectures
Adapter = Literal["full", "lora", "dora", "none"]
Quantization = Literal["none", "nf4", "int8"]
RECOMPUTE = "Recompute activations in the backward pass: less memory, about a third slower."


class HuggingFaceOptions(Options):
    """Options of Hugging Face models."""

    max_tokens: int = option(
        4096, "Tokens kept of a document; what lies beyond is counted and reported.", ge=1
    )
    window: int | None = option(
        None, "Positions of one window (default: what the model can read).", ge=8
    )
    overlap: int = option(
        32,
        "Tokens that neighbouring windows of a long document have in common; their hidden states "
        "are averaged.",
        ge=0,
    )
    adapter: Adapter = option(
        "full", "What fine-tuning may change: all weights, adapters (lora, dora), or nothing."
    )
    lora_rank: int = option(16, "Rank r of the adapters.", ge=1)
    lora_alpha: float = option(
        32.0, "Scale α of the adapters; the update is multiplied by α/r.", gt=0
    )
    lora_dropout: float = option(0.05, "Dropout before the adapters.", ge=0, lt=1)
    quantization: Quantization = option(
        "none",
        "Frozen weights in fewer bits. nf4: 4 bits, computed in bf16. int8: 8 bits, outliers in "
        "fp16.",
    )
    expand_weights: bool | None = option(
        None,
        "Keep the numbers of 4-bit weights in bf16: the same results, faster, four times the "
        "memory. "
        "Default: on a graphics card where they take at most 40% of its free memory.",
    )
    cuda_graphs: bool = option(
        True,
        "On a graphics card, replay the passes of a batch (CUDA graphs), where a causal model in "
        "4 bits has adapters and activations take "
        "at most half of the free memory.",
    )
    gradient_checkpointing: bool | None = option(False, RECOMPUTE)
    trust_remote_code: bool = option(
        False,
        "Run code that comes with the model. Only for sources you trust; counts on the command "
        "line and in a recipe that you name, never "
        "from a run folder.",
        consent=True,
    )


class FrozenOptions(HuggingFaceOptions):
    """Options of small encoders that come with their weights: as they are, unless asked
    otherwise.
    """

    adapter: Adapter = option(
        "none",
        "What fine-tuning may change: nothing (states are cached), adapters (lora, dora), or all "
        "weights.",
    )


class EncoderOptions(HuggingFaceOptions):
    """Options of models by name: which model of the hub, and where adapters go."""

    model: str = option(help="Hub id or local folder of the model.", hub=())
    revision: str | None = option(
        None,
        "Commit, tag or branch of a hub model (default: the commit pinned here, else the newest).",
    )
    adapter_targets: list[str] | None = option(
        None, "Linear maps that get adapters, by name (default: those of the attention)."
    )


class CausalOptions(EncoderOptions):
    """Options of causal models: adapters on 4-bit weights unless asked otherwise."""

    adapter: Adapter = option(
        "lora", "What fine-tuning may change: adapters (lora, dora), all weights, or nothing."
    )
    quantization: Quantization = option(
        "nf4",
        "Frozen weights in fewer bits. nf4: 4 bits, computed in bf16. int8: 8 bits, outliers in "
        "fp16.",
    )
    gguf: str | None = option(
        None,
        "GGUF file in the folder `model` (llama, qwen2, phi3); its weights are unpacked, then "
        "quantised.",
    )
    gradient_checkpointing: bool | None = option(
        None,
        f"{RECOMPUTE} Default: always on a processor; on a graphics card in as many layers as its "
        "free memory is short of.",
    )


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A model in a file format that transformers does not know, as a plugin reads it."""

    architecture: (
        str  # name of the class of transformers that the weights fill, such as `BertModel`
    )
    config: Any
    tokenizer: Any  # a fast one
    weights: Callable[
        [], Mapping[str, Tensor]
    ]  # by the architecture's names; not called where shapes are enough
    origin: str  # of the weights, and how exact they are, for people
    estimated: bool = (
        False  # whether the tokenizer only counts about as many tokens as the model's own
    )
    readable: bool = (
        False  # whether other programs can read it, so that an adapter alone is of use to them
    )


class PublishedShape(NamedTuple):
    """Sizes in a published config.json, by their names there: `plant plan` goes by them where
    the model is not on this machine.
    """

    model_type: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of Hugging Face models, as a backbone with `name`, `summary` and `source`."""

    name: str
    summary: str
    source: str = ""
    models: Mapping[str, str] = field(default_factory=dict)
    """Published models by a short name, each as `ID@REVISION`; the first is the default (none:
    the user must name a model).
    """
    shapes: Mapping[str, PublishedShape] = field(
        default_factory=dict
    )  # of published models, by short name
    targets: tuple[str, ...] = ATTENTION  # the linear layers that get low-rank adapters
    other_targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same for architectures (`model_type` in config.json) with other names."""
    languages: tuple[str, ...] | None = (
        # ISO 639-1 codes of the languages that the first model was trained on (None: not declared)
        None
    )
    kind: Literal["encoder", "causal"] = "causal"
    """Whether its models read in both directions or from left to right; decides the options'
    defaults.
    """

    def spec(self) -> BackboneSpec:
        """The backbone to register."""
        options, load = self.options(), self.load
        return BackboneSpec(
            name=self.name,
            summary=self.summary,
            source=self.source,
            options=options,
            load=load,
            languages=self.languages,
        )

    def options(self) -> type[EncoderOptions]:
        """The options model; its default model is the family's first."""
        base = CausalOptions if self.kind == "causal" else EncoderOptions
        if not self.models:
            return base
        ids = [published.partition("@")[0] for published in self.models.values()]
        named = ", ".join(
            f"{name} ({identifier})" for name, identifier in zip(self.models, ids, strict=True)
        )
        model = option(ids[0], f"{named}, any hub id, or a local folder.", hub=(*self.models, *ids))
        return create_model(
            f"{self.name.capitalize()}Options",
            __base__=base,
            __doc__=f"Options of `{self.name}`.",
            model=(str, model),
        )

    def load(self, options: EncoderOptions, machine: MachineSection) -> Backbone:
        """Load the chosen model."""
        from plant_backbones.huggingface import HuggingFaceBackbone, Profile

        model, pinned = self.find(options.model)
        chosen = options.adapter_targets
        profile = Profile(
            model=model,
            revision=options.revision or pinned,
            adapter_targets=self.targets if chosen is None else tuple(chosen),
            other_targets=self.other_targets if chosen is None else {},
            kind=self.kind,
            shape=next(
                (shape for name, shape in self.shapes.items() if self.find(name)[0] == model), None
            ),
            gguf=options.gguf if isinstance(options, CausalOptions) else None,
            device=machine.device,
            precision=machine.precision,
        )
        return HuggingFaceBackbone(profile, options)

    def find(self, model: str) -> tuple[str, str | None]:
        """Id and pinned revision of a model given by short name or id; anything else is taken
        as it is.
        """
        for name, published in self.models.items():
            identifier, _, revision = published.partition("@")
            if model in (name, identifier):
                return identifier, revision or None
        return model, None
