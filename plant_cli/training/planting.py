"""Stage 1 on batches: for each document and label, the document's words as a list to be ranked by relevance.

`Planter` makes the lists, `Planting` is the loss over them, `AttentionMeasure` says how well attention ranks those of validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from plant_cli.api import Decoder, RankLoss, Reading
from plant_cli.api.options import FIXED_SEED
from plant_cli.network.answers import rank_tokens
from plant_cli.network.assembly import Network
from plant_cli.network.compute import LABEL_MULTIPLE
from plant_cli.network.hardware import Hardware
from plant_cli.network.list_ranking import kendall_tau, ndcg, random_ndcg
from plant_cli.network.reading import OUTSIDE, HiddenReader, lengths, match_words, sorted_batches
from plant_cli.relevance.relevance_table import RelevanceTable, WordStatistics
from plant_cli.training.materials import Material

Rows = npt.NDArray[np.int64]
SMALLEST_MASS = 1e-12
PLANTING_NUMBERS = 1 << 24
"""Attention (documents x labels x positions) that is kept for the backward pass, 64 MB; of more, blocks are computed again."""


@dataclass(frozen=True, kw_only=True)
class RankedLists:
    """Ragged lists of one batch, ready for a rank loss."""

    scores: Tensor
    relevance: Tensor
    offsets: Tensor

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, kw_only=True)
class Items:
    """The lists of one document before attention has scored them."""

    labels: Rows  # those that have a list [l]
    there: npt.NDArray[np.bool_]  # which of the document's words are in it [l, U]
    relevance: npt.NDArray[np.float32]  # of these words, list after list

    def of(self, labels: Rows) -> Items:
        """The lists of some labels."""
        wanted = np.isin(self.labels, labels)
        if wanted.all():
            return self
        kept = np.repeat(wanted, self.there.sum(axis=1))
        return Items(labels=self.labels[wanted], there=self.there[wanted], relevance=self.relevance[kept])


class Planter:
    """Says which words each list holds, and scores them from log attention.

    `contrast` words without relevance join each document's lists (0: none, −1: all); `labels_per_document` labels are sampled beside a
    batch's positives (−1: all labels). A word's score is the log of the attention mass on its tokens, that mass, or the log mean.
    """

    def __init__(
        self,
        table: RelevanceTable,
        material: Material,
        *,
        contrast: int,
        labels_per_document: int,
        score: Literal["log-mass", "mass", "log-mean"] = "log-mass",
        items: Literal["words", "positions"] = "words",
    ) -> None:
        assert material.words is not None, "where there is relevance, texts are split into words"
        self.table, self.gold = table, material.split.gold
        self.contrast, self.labels_per_document, self.score = contrast, labels_per_document, score
        found = match_words(material.split.texts, material.words, material.reader.tokens, table.words, material.analyser)
        self.documents = [document.by_position() if items == "positions" else document for document in found]

    def choose_labels(self, rows: Rows, draw: np.random.Generator) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """Labels of a batch and which of them count for which document [B, l]: its positives and the shared sample."""
        total = self.gold.shape[1]
        gold = self.gold[rows]
        if self.labels_per_document < 0 or self.labels_per_document >= total:
            return np.arange(total), np.ones((len(rows), total), dtype=bool)
        sample = draw.choice(total, size=self.labels_per_document, replace=False)
        labels = np.union1d(sample, gold.indices)
        counts = np.asarray(gold[:, labels].toarray() != 0) | np.isin(labels, sample)[None, :]
        return labels, counts

    def choose_items(self, row: int, labels: Rows, draw: np.random.Generator) -> Items:
        """The lists of a document for some labels; a label is left out if none of the words, or only one word, would be in its list."""
        vocabulary = self.documents[row].vocabulary
        known, size = vocabulary != OUTSIDE, len(vocabulary)
        wanted = np.zeros((len(labels), size), dtype=np.float32)  # relevance; positions of one word have that of the word, each
        wanted[:, known] = self.table.matrix[labels][:, vocabulary[known]].toarray()
        joined = np.ones(size, dtype=bool)
        if 0 <= self.contrast < size:
            joined = np.zeros(size, dtype=bool)
            joined[draw.choice(size, size=self.contrast, replace=False)] = True
        there = (wanted > 0) | joined[None, :]
        usable = ((wanted > 0).any(axis=1)) & (there.sum(axis=1) > 1)
        there = there[usable]
        return Items(labels=labels[usable], there=there, relevance=wanted[usable][there])

    def score_words(self, log_attention: Tensor, row: int) -> Tensor:
        """Scores [l, U] of a document's words from log attention [l, T] on its tokens."""
        document, device = self.documents[row], log_attention.device
        token, word = torch.from_numpy(document.token).to(device), torch.from_numpy(document.word).to(device)
        size = len(document.vocabulary)
        on_tokens = log_attention.float().index_select(1, token).exp()
        mass = on_tokens.new_zeros((len(log_attention), size)).index_add(1, word, on_tokens)
        if self.score == "mass":
            return mass
        if self.score == "log-mean":
            mass = mass / torch.bincount(word, minlength=size).to(mass.dtype)
        return mass.clamp_min(SMALLEST_MASS).log()


@dataclass(frozen=True)
class Planting:
    """Loss of one micro-batch of stage 1 (`plant_cli.training.loop.BatchLoss`); the mean is over lists."""

    network: Network
    reader: HiddenReader
    planter: Planter
    loss: RankLoss
    hardware: Hardware

    def __call__(self, rows: Rows, *, epoch: int, seed: int) -> tuple[Tensor, float]:
        """The mean loss over the lists of some documents, and how many lists these are."""
        reading = self.reader.read(rows)
        with self.hardware.autocast():
            return planted_loss(self.network, self.planter, self.loss, reading, rows, seed)


def planted_loss(network: Network, planter: Planter, loss: RankLoss, reading: Reading, rows: Rows, seed: int) -> tuple[Tensor, float]:
    """The ranking loss of a batch for a fresh sample of labels and contrast words, and over how many lists it is a mean."""
    draw = np.random.default_rng(seed)
    labels, counts = planter.choose_labels(rows, draw)
    lists = rank_words(network.decoder, planter, reading, rows, labels, counts, draw)
    if lists is None:  # a loss of nothing, with a gradient that is zero
        attention = rank_tokens(network.decoder, reading.select(slice(1)), torch.zeros(1, dtype=torch.int64, device=reading.mask.device))
        return 0.0 * attention.nan_to_num(neginf=0.0).sum(), 0.0
    return loss(lists.scores, lists.relevance, lists.offsets), float(len(lists))


def rank_words(
    decoder: Decoder,
    planter: Planter,
    reading: Reading,
    rows: Rows,
    labels: Rows,
    counts: npt.NDArray[np.bool_],
    draw: np.random.Generator,
) -> RankedLists | None:
    """The lists of a batch for its labels (sorted), each for the documents where it counts [B, l]; None if there is no list.

    Of very many labels or positions, blocks of labels are computed again in the backward pass: memory grows with the words in the lists.
    """
    found = [planter.choose_items(int(row), labels[counts[number]], draw) for number, row in enumerate(rows)]
    used = np.unique(np.concatenate([items.labels for items in found]))
    if not len(used):
        return None
    step = max(1, PLANTING_NUMBERS // (reading.mask.numel() * LABEL_MULTIPLE)) * LABEL_MULTIPLE
    blocks = [used[start : start + step] for start in range(0, len(used), step)]
    parts = [[items.of(block) for items in found] for block in blocks]
    given = [(decoder, planter, reading, rows, block, part) for block, part in zip(blocks, parts, strict=True)]
    once = len(blocks) == 1
    scores = [_score_items(*block) if once else checkpoint(_score_items, *block, use_reentrant=False) for block in given]
    flat = [items for part in parts for items in part]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([items.there.sum(axis=1) for items in flat]))]).astype(np.int64)
    device = reading.mask.device
    return RankedLists(
        scores=torch.cat(scores),
        relevance=torch.from_numpy(np.concatenate([items.relevance for items in flat])).to(device),
        offsets=torch.from_numpy(offsets).to(device),
    )


def _score_items(decoder: Decoder, planter: Planter, reading: Reading, rows: Rows, labels: Rows, part: Sequence[Items]) -> Tensor:
    """Scores of the words in the lists of a block of labels: document after document, list after list."""
    wanted = torch.from_numpy(np.stack([np.isin(labels, items.labels) for items in part])).to(reading.mask.device)
    given = reading, torch.from_numpy(labels).to(reading.mask.device)
    attention = rank_tokens(decoder, *given, wanted)
    scores = []
    for row, of_document, items in zip(rows, attention.unbind(0), part, strict=True):
        if len(items.labels):
            chosen = torch.from_numpy(np.searchsorted(labels, items.labels)).to(attention.device)
            words = planter.score_words(of_document.index_select(0, chosen), int(row))
            scores.append(words[torch.from_numpy(items.there).to(attention.device)])
    return torch.cat(scores)


@dataclass
class AttentionMeasure:
    """nDCG@k of attention against relevance on a split, over every (document, own label) list with all of its words."""

    network: Network
    material: Material
    known: WordStatistics
    hardware: Hardware
    k: int
    batch: int
    contrast: int = -1  # words without relevance that join each list; −1: all
    items: Literal["words", "positions"] = "words"

    def __post_init__(self) -> None:
        self.planter = Planter(self.known.table, self.material, contrast=self.contrast, labels_per_document=0, items=self.items)
        self.name = f"nDCG@{self.k}"

    @torch.no_grad()
    def __call__(self) -> dict[str, float]:
        """Mean nDCG@k, Kendall's τ, and the nDCG@k that a random order would have."""
        self.network.eval()
        sums = np.zeros(4)  # of the three figures, and how many lists
        for rows in self.hardware.processes.share(sorted_batches(lengths(self.material.reader.tokens), self.batch)):
            gold = self.planter.gold[rows]
            labels = np.unique(gold.indices).astype(np.int64)
            if not len(labels):
                continue
            counts = np.asarray(gold[:, labels].toarray() != 0)
            reading = self.material.reader.read(rows)
            with self.hardware.autocast():
                lists = rank_words(self.network.decoder, self.planter, reading, rows, labels, counts, np.random.default_rng(FIXED_SEED))
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
