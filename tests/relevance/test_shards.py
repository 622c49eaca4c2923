from pathlib import Path

import polars as pl
import pytest
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError
from plant_cli.relevance.counting import SparseCounting, count_terms
from plant_cli.relevance.shards import Shard, read_record, write_shard

DOCUMENTS = [["a", "a", "b"], ["b"], ["c", "c", "a"]]
GOLD = [[1, 0], [0, 0], [1, 1]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    counting = SparseCounting(count_terms(DOCUMENTS, 1), csr_array(GOLD), with_occurrences=True)
    pairs = write_shard(tmp_path, Shard(2, 3), counting, data_hash="d", label_hash="l", analyser="a", memory=1, jobs=2)
    assert pairs == 5
    return tmp_path


def test_a_shard_is_every_nth_document() -> None:
    rows = [list(range(10))[Shard.parse(f"{i}/3").rows] for i in (1, 2, 3)]
    assert rows == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert str(Shard.parse("2/3")) == "2/3"
    assert list(range(2))[Shard(3, 4).rows] == []


@pytest.mark.parametrize("text", ["0/3", "4/3", "x", "1/0", "1"])
def test_no_such_shard(text: str) -> None:
    with pytest.raises(ValueError):
        Shard.parse(text)


def test_the_files_hold_the_counts_of_every_word(folder: Path) -> None:
    rows = pl.read_parquet(folder / "counts.parquet").sort("label", "word")
    assert rows.rows() == [(0, 0, 2, 3), (0, 1, 1, 1), (0, 2, 1, 2), (1, 0, 1, 1), (1, 2, 1, 2)]
    assert pl.read_parquet(folder / "counted-words.parquet").rows() == [("a", 2), ("b", 2), ("c", 1)]
    assert pl.read_parquet(folder / "counted-labels.parquet").rows() == [(2, 3), (1, 2)]
    record = read_record(folder)
    assert (record.shard, record.documents, record.occurrences, record.data_hash, record.label_hash) == (Shard(2, 3), 3, True, "d", "l")


@pytest.mark.parametrize("name", ["counts.parquet", "counted-words.parquet", "counted-labels.parquet"])
def test_a_missing_or_changed_file_is_refused(name: str, folder: Path) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArtefactError, match="not be copied completely") as caught:
        read_record(folder)
    assert name in caught.value.where
    path.unlink()
    with pytest.raises(ArtefactError, match="not there"):
        read_record(folder)


def test_another_format_is_refused(folder: Path) -> None:
    path = folder / "shard.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(ArtefactError, match="format"):
        read_record(folder)
