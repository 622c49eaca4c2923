"""Counts of shares are written, checked, and add up to the counts of all documents."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import plant_signals as plugin
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError, SignalSpec, UsageError
from plant_cli.data.files import hash_file
from plant_cli.data.words import number_words
from plant_cli.registry import Registry
from plant_cli.relevance.cooccurrence import MemoryCounts, count_terms
from plant_cli.relevance.engine import Selection, bind_signal, keep_words
from plant_cli.relevance.shards import (
    Shard,
    match_vocabulary,
    merge_vocabularies,
    open_shards,
    read_shard_record,
    write_shard,
)

DOCUMENTS = [["a", "a", "b"], ["b"], ["c", "c", "a"]]
GOLD = [[1, 0], [0, 0], [1, 1]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    counting = MemoryCounts(
        count_terms(number_words(DOCUMENTS), 1), csr_array(GOLD), with_occurrences=True
    )
    pairs = write_shard(
        tmp_path,
        Shard(2, 3),
        counting,
        data_hash="d",
        label_hash="l",
        analyser="a",
        memory=1,
        jobs=2,
    )
    assert pairs == 5
    return tmp_path


def test_the_files_hold_the_counts_of_every_word(folder: Path) -> None:
    rows = pl.read_parquet(folder / "counts.parquet").sort("label", "word")
    assert rows.rows() == [(0, 0, 2, 3), (0, 1, 1, 1), (0, 2, 1, 2), (1, 0, 1, 1), (1, 2, 1, 2)]
    assert pl.read_parquet(folder / "counted-words.parquet").rows() == [
        ("a", 2),
        ("b", 2),
        ("c", 1),
    ]
    assert pl.read_parquet(folder / "counted-labels.parquet").rows() == [(2, 3), (1, 2)]
    record = read_shard_record(folder)
    assert (
        record.shard,
        record.documents,
        record.occurrences,
        record.data_hash,
        record.label_hash,
    ) == (Shard(2, 3), 3, True, "d", "l")


@pytest.mark.parametrize(
    "name", ["counts.parquet", "counted-words.parquet", "counted-labels.parquet"]
)
def test_a_missing_or_changed_file_is_refused(name: str, folder: Path) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArtefactError, match="not be copied completely") as caught:
        read_shard_record(folder)
    assert name in caught.value.where
    path.unlink()
    with pytest.raises(ArtefactError, match="not there"):
        read_shard_record(folder)


def test_another_format_is_refused(folder: Path) -> None:
    path = folder / "shard.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(ArtefactError, match="format"):
        read_shard_record(folder)


HASHES = {"data_hash": "d" * 64, "label_hash": "l" * 64, "analyser": "a" * 64}


def draw_corpus(seed: int, documents: int) -> tuple[list[list[str]], Any]:
    """Documents of repeated words, many of them rare, and gold labels."""
    draw = np.random.default_rng(seed)
    texts = [
        [f"w{int(n)}" for n in draw.zipf(1.5, draw.integers(0, 12)).clip(max=40)]
        for _ in range(documents)
    ]
    return texts, csr_array((draw.random((documents, 5)) < 0.3).astype(np.int32))


def write_shards(
    folder: Path,
    texts: list[list[str]],
    gold: Any,
    of: int,
    *,
    occurrences: bool = True,
    hashes: Any = HASHES,
) -> list[Path]:
    folders = []
    for number in range(1, of + 1):
        shard = Shard(number, of)
        terms = count_terms(number_words(texts[shard.rows]), 1)
        counting = MemoryCounts(terms, gold[shard.rows], with_occurrences=occurrences)
        folders.append(folder / f"{of}-{number}")
        folders[-1].mkdir()
        write_shard(folders[-1], shard, counting, memory=10_000, jobs=2, **hashes)
    return folders


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    documents=st.integers(1, 25),
    of=st.integers(1, 5),
    min_df=st.integers(1, 3),
)
def test_shards_add_up_to_the_counts_of_all_documents(
    seed: int, documents: int, of: int, min_df: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also with more shards than documents, and with words that are rare in every shard but not
    in all.
    """
    texts, gold = draw_corpus(seed, documents)
    whole = MemoryCounts(count_terms(number_words(texts), min_df), gold, with_occurrences=True)
    folders = write_shards(tmp_path_factory.mktemp("shards"), texts, gold, of)
    merged = open_shards(folders[::-1], with_occurrences=True, min_df=min_df, **HASHES)
    for name in ("docs_with_word", "docs_with_label", "words_with_label"):
        assert getattr(merged.margins, name).tolist() == getattr(whole.margins, name).tolist()
    assert (merged.margins.words, merged.margins.n_docs) == (whole.margins.words, documents)
    if not merged.margins.words:
        return
    found, expected = merged.count(1, 5), whole.count(1, 5)
    assert (merged.pair_bounds[1:5] >= np.diff(found.offsets)).all()
    for name in ("offsets", "label", "word", "both", "occurrences"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()


@pytest.mark.parametrize("name", ["mig", "pmi", "chi2", "tf", "random"])
@pytest.mark.parametrize("sign", ["positive", "any"])
def test_every_signal_keeps_the_same_words(name: str, sign: Any, tmp_path: Path) -> None:
    registry = Registry()
    registry.register(plugin, name="signals")
    signal: Any = registry.find(SignalSpec, name)
    texts, gold = draw_corpus(3, 60)
    whole = MemoryCounts(
        count_terms(number_words(texts), 2), gold, with_occurrences=signal.needs_occurrences
    )
    folders = write_shards(tmp_path, texts, gold, 3, occurrences=signal.needs_occurrences)
    merged = open_shards(folders, with_occurrences=signal.needs_occurrences, min_df=2, **HASHES)
    bound = bind_signal(signal, signal.options())
    kept = [
        list(keep_words(source, bound, Selection(k=9, sign=sign, jobs=2)))
        for source in (whole, merged)
    ]
    found, expected = (
        np.concatenate([np.diff(block.offsets) for block in blocks]).tolist()
        for blocks in (kept[1], kept[0])
    )
    assert found == expected
    for part in ("words", "values", "both"):
        found, expected = (
            np.concatenate([getattr(block, part) for block in blocks]).tolist()
            for blocks in (kept[1], kept[0])
        )
        assert found == expected


def merge(folders: list[Path], *, with_occurrences: bool = False, **hashes: str) -> Any:
    return open_shards(folders, with_occurrences=with_occurrences, min_df=1, **{**HASHES, **hashes})


def test_wrong_sets_of_shards_are_refused_and_named(tmp_path: Path) -> None:
    """For other wrong sets see `require_whole`."""
    first, _, third = write_shards(tmp_path, *draw_corpus(1, 12), 3)
    with pytest.raises(UsageError, match="shard 2/3 is missing") as caught:
        merge([first, third])
    assert "plant mig --shard" in caught.value.todo
    assert str(first) in caught.value.where


def test_shards_of_another_corpus_or_counted_otherwise_are_refused(tmp_path: Path) -> None:
    texts, gold = draw_corpus(1, 12)
    folders = write_shards(tmp_path, texts, gold, 2, occurrences=False)
    with pytest.raises(
        ArtefactError, match="another corpus: data hash dddddddddddd, not eeeeeeeeeeee"
    ):
        merge(folders, data_hash="e" * 64)
    with pytest.raises(ArtefactError, match="made for another label order"):
        merge(folders, label_hash="m" * 64)
    with pytest.raises(ArtefactError, match="how often words occur") as caught:
        merge(folders, with_occurrences=True)
    assert "--signal" in caught.value.todo


@pytest.mark.parametrize(
    "name", ["counts.parquet", "counted-words.parquet", "counted-labels.parquet"]
)
def test_a_damaged_file_is_told_even_if_its_record_fits(name: str, tmp_path: Path) -> None:
    texts, gold = draw_corpus(3, 20)
    (folder,) = write_shards(tmp_path, texts, gold, 1)
    record = json.loads((folder / "shard.json").read_text())
    whole = (folder / name).read_bytes()
    for content in (whole[:-9], whole[:4] + b"\0" * 40 + whole[44:], b"PAR1PAR1"):
        (folder / name).write_bytes(content)
        (folder / "shard.json").write_text(
            json.dumps({**record, "files": {**record["files"], name: hash_file(folder / name)}})
        )
        with pytest.raises(ArtefactError, match="the counts of a shard are damaged") as caught:
            open_shards([folder], with_occurrences=True, min_df=1, **HASHES).count(0, 5)
        assert caught.value.where == str(folder / name)


def rewrite(folder: Path, name: str, change: Any) -> None:
    """Change a table of a shard, and its record so that it fits."""
    table = pl.read_parquet(folder / name)
    change(table).write_parquet(folder / name)
    record = json.loads((folder / "shard.json").read_text())
    (folder / "shard.json").write_text(
        json.dumps({**record, "files": {**record["files"], name: hash_file(folder / name)}})
    )


@pytest.mark.parametrize("value", [None, -1, "next label"])
@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("counts.parquet", "both"),
        ("counts.parquet", "word"),
        ("counted-words.parquet", "docs_with_word"),
        ("counted-labels.parquet", "pairs"),
        ("counted-labels.parquet", "docs_with_label"),
    ],
)
def test_a_count_that_is_missing_or_negative_or_of_another_label_is_told(
    name: str, column: str, value: Any, tmp_path: Path
) -> None:
    texts, gold = draw_corpus(3, 20)
    (folder,) = write_shards(tmp_path, texts, gold, 1)
    last = pl.int_range(pl.len()) == pl.len() - 1
    change = pl.when(last).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    if value == "next label":
        name, change = "counts.parquet", pl.col("label") + 1
    rewrite(folder, name, lambda table: table.with_columns(change))
    with pytest.raises(ArtefactError, match="the counts of a shard are damaged") as caught:
        open_shards([folder], with_occurrences=False, min_df=1, **HASHES).count(0, 5)
    assert caught.value.where == str(folder / name)


def test_shards_with_other_numbers_of_labels_are_told(tmp_path: Path) -> None:
    texts, gold = draw_corpus(3, 20)
    folders = write_shards(tmp_path, texts, gold, 2)
    rewrite(folders[1], "counted-labels.parquet", lambda table: table.head(3))
    with pytest.raises(ArtefactError, match="damaged") as caught:
        open_shards(folders, with_occurrences=False, min_df=1, **HASHES)
    assert caught.value.where == str(folders[1] / "counted-labels.parquet")


FIRST = pl.DataFrame({"word": ["b", "a", "rare"], "docs_with_word": [2, 1, 1]})
SECOND = pl.DataFrame({"word": ["a", "c"], "docs_with_word": [2, 3]})


def test_words_are_sorted_by_their_documents_then_by_the_alphabet_and_rare_ones_have_no_row() -> (
    None
):
    merged = merge_vocabularies([FIRST, SECOND], min_df=2)
    assert merged.rows() == [("a", 3), ("c", 3), ("b", 2)]
    assert match_vocabulary(FIRST, merged).tolist() == [2, 0, -1]
    assert match_vocabulary(SECOND, merged).tolist() == [0, 1]
