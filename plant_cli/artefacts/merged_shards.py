"""Adding up what shards have counted (`plant mig --merge`): the same counts as of all documents at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api.errors import ArtefactError, first_line
from plant_cli.artefacts.guard import require_same
from plant_cli.artefacts.shards import COUNTS, LABELS, RECORD, WORDS, ShardRecord, damaged, read_record
from plant_cli.base.parquet import panics_as_errors
from plant_cli.relevance.counting import CACHED_PAIRS, Ints, Margins, Pairs
from plant_cli.relevance.shard import require_whole
from plant_cli.relevance.vocabulary import merge_vocabularies, number_words


def open_shards(
    folders: Sequence[Path],
    *,
    data_hash: str,
    label_hash: str,
    analyser: str,
    with_occurrences: bool,
    min_df: int,
    keep: Set[str] = frozenset(),
) -> MergedCounting:
    """The sum of all shards of one corpus.

    Args:
        folders: one for each shard, in any order.
        data_hash: of the corpus that they must be shards of.
        label_hash: of its ordered label ids.
        analyser: hash of how its words are counted.
        with_occurrences: whether they must say how often words occur.
        min_df: words in fewer documents than this, of all shards together, are left out.
        keep: words that are not, however rare.

    Raises:
        UsageError: a shard is missing or given twice.
        ArtefactError: a shard is damaged, of another corpus, or counted with other options.
    """
    records = {folder: read_record(folder) for folder in folders}
    for folder, record in records.items():
        if record.data_hash != data_hash:
            raise _refuse(folder, f"is of another corpus: data hash {record.data_hash[:12]}, not {data_hash[:12]}")
        todo = "count it again from this corpus: `plant mig --shard i/n --force`"
        require_same(record.model_dump(), path=folder / RECORD, what=f"the shard in '{folder.name}'", todo=todo, labels=label_hash)
        if record.analyser != analyser:
            raise _refuse(folder, "was counted with another analyser of words, or with other versions of its packages")
        if with_occurrences and not record.occurrences:
            raise _refuse(folder, "does not say how often words occur, which this signal needs")
    require_whole({folder: record.shard for folder, record in records.items()}, "--merge", "plant mig --shard i/n")
    return MergedCounting(records, with_occurrences=with_occurrences, min_df=min_df, keep=keep)


class MergedCounting:
    """A source of counts (see `Counting`) that reads shards block after block of labels; see `open_shards`."""

    block_pairs = CACHED_PAIRS

    def __init__(self, records: Mapping[Path, ShardRecord], *, with_occurrences: bool, min_df: int, keep: Set[str]) -> None:
        self._columns = ["label", "word", "both", *(["occurrences"] if with_occurrences else [])]
        vocabularies = {folder: _read_words(folder) for folder in records}
        words = merge_vocabularies(list(vocabularies.values()), min_df, keep)
        self._shards = [_ShardReader(folder, number_words(vocabulary, words)) for folder, vocabulary in vocabularies.items()]
        first, *others = (len(shard.offsets) - 1 for shard in self._shards)
        for folder, labels in zip(list(records)[1:], others, strict=True):
            if labels != first:
                raise damaged(folder / LABELS, f"it counts {labels:,} labels, the first shard {first:,}")
        self.margins = Margins(
            n_docs=sum(record.documents for record in records.values()),
            words=tuple(words["word"].to_list()),
            docs_with_word=words["docs_with_word"].to_numpy().astype(np.int64),
            docs_with_label=np.sum([shard.docs_with_label for shard in self._shards], axis=0),
            words_with_label=np.sum([shard.sum_occurrences() for shard in self._shards], axis=0) if with_occurrences else None,
        )
        self.pair_bounds: Ints = np.sum([np.diff(shard.offsets) for shard in self._shards], axis=0)

    def count(self, start: int, stop: int) -> Pairs:
        """See `Counting.count`."""
        rows = pl.concat([shard.read(start, stop, self._columns) for shard in self._shards])
        positions = (rows["label"].to_numpy() - start, rows["word"].to_numpy())
        shape = (stop - start, len(self.margins.words))
        both, *occurrences = (csr_array((rows[name].to_numpy(), positions), shape=shape) for name in self._columns[2:])
        return Pairs.of(both, occurrences[0] if occurrences else None, start)


class _ShardReader:
    """Reads the counts of one shard, its words numbered as in the common vocabulary."""

    def __init__(self, folder: Path, numbers: npt.NDArray[np.int32]) -> None:
        with _told_as_damage(folder / LABELS):
            index = _require_counts(pl.read_parquet(folder / LABELS, glob=False).select(pl.col("docs_with_label", "pairs").cast(pl.Int64)))
            self.docs_with_label = index["docs_with_label"].to_numpy()
            self.offsets = np.concatenate([[0], np.cumsum(index["pairs"].to_numpy())])
        self._path = folder / COUNTS
        self._numbers = pl.Series("number", numbers)

    def read(self, start: int, stop: int, columns: Sequence[str]) -> pl.DataFrame:
        """The pairs of labels `start` to `stop` whose words are in the common vocabulary."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        with _told_as_damage(self._path):
            rows = _require_counts(pl.scan_parquet(self._path, glob=False).slice(first, last - first).select(columns).collect())
            if not rows["label"].is_between(start, stop, closed="left").all():
                raise ValueError("a pair stands where pairs of other labels belong")
            return rows.with_columns(self._numbers.gather(rows["word"]).alias("word")).filter(pl.col("word") >= 0)

    def sum_occurrences(self) -> npt.NDArray[np.int64]:
        """How often words of the common vocabulary occur in the documents of each label [L]."""
        sums = np.zeros(len(self.offsets) - 1, dtype=np.int64)
        kept = pl.LazyFrame({"word": np.flatnonzero(self._numbers.to_numpy() >= 0).astype(np.int32)})
        with _told_as_damage(self._path):
            rows = pl.scan_parquet(self._path, glob=False).join(kept, on="word", how="semi")
            found = rows.group_by("label").agg(pl.col("occurrences").cast(pl.Int64).sum()).collect(engine="streaming")
            sums[found["label"].to_numpy()] = found["occurrences"].to_numpy()
        return sums


def _read_words(folder: Path) -> pl.DataFrame:
    with _told_as_damage(folder / WORDS):
        words = pl.read_parquet(folder / WORDS, glob=False).select(pl.col("word").cast(pl.String), pl.col("docs_with_word").cast(pl.Int64))
        _require_counts(words.select("docs_with_word"))
        return words


def _require_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame itself, if there is a count in every place.

    Raises:
        ValueError: one is missing or negative.
    """
    if not all(frame.select((pl.all() >= 0).fill_null(False).all()).row(0)):
        raise ValueError("a count is missing or negative")
    return frame


@contextmanager
def _told_as_damage(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file of a shard is read into an `ArtefactError`."""
    try:
        with panics_as_errors():
            yield
    except (pl.exceptions.PolarsError, ValueError, TypeError, IndexError) as error:
        raise damaged(path, first_line(error)) from error


def _refuse(folder: Path, why: str) -> ArtefactError:
    return ArtefactError(
        f"the shard in '{folder.name}' {why}",
        where=str(folder),
        expected="shards counted from this run's corpus, for this signal",
        todo="count it again from this corpus with the same --signal, --analyser and packages: `plant mig --shard i/n --force`",
    )
