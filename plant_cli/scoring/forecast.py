"""What fitting scorers will take, before it begins: from the words of the documents, or of some
of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plant_cli.api import Documents, Reporter, ResourceError
from plant_cli.api.options import FIXED_SEED
from plant_cli.data.checks import Finding
from plant_cli.data.documents import take_texts
from plant_cli.data.files import show_size
from plant_cli.data.words import DEFAULT_RULE, number_words, spell

SHORTEST, LONGEST = 3, 5  # characters of the pieces that a scorer cuts words into, with their edges
EDGE = " "
# training documents beyond which a scorer is fitted once: without those whose scores teach the
# weights
DOCUMENTS_REFITTED = 50_000
TOLD_FROM = 20_000  # training documents from which on the user is told how long it takes
TEXTS_LOOKED_INTO = 1000  # of a corpus
DOCUMENTS_LOOKED_INTO = 10_000  # whose words are known
BYTES_OF_PROCESS, BYTES_AT_LEAST, BYTES_AT_REST = (
    350_000_000,
    1_000_000_000,
    1_250_000_000,
)  # at least: with the smallest blocks
BYTES_UNDER_WAY, BYTES_OF_A_CELL = (
    200,
    60,
)  # in blocks, and throughout; measured with 25,000 to 390,000 documents
BYTES_OF_A_LABELS_WORD = 22  # of a label and a word of its documents, in `words`
WORDS_OF_A_LABEL = 1000  # of these that `words` keeps of a label, as it comes
BYTES_ON_DISK, PAIRS_ON_DISK = (
    14,
    16,
)  # of a cell and of such a pair, at most: vectors of two views, and all of it twice
SECONDS_OF_A_CELL = 6e-6  # of one processor, for each fit, measured likewise
SECONDS_OF_MANY, SECONDS_OF_A_WORD = (
    5e-4,
    1.3e-5,
)  # of a document, and of each of its words, where these alone are compared
SECONDS_OF_A_LABEL = 1.6e-3  # likewise
# labelling, of one processor and in one process; measured by `tests.benchmarks.labelling` with
# words, neighbours and linear
SECONDS_OF_A_TEXT, SECONDS_OF_A_TEXTS_WORD, SECONDS_OF_A_TEXTS_LABEL = 1.62e-3, 6.6e-6, 1.54e-8
BYTES_OF_A_WORKER, BYTES_OF_A_WORKERS_WORD, BYTES_OF_A_WORKERS_LABEL = 456_000_000, 2_200_000, 1720
BYTES_OF_LABELS = 100  # of a text, as `plant suggest` writes them to Parquet
BYTES_OF_A_WORD = 7  # of a text, with the space behind it


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What all scorers take that compare documents by their terms."""

    memory: int  # bytes, with the process and blocks under way
    disk: int  # bytes, with scorers that are kept until all are fitted
    seconds: float  # of one processor

    @classmethod
    def of(
        cls,
        words: Documents,
        labels: float,
        distinct: int,
        documents: int | None = None,
        limit: int | None = None,
    ) -> Forecast:
        """For these documents, or for more that are like them, of so many labels each, and in all;
        under a memory limit blocks are smaller.

        Many documents are taken to be compared by words alone, as it is unless the user wants it
        otherwise.
        """
        lengths = np.array([len(word) for word in words.vocabulary], dtype=np.int64) + 2 * len(EDGE)
        terms = 1 + np.sum(
            [np.maximum(0, lengths - size + 1) for size in range(SHORTEST, LONGEST + 1)], axis=0
        )
        count = documents or len(words)
        many, scale = count > DOCUMENTS_REFITTED, count / max(1, len(words))
        found = words.counts.nnz * scale
        cells = found if many else float(terms[words.counts.indices].sum()) * scale
        pairs = min(labels * found, WORDS_OF_A_LABEL * distinct)
        rest = min(BYTES_AT_REST, BYTES_OF_PROCESS + BYTES_UNDER_WAY * cells)
        if limit is not None:
            rest = min(rest, max(BYTES_AT_LEAST, limit // 2))
        return cls(
            memory=int(rest + BYTES_OF_A_CELL * cells + BYTES_OF_A_LABELS_WORD * pairs),
            disk=int(BYTES_ON_DISK * cells + PAIRS_ON_DISK * pairs),
            seconds=SECONDS_OF_MANY * count
            + SECONDS_OF_A_WORD * found
            + SECONDS_OF_A_LABEL * distinct
            if many
            else 2 * SECONDS_OF_A_CELL * cells,
        )

    def __str__(self) -> str:
        minutes = self.seconds / 60
        time = (
            f"{max(1, round(minutes)):,} minute{'s' * (round(minutes) > 1)}"
            if minutes < 90
            else f"{minutes / 60:.1f} hours"
        )
        return f"about {time} of one processor and {show_size(self.memory)} of memory"


@dataclass(frozen=True, kw_only=True)
class LabellingForecast:
    """What `plant suggest` takes with a model of scorers."""

    memory: int  # bytes of a process, with the model
    disk: int  # bytes of the texts and of their labels
    seconds: float  # of one processor

    @classmethod
    def of(cls, documents: int, labels: int, words: int) -> LabellingForecast:
        """For texts of so many words each."""
        return cls(
            memory=BYTES_OF_A_WORKER
            + BYTES_OF_A_WORKERS_WORD * words
            + BYTES_OF_A_WORKERS_LABEL * labels,
            disk=documents * (BYTES_OF_A_WORD * words + BYTES_OF_LABELS),
            seconds=documents
            * (
                SECONDS_OF_A_TEXT
                + SECONDS_OF_A_TEXTS_WORD * words
                + SECONDS_OF_A_TEXTS_LABEL * labels
            ),
        )


TO_CHANGE = (
    "use words alone (--set 'finetune.scorers=[words, neighbours, {name: linear, pieces: "
    "false}]'), or a part of the documents "
    "(--set data.train_share=0.5)"
)


def require_resources(
    words: Documents,
    labels: float,
    distinct: int,
    limit: int | None,
    free: int,
    free_disk: int,
    reporter: Reporter,
) -> None:
    """Tell what many documents of so many labels each, and in all, take; refuse what is above
    the limit, warn of more than is free.
    """
    sample = (
        words
        if len(words) <= TOLD_FROM
        else words.take(_draw_rows(len(words), DOCUMENTS_LOOKED_INTO))
    )
    forecast = Forecast.of(sample, labels, distinct, len(words), limit)
    if limit is not None and forecast.memory > limit:
        raise ResourceError(
            f"the scorers need about {show_size(forecast.memory)} of memory for {len(words):,} "
            "documents",
            where=f"--memory-limit {show_size(limit)}",
            expected="a limit that the vectors of the training documents fit in, with as much "
            "again for the blocks under way",
            todo=f"raise the limit, {TO_CHANGE}",
        )
    if len(words) < TOLD_FROM:
        return
    reporter.note(f"fitting scorers takes {forecast}")
    if limit is None and forecast.memory > free:
        reporter.warn(
            f"the scorers need about {show_size(forecast.memory)} of memory, and "
            f"{show_size(free)} are free: {TO_CHANGE}"
        )
    if forecast.disk > free_disk:
        where = f"the disk of the run has {show_size(free_disk)} free"
        reporter.warn(
            f"the scorers may need {show_size(forecast.disk)}, and {where}: choose another disk "
            f"with --run DIR, {TO_CHANGE}"
        )


def _draw_rows(documents: int, drawn: int) -> npt.NDArray[np.int64]:
    return np.sort(np.random.default_rng(FIXED_SEED).permutation(documents)[:drawn])


def find_effort(texts: Sequence[str], labels: float, distinct: int) -> Iterator[Finding]:
    """A note on what fitting scorers on the texts of train, of so many labels each, and in all,
    takes, if they are many; from a sample.
    """
    if len(texts) >= TOLD_FROM:
        rows = _draw_rows(len(texts), TEXTS_LOOKED_INTO).tolist()
        words = number_words(spell(text, DEFAULT_RULE) for text in take_texts(texts, rows))
        yield Finding(
            what="training documents: `plant finetune --no-network` takes "
            f"{Forecast.of(words, labels, distinct, len(texts))}",
            where="train",
            count=len(texts),
            expected="time and memory for it",
            todo="nothing, if there is as much; else --memory-limit, or data.train_share; `plant "
            "plan` knows other stages",
            level="note",
        )
