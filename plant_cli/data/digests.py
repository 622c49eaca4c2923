"""Digests of a corpus, and of its shares in files: what `plant data check` and `stats` need of it, read by several processes or machines.

A file holds the digests of one share, with the signatures by which nearly equal texts are found. Together they are what one reading of the
whole corpus gives, row for row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from plant_cli.api.context import Reporter
from plant_cli.api.corpus import Dataset, SplitName
from plant_cli.api.errors import ArtefactError, first_line
from plant_cli.api.options import DataSection
from plant_cli.data.documents import count_documents, digest, find_splits, read_progress
from plant_cli.data.files import hash_json
from plant_cli.data.near_duplicates import BANDS, Signatures, join_signatures, sign_texts
from plant_cli.data.parquet import panics_as_errors, write_frames
from plant_cli.data.splits import Shard, find_paths, require_whole

PLACE = {"split": pl.String(), "row": pl.Int64()}
SIGNATURE = {"triples": pl.Int64(), "bands": pl.Array(pl.UInt64(), BANDS)}
_RECORD = "plant_digests"
_COMMAND = "plant data digest PATH --shard i/n -O FILE"


@dataclass(frozen=True)
class Digested:
    """A corpus without its texts.

    Args:
        digests: of the documents of each split, in order.
        signatures: of the same documents, one split after the other.
    """

    digests: Mapping[SplitName, pl.DataFrame]
    signatures: Signatures


def digest_all(dataset: Dataset, reporter: Reporter) -> Digested:
    """The digests and signatures of all splits, from one reading; `DataError` if the corpus cannot be read."""
    digests: dict[SplitName, pl.DataFrame] = {}
    signed: list[Signatures] = []
    for name in find_splits(dataset):
        parts = []
        for batch in read_progress(dataset, name, reporter):
            parts.append(digest(batch))
            signed.append(sign_texts(batch["text"], seed=len(signed)))
        digests[name] = pl.concat(parts)
    return Digested(digests, join_signatures(signed))


def write_digests(path: Path, dataset: Dataset, data: DataSection, shard: Shard, reporter: Reporter) -> int:
    """Write the digests of a share of the documents of each split, whose texts alone are read; returns how many they are.

    Args:
        path: the file.
        dataset: is read batch after batch.
        data: the section that it was read by; the same for all shares.
        shard: which share.
        reporter: shows progress.
    """
    counted = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal counted
        for name in find_splits(dataset):
            rows = shard.part(count_documents(dataset, name))
            start = rows.start
            for own in read_progress(dataset, name, reporter, rows):
                signed = sign_texts(own["text"], seed=start)
                place = {"split": [name] * own.height, "row": np.arange(start, start + own.height)}
                frame = pl.DataFrame({**place, "triples": signed.sizes, "bands": pl.Series(signed.keys, dtype=SIGNATURE["bands"])})
                yield pl.concat(
                    [frame.with_columns(pl.col(name).cast(kind) for name, kind in PLACE.items()), digest(own)], how="horizontal"
                ).select(*schema)
                start, counted = start + own.height, counted + own.height

    schema = _schema()
    record = {"shard": str(shard), "corpus": _identify(dataset, data), "polars": pl.__version__}
    write_frames(path, frames(), schema, {_RECORD: json.dumps(record)})
    return counted


def read_digest_files(patterns: Sequence[str], dataset: Dataset, data: DataSection) -> Digested:
    """The digests of a whole corpus, from files of all its shares.

    Raises:
        UsageError: there is no such file, or a share is missing or given twice.
        ArtefactError: a file holds no digests, or those of another corpus or of another version of polars, whose hashes differ.
    """
    paths = find_paths(patterns)
    records = {path: _read_record(path) for path in paths}
    known = {"corpus": _identify(dataset, data), "polars": pl.__version__}
    for path, record in records.items():
        differing = [name for name, value in known.items() if record.get(name) != value]
        if differing:
            raise _refuse(path, f"they are of another {' and of another '.join(differing)}")
    shards = {path: Shard.parse(record["shard"]) for path, record in records.items()}
    require_whole(shards, f"--digests {' '.join(patterns)}", _COMMAND)
    whole = pl.concat(map(_read_rows, paths))
    parts = {name: whole.filter(split=name).sort("row") for name in find_splits(dataset)}
    keys = np.concatenate([part["bands"].to_numpy().reshape(-1, BANDS) for part in parts.values()])
    sizes = np.concatenate([part["triples"].to_numpy() for part in parts.values()])
    return Digested({name: part.drop(*PLACE, *SIGNATURE) for name, part in parts.items()}, Signatures(keys, sizes))


def _identify(dataset: Dataset, data: DataSection) -> str:
    """Equal for the same files read in the same way, wherever they lie."""
    files = [(Path(path).name, Path(path).stat().st_size) for path in dataset.files if Path(path).is_file()]
    return hash_json([files, data.model_dump(mode="json", exclude={"path", "strict", "rejects"})])


def _read_record(path: Path) -> dict[str, str]:
    try:
        with panics_as_errors():
            record = json.loads(pl.read_parquet_metadata(path).get(_RECORD, "null"))
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise _refuse(path, first_line(error)) from error
    if not isinstance(record, dict):
        raise _refuse(path, "it was not written by `plant data digest`")
    return record


def _schema() -> dict[str, pl.DataType]:
    empty = digest(pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}))
    return {**PLACE, **empty.schema, **SIGNATURE}


def _read_rows(path: Path) -> pl.DataFrame:
    try:
        with panics_as_errors():
            return pl.read_parquet(path, glob=False).select(pl.col(name).cast(kind) for name, kind in _schema().items())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _refuse(path, f"the file is damaged: {first_line(error)}") from error


def _refuse(path: Path, why: str) -> ArtefactError:
    return ArtefactError(
        f"the digests cannot be used: {why}",
        where=str(path),
        expected="digests of this corpus",
        todo=f"make it again from this corpus: `{_COMMAND}`",
    )
