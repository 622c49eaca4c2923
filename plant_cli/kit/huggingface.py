"""Backbones from Hugging Face models in a short profile: windows, offsets, adapters, 4-bit weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from plant_cli.api import ComponentError, ResourceError
from plant_cli.api.hashing import hash_strings
from plant_cli.api.model import TokenBatch
from plant_cli.kit import layers
from plant_cli.kit.profile import HuggingFaceOptions
from plant_cli.kit.windows import cut, join


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What differs between model families.

    Args:
        model: hub id or local folder.
        adapter_targets: names of the linear maps that get adapters (q, k, v, o), as the architecture calls them.
        window: positions of one window (None: what the model's configuration says).
        source: citation or link.
    """

    model: str
    adapter_targets: tuple[str, ...]
    window: int | None = None
    revision: str | None = None
    kind: Literal["encoder", "causal"] = "encoder"


class HuggingFaceBackbone:
    """A Hugging Face encoder or causal model read as a backbone (`plant_cli.api.Backbone`)."""

    def __init__(self, profile: Profile, options: HuggingFaceOptions) -> None:
        self.tokenizer = load_tokenizer(profile, options)
        self.network = load_network(profile, options)
        config = self.network.config
        positions = int(getattr(config, "max_position_embeddings", 512))
        self.window = min(options.window or profile.window or positions, positions)
        self.overlap = options.overlap
        self.max_length = options.max_tokens
        self.hidden_size = int(config.hidden_size)
        self.tokenizer_hash = hash_strings([self.tokenizer.backend_tokenizer.to_str()])
        self.prefix, self.suffix = special_tokens(self.tokenizer)
        pad = self.tokenizer.pad_token_id
        self.pad = int(pad if pad is not None else self.tokenizer.eos_token_id or 0)
        self.adapted = options.adapter == "lora"

    def tokenize(self, texts: Sequence[str]) -> TokenBatch:
        """See `plant_cli.api.Backbone.tokenize`."""
        found = self.tokenizer(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, truncation=False, return_attention_mask=False, verbose=False
        )
        limit = self.max_length
        ids = [np.asarray(row[:limit], dtype=np.int32) for row in found["input_ids"]]
        spans = [np.asarray(row[:limit], dtype=np.int32).reshape(-1, 2) for row in found["offset_mapping"]]
        return TokenBatch(ids=ids, spans=spans, dropped=[max(0, len(row) - limit) for row in found["input_ids"]])

    def encode(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """See `plant_cli.api.Backbone.encode`."""
        windows = cut(batch, size=self.window, overlap=self.overlap, prefix=self.prefix, suffix=self.suffix, pad=self.pad)
        device = next(self.network.parameters()).device
        hidden = self.network(
            input_ids=windows.ids.to(device), attention_mask=windows.mask.to(device).long(), **self._quiet()
        ).last_hidden_state
        return join(hidden, windows)

    def _quiet(self) -> dict[str, Any]:
        return {"use_cache": False} if getattr(self.network.config, "use_cache", None) is not None else {}

    def module(self) -> nn.Module:
        """See `plant_cli.api.Backbone.module`."""
        module: nn.Module = self.network
        return module

    def layer_groups(self) -> Sequence[Sequence[nn.Parameter]]:
        """See `plant_cli.api.Backbone.layer_groups`."""
        return layers.layer_groups(self.network)

    def save(self, folder: Path) -> None:
        """See `plant_cli.api.Backbone.save`: an adapter in peft's layout, or the trainable weights."""
        if self.adapted:
            self.network.save_pretrained(str(folder / "adapter"), safe_serialization=True)
        else:
            layers.save_trainable(self.network, folder / "backbone.safetensors")

    def restore(self, folder: Path) -> None:
        """See `plant_cli.api.Backbone.restore`."""
        if self.adapted:
            from peft import load_peft_weights, set_peft_model_state_dict

            set_peft_model_state_dict(self.network, load_peft_weights(str(folder / "adapter"), device="cpu"))
        else:
            layers.restore_trainable(self.network, folder / "backbone.safetensors")


def load_tokenizer(profile: Profile, options: HuggingFaceOptions) -> Any:
    """The model's fast tokenizer; a slow one has no character offsets and is refused."""
    from transformers import AutoTokenizer

    with _explained(profile.model):
        tokenizer = AutoTokenizer.from_pretrained(
            profile.model, revision=profile.revision, trust_remote_code=options.trust_remote_code, use_fast=True
        )
    if not tokenizer.is_fast:
        raise ComponentError(
            f"the tokenizer of {profile.model} is a slow one ({type(tokenizer).__name__})",
            where=profile.model,
            expected="a fast tokenizer (tokenizer.json): only these give character offsets, which tie words to tokens",
            todo="convert it with transformers' convert_slow_tokenizer and save it beside the model",
        )
    return tokenizer


def load_network(profile: Profile, options: HuggingFaceOptions) -> Any:
    """The model without its language-model head, with adapters and 4-bit weights when asked for."""
    from transformers import AutoModel
    from transformers.utils import logging

    if options.quantization == "nf4" and options.adapter == "full":
        raise ComponentError(
            "4-bit weights cannot be trained themselves",
            where="model.backbone: quantization nf4 with adapter full",
            expected="adapter lora or none",
            todo="--set model.backbone.adapter=lora",
        )
    logging.disable_progress_bar()  # ours is the only one on the terminal
    logging.set_verbosity_error()  # a pooler that is left out on purpose is no news
    extra: dict[str, Any] = {"dtype": torch.float32}
    if options.quantization == "nf4":
        extra = {"quantization_config": _nf4(), "dtype": torch.bfloat16}
    if profile.kind == "encoder":
        extra["add_pooling_layer"] = False
    with _explained(profile.model):
        network = _from_pretrained(AutoModel, profile, options, extra)
    if options.adapter == "lora":
        return with_adapter(network, profile, options)
    network.requires_grad_(options.adapter == "full")
    return network


def _from_pretrained(auto: Any, profile: Profile, options: HuggingFaceOptions, extra: dict[str, Any]) -> Any:
    fixed = {"revision": profile.revision, "trust_remote_code": options.trust_remote_code}
    try:
        return auto.from_pretrained(profile.model, **fixed, **extra)
    except TypeError:  # an architecture without the pooling layer that encoders may leave out
        extra.pop("add_pooling_layer", None)
        return auto.from_pretrained(profile.model, **fixed, **extra)


def _nf4() -> Any:
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16
    )


def with_adapter(network: Any, profile: Profile, options: HuggingFaceOptions) -> Any:
    """Low-rank adapters on the attention's projections (Hu et al. 2022; scale α/r). A target that matches nothing is an error."""
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    names = [name for name, part in network.named_modules() if isinstance(part, nn.Linear)]
    missing = [t for t in profile.adapter_targets if not any(n == t or n.endswith(f".{t}") for n in names)]
    if missing or not profile.adapter_targets:
        raise ComponentError(
            f"no linear map of {profile.model} is called {' or '.join(missing) or '(no target named)'}",
            where="model.backbone: adapter targets",
            expected="names among " + ", ".join(sorted({n.rsplit(".", 1)[-1] for n in names})),
            todo="name them with --set 'model.backbone.adapter_targets=[query,key,value]'",
        )
    if options.quantization == "nf4":
        network = prepare_model_for_kbit_training(network, use_gradient_checkpointing=options.gradient_checkpointing)
    config = LoraConfig(
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,
        lora_dropout=options.lora_dropout,
        target_modules=list(profile.adapter_targets),
        bias="none",
    )
    return get_peft_model(network, config)


def special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Ids that the tokenizer puts before and after a text."""
    found = tokenizer("a", add_special_tokens=True, return_special_tokens_mask=True)
    ids, special = list(found["input_ids"]), list(found["special_tokens_mask"])
    first = special.index(0) if 0 in special else len(ids)
    last = len(ids) - special[::-1].index(0) if 0 in special else len(ids)
    return ids[:first], ids[last:]


class _explained:
    """Turns Hugging Face's failures to load into an error that says which file or command is missing."""

    def __init__(self, model: str) -> None:
        self.model = model

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise ResourceError(
                f"the model {self.model} could not be loaded: {str(error).splitlines()[0]}",
                where=self.model,
                expected="a local folder with config.json, tokenizer.json and safetensors, or a hub id that this machine can reach",
                todo=f"download it once where there is a network (`hf download {self.model}`) and give the folder: "
                "--set model.backbone.model=FOLDER",
            ) from error
