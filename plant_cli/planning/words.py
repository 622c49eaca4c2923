"""What the stage `mig` takes: words are counted as it counts them, and what its product would give is reckoned from their frequencies."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api import LabelIndex
from plant_cli.artefacts.frames import ROW_GROUP
from plant_cli.artefacts.relevance import MIG, write_relevance
from plant_cli.corpus.labels import LabelTable
from plant_cli.model.hardware import Hardware
from plant_cli.parallel.counting import REDUCED_PAIRS
from plant_cli.planning.sharing import Sharing
from plant_cli.relevance.counting import CACHED_PAIRS, SparseCounting
from plant_cli.relevance.dense import BYTES_PER_PAIR as BYTES_PER_DENSE_CELL
from plant_cli.relevance.engine import BYTES_PER_PAIR, Selection, count_absent, cut_labels, keep_words
from plant_cli.relevance.signal import Signal
from plant_cli.relevance.terms import BATCH_TOKENS, Terms

Floats = npt.NDArray[np.float64]
CELLS_A_SECOND = 1e7
"""Pairs that a thread scores; of the benchmark at the size of MIMIC-III-full, in round numbers."""
PROBED_LABELS = 500
COPIES = 3  # of the texts while a corpus is prepared: the table, a split of it, and the strings that are hashed
NUMBER = 4  # bytes of an index or a count in a sparse matrix
WORD = 160  # bytes of a word in the vocabulary: the string, its entry in a dictionary, its number
TOKEN = 12  # bytes of a word that waits to be added up
ROW = 56  # bytes of a row of mig.parquet in memory
ROW_ON_DISK = 8  # 4 to 9 on four corpora
ROW_GROUPS = 4  # in hand while the table is written


@dataclass(frozen=True, kw_only=True)
class WordsJob:
    """A stage `mig`.

    Args:
        name: its section in the recipe.
        signal: what is computed from the counts.
        occurrences: whether it needs how often words occur.
        selection: what is kept, and in which blocks of labels.
        min_df: words in fewer documents than this are left out.
        passes: how often every label is scored.
    """

    name: str
    signal: Signal
    occurrences: bool
    selection: Selection
    min_df: int
    passes: int


@dataclass(frozen=True, kw_only=True)
class WordsMemory:
    """Bytes of host memory by part.

    Args:
        texts: of the training documents.
        counting: matrices of all words, however rare, while they are put together; and the vocabulary.
        matrices: what labels are scored from.
        label_blocks: under way, within `--memory`.
        kept_words: the rows that are being written.
    """

    texts: int
    counting: int
    matrices: int
    label_blocks: int
    kept_words: int

    @property
    def peak(self) -> int:
        """The most that is held at any time: while texts are read, while they are counted, or while labels are scored."""
        return max(COPIES * self.texts, self.texts + self.counting, self.matrices + self.label_blocks + self.kept_words)


@dataclass(frozen=True, kw_only=True)
class WordsEstimate:
    """What a stage `mig` takes.

    Args:
        documents, words: counted.
        pairs: pairs of label and word that meet, as if the documents of a label were drawn at random.
        kept: rows of mig.parquet, at most.
        memory: of the host, by part.
        device: bytes on a graphics card; 0 where the processor counts.
        disk: bytes of mig.parquet.
        seconds: from the first text to the last row; every process of several scores all labels.
        alone: seconds of one process without others.
        peaks: see `plant_cli.planning.planner.Planned`.
    """

    job: WordsJob
    documents: int
    words: int
    pairs: float
    kept: int
    memory: WordsMemory
    device: int
    disk: int
    seconds: float
    alone: float
    peaks: Mapping[str, int] = field(default_factory=dict)


class TrainWords:
    """The words of the training documents, counted once for every plan.

    Args:
        terms: all words, however rare.
        gold: csr [N, L] of 0/1.
        texts: the documents.
        seconds: that counting took.
    """

    def __init__(self, terms: Terms, gold: csr_array, texts: Sequence[str], seconds: float) -> None:
        self.terms, self.gold, self.seconds = terms, gold, seconds
        self.texts = sum(map(sys.getsizeof, texts))
        self.tokens = int(terms.occurrences.sum())

    def frequent(self, min_df: int) -> Terms:
        """The words of at least so many documents: the first, for they are in the order of their frequency."""
        count = int((self.terms.docs_with_word >= min_df).sum())
        return Terms(
            words=self.terms.words[:count],
            occurrences=csr_array(self.terms.occurrences[:, :count]),
            docs_with_word=self.terms.docs_with_word[:count],
        )


def plan_words(job: WordsJob, train: TrainWords, labels: LabelIndex, sharing: Sharing, hardware: Hardware, *, probe: bool) -> WordsEstimate:
    """Plan a stage `mig`.

    Args:
        job: the stage.
        train: the words of the training documents.
        labels: the label index.
        sharing: the processes that count together.
        hardware: where it runs.
        probe: whether to score and write a sample of the labels, for a time and a size that are measured.
    """
    terms = train.frequent(job.min_df)
    pairs = expected_cells(terms, train.gold)
    absent = count_absent(job.signal, job.selection, len(terms.words))
    kept = int(np.minimum(pairs + absent, job.selection.k).sum())
    on_card = hardware.device.type == "cuda" and sharing.processes == 1 and not job.occurrences
    disk = kept * ROW_ON_DISK
    scoring = job.passes * float(pairs.sum()) / (CELLS_A_SECOND * job.selection.jobs)
    if probe:
        scoring, disk = _probe(job, terms, train.gold, labels, pairs)
    return WordsEstimate(
        job=job,
        documents=len(train.gold.indptr) - 1,
        words=len(terms.words),
        pairs=float(pairs.sum()),
        kept=kept,
        memory=WordsMemory(
            texts=train.texts,
            counting=_counting(train, terms) // sharing.processes,
            matrices=_matrix(terms) * (3 if job.occurrences else 2) // sharing.processes + 2 * NUMBER * train.gold.nnz,
            label_blocks=_blocks(job, terms, train.gold, pairs + absent, absent, sharing, on_card=on_card),
            kept_words=ROW * min(kept, ROW_GROUPS * ROW_GROUP),
        ),
        device=job.selection.memory if on_card else 0,
        disk=disk,
        seconds=train.seconds / sharing.processes + scoring,
        alone=train.seconds + scoring,
    )


def expected_cells(terms: Terms, gold: csr_array) -> Floats:
    """Words that meet each label [L], if its documents are drawn at random: word w of df documents meets n with 1 − (1 − df/N)ⁿ."""
    documents = np.bincount(gold.indices, minlength=gold.shape[1])
    sizes, place = np.unique(documents, return_inverse=True)
    frequencies, many = np.unique(terms.docs_with_word, return_counts=True)
    misses = 1.0 - frequencies / max(1, gold.shape[0])
    return np.array([float(many @ (1.0 - misses**size)) for size in sizes])[place]


def _matrix(terms: Terms) -> int:
    """Bytes of one of the two parts of the matrix of documents and words: where there is a count, and the counts."""
    return NUMBER * int(terms.occurrences.nnz)


def _counting(train: TrainWords, terms: Terms) -> int:
    """The pieces, all of them together, and what is kept of that."""
    pieces = 2 * _matrix(train.terms)
    return 2 * pieces + 2 * _matrix(terms) + WORD * len(train.terms.words) + TOKEN * min(train.tokens, BATCH_TOKENS)


def _blocks(job: WordsJob, terms: Terms, gold: csr_array, pairs: Floats, absent: int, sharing: Sharing, *, on_card: bool) -> int:
    """The largest block of each thread; `pairs` of each label, with the `absent` words that never meet it but may be kept."""
    selection, width = job.selection, len(terms.words)
    bounds, size = np.full(len(pairs), max(1, width)), selection.memory // (2 * BYTES_PER_DENSE_CELL)
    if sharing.processes > 1:
        size = REDUCED_PAIRS
    elif not on_card:
        bounds, size = SparseCounting(terms, gold).pair_bounds, CACHED_PAIRS
    bounds = bounds + absent
    cuts = cut_labels(bounds, size, selection)
    largest = float(np.add.reduceat(np.minimum(pairs, bounds), cuts[:-1]).max())
    dense = 2 * NUMBER * size if sharing.processes > 1 else 0
    return selection.jobs * (int(largest) * BYTES_PER_PAIR + dense)


def _probe(job: WordsJob, terms: Terms, gold: csr_array, labels: LabelIndex, pairs: Floats) -> tuple[float, int]:
    """Seconds to score and write all labels, and bytes written: those of a sample, by its share of the pairs."""
    chosen = np.unique(np.linspace(0, len(pairs) - 1, PROBED_LABELS).astype(np.int64))
    counting = SparseCounting(terms, csr_array(gold[:, chosen]), with_occurrences=job.occurrences)
    ids = [labels.ids[number] for number in chosen]
    sample = LabelTable(ids=ids, titles=[None] * len(ids), train_counts=[labels.train_counts[number] for number in chosen])
    share = float(pairs.sum() / pairs[chosen].sum())
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        blocks = keep_words(counting, job.signal, job.selection)
        write_relevance(Path(folder), ((kept, np.maximum(kept.values, 0.0)) for kept in blocks), counting.margins, sample)
        seconds = time.perf_counter() - began
        return job.passes * seconds * share, int((Path(folder) / MIG).stat().st_size * share)
