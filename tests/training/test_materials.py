"""What training works on: the planted network is put back or refused, words reach decoders that ask for them."""

from __future__ import annotations

import pytest
from clinic import Clinic
from safetensors.torch import load_file

from plant_cli.api import ArtefactError, DecoderSpec
from plant_cli.artefacts.guard import stamp
from plant_cli.base.tensors import write_tensors
from plant_cli.registry import installed
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


def test_options_that_only_stage_2_reads_may_differ(trained: Clinic) -> None:
    trained.planted()
    spec = next(spec for spec in installed().specs(DecoderSpec) if spec.name == "label-attention")
    object.__setattr__(spec, "stage2_options", ("dropout",))
    try:
        trained.run("finetune", "model.decoder.dropout=0.1")
        with pytest.raises(ArtefactError, match="another network"):
            trained.run("finetune", "model.decoder.dropout=0.1", "model.decoder.prior_bias=false", force=True)
    finally:
        object.__setattr__(spec, "stage2_options", ())
