"""A start of stage 1 without steps: the label queries whose scores come nearest to the relevance of
words, by ridge regression.

For each label and head, the query is the direction of keys that separates tokens of relevant words
from all tokens, by least squares. One pass over train sums the keys of every word; the queries of
all labels then follow from one product with the relevance table and one small inverse for each
head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import torch
from torch import Tensor

from plant_cli.api import QueryDecoder
from plant_cli.relevance.relevance_table import RelevanceTable
from plant_cli.runs.session import Session
from plant_cli.scoring.top_labels import Room
from plant_network.assembly import Network
from plant_network.compute import send
from plant_network.hardware import Hardware
from plant_network.planting import Planter
from plant_network.reading import (
    OUTSIDE,
    DocumentWords,
    HiddenReader,
    Rows,
    lengths,
    sorted_batches,
)

REGRESSION_STRENGTH = 0.03
"""Ridge on the covariance of keys, as a share of its mean eigenvalue."""
SMALLEST_GAP = 0.05
"""A label whose relevant tokens hardly differ from others gets no endless query: their distance
counts as this share of the median.
"""


@dataclass(frozen=True, kw_only=True)
class KeySums:
    """Sums of keys over the tokens of train, fp64, and those of each word of the relevance
    table, fp32.
    """

    tokens: Tensor  # how many
    total: Tensor  # of all keys [H]
    products: Tensor  # of keys with keys, head by head [h, d, d]
    words: Tensor  # of the keys of each word [V, H]
    counts: Tensor  # tokens of each word [V]

    @classmethod
    def empty(cls, heads: int, hidden: int, words: int, device: torch.device) -> KeySums:
        """All zero."""
        size = hidden // heads
        return cls(
            tokens=torch.zeros(1, dtype=torch.float64, device=device),
            total=torch.zeros(hidden, dtype=torch.float64, device=device),
            products=torch.zeros(heads, size, size, dtype=torch.float64, device=device),
            words=torch.zeros(words, hidden, device=device),
            counts=torch.zeros(words, device=device),
        )

    def add(self, keys: Tensor, sizes: Rows, documents: Sequence[DocumentWords]) -> None:
        """Add documents: keys [B, T, H], real up to so many tokens of each [B], and their words."""
        heads, size, _ = self.products.shape
        self.tokens.add_(int(sizes.sum()))
        for all_keys, tokens in zip(keys, sizes.tolist(), strict=True):
            exact = all_keys[:tokens].double()
            by_head = exact.view(tokens, heads, size).transpose(0, 1)
            self.total.add_(exact.sum(0))
            self.products.add_(by_head.mT @ by_head)
        words = np.concatenate([document.vocabulary[document.word] for document in documents])
        places = np.concatenate(
            [number * keys.shape[1] + document.token for number, document in enumerate(documents)]
        )
        row, place = send(
            torch.from_numpy(np.stack([words, places])[:, words != OUTSIDE]), keys.device
        ).unbind(0)
        self.words.index_add_(0, row, keys.flatten(0, 1).index_select(0, place).float())
        self.counts.index_add_(0, row, torch.ones_like(row, dtype=self.counts.dtype))


def regress_queries(sums: KeySums, table: RelevanceTable) -> Tensor:
    """Queries [L, H] fp32, heads side by side: q · k is 1 higher, on average, at tokens of the
    label's relevant words than elsewhere.

    Words count by their relevance, and by how often they occur. A label without relevant words gets
    zeros: it attends to all alike.
    """
    heads, size, _ = sums.products.shape
    tokens = sums.tokens.clamp_min(1)
    mean = sums.total / tokens
    by_head = mean.view(heads, size, 1)
    covariance = sums.products / tokens - by_head @ by_head.mT
    ridge = REGRESSION_STRENGTH * covariance.diagonal(dim1=1, dim2=2).sum() / (heads * size)
    covariance.diagonal(dim1=1, dim2=2).add_(ridge.clamp_min(torch.finfo(torch.float32).tiny))
    inverse = torch.linalg.inv(covariance)
    centred = sums.words - sums.counts.unsqueeze(1) * mean.float()
    away, mass = (
        torch.from_numpy(table.matrix @ x.cpu().numpy()).double().to(mean.device)
        for x in (centred, sums.counts)
    )
    away = (
        (away / mass.clamp_min(1e-9).unsqueeze(1)).view(-1, heads, size).transpose(0, 1)
    )  # from the mean key to that of relevant tokens
    queries = away @ inverse
    gap = (queries * away).sum(-1, keepdim=True)
    least = torch.stack([x[x > 0].median() if (x > 0).any() else x.new_ones(()) for x in gap]).view(
        -1, 1, 1
    )
    planted: Tensor = (queries / gap.clamp_min(SMALLEST_GAP * least)).transpose(0, 1).flatten(1)
    return planted.float()


@torch.no_grad()
def plant_queries(
    network: Network,
    reader: HiddenReader,
    planter: Planter,
    hardware: Hardware,
    batch: Room | int,
    session: Session,
) -> None:
    """Set the label queries of a network by regression, from one pass over training documents,
    `batch` of them at once.
    """
    decoder, documents, table = network.decoder, planter.documents, planter.table
    assert isinstance(decoder, QueryDecoder)
    network.eval()
    sums = KeySums.empty(
        decoder.heads, network.backbone.hidden_size, len(table.words), hardware.device
    )
    processes, sizes = hardware.processes, lengths(reader.tokens)
    batches = sorted_batches(sizes, batch)
    with session.reporter.progress("regression of relevance", len(documents), "documents") as task:
        for rows in takewhile(lambda _: not session.should_stop(), processes.share(batches)):
            reading = reader.read(rows)
            with hardware.autocast():
                keys = decoder.keys(reading)
            sums.add(keys, sizes[rows], [documents[row] for row in rows])
            task.advance(len(rows) * processes.count)
    processes.add([sums.tokens, sums.total, sums.products, sums.words, sums.counts])
    session.check(
        "while label queries were planted", "all queries, before training starts", processes.any
    )
    decoder.plant_queries(regress_queries(sums, table))
