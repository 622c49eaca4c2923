"""Stage 1 on batches: for each document and label, the document's words as a list to be ranked by
relevance.

`Planter` makes the lists, `Planting` is the loss over them, `AttentionMeasure` says how well
attention ranks those of validation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from plant_cli.api import Decoder, RankLoss, Reading
from plant_cli.api.options import FIXED_SEED
from plant_cli.relevance.relevance_table import RelevanceTable, WordStatistics
from plant_cli.scoring.top_labels import Room
from plant_network.answers import rank_tokens
from plant_network.assembly import Network
from plant_network.compute import LABEL_MULTIPLE, send
from plant_network.hardware import Hardware
from plant_network.materials import Material
from plant_network.ranked_lists import kendall_tau, ndcg, random_ndcg
from plant_network.reading import OUTSIDE, HiddenReader, lengths, match_words, sorted_batches

Rows = npt.NDArray[np.int64]
SMALLEST_MASS = 1e-12
PLANTING_NUMBERS = {"cpu": 1 << 24, "cuda": 1 << 27}
"""Attention (documents x labels x positions) that is kept for the backward pass by device; of
more, blocks are computed again.
"""

RankTokens = Callable[[Decoder, Reading, Tensor, Tensor | None], Tensor]
"""How labels order tokens, as `rank_tokens` does."""


@dataclass(frozen=True, kw_only=True)
class RankedLists:
    """Ragged lists of one batch, ready for a rank loss."""

    scores: Tensor
    relevance: Tensor
    offsets: Tensor

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, kw_only=True)
class Lists:
    """The lists of some documents before attention has scored them: document after document,
    label after label.
    """

    documents: Rows  # whose list it is, by its number in the batch [P]
    labels: Rows  # whose list it is [P]
    sizes: Rows  # items of each list [P]
    relevance: npt.NDArray[np.float32]  # of each item [n], list after list
    entries: Rows  # (token, item) pairs of each list [P]
    tokens: Rows  # position of each pair's token [m]
    items: Rows  # the pair's item [m], 0 ≤ item < n

    @classmethod
    def join(cls, parts: Sequence[Lists]) -> Lists:
        """The lists of all documents, which are numbered as they come."""
        starts = np.cumsum([0, *(len(part.relevance) for part in parts)])
        numbered = [
            replace(part, documents=part.documents + n, items=part.items + starts[n])
            for n, part in enumerate(parts)
        ]
        return cls(
            **{
                name: np.concatenate([getattr(part, name) for part in numbered])
                for name in cls.__dataclass_fields__
            }
        )

    def of(self, wanted: npt.NDArray[np.bool_]) -> Lists:
        """Some of the lists [P]."""
        kept, pairs = np.repeat(wanted, self.sizes), np.repeat(wanted, self.entries)
        return Lists(
            documents=self.documents[wanted],
            labels=self.labels[wanted],
            sizes=self.sizes[wanted],
            relevance=self.relevance[kept],
            entries=self.entries[wanted],
            tokens=self.tokens[pairs],
            items=(np.cumsum(kept) - 1)[self.items[pairs]],
        )


class Planter:
    """Says which words each list holds, and scores them from log attention.

    `contrast` words without relevance join each document's lists (0: none, −1: all);
    `labels_per_document` labels are sampled beside a batch's positives (−1: all labels). A word's
    score is the log of the attention mass on its tokens, that mass, or the log mean. `alone`: each
    document draws labels and words for itself, so that its lists do not depend on which others are
    in memory with it.
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
        alone: bool = False,
    ) -> None:
        assert material.words is not None, "where there is relevance, texts are split into words"
        self.table, self.gold = table, material.split.gold
        self.contrast, self.labels_per_document, self.score = contrast, labels_per_document, score
        self.alone = alone
        found = match_words(
            material.split.texts,
            material.words,
            material.reader.tokens,
            table.words,
            material.analyser,
        )
        self.documents = [
            document.by_position() if items == "positions" else document for document in found
        ]

    def choose_labels(
        self, rows: Rows, draw: np.random.Generator
    ) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """Labels of a batch and which of them count for which document [B, l]: its positives
        and the shared sample.
        """
        total = self.gold.shape[1]
        if self.labels_per_document < 0 or self.labels_per_document >= total:
            return np.arange(total), np.ones((len(rows), total), dtype=bool)
        sample = draw.choice(total, size=self.labels_per_document, replace=False)
        own = [self.gold.indices[self.gold.indptr[row] : self.gold.indptr[row + 1]] for row in rows]
        labels = np.union1d(sample, np.concatenate(own))
        counts = np.tile(np.isin(labels, sample), (len(rows), 1))
        for number, positive in enumerate(own):
            counts[number, np.searchsorted(labels, positive)] = True
        return labels, counts

    def choose_items(self, row: int, labels: Rows, draw: np.random.Generator) -> Lists:
        """The lists of a document for some labels; a label is left out if none of the words, or
        only one word, would be in its list.
        """
        document = self.documents[row]
        vocabulary = document.vocabulary
        known, size = vocabulary != OUTSIDE, len(vocabulary)
        wanted = np.zeros(
            (len(labels), size), dtype=np.float32
        )  # relevance; positions of one word have that of the word, each
        wanted[:, known] = self.table.matrix[labels][:, vocabulary[known]].toarray()
        joined = np.ones(size, dtype=bool)
        if 0 <= self.contrast < size:
            joined = np.zeros(size, dtype=bool)
            joined[draw.choice(size, size=self.contrast, replace=False)] = True
        there = (wanted > 0) | joined[None, :]
        usable = ((wanted > 0).any(axis=1)) & (there.sum(axis=1) > 1)
        there = there[usable]
        lists, entries = np.nonzero(there[:, document.word])
        numbers = np.cumsum(there).reshape(there.shape) - 1
        return Lists(
            documents=np.zeros(len(there), dtype=np.int64),
            labels=labels[usable],
            sizes=there.sum(axis=1),
            relevance=wanted[usable][there],
            entries=np.bincount(lists, minlength=len(there)),
            tokens=document.token[entries],
            items=numbers[lists, document.word[entries]],
        )

    def draw_lists(self, rows: Rows, seed: int) -> Lists:
        """The lists of a batch for a fresh sample of labels and contrast words."""
        parts = (
            [(rows[number : number + 1], seed + number) for number in range(len(rows))]
            if self.alone
            else [(rows, seed)]
        )
        drawn = [(some, np.random.default_rng(one)) for some, one in parts]
        found = [
            self.choose_lists(some, *self.choose_labels(some, draw), draw) for some, draw in drawn
        ]
        return Lists.join(found) if self.alone else found[0]

    def choose_lists(
        self, rows: Rows, labels: Rows, counts: npt.NDArray[np.bool_], draw: np.random.Generator
    ) -> Lists:
        """The lists of a batch for its labels, each for the documents where it counts [B, l]."""
        return Lists.join(
            [
                self.choose_items(int(row), labels[counts[number]], draw)
                for number, row in enumerate(rows)
            ]
        )

    def score_items(self, log_attention: Tensor, items: Tensor, count: int) -> Tensor:
        """Scores [n] of so many items from log attention on their tokens: entries [m], each
        with its item [m].
        """
        on_tokens = log_attention.float().exp()
        mass = on_tokens.new_zeros(count).index_add(0, items, on_tokens)
        if self.score == "mass":
            return mass
        if self.score == "log-mean":
            mass = mass / torch.zeros_like(mass).index_add(0, items, torch.ones_like(on_tokens))
        return mass.clamp_min(SMALLEST_MASS).log()


@dataclass(frozen=True)
class Planting:
    """Loss of one micro-batch of stage 1 (`plant_network.loop.BatchLoss`); the mean is
    over lists.
    """

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


def planted_loss(
    network: Network, planter: Planter, loss: RankLoss, reading: Reading, rows: Rows, seed: int
) -> tuple[Tensor, float]:
    """The ranking loss of a batch for a fresh sample of labels and contrast words, and over how
    many lists it is a mean.
    """
    lists = rank_words(network.decoder, planter, reading, planter.draw_lists(rows, seed))
    if lists is None:  # a loss of nothing, with a gradient that is zero
        attention = rank_tokens(
            network.decoder,
            reading.select(slice(1)),
            torch.zeros(1, dtype=torch.int64, device=reading.mask.device),
        )
        return 0.0 * attention.nan_to_num(neginf=0.0).sum(), 0.0
    return loss(lists.scores, lists.relevance, lists.offsets), float(len(lists))


def rank_words(
    decoder: Decoder,
    planter: Planter,
    reading: Reading,
    lists: Lists,
    rank: RankTokens = rank_tokens,
) -> RankedLists | None:
    """The lists of a batch, scored by `rank`; None if there is no list.

    Of very many labels or positions, blocks of labels are computed again in the backward pass:
    memory grows with the words in the lists.
    """
    used = np.unique(lists.labels)
    if not len(used):
        return None
    kept = PLANTING_NUMBERS.get(reading.mask.device.type, PLANTING_NUMBERS["cpu"])
    step = max(1, kept // (reading.mask.numel() * LABEL_MULTIPLE)) * LABEL_MULTIPLE
    blocks = np.searchsorted(used, lists.labels) // step
    parts = (
        [lists]
        if len(used) <= step
        else [lists.of(blocks == number) for number in range(int(blocks.max()) + 1)]
    )
    given = [(decoder, planter, reading, part, rank) for part in parts]
    once = len(parts) == 1
    scores = [
        _score_lists(*block) if once else checkpoint(_score_lists, *block, use_reentrant=False)
        for block in given
    ]
    relevance = np.concatenate([part.relevance for part in parts])
    offsets = np.cumsum([0, *np.concatenate([part.sizes for part in parts])])
    device = reading.mask.device
    return RankedLists(
        scores=torch.cat(scores),
        relevance=send(torch.from_numpy(relevance), device),
        offsets=send(torch.from_numpy(offsets), device),
    )


def _score_lists(
    decoder: Decoder, planter: Planter, reading: Reading, lists: Lists, rank: RankTokens
) -> Tensor:
    """Scores of the items, from one product of all documents and labels."""
    used, numbers = np.unique(lists.labels, return_inverse=True)
    pairs = lists.documents * len(used) + numbers
    positions = np.repeat(pairs, lists.entries) * reading.mask.shape[1] + lists.tokens
    given = (used, pairs, positions, lists.items)
    sent = send(torch.from_numpy(np.concatenate(given)), reading.mask.device)  # in one transfer
    labels, chosen, entries, items = torch.split(sent, [len(numbers) for numbers in given])
    wanted = torch.zeros(
        len(reading) * len(used), dtype=torch.bool, device=labels.device
    ).index_fill_(0, chosen, True)
    attention = rank(decoder, reading, labels, wanted.view(len(reading), -1))
    return planter.score_items(
        attention.flatten().index_select(0, entries), items, len(lists.relevance)
    )


@dataclass
class AttentionMeasure:
    """nDCG@k of attention against relevance on a split, over every (document, own label) list
    with all of its words.
    """

    network: Network
    material: Material
    known: WordStatistics
    hardware: Hardware
    k: int
    batch: Room | int  # what is in memory at once; a number is one of documents
    contrast: int = -1  # words without relevance that join each list; −1: all
    items: Literal["words", "positions"] = "words"
    rank: RankTokens = rank_tokens  # what stage 1 trains: without relevance that is kept

    def __post_init__(self) -> None:
        self.planter = Planter(
            self.known.table,
            self.material,
            contrast=self.contrast,
            labels_per_document=0,
            items=self.items,
        )
        self.name = f"nDCG@{self.k}"

    @torch.no_grad()
    def __call__(self) -> dict[str, float]:
        """Mean nDCG@k, Kendall's τ, and the nDCG@k that a random order would have."""
        self.network.eval()
        sums = np.zeros(4)  # of the three figures, and how many lists
        for rows in self.hardware.processes.share(
            sorted_batches(lengths(self.material.reader.tokens), self.batch)
        ):
            gold = self.planter.gold[rows]
            labels = np.unique(gold.indices).astype(np.int64)
            if not len(labels):
                continue
            counts = np.asarray(gold[:, labels].toarray() != 0)
            chosen = self.planter.choose_lists(
                rows, labels, counts, np.random.default_rng(FIXED_SEED)
            )
            reading = self.material.reader.read(rows)
            with self.hardware.autocast():
                lists = rank_words(self.network.decoder, self.planter, reading, chosen, self.rank)
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
        return {
            self.name: float(mean[0]),
            "tau": float(mean[1]),
            f"random {self.name}": float(mean[2]),
        }
