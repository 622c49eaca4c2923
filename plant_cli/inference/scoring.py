"""Scoring in batches; of each document only its K best labels are kept, never an N x L array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from torch import Tensor

from plant_cli.api import Interrupted, Reading, Reporter
from plant_cli.inference.lexical import LexicalScores
from plant_cli.model.candidates import Candidates
from plant_cli.model.cuts import Cut
from plant_cli.model.hardware import Hardware
from plant_cli.model.label_scores import score_all, score_candidates
from plant_cli.model.network import Network
from plant_cli.model.reading import HiddenReader, Rows, lengths, sorted_batches
from plant_cli.parallel.group import Processes
from plant_cli.runs.session import never

Keep = Callable[[Rows, npt.NDArray[np.float32]], None]


@dataclass(frozen=True, kw_only=True)
class TopLabels:
    """The K best labels of N documents.

    Args:
        labels: label indices [N, K] by falling score, ties by index.
        scores: sigmoids of the logits [N, K], different where these are; not calibrated.
        assigned_share: share of all (document, label) pairs with a probability of at least one half.
        shortlist_recall: share of the K best that a shortlist proposed, measured on a sample; None where every label was scored.
        cut: what of the documents the network did not read, where that was asked for.
    """

    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    assigned_share: float
    shortlist_recall: float | None = None
    cut: Cut = field(default_factory=Cut)


class _Collected:
    """The best labels collected so far; `keep` is given all logits of each batch."""

    def __init__(self, documents: int, k: int, keep: Keep | None) -> None:
        self.keep = keep
        self.labels = np.zeros((documents, k), dtype=np.int64)
        self.scores = np.zeros((documents, k), dtype=np.float64)
        self.counts = np.zeros(2, dtype=np.int64)  # pairs with a probability of at least one half, all pairs

    def add(self, rows: npt.NDArray[np.int64], logits: Tensor) -> None:
        found, values = top_labels(logits, self.labels.shape[1])
        self.labels[rows], self.scores[rows] = found.cpu().numpy(), distinct_probabilities(values.double().cpu().numpy())
        self.counts += int((logits >= 0).sum()), logits.numel()
        if self.keep is not None:
            self.keep(rows, logits.cpu().numpy())

    def done(self, processes: Processes) -> TopLabels:
        processes.add_arrays(self.labels, self.scores, self.counts)  # each has the rows of its share, and zeros elsewhere
        assigned, pairs = self.counts.tolist()
        return TopLabels(labels=self.labels, scores=self.scores, assigned_share=assigned / max(1, pairs))


def top_labels(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of logits [B, L] as (indices, logits) [B, k]; equal scores by label index, also at rank k."""
    k = min(k, logits.shape[1])
    found = logits.topk(k, dim=1, sorted=False).indices.sort(dim=1).values
    lowest = logits.gather(1, found).amin(1, keepdim=True)
    for row in ((logits >= lowest).sum(1) > k).nonzero().squeeze(1):  # equal scores at rank k: the lower indices are taken
        found[row] = torch.sort(logits[row], descending=True, stable=True).indices[:k].sort().values
    values, order = torch.sort(logits.gather(1, found), dim=1, descending=True, stable=True)
    return found.gather(1, order), values


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


def _score(network: Network, reading: Reading, candidates: Sequence[Tensor] | None) -> Tensor:
    """Logits [B, L] of all labels, or of each document's candidates."""
    if candidates is None:
        return score_all(network.decoder, reading, network.labels)
    return score_candidates(network.decoder, reading, candidates, network.labels)


def _mix(logits: Tensor, lexical: LexicalScores | None, weights: Sequence[float], rows: Rows) -> Iterator[Tensor]:
    """Logits [B, L] with the documents' lexical scores, under one weight after the other: one mixture is in memory at a time."""
    added = torch.from_numpy(lexical.scores(rows)).to(logits.device) if lexical else None
    return (logits if added is None else torch.add(logits, added, alpha=weight) for weight in weights)


@torch.no_grad()
def score_mixtures(
    network: Network,
    reader: HiddenReader,
    hardware: Hardware,
    *,
    k: int,
    batch: int,
    reporter: Reporter,
    description: str,
    lexical: LexicalScores | None = None,
    weights: Sequence[float] | None = None,
    keep: Keep | None = None,
    should_stop: Callable[[], bool] = never,
    candidates: Candidates | None = None,
) -> list[TopLabels]:
    """The best labels of each document under each weight of its lexical scores; the network is run once.

    Args:
        network: scores the documents.
        reader: gives the documents.
        hardware: the device, and the processes that share the documents.
        k: labels kept of each document.
        batch: documents scored at once.
        reporter: where progress goes.
        description: what is scored, for progress.
        lexical: lexical scores of the same documents; None: there are none.
        weights: logits that a lexical score higher by 1 adds (default: the weight of the lexicon).
        keep: given rows [B] and logits [B, L] of each batch under the first weight; each process gets those of its share.
        should_stop: true once the user asked to stop.
        candidates: labels of each document that are scored, the others get the score 0; None: all are.

    Raises:
        Interrupted: the user stopped the command.
    """
    network.eval()
    if weights is None:
        weights = [lexical.lexicon.weight if lexical else 0.0]
    sizes, stopping = lengths(reader.tokens), False
    collected = [_Collected(len(sizes), min(k, network.labels), None if i else keep) for i in range(len(weights))]
    with reporter.progress(description, len(sizes), "documents") as task:
        for rows in hardware.processes.share(sorted_batches(sizes, batch)):
            if stopping := should_stop():
                break
            reading = reader.read(rows)
            with hardware.autocast():
                logits = _score(network, reading, None if candidates is None else candidates.of(rows, reading.mask.device))
            for best, mixed in zip(collected, _mix(logits, lexical, weights, rows), strict=True):
                best.add(rows, mixed)
            task.advance(len(rows) * hardware.processes.count)
    if hardware.processes.any(stopping):
        raise Interrupted(
            "stopped while scoring",
            where=description,
            expected="all documents scored",
            todo="run the same command again with --resume",
        )
    return [best.done(hardware.processes) for best in collected]
