"""Counts of words and labels: of all training documents, of a shard of them, or merged from shards that were counted before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plant_cli.api import Corpus, DataError, MachineSection, Reporter, SplitName, UsageError
from plant_cli.runs.processes import default_threads, process_count

if TYPE_CHECKING:
    import torch
    from scipy.sparse import csr_array

    from plant_cli.data.splits import Shard
    from plant_cli.relevance.counting import Counting, Terms
    from plant_cli.relevance.spooling import SpooledTerms


@dataclass(frozen=True, kw_only=True)
class Counter:
    """Counts a corpus; the numbers are the same wherever they come from.

    Args:
        corpus: whose training documents are counted.
        min_df: words in fewer training documents than this are left out.
        occurrences: whether to count how often words occur, too.
        memory: bytes for the blocks of labels under way.
        reporter: where progress goes.
        check: called often; raises an error if the user asked to stop.
        splits: whose documents are counted; more than train is leakage.
        keep: words that are not left out, however rare.
        folder: where words wait that memory does not hold (default: where the system has temporary files).
        jobs: threads that will ask for counts.
    """

    corpus: Corpus
    min_df: int
    occurrences: bool
    memory: int
    reporter: Reporter
    check: Callable[[], None]
    splits: Sequence[SplitName] = ("train",)
    keep: Set[str] = frozenset()
    folder: Path | None = None
    jobs: int = 1

    def count(self, device: torch.device | None = None) -> Counting:
        """Counts of all training documents; of several processes each reads its share, and all get the sum.

        Args:
            device: a GPU that counts by matrix products; None: the processor.
        """
        if process_count() > 1:
            return self._count_together()
        terms, gold = self._read_documents(self.min_df)
        self._require_words(terms.words, gold.shape[0])
        return self._open(terms, gold, device)

    def _open(self, terms: Terms | SpooledTerms, gold: csr_array, device: torch.device | None = None) -> Counting:
        """The counts of documents whose words are read."""
        from plant_cli.relevance.counting import SparseCounting
        from plant_cli.relevance.spooling import SpooledCounting, SpooledTerms

        if isinstance(terms, SpooledTerms):
            return SpooledCounting(terms, gold, memory=self.memory, jobs=self.jobs)
        if device is not None:
            from plant_cli.relevance.dense import DenseCounting

            return DenseCounting(terms, gold, device=device, memory=self.memory)
        return SparseCounting(terms, gold, with_occurrences=self.occurrences)

    def _read_documents(self, min_df: int, shard: Shard | None = None, memory: int | None = None) -> tuple[Terms | SpooledTerms, csr_array]:
        """Words and labels, csr [N, L], of the documents to be counted, or of a share of them; no text is kept.

        Args:
            min_df: words in fewer documents than this are left out.
            shard: which share.
            memory: bytes that the words of documents may take before they go to files (default: a part of what the counter has).
        """
        from scipy.sparse import csr_array, vstack

        from plant_cli.relevance.spooling import read_terms

        total = sum(self.corpus.sizes[name] for name in self.splits)
        gold = [csr_array((0, len(self.corpus.labels)), dtype="int32")]
        start = 0

        def read(advance: Callable[[float], None]) -> Iterator[Iterable[str]]:
            nonlocal start
            for part in (part for name in self.splits for part in self.corpus.stream(name)):
                rows = slice(None) if shard is None else shard.rows_from(start)
                gold.append(part.gold[rows])
                for text in part.texts[rows]:
                    words = self.corpus.analyser.spell(text)
                    yield words if self.occurrences else dict.fromkeys(words)  # a large vocabulary is slow to search: each word once
                    self.check()
                start += len(part)
                advance(len(part))

        with self.reporter.progress("counting words", total, "documents") as task:
            terms = read_terms(
                read(task.advance),
                min_df=min_df,
                keep=self.keep,
                with_occurrences=self.occurrences,
                memory=self.memory if memory is None else memory,
                folder=self.folder,
            )
        return terms, csr_array(vstack(gold, format="csr"))

    def _count_together(self) -> Counting:
        from plant_cli.data.splits import Shard
        from plant_cli.relevance.counting import Terms
        from plant_cli.relevance.shards import ReducedCounting
        from plant_cli.runs.group import join_processes

        processes = join_processes()
        terms, gold = self._read_documents(1, Shard(processes.rank + 1, processes.count), memory=sys.maxsize)
        assert isinstance(terms, Terms)
        counting = ReducedCounting(
            terms,
            gold,
            data_hash=self.corpus.data_hash,
            min_df=self.min_df,
            keep=self.keep,
            with_occurrences=self.occurrences,
        )
        self._require_words(counting.margins.words, counting.margins.n_docs)
        return counting

    def merge(self, patterns: Sequence[str]) -> Counting:
        """Counts of all training documents, added up from folders that `plant mig --shard` wrote.

        Args:
            patterns: folders, or patterns such as `shards/*/mig`.

        Raises:
            UsageError: no such folder, or a shard is missing or given twice.
            ArtefactError: a shard is damaged or of another corpus.
            DataError: no word is left.
        """
        from plant_cli.relevance.shards import open_shards

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
        self._require_words(merged.margins.words, merged.margins.n_docs)
        return merged

    def write_shard(self, folder: Path, shard: Shard) -> dict[str, str | int]:
        """Count a share of the training documents and write the counts, for `merge`.

        Args:
            folder: where to write.
            shard: which share.

        Returns:
            The shard, and how many documents, words and counts it has.
        """
        from plant_cli.relevance.relevance_table import write_forms
        from plant_cli.relevance.shards import write_shard

        terms, gold = self._read_documents(1, shard)
        counting = self._open(terms, gold)
        with self.reporter.progress(f"counting shard {shard}", len(self.corpus.labels), "labels") as task:

            def advance(labels: int) -> None:
                task.advance(labels)
                self.check()

            pairs = write_shard(
                folder,
                shard,
                counting,
                data_hash=self.corpus.data_hash,
                label_hash=self.corpus.labels.hash,
                analyser=self.corpus.analyser.hash,
                memory=self.memory,
                jobs=self.jobs,
                advance=advance,
            )
        write_forms(folder, self.corpus.analyser.forms())
        return {"shard": str(shard), "documents": gold.shape[0], "words": len(terms.words), "counts": pairs}

    def read_words(self, texts: Sequence[str], min_df: int) -> Terms:
        """The words of texts, with progress."""
        from plant_cli.relevance.counting import count_terms

        with self.reporter.progress("counting words", len(texts), "documents") as task:

            def read() -> Iterator[list[str]]:
                for text in texts:
                    yield self.corpus.analyser.spell(text)
                    task.advance()
                    self.check()

            return count_terms(read(), min_df, self.keep)

    def gather_forms(self, patterns: Sequence[str] = ()) -> list[tuple[str, str]]:
        """Each word with each form of it that was met while all training documents were counted.

        Args:
            patterns: folders of shards whose counts were merged, if they were.
        """
        from plant_cli.relevance.relevance_table import read_pairs

        if patterns:
            return list(dict.fromkeys(pair for folder in _find_shards(patterns) for pair in read_pairs(folder)))
        if process_count() == 1:
            return list(self.corpus.analyser.forms())
        from plant_cli.relevance.shards import gather_pairs

        return gather_pairs(self.corpus.analyser.forms())

    def _require_words(self, words: tuple[str, ...], documents: int) -> None:
        if not words:
            raise DataError(
                f"no word occurs in at least {self.min_df} training documents",
                where=f"the {documents} training documents",
                expected="texts of words made of letters, in any script, that share some of them",
                todo="look at the corpus with `plant data stats`, or lower --min-df",
            )


def _find_shards(patterns: Sequence[str]) -> list[Path]:
    from plant_cli.data.splits import find_paths
    from plant_cli.relevance.shards import RECORD

    return [path for path in find_paths(patterns) if (path / RECORD).exists()]


def choose_jobs(machine: MachineSection, jobs: int | None, processes: int | None = None) -> int:
    """How many threads count; one beside other processes, because all must ask for the same sums in the same order.

    Args:
        machine: may say how many threads a stage has.
        jobs: what the user asks for.
        processes: how many there are (default: as many as were launched).
    """
    return 1 if (processes or process_count()) > 1 else jobs or machine.threads or default_threads()
