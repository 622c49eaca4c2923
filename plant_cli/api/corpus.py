"""Value types of a corpus: what a dataset plugin gives, and what stages read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl
    from scipy.sparse import csr_array

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


@dataclass(frozen=True)
class Pieces:
    """A split cut into consecutive parts, each small enough to be held, so that the whole never is."""

    whole: pl.LazyFrame
    """The split that was cut; where `Dataset.splits` has another frame, the parts are not its."""
    parts: Sequence[pl.LazyFrame]
    """Lazy frames that give the rows of `whole` when collected one after the other."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """What a dataset plugin yields."""

    splits: Mapping[SplitName, pl.LazyFrame]
    """Lazy frames `doc_id: str, text: str, labels: list[str]` (+ any metadata columns) by split name; only "train" is required."""
    labels: pl.LazyFrame | None = None
    """Lazy frame `label: str, title: str | null` (+ `description: str`, `alternatives: list[str]`, `parents: list[str]`), or None."""
    evidence: pl.LazyFrame | None = None
    """Lazy frame `doc_id, label, start, end, text` of gold spans (character offsets, end exclusive), or None."""
    excluded: pl.LazyFrame | None = None
    """Lazy frame `doc_id, label` of pairs that the corpus says to leave out of predictions (a label that is the document itself), or None;
    they are carried from format to format.
    """
    licence: str = "unknown"
    """Of the corpus, as an SPDX name where there is one."""
    citation: str = ""
    """What a paper that uses it should cite."""
    access: Literal["local", "bundled", "hub"] = "local"
    """`local` files of the user, `bundled` with a package, or fetched from a `hub`."""
    files: Sequence[str] = ()
    """What was read, for the run's hashes."""
    remarks: Sequence[str] = ()
    """What was guessed on reading and the user should know (no split column: how it was split)."""
    pieces: Mapping[SplitName, Pieces] = field(default_factory=dict)
    """The same splits in parts, for those that may be larger than memory."""

    def __post_init__(self) -> None:
        """Refuse what would be left out, or read letter by letter, in silence."""
        unknown = sorted({*self.splits, *self.pieces} - {*SPLITS})
        if unknown:
            raise ValueError(f"a dataset has a split '{unknown[0]}': splits are {', '.join(SPLITS)}")
        for name, value in (("files", self.files), ("remarks", self.remarks)):
            if isinstance(value, str):
                raise TypeError(f"the {name} of a dataset are one text, {value[:40]!r}: a list of texts is expected")


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    """What a user should know of a published corpus before reading it."""

    title: str
    """Its name, a colon, and what it is."""
    licence: str
    """As an SPDX name where there is one, else in words."""
    citation: str
    """What a paper that uses it should cite."""
    source: str
    """Where to get it."""
    files: str
    """What the path must name."""
    variants: Mapping[str, Mapping[str, int]] = field(default_factory=dict, hash=False)
    """Known versions by name, each with the expected documents of each split (or of all, under `documents`) and, under `labels`, the
    labels.
    """


class LabelIndex(Protocol):
    """The labels of train, and with `zero_shot` of the table of titles, in sorted order: row number = label index everywhere."""

    @property
    def ids(self) -> Sequence[str]:
        """Label ids, sorted."""
        ...

    @property
    def titles(self) -> Sequence[str | None]:
        """Their titles, None where there is none."""
        ...

    @property
    def descriptions(self) -> Sequence[str | None]:
        """What they mean, None where nothing says so [L]."""
        ...

    @property
    def alternatives(self) -> Sequence[Sequence[str]]:
        """Their other names, the title not among them; empty where there are none [L]."""
        ...

    @property
    def parents(self) -> Sequence[Sequence[str]]:
        """Ids of the labels above them, perhaps of labels that no document has; empty where there are none [L]."""
        ...

    @property
    def further_parents(self) -> Mapping[str, Sequence[str]]:
        """The same of labels that the index does not have: those that stand above its labels, and gold labels unseen in train."""
        ...

    @property
    def train_counts(self) -> Sequence[int]:
        """Training documents of each label: at least 1, or 0 of labels that have a title alone (`DataSection.zero_shot`)."""
        ...

    @property
    def hash(self) -> str:
        """SHA-256 of the ordered ids."""
        ...

    def __len__(self) -> int: ...

    def position(self, label: str) -> int:
        """Row of a label; raises `DataError` with near names."""
        ...


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Gold spans of a split: where in its documents it stands that they have their labels."""

    rows: npt.NDArray[np.int64]
    """Document of each span, as its row in the split, rising [n]."""
    labels: Sequence[str]
    """The label that it justifies, one of the document's [n]."""
    spans: npt.NDArray[np.int64]
    """Character offsets (code points, end exclusive) in the document's text [n, 2]."""

    def take(self, rows: npt.NDArray[np.int64]) -> Evidence:
        """The spans of some documents of the split, as of a split that holds them in this order."""
        places, kept = _follow(rows, self.rows)
        return Evidence(rows=places, labels=[self.labels[place] for place in kept], spans=self.spans[kept])


@dataclass(frozen=True, kw_only=True)
class Excluded:
    """Pairs of a split that predictions are not judged by: the corpus says to leave them out (see `Dataset.excluded`)."""

    rows: npt.NDArray[np.int64]
    """Document of each pair, as its row in the split, rising [n]."""
    labels: Sequence[str]
    """The label, perhaps one that no training document has [n]."""

    def take(self, rows: npt.NDArray[np.int64]) -> Excluded:
        """The pairs of some documents of the split, as of a split that holds them in this order."""
        places, kept = _follow(rows, self.rows)
        return Excluded(rows=places, labels=[self.labels[place] for place in kept])


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split in memory."""

    name: SplitName
    """Train, validation or test."""
    doc_ids: Sequence[str]
    """Ids of the documents [N]."""
    texts: Sequence[str]
    """Their texts [N]."""
    gold: csr_array
    """Csr [N, L] of 0/1 over the label index (labels of train)."""
    unseen: csr_array
    """Csr [N, U] of 0/1 over `unseen_labels`."""
    unseen_labels: Sequence[str] = field(default=())
    """Gold labels that no training document has [U]."""
    evidence: Evidence | None = None
    """Gold spans, of labels unseen in train, too; None if the corpus has none."""
    excluded: Excluded | None = None
    """Pairs that do not count in predictions; None if the corpus has none."""

    def __len__(self) -> int:
        return len(self.doc_ids)

    def take(self, rows: npt.NDArray[np.int64]) -> Split:
        """Some of its documents with all that is known of them, in the order of these rows, none of which repeats."""
        chosen = rows.tolist()
        return replace(
            self,
            doc_ids=[self.doc_ids[row] for row in chosen],
            texts=[self.texts[row] for row in chosen],
            gold=self.gold[rows],
            unseen=self.unseen[rows],
            evidence=None if self.evidence is None else self.evidence.take(rows),
            excluded=None if self.excluded is None else self.excluded.take(rows),
        )


def _follow(taken: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], list[int]]:
    """Where entries of these rows [n] stand once some documents were taken: the new rows, rising, and which entries they are."""
    import numpy as np

    place = {row: new for new, row in enumerate(taken.tolist())}
    found = sorted((place[row], entry) for entry, row in enumerate(rows.tolist()) if row in place)
    return np.array([new for new, _ in found], dtype=np.int64), [entry for _, entry in found]


class WordReducer(Protocol):
    """Reduces the forms of a word in one language to one of them."""

    def reduce(self, word: str) -> str:
        """What a lower-cased word of letters is reduced to, in any case; the same word always gives the same."""
        ...


class Analyser(Protocol):
    """Finds the words of texts as the run counts them; the same for training and for new texts."""

    @property
    def hash(self) -> str:
        """Equal for analysers that find the same words."""
        ...

    def spell(self, text: str) -> list[str]:
        """The words of a text, in order, with repeats."""
        ...

    def words(self, text: str) -> list[tuple[str, int, int]]:
        """The same with their places: (word, start, end), offsets in code points of the text as it was given, end exclusive."""
        ...

    def forms(self) -> Iterator[tuple[str, str]]:
        """Each word that was reduced so far with each form of it that was met; none where words are left as they stand."""
        ...


class Corpus(Protocol):
    """A prepared corpus in a run folder."""

    @property
    def analyser(self) -> Analyser:
        """Finds the words of texts: lemmas, stems or the words as they stand, as recorded when the corpus was prepared."""
        ...

    @property
    def labels(self) -> LabelIndex:
        """The label index."""
        ...

    @property
    def data_hash(self) -> str:
        """SHA-256 over documents, labels and splits: equal for equal corpora, wherever they were read from."""
        ...

    @property
    def sizes(self) -> Mapping[SplitName, int]:
        """Documents of each split that there is, known without reading any text."""
        ...

    def split(self, name: SplitName) -> Split:
        """One split, read from its source at most once in a command.

        Raises:
            DataError: the corpus has no split of that name.
            ArtefactError: the source is no longer what the run was made from.
        """
        ...

    def stream(self, name: SplitName) -> Iterator[Split]:
        """One split in parts of some thousand documents, in order, so that its texts are never all in memory; errors as of `split`."""
        ...

    def gold_labels(self, name: SplitName) -> Split:
        """One split without its texts and evidence, as recorded when the corpus was prepared: nothing is read from the source.

        Raises:
            DataError: the corpus has no split of that name.
            ArtefactError: the run is older than this record.
        """
        ...

    def has_split(self, name: SplitName) -> bool:
        """Whether there is such a split."""
        ...

    def __iter__(self) -> Iterator[SplitName]: ...
