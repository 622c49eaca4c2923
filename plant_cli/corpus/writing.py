"""Writing a corpus so that the dataset `files` reads it again: one table with a split column, or a folder of splits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import polars as pl

from plant_cli.api.corpus import SPLITS, Dataset
from plant_cli.api.errors import UsageError
from plant_cli.api.specs import DatasetSpec
from plant_cli.base.files import replacing, replacing_folder
from plant_cli.corpus.frames import Frames
from plant_cli.kit.tables import collect, name_beside, output_format, write_table


def write_corpus(frames: Frames, dataset: Dataset, output: Path, *, force: bool) -> list[Path]:
    """Write tidy frames, and the dataset's labels and evidence beside them.

    Args:
        frames: the splits.
        dataset: where the labels and the evidence come from.
        output: a file whose name promises a format (`data.parquet`; then labels go to `data.labels.parquet`), or else a folder
            (then `train.parquet`, …, `labels.parquet`).
        force: replace files that are there.

    Returns:
        What was written.

    Raises:
        UsageError: a file is there and `force` is false; nothing is written then.
        DataError: the file's name ends in a format that is not known.
    """
    single = bool(output.suffix)
    if not single and output.exists() and not output.is_dir():
        raise UsageError(
            f"'{output}' is a file that is no table",
            where=str(output.absolute()),
            expected="a file whose name promises a format, such as data.parquet, or a folder",
            todo="choose another output",
        )
    tables: dict[Path, pl.DataFrame] = {}
    if single:
        tables[output] = pl.concat(frames[name].with_columns(split=pl.lit(name)) for name in SPLITS if name in frames)
    else:
        tables |= {output / f"{name}.parquet": frame for name, frame in frames.items()}
    for what, table in (("labels", dataset.labels), ("evidence", dataset.evidence)):
        if table is not None:
            place = name_beside(output, what) if single else output / f"{what}.parquet"
            tables[place] = collect(table, what)
    present = [str(path) for path in tables if path.exists()]
    if present and not force:
        raise UsageError(
            f"{len(present)} of the files to write are there already",
            where=", ".join(present),
            expected="an output that does not exist",
            todo="choose another output, or replace them with --force",
        )
    for path in tables:
        output_format(path)
    with ExitStack() as places:  # closed in reverse: the corpus itself takes its place last, when all that belongs to it is there
        for path, content in tables.items():
            write_table(content, places.enter_context(replacing(path)))
    return list(tables)


def require_writer(spec: DatasetSpec, specs: Sequence[DatasetSpec]) -> None:
    """`UsageError` for a dataset plugin that writes nothing; it names those that do."""
    if spec.write is None:
        raise UsageError(
            f"the dataset '{spec.name}' has no writer",
            where="--to",
            expected=f"one of {', '.join(one.name for one in specs if one.write is not None)}",
            todo="name one of these; tables need no --to: `plant data convert IN data.parquet`",
        )


def write_format(
    frames: Frames, dataset: Dataset, spec: DatasetSpec, output: Path, *, suffix: str, force: bool
) -> tuple[list[Path], Sequence[str]]:
    """Write tidy frames as a folder in the format of a dataset plugin.

    Args:
        frames: the splits.
        dataset: where labels and evidence come from.
        spec: has a writer.
        output: the folder.
        suffix: of compressed text files: "", `.gz` or `.zst`.
        force: replace the folder, if it is there.

    Returns:
        What was written, and remarks on what the format cannot hold.

    Raises:
        UsageError: the folder is there and `force` is false.
        DataError: the format cannot hold the corpus; nothing is written then.
    """
    if output.exists() and not (force and output.is_dir()):
        raise UsageError(
            "the output is there already",
            where=str(output.absolute()),
            expected="a folder that does not exist",
            todo="choose another output" + (", or replace it with --force" if output.is_dir() else ""),
        )
    tidied = replace(dataset, splits={name: frame.lazy() for name, frame in frames.items()})
    lost = [] if dataset.evidence is None else ["this format does not hold gold evidence"]
    with replacing_folder(output) as folder:
        remarks = spec.write(tidied, folder, suffix) if spec.write is not None else []
    return sorted(path for path in output.rglob("*") if path.is_file()), [*remarks, *lost]
