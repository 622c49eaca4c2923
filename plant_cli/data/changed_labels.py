"""Edits of the labels of a corpus: added, renamed, merged, split and retired ones, as a table
that a person can change.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from plant_cli.api import DataError, Dataset, Pieces, SilentReporter, missing_column, near_names
from plant_cli.data.documents import tidy_dataset
from plant_cli.data.files import hash_strings
from plant_cli.data.listed_values import split_names
from plant_cli.data.tables import collect, scan_table
from plant_cli.data.vocabularies import read_titles

EDIT_COLUMNS = ("edit", "label", "title", "into", "description", "text")
YAML = (".yaml", ".yml")
EDIT_KINDS = {  # what each needs beside the label
    "add": "a title, or an example in another row",
    "title": "a title",
    "rename": "a title",
    "merge": "another label in the column into",
    "split": "two labels or more in the column into, with | between them",
    "retire": "nothing else",
    "example": "a text that has the label",
}


NEEDED_TEXT = {"title": "title", "rename": "title", "example": "text"}  # a column, by edit
FEWEST_LABELS = {"merge": 1, "split": 2}  # in the column into


def _require_complete(
    kind: str, label: str, texts: Mapping[str, str], into: Sequence[str], where: str
) -> None:
    """Refuse a row that is no edit, or lacks what its edit needs; `texts` by column."""
    if kind not in EDIT_KINDS or not label:
        what = (
            f"'{kind}' is no edit"
            if kind not in EDIT_KINDS
            else f"the edit '{kind}' names no label"
        )
        raise DataError(
            what,
            where=where,
            expected=f"one of {', '.join(EDIT_KINDS)}, and a label",
            todo="correct the row",
        )
    needed = NEEDED_TEXT.get(kind)
    if (needed and not texts[needed]) or len(into) < FEWEST_LABELS.get(kind, 0):
        raise DataError(
            f"the edit '{kind}' is not complete",
            where=where,
            expected=EDIT_KINDS[kind],
            todo="fill in the row",
        )
    if kind == "merge" and len(into) > 1:
        raise DataError(
            f"'{label}' is to be merged into {len(into)} labels",
            where=where,
            expected="one label in the column into",
            todo="call it a split",
        )


@dataclass(kw_only=True)
class ChangedLabels:
    """What the rows of a table, one after the other, do to labels. `known` are the labels
    before; None: any label may be one.
    """

    where: str
    known: Collection[str] | None = None
    titles: dict[str, dict[str, str | None]] = field(
        default_factory=dict
    )  # title and description of labels that are added or renamed
    origins: dict[str, list[str]] = field(
        default_factory=dict
    )  # the labels whose documents have this label now
    examples: dict[str, list[str]] = field(default_factory=dict)  # labels of each text
    added: dict[str, None] = field(default_factory=dict)  # in order
    gone: dict[str, str] = field(default_factory=dict)  # what became of a label
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # of the edits

    def take(self, row: dict[str, Any], number: int) -> None:
        """Make the edit of one row; `DataError` if it lacks something, or does not fit the
        labels as they are after the rows above.
        """
        kind, label, title, text = (
            str(row[name] or "").strip() for name in ("edit", "label", "title", "text")
        )
        kind, into, where = kind.lower(), split_names(row["into"]), f"{self.where}, row {number}"
        _require_complete(kind, label, {"title": title, "text": text}, into, where)
        self.counts[kind] += 1
        if kind == "add":
            self._add(label, title or None, str(row["description"] or "").strip() or None, where)
            return
        self._require(label, where)
        if kind in ("title", "rename"):
            self.titles.setdefault(label, {})["title"] = title
        elif kind == "example":
            self.examples.setdefault(text, []).append(label)
        elif kind == "retire":
            self._remove(label, None, "was retired", where)
        else:
            self._replace(label, into, kind, where)

    def _replace(self, label: str, into: Sequence[str], kind: str, where: str) -> None:
        """Merge a label into another one, or split it."""
        if label in into and kind == "merge":
            raise DataError(
                f"'{label}' is to be merged into itself",
                where=where,
                expected="another label",
                todo="correct the row",
            )
        for one in into:
            self._require(one, where)
        became = "merged into" if kind == "merge" else "split, and its documents have"
        if label not in into:
            self._remove(label, into[0], f"was {became} '{into[0]}'", where)

    def _require(self, label: str, where: str) -> None:
        if label in self.gone:
            what = f"there is no label '{label}' any more: it {self.gone[label]}"
            raise DataError(
                what,
                where=where,
                expected="a label that is there after the rows above",
                todo="name its successor, or remove the row",
            )
        if self.known is not None and label not in self.known and label not in self.added:
            expected, todo = (
                near_names(label, self.known),
                "correct the id; a new label needs a row `add` above",
            )
            raise DataError(
                f"there is no label '{label}'", where=where, expected=expected, todo=todo
            )

    def _add(self, label: str, title: str | None, description: str | None, where: str) -> None:
        if label in self.added or (
            self.known is not None and label in self.known and label not in self.gone
        ):
            todo = "give it another id; `rename` changes the title of a label that is there"
            raise DataError(
                f"the label '{label}' exists already", where=where, expected="a new id", todo=todo
            )
        self.gone.pop(label, None)
        self.added[label] = None
        self.origins[label] = []
        self.titles[label] = {"title": title, "description": description}

    def _remove(self, label: str, into: str | None, became: str, where: str) -> None:
        """Give the documents of a label to another one, or to none."""
        self.gone[label] = f"{became} ({where.rpartition(', ')[2]})"
        self.titles.pop(label, None)
        self.added.pop(label, None)
        moved = self.origins.pop(label, [label])
        if into is not None:
            self.origins.setdefault(into, [into]).extend(moved)
        for labels in self.examples.values():
            if label in labels:
                others = [one for one in labels if one != label]
                labels[:] = dict.fromkeys(others if into is None else [*others, into])

    def require_examples(self) -> None:
        """Refuse an added label of which nothing is known."""
        shown = {label for labels in self.examples.values() for label in labels} | {
            label for label, old in self.origins.items() if old
        }
        bare = [
            label for label in self.added if not self.titles[label]["title"] and label not in shown
        ]
        if bare:
            what = f"nothing is known of the new label '{bare[0]}'"
            raise DataError(
                what,
                where=self.where,
                expected=EDIT_KINDS["add"],
                todo="add a title, or rows `example` with texts",
            )

    @property
    def moves(self) -> dict[str, str | None]:
        """The labels of documents that change, and what they become; None: nothing."""
        stay: dict[str, str | None] = {
            old: label for label, olds in self.origins.items() for old in olds if old != label
        }
        return {**dict.fromkeys(self.gone), **stay}

    def apply(self, dataset: Dataset) -> Dataset:
        """A dataset with the edits: in the labels of its documents, in its titles, and with the
        examples.

        The text of an example that is a document already gets the label there, in any split; others
        become documents of train.
        """
        tidied, moves = tidy_dataset(dataset), self.moves
        more = pl.DataFrame(
            {"text": list(self.examples), "more": list(self.examples.values())},
            schema={"text": pl.String, "more": pl.List(pl.String)},
        )
        found = [
            frame.select("text").join(more.lazy(), on="text", how="semi")
            for frame in tidied.splits.values()
            if more.height
        ]
        known = collect(pl.concat(found), self.where) if found else more
        new = more.join(known, on="text", how="anti", maintain_order="left").filter(
            pl.col("more").list.len() > 0
        )
        changed = pl.col("labels").list.eval(pl.element().replace(moves)).list.drop_nulls()
        labels = pl.concat_list(changed, pl.col("more").fill_null([])).list.unique(
            maintain_order=True
        )

        def edit(frame: pl.LazyFrame) -> pl.LazyFrame:
            joined = frame.join(more.lazy(), on="text", how="left", maintain_order="left")
            return joined.select("doc_id", "text", labels=labels)

        pieces = {name: [edit(part) for part in cut.parts] for name, cut in tidied.pieces.items()}
        if new.height:
            ids = [f"example-{hash_strings([text])[:12]}" for text in new["text"]]
            pieces["train"].append(
                new.select(pl.Series("doc_id", ids), "text", labels="more").lazy()
            )
        splits = {name: pl.concat(parts) for name, parts in pieces.items()}
        return replace(
            dataset,
            splits=splits,
            pieces={name: Pieces(splits[name], parts) for name, parts in pieces.items()},
            labels=self._edit_titles(read_titles(dataset, SilentReporter())).lazy(),
            evidence=_move(dataset.evidence, moves),
            excluded=_move(dataset.excluded, moves),
            files=[*dataset.files, self.where],
        )

    def _edit_titles(self, table: pl.DataFrame) -> pl.DataFrame:
        rows = [
            (label, texts.get("title"), texts.get("description"))
            for label, texts in self.titles.items()
        ]
        new = pl.DataFrame(
            rows,
            schema=dict.fromkeys(("label", "new_title", "new_description"), pl.String),
            orient="row",
        )
        kept = table.filter(~pl.col("label").is_in([*self.gone]))
        joined = kept.join(new, on="label", how="full", coalesce=True, maintain_order="left_right")
        texts = (pl.coalesce(f"new_{name}", name).alias(name) for name in ("title", "description"))
        is_new = pl.col("label").is_in([*self.added])
        return joined.select(
            "label",
            *texts,
            "alternatives",
            "parents",
            deprecated=pl.col("deprecated").fill_null(False) & ~is_new,
        )


def _move(pairs: pl.LazyFrame | None, moves: dict[str, str | None]) -> pl.LazyFrame | None:
    """Rows of documents and labels with the labels of now."""
    return (
        None
        if pairs is None
        else pairs.with_columns(pl.col("label").cast(pl.String).replace(moves)).drop_nulls("label")
    )


def read_label_edits(path: Path) -> ChangedLabels:
    """The edits of a table, or of a list in YAML, with the columns `EDIT_COLUMNS`, of which only
    `edit` and `label` must be there.

    `DataError` if a column is missing, or a row is wrong (see `ChangedLabels.take`).
    """
    return make_edits(read_edit_rows(path), str(path))


def make_edits(
    rows: Iterable[dict[str, Any]], where: str, known: Collection[str] | None = None
) -> ChangedLabels:
    """The edits of rows of `EDIT_COLUMNS`. `known` are the labels before the edits: unknown
    ones are refused then.
    """
    edits = ChangedLabels(where=where, known=known)
    for number, row in enumerate(
        rows, start=1 if Path(where).suffix.lower() in (".jsonl", *YAML) else 2
    ):  # 2: below the header
        if any(row.values()):
            edits.take(row, number)
    edits.require_examples()
    return edits


def read_edit_rows(path: Path) -> list[dict[str, str | None]]:
    """The rows of a table or a YAML list of edits, with all `EDIT_COLUMNS`; what is not there
    is empty. An unchanged file is read once.
    """
    version = path.stat() if path.is_file() else None
    return _read_rows(path, version and (version.st_ino, version.st_size, version.st_mtime_ns))


@lru_cache(maxsize=4)
def _read_rows(path: Path, version: tuple[int, ...] | None) -> list[dict[str, str | None]]:
    """The rows of a file; `version` is there for the cache alone, which so reads a file again
    that has changed.
    """
    if path.suffix.lower() in YAML:
        rows = _read_yaml(path)
        columns = list(dict.fromkeys(name for row in rows for name in row))
    else:
        table = collect(scan_table(path), str(path))
        rows, columns = table.to_dicts(), table.columns
    for name in EDIT_COLUMNS[:2]:
        if name not in columns:
            raise missing_column(
                name, columns, where=str(path), todo=f"name the columns {', '.join(EDIT_COLUMNS)}"
            )
    return [{name: _read_cell(row.get(name)) for name in EDIT_COLUMNS} for row in rows]


def _read_cell(cell: object) -> str | None:
    """A cell as a string, without the quote that `guard_cell` put there; a list as
    `split_names` reads it.
    """
    if isinstance(cell, list):
        return json.dumps(cell, ensure_ascii=False)
    return None if cell is None else re.sub(r"^'(?=[=+\-@\t\r])", "", str(cell))


def _read_yaml(path: Path) -> list[dict[str, Any]]:
    rows = mark = None
    try:
        with path.open(encoding="utf-8") as stream:
            rows = yaml.load(stream, Loader=yaml.BaseLoader)  # an id 007 keeps its zeros
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, FileNotFoundError) as error:
        mark = getattr(error, "problem_mark", None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(
            "the edits cannot be read",
            where=str(path) if mark is None else f"{path}, line {mark.line + 1}",
            expected=f"a list in YAML, an edit each, with the keys {', '.join(EDIT_COLUMNS)}",
            todo="correct the file, or write the edits as a table",
        )
    return rows
