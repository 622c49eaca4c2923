"""Rows of new labels in a trained network: the discriminant of their documents, or of what
their title says, beside rows that stay.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from plant_network.assembly import EarlierNetwork, save_network
from plant_network.hardware import Hardware
from plant_network.materials import Material
from plant_network.new_labels import DISCRIMINANT_STRENGTH, plant_new_labels
from plant_network.reading import LiveReader, make_tokens
from scipy.sparse import csr_array

from plant_cli.api import ComponentError, Reading, SilentReporter, Split
from plant_cli.data.labels import LabelTable
from plant_cli.runs.session import Session

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = ["a fever", "a high fever", "a leg and an arm", "the arm", "cough cough cough", "dry cough"]
OWNED = [[0], [0], [2, 1], [2], [3], [3]]  # label 1 is new
NEW = 1
ROWS = np.array([2, -1, 0, 1])


def plant(
    small_network: Callable[..., Any],
    folder: Path,
    owned: list[list[int]],
    titles: list[str | None],
) -> tuple[Any, Any]:
    """An earlier network of three labels, and one of four that goes on from it."""
    earlier, network = small_network(seed=1, labels=3), small_network(seed=2, labels=4)
    earlier.decoder.plant_tables(
        torch.randn(3, 16), torch.randn(3, 16), 4.0
    )  # now values are what attention gathers
    save_network(earlier, folder)
    gold = np.array([[label in labels for label in range(4)] for labels in owned], dtype=np.int64)
    split = Split(
        name="train",
        doc_ids=list("abcdef"),
        texts=TEXTS,
        gold=csr_array(gold),
        unseen=csr_array((6, 0)),
    )
    reader = LiveReader(network, make_tokens(network, TEXTS, SilentReporter(), "train"), CPU)
    session = Session(
        reporter=SilentReporter(), run_path=Path("run"), folder=folder, should_stop=lambda: False
    )
    index = LabelTable(ids=list("pqrs"), titles=titles, train_counts=gold.sum(0).tolist())
    before = EarlierNetwork(folder=folder, labels=3, rows=ROWS)
    before.carry_over(network)
    corpus: Any = SimpleNamespace(labels=index, sizes={"train": len(TEXTS)})
    plant_new_labels(
        before, network, Material(split=split, reader=reader), corpus, CPU, len(TEXTS), session
    )
    return earlier, network


def read(network: Any, function: Callable[[Reading], torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        return torch.cat(
            [
                function(Reading.of(*network.backbone.encode(network.backbone.tokenize([text]))))
                for text in TEXTS
            ]
        )


def test_the_row_is_the_discriminant_of_the_documents_and_other_rows_stay(
    small_network: Callable[..., Any], tmp_path: Path
) -> None:
    earlier, network = plant(small_network, tmp_path, OWNED, [None] * 4)
    known = [0, 2, 3]
    for name, value in network.decoder.state_dict().items():
        before = earlier.decoder.state_dict()[name]
        assert torch.equal(
            *(
                (value, before)
                if value.shape == before.shape
                else (value[known], before[ROWS[known]])
            )
        )
    torch.testing.assert_close(network.decoder.queries[NEW], earlier.decoder.queries.mean(0))
    x = (
        read(network, lambda reading: network.decoder.gather(reading, torch.tensor([NEW]))[:, 0])
        .double()
        .numpy()
    )
    logits = read(network, network.decoder).double().numpy()
    covariance = np.cov(x.T)
    ridge = DISCRIMINANT_STRENGTH * np.trace(covariance) / 16
    row = np.linalg.solve(covariance + ridge * np.eye(16), x[2] - x.mean(0))
    np.testing.assert_allclose(
        logits[:, NEW], (x - x.mean(0)) @ row + logits[:, known].mean(), rtol=1e-3, atol=1e-4
    )
    assert logits[:, NEW].argmax() == 2


def test_a_label_without_documents_has_a_row_by_its_title(
    small_network: Callable[..., Any], tmp_path: Path
) -> None:
    owned = [[label for label in labels if label != NEW] for labels in OWNED]
    for title, first in (("fever", {0, 1}), ("cough", {4, 5})):
        _, network = plant(small_network, tmp_path, owned, ["fever", title, "arm", "cough"])
        logits = read(network, network.decoder)[:, NEW]
        assert set(logits.topk(2).indices.tolist()) == first
    _, network = plant(small_network, tmp_path, owned, [None] * 4)  # nothing is known of it
    assert read(network, network.decoder)[:, NEW].std().item() == pytest.approx(0, abs=1e-4)


def test_a_decoder_without_tables_is_named(tmp_path: Path) -> None:
    network: Any = SimpleNamespace(
        decoder=object(), section=SimpleNamespace(decoder=SimpleNamespace(name="caml"))
    )
    nothing: Any = None
    with pytest.raises(
        ComponentError, match="the decoder 'caml' cannot add labels without training"
    ):
        plant_new_labels(nothing, network, nothing, nothing, CPU, 1, nothing)
