"""What a run keeps of its corpus: not the texts, but the hashes by which to know them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from plant_cli.api.corpus import SplitName
from plant_cli.api.errors import ArtefactError
from plant_cli.base.files import read_json, write_json
from plant_cli.base.hashing import hash_json, hash_strings

LABELS_FILE = "labels.parquet"
EVIDENCE_FILE = "evidence.parquet"
SPLITS_FILE = "splits.json"
STATISTICS_FILE = "statistics.json"


class SplitRecord(BaseModel):
    """Fingerprint of one split as the dataset yields it: ids, texts and tidied labels, in order."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    documents: int
    ids_hash: str
    texts_hash: str
    labels_hash: str

    @classmethod
    def of(cls, frame: pl.DataFrame) -> SplitRecord:
        """The fingerprint of a tidy frame."""
        return cls(
            documents=frame.height,
            ids_hash=hash_strings(frame["doc_id"]),
            texts_hash=hash_strings(frame["text"]),
            labels_hash=hash_json(frame["labels"].to_list()),
        )

    def differences(self, other: SplitRecord) -> list[str]:
        """Which of documents, ids, texts and labels differ."""
        return [name.removesuffix("_hash") for name in type(self).model_fields if getattr(self, name) != getattr(other, name)]


class CorpusRecord(BaseModel):
    """The file splits.json.

    Args:
        source: the recipe's section `data`: the dataset plugin, its options and how columns are named.
        files: what the dataset read.
        splits: fingerprints of the source's splits, before any hold-out.
        held_out: ids of the training documents that serve as validation; empty when the source has a validation split.
        label_hash: of the ordered label ids of train.
        evidence_hash: of the spans of gold evidence; None if there are none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: dict[str, Any]
    files: list[str]
    splits: dict[SplitName, SplitRecord]
    held_out: list[str]
    label_hash: str
    evidence_hash: str | None = None

    @property
    def data_hash(self) -> str:
        """One hash of documents, labels and splits: equal for equal corpora, wherever they were read from."""
        return hash_json(self.model_dump(mode="json", include={"splits", "held_out"}))

    def write(self, folder: Path) -> None:
        """Write splits.json."""
        write_json(folder / SPLITS_FILE, {"data_hash": self.data_hash, **self.model_dump(mode="json")})

    @classmethod
    def read(cls, folder: Path) -> CorpusRecord:
        """Read splits.json; `ArtefactError` if it is missing, damaged or was changed by hand."""
        path = folder / SPLITS_FILE
        content = read_json(path, "the record of the run's corpus")
        data_hash = content.pop("data_hash", None) if isinstance(content, dict) else None
        try:
            record = cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            raise _changed(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        if record.data_hash != data_hash:
            raise _changed(path, "its data_hash is not that of its content")
        return record


def _changed(path: Path, why: str) -> ArtefactError:
    return ArtefactError(
        f"the record of the run's corpus is damaged: {why}",
        where=str(path),
        expected="the file as `plant` wrote it",
        todo="start a new run: --run NEW",
    )
