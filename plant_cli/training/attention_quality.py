"""How well attention ranks words by relevance on held-out documents: what stage 1 is measured by, and what stage 2 keeps of it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.model.reading import lengths, sorted_batches
from plant_cli.model.word_statistics import WordStatistics
from plant_cli.ranking.kendall import kendall_tau
from plant_cli.ranking.ndcg import ndcg, random_ndcg
from plant_cli.training.materials import Material
from plant_cli.training.planting import Planter, positives_only, rank_words


class AttentionMeasure:
    """nDCG@k of attention against relevance on a split, over every (document, own label) list with all of its words.

    Args:
        network: whose attention is measured.
        material: the split.
        known: relevance of words for labels.
        hardware: where it runs.
        k: cut of nDCG@k.
        batch: documents in memory at once.
        contrast: words without relevance in each list (−1: all).
        items: what is ranked.
    """

    def __init__(
        self,
        network: Network,
        material: Material,
        known: WordStatistics,
        hardware: Hardware,
        *,
        k: int,
        batch: int,
        contrast: int = -1,
        items: Literal["words", "positions"] = "words",
    ) -> None:
        self.network = network
        self.reader = material.reader
        split, tokens = material.split, material.reader.tokens
        self.planter = Planter(known.table, split, tokens, known.analyser, contrast=contrast, labels_per_document=0, items=items)
        self.hardware = hardware
        self.k = k
        self.batch = batch
        self.name = f"nDCG@{k}"

    @torch.no_grad()
    def __call__(self) -> dict[str, float]:
        """Mean nDCG@k, Kendall's τ, and the nDCG@k that a random order would have."""
        self.network.eval()
        sums = np.zeros(4)  # of the three figures, and how many lists
        for rows in self.hardware.processes.share(sorted_batches(lengths(self.reader.tokens), self.batch)):
            labels, counts = positives_only(self.planter, rows)
            if not len(labels):
                continue
            reading = self.reader.read(rows)
            with self.hardware.autocast():
                lists = rank_words(self.network.decoder, self.planter, reading, rows, labels, counts, np.random.default_rng(0))
            if lists is None:
                continue
            found = (
                ndcg(lists.scores, lists.relevance, lists.offsets, self.k),
                kendall_tau(lists.scores, lists.relevance, lists.offsets),
                random_ndcg(lists.relevance, lists.offsets, self.k),
            )
            sums += [*(float(torch.nan_to_num(values).sum()) for values in found), len(lists)]
        self.hardware.processes.add_arrays(sums)
        mean = sums[:3] / max(1.0, sums[3])
        return {self.name: float(mean[0]), "tau": float(mean[1]), f"random {self.name}": float(mean[2])}
