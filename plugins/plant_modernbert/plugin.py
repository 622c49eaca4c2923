"""Backbone `modernbert`: an encoder with a fused map; `Wo` alone would also be found in its feed-forward layers."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import BackboneSpec, hookimpl
from plant_cli.kit import Family

MODERNBERT = Family(
    name="modernbert",
    summary="ModernBERT base (149 million parameters), an encoder that reads 8,192 tokens at once.",
    source="Warner et al. 2024, arXiv:2412.13663",
    models={"base": "answerdotai/ModernBERT-base@8949b909ec900327062f0ebf497f51aef5e6f0c8"},
    targets=("attn.Wqkv", "attn.Wo"),
    languages=("en",),
    kind="encoder",
)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The family's backbone."""
    return [MODERNBERT.spec()]
