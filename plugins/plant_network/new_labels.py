"""Rows of new labels in the tables of a trained network, by one pass over documents; the network
does not change for other labels.

A new label attends to a text as the average label does. How far its documents are from the average
one, in what this attention gathers, is d = (n a + K t) / (n + K): a is the mean of its n documents,
and t what ridge regression says of its title; the regression is learned from the titles and
documents of known labels. The row is the discriminant w = (C + r I)⁻¹ d, where C is the covariance
of documents. On average, the logit is that of a known label.

Source: Fisher 1936, The use of multiple measurements in taxonomic problems; Romera-Paredes and Torr
2015, for labels without documents.
"""

from __future__ import annotations

from itertools import takewhile

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from plant_cli.api import ComponentError, Corpus, PlantableDecoder, SparseDecoder
from plant_cli.runs.session import Session
from plant_cli.scoring.top_labels import Room
from plant_network.answers import score_labels
from plant_network.assembly import EarlierNetwork, Network, title_queries
from plant_network.hardware import Hardware
from plant_network.materials import Material
from plant_network.prototypes import SCALE
from plant_network.reading import Rows, lengths, sorted_batches

DOCUMENTS_READ = 4096
"""Training documents that are read at most, drawn at random, beside those of new labels."""
LABELS_SCORED = 256
"""Known labels, about, whose mean logit new labels have."""
TITLE_WORTH = 3.0
"""So many documents count as much as the title (K)."""
DISCRIMINANT_STRENGTH, TITLE_STRENGTH = 3.0, 1.0
"""Ridge on the covariance of documents (r) and on that of titles, as a share of the mean
eigenvalue.
"""


@torch.no_grad()
def plant_new_labels(
    earlier: EarlierNetwork,
    network: Network,
    train: Material,
    corpus: Corpus,
    hardware: Hardware,
    batch: Room | int,
    session: Session,
) -> None:
    """Give new labels rows in a network that has the weights of an earlier one; titles behind the
    documents of `train` are not read.

    Raises:
        ComponentError: the decoder has no label tables that can start from prototypes.
    """
    decoder = network.decoder
    if not isinstance(decoder, PlantableDecoder) or not isinstance(decoder, SparseDecoder):
        raise ComponentError(
            f"the decoder '{network.section.decoder.name}' cannot add labels without training",
            where="finetune, option only_new",
            expected="a decoder with label tables and gather, sharpen and plant_tables "
            "(plant_cli.api.PlantableDecoder)",
            todo="train the network again: plant labels apply --train",
        )
    network.eval()
    labels, documents = corpus.labels, corpus.sizes["train"]
    is_known = torch.from_numpy(earlier.rows >= 0).to(hardware.device)
    new = (~is_known).nonzero().squeeze(1)
    for table in decoder.label_tables():
        table[new] = table[is_known].mean(0)
    gold = csr_array(train.split.gold[:documents])
    drawn = np.random.default_rng(network.seed).permutation(documents)[:DOCUMENTS_READ]
    read = np.union1d(drawn, gold[:, new.cpu().numpy()].sum(axis=1).nonzero()[0])
    known = is_known.nonzero().squeeze(1)
    known = known[:: max(1, len(known) // LABELS_SCORED)]
    states, level = _gather(network, decoder, train, read, new[:1], known, hardware, batch, session)
    mean = states.mean(0)
    owned = gold[read].T.astype(np.float32).tocsr()
    counts = torch.from_numpy(np.asarray(owned.sum(axis=1))).unsqueeze(1)
    away = torch.from_numpy(owned @ (states - mean).numpy()) / counts.clamp_min(1)
    titled = torch.tensor([bool(title) for title in labels.titles])
    learned = titled & is_known.cpu() & (counts[:, 0] > 0)
    worth, guessed = TITLE_WORTH * titled.float().unsqueeze(1), torch.zeros_like(away)
    if learned.any():
        titles = title_queries(network.backbone, labels)
        titles -= titles[learned].mean(0)
        guessed = titles @ _divide(
            titles[learned].T @ titles[learned], titles[learned].T @ away[learned], TITLE_STRENGTH
        )
    away = (counts * away + worth * guessed) / (counts + worth).clamp_min(1)
    chosen = new.cpu()
    weights = _divide(torch.cov(states.T), away[chosen].T, DISCRIMINANT_STRENGTH).T
    unit = weights / weights.square().sum(1, keepdim=True).clamp_min(
        torch.finfo(torch.float32).tiny
    )  # the logit rises by 1 along it
    background = mean - (level + SCALE / 2) * unit  # where it is −SCALE / 2
    places = torch.zeros(len(labels), dtype=torch.int64)  # any row will do for known labels
    places[chosen] = torch.arange(len(chosen))
    prototypes = (background + SCALE * unit)[places]
    decoder.plant_tables(
        prototypes.to(hardware.device), background[places].to(hardware.device), SCALE
    )
    earlier.carry_over(network)


def _gather(
    network: Network,
    decoder: PlantableDecoder,
    train: Material,
    read: Rows,
    label: Tensor,
    known: Tensor,
    hardware: Hardware,
    batch: Room | int,
    session: Session,
) -> tuple[Tensor, float]:
    """What the attention of a label gathers from some documents [n, V], on the processor, and
    the mean logit of others in them.
    """
    states, total = (
        torch.zeros(len(read), decoder.gathered_size, device=hardware.device),
        torch.zeros(1, device=hardware.device),
    )
    with session.reporter.progress("new labels", len(read), "documents") as task:
        batches = hardware.processes.share(
            sorted_batches(lengths(train.reader.tokens)[read], batch)
        )
        for rows in takewhile(lambda _: not session.should_stop(), batches):
            reading = train.reader.read(read[rows])
            with hardware.autocast():
                states[torch.from_numpy(rows).to(states.device)] = decoder.gather(reading, label)[
                    :, 0
                ].float()
                total += score_labels(network.decoder, reading, known).mean(1).sum()
            task.advance(len(rows) * hardware.processes.count)
    hardware.processes.add([states, total])
    session.check("while new labels got their rows", "rows of all labels", hardware.processes.any)
    return states.cpu(), float(total) / max(1, len(read))


def _divide(squares: Tensor, products: Tensor, strength: float) -> Tensor:
    """(squares + ridge)⁻¹ products, for squares [V, V]."""
    ridge = strength * squares.diagonal().mean().clamp_min(torch.finfo(torch.float32).tiny)
    found: Tensor = torch.linalg.solve(squares + ridge * torch.eye(len(squares)), products)
    return found
