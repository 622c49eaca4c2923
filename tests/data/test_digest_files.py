"""Digests of shares are those of the whole corpus."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import Dataset
from plant_cli.api.errors import ArtefactError, UsageError
from plant_cli.api.options import DataSection
from plant_cli.data import digests as digest_files
from plant_cli.data.digests import digest_all, read_digest_files, write_digests
from plant_cli.data.documents import read_digests
from plant_cli.data.near_duplicates import find_near_duplicates
from plant_cli.data.splits import Shard

DATA = DataSection(path="x")
TELLER = SilentReporter()


@pytest.fixture
def dataset(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Eleven documents, some short, some nearly the same, read three at a time."""
    monkeypatch.setattr("plant_cli.data.documents.BATCH", 3)
    words = [f"word{i}" for i in range(500)]
    texts = [" ".join(random.Random(i % 6).choices(words, k=60 if i % 3 else 4)) + f" end{i}" for i in range(11)]
    frame = pl.DataFrame({"doc_id": [f"d{i}" for i in range(11)], "text": texts, "labels": [["x", f"y{i}"] for i in range(11)]})
    return Dataset(splits={"train": frame.head(7).lazy(), "test": frame.tail(4).lazy()})


def write(dataset: Dataset, folder: Path, of: int) -> list[str]:
    counts = [write_digests(folder / f"{n}.parquet", dataset, DATA, Shard(n, of), TELLER) for n in range(1, of + 1)]
    assert sum(counts) == 11
    return [str(folder / "*.parquet")]


@pytest.mark.parametrize("of", [1, 2, 5, 12])
def test_shares_add_up_to_the_whole(dataset: Dataset, tmp_path: Path, of: int) -> None:
    found, whole = read_digest_files(write(dataset, tmp_path, of), dataset, DATA), read_digests(dataset, TELLER)
    assert list(found.digests) == list(whole)
    assert all(found.digests[name].equals(whole[name]) for name in whole)
    alone, together = (list(find_near_duplicates(dataset, whole, TELLER, known)) for known in (None, found.signatures))
    assert alone == together != []


def test_one_reading_gives_digests_and_signatures(dataset: Dataset) -> None:
    found, whole = digest_all(dataset, TELLER), read_digests(dataset, TELLER)
    assert all(found.digests[name].equals(whole[name]) for name in whole)
    alone, together = (list(find_near_duplicates(dataset, whole, TELLER, known)) for known in (None, found.signatures))
    assert alone == together != []


def test_a_share_that_is_missing_or_given_twice_is_told(dataset: Dataset, tmp_path: Path) -> None:
    write(dataset, tmp_path, 3)
    with pytest.raises(UsageError, match="shard 3/3 is missing") as caught:
        read_digest_files([str(tmp_path / "[12].parquet")], dataset, DATA)
    assert "1.parquet (1/3)" in caught.value.where
    assert "plant data digest" in caught.value.todo
    (tmp_path / "4.parquet").write_bytes((tmp_path / "1.parquet").read_bytes())
    with pytest.raises(UsageError, match="shard 1/3 is given twice"):
        read_digest_files([str(tmp_path / "*")], dataset, DATA)
    with pytest.raises(UsageError, match="there are no shards"):
        read_digest_files([str(tmp_path / "none*")], dataset, DATA)


def test_digests_of_something_else_are_refused(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = write(dataset, tmp_path / "digests", 1)
    with pytest.raises(ArtefactError, match="of another corpus"):
        read_digest_files(patterns, dataset, DATA.model_copy(update={"text_column": "body"}))
    (tmp_path / "more").write_text("more")
    with pytest.raises(ArtefactError, match="of another corpus"):
        read_digest_files(patterns, replace(dataset, files=[str(tmp_path / "more")]), DATA)
    monkeypatch.setattr(digest_files.pl, "__version__", "0")
    with pytest.raises(ArtefactError, match="of another polars"):
        read_digest_files(patterns, dataset, DATA)
    with pytest.raises(ArtefactError, match="cannot be used"):
        read_digest_files([str(tmp_path / "more")], dataset, DATA)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(ArtefactError, match="not written by `plant data digest`"):
        read_digest_files([str(tmp_path / "other.parquet")], dataset, DATA)


def test_a_damaged_file_is_told_with_its_name(dataset: Dataset, tmp_path: Path) -> None:
    patterns = write(dataset, tmp_path, 1)
    path = tmp_path / "1.parquet"
    whole = path.read_bytes()
    for content in (whole[:4] + b"\0" * 200 + whole[204:], whole.replace(b"characters", b"charakters")):
        path.write_bytes(content)
        with pytest.raises(ArtefactError, match="the digests cannot be used: the file is damaged") as caught:
            read_digest_files(patterns, dataset, DATA)
        assert caught.value.where == str(path)
