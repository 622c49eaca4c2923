"""Number formats of Hugging Face models: 4 and 8 bits, and low-rank adapters on them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.nn.utils import parametrize

from plant_backbones.bf16_models import answers_in_bf16, wants_bf16, wants_expansion
from plant_backbones.profile import HuggingFaceOptions
from plant_cli.api import ArtefactError, ComponentError
from plant_cli.kit import hash_strings, read_json, read_tensors, write_json

BASE = "base.json"
ADAPTER_ALONE: dict[str, Any] = {
    "save_embedding_layers": False
}  # by default peft asks the hub whether the vocabulary has grown
NUMBERS_SAMPLED = 4096  # numbers of the embedding that its fingerprint is made of
for _name in (
    "bitsandbytes.autograd._functions",
    "bitsandbytes.backends.cpu.ops",
):  # warn of casts, and of kernels that are not needed
    logging.getLogger(_name).setLevel(logging.ERROR)
warnings.filterwarnings(
    "ignore", message="`is_gradient_checkpointing`", category=FutureWarning
)  # peft asks by the older name


def loading_arguments(options: HuggingFaceOptions, device: str) -> dict[str, Any]:
    """Arguments of `from_pretrained` for the number format."""
    if options.quantization == "none":
        return {"dtype": torch.float32}
    if options.adapter == "full":
        raise ComponentError(
            f"weights in {options.quantization} ({4 if options.quantization == 'nf4' else 8}-bit) "
            "cannot be trained themselves",
            where=f"model.backbone: quantization {options.quantization} with adapter full",
            expected="adapter lora, dora or none; or quantization none",
            todo="--set model.backbone.adapter=lora",
        )
    if find_spec("bitsandbytes") is None:
        raise ComponentError(
            f"quantization {options.quantization} needs bitsandbytes, which is not installed",
            where=f"model.backbone: quantization {options.quantization}",
            expected="the package bitsandbytes",
            todo="pip install bitsandbytes, or --set model.backbone.quantization=none",
        )
    if options.quantization == "nf4":
        short = {
            "load_in_4bit": True,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": True,
        }
        short["bnb_4bit_compute_dtype"] = torch.bfloat16
    else:
        short = {"load_in_8bit": True}
    chosen = {} if device == "auto" else {"device_map": {"": device}}
    return {
        "quantization_config": transformers.BitsAndBytesConfig(**short),
        "dtype": torch.bfloat16,
        **chosen,
    }


def refuse_stored_format(config: Any, model: str, options: HuggingFaceOptions) -> None:
    """Weights that are stored in another short format cannot be quantised again.

    Raises:
        ComponentError: as DeepSeek-V3, which is published in fp8.
    """
    stored = getattr(config, "quantization_config", None) or {}
    method = (
        stored.get("quant_method", "bitsandbytes")
        if isinstance(stored, dict)
        else stored.quant_method
    )
    if options.quantization != "none" and method != "bitsandbytes":
        raise ComponentError(
            f"the weights of {model} are stored in {method}, and cannot be quantised to "
            f"{options.quantization} as well",
            where=f"quantization_config in config.json of {model}",
            expected="weights in bf16 or fp32",
            todo="give a copy in bf16 (--set model.backbone.model=FOLDER), or --set "
            "model.backbone.quantization=none",
        )


def freeze(network: Any, options: HuggingFaceOptions, dtype: torch.dtype = torch.float32) -> Any:
    """The network with frozen weights. What is not quantised computes in fp32, or in bf16 where
    products do (`dtype`) and the model can.

    Experts (one tensor for all of a layer) go to 4 bits here.

    On processors with bf16, bitsandbytes' evaluation puts 4-bit weights into a layout that has no
    gradient, and leaves them there: training would go on after the first validation without the
    gradients that pass through them. That layout is therefore refused.
    """
    from peft import prepare_model_for_kbit_training

    short = wants_bf16(options, dtype)
    if options.quantization == "nf4":
        from bitsandbytes.nn.parametrize import replace_parameter_4bit

        for part in list(network.modules()):
            part.support_avx512bf16_for_cpu = False  # read by 4-bit layers only
            experts = [
                (name, p) for name, p in part.named_parameters(recurse=False) if p.ndim == 3
            ]  # transformers leaves these as they are
            for name, parameter in experts:
                parameter.data = parameter.data.to(torch.bfloat16 if short else torch.float32)
                replace_parameter_4bit(part, name, compress_statistics=True, quant_type="nf4")
    if options.quantization == "int8":
        for part in network.modules():
            if type(part).__name__ == "Linear8bitLt":
                part.forward = partial(
                    _by_rows, part.forward
                )  # no closure: copies of the module have their own
    network.requires_grad_(False)
    if not short or not answers_in_bf16(network):
        return prepare_model_for_kbit_training(network, use_gradient_checkpointing=False)
    return (
        network.dequantize(dtype=torch.bfloat16).requires_grad_(False)
        if wants_expansion(network, options)
        else network
    )


def _by_rows(forward: Callable[[Tensor], Tensor], states: Tensor) -> Tensor:
    """Hands a matrix on: bitsandbytes' 8-bit product fails on more than three axes, which
    multi-head latent attention has.
    """
    rows = forward(states.flatten(0, -2))
    return rows.view(*states.shape[:-1], rows.shape[-1])


def add_adapter(
    network: Any, model: str, targets: Sequence[str], options: HuggingFaceOptions
) -> Any:
    """Low-rank adapters on the attention's linear layers (Hu et al. 2022, scale α/r; DoRA: Liu
    et al. 2024).
    """
    from peft import LoraConfig, get_peft_model

    names = [name for name, part in network.named_modules() if isinstance(part, nn.Linear)]
    missing = [t for t in targets if not any(n == t or n.endswith(f".{t}") for n in names)]
    if missing or not targets:
        raise ComponentError(
            f"no linear map of {model} is called {' or '.join(missing) or '(no target named)'}",
            where="model.backbone: adapter targets",
            expected="names among " + ", ".join(sorted({n.rsplit(".", 1)[-1] for n in names})),
            todo="name them with --set 'model.backbone.adapter_targets=[query,key,value]'",
        )
    config = LoraConfig(
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,
        lora_dropout=options.lora_dropout,
        use_dora=options.adapter == "dora",
        target_modules=list(targets),
        bias="none",
    )
    return get_peft_model(network, config)


def save_adapter(network: Any, folder: Path) -> None:
    """Write an adapter in peft's layout, with a fingerprint of the weights that it was trained
    on.
    """
    network.save_pretrained(str(folder), safe_serialization=True, **ADAPTER_ALONE)
    write_json(
        folder / BASE,
        {"model": network.get_base_model().name_or_path, "embedding": _fingerprint(network)},
    )


def _fingerprint(network: Any) -> str:
    """Hash of a sample of the token embedding, which is never quantised: models of one shape
    differ there.
    """
    flat = network.get_input_embeddings().weight.detach().flatten()
    return hash_strings([str(flat[:: max(1, len(flat) // NUMBERS_SAMPLED)].bfloat16().tolist())])


def restore_adapter(network: Any, folder: Path) -> None:
    """Read back an adapter in peft's layout; every name and shape must fit."""
    from peft import get_peft_model_state_dict, set_peft_model_state_dict

    base = (
        read_json(folder / BASE, "the note of what an adapter was trained on")
        if (folder / BASE).exists()
        else {}
    )
    if base.get("embedding", _fingerprint(network)) != _fingerprint(network):
        raise ArtefactError(
            "the adapter was trained on the weights of another model, which has the same shape",
            where=f"{folder}, trained on {base['model']}",
            expected=f"an adapter of the weights in {network.get_base_model().name_or_path}",
            todo="give the model that the adapter was trained on: --set "
            "model.backbone.model=FOLDER",
        )
    ours = {
        name: tuple(tensor.shape)
        for name, tensor in get_peft_model_state_dict(network, **ADAPTER_ALONE).items()
    }
    weights, _ = read_tensors(
        folder / "adapter_model.safetensors", "the adapter", "train again: plant finetune --force"
    )
    theirs = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    wrong = sorted(
        name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)
    )
    if wrong:
        raise ArtefactError(
            f"the adapter is that of another model, rank or choice of maps: {wrong[0]} is "
            f"{theirs.get(wrong[0], 'missing')}",
            where=str(folder),
            expected=f"{wrong[0]}: {ours.get(wrong[0], 'no such weight')}",
            todo="use the model and adapter options that the run was trained with (recipe.yaml "
            "in the run folder)",
        )
    set_peft_model_state_dict(network, weights)


def merge_adapter(network: Any, options: HuggingFaceOptions) -> Any:
    """A plain model with the adapter's updates in its weights; quantised weights come back in
    bf16. The given network is used up.
    """
    from peft import PeftModel

    with TemporaryDirectory() as folder:
        adapted = isinstance(network, PeftModel)
        if adapted:
            network.save_pretrained(folder, safe_serialization=True, **ADAPTER_ALONE)
            network = network.unload()
        if options.quantization != "none":
            if (
                getattr(network, "hf_quantizer", None) is not None
            ):  # else its weights have been written out
                network = network.dequantize(dtype=torch.bfloat16)
            experts = [
                (part, name)
                for part in network.modules()
                for name in getattr(part, "parametrizations", {})
            ]
            for part, name in experts:
                parametrize.remove_parametrizations(part, name)
            network = network.to(torch.bfloat16)
        return PeftModel.from_pretrained(network, folder).merge_and_unload() if adapted else network
