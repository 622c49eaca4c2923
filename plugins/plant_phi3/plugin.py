"""Backbone `phi3`: queries, keys and values come from one fused map."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import BackboneSpec, hookimpl
from plant_cli.kit import Family

PHI3 = Family(
    name="phi3",
    summary="Phi-3 mini (3.8 billion parameters), a causal model; low-rank adapters on 4-bit weights unless asked otherwise.",
    source="Abdin et al. 2024, arXiv:2404.14219",
    models={
        "mini-4k": "microsoft/Phi-3-mini-4k-instruct@0a67737cc96d2554230f90338b163bc6380a2a85",
        "mini-128k": "microsoft/Phi-3-mini-128k-instruct@072cb7562cb8c4adf682a8e186aaafa49469eb5d",
    },
    targets=("qkv_proj", "o_proj"),
)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The family's backbone."""
    return [PHI3.spec()]
