"""What writers of formats share: texts on one line, labels as numbers, and what to say of what a format cannot hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from plant_cli.api import SPLITS, DataError, Dataset, SplitName
from plant_cli.kit import writing_text
from plant_datasets.formats.documents import LABELS_FILE, SCHEMA

_BREAKS = re.compile(r"[\r\n]+")
_BREAKS_AND_TABS = re.compile(r"[\r\n\t]+")


@dataclass
class Output:
    """A folder being written in some format.

    Args:
        dataset: its splits are tidy.
        folder: exists and is empty.
        suffix: of compressed text files: "", `.gz` or `.zst`.
        tabs: whether texts may hold tabs.
    """

    dataset: Dataset
    folder: Path
    suffix: str = ""
    tabs: bool = True
    _broken: set[str] = field(default_factory=set, init=False)

    @property
    def splits(self) -> list[SplitName]:
        """The splits that there are, in order."""
        return [name for name in SPLITS if name in self.dataset.splits]

    def column(self, split: SplitName, name: str) -> pl.Series:
        """All ids or labels of a split."""
        return self.dataset.splits[split].select(name).collect()[name]

    def documents(self, split: SplitName) -> Iterator[tuple[str, str, list[str]]]:
        """Ids, texts and labels of a split, read piece by piece."""
        whole, cut = self.dataset.splits[split], self.dataset.pieces.get(split)
        for part in [whole] if cut is None or cut.whole is not whole else cut.parts:
            yield from part.select(*SCHEMA).collect().iter_rows()

    def rows(self, split: SplitName) -> Iterator[tuple[str, str, list[str]]]:
        """Ids, texts on one line, and labels of a split."""
        for doc_id, text, labels in self.documents(split):
            yield doc_id, self.flatten(text, doc_id), labels

    def write(self, name: str, lines: Iterator[str]) -> None:
        """Write lines to a file of the folder, compressed as asked."""
        with writing_text(self.folder / f"{name}{self.suffix}") as stream:
            for line in lines:
                stream.write(line)
                stream.write("\n")

    @cached_property
    def labels(self) -> pl.DataFrame:
        """`label` and `title` of all labels of the documents and of the dataset's table, sorted by label."""
        used = pl.concat([self.column(split, "labels").explode().to_frame("label") for split in self.splits]).drop_nulls().unique()
        if self.dataset.labels is None:
            return used.with_columns(title=pl.lit(None, dtype=pl.String)).sort("label")
        table = self.dataset.labels.select(pl.col("label", "title").cast(pl.String)).collect().unique("label", keep="first")
        return used.join(table, on="label", how="full", coalesce=True).drop_nulls("label").sort("label")

    def number_labels(self) -> dict[str, int]:
        """Number the labels from 0 in sorted order, and write their table `labels.tsv`."""
        table = self.labels
        self.refuse_signs("\t\r\n", "a line of labels.tsv", table["label"].to_list())
        rows = ((label, _BREAKS_AND_TABS.sub(" ", title or "")) for label, title in table.iter_rows())
        self.write(LABELS_FILE, (f"{label}\t{title}" for label, title in [("label", "title"), *rows]))
        return {label: number for number, label in enumerate(table["label"])}

    def titles(self) -> Iterator[str]:
        """The title of each label, or its id where it has none, on one line, in sorted order of the labels."""
        return (_BREAKS_AND_TABS.sub(" ", title or label) for label, title in self.labels.iter_rows())

    def refuse_signs(self, signs: str, place: str, labels: Sequence[str] | None = None) -> None:
        """Refuse labels that hold one of some signs, since the format parts labels by them; `DataError` names the first."""
        names = self.labels["label"].to_list() if labels is None else labels
        wrong = [name for name in names if set(signs) & set(name)]
        if wrong:
            raise DataError(
                f"{len(wrong):,} labels cannot be written in this format, such as {wrong[0]!r}",
                where=place,
                expected=f"labels without any of {' '.join(map(repr, signs))}",
                todo="choose another format (annif-jsonl and Parquet hold any label), or rename these labels",
            )

    def remarks(self, *lost: str) -> list[str]:
        """What the format could not hold: line breaks, if there were any, and what the writer adds."""
        what = "line breaks" if self.tabs else "line breaks or tabs"
        broken = [f"{what} of {len(self._broken):,} texts became blanks: this format has one document a line"] if self._broken else []
        return [*broken, *(f"this format does not hold {thing}" for thing in lost)]

    def flatten(self, text: str, doc_id: str | None = None) -> str:
        """A text on one line; a document whose text is changed is counted."""
        line = (_BREAKS if self.tabs else _BREAKS_AND_TABS).sub(" ", text)
        if line != text and doc_id is not None:
            self._broken.add(doc_id)
        return line
