"""Scoring in batches; of each document only its K best labels are kept, never an N x L array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import Interrupted, Reporter, StageContext
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.model.reading import HiddenReader, lengths, sorted_batches


@dataclass(frozen=True, kw_only=True)
class TopLabels:
    """The K best labels of N documents.

    Args:
        labels: label indices [N, K] by falling score, ties by index.
        scores: probabilities [N, K].
        assigned_share: share of all (document, label) cells with a probability of at least one half.
    """

    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    assigned_share: float


def top_labels(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of logits [B, L] as (indices, logits) [B, k]; equal scores by label index, also at the k-th place."""
    k = min(k, logits.shape[1])
    values, found = torch.sort(logits, dim=1, descending=True, stable=True)
    return found[:, :k], values[:, :k]


@torch.no_grad()
def score_documents(
    network: Network,
    reader: HiddenReader,
    hardware: Hardware,
    *,
    k: int,
    batch: int,
    reporter: Reporter,
    description: str,
    context: StageContext | None = None,
) -> TopLabels:
    """Score every document of a reader."""
    network.eval()
    sizes = lengths(reader.tokens)
    k = min(k, network.labels)
    labels = np.zeros((len(sizes), k), dtype=np.int64)
    scores = np.zeros((len(sizes), k), dtype=np.float64)
    assigned = cells = 0
    with reporter.progress(description, len(sizes), "documents") as task:
        for rows in sorted_batches(sizes, batch):
            hidden, mask = reader.read(rows)
            with hardware.autocast():
                logits = network.decoder(hidden, mask).float()
            found, values = top_labels(logits, k)
            labels[rows], scores[rows] = found.cpu().numpy(), torch.sigmoid(values.double()).cpu().numpy()
            assigned += int((logits >= 0).sum())
            cells += logits.numel()
            task.advance(len(rows))
            if context is not None and context.stopping:
                raise Interrupted(
                    "stopped while scoring",
                    where=description,
                    expected="all documents scored",
                    todo="run the same command again with --resume",
                )
    return TopLabels(labels=labels, scores=scores, assigned_share=assigned / max(1, cells))
