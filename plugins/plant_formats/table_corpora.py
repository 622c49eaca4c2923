"""The dataset `files`: a table with a split column, or a folder with a table for each split,
and the tables that belong to it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import (
    SPLITS,
    DataError,
    DataSection,
    Dataset,
    NoOptions,
    PlantError,
    SplitName,
    UsageError,
    near_names,
)
from plant_cli.kit import (
    MISSING,
    BadRows,
    bare_name,
    base_name,
    collect,
    join_columns,
    peek_columns,
    read_vocabulary,
    scan_table,
    shorten,
    show_names,
)
from plant_formats.annotations import ANNOTATIONS
from plant_formats.binary_answers import apply_answers
from plant_formats.corpus_reader import ALIASES, split_by_hash, split_of
from plant_formats.guessed_columns import (
    SAMPLE,
    guess_missing,
    guess_split,
    mean_lengths,
    weigh_labels,
)
from plant_formats.hub_datasets import find_class_names
from plant_formats.label_columns import find_columns
from plant_formats.label_forms import find_label_form
from plant_formats.merged_cells import fill_merged_cells
from plant_formats.numbered_columns import has_labels, label_field
from plant_formats.people_columns import choose_person, join_people

_MEANINGS = {
    "--text-column": "a column with the text of each document",
    "--labels-column": "a column with the labels of each document",
    "--split-column": "a column that says train, validation or test",
    "--id-column": "a column with an id for each document",
}
_NAMED = 12  # files in a remark
_LISTED = 10  # rows in a remark
_MISSPELT = 0.75  # likeness from which a column is the one of splits: `polarity` has 0.6
PIECE = 10_000  # documents that are read together: some tens of megabytes of text
_SPLIT, _ROW = "split of the row", "number of the row"  # names that no column of a user has
_SHARD = re.compile(r"-(\d+)-of-(\d+)(?:-[0-9a-f]{16})?$")
_BESIDE = {
    "labels": "",
    "evidence": "evidence",
    "excluded": "",
}  # tables beside a corpus, and the options that name others
_ALSO_CALLED = {"labels": ("titles", "vocabulary")}
_NEEDED = {"evidence": ("doc_id", "label", "start", "end"), "excluded": ("doc_id", "label")}
LazyParts = list[pl.LazyFrame]  # consecutive rows of a table
ReadLabels = Callable[..., tuple[pl.Series, Any]]  # labels of a column, and its faults
ReadCorpus = tuple[dict[SplitName, LazyParts], list[Path], list[str]]  # splits, files, remarks


def load(data: DataSection, options: NoOptions | None = None) -> Dataset:
    """Read a corpus file or folder; the columns are named by the section."""
    if data.path is None:
        raise UsageError(
            "no corpus was named, and no stage of this run has read one",
            where="argument PATH, which is the option path of the section data",
            expected="a table with a split column, or a folder of train, validation and test "
            "tables",
            todo="name it, as in `plant mig data.parquet`; or name the folder of an earlier run "
            "with --run DIR",
        )
    named, bad = Path(data.path), BadRows.of(data)
    path = _enter(named) if named.is_dir() else named
    tables, beside, passed = _read_beside(path, data) if path.exists() else ({}, [], [])
    titles, titled = (
        tables.get("labels"),
        list[str](),
    )  # the labels of the table of titles, in its order
    if titles is not None:
        titled = (
            collect(titles.select(pl.col("label").cast(pl.String)), str(data.titles or data.path))[
                "label"
            ]
            .drop_nulls()
            .to_list()
        )
    parts, files, remarks = (
        _read_folder(path, data, bad, titled)
        if path.is_dir()
        else _read_file(path, data, bad, titled)
    )
    remarks += [f"{named}: the tables are in {path.name}/"] if path != named else []
    dataset = Dataset(
        splits={},
        files=[str(file) for file in (*files, *beside)],
        remarks=[*remarks, *passed, *bad.close()],
        labels=tables["labels"],
        evidence=tables["evidence"],
        excluded=tables["excluded"],
    )
    return dataset.with_parts(parts)


def _read_beside(
    path: Path, data: DataSection
) -> tuple[dict[str, pl.LazyFrame | None], list[Path], list[str]]:
    """The tables beside a corpus, their files, and remarks on those that are of another kind."""
    tables: dict[str, pl.LazyFrame | None] = {}
    files, remarks = [], []
    for what, option in _BESIDE.items():
        named = getattr(data, option, None)
        beside = None if what == "labels" and data.titles else _find_beside(path, what)
        file = Path(named) if named else beside
        files += [file] if file else []
        try:
            tables[what] = None if file is None else _read_further(what, file, data)
        except DataError as error:
            if named:
                raise
            tables[what] = None  # a file that the user did not name may be of another kind
            remarks.append(f"{file} is left out: {error.what} (at {error.where})")
    return tables, files, remarks


def recognise(data: DataSection) -> str | None:
    """A table that has the columns of the section `data`, or a folder whose training file is
    one.
    """
    path = None if data.path is None else Path(data.path)
    if (
        path is None
        or not path.exists()
        or (data.labels_column != "labels" and ANNOTATIONS.recognise(data))
    ):
        return None
    try:
        columns = _peek(
            _find_split_files(_enter(path), data)["train"][0] if path.is_dir() else path, data
        )
    except (PlantError, OSError):
        return None
    return f"a table with the columns {show_names(columns)}" if columns else None


def guess(data: DataSection) -> dict[str, str]:
    """The table of titles beside the corpus, and columns that its training table has under
    other names than the section says.
    """
    path = Path(data.path or "")
    if not path.exists():
        return {}
    path = _enter(path) if path.is_dir() else path
    file = _find_split_files(path, data)["train"][0] if path.is_dir() else path
    table = scan_table(
        file,
        encoding=data.encoding,
        bad=BadRows.of(data.model_copy(update={"strict": False, "rejects": None})),
    )
    known = (
        find_columns({str(file): (table, "")}, data)[1] is not data
    )  # of a known tool, or a column for each label
    found = {} if known else guess_missing(table, data, str(file))
    beside = (
        _find_beside(path, "labels") if data.titles is None and data.vocabulary is None else None
    )
    if beside is not None:
        with suppress(DataError):  # it may be of another kind
            _read_further("labels", beside, data)
            found["titles"] = str(beside)
    return found


def _peek(path: Path, data: DataSection) -> list[str]:
    """The columns of a file if it is a table of documents; none otherwise."""
    try:
        columns = peek_columns(path, data.encoding)
    except (PlantError, OSError):
        return []
    labels = [] if has_labels(data, columns) else [label_field(data.labels_column, columns)[0]]
    return (
        columns if {*DataSection.named(data.text_column, columns), *labels} <= set(columns) else []
    )


def _enter(folder: Path) -> Path:
    """The folder of the tables: itself, or the one in it that has a training file; `DataError`
    if several have one.
    """

    def holds(path: Path) -> bool:
        return any(
            split_of(base_name(file)) == "train" and _is_table(file) for file in path.iterdir()
        )

    inner = (
        []
        if holds(folder)
        else [
            path
            for path in sorted(folder.iterdir())
            if path.is_dir() and path.name[0] != "." and holds(path)
        ]
    )
    if len(inner) > 1:
        what, todo = (
            f"{len(inner)} folders hold training files",
            f"name one of them, such as {inner[0]}",
        )
        raise DataError(
            what,
            where=f"{folder}: {show_names(path.name for path in inner)}",
            expected="one corpus",
            todo=todo,
        )
    return inner[0] if inner else folder


def _find_split_files(folder: Path, data: DataSection) -> dict[SplitName, list[Path]]:
    """The files of each split, or shards, by name; else those with the word in their name, such
    as `X_train.csv`.
    """
    tables = [path for path in sorted(folder.iterdir()) if _is_table(path) and path.is_file()]
    files: dict[SplitName, list[Path]] = {}
    for path in tables:
        if split := _split_named(path):
            files.setdefault(split, []).append(path)
    for split, path in _find_worded(tables, files.keys(), data):
        files.setdefault(split, []).append(path)
    for split, paths in files.items():
        _require_one_division(split, paths, folder)
    if "train" not in files:
        names = sorted(path.name for path in folder.iterdir())
        raise DataError(
            "the folder holds no training file",
            where=f"{folder}: {', '.join(names[:12]) or 'empty'}",
            expected="train.parquet (or .jsonl, .ndjson, .json, .csv, .tsv), and if there are, "
            "validation "
            "and test",
            todo="name the files so, or name one file that has a split column",
        )
    return {split: files[split] for split in SPLITS if split in files}


def _find_worded(
    tables: Sequence[Path], named: Collection[SplitName], data: DataSection
) -> list[tuple[SplitName, Path]]:
    """Files with the word of a split in their name, of splits that no file is named by; those
    with documents, if some of the split have any.
    """
    worded = [
        (split, path)
        for path in tables
        if (split := split_of(base_name(path))) is not None and split not in named
    ]
    documents = {split for split, path in worded if _peek(path, data)}
    return [(split, path) for split, path in worded if split not in documents or _peek(path, data)]


def _require_one_division(split: SplitName, paths: Sequence[Path], folder: Path) -> None:
    """Refuse several files of a split that are not all shards of one division."""
    shards = [match for path in paths if (match := _SHARD.search(base_name(path)))]
    counts = {int(match[2]) for match in shards}
    if len(paths) > 1 and len(shards) < len(paths):
        raise DataError(
            f"{len(paths)} files claim to be the split {split}",
            where=", ".join(map(str, paths)),
            expected="one file for each split (or numbered shards)",
            todo="move the others out of the folder; texts and labels in two files must be "
            "joined to one table",
        )
    if shards and counts != {len(shards)}:  # a part of a corpus would pass for all of it
        raise DataError(
            f"not all shards of the split {split} are there",
            where=f"{folder}: "
            f"{', '.join(path.name for path in paths[:6])}{', …' if len(paths) > 6 else ''}",
            expected=f"{max(counts)} files of one division, such as {paths[0].name}",
            todo="copy or make the shards that are missing; to read a part on purpose, name "
            "one file",
        )


def _is_table(path: Path) -> bool:
    """Whether a file is a table, by its name."""
    return base_name(path) != bare_name(path)


def _split_named(path: Path) -> SplitName | None:
    """The split that is all of the name of a file."""
    return ALIASES.get(_SHARD.sub("", base_name(path)).lower())


def _read_folder(
    folder: Path, data: DataSection, bad: BadRows, titled: Sequence[str]
) -> ReadCorpus:
    parts = _find_split_files(folder, data)
    tables = {}
    for split, paths in parts.items():
        frames = [scan_table(path, encoding=data.encoding, bad=bad) for path in paths]
        tables[split, str(paths[0])] = (
            pl.concat(frames, how="diagonal_relaxed") if len(frames) > 1 else frames[0]
        )
    prefixed = {where: (frame, f"{split}-") for (split, where), frame in tables.items()}
    chosen = choose_person(prefixed, data)
    given, answered = apply_answers(chosen, data)
    mapped, said = _map_tables(given, data, bad, titled)
    mapped, joined = join_people(mapped, data, answered=given is not chosen)
    remarks = [*answered, *said, *joined, *_tell_worded(folder, parts)]
    files = [path for paths in parts.values() for path in paths]
    remarks += _tell_strays(folder, files, data)
    return {split: mapped[where] for split, where in tables}, files, remarks


def _tell_worded(folder: Path, parts: Mapping[SplitName, Sequence[Path]]) -> list[str]:
    """A remark on files whose names only have the word of a split."""
    worded = [
        f"{path.name} is read as {split}"
        for split, paths in parts.items()
        for path in paths
        if not _split_named(path)
    ]
    return [f"{folder}: {', '.join(worded)}"] if worded else []


def _tell_strays(folder: Path, files: Collection[Path], data: DataSection) -> list[str]:
    """A remark on further files that seem to hold documents."""
    others = [path for path in sorted(folder.iterdir()) if path.is_file() and path not in files]
    strays = [
        path.name
        for path in others
        if split_of(path.name) or (_is_table(path) and _peek(path, data))
    ]
    if not strays:
        return []
    more = f", … ({len(strays):,} in all)" if len(strays) > _NAMED else ""
    shown = f"{', '.join(strays[:_NAMED])}{more}"
    return [f"{folder}: {shown} left out: splits are called {', '.join(SPLITS)}"]


def _read_file(path: Path, data: DataSection, bad: BadRows, titled: Sequence[str]) -> ReadCorpus:
    whole, merged = fill_merged_cells(
        scan_table(path, encoding=data.encoding, bad=bad), data, str(path)
    )
    chosen = choose_person({str(path): (whole, "")}, data)
    given, answered = apply_answers(chosen, data)
    table = given[str(path)][0]
    columns = table.collect_schema().names()
    if data.split_column in columns:
        names = _name_splits(table, data.split_column, path, bad)
        mapped, remarks = _map_tables(
            {str(path): (table, "")}, data, bad, titled, [_name_split(data.split_column)]
        )
        mapped, joined = join_people(mapped, data, answered=given is not chosen)
        present = names.unique()
        return (
            {name: _choose(mapped[str(path)], names, name) for name in SPLITS if name in present},
            [path],
            [*merged, *answered, *remarks, *joined],
        )
    asked = data.split_column != DataSection.model_fields["split_column"].default
    if (
        asked
        or get_close_matches(data.split_column, columns, cutoff=_MISSPELT)
        or guess_split(table, str(path))
    ):
        raise _missing_column(data.split_column, "--split-column", table, data, path)
    mapped, remarks = _map_tables({str(path): (table, "")}, data, bad, titled)
    mapped, joined = join_people(mapped, data, answered=given is not chosen)
    how = (
        f"{path} has no column '{data.split_column}': split 80/10/10 by a hash of each text "
        "(`plant data split` writes other shares)"
    )
    return (
        split_by_hash(mapped[str(path)], str(path)),
        [path],
        [how, *merged, *answered, *remarks, *joined],
    )


def _choose(pieces: LazyParts, names: pl.Series, split: SplitName) -> LazyParts:
    """The rows of a split; pieces without any are left out, so that nobody reads them."""
    rows = [names.slice(start, PIECE) == split for start in range(0, PIECE * len(pieces), PIECE)]
    kept = [
        piece if own.all() else piece.filter(pl.col(_SPLIT) == split)
        for piece, own in zip(pieces, rows, strict=True)
        if own.any()
    ]
    return [piece.drop(_SPLIT) for piece in kept]


def _name_split(column: str) -> pl.Expr:
    """The split of each row; null where it is none."""
    written = pl.col(column).cast(pl.String).str.strip_chars().str.to_lowercase()
    return written.replace_strict(ALIASES, default=None, return_dtype=pl.String).alias(_SPLIT)


def _name_splits(table: pl.LazyFrame, column: str, path: Path, bad: BadRows) -> pl.Series:
    """The split of each row; null for a row that names none, which goes to `bad`; `DataError`
    if a row names another.
    """
    rows = collect(
        table.select(_name_split(column), written=pl.col(column).cast(pl.String)), str(path)
    ).with_row_index("row", offset=1)
    missing = pl.col("written").fill_null("").str.strip_chars().is_in(["", *MISSING])
    wrong = rows.filter(pl.col(_SPLIT).is_null() & ~missing)
    gone = rows.filter(pl.col(_SPLIT).is_null() & missing)
    if wrong.height or (gone.height and gone.height == rows.height):
        row, written = (wrong if wrong.height else gone).select("row", "written").row(0)
        raise DataError(
            f"{wrong.height or gone.height:,} rows are of no known split: "
            f"{None if written is None else shorten(written)!r}",
            where=f"{path}, column {column}, row {row}",
            expected="train, validation (valid, val, dev) or test",
            todo="mend these values, or name the right column with --split-column",
        )
    for row in gone["row"]:
        bad.add(
            path,
            row,
            f"'{column}' names no split",
            "",
            unit="row",
            expected="train, validation or test in each row",
        )
    return rows[_SPLIT]


def _map_tables(
    tables: Mapping[str, tuple[pl.LazyFrame, str]],
    data: DataSection,
    bad: BadRows,
    titled: Sequence[str],
    further: Sequence[pl.Expr] = (),
) -> tuple[dict[str, LazyParts], list[str]]:
    """The tables with the columns `doc_id`, `text`, `labels` and the rest, in pieces by file; and
    remarks on what was chosen.

    Each table comes with a prefix of its row numbers, for ids; `titled` are the labels of the table
    of titles.
    """
    tables, data, said = find_columns(tables, data)
    for where, (table, _) in tables.items():
        _require_columns(table, data, where)
        held, key = label_field(data.labels_column, table.collect_schema().names())
    cells = {where: _sample_labels(table, held, where) for where, (table, _) in tables.items()}
    names = find_class_names(Path(next(iter(tables))), held)
    form = find_label_form(cells, data.label_separator, names, titled, key)
    remarks = [*said, form.remark] if form.remark else [*said]
    mapped, partial_rows = {}, list[int]()
    for where, (table, prefix) in tables.items():
        whole = cells[where] if cells[where].dtype == pl.String else None
        starts = range(0, max(1, collect(table.select(pl.len()), where).item()), PIECE)
        given = (
            collect(table.select(held).slice(start, PIECE), where).to_series()
            if whole is None
            else whole.slice(start, PIECE)
            for start in starts
        )
        found = _check_cells(form.read, zip(starts, given, strict=True), where, bad)
        partial_rows += found.partial
        read = pl.col(held)
        if not found.as_written:
            read = read.map_batches(
                partial(_read_labels, form.read, where),
                return_dtype=pl.List(pl.String),
                is_elementwise=True,
            )
        pieces = [_map_columns(table, start, read, data, prefix, further) for start in starts]
        labelled = pl.col("labels").is_not_null()
        mapped[where] = pieces if found.complete else [piece.filter(labelled) for piece in pieces]
    return mapped, [*remarks, *_tell_partial(partial_rows)]


def _require_columns(table: pl.LazyFrame, data: DataSection, where: str) -> None:
    """Refuse a table without one of the columns that are named, or with lists in them."""
    schema = table.collect_schema()
    held = label_field(data.labels_column, schema.names())[0]
    wanted = dict.fromkeys(DataSection.named(data.text_column, schema.names()), "--text-column")
    wanted |= {held: "--labels-column"}
    wanted |= {data.id_column: "--id-column"} if data.id_column else {}
    for name, flag in wanted.items():
        if name not in schema:
            raise _missing_column(name, flag, table, data, where)
        if name != held and schema[name].is_nested():
            raise _nested_column(name, flag, where)


def _sample_labels(table: pl.LazyFrame, held: str, where: str) -> pl.Series:
    """The cells by which the form of labels is found: some of lists, all of text."""
    written = table.select(held)
    sample = written if written.collect_schema()[held] == pl.String else written.head(PIECE)
    return collect(sample, where).to_series()


@dataclass
class _Checked:
    """What one reading of all cells with labels says."""

    as_written: bool = True  # labels are in the table as they are read
    complete: bool = True  # no row is left out
    partial: list[int] = field(default_factory=list)  # rows that lose some of their labels


def _check_cells(
    read: ReadLabels, pieces: Iterable[tuple[int, pl.Series]], where: str, bad: BadRows
) -> _Checked:
    """Read the cells of pieces, each with its first row; rows that are left out go to `bad`."""
    found = _Checked()
    for start, given in pieces:
        labels, faults = read(given, where, start + 1)
        found.as_written &= given.dtype == labels.dtype and labels.equals(given.fill_null([]))
        found.partial += [fault.row for fault in faults if not fault.left_out]
        for fault in (fault for fault in faults if fault.left_out):
            found.complete = False
            bad.add(
                Path(where),
                fault.row,
                fault.why,
                fault.content,
                unit="row",
                expected="labels in the form of the other rows",
            )
    return found


def _tell_partial(rows: Sequence[int]) -> list[str]:
    """A remark on rows that lose some of their labels."""
    if not rows:
        return []
    listed = ", ".join(f"{row:,}" for row in rows[:_LISTED])
    more = ", …" if len(rows) > _LISTED else ""
    return [
        f"{len(rows):,} rows have missing values among their labels, and keep the others: row "
        f"{listed}{more}"
    ]


def _read_labels(read: ReadLabels, where: str, column: pl.Series) -> pl.Series:
    return read(column, where)[0]


def _map_columns(
    table: pl.LazyFrame,
    start: int,
    labels: pl.Expr,
    data: DataSection,
    prefix: str,
    further: Sequence[pl.Expr],
) -> pl.LazyFrame:
    """The rows of a piece that begins at row `start`."""
    columns = table.collect_schema().names()
    ids = data.id_column or ("doc_id" if "doc_id" in columns else None)
    texts = DataSection.named(data.text_column, columns)
    written = [name for name in texts if table.collect_schema()[name] == pl.String]
    used = {*texts, label_field(data.labels_column, columns)[0], ids, "doc_id", "text", "labels"}
    piece = table.slice(start, PIECE)
    piece = piece.with_columns(
        pl.when(~pl.col(name).is_in(list(MISSING))).then(pl.col(name)).alias(name)
        for name in written
    )
    numbered = piece if ids else piece.with_row_index(_ROW, offset=start + 1)
    return numbered.select(
        (
            pl.col(ids).cast(pl.String)
            if ids
            else pl.concat_str(pl.lit(prefix), pl.col(_ROW).cast(pl.String))
        ).alias("doc_id"),
        join_columns(texts).alias("text"),
        *(name for name in columns if name not in used),
        labels.alias("labels"),
        *further,
    )


def _missing_column(
    name: str, flag: str, table: pl.LazyFrame, data: DataSection, path: Path | str
) -> DataError:
    """The error with near names, and the columns that the user may have meant, by a sample of
    their rows.
    """
    columns = table.collect_schema().names()
    if any(shorten(column) != column for column in columns):  # no name is so long: it is a document
        return DataError(
            f"there is no column '{name}': the first line does not name the columns, but holds a "
            "document",
            where=f"{path}, line 1",
            expected=_MEANINGS.get(flag, "a column of that name"),
            todo="write the names of the columns on a line above it, such as text,labels",
        )
    guessed = _guess_flags(table, data, str(path))
    near = near_names(name, map(shorten, columns))
    scored = {"score", "scores", "results"} & set(columns)
    if flag == "--text-column" and scored:
        guessed = "" if guessed == f"--text-column {min(scored)}" else guessed
    predicted = (
        "; if these are predictions of another tool: plant eval --predictions "
        f"{shlex.quote(str(path))}"
        if scored
        else ""
    )
    without = (
        ""
        if flag != "--labels-column" or flag in guessed
        else "; where there is none, add it: models learn from labelled documents"
    )
    perhaps = f"; by what is in the columns perhaps {guessed}" if guessed else ""
    return DataError(
        f"there is no column '{name}'",
        where=f"{path}, columns {show_names(columns)}",
        expected=near if "did you mean" in near else _MEANINGS.get(flag, "a column of that name"),
        todo=f"name the right one with {flag}{perhaps}{without}{predicted}",
    )


def _guess_flags(table: pl.LazyFrame, data: DataSection, where: str) -> str:
    """Flags for the columns that are missing under the names used so far."""
    sample = collect(table.head(SAMPLE), where)
    named = (data.text_column, data.labels_column, data.split_column, data.id_column)
    present = {name for name in named if name is not None and name in sample.columns}
    split = guess_split(table, where)
    left = sample.drop(present, *([split] if split and split not in present else []))
    lengths = mean_lengths(left)
    text = (
        max(lengths, key=lambda name: lengths[name], default=None)
        if data.text_column not in present
        else None
    )
    ranked = (
        weigh_labels(left.drop([text] if text else [])) if data.labels_column not in present else []
    )
    flags = {
        "--text-column": text,
        "--labels-column": ranked[0].name if ranked else None,
        "--split-column": None if data.split_column in present else split,
    }
    # a name that must be shortened is a document: the table has no header
    return " ".join(
        f"{flag} {shlex.quote(name)}"
        for flag, name in flags.items()
        if name and name == shorten(name)
    )


def _find_beside(corpus: Path, what: str) -> Path | None:
    """The table of labels, evidence or excluded pairs: of `notes.parquet` that is
    `notes.labels.*`, else `labels.*`, in any format.
    """
    folder = corpus if corpus.is_dir() else corpus.parent
    names = [what, *_ALSO_CALLED.get(what, ())]
    wanted = (
        names if corpus.is_dir() else [*(f"{base_name(corpus)}.{name}" for name in names), *names]
    )
    tables = [path for path in sorted(folder.iterdir()) if _is_table(path) and path != corpus]
    return next((path for name in wanted for path in tables if base_name(path) == name), None)


def _read_further(what: str, path: Path, data: DataSection) -> pl.LazyFrame:
    """A table of labels, evidence or excluded pairs: in UTF-8, or in the encoding of the
    documents.
    """
    table = scan_table(path, fallback=data.encoding)
    schema = table.collect_schema()
    if what == "labels":
        if "label" not in schema or ("title" not in schema and {"id", "uri", "code"} & {*schema}):
            return read_vocabulary(path, encoding=data.encoding)[0].lazy()
        return (
            table if "title" in schema else table.with_columns(title=pl.lit(None, dtype=pl.String))
        )
    for name in _NEEDED[what]:
        if name not in schema:
            wrong, where = (
                f"the table of {what} has no column '{name}'",
                f"{path}, columns {show_names(schema.names())}",
            )
            raise DataError(
                wrong,
                where=where,
                expected=f"the columns {', '.join(_NEEDED[what])}",
                todo="rename the columns",
            )
        if what == "evidence" and schema[name].is_nested():
            raise _nested_column(name, f"--{_BESIDE[what]}", str(path))
    texts = pl.col("doc_id", "label").cast(pl.String)
    if what == "excluded":
        return table.select(texts)
    return table.with_columns(texts)


def _nested_column(name: str, flag: str, where: str) -> DataError:
    return DataError(
        f"the column '{name}' holds lists or objects",
        where=f"{where}, column {name}",
        expected="one text in each cell; in a JSON file, one object for each document",
        todo=f"write a document on each row, or name another column with {flag}",
    )
