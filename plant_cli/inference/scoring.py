"""Scoring in batches; of each document only its K best labels are kept, never an N x L array."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import Interrupted, Reading
from plant_cli.inference.top import Keep, Scoring, TopLabels, distinct_probabilities
from plant_cli.model.hardware import Hardware
from plant_cli.model.label_scores import score_all, score_pairs
from plant_cli.model.network import Network
from plant_cli.model.reading import HiddenReader, Rows, lengths, sorted_batches
from plant_cli.parallel.group import Processes

Mix = Callable[[Rows, Tensor], Tensor]
"""From rows [b] and the network's logits for them [b, L] to the logits that count [b, L]."""
WHOLE = "whole"


def keep_logits(rows: Rows, logits: Tensor) -> Tensor:
    """The network alone."""
    return logits


class _Collected:
    """The best labels collected so far; `keep` is given all logits of each batch."""

    def __init__(self, documents: int, k: int, keep: Keep | None) -> None:
        self.keep = keep
        self.labels = np.zeros((documents, k), dtype=np.int64)
        self.scores = np.zeros((documents, k), dtype=np.float64)
        self.counts = np.zeros(2, dtype=np.int64)  # pairs with a probability of at least one half, all pairs that were scored

    def add(self, rows: npt.NDArray[np.int64], logits: Tensor, candidates: Tensor | None) -> None:
        found, values = top_labels(logits, self.labels.shape[1])
        self.labels[rows], self.scores[rows] = found.cpu().numpy(), distinct_probabilities(values.double().cpu().numpy())
        self.counts += int((logits >= 0).sum()), logits.numel() if candidates is None else int(candidates.sum())
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
    """
    network.eval()
    mixes = mixes or {WHOLE: keep_logits}
    sizes, stopping = lengths(reader.tokens), False
    collected = {name: _Collected(len(sizes), min(scoring.k, network.labels), None if i else scoring.keep) for i, name in enumerate(mixes)}
    with scoring.reporter.progress(f"scoring {scoring.name}", len(sizes), "documents") as task:
        for rows in hardware.processes.share(sorted_batches(sizes, scoring.batch)):
            if stopping := scoring.should_stop():
                break
            reading = reader.read(rows)
            candidates = None if scoring.candidates is None else scoring.candidates.of(rows, reading.mask.device)
            with hardware.autocast():
                logits = _score(network, reading, candidates)
            for name, mix in mixes.items():  # one mixture is in memory at a time
                collected[name].add(rows, mix(rows, logits), candidates)
            task.advance(len(rows) * hardware.processes.count)
    if hardware.processes.any(stopping):
        raise Interrupted(
            "stopped while scoring",
            where=f"scoring {scoring.name}",
            expected="all documents scored",
            todo="run the same command again with --resume",
        )
    return {name: found.done(hardware.processes) for name, found in collected.items()}
