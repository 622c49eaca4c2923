"""The best labels of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from torch import Tensor

from plant_cli.api import Evidence, Interrupted, LabelIndex, Reading, Reason, Reporter, Split, SplitName, TrainingError
from plant_cli.network.assembly import Network
from plant_cli.network.candidates import score_all, score_pairs
from plant_cli.network.hardware import Hardware
from plant_cli.network.reading import Cut, HiddenReader, Rows, lengths, sorted_batches
from plant_cli.runs.session import never, stopped
from plant_cli.scoring.fusion import Candidates, Fusion, fuse_floors, fuse_listed, group_frequencies
from plant_cli.scoring.predictions import writing_scores
from plant_cli.scoring.scores import choose_best

if TYPE_CHECKING:
    from plant_cli.network.candidates import ShortlistedLabels
    from plant_cli.network.reading import HiddenReader, LiveReader


Logits = npt.NDArray[np.float32]
Keep = Callable[[Rows, Logits], None]
BATCH = 64  # documents whose scores for all labels are held at a time


@dataclass(frozen=True, kw_only=True)
class TopLabels:
    """The K best labels of N documents.

    Args:
        labels: label indices [N, K] by falling score, ties by index.
        scores: their probabilities [N, K], different where their logits are.
        assigned_share: share of the (document, label) pairs that were scored with a probability of at least one half.
        shortlist_recall: share of the K best that a shortlist proposed, measured on a sample; None where every label was scored.
        cut: what of the documents the network did not read, where that was asked for.
        parts: the best labels by each part of the model alone, by its name, where that was asked for.
        reasons: what scorers say for each of the best labels [N, K], where that was asked for and there are scorers.
    """

    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    assigned_share: float
    shortlist_recall: float | None = None
    cut: Cut = field(default_factory=Cut)
    parts: Mapping[str, TopLabels] = field(default_factory=dict)
    reasons: Sequence[Sequence[Reason]] = ()


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How texts are scored.

    Args:
        name: of the texts, for progress ("test").
        k: labels kept of each text.
        batch: texts that a network reads at once.
        reporter: where progress goes.
        keep: called with the rows of each batch and its logits for all labels.
        candidates: the labels of each text that a network scores; None: all are.
        should_stop: true once the user asked to stop.
        evidence: gold spans of the texts, to be looked for beyond what a network reads.
        parts: whether each part's own best labels are wanted, too.
        cached: gives a reader of states that are kept on disk for one that runs the backbone; None: it is run.
        reasons: whether it is wanted, too, what scorers say for the best labels.
    """

    name: str
    k: int
    batch: int
    reporter: Reporter
    keep: Keep | None = None
    candidates: ShortlistedLabels | None = None
    should_stop: Callable[[], bool] = never
    evidence: Evidence | None = None
    parts: bool = False
    cached: Callable[[LiveReader], HiddenReader] | None = None
    reasons: bool = False


class TopCollector:
    """The best labels collected so far.

    Args:
        documents: N.
        k: labels kept of a document.
        keep: given the rows and all logits of each batch.
    """

    def __init__(self, documents: int, k: int, keep: Keep | None = None) -> None:
        self.keep = keep
        self.labels = np.zeros((documents, k), dtype=np.int64)
        self.scores = np.zeros((documents, k), dtype=np.float64)
        self.counts = np.zeros(2, dtype=np.int64)  # pairs with a probability of at least one half, all that were scored

    def add(self, rows: Rows, logits: Logits) -> None:
        """Take the best of the logits [b, L] of some documents [b]; a smaller index wins every tie."""
        best = rank_labels(logits, self.labels.shape[1])
        self.take(rows, best, np.take_along_axis(logits, best, axis=1), assigned=int((logits >= 0).sum()), pairs=logits.size)
        if self.keep is not None:
            self.keep(rows, logits)

    def take(self, rows: Rows, best: npt.NDArray[np.int64], logits: Logits, *, assigned: int, pairs: int) -> None:
        """Take labels that were found to be the best.

        Args:
            rows: documents [b].
            best: their best labels [b, k], best first.
            logits: of these labels [b, k].
            assigned: pairs of these documents and any label with a probability of at least one half.
            pairs: those that were scored.
        """
        self.labels[rows], self.scores[rows] = best, distinct_probabilities(logits.astype(np.float64))
        self.counts += assigned, pairs

    def done(self) -> TopLabels:
        """What was collected."""
        assigned, pairs = self.counts.tolist()
        return TopLabels(labels=self.labels, scores=self.scores, assigned_share=assigned / max(1, pairs))


def cut_batches(documents: int, should_stop: Callable[[], bool] = never) -> Iterator[Rows]:
    """The rows of documents, some at a time, as long as the user does not stop.

    Raises:
        Interrupted: the user stopped the command.
    """
    for start in range(0, documents, BATCH):
        if should_stop():
            raise Interrupted(
                "stopped while scoring", where="scorers", expected="all documents scored", todo="run the same command again with --resume"
            )
        yield np.arange(start, min(start + BATCH, documents))


def rank_labels(logits: Logits, k: int) -> npt.NDArray[np.int64]:
    """The k best labels of each document by logits [b, L], best first, [b, k]; a smaller index wins every tie.

    Only the k that are found are sorted: sorting all labels takes ten times as long.
    """
    columns = np.arange(logits.shape[1])
    found = np.array([choose_best(row, columns, k) for row in logits], dtype=np.int64).reshape(len(logits), k)
    order = np.argsort(-np.take_along_axis(logits, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def distinct_probabilities(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sigmoids of falling logits [B, k] that fall where these do.

    Beyond a logit of 37 all sigmoids are 1: of different logits with one sigmoid each is the next smaller number, so that whoever ranks
    by the scores finds the order of the logits, and a threshold can lie between them.
    """
    scores: npt.NDArray[np.float64] = expit(logits)
    for rank in range(1, scores.shape[1]):
        before = scores[:, rank - 1]
        lower = np.minimum(scores[:, rank], np.nextafter(before, 0.0))
        scores[:, rank] = np.where(logits[:, rank] < logits[:, rank - 1], lower, before)
    return scores


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


Mix = Callable[[Rows, Tensor], Tensor]
"""From rows [b] and the network's logits for them [b, L] to the logits that count [b, L]."""
WHOLE = "whole"


def keep_logits(rows: Rows, logits: Tensor) -> Tensor:
    """The network alone."""
    return logits


def add_logits(collected: TopCollector, rows: Rows, logits: Tensor, candidates: Tensor | None = None) -> None:
    """Take the best of the logits [b, L] of some documents, found where these are.

    Args:
        collected: takes them; its `keep` is given all logits.
        rows: the documents [b].
        logits: on any device.
        candidates: the pairs that were scored, bool [b, L]; None: all.
    """
    best, values = top_labels(logits, collected.labels.shape[1])
    pairs = logits.numel() if candidates is None else int(candidates.sum())
    collected.take(rows, best.cpu().numpy(), values.cpu().numpy(), assigned=int((logits >= 0).sum()), pairs=pairs)
    if collected.keep is not None:
        collected.keep(rows, logits.cpu().numpy())


def top_labels(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of logits [B, L] as (indices, logits) [B, k]; equal scores by label index, also at rank k."""
    k = min(k, logits.shape[1])
    found = logits.topk(k, dim=1, sorted=False).indices.sort(dim=1).values
    lowest = logits.gather(1, found).amin(1, keepdim=True)
    for row in ((logits >= lowest).sum(1) > k).nonzero().squeeze(1):  # equal scores at rank k: the lower indices are taken
        found[row] = torch.sort(logits[row], descending=True, stable=True).indices[:k].sort().values
    values, order = torch.sort(logits.gather(1, found), dim=1, descending=True, stable=True)
    return found.gather(1, order), values


def _score(network: Network, reading: Reading, candidates: Tensor | None) -> Tensor:
    """Logits [B, L] of all labels, or of each document's candidates, bool [B, L]."""
    if candidates is None:
        return score_all(network.decoder, reading, network.labels)
    return score_pairs(network.decoder, reading, candidates)


@torch.no_grad()
def score_documents(
    network: Network,
    reader: HiddenReader,
    hardware: Hardware,
    scoring: Scoring,
    mixes: Mapping[str, Mix] | None = None,
) -> dict[str, TopLabels]:
    """The best labels of each document under each of several mixtures; the network is run once.

    Args:
        network: scores the documents.
        reader: gives the documents.
        hardware: the device, and the processes that share the documents.
        scoring: how; `keep` is given the logits under the first mixture, by each process those of its share.
        mixes: what becomes of the network's logits, by name (default: they stay as they are, as `WHOLE`).

    Raises:
        Interrupted: the user stopped the command.
        TrainingError: a logit is not a number.
    """
    network.eval()
    mixes = mixes or {WHOLE: keep_logits}
    sizes, stopping, wrong = lengths(reader.tokens), False, np.zeros(0, dtype=np.int64)
    collected = {
        name: TopCollector(len(sizes), min(scoring.k, network.labels), None if i else scoring.keep) for i, name in enumerate(mixes)
    }
    with scoring.reporter.progress(f"scoring {scoring.name}", len(sizes), "documents") as task:
        for rows in hardware.processes.share(sorted_batches(sizes, scoring.batch)):
            if stopping := scoring.should_stop():
                break
            reading = reader.read(rows)
            candidates = None if scoring.candidates is None else scoring.candidates.of(rows, reading.mask.device)
            with hardware.autocast():
                logits = _score(network, reading, candidates)
            for name, mix in mixes.items():  # one mixture is in memory at a time
                add_logits(collected[name], rows, mix(rows, logits), candidates)
            wrong = rows[np.isnan(next(iter(collected.values())).scores[rows, 0])]  # what is not a number comes first
            if len(wrong):
                break
            task.advance(len(rows) * hardware.processes.count)
    if hardware.processes.any(stopping):
        raise stopped("while scoring", f"scoring {scoring.name}", "all documents scored")
    if hardware.processes.any(len(wrong) > 0):
        _refuse_nan(network, scoring, wrong)
    for found in collected.values():  # each process has the rows of its share, and zeros elsewhere
        hardware.processes.add_arrays(found.labels, found.scores, found.counts)
    return {name: found.done() for name, found in collected.items()}


def _refuse_nan(network: Network, scoring: Scoring, rows: Rows) -> None:
    section = network.section
    raise TrainingError(
        f"the logits of the network ({section.decoder.name} on {section.backbone.name}) are not numbers",
        where=f"scoring {scoring.name}" + (f", document {rows[0] + 1}" if len(rows) else ", in another process"),
        expected="numbers",
        todo="train it again with lower rates or --precision fp32 (plant finetune --force)",
    )


Mean = Literal["probabilities", "logits"]
NUMBERS = 1 << 22
"""Scores that are in memory at a time when the best labels are looked for."""


class ScoreFile(Protocol):
    """Logits of documents, by row."""

    def write(self, rows: Rows, logits: Logits) -> None:
        """Keep logits [B, L] of the documents of these rows [B]."""
        ...

    def read(self, rows: Rows) -> Logits:
        """What was kept of these documents [B, L]."""
        ...


Score = Callable[[SplitName, Keep], Cut]
"""Scores every document of a split and hands rows [B] and logits [B, L] of each batch on; says what was not read."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One system of an ensemble.

    Args:
        name: as the user wrote it.
        load: loads the network.
    """

    name: str
    load: Callable[[], Score]


def average_splits(
    members: Sequence[Member],
    splits: Mapping[SplitName, Split],
    labels: LabelIndex,
    folders: Mapping[SplitName, Path],
    mean: Mean,
    k: int,
) -> dict[SplitName, TopLabels]:
    """The k best labels of each document under the mean of the members' scores, by split.

    Args:
        members: at least one.
        splits: to be scored.
        labels: the label index.
        folders: where the mean scores of each split are left (`plant_cli.scoring.predictions`); made if they are not there.
        mean: of probabilities, or of logits.
        k: labels kept of each document.
    """
    with ExitStack() as stack:
        kept: dict[SplitName, ScoreFile] = {}
        for name, split in splits.items():
            folders[name].mkdir(exist_ok=True)
            kept[name] = stack.enter_context(writing_scores(folders[name], split.doc_ids, len(labels), labels.hash))
        cuts = average_members(members, kept, mean)
        found = {name: best_labels(kept[name], len(split), len(labels), k) for name, split in splits.items()}
    return {name: replace(top, cut=cuts[name]) for name, top in found.items()}


def average_members(members: Sequence[Member], kept: Mapping[SplitName, ScoreFile], mean: Mean) -> dict[SplitName, Cut]:
    """Leave the mean scores of the members in files, as logits; each member is loaded once, after the one before it is gone.

    Args:
        members: at least one.
        kept: the file of each split that is scored.
        mean: of probabilities, or of logits.

    Returns:
        Of each split, the most that a member did not read.
    """
    cuts = {name: Cut() for name in kept}
    for count, member in enumerate(members):
        score = member.load()
        for name, file in kept.items():
            cut = score(name, partial(_add, file, count, mean))
            cuts[name] = max(cuts[name], cut, key=lambda cut: cut.tokens) if count else cut
        del score
    return cuts


def _add(kept: ScoreFile, count: int, mean: Mean, rows: Rows, logits: Logits) -> None:
    kept.write(rows, join_mean(kept.read(rows), logits, count, mean) if count else logits)


def join_mean(before: Logits, logits: Logits, count: int, mean: Mean) -> Logits:
    """The logit of the mean of `count` members, of which `before` is the logit, and one more.

    Probabilities are averaged as logarithms in double precision, so that none becomes 0 or 1.
    """
    old, new = before.astype(np.float64), logits.astype(np.float64)
    if mean == "logits":
        return (old + (new - old) / (count + 1)).astype(np.float32)
    yes = np.logaddexp(np.log(count) - np.logaddexp(0.0, -old), -np.logaddexp(0.0, -new))
    no = np.logaddexp(np.log(count) - np.logaddexp(0.0, old), -np.logaddexp(0.0, new))
    joined: Logits = (yes - no).astype(np.float32)
    return joined


def best_labels(kept: ScoreFile, documents: int, labels: int, k: int) -> TopLabels:
    """The k best labels of each document, ties by index."""
    collected, step = TopCollector(documents, min(k, labels)), max(1, NUMBERS // labels)
    for start in range(0, documents, step):
        rows = np.arange(start, min(start + step, documents))
        add_logits(collected, rows, torch.from_numpy(kept.read(rows)))
    return collected.done()
