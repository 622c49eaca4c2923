"""Backbones `hf-encoder` and `hf-causal`: families that name no model of their own."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import BackboneSpec, hookimpl
from plant_cli.kit import BERT_ATTENTION, Family

ENCODER = Family(
    name="hf-encoder",
    summary="Any Hugging Face encoder (BERT, RoBERTa …): --set model.backbone.model=FOLDER.",
    targets=BERT_ATTENTION,
    other_targets={"modernbert": ("attn.Wqkv", "attn.Wo")},
    kind="encoder",
)
CAUSAL = Family(
    name="hf-causal",
    summary="Any Hugging Face causal model (Gemma, Qwen …); low-rank adapters on 4-bit weights unless asked otherwise.",
    other_targets={"phi3": ("qkv_proj", "o_proj")},
)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The two generic backbones."""
    return [ENCODER.spec(), CAUSAL.spec()]
