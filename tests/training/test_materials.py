"""What training works on: the planted network is put back or refused, words reach decoders that ask for them."""

from __future__ import annotations

import numpy as np
import pytest
from builders import record_again
from clinic import Clinic
from safetensors.torch import load_file
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError, DecoderSpec, SilentReporter, Split
from plant_cli.data.labels import LabelTable
from plant_cli.data.records import stamp
from plant_cli.network.tensors import write_tensors
from plant_cli.registry import installed
from plant_cli.training.materials import add_titles


def test_attention_planted_in_another_network_is_refused(trained: Clinic) -> None:
    trained.planted()
    with pytest.raises(ArtefactError, match="another network") as caught:
        trained.run("finetune", "model.decoder.heads=4")
    folder = trained.path / "pretrain-attn"
    assert caught.value.where == f"decoder: {folder} has heads=2, this stage heads=4", "what is equal is not listed"


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


def test_titles_are_documents_with_their_label_alone() -> None:
    gold, none = csr_array(np.array([[1, 1, 0]])), csr_array((1, 2), dtype=np.int64)
    split = Split(name="train", doc_ids=["d"], texts=["fever"], gold=gold, unseen=none)
    labels = LabelTable(ids=["a", "b", "c"], titles=["Fever", None, "Cough"], train_counts=[1, 1, 1])
    found = add_titles(split, labels, SilentReporter())
    assert found.texts == ["fever", "Fever", "Cough"]
    assert found.doc_ids == ["d", "title of a", "title of c"]
    assert found.gold.toarray().tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert found.unseen.shape == (3, 2)


def test_without_titles_nothing_is_added_and_that_is_told() -> None:
    split = Split(name="train", doc_ids=["d"], texts=["x"], gold=csr_array(np.array([[1]])), unseen=csr_array((1, 0)))
    reporter = SilentReporter()
    assert add_titles(split, LabelTable(ids=["a"], titles=[None], train_counts=[1]), reporter) is split
    assert "no label has a title" in reporter.warnings[0]


def test_attention_is_planted_on_titles_too(trained: Clinic) -> None:
    trained.run("mig")
    summary = trained.run("pretrain-attn", "pretrain-attn.title_documents=true", "pretrain-attn.epochs=1").summary
    assert 0 < summary["nDCG@1000"] <= 1
