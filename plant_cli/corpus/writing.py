"""Writing a corpus so that the dataset `files` reads it again: one table with a split column, or a folder of splits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl

from plant_cli.api.corpus import SPLITS, Dataset, SplitName
from plant_cli.api.errors import UsageError
from plant_cli.api.specs import DatasetSpec
from plant_cli.artefacts.frames import write_frames
from plant_cli.base.files import name_temporary, replacing, replacing_folder, require_free
from plant_cli.kit.tables import collect, name_beside, output_format, write_table, write_text_batches
from plant_cli.relevance.shard import Shard

Parts = Mapping[SplitName, pl.DataFrame | Iterable[pl.DataFrame]]
"""Splits, each whole or in batches that are taken once."""

SCHEMA = {"doc_id": pl.String(), "text": pl.String(), "labels": pl.List(pl.String())}
BESIDE = ("labels", "evidence", "excluded")
ROW_GROUP = 20_000  # documents that a reader of Parquet holds together


def write_corpus(parts: Parts, dataset: Dataset, output: Path, *, force: bool, shard: Shard | None = None) -> list[Path]:
    """Write tidy splits, batch after batch, and the dataset's labels, evidence and excluded pairs beside them.

    Args:
        parts: the splits.
        dataset: where what stands beside them comes from.
        output: a file whose name promises a format (`data.parquet`; then labels go to `data.labels.parquet`), or else a folder
            (then `train.parquet`, …, `labels.parquet`).
        force: replace files that are there.
        shard: the splits are this share of a corpus whose shares lie in one folder; what stands beside them is written by the first.

    Returns:
        What was written.

    Raises:
        UsageError: a file is there and `force` is false, or a share is to be written to a single file; nothing is written then.
        DataError: the file's name ends in a format that is not known.
    """
    single = bool(output.suffix)
    _require_place(output, shard)
    documents: dict[Path, Iterable[pl.DataFrame]] = {}
    if single:
        documents[output] = (batch.with_columns(split=pl.lit(n)) for n in SPLITS if n in parts for batch in _batches(parts[n]))
    else:
        documents |= {output / f"{name}{_suffix(shard)}.parquet": _batches(part) for name, part in parts.items()}
    tables: dict[Path, pl.DataFrame] = {}
    for what in BESIDE if shard is None or shard.number == 1 else ():
        table: pl.LazyFrame | None = getattr(dataset, what)
        if table is not None:
            place = name_beside(output, what) if single else output / f"{what}.parquet"
            tables[place] = collect(table, what)
    paths = [*documents, *tables]
    present = [str(path) for path in paths if path.exists()]
    if present and not force:
        raise UsageError(
            f"{len(present)} of the files to write are there already",
            where=", ".join(present),
            expected="an output that does not exist",
            todo="choose another output, or replace them with --force",
        )
    for path in paths:
        output_format(path)
    aside: dict[Path, Path] = {}
    # places are closed in reverse: the corpus itself takes its own last, when all that belongs to it is there
    with _put_back(aside), ExitStack() as places:
        for path, batches in documents.items():
            _write_batches(batches, places.enter_context(replacing(path)), {**SCHEMA, "split": pl.String()} if single else SCHEMA)
        for path, content in tables.items():
            write_table(content, places.enter_context(replacing(path)))
        for path in documents if tables else ():  # all is written; while names change, no old documents stand beside new tables
            if path.exists():
                os.replace(path, aside.setdefault(path, name_temporary(path)))
    return paths


def _require_place(output: Path, shard: Shard | None) -> None:
    """Refuse a file in place of a folder, and a file for a share."""
    if not output.suffix and output.exists() and not output.is_dir():
        raise UsageError(
            f"'{output}' is a file that is no table",
            where=str(output.absolute()),
            expected="a file whose name promises a format, such as data.parquet, or a folder",
            todo="choose another output",
        )
    if output.suffix and shard is not None:
        raise UsageError(
            "a share of a corpus is written into a folder, beside the others",
            where=f"'{output}', --shard {shard}",
            expected="a name without suffix",
            todo=f"name a folder, such as {output.stem}: it is read as one corpus when all shares are there",
        )


def _suffix(shard: Shard | None) -> str:
    """What marks the files of a share, as Hugging Face names them: counted from 0."""
    return "" if shard is None else f"-{shard.number - 1:05d}-of-{shard.of:05d}"


@contextmanager
def _put_back(aside: Mapping[Path, Path]) -> Iterator[None]:
    """Remove the files that were set aside in the block, or give them their names again if it fails."""
    try:
        yield
    except BaseException:
        for path, other in aside.items():
            if other.exists() and not path.exists():
                os.replace(other, path)
        raise
    for other in aside.values():
        other.unlink()


def _batches(part: pl.DataFrame | Iterable[pl.DataFrame]) -> Iterable[pl.DataFrame]:
    return [part] if isinstance(part, pl.DataFrame) else part


def _write_batches(batches: Iterable[pl.DataFrame], path: Path, schema: Mapping[str, pl.DataType]) -> None:
    if output_format(path) == ".parquet":
        alone = pl.col("text") + ""  # a copy: rows chosen from a table keep all of its texts in memory, and the writer keeps many batches
        write_frames(path, (batch.select(*schema).with_columns(alone) for batch in batches), schema, {}, row_group=ROW_GROUP)
    else:
        write_text_batches(batches, path)


def require_writer(spec: DatasetSpec, specs: Sequence[DatasetSpec]) -> None:
    """`UsageError` for a dataset plugin that writes nothing; it names those that do."""
    if spec.write is None:
        raise UsageError(
            f"the dataset '{spec.name}' has no writer",
            where="--to",
            expected=f"one of {', '.join(one.name for one in specs if one.write is not None)}",
            todo="name one of these; tables need no --to: `plant data convert IN data.parquet`",
        )


def write_format(dataset: Dataset, spec: DatasetSpec, output: Path, *, suffix: str, force: bool) -> tuple[list[Path], Sequence[str]]:
    """Write a corpus as a folder in the format of a dataset plugin.

    Args:
        dataset: its splits are tidy (see `frames.tidy_dataset`).
        spec: has a writer.
        output: the folder.
        suffix: of compressed text files: "", `.gz` or `.zst`.
        force: replace the folder, if it is there.

    Returns:
        What was written, and remarks on what the format cannot hold.

    Raises:
        UsageError: the folder is there and `force` is false, or there is a file of its name.
        DataError: the format cannot hold the corpus; nothing is written then.
    """
    require_free(output, force=force, folder=True)
    lost = [] if dataset.evidence is None else ["this format does not hold gold evidence"]
    with replacing_folder(output) as folder:
        remarks = spec.write(dataset, folder, suffix) if spec.write is not None else []
    return sorted(path for path in output.rglob("*") if path.is_file()), [*remarks, *lost]
