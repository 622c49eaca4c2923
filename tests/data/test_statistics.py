from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest
from plant_datasets.table_corpora import load as load_files

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import SplitName
from plant_cli.api.options import DataSection
from plant_cli.data.documents import digest, read_digests
from plant_cli.data.labels import describe


def test_numbers_counted_by_hand(frames: dict[SplitName, pl.DataFrame]) -> None:
    found = describe({name: digest(frame) for name, frame in frames.items()})
    assert asdict(found.splits["train"]) == {
        "documents": 3,
        "documents_without_labels": 0,
        "labels": 3,
        "assignments": 4,
        "labels_per_document_mean": 1.3333,
        "labels_per_document_median": 1.0,
        "words_per_document_median": 5.0,
        "words_per_document_p90": 5.8,
        "unseen_labels": 0,
        "unseen_assignments": 0,
    }
    test = found.splits["test"]
    assert (test.unseen_labels, test.unseen_assignments) == (2, 3)
    assert (found.labels, found.labels_in_train) == (5, 3)
    assert found.bins == {"0": 2, "1-5": 3, "6-10": 0, "11-50": 0, "51-100": 0, "101-500": 0, ">500": 0}


@pytest.mark.parametrize(
    ("documents", "name"),
    [(1, "1-5"), (5, "1-5"), (6, "6-10"), (10, "6-10"), (11, "11-50"), (51, "51-100"), (100, "51-100"), (500, "101-500"), (501, ">500")],
)
def test_the_edges_of_the_bins(documents: int, name: str) -> None:
    rows = pl.DataFrame({"doc_id": [str(i) for i in range(documents)], "text": "x", "labels": [["a"]] * documents})
    assert {key for key, count in describe({"train": digest(rows)}).bins.items() if count} == {name}


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("name", "train", "test", "labels", "in_train", "unseen_share"),
    [("tibkat", 5585, 1036, 9021, 7849, 0.285), ("codiesp", 500, 178, 2921, 2330, 0.195), ("tibkat-mini", 400, 200, 1366, 877, 0.496)],
)
def test_the_published_statistics_of_real_corpora(
    name: str, train: int, test: int, labels: int, in_train: int, unseen_share: float, corpora: Path
) -> None:
    found = describe(read_digests(load_files(DataSection(path=str(corpora / name))), SilentReporter()))
    assert (found.splits["train"].documents, found.splits["test"].documents) == (train, test)
    assert (found.labels, found.labels_in_train) == (labels, in_train)
    asked = found.splits["test"]
    assert asked.unseen_assignments / asked.assignments == pytest.approx(unseen_share, abs=0.0005)
