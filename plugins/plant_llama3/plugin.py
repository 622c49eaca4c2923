"""Backbone `llama3`: one published model, behind a licence that must be accepted on the hub."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import BackboneSpec, hookimpl
from plant_cli.kit import Family

LLAMA3 = Family(
    name="llama3",
    summary="LLaMA 3.1 8B, a causal model that Meta grants access to; low-rank adapters on 4-bit weights unless asked otherwise.",
    source="Grattafiori et al. 2024, arXiv:2407.21783",
    models={"8b": "meta-llama/Llama-3.1-8B@d04e592bb4f6aa9cfee91e2e20afa771667e1d4b"},
)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The family's backbone."""
    return [LLAMA3.spec()]
