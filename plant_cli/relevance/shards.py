"""Counts of shares of the training documents: written by `plant mig --shard`, added up by
`plant mig --merge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError
from scipy.sparse import csr_array

from plant_cli.api.errors import ArtefactError, first_line
from plant_cli.data.blocks import cut_blocks, work_ahead
from plant_cli.data.files import hash_file, read_json, write_json
from plant_cli.data.parquet import panics_as_errors, write_frames, write_parquet
from plant_cli.data.records import RECORD_FORMAT, require_same
from plant_cli.data.shares import Shard, require_whole
from plant_cli.relevance.cooccurrence import (
    CACHED_PAIRS,
    AnyInts,
    Cooccurrence,
    CountedPairs,
    Margins,
)

RECORD, COUNTS_FILE = "shard.json", "counts.parquet"
COUNTED_WORDS_FILE, COUNTED_LABELS_FILE = "counted-words.parquet", "counted-labels.parquet"
BYTES_PER_COUNTED_PAIR = 60  # what a pair costs while its block is counted and becomes rows
COUNTS_SCHEMA = {"label": pl.Int32(), "word": pl.Int32(), "both": pl.Int32()}


class ShardRecord(BaseModel):
    """The file shard.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = RECORD_FORMAT
    number: int  # which share
    of: int  # how many shares
    data_hash: str  # of the corpus
    label_hash: str  # of its ordered label ids
    documents: int  # of the share
    occurrences: bool  # whether the counts say how often words occur
    analyser: str  # hash of how words are found
    files: dict[str, str]  # SHA-256 of the other files

    @property
    def shard(self) -> Shard:
        """Which share of how many."""
        return Shard(self.number, self.of)


def write_shard(
    folder: Path,
    shard: Shard,
    counting: Cooccurrence,
    *,
    data_hash: str,
    label_hash: str,
    analyser: str,
    memory: int,
    jobs: int,
    advance: Callable[[int], None] = lambda labels: None,
) -> int:
    """Write the counts of one share, block after block of labels; returns how many pairs there
    are.
    """
    margins = counting.margins
    occurrences = margins.words_with_label is not None
    pairs = [np.empty(0, dtype=np.int64)]

    def frames() -> Iterator[pl.DataFrame]:
        cuts = cut_blocks(
            counting.pair_bounds, counting.block_pairs, memory // (jobs * BYTES_PER_COUNTED_PAIR)
        )
        for lengths, frame in work_ahead(
            lambda block: _count_block(counting, *block), pairwise(cuts), jobs
        ):
            pairs.append(lengths)
            advance(len(lengths))
            yield frame

    write_frames(
        folder / COUNTS_FILE,
        frames(),
        {**COUNTS_SCHEMA, "occurrences": pl.Int32()} if occurrences else COUNTS_SCHEMA,
        {},
    )
    lengths = np.concatenate(pairs)
    words = pl.DataFrame(
        {
            "word": pl.Series(margins.words, dtype=pl.String),
            "docs_with_word": margins.docs_with_word,
        }
    )
    write_parquet(words, folder / COUNTED_WORDS_FILE)
    write_parquet(
        pl.DataFrame({"docs_with_label": margins.docs_with_label, "pairs": lengths}),
        folder / COUNTED_LABELS_FILE,
    )
    record = ShardRecord(
        number=shard.number,
        of=shard.of,
        data_hash=data_hash,
        label_hash=label_hash,
        documents=margins.n_docs,
        occurrences=occurrences,
        analyser=analyser,
        files={
            name: hash_file(folder / name)
            for name in (COUNTS_FILE, COUNTED_WORDS_FILE, COUNTED_LABELS_FILE)
        },
    )
    write_json(folder / RECORD, record.model_dump(mode="json"))
    return int(lengths.sum())


def read_shard_record(folder: Path) -> ShardRecord:
    """What shard.json says, once the other files are what it was written for."""
    path = folder / RECORD
    content = read_json(path, "the record of a shard")
    try:
        record = ShardRecord.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise damaged(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    require_same(
        {"format": record.format},
        path=path,
        what="the record of a shard",
        todo="count the shard again with --force",
    )
    for name, known in record.files.items():
        if not (folder / name).is_file():
            raise damaged(folder / name, "it is not there")
        if hash_file(folder / name) != known:
            raise damaged(
                folder / name,
                f"its hash is not the one in {RECORD}; it may not be copied completely",
            )
    return record


def _count_block(
    counting: Cooccurrence, start: int, stop: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], pl.DataFrame]:
    """How many pairs each label has, and the pairs as rows of `counts.parquet`."""
    pairs = counting.count(start, stop)
    columns = {"label": pairs.label.astype(np.int32), "word": pairs.word, "both": pairs.both}
    if pairs.occurrences is not None:
        columns["occurrences"] = pairs.occurrences
    return np.diff(pairs.offsets).astype(np.int64), pl.DataFrame(columns)


def damaged(path: Path, why: str) -> ArtefactError:
    """The error for a file of a shard that is not what was written."""
    expected, todo = (
        "the files as `plant mig --shard` wrote them",
        "copy the folder again, or count the shard again with --force",
    )
    return ArtefactError(
        f"the counts of a shard are damaged: {why}", where=str(path), expected=expected, todo=todo
    )


def open_shards(
    folders: Sequence[Path],
    *,
    data_hash: str,
    label_hash: str,
    analyser: str,
    with_occurrences: bool,
    min_df: int,
    keep: Set[str] = frozenset(),
) -> MergedCounts:
    """The sum of all shares of one corpus; a missing, damaged or other share is refused."""
    records = {folder: read_shard_record(folder) for folder in folders}
    for folder, record in records.items():
        if record.data_hash != data_hash:
            raise _refuse(
                folder,
                f"is of another corpus: data hash {record.data_hash[:12]}, not {data_hash[:12]}",
            )
        todo = "count it again from this corpus: `plant mig --shard i/n --force`"
        require_same(
            record.model_dump(),
            path=folder / RECORD,
            what=f"the shard in '{folder.name}'",
            todo=todo,
            labels=label_hash,
        )
        if record.analyser != analyser:
            raise _refuse(
                folder,
                "was counted with another analyser of words, or with other versions of its "
                "packages",
            )
        if with_occurrences and not record.occurrences:
            raise _refuse(folder, "does not say how often words occur, which this signal needs")
    require_whole({folder: record.shard for folder, record in records.items()})
    return MergedCounts(records, with_occurrences=with_occurrences, min_df=min_df, keep=keep)


class MergedCounts:
    """Sums of the counts of all shares, read for each block of labels; made by `open_shards`."""

    block_pairs = CACHED_PAIRS

    def __init__(
        self,
        records: Mapping[Path, ShardRecord],
        *,
        with_occurrences: bool,
        min_df: int,
        keep: Set[str],
    ) -> None:
        self._columns = ["label", "word", "both", *(["occurrences"] if with_occurrences else [])]
        vocabularies = {folder: _read_words(folder) for folder in records}
        words = merge_vocabularies(list(vocabularies.values()), min_df, keep)
        self._shards = [
            _ShardReader(folder, match_vocabulary(vocabulary, words))
            for folder, vocabulary in vocabularies.items()
        ]
        first, *others = (len(shard.offsets) - 1 for shard in self._shards)
        for folder, labels in zip(list(records)[1:], others, strict=True):
            if labels != first:
                raise damaged(
                    folder / COUNTED_LABELS_FILE,
                    f"it counts {labels:,} labels, the first shard {first:,}",
                )
        self.margins = Margins(
            n_docs=sum(record.documents for record in records.values()),
            words=tuple(words["word"].to_list()),
            docs_with_word=words["docs_with_word"].to_numpy().astype(np.int64),
            docs_with_label=np.sum([shard.docs_with_label for shard in self._shards], axis=0),
            words_with_label=np.sum([shard.sum_occurrences() for shard in self._shards], axis=0)
            if with_occurrences
            else None,
        )
        self.pair_bounds: AnyInts = np.sum(
            [np.diff(shard.offsets) for shard in self._shards], axis=0
        )

    def count(self, start: int, stop: int) -> CountedPairs:
        """The pairs of labels `start` to `stop`."""
        rows = pl.concat([shard.read(start, stop, self._columns) for shard in self._shards])
        positions = (rows["label"].to_numpy() - start, rows["word"].to_numpy())
        shape = (stop - start, len(self.margins.words))
        both, *occurrences = (
            csr_array((rows[name].to_numpy(), positions), shape=shape) for name in self._columns[2:]
        )
        return CountedPairs.of(both, occurrences[0] if occurrences else None, start)


def merge_vocabularies(
    vocabularies: Sequence[pl.DataFrame], min_df: int, keep: Set[str] = frozenset()
) -> pl.DataFrame:
    """The sum of several frames `word, docs_with_word`, sorted by falling document frequency, then
    alphabetically.

    Words in fewer than `min_df` documents are left out, except those of `keep`.
    """
    added = pl.concat(vocabularies).group_by("word").agg(pl.col("docs_with_word").sum())
    wanted = (pl.col("docs_with_word") >= min_df) | pl.col("word").is_in(list(keep))
    return added.filter(wanted).sort("docs_with_word", "word", descending=[True, False])


def match_vocabulary(vocabulary: pl.DataFrame, words: pl.DataFrame) -> npt.NDArray[np.int32]:
    """The row of each word of a share in the common vocabulary; −1 for a word that is left out."""
    numbered = words.select("word").with_row_index("number")
    rows = vocabulary.join(numbered, on="word", how="left", maintain_order="left")["number"]
    return rows.cast(pl.Int32).fill_null(-1).to_numpy()


class _ShardReader:
    """Reads the counts of one shard, its words numbered as in the common vocabulary."""

    def __init__(self, folder: Path, numbers: npt.NDArray[np.int32]) -> None:
        with _errors_as_damage(folder / COUNTED_LABELS_FILE):
            index = _require_counts(
                pl.read_parquet((folder / COUNTED_LABELS_FILE).absolute(), glob=False).select(
                    pl.col("docs_with_label", "pairs").cast(pl.Int64)
                )
            )
            self.docs_with_label = index["docs_with_label"].to_numpy()
            self.offsets = np.concatenate([[0], np.cumsum(index["pairs"].to_numpy())])
        self._path = folder / COUNTS_FILE
        self._numbers = pl.Series("number", numbers)

    def read(self, start: int, stop: int, columns: Sequence[str]) -> pl.DataFrame:
        """The pairs of labels `start` to `stop` whose words are in the common vocabulary."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        with _errors_as_damage(self._path):
            rows = _require_counts(
                pl.scan_parquet(self._path.absolute(), glob=False)
                .slice(first, last - first)
                .select(columns)
                .collect()
            )
            if not rows["label"].is_between(start, stop, closed="left").all():
                raise ValueError("a pair of another label is in its rows")
            return rows.with_columns(self._numbers.gather(rows["word"]).alias("word")).filter(
                pl.col("word") >= 0
            )

    def sum_occurrences(self) -> npt.NDArray[np.int64]:
        """How often words of the common vocabulary occur in the documents of each label [L]."""
        sums = np.zeros(len(self.offsets) - 1, dtype=np.int64)
        kept = pl.LazyFrame(
            {"word": np.flatnonzero(self._numbers.to_numpy() >= 0).astype(np.int32)}
        )
        with _errors_as_damage(self._path):
            rows = pl.scan_parquet(self._path.absolute(), glob=False).join(
                kept, on="word", how="semi"
            )
            counted = (
                rows.group_by("label")
                .agg(pl.col("occurrences").cast(pl.Int64).sum())
                .collect(engine="streaming")
            )
            sums[counted["label"].to_numpy()] = counted["occurrences"].to_numpy()
        return sums


def _read_words(folder: Path) -> pl.DataFrame:
    with _errors_as_damage(folder / COUNTED_WORDS_FILE):
        words = pl.read_parquet((folder / COUNTED_WORDS_FILE).absolute(), glob=False).select(
            pl.col("word").cast(pl.String), pl.col("docs_with_word").cast(pl.Int64)
        )
        _require_counts(words.select("docs_with_word"))
        return words


def _require_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame itself, if there is a count in every place."""
    if not all(frame.select((pl.all() >= 0).fill_null(False).all()).row(0)):
        raise ValueError("a count is missing or negative")
    return frame


@contextmanager
def _errors_as_damage(path: Path) -> Iterator[None]:
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
        todo="count it again from this corpus with the same --signal, --analyser and packages: "
        "`plant mig --shard i/n --force`",
    )
