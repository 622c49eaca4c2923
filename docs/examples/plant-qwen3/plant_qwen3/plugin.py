"""Backbone `qwen3`: what `plant` must know of a family of models, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from plant_backbones.profile import Family

from plant_cli.api import BackboneSpec, hookimpl

QWEN3 = Family(
    name="qwen3",
    summary="Qwen3, causal models of several sizes; low-rank adapters on 4-bit weights unless "
    "asked otherwise.",
    source="Qwen Team 2025, arXiv:2505.09388",
    models={  # short name: id on the hub, and the commit to read; the first is the default
        "8b": "Qwen/Qwen3-8B@b968826d9c46dd6066d109eabc6255188de91218",
        "4b": "Qwen/Qwen3-4B@1cfa9a7208912126459214e8b04321603b3df60c",
    },
    # the attention's linear maps; adapters go there
    targets=("q_proj", "k_proj", "v_proj", "o_proj"),
)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    return [QWEN3.spec()]
