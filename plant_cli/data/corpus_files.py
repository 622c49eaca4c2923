"""The folder `corpus`: the label index, gold evidence and statistics, and of the texts the
hashes by which to know them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError
from pydantic import BaseModel, ConfigDict, ValidationError

from plant_cli.api import SPLITS, ArtefactError, SplitName, WordRule, damaged_file
from plant_cli.data.files import ListHash, StringsHash, hash_file, hash_json, read_json, write_json
from plant_cli.data.parquet import panics_as_errors, write_parquet
from plant_cli.data.records import examine_file

LABELS_FILE = "labels.parquet"
GOLD_FILE = "gold.parquet"
EVIDENCE_FILE = "evidence.parquet"
EXCLUDED_FILE = "excluded.parquet"
PARENTS_FILE = "parents.parquet"
DOCUMENTS_FILE = "documents.parquet"
SPLITS_FILE = "splits.json"
STATISTICS_FILE = "statistics.json"
KEPT_FOR_MODELS = (LABELS_FILE, PARENTS_FILE, STATISTICS_FILE)  # that a model needs of its corpus
LABEL_LISTS = (
    "alternatives",
    "parents",
)  # what a vocabulary knows beside titles and descriptions; empty without one
LABEL_COLUMNS = ("label", "title", "train_count", "description", *LABEL_LISTS)
EVIDENCE = {"doc_id": pl.String(), "label": pl.String(), "start": pl.Int64(), "end": pl.Int64()}
GOLD = {
    "split": pl.String(),
    "doc_id": pl.String(),
    "labels": pl.List(pl.UInt32()),
    "unseen": pl.List(pl.String()),
}
EXCLUDED = {"doc_id": pl.String(), "label": pl.String()}
DOCUMENTS = {
    "split": pl.String(),
    "doc_id": pl.String(),
    "text": pl.UInt64(),
    "labels": pl.UInt64(),
}  # hashes of what the source has
PARENTS = {"label": pl.String(), "parent": pl.String()}
# files that a corpus may have beside its label index: what they hold, and their columns
CORPUS_TABLES: Mapping[str, tuple[str, Mapping[str, pl.DataType]]] = {
    GOLD_FILE: ("the gold labels", GOLD),
    EVIDENCE_FILE: ("the gold evidence", EVIDENCE),
    EXCLUDED_FILE: ("the pairs to leave out of predictions", EXCLUDED),
    PARENTS_FILE: ("the parents of further labels", PARENTS),
    DOCUMENTS_FILE: ("the hashes of the texts", DOCUMENTS),
}
NEW_RUN = "start a new run: --run NEW"


class SplitRecord(BaseModel):
    """Fingerprint of one split as the dataset yields it: ids, texts and tidied labels, in order."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    documents: int
    ids_hash: str
    texts_hash: str
    labels_hash: str

    def differences(self, other: SplitRecord) -> list[str]:
        """Which of documents, ids, texts and labels differ."""
        return [
            name.removesuffix("_hash")
            for name in type(self).model_fields
            if getattr(self, name) != getattr(other, name)
        ]


class Fingerprint:
    """Makes the record of a split from its documents, batch after batch; how they are cut into
    batches changes nothing.
    """

    def __init__(self) -> None:
        self._documents = 0
        self._ids, self._texts, self._labels = StringsHash(), StringsHash(), ListHash()

    def add(self, frame: pl.DataFrame) -> None:
        """Take the next documents, tidied."""
        self._documents += frame.height
        self._ids.add(frame["doc_id"])
        self._texts.add(frame["text"])
        self._labels.add(frame["labels"].to_list())

    def record(self) -> SplitRecord:
        """The record of what was added."""
        return SplitRecord(
            documents=self._documents,
            ids_hash=self._ids.hexdigest(),
            texts_hash=self._texts.hexdigest(),
            labels_hash=self._labels.hexdigest(),
        )


class AnalyserRecord(BaseModel):
    """How the words of a run's texts are counted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    asked: str = "none"  # the option `analyser` of the section `data`
    # share of the training documents in each language (ISO 639-1), largest first; those not
    # recognised and strays left out
    shares: dict[str, float] = {}
    methods: dict[
        str, str
    ] = {}  # the analyser of each of these languages; `none`: words as they are
    packages: dict[str, str] = {}  # versions of the packages that reduce words
    # what is a word; corpora that were prepared before there was a choice do not say it
    words: WordRule = "letters"

    @property
    def hash(self) -> str:
        """Equal where the same words are counted."""
        return hash_json(
            self.model_dump(
                mode="json",
                include={"methods", "packages"} | ({"words"} if self.words != "letters" else set()),
            )
        )


class CorpusRecord(BaseModel):
    """The file splits.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: dict[
        str, Any
    ]  # the recipe's section `data`: the dataset plugin, its options and how columns are named
    files: list[str]  # what the dataset read
    splits: dict[SplitName, SplitRecord]  # fingerprints of the source's splits, before any hold-out
    held_out: list[
        str
        # ids of the training documents that serve as validation; empty when the source has a
        # validation split
    ]
    left_out: dict[
        SplitName, list[str]
    ] = {}  # ids of the documents of the source that have no text
    label_hash: str  # of the ordered label ids of train
    analyser: AnalyserRecord = AnalyserRecord()  # how words are counted
    outputs: dict[str, str] = {}  # SHA-256 of each other file of the folder

    @property
    def data_hash(self) -> str:
        """One hash of documents, labels and splits: equal for equal corpora, wherever they were
        read from.
        """
        return hash_json(self.model_dump(mode="json", include={"splits", "held_out"}))

    @property
    def sizes(self) -> dict[SplitName, int]:
        """How many documents each split has for its reader, in the order train, validation,
        test: those held out are no longer in train.
        """
        counts = {
            name: record.documents - len(self.left_out.get(name, ()))
            for name, record in self.splits.items()
        }
        if self.held_out:
            counts |= {
                "train": counts["train"] - len(self.held_out),
                "validation": len(self.held_out),
            }
        return {name: counts[name] for name in SPLITS if name in counts}

    def find_part(self, train_share: float) -> float:
        """The share of the run's training documents that a stage with this `data.train_share`
        takes.
        """
        whole = float(self.source.get("train_share", 1.0))
        return train_share / whole if train_share < whole else 1.0

    def write(self, folder: Path) -> None:
        """Write splits.json."""
        write_json(
            folder / SPLITS_FILE, {"data_hash": self.data_hash, **self.model_dump(mode="json")}
        )

    @classmethod
    def read(cls, folder: Path) -> CorpusRecord:
        """Read splits.json; `ArtefactError` if it is missing, damaged or was changed by hand."""
        path = folder / SPLITS_FILE
        content = read_json(path, "the record of the run's corpus")
        data_hash = content.pop("data_hash", None) if isinstance(content, dict) else None
        try:
            record = cls.model_validate(content)
            if record.data_hash == data_hash:
                return record
            why = "its data_hash is not that of its content"
        except ValidationError as error:
            first = error.errors()[0]
            why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise damaged_file(
            "the record of the run's corpus",
            why,
            path,
            expected="the file as `plant` wrote it",
            todo=NEW_RUN,
        )


def write_tables(
    folder: Path, tables: Mapping[str, pl.DataFrame | None], statistics: Mapping[str, Any]
) -> dict[str, str]:
    """Write the tables that there are, by file name, and statistics.json; SHA-256 of each file,
    for `CorpusRecord.outputs`.
    """
    written = {name: table for name, table in tables.items() if table is not None}
    for name, table in written.items():
        write_parquet(table, folder / name)
    write_json(folder / STATISTICS_FILE, dict(statistics))
    return {name: hash_file(folder / name) for name in (*written, STATISTICS_FILE)}


def require_outputs(folder: Path, record: CorpusRecord) -> None:
    """Refuse a folder whose files are not, byte for byte, those that were written;
    `ArtefactError` names the first that is not.
    """
    for name, recorded in record.outputs.items():
        file = examine_file(folder / name, recorded)
        if file.state != "whole":
            raise file.error("the run's corpus", NEW_RUN)


def read_labels(folder: Path) -> pl.DataFrame:
    """`LABEL_COLUMNS` of each label of train, in the order of the label index; `ArtefactError`
    if they cannot be read.
    """
    table = _read_columns(folder / LABELS_FILE, "the label index", LABEL_COLUMNS)
    return table.with_columns(pl.col(*LABEL_LISTS).fill_null(pl.lit([], dtype=pl.List(pl.String))))


def read_corpus_table(folder: Path, name: str) -> pl.DataFrame | None:
    """One of `CORPUS_TABLES`; None if the corpus has none; `ArtefactError` if it cannot be read."""
    what, columns = CORPUS_TABLES[name]
    return _read_columns(folder / name, what, tuple(columns)) if (folder / name).exists() else None


def _read_columns(path: Path, what: str, columns: Sequence[str]) -> pl.DataFrame:
    try:
        with panics_as_errors():
            return pl.read_parquet(path.absolute(), glob=False).select(*columns)
    except (OSError, PolarsError) as error:
        expected, todo = f"columns {', '.join(columns)}", f"restore the file, or {NEW_RUN}"
        raise ArtefactError(
            f"{what} cannot be read", where=str(path), expected=expected, todo=todo
        ) from error
