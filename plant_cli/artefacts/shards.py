"""A share of the training documents counted by itself (`plant mig --shard 2/4`): which documents, and the files of its counts.

`counts.parquet` holds the pairs, by label; `counted-words.parquet` and `counted-labels.parquet` what their numbers mean;
`shard.json`, written last, whose counts they are, and their hashes. No word is left out yet: which are rare is known only
when all shards are added up (`merging`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from plant_cli.api.errors import ArtefactError
from plant_cli.artefacts.frames import write_frames
from plant_cli.artefacts.guard import FORMAT, require_same
from plant_cli.base.files import read_json, replacing, write_json
from plant_cli.base.hashing import hash_file
from plant_cli.relevance.blocks import cut_blocks, work_ahead
from plant_cli.relevance.counting import Counting
from plant_cli.relevance.shard import Shard

RECORD, COUNTS, WORDS, LABELS = "shard.json", "counts.parquet", "counted-words.parquet", "counted-labels.parquet"
BYTES_PER_PAIR = 60  # what a pair costs while its block is counted and becomes rows
SCHEMA = {"label": pl.Int32(), "word": pl.Int32(), "both": pl.Int32()}


class ShardRecord(BaseModel):
    """The file shard.json.

    Args:
        format: of the files.
        number: which shard.
        of: of how many.
        data_hash: of the corpus that it is a share of.
        label_hash: of that corpus's ordered label ids.
        documents: of the shard.
        occurrences: whether it is counted how often words occur.
        analyser: hash of how words are counted.
        files: SHA-256 of the other files.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    number: int
    of: int
    data_hash: str
    label_hash: str
    documents: int
    occurrences: bool
    analyser: str
    files: dict[str, str]

    @property
    def shard(self) -> Shard:
        """Which share of how many."""
        return Shard(self.number, self.of)


def write_shard(
    folder: Path,
    shard: Shard,
    counting: Counting,
    *,
    data_hash: str,
    label_hash: str,
    analyser: str,
    memory: int,
    jobs: int,
    advance: Callable[[int], None] = lambda labels: None,
) -> int:
    """Write the counts of one shard, block after block of labels; returns how many pairs there are.

    Args:
        folder: where to write.
        shard: which share of the documents was counted.
        counting: its counts, of every word.
        data_hash: of the whole corpus.
        label_hash: of its ordered label ids.
        analyser: hash of how its words are counted.
        memory: bytes for the blocks under way.
        jobs: threads.
        advance: called with the number of labels each time a block is counted.
    """
    margins = counting.margins
    occurrences = margins.words_with_label is not None
    pairs = [np.empty(0, dtype=np.int64)]

    def frames() -> Iterator[pl.DataFrame]:
        cuts = cut_blocks(counting.pair_bounds, counting.block_pairs, memory // (jobs * BYTES_PER_PAIR))
        for lengths, frame in work_ahead(lambda block: _count_block(counting, *block), pairwise(cuts), jobs):
            pairs.append(lengths)
            advance(len(lengths))
            yield frame

    write_frames(folder / COUNTS, frames(), {**SCHEMA, "occurrences": pl.Int32()} if occurrences else SCHEMA, {})
    lengths = np.concatenate(pairs)
    _write(folder / WORDS, {"word": pl.Series(margins.words, dtype=pl.String), "docs_with_word": margins.docs_with_word})
    _write(folder / LABELS, {"docs_with_label": margins.docs_with_label, "pairs": lengths})
    record = ShardRecord(
        number=shard.number,
        of=shard.of,
        data_hash=data_hash,
        label_hash=label_hash,
        documents=margins.n_docs,
        occurrences=occurrences,
        analyser=analyser,
        files={name: hash_file(folder / name) for name in (COUNTS, WORDS, LABELS)},
    )
    write_json(folder / RECORD, record.model_dump(mode="json"))
    return int(lengths.sum())


def read_record(folder: Path) -> ShardRecord:
    """What shard.json says, once the other files are what it was written for.

    Raises:
        ArtefactError: a file is missing, damaged, or of another version of plant.
    """
    path = folder / RECORD
    content = read_json(path, "the record of a shard")
    try:
        record = ShardRecord.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise damaged(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    require_same({"format": record.format}, path=path, what="the record of a shard", todo="count the shard again with --force")
    for name, known in record.files.items():
        if not (folder / name).is_file():
            raise damaged(folder / name, "it is not there")
        if hash_file(folder / name) != known:
            raise damaged(folder / name, f"its hash is not the one in {RECORD}; it may not be copied completely")
    return record


def _count_block(counting: Counting, start: int, stop: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], pl.DataFrame]:
    """How many pairs each label has, and the pairs as rows of `counts.parquet`."""
    pairs = counting.count(start, stop)
    columns = {"label": pairs.label.astype(np.int32), "word": pairs.word, "both": pairs.both}
    if pairs.occurrences is not None:
        columns["occurrences"] = pairs.occurrences
    return np.diff(pairs.offsets).astype(np.int64), pl.DataFrame(columns)


def _write(path: Path, columns: dict[str, object]) -> None:
    with replacing(path) as temporary:
        pl.DataFrame(columns).write_parquet(temporary)


def damaged(path: Path, why: str) -> ArtefactError:
    """The error for a file of a shard that is not what was written."""
    return ArtefactError(
        f"the counts of a shard are damaged: {why}",
        where=str(path),
        expected="the files as `plant mig --shard` wrote them",
        todo="copy the folder again, or count the shard again with --force",
    )
