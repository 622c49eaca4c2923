"""What training works on: the planted network is put back or refused, words reach decoders that ask for them."""

from __future__ import annotations

import pytest
from clinic import Clinic
from safetensors.torch import load_file

from plant_cli.api import ArtefactError
from plant_cli.artefacts.guard import stamp
from plant_cli.base.tensors import write_tensors
from tests.artefacts.conftest import record_again


def test_attention_planted_in_another_network_is_refused(trained: Clinic) -> None:
    trained.planted()
    with pytest.raises(ArtefactError, match="another network") as caught:
        trained.run("finetune", "model.decoder.heads=4")
    assert "decoder" in caught.value.where


def test_a_model_of_another_label_order_is_refused(trained: Clinic) -> None:
    trained.planted()
    path = trained.path / "pretrain-attn" / "model.safetensors"
    write_tensors(path, load_file(path), stamp(labels="0" * 64, tokenizer="1" * 64))
    record_again(path.parent)
    with pytest.raises(ArtefactError) as caught:
        trained.run("finetune")
    assert str(trained.path) in caught.value.where
