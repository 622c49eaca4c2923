"""Quantised models compute in bf16 throughout: what peft and the library compute, in fewer
calls.
"""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from plant_backbones import bf16_models, quantization
from plant_backbones.bf16_models import (
    Bf16Model,
    find_norms,
    is_short,
    unmasked,
    wants_bf16,
    wants_expansion,
)
from plant_backbones.profile import ATTENTION, CausalOptions
from plant_network import recomputation
from plant_network.recomputation import Recomputation, activation_bytes
from torch import nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaModel, MistralConfig, MistralModel

SIZES = {
    "vocab_size": 40,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
IDS = torch.arange(20).view(2, 10)


def options(**values: Any) -> CausalOptions:
    return CausalOptions(**dict[str, Any](model="m", lora_dropout=0.0) | values)


def adapted(chosen: CausalOptions, network: Any) -> Any:
    """A network with adapters that are not zero."""
    torch.manual_seed(1)
    network = quantization.add_adapter(network, "m", ATTENTION, chosen)
    for name, parameter in network.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(parameter, std=0.1)
    return network.train()


def plain(**values: Any) -> Any:
    torch.manual_seed(0)
    return LlamaModel(LlamaConfig(**SIZES)).requires_grad_(False)


@pytest.fixture
def quantised(tmp_path: Any) -> Any:
    """Loads one small model in 4 bits and freezes it."""
    torch.manual_seed(0)
    LlamaModel(LlamaConfig(**SIZES)).save_pretrained(tmp_path)

    def load(*, short: bool, expand: bool | None = None) -> Any:
        network = LlamaModel.from_pretrained(
            tmp_path, **quantization.loading_arguments(options(), "cpu")
        )
        return quantization.freeze(
            network, options(expand_weights=expand), torch.bfloat16 if short else torch.float32
        )

    return load


def gradients(
    network: Any, short: Bf16Model | None = None
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    network.zero_grad()
    if short is not None:
        with short.ready(torch.device("cpu")):
            states = network(input_ids=IDS).last_hidden_state
    else:
        states = network(input_ids=IDS).last_hidden_state
    (states.float() * torch.linspace(-1, 1, 64)).sum().backward()
    return states.detach(), {
        name: p.grad for name, p in network.named_parameters() if p.requires_grad
    }


def test_adapted_maps_and_norms_are_those_of_peft_and_the_library() -> None:
    theirs = adapted(options(quantization="none"), plain())
    ours = deepcopy(theirs)
    (expected, expected_gradients), (found, found_gradients) = (
        gradients(theirs),
        gradients(ours, Bf16Model(ours, torch.float32)),
    )
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    assert len(found_gradients) == 16
    torch.testing.assert_close(found_gradients, expected_gradients, rtol=1e-4, atol=1e-5)


def test_dropout_falls_on_what_the_adapter_reads_and_only_while_training() -> None:
    network = adapted(options(quantization="none", lora_dropout=0.5), plain())
    layer: Any = network.base_model.model.layers[0].self_attn.q_proj
    short = Bf16Model(network, torch.float32)
    states = torch.randn(3, 64, requires_grad=True)
    with short.ready(torch.device("cpu")):
        torch.manual_seed(5)
        found = layer(states)
        torch.manual_seed(5)
        dropped, _ = torch.native_dropout(states, 0.5, True)
        expected = (
            layer.base_layer(states)
            + dropped
            @ (
                layer.scaling["default"]
                * layer.lora_B["default"].weight
                @ layer.lora_A["default"].weight
            ).T
        )
        torch.testing.assert_close(found, expected)
        learnt = [states, layer.lora_A["default"].weight, layer.lora_B["default"].weight]
        torch.testing.assert_close(
            torch.autograd.grad(found.sum(), learnt), torch.autograd.grad(expected.sum(), learnt)
        )
        network.eval()
        torch.testing.assert_close(layer(states), layer(states), rtol=0, atol=0)


def test_adapters_that_rest_pass_the_gradient_on() -> None:
    network = adapted(options(quantization="none"), plain())
    short = Bf16Model(network, torch.float32)
    layer: Any = network.base_model.model.layers[0].self_attn.q_proj
    for half in (layer.lora_A, layer.lora_B):
        half.requires_grad_(False)
    states = torch.randn(3, 64, requires_grad=True)
    with short.ready(torch.device("cpu")):
        layer(states).sum().backward()
    assert states.grad is not None
    assert layer.lora_A["default"].weight.grad is None


def test_a_batch_sees_the_adapters_as_they_are_whatever_changed_them() -> None:
    network = adapted(options(quantization="none"), plain())
    short = Bf16Model(network)
    half = network.base_model.model.layers[0].self_attn.q_proj.lora_A["default"].weight
    for change in (
        lambda: half.data.fill_(1.0),
        lambda: setattr(half, "data", torch.full_like(half, 2.0)),
    ):
        with torch.inference_mode():
            change()
            with short.ready(torch.device("cpu")):
                pass
        assert torch.equal(short.copies[0].float(), half.detach())


def test_in_four_bits_states_and_gradients_are_near_those_of_fp32_between_the_maps(
    quantised: Any,
) -> None:
    wide, narrow = (adapted(options(), quantised(short=short)) for short in (False, True))
    assert not is_short(wide, options())
    assert is_short(narrow, options())
    assert {p.dtype for n, p in narrow.named_parameters() if "norm" in n or "embed" in n} == {
        torch.bfloat16
    }
    assert {p.dtype for n, p in narrow.named_parameters() if p.requires_grad} == {torch.float32}
    (expected, expected_gradients), (found, found_gradients) = (
        gradients(wide),
        gradients(narrow, Bf16Model(narrow)),
    )
    assert found.dtype == torch.bfloat16
    assert functional.cosine_similarity(found.float().flatten(), expected.flatten(), dim=0) > 0.999
    for name, gradient in found_gradients.items():
        assert gradient.dtype == torch.float32
        assert (
            functional.cosine_similarity(
                gradient.flatten(), expected_gradients[name].flatten(), dim=0
            )
            > 0.99
        ), name


def test_weights_that_are_written_out_have_the_numbers_of_the_four_bits(quantised: Any) -> None:
    kept, written = (
        adapted(options(expand_weights=chosen), quantised(short=True, expand=chosen))
        for chosen in (False, True)
    )
    assert not any(hasattr(p, "quant_state") for p in written.parameters())
    (expected, expected_gradients), (found, found_gradients) = (
        gradients(kept, Bf16Model(kept)),
        gradients(written, Bf16Model(written)),
    )
    torch.testing.assert_close(found, expected, rtol=2**-6, atol=2**-6)
    torch.testing.assert_close(found_gradients, expected_gradients, rtol=2**-4, atol=2**-4)
    merged = quantization.merge_adapter(written, options())
    torch.testing.assert_close(
        merged.layers[0].self_attn.q_proj.weight,
        quantization.merge_adapter(kept, options()).layers[0].self_attn.q_proj.weight,
    )


def test_an_adapter_is_saved_and_comes_back_between_both_forms(
    quantised: Any, tmp_path: Any
) -> None:
    narrow, wide = (
        adapted(options(), quantised(short=True)),
        quantization.add_adapter(quantised(short=False), "m", ATTENTION, options()),
    )
    Bf16Model(narrow)
    quantization.save_adapter(narrow, tmp_path / "adapter")
    quantization.restore_adapter(wide, tmp_path / "adapter")
    weights = dict(narrow.named_parameters())
    assert all(
        torch.equal(p, weights[name]) for name, p in wide.named_parameters() if p.requires_grad
    )


@pytest.mark.parametrize(
    ("values", "dtype", "mode", "expected"),
    [
        ({}, torch.bfloat16, "whole", True),
        ({"adapter": "none"}, torch.bfloat16, "whole", True),
        ({}, torch.float32, "whole", False),
        (
            {},
            torch.bfloat16,
            "fsdp",
            False,
        ),  # shards need one type for all that is trained and frozen together
        ({"adapter": "dora"}, torch.bfloat16, "whole", False),
        ({"quantization": "int8"}, torch.bfloat16, "whole", False),
        ({"quantization": "none"}, torch.bfloat16, "whole", False),  # its weights may be exported
    ],
)
def test_which_models_compute_in_bf16(
    values: Any, dtype: torch.dtype, mode: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bf16_models, "sharing_mode", lambda: mode)
    assert wants_bf16(options(**values), dtype) is expected


def test_a_model_that_fails_in_bf16_computes_as_before(
    quantised: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("expected mat1 and mat2 to have the same dtype")

    monkeypatch.setattr(LlamaModel, "forward", fail)
    assert not is_short(quantised(short=True), options())


@pytest.mark.parametrize(
    ("device", "free", "wanted", "expected"),
    [
        ("cpu", 10**9, None, False),
        ("cuda", 10**9, None, True),
        ("cuda", 100, None, False),
        ("cuda", 10**9, False, False),
        ("cpu", 0, True, True),
    ],
)
def test_weights_are_written_out_where_a_card_has_room(
    device: str, free: int, wanted: bool | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bf16_models, "free_memory", lambda _: free)
    weight = SimpleNamespace(dtype=torch.bfloat16, device=SimpleNamespace(type=device))
    parts = [nn.Linear(8, 16)]  # 256 bytes in bf16
    network = SimpleNamespace(
        get_input_embeddings=lambda: SimpleNamespace(weight=weight), modules=lambda: parts
    )
    assert wants_expansion(network, options(expand_weights=wanted)) is expected


def test_norms_of_another_kind_are_left_alone() -> None:
    network = plain()
    assert len(find_norms(network)) == 5
    network.norm.forward = lambda states: states * (1 + network.norm.weight)  # as Gemma's
    assert len(find_norms(network)) == 4


@pytest.mark.parametrize(
    ("window", "positions", "expected"), [(None, 100, True), (64, 64, True), (64, 65, False)]
)
def test_long_windows_of_models_that_look_back_less_far_keep_their_mask(
    window: int | None, positions: int, expected: bool
) -> None:
    config = MistralModel(
        MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=window)
    ).config
    with unmasked(config, positions) as able:
        assert able is expected
        assert (config._attn_implementation == "sdpa") is not expected
    assert config._attn_implementation == "sdpa"


def test_what_comes_after_a_token_changes_nothing_without_a_mask() -> None:
    network = plain().eval()
    with torch.no_grad():
        expected = network(input_ids=IDS, attention_mask=torch.ones_like(IDS)).last_hidden_state
        padded = functional.pad(IDS, (0, 6))
        with unmasked(network.config, 16):
            found = network(input_ids=padded).last_hidden_state[:, :10]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


LAYER = 1024 * (16 * 64 + 4 * 128)  # bytes that one of four layers keeps of 512 positions in bf16


@pytest.mark.parametrize(
    ("wanted", "device", "free", "expected"),
    [
        (None, "cpu", 1e12, 4),
        (None, "cuda", 1e12, 0),
        (None, "cuda", 4.3 * LAYER, 0),
        (
            None,
            "cuda",
            4 * LAYER,
            2,
        ),  # 95% of it hold three, one of which is computed again while the others are kept
        (None, "cuda", 2.5 * LAYER, 3),
        (None, "cuda", 0, 4),
        (True, "cuda", 1e12, 4),
        (False, "cuda", 0, 0),
    ],
)
def test_as_many_layers_compute_activations_again_as_memory_is_short(
    wanted: bool | None, device: str, free: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recomputation, "free_memory", lambda _: free)
    network = LlamaModel(LlamaConfig(**SIZES | {"num_hidden_layers": 4}))
    network.gradient_checkpointing_enable({"use_reentrant": False})
    for layer in network.layers:
        layer.gradient_checkpointing = wanted is not False
    found = Recomputation(network, wanted)
    weight = SimpleNamespace(device=SimpleNamespace(type=device), element_size=lambda: 2)
    monkeypatch.setattr(network, "get_input_embeddings", lambda: SimpleNamespace(weight=weight))
    assert found.choose(512) == expected
    assert [layer.gradient_checkpointing for layer in network.layers] == [
        number < expected for number in range(4)
    ]
    with torch.no_grad():
        found.choose(1 << 20)
    assert list(found.chosen) in ([512], [])


def test_the_estimate_is_above_what_layers_keep_and_below_twice_that(quantised: Any) -> None:
    network = adapted(options(lora_dropout=0.05), quantised(short=True))
    own = {p.untyped_storage().data_ptr() for p in network.parameters()}
    kept: dict[int, torch.Tensor] = {}
    short = Bf16Model(network)
    ids = torch.zeros(4, 64, dtype=torch.int64)
    hooks = torch.autograd.graph.saved_tensors_hooks(
        lambda x: kept.setdefault(x.untyped_storage().data_ptr(), x) is None or x, lambda x: x
    )
    with short.ready(torch.device("cpu")), hooks, unmasked(network.config, 64):
        states = network(input_ids=ids).last_hidden_state
    assert states.requires_grad
    measured = sum(x.untyped_storage().nbytes() for place, x in kept.items() if place not in own)
    assert measured < activation_bytes(network, ids.numel()) < 2 * measured
