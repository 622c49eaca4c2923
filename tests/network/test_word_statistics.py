"""What train says of words and labels is read in one go, and agrees with the corpus."""

from __future__ import annotations

from typing import Any

from plant_cli.api import Dataset
from plant_cli.data.store import open_corpus
from plant_cli.network.reading_checks import load_statistics


def nothing() -> Dataset:
    raise AssertionError("no text is read")


def test_statistics_agree_with_the_corpus_and_no_text_is_read(clinic: Any) -> None:
    clinic("mig", "mig.k=5")
    corpus = open_corpus(clinic.path / "corpus", nothing)
    found = load_statistics(clinic.path / "mig", corpus)
    assert found.documents == corpus.sizes["train"]
    assert found.table.matrix.shape == (len(corpus.labels), len(found.table.words))
    assert len(found.docs_with_word) == len(found.table.words)
    assert found.docs_with_word.max() <= found.documents
    assert found.docs_with_label.tolist() == list(corpus.labels.train_counts)
