"""Tables with a row for each pair of a text and a label: all rows of one document become one
document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from plant_cli.api import SPLITS, Dataset, SplitName
from plant_cli.data.documents import conform_part, tidy
from plant_cli.data.files import hash_each
from plant_cli.data.tables import collect

_SHARE = 0.1  # of rows of several labels repeat a text with others: two people, or two exports
_HELD_OUT: tuple[SplitName, ...] = ("test", "validation", "train")
"""Where a document goes whose rows stand in several splits: training must not have seen it."""
_LEAVING = 0.5  # of the documents of train would so leave it: rows were split, not documents
_ROW = "row of the part"
_NUMBERED = r"^(?:train-|validation-|test-)?(\d+)$"


def join_rows(dataset: Dataset) -> tuple[Dataset, list[str]]:
    """One document for all rows of one id and text, or of one text where ids only number the rows.

    Rows of one text are joined if no row of the corpus has more than one label, or if ids are
    numbers of rows and many texts stand with different labels. Rows of one id and different texts
    stay as they are, and are refused where a run begins.

    Returns:
        The dataset, and remarks on what was joined or might be.
    """
    rows = _digest(dataset)
    found, remarks = _find_groups(rows)
    if found is None:
        return dataset, remarks
    joined = _Joined.of(dataset, rows, found)
    parts = {name: list(joined.parts(dataset, name)) for name in SPLITS if name in dataset.splits}
    whole = dataset.with_parts({name: kept for name, kept in parts.items() if kept})
    renamed = {
        what: table.with_columns(pl.col("doc_id").cast(pl.String).replace(joined.ids))
        for what in ("evidence", "excluded")
        if (table := getattr(dataset, what)) is not None
    }
    where = ", ".join(dataset.files[:1]) or "the corpus"
    return replace(whole, **renamed), [f"{where}: {joined.describe(rows.height)}", *remarks]


def _digest(dataset: Dataset) -> pl.DataFrame:
    """A row for each row of the dataset: where it is, its id, and hashes of its text and labels."""
    text = pl.col("text").str.strip_chars()
    measures = (
        pl.col("doc_id"),
        pl.when(text != "").then(text.hash()).alias("text"),
        pl.col("labels").list.len().alias("count"),
        pl.col("labels").list.sort().list.join("\0").hash().alias("labels"),
    )
    frames = [
        collect(tidy(conform_part(dataset, name, part)).select(*measures), name)
        .with_columns(split=pl.lit(name), part=pl.lit(number, dtype=pl.UInt32))
        .with_row_index(_ROW)
        for name in SPLITS
        if name in dataset.splits
        for number, part in enumerate(dataset.parts(name))
    ]
    return pl.concat(frames) if frames else pl.DataFrame()


def _find_groups(rows: pl.DataFrame) -> tuple[pl.DataFrame | None, list[str]]:
    """The rows that are a document with others, with its number `group`; None if there are none."""
    if not rows.height:
        return None, []
    filled = rows.filter(pl.col("text").is_not_null())
    by_id = filled.filter(
        pl.col("doc_id").is_duplicated() & (pl.col("text").n_unique().over("doc_id") == 1)
    )
    if by_id.height:
        return by_id.with_columns(group=pl.col("doc_id").rank("dense")), []
    differing = filled.filter(pl.col("labels").n_unique().over("text") > 1)
    if not differing.height:
        return None, []
    alone = int(rows["count"].max() or 0) <= 1  # type: ignore[arg-type]
    many = _numbered(rows) and differing.height >= _SHARE * rows.height
    if not (alone or many):
        texts = differing["text"].n_unique()
        said = f"{texts:,} texts stand in several documents with different labels, and stay so"
        return None, [f"{said} (`plant data check --fix` joins them)"]
    return differing.with_columns(group=pl.col("text").rank("dense")), []


def _numbered(rows: pl.DataFrame) -> bool:
    """Whether ids are the numbers of rows, and so say nothing of documents."""
    numbers = rows["doc_id"].str.extract(_NUMBERED).cast(pl.Int64, strict=False)
    return numbers.null_count() == 0 and rows["doc_id"].n_unique() == rows.height


@dataclass(frozen=True)
class _Joined:
    """The documents that several rows are."""

    kept: pl.DataFrame  # the row of each document, with the `joined` labels of all its rows
    gone: pl.DataFrame  # its other rows
    ids: Mapping[str, str]  # of those: the id of the document
    across: int  # documents whose rows stood in several splits
    drawn: bool  # whether one of their rows was drawn to say the split

    @classmethod
    def of(cls, dataset: Dataset, rows: pl.DataFrame, found: pl.DataFrame) -> _Joined:
        place = ["split", "part", _ROW]
        drawn = _leave_train(rows, found)
        first = _draw_rows(found) if drawn else _hold_out_rows(found)
        written = pl.concat(_read_labels(dataset, found)).join(found, on=place).sort(place[1:])
        labels = (
            written.select("group", "split", "written")
            .explode("written")
            .group_by("group")
            .agg(joined=pl.col("written").drop_nulls().unique(maintain_order=True))
        )
        kept = first.join(labels, on="group", how="left").select(
            *place, "group", "doc_id", "joined"
        )
        gone = found.join(kept, on=place, how="anti")
        names = gone.join(kept.select("group", kept="doc_id"), on="group")
        moved = names.filter(pl.col("doc_id") != pl.col("kept")).select("doc_id", "kept")
        splits = found.group_by("group").agg(pl.col("split").n_unique())
        return cls(kept, gone, dict(moved.iter_rows()), int((splits["split"] > 1).sum()), drawn)

    def parts(self, dataset: Dataset, name: SplitName) -> Iterator[pl.LazyFrame]:
        """The parts of a split with each document once."""
        for number, part in enumerate(dataset.parts(name)):
            own = (pl.col("split") == name) & (pl.col("part") == number)
            kept, gone = self.kept.filter(own), self.gone.filter(own)
            if not (kept.height or gone.height):
                yield part
                continue
            labels = pl.coalesce("joined", pl.col("labels").cast(pl.List(pl.String)))
            yield (
                part.with_row_index(_ROW)
                .filter(~pl.col(_ROW).is_in(gone[_ROW].implode()))
                .join(
                    kept.lazy().select(_ROW, "joined"), on=_ROW, how="left", maintain_order="left"
                )
                .with_columns(labels=labels)
                .drop(_ROW, "joined")
            )

    def describe(self, rows: int) -> str:
        """What was done, with counts."""
        documents = rows - self.gone.height
        said = (
            f"{rows:,} rows hold {documents:,} documents: rows of one text are joined, "
            "and their labels with them"
        )
        where = (
            "that of a row drawn for each, as most of train had left it for test and validation"
            if self.drawn
            else "in test, else in validation"
        )
        return said + (
            f"; {self.across:,} documents stood in several splits, and are now in one: {where}"
            if self.across
            else ""
        )


def _leave_train(rows: pl.DataFrame, found: pl.DataFrame) -> bool:
    """Whether most documents of train leave it where test and validation come first."""
    splits = found.group_by("group").agg(pl.col("split").unique())["split"]
    of_train = splits.filter(splits.list.contains("train"))
    leaving = of_train.filter(of_train.list.len() > 1).len()
    alone = rows.filter(split="train").height - found.filter(split="train").height
    return leaving > _LEAVING * (alone + of_train.len())


def _hold_out_rows(found: pl.DataFrame) -> pl.DataFrame:
    """The first row of each document in test, else in validation, else in train."""
    order = pl.col("split").replace_strict({name: n for n, name in enumerate(_HELD_OUT)})
    ranked = found.with_row_index("order").sort(order, "order")
    return ranked.unique("group", keep="first", maintain_order=True)


def _draw_rows(found: pl.DataFrame) -> pl.DataFrame:
    """A row of each document, by a hash of its first id: splits keep their shares."""
    first = found.unique("group", keep="first", maintain_order=True)
    drawn = first.select("group", draw=pl.Series(hash_each(first["doc_id"]), dtype=pl.UInt64))
    place = pl.int_range(pl.len()).over("group") == pl.col("draw") % pl.len().over("group")
    return found.join(drawn, on="group", maintain_order="left").filter(place)


def _read_labels(dataset: Dataset, found: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The labels of the rows that are joined, with the places of the rows."""
    for (name, number), own in found.group_by("split", "part", maintain_order=True):
        split: SplitName = name
        part = dataset.parts(split)[int(number)]
        labels = collect(tidy(conform_part(dataset, split, part)).select(written="labels"), split)
        yield (
            labels.with_row_index(_ROW)
            .with_columns(split=pl.lit(split), part=pl.lit(number, dtype=pl.UInt32))
            .filter(pl.col(_ROW).is_in(own[_ROW].implode()))
        )
