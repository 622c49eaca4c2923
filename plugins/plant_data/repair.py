"""Corpora repaired and written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl

from plant_cli.api import SPLITS, Dataset, DatasetSpec, SplitName, UsageError
from plant_cli.data.documents import (
    CONTROL,
    DOCUMENT_COLUMNS,
    DOCUMENT_SCHEMA,
    TEXT_KEY,
    WIDTHLESS,
    Frames,
    spelling_key,
    tidy,
)
from plant_cli.data.evidence import collect_evidence
from plant_cli.data.files import name_temporary, replacing, replacing_folder, require_free
from plant_cli.data.parquet import write_frames
from plant_cli.data.shares import Shard
from plant_cli.data.splits import CHANGES, Parts, drop_leaks, list_changes
from plant_cli.data.tables import (
    collect,
    name_beside,
    output_format,
    trim,
    write_table,
    write_text_batches,
)

_SHOWN_LABELS = pl.col("labels").list.eval(pl.element().str.replace_all(WIDTHLESS, ""))


def repair(frames: Frames) -> tuple[Parts, pl.DataFrame]:
    """Put right what `plant data check` finds, as far as no judgement is needed; the cleaned
    splits, and every change (`CHANGES`).

    Labels are trimmed and get one spelling (the most frequent); control characters become blanks,
    and hidden ones go; documents without text go, and those that repeat a text of their split,
    whose labels are joined; training documents go whose text another split has; ids become unique.
    """
    parts: Parts = {name: frame.select(*DOCUMENT_COLUMNS) for name, frame in frames.items()}
    changes: list[pl.DataFrame] = []

    def alter(
        column: str, what: str, make: Callable[[SplitName, pl.DataFrame], pl.DataFrame]
    ) -> None:
        for name, part in parts.items():
            parts[name] = make(name, part)
            changes.append(
                list_changes(
                    name, parts[name].filter(part[column].ne_missing(parts[name][column])), what
                )
            )

    number = pl.int_range(1, pl.len() + 1).cast(pl.String)
    alter(
        "doc_id",
        "it had no id",
        lambda name, part: part.with_columns(
            pl.coalesce("doc_id", pl.lit(f"{name}-row-") + number)
        ),
    )
    alter(
        "labels",
        "hidden characters removed from labels",
        lambda name, part: part.with_columns(_SHOWN_LABELS),
    )
    alter(
        "labels", "labels trimmed, repeated and empty ones removed", lambda name, part: tidy(part)
    )
    if known := _find_spellings(parts):
        respelt = (
            pl.col("labels").list.eval(pl.element().replace(known)).list.unique(maintain_order=True)
        )
        alter(
            "labels",
            "labels spelt as most documents spell them",
            lambda name, part: part.with_columns(respelt),
        )
    blanked = pl.col("text").str.replace_all(CONTROL, " ")
    alter("text", "control characters became blanks", lambda name, part: part.with_columns(blanked))
    alter(
        "text",
        "hidden characters removed",
        lambda name, part: part.with_columns(pl.col("text").str.replace_all(WIDTHLESS, "")),
    )
    filled = pl.col("text").str.contains(r"\S")
    for name, part in parts.items():
        changes.append(list_changes(name, part.filter(~filled), "left out: it has no text"))
        parts[name], joined = _join_repeated(name, part.filter(filled))
        changes.append(joined)
    parts, dropped = drop_leaks(parts)
    parts, renamed = _rename_repeated(parts)
    return parts, pl.concat([*changes, dropped, renamed])


def repair_evidence(
    spans: pl.DataFrame, frames: Frames, parts: Parts
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Spans of evidence in the spelling of the cleaned copy, and every one (`CHANGES`) whose
    document or label the copy does not have.
    """
    known = _find_spellings(
        {name: tidy(frame.with_columns(_SHOWN_LABELS)) for name, frame in frames.items()}
    )
    label = trim(pl.col("label").cast(pl.String).str.replace_all(WIDTHLESS, "")).replace(known)
    respelt = _move_spans(spans.with_columns(pl.col("doc_id").cast(pl.String), label), frames)
    left = pl.concat(
        part.select("doc_id", label=pl.col("labels")).explode("label") for part in parts.values()
    )
    owners = pl.concat(frame.select("doc_id", split=pl.lit(name)) for name, frame in frames.items())
    gone = respelt.join(left, on=["doc_id", "label"], how="anti", maintain_order="left")
    gone = gone.join(
        owners.unique("doc_id", keep="first", maintain_order=True),
        on="doc_id",
        how="left",
        maintain_order="left",
    )
    named = (pl.col(name).cast(pl.String).fill_null("?") for name in ("label", "start", "end"))
    listed = gone.select(
        "split",
        "doc_id",
        change=pl.format("left out: a span of evidence of '{}', {} to {}", *named),
    )
    return respelt.join(left, on=["doc_id", "label"], how="semi", maintain_order="left"), listed


def _move_spans(spans: pl.DataFrame, frames: Frames) -> pl.DataFrame:
    """Spans where their words stand once hidden characters are gone."""
    texts = pl.concat(frame.select("doc_id", _text="text") for frame in frames.values()).filter(
        pl.col("_text").str.contains(WIDTHLESS)
    )
    before = spans.join(
        texts.unique("doc_id", keep="first"), on="doc_id", how="left", maintain_order="left"
    )
    gone = {
        name: pl.col("_text").str.slice(0, pl.col(name)).str.count_matches(WIDTHLESS).fill_null(0)
        for name in ("start", "end")
    }
    return before.with_columns(
        pl.col(name) - count.cast(pl.Int64) for name, count in gone.items()
    ).drop("_text")


def _find_spellings(parts: Parts) -> dict[str, str]:
    """What most documents write in place of a label that differs by case or blanks alone."""
    counts = (
        pl.concat(part.select(label=pl.col("labels").explode()) for part in parts.values())
        .drop_nulls()["label"]
        .value_counts()
    )
    key = spelling_key(pl.col("label"))
    best = (
        counts.with_columns(key=key)
        .sort("count", "label", descending=[True, False])
        .unique("key", keep="first", maintain_order=True)
    )
    spelling = (
        counts.with_columns(key=key)
        .join(best.select("key", best="label"), on="key")
        .filter(pl.col("label") != pl.col("best"))
    )
    return dict(spelling.select("label", "best").iter_rows())


def _join_repeated(name: str, part: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The first document of each text, with the labels of all; and what was changed."""
    keyed = part.with_columns(key=TEXT_KEY).with_columns(
        first=pl.col("doc_id").first().over("key"), row=pl.int_range(pl.len()).over("key")
    )
    union = pl.col("labels").drop_nulls().unique(maintain_order=True).alias("joined")
    joined = keyed.join(
        keyed.explode("labels").group_by("key").agg(union),
        on="key",
        how="left",
        maintain_order="left",
    )
    joined = joined.with_columns(pl.col("joined").fill_null(pl.lit([], dtype=pl.List(pl.String))))
    repeated, firsts = joined.filter(pl.col("row") > 0), joined.filter(pl.col("row") == 0)
    reason = pl.format("left out: it repeats {}, which has its labels now", "first")
    gained = firsts.filter(pl.col("joined") != pl.col("labels"))
    changes = [
        repeated.select(split=pl.lit(name), doc_id="doc_id", change=reason),
        list_changes(name, gained, "got the labels of documents that repeat its text"),
    ]
    return firsts.select("doc_id", "text", pl.col("joined").alias("labels")), pl.concat(changes)


def _rename_repeated(parts: Parts) -> tuple[Parts, pl.DataFrame]:
    taken: set[str] = {doc_id for part in parts.values() for doc_id in part["doc_id"]}
    seen: set[str] = set()
    renamed, changes = {}, []
    for name, part in parts.items():
        ids = []
        for doc_id in part["doc_id"]:
            free, number = doc_id, 2
            while free in seen or (free != doc_id and free in taken):
                free, number = f"{doc_id}-{number}", number + 1
            if free != doc_id:
                changes.append((name, free, f"was called {doc_id}, as another document is"))
            seen.add(free)
            ids.append(free)
        renamed[name] = part.with_columns(doc_id=pl.Series(ids, dtype=pl.String))
    return renamed, pl.DataFrame(changes, schema=CHANGES, orient="row")


SplitFrames = Mapping[SplitName, pl.DataFrame | Iterable[pl.DataFrame]]
"""Splits, each whole or in batches that are taken once."""

OTHER_TABLES = ("labels", "evidence", "excluded")
DOCUMENTS_PER_ROW_GROUP = 20_000  # documents that a reader of Parquet holds together


def write_corpus(
    parts: SplitFrames, dataset: Dataset, output: Path, *, force: bool, shard: Shard | None = None
) -> list[Path]:
    """Write tidy splits, batch after batch, and the dataset's labels, evidence and excluded
    pairs beside them; the files.
    """
    single = bool(output.suffix)
    _require_place(output, shard)
    documents: dict[Path, Iterable[pl.DataFrame]] = (
        {output: _join_splits(parts)}
        if single
        else {
            output / f"{name}{_number(shard)}.parquet": _batches(part)
            for name, part in parts.items()
        }
    )
    first = shard is None or shard.number == 1
    tables = dict(_collect_tables(dataset, output)) if first else {}
    paths = [*documents, *tables]
    if not force:
        _require_absent(paths)
    for path in paths:
        output_format(path)
    aside: dict[Path, Path] = {}
    # places are closed in reverse: the corpus itself takes its own last, when all that belongs to
    # it is there
    with _put_back(aside), ExitStack() as places:
        for path, batches in documents.items():
            schema = DOCUMENT_SCHEMA | ({"split": pl.String()} if single else {})
            _write_batches(batches, places.enter_context(replacing(path)), schema)
        for path, content in tables.items():
            write_table(content, places.enter_context(replacing(path)))
        for path in (
            documents if tables else ()
        ):  # all is written; while names change, no old documents stand beside new tables
            if path.exists():
                os.replace(path, aside.setdefault(path, name_temporary(path)))
    return paths


def _require_place(output: Path, shard: Shard | None) -> None:
    """Refuse a file where a folder is to be, and one file for a share of a corpus."""
    if not output.suffix and output.exists() and not output.is_dir():
        what, expected = (
            f"'{output}' is a file that is no table",
            "a folder, or a file whose name promises a format, such as data.parquet",
        )
        raise UsageError(
            what, where=str(output.absolute()), expected=expected, todo="choose another output"
        )
    if output.suffix and shard is not None:
        what, where = (
            "a share of a corpus is written into one folder with the others",
            f"'{output}', --shard {shard}",
        )
        todo = (
            f"name a folder, such as {output.stem}: it is read as one corpus when all shares "
            "are there"
        )
        raise UsageError(what, where=where, expected="a name without suffix", todo=todo)


def _require_absent(paths: Iterable[Path]) -> None:
    """Refuse to write files that are there."""
    present = [str(path) for path in paths if path.exists()]
    if present:
        what, todo = (
            f"{len(present)} of the files to write are there already",
            "choose another output, or replace them with --force",
        )
        raise UsageError(
            what, where=", ".join(present), expected="an output that does not exist", todo=todo
        )


def _number(shard: Shard | None) -> str:
    """What follows the name of a split, as Hugging Face names shards: counted from 0."""
    return "" if shard is None else f"-{shard.number - 1:05d}-of-{shard.of:05d}"


def _join_splits(parts: SplitFrames) -> Iterator[pl.DataFrame]:
    """All splits in one table, which says the split of each row."""
    for name in (name for name in SPLITS if name in parts):
        for batch in _batches(parts[name]):
            yield batch.with_columns(split=pl.lit(name))


def _collect_tables(dataset: Dataset, output: Path) -> Iterator[tuple[Path, pl.DataFrame]]:
    """The tables beside the documents, each with its place."""
    for what in OTHER_TABLES:
        table: pl.LazyFrame | None = getattr(dataset, what)
        if table is not None:
            place = name_beside(output, what) if output.suffix else output / f"{what}.parquet"
            yield place, collect_evidence(table) if what == "evidence" else collect(table, what)


@contextmanager
def _put_back(aside: Mapping[Path, Path]) -> Iterator[None]:
    """Remove the files that were set aside in the block, or give them their names again if it
    fails.
    """
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


def _write_batches(
    batches: Iterable[pl.DataFrame], path: Path, schema: Mapping[str, pl.DataType]
) -> None:
    if output_format(path) == ".parquet":
        alone = (
            pl.col("text") + ""
            # a copy: rows chosen from a table keep all of its texts in memory, and the writer keeps
            # many batches
        )
        write_frames(
            path,
            (batch.select(*schema).with_columns(alone) for batch in batches),
            schema,
            {},
            row_group=DOCUMENTS_PER_ROW_GROUP,
        )
    else:
        write_text_batches(batches, path)


def require_writer(spec: DatasetSpec, specs: Sequence[DatasetSpec]) -> None:
    """`UsageError` for a dataset plugin that writes nothing; it names those that do."""
    if spec.write is None:
        expected = f"one of {', '.join(one.name for one in specs if one.write is not None)}"
        todo = "name one of these; tables need no --to: `plant data convert IN data.parquet`"
        raise UsageError(
            f"the dataset '{spec.name}' has no writer", where="--to", expected=expected, todo=todo
        )


def write_format(
    dataset: Dataset, spec: DatasetSpec, output: Path, *, suffix: str, force: bool
) -> tuple[list[Path], Sequence[str]]:
    """Write a corpus as a folder in the format of a dataset plugin; the files, and remarks on
    what the format cannot hold.
    """
    require_free(output, force=force, folder=True)
    lost = [] if dataset.evidence is None else ["this format does not hold gold evidence"]
    with replacing_folder(output) as folder:
        remarks = spec.write(dataset, folder, suffix) if spec.write is not None else []
    return sorted(path for path in output.rglob("*") if path.is_file()), [*remarks, *lost]
