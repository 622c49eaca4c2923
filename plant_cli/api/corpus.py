"""Value types of a corpus: what a dataset plugin gives, and what stages read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import polars as pl
    from scipy.sparse import csr_array

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """What a dataset plugin yields.

    Args:
        splits: lazy frames `doc_id: str, text: str, labels: list[str]` (+ any metadata columns) by split name; only "train" is required.
        labels: lazy frame `label: str, title: str | null` (+ description, parents), or None.
        evidence: lazy frame `doc_id, label, start, end, text` of gold spans (character offsets, end exclusive), or None.
        access: `local` files of the user, `bundled` with a package, or fetched from a `hub`.
        files: what was read, for the run's hashes.
        remarks: what was guessed on reading and the user should know (no split column: how it was split).
    """

    splits: Mapping[SplitName, pl.LazyFrame]
    labels: pl.LazyFrame | None = None
    evidence: pl.LazyFrame | None = None
    licence: str = "unknown"
    citation: str = ""
    access: Literal["local", "bundled", "hub"] = "local"
    files: Sequence[str] = ()
    remarks: Sequence[str] = ()


class LabelIndex(Protocol):
    """The labels of train in sorted order: row number = label index everywhere."""

    @property
    def ids(self) -> Sequence[str]:
        """Label ids, sorted."""
        ...

    @property
    def titles(self) -> Sequence[str | None]:
        """Their titles, None where there is none."""
        ...

    @property
    def train_counts(self) -> Sequence[int]:
        """Training documents of each label, at least 1."""
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
class Split:
    """One split in memory.

    Args:
        gold: csr [N, L] of 0/1 over the label index (labels of train).
        unseen: csr [N, U] of 0/1 over `unseen_labels`: gold labels that no training document has.
    """

    name: SplitName
    doc_ids: Sequence[str]
    texts: Sequence[str]
    gold: csr_array
    unseen: csr_array
    unseen_labels: Sequence[str] = field(default=())

    def __len__(self) -> int:
        return len(self.doc_ids)


class Corpus(Protocol):
    """A prepared corpus in a run folder."""

    @property
    def labels(self) -> LabelIndex:
        """The label index."""
        ...

    @property
    def data_hash(self) -> str:
        """SHA-256 over documents, labels and splits: equal for equal corpora, wherever they were read from."""
        ...

    def split(self, name: SplitName) -> Split:
        """Read one split; `DataError` if the corpus has none of that name."""
        ...

    def has_split(self, name: SplitName) -> bool:
        """Whether there is such a split."""
        ...

    def __iter__(self) -> Iterator[SplitName]: ...
