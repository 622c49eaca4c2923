"""Stage 2 losses: which labels of a document count, and the loss of each."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

from plant_losses import AsymmetricOptions, FocalOptions, LabelLossOptions, LabelRankingOptions
from plant_losses.list_ranking import approx_ndcg_loss


def select_pairs(
    logits: Tensor,
    targets: Tensor,
    hard: int,
    random: int,
    generator: torch.Generator | None = None,
) -> Tensor:
    """All positives of each document, the `hard` negatives of highest logit (0: every pair) and
    `random` others [B, l].

    Equal logits (as at the start of training) are taken in random order, so that no label is
    favoured by its index.
    """
    positive = targets > 0
    if not 0 < hard < logits.shape[1]:
        return torch.ones_like(positive)
    noise = torch.rand(logits.shape, generator=generator, device=logits.device)
    shuffled = noise.argsort(dim=1)
    hardness = logits.detach().float().masked_fill(positive, -torch.inf).gather(1, shuffled)
    hardest = shuffled.gather(1, hardness.topk(hard, dim=1).indices)
    selected = positive.scatter(1, hardest, True)
    others = noise.masked_fill_(selected, -1).topk(min(random, logits.shape[1]), dim=1).indices
    return selected.scatter(1, others, True)


ALL_PAIRS = {"cuda": 1 << 23}
"""Up to so many pairs the loss of all is computed, by device: to count those that are selected,
a card would have to be waited for.
"""
SMALLEST_PROBABILITY = 1e-8  # smallest probability: at 0, powers below 1 have no finite slope


class PairLoss(ABC):
    """A label loss that is a sum over (document, label) pairs; a subclass gives the loss of
    each. Everything in fp32 or better.
    """

    def __init__(self, options: LabelLossOptions) -> None:
        self.hard_negatives = options.hard_negatives
        self.random_negatives = options.random_negatives
        self.normaliser = options.normaliser

    @abstractmethod
    def pairs(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Loss of each pair [n] with targets 0 or 1; logits in fp32 or better."""

    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        """Mean over documents of the sum over the selected pairs [B, l] (None: selected here),
        divided by the normaliser.

        Pairs that are not selected get a gradient of exactly 0, so that a decoder can leave them
        out of its backward pass.
        """
        if selected is None:
            selected = self.select(logits, targets)
        exact = torch.promote_types(logits.dtype, torch.float32)
        if logits.numel() <= ALL_PAIRS.get(logits.device.type, 0):
            losses = self.pairs(logits.to(exact).masked_fill(~selected, 0), targets.to(exact))
            sums = losses.masked_fill(~selected, 0).sum(1)
        else:
            document, label = selected.nonzero(as_tuple=True)
            losses = self.pairs(
                logits[document, label].to(exact), targets[document, label].to(exact)
            )
            sums = losses.new_zeros(len(logits)).index_add(0, document, losses)
        if self.normaliser == "labels":
            return (sums / targets.shape[1]).mean()
        counted = selected if self.normaliser == "selected" else targets > 0
        return (sums / counted.sum(1).clamp(min=1)).mean()

    def select(
        self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """The pairs that count [B, l]: positives, the hardest negatives, random negatives; all
        if no hard negatives are asked for.
        """
        return select_pairs(logits, targets, self.hard_negatives, self.random_negatives, generator)


class Bce(PairLoss):
    """Binary cross-entropy."""

    def pairs(self, logits: Tensor, targets: Tensor) -> Tensor:
        """−log of the probability of the target."""
        return functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")


class Focal(PairLoss):
    """Focal loss with label smoothing (Lin et al. 2017; PLANT v2, equation 3)."""

    def __init__(self, options: FocalOptions) -> None:
        super().__init__(options)
        self.gamma, self.epsilon, self.smoothing = options.gamma, options.epsilon, options.smoothing

    def pairs(self, logits: Tensor, targets: Tensor) -> Tensor:
        """−t (1−p)^γ log p − (1−t) p^γ log(1−p), t the smoothed target; powers are computed
        from logarithms, exact for large logits.
        """
        smooth = self._smoothed(targets)
        log_p, log_not_p = functional.logsigmoid(logits), functional.logsigmoid(-logits)
        return (
            -smooth * (self.gamma * log_not_p).exp() * log_p
            - (1 - smooth) * (self.gamma * log_p).exp() * log_not_p
        )

    def _smoothed(self, targets: Tensor) -> Tensor:
        match self.smoothing:
            case "positive":
                return targets * (1 - self.epsilon)
            case "symmetric":
                return targets * (1 - self.epsilon) + self.epsilon / 2
            case "literal":
                return targets * (1 - 2 * self.epsilon) + self.epsilon
            case "off":
                return targets


class Asymmetric(PairLoss):
    """Asymmetric loss: positives and negatives focused differently, easy negatives dropped
    (Ridnik et al. 2021).
    """

    def __init__(self, options: AsymmetricOptions) -> None:
        super().__init__(options)
        self.gamma_positive, self.gamma_negative, self.clip = (
            options.gamma_positive,
            options.gamma_negative,
            options.clip,
        )

    def pairs(self, logits: Tensor, targets: Tensor) -> Tensor:
        """−y (1−p)^γ₊ log p − (1−y) q^γ₋ log(1−q), with q = max(p − clip, 0)."""
        log_p, log_not_p = functional.logsigmoid(logits), functional.logsigmoid(-logits)
        positive = -(self.gamma_positive * log_not_p).exp() * log_p
        shifted = (logits.sigmoid() - self.clip).clamp(min=SMALLEST_PROBABILITY)
        # With no clip log(1−q) is logsigmoid(−z), precise for large logits; a clip keeps 1−q away
        # from 0.
        log_not_shifted = torch.log1p(-shifted) if self.clip else log_not_p
        negative = -shifted.pow(self.gamma_negative) * log_not_shifted
        return torch.where(targets > 0, positive, negative)


class LabelNdcg:
    """Mean over documents of 1 − nDCG of their labels, each rank replaced by a smooth one;
    positives are relevant, all labels count.
    """

    hard_negatives = random_negatives = 0

    def __init__(self, options: LabelRankingOptions) -> None:
        self.temperature = options.temperature

    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        """The loss of the selected pairs; a document without a positive, or with nothing else
        selected, counts 0.
        """
        if selected is None:
            selected = self.select(logits, targets)
        offsets = torch.cat([selected.new_zeros(1, dtype=torch.int64), selected.sum(1).cumsum(0)])
        counted = (selected.sum(1) > 1) & (targets.bool() & selected).any(1)
        loss = approx_ndcg_loss(
            logits[selected], targets[selected], offsets, temperature=self.temperature
        )
        return loss * counted.double().mean().to(
            loss
        )  # a mean over all documents, so that a step may be cut anywhere

    def select(
        self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """All pairs."""
        return torch.ones_like(targets, dtype=torch.bool)
