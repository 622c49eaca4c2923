"""The eight hooks. A plugin is a module with functions of these names, marked with `hookimpl`."""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from plant_cli.api.specs import BackboneSpec, DatasetSpec, DecoderSpec, LossSpec, MetricSpec, ShortlistSpec, SignalSpec, StageSpec

GROUP = "plant"
hookspec = pluggy.HookspecMarker("plant")
hookimpl = pluggy.HookimplMarker("plant")


@hookspec
def plant_register_stages() -> Sequence[StageSpec]:  # type: ignore[empty-body]
    """Stages and actions: each becomes a subcommand with flags, a recipe section and a docs page."""


@hookspec
def plant_register_backbones() -> Sequence[BackboneSpec]:  # type: ignore[empty-body]
    """Networks that turn text into hidden states."""


@hookspec
def plant_register_decoders() -> Sequence[DecoderSpec]:  # type: ignore[empty-body]
    """Networks that turn hidden states into label scores and rank words for a label."""


@hookspec
def plant_register_losses() -> Sequence[LossSpec]:  # type: ignore[empty-body]
    """Losses of stage 1 (`rank`) and stage 2 (`label`)."""


@hookspec
def plant_register_signals() -> Sequence[SignalSpec]:  # type: ignore[empty-body]
    """Relevance signals: pure functions of the count table."""


@hookspec
def plant_register_datasets() -> Sequence[DatasetSpec]:  # type: ignore[empty-body]
    """Corpora and readers of corpora."""


@hookspec
def plant_register_metrics() -> Sequence[MetricSpec]:  # type: ignore[empty-body]
    """Metrics of evaluation."""


@hookspec
def plant_register_shortlists() -> Sequence[ShortlistSpec]:  # type: ignore[empty-body]
    """What proposes the labels worth scoring where there are too many to score them all."""


HOOKS: dict[str, str] = {
    "plant_register_stages": "stage",
    "plant_register_backbones": "backbone",
    "plant_register_decoders": "decoder",
    "plant_register_losses": "loss",
    "plant_register_signals": "signal",
    "plant_register_datasets": "dataset",
    "plant_register_metrics": "metric",
    "plant_register_shortlists": "shortlist",
}
