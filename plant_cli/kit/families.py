"""A family of Hugging Face models as data: a plugin that names its models and attention layers has a backbone. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import create_model

from plant_cli.api import Backbone, BackboneSpec, MachineSection, option
from plant_cli.kit.profile import CausalOptions, EncoderOptions

BERT_ATTENTION = ("query", "key", "value", "attention.output.dense")  # as BERT and its descendants call them
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")  # as most architectures call queries, keys, values and output


@dataclass(frozen=True, kw_only=True)
class Family:
    """What distinguishes one family from another.

    Args:
        name: of the backbone.
        summary: of the backbone, one sentence.
        source: citation or link.
        models: published models by a short name, each as `ID@REVISION`; the first is the default (none: the user must name a model).
        targets: the linear layers that get low-rank adapters.
        other_targets: the same for architectures (`model_type` in config.json) that call them otherwise.
        languages: ISO 639-1 codes of the languages that the first model was trained on (None: not declared).
        kind: whether its models read in both directions or from left to right; decides the options' defaults.
    """

    name: str
    summary: str
    source: str = ""
    models: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ATTENTION
    other_targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    languages: tuple[str, ...] | None = None
    kind: Literal["encoder", "causal"] = "causal"

    def spec(self) -> BackboneSpec:
        """The backbone to register."""
        return BackboneSpec(
            name=self.name,
            summary=self.summary,
            source=self.source,
            options=self.options(),
            load=self.load,
            languages=self.languages,
        )

    def options(self) -> type[EncoderOptions]:
        """The options model; its default model is the family's first."""
        base = CausalOptions if self.kind == "causal" else EncoderOptions
        if not self.models:
            return base
        ids = [published.partition("@")[0] for published in self.models.values()]
        named = ", ".join(f"{name} ({identifier})" for name, identifier in zip(self.models, ids, strict=True))
        model = option(ids[0], f"{named}, any hub id, or a local folder.")
        return create_model(f"{self.name.capitalize()}Options", __base__=base, __doc__=f"Options of `{self.name}`.", model=(str, model))

    def load(self, options: EncoderOptions, machine: MachineSection) -> Backbone:
        """Load the chosen model."""
        from plant_cli.kit.huggingface import HuggingFaceBackbone, Profile

        model, pinned = self.find(options.model)
        chosen = options.adapter_targets
        profile = Profile(
            model=model,
            revision=options.revision or pinned,
            adapter_targets=self.targets if chosen is None else tuple(chosen),
            other_targets=self.other_targets if chosen is None else {},
            kind=self.kind,
            device=machine.device,
        )
        return HuggingFaceBackbone(profile, options)

    def find(self, model: str) -> tuple[str, str | None]:
        """Id and pinned revision of a model given by short name or id; anything else is taken as it is."""
        for name, published in self.models.items():
            identifier, _, revision = published.partition("@")
            if model in (name, identifier):
                return identifier, revision or None
        return model, None
