"""The dataset `files`: local tables, their columns mapped onto the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from plant_cli.api import SPLITS, DataError, DataSection, Dataset, Pieces, PlantError, SplitName, UsageError, near_names
from plant_cli.kit import (
    BadRows,
    collect,
    count_rows,
    find_fallback,
    join_columns,
    peek_columns,
    read_bytes,
    scan_table,
    shorten,
    show_names,
    table_format,
    text_columns,
    whole_numbers,
)
from plant_datasets.guesses import guess_split, missing_column
from plant_datasets.hash_split import split_by_hash
from plant_datasets.label_cells import SEPARATORS, describe_guess, find_separator, parse_labels
from plant_datasets.layout import ALIASES, find_beside, find_split_files

PIECE = 10_000  # documents that are read together: some tens of megabytes of text
_SPLIT, _ROW = "split of the row", "number of the row"  # names that no column of a user has


def load_files(data: DataSection) -> Dataset:
    """Read a corpus file or folder; the columns are named by the section.

    Raises:
        UsageError: no path was given.
        DataError: a file, a column or a cell is not as it must be; says which.
    """
    if data.path is None:
        raise UsageError(
            "no corpus was named, and no stage of this run has read one",
            where="argument PATH, which is the option path of the section data",
            expected="a table with a split column, or a folder of train, validation and test tables",
            todo="name it, as in `plant mig data.parquet`; or name the folder of an earlier run with --run DIR",
        )
    path, bad = Path(data.path), BadRows.of(data)
    parts, files, remarks = _read_folder(path, data, bad) if path.is_dir() else _read_file(path, data, bad)
    splits = {name: pl.concat(pieces) for name, pieces in parts.items()}
    titles = Path(data.titles) if data.titles else find_beside(path, "labels")
    evidence = Path(data.evidence) if data.evidence else find_beside(path, "evidence")
    excluded = find_beside(path, "excluded")
    return Dataset(
        splits=splits,
        pieces={name: Pieces(whole, parts[name]) for name, whole in splits.items()},
        labels=_read_titles(Path(data.titles), data) if data.titles else _read_beside(_read_titles, titles, data, remarks),
        evidence=_read_evidence(Path(data.evidence), data) if data.evidence else _read_beside(_read_evidence, evidence, data, remarks),
        excluded=_read_beside(_read_excluded, excluded, data, remarks),
        files=[str(file) for file in (*files, titles, evidence, excluded) if file],
        remarks=[*remarks, *bad.close()],
    )


def recognise(data: DataSection) -> str | None:
    """A table that has the columns of the section `data`, or a folder whose training file is one."""
    path = None if data.path is None else Path(data.path)
    if path is None or not path.exists():
        return None
    try:
        table = find_split_files(path)["train"][0] if path.is_dir() else path
        columns = peek_columns(table, data.encoding)
    except (PlantError, OSError):
        return None
    wanted = {*text_columns(data.text_column, columns), data.labels_column}
    return f"a table with the columns {show_names(columns)}" if wanted <= set(columns) else None


Parts = list[pl.LazyFrame]  # consecutive rows of a table
Read = tuple[dict[SplitName, Parts], list[Path], list[str]]


def _read_folder(folder: Path, data: DataSection, bad: BadRows) -> Read:
    parts = find_split_files(folder)
    tables = {}
    for split, paths in parts.items():
        frames = [scan_table(path, encoding=data.encoding, bad=bad) for path in paths]
        tables[split, str(paths[0])] = pl.concat(frames, how="diagonal_relaxed") if len(frames) > 1 else frames[0]
    mapped, remarks = _map_tables({where: (frame, f"{split}-") for (split, where), frame in tables.items()}, data)
    splits = {split: mapped[where] for split, where in tables}
    files = [path for paths in parts.values() for path in paths]
    return splits, files, [*remarks, *_name_strays(folder, data, files)]


def _name_strays(folder: Path, data: DataSection, read: Sequence[Path]) -> list[str]:
    """A remark on tables of documents that are of no split."""
    tables = [path for path in sorted(folder.iterdir()) if path.is_file() and table_format(path) and path not in read]
    strays = [path.name for path in tables if _holds_documents(path, data)]
    return [f"{folder}: {', '.join(strays)} passed over: a split is called {', '.join(SPLITS)}"] if strays else []


def _holds_documents(path: Path, data: DataSection) -> bool:
    try:
        columns = peek_columns(path, data.encoding)
    except (PlantError, OSError):
        return False
    return {*text_columns(data.text_column, columns), data.labels_column} <= set(columns)


def _read_file(path: Path, data: DataSection, bad: BadRows) -> Read:
    table = scan_table(path, encoding=data.encoding, bad=bad)
    columns = table.collect_schema().names()
    if data.split_column in columns:
        places = _find_splits(table, data.split_column, path)
        mapped, remarks = _map_tables({str(path): (table, "")}, data, [_name_split(data.split_column)])
        present = places.unique()
        return {name: _choose(mapped[str(path)], places, name) for name in SPLITS if name in present}, [path], remarks
    asked = data.split_column != DataSection.model_fields["split_column"].default
    if asked or "did you mean" in near_names(data.split_column, columns) or guess_split(table, str(path)):
        raise missing_column(data.split_column, "--split-column", table, data, path)
    mapped, remarks = _map_tables({str(path): (table, "")}, data)
    anew = f"{path} has no column '{data.split_column}': split 80/10/10 by a hash of each text (`plant data split` writes other shares)"
    return split_by_hash(mapped[str(path)], str(path)), [path], [anew, *remarks]


def _choose(pieces: Parts, places: pl.Series, split: SplitName) -> Parts:
    """The rows of a split; pieces without any are left out, so that nobody reads them."""
    own = [places.slice(start, PIECE) == split for start in range(0, PIECE * len(pieces), PIECE)]
    found = [piece if rows.all() else piece.filter(pl.col(_SPLIT) == split) for piece, rows in zip(pieces, own, strict=True) if rows.any()]
    return [piece.drop(_SPLIT) for piece in found]


def _name_split(column: str) -> pl.Expr:
    """The split of each row; null where it is none."""
    written = pl.col(column).cast(pl.String).str.strip_chars().str.to_lowercase()
    return written.replace_strict(ALIASES, default=None, return_dtype=pl.String).alias(_SPLIT)


def _find_splits(table: pl.LazyFrame, column: str, path: Path) -> pl.Series:
    """The split of each row; `DataError` if a row is of none."""
    rows = collect(table.select(_name_split(column), written=pl.col(column).cast(pl.String)), str(path))
    wrong = rows[_SPLIT].is_null().arg_true()
    if wrong.len():
        raise DataError(
            f"{wrong.len():,} rows are of no known split: {rows['written'][wrong[0]]!r}",
            where=f"{path}, column {column}, row {wrong[0] + 1}",
            expected="train, validation (valid, val, dev) or test",
            todo="mend these values, or name the right column with --split-column",
        )
    return rows[_SPLIT]


def _map_tables(
    tables: Mapping[str, tuple[pl.LazyFrame, str]], data: DataSection, further: Sequence[pl.Expr] = ()
) -> tuple[dict[str, Parts], list[str]]:
    """Map columns onto the schema: `doc_id`, `text`, `labels` and the rest.

    Args:
        tables: by file, each with what goes before its row numbers where they serve as ids.
        data: how the columns are named.
        further: columns to be added.

    Returns:
        The mapped tables by file, in pieces, and remarks on what was guessed.
    """
    for where, (table, _) in tables.items():
        schema = table.collect_schema()
        columns = schema.names()
        texts = text_columns(data.text_column, columns)
        wanted = dict.fromkeys(texts, "--text-column") | {data.labels_column: "--labels-column"}
        wanted |= {data.id_column: "--id-column"} if data.id_column else {}
        for name, flag in wanted.items():
            if name not in columns:
                raise missing_column(name, flag, table, data, where)
            if name != data.labels_column and schema[name].is_nested():
                raise _nested_column(name, flag, where)
    cells = {where: _read_cells(table, data.labels_column, where) for where, (table, _) in tables.items()}
    separator = find_separator(list(cells.values())) if data.label_separator is None else data.label_separator
    guessed = data.label_separator is None and separator is not None and separator in SEPARATORS
    remarks = [describe_guess(list(cells.values()), str(separator))] if guessed else []
    mapped = {}
    for where, (table, prefix) in tables.items():
        parse_labels(cells[where], separator, where)  # an error names the row of the whole table
        labels = _cut_labels(cells[where], separator, where)
        starts = range(0, max(1, count_rows(table, where)), PIECE)
        mapped[where] = [_map_columns(table, start, labels, data, prefix, further) for start in starts]
    return mapped, remarks


def _read_cells(table: pl.LazyFrame, column: str, where: str) -> pl.Series:
    """The label cells of a table; of lists, which need no guess, none."""
    cells = table.select(column)
    return collect(cells.head(0) if isinstance(cells.collect_schema()[column], pl.List) else cells, where).to_series()


def _cut_labels(cells: pl.Series, separator: str | None, where: str) -> pl.Expr:
    """The labels of each row as a list."""
    column = pl.col(cells.name)
    if isinstance(cells.dtype, pl.List):
        return column.alias("labels")
    cut = partial(parse_labels, separator=separator, where=where)
    return column.map_batches(cut, return_dtype=pl.List(pl.String), is_elementwise=True).alias("labels")


def _map_columns(
    table: pl.LazyFrame, start: int, labels: pl.Expr, data: DataSection, prefix: str, further: Sequence[pl.Expr]
) -> pl.LazyFrame:
    """The rows of a piece that begins at row `start`."""
    columns = table.collect_schema().names()
    given = data.id_column or ("doc_id" if "doc_id" in columns else None)
    texts = text_columns(data.text_column, columns)
    used = {*texts, data.labels_column, given, "doc_id", "text", "labels"}
    piece = table.slice(start, PIECE)
    numbered = piece if given else piece.with_row_index(_ROW, offset=start + 1)
    return numbered.select(
        (pl.col(given).cast(pl.String) if given else pl.concat_str(pl.lit(prefix), pl.col(_ROW).cast(pl.String))).alias("doc_id"),
        join_columns(texts).alias("text"),
        *(name for name in columns if name not in used),
        labels,
        *further,
    )


def _read_beside(
    read: Callable[[Path, DataSection], pl.LazyFrame], path: Path | None, data: DataSection, remarks: list[str]
) -> pl.LazyFrame | None:
    """A table that was found and not asked for: if it is of another kind than its name says, that is a remark and no error."""
    if path is None:
        return None
    try:
        return read(path, data)
    except DataError as error:
        remarks.append(f"{path} is passed over: {error.what} (at {error.where})")
        return None


def _scan_further(path: Path, data: DataSection) -> pl.LazyFrame:
    """A table beside the documents: in UTF-8, or in their encoding."""
    encoding = None if data.encoding is None else find_fallback(read_bytes(path, "a table"), data.encoding)
    return scan_table(path, encoding=encoding)


def _read_titles(path: Path, data: DataSection) -> pl.LazyFrame:
    table = _scan_further(path, data)
    columns = table.collect_schema().names()
    if "label" not in columns:
        raise _missing_column("label", columns, "--titles", str(path))
    return table if "title" in columns else table.with_columns(title=pl.lit(None, dtype=pl.String))


def _read_excluded(path: Path, data: DataSection) -> pl.LazyFrame:
    """Pairs of document and label that no prediction may hold."""
    table = _scan_further(path, data)
    columns = table.collect_schema().names()
    for name in ("doc_id", "label"):
        if name not in columns:
            raise _missing_column(name, columns, "the columns doc_id and label", str(path))
    return table.select(pl.col("doc_id", "label").cast(pl.String))


def _read_evidence(path: Path, data: DataSection) -> pl.LazyFrame:
    table = _scan_further(path, data)
    schema = table.collect_schema()
    columns = schema.names()
    for name in ("doc_id", "label", "start", "end"):
        if name not in columns:
            raise DataError(
                f"the evidence has no column '{name}'",
                where=f"{path}, columns {show_names(columns)}",
                expected="doc_id, label, start and end, and whatever else",
                todo="rename the column, or name another table with --evidence",
            )
        if schema[name].is_nested():
            raise _nested_column(name, "--evidence", str(path))
    return table.with_columns(
        pl.col("doc_id", "label").cast(pl.String), *(whole_numbers(name).cast(pl.Int32, strict=False) for name in ("start", "end"))
    )


def _nested_column(name: str, flag: str, where: str) -> DataError:
    return DataError(
        f"the column '{name}' holds lists or objects",
        where=f"{where}, column {name}",
        expected="one text in each cell; in a JSON file, one object for each document",
        todo=f"write a document on each row, or name another column with {flag}",
    )


def _missing_column(name: str, columns: list[str], flag: str, where: str) -> DataError:
    return DataError(
        f"there is no column '{name}'",
        where=f"{where}, columns {show_names(columns)}",
        expected=near_names(name, map(shorten, columns)),
        todo=f"name the right one with {flag}",
    )
