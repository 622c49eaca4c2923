"""The best labels of documents by logits that are known of the labels that scorers list, and by training frequency of all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from plant_cli.inference.top import Logits, TopCollector, TopLabels, cut_batches
from plant_cli.lexical.fusion import Candidates, Fusion, fuse_floors, fuse_listed, group_frequencies
from plant_cli.lexical.scores import choose_best
from plant_cli.runs.session import never

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ListedLogits:
    """Logits of B documents for L labels. Those of labels that are not listed differ by the label's training frequency alone.

    Args:
        rows: document of each listed pair, rising [P].
        labels: its label, distinct within a document [P].
        logits: of these pairs [P].
        counts: the different training frequencies [G].
        groups: the place of each label's frequency among them [L].
        floors: logits of labels that are not listed, by frequency [B, G].
    """

    rows: Ints
    labels: Ints
    logits: Logits
    counts: Ints
    groups: Ints
    floors: Logits

    def best(self, k: int, should_stop: Callable[[], bool] = never) -> TopLabels:
        """The k best labels of each document, a smaller index first among equals: those that all logits [B, L] would give.

        Args:
            k: labels of each document; fewer if there are fewer.
            should_stop: true once the user asked to stop.

        Raises:
            Interrupted: the user stopped the command.
        """
        documents, width = len(self.floors), min(k, len(self.groups))
        ends = np.searchsorted(self.rows, np.arange(documents + 1))
        collected = TopCollector(documents, width)
        for rows in cut_batches(documents, should_stop):
            found = [self._choose(row, slice(ends[row], ends[row + 1]), width) for row in rows.tolist()]
            labels, logits = np.stack([one[0] for one in found]), np.stack([one[1] for one in found])
            collected.take(rows, labels, logits, assigned=sum(one[2] for one in found), pairs=len(rows) * len(self.groups))
        return collected.done()

    def _choose(self, row: int, inside: slice, k: int) -> tuple[Ints, Logits, int]:
        """The k best labels of a document and their logits, best first, and how many labels have a probability of at least one half."""
        labels, logits, floors = self.labels[inside], self.logits[inside], self.floors[row]
        unlisted = self._sizes - np.bincount(self.groups[labels], minlength=len(self._sizes))
        assigned = int((logits >= 0).sum() + unlisted[floors >= 0].sum())
        open_floors = np.where(unlisted > 0, floors, -np.inf)
        if np.count_nonzero(logits > open_floors.max()) < k:
            more = self._find_unlisted(open_floors, unlisted, labels, k)
            labels, logits = np.concatenate([labels, more]), np.concatenate([logits, floors[self.groups[more]]])
        chosen = choose_best(logits, labels, k)
        chosen = chosen[np.argsort(-logits[chosen], kind="stable")]
        return labels[chosen], logits[chosen], assigned

    def _find_unlisted(self, floors: Logits, unlisted: Ints, listed: Ints, k: int) -> Ints:
        """The k best of the labels that are not listed, and perhaps more of them.

        Args:
            floors: logits by training frequency, −∞ where every label is listed [G].
            unlisted: labels that are not listed, by training frequency [G].
            listed: the labels that are.
            k: labels to find.
        """
        order = np.argsort(-floors, kind="stable")
        enough = np.searchsorted(np.cumsum(unlisted[order]), k)
        least = floors[order[min(int(enough), len(order) - 1)]]
        groups = np.flatnonzero((floors >= least) & (unlisted > 0))
        parts = [self._members[group][: k + self._sizes[group] - unlisted[group]] for group in groups]
        found: Ints = np.setdiff1d(np.concatenate([*parts, np.zeros(0, dtype=np.int64)]), listed, assume_unique=True)
        return found

    @cached_property
    def _sizes(self) -> Ints:
        """How many labels have each training frequency."""
        return np.bincount(self.groups, minlength=len(self.counts))

    @cached_property
    def _members(self) -> list[Ints]:
        """The labels of each training frequency, rising."""
        return np.split(np.argsort(self.groups, kind="stable"), np.cumsum(self._sizes)[:-1])


def list_logits(fusion: Fusion, candidates: Candidates, train_counts: Ints, last: float = 0.0) -> ListedLogits:
    """What scorers say together of documents; the same as `fuse_rows` says of all labels.

    Args:
        fusion: as learned.
        candidates: of B documents, by the same scorers in the same order.
        train_counts: training documents of each label [L].
        last: training frequency from which all are one, where that is beyond the fusion's own.
    """
    counts, groups = group_frequencies(train_counts, max(last, fusion.knots[-1]))
    return ListedLogits(
        rows=candidates.rows,
        labels=candidates.labels,
        logits=fuse_listed(fusion, candidates, train_counts),
        counts=counts,
        groups=groups,
        floors=fuse_floors(fusion, candidates.floors, counts),
    )
