"""Scoring with a decoder: all labels in blocks, or the labels that a shortlist proposes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from plant_cli.api import (
    PairDecoder,
    Reading,
)
from plant_cli.scoring.proposed_labels import Rows, ShortlistedLabels
from plant_cli.scoring.top_labels import Room
from plant_network.answers import score_labels, score_wanted
from plant_network.assembly import Network
from plant_network.compute import send
from plant_network.hardware import Hardware
from plant_network.reading import HiddenReader, count_fitting, lengths

UNSCORED = -1e4  # logit of a label that was not scored: a probability of 0

LABELS_PER_BLOCK = 1 << 14
"""Labels scored at a time, so that a decoder's products of its label tables, such as queries
[L, H], stay small.
"""
NOT_LEFT_OUT = {"cuda"}
"""Devices on which few labels are taken from the tables even if no document wants them: to find
these, the device is waited for.
"""


def score_all(decoder: nn.Module, reading: Reading, labels: int) -> Tensor:
    """Logits [B, L] of all labels, fp32; for use without gradients."""
    if labels <= LABELS_PER_BLOCK:
        return score_labels(decoder, reading, labels)
    blocks = torch.split(torch.arange(labels, device=reading.mask.device), LABELS_PER_BLOCK)
    return torch.cat([score_labels(decoder, reading, block) for block in blocks], dim=1)


def score_pairs(decoder: nn.Module, reading: Reading, wanted: Tensor) -> Tensor:
    """Logits [B, L] of the wanted pairs [B, L] of document and label, fp32; all others are
    `UNSCORED`, without gradient.

    Rows are taken from the label tables once for all documents. A decoder that is no `PairDecoder`
    is asked document by document, each cut to its last real token.
    """
    logits = reading.hidden.new_full(wanted.shape, UNSCORED, dtype=torch.float32)
    pairs, few = (
        isinstance(decoder, PairDecoder),
        wanted.shape[1] <= LABELS_PER_BLOCK and wanted.device.type in NOT_LEFT_OUT,
    )
    all_labels = pairs and few and not getattr(decoder, "sparse", False)
    every = (
        torch.arange(wanted.shape[1], device=wanted.device)
        if all_labels
        else wanted.any(0).nonzero().squeeze(1)
    )
    for labels in torch.split(every, LABELS_PER_BLOCK):
        chosen = wanted[:, labels]
        if isinstance(decoder, PairDecoder):
            scored = score_wanted(decoder, reading, labels, chosen)
        else:
            scored = _score_one_by_one(decoder, reading, labels, chosen)
        logits = logits.index_copy(1, labels, torch.where(chosen, scored, UNSCORED))
    return logits


def _score_one_by_one(
    decoder: nn.Module, reading: Reading, labels: Tensor, chosen: Tensor
) -> Tensor:
    rows = []
    ends = (
        (reading.mask * torch.arange(1, reading.mask.shape[1] + 1, device=chosen.device))
        .amax(1)
        .clamp_min(1)
    )
    for document, (wanted, end) in enumerate(zip(chosen, ends.tolist(), strict=True)):
        row = reading.hidden.new_full((len(labels),), UNSCORED, dtype=torch.float32)
        if wanted.any():
            alone = reading.select(slice(document, document + 1), slice(end))
            row = row.masked_scatter(wanted, score_labels(decoder, alone, labels[wanted])[0])
        rows.append(row)
    return torch.stack(rows)


DOCUMENTS_FOR_RECALL = 64  # documents on which recall is measured: all their labels must be scored


def proposed_pairs(proposed: ShortlistedLabels, rows: Rows, device: torch.device) -> torch.Tensor:
    """The proposed pairs of some documents, as bool [B, L]."""
    wanted = np.zeros((len(rows), proposed.labels), dtype=bool)
    for number, row in enumerate(rows):
        wanted[number, proposed.found[row]] = True
    return send(torch.from_numpy(wanted), device)


@torch.no_grad()
def measure_recall(
    network: Network,
    reader: HiddenReader,
    hardware: Hardware,
    candidates: ShortlistedLabels,
    m: int,
    *,
    batch: Room | int,
    sample: int = DOCUMENTS_FOR_RECALL,
) -> float:
    """Share of the m best labels of the network that the shortlist proposes: mean over `sample`
    documents, evenly spread over the split.

    The network scores every label of these documents, so the figure is exact for them.
    """
    network.eval()
    rows = np.unique(
        np.linspace(0, len(candidates) - 1, num=min(sample, len(candidates)), dtype=np.int64)
    )
    m = min(m, network.labels)
    shares: list[float] = []
    size = count_fitting(batch, int(lengths(reader.tokens)[rows].max(initial=0)))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        reading = reader.read(part)
        with hardware.autocast():
            best = score_all(network.decoder, reading, network.labels).topk(m, dim=1).indices
        shares += (
            proposed_pairs(candidates, part, best.device).gather(1, best).float().mean(1).tolist()
        )
    return float(np.mean(shares)) if shares else 0.0
