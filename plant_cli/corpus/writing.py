"""Writing a corpus so that the dataset `files` reads it again: one table with a split column, or a folder of splits."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import polars as pl

from plant_cli.api.corpus import SPLITS, Dataset
from plant_cli.api.errors import UsageError
from plant_cli.base.files import replacing
from plant_cli.corpus.frames import Frames
from plant_cli.kit.tables import collect, name_beside, write_table


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
    with ExitStack() as places:  # closed in reverse: the corpus itself takes its place last, when all that belongs to it is there
        for path, content in tables.items():
            write_table(content, places.enter_context(replacing(path)))
    return list(tables)
