"""Short number formats and adapters: what is refused and why, and gradients that outlive an
evaluation.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from peft.utils import save_and_load
from plant_backbones.profile import CausalOptions
from plant_backbones.quantization import (
    add_adapter,
    freeze,
    loading_arguments,
    merge_adapter,
    refuse_stored_format,
    restore_adapter,
    save_adapter,
)
from plant_network.planning import short_parameters
from transformers import LlamaConfig, LlamaModel

from plant_cli.api import ArtefactError, ComponentError

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj")
CONFIG = LlamaConfig(
    vocab_size=40, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128
)


def options(**values: Any) -> CausalOptions:
    return CausalOptions(model="m", lora_dropout=0.0, **values)


def small(hidden: int = 64) -> Any:
    torch.manual_seed(0)
    return LlamaModel(
        LlamaConfig.from_dict(CONFIG.to_dict() | {"hidden_size": hidden, "head_dim": hidden // 4})
    )


def test_four_bits_are_nf4_doubly_quantised_and_compute_in_bf16() -> None:
    found = loading_arguments(options(), "cuda:1")
    config = found["quantization_config"]
    assert (
        config.bnb_4bit_quant_type,
        config.bnb_4bit_use_double_quant,
        config.bnb_4bit_compute_dtype,
    ) == ("nf4", True, torch.bfloat16)
    assert found["device_map"] == {"": "cuda:1"}
    assert "device_map" not in loading_arguments(options(), "auto")
    assert loading_arguments(options(quantization="int8"), "auto")[
        "quantization_config"
    ].load_in_8bit
    assert loading_arguments(options(quantization="none"), "auto") == {"dtype": torch.float32}


def test_what_cannot_be_done_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for quantization, bits in (("nf4", "4-bit"), ("int8", "8-bit")):
        with pytest.raises(ComponentError, match=bits) as caught:
            loading_arguments(options(adapter="full", quantization=quantization), "auto")
        assert "adapter=lora" in caught.value.todo
    stored = LlamaConfig(quantization_config={"quant_method": "fp8"})
    with pytest.raises(ComponentError, match="fp8"):
        refuse_stored_format(stored, "m", options())
    refuse_stored_format(stored, "m", options(quantization="none"))
    refuse_stored_format(CONFIG, "m", options())
    with pytest.raises(ComponentError, match="qkv_proj") as caught:
        add_adapter(small(), "m", ("qkv_proj", "o_proj"), options())
    assert "q_proj" in caught.value.expected
    assert "adapter_targets" in caught.value.todo
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(ComponentError, match="bitsandbytes") as caught:
        loading_arguments(options(), "auto")
    assert "pip install" in caught.value.todo


def test_gradients_are_the_same_after_an_evaluation(tmp_path: Any) -> None:
    small().save_pretrained(tmp_path)
    network = LlamaModel.from_pretrained(tmp_path, **loading_arguments(options(), "cpu"))
    freeze(network, options())
    ids = torch.arange(10).view(1, 10)
    inputs = network.embed_tokens(ids).detach().requires_grad_(True)
    found = []
    for _ in range(2):
        network.train()
        (gradient,) = torch.autograd.grad(
            network(inputs_embeds=inputs).last_hidden_state.square()[0, :, 0].sum(), inputs
        )
        found.append(gradient)
        network.eval()
        with torch.no_grad():
            network(ids)
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def test_an_adapter_of_another_model_or_rank_is_refused(tmp_path: Any) -> None:
    save_adapter(add_adapter(small(), "m", TARGETS, options()), tmp_path)
    restore_adapter(add_adapter(small(), "m", TARGETS, options()), tmp_path)
    other = small()
    with torch.no_grad():
        other.embed_tokens.weight.mul_(1.5)
    with pytest.raises(ArtefactError, match="another model, which has the same shape") as caught:
        restore_adapter(add_adapter(other, "m", TARGETS, options()), tmp_path)
    assert str(tmp_path) in caught.value.where
    assert "model.backbone.model" in caught.value.todo
    (tmp_path / "base.json").unlink()
    for hidden, rank, targets in ((32, 16, TARGETS), (64, 4, TARGETS), (64, 16, TARGETS[:2])):
        with pytest.raises(ArtefactError, match="another model") as caught:
            restore_adapter(
                add_adapter(small(hidden), "m", targets, options(lora_rank=rank)), tmp_path
            )
        assert "_proj" in caught.value.what + caught.value.expected


def test_merging_takes_the_adapter_into_plain_weights() -> None:
    network = add_adapter(small(), "m", TARGETS, options(quantization="none"))
    for name, parameter in network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    network.eval()
    ids = torch.arange(10).view(1, 10)
    with torch.no_grad():
        expected = network(ids).last_hidden_state
        merged = merge_adapter(network, options(quantization="none"))
        torch.testing.assert_close(merged(ids).last_hidden_state, expected, rtol=1e-5, atol=1e-5)
    assert not any("lora_" in name for name, _ in merged.named_parameters())


def test_bytes_of_short_weights_follow_from_shapes(tmp_path: Any) -> None:
    """Against what bitsandbytes itself holds: packed weights, scales and the scales' scales."""
    small().save_pretrained(tmp_path)
    real = LlamaModel.from_pretrained(tmp_path, **loading_arguments(options(), "cpu"))
    held = 0
    for part in real.modules():
        state = getattr(getattr(part, "weight", None), "quant_state", None)
        if state is not None:
            held += part.weight.numel() + state.absmax.numel() + 4 * state.state2.absmax.numel()
    plain = small().requires_grad_(False)
    assert sum(short_parameters(plain, options().quantization).values()) == pytest.approx(
        held, rel=0.01
    )
    assert short_parameters(plain, "none") == {}
    eight = short_parameters(plain, "int8")
    assert eight[plain.layers[0].mlp.down_proj.weight] == 64 * 128 + 4 * 64


def test_saving_and_reading_an_adapter_asks_no_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        save_and_load,
        "check_file_exists_on_hf_hub",
        lambda *asked: pytest.fail(f"the hub was asked for {asked}"),
    )
    network = add_adapter(small(), "m", TARGETS, options())
    network.get_base_model().name_or_path = network.peft_config[
        "default"
    ].base_model_name_or_path = "org/model"
    save_adapter(network, tmp_path)
    learned = {
        name: value.detach().clone() for name, value in network.named_parameters() if "lora" in name
    }
    with torch.no_grad():
        for name, value in network.named_parameters():
            if name in learned:
                value.add_(1.0)
    restore_adapter(network, tmp_path)
    assert learned
    assert all(
        torch.equal(value, learned[name])
        for name, value in network.named_parameters()
        if name in learned
    )
    assert not [
        name
        for name, _ in merge_adapter(network, options(quantization="none")).named_parameters()
        if "lora" in name
    ]
