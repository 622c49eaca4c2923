"""A corpus: what a dataset plugin returns, and what stages read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from plant_cli.api.read_only import protect

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl
    from scipy.sparse import csr_array

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
WordRule = Literal["letters", "mixed", "names"]
"""What is a word: letters alone; also letters with digits, and numbers; or all that stands
between blanks.
"""


@dataclass(frozen=True)
class Pieces:
    """A split in consecutive parts that fit in memory one at a time."""

    whole: pl.LazyFrame
    """The split that was cut. The parts are used only while `Dataset.splits` holds this same
    frame.
    """
    parts: Sequence[pl.LazyFrame]
    """Lazy frames; collected one after another they give the rows of `whole`."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """What a dataset plugin returns. All frames are lazy frames of polars."""

    splits: Mapping[SplitName, pl.LazyFrame]
    """Columns `doc_id: str, text: str, labels: list[str]` and any others, by name of the split;
    only "train" is required.
    """
    labels: pl.LazyFrame | None = None
    """Columns `label: str, title: str | null`; optional are `description: str`, `alternatives:
    list[str]`, `parents: list[str]`.
    """
    evidence: pl.LazyFrame | None = None
    """Gold spans: columns `doc_id, label, start, end, text`; offsets in characters, end
    exclusive.
    """
    excluded: pl.LazyFrame | None = None
    """Columns `doc_id, label`: pairs that evaluation ignores by the rules of the corpus, such
    as a label that is the document itself.
    """
    licence: str = "unknown"
    """The licence of the corpus, as an SPDX name if there is one."""
    citation: str = ""
    """What to cite in a paper."""
    access: Literal["local", "bundled", "hub"] = "local"
    """`local`: files of the user; `bundled`: in a package; `hub`: fetched from a hub."""
    files: Sequence[str] = ()
    """The files that were read; the run hashes them."""
    remarks: Sequence[str] = ()
    """What was guessed on reading, such as how the corpus was split; shown to the user."""
    names: bool = False
    """Whether a text is a list of names of features, which blanks separate: each is a word as
    it stands.
    """
    titled: bool = False
    """Whether labels are titles, which ids of a vocabulary replace where one is named."""
    pieces: Mapping[SplitName, Pieces] = field(default_factory=dict)
    """The same splits in parts, if they may be larger than memory."""
    reader: str = ""
    """The component that gave it, and its plugin, where that is a stranger's; `plant` says it."""

    def __post_init__(self) -> None:
        unknown = sorted({*self.splits, *self.pieces} - {*SPLITS})
        if unknown:
            raise ValueError(
                f"a dataset has a split '{unknown[0]}': splits are {', '.join(SPLITS)}"
            )
        for name, value in (("files", self.files), ("remarks", self.remarks)):
            if isinstance(value, str):
                raise TypeError(
                    f"the {name} of a dataset are one text, {value[:40]!r}: a list of texts is "
                    "expected"
                )

    def parts(self, split: SplitName) -> Sequence[pl.LazyFrame]:
        """A split in pieces, or whole."""
        whole, cut = self.splits[split], self.pieces.get(split)
        return [whole] if cut is None or cut.whole is not whole else cut.parts

    def with_parts(self, parts: Mapping[SplitName, Sequence[pl.LazyFrame]]) -> Dataset:
        """The same with these splits, each in pieces, in place of its own."""
        import polars as pl  # imported here, so that `plant --help` stays quick

        splits = {name: pl.concat(pieces) for name, pieces in parts.items()}
        pieces = {name: Pieces(whole, parts[name]) for name, whole in splits.items()}
        return replace(self, splits=splits, pieces=pieces)


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    """Facts about a published corpus, shown by `plant data info`."""

    title: str
    """Its name, a colon, and a description."""
    licence: str
    """An SPDX name if there is one, else in words."""
    citation: str
    """What to cite in a paper."""
    source: str
    """Where to get it."""
    files: str
    """What the path must name."""
    variants: Mapping[str, Mapping[str, int]] = field(default_factory=dict, hash=False)
    """Known versions by name: the expected number of documents of each split, or of all under
    `documents`, and of `labels`.
    """


class LabelIndex(Protocol):
    """The labels of train (with `zero_shot` also those that only have a title), sorted. The
    position of a label is its index everywhere.
    """

    @property
    def ids(self) -> Sequence[str]:
        """Label ids, sorted [L]."""

    @property
    def titles(self) -> Sequence[str | None]:
        """Their titles; None if a label has none [L]."""

    @property
    def descriptions(self) -> Sequence[str | None]:
        """Their descriptions; None if a label has none [L]."""

    @property
    def alternatives(self) -> Sequence[Sequence[str]]:
        """Other names of each label, without the title [L]."""

    @property
    def parents(self) -> Sequence[Sequence[str]]:
        """Ids of the parents of each label; they may be labels without documents [L]."""

    @property
    def further_parents(self) -> Mapping[str, Sequence[str]]:
        """Parents of labels outside the index: of the parents above, and of gold labels unseen
        in train.
        """

    @property
    def train_counts(self) -> Sequence[int]:
        """Training documents of each label [L]; 0 for a label that only has a title
        (`DataSection.zero_shot`).
        """

    @property
    def hash(self) -> str:
        """SHA-256 of the ordered ids."""

    @property
    def positions(self) -> Mapping[str, int]:
        """The index of each label."""

    def __len__(self) -> int: ...

    def position(self, label: str) -> int:
        """The index of a label; raises `DataError` with similar names."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Gold spans of a split: the places in a text that justify a label."""

    rows: npt.NDArray[np.int64]
    """Document of each span, as its row in the split, ascending [n]."""
    labels: Sequence[str]
    """The label that each span justifies [n]."""
    spans: npt.NDArray[np.int64]
    """Start and end in the text [n, 2], in code points; the end is exclusive."""

    def __post_init__(self) -> None:
        protect(self)

    def take(self, rows: npt.NDArray[np.int64]) -> Evidence:
        """The spans of these documents; `rows` are then counted in the new order."""
        places, kept = _follow(rows, self.rows)
        return Evidence(
            rows=places, labels=[self.labels[place] for place in kept], spans=self.spans[kept]
        )


@dataclass(frozen=True, kw_only=True)
class Excluded:
    """Pairs of a split that evaluation ignores (see `Dataset.excluded`)."""

    rows: npt.NDArray[np.int64]
    """Document of each pair, as its row in the split, ascending [n]."""
    labels: Sequence[str]
    """The label of each pair; it may be unseen in train [n]."""

    def __post_init__(self) -> None:
        protect(self)

    def take(self, rows: npt.NDArray[np.int64]) -> Excluded:
        """The pairs of these documents; `rows` are then counted in the new order."""
        places, kept = _follow(rows, self.rows)
        return Excluded(rows=places, labels=[self.labels[place] for place in kept])


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split in memory."""

    name: SplitName
    """`train`, `validation` or `test`."""
    doc_ids: Sequence[str]
    """Ids of the documents [N]."""
    texts: Sequence[str]
    """Their texts [N]."""
    gold: csr_array
    """Labels of the index that each document has, csr [N, L] of 0/1."""
    unseen: csr_array
    """The same for `unseen_labels`, csr [N, U]."""
    unseen_labels: Sequence[str] = field(default=())
    """Gold labels without a training document [U]."""
    evidence: Evidence | None = None
    """Gold spans, also of unseen labels; None if the corpus has none."""
    excluded: Excluded | None = None
    """Pairs that evaluation ignores; None if the corpus has none."""

    def __post_init__(self) -> None:
        protect(self)

    def __len__(self) -> int:
        return len(self.doc_ids)

    def take(self, rows: npt.NDArray[np.int64]) -> Split:
        """The documents of these distinct rows, in this order."""
        chosen = rows.tolist()
        return replace(
            self,
            doc_ids=[self.doc_ids[row] for row in chosen],
            texts=[self.texts[row] for row in chosen] if self.texts else (),
            gold=self.gold[rows],
            unseen=self.unseen[rows],
            evidence=None if self.evidence is None else self.evidence.take(rows),
            excluded=None if self.excluded is None else self.excluded.take(rows),
        )


def _follow(
    taken: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], list[int]]:
    """The new row of each entry whose document was taken, ascending, and the numbers of these
    entries.
    """
    import numpy as np

    place = {row: new for new, row in enumerate(taken.tolist())}
    found = sorted((place[row], entry) for entry, row in enumerate(rows.tolist()) if row in place)
    return np.array([new for new, _ in found], dtype=np.int64), [entry for _, entry in found]


class WordReducer(Protocol):
    """Reduces the forms of a word in one language to one form."""

    def reduce(self, word: str) -> str:
        """The reduced form of a word; the same word always gives the same form. An empty result
        leaves the word as it is.

        Args:
            word: letters and their marks, lower-cased, in Unicode normal form C; apostrophes and
                digits never arrive. The result gets the same form.
        """


class Analyser(Protocol):
    """Splits texts into the words that the run counts; the same for training and for new texts."""

    @property
    def hash(self) -> str:
        """Equal for analysers that give the same words."""

    def spell(self, text: str) -> list[str]:
        """The words of a text, in order."""

    def find_borders(self, text: str) -> npt.NDArray[np.int32]:
        """Where each of these words begins and ends [n, 2], in code points, end exclusive;
        starts ascend, and words may overlap.
        """

    def forms(self) -> Iterator[tuple[str, str]]:
        """Pairs of word and form, for the forms that were reduced so far."""


class Corpus(Protocol):
    """A prepared corpus in a run folder."""

    @property
    def analyser(self) -> Analyser:
        """Splits texts into words, as recorded when the corpus was prepared."""

    @property
    def labels(self) -> LabelIndex:
        """The label index."""

    @property
    def data_hash(self) -> str:
        """SHA-256 over documents, labels and splits; it does not depend on files."""

    @property
    def sizes(self) -> Mapping[SplitName, int]:
        """Number of documents of each split; no text is read for it."""

    def split(self, name: SplitName) -> Split:
        """One split; a command reads it at most once from its source.

        Raises:
            DataError: the corpus has no split of that name.
            ArtefactError: the source is no longer what the run was made from.
        """

    def stream(self, name: SplitName) -> Iterator[Split]:
        """One split in parts of some thousand documents, so that its texts need not fit in
        memory. Raises as `split` does.
        """

    def gold_labels(self, name: SplitName) -> Split:
        """One split without texts and evidence, as recorded when the corpus was prepared; the
        source is not read.

        Raises:
            DataError: the corpus has no split of that name.
            ArtefactError: the run is older than this record.
        """

    def has_split(self, name: SplitName) -> bool:
        """Whether the corpus has this split."""

    def __iter__(self) -> Iterator[SplitName]: ...
