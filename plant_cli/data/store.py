"""A prepared corpus in a run folder: its labels are kept there, its texts are read from their
source and compared by hash.
"""

# ruff: noqa: D102  # the methods of a protocol are described there
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from plant_cli.api import ArtefactError, DataError, Dataset, Split, SplitName
from plant_cli.data.corpus_files import (
    EVIDENCE_FILE,
    EXCLUDED_FILE,
    GOLD_FILE,
    LABEL_LISTS,
    LABELS_FILE,
    NEW_RUN,
    PARENTS_FILE,
    SPLITS_FILE,
    CorpusRecord,
    Fingerprint,
    read_corpus_table,
    read_labels,
    require_outputs,
)
from plant_cli.data.documents import DOCUMENTS_IN_MEMORY, read_batches, tidy
from plant_cli.data.evidence import encode_evidence
from plant_cli.data.labels import LabelTable, encode_excluded, encode_gold, group_parents
from plant_cli.data.records import require_same, stamp
from plant_cli.data.word_analysis import WordAnalyser


@dataclass(frozen=True, kw_only=True)
class StoredCorpus:
    """See `plant_cli.api.Corpus`. A split is read from its source when it is first asked for,
    and kept in memory.
    """

    folder: Path
    record: CorpusRecord
    labels: LabelTable
    load: Callable[[], Dataset] = field(repr=False)
    evidence: pl.DataFrame | None = field(default=None, repr=False)
    excluded: pl.DataFrame | None = field(default=None, repr=False)
    documents: Mapping[SplitName, pl.DataFrame] = field(
        default_factory=dict, repr=False
    )  # of the source, if they have just been read
    _splits: dict[SplitName, Split] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def data_hash(self) -> str:
        return self.record.data_hash

    @cached_property
    def analyser(self) -> WordAnalyser:
        return WordAnalyser(self.record.analyser)

    @cached_property
    def dataset(self) -> Dataset:
        """The source, loaded once."""
        return self.load()

    @cached_property
    def sizes(self) -> Mapping[SplitName, int]:
        return self.record.sizes

    def has_split(self, name: SplitName) -> bool:
        return name in self.sizes

    def __iter__(self) -> Iterator[SplitName]:
        return iter(self.sizes)

    def split(self, name: SplitName) -> Split:
        """Where validation was held out of train, both are kept, which are read together."""
        if name not in self._splits:
            splits = [
                self.gold_labels(each)
                for each in (("train", "validation") if self._is_held_out(name) else (name,))
            ]
            documents = pl.concat(self._read(self._source(name)))
            self._splits.update(
                {
                    split.name: self._fill(split, self._choose(split.name, documents), 0)
                    for split in splits
                }
            )
        return self._splits[name]

    def gold_labels(self, name: SplitName) -> Split:
        if name not in self.sizes:
            raise DataError(
                f"the corpus has no split '{name}'",
                where=", ".join(self.record.files) or str(self.folder),
                expected=f"one of {', '.join(self)}",
                todo="use one that there is (--split), or make splits with `plant data split` "
                "before anything is trained",
            )
        table = (
            read_corpus_table(self.folder, GOLD_FILE) if GOLD_FILE in self.record.outputs else None
        )
        if table is None:
            raise ArtefactError(
                "the run holds no file of gold labels: it is an exported model, or of an earlier "
                "version",
                where=str(self.folder / GOLD_FILE),
                expected="the gold labels of every split, which are written when a corpus is "
                "prepared",
                todo=NEW_RUN,
            )
        table = table.filter(pl.col("split") == name)
        gold, unseen, unseen_labels = encode_gold(table, len(self.labels))
        excluded = (
            None if self.excluded is None else encode_excluded(self.excluded, table["doc_id"])
        )
        doc_ids = table["doc_id"].to_list()
        return Split(
            name=name,
            doc_ids=doc_ids,
            texts=(),
            gold=gold,
            unseen=unseen,
            unseen_labels=unseen_labels,
            excluded=excluded,
        )

    def stream(self, name: SplitName) -> Iterator[Split]:
        """A split that is in memory is given as it is. A changed source is known at the end."""
        if name in self._splits:
            yield self._splits[name]
            return
        gold, start = self.gold_labels(name), 0
        for batch in self._read(self._source(name)):
            documents = self._choose(name, batch)
            yield self._fill(gold, documents, start)
            start += documents.height

    def _is_held_out(self, name: SplitName) -> bool:
        """Whether the split is a part of the source's train, of which validation was held out."""
        return bool(self.record.held_out) and name != "test"

    def _choose(self, name: SplitName, documents: pl.DataFrame) -> pl.DataFrame:
        """Those documents of its source that are of the split, and have a text."""
        held_out, gone = (
            pl.col("doc_id").is_in(self.record.held_out),
            self.record.left_out.get(self._source(name), []),
        )
        kept = documents.filter(~pl.col("doc_id").is_in(gone)) if gone else documents
        return (
            kept.filter(held_out if name == "validation" else ~held_out)
            if self._is_held_out(name)
            else kept
        )

    def _source(self, name: SplitName) -> SplitName:
        """The split of the source that the documents of a split are of."""
        return "train" if self._is_held_out(name) else name

    def _fill(self, split: Split, documents: pl.DataFrame, start: int) -> Split:
        """Rows of a split from `start` on, with their texts and evidence."""
        rows, ids = slice(start, start + documents.height), documents["doc_id"]
        if rows.stop > len(split) or ids.to_list() != list(split.doc_ids[rows]):
            raise self._other_source(
                f"the split '{split.name}' has other documents than when the run was made"
            )
        return replace(
            split,
            doc_ids=split.doc_ids[rows],
            texts=documents["text"].to_list(),
            gold=split.gold[rows],
            unseen=split.unseen[rows],
            evidence=None if self.evidence is None else encode_evidence(self.evidence, ids),
            excluded=None if self.excluded is None else encode_excluded(self.excluded, ids),
        )

    def _read(self, source: SplitName) -> Iterator[pl.DataFrame]:
        """The tidy documents of a split of the source, in batches; at the end they are compared
        by hash with those of the record.
        """
        if source in self.documents:
            yield from self.documents[source].iter_slices(DOCUMENTS_IN_MEMORY)
            return
        if source not in self.dataset.splits:
            raise self._other_source(f"the corpus has no split '{source}' any more")
        fingerprint = Fingerprint()
        for batch in read_batches(self.dataset, source):
            documents = tidy(batch)
            fingerprint.add(documents)
            yield documents
        if differences := fingerprint.record().differences(self.record.splits[source]):
            raise self._other_source(
                f"the split '{source}' has other {', '.join(differences)} than when the run was "
                "made"
            )

    def _other_source(self, what: str) -> ArtefactError:
        where = (
            f"{', '.join(self.dataset.files) or 'the dataset'} against {self.folder / SPLITS_FILE}"
        )
        todo = (
            "put the corpus back as it was; or go on with what it is now: `plant train "
            f"--continue`; or {NEW_RUN}"
        )
        return ArtefactError(
            what, where=where, expected="the corpus that the run was made from", todo=todo
        )


def open_corpus(
    folder: Path,
    load: Callable[[], Dataset],
    documents: Mapping[SplitName, pl.DataFrame] | None = None,
) -> StoredCorpus:
    """The corpus that `prepare` wrote; `documents` of its source are those that it has just
    read.
    """
    record = CorpusRecord.read(folder)
    require_outputs(folder, record)
    index, empty = read_labels(folder), list[str]()  # a million empty lists are one object
    labels = LabelTable(
        ids=index["label"].to_list(),
        titles=index["title"].to_list(),
        train_counts=index["train_count"].to_list(),
        descriptions=index["description"].to_list(),
        **{name: [names or empty for names in index[name].to_list()] for name in LABEL_LISTS},
        further_parents=group_parents(read_corpus_table(folder, PARENTS_FILE)),
    )
    require_same(
        stamp(labels=labels.hash),
        path=folder / LABELS_FILE,
        what="the label index",
        todo=NEW_RUN,
        labels=record.label_hash,
        against=folder / SPLITS_FILE,
    )
    evidence, excluded = (
        read_corpus_table(folder, EVIDENCE_FILE),
        read_corpus_table(folder, EXCLUDED_FILE),
    )
    return StoredCorpus(
        folder=folder,
        record=record,
        labels=labels,
        load=load,
        evidence=evidence,
        excluded=excluded,
        documents=documents or {},
    )
