"""Backbone `deepseek`: multi-head latent attention has projections of its own; the distilled models are Qwen 2 and LLaMA 3 inside."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import BackboneSpec, hookimpl
from plant_cli.kit import Family

DEEPSEEK = Family(
    name="deepseek",
    summary="Models distilled from DeepSeek-R1 (7 billion parameters by default), or DeepSeek-V3; causal, low-rank adapters.",
    source="DeepSeek-AI 2024, arXiv:2412.19437; DeepSeek-AI 2025, arXiv:2501.12948",
    models={
        "r1-qwen-7b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B@916b56a44061fd5cd7d6a8fb632557ed4f724f60",
        "r1-qwen-1.5b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B@ad9f0ae0864d7fbcd1cd905e3c6c5b069cc8b562",
        "r1-llama-8b": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B@6a6f4aa4197940add57724a7707d069478df56b1",
        "r1-qwen-14b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B@1df8507178afcc1bef68cd8c393f61a886323761",
        "r1-qwen-32b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B@711ad2ea6aa40cfca18895e8aca02ab92df1a746",
        "r1-llama-70b": "deepseek-ai/DeepSeek-R1-Distill-Llama-70B@b1c0b44b4369b597ad119a196caf79a9c40e141e",
        "v3": "deepseek-ai/DeepSeek-V3@e815299b0bcbac849fa540c768ef21845365c9eb",  # stored in fp8: needs quantization=none, or a copy
    },
    other_targets={"deepseek_v3": ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")},
)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The family's backbone."""
    return [DEEPSEEK.spec()]
