"""What `plant` finds through the entry point: the components, described but not yet loaded."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import (
    Backbone,
    BackboneSpec,
    DataSection,
    Dataset,
    DatasetSpec,
    LabelLoss,
    LossSpec,
    MachineSection,
    NoOptions,
    Options,
    StageSpec,
    hookimpl,
    option,
)
from plant_example import comparison, stage


class WordBagOptions(Options):
    """Options of the backbone: recipe keys, flags, validation and help all come from here."""

    hidden: int = option(64, "Hidden size H; the decoder's heads must divide it.", ge=8, multiple_of=8)
    buckets: int = option(4096, "Rows of the embedding table that words are hashed into.", ge=64)
    max_tokens: int = option(2048, "Words kept of a document; what lies beyond is counted and reported.", ge=1)


def load_backbone(options: WordBagOptions, machine: MachineSection) -> Backbone:
    """Torch is imported here and not above, so that `plant --help` stays quick."""
    from plant_example.backbone import WordBag

    return WordBag(options)


def load_weather(data: DataSection, options: NoOptions) -> Dataset:
    from plant_example.dataset import read_weather

    return read_weather()


def build_hinge(options: NoOptions) -> LabelLoss:
    from plant_example.loss import SquaredHinge

    return SquaredHinge()


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    return [
        BackboneSpec(
            name="word-bag",
            summary="Embeddings of hashed words, each mixed with its two neighbours.",
            options=WordBagOptions,
            load=load_backbone,
        )
    ]


@hookimpl
def plant_register_datasets() -> Sequence[DatasetSpec]:
    return [DatasetSpec(name="weather", summary="Sixty made-up weather reports with six labels.", load=load_weather)]


@hookimpl
def plant_register_losses() -> Sequence[LossSpec]:
    return [LossSpec(name="squared-hinge", summary="Squared hinge loss over all labels.", stage="label", build=build_hinge)]


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    return [stage.SPEC, comparison.SPEC]
