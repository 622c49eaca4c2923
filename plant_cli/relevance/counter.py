"""Counting the words and labels of a corpus: of all training documents, of a share of them, or
from shares counted before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scipy.sparse import csr_array, vstack

from plant_cli.api import Corpus, DataError, Documents, SplitName, UsageError
from plant_cli.data.shares import Shard, find_paths
from plant_cli.data.words import join_documents
from plant_cli.relevance.cooccurrence import Cooccurrence, MemoryCounts
from plant_cli.relevance.relevance_table import read_pairs, write_forms
from plant_cli.relevance.shards import RECORD, open_shards, write_shard
from plant_cli.relevance.spooling import SpooledCounts, SpooledTerms, read_terms
from plant_cli.runs.session import Session
from plant_cli.runs.word_store import SplitWords, open_words


@dataclass(frozen=True, kw_only=True)
class CorpusCounter:
    """Counts a corpus; the numbers do not depend on memory, threads or shares."""

    corpus: Corpus
    # of the stage: its run keeps the words of texts, its folder those that do not fit in memory
    session: Session
    min_df: int  # words in fewer training documents than this are left out
    occurrences: bool  # whether to count how often words occur, too
    memory: int  # bytes for the blocks of labels under way
    check: Callable[[], None]  # called often; raises an error if the user asked to stop
    splits: Sequence[SplitName] = ("train",)  # more than train is leakage
    keep: Set[str] = frozenset()  # words that are kept however rare they are
    jobs: int = 1  # threads that will ask for counts

    @cached_property
    def _words(self) -> list[SplitWords]:
        return [
            open_words(self.session, self.corpus, name, check=self.check) for name in self.splits
        ]

    @property
    def _hashes(self) -> dict[str, str]:
        """What shards must have in common."""
        corpus = self.corpus
        return {
            "data_hash": corpus.data_hash,
            "label_hash": corpus.labels.hash,
            "analyser": corpus.analyser.hash,
        }

    def count(self) -> Cooccurrence:
        """Counts of all training documents; `DataError` if no word is left."""
        return self._require_words(
            self._count([part.documents for part in self._words], self.min_df, slice(None))
        )

    def _count(self, parts: Sequence[Documents], min_df: int, rows: slice) -> Cooccurrence:
        gold = csr_array(
            vstack([self.corpus.gold_labels(name).gold[rows] for name in self.splits], format="csr")
        )
        terms = read_terms(
            join_documents(parts),
            min_df=min_df,
            keep=self.keep,
            with_occurrences=self.occurrences,
            memory=self.memory,
            folder=self.session.folder,
        )
        if isinstance(terms, SpooledTerms):
            return SpooledCounts(terms, gold, memory=self.memory, jobs=self.jobs)
        return MemoryCounts(terms, gold, with_occurrences=self.occurrences)

    def merge(self, patterns: Sequence[str]) -> Cooccurrence:
        """Counts of all training documents, added up from folders that `plant mig --shard`
        wrote.
        """
        folders = _find_shards(patterns)
        if not folders:
            what, todo = (
                "there are no counts to merge",
                "name the folder `mig` of each shard's run, such as --merge 'shards/*/mig'",
            )
            raise UsageError(
                what,
                where=f"--merge {' '.join(patterns)}",
                expected="folders that `plant mig --shard i/n` wrote",
                todo=todo,
            )
        self.session.reporter.note(
            f"adding up {len(folders)} shards: {', '.join(map(str, folders))}"
        )
        merged = open_shards(
            folders,
            **self._hashes,
            with_occurrences=self.occurrences,
            min_df=self.min_df,
            keep=self.keep,
        )
        return self._require_words(merged)

    def write_shard(self, folder: Path, shard: Shard) -> dict[str, str | int]:
        """Count a share of the training documents and write the counts to a folder, for `merge`."""
        words = open_words(self.session, self.corpus, "train", shard=shard, check=self.check)
        counting = self._count([words.documents], 1, shard.rows)
        with self.session.reporter.progress(
            f"counting shard {shard}", len(self.corpus.labels), "labels"
        ) as task:

            def advance(labels: int) -> None:
                task.advance(labels)
                self.check()

            pairs = write_shard(
                folder,
                shard,
                counting,
                **self._hashes,
                memory=self.memory,
                jobs=self.jobs,
                advance=advance,
            )
        write_forms(folder, words.forms)
        margins = counting.margins
        return {
            "shard": str(shard),
            "documents": margins.n_docs,
            "words": len(margins.words),
            "counts": pairs,
        }

    def gather_forms(self, patterns: Sequence[str] = ()) -> list[tuple[str, str]]:
        """Each word with each of its forms in documents and titles: as counted, or as recorded
        with the shares that were merged.
        """
        if patterns:
            return list(
                dict.fromkeys(
                    pair for folder in _find_shards(patterns) for pair in read_pairs(folder)
                )
            )
        return list(
            dict.fromkeys(
                [
                    *(pair for part in self._words for pair in part.forms),
                    *self.corpus.analyser.forms(),
                ]
            )
        )

    def _require_words(self, counts: Cooccurrence) -> Cooccurrence:
        if not counts.margins.words:
            raise DataError(
                f"no word occurs in at least {self.min_df} training documents",
                where=f"the {counts.margins.n_docs} training documents",
                expected="texts in any script that share some of their words",
                todo="look at the corpus with `plant data stats`, or lower --min-df",
            )
        return counts


def _find_shards(patterns: Sequence[str]) -> list[Path]:
    return [path for path in find_paths(patterns) if (path / RECORD).exists()]
