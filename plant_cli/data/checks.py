"""Checks of a corpus. Each is a function from frames to findings; fatal findings stop a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from plant_cli.api import DataError
from plant_cli.data.documents import (
    Frames,
    reveal,
    tidy,
)
from plant_cli.data.labels import count_labels

FindingLevel = Literal["fatal", "warning", "note"]
LEVELS: tuple[FindingLevel, ...] = ("fatal", "warning", "note")
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kind of problem in one split."""

    what: str  # a sentence without its subject's number ("documents have an empty text")
    where: str  # the split, and the first few documents or labels
    count: int  # how many there are
    expected: str
    todo: str
    # `fatal`: no run can be made of this corpus; `warning`: something is wrong; `note`: worth
    # knowing, and often as it should be
    level: FindingLevel = "warning"

    def __str__(self) -> str:
        return f"{self.count:,} {self.what} ({self.where})"

    def to_error(self) -> DataError:
        """The finding as the error that stops a run."""
        return DataError(
            f"{self.count:,} {self.what}", where=self.where, expected=self.expected, todo=self.todo
        )


FramesCheck = Callable[[Frames], Iterator[Finding]]
"""From the digests of documents (see `digests`), whose labels are as written, not tidied."""


def examine_documents(frames: Frames, checks: tuple[FramesCheck, ...]) -> list[Finding]:
    """All findings of the given checks, the worst first."""
    return sorted(
        (finding for check in checks for finding in check(frames)),
        key=lambda finding: LEVELS.index(finding.level),
    )


def report_rows(
    rows: pl.DataFrame,
    show: Callable[..., str],
    *,
    what: str,
    expected: str,
    todo: str,
    where: str = "",
    level: FindingLevel = "warning",
) -> Iterator[Finding]:
    """A finding on some rows, if there are any; `show` makes an example of the cells of one."""
    if rows.height:
        examples = [show(*row) for row in rows.head(_SHOWN).iter_rows()]
        between = "; " if any(", " in example for example in examples) else ", "
        shown = f"{where}{between.join(examples)}" + (
            f"{between}… ({rows.height:,} in all)" if rows.height > _SHOWN else ""
        )
        yield Finding(
            what=what, where=shown, count=rows.height, expected=expected, todo=todo, level=level
        )


def documents_that(
    condition: pl.Expr, *, what: str, expected: str, todo: str, level: FindingLevel = "warning"
) -> FramesCheck:
    """A check that names the documents of each split for which a condition holds; `tidy` has
    their labels as they are read.
    """

    def check(frames: Frames) -> Iterator[Finding]:
        for split, frame in frames.items():
            rows = frame.with_columns(tidy=tidy(frame)["labels"]).filter(condition).select("doc_id")
            yield from report_rows(
                rows,
                "'{}'".format,
                what=what,
                expected=expected,
                todo=todo,
                where=f"{split}: ",
                level=level,
            )

    return check


find_unlabelled = documents_that(
    pl.col("tidy").list.len() == 0,
    what="documents have no label; they are kept",
    expected="at least one label for each document",
    todo="nothing, if that is what they are; else mend their labels",
)


def find_empty_texts(frames: Frames) -> Iterator[Finding]:
    """Documents without a text: they are left out; no run can be made where half of a split is
    so.
    """
    for split, frame in frames.items():
        rows = frame.filter(pl.col("same").is_null()).select("doc_id")
        many = rows.height > frame.height / 2
        yield from report_rows(
            rows,
            "'{}'".format,
            what="documents have an empty text" + ("" if many else "; they are left out"),
            expected="some text in each document",
            todo="remove these documents, or name the right column with --text-column",
            where=f"{split}: ",
            level="fatal" if many else "warning",
        )


def find_empty_train(frames: Frames) -> Iterator[Finding]:
    """No training documents, or none with a label."""
    train = frames.get("train", pl.DataFrame({"labels": []}, schema={"labels": pl.List(pl.String)}))
    if not tidy(train)["labels"].list.len().sum():
        others = [(name, frame.height) for name, frame in frames.items() if name != "train"]
        held = [("train", train.height), *others]
        yield Finding(
            what="of the training documents have a label",
            where="; ".join(f"{name}, {count:,} documents" for name, count in held),
            count=0,
            expected="at least one labelled training document",
            todo="name the right column with --labels-column, and check the values of the split "
            "column",
            level="fatal",
        )


def find_repeated_ids(frames: Frames) -> Iterator[Finding]:
    """Documents of one id, within a split or across splits, or without id."""
    ids = pl.concat(
        frame.select("doc_id", split=pl.lit(name)).with_row_index("row", offset=1)
        for name, frame in frames.items()
    )
    repeated = ids.filter(pl.col("doc_id").is_duplicated() | pl.col("doc_id").is_null()).sort(
        "doc_id", maintain_order=True
    )
    yield from report_rows(
        repeated,
        lambda row, doc_id, split: (
            f"{'no id' if doc_id is None else repr(doc_id)}, document {row} of {split}"
        ),
        what="documents share their id with another, or have none",
        expected="an id for each document, over all splits",
        todo="name another column with --id-column; rows of one document must have the same text",
        level="fatal",
    )


def find_leaks(frames: Frames) -> Iterator[Finding]:
    """The same text, to the letter, in two splits."""
    yield from report_leaks(
        list_shared(frames, "same"), "documents have a text that another split also has"
    )


REQUIRED: tuple[FramesCheck, ...] = (
    find_repeated_ids,
    find_empty_texts,
    find_empty_train,
    find_unlabelled,
    find_leaks,
)
"""Run before every experiment."""


def list_shared(frames: Frames, key: str) -> pl.DataFrame:
    """Documents whose key also occurs in another split: `doc_id`, `split`, `key`, side by side
    by key, the first document first.
    """
    texts = pl.concat(
        frame.select("doc_id", split=pl.lit(name), key=key) for name, frame in frames.items()
    ).with_row_index("row")
    shared = texts.filter(
        pl.col("key").is_not_null() & (pl.col("split").n_unique().over("key") > 1)
    )
    return shared.sort(pl.col("row").min().over("key"), "row").drop("row")


def report_leaks(shared: pl.DataFrame, what: str) -> Iterator[Finding]:
    """A finding on documents (`list_shared`) of two splits."""
    expected, todo = (
        "test and validation texts that training has not seen",
        "drop them from train, or split again with `plant data split`",
    )
    yield from report_rows(
        shared.select("doc_id", "split"),
        "'{}' in {}".format,
        what=what,
        expected=expected,
        todo=todo,
    )


def find_unseen_labels(
    frames: Frames, titles: pl.DataFrame, titled: pl.DataFrame | None = None
) -> Iterator[Finding]:
    """Labels that only validation or test have: no model can propose them, and they count as
    missed.
    """
    if "train" not in frames:
        return
    seen = count_labels(tidy(frames["train"])).select("label")
    seen = seen if titled is None else pl.concat([seen, titled.select("label")])
    for name, frame in frames.items():
        unseen = (
            count_labels(tidy(frame))
            .join(seen, on="label", how="anti")
            .sort("count", "label", descending=[True, False])
        )
        yield from report_rows(
            unseen.join(titles, on="label", how="left", maintain_order="left").select(
                "label", "title"
            ),
            quote_label,
            what=f"labels of {name} have no training document; their {unseen['count'].sum():,} "
            "assignments count as missed",
            expected="labels that also occur in train",
            todo="nothing: recall counts them as missed, and the reports say how many there are",
            where=f"{name}: ",
            level="note",
        )


def quote_label(label: str, title: str | None = None) -> str:
    """A label as a finding shows it, with its title."""
    return f"'{reveal(label)}'" + (f" ({title})" if title else "")
