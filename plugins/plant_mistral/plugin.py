"""Backbone `mistral`: one published model; queries, keys, values and output have maps of their own."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import BackboneSpec, hookimpl
from plant_cli.kit import Family

MISTRAL = Family(
    name="mistral",
    summary="Mistral 7B, a causal model; low-rank adapters on 4-bit weights unless asked otherwise.",
    source="Jiang et al. 2023, arXiv:2310.06825",
    models={"7b-instruct": "mistralai/Mistral-7B-Instruct-v0.3@c170c708c41dac9275d15a8fff4eca08d52bab71"},
)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The family's backbone."""
    return [MISTRAL.spec()]
