"""A prepared corpus in a run folder: its labels are kept there, its texts are read from their source and compared by hash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from plant_cli.api.corpus import Dataset, Split, SplitName
from plant_cli.api.errors import ArtefactError, DataError
from plant_cli.data.corpus_files import (
    GOLD_FILE,
    LABEL_LISTS,
    LABELS_FILE,
    NEW_RUN,
    SPLITS_FILE,
    CorpusRecord,
    Fingerprint,
    SplitRecord,
    read_evidence,
    read_excluded,
    read_gold_labels,
    read_labels,
    read_parents,
    require_outputs,
)
from plant_cli.data.documents import read_batches, read_frame, tidy
from plant_cli.data.evidence import encode_evidence
from plant_cli.data.labels import LabelTable, encode_excluded, encode_gold, encode_labels, group_parents
from plant_cli.data.records import require_same, stamp
from plant_cli.data.word_analysis import WordAnalyser


@dataclass(frozen=True, kw_only=True)
class StoredCorpus:
    """See `plant_cli.api.Corpus`. A split is read from its source when it is first asked for, and kept in memory."""

    folder: Path
    record: CorpusRecord
    labels: LabelTable
    load: Callable[[], Dataset] = field(repr=False)
    evidence: pl.DataFrame | None = field(default=None, repr=False)
    excluded: pl.DataFrame | None = field(default=None, repr=False)
    _splits: dict[SplitName, Split] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def data_hash(self) -> str:
        """One hash of documents, labels and splits."""
        return self.record.data_hash

    @cached_property
    def analyser(self) -> WordAnalyser:
        """See `Corpus.analyser`."""
        return WordAnalyser(self.record.analyser)

    @cached_property
    def dataset(self) -> Dataset:
        """The source, loaded once."""
        return self.load()

    @cached_property
    def sizes(self) -> Mapping[SplitName, int]:
        """See `Corpus.sizes`."""
        return self.record.sizes

    def has_split(self, name: SplitName) -> bool:
        """See `Corpus.has_split`."""
        return name in self.sizes

    def __iter__(self) -> Iterator[SplitName]:
        return iter(self.sizes)

    def split(self, name: SplitName) -> Split:
        """One split: read from the source, tidied and compared by hash the first time it is asked for."""
        self._require_split(name)
        if name not in self._splits:
            self._splits.update({found: self._encode(found, frame) for found, frame in self._read(name)})
        return self._splits[name]

    def _require_split(self, name: SplitName) -> None:
        if not self.has_split(name):
            raise DataError(
                f"the corpus has no split '{name}'",
                where=", ".join(self.record.files) or str(self.folder),
                expected=f"one of {', '.join(self)}",
                todo="use one that there is (--split), or make splits with `plant data split` before anything is trained",
            )

    def gold_labels(self, name: SplitName) -> Split:
        """See `Corpus.gold_labels`."""
        self._require_split(name)
        if GOLD_FILE not in self.record.outputs:
            raise ArtefactError(
                "the run holds no file of gold labels: it is of an earlier version",
                where=str(self.folder / GOLD_FILE),
                expected="the gold labels of every split, which are written when a corpus is prepared",
                todo=NEW_RUN,
            )
        frame = read_gold_labels(self.folder, name)
        gold, unseen, unseen_labels = encode_gold(frame, len(self.labels))
        excluded = None if self.excluded is None else encode_excluded(self.excluded, frame["doc_id"])
        doc_ids = frame["doc_id"].to_list()
        return Split(name=name, doc_ids=doc_ids, texts=(), gold=gold, unseen=unseen, unseen_labels=unseen_labels, excluded=excluded)

    def stream(self, name: SplitName) -> Iterator[Split]:
        """See `Corpus.stream`; a split that is in memory is given as it is."""
        if name in self._splits or not self.has_split(name):
            yield self.split(name)
            return
        source: SplitName = "train" if self.record.held_out and name != "test" else name
        held_out = pl.col("doc_id").is_in(self.record.held_out) if self.record.held_out else pl.lit(False)
        fingerprint = Fingerprint()
        for batch in read_batches(self.dataset, self._require_source(source)):
            frame = tidy(batch)
            fingerprint.add(frame)
            own = frame if source == "test" else frame.filter(held_out if name != source else ~held_out)
            yield self._encode(name, own)
        self._compare(source, fingerprint.record())

    def _encode(self, name: SplitName, frame: pl.DataFrame) -> Split:
        gold, unseen, unseen_labels = encode_labels(frame, self.labels.positions)
        return Split(
            name=name,
            doc_ids=frame["doc_id"].to_list(),
            texts=frame["text"].to_list(),
            gold=gold,
            unseen=unseen,
            unseen_labels=unseen_labels,
            evidence=None if self.evidence is None else encode_evidence(self.evidence, frame["doc_id"]),
            excluded=None if self.excluded is None else encode_excluded(self.excluded, frame["doc_id"]),
        )

    def _read(self, name: SplitName) -> list[tuple[SplitName, pl.DataFrame]]:
        """The split; where validation was held out of train, both, which are read together."""
        if not self.record.held_out or name == "test":
            return [(name, self._read_source(name))]
        frame, held_out = self._read_source("train"), pl.col("doc_id").is_in(self.record.held_out)
        return [("train", frame.filter(~held_out)), ("validation", frame.filter(held_out))]

    def _read_source(self, name: SplitName) -> pl.DataFrame:
        frame = tidy(read_frame(self.dataset, self._require_source(name)))
        self._compare(name, SplitRecord.of(frame))
        return frame

    def _require_source(self, name: SplitName) -> SplitName:
        if name not in self.dataset.splits:
            raise _other_source(f"the corpus has no split '{name}' any more", self._where)
        return name

    def _compare(self, name: SplitName, found: SplitRecord) -> None:
        differences = found.differences(self.record.splits[name])
        if differences:
            raise _other_source(f"the split '{name}' has other {', '.join(differences)} than when the run was made", self._where)

    @property
    def _where(self) -> str:
        return f"{', '.join(self.dataset.files) or 'the dataset'} against {self.folder / SPLITS_FILE}"


def open_corpus(folder: Path, load: Callable[[], Dataset]) -> StoredCorpus:
    """The corpus that `prepare` wrote."""
    record = CorpusRecord.read(folder)
    require_outputs(folder, record)
    index = read_labels(folder)
    labels = LabelTable(
        ids=index["label"].to_list(),
        titles=index["title"].to_list(),
        train_counts=index["train_count"].to_list(),
        descriptions=index["description"].to_list(),
        **{name: _share_empty(index[name]) for name in LABEL_LISTS},
        further_parents=group_parents(read_parents(folder)),
    )
    require_same(
        stamp(labels=labels.hash),
        path=folder / LABELS_FILE,
        what="the label index",
        todo=NEW_RUN,
        labels=record.label_hash,
        against=folder / SPLITS_FILE,
    )
    return StoredCorpus(
        folder=folder, record=record, labels=labels, load=load, evidence=read_evidence(folder), excluded=read_excluded(folder)
    )


def _share_empty(column: pl.Series) -> list[list[str]]:
    """The lists of a column; a million empty ones are one object."""
    empty: list[str] = []
    return [names or empty for names in column.to_list()]


def _other_source(what: str, where: str) -> ArtefactError:
    return ArtefactError(
        what, where=where, expected="the corpus that the run was made from", todo=f"put the corpus back as it was, or {NEW_RUN}"
    )
