"""Counting the words and labels of a corpus: of all training documents, of a share of them, or from shares counted before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from scipy.sparse import csr_array, vstack

from plant_cli.api import Corpus, DataError, Reporter, SplitName, UsageError
from plant_cli.data.shares import Shard, find_paths
from plant_cli.relevance.cooccurrence import Cooccurrence, MemoryCounts, Terms
from plant_cli.relevance.relevance_table import read_pairs, write_forms
from plant_cli.relevance.shards import RECORD, open_shards, write_shard
from plant_cli.relevance.spooling import SpooledCounts, SpooledTerms, read_terms


@dataclass(frozen=True, kw_only=True)
class CorpusCounter:
    """Counts a corpus; the numbers do not depend on memory, threads or shares."""

    corpus: Corpus
    min_df: int  # words in fewer training documents than this are left out
    occurrences: bool  # whether to count how often words occur, too
    memory: int  # bytes for the blocks of labels under way
    reporter: Reporter
    check: Callable[[], None]  # called often; raises an error if the user asked to stop
    splits: Sequence[SplitName] = ("train",)  # more than train is leakage
    keep: Set[str] = frozenset()  # words that are kept however rare they are
    folder: Path | None = None  # for words that do not fit in memory (default: the system's folder for temporary files)
    jobs: int = 1  # threads that will ask for counts

    def count(self) -> Cooccurrence:
        """Counts of all training documents.

        Raises:
            DataError: no word is left.
        """
        return self._require_words(self._open(*self._read_documents(self.min_df)))

    def _open(self, terms: Terms | SpooledTerms, gold: csr_array) -> Cooccurrence:
        if isinstance(terms, SpooledTerms):
            return SpooledCounts(terms, gold, memory=self.memory, jobs=self.jobs)
        return MemoryCounts(terms, gold, with_occurrences=self.occurrences)

    def _read_documents(self, min_df: int, shard: Shard | None = None) -> tuple[Terms | SpooledTerms, csr_array]:
        """Words and labels, csr [N, L], of all documents or of a share of them; no text is kept."""
        gold = [csr_array((0, len(self.corpus.labels)), dtype="int32")]

        def read(advance: Callable[[float], None]) -> Iterator[Iterable[str]]:
            start = 0
            for part in (part for name in self.splits for part in self.corpus.stream(name)):
                rows = slice(None) if shard is None else shard.rows_from(start)
                gold.append(part.gold[rows])
                for text in part.texts[rows]:
                    words = self.corpus.analyser.spell(text)
                    yield words if self.occurrences else dict.fromkeys(words)  # a large vocabulary is slow to search: each word once
                    self.check()
                start += len(part)
                advance(len(part))

        total = sum(self.corpus.sizes[name] for name in self.splits)
        with self.reporter.progress("counting words", total, "documents") as task:
            terms = read_terms(
                read(task.advance),
                min_df=min_df,
                keep=self.keep,
                with_occurrences=self.occurrences,
                memory=self.memory,
                folder=self.folder,
            )
        return terms, csr_array(vstack(gold, format="csr"))

    def merge(self, patterns: Sequence[str]) -> Cooccurrence:
        """Counts of all training documents, added up from folders that `plant mig --shard` wrote.

        Args:
            patterns: folders, or patterns such as `shards/*/mig`.

        Raises:
            UsageError: there is no such folder, or a share is missing or comes twice.
            ArtefactError: a share is damaged or of another corpus.
            DataError: no word is left.
        """
        folders = _find_shards(patterns)
        if not folders:
            raise UsageError(
                "there are no counts to merge",
                where=f"--merge {' '.join(patterns)}",
                expected="folders that `plant mig --shard i/n` wrote",
                todo="name the folder `mig` of each shard's run, such as --merge 'shards/*/mig'",
            )
        self.reporter.note(f"adding up {len(folders)} shards: {', '.join(map(str, folders))}")
        merged = open_shards(
            folders,
            data_hash=self.corpus.data_hash,
            label_hash=self.corpus.labels.hash,
            analyser=self.corpus.analyser.hash,
            with_occurrences=self.occurrences,
            min_df=self.min_df,
            keep=self.keep,
        )
        return self._require_words(merged)

    def write_shard(self, folder: Path, shard: Shard) -> dict[str, str | int]:
        """Count a share of the training documents and write the counts to a folder, for `merge`.

        Returns:
            The share, and how many documents, words and counts it has.
        """
        terms, gold = self._read_documents(1, shard)
        with self.reporter.progress(f"counting shard {shard}", len(self.corpus.labels), "labels") as task:

            def advance(labels: int) -> None:
                task.advance(labels)
                self.check()

            pairs = write_shard(
                folder,
                shard,
                self._open(terms, gold),
                data_hash=self.corpus.data_hash,
                label_hash=self.corpus.labels.hash,
                analyser=self.corpus.analyser.hash,
                memory=self.memory,
                jobs=self.jobs,
                advance=advance,
            )
        write_forms(folder, self.corpus.analyser.forms())
        return {"shard": str(shard), "documents": gold.shape[0], "words": len(terms.words), "counts": pairs}

    def gather_forms(self, patterns: Sequence[str] = ()) -> list[tuple[str, str]]:
        """Each word with each of its forms in the training documents: as just counted, or as recorded with the shares that were merged."""
        if patterns:
            return list(dict.fromkeys(pair for folder in _find_shards(patterns) for pair in read_pairs(folder)))
        return list(self.corpus.analyser.forms())

    def _require_words(self, counts: Cooccurrence) -> Cooccurrence:
        if not counts.margins.words:
            raise DataError(
                f"no word occurs in at least {self.min_df} training documents",
                where=f"the {counts.margins.n_docs} training documents",
                expected="texts of words made of letters, in any script, that share some of them",
                todo="look at the corpus with `plant data stats`, or lower --min-df",
            )
        return counts


def _find_shards(patterns: Sequence[str]) -> list[Path]:
    return [path for path in find_paths(patterns) if (path / RECORD).exists()]
