"""Stage 2 on batches: exact hard negatives, and the planted order kept as an anchor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import GroupedDecoder, LabelLoss, RankLoss, Reading, Split
from plant_cli.model.candidates import ShortlistedLabels
from plant_cli.model.hardware import Hardware
from plant_cli.model.label_scores import score_all, score_pairs
from plant_cli.model.network import Network
from plant_cli.model.reading import HiddenReader
from plant_cli.training.planting import Planter, planted_loss

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """The stage 1 loss as an auxiliary term that fades out.

    Args:
        weight: λ in the first epoch; it falls linearly to zero over `epochs`.
    """

    planter: Planter
    loss: RankLoss
    weight: float
    epochs: int

    def strength(self, epoch: int) -> float:
        """λ in an epoch."""
        return self.weight * max(0.0, 1.0 - epoch / max(1, self.epochs))


class FineTuning:
    """Loss of one micro-batch of stage 2 (`plant_cli.training.loop.BatchLoss`).

    The loss looks only at the positives and the hardest negatives of each document. All labels are scored once, in memory
    O(B·L); the backward pass of the label attention computes only the (document, label) pairs that were chosen. With sparse updates
    labels are scored without gradient, and the chosen ones of each document once more with it: no gradient has a row for every label.
    With candidates hard negatives are these. If they are no more than the loss looks at, all of them count: they are scored once, beside
    positives and random negatives (in the loss's proportion to them), and nothing else is. Of more, all are scored without gradient, and
    the hardest once more with it.

    Args:
        network: that is trained.
        reader: of the split.
        split: gives the gold labels.
        loss: over labels.
        hardware: where it runs.
        anchor: the stage 1 loss that is added (None: none).
        sparse: score twice.
        candidates: what a shortlist proposes for the documents of the split (None: all labels are scored).
    """

    def __init__(
        self,
        network: Network,
        reader: HiddenReader,
        split: Split,
        loss: LabelLoss,
        hardware: Hardware,
        anchor: Anchor | None = None,
        *,
        sparse: bool = False,
        candidates: ShortlistedLabels | None = None,
    ) -> None:
        self.network = network
        self.reader = reader
        self.gold = split.gold
        self.loss = loss
        self.hardware = hardware
        self.anchor = anchor
        self.candidates = candidates
        self.all_count = candidates is not None and candidates.most <= loss.hard_negatives
        self.random = loss.random_negatives
        if candidates is not None and self.all_count:
            self.random = -(-loss.random_negatives * candidates.most // loss.hard_negatives)
        self.twice = not self.all_count and (sparse or candidates is not None)

    def __call__(self, rows: Rows, *, epoch: int, seed: int) -> tuple[Tensor, float]:
        """See `plant_cli.training.loop.BatchLoss`; the mean is over documents."""
        reading = self.reader.read(rows)
        targets = torch.from_numpy(self.gold[rows].toarray().astype(np.float32)).to(reading.mask.device)
        with self.hardware.autocast():
            if isinstance(self.network.decoder, GroupedDecoder):
                reading = read = self.network.decoder.read_groups(reading)
                of_groups = group_loss(self.network.decoder.groups, self.loss, read.group_logits, targets, seed)
                loss = self._label_loss(reading, targets, rows, seed) + of_groups
            else:
                loss = self._label_loss(reading, targets, rows, seed)
            if self.anchor is not None and self.anchor.strength(epoch) > 0:
                planted, _ = planted_loss(self.network, self.anchor.planter, self.anchor.loss, reading, rows, seed)
                loss = loss + self.anchor.strength(epoch) * planted
        return loss, float(len(rows))

    def _label_loss(self, reading: Reading, targets: Tensor, rows: Rows, seed: int) -> Tensor:
        draw = torch.Generator(device=targets.device).manual_seed(seed)
        if self.candidates is not None and self.all_count:
            selected = add_random(self.candidates.of(rows, targets.device) | (targets > 0), self.random, draw)
            return self.loss(score_pairs(self.network.decoder, reading, selected), targets, selected)
        with torch.set_grad_enabled(not self.twice):
            logits = self._score(reading, rows)
        if not self.loss.hard_negatives:
            return self.loss(logits, targets)
        selected = self.loss.select(logits.detach(), targets, draw)
        if self.twice:
            logits = torch.where(selected, score_pairs(self.network.decoder, reading, selected), logits)
        return self.loss(logits, targets, selected)

    def _score(self, reading: Reading, rows: Rows) -> Tensor:
        if self.candidates is None:
            return score_all(self.network.decoder, reading, self.network.labels)
        return score_pairs(self.network.decoder, reading, self.candidates.of(rows, reading.mask.device))


def add_random(chosen: Tensor, count: int, draw: torch.Generator) -> Tensor:
    """The chosen labels [B, L] and, for each document, `count` others (all of them if there are fewer), drawn without replacement."""
    noise = torch.rand(chosen.shape, generator=draw, device=chosen.device).masked_fill_(chosen, -1.0)
    return chosen.scatter(1, noise.topk(min(count, chosen.shape[1]), dim=1).indices, True)


def group_loss(groups: Tensor, loss: LabelLoss, logits: Tensor, targets: Tensor, seed: int) -> Tensor:
    """The loss over groups of labels; a document has the groups of its labels.

    Args:
        groups: the group of each label [L].
        loss: over labels; here over groups.
        logits: of the groups [B, G].
        targets: 0/1 of the labels [B, L].
        seed: of the random negatives.
    """
    of_groups = torch.zeros_like(logits).index_add_(1, groups, targets.to(logits.dtype)).clamp_max_(1.0)
    if not loss.hard_negatives:
        return loss(logits, of_groups)
    draw = torch.Generator(device=logits.device).manual_seed(seed)
    return loss(logits, of_groups, loss.select(logits.detach(), of_groups, draw))
