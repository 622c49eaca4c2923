"""A network is read back whole, or refused with both sides named."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from plant_decoders import LabelAttentionOptions
from plant_decoders.label_attention import LabelAttention

from plant_cli.api import ArtefactError, DecoderShape, Reading, WordDecoder
from plant_cli.data.labels import LabelTable
from plant_cli.network.assembly import Network, read_description, restore_network, save_network, title_queries

Make = Callable[..., Any]


def score(network: Any) -> torch.Tensor:
    network.eval()
    with torch.no_grad():
        logits: torch.Tensor = network.decoder(
            Reading.of(*network.backbone.encode(network.backbone.tokenize(["a fever and a cough", "a leg"])))
        )
    return logits


@pytest.mark.parametrize("frozen", [False, True])
def test_what_was_saved_scores_the_same(small_network: Make, tmp_path: Path, frozen: bool) -> None:
    saved, other = small_network(seed=0), small_network(seed=1)
    if frozen:
        saved.freeze_backbone()
        other.backbone_module.load_state_dict(saved.backbone_module.state_dict())
    save_network(saved, tmp_path)
    assert (tmp_path / "backbone.safetensors").exists() is not frozen
    assert not torch.equal(score(saved), score(other))
    restore_network(other, tmp_path)
    assert torch.equal(score(saved), score(other))
    assert read_description(tmp_path).section == saved.section


def test_whoever_may_read_new_files_may_read_the_network(small_network: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adapters are written by a library, in a folder of their own and for their owner alone."""

    def save(folder: Path) -> None:
        (folder / "adapter").mkdir()
        (folder / "adapter" / "adapter_model.safetensors").touch(0o600)

    network = small_network()
    monkeypatch.setattr(network.backbone, "save", save)
    before = os.umask(0o022)
    try:
        save_network(network, tmp_path)
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o644}


def test_another_label_order_names_both_sides(small_network: Make, tmp_path: Path) -> None:
    save_network(small_network(), tmp_path / "finetune")
    other = small_network()
    other.label_hash = "f" * 64
    with pytest.raises(ArtefactError, match="another label order") as caught:
        restore_network(other, tmp_path / "finetune")
    assert str(tmp_path / "finetune" / "model.safetensors") in caught.value.where
    assert str(tmp_path / "corpus") in caught.value.where


def test_another_tokenizer_is_refused(small_network: Make, tmp_path: Path) -> None:
    save_network(small_network(), tmp_path)
    with pytest.raises(ArtefactError, match="another tokenizer"):
        restore_network(small_network(buckets=128), tmp_path)


def test_weights_of_another_shape_are_refused(small_network: Make, tmp_path: Path) -> None:
    save_network(small_network(labels=4), tmp_path)
    other = small_network(labels=5)
    other.label_hash = small_network(labels=4).label_hash
    with pytest.raises(ArtefactError, match="do not fit the decoder"):
        restore_network(other, tmp_path)


def test_a_frozen_backbone_stays_in_evaluation_mode(small_network: Make) -> None:
    network = small_network()
    assert network.train().backbone_module.training
    network.freeze_backbone()
    network.train()
    assert (network.backbone_module.training, network.decoder.training, network.backbone_is_frozen) == (False, True, True)


def test_title_queries_are_means_of_hidden_states_whatever_the_batch(small_network: Make) -> None:
    labels = LabelTable(ids=["a", "b", "c"], titles=["cough and fever", None, "leg"], train_counts=[1, 1, 1])
    backbone = small_network().backbone
    together, alone = (title_queries(backbone, labels, batch=size) for size in (64, 1))
    assert torch.allclose(together, alone, atol=1e-6)
    hidden, _ = backbone.encode(backbone.tokenize(["b"]))
    assert torch.allclose(together[1], hidden[0].mean(0), atol=1e-6)


def test_a_folded_decoder_still_gets_its_words(small_network: Make) -> None:
    plain = small_network()

    class Looking(LabelAttention):
        needs_words = True

    decoder = Looking(LabelAttentionOptions(heads=2, pool=8), DecoderShape(hidden=16, labels=4))
    index = LabelTable(ids=list("abcd"), titles=[None] * 4, train_counts=[1] * 4)
    looking = Network(plain.backbone, decoder, plain.section, index)
    for network, expected in ((plain, False), (looking, True)):
        network.fold_decoder()
        assert not isinstance(network.decoder, WordDecoder)
        assert network.needs_words is expected
